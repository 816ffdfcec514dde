/* Attention and its gradient against whole matrices, finite differences and numbers worked by hand. */
#include "kernel_attention.h"

/* The element of a view at batch, heads, row, feature or column, where it has such a dim. */
static double element(const weft_view *view, const char *const names[4], const int64_t at[4])
{
    int64_t index[WEFT_MAX_DIMS];
    for (int d = 0; d < view->shape.n_dims; d++)
        for (int k = 0; k < 4; k++)
            if (strcmp(view->shape.dims[d].name, names[k]) == 0) index[d] = at[k];
    return view_get(view, view_index(view, index));
}

static const char *const q_names[] = {"batch", "heads", "query", "kv"},
                         *const k_names[] = {"batch", "heads", "memory", "kv"},
                         *const score_names[] = {"batch", "heads", "query", "column"};
enum { ROWS = 12 };

/* Of one head: P [query, memory] of the definition, all exp and sums, no maximum taken off. */
static void definition(const dims *d, const weft_call *call, int64_t batch, int64_t heads,
                       double p[ROWS][ROWS])
{
    const weft_attention_attributes *a = call->attributes;
    for (int64_t i = 0; i < d->query.end - d->query.begin; i++) {
        const int64_t row = d->query.begin + i;
        double sum = 0;
        for (int64_t j = 0; j < d->memory.size; j++) {
            const int64_t at[4] = {batch, heads, i, j};
            double s = a->bias > 0 ? element(&call->in[a->bias], score_names, at) : 0;
            for (int64_t f = 0; f < d->feature.end - d->feature.begin; f++)
                s += a->scale * element(&call->in[0], q_names, (int64_t[]){batch, heads, i, f}) *
                     element(&call->in[1], k_names, (int64_t[]){batch, heads, j, f});
            bool seen = !a->causal || j <= row;
            if (a->window > 0) seen = seen && j > row - a->window && j < row + a->window;
            if (a->mask > 0) seen = seen && element(&call->in[a->mask], score_names, at) != 0;
            sum += p[i][j] = seen ? exp(s) : 0;
        }
        for (int64_t j = 0; j < d->memory.size; j++)
            p[i][j] = sum == 0 ? 0 : p[i][j] / sum;
    }
}

/* dS [query, memory] from P and dout. */
static void definition_gradient(const dims *d, const weft_call *call, int64_t batch, int64_t heads,
                                double p[ROWS][ROWS], double ds[ROWS][ROWS])
{
    for (int64_t i = 0; i < d->query.end - d->query.begin; i++) {
        double mean = 0;
        for (int64_t j = 0; j < d->memory.size; j++) {
            ds[i][j] = 0;
            for (int64_t f = 0; f < d->feature.end - d->feature.begin; f++)
                ds[i][j] +=
                    element(&call->in[call->n_in - 1], q_names, (int64_t[]){batch, heads, i, f}) *
                    element(&call->in[2], k_names, (int64_t[]){batch, heads, j, f});
            mean += p[i][j] * ds[i][j];
        }
        for (int64_t j = 0; j < d->memory.size; j++)
            ds[i][j] = p[i][j] * (ds[i][j] - mean);
    }
}

/* What the four gradients hold of one element each, summed over all scores that it is in. */
static double summed(const dims *d, const weft_call *call, int result, const int64_t *at)
{
    const weft_attention_attributes *a = call->attributes;
    const weft_view *view = &call->out[result];
    const int64_t n_query = d->query.end - d->query.begin;
    double p[ROWS][ROWS], ds[ROWS][ROWS], sum = 0;
    for (int64_t b = 0; b < d->batch.end - d->batch.begin; b++)
        for (int64_t h = 0; h < d->heads.end - d->heads.begin; h++) {
            definition(d, call, b, h, p);
            definition_gradient(d, call, b, h, p, ds);
            for (int64_t i = 0; i < n_query; i++)
                for (int64_t j = 0; j < d->memory.size; j++) {
                    const char *const names[] = {"batch", "heads", "query", "memory", "column"};
                    const int64_t here[] = {b, h, i, j, j};
                    bool is_in = true;
                    int64_t f = 0;
                    for (int e = 0; e < view->shape.n_dims; e++) {
                        for (int k = 0; k < 5; k++)
                            if (strcmp(view->shape.dims[e].name, names[k]) == 0)
                                is_in = is_in && here[k] == at[e];
                        if (strcmp(view->shape.dims[e].name, "kv") == 0) f = at[e];
                    }
                    const int64_t at_q[] = {b, h, i, f}, at_k[] = {b, h, j, f};
                    if (!is_in) continue;
                    if (result == 0)
                        sum += a->scale * ds[i][j] * element(&call->in[1], k_names, at_k);
                    if (result == 1)
                        sum += a->scale * ds[i][j] * element(&call->in[0], q_names, at_q);
                    if (result == 2)
                        sum += p[i][j] * element(&call->in[call->n_in - 1], q_names, at_q);
                    if (result == 3) sum += ds[i][j];
                }
        }
    return sum;
}

