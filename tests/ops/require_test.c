/* RANKS: 2 3 */
/* require_test: what has to hold and does not ends the run at the same step on every rank, with the same sentence; what holds
 * changes nothing. */
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "weft/scan.h"

#include "test.h"

static const weft_dim batch = {"batch", 12}, rows = {"rows", 6}, feature = {"feature", 4};
static weft_world world;

typedef weft_value build(weft_value ids, weft_value table);

static weft_value gathered(weft_value ids, weft_value table)
{
    return weft_gather(table, weft_checked_ids(ids, rows), rows);
}
/* In trip t the ids are t higher. */
static weft_value in_a_scan(weft_value ids, weft_value table)
{
    const weft_value first = weft_gather(table, ids, rows);
    const weft_value trip = weft_scan_begin(ids.graph, 20), sum = weft_scan_carry(first);
    const weft_value now = weft_checked_ids(weft_add(ids, trip), rows);
    weft_scan_next(sum, weft_add(sum, weft_gather(table, now, rows)));
    weft_scan_end(trip);
    return weft_scan_last(sum);
}
static weft_value factored(weft_value ids, weft_value table)
{
    const weft_dim side = {"side", 4};
    const weft_value own = weft_cast(ids, WEFT_F64), some = weft_gather(table, ids, rows);
    const weft_value gram = weft_einsum(WEFT_DIMS(feature, side), weft_mul(some, own),
                                        weft_rename(some, feature, side));
    const weft_value l = weft_cholesky(gram, feature, side);
    return weft_require(l, weft_all(WEFT_SCALAR, weft_is_finite(l)), (weft_value){NULL, 0},
                        "the products are not positive definite");
}

