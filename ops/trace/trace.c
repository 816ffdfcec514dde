/* trace: the runs of programs, written down from one call to another. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clocks.h"
#include "regions.h"
#include "table.h"

enum { MOST_EVENTS = 1 << 22, MAX_PATH = 4096 };
static const char call[] = "weft_trace_begin"; /* whose arguments are checked */

/* Of a rank of this process. */
typedef struct traced_rank {
    weft_ring_head *head; /* NULL: it is not traced */
    weft_ring ring;
    char path[MAX_PATH];
} traced_rank;

struct weft_trace {
    int n_parts, n_local;
    weft_program *programs[WEFT_TRACE_PARTS]; /* [n_parts] */
    traced_rank *ranks;                       /* [n_local] */
    weft_clocks clocks;
    char note[480];
};

/* ---- what may be traced ---------------------------------------------------------------------- */

static weft_status check_part(const weft_trace_part *part, const weft_mesh *mesh, weft_error *error)
{
    const weft_program *program = part->program;
    const char *name = part->name;
    WEFT_TRY(weft_check_given(program != NULL, call, "program", error));
    WEFT_TRY(weft_check_given(name != NULL, call, "name", error));
    WEFT_TRY(weft_check_range(part->runs, 1, INT64_MAX, call, "runs", error));
    if (program->n_local == 0)
        return weft_fail(
            error, WEFT_USAGE,
            "weft_trace_begin: %s is a plan without ranks (mesh %s) and never runs; make "
            "its mesh with weft_mesh_create",
            name, weft_mesh_text(program->mesh));
    if (program->mesh != mesh)
        return weft_fail(
            error, WEFT_USAGE,
            "weft_trace_begin: %s runs on another mesh object than the first program (%s "
            "and %s); compile both on one mesh",
            name, weft_mesh_text(program->mesh), weft_mesh_text(mesh));
    if (program->n_traces == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_trace_begin: %s is traced already; weft_trace_end that trace first",
                     name);
}

static weft_status check(const char *folder, const weft_trace_part *parts, int n_parts,
                         weft_error *error)
{
    WEFT_TRY(weft_check_given(folder != NULL, call, "folder", error));
    WEFT_TRY(weft_check_given(parts != NULL, call, "parts", error));
    WEFT_TRY(weft_check_range(n_parts, 1, WEFT_TRACE_PARTS, call, "n_parts", error));
    for (int i = 0; i < n_parts; i++) {
        WEFT_TRY(check_part(&parts[i], parts[0].program ? parts[0].program->mesh : NULL, error));
        for (int k = 0; k < i; k++)
            if (parts[k].program == parts[i].program)
                return weft_fail(error, WEFT_USAGE,
                                 "weft_trace_begin: %s and %s are one program; name it once",
                                 parts[k].name, parts[i].name);
    }
    return WEFT_OK;
}

/* ---- a rank ------------------------------------------------------------------------------------ */

/* Of so many runs: a step, and the end of an exchange that goes on; trips counted. */
static double events_of(const weft_rank *rank, int64_t runs)
{
    const weft_plan *plan = rank->program->plan;
    double n = 1;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        n += weft_times_of(plan, &plan->steps[s]) * (rank->steps[s].exchange.goes_on ? 2 : 1);
    return n * (double)runs;
}

static int64_t room_of(const weft_trace_part *parts, int n, int at)
{
    double room = 0;
    for (int i = 0; i < n; i++)
        room += events_of(&parts[i].program->ranks[at], parts[i].runs);
    return room < MOST_EVENTS ? (int64_t)room : MOST_EVENTS;
}

static void fill(const weft_trace *trace, weft_ring_head *head, const weft_trace_table *table,
                 const uint32_t own[2], int at)
{
    const weft_ring_parts parts = weft_ring_parts_of(head);
    memcpy(parts.programs, table->programs, (size_t)table->n_programs * sizeof *parts.programs);
    memcpy(parts.steps, table->steps, (size_t)table->n_steps * sizeof *parts.steps);
    memcpy(parts.texts, table->texts.all, table->texts.bytes);
    weft_ring_step *steps = parts.steps;
    for (int i = 0; i < trace->n_parts; i++) {
        weft_trace_table_bytes(&trace->programs[i]->ranks[at], steps);
        steps += table->programs[i].n_steps;
    }
    head->job = trace->clocks.job;
    head->rank = trace->programs[0]->ranks[at].rank;
    head->n_ranks = weft_mesh_n_ranks(trace->programs[0]->mesh);
    head->process = (int32_t)getpid();
    head->mesh = own[0];
    head->host = own[1];
}

static weft_status open_rank(weft_trace *trace, const char *folder, const weft_trace_part *parts,
                             weft_trace_table *table, int at, weft_error *error)
{
    traced_rank *own = &trace->ranks[at];
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const uint32_t texts[2] = {
        weft_texts_add(&table->texts, weft_mesh_text(trace->programs[0]->mesh)),
        weft_texts_add(&table->texts, host)};
    if (table->texts.is_short) return weft_fail_memory(error, table->texts.bytes);
    const weft_ring_sizes sizes = {table->n_programs, table->n_steps, table->texts.bytes,
                                   room_of(parts, trace->n_parts, at)};
    weft_ring_path(folder, trace->programs[0]->ranks[at].rank, own->path, sizeof own->path);
    WEFT_TRY(weft_ring_create(own->path, &sizes, &own->head, error));
    fill(trace, own->head, table, texts, at);
    own->ring = (weft_ring){&own->head->counts, weft_ring_parts_of(own->head).events, sizes.room};
    for (int i = 0; i < trace->n_parts; i++)
        WEFT_TRY(weft_tracer_start(&trace->programs[i]->ranks[at], &own->ring, (uint16_t)i, error));
    return WEFT_OK;
}

