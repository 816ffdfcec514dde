/* target_clones.h: one loop, compiled for several instruction sets; the loader picks.
 *
 *     WEFT_TARGET_CLONES void scale(int64_t n, float *y, const float *x) { for (...) }
 *
 * WEFT_TARGET_CLONES before a function; WEFT_IVDEP before a loop each of whose elements depends on itself alone.
 */
#ifndef WEFT_EXTEND_TARGET_CLONES_H
#define WEFT_EXTEND_TARGET_CLONES_H

/* gcc makes one copy per instruction set; clang 14 cannot together with static. Sanitizers and ifuncs do not mix. */
#ifdef __GNUC__
#ifndef __clang__
#ifdef __x86_64__
#ifndef WEFT_SANITIZE
#define WEFT_TARGET_CLONES                                                                         \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define WEFT_IVDEP _Pragma("GCC ivdep")
#define WEFT_HAS_CLONES
#endif
#endif
#endif
#endif
#ifndef WEFT_TARGET_CLONES
#define WEFT_TARGET_CLONES
#define WEFT_IVDEP
#endif

#endif
