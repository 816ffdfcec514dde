/* capture_test: runs that the device keeps and repeats as one thing. The numbers are those of runs that call kernels one
 * by one, random ones, trips of scans and exchanges too. Steps that cannot be kept are named, and done as before.
 *
 * On the emulated GPU, which ends a program that asks for anything while it captures; or on one.
 */
#include "calls.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "weft/scan.h"

enum { ROWS = 4, COLUMNS = 6, RUNS = 6, TRIPS = 700, MANY_TRIPS = 17000 };
static const weft_dim row = {"row", ROWS}, column = {"column", COLUMNS},
                      across = {"across", COLUMNS};

typedef struct kept_case {
    const char *mesh, *layout;
    bool may_stop;    /* a scan that the host looks at */
    bool is_required; /* a condition that it looks at */
    int runs_before;  /* another process made them, and this one goes on */
    int64_t trips;    /* 0: TRIPS */
    int n_runs;       /* 0: RUNS */
} kept_case;

typedef struct kept_result {
    float numbers[RUNS][ROWS * COLUMNS];
    weft_usage usage[RUNS]; /* of rank 0 */
    char why[300];
} kept_result;

/* More calls than are put without an event between them, and more steps than are kept as one: a variable that noise is added to trip by
 * trip, a product of matrices, and what all rows have in common. */
static weft_value build(weft_graph *g, const kept_case *c)
{
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(row, column), weft_uniform(-1, 1));
    weft_value start = weft_dropout(w, 0.5);
    const int64_t trips = c->trips != 0 ? c->trips : TRIPS;
    weft_value trip = weft_scan_begin(g, trips), h = weft_scan_carry(start);
    if (c->may_stop)
        weft_scan_while(
            weft_less(trip, weft_constant(g, WEFT_I32, WEFT_SCALAR, (double)trips - 1)));
    weft_value noise = weft_random_uniform(g, WEFT_F32, WEFT_DIMS(row, column), -1, 1);
    weft_scan_next(h, weft_tanh(weft_add(h, noise)));
    weft_scan_end(trip);
    weft_value last = weft_scan_last(h);
    weft_value square =
        weft_einsum(WEFT_DIMS(column, across), last, weft_rename(last, column, across));
    weft_value sum = weft_mul(weft_sum(WEFT_DIMS(column), last),
                              weft_rename(weft_sum(WEFT_DIMS(across), square), across, column));
    weft_value next = weft_add(weft_scale(w, 0.5), weft_mul(last, weft_tanh(sum)));
    if (c->is_required)
        next = weft_require(
            next,
            weft_less(weft_sum(WEFT_SCALAR, next), weft_constant(g, WEFT_F32, WEFT_SCALAR, 1e9)),
            (weft_value){NULL, 0}, "the sum is 10^9");
    return weft_assign(w, next);
}

static void run_case(weft_device_kind on, const kept_case *c, kept_result *result)
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    const weft_compile_options options = {.unroll = 1};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(3);
    memset(result, 0, sizeof *result);
    weft_mesh_use_device(on);
    CHECK_OK(weft_mesh_create(&alone, c->mesh, &mesh, &error), error);
    weft_mesh_use_device(WEFT_CPU);
    CHECK_OK(weft_layout_create(c->layout, &layout, &error), error);
    weft_value stored = build(g, c);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(stored), &options, &program, &error), error);
    weft_set_runs(program, c->runs_before);
    const int n_runs = c->n_runs != 0 ? c->n_runs : RUNS;
    for (int run = 0; run < n_runs && error.status == WEFT_OK; run++) {
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read(program, weft_find(program, "w", &error), WEFT_F32, result->numbers[run],
                           sizeof result->numbers[run], &error),
                 error);
        weft_measured_usage(program, 0, &result->usage[run]);
        const char *why = result->usage[run].why_apart;
        if (why != NULL) snprintf(result->why, sizeof result->why, "%s", why);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void check_same(const kept_result *a, const kept_result *b, double tolerance)
{
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < ROWS * COLUMNS; i++)
            CHECK(fabs((double)a->numbers[run][i] - b->numbers[run][i]) <= tolerance);
}

/* Kept, one by one, and on the CPU; of how many steps of the last run were kept. */
static void check_case(const kept_case *c, kept_result *kept)
{
    static kept_result apart, on_cpu;
    run_case(kind, c, kept);
    setenv("WEFT_CUDA_GRAPHS", "0", 1);
    run_case(kind, c, &apart);
    unsetenv("WEFT_CUDA_GRAPHS");
    run_case(WEFT_CPU, c, &on_cpu);
    check_same(kept, &apart, 0);
    check_same(kept, &on_cpu, 1e-5);
    CHECK_EQ_INT(apart.usage[RUNS - 1].n_kept, 0);
    for (int run = 0; run < RUNS; run++)
        CHECK_EQ_INT(kept->usage[run].n_steps, apart.usage[run].n_steps);
    CHECK(memcmp(kept->numbers[1], kept->numbers[2], sizeof kept->numbers[1]) != 0);
}

