/* RANKS: 2 4 */
/* attention_ring_test: rows of q and of k and v are split over the same axes: keys and values go round, block by block, beside the
 * work, and are gathered nowhere; where they are causal each rank has as much to do. The numbers are those of one rank.
 */
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"

#include <string.h>

static weft_oracle oracle;

static const weft_dim batch = {"batch", 2}, heads = {"heads", 3}, group = {"group", 2},
                      kv = {"kv", 4};

typedef struct form {
    const char *name;
    weft_dim query, memory;
    bool causal, is_grouped;
    int64_t window;
    weft_dtype dtype;
} form;

static const form forms[] = {
    {"full", {"seq", 16}, {"seq", 16}, false, false, 0, WEFT_F64},
    {"causal", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F64},
    {"causal, straight", {"seq", 12}, {"seq", 12}, true, false, 0, WEFT_F64},
    {"causal, window", {"seq", 16}, {"seq", 16}, true, false, 3, WEFT_F64},
    {"causal, longer window", {"seq", 16}, {"seq", 16}, true, false, 7, WEFT_F64},
    {"window", {"seq", 16}, {"seq", 16}, false, false, 4, WEFT_F64},
    {"grouped", {"seq", 16}, {"seq", 16}, true, true, 0, WEFT_F64},
    {"cross", {"query", 8}, {"memory", 24}, false, false, 0, WEFT_F64},
    {"cross, causal", {"query", 24}, {"memory", 8}, true, false, 0, WEFT_F64},
    {"cross, nothing seen", {"query", 24}, {"memory", 8}, true, false, 3, WEFT_F64},
    {"f32", {"seq", 16}, {"seq", 16}, true, false, 0, WEFT_F32},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

/* Where work is dear and exchanges begin at once, keys and values go round. */
static const weft_cost dear = {.flops_per_byte = 1e-3, .latency = 1e-9};
static const weft_compile_options going_round = {.cost = &dear};

static weft_shape queries_of(const form *f)
{
    return f->is_grouped ? WEFT_DIMS(batch, f->query, heads, group, kv)
                         : WEFT_DIMS(batch, f->query, heads, kv);
}

static weft_value attend(const form *f, const weft_value in[3], weft_value gradients[3])
{
    const weft_attention_options options = {.query = f->query,
                                            .memory = f->memory,
                                            .feature = kv,
                                            .causal = f->causal,
                                            .window = f->window};
    weft_value y = weft_attention_with(in[0], in[1], in[2], &options);
    weft_gradients(weft_sum(WEFT_SCALAR, weft_tanh(y)), (weft_values){in, 3}, gradients, 0);
    return y;
}

static void build(weft_oracle_build *b)
{
    const form *f = b->argument;
    const weft_shape rows = WEFT_DIMS(batch, f->memory, heads, kv);
    const weft_value in[3] = {weft_oracle_input(b, f->dtype, queries_of(f), -2, 2),
                              weft_oracle_input(b, f->dtype, rows, -2, 2),
                              weft_oracle_input(b, f->dtype, rows, -2, 2)};
    weft_value gradients[3];
    weft_oracle_output(b, attend(f, in, gradients));
    for (int i = 0; i < 3; i++)
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
        snprintf(text, 100, "%s:%s%s", f->query.name, rows, rest);
    else
        snprintf(text, 100, "%s:%s,%s:%s%s", f->query.name, rows, f->memory.name, rows, rest);
    return text;
}

static void check_case(const form *f, weft_mesh *mesh, const char *layout)
{
    weft_oracle_check(&oracle, mesh,
                      &(weft_oracle_case){.name = f->name,
                                          .build = build,
                                          .argument = f,
                                          .layout = layout,
                                          .options = &going_round},
                      NULL);
}

static void test_a_ring_gives_the_numbers_of_one_rank(void)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        for (int l = 0; l < N_LAYOUTS; l++)
            for (int f = 0; f < N_FORMS; f++) {
                char layout[100];
                check_case(&forms[f], oracle.meshes[m], layout_of(&forms[f], l, layout));
            }
}

/* ---- the plan ------------------------------------------------------------------------------------- */

/* What rank 0 of a plan sends and holds, and which form was taken. */
typedef struct planned {
    int64_t gathered, borders, arena;
    int n_borders;
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
        if (traffic[i].kind != WEFT_BORDER) continue;
        p->borders += traffic[i].bytes, p->n_borders += (int)traffic[i].count;
    }
    CHECK_OK(weft_plan_usage(program, rank, &usage, &error), error);
    p->arena = usage.arena_bytes;
    p->work = usage.flops;
    for (int i = 0; i < weft_plan_n_forms(program); i++) {
        weft_planned_form f;
        CHECK_OK(weft_plan_form_at(program, i, &f, &error), error);
        if (f.is_taken) snprintf(p->form, sizeof p->form, "%s", f.name);
    }
}

/* Causal attention of rows of 1 head of 4 numbers, forward alone or with its gradients, as planned for a rank. */
static planned plan(int64_t rows, bool causal, bool with_gradients,
                    const weft_compile_options *options, int rank)
{
    const weft_dim seq = {"seq", rows};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(1);
    const form f = {"", seq, seq, causal, false, 0, WEFT_F64};
    const weft_shape shape = WEFT_DIMS(batch, seq, kv);
    const weft_value in[3] = {weft_input(g, "q", WEFT_F64, shape),
                              weft_input(g, "k", WEFT_F64, shape),
                              weft_input(g, "v", WEFT_F64, shape)};
    weft_value d[4];
    planned p = {0};
    d[3] = attend(&f, in, d);
    CHECK_OK(weft_mesh_plan("m:4", &mesh, &error), error);
    CHECK_OK(weft_layout_create("seq:m", &layout, &error), error);
    const weft_values values = {with_gradients ? d : d + 3, with_gradients ? 4 : 1};
    if (CHECK_OK(weft_compile(mesh, layout, values, options, &program, &error), error))
        look_at(program, rank, &p);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
    return p;
}

/* What docs/layouts.md says. Of 1,020 rows, which have no halves, a block of k and one of v are 2 * 2 * 255 * 4 * 8 = 32,640 bytes:
 * rank 0's go to three others, and rank 3's to none. */
static void test_of_causal_rows_blocks_go_to_whom_they_are_seen_by(void)
{
    static const int64_t straight[] = {97920, 65280, 32640, 0},
                         balanced[] = {81920, 131072, 114688, 163840};
    for (int rank = 0; rank < 4; rank++) {
        const planned p = plan(1020, true, false, &going_round, rank),
                      q = plan(1024, true, false, &going_round, rank);
        CHECK_TEXT(p.form, "ring");
        CHECK_EQ_INT(p.gathered, 0);
        CHECK_EQ_INT(p.borders, straight[rank]);
        CHECK_TEXT(q.form, "balanced ring");
        CHECK_EQ_INT(q.gathered, 0);
        CHECK_EQ_INT(q.borders, balanced[rank]);
    }
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
        RUN(test_of_causal_rows_blocks_go_to_whom_they_are_seen_by);
        RUN(test_few_rows_are_gathered);
        RUN(test_long_rows_go_round_and_hold_less);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
