/* merge: what ranks have written down of their steps, put together as tracks for Perfetto.
 *
 * All ranks go through the same steps in the same order, so the n-th exchange of one is the n-th of any other.
 */
#include "merge.h"

#include <stdlib.h>
#include <string.h>

#include "weft/mesh.h"

enum { MAX_DEPTH = 64, NOTES = 6 };

typedef struct exchange {
    const weft_traced_step *step;
    int index; /* of the step */
    uint16_t program;
    int64_t put, arrived;
} exchange;

/* A scan that a rank is in. */
typedef struct open_scan {
    uint32_t begin, end; /* its steps */
    bool has_trip;
} open_scan;

typedef struct rank {
    const weft_traced *traced;
    uint32_t process, compute, arena, sent;
    exchange *exchanges; /* [n_exchanges] in the order of their starts */
    size_t n_exchanges, room;
} rank;

struct merge {
    perfetto *out;
    weft_mesh *mesh;
    rank *ranks; /* [n_ranks] in the order of their numbers */
    int n_ranks;
    merge_counts counts;
};

/* Going through the events of a rank. */
typedef struct walk {
    merge *m;
    rank *r;
    open_scan scans[MAX_DEPTH];
    int n_scans;
    bool has_run;
    int64_t run_end, last; /* of the run; of all */
    int64_t n_runs, sent_bytes, arena_bytes;
} walk;

merge *merge_create(perfetto *out)
{
    merge *m = calloc(1, sizeof *m);
    if (m) m->out = out;
    return m;
}

void merge_destroy(merge **m)
{
    if (!*m) return;
    for (int i = 0; i < (*m)->n_ranks; i++)
        free((*m)->ranks[i].exchanges);
    free((*m)->ranks);
    weft_mesh_destroy(&(*m)->mesh);
    free(*m);
    *m = NULL;
}

/* ---- slices ------------------------------------------------------------------------------------ */

static void notes_of(const weft_traced_step *step, int index, perfetto_note notes[NOTES])
{
    const perfetto_note all[NOTES] = {{"step", NULL, index},   {"place", step->place, 0},
                                      {"op", step->op, 0},     {"dims", step->dims, 0},
                                      {"spec", step->spec, 0}, {"reason", step->reason, 0}};
    memcpy(notes, all, sizeof all);
}

static void put_step(walk *w, const weft_traced_step *step, const weft_traced_event *e,
                     const char *category, const char *before)
{
    perfetto_note notes[NOTES];
    char name[300];
    notes_of(step, (int)e->step, notes);
    snprintf(name, sizeof name, "%s%s", before, step->name);
    perfetto_begin(w->m->out, w->r->compute, e->begin,
                   &(perfetto_slice){name, category, notes, NOTES, 0, {0}});
    perfetto_end(w->m->out, w->r->compute, e->end);
}

static void put_around(walk *w, int64_t at, const char *name, int64_t number, const char *category)
{
    char text[300];
    snprintf(text, sizeof text, "%s %lld", name, (long long)number);
    perfetto_begin(w->m->out, w->r->compute, at,
                   &(perfetto_slice){text, category, NULL, 0, 0, {0}});
}

/* ---- scans and runs ---------------------------------------------------------------------------- */

static uint32_t end_of(const weft_traced_program *program, uint32_t begin)
{
    uint32_t s = begin;
    while ((int)s + 1 < program->n_steps && (program->steps[s].kind != WEFT_STEP_END ||
                                             program->steps[s].scan != program->steps[begin].scan))
        s++;
    return s;
}

static void leave_scan(walk *w, int64_t at)
{
    if (w->scans[--w->n_scans].has_trip) perfetto_end(w->m->out, w->r->compute, at);
}

/* What a run was in when it was over, or cut off. */
static void leave_run(walk *w, int64_t at)
{
    while (w->n_scans > 0)
        leave_scan(w, at);
    if (w->has_run) perfetto_end(w->m->out, w->r->compute, at);
    w->has_run = false;
}

