/* einsum_vectors.c: the product of two tensors as products of vectors and matrices (gemv.h), each cut where lanes like. */
#include "cpu/einsum.h"
#include "cpu/gemv.h"

static weft_vector_product vector_product_at(const weft_einsum *p, const int64_t free[3])
{
    const int x = p->dm.size == 1 ? WEFT_A : WEFT_B, w = WEFT_A + WEFT_B - x;
    const weft_einsum_dim *n = x == WEFT_A ? &p->dn : &p->dm;
    return (weft_vector_product){
        .reads = p->reads,
        .rounds_x = p->rounds[x],
        .rounds_w = p->rounds[w],
        .n = n->size,
        .k = p->dk.size,
        .x = p->data[x] + (size_t)free[x] * p->bytes[x],
        .x_step = p->dk.stride[x],
        .w = p->data[w] + (size_t)free[w] * p->bytes[w],
        .along_k = p->dk.stride[w],
        .along_n = n->stride[w],
        .y = p->data[WEFT_OUT] + (size_t)free[WEFT_OUT] * p->bytes[WEFT_OUT],
        .y_step = n->stride[WEFT_OUT],
    };
}

/* Results from `first` on, so many, of one product; all of k. */
static void multiply_vector(const weft_einsum *p, const int64_t free[3], int64_t first, int64_t n)
{
    const int64_t n_added = weft_nest_count(&p->k);
    for (int64_t l = 0; l < n_added; l++) {
        int64_t at[3];
        weft_nest_offset(&p->k, l, at);
        for (int t = 0; t < WEFT_NEST_TENSORS; t++)
            at[t] += free[t];
        weft_vector_product one = vector_product_at(p, at);
        one.adds = l > 0 || p->adds;
        weft_gemv(&one, first, one.n - first < n ? one.n : first + n);
    }
}

static void run_vectors(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_einsum *p = argument;
    (void)lane;
    for (int64_t i = begin, n; i < end; i += n) {
        int64_t free[3];
        const int64_t left = p->slices - i % p->slices;
        n = end - i < left ? end - i : left;
        weft_nest_offset(&p->free, i / p->slices, free);
        multiply_vector(p, free, i % p->slices * p->slice, n * p->slice);
    }
}

void weft_einsum_plan_vectors(weft_einsum *p)
{
    const int64_t longer = p->dm.size >= p->dn.size ? p->dm.size : p->dn.size;
    weft_nest_append(&p->free, &p->m);
    weft_nest_append(&p->free, &p->n);
    p->slice = WEFT_GEMV_UNIT;
    p->slices = (longer + p->slice - 1) / p->slice;
    p->run = weft_einsum_run_lanes;
    p->body = run_vectors;
    p->count = weft_nest_count(&p->free) * p->slices;
    p->grain = weft_grain(longer / p->slices * p->dk.size * weft_nest_count(&p->k));
}