static void test_a_run_on_one_gpu_is_kept_whole(void)
{
    static kept_result kept;
    check_case(&(kept_case){.mesh = "data:1", .layout = ""}, &kept);
    CHECK_EQ_INT(kept.usage[0].n_kept, 0);
    for (int run = 1; run < RUNS; run++)
        CHECK_EQ_INT(kept.usage[run].n_kept, kept.usage[run].n_steps);
    CHECK_EQ_INT(kept.usage[RUNS - 1].n_kept > TRIPS, 1);
    CHECK_TEXT(kept.why, "");
}

static void test_an_exchange_ends_what_is_kept_and_is_named(void)
{
    static kept_result kept;
    check_case(&(kept_case){.mesh = "data:2", .layout = "row:data"}, &kept);
    CHECK(kept.usage[RUNS - 1].n_kept > 0);
    CHECK(kept.usage[RUNS - 1].n_kept < kept.usage[RUNS - 1].n_steps);
    CHECK(strstr(kept.why, "the host takes part in an exchange of ") != NULL);
}

static void test_a_kernel_that_waits_ends_what_is_kept_and_is_named(void)
{
    static kept_result kept;
    check_case(&(kept_case){.mesh = "data:1", .layout = "", .is_required = true}, &kept);
    CHECK_EQ_INT(kept.usage[RUNS - 1].n_kept < kept.usage[RUNS - 1].n_steps, 1);
    CHECK(kept.usage[RUNS - 1].n_kept > TRIPS);
    CHECK(strstr(kept.why, "the host reads a number of require at ") != NULL);
}

static void test_a_scan_that_may_stop_is_not_kept(void)
{
    static kept_result kept;
    check_case(&(kept_case){.mesh = "data:1", .layout = "", .may_stop = true}, &kept);
    CHECK_EQ_INT(kept.usage[RUNS - 1].n_kept, 0);
    CHECK_TEXT(kept.why, "the host reads whether a scan goes on");
}

/* What is made when it is first used is made in it. */
static void test_the_first_run_of_a_process_that_goes_on_is_not_kept(void)
{
    static kept_result kept;
    check_case(&(kept_case){.mesh = "data:2", .layout = "row:data", .runs_before = 3}, &kept);
    CHECK_EQ_INT(kept.usage[0].n_kept, 0);
    CHECK(kept.usage[1].n_kept > 0);
}

static void test_a_run_of_very_many_steps_is_not_kept(void)
{
    static kept_result kept;
    run_case(kind, &(kept_case){.mesh = "data:1", .layout = "", .trips = MANY_TRIPS, .n_runs = 2},
             &kept);
    CHECK_EQ_INT(kept.usage[1].n_kept, 0);
    CHECK_TEXT(kept.why, "a run has more steps than are kept");
}

/* So that who waits for several sees each of them end. */
static void test_there_is_an_event_behind_what_is_done_again(void)
{
    const cuda_queue *q = &cuda_stream_of(stream)->queues[WEFT_COMPUTE];
    weft_error error = {0};
    void *memory = NULL;
    CHECK_OK(device->take(stream, 64, &memory, &error), error);
    device->finish(stream);
    CHECK(device->keep_begin(stream, &error));
    device->copy(stream, WEFT_COMPUTE, memory, (char *)memory + 32, 32);
    weft_kept *kept = device->keep_end(stream, &error);
    const uint64_t recorded = q->recorded;
    for (uint32_t run = 1; run <= 3 && kept != NULL; run++)
        device->keep_run(stream, kept, run);
    CHECK_EQ_INT(q->recorded - recorded, 3);
    device->finish(stream);
    device->keep_drop(stream, &kept);
    device->give(stream, memory, 64);
}

static void test_what_the_driver_does_not_keep_is_done_one_by_one(void)
{
    static kept_result kept, apart;
    const kept_case c = {.mesh = "data:1", .layout = ""};
    if (strncmp(cuda_gpu_here.name, "emulated", 8) != 0) return;
    run_case(kind, &c, &kept);
    setenv("TEST_CUDA_FAIL", "cuStreamEndCapture:1", 1);
    run_case(kind, &c, &apart);
    unsetenv("TEST_CUDA_FAIL");
    check_same(&kept, &apart, 0);
    CHECK_EQ_INT(apart.usage[RUNS - 1].n_kept, 0);
    CHECK(strstr(apart.why, "cuStreamEndCapture: unspecified launch failure") != NULL);
}

int main(void)
{
    setenv("TEST_CUDA_MOST_KEPT", "600", 1); /* there are more trips */
    if (!open_device()) return weft_test_report();
    RUN(test_a_run_on_one_gpu_is_kept_whole);
    RUN(test_an_exchange_ends_what_is_kept_and_is_named);
    RUN(test_a_kernel_that_waits_ends_what_is_kept_and_is_named);
    RUN(test_a_scan_that_may_stop_is_not_kept);
    RUN(test_the_first_run_of_a_process_that_goes_on_is_not_kept);
    RUN(test_a_run_of_very_many_steps_is_not_kept);
    RUN(test_there_is_an_event_behind_what_is_done_again);
    RUN(test_what_the_driver_does_not_keep_is_done_one_by_one);
    close_device();
    return weft_test_report();
}