static void enter_run(walk *w, const weft_traced_program *program, const weft_traced_event *e)
{
    leave_run(w, w->run_end > 0 ? w->run_end : w->last);
    w->run_end = e->end;
    w->n_runs++;
    w->has_run = true;
    put_around(w, e->begin, program->name, e->step, "run");
}

/* Before a step: scans that it is not in are over, and it may begin a trip. */
static void enter_trip(walk *w, const weft_traced_event *e)
{
    while (w->n_scans > 0 &&
           (e->step <= w->scans[w->n_scans - 1].begin || e->step > w->scans[w->n_scans - 1].end))
        leave_scan(w, e->begin);
    open_scan *scan = w->n_scans > 0 ? &w->scans[w->n_scans - 1] : NULL;
    if (!scan || scan->has_trip) return;
    scan->has_trip = true;
    put_around(w, e->begin, "trip", e->trip, "trip");
}

/* After it: a scan begins, or a trip ends. */
static void leave_trip(walk *w, const weft_traced_program *program, const weft_traced_event *e)
{
    const weft_step_kind kind = program->steps[e->step].kind;
    if (kind == WEFT_STEP_BEGIN && w->n_scans < MAX_DEPTH)
        w->scans[w->n_scans++] = (open_scan){e->step, end_of(program, e->step), false};
    open_scan *scan = w->n_scans > 0 ? &w->scans[w->n_scans - 1] : NULL;
    if (kind != WEFT_STEP_END || !scan || scan->end != e->step || !scan->has_trip) return;
    perfetto_end(w->m->out, w->r->compute, e->end);
    scan->has_trip = false;
}

/* ---- exchanges --------------------------------------------------------------------------------- */

static bool add_exchange(rank *r, const exchange *added)
{
    if (r->n_exchanges == r->room) {
        const size_t room = 2 * r->room + 256;
        exchange *all = realloc(r->exchanges, room * sizeof *all);
        if (!all) return false;
        r->exchanges = all;
        r->room = room;
    }
    r->exchanges[r->n_exchanges++] = *added;
    return true;
}

/* The last of this step: it is under way once at a time. */
static void arrive(rank *r, const weft_traced_event *e)
{
    for (size_t i = r->n_exchanges; i-- > 0;) {
        exchange *x = &r->exchanges[i];
        if (x->index != (int)e->step || x->program != e->program) continue;
        x->arrived = e->arrived > 0 ? e->arrived : e->end;
        return;
    }
}

static bool start_exchange(walk *w, const weft_traced_step *step, const weft_traced_event *e)
{
    const exchange started = {step, (int)e->step, e->program, e->begin,
                              e->arrived > 0 ? e->arrived : e->end};
    w->sent_bytes += step->sent_bytes;
    perfetto_count(w->m->out, w->r->sent, e->begin, w->sent_bytes);
    return add_exchange(w->r, &started);
}

/* ---- a rank ------------------------------------------------------------------------------------ */

static void count_arena(walk *w, const weft_traced_step *step, int64_t at)
{
    if (step->arena_bytes == w->arena_bytes) return;
    w->arena_bytes = step->arena_bytes;
    perfetto_count(w->m->out, w->r->arena, at, step->arena_bytes);
}

/* What the clock got wrong is no slice; where it stands among the others counts all the same. */
static bool put_event(walk *w, const weft_traced_event *e, bool is_wrong)
{
    const weft_traced_program *program = &w->r->traced->programs[e->program];
    if (e->kind == WEFT_TRACED_RUN) return enter_run(w, program, e), true;
    const weft_traced_step *step = &program->steps[e->step];
    if (e->kind == WEFT_TRACED_FINISH) {
        if (!is_wrong) put_step(w, step, e, "wait", "wait for ");
        return arrive(w->r, e), true;
    }
    enter_trip(w, e);
    count_arena(w, step, e->begin);
    const bool goes_on = step->axes != 0 && e->arrived == 0;
    if (!is_wrong) put_step(w, step, e, step->axes ? "put" : "step", goes_on ? "put " : "");
    leave_trip(w, program, e);
    return step->axes == 0 || start_exchange(w, step, e);
}