/* Two runs with the id `first` and zeros; both say the same. */
static weft_status run_twice(build *made, const char *mesh_text, const char *rule, int32_t first,
                             weft_error *error)
{
    int32_t ids[12] = {0};
    double data[24];
    weft_graph *graph = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error again = WEFT_NO_ERROR;
    for (int i = 0; i < 24; i++)
        data[i] = i;
    ids[7] = first;
    const weft_value x = weft_input(graph, "words", WEFT_I32, WEFT_DIMS(batch)),
                     table = weft_input(graph, "table", WEFT_F64, WEFT_DIMS(rows, feature));
    const weft_value y = made(x, table);
    weft_status status = weft_mesh_create(&world, mesh_text, &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create(rule, &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, error);
    if (status == WEFT_OK) status = weft_write(program, x, WEFT_I32, ids, sizeof ids, error);
    if (status == WEFT_OK) status = weft_write(program, table, WEFT_F64, data, sizeof data, error);
    if (status == WEFT_OK) {
        status = weft_run(program, error);
        CHECK_EQ_INT(weft_run(program, &again), status);
        CHECK_TEXT(again.message, error->message);
    }
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return status;
}

/* On every mesh of the world's size, by every rule; a process alone has ranks in it. */
static void each_layout(build *made, int32_t first, weft_status status, const char *sentence)
{
    static const char *const rules[] = {"", "batch:d", "rows:d", "feature:d"};
    char mesh[16];
    const int n = world.n_processes;
    for (int ranks = n == 1 ? 1 : n; ranks <= (n == 1 ? 4 : n); ranks++)
        for (int r = 0; r < 4; r++) {
            weft_error error = WEFT_NO_ERROR;
            snprintf(mesh, sizeof mesh, "d:%d", ranks);
            CHECK_EQ_INT(run_twice(made, mesh, rules[r], first, &error), status);
            CHECK_TEXT(error.message, sentence);
        }
}

static void test_an_id_outside_is_refused(void)
{
    each_layout(gathered, 5, WEFT_OK, "");
    each_layout(gathered, 6, WEFT_USAGE,
                "checked_ids at require_test.c:18: words has 6, and rows has 6, numbered from 0 to "
                "5; look where the ids come from, or use them unchecked: then such a one gives "
                "zeros");
    each_layout(gathered, -1, WEFT_USAGE, "words has -1, and rows has 6");
    each_layout(gathered, INT32_MIN, WEFT_USAGE, "words has -2147483647, and rows has 6");
    each_layout(gathered, INT32_MAX, WEFT_USAGE, "words has 2147483647, and rows has 6");
}

static void test_an_id_outside_in_a_trip_is_refused(void)
{
    each_layout(in_a_scan, -20, WEFT_USAGE, "checked_ids at require_test.c:25: ids has -20");
    each_layout(in_a_scan, 0, WEFT_USAGE, "ids has 6, and rows has 6");
}

static void test_a_condition_of_ones_own_has_ones_own_sentence(void)
{
    each_layout(factored, -3, WEFT_USAGE, "the products are not positive definite");
}

/* ---- what a run that fails leaves ----------------------------------------------------------------- */

typedef struct counted {
    weft_graph *graph;
    weft_value x, roots, count, update;
    weft_program *program;
    weft_mesh *mesh;
    weft_layout *layout;
} counted;

/* roots = sqrt(x), all of them finite, and count = count + 1. */
static weft_status count_open(counted *c, const char *mesh, const char *rule, weft_error *error)
{
    *c = (counted){.graph = weft_graph_create(1)};
    c->x = weft_input(c->graph, "x", WEFT_F64, WEFT_DIMS(batch));
    c->roots = weft_variable(c->graph, "roots", WEFT_F64, WEFT_DIMS(batch), weft_constant_of(7.0));
    c->count = weft_variable(c->graph, "count", WEFT_F64, WEFT_DIMS(batch), weft_constant_of(0.0));
    const weft_value n = weft_sqrt(c->x);
    const weft_value sure = weft_require(n, weft_all(WEFT_SCALAR, weft_is_finite(n)),
                                         (weft_value){NULL, 0}, "a root is not finite");
    weft_value tokens[] = {weft_assign(c->count, weft_shift(c->count, 1.0)),
                           weft_assign(c->roots, sure)};
    c->update = weft_group(c->graph, (weft_values){tokens, 2});
    WEFT_TRY(weft_mesh_create(&world, mesh, &c->mesh, error));
    WEFT_TRY(weft_layout_create(rule, &c->layout, error));
    return weft_compile(c->mesh, c->layout, WEFT_VALUES(c->update), NULL, &c->program, error);
}

static void count_close(counted *c)
{
    (void)!weft_program_destroy(&c->program);
    weft_layout_destroy(&c->layout);
    weft_mesh_destroy(&c->mesh);
    weft_graph_destroy(&c->graph);
}

static weft_status run_with(counted *c, double last, weft_error *error)
{
    double x[12];
    for (int i = 0; i < 12; i++)
        x[i] = i < 11 ? 4.0 : last;
    WEFT_TRY(weft_write(c->program, c->x, WEFT_F64, x, sizeof x, error));
    return weft_run(c->program, error);
}

static void check_all(const counted *c, weft_value value, double expected)
{
    weft_error error = WEFT_NO_ERROR;
    double found[12] = {0};
    if (!CHECK_OK(weft_read(c->program, value, WEFT_F64, found, sizeof found, &error), error))
        return;
    for (int i = 0; i < 12; i++)
        CHECK(found[i] == expected);
}

/* A good run, one that fails, and two that say what that said, with good numbers too. */
static void check_left(const char *mesh, const char *rule)
{
    counted c;
    weft_error error = WEFT_NO_ERROR;
    if (CHECK_OK(count_open(&c, mesh, rule, &error), error) &&
        CHECK_OK(run_with(&c, 4.0, &error), error)) {
        double first[12] = {0};
        check_all(&c, c.roots, 2.0);
        check_all(&c, c.count, 1.0);
        CHECK_EQ_INT(run_with(&c, -4.0, &error), WEFT_USAGE);
        check_all(&c, c.roots, 2.0);
        weft_error_clear(&error);
        CHECK_OK(weft_read(c.program, c.count, WEFT_F64, first, sizeof first, &error), error);
        for (int again = 0; again < 2; again++) {
            weft_error_clear(&error);
            CHECK_EQ_INT(run_with(&c, again ? 4.0 : -4.0, &error), WEFT_USAGE);
            CHECK_TEXT(error.message, "a root is not finite");
            check_all(&c, c.roots, 2.0);
            check_all(&c, c.count, first[0]);
        }
    }
    count_close(&c);
}

static void test_a_run_that_fails_leaves_variables_as_they_were(void)
{
    char mesh[16];
    const int n = world.n_processes;
    for (int ranks = n == 1 ? 1 : n; ranks <= (n == 1 ? 4 : n); ranks++) {
        snprintf(mesh, sizeof mesh, "d:%d", ranks);
        check_left(mesh, "");
        check_left(mesh, "batch:d");
    }
}

/* All processes have come to the end. */
static void test_nobody_waits(void)
{
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(weft_world_agree(&error), error);
}

int main(void)
{
    weft_error error = WEFT_NO_ERROR;
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        RUN(test_an_id_outside_is_refused);
        RUN(test_an_id_outside_in_a_trip_is_refused);
        RUN(test_a_condition_of_ones_own_has_ones_own_sentence);
        RUN(test_a_run_that_fails_leaves_variables_as_they_were);
        RUN(test_nobody_waits);
    }
    weft_world_close();
    return weft_test_report();
}
