/* trace_part: what ranks have measured, from the files of their traces: of each step its usual time, of one run every bar, and of
 * all ranks where their time went.
 *
 * The median of several runs counts. Bars are those of the run of median length on rank 0.
 */
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../trace/whole_runs.h"

enum { RUNS = 31, RANKS = 64, SHOWN_RANKS = 8, NAME_BYTES = 300, TEXT_BYTES = 1200 };

/* Of one rank; times in ns. */
typedef struct measured {
    const weft_traced *traced;
    int program;
    int n_runs;
    double begin[RUNS], end[RUNS];       /* by rank 0's clock */
    double compute[RUNS], waiting[RUNS]; /* of runs: computing, and waiting for exchanges */
    double *total, *exposed;             /* [RUNS][n_steps]; of the first rank alone, else NULL */
} measured;

static const weft_traced_program *program_of(const measured *m)
{
    return &m->traced->programs[m->program];
}

/* The program that is trained; else the first. */
static int find_program(const weft_traced *traced)
{
    for (int p = 0; p < traced->n_programs; p++)
        if (strcmp(traced->programs[p].name, "train") == 0) return p;
    return 0;
}

/* ---- runs -------------------------------------------------------------------------------------- */

static void add_step(measured *m, int run, const weft_traced_event *e)
{
    const weft_traced_program *program = program_of(m);
    const bool exchanges = program->steps[e->step].axes != 0;
    const double took = (double)(e->end - e->begin);
    const int64_t arrived = exchanges && e->arrived > e->end ? e->arrived : e->end;
    const size_t at = (size_t)run * (size_t)program->n_steps + e->step;
    *(exchanges ? &m->waiting[run] : &m->compute[run]) += took;
    if (!m->total) return;
    if (e->kind == WEFT_TRACED_STEP) m->total[at] += (double)(arrived - e->begin);
    if (exchanges) m->exposed[at] += took;
}

