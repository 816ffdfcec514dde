/* kineto: the traced steps of a rank as JSON in the form of Kineto: chrome's trace events, with what its readers look for.
 *
 * HolisticTraceAnalysis tells exchanges from computing by names: those of NCCL's kernels. So an exchange has "ncclKernel_" before
 * its name, whatever engine it went by. The stream is the queue: 7 computes, and 8 and more exchange, one for each set of axes. A
 * run is a step of the profiler.
 */
#include "kineto.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../whole_file.h"

enum { COMPUTE_STREAM = 7, MAX_PATH = 4096 };

typedef struct writing {
    const weft_traced *traced;
    FILE *file;
    int64_t
        *put; /* [n_programs * n_steps] when an exchange that goes on was started; 0: it does not */
    int most_steps;
    bool is_begun; /* the list of events */
    long long n_kernels;
} writing;

/* A text with quotes, as JSON has it; "" where memory is short, which the caller's file then tells. */
static void put_text(FILE *file, const char *before, const char *text)
{
    char whole[400];
    snprintf(whole, sizeof whole, "%s%s", before, text);
    json_t *value = json_string(whole);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    fputs(quoted ? quoted : "\"\"", file);
    free(quoted);
    json_decref(value);
}

/* The begin of an event, up to its arguments. Times are us; the thread of steps on the host is 0. */
static void put_head(writing *w, const char *category, const char *before, const char *name,
                     int64_t begin, int64_t end, int thread)
{
    const int64_t from = weft_traced_time(w->traced, begin), to = weft_traced_time(w->traced, end);
    fprintf(w->file, "%s\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", w->is_begun ? "," : "",
            category);
    w->is_begun = true;
    put_text(w->file, before, name);
    fprintf(w->file, ", \"pid\": %d, \"tid\": %d, \"ts\": %lld.%03lld, \"dur\": %lld.%03lld",
            w->traced->rank, thread, (long long)(from / 1000), (long long)(from % 1000),
            (long long)((to - from) / 1000), (long long)((to - from) % 1000));
}

/* Readers leave out what no call of the host's has launched; so there is one for each, of no length. */
static void put_kernel(writing *w, const char *before, const char *name, int64_t begin, int64_t end,
                       int stream)
{
    if (end < begin) return; /* its clock went back */
    const long long correlation = ++w->n_kernels;
    put_head(w, "cuda_runtime", "", "cudaLaunchKernel", begin, begin, 0);
    fprintf(w->file, ", \"args\": {\"correlation\": %lld}}", correlation);
    put_head(w, "kernel", before, name, begin, end, stream);
    fprintf(w->file, ", \"args\": {\"device\": %d, \"stream\": %d, \"correlation\": %lld}}",
            w->traced->rank, stream, correlation);
}

static void put_exchange(writing *w, const weft_traced_step *step, int64_t begin, int64_t end)
{
    put_kernel(w, "ncclKernel_", step->name, begin, end, COMPUTE_STREAM + (int)step->axes);
}

/* An exchange ends when all had arrived: in its own step, or in the one that finishes it. */
static void put_step(writing *w, const weft_traced_event *e)
{
    const weft_traced_step *step = &w->traced->programs[e->program].steps[e->step];
    int64_t *put = &w->put[e->program * w->most_steps + (int)e->step];
    const int64_t arrived = e->arrived > 0 ? e->arrived : e->end;
    if (e->kind == WEFT_TRACED_FINISH) {
        if (*put > 0) put_exchange(w, step, *put, arrived);
        *put = 0;
    } else if (step->axes == 0) {
        put_kernel(w, "", step->name, e->begin, e->end, COMPUTE_STREAM);
    } else if (e->arrived > 0) {
        put_exchange(w, step, e->begin, arrived);
    } else {
        *put = e->begin;
    }
}

static void put_run(writing *w, const weft_traced_event *e)
{
    char name[40];
    snprintf(name, sizeof name, "ProfilerStep#%u", e->step);
    if (e->end < e->begin) return;
    put_head(w, "user_annotation", "", name, e->begin, e->end, 0);
    fprintf(w->file, ", \"args\": {}}");
}

static void put_all(writing *w)
{
    const weft_traced *t = w->traced;
    fprintf(w->file,
            "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": %d, \"world_size\": %d, "
            "\"backend\": \"weft\"}, \"displayTimeUnit\": \"ms\", \"traceEvents\": [",
            t->rank, t->n_ranks);
    for (int64_t i = 0; i < t->n_events; i++) {
        if (t->events[i].kind == WEFT_TRACED_RUN)
            put_run(w, &t->events[i]);
        else
            put_step(w, &t->events[i]);
    }
    fprintf(w->file, "\n]}\n");
}

static weft_status write_rank(writing *w, const char *path, weft_error *error)
{
    app_whole_file file;
    WEFT_TRY(app_whole_open(&file, path, error));
    w->file = file.stream;
    put_all(w);
    return app_whole_close(&file, true, error);
}

weft_status kineto_write(const weft_traced *traced, const char *folder, weft_error *error)
{
    writing w = {.traced = traced};
    char path[MAX_PATH];
    for (int p = 0; p < traced->n_programs; p++)
        if (traced->programs[p].n_steps > w.most_steps) w.most_steps = traced->programs[p].n_steps;
    const size_t n = (size_t)traced->n_programs * (size_t)w.most_steps + 1;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return weft_fail(error, WEFT_IO, "cannot make %.300s: %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%.4000s/rank_%d.json", folder, traced->rank);
    w.put = calloc(n, sizeof *w.put);
    const weft_status status =
        w.put ? write_rank(&w, path, error) : weft_fail_memory(error, n * sizeof *w.put);
    free(w.put);
    return status;
}
