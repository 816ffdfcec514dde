/* RANKS: 2 4 */
/* trace_test: what ranks write down of their steps is all that they did, in the order in which they did it; files that are cut,
 * changed or refused are told in a sentence.
 */
#include "weft/research/trace.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "trace/clocks.h"
#include "trace/ring_file.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/scan.h"

enum { TRIPS = 20, MAX_PATH = 256 };

static weft_world world;
static char folder[64];

typedef struct job {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph, *look_graph;
    weft_program *program, *looks;
} job;

/* A scan that is compiled as a region, whose body exchanges in each trip. */
static weft_value build(weft_graph *graph)
{
    const weft_dim row = {"row", 8}, column = {"column", 6};
    weft_value x =
        weft_variable(graph, "x", WEFT_F64, WEFT_DIMS(row, column), weft_uniform(0.0, 1.0));
    weft_value first = weft_sum(WEFT_SCALAR, weft_tanh(x));
    weft_value trip = weft_scan_begin(graph, TRIPS);
    weft_value c = weft_scan_carry(first);
    weft_value sum = weft_sum(WEFT_SCALAR, weft_tanh(weft_mul(x, c)));
    weft_scan_next(c, weft_tanh(weft_add(c, sum)));
    weft_scan_end(trip);
    return weft_scan_last(c);
}

static job open_job(void)
{
    job j = {.graph = weft_graph_create(1), .look_graph = weft_graph_create(2)};
    weft_error error = {0};
    const char *mesh = world.n_processes > 1 ? "" : "data:2";
    CHECK_OK(weft_mesh_create(&world, mesh, &j.mesh, &error), error);
    CHECK_OK(weft_layout_create("row:data", &j.layout, &error), error);
    CHECK_OK(weft_compile(j.mesh, j.layout, WEFT_VALUES(build(j.graph)), NULL, &j.program, &error),
             error);
    const weft_compile_options shared = {.share = j.program};
    const weft_value look = weft_neg(build(j.look_graph));
    CHECK_OK(weft_compile(j.mesh, j.layout, WEFT_VALUES(look), &shared, &j.looks, &error), error);
    return j;
}

static void close_job(job *j)
{
    CHECK_EQ_INT(weft_program_destroy(&j->looks), WEFT_OK);
    CHECK_EQ_INT(weft_program_destroy(&j->program), WEFT_OK);
    weft_graph_destroy(&j->graph);
    weft_graph_destroy(&j->look_graph);
    weft_layout_destroy(&j->layout);
    weft_mesh_destroy(&j->mesh);
}

static weft_traced *read_rank(int rank)
{
    char path[MAX_PATH];
    weft_traced *traced = NULL;
    weft_error error = {0};
    weft_ring_path(folder, rank, path, sizeof path);
    CHECK_OK(weft_traced_open(path, &traced, &error), error);
    return traced;
}

static void run(weft_program *program, int times)
{
    weft_error error = {0};
    for (int i = 0; i < times; i++)
        CHECK_OK(weft_run(program, &error), error);
}

static weft_trace *begin(const job *j, int64_t runs)
{
    weft_error error = {0};
    weft_trace *trace = NULL;
    const weft_trace_part parts[] = {{j->program, "train", runs}, {j->looks, "look", runs}};
    CHECK_OK(weft_trace_begin(folder, parts, 2, &trace, &error), error);
    return trace;
}

static void end(weft_trace **trace)
{
    weft_error error = {0};
    CHECK_OK(weft_trace_end(trace, &error), error);
    CHECK(*trace == NULL);
}

/* ---- what was done ----------------------------------------------------------------------------- */

static int64_t count(const weft_traced *t, int kind, int program)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_events; i++)
        n += t->events[i].kind == kind && t->events[i].program == program;
    return n;
}

/* Of a rank's thread, which does one thing after the other. */
static void check_order(const weft_traced *t)
{
    const weft_traced_event *run_of = NULL;
    int64_t last = 0;
    for (int64_t i = 0; i < t->n_events; i++) {
        const weft_traced_event *e = &t->events[i];
        CHECK(e->begin >= last && e->end >= e->begin);
        last = e->kind == WEFT_TRACED_RUN ? e->begin : e->end;
        if (e->kind == WEFT_TRACED_RUN) run_of = e;
        if (!CHECK(run_of != NULL)) return;
        CHECK(e->program == run_of->program && e->end <= run_of->end);
        if (e->arrived > 0) CHECK(e->arrived <= e->end);
    }
}

