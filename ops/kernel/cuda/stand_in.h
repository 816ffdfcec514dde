/* stand_in.h: what generated kernels need of the system's headers, for NVRTC, which has none: it stands for each of them. */
#ifndef WEFT_CUDA_STAND_IN_H
#define WEFT_CUDA_STAND_IN_H

#define WEFT_BEGIN /* of weft/error.h */
#define WEFT_END

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define INFINITY  __int_as_float(0x7f800000)
#define NAN       __int_as_float(0x7fffffff)
#endif

#endif
