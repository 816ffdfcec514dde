/* frame: what of a running job is shown at one moment. */
#include "frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../json.h"

enum { KEPT = 9, HEAD_LINES = 4 }; /* looks: two seconds at four a second */

/* What grows, of one rank. */
typedef struct grown {
    int64_t run;
    double waited, input, begun;
} grown;

/* A rank, or several: then the worst of each. */
typedef struct row {
    int first, last; /* ranks */
    bool is_gone;
    int n_waiters, awaits;
    int64_t run;              /* the least */
    double step_seconds;      /* NaN: not known */
    double exposed, input;    /* shares; NaN: not known */
    double memory;            /* bytes; 0: not known, or another's of the same process */
    const weft_live_rank *at; /* whose doing is told */
} row;

struct frame {
    weft_live *live;
    const char *run;
    int n, n_looks; /* ranks; looks so far */
    double times[KEPT];
    grown *grown; /* [KEPT * n] */
    row *rows;    /* [n] */
};

frame *frame_create(weft_live *live, const char *run)
{
    frame *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    *f = (frame){.live = live, .run = run, .n = weft_live_n_ranks(live)};
    f->grown = calloc((size_t)f->n * KEPT + 1, sizeof *f->grown);
    f->rows = calloc((size_t)f->n + 1, sizeof *f->rows);
    if (!f->grown || !f->rows) frame_destroy(&f);
    return f;
}

void frame_destroy(frame **f)
{
    if (!*f) return;
    free((*f)->grown);
    free((*f)->rows);
    free(*f);
    *f = NULL;
}

void frame_look(frame *f)
{
    const int at = f->n_looks++ % KEPT;
    f->times[at] = weft_live_look(f->live);
    for (int i = 0; i < f->n; i++) {
        const weft_live_rank *r = weft_live_rank_at(f->live, i);
        /* a rank that has not run yet has begun nothing, and not in 1970 */
        f->grown[at * f->n + i] =
            (grown){r->run, r->waited, r->input, r->begun > 0 ? r->begun : NAN};
    }
}

static bool is_there(const weft_live_rank *r)
{
    return r->is_running && !r->has_left;
}

bool frame_is_over(const frame *f)
{
    for (int i = 0; i < f->n; i++)
        if (is_there(weft_live_rank_at(f->live, i))) return false;
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static double share_of(double part, double whole)
{
    return whole > 0 ? fmax(0, fmin(1, part / whole)) : NAN;
}

/* Since the oldest look; where there is one alone, since the job began. */
static row row_of(const frame *f, int i)
{
    const weft_live_rank *r = weft_live_rank_at(f->live, i);
    const int now = (f->n_looks - 1) % KEPT, old = f->n_looks > KEPT ? f->n_looks % KEPT : 0;
    const grown *last = &f->grown[now * f->n + i], *first = &f->grown[old * f->n + i];
    const grown none = {.begun = NAN};
    const bool is_alone = f->n_looks == 1;
    if (is_alone) first = &none;
    const double whole = f->times[now] - (is_alone ? r->opened : f->times[old]);
    const double runs = (double)(last->run - first->run), took = last->begun - first->begun;
    return (row){.first = r->rank,
                 .last = r->rank,
                 .is_gone = !is_there(r),
                 .n_waiters = r->n_waiters,
                 .awaits = r->awaits,
                 .run = r->run,
                 .step_seconds = runs > 0 && took > 0 ? took / runs : NAN,
                 .exposed = share_of(last->waited - first->waited, whole),
                 .input = share_of(last->input - first->input, whole),
                 .memory = i == 0 || weft_live_rank_at(f->live, i - 1)->pid != r->pid
                               ? (double)r->memory
                               : 0,
                 .at = r};
}

/* Worst first: those that are gone, those that others wait for, those that wait most. */
static int worse(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->is_gone != y->is_gone) return x->is_gone ? -1 : 1;
    if (x->n_waiters != y->n_waiters) return x->n_waiters > y->n_waiters ? -1 : 1;
    const double p = isnan(x->exposed) ? -1 : round(20 * x->exposed), /* so that lines do not hop */
        q = isnan(y->exposed) ? -1 : round(20 * y->exposed);
    if (p != q) return p > q ? -1 : 1;
    return x->first - y->first;
}

static void fold(row *to, const row *one)
{
    const bool is_worse = worse(one, to) < 0;
    const row before = *to;
    if (is_worse) *to = *one;
    to->first = before.first < one->first ? before.first : one->first;
    to->last = before.last > one->last ? before.last : one->last;
    to->is_gone = before.is_gone || one->is_gone;
    to->run = before.run < one->run ? before.run : one->run;
    to->step_seconds = fmax(before.step_seconds, one->step_seconds);
    to->exposed = fmax(before.exposed, one->exposed);
    to->input = fmax(before.input, one->input);
    to->memory = before.memory + one->memory;
}

