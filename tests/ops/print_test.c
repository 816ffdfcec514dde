/* RANKS: 2 */
/* print_test: a line about a value: the same on every mesh, from one rank alone; and what cannot be printed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/program.h"

static const weft_dim row = {"row", 3}, column = {"column", 5};
static weft_oracle oracle;

static const float numbers[15] = {1, 2, -4, 0.5, 0, 3, 3, 3, 3, 3, 0, 0, 0, 0, 7};

typedef struct net {
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    weft_value x, twice, sum, whole, other;
} net;

static bool open_net(net *n, weft_mesh *mesh)
{
    weft_error error = {0};
    *n = (net){.graph = weft_graph_create(1)};
    n->x = weft_input(n->graph, "x", WEFT_F32, WEFT_DIMS(row, column));
    n->twice = weft_scale(n->x, 2.0);
    n->sum = weft_sum(WEFT_DIMS(column), n->x);
    n->whole = weft_cast(weft_sum(WEFT_SCALAR, n->x), WEFT_I32);
    n->other = weft_log(n->x);
    weft_name(n->twice, "twice");
    weft_name(n->other, "log");
    return CHECK_OK(weft_layout_create(mesh == oracle.alone ? "" : "row:d", &n->layout, &error),
                    error) &&
           CHECK_OK(weft_compile(mesh, n->layout, WEFT_VALUES(n->twice, n->sum, n->whole, n->other),
                                 NULL, &n->program, &error),
                    error);
}

static void close_net(net *n)
{
    (void)!weft_program_destroy(&n->program);
    weft_layout_destroy(&n->layout);
    (void)!weft_graph_destroy(&n->graph);
}

/* What the root prints; all others print nothing. */
static void check_prints(const net *n, weft_mesh *mesh, weft_value value, const char *line)
{
    char text[600] = "";
    weft_error error = {0};
    FILE *file = tmpfile();
    if (!CHECK(file != NULL)) return;
    CHECK_OK(weft_print(n->program, value, file, &error), error);
    rewind(file);
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    const bool is_same = strcmp(text, weft_mesh_is_root(mesh) ? line : "") == 0;
    weft_test_check(is_same, __FILE__, __LINE__, text);
}

static void check_mesh(weft_mesh *mesh)
{
    net n;
    weft_error error = {0};
    if (open_net(&n, mesh) &&
        CHECK_OK(weft_write(n.program, n.x, WEFT_F32, numbers, sizeof numbers, &error), error) &&
        CHECK_OK(weft_run(n.program, &error), error)) {
        check_prints(&n, mesh, n.x,
                     "x f32[row:3, column:5]: mean 1.43333, from -4 to 7; first 1 2 -4 0.5 0 3 3 3 "
                     "...\n");
        check_prints(&n, mesh, n.twice,
                     "twice f32[row:3, column:5]: mean 2.86667, from -8 to 14; first 2 4 -8 1 0 6 "
                     "6 6 ...\n");
        check_prints(&n, mesh, n.sum,
                     "a value f32[column:5]: mean 4.3, from -1 to 10; first 4 5 -1 3.5 10\n");
        check_prints(&n, mesh, n.whole, "a value i32[]: mean 21, from 21 to 21; first 21\n");
        check_prints(&n, mesh, n.other,
                     "log f32[row:3, column:5]: mean 0.826552, from -0.693147 to 1.94591, 6 of 15 "
                     "are NaN or Inf; first 0 0.693147 nan -0.693147 -inf 1.09861 1.09861 1.09861 "
                     "...\n");
    }
    close_net(&n);
}

static void test_one_rank_prints_a_line(void)
{
    check_mesh(oracle.alone);
    for (int m = 0; m < oracle.n_meshes; m++)
        check_mesh(oracle.meshes[m]);
}

static void test_what_cannot_be_printed(void)
{
    net n;
    weft_error error = {0};
    if (open_net(&n, oracle.alone)) {
        CHECK_EQ_INT(weft_print(n.program, n.twice, stdout, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "twice is computed by a run, and none has been done");
        error = (weft_error){0};
        CHECK_EQ_INT(weft_print(n.program, (weft_value){0}, stdout, &error), WEFT_USAGE);
        error = (weft_error){0};
        CHECK_EQ_INT(weft_print(n.program, n.x, NULL, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "file");
    }
    close_net(&n);
}

/* Nobody waits for one who cannot take part. */
static void test_one_without_a_file_is_all_ranks_error(void)
{
    net n;
    weft_error error = {0};
    weft_mesh *mesh = oracle.n_meshes > 0 ? oracle.meshes[0] : oracle.alone;
    FILE *file = weft_mesh_is_root(mesh) ? NULL : tmpfile();
    if (open_net(&n, mesh)) {
        CHECK_EQ_INT(weft_print(n.program, n.x, file, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "file");
    }
    close_net(&n);
    if (file != NULL) fclose(file);
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 2, &error), error)) {
        RUN(test_one_rank_prints_a_line);
        RUN(test_what_cannot_be_printed);
        RUN(test_one_without_a_file_is_all_ranks_error);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
