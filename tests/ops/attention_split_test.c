/* RANKS: 2 4 */
/* attention_split_test: few query rows and a long memory that is split: what query rows find in each part goes over ranks, and keys
 * and values do not; the gradients of these are split as they are. The numbers are those of one rank.
 */
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

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

static const char *const layouts[] = {"memory:m",          "memory:m,batch:d?",
                                      "memory:m+d?",       "batch:m,memory:d?",
                                      "memory:m,query:d?", "heads:m,memory:d?"};

static void check_case(const form *f, weft_mesh *mesh, const char *layout)
{
    weft_oracle_check(
        &oracle, mesh,
        &(weft_oracle_case){.name = f->name, .build = build, .argument = f, .layout = layout},
        NULL);
}

static void test_a_split_memory_gives_the_numbers_of_one_rank(void)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
            for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
                check_case(&forms[f], oracle.meshes[m], layouts[l]);
}

/* ---- the plan ------------------------------------------------------------------------------------- */

/* Bytes that rank 0 sends: all of them, and by gathering. */
typedef struct sent {
    int64_t all, gathered;
} sent;

static sent sent_by(const form *f, weft_dim rows, weft_dim memory_rows, const char *layout_text)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_traffic traffic[32];
    weft_graph *g = weft_graph_create(1);
    const weft_shape q = WEFT_DIMS(batch, rows, heads, kv);
    const weft_shape k = WEFT_DIMS(batch, memory_rows, heads, kv);
    weft_attention_options options = {
        .query = rows, .memory = memory_rows, .feature = kv, .causal = f->causal};
    weft_value in[3] = {weft_input(g, "q", WEFT_F64, q), weft_input(g, "k", WEFT_F64, k),
                        weft_input(g, "v", WEFT_F64, k)};
    weft_value d[3], y = weft_attention_with(in[0], in[1], in[2], &options);
    weft_gradients(weft_sum(WEFT_SCALAR, weft_tanh(y)), (weft_values){in, 3}, d, 0);
    sent s = {0};
    CHECK_OK(weft_mesh_plan("m:4", &mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    if (CHECK_OK(
            weft_compile(mesh, layout, WEFT_VALUES(y, d[0], d[1], d[2]), NULL, &program, &error),
            error)) {
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

/* Of a memory of 50 rows k alone has 50 * 3 * 2 * 4 * 8 bytes = 9.4 KiB. */
static void test_what_is_found_goes_over_ranks_and_the_memory_does_not(void)
{
    const weft_dim longer = {"memory", 5000};
    const sent some = sent_by(&forms[0], query, memory, "memory:m"),
               more = sent_by(&forms[0], query, longer, "memory:m");
    CHECK(some.all > 0 && some.all < 50 * 3 * 2 * 4 * 8);
    CHECK_EQ_INT(some.gathered, 0);
    CHECK_EQ_INT(more.all, some.all);
}

/* Where there are as many query rows, what they find is as much as there is: k and v are gathered. */
static void test_of_many_query_rows_the_memory_is_gathered(void)
{
    const weft_dim many = {"query", 50};
    CHECK(sent_by(&forms[0], many, memory, "query:m,memory:m").gathered > 0);
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
        RUN(test_of_many_query_rows_the_memory_is_gathered);
        RUN(test_rows_and_heads_of_one_axis_change_places);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