static weft_traced_event by_rank_0(const weft_traced *traced, const weft_traced_event *e)
{
    weft_traced_event by = *e;
    by.begin = weft_traced_time(traced, e->begin);
    if (e->end > 0) by.end = weft_traced_time(traced, e->end);
    if (e->arrived > 0) by.arrived = weft_traced_time(traced, e->arrived);
    return by;
}

static bool put_events(merge *m, rank *r)
{
    walk w = {.m = m, .r = r, .arena_bytes = -1};
    bool has_room = true;
    for (int64_t i = 0; i < r->traced->n_events && has_room; i++) {
        weft_traced_event e = by_rank_0(r->traced, &r->traced->events[i]);
        const bool is_under_way = e.kind == WEFT_TRACED_RUN && e.end == 0;
        const bool is_wrong = !is_under_way && e.end < e.begin;
        m->counts.n_wrong += is_wrong;
        if (is_wrong) e.end = e.begin;
        if (is_wrong && e.kind == WEFT_TRACED_RUN) e.end = 0; /* it ends with what is in it */
        has_room = put_event(&w, &e, is_wrong);
        if (e.end > w.last && e.kind != WEFT_TRACED_RUN) w.last = e.end;
    }
    leave_run(&w, w.run_end > 0 ? w.run_end : w.last);
    if (w.n_runs > m->counts.n_runs) m->counts.n_runs = w.n_runs;
    return has_room;
}

static bool is_same(const weft_traced *a, const weft_traced *b)
{
    bool same = a->job == b->job && a->n_ranks == b->n_ranks && strcmp(a->mesh, b->mesh) == 0 &&
                a->n_programs == b->n_programs;
    for (int i = 0; i < a->n_programs && same; i++)
        same = a->programs[i].digest == b->programs[i].digest &&
               a->programs[i].n_steps == b->programs[i].n_steps;
    return same;
}

static weft_status check(const merge *m, const weft_traced *traced, weft_error *error)
{
    const weft_traced *first = m->ranks[0].traced;
    if (is_same(first, traced)) return WEFT_OK;
    return weft_fail(
        error, WEFT_CORRUPT,
        "the trace of rank %d is of another job, or of another program, than that of rank "
        "%d; remove the older one, or trace again with --trace N..M",
        traced->rank, first->rank);
}

static void open_tracks(merge *m, rank *r)
{
    char name[300];
    snprintf(name, sizeof name, "rank %d (%s, process %d)", r->traced->rank, r->traced->host,
             r->traced->process);
    r->process = perfetto_process(m->out, name);
    r->compute = perfetto_thread(m->out, r->process, "compute");
    r->arena = perfetto_counter(m->out, r->process, "arena in use");
    r->sent = perfetto_counter(m->out, r->process, "bytes sent");
}

static void count_rank(merge_counts *counts, const weft_traced *traced)
{
    counts->n_ranks++;
    counts->n_dropped += traced->n_dropped;
    counts->n_unended += !traced->is_sealed;
    for (int i = 0; i < 2; i++)
        if (traced->clocks[i].error > counts->clock_error)
            counts->clock_error = traced->clocks[i].error;
}

weft_status merge_add(merge *m, const weft_traced *traced, weft_error *error)
{
    if (m->n_ranks > 0) WEFT_TRY(check(m, traced, error));
    if (m->n_ranks == 0) WEFT_TRY(weft_mesh_plan(traced->mesh, &m->mesh, error));
    if (weft_mesh_n_ranks(m->mesh) != traced->n_ranks)
        return weft_fail(error, WEFT_CORRUPT, "the trace of rank %d is of %d ranks, and of mesh %s",
                         traced->rank, traced->n_ranks, traced->mesh);
    const size_t bytes = ((size_t)m->n_ranks + 1) * sizeof *m->ranks;
    rank *ranks = realloc(m->ranks, bytes);
    if (!ranks) return weft_fail_memory(error, bytes);
    m->ranks = ranks;
    rank *r = &ranks[m->n_ranks++];
    *r = (rank){.traced = traced};
    open_tracks(m, r);
    count_rank(&m->counts, traced);
    return put_events(m, r) ? WEFT_OK : weft_fail_memory(error, r->room * sizeof *r->exchanges);
}