/* Whole runs of the program, and what is in each. A run stands before its steps. */
static void read_runs(measured *m)
{
    const weft_traced *t = m->traced;
    whole_runs runs = {.program = m->program};
    for (int64_t i = 0; i < t->n_events; i++) {
        const weft_traced_event *e = &t->events[i];
        const bool is_step = whole_runs_has(&runs, e);
        if (is_step && runs.n <= RUNS) add_step(m, m->n_runs - 1, e);
        const bool begins = runs.n > m->n_runs && runs.n <= RUNS;
        if (!begins) continue;
        m->begin[m->n_runs] = (double)weft_traced_time(t, e->begin);
        m->end[m->n_runs++] = (double)weft_traced_time(t, e->end);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *numbers, int n)
{
    double sorted[RUNS];
    if (n == 0) return 0;
    memcpy(sorted, numbers, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

static double median_seconds(const measured *m)
{
    double seconds[RUNS];
    for (int run = 0; run < m->n_runs; run++)
        seconds[run] = m->end[run] - m->begin[run];
    return median(seconds, m->n_runs);
}

/* The run whose length is nearest to the median. */
static int usual_run(const measured *m)
{
    const double usual = median_seconds(m);
    int best = 0;
    for (int run = 1; run < m->n_runs; run++) {
        const double off = m->end[run] - m->begin[run] - usual;
        const double least = m->end[best] - m->begin[best] - usual;
        if ((off < 0 ? -off : off) < (least < 0 ? -least : least)) best = run;
    }
    return best;
}

/* ---- steps, where there is no plan ------------------------------------------------------------- */

/* "data+model", as a plan calls the queue of these axes. */
static void queue_of(const char *mesh, uint32_t axes, char *name, size_t room)
{
    size_t used = 0;
    snprintf(name, room, "compute");
    for (int a = 0; *mesh && axes >> a; a++) {
        const size_t length = strcspn(mesh, ":");
        if (axes >> a & 1 && used < room)
            used += (size_t)snprintf(name + used, room - used, "%s%.*s", used > 0 ? "+" : "",
                                     (int)(length < 100 ? length : 100), mesh);
        mesh += strcspn(mesh, ",");
        mesh += *mesh == ',';
    }
}

/* "A -> B" is where an exchange's tensor comes from and goes to. */
static json_int_t kind_of(report_data *data, const measured *m, const weft_traced_step *step)
{
    char queue[NAME_BYTES], from[TEXT_BYTES] = "";
    const char *arrow = strstr(step->spec, " -> ");
    queue_of(m->traced->mesh, step->axes, queue, sizeof queue);
    if (arrow) snprintf(from, sizeof from, "%.*s", (int)(arrow - step->spec), step->spec);
    return report_kind(data, &(report_step){.name = step->name,
                                            .place = step->place,
                                            .from = from,
                                            .spec = arrow ? arrow + strlen(" -> ") : step->spec,
                                            .reason = step->reason,
                                            .queue = queue,
                                            .bytes = (double)step->sent_bytes});
}

static bool is_predicted(const weft_traced_program *program)
{
    for (int s = 0; s < program->n_steps; s++)
        if (program->steps[s].predicted_end > 0) return true;
    return false;
}

typedef double (*step_number)(const weft_traced_step *step);

static double begin_of(const weft_traced_step *step)
{
    return (double)step->predicted_begin;
}

static double end_of(const weft_traced_step *step)
{
    return (double)step->predicted_end;
}

static double exposed_of(const weft_traced_step *step)
{
    return step->axes ? (double)step->predicted_total : 0;
}

static double arena_of(const weft_traced_step *step)
{
    return (double)step->arena_bytes;
}

static void add_column(report_data *data, const measured *m, double *numbers, const char *name,
                       step_number number, bool is_sum)
{
    for (size_t s = 0; s < data->n_steps; s++)
        numbers[s] = number(&program_of(m)->steps[s]);
    report_column(data, name, numbers, is_sum);
}

static weft_status add_steps(report_data *data, const measured *m, double *numbers,
                             weft_error *error)
{
    const weft_traced_program *program = program_of(m);
    const size_t n = (size_t)program->n_steps;
    for (size_t s = 0; s < n; s++) {
        numbers[s] = 0;
        for (int run = 0; run < m->n_runs; run++)
            numbers[s] += m->total[(size_t)run * n + s];
    }
    WEFT_TRY(report_choose(data, numbers, n, "measured seconds", error));
    for (size_t s = 0; s < n; s++)
        numbers[s] = data->is_shown[s] ? (double)kind_of(data, m, &program->steps[s]) : 0;
    report_column(data, "kind", numbers, false);
    if (!is_predicted(program)) return WEFT_OK;
    add_column(data, m, numbers, "begin", begin_of, true);
    add_column(data, m, numbers, "end", end_of, true);
    add_column(data, m, numbers, "exposed", exposed_of, false);
    return WEFT_OK;
}

/* ---- steps, measured --------------------------------------------------------------------------- */

static void add_medians(report_data *data, const measured *m, const double *times, double *numbers,
                        const char *name)
{
    for (size_t s = 0; s < data->n_steps; s++) {
        double of_runs[RUNS];
        for (int run = 0; run < m->n_runs; run++)
            of_runs[run] = times[(size_t)run * data->n_steps + s];
        numbers[s] = median(of_runs, m->n_runs);
    }
    report_column(data, name, numbers, false);
}

/* Whether the plan is that of the trace: the same mesh, and the same steps. */
static bool is_of_plan(report_data *data, const measured *m)
{
    const weft_traced_program *program = program_of(m);
    const json_t *steps = json_object_get(data->found->plan, "step_list");
    const char *mesh = json_string_value(json_object_get(data->found->plan, "mesh"));
    if (mesh && strcmp(mesh, m->traced->mesh) == 0 && data->n_steps == (size_t)program->n_steps) {
        int s = 0;
        while (s < program->n_steps) {
            const char *op =
                json_string_value(json_object_get(json_array_get(steps, (size_t)s), "op"));
            if (!op || strcmp(op, program->steps[s].op) != 0) break;
            s++;
        }
        if (s == program->n_steps) return true;
    }
    report_note(
        data,
        "the trace is of another plan, of %d steps on mesh %.100s: what it measured is left "
        "out; trace this one, or give its plan",
        program->n_steps, m->traced->mesh);
    return false;
}

static weft_status add_measured(report_data *data, const measured *m, weft_error *error)
{
    const size_t n = (size_t)program_of(m)->n_steps;
    double *numbers = calloc(n + 1, sizeof *numbers);
    weft_status status = numbers ? WEFT_OK : weft_fail_memory(error, n * sizeof *numbers);
    if (status == WEFT_OK && !data->rows) status = add_steps(data, m, numbers, error);
    if (status == WEFT_OK) {
        add_medians(data, m, m->total, numbers, "measured");
        add_medians(data, m, m->exposed, numbers, "measured_exposed");
        if (!json_object_get(data->rows, "alive"))
            add_column(data, m, numbers, "alive", arena_of, true);
    }
    free(numbers);
    return status;
}

/* ---- bars -------------------------------------------------------------------------------------- */

typedef struct bars {
    json_t *row, *begin, *length, *waits; /* waits: 1 where it is waited for an exchange */
    json_int_t before;
    size_t n, n_more;
    double queue_end[1 << WEFT_MAX_AXES]; /* bars of a queue do not overlap */
} bars;

static void add_bar(bars *b, json_int_t row, double begin, double end, bool waits)
{
    const json_int_t at = (json_int_t)begin;
    json_array_append_new(b->row, json_integer(row));
    json_array_append_new(b->begin, json_integer(at - b->before));
    json_array_append_new(b->length, json_integer((json_int_t)end - at));
    json_array_append_new(b->waits, json_integer(waits));
    b->before = at;
    b->n++;
}

/* An exchange goes on from its start, or the end of the one before on its queue, until all of it is there. */
static void add_event(report_data *data, const measured *m, const json_int_t *rows, bars *b,
                      const weft_traced_event *e, double zero)
{
    const weft_traced_step *step = &program_of(m)->steps[e->step];
    double begin = (double)weft_traced_time(m->traced, e->begin) - zero;
    double end = (double)weft_traced_time(m->traced, e->end) - zero;
    const bool waits = e->kind == WEFT_TRACED_FINISH;
    if (step->axes && !waits) {
        const double arrived = (double)weft_traced_time(m->traced, e->arrived) - zero;
        double *last = &b->queue_end[step->axes & ((1u << WEFT_MAX_AXES) - 1)];
        if (e->arrived > 0 && arrived > end) end = arrived;
        if (begin < *last) begin = *last;
        if (end < begin) end = begin;
        *last = end;
    }
    if (!data->is_shown[e->step]) return;
    if (b->n < data->limits.events)
        add_bar(b, rows[e->step], begin, end, waits);
    else
        b->n_more++;
}

static void add_events(report_data *data, const measured *m, int run, const json_int_t *rows,
                       bars *b, double zero)
{
    const weft_traced *t = m->traced;
    whole_runs runs = {.program = m->program};
    for (int64_t i = 0; i < t->n_events; i++)
        if (whole_runs_has(&runs, &t->events[i]) && runs.n - 1 == run)
            add_event(data, m, rows, b, &t->events[i], zero);
}

/* NULL: this rank has no such run, or its bars have no room. */
static json_t *bars_json(report_data *data, const measured *m, int run, const json_int_t *rows,
                         double zero, size_t *n_more)
{
    bars *b = calloc(1, sizeof *b);
    json_t *json = NULL;
    if (!b) return NULL;
    *b = (bars){json_array(), json_array(), json_array(), json_array(), .n = 0};
    if (run < m->n_runs) add_events(data, m, run, rows, b, zero);
    *n_more = b->n_more;
    if (b->n > 0)
        json = json_pack("{s:i, s:i, s:O, s:O, s:O, s:O}", "rank", m->traced->rank, "run", run,
                         "row", b->row, "begin", b->begin, "length", b->length, "waits", b->waits);
    json_decref(b->row);
    json_decref(b->begin);
    json_decref(b->length);
    json_decref(b->waits);
    free(b);
    return json;
}

/* The first rank, the slowest one, and then the others in order, as long as there is room. */
static void order_ranks(const measured *all, size_t n, size_t order[RANKS])
{
    size_t slowest = 0, k = 0;
    for (size_t i = 1; i < n; i++)
        if (median_seconds(&all[i]) > median_seconds(&all[slowest])) slowest = i;
    order[k++] = 0;
    if (slowest != 0) order[k++] = slowest;
    for (size_t i = 1; i < n; i++)
        if (i != slowest) order[k++] = i;
}

static weft_status add_bars(report_data *data, const measured *all, size_t n, json_t *shown,
                            weft_error *error)
{
    json_int_t *rows = calloc(data->n_steps + 1, sizeof *rows), row = 0;
    const size_t limit = data->limits.events;
    const int run = usual_run(&all[0]);
    size_t order[RANKS], n_more = 0;
    if (!rows) return weft_fail_memory(error, data->n_steps * sizeof *rows);
    for (size_t s = 0; s < data->n_steps; s++)
        if (data->is_shown[s]) rows[s] = row++;
    order_ranks(all, n, order);
    for (size_t i = 0; i < n && i < SHOWN_RANKS; i++) {
        size_t more = 0;
        json_t *json = bars_json(data, &all[order[i]], run, rows, all[0].begin[run], &more);
        const size_t used = json_array_size(json_object_get(json, "row"));
        if (i > 0 && more > 0) { /* a rank is whole, or is left out */
            json_decref(json);
            break;
        }
        if (i == 0) n_more = more;
        if (json) json_array_append_new(shown, json);
        data->limits.events -= used;
    }
    data->limits.events = limit;
    free(rows);
    if (n_more > 0)
        report_note(data, "the measured timeline is cut off: it lacks the last %zu bars of rank %d",
                    n_more, all[0].traced->rank);
    if (json_array_size(shown) < n)
        report_note(data, "the measured timeline is of %zu of %zu ranks: the first and the slowest",
                    json_array_size(shown), n);
    return WEFT_OK;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static json_t *rank_json(const measured *m)
{
    return json_pack("{s:i, s:i, s:f, s:f, s:f}", "rank", m->traced->rank, "runs", m->n_runs,
                     "seconds", 1e-9 * median_seconds(m), "compute",
                     1e-9 * median(m->compute, m->n_runs), "waiting",
                     1e-9 * median(m->waiting, m->n_runs));
}

/* The files of the ranks, as many as are read; the first damaged one ends it. */
static size_t open_ranks(report_data *data, measured all[RANKS])
{
    rings *r = &data->found->rings;
    size_t n = 0;
    weft_error error = {.rank = -1};
    while (r->n_open < r->n && r->n_open < RANKS) {
        if (rings_open_next(r, &error) != WEFT_OK) {
            report_note(data, "a trace is left out: %.400s", error.message);
            break;
        }
    }
    for (size_t i = 0; i < r->n_open; i++) {
        const weft_traced *t = r->traced[i];
        if (t->rank != r->numbers[i] || t->job != r->traced[0]->job || t->n_programs == 0) continue;
        all[n] = (measured){.traced = t, .program = find_program(t)};
        if (program_of(&all[n])->n_steps == program_of(&all[0])->n_steps) n++;
    }
    if (n < r->n) report_note(data, "of %zu ranks with a trace, %zu are looked at", r->n, n);
    return n;
}

static weft_status measure(measured *all, size_t n, weft_error *error)
{
    const size_t cells = (size_t)RUNS * ((size_t)program_of(&all[0])->n_steps + 1);
    all[0].total = calloc(cells, sizeof *all[0].total);
    all[0].exposed = calloc(cells, sizeof *all[0].exposed);
    if (!all[0].total || !all[0].exposed) return weft_fail_memory(error, cells * sizeof(double));
    for (size_t i = 0; i < n; i++)
        read_runs(&all[i]);
    return WEFT_OK;
}

static weft_status add_all(report_data *data, measured *all, size_t n, weft_error *error)
{
    json_t *ranks = json_array(), *shown = json_array();
    WEFT_TRY(measure(all, n, error));
    if (all[0].n_runs == 0) {
        report_note(data, "the trace has no whole run yet");
    } else if (!data->rows || is_of_plan(data, &all[0])) {
        WEFT_TRY(add_measured(data, &all[0], error));
        for (size_t i = 0; i < n; i++)
            json_array_append_new(ranks, rank_json(&all[i]));
        WEFT_TRY(add_bars(data, all, n, shown, error));
        json_object_set_new(data->root, "measured",
                            json_pack("{s:o, s:i, s:f, s:i, s:O, s:O}", "mesh",
                                      report_short_text(all[0].traced->mesh), "of_ranks",
                                      all[0].traced->n_ranks, "seconds",
                                      1e-9 * median_seconds(&all[0]), "runs", all[0].n_runs,
                                      "ranks", ranks, "shown", shown));
    }
    json_decref(ranks);
    json_decref(shown);
    return WEFT_OK;
}

/* An older trace stays in the folder until another one is made. */
static bool is_of_run(report_data *data, const measured *m)
{
    const char *mesh = json_string_value(json_object_get(data->found->run, "mesh"));
    if (!mesh || strcmp(mesh, m->traced->mesh) == 0) return true;
    report_note(data,
                "the trace is of mesh %.100s, and the run is on mesh %.100s: what it measured is "
                "left out; train with --trace N..M again",
                m->traced->mesh, mesh);
    return false;
}

weft_status report_trace_part(report_data *data, weft_error *error)
{
    measured *all = calloc(RANKS, sizeof *all);
    weft_status status = all ? WEFT_OK : weft_fail_memory(error, RANKS * sizeof *all);
    const size_t n = status == WEFT_OK ? open_ranks(data, all) : 0;
    if (n > 0 && is_of_run(data, &all[0])) status = add_all(data, all, n, error);
    if (all) {
        free(all[0].total);
        free(all[0].exposed);
    }
    free(all);
    return status;
}
