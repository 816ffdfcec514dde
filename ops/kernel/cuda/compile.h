/* compile.h: kernels that are written while a program is made: compiled by NVRTC, which is loaded where it is first needed, and
 * kept on disk by content (cache.h).
 *
 *     WEFT_TRY(cuda_compile_loop(text.body, text.n_words, &kernel, error));
 */
#ifndef WEFT_CUDA_COMPILE_H
#define WEFT_CUDA_COMPILE_H

#include "mesh/cuda/parts.h"

/* cuda_compile_loop - the kernel of a body (loop_text.h); of one that was compiled before: that one, which lives as long as the
 * process. Any thread may call it. Refused with a sentence: no NVRTC; what it says of the source. */
weft_status cuda_compile_loop(const char *body, int n_words, const cuda_kernel **kernel,
                              weft_error *error);

/* How many kernels this process has asked the compiler for, and how many it found on disk. */
typedef struct cuda_compiled {
    int n_compiled, n_found;
} cuda_compiled;
cuda_compiled cuda_compile_counts(void);

/* cuda_compile_source - a whole source as machine code of an architecture ("sm_90"): no cache. *image is given back by free. */
weft_status cuda_compile_source(const char *source, const char *architecture, void **image,
                                size_t *bytes, weft_error *error);
/* The source of a loop; given back by free. NULL: no memory. */
char *cuda_loop_source(const char *body, int n_words, const char *name);

#endif
