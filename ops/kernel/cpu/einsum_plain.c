/* einsum_plain.c: the product of two tensors by loops that anybody can check by eye; the oracle of
 * the fast one. */
#include "cpu/kernels.h"

#include <string.h>

/* The directions of the loops: the dims of out, then those that only the operands have. */
typedef struct loops {
    int n_dims;
    weft_dim dims[2 * WEFT_MAX_DIMS];
    int64_t size[2 * WEFT_MAX_DIMS];
    int64_t at[2 * WEFT_MAX_DIMS];
} loops;

static void add_dims(loops *l, const weft_view *view)
{
    for (int d = 0; d < view->shape.n_dims; d++) {
        int found = 0;
        for (int e = 0; e < l->n_dims; e++)
            if (strcmp(l->dims[e].name, view->shape.dims[d].name) == 0) found = 1;
        if (found) continue;
        l->dims[l->n_dims] = view->shape.dims[d];
        l->size[l->n_dims] = weft_view_size(view, d);
        l->n_dims++;
    }
}

static bool next(loops *l, int first, int end)
{
    for (int d = end - 1; d >= first; d--) {
        if (++l->at[d] < l->size[d]) return true;
        l->at[d] = 0;
    }
    return false;
}

/* How far apart in a view's memory two neighbours along each loop are: 0 where the view lacks the dim. */
typedef struct steps {
    int64_t of[2 * WEFT_MAX_DIMS];
} steps;

static steps steps_in(const weft_view *view, const loops *l)
{
    steps s = {0};
    int64_t step = 1;
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        for (int e = 0; e < l->n_dims; e++)
            if (strcmp(l->dims[e].name, view->shape.dims[d].name) == 0) s.of[e] = step;
        step *= weft_view_size(view, d);
    }
    return s;
}

static int64_t index_in(const steps *s, const loops *l)
{
    int64_t index = 0;
    for (int e = 0; e < l->n_dims; e++)
        index += l->at[e] * s->of[e];
    return index;
}

static double product(const weft_view *a, const weft_view *b, int64_t i, int64_t j)
{
    return weft_dtype_get(a->dtype, a->data, i) * weft_dtype_get(b->dtype, b->data, j);
}

static void sum_one(const weft_view *a, const weft_view *b, const weft_view *out, const steps *s,
                    loops *l, int n_out)
{
    double sum = 0;
    uint64_t whole = 0; /* wraps */
    bool some = true;
    for (int d = n_out; d < l->n_dims; d++)
        some = some && l->size[d] > 0;
    while (some) {
        const int64_t i = index_in(&s[0], l), j = index_in(&s[1], l);
        if (a->dtype == WEFT_I32)
            whole +=
                (uint64_t)((const int32_t *)a->data)[i] * (uint64_t)((const int32_t *)b->data)[j];
        else if (a->dtype == WEFT_I64)
            whole +=
                (uint64_t)((const int64_t *)a->data)[i] * (uint64_t)((const int64_t *)b->data)[j];
        else
            sum += product(a, b, i, j);
        some = next(l, n_out, l->n_dims);
    }
    const int64_t o = index_in(&s[2], l);
    if (out->dtype == WEFT_F32) ((float *)out->data)[o] = (float)sum;
    if (out->dtype == WEFT_F64) ((double *)out->data)[o] = sum;
    if (out->dtype == WEFT_I32) ((int32_t *)out->data)[o] = (int32_t)(uint32_t)whole;
    if (out->dtype == WEFT_I64) ((int64_t *)out->data)[o] = (int64_t)whole;
}

void weft_einsum_plain(const weft_call *call)
{
    const weft_view *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
    if (weft_view_count(out) == 0) return;
    loops l = {0};
    add_dims(&l, out);
    const int n_out = l.n_dims;
    add_dims(&l, a);
    add_dims(&l, b);
    const steps s[3] = {steps_in(a, &l), steps_in(b, &l), steps_in(out, &l)};
    do
        sum_one(a, b, out, s, &l, n_out);
    while (next(&l, 0, n_out));
}