/* Ranks that follow one another are one row where there are more than so many. Returns how many rows there are. */
static int make_rows(frame *f, int most)
{
    const int each = most > 0 ? (f->n + most - 1) / most : f->n;
    int n = 0;
    for (int i = 0; i < f->n; i++) {
        const row one = row_of(f, i);
        if (i % each == 0)
            f->rows[n++] = one;
        else
            fold(&f->rows[n - 1], &one);
    }
    qsort(f->rows, (size_t)n, sizeof *f->rows, worse);
    return n;
}

/* ---- the job ---------------------------------------------------------------------------------- */

/* The last line of metrics.jsonl that is whole; NULL: there is none. */
static json_t *last_metrics(const char *run)
{
    char path[4200], text[4096];
    snprintf(path, sizeof path, "%.4100s/metrics.jsonl", run);
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    const long room = (long)sizeof text - 1;
    if (fseek(file, -room, SEEK_END) != 0) rewind(file);
    text[fread(text, 1, (size_t)room, file)] = '\0';
    fclose(file);
    char *end = strrchr(text, '\n');
    if (!end) return NULL;
    *end = '\0';
    char *line = strrchr(text, '\n');
    return json_loads(line ? line + 1 : text, 0, NULL);
}

/* The slowest rank's step, and what all do in it. */
typedef struct job {
    int64_t run, last, saved, items;
    double step_seconds;
    const char *unit, *host;
    int n_gone, n_elsewhere;
    double memory;
} job;

static job job_of(const frame *f)
{
    const weft_live_rank *root = weft_live_rank_at(f->live, 0);
    job j = {.run = INT64_MAX,
             .last = root->last,
             .saved = root->saved,
             .items = root->items,
             .step_seconds = NAN,
             .unit = root->unit,
             .host = root->host};
    for (int i = 0; i < f->n; i++) {
        const row r = row_of(f, i);
        j.run = r.run < j.run ? r.run : j.run;
        j.step_seconds = fmax(j.step_seconds, r.step_seconds);
        j.n_gone += r.is_gone;
        j.n_elsewhere += !r.at->is_here;
        j.memory += r.memory;
    }
    return j;
}

/* ---- as text ---------------------------------------------------------------------------------- */

/* A line, cut to the columns: a letter of several bytes is one. */
static void put_line(const char *text, int columns, FILE *out)
{
    int column = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        column += (*at & 0xc0) != 0x80;
        if (column > columns) break;
        fputc(*at, out);
    }
    fputc('\n', out);
}

static void share_text(double share, char text[16])
{
    if (isnan(share))
        snprintf(text, 16, "-");
    else
        snprintf(text, 16, "%.1f %%", 100 * share);
}

static void bytes_text(double bytes, char text[16])
{
    if (bytes <= 0)
        snprintf(text, 16, "-");
    else if (bytes < 10240.0 * 1048576)
        snprintf(text, 16, "%.0f MiB", bytes / 1048576);
    else
        snprintf(text, 16, "%.0f GiB", bytes / 1073741824);
}

static void seconds_text(double seconds, char text[16])
{
    if (isnan(seconds))
        snprintf(text, 16, "-");
    else if (seconds < 1)
        snprintf(text, 16, "%.1f ms", 1e3 * seconds);
    else
        snprintf(text, 16, "%.2f s", seconds);
}

static void print_run(const frame *f, const job *j, int columns, FILE *out)
{
    char text[1024], clock[16] = "", of[32] = "";
    const time_t now = (time_t)f->times[(f->n_looks - 1) % KEPT];
    struct tm parts;
    if (localtime_r(&now, &parts)) strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    if (j->last > 0) snprintf(of, sizeof of, " of %lld", (long long)j->last);
    snprintf(text, sizeof text, "%s  %s  step %lld%s, %d rank%s", clock, f->run, (long long)j->run,
             of, f->n, f->n == 1 ? "" : "s");
    put_line(text, columns, out);
}

static void print_speed(const job *j, int columns, FILE *out)
{
    char text[1024], step[16], memory[16], rate[64] = "", saved[48] = "", gone[48] = "";
    seconds_text(j->step_seconds, step);
    bytes_text(j->memory, memory);
    if (j->items > 0 && j->step_seconds > 0)
        snprintf(rate, sizeof rate, ", %.0f %s/s", (double)j->items / j->step_seconds, j->unit);
    if (j->saved >= 0) snprintf(saved, sizeof saved, ", saved step %lld", (long long)j->saved);
    if (j->n_gone > 0) snprintf(gone, sizeof gone, ", %d gone", j->n_gone);
    snprintf(text, sizeof text, "%s a step%s, memory %s%s%s", step, rate, memory, saved, gone);
    put_line(text, columns, out);
}