/* ---- between ranks ----------------------------------------------------------------------------- */

/* The rank of that number that took part in exchange k; NULL: it is not here, or has not got so far. */
static const rank *partner(const merge *m, int number, size_t k, const exchange *x)
{
    for (int i = 0; i < m->n_ranks; i++) {
        const rank *r = &m->ranks[i];
        if (r->traced->rank != number || k >= r->n_exchanges) continue;
        const exchange *its = &r->exchanges[k];
        return its->index == x->index && its->program == x->program ? r : NULL;
    }
    return NULL;
}

/* The arrow from a rank to the next of its group has the first one's number in it. */
static uint64_t arrow(size_t k, int from)
{
    return ((uint64_t)k + 1) << 20 | (uint64_t)from;
}

/* Arrows of a rank: to the next of its group, and from the one before; the last's next is the first, where that is not the one
 * before too. */
static void join(const merge *m, const rank *r, size_t k, const int *group, int n,
                 perfetto_slice *slice)
{
    const exchange *x = &r->exchanges[k];
    int self = 0;
    while (self < n && group[self] != r->traced->rank)
        self++;
    for (int way = 0; way < 2; way++) {
        const int from = way == 0 ? self : (self + n - 1) % n, to = (from + 1) % n;
        const bool is_back = n == 2 && to == 0;
        if (n < 2 || self == n || is_back) continue;
        if (!partner(m, group[way == 0 ? to : from], k, x)) continue;
        slice->flows[slice->n_flows++] = arrow(k, group[from]);
    }
}

static void put_exchange(const merge *m, const rank *r, size_t k, const int *group, int n,
                         uint32_t track, int64_t *free_at)
{
    const exchange *x = &r->exchanges[k];
    const int64_t begin = x->put > *free_at ? x->put : *free_at;
    perfetto_note notes[NOTES + 2];
    notes_of(x->step, x->index, notes);
    notes[NOTES] = (perfetto_note){"bytes", NULL, x->step->sent_bytes};
    notes[NOTES + 1] = (perfetto_note){"behind others ns", NULL, begin - x->put};
    perfetto_slice slice = {x->step->name, "exchange", notes, NOTES + 2, 0, {0}};
    join(m, r, k, group, n, &slice);
    *free_at = x->arrived > begin ? x->arrived : begin;
    perfetto_begin(m->out, track, begin, &slice);
    perfetto_end(m->out, track, *free_at);
}

static void name_queue(const weft_mesh *mesh, uint32_t axes, char *name, size_t bytes)
{
    size_t used = 0;
    name[0] = '\0';
    for (int a = 0; a < weft_mesh_n_axes(mesh) && used < bytes; a++)
        if (axes >> a & 1)
            used += (size_t)snprintf(name + used, bytes - used, "%s%s", used ? "+" : "",
                                     weft_mesh_axis_name(mesh, a));
}

/* One queue of a rank: the exchanges over these axes. */
static void put_queue(const merge *m, const rank *r, uint32_t axes, int *group)
{
    const int n = weft_mesh_group(m->mesh, axes, r->traced->rank, group, NULL);
    char name[450];
    int64_t free_at = INT64_MIN;
    uint32_t track = 0;
    for (size_t k = 0; k < r->n_exchanges; k++) {
        if (r->exchanges[k].step->axes != axes) continue;
        if (track == 0) {
            name_queue(m->mesh, axes, name, sizeof name);
            track = perfetto_thread(m->out, r->process, name);
        }
        put_exchange(m, r, k, group, n, track, &free_at);
    }
}

weft_status merge_finish(merge *m, merge_counts *counts, weft_error *error)
{
    const size_t bytes = (size_t)weft_mesh_n_ranks(m->mesh) * sizeof(int);
    int *group = malloc(bytes + sizeof(int));
    if (!group) return weft_fail_memory(error, bytes);
    for (int i = 0; i < m->n_ranks; i++)
        for (uint32_t axes = 1; axes < 1u << weft_mesh_n_axes(m->mesh); axes++)
            put_queue(m, &m->ranks[i], axes, group);
    free(group);
    *counts = m->counts;
    return WEFT_OK;
}