/* Every trip of the scan, and as many exchanges as there are sent. */
static void check_trips(const weft_traced *t, const weft_program *program, int n_runs)
{
    weft_traffic traffic[16];
    const int n = weft_measured_traffic(program, t->rank, traffic, 16);
    const weft_traced_program *own = &t->programs[0];
    int64_t n_sent = 0, n_exchanges = 0, n_trips[TRIPS] = {0};
    for (int i = 0; i < n; i++)
        n_sent += traffic[i].count;
    for (int64_t i = 0; i < t->n_events; i++) {
        const weft_traced_event *e = &t->events[i];
        if (e->program != 0 || e->kind != WEFT_TRACED_STEP) continue;
        const weft_traced_step *step = &own->steps[e->step];
        n_exchanges += step->axes != 0;
        if (step->kind == WEFT_STEP_END && CHECK(e->trip < TRIPS)) n_trips[e->trip]++;
        if (step->axes != 0) CHECK(step->sent_bytes > 0 && strstr(step->place, "trace_test.c"));
    }
    CHECK(n_exchanges >= (int64_t)TRIPS * n_runs);
    CHECK_EQ_INT(n_exchanges, n_runs * n_sent);
    for (int i = 0; i < TRIPS; i++)
        CHECK_EQ_INT(n_trips[i], n_runs);
}

static void test_every_step_of_every_run_is_there(void)
{
    job j = open_job();
    run(j.program, 2); /* not traced */
    weft_trace *trace = begin(&j, 3);
    CHECK(strcmp(weft_trace_note(trace), "") == 0);
    run(j.program, 2);
    run(j.looks, 1);
    run(j.program, 1);
    end(&trace);
    run(j.program, 1); /* nor this */
    for (int r = 0; r < weft_mesh_n_local(j.mesh); r++) {
        const int rank = weft_mesh_first_local(j.mesh) + r;
        weft_traced *t = read_rank(rank);
        weft_usage usage, look;
        if (t == NULL) continue;
        weft_measured_usage(j.program, rank, &usage);
        weft_measured_usage(j.looks, rank, &look);
        CHECK(t->rank == rank && t->is_sealed && t->n_dropped == 0 && t->n_programs == 2);
        CHECK_EQ_INT(t->n_ranks, weft_mesh_n_ranks(j.mesh));
        CHECK(strcmp(t->mesh, weft_mesh_text(j.mesh)) == 0);
        CHECK(strcmp(t->programs[0].name, "train") == 0 &&
              strcmp(t->programs[1].name, "look") == 0);
        CHECK_EQ_INT(count(t, WEFT_TRACED_RUN, 0), 3);
        CHECK_EQ_INT(count(t, WEFT_TRACED_RUN, 1), 1);
        CHECK_EQ_INT(count(t, WEFT_TRACED_STEP, 0), 3 * usage.n_steps);
        CHECK_EQ_INT(count(t, WEFT_TRACED_STEP, 1), look.n_steps);
        CHECK_EQ_INT(t->events[0].step, 3); /* the number of the run */
        check_order(t);
        check_trips(t, j.program, 3);
        weft_traced_close(&t);
    }
    close_job(&j);
}

static void test_bytes_of_the_arena_are_the_plans(void)
{
    job j = open_job();
    weft_trace *trace = begin(&j, 1);
    run(j.program, 1);
    end(&trace);
    const int rank = weft_mesh_first_local(j.mesh);
    weft_traced *t = read_rank(rank);
    weft_usage usage;
    weft_error error = {0};
    int64_t most = 0, peak = 0;
    CHECK_OK(weft_plan_usage(j.program, rank, &usage, &error), error);
    for (int s = 0; t && s < t->programs[0].n_steps; s++)
        if (t->programs[0].steps[s].arena_bytes > most) most = t->programs[0].steps[s].arena_bytes;
    for (int phase = 0; phase < 3; phase++)
        if (usage.peak_bytes[phase] > peak) peak = usage.peak_bytes[phase];
    CHECK_EQ_INT(most, peak);
    weft_traced_close(&t);
    close_job(&j);
}

