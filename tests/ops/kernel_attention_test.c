/* Tiled attention and its gradient against rows by definition: layouts, boxes, causal, one or two
 * names. */
#include "kernel_views.h"

#include "cpu/attention.h"

typedef struct dims {
    part batch, heads, query, memory, feature;
    bool causal;
} dims;

enum { ORDERS = 5 };
/* Tensors [batch, rows, heads, feature] in several orders; the last has no unit stride along rows
 * or feature. */
static weft_view tensor(const dims *d, weft_dtype dtype, part rows, int order)
{
    const part all[ORDERS][4] = {
        {d->batch, rows, d->heads, d->feature}, {d->batch, d->heads, rows, d->feature},
        {d->heads, d->batch, d->feature, rows}, {rows, d->batch, d->feature, d->heads},
        {d->feature, d->heads, d->batch, rows},
    };
    static const int pick[ORDERS] = {0, 1, 2, 4, 3};
    return view_of(dtype, 4, all[pick[order]]);
}

static void check_against(weft_call *call, weft_kernel fast, weft_kernel plain, double tolerance)
{
    weft_call oracle = *call;
    for (int i = 0; i < call->n_out; i++)
        oracle.out[i] = view_like(&call->out[i]);
    run_on_both(fast, call);
    plain(&oracle);
    for (int i = 0; i < call->n_out; i++) {
        const double distance = view_distance(&call->out[i], &oracle.out[i]);
        if (!CHECK(distance <= tolerance)) printf("result %d is off by %g\n", i, distance);
        view_free(&oracle.out[i]);
    }
}

static void one_case(const dims *d, weft_dtype dtype, const int orders[4])
{
    const double tolerance = dtype == WEFT_F32 ? 2e-5 : 1e-12;
    const weft_attention_attributes attributes = {.query = d->query.name,
                                                  .memory = d->memory.name,
                                                  .feature = "kv",
                                                  .scale = 0.7,
                                                  .causal = d->causal};
    weft_call call = {.n_in = 4, .n_out = 1, .attributes = &attributes};
    call.in[0] = tensor(d, dtype, d->query, orders[0]);
    call.in[1] = tensor(d, dtype, d->memory, orders[1]);
    call.in[2] = tensor(d, dtype, d->memory, orders[2]);
    call.in[3] = tensor(d, dtype, d->query, orders[3]);
    call.out[0] = view_like(&call.in[3]);
    check_against(&call, weft_attention_cpu, weft_attention_plain, tolerance);
    view_free(&call.out[0]);
    call.n_out = 3;
    for (int i = 0; i < 3; i++)
        call.out[i] = view_like(&call.in[i]);
    check_against(&call, weft_attention_grad_cpu, weft_attention_grad_plain, tolerance * 20);
    call_free(&call);
}

static void random_case(weft_dtype dtype, int most, int n_orders)
{
    dims d = {.batch = random_part("batch", 3),
              .heads = random_part("heads", 3),
              .query = random_part("seq", most),
              .memory = random_part("memory", most),
              .feature = random_part("kv", 20),
              .causal = random_below(2)};
    d.memory.begin = 0, d.memory.end = d.memory.size;
    if (random_below(2)) { /* self-attention: one name, q may hold a part of the rows */
        d.memory = d.query;
        d.memory.begin = 0, d.memory.end = d.memory.size;
    }
    if (random_below(15) == 0) d.query.end = d.query.begin;
    if (random_below(15) == 0) d.heads.end = d.heads.begin;
    int orders[4];
    for (int i = 0; i < 4; i++)
        orders[i] = random_below(n_orders);
    one_case(&d, dtype, orders);
}

static void test_small_cases_in_every_order(void)
{
    for (int i = 0; i < 150; i++)
        for (int dtype = 0; dtype < WEFT_I32; dtype++)
            random_case((weft_dtype)dtype, 12, i % 3 == 0 ? ORDERS : 3);
}

static void test_several_blocks_and_tiles(void)
{
    for (int i = 0; i < 6; i++)
        for (int dtype = 0; dtype < WEFT_I32; dtype++)
            random_case((weft_dtype)dtype, 400, 3);
}

/* So many memory rows that the gradient needs more than one tile, and walks over them twice. */
static void test_gradient_over_many_tiles(void)
{
    for (int i = 0; i < 4; i++) {
        const int64_t n = i < 2 ? 2200 : 1100;
        const dims d = {.batch = {"batch", 1, 0, 1},
                        .heads = {"heads", 2, 1, 2},
                        .query = {"seq", n, n - 70, n - 3},
                        .memory = {"seq", n, 0, n},
                        .feature = {"kv", 4, 0, 4},
                        .causal = i % 2};
        one_case(&d, i < 2 ? WEFT_F32 : WEFT_F64, (int[4]){i, 0, 1, 0});
    }
}

