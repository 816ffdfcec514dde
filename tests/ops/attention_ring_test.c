/* RANKS: 2 4 */
/* attention_ring_test: rows of q and of k and v are split over the same axes: keys and values go round, block by block, beside the
 * work, and are gathered nowhere; where they are causal each rank has as much to do. The numbers are those of one rank.
 */
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"
#include "weft/scan.h"

#include <string.h>

static weft_oracle oracle;

static const weft_dim batch = {"batch", 2}, heads = {"heads", 5}, group = {"group", 2},
                      kv = {"kv", 4};

typedef enum within { ALONE, A_SCAN, A_PART, A_GRADIENT } within;

typedef struct form {
    const char *name;
    weft_dim query, memory;
    bool causal, is_grouped;
    int64_t window;
    weft_dtype dtype;
    /* which dims they have, by their letters: batch, heads, query, key; NULL: there is none */
    const char *bias, *mask;
    bool is_key_split; /* as the rows are */
    bool is_one_head;
    int64_t n_heads;  /* 0: as `heads` */
    double bias_from; /* the bias is this and up to 1 to either side; exp(710) is inf */
    within within;
    double offset; /* of all scores of every third query row */
} form;

static const form forms[] = {
    {"full", {"seq", 16}, {"seq", 16}, false, false, 0, WEFT_F64},
    {"causal", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64},
    {"causal, straight", {"seq", 12}, {"seq", 12}, true, false, 0, WEFT_F64},
    {"causal, window", {"seq", 16}, {"seq", 16}, true, false, 3, WEFT_F64},
    {"causal, longer window", {"seq", 16}, {"seq", 16}, true, false, 7, WEFT_F64},
    {"window", {"seq", 16}, {"seq", 16}, false, false, 4, WEFT_F64},
    {"grouped", {"seq", 16}, {"seq", 16}, true, true, 0, WEFT_F64},
    {"cross", {"query", 16}, {"memory", 24}, false, false, 0, WEFT_F64},
    {"cross, causal", {"query", 24}, {"memory", 8}, true, false, 0, WEFT_F64},
    {"cross, nothing seen", {"query", 24}, {"memory", 8}, true, false, 3, WEFT_F64},
    {"f32", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F32},
    {"padding", {"seq", 16}, {"seq", 16}, false, false, 0, WEFT_F64, NULL, "bk"},
    {"padding, split", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64, NULL, "bk", true},
    {"padding of a cross", {"query", 16}, {"memory", 24}, false, false, 0, WEFT_F64, NULL, "bk"},
    {"bias", {"seq", 16}, {"seq", 16}, false, false, 0, WEFT_F64, "hqk", NULL},
    {"bias, causal", {"seq", 16}, {"seq", 16}, true, true, 0, WEFT_F64, "hqk", "bqk"},
    {"bias, transposed", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64, "kbq", "q"},
    {"bias of keys", {"seq", 16}, {"seq", 16}, true, false, 5, WEFT_F64, "hk", "bk"},
    {"bias of keys, split", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64, "k", "k", true},
    {"bias of queries", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64, "q", NULL},
    {"bias of heads", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64, "h", NULL},
    {"bias of a cross", {"query", 9}, {"memory", 22}, false, false, 0, WEFT_F64, "qk", "bk"},
    {"uneven", {"seq", 13}, {"seq", 13}, false, false, 0, WEFT_F64},
    {"uneven, causal", {"seq", 13}, {"seq", 13}, true, true, 0, WEFT_F64},
    {"uneven, window", {"seq", 13}, {"seq", 13}, true, false, 4, WEFT_F32},
    {"uneven, scores", {"seq", 13}, {"seq", 13}, true, false, 0, WEFT_F64, "hqk", "bk", true},
    {"fewer rows than blocks", {"seq", 5}, {"seq", 5}, true, false, 0, WEFT_F64, "hk", NULL},
    {"lowered rows", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F32, "hqk", .offset = -1e9},
    {"raised rows", {"seq", 13}, {"seq", 13}, true, true, 0, WEFT_F32, "qk", "bk", .offset = 1e9},
    {"far rows", {"seq", 16}, {"seq", 16}, true, false, 5, WEFT_F32, "bqk", .offset = -1e30},
    {"lowered rows, f64", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64, "q", .offset = -1e9},
    {"raised rows, f64", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64, "hqk", .offset = 1e9},
    {"uneven cross", {"query", 7}, {"memory", 10}, true, false, 0, WEFT_F64},
    {"in a scan", {"seq", 16}, {"seq", 16}, true, .dtype = WEFT_F64, .within = A_SCAN},
    {"in a part", {"seq", 13}, {"seq", 13}, true, .dtype = WEFT_F64, .within = A_PART},
    {"gradients of gradients",
     {"seq", 8},
     {"seq", 8},
     true,
     .dtype = WEFT_F64,
     .within = A_GRADIENT},
    {"uneven, large bias of keys",
     {"seq", 13},
     {"seq", 13},
     true,
     false,
     0,
     WEFT_F64,
     "hk",
     NULL,
     .bias_from = 709.8},
    {"as many rows as ranks", {"seq", 4}, {"seq", 4}, true, false, 0, WEFT_F64},
    {"fewer rows than ranks", {"seq", 3}, {"seq", 3}, true, false, 0, WEFT_F64, "hqk", NULL},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

/* Where work is dear, exchanges begin at once, and of all kinds of exchanges one costs little, that is the form. */
static double exchange(void *context, const weft_exchange *exchange)
{
    const weft_convert_kind *cheap = context;
    return exchange->link_bytes * (exchange->kind == *cheap ? 1e-3 : 1e3);
}
static weft_convert_kind border = WEFT_BORDER, all_to_all = WEFT_ALL_TO_ALL;
static const weft_cost prices[] = {
    {.exchange = exchange, .context = &border, .flops_per_byte = 1e-3, .latency = 1e-9},
    {.exchange = exchange, .context = &all_to_all, .flops_per_byte = 1e6, .latency = 1e-9}};
static const weft_compile_options going_round = {.cost = &prices[0]},
                                  changing_places = {.cost = &prices[1]};

static weft_shape rows_of(const form *f, weft_dim rows, bool is_grouped)
{
    const weft_dim all = {heads.name, f->n_heads > 0 ? f->n_heads : heads.size};
    if (f->is_one_head) return WEFT_DIMS(batch, rows, kv);
    return is_grouped ? WEFT_DIMS(batch, rows, all, group, kv) : WEFT_DIMS(batch, rows, all, kv);
}

/* Memory rows of bias and mask: as the memory is called, where that is not the queries. */
static weft_dim key_of(const form *f)
{
    return strcmp(f->query.name, f->memory.name) == 0 ? (weft_dim){"key", f->memory.size}
                                                      : f->memory;
}

static weft_shape scores_of(const form *f, const char *letters)
{
    weft_shape shape = {.n_dims = 0};
    for (; *letters != 0; letters++)
        shape.dims[shape.n_dims++] = *letters == 'b'   ? batch
                                     : *letters == 'h' ? heads
                                     : *letters == 'q' ? f->query
                                                       : key_of(f);
    return shape;
}

static weft_value attend_within(const form *f, const weft_value in[3],
                                const weft_attention_options *options)
{
    weft_value q = in[0], y;
    if (f->within == A_PART)
        return weft_recompute_end(
            weft_tanh(weft_attention_with(weft_recompute_begin(q), in[1], in[2], options)));
    if (f->within != A_SCAN) return weft_attention_with(q, in[1], in[2], options);
    weft_value trip = weft_scan_begin(q.graph, 2);
    q = weft_scan_carry(q);
    y = weft_attention_with(q, in[1], in[2], options);
    weft_scan_next(q, weft_add(q, y));
    weft_scan_end(trip);
    return weft_scan_last(q);
}

static void differentiate(weft_value y, const weft_value *in, int n, weft_value *gradients)
{
    weft_gradients(weft_sum(WEFT_SCALAR, weft_tanh(y)), (weft_values){in, n}, gradients, 0);
}

static weft_value offset_rows(const form *f, weft_value bias)
{
    weft_value row = weft_iota(bias.graph, WEFT_F64, f->query), shift = weft_scale(row, 0.0);
    for (int64_t i = 0; i < f->query.size; i += 3) {
        const weft_value at = weft_constant(bias.graph, WEFT_F64, WEFT_SCALAR, (double)i),
                         by = weft_constant(bias.graph, WEFT_F64, WEFT_SCALAR, f->offset);
        const weft_value is_it = weft_equal(row, at);
        shift = weft_where(is_it, by, shift);
    }
    return weft_add(bias, weft_cast(shift, weft_dtype_of(bias)));
}

/* in: q, k, v, then the bias and the mask that there are; gradients of all but the mask. */
static weft_value attend(const form *f, const weft_value in[5], weft_value gradients[4])
{
    weft_attention_options options = {.query = f->query,
                                      .memory = f->memory,
                                      .feature = kv,
                                      .causal = f->causal,
                                      .window = f->window,
                                      .column = key_of(f)};
    const int n = f->bias ? 4 : 3;
    if (f->bias) options.bias = f->offset != 0 ? offset_rows(f, in[3]) : in[3];
    if (f->mask) options.mask = in[n];
    weft_value y = attend_within(f, in, &options);
    differentiate(y, in, n, gradients);
    if (f->within == A_GRADIENT) differentiate(weft_square(gradients[1]), in, n, gradients);
    return y;
}

static void build(weft_oracle_build *b)
{
    const form *f = b->argument;
    const weft_shape rows = rows_of(f, f->memory, false),
                     queries = rows_of(f, f->query, f->is_grouped);
    weft_value in[5] = {weft_oracle_input(b, f->dtype, queries, -2, 2),
                        weft_oracle_input(b, f->dtype, rows, -2, 2),
                        weft_oracle_input(b, f->dtype, rows, -2, 2)};
    int n = 3;
    if (f->bias)
        in[n++] = weft_oracle_input(b, f->dtype, scores_of(f, f->bias), f->bias_from - 1,
                                    f->bias_from + 1);
    if (f->mask) in[n] = weft_oracle_input(b, WEFT_I32, scores_of(f, f->mask), 0, 2);
    weft_value gradients[4];
    weft_oracle_output(b, attend(f, in, gradients));
    for (int i = 0; i < n; i++)
        weft_oracle_output(b, gradients[i]);
}

/* Over which axes rows are split, and what else is. */
static const struct {
    const char *rows, *rest;
} layouts[] = {{"m", ""}, {"m", ",batch:d?"}, {"m+d?", ""}, {"d?", ",batch:m"}, {"m", ",heads:d?"}};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

static const char *layout_of(const form *f, int l, char text[100])
{
    const char *rows = layouts[l].rows, *rest = layouts[l].rest;
    if (strcmp(f->query.name, f->memory.name) == 0)
        snprintf(text, 100, "%s:%s%s%s%s", f->query.name, rows, rest,
                 f->is_key_split ? ",key:" : "", f->is_key_split ? rows : "");
    else
        snprintf(text, 100, "%s:%s,%s:%s%s", f->query.name, rows, f->memory.name, rows, rest);
    return text;
}

static void check_case(const form *f, weft_mesh *mesh, const char *layout,
                       const weft_compile_options *options)
{
    weft_oracle_check(
        &oracle, mesh,
        &(weft_oracle_case){
            .name = f->name, .build = build, .argument = f, .layout = layout, .options = options},
        NULL);
}

static void check_all(const weft_compile_options *options)
{
    for (int l = 0; l < N_LAYOUTS; l++)
        for (int f = 0; f < N_FORMS; f++, oracle.n_sweeps++) {
            if (!weft_oracle_takes(&oracle)) continue;
            for (int m = 0; m < oracle.n_meshes; m++) {
                char layout[100];
                if (weft_oracle_turn(&oracle, weft_test_share(), m) > 0)
                    check_case(&forms[f], oracle.meshes[m], layout_of(&forms[f], l, layout),
                               options);
            }
        }
}

static void test_a_ring_gives_the_numbers_of_one_rank(void)
{
    check_all(&going_round);
}

static void test_heads_that_change_places_with_rows_do_too(void)
{
    check_all(&changing_places);
}

/* One dim more has a turn, and of these there may be as many as a tensor has. */
static void build_many_dims(weft_oracle_build *b)
{
    const weft_dim seq = {"seq", 8};
    const weft_shape shape = WEFT_DIMS(batch, seq, kv, {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1});
    weft_value in[3];
    for (int i = 0; i < 3; i++)
        in[i] = weft_oracle_input(b, WEFT_F64, shape, -2, 2);
    weft_oracle_output(b, weft_attention(in[0], in[1], in[2], seq, seq, kv, true));
}

static void test_of_many_dims_rows_are_gathered(void)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        weft_oracle_check(&oracle, oracle.meshes[m],
                          &(weft_oracle_case){.name = "many dims",
                                              .build = build_many_dims,
                                              .layout = "seq:m",
                                              .options = &going_round},
                          NULL);
}

