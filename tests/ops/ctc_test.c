/* ctc_test: what ctc_loss says of numbers of labels and of frames that there cannot be, and what it does not look at. */
#include <math.h>
#include <string.h>

#include "weft/autodiff.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"

#include "test.h"

enum { ROWS = 4, TIMES = 5, CLASSES = 3, LABELS = 2, COUNT = ROWS * TIMES * CLASSES };
static const weft_dim rows = {"rows", ROWS}, seconds = {"time", TIMES},
                      classes = {"class", CLASSES}, label = {"label", LABELS};
static weft_world world;
static weft_mesh *mesh;

typedef struct result {
    double loss[ROWS], slope[COUNT];
} result;

static void run_loss(const double *x, const int32_t *n_times, const int32_t *n_labels,
                     bool zero_infinity, result *made)
{
    static const int32_t said[ROWS * LABELS] = {1, 2, 1, 2, 1, 2, 1, 2};
    weft_error error = WEFT_NO_ERROR;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    const weft_value logits = weft_input(graph, "x", WEFT_F64, WEFT_DIMS(rows, seconds, classes)),
                     labels = weft_input(graph, "labels", WEFT_I32, WEFT_DIMS(rows, label)),
                     times = weft_input(graph, "n_times", WEFT_I32, WEFT_DIMS(rows)),
                     numbers = weft_input(graph, "n_labels", WEFT_I32, WEFT_DIMS(rows));
    const weft_value loss = weft_ctc_loss(logits, labels,
                                          &(weft_ctc_options){.time = seconds,
                                                              .classes = classes,
                                                              .label = label,
                                                              .n_times = times,
                                                              .n_labels = numbers,
                                                              .zero_infinity = zero_infinity});
    weft_value slope;
    memset(made, 0, sizeof *made);
    weft_gradients(weft_sum(WEFT_SCALAR, loss), WEFT_VALUES(logits), &slope, 0);
    if (CHECK_OK(weft_compile(mesh, NULL, WEFT_VALUES(loss, slope), NULL, &program, &error),
                 error)) {
        const int64_t bytes = ROWS * sizeof(int32_t);
        CHECK_OK(weft_write(program, logits, WEFT_F64, x, COUNT * sizeof *x, &error), error);
        CHECK_OK(weft_write(program, labels, WEFT_I32, said, sizeof said, &error), error);
        CHECK_OK(weft_write(program, times, WEFT_I32, n_times, bytes, &error), error);
        CHECK_OK(weft_write(program, numbers, WEFT_I32, n_labels, bytes, &error), error);
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read(program, loss, WEFT_F64, made->loss, sizeof made->loss, &error), error);
        CHECK_OK(weft_read(program, slope, WEFT_F64, made->slope, sizeof made->slope, &error),
                 error);
    }
    (void)!weft_program_destroy(&program);
    weft_graph_destroy(&graph);
}

static void fill(double *x)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = sin(1.0 + 1.7 * i);
}

static bool has_slope(const result *made, int row)
{
    bool has = false;
    for (int i = 0; i < TIMES * CLASSES; i++)
        if (!(made->slope[row * TIMES * CLASSES + i] == 0.0)) has = true; /* a NaN too */
    return has;
}

static void test_a_number_of_labels_outside_is_no_ways(void)
{
    static const int32_t times[ROWS] = {TIMES, TIMES, TIMES, TIMES},
                         outside[][ROWS] = {{2, 3, -1, 7}, {0, INT32_MAX, INT32_MIN, 1 << 30}};
    double x[COUNT];
    fill(x);
    for (int k = 0; k < 4; k++) {
        const double instead = k % 2 ? 0.0 : (double)INFINITY;
        result made;
        run_loss(x, times, outside[k / 2], k % 2, &made);
        CHECK(made.loss[0] > 0 && isfinite(made.loss[0]) && has_slope(&made, 0));
        for (int r = 1; r < ROWS; r++)
            CHECK(made.loss[r] == instead && !has_slope(&made, r));
    }
}

static void test_a_number_of_frames_outside_is_none_or_all(void)
{
    static const int32_t inside[ROWS] = {0, 0, TIMES, TIMES},
                         outside[ROWS] = {-1, INT32_MIN, 6, INT32_MAX}, labels[ROWS] = {0, 1, 2, 0};
    double x[COUNT];
    result a, b;
    fill(x);
    run_loss(x, inside, labels, false, &a);
    run_loss(x, outside, labels, false, &b);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    CHECK(a.loss[0] == 0.0 && a.loss[1] == (double)INFINITY && isfinite(a.loss[2]));
}

static void test_frames_behind_the_last_are_not_looked_at(void)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e308};
    static const int32_t times[ROWS] = {3, 4, 5, 2}, labels[ROWS] = {2, 1, 2, 1};
    double x[COUNT];
    result a, b;
    fill(x);
    run_loss(x, times, labels, false, &a);
    for (int k = 0; k < 4; k++) {
        for (int r = 0; r < ROWS; r++)
            for (int i = times[r] * CLASSES; i < TIMES * CLASSES; i++)
                x[r * TIMES * CLASSES + i] = odd[k];
        run_loss(x, times, labels, false, &b);
        for (int r = 0; r < ROWS; r++)
            CHECK(a.loss[r] == b.loss[r]);
        for (int i = 0; i < COUNT; i++)
            CHECK(a.slope[i] == b.slope[i]);
    }
}

int main(void)
{
    weft_error error = WEFT_NO_ERROR;
    if (CHECK_OK(weft_world_open(&world, &error), error) &&
        CHECK_OK(weft_mesh_create(&world, "d:1", &mesh, &error), error)) {
        RUN(test_a_number_of_labels_outside_is_no_ways);
        RUN(test_a_number_of_frames_outside_is_none_or_all);
        RUN(test_frames_behind_the_last_are_not_looked_at);
    }
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return weft_test_report();
}
