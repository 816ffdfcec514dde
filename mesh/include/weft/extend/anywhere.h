/* anywhere.h: WEFT_ANYWHERE, before a function in a header: of the host, and of devices whose compilers ask for a word. */
#ifndef WEFT_EXTEND_ANYWHERE_H
#define WEFT_EXTEND_ANYWHERE_H

#ifdef __CUDACC__
#define WEFT_ANYWHERE static __host__ __device__ inline
#else
#define WEFT_ANYWHERE static inline
#endif

#endif