static void print_metrics(const frame *f, int columns, FILE *out)
{
    char text[512] = "";
    const char *name;
    json_t *line = last_metrics(f->run), *value;
    json_object_foreach(line, name, value)
    {
        const size_t used = strlen(text);
        if (json_is_number(value) && strcmp(name, "step") != 0)
            snprintf(text + used, sizeof text - used, "%s%s %.4g", used > 0 ? "  " : "", name,
                     json_number_value(value));
    }
    json_decref(line);
    put_line(text, columns, out);
}

static void print_row(const row *r, int columns, FILE *out)
{
    char text[1024], who[24], step[16], exposed[16], input[16], memory[16], why[64] = "";
    if (r->first == r->last)
        snprintf(who, sizeof who, "%d", r->first);
    else
        snprintf(who, sizeof who, "%d-%d", r->first, r->last);
    seconds_text(r->step_seconds, step);
    share_text(r->exposed, exposed);
    share_text(r->input, input);
    bytes_text(r->memory, memory);
    if (r->is_gone)
        snprintf(why, sizeof why, "%s: last ", r->at->has_left ? "left the job" : "gone");
    else if (!r->at->is_here)
        snprintf(why, sizeof why, "on %.40s: ", r->at->host);
    else if (r->awaits >= 0)
        snprintf(why, sizeof why, "waits for %d: ", r->awaits);
    else if (r->n_waiters > 0)
        snprintf(why, sizeof why, "%d wait%s for it: ", r->n_waiters, r->n_waiters == 1 ? "s" : "");
    snprintf(text, sizeof text, "%7s %8lld %8s %7s %7s %8s  %s%s", who, (long long)r->run, step,
             exposed, input, memory, why, r->at->doing);
    put_line(text, columns, out);
}

void frame_print(frame *f, const frame_size *size, FILE *out)
{
    const int n = make_rows(f, size->lines - HEAD_LINES);
    const job j = job_of(f);
    if (size->lines > 0) print_run(f, &j, size->columns, out);
    if (size->lines > 1) print_speed(&j, size->columns, out);
    if (size->lines > 2) print_metrics(f, size->columns, out);
    if (size->lines > 3)
        put_line("  ranks     step   a step exposed   input   memory  doing", size->columns, out);
    for (int i = 0; i < n && i < size->lines - HEAD_LINES; i++)
        print_row(&f->rows[i], size->columns, out);
}

/* ---- as data ---------------------------------------------------------------------------------- */

static json_t *rank_json(const row *r)
{
    const weft_live_rank *at = r->at;
    return json_pack("{s:i, s:s, s:i, s:b, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:i, s:s}", "rank",
                     at->rank, "host", at->host, "process", at->pid, "here", at->is_here, "running",
                     is_there(at), "step", (json_int_t)at->run, "step_seconds",
                     app_json_number(r->step_seconds), "exposed", app_json_number(r->exposed),
                     "input", app_json_number(r->input), "memory_bytes",
                     at->memory > 0 ? json_integer(at->memory) : json_null(), "waits_for",
                     at->awaits >= 0 ? json_integer(at->awaits) : json_null(), "waiters",
                     at->n_waiters, "doing", at->doing);
}

json_t *frame_json(frame *f)
{
    json_t *ranks = json_array(), *metrics = last_metrics(f->run), *run = json_string(f->run);
    const int n = make_rows(f, f->n);
    const job j = job_of(f);
    for (int i = 0; i < n; i++)
        json_array_append_new(ranks, rank_json(&f->rows[i]));
    const double rate = j.items > 0 ? (double)j.items / j.step_seconds : NAN;
    if (!run) run = json_string("?"); /* a name that is not UTF-8 */
    return json_pack("{s:o, s:f, s:I, s:I, s:I, s:o, s:o, s:s, s:o, s:o}", "run", run, "time",
                     f->times[(f->n_looks - 1) % KEPT], "step", (json_int_t)j.run, "last",
                     (json_int_t)j.last, "saved", (json_int_t)j.saved, "step_seconds",
                     app_json_number(j.step_seconds), "items_per_s", app_json_number(rate), "unit",
                     j.unit, "metrics", metrics ? metrics : json_null(), "ranks", ranks);
}