static void test_a_full_ring_counts_what_it_drops(void)
{
    job j = open_job();
    weft_trace *trace = begin(&j, 1);
    run(j.program, 5);
    end(&trace);
    weft_traced *t = read_rank(weft_mesh_first_local(j.mesh));
    weft_trace *whole = begin(&j, 5);
    run(j.program, 5);
    end(&whole);
    weft_traced *all = read_rank(weft_mesh_first_local(j.mesh));
    CHECK(t->n_dropped > 0 && all->n_dropped == 0);
    CHECK_EQ_INT(t->n_events + t->n_dropped, all->n_events);
    for (int64_t i = 0; i < t->n_events; i++)
        CHECK(t->events[i].step == all->events[i].step || t->events[i].kind == WEFT_TRACED_RUN);
    weft_traced_close(&t);
    weft_traced_close(&all);
    close_job(&j);
}

/* ---- what may be traced ------------------------------------------------------------------------ */

static void test_wrong_calls_are_refused(void)
{
    job j = open_job();
    weft_error error = {0};
    weft_trace *trace = begin(&j, 1), *second = NULL;
    const weft_trace_part part = {j.program, "train", 1}, twice[] = {part, part};
    CHECK_EQ_INT(weft_trace_begin(folder, &part, 1, &second, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "train is traced already; weft_trace_end that trace first");
    weft_program *kept = j.looks;
    CHECK_EQ_INT(weft_program_destroy(&j.looks), WEFT_USAGE);
    CHECK(j.looks == kept);
    end(&trace);
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_trace_begin(folder, twice, 2, &second, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "are one program");
    weft_error_clear(&error);
    const weft_trace_part none = {j.program, "train", 0};
    CHECK_EQ_INT(weft_trace_begin(folder, &none, 1, &second, &error), WEFT_USAGE);
    CHECK(second == NULL);
    close_job(&j);
}

/* A disk that has no room for a file of this size: the run goes on. */
static void test_a_full_disk_is_a_sentence(void)
{
    job j = open_job();
    struct rlimit before, small;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    weft_trace *trace = begin(&j, 3);
    CHECK_TEXT(weft_trace_note(trace), "cannot keep a trace in ");
    CHECK_TEXT(weft_trace_note(trace), "File too large; this rank is not traced");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    run(j.program, 2);
    end(&trace);
    close_job(&j);
}

/* ---- files ------------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *all = NULL;
    *bytes = 0;
    if (!CHECK(file != NULL)) return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    all = malloc(*bytes + 1);
    CHECK(all != NULL && fread(all, 1, *bytes, file) == *bytes);
    fclose(file);
    return all;
}

static void write_file(const char *path, const char *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0);
}

static void check_refused(const char *path)
{
    weft_traced *t = NULL;
    weft_error error = {0};
    CHECK_EQ_INT(weft_traced_open(path, &t, &error), WEFT_CORRUPT);
    CHECK(t == NULL);
    CHECK_TEXT(error.message, " is not a trace of this version of Weft (");
}

/* Cut anywhere, or any byte another: a sealed file is refused. */
static void test_damaged_files_are_refused(void)
{
    char path[MAX_PATH], other[MAX_PATH + 8];
    size_t bytes;
    job j = open_job();
    weft_trace *trace = begin(&j, 1);
    run(j.program, 1);
    end(&trace);
    weft_ring_path(folder, weft_mesh_first_local(j.mesh), path, sizeof path);
    snprintf(other, sizeof other, "%s.other", path);
    char *all = read_file(path, &bytes);
    const size_t by = bytes / 200 + 1;
    for (size_t at = 0; at < bytes; at += by) {
        write_file(other, all, at);
        check_refused(other);
        all[at] ^= 0x20;
        write_file(other, all, bytes);
        check_refused(other);
        all[at] ^= 0x20;
    }
    unlink(other);
    free(all);
    close_job(&j);
}

/* Without its seal, as a killed job leaves it, a file is read; numbers that lead out of it are refused, and never used. */
static void test_files_of_killed_jobs_are_read_and_not_trusted(void)
{
    char path[MAX_PATH];
    size_t bytes;
    job j = open_job();
    weft_trace *trace = begin(&j, 1);
    run(j.program, 1);
    weft_trace_destroy(&trace);
    CHECK(trace == NULL);
    const int rank = weft_mesh_first_local(j.mesh);
    weft_traced *t = read_rank(rank);
    CHECK(t != NULL && !t->is_sealed && t->clocks[1].at == 0 && count(t, WEFT_TRACED_RUN, 0) == 1);
    weft_traced_close(&t);
    weft_ring_path(folder, rank, path, sizeof path);
    char *all = read_file(path, &bytes);
    for (size_t at = 0; at + 4 <= bytes; at += 4) { /* words of the file, each as large as can be */
        char kept[4];
        weft_error error = {0};
        memcpy(kept, all + at, 4);
        memset(all + at, 0xff, 4);
        if (at % 256 < 16 || at < sizeof(weft_ring_head)) {
            write_file(path, all, bytes);
            if (weft_traced_open(path, &t, &error) == WEFT_OK)
                CHECK(t->n_events * (int64_t)sizeof *t->events <= (int64_t)bytes);
            else
                CHECK(t == NULL && error.message[0] != '\0');
            weft_traced_close(&t);
        }
        memcpy(all + at, kept, 4);
    }
    free(all);
    close_job(&j);
}

/* ---- clocks ------------------------------------------------------------------------------------ */

/* Rank 0's clock is 1000000 ns ahead; a message takes 100 to 700 ns, another time each way. */
static void test_offsets_are_within_their_error(void)
{
    int64_t own[WEFT_CLOCK_ROUNDS + 2], zero[WEFT_CLOCK_ROUNDS + 1];
    uint32_t draw = 7;
    int64_t at = 5000, before = 0;
    for (int k = 0; k <= WEFT_CLOCK_ROUNDS; k++) {
        int64_t takes[2];
        for (int i = 0; i < 2; i++) {
            draw = draw * 1664525u + 1013904223u;
            takes[i] = 100 + draw % 600;
        }
        own[k] = at;
        zero[k] = before + 1000000; /* when rank 0 had what came before */
        before = at + takes[0];     /* this rank's has come to rank 0 */
        at = before + takes[1];     /* and rank 0's has come here     */
    }
    own[WEFT_CLOCK_ROUNDS + 1] = at;
    const weft_traced_clock c = weft_clock_between(own, zero, WEFT_CLOCK_ROUNDS);
    CHECK(c.error > 0 && c.error < 800);
    CHECK(llabs(c.offset - 1000000) <= c.error);
}

static void test_time_goes_from_offset_to_offset(void)
{
    weft_traced t = {.clocks = {{1000, 50, 1}, {3000, 250, 1}}};
    CHECK_EQ_INT(weft_traced_time(&t, 1000), 1050);
    CHECK_EQ_INT(weft_traced_time(&t, 2000), 2150);
    CHECK_EQ_INT(weft_traced_time(&t, 3000), 3250);
    t.clocks[1].at = 0; /* there is one comparison alone */
    CHECK_EQ_INT(weft_traced_time(&t, 2000), 2050);
    CHECK_EQ_INT(weft_traced_time(NULL, 2000), 0);
}

int main(void)
{
    weft_error error = {0};
    weft_lanes_choose(1);
    if (weft_world_open(&world, &error) != WEFT_OK) return 1;
    snprintf(folder, sizeof folder, "/tmp/weft-trace-test-%d",
             world.n_processes > 1 ? getppid() : getpid());
    (void)mkdir(folder, 0700);
    RUN(test_every_step_of_every_run_is_there);
    RUN(test_bytes_of_the_arena_are_the_plans);
    RUN(test_a_full_ring_counts_what_it_drops);
    RUN(test_wrong_calls_are_refused);
    RUN(test_a_full_disk_is_a_sentence);
    RUN(test_damaged_files_are_refused);
    RUN(test_files_of_killed_jobs_are_read_and_not_trusted);
    RUN(test_offsets_are_within_their_error);
    RUN(test_time_goes_from_offset_to_offset);
    (void)!weft_world_agree(&error);
    if (weft_world_is_root()) {
        char line[128];
        snprintf(line, sizeof line, "rm -rf %s", folder);
        CHECK_EQ_INT(system(line), 0);
    }
    weft_world_close();
    return weft_test_report();
}
