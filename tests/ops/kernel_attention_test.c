/* Tiled attention and its gradient against rows by definition, and those against whole matrices: layouts, boxes, causal,
 * window, bias, mask, one or two names. */
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
static weft_view tensor(const dims *d, weft_dtype dtype, part rows, int order, int without)
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

static void check_against(weft_call *call, weft_launch fast, weft_launch plain, double tolerance)
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

/* Some of the dims of the scores, the memory rows under a name that q has not. */
static weft_view score_tensor(const dims *d, weft_dtype dtype, int which)
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

static weft_view mask_of(const dims *d)
{
    weft_view mask = score_tensor(d, WEFT_I32, d->mask_dims);
    for (int64_t i = 0; i < weft_view_count(&mask); i++)
        view_set(&mask, i, random_below(3) == 0 ? 0 : random_below(7) - 3);
    return mask;
}

static weft_attention_attributes attributes_of(const dims *d)
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
static weft_call open_call(const dims *d, weft_dtype dtype, const int orders[4])
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

/* A row of q has one number. */
static weft_view sums_like(const weft_view *q)
{
    part parts[WEFT_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < q->shape.n_dims; d++)
        if (strcmp(q->shape.dims[d].name, "kv") != 0)
            parts[n++] = (part){q->shape.dims[d].name, q->shape.dims[d].size, q->box.begin[d],
                                q->box.end[d]};
    return view_of(q->dtype, n, parts);
}

/* As operand `like` lies. */
static void open_results(weft_call *call, int like)
{
    call->n_out = 2;
    call->out[0] = view_like(&call->in[like]);
    call->out[1] = sums_like(&call->in[0]);
}

/* A call of attention, done, becomes one of its gradient: its results stand before dout. */
static void open_gradient(weft_call *call, bool of_bias)
{
    const int n = call->n_in - 1;
    call->in[n + 2] = call->in[n];
    call->in[n] = call->out[0], call->in[n + 1] = call->out[1];
    call->n_in = n + 3;
    call->n_out = of_bias ? 4 : 3;
    for (int i = 0; i < call->n_out; i++)
        call->out[i] = view_like(&call->in[i]);
}

static void one_case(const dims *d, weft_dtype dtype, const int orders[4])
{
    const double tolerance = dtype == WEFT_F32 ? 2e-5 : 1e-12;
    weft_attention_attributes attributes = attributes_of(d);
    weft_call call = open_call(d, dtype, orders);
    call.attributes = &attributes;
    open_results(&call, call.n_in - 1);
    check_against(&call, weft_attention_cpu, weft_attention_plain, tolerance);
    attributes.bias_gradient = d->bias && d->bias_gradient;
    open_gradient(&call, attributes.bias_gradient);
    const double many = 1 + (double)weft_view_count(&call.in[0]) / 1000; /* added up in dbias */
    check_against(&call, weft_attention_grad_cpu, weft_attention_grad_plain,
                  tolerance * 20 * (attributes.bias_gradient ? many : 1));
    call_free(&call);
}

