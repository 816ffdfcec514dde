/* order_test: what top_k of a split dim sends over ranks, on meshes without ranks; and random numbers as they are distributed. */
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <math.h>

#include "test.h"

static const weft_dim batch = {"batch", 8}, vocab = {"vocab", 48000}, best = {"best", 50};

static weft_world world;

typedef weft_value build(weft_value x);

static weft_value top(weft_value x)
{
    weft_value ids;
    (void)weft_top_k(x, vocab, best, &ids);
    return ids;
}
static weft_value all(weft_value x)
{
    return weft_argsort(x, vocab, true);
}

/* Bytes that rank 0 moves in a run, and calls. */
static int64_t bytes_of(build *made, const char *layout_text, int64_t *calls)
{
    weft_graph *graph = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_traffic traffic[16];
    weft_error error = {0};
    int64_t bytes = *calls = 0;
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, vocab));
    const weft_value y = weft_place(made(x), "");
    if (CHECK_OK(weft_mesh_plan("d:4", &mesh, &error), error) &&
        CHECK_OK(weft_layout_create(layout_text, &layout, &error), error) &&
        CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error)) {
        const int n = weft_plan_traffic(program, 0, traffic, 16);
        for (int i = 0; i < n; i++)
            bytes += traffic[i].bytes, *calls += traffic[i].count;
    }
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return bytes;
}

static void test_top_k_of_a_split_dim_sends_candidates(void)
{
    enum { ROW = 48 * 50 * 8, DIM = 48000 * 4 }; /* bytes: of candidates and their indices, of x */
    int64_t calls;
    const int64_t few = bytes_of(top, "vocab:d", &calls), whole = bytes_of(all, "vocab:d", &calls);
    printf("top_k sends %lld bytes, argsort %lld\n", (long long)few, (long long)whole);
    CHECK(few > 0 && few <= 8 * ROW);
    CHECK(whole >= 8 * DIM / 4); /* an axis goes over to the batch, or x is gathered */
    CHECK(few < whole);
    (void)bytes_of(top, "batch:d", &calls);
    CHECK_EQ_INT(calls, 1); /* the result's, which is wanted on every rank */
}

/* ---- distributions ------------------------------------------------------------------------------- */

enum { DRAWS = 48000 };

static bool draw(weft_graph *graph, weft_value made, double *data)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    const weft_value y = weft_cast(made, WEFT_F64);
    bool is_right =
        CHECK_OK(weft_mesh_create(&world, "d:1", &mesh, &error), error) &&
        CHECK_OK(weft_layout_create("", &layout, &error), error) &&
        CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error) &&
        CHECK_OK(weft_run(program, &error), error) &&
        CHECK_OK(weft_read(program, y, WEFT_F64, data, DRAWS * sizeof *data, &error), error);
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return is_right;
}

/* How far the share of what is `from` to `to` is from `expected`, in deviations of such a share. */
static double apart(const double *x, double from, double to, double expected)
{
    int n = 0;
    for (int i = 0; i < DRAWS; i++)
        n += x[i] >= from && x[i] < to;
    return fabs((double)n / DRAWS - expected) / sqrt(expected * (1 - expected) / DRAWS);
}

static void test_random_numbers_have_their_distributions(void)
{
    static double x[DRAWS];
    weft_graph *graph = weft_graph_create(5);
    if (draw(graph, weft_random_int(graph, WEFT_I32, WEFT_DIMS(vocab), -3, 7), x))
        for (int k = -3; k < 7; k++)
            CHECK(apart(x, k, k + 1, 0.1) < 4);
    graph = weft_graph_create(5);
    if (draw(graph, weft_random_bernoulli(graph, WEFT_F32, WEFT_DIMS(vocab), 0.3), x))
        CHECK(apart(x, 1, 2, 0.3) < 4 && apart(x, 0, 1, 0.7) < 4);
    graph = weft_graph_create(5);
    if (draw(graph, weft_random_truncated_normal(graph, WEFT_F64, WEFT_DIMS(vocab), 1, 2), x)) {
        const double within = erf(sqrt(2.0));
        CHECK(apart(x, -3, 5.0000001, 0.9999999) < 4); /* all of them */
        for (int k = -3; k < 5; k++)
            CHECK(apart(x, k, k + 1,
                        (erf((k / 2.0) / sqrt(2.0)) - erf((k - 1) / 2.0 / sqrt(2.0))) / 2 /
                            within) < 4);
    }
    graph = weft_graph_create(5);
    const weft_dim kind = {"kind", 4};
    const weft_value logits =
        weft_log(weft_shift(weft_iota(graph, WEFT_F32, kind), 1.0)); /* 1 to 4 */
    const weft_value rows = weft_broadcast_to(logits, WEFT_DIMS(vocab, kind));
    if (draw(graph, weft_random_categorical(rows, kind), x))
        for (int k = 0; k < 4; k++)
            CHECK(apart(x, k, k + 1, 0.1 * (k + 1)) < 4);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        RUN(test_top_k_of_a_split_dim_sends_candidates);
        RUN(test_random_numbers_have_their_distributions);
    }
    weft_world_close();
    return weft_test_report();
}