static void compare_with_definition(const dims *d)
{
    static const int orders[4] = {0, 1, 0, 1};
    weft_attention_attributes attributes = attributes_of(d);
    weft_call call = open_call(d, WEFT_F64, orders);
    double p[ROWS][ROWS];
    call.attributes = &attributes;
    open_results(&call, 0);
    run_on_lanes(weft_attention_cpu, &call);
    for (int64_t i = 0; i < weft_view_count(&call.out[0]); i++) {
        int64_t at[WEFT_MAX_DIMS]; /* [batch, rows, heads, feature] */
        double y = 0;
        view_at(&call.out[0], i, at);
        definition(d, &call, at[0], at[2], p);
        for (int64_t j = 0; j < d->memory.size; j++)
            y += p[at[1]][j] * element(&call.in[2], k_names, (int64_t[]){at[0], at[2], j, at[3]});
        CHECK(fabs(view_get(&call.out[0], i) - y) < 1e-13);
    }
    attributes.bias_gradient = d->bias;
    open_gradient(&call, d->bias);
    run_on_lanes(weft_attention_grad_cpu, &call);
    for (int k = 0; k < call.n_out; k++)
        for (int64_t i = 0; i < weft_view_count(&call.out[k]); i++) {
            int64_t at[WEFT_MAX_DIMS];
            view_at(&call.out[k], i, at);
            CHECK(fabs(view_get(&call.out[k], i) - summed(d, &call, k, at)) < 1e-12);
        }
    call_free(&call);
}

static void test_whole_matrices_by_definition(void)
{
    for (int i = 0; i < 64; i++) {
        const dims d = {.batch = {"batch", 2, 0, 2},
                        .heads = {"heads", 2, 0, 2},
                        .query = {"query", 7, i % 3, 6},
                        .memory = {"memory", 6, 0, 6},
                        .feature = {"kv", 3, 0, 3},
                        .causal = i & 1,
                        .window = i & 2 ? 1 + i % 5 : 0,
                        .bias = i & 4,
                        .mask = i & 8,
                        .bias_dims = random_below(16),
                        .mask_dims = random_below(16)};
        compare_with_definition(&d);
    }
}

/* Tiles: 300 query rows, of which blocks see nothing at all, by mask and by window; no NaN anywhere. */
static void test_rows_that_see_nothing_have_zeros_and_zero_gradients(void)
{
    for (int i = 0; i < 8; i++) {
        const dims d = {.batch = {"batch", 1, 0, 1},
                        .heads = {"heads", 2, 0, 2},
                        .query = {"query", 900, 0, 300},
                        .memory = {"memory", 280, 0, 280},
                        .feature = {"kv", 4, 0, 4},
                        .causal = i & 1,
                        .bias = true,
                        .mask = true,
                        .bias_gradient = true,
                        .bias_dims = 4 | 8,
                        .mask_dims = i & 2 ? 4 | 8 : 4};
        const weft_dtype dtype = i & 4 ? WEFT_F32 : WEFT_F64;
        weft_attention_attributes attributes = attributes_of(&d);
        weft_call call = open_call(&d, dtype, (int[4]){0, 1, 0, 1});
        weft_view *bias = &call.in[3], *mask = &call.in[4];
        int64_t at[WEFT_MAX_DIMS];
        const int query_of_mask = weft_shape_find(&mask->shape, "query"),
                  query_of_bias = weft_shape_find(&bias->shape, "query");
        for (int64_t k = 0; k < weft_view_count(mask); k++) { /* one row, and a block and more */
            view_at(mask, k, at);
            const int64_t row = at[query_of_mask];
            if (row == 3 || (row >= 60 && row < 210)) view_set(mask, k, 0);
        }
        for (int64_t k = 0; k < weft_view_count(bias); k++) { /* -inf hides as a mask does */
            view_at(bias, k, at);
            if (at[query_of_bias] == 7) view_set(bias, k, -(double)INFINITY);
        }
        call.attributes = &attributes;
        open_results(&call, 0);
        check_against(&call, weft_attention_cpu, weft_attention_plain, 2e-5);
        for (int64_t k = 0; k < weft_view_count(&call.out[0]); k++) {
            view_at(&call.out[0], k, at);
            const int64_t row = at[1];
            CHECK(isfinite(view_get(&call.out[0], k)));
            if (row == 3 || row == 7 || (row >= 60 && row < 210))
                CHECK(view_get(&call.out[0], k) == 0);
        }
        attributes.bias_gradient = true;
        open_gradient(&call, true);
        check_against(&call, weft_attention_grad_cpu, weft_attention_grad_plain, 1e-3);
        for (int o = 0; o < 4; o++)
            for (int64_t k = 0; k < weft_view_count(&call.out[o]); k++)
                CHECK(isfinite(view_get(&call.out[o], k)));
        call_free(&call);
    }
}

