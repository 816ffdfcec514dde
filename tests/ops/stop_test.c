/* stop_test: a run that a signal stops: on one rank and on several that exchange in every trip all stop together, variables are as they
 * were, and the program goes on to the bits of one that nobody stopped. Signals come until a run has stopped: no clock. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "test.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "weft/scan.h"

enum { TRIPS = 20000, BATCH = 4, WIDTH = 8, MOST_RUNS = 200 };

static atomic_int n_handled;
static atomic_bool is_over;

static void handle(int number)
{
    (void)number;
    atomic_fetch_add(&n_handled, 1);
}

/* Signals, as long as a run may be under way. */
static void *send(void *argument)
{
    (void)argument;
    while (!atomic_load(&is_over)) {
        kill(getpid(), SIGINT);
        sched_yield();
    }
    return NULL;
}

typedef struct subject {
    weft_graph *graph;
    weft_mesh *mesh;
    weft_layout *layout;
    weft_program *program;
    weft_value w, sum;
} subject;

/* w moves by what comes of many trips, in each of which ranks exchange where the layout splits a dim of w. */
static bool begin(subject *s, const char *mesh, const char *layout)
{
    weft_world world;
    weft_error error = {0};
    const weft_dim batch = {"batch", BATCH}, in = {"in", WIDTH}, out = {"out", WIDTH};
    weft_graph *g = s->graph = weft_graph_create(3);
    s->w = weft_variable(g, "w", WEFT_F64, WEFT_DIMS(in, out), weft_normal(0.0, 0.3));
    const weft_value first = weft_constant(g, WEFT_F64, WEFT_DIMS(batch, in), 0.25);
    const weft_value trip = weft_scan_begin(g, TRIPS), h = weft_scan_carry(first);
    const weft_value next = weft_tanh(weft_einsum(WEFT_DIMS(batch, out), h, s->w));
    weft_scan_next(h, weft_rename(next, out, in));
    weft_scan_end(trip);
    s->sum = weft_sum(WEFT_SCALAR, weft_scan_last(h));
    const weft_value update = weft_assign(s->w, weft_add(s->w, weft_scale(s->sum, 0.01)));
    const weft_value values[] = {s->sum, update};
    return CHECK_OK(weft_world_open(&world, &error), error) &&
           CHECK_OK(weft_mesh_create(&world, mesh, &s->mesh, &error), error) &&
           CHECK_OK(weft_layout_create(layout, &s->layout, &error), error) &&
           CHECK_OK(weft_compile(s->mesh, s->layout, (weft_values){values, 2}, NULL, &s->program,
                                 &error),
                    error);
}

static void end(subject *s)
{
    weft_program_destroy(&s->program);
    weft_layout_destroy(&s->layout);
    weft_mesh_destroy(&s->mesh);
    weft_graph_destroy(&s->graph);
}

static void read_w(subject *s, double w[WIDTH * WIDTH])
{
    weft_error error = {0};
    CHECK_OK(weft_read(s->program, s->w, WEFT_F64, w, WIDTH * WIDTH * sizeof *w, &error), error);
}

static bool run_is_stopped(subject *s)
{
    weft_error error = {0};
    pthread_t sender;
    atomic_store(&is_over, false);
    if (pthread_create(&sender, NULL, send, NULL) != 0) return false;
    CHECK_OK(weft_run_until(s->program, SIGINT, &error), error);
    atomic_store(&is_over, true);
    pthread_join(sender, NULL);
    return weft_was_stopped(s->program);
}

static void check_on(const char *mesh, const char *layout)
{
    subject stopped = {0}, plain = {0};
    weft_error error = {0};
    double before[WIDTH * WIDTH], after[WIDTH * WIDTH], sum;
    if (!begin(&stopped, mesh, layout) || !begin(&plain, mesh, layout)) return;
    bool is_stopped = false;
    int64_t runs = 0;
    for (int run = 0; run < MOST_RUNS && !is_stopped; run++) {
        runs = weft_runs(stopped.program);
        read_w(&stopped, before);
        is_stopped = run_is_stopped(&stopped);
    }
    CHECK(is_stopped && weft_runs(stopped.program) == runs);
    read_w(&stopped, after);
    CHECK(memcmp(before, after, sizeof before) == 0);
    CHECK(weft_read_scalar(stopped.program, stopped.sum, &sum, &error) == WEFT_USAGE);
    error = (weft_error){0};
    CHECK_OK(weft_run_until(stopped.program, SIGINT, &error), error);
    CHECK(!weft_was_stopped(stopped.program) && weft_runs(stopped.program) == runs + 1);
    for (int64_t run = 0; run <= runs; run++)
        CHECK_OK(weft_run(plain.program, &error), error);
    read_w(&stopped, after);
    read_w(&plain, before);
    CHECK(memcmp(before, after, sizeof before) == 0);
    end(&plain);
    end(&stopped);
}

static void test_all_ranks_stop_and_go_on(void)
{
    check_on("", "");
    check_on("data:2", "batch:data");
    check_on("model:2", "out:model");
    check_on("data:2,model:2", "batch:data,in:model");
    CHECK(atomic_load(&n_handled) > 0);
}

static void test_what_nobody_handles_stops_nothing(void)
{
    subject s = {0};
    weft_error error = {0};
    if (!begin(&s, "", "")) return;
    CHECK(weft_run_until(s.program, 12345, &error) == WEFT_USAGE);
    CHECK(strstr(error.message, "no signal 12345") != NULL);
    error = (weft_error){0};
    CHECK_OK(weft_run_until(s.program, SIGUSR2, &error), error);
    CHECK(!weft_was_stopped(s.program) && !weft_was_stopped(NULL));
    struct sigaction now;
    CHECK(sigaction(SIGUSR2, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    CHECK(sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == handle);
    end(&s);
}

int main(void)
{
    struct sigaction action = {0};
    action.sa_handler = handle;
    sigaction(SIGINT, &action, NULL);
    RUN(test_all_ranks_stop_and_go_on);
    RUN(test_what_nobody_handles_stops_nothing);
    return weft_test_report();
}