/* ---- the plan ------------------------------------------------------------------------------------- */

/* What rank 0 of a plan sends and holds, and which form was taken. */
typedef struct planned {
    int64_t gathered, borders, exchanged, arena;
    int n_borders, n_exchanged;
    char form[32];
    double work;
} planned;

static void look_at(const weft_program *program, int rank, planned *p)
{
    weft_error error = {0};
    weft_traffic traffic[32];
    weft_usage usage;
    const int n = weft_plan_traffic(program, rank, traffic, 32);
    for (int i = 0; i < n && i < 32; i++) {
        if (traffic[i].kind == WEFT_ALL_GATHER) p->gathered += traffic[i].bytes;
        if (traffic[i].kind == WEFT_ALL_TO_ALL)
            p->exchanged += traffic[i].bytes, p->n_exchanged += (int)traffic[i].count;
        if (traffic[i].kind != WEFT_BORDER) continue;
        p->borders += traffic[i].bytes, p->n_borders += (int)traffic[i].count;
    }
    CHECK_OK(weft_plan_usage(program, rank, &usage, &error), error);
    p->arena = usage.arena_bytes;
    p->work = usage.flops;
    for (int i = 0; i < weft_plan_n_variants(program); i++) {
        weft_planned_variant f;
        CHECK_OK(weft_plan_variant_at(program, i, &f, &error), error);
        if (f.is_taken) snprintf(p->form, sizeof p->form, "%s", f.name);
    }
}

