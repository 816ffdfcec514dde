/* Tiled attention and its gradient against rows by definition: layouts, boxes, causal, window, bias, mask, one or two names. */
#include "kernel_attention.h"

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
    for (int i = 0; i < 150; i += weft_test_stride(4))
        for (int dtype = 0; dtype < WEFT_I32; dtype++)
            random_case((weft_dtype)dtype, 12, i % 3 == 0 ? ORDERS : 3);
}

static void test_several_blocks_and_tiles(void)
{
    for (int i = 0; i < 6; i += weft_test_stride(3))
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

/* A bias and a mask of blocks of rows: [blocks, query], of columns what `others` says, or both. */
static weft_view scores_of_blocks(weft_dtype dtype, int form, part blocks, part query)
{
    const part others = {"column_blocks", blocks.size, 0, blocks.size},
               column = {"column", 9, 0, 9};
    const part of_all[] = {others, blocks, column, query}, of_memory[] = {column, others};
    weft_view scores = form % 3 == 0   ? view_of(dtype, 4, of_all)
                       : form % 3 == 1 ? view_of(dtype, 2, of_memory)
                                       : view_of(dtype, 2, (part[]){query, blocks});
    view_randomize(&scores);
    return scores;
}

/* Of each block of q: dbias has no others. */
static weft_view dbias_of_blocks(weft_dtype dtype, int form, part blocks, part query)
{
    const part column = {"column", 9, 0, 9};
    return form % 3 == 0   ? view_of(dtype, 3, (part[]){blocks, column, query})
           : form % 3 == 1 ? view_of(dtype, 2, (part[]){column, blocks})
                           : view_of(dtype, 2, (part[]){query, blocks});
}

/* Blocks of rows, one with one of another place: numbered on, and with none that is not there, nor rows past the end. */
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
        const bool has_scores = form % 8 > 2;
        if (has_scores) {
            attributes.bias = 3, attributes.mask = 4, attributes.bias_gradient = true;
            attributes.column = "column", attributes.column_blocks = "column_blocks";
        }
        if (form % 6 < 2) attributes.memory_end = form % 6 == 0 ? 25 : 15;
        weft_call call = {.n_in = 3, .attributes = &attributes};
        call.in[0] = view_of(dtype, 4, (part[]){blocks, query, heads, feature});
        call.in[1] = view_of(dtype, 4, (part[]){heads, others, memory, feature});
        call.in[2] = view_of(dtype, 4, (part[]){others, memory, heads, feature});
        if (has_scores) call.in[3] = scores_of_blocks(dtype, form, blocks, query);
        if (has_scores) call.in[4] = scores_of_blocks(WEFT_I32, form + 1, blocks, query);
        if (has_scores) call.n_in = 5;
        const int n_in = call.n_in++;
        call.in[n_in] = view_like(&call.in[0]);
        view_randomize(&call.in[n_in]);
        open_results(&call, 0);
        call.n_in = n_in;
        check_against(&call, weft_attention_cpu, weft_attention_plain, 2e-5);
        call.n_in = n_in + 1;
        open_gradient(&call, has_scores);
        if (has_scores) view_free(&call.out[3]);
        if (has_scores) call.out[3] = dbias_of_blocks(dtype, form, blocks, query);
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
    run_on_lanes(weft_attention_cpu, &call);
    for (int i = 0; i < 6; i++)
        CHECK(view_get(&call.out[0], i) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(view_get(&call.out[1], i) == -(double)INFINITY);
        CHECK(view_get(&call.out[1], 3 + i) == 0);
    }
    call_free(&call);
}

/* Some rows of which all scores share an offset, beside which log(sum) is less than rounding. Rows of weights add up to 1: with ones
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
    run_on_lanes(is_plain ? weft_attention_plain : weft_attention_cpu, &call);
    attributes.bias_gradient = d->bias;
    open_gradient(&call, d->bias);
    run_on_lanes(is_plain ? weft_attention_grad_plain : weft_attention_grad_cpu, &call);
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
    streams_close();
    return weft_test_report();
}
