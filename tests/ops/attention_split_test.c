/* RANKS: 2 4 */
/* attention_split_test: few query rows and a long memory that is split: what query rows find in each part goes over ranks, and keys
 * and values do not; the gradients of these are split as they are. The numbers are those of one rank.
 */
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"

#include <string.h>

static weft_oracle oracle;

static const weft_dim batch = {"batch", 3}, heads = {"heads", 2}, group = {"group", 2},
                      query = {"query", 3}, memory = {"memory", 50}, kv = {"kv", 4};

typedef struct form {
    const char *name;
    bool causal, bias, mask, is_grouped;
    int64_t window;
} form;

static const form forms[] = {
    {"plain", false, false, false, false, 0},  {"causal", true, false, false, false, 0},
    {"window", false, false, false, false, 5}, {"mask", false, false, true, false, 0},
    {"bias", false, true, true, false, 0},     {"grouped", false, true, false, true, 0}};

typedef struct attended {
    weft_value y, in[4], gradients[4];
    int n;
} attended;

static attended attend(const form *f, const weft_value in[5])
{
    weft_attention_options options = {
        .query = query, .memory = memory, .feature = kv, .causal = f->causal, .window = f->window};
    attended a = {.n = 3 + f->bias};
    memcpy(a.in, in, sizeof a.in);
    if (f->bias) options.bias = in[3];
    if (f->mask) options.mask = in[4];
    a.y = weft_attention_with(in[0], in[1], in[2], &options);
    weft_gradients(weft_sum(WEFT_SCALAR, weft_tanh(a.y)), (weft_values){a.in, a.n}, a.gradients, 0);
    return a;
}

static weft_shape queries_of(const form *f)
{
    return f->is_grouped ? WEFT_DIMS(batch, query, heads, group, kv)
                         : WEFT_DIMS(batch, query, heads, kv);
}

static void build(weft_oracle_build *b)
{
    const form *f = b->argument;
    const weft_shape rows = WEFT_DIMS(batch, memory, heads, kv);
    weft_value in[5] = {weft_oracle_input(b, WEFT_F64, queries_of(f), -2, 2),
                        weft_oracle_input(b, WEFT_F64, rows, -2, 2),
                        weft_oracle_input(b, WEFT_F64, rows, -2, 2)};
    if (f->bias) in[3] = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(heads, memory), -1, 1);
    if (f->mask) in[4] = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(batch, memory), 0, 2);
    const attended a = attend(f, in);
    weft_oracle_output(b, a.y);
    for (int i = 0; i < a.n; i++)
        weft_oracle_output(b, a.gradients[i]);
}

static const char *const layouts[] = {
    "memory:m",          "memory:m,batch:d?", "memory:m+d?",      "batch:m,memory:d?",
    "memory:m,query:d?", "heads:m,memory:d?", "memory:m,query:m", "memory:m+d?,query:m+d?"};

/* Where all but sums is dear, keys and values stay where they are. */
static double exchange(void *context, const weft_exchange *exchange)
{
    (void)context;
    return exchange->link_bytes * (exchange->kind == WEFT_ALL_REDUCE ? 1e-3 : 1e3);
}
static const weft_cost dear = {.exchange = exchange, .flops_per_byte = 1e3, .latency = 1e-9};
static const weft_compile_options staying = {.cost = &dear};

static void check_case(const form *f, weft_mesh *mesh, const char *layout,
                       const weft_compile_options *options)
{
    weft_oracle_check(
        &oracle, mesh,
        &(weft_oracle_case){
            .name = f->name, .build = build, .argument = f, .layout = layout, .options = options},
        NULL);
}

static void test_a_split_memory_gives_the_numbers_of_one_rank(void)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
            for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
                check_case(&forms[f], oracle.meshes[m], layouts[l], NULL);
                check_case(&forms[f], oracle.meshes[m], layouts[l], &staying);
            }
}

/* ---- the plan ------------------------------------------------------------------------------------- */

/* Bytes that rank 0 sends: all of them, and by gathering; and the form that is taken. */
typedef struct sent {
    int64_t all, gathered;
    char form[40];
} sent;

static void read_form(const weft_program *program, sent *s)
{
    weft_error error = {0};
    weft_planned_variant form;
    for (int i = 0; i < weft_plan_n_variants(program); i++)
        if (CHECK_OK(weft_plan_variant_at(program, i, &form, &error), error) && form.is_taken)
            snprintf(s->form, sizeof s->form, "%s", form.name);
}

