/* trace: `weft trace RUN`: the steps that a run has traced, of all ranks, as one file for Perfetto. */
#include "trace.h"

#include <string.h>

#include "../../whole_file.h"
#include "kineto.h"
#include "merge.h"
#include "predicted.h"
#include "rings.h"

enum { MAX_PATH = 4096, MOST_BYTES = 50000000 };

static const option options[] = {
    {"out", OPTION_TEXT, "", "FILE", "Options",
     "where to; without it, trace.pftrace in RUN (also -o)"},
    {"ranks", OPTION_COUNT, "0", "N", "Options",
     "the first N ranks alone; 0: as many as 50 MB take"},
    {"kineto", OPTION_TEXT, "", "DIR", "Options",
     "a file for each rank there too, in the form of PyTorch's profiler: HolisticTraceAnalysis"},
};
const option_table trace_table = {
    .program = "weft trace",
    .usage = "weft trace RUN [-o FILE]   a file for Perfetto (ui.perfetto.dev) of the steps\n"
             "                           that RUN has traced: it was trained with --trace N..M\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "the traced steps of a run, as a file for Perfetto",
};

/* ---- the files of the ranks -------------------------------------------------------------------- */

/* Ranks are put together as long as the file stays one that a browser opens. */
static weft_status merge_rings(rings *r, merge *m, perfetto *out, size_t most, weft_error *error)
{
    int64_t largest = 0;
    for (size_t i = 0; i < r->n && (most == 0 || i < most); i++) {
        const int64_t before = perfetto_bytes(out);
        if (i > 0 && before + largest > MOST_BYTES) return WEFT_OK;
        WEFT_TRY(rings_open_next(r, error));
        WEFT_TRY(merge_add(m, r->traced[i], error));
        if (i == 0) predicted_add(out, r->traced[i]);
        if (perfetto_bytes(out) - before > largest) largest = perfetto_bytes(out) - before;
    }
    return WEFT_OK;
}

/* ---- the file ---------------------------------------------------------------------------------- */

static weft_status write_file(perfetto *out, const char *path, weft_error *error)
{
    app_whole_file file;
    weft_error own = WEFT_NO_ERROR;
    WEFT_TRY(app_whole_open(&file, path, error));
    const weft_status status = perfetto_write(out, file.stream, &own);
    WEFT_TRY(app_whole_close(&file, status == WEFT_OK, error));
    if (status == WEFT_OK) return WEFT_OK;
    return weft_fail(error, status, "cannot write %.300s: %.150s; name another with -o FILE", path,
                     own.message);
}

/* Of the ranks that are in the other file. */
static weft_status write_kineto(const rings *r, const char *folder, weft_error *error)
{
    for (size_t i = 0; i < r->n_open && *folder; i++)
        WEFT_TRY(kineto_write(r->traced[i], folder, error));
    return WEFT_OK;
}

static void say(const rings *r, const char *path, int64_t slices, bool is_asked,
                const merge_counts *c)
{
    printf("%s: %lld run%s of %d rank%s, %lld slices; open it at ui.perfetto.dev\n", path,
           (long long)c->n_runs, c->n_runs == 1 ? "" : "s", c->n_ranks, c->n_ranks == 1 ? "" : "s",
           (long long)slices);
    const int n_ranks = r->traced[0]->n_ranks, n = (int)r->n;
    if (n < n_ranks) printf("%d of %d ranks have no trace\n", n_ranks - n, n_ranks);
    if (r->n_open < r->n)
        printf("ranks from %d on are left out: %s\n", r->numbers[r->n_open],
               is_asked ? "--ranks" : "with them the trace would be larger than 50 MB");
    if (c->n_dropped > 0)
        printf("%lld events are missing: the rings were full\n", (long long)c->n_dropped);
    if (c->n_wrong > 0)
        printf("%lld events are left out: their clock went back\n", (long long)c->n_wrong);
    if (c->n_unended > 0) printf("the traces of %d ranks end early: their job did\n", c->n_unended);
    if (c->clock_error > 0)
        printf("clocks of hosts are compared: times are right to %.3g us\n",
               1e-3 * (double)c->clock_error);
}

static weft_status make(const char *run, const settings *s, perfetto *p, merge *m, rings *r,
                        weft_error *error)
{
    const char *out = settings_text(s, "out");
    const size_t most = (size_t)settings_count(s, "ranks");
    char path[MAX_PATH];
    merge_counts counts;
    snprintf(path, sizeof path, "%.4000s%s", *out ? out : run, *out ? "" : "/trace.pftrace");
    WEFT_TRY(rings_find(r, run, error));
    if (r->n == 0)
        return weft_fail(error, WEFT_USAGE,
                         "there is no trace in %.300s; train with --trace N..M first, which writes "
                         "down steps N to M",
                         run);
    WEFT_TRY(merge_rings(r, m, p, most, error));
    WEFT_TRY(merge_finish(m, &counts, error));
    WEFT_TRY(write_file(p, path, error));
    WEFT_TRY(write_kineto(r, settings_text(s, "kineto"), error));
    WEFT_TRY(predicted_print(r->traced[0], stdout, error));
    say(r, path, perfetto_slices(p), most > 0 && r->n_open == most, &counts);
    return fflush(stdout) == 0 ? WEFT_OK : weft_fail(error, WEFT_IO, "cannot write to stdout");
}

static weft_status trace_run(const char *run, const settings *s, weft_error *error)
{
    rings r = {.n = 0};
    perfetto *p = perfetto_create();
    merge *m = p ? merge_create(p) : NULL;
    const weft_status status =
        m ? make(run, s, p, m, &r, error) : weft_fail_memory(error, sizeof r);
    merge_destroy(&m);
    perfetto_destroy(&p);
    rings_close(&r);
    return status;
}

/* ---- the command line -------------------------------------------------------------------------- */

int trace_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    static char out[] = "--out";
    for (int i = 0; i < n; i++)
        if (strcmp(arguments[i], "-o") == 0) arguments[i] = out;
    const int n_paths = options_operands(&trace_table, n, arguments, &error);
    settings *s = error.status == WEFT_OK
                      ? settings_read(&trace_table, n - n_paths, arguments + n_paths, &error)
                      : NULL;
    if (s && n_paths == 1)
        (void)!trace_run(arguments[0], s, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE, "of which run? weft trace RUN, as given with --run");
    settings_destroy(&s);
    return app_leave(trace_table.program, APP_STARTING, &error);
}
