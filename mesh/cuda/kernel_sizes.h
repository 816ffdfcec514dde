/* kernel_sizes.h: what kernels and those who launch them agree on. */
#ifndef WEFT_KERNEL_SIZES_H
#define WEFT_KERNEL_SIZES_H

enum { KERNEL_THREADS = 256 }; /* of a block, where nothing else is said */

#endif