/* Of q and k, where they are placed by the program itself, and not by the layout alone; options NULL: the usual ones. */
static sent sent_by(const form *f, weft_dim rows, weft_dim memory_rows, const char *layout_text,
                    bool is_placed, const weft_compile_options *options)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_traffic traffic[32];
    weft_graph *g = weft_graph_create(1);
    const weft_shape q = WEFT_DIMS(batch, rows, heads, kv);
    const weft_shape k = WEFT_DIMS(batch, memory_rows, heads, kv);
    weft_attention_options attention = {
        .query = rows, .memory = memory_rows, .feature = kv, .causal = f->causal};
    weft_value in[3] = {weft_input(g, "q", WEFT_F64, q), weft_input(g, "k", WEFT_F64, k),
                        weft_input(g, "v", WEFT_F64, k)};
    for (int i = 1; i < 3 && is_placed; i++)
        weft_place(in[i], "memory:m");
    weft_value d[3], y = weft_attention_with(in[0], in[1], in[2], &attention);
    weft_gradients(weft_sum(WEFT_SCALAR, weft_tanh(y)), (weft_values){in, 3}, d, 0);
    sent s = {0};
    CHECK_OK(weft_mesh_plan("m:4", &mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    if (CHECK_OK(
            weft_compile(mesh, layout, WEFT_VALUES(y, d[0], d[1], d[2]), options, &program, &error),
            error)) {
        read_form(program, &s);
        const int n = weft_plan_traffic(program, 0, traffic, 32);
        for (int i = 0; i < n && i < 32; i++) {
            s.all += traffic[i].bytes;
            if (traffic[i].kind == WEFT_ALL_GATHER) s.gathered += traffic[i].bytes;
        }
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
    return s;
}

/* Of a memory of 500 rows k alone has 500 * 3 * 2 * 4 * 8 bytes = 94 KiB. */
static void test_what_is_found_goes_over_ranks_and_the_memory_does_not(void)
{
    const weft_dim long_one = {"memory", 500}, longer = {"memory", 5000};
    const sent some = sent_by(&forms[0], query, long_one, "memory:m", false, NULL),
               more = sent_by(&forms[0], query, longer, "memory:m", false, NULL),
               placed = sent_by(&forms[0], query, longer, "", true, NULL);
    CHECK_TEXT(more.form, "partial");
    CHECK(some.all > 0 && some.all < 2000);
    CHECK_EQ_INT(some.gathered, 0);
    CHECK_EQ_INT(more.all, some.all);
    CHECK_TEXT(placed.form, "partial"); /* its gradients are gathered: names want them so */
}

/* Exchanges take their time, however little they send: a short memory is gathered, and nothing sent for its gradient. */
static void test_a_short_memory_is_gathered(void)
{
    const sent s = sent_by(&forms[0], query, memory, "memory:m", false, NULL);
    CHECK_TEXT(s.form, "gathered");
    CHECK_EQ_INT(s.all, s.gathered);
}

/* What is taken where numbers are compared with one rank's. */
static void test_where_all_but_sums_is_dear_it_stays(void)
{
    CHECK_TEXT(sent_by(&forms[0], query, memory, "memory:m", false, &staying).form, "partial");
    CHECK_TEXT(sent_by(&forms[0], query, memory, "memory:m,query:m", false, &staying).form,
               "partial");
}

/* Where there are as many query rows, what they find is as much as there is: k and v are gathered. */
static void test_of_many_query_rows_the_memory_is_gathered(void)
{
    const weft_dim many = {"query", 50};
    CHECK(sent_by(&forms[0], many, memory, "query:m,memory:m", false, NULL).gathered > 0);
}

/* Rows of x are split, and so are heads, over the same axis: heads of all rows come together by all-to-all, and go back. */
static void test_rows_and_heads_of_one_axis_change_places(void)
{
    const weft_dim seq = {"seq", 1024}, embed = {"embed", 64}, many = {"heads", 8},
                   each = {"kv", 8};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_traffic traffic[32];
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, seq, embed)), w[4];
    for (int i = 0; i < 4; i++)
        w[i] = weft_input(g, (const char *const[]){"wq", "wk", "wv", "wo"}[i], WEFT_F32,
                          WEFT_DIMS(embed, many, each));
    const weft_shape rows = WEFT_DIMS(batch, seq, many, each);
    weft_value y = weft_attention(weft_einsum(rows, x, w[0]), weft_einsum(rows, x, w[1]),
                                  weft_einsum(rows, x, w[2]), seq, seq, each, true);
    y = weft_einsum(WEFT_DIMS(batch, seq, embed), y, w[3]);
    int n_exchanges = 0;
    CHECK_OK(weft_mesh_plan("m:4", &mesh, &error), error);
    CHECK_OK(weft_layout_create("heads:m,seq:m", &layout, &error), error);
    if (CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error)) {
        const int n = weft_plan_traffic(program, 0, traffic, 32);
        for (int i = 0; i < n && i < 32; i++)
            if (traffic[i].kind == WEFT_ALL_TO_ALL) n_exchanges += (int)traffic[i].count;
    }
    CHECK_EQ_INT(n_exchanges, 4);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"m:2", "m:4", "m:2,d:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_a_split_memory_gives_the_numbers_of_one_rank);
        RUN(test_what_is_found_goes_over_ranks_and_the_memory_does_not);
        RUN(test_a_short_memory_is_gathered);
        RUN(test_where_all_but_sums_is_dear_it_stays);
        RUN(test_of_many_query_rows_the_memory_is_gathered);
        RUN(test_rows_and_heads_of_one_axis_change_places);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