/* Causal attention of rows of 1 head of 4 numbers, forward alone or with its gradients, as planned for a rank. */
static planned plan_form(const form *f, const char *layout_text, bool with_gradients,
                         const weft_compile_options *options, int rank)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(1);
    const weft_shape rows = rows_of(f, f->memory, false);
    weft_value in[5], d[5];
    int n = 3;
    in[0] = weft_input(g, "q", f->dtype, rows_of(f, f->query, f->is_grouped));
    in[1] = weft_input(g, "k", f->dtype, rows), in[2] = weft_input(g, "v", f->dtype, rows);
    if (f->bias) in[n++] = weft_input(g, "bias", f->dtype, scores_of(f, f->bias));
    if (f->mask) in[n] = weft_input(g, "mask", WEFT_I32, scores_of(f, f->mask));
    planned p = {0};
    d[n] = attend(f, in, d);
    CHECK_OK(weft_mesh_plan("m:4", &mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    const weft_values values = {with_gradients ? d : d + n, with_gradients ? n + 1 : 1};
    if (CHECK_OK(weft_compile(mesh, layout, values, options, &program, &error), error))
        look_at(program, rank, &p);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
    return p;
}

static planned plan(int64_t n, bool causal, bool with_gradients,
                    const weft_compile_options *options, int rank)
{
    const form f = {"", {"seq", n}, {"seq", n}, causal, false, 0, WEFT_F64, .is_one_head = true};
    return plan_form(&f, "seq:m", with_gradients, options, rank);
}

static void check_forms(const weft_compile_options *options, const char *name)
{
    for (int i = 0; i < N_FORMS; i++) {
        char layout[100], text[100];
        const planned p = plan_form(&forms[i], layout_of(&forms[i], 0, layout), true, options, 0);
        snprintf(text, sizeof text, "%s: the form is %s", forms[i].name, p.form);
        weft_test_check(strstr(p.form, name) != NULL, __FILE__, __LINE__, text);
    }
}

static void test_all_of_them_have_both_forms(void)
{
    check_forms(&going_round, "ring");
    check_forms(&changing_places, "all-to-all");
}

/* What docs/layouts.md says. Of 1,028 memory rows, more than there are of queries, a block of k and one of v are 2 * 2 * 257 * 4 * 8
 * = 32,896 bytes: rank 0's go to three others, and rank 3's to none. */
static void test_of_causal_rows_blocks_go_to_whom_they_are_seen_by(void)
{
    const form cross = {"", {"query", 1024}, {"memory", 1028},   true, false,
                        0,  WEFT_F64,        .is_one_head = true};
    static const int64_t straight[] = {98688, 65792, 32896, 0},
                         balanced[] = {81920, 131072, 114688, 163840};
    for (int rank = 0; rank < 4; rank++) {
        const planned p = plan_form(&cross, "query:m,memory:m", false, &going_round, rank),
                      q = plan(1024, true, false, &going_round, rank);
        CHECK_TEXT(p.form, "ring");
        CHECK_EQ_INT(p.gathered, 0);
        CHECK_EQ_INT(p.borders, straight[rank]);
        CHECK_TEXT(q.form, "balanced ring");
        CHECK_EQ_INT(q.gathered, 0);
        CHECK_EQ_INT(q.borders, balanced[rank]);
    }
}

/* A mask of keys that is split as they are goes round with them: 2 * 256 * 4 = 2,048 bytes a block; one that every rank has does not. */
static void test_a_padding_mask_goes_round_with_its_keys(void)
{
    const weft_dim seq = {"seq", 1024};
    const form plain = {"", seq, seq, false, false, 0, WEFT_F64, .is_one_head = true},
               padded = {"", seq, seq, false, false, 0, WEFT_F64, NULL, "bk", .is_one_head = true};
    const planned p = plan_form(&plain, "seq:m", false, &going_round, 0),
                  whole = plan_form(&padded, "seq:m", false, &going_round, 0),
                  split = plan_form(&padded, "seq:m,key:m", false, &going_round, 0);
    CHECK_TEXT(p.form, "ring");
    CHECK_TEXT(split.form, "ring");
    CHECK_EQ_INT(split.gathered, 0);
    CHECK_EQ_INT(whole.borders, p.borders);
    CHECK_EQ_INT(split.borders, p.borders + 3 * 2048);
}

static void test_a_bias_goes_round_in_f32_as_in_f64(void)
{
    const weft_dim seq = {"seq", 1024};
    const form wide = {"", seq, seq, false, false, 0, WEFT_F64, "k", NULL, .is_one_head = true};
    form narrow = wide;
    narrow.dtype = WEFT_F32;
    CHECK_TEXT(plan_form(&wide, "seq:m", true, &going_round, 0).form, "ring");
    CHECK_TEXT(plan_form(&narrow, "seq:m", true, &going_round, 0).form, "ring");
}

/* Rows that the ranks do not divide are filled up where they are. */
static void test_uneven_rows_go_round(void)
{
    const planned p = plan(1023, false, false, &going_round, 3);
    CHECK_TEXT(p.form, "ring");
    CHECK_EQ_INT(p.gathered, 0);
    CHECK_EQ_INT(p.borders, 3 * 2 * 2 * 256 * 4 * 8); /* as filled up */
}

/* Of 8 heads, forward: q, k, v and the result by all_to_all, four exchanges of 3/16 of 2 * 1024 * 8 * 4 numbers of 8 bytes, where
 * k and v alone would be gathered whole; the form is cheapest by the usual prices. Of fewer heads than ranks there is no such form. */
static void test_many_heads_change_places_with_their_rows(void)
{
    const form many = {"", {"seq", 1024}, {"seq", 1024}, true, false, 0, WEFT_F64, .n_heads = 8},
               few = {"", {"seq", 1024}, {"seq", 1024}, true, false, 0, WEFT_F64, .n_heads = 3};
    const planned p = plan_form(&many, "seq:m", false, NULL, 0),
                  q = plan_form(&many, "seq:m", true, NULL, 0),
                  without = plan_form(&few, "seq:m", false, &changing_places, 0);
    CHECK_TEXT(p.form, "all-to-all");
    CHECK_EQ_INT(p.gathered, 0);
    CHECK_EQ_INT(p.exchanged, 4 * 3 * (2 * 1024 * 8 * 4 * 8) / 16);
    CHECK_EQ_INT(p.n_exchanged, 4);
    CHECK_TEXT(q.form, "all-to-all");
    CHECK_EQ_INT(q.n_exchanged,
                 4 + 4); /* of dy, dq, dk and dv: what the result was is still there */
    CHECK(strcmp(without.form, "all-to-all") != 0);
}

/* Attention whose queries are another's result, and that has other forms: three there are of the first, two of the second. */
static void test_attention_of_attention_is_weighed_by_itself(void)
{
    const weft_dim seq = {"seq", 64};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, seq, kv));
    weft_value y = weft_attention(x, x, x, seq, seq, kv, true);
    y = weft_attention(y, x, x, seq, seq, kv, false);
    CHECK_OK(weft_mesh_plan("m:4", &mesh, &error), error);
    CHECK_OK(weft_layout_create("seq:m", &layout, &error), error);
    if (CHECK_OK(weft_compile(mesh, layout, (weft_values){&y, 1}, NULL, &program, &error), error))
        CHECK_EQ_INT(weft_plan_n_variants(program), 4 + 3);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
}

