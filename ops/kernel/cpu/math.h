/* math.h: exp and tanh that vectorise, and the macros that compile a loop for several instruction sets.
 *
 * float: own polynomials, 1-2 ulp, branch-free, so a plain loop becomes SIMD without -ffast-math.
 * double: libm; correctness is what double is for.
 */
#ifndef WEFT_MATH_H
#define WEFT_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* gcc makes one copy per instruction set and the loader picks; clang 14 cannot together with static. Sanitizers and
 * ifuncs do not mix. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(WEFT_SANITIZE)
#define WEFT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define WEFT_IVDEP  _Pragma("GCC ivdep")
#else
#define WEFT_CLONES
#define WEFT_IVDEP
#endif
#define WEFT_INLINE static inline __attribute__((always_inline))

#endif