static void random_case(weft_dtype dtype, int most, int n_orders)
{
    dims d = {.batch = random_part("batch", 3),
              .heads = random_part("heads", 3),
              .query = random_part("seq", most),
              .memory = random_part("memory", most),
              .feature = random_part("kv", 20),
              .causal = random_below(2),
              .window = random_below(2) * (1 + random_below(most)),
              .bias = random_below(2),
              .mask = random_below(2),
              .bias_gradient = random_below(4) > 0,
              .bias_dims = random_below(16),
              .mask_dims = random_below(16),
              .common = random_below(2) * random_below(4)};
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

/* More memory rows than are held: read where they lie, or held again and again; a window that goes past them; dq added up
 * where it lies. */
static void test_memory_rows_beyond_those_that_are_held(void)
{
    static const struct form {
        int64_t n, first, feature, window;
    } forms[] = {{1000, 936, 512, 0}, {1001, 936, 512, 0}, {1100, 0, 16, 40}, {1304, 1240, 64, 0}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (int causal = 0; causal < 2; causal++) {
            const struct form *f = &forms[i];
            const dims d = {.batch = {"batch", 1, 0, 1},
                            .heads = {"heads", 2, 0, 2},
                            .query = {"seq", f->n, f->first, f->n},
                            .memory = {"seq", f->n, 0, f->n},
                            .feature = {"kv", f->feature, 0, f->feature},
                            .common = i % 2 == 1 ? 2 : 0,
                            .causal = causal,
                            .window = f->window};
            one_case(&d, WEFT_F32, (int[4]){0, causal, 0, 1});
        }
}

/* Rows of every number beside those that are computed together: of 8, of a vector, of a panel, of what is entered at a time;
 * windows that begin and end anywhere in them. */
static void test_ends_of_panels_and_tiles(void)
{
    static const int64_t sizes[] = {1, 7, 8, 9, 15, 17, 63, 65, 127, 129, 130, 135, 193};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int form = 0; form < 4; form++) {
            const int64_t n = sizes[i];
            const dims d = {.batch = {"batch", 1, 0, 1},
                            .heads = {"heads", 1, 0, 1},
                            .query = {"seq", n, form == 3 ? n / 3 : 0, n},
                            .memory = {"seq", n, 0, n},
                            .feature = {"kv", 17, 0, 17},
                            .causal = form != 1,
                            .window = form == 0 ? 0 : 1 + n / 3};
            one_case(&d, form % 2 == 0 ? WEFT_F32 : WEFT_F64, (int[4]){0, 1, 0, 1});
        }
}

/* Rows that stand behind all that their window reaches, of which there are as many as no tile has: what another head has left in
 * scratch is none of theirs. */
static void test_rows_beyond_a_window_see_nothing(void)
{
    for (int dtype = 0; dtype < WEFT_I32; dtype++) {
        const dims near = {.batch = {"batch", 1, 0, 1},
                           .heads = {"heads", 1, 0, 1},
                           .query = {"query", 100, 0, 13},
                           .memory = {"memory", 13, 0, 13},
                           .feature = {"kv", 8, 0, 8},
                           .causal = true,
                           .window = 3};
        dims beyond = near;
        beyond.query.begin = 50, beyond.query.end = 63;
        one_case(&near, (weft_dtype)dtype, (int[4]){0, 0, 0, 0});
        one_case(&beyond, (weft_dtype)dtype, (int[4]){0, 0, 0, 0});
    }
}

/* Blocks of rows, one with one of another place: numbered on, and with none that is not there. */
static void test_blocks_of_rows_go_with_those_of_a_turn(void)
{
    for (int form = 0; form < 24; form++) {
        const int64_t n = 3, turn = form % 5 - 2;
        const part blocks = {"blocks", n, form % 2, n}, others = {"others", n, 0, n},
                   query = {"query", 11, 0, 11}, memory = {"memory", 9, 0, 9},
                   feature = {"kv", 5, 0, 5}, heads = {"heads", 2, 0, 2};
        const weft_dtype dtype = form % 2 == 0 ? WEFT_F32 : WEFT_F64;
        weft_attention_attributes attributes = {.query = "query",
                                                .memory = "memory",
                                                .feature = "kv",
                                                .column = "query",
                                                .scale = 0.7,
                                                .causal = form % 3 > 0,
                                                .window = form % 4 == 0 ? 7 : 0,
                                                .blocks = "blocks",
                                                .memory_blocks = "others",
                                                .n_blocks = n,
                                                .turn = turn,
                                                .query_first = form < 12 ? 0 : 2 * n - 1,
                                                .query_step = form < 12 ? 1 : -1,
                                                .memory_step = 1};
        weft_call call = {.n_in = 4, .attributes = &attributes};
        call.in[0] = view_of(dtype, 4, (part[]){blocks, query, heads, feature});
        call.in[1] = view_of(dtype, 4, (part[]){heads, others, memory, feature});
        call.in[2] = view_of(dtype, 4, (part[]){others, memory, heads, feature});
        call.in[3] = view_like(&call.in[0]);
        view_randomize(&call.in[3]);
        open_results(&call, 0);
        call.n_in = 3;
        check_against(&call, weft_attention_cpu, weft_attention_plain, 2e-5);
        call.n_in = 4;
        open_gradient(&call, false);
        for (int o = 1; o < 3; o++) { /* of k and v, numbered as q is */
            view_free(&call.out[o]);
            call.out[o] = view_of(dtype, 4, (part[]){blocks, memory, heads, feature});
        }
        check_against(&call, weft_attention_grad_cpu, weft_attention_grad_plain, 4e-4);
        call_free(&call);
    }
}

static void test_a_row_that_sees_nothing_gives_zero(void)
{
    const part batch = {"batch", 1, 0, 1}, query = {"query", 3, 0, 3}, memory = {"memory", 0, 0, 0};
    const part feature = {"kv", 2, 0, 2};
    const weft_attention_attributes attributes = {"query", "memory", "kv", 1, 0};
    weft_call call = {.n_in = 3, .n_out = 2, .attributes = &attributes};
    call.in[0] = view_of(WEFT_F32, 3, (part[]){batch, query, feature});
    call.in[1] = view_of(WEFT_F32, 3, (part[]){batch, memory, feature});
    call.in[2] = view_of(WEFT_F32, 3, (part[]){batch, memory, feature});
    call.out[0] = view_like(&call.in[0]);
    call.out[1] = sums_like(&call.in[0]);
    run_on_both(weft_attention_cpu, &call);
    for (int i = 0; i < 6; i++)
        CHECK(view_get(&call.out[0], i) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(view_get(&call.out[1], i) == -(double)INFINITY);
    call_free(&call);
}

/* Some rows of which all scores share an offset: what was kept of them has lost log(sum). Rows of weights add up to 1: with ones
 * for dout dv adds up to their number, and dbias to nothing. */
static void shift_by_bias(weft_call *call, double offset)
{
    weft_view *bias = &call->in[3];
    for (int64_t i = 0; i < weft_view_count(bias); i++) {
        int64_t at[WEFT_MAX_DIMS]; /* [query, column] */
        view_at(bias, i, at);
        if (at[0] % 3 == 0) view_set(bias, i, offset);
    }
}

/* Where there is no bias products do it: the first feature of k is 1. */
static void shift_by_products(weft_call *call, double offset)
{
    const weft_attention_attributes *a = call->attributes;
    for (int t = 0; t < 2; t++)
        for (int64_t i = 0; i < weft_view_count(&call->in[t]); i++) {
            int64_t at[WEFT_MAX_DIMS];
            view_at(&call->in[t], i, at);
            const int row = weft_shape_find(&call->in[t].shape, t == 0 ? a->query : a->memory),
                      feature = weft_shape_find(&call->in[t].shape, a->feature);
            if (at[feature] > 0 || (t == 0 && at[row] % 3 > 0)) continue;
            view_set(&call->in[t], i, t == 0 ? offset / a->scale : 1);
        }
}

static double view_sum(const weft_view *view)
{
    double sum = 0;
    for (int64_t i = 0; i < weft_view_count(view); i++)
        sum += view_get(view, i);
    return sum;
}

static void shifted_case(const dims *d, weft_dtype dtype, int order, double offset, bool is_plain)
{
    weft_attention_attributes attributes = attributes_of(d);
    weft_call call = open_call(d, dtype, (int[4]){order, order, order, order});
    weft_view *dout = &call.in[call.n_in - 1];
    const double n = (double)weft_view_count(dout);
    call.attributes = &attributes;
    (d->bias ? shift_by_bias : shift_by_products)(&call, offset);
    for (int64_t i = 0; i < weft_view_count(dout); i++)
        view_set(dout, i, 1);
    open_results(&call, call.n_in - 1);
    run_on_both(is_plain ? weft_attention_plain : weft_attention_cpu, &call);
    attributes.bias_gradient = d->bias;
    open_gradient(&call, d->bias);
    run_on_both(is_plain ? weft_attention_grad_plain : weft_attention_grad_cpu, &call);
    const double of_dv = view_sum(&call.out[2]);
    bool is_right = CHECK(fabs(of_dv - n) < 2e-5 * n);
    if (d->bias) is_right = CHECK(fabs(view_sum(&call.out[3])) < 1e-3 * n) && is_right;
    if (!is_right)
        printf("%s, offset %g, %s: dv adds up to %g of %g\n", is_plain ? "plain" : "fast", offset,
               d->bias ? "bias" : "products", of_dv, n);
    call_free(&call);
}

static void test_rows_with_an_offset_keep_their_weights(void)
{
    static const double offsets[] = {-1e9, 1e9, -1e4, -1e30};
    for (int form = 0; form < 64; form++) {
        const int64_t n_query = form % 2 == 0 ? 8 : 70, n_memory = form % 2 == 0 ? 64 : 600;
        const dims d = {.batch = {"batch", 1, 0, 1},
                        .heads = {"heads", 2, 0, 2},
                        .query = {"query", n_query, 0, n_query},
                        .memory = {"memory", n_memory, 0, n_memory},
                        .feature = {"kv", 16, 0, 16},
                        .causal = form / 2 % 2,
                        .bias = form / 4 % 2,
                        .bias_dims = 4 | 8};
        for (int dtype = 0; dtype < WEFT_I32; dtype++)
            for (int order = 0; order < ORDERS; order += ORDERS - 1)
                shifted_case(&d, (weft_dtype)dtype, order, offsets[form / 8 % 4], form / 32);
    }
}

/* ---- whole matrices -------------------------------------------------------------------------- */

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
    run_on_both(weft_attention_cpu, &call);
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
    run_on_both(weft_attention_grad_cpu, &call);
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
    run_on_both(weft_attention_cpu, &call);
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
    call.out[1] = view_of(WEFT_F64, 1, &seq);
    run_on_both(weft_attention_cpu, &call);
    CHECK_CLOSE(view_get(&call.out[0], 0), 10, 1e-14);
    CHECK_CLOSE(view_get(&call.out[0], 1), 15, 1e-14);
    const double score = view_get(&call.in[0], 1) * 3;
    CHECK_CLOSE(view_get(&call.out[1], 1), score + log(2.0), 1e-14);
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
    run_on_both(weft_attention_cpu, &call);
    weft_call grad = call;
    open_gradient(&grad, false);
    run_on_both(weft_attention_grad_cpu, &grad);
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
    RUN(test_small_cases_in_every_order);
    RUN(test_several_blocks_and_tiles);
    RUN(test_gradient_over_many_tiles);
    RUN(test_memory_rows_beyond_those_that_are_held);
    RUN(test_ends_of_panels_and_tiles);
    RUN(test_rows_beyond_a_window_see_nothing);
    RUN(test_blocks_of_rows_go_with_those_of_a_turn);
    RUN(test_a_row_that_sees_nothing_gives_zero);
    RUN(test_rows_with_an_offset_keep_their_weights);
    RUN(test_whole_matrices_by_definition);
    RUN(test_rows_that_see_nothing_have_zeros_and_zero_gradients);
    RUN(test_a_nan_is_not_lost);
    RUN(test_a_case_worked_by_hand);
    RUN(test_gradient_equals_finite_differences);
    streams_close();
    return weft_test_report();
}
