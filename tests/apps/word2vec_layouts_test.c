/* RANKS: 2 3 4 */
/* word2vec_layouts_test: with pairs, words or vectors over ranks, the losses of one rank to 1e-10, and the same nearest words; a table
 * that is split by its words is whole on no rank.
 */
#include "apps/word2vec/model.h"
#include "net_layouts.h"

static const word2vec_shape shape = {9, 13, 5, 4, WEFT_F64};

static void build(net *n, const void *argument)
{
    const word2vec_model m = word2vec_build(n->graph, argument);
    n->loss = m.loss;
    net_input(n, m.center, 13);
    net_input(n, m.candidates, 13);
}

static const net_layout layouts[] = {
    {"data:2", "batch:data", 0},
    {"data:2", "batch:data", 3},
    {"model:2", "vocab:model", 0},
    {"model:3", "vocab:model", 0},
    {"model:3", "embed:model", 0},
    {"data:2,model:2", "batch:data,vocab:model", 1},
    {"data:2,model:2", "vocab:data,embed:model", 0},
};

static weft_oracle oracle;

static void test_every_layout_is_one_rank(void)
{
    net_check(&oracle, "word2vec", build, &shape, layouts, sizeof layouts / sizeof *layouts);
}

/* ---- nearest ------------------------------------------------------------------------------------- */

enum { QUERIES = 3, NEAR = 4 };

typedef struct nearest {
    int32_t ids[QUERIES][NEAR];
    double cosines[QUERIES][NEAR];
    int64_t table_bytes; /* of rank 0 */
} nearest;

static weft_status find(weft_mesh *mesh, const char *text, nearest *found, weft_error *error)
{
    static const int32_t queries[QUERIES] = {0, 7, 12};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_usage usage;
    weft_value ids;
    weft_graph *g = weft_graph_create(3);
    const word2vec_model m = word2vec_build(g, &shape); /* which says how the table begins */
    const weft_value cosines = word2vec_nearest(g, &shape, QUERIES, NEAR, &ids);
    (void)m;
    weft_status status = weft_layout_create(text, &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(cosines, ids), NULL, &program, error);
    if (status == WEFT_OK)
        status = weft_write(program, weft_find_input(program, "query"), WEFT_I32, queries,
                            sizeof queries, error);
    if (status == WEFT_OK) status = weft_run(program, error);
    if (status == WEFT_OK)
        status = weft_read(program, ids, WEFT_I32, found->ids, sizeof found->ids, error);
    if (status == WEFT_OK)
        status =
            weft_read(program, cosines, WEFT_F64, found->cosines, sizeof found->cosines, error);
    if (status == WEFT_OK) status = weft_plan_usage(program, 0, &usage, error);
    if (status == WEFT_OK) found->table_bytes = usage.variable_bytes;
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    (void)!weft_graph_destroy(&g);
    return status;
}

static void check_found(const nearest *one, const nearest *other)
{
    for (int q = 0; q < QUERIES; q++) {
        CHECK(memcmp(one->ids[q], other->ids[q], sizeof one->ids[q]) == 0);
        for (int k = 0; k < NEAR; k++)
            CHECK_CLOSE(other->cosines[q][k], one->cosines[q][k], 1e-10);
    }
}

static void test_a_split_table_finds_the_same_words(void)
{
    weft_error error = {0};
    nearest one, split;
    if (!CHECK_OK(find(oracle.alone, "", &one, &error), error)) return;
    for (int q = 0; q < QUERIES; q++) {
        CHECK_EQ_INT(one.ids[q][0], q == 0 ? 0 : q == 1 ? 7 : 12); /* itself */
        CHECK_CLOSE(one.cosines[q][0], 1.0, 1e-9);
        CHECK(one.cosines[q][1] >= one.cosines[q][2] && one.cosines[q][2] >= one.cosines[q][3]);
    }
    for (int m = 0; m < oracle.n_meshes; m++) {
        const int axis = weft_mesh_find_axis(oracle.meshes[m], "model");
        if (axis < 0) continue;
        if (!CHECK_OK(find(oracle.meshes[m], "vocab:model", &split, &error), error)) continue;
        check_found(&one, &split);
        const int n = strstr(weft_mesh_text(oracle.meshes[m]), "model:3") != NULL ? 3 : 2;
        CHECK_EQ_INT((int)split.table_bytes, (int)(one.table_bytes / 13 * ((13 + n - 1) / n)));
    }
}