/* What is not seen does not matter, and a NaN that is seen does. */
static void test_a_nan_is_not_lost(void)
{
    const dims d = {.batch = {"batch", 1, 0, 1},
                    .heads = {"heads", 1, 0, 1},
                    .query = {"query", 4, 0, 4},
                    .memory = {"memory", 3, 0, 3},
                    .feature = {"kv", 2, 0, 2}};
    weft_attention_attributes attributes = attributes_of(&d);
    weft_call call = open_call(&d, WEFT_F32, (int[4]){0, 0, 0, 0});
    call.attributes = &attributes;
    open_results(&call, 0);
    view_set(&call.in[0], 2, NAN); /* row 1 of q */
    run_on_lanes(weft_attention_cpu, &call);
    for (int64_t i = 0; i < 8; i++)
        CHECK((i / 2 == 1) == (isnan(view_get(&call.out[0], i)) != 0));
    call_free(&call);
}

/* By hand: two memory rows with equal scores give their mean; the causal first row sees the first
 * one only. */
static void test_a_case_worked_by_hand(void)
{
    const part seq = {"seq", 2, 0, 2}, feature = {"kv", 1, 0, 1};
    const weft_attention_attributes attributes = {
        .query = "seq", .memory = "seq", .feature = "kv", .column = "seq", .scale = 1, .causal = 1};
    weft_call call = {.n_in = 3, .n_out = 2, .attributes = &attributes};
    for (int i = 0; i < 3; i++)
        call.in[i] = view_of(WEFT_F64, 2, (part[]){seq, feature});
    view_set(&call.in[1], 0, 3), view_set(&call.in[1], 1, 3);
    view_set(&call.in[2], 0, 10), view_set(&call.in[2], 1, 20);
    call.out[0] = view_like(&call.in[0]);
    call.out[1] = sums_like(&call.in[0]);
    run_on_lanes(weft_attention_cpu, &call);
    CHECK_CLOSE(view_get(&call.out[0], 0), 10, 1e-14);
    CHECK_CLOSE(view_get(&call.out[0], 1), 15, 1e-14);
    const double score = view_get(&call.in[0], 1) * 3;
    CHECK_CLOSE(view_get(&call.out[1], 1), score, 1e-14);
    CHECK_CLOSE(view_get(&call.out[1], 2), 1, 1e-14);
    CHECK_CLOSE(view_get(&call.out[1], 3), 2, 1e-14);
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
    const weft_attention_attributes attributes = {.query = "seq",
                                                  .memory = "seq",
                                                  .feature = "kv",
                                                  .column = "seq",
                                                  .scale = 0.6,
                                                  .causal = 1};
    weft_call call = {.n_in = 4, .attributes = &attributes};
    for (int i = 0; i < 4; i++)
        call.in[i] = tensor(&d, WEFT_F64, i == 0 || i == 3 ? d.query : d.memory, 0, 0);
    open_results(&call, 3);
    run_on_lanes(weft_attention_cpu, &call);
    weft_call grad = call;
    open_gradient(&grad, false);
    run_on_lanes(weft_attention_grad_cpu, &grad);
    const weft_view *weight = &grad.in[5];
    call.out[0] = view_like(weight), call.out[1] = sums_like(&grad.in[0]);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < weft_view_count(&grad.in[k]); i++) {
            const double x = view_get(&grad.in[k], i), step = 1e-5;
            view_set(&grad.in[k], i, x + step);
            const double above = weighted_sum(&call, weight);
            view_set(&grad.in[k], i, x - step);
            const double below = weighted_sum(&call, weight);
            view_set(&grad.in[k], i, x);
            CHECK(fabs((above - below) / (2 * step) - view_get(&grad.out[k], i)) < 1e-8);
        }
    view_free(&call.out[0]), view_free(&call.out[1]);
    call_free(&grad);
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_whole_matrices_by_definition);
    RUN(test_rows_that_see_nothing_have_zeros_and_zero_gradients);
    RUN(test_a_nan_is_not_lost);
    RUN(test_a_case_worked_by_hand);
    RUN(test_gradient_equals_finite_differences);
    streams_close();
    return weft_test_report();
}
