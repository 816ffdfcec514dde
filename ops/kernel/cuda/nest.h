/* nest.h: loops over the dims of up to three tensors, as kernels are told them: outermost first, strides in elements. */
#ifndef WEFT_CUDA_NEST_H
#define WEFT_CUDA_NEST_H

#include <stdint.h>

enum { CUDA_NEST_DIMS = 16, CUDA_NEST_TENSORS = 3 };
typedef struct cuda_nest {
    int n_dims;
    int64_t count[CUDA_NEST_DIMS], stride[CUDA_NEST_TENSORS][CUDA_NEST_DIMS];
} cuda_nest;

/* out = begin + sum over `inner` of a * b. Tensors of both nests: out (inner has no stride in it), a, b. */
typedef struct cuda_product {
    void *out;
    const void *a, *b, *begin; /* as out lies, and may be out; NULL: nothing */
    int64_t n_out, n_inner;
    cuda_nest outer, inner;
} cuda_product;

/* out = in over `inner`, reduced to a value or a state. Tensors: out, in, and in `inner` the index that argmax gives. */
typedef struct cuda_reduction {
    void *out;
    const void *in;
    int64_t n_out, n_inner, first_index;
    cuda_nest outer, inner;
} cuda_reduction;

/* States become values, [n] of them; out[1] where there are two. Tensors: state (in states), out[0], out[1]. */
typedef struct cuda_finishing {
    void *out[2];
    const void *state;
    int64_t n;
    double number;
    cuda_nest nest;
} cuda_finishing;

/* Ids point into a table: rows of it are read, or added to. Tensors of `ids` and `rest`: ids, table, rows. `first` to `end`: those of
 * the table that are here, `step` apart. */
typedef struct cuda_indexing {
    const int32_t *id;
    void *table, *rows;
    int64_t n_ids, n_rest, first, end, step;
    /* scatter_add, scatter_max: of the rows of the table; each has threads of its own */
    int64_t n_parts;
    cuda_nest ids, rest;
} cuda_indexing;

/* Elements moved, as many as the nest has. Tensors: to, from. */
typedef struct cuda_moving {
    void *to;
    const void *from;
    int64_t n;
    cuda_nest nest;
} cuda_moving;

/* Lines of x along a dim of `length`, whose elements lie `inner` apart, added up from one end into y, which lies as x does. A line is in
 * blocks: each by itself; then what comes before each of them, in totals [lines, blocks]; then that added to its elements. */
enum { CUDA_WITHIN, CUDA_BETWEEN, CUDA_ON_TOP };
typedef struct cuda_cumulating {
    const void *x;
    void *y, *totals; /* no totals: one block */
    int64_t n_lines, length, inner, block, n_blocks;
    int exclusive, reverse, phase;
} cuda_cumulating;

#ifdef KERNEL
typedef struct offsets {
    int64_t at[CUDA_NEST_TENSORS];
} offsets;

DEVICE offsets offsets_of(const cuda_nest *nest, int64_t i)
{
    offsets o = {{0, 0, 0}};
    for (int d = nest->n_dims - 1; d >= 0; d--) {
        const int64_t next = i / nest->count[d], k = i - next * nest->count[d];
        for (int t = 0; t < CUDA_NEST_TENSORS; t++)
            o.at[t] += k * nest->stride[t][d];
        i = next;
    }
    return o;
}
#endif

#endif
