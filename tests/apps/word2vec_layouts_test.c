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

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "model:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_every_layout_is_one_rank);
        RUN(test_a_split_table_finds_the_same_words);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