/* Where little is computed, an exchange more costs more than it hides. */
static void test_few_rows_are_gathered(void)
{
    const planned p = plan(64, true, true, NULL, 0);
    CHECK_TEXT(p.form, "gathered");
    CHECK(p.gathered > 0);
}

/* Long rows go round by the usual prices too, and their ranks hold less. */
static void test_long_rows_go_round_and_hold_less(void)
{
    static const weft_cost whole = {.latency = 1e12};
    const weft_compile_options gathering = {.cost = &whole};
    const planned ring = plan(65536, true, true, NULL, 0),
                  all = plan(65536, true, true, &gathering, 0);
    CHECK_TEXT(ring.form, "balanced ring");
    CHECK_TEXT(all.form, "gathered");
    CHECK(ring.arena < all.arena);
}

int main(void)
{
    static const char *const meshes[] = {"m:2", "m:4", "m:2,d:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_a_ring_gives_the_numbers_of_one_rank);
        RUN(test_heads_that_change_places_with_rows_do_too);
        RUN(test_of_many_dims_rows_are_gathered);
        RUN(test_all_of_them_have_both_forms);
        RUN(test_of_causal_rows_blocks_go_to_whom_they_are_seen_by);
        RUN(test_a_padding_mask_goes_round_with_its_keys);
        RUN(test_a_bias_goes_round_in_f32_as_in_f64);
        RUN(test_uneven_rows_go_round);
        RUN(test_many_heads_change_places_with_their_rows);
        RUN(test_attention_of_attention_is_weighed_by_itself);
        RUN(test_few_rows_are_gathered);
        RUN(test_long_rows_go_round_and_hold_less);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
