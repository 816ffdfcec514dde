/* einsum_tiny.c: the product of two tensors as loops, where matrices are tiny. */
#include "cpu/einsum.h"

#define TINY_PRODUCT(name, T)                                                                      \
    static void name(const weft_einsum *p, const int64_t *at)                                      \
    {                                                                                              \
        const T *a = (const T *)(const void *)p->data[WEFT_A] + at[WEFT_A],                        \
                *b = (const T *)(const void *)p->data[WEFT_B] + at[WEFT_B];                        \
        T *out = (T *)(void *)p->data[WEFT_OUT] + at[WEFT_OUT];                                    \
        const int64_t *m = p->dm.stride, *n = p->dn.stride, *k = p->dk.stride;                     \
        for (int64_t i = 0; i < p->dm.size; i++)                                                   \
            for (int64_t j = 0; j < p->dn.size; j++) {                                             \
                double sum = 0;                                                                    \
                for (int64_t l = 0; l < p->dk.size; l++)                                           \
                    sum += (double)a[i * m[WEFT_A] + l * k[WEFT_A]] *                              \
                           (double)b[l * k[WEFT_B] + j * n[WEFT_B]];                               \
                T *to = &out[i * m[WEFT_OUT] + j * n[WEFT_OUT]];                                   \
                *to = p->adds ? *to + (T)sum : (T)sum;                                             \
            }                                                                                      \
    }
TINY_PRODUCT(tiny_f32, float)
TINY_PRODUCT(tiny_f64, double)
static void (*const tiny_products[WEFT_I32])(const weft_einsum *p, const int64_t *at) = {tiny_f32,
                                                                                         tiny_f64};

static void run_tiny(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_einsum *p = argument;
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[3];
        weft_nest_offset(&p->free, i, at);
        tiny_products[p->dtype](p, at);
    }
}

void weft_einsum_plan_tiny(weft_einsum *p, int64_t work)
{
    weft_nest_append(&p->free, &p->m);
    weft_nest_append(&p->free, &p->n);
    p->run = weft_einsum_run_lanes;
    p->body = run_tiny;
    p->count = weft_nest_count(&p->free);
    p->grain = weft_grain(work);
}
