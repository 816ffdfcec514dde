/* kernel_attention.h: calls of attention and of its gradient, for tests of the kernels: tensors in several orders, with or without
 * bias and mask. */
#ifndef WEFT_KERNEL_ATTENTION_H
#define WEFT_KERNEL_ATTENTION_H

#include "kernel_views.h"

#include "cpu/attention.h"

typedef struct dims {
    part batch, heads, query, memory, feature;
    bool causal;
    int64_t window;
    bool bias, mask, bias_gradient;
    int bias_dims, mask_dims; /* which of batch, heads, query, memory they have, a bit each */
    int common;               /* of which of batch and heads k and v are common, a bit each */
} dims;

enum { ORDERS = 5 };
/* Tensors [batch, rows, heads, feature], but for some of batch and heads, in several orders; the last has no unit stride along
 * rows or feature. */
static inline weft_view tensor(const dims *d, weft_dtype dtype, part rows, int order, int without)
{
    const part all[ORDERS][4] = {
        {d->batch, rows, d->heads, d->feature}, {d->batch, d->heads, rows, d->feature},
        {d->heads, d->batch, d->feature, rows}, {rows, d->batch, d->feature, d->heads},
        {d->feature, d->heads, d->batch, rows},
    };
    static const int pick[ORDERS] = {0, 1, 2, 4, 3};
    part some[4];
    int n = 0;
    for (int i = 0; i < 4; i++) {
        const char *name = all[pick[order]][i].name;
        const int bit = strcmp(name, "batch") == 0 ? 1 : strcmp(name, "heads") == 0 ? 2 : 0;
        if ((bit & without) == 0) some[n++] = all[pick[order]][i];
    }
    return view_of(dtype, n, some);
}

/* Of sums that are kept of rows it is as many parts of them. */
static inline double kept_distance(const weft_view *a, const weft_view *b)
{
    double worst = 0;
    for (int64_t i = 0; i < weft_view_count(a); i++) {
        const double x = view_get(a, i), y = view_get(b, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        worst = isnan(x - y) ? INFINITY : fmax(worst, fabs(x - y) / fmax(1, fabs(y)));
    }
    return worst;
}

static inline void check_against(weft_call *call, weft_launch fast, weft_launch plain,
                                 double tolerance)
{
    weft_call oracle = *call;
    for (int i = 0; i < call->n_out; i++)
        oracle.out[i] = view_like(&call->out[i]);
    run_on_lanes(fast, call);
    plain(&oracle);
    for (int i = 0; i < call->n_out; i++) {
        const bool is_kept = call->n_out == 2 && i == 1;
        const double distance =
            (is_kept ? kept_distance : view_distance)(&call->out[i], &oracle.out[i]);
        if (!CHECK(distance <= tolerance)) printf("result %d is off by %g\n", i, distance);
        view_free(&oracle.out[i]);
    }
}

/* Some of the dims of the scores, the memory rows under a name that q has not. */
static inline weft_view score_tensor(const dims *d, weft_dtype dtype, int which)
{
    part column = d->memory;
    column.name = "column";
    const part all[4] = {d->batch, d->heads, d->query, column};
    part some[4];
    int n = 0;
    for (int i = 0; i < 4; i++) /* from any of them on, so that their order changes */
        if (which >> ((i + which) % 4) & 1) some[n++] = all[(i + which) % 4];
    return view_of(dtype, n, some);
}

static inline weft_view mask_of(const dims *d)
{
    weft_view mask = score_tensor(d, WEFT_I32, d->mask_dims);
    for (int64_t i = 0; i < weft_view_count(&mask); i++)
        view_set(&mask, i, random_below(3) == 0 ? 0 : random_below(7) - 3);
    return mask;
}

static inline weft_attention_attributes attributes_of(const dims *d)
{
    return (weft_attention_attributes){.query = d->query.name,
                                       .memory = d->memory.name,
                                       .feature = "kv",
                                       .column = "column",
                                       .scale = d->feature.size > 64 ? 0.05 : 0.7,
                                       .causal = d->causal,
                                       .window = d->window,
                                       .bias = d->bias ? 3 : 0,
                                       .mask = d->mask ? 3 + d->bias : 0};
}

/* The operands of attention, and dout. */
static inline weft_call open_call(const dims *d, weft_dtype dtype, const int orders[4])
{
    weft_call call = {.n_in = 3};
    call.in[0] = tensor(d, dtype, d->query, orders[0], 0);
    call.in[1] = tensor(d, dtype, d->memory, orders[1], d->common);
    call.in[2] = tensor(d, dtype, d->memory, orders[2], d->common);
    if (d->bias) call.in[call.n_in++] = score_tensor(d, dtype, d->bias_dims);
    if (d->mask) call.in[call.n_in++] = mask_of(d);
    call.in[call.n_in++] = tensor(d, dtype, d->query, orders[3], 0);
    return call;
}

/* A row of q has two numbers, a maximum and a sum. */
static inline weft_view sums_like(const weft_view *q)
{
    part parts[WEFT_MAX_DIMS] = {{"kv", 2, 0, 2}};
    int n = 1;
    for (int d = 0; d < q->shape.n_dims; d++)
        if (strcmp(q->shape.dims[d].name, "kv") != 0)
            parts[n++] = (part){q->shape.dims[d].name, q->shape.dims[d].size, q->box.begin[d],
                                q->box.end[d]};
    return view_of(q->dtype, n, parts);
}

/* As operand `like` lies. */
static inline void open_results(weft_call *call, int like)
{
    call->n_out = 2;
    call->out[0] = view_like(&call->in[like]);
    call->out[1] = sums_like(&call->in[0]);
}

/* A call of attention, done, becomes one of its gradient: its results stand before dout. */
static inline void open_gradient(weft_call *call, bool of_bias)
{
    const int n = call->n_in - 1;
    call->in[n + 2] = call->in[n];
    call->in[n] = call->out[0], call->in[n + 1] = call->out[1];
    call->n_in = n + 3;
    call->n_out = of_bias ? 4 : 3;
    for (int i = 0; i < call->n_out; i++)
        call->out[i] = view_like(&call->in[i]);
}

#endif