/* ---- rows alone ----------------------------------------------------------------------------------- */

enum { STEPS = 4, MOST_CANDIDATES = 4 * 9 };

/* Words that come several times in a batch, too. */
static weft_status feed(weft_program *program, const word2vec_shape *s, int step, weft_error *error)
{
    int32_t center[9], candidates[MOST_CANDIDATES];
    for (int i = 0; i < 9; i++)
        center[i] = (int32_t)((i * 5 + step) % 4);
    for (int i = 0; i < MOST_CANDIDATES; i++)
        candidates[i] = (int32_t)((i * 7 + 3 * step) % s->vocab);
    WEFT_TRY(weft_write(program, weft_find_input(program, "center"), WEFT_I32, center,
                        sizeof center, error));
    return weft_write(program, weft_find_input(program, "candidates"), WEFT_I32, candidates,
                      sizeof candidates, error);
}

static weft_value update_of(const word2vec_model *m, const word2vec_shape *s, bool is_sparse)
{
    const weft_value rate = weft_constant(m->loss.graph, WEFT_F64, WEFT_SCALAR, 0.3);
    return is_sparse ? word2vec_step(m, s, rate)
                     : weft_sgd(m->loss, &(weft_optimizer_options){.rate_value = rate});
}

static weft_status learn(weft_mesh *mesh, const char *text, const word2vec_shape *s, bool is_sparse,
                         double losses[STEPS], weft_usage *usage, weft_error *error)
{
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(3);
    const word2vec_model m = word2vec_build(g, s);
    const weft_value update = update_of(&m, s, is_sparse);
    weft_status status = weft_layout_create(text, &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(m.loss, update), NULL, &program, error);
    for (int i = 0; i < STEPS && status == WEFT_OK; i++) {
        status = feed(program, s, i, error);
        if (status == WEFT_OK) status = weft_run(program, error);
        if (status == WEFT_OK) status = weft_read_scalar(program, m.loss, &losses[i], error);
    }
    if (status == WEFT_OK) status = weft_plan_usage(program, 0, usage, error);
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    (void)!weft_graph_destroy(&g);
    return status;
}

static void test_rows_alone_learn_as_the_whole_table(void)
{
    double whole[STEPS], rows[STEPS];
    weft_usage usage;
    weft_error error = {0};
    if (!CHECK_OK(learn(oracle.alone, "", &shape, false, whole, &usage, &error), error)) return;
    CHECK(whole[STEPS - 1] < whole[0]);
    for (int m = -1; m < oracle.n_meshes; m++) {
        weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
        const char *text = m < 0 ? "" : "batch:data?,vocab:model?";
        if (!CHECK_OK(learn(mesh, text, &shape, true, rows, &usage, &error), error)) continue;
        for (int i = 0; i < STEPS; i++)
            CHECK_CLOSE(rows[i], whole[i], 1e-10);
    }
}

/* Ten times as many words: the same work, and the same temporaries. */
static void test_a_step_costs_what_its_rows_do(void)
{
    double losses[STEPS];
    weft_usage few, many;
    weft_error error = {0};
    word2vec_shape large = shape;
    large.vocab = 10000;
    if (!CHECK_OK(learn(oracle.alone, "", &large, true, losses, &few, &error), error)) return;
    large.vocab = 100000;
    if (!CHECK_OK(learn(oracle.alone, "", &large, true, losses, &many, &error), error)) return;
    CHECK(few.flops == many.flops && few.flops < 10000);
    CHECK_EQ_INT(few.arena_bytes, many.arena_bytes);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "model:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_every_layout_is_one_rank);
        RUN(test_a_split_table_finds_the_same_words);
        RUN(test_rows_alone_learn_as_the_whole_table);
        RUN(test_a_step_costs_what_its_rows_do);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
