/* einsum.h: a product of two tensors as einsum.c has worked it out, for the ways there are to do it. */
#ifndef WEFT_EINSUM_H
#define WEFT_EINSUM_H

#include "cpu/nest.h"

enum { WEFT_A, WEFT_B, WEFT_OUT };

typedef struct weft_einsum_dim { /* size 1 where a group is empty */
    int64_t size, stride[WEFT_NEST_TENSORS];
} weft_einsum_dim;

/* out[batch, m, n] = sum over k, rest of a * b; strides by tensor. */
typedef struct weft_einsum weft_einsum;
struct weft_einsum {
    void (*run)(const weft_einsum *e, weft_stream *stream); /* one of the ways */
    weft_piece body;                                        /* what a lane does of it */
    int64_t count, grain;                                   /* of the lanes' work     */
    weft_stream *stream;
    weft_dtype dtype, reads; /* of sums; of a and b */
    bool rounds[2];          /* a, b: it is stored as f32, and read as bf16, which `reads` is */
    char *data[WEFT_NEST_TENSORS];
    /* Where results go as bf16, with the strides of out, whose data is then memory for sums; NULL: they stay f32 */
    uint16_t *narrow;
    bool narrows;  /* the way rounds each result itself, and needs no memory for sums */
    bool is_strip; /* of a result of bf16: its sums have strides of their own, of m and of n */
    int64_t sums[2];
    size_t bytes[WEFT_NEST_TENSORS];
    weft_nest free, m, n; /* free: batch; later also what is left of m and n */
    weft_nest k, lone;    /* lone: summed dims of one operand only           */
    weft_einsum_dim dm, dn, dk;
    int64_t slices, slice; /* of the longer of m and n */
    bool adds; /* to what out holds, the sum so far: of short sums as a loop would, bit for bit */
};

static inline void weft_einsum_run_lanes(const weft_einsum *e, weft_stream *stream)
{
    weft_parallel(stream, e->count, e->grain, e->body, (void *)(uintptr_t)e);
}

/* The innermost loop of `nest`, taken out of it; size 1 where there is none. */
weft_einsum_dim weft_einsum_take_last(weft_nest *nest);
/* einsum_vectors.c: where one of m and n is 1. */
void weft_einsum_plan_vectors(weft_einsum *e);
/* einsum_tiny.c: of at most so many multiply-adds a loop is done before a call of BLAS, or packing, has begun. f32, f64 */
enum { WEFT_EINSUM_TINY = 64 };
void weft_einsum_plan_tiny(weft_einsum *e, int64_t work);
/* einsum_strided.c: loops for any strides and any dtype, which are fast where neighbours of out are neighbours in a and b. */
void weft_einsum_plan_strided(weft_einsum *e);

#endif
