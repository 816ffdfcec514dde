/* nest.h: a nest of loops over up to three tensors at once: sizes, and strides in each tensor.
 *
 * Kernels sort the dims of their operands by name into nests (kept, summed, ...); neighbours whose
 * strides line up in all tensors become one loop, which is how a tensor of many dims becomes a
 * matrix.
 */
#ifndef WEFT_NEST_H
#define WEFT_NEST_H

#include "cpu/kernels.h"

enum { WEFT_NEST_DIMS = 2 * WEFT_MAX_DIMS, WEFT_NEST_TENSORS = 3 };

typedef struct weft_nest {
    int n_dims; /* outermost first; no dim of size 1 */
    int64_t size[WEFT_NEST_DIMS];
    int64_t stride[WEFT_NEST_DIMS][WEFT_NEST_TENSORS];
} weft_nest;

/* A view with its element strides; stride 0 for a name it lacks (weft_strided_of). */
typedef struct weft_strided {
    const weft_view *view;
    int64_t stride[WEFT_MAX_DIMS];
} weft_strided;

weft_strided weft_strided_view(const weft_view *view);
int64_t weft_strided_of(const weft_strided *strided, const char *name);

/* Put a loop inside the ones there are; merges it into the innermost where strides allow. */
void weft_nest_add(weft_nest *nest, int64_t size, const int64_t stride[WEFT_NEST_TENSORS]);
/* Take loop d out. */
void weft_nest_drop(weft_nest *nest, int d);
/* Put all loops of `inner` inside those of `nest`. */
void weft_nest_append(weft_nest *nest, const weft_nest *inner);
int64_t weft_nest_count(const weft_nest *nest);
/* Offsets, in elements, of iteration `index` (row-major) in each tensor. */
void weft_nest_offset(const weft_nest *nest, int64_t index, int64_t offset[WEFT_NEST_TENSORS]);

/* Bytes of a result that is written past the caches: whoever reads it will not find all of it there, and what others read
 * stays where it is. Lines that are written so are not read first: a layer norm of 12 MB is 1.15 times as fast. From 2 MB on
 * it was a loss, since the next op reads it; so it was for what a softmax scales, 12 MB too. */
enum { WEFT_STREAMED = 8 << 20 };

/* At least 1: how many tasks of `work` elements are worth waking a lane for. */
int64_t weft_grain(int64_t work);

/* The result holds what is added to from here on: the sum so far of a call that accumulates, which stays where it is if that is
 * where it has to be; else zeros. */
void weft_begin_sum(const weft_call *call);

#endif