static void test_a_row_that_sees_nothing_gives_zero(void)
{
    const part batch = {"batch", 1, 0, 1}, query = {"query", 3, 0, 3}, memory = {"memory", 0, 0, 0};
    const part feature = {"kv", 2, 0, 2};
    const weft_attention_attributes attributes = {"query", "memory", "kv", 1, 0};
    weft_call call = {.n_in = 3, .n_out = 1, .attributes = &attributes};
    call.in[0] = view_of(WEFT_F32, 3, (part[]){batch, query, feature});
    call.in[1] = view_of(WEFT_F32, 3, (part[]){batch, memory, feature});
    call.in[2] = view_of(WEFT_F32, 3, (part[]){batch, memory, feature});
    call.out[0] = view_like(&call.in[0]);
    run_on_both(weft_attention_cpu, &call);
    for (int i = 0; i < 6; i++)
        CHECK(view_get(&call.out[0], i) == 0);
    call_free(&call);
}

/* By hand: two memory rows with equal scores give their mean; the causal first row sees the first
 * one only. */
static void test_a_case_worked_by_hand(void)
{
    const part seq = {"seq", 2, 0, 2}, feature = {"kv", 1, 0, 1};
    const weft_attention_attributes attributes = {"seq", "seq", "kv", 1, 1};
    weft_call call = {.n_in = 3, .n_out = 1, .attributes = &attributes};
    for (int i = 0; i < 3; i++)
        call.in[i] = view_of(WEFT_F64, 2, (part[]){seq, feature});
    view_set(&call.in[1], 0, 3), view_set(&call.in[1], 1, 3);
    view_set(&call.in[2], 0, 10), view_set(&call.in[2], 1, 20);
    call.out[0] = view_like(&call.in[0]);
    run_on_both(weft_attention_cpu, &call);
    CHECK_CLOSE(view_get(&call.out[0], 0), 10, 1e-14);
    CHECK_CLOSE(view_get(&call.out[0], 1), 15, 1e-14);
    call_free(&call);
}

static double weighted_sum(weft_call *call, const weft_view *weight)
{
    double sum = 0;
    call->stream = one_lane;
    weft_attention_cpu(call);
    for (int64_t i = 0; i < weft_view_count(weight); i++)
        sum += view_get(weight, i) * view_get(&call->out[0], i);
    return sum;
}

static void test_gradient_equals_finite_differences(void)
{
    const dims d = {.batch = {"batch", 2, 0, 2},
                    .heads = {"heads", 1, 0, 1},
                    .query = {"seq", 5, 1, 4},
                    .memory = {"seq", 5, 0, 5},
                    .feature = {"kv", 3, 0, 3},
                    .causal = true};
    const weft_attention_attributes attributes = {"seq", "seq", "kv", 0.6, 1};
    weft_call grad = {.n_in = 4, .n_out = 3, .attributes = &attributes};
    for (int i = 0; i < 4; i++)
        grad.in[i] = tensor(&d, WEFT_F64, i == 0 || i == 3 ? d.query : d.memory, 0);
    for (int i = 0; i < 3; i++)
        grad.out[i] = view_like(&grad.in[i]);
    run_on_both(weft_attention_grad_cpu, &grad);
    weft_call call = {.n_in = 3,
                      .n_out = 1,
                      .attributes = &attributes,
                      .in = {grad.in[0], grad.in[1], grad.in[2]}};
    call.out[0] = view_like(&grad.in[3]);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < weft_view_count(&grad.in[k]); i++) {
            const double x = view_get(&grad.in[k], i), step = 1e-5;
            view_set(&grad.in[k], i, x + step);
            const double above = weighted_sum(&call, &grad.in[3]);
            view_set(&grad.in[k], i, x - step);
            const double below = weighted_sum(&call, &grad.in[3]);
            view_set(&grad.in[k], i, x);
            CHECK(fabs((above - below) / (2 * step) - view_get(&grad.out[k], i)) < 1e-8);
        }
    view_free(&call.out[0]);
    call_free(&grad);
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_small_cases_in_every_order);
    RUN(test_several_blocks_and_tiles);
    RUN(test_gradient_over_many_tiles);
    RUN(test_a_row_that_sees_nothing_gives_zero);
    RUN(test_a_case_worked_by_hand);
    RUN(test_gradient_equals_finite_differences);
    streams_close();
    return weft_test_report();
}
