/* host_device.h: WEFT_HOST_DEVICE, before a function in a header: of the host, and of devices whose compilers ask for a word. */
#ifndef WEFT_EXTEND_ANYWHERE_H
#define WEFT_EXTEND_ANYWHERE_H

#ifdef __CUDACC__
#define WEFT_HOST_DEVICE static __host__ __device__ inline
#else
#define WEFT_HOST_DEVICE static inline
#endif

#endif