static void close_rank(weft_trace *trace, int at, bool seals)
{
    for (int i = 0; i < trace->n_parts; i++)
        weft_tracer_stop(&trace->programs[i]->ranks[at]);
    weft_ring_close(trace->ranks[at].path, &trace->ranks[at].head, seals);
}

/* ---- all of this process ----------------------------------------------------------------------- */

/* A rank that has no file is not traced, and that is no reason not to run. */
static void open_ranks(weft_trace *trace, const char *folder, const weft_trace_part *parts,
                       weft_trace_table *table)
{
    for (int at = 0; at < trace->n_local; at++) {
        weft_error own = WEFT_NO_ERROR;
        if (open_rank(trace, folder, parts, table, at, &own) == WEFT_OK) continue;
        close_rank(trace, at, false);
        if (trace->note[0] == '\0') snprintf(trace->note, sizeof trace->note, "%s", own.message);
    }
}

/* Ranks that an earlier trace had and this one has not. */
static void remove_others(const char *folder, const weft_mesh *mesh)
{
    char path[MAX_PATH];
    if (!weft_mesh_is_root(mesh)) return;
    for (int r = weft_mesh_n_ranks(mesh);; r++) {
        weft_ring_path(folder, r, path, sizeof path);
        if (unlink(path) != 0) return;
    }
}

static weft_status make(const weft_trace_part *parts, int n_parts, weft_trace **made,
                        weft_error *error)
{
    weft_trace *trace = *made = calloc(1, sizeof *trace);
    if (!trace) return weft_fail_memory(error, sizeof *trace);
    trace->n_local = parts[0].program->n_local;
    trace->ranks = calloc((size_t)trace->n_local, sizeof *trace->ranks);
    if (!trace->ranks) return weft_fail_memory(error, sizeof *trace->ranks);
    for (int i = 0; i < n_parts; i++) {
        trace->programs[trace->n_parts++] = parts[i].program;
        parts[i].program->n_traces++;
    }
    return WEFT_OK;
}

static void set_clock(weft_trace *trace, int which, const weft_traced_clock *clock)
{
    for (int at = 0; at < trace->n_local; at++)
        if (trace->ranks[at].head) trace->ranks[at].head->clocks[which] = *clock;
}

static weft_status begin(weft_trace *trace, const char *folder, const weft_trace_part *parts,
                         weft_trace_table *table, weft_error *error)
{
    weft_traced_clock clock;
    remove_others(folder, parts[0].program->mesh);
    WEFT_TRY(weft_clocks_compare(&trace->clocks, &clock, error));
    open_ranks(trace, folder, parts, table);
    set_clock(trace, 0, &clock);
    return WEFT_OK;
}

/* ---- public ------------------------------------------------------------------------------------ */

weft_status weft_trace_begin(const char *folder, const weft_trace_part *parts, int n_parts,
                             weft_trace **trace, weft_error *error)
{
    WEFT_GIVEN(trace, error);
    *trace = NULL;
    WEFT_TRY(check(folder, parts, n_parts, error));
    weft_trace *made = NULL;
    weft_trace_table table = {0};
    weft_clocks clocks;
    weft_error own = WEFT_NO_ERROR;
    if (make(parts, n_parts, &made, &own) == WEFT_OK)
        (void)weft_trace_table_make(parts, n_parts, &table, &own);
    weft_status status = weft_clocks_open(parts[0].program, &own, &clocks, error);
    if (status == WEFT_OK) {
        made->clocks = clocks;
        status = begin(made, folder, parts, &table, error);
    } else {
        weft_clocks_close(&clocks);
    }
    weft_trace_table_free(&table);
    if (status != WEFT_OK) weft_trace_destroy(&made);
    *trace = made;
    return status;
}

static void close_all(weft_trace **trace, bool seals)
{
    weft_trace *t = *trace;
    for (int at = 0; t->ranks && at < t->n_local; at++)
        close_rank(t, at, seals);
    for (int i = 0; i < t->n_parts; i++)
        t->programs[i]->n_traces--;
    weft_clocks_close(&t->clocks);
    free(t->ranks);
    free(t);
    *trace = NULL;
}

weft_status weft_trace_end(weft_trace **trace, weft_error *error)
{
    weft_traced_clock clock;
    WEFT_GIVEN(trace, error);
    if (!*trace) return WEFT_OK;
    const weft_status status = weft_clocks_compare(&(*trace)->clocks, &clock, error);
    if (status == WEFT_OK) set_clock(*trace, 1, &clock);
    close_all(trace, status == WEFT_OK);
    return status;
}

void weft_trace_destroy(weft_trace **trace)
{
    if (trace && *trace) close_all(trace, false);
}

const char *weft_trace_note(const weft_trace *trace)
{
    return trace ? trace->note : "";
}
