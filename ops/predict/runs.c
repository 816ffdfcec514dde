/* runs: room for runs that are walked at once. See walk.h. */
#include "walk.h"

/* So many columns are enough for the arithmetic to take longer than all else. */
enum { COLUMNS = 64, MOST_RUNS = 16 };

int weft_runs_at_once(const timeline *t, int most)
{
    const int n = COLUMNS / t->classes.n, at_most = n < MOST_RUNS ? n : MOST_RUNS;
    return at_most < 1 ? 1 : at_most < most ? at_most : most;
}

static void usual_tempo(runs *r, uint32_t s, double *seconds)
{
    const timeline *t = r->t;
    const double *usual = t->usual + (size_t)t->steps[s].kind * (size_t)t->classes.n;
    for (int k = 0; k < r->n; k++)
        seconds[k] = usual[k / r->n_runs];
}

static weft_status spread_out(const runs *r, const double *of_kinds, weft_arena *arena,
                              double **columns)
{
    *columns = weft_arena_take(arena, (size_t)r->n * sizeof **columns);
    if (!*columns) return weft_fail_memory(r->t->error, (size_t)r->n * sizeof **columns);
    for (int k = 0; k < r->n; k++)
        (*columns)[k] = of_kinds[k / r->n_runs];
    return WEFT_OK;
}

static weft_status open_meetings(runs *r, weft_arena *arena)
{
    const size_t bytes = (r->t->n_meetings + 1) * sizeof *r->meetings;
    r->meetings = weft_arena_take(arena, bytes);
    if (!r->meetings) return weft_fail_memory(r->t->error, bytes);
    for (uint32_t i = 0; i < r->t->n_meetings; i++) {
        const meeting *of = &r->t->meetings[i];
        meeting *to = &r->meetings[i];
        *to = *of;
        WEFT_TRY(spread_out(r, of->cpu, arena, &to->cpu));
        WEFT_TRY(spread_out(r, of->late, arena, &to->late));
        WEFT_TRY(spread_out(r, of->crowded, arena, &to->crowded));
    }
    return WEFT_OK;
}

static weft_status open_lines(runs *r, weft_arena *arena)
{
    const size_t n = (size_t)r->n;
    const uint32_t n_queues = r->t->plan->n_queues;
    r->lines = weft_arena_take(arena, n_queues * sizeof *r->lines);
    if (!r->lines) return weft_fail_memory(r->t->error, n_queues * sizeof *r->lines);
    for (uint32_t s = 0; s < r->t->plan->n_steps; s++)
        r->lines[r->t->steps[s].queue].room += r->t->steps[s].meeting != 0;
    for (uint32_t q = 0; q < n_queues; q++) {
        queue_line *l = &r->lines[q];
        l->steps = weft_arena_take(arena, (l->room + 1) * sizeof *l->steps);
        l->at = weft_arena_take(arena, n * sizeof *l->at);
        l->begin = weft_arena_take(arena, 3 * n * sizeof *l->begin);
        if (!l->steps || !l->at || !l->begin)
            return weft_fail_memory(r->t->error, 3 * n * sizeof *l->begin);
        l->end = l->begin + n;
        l->cpu = l->end + n;
    }
    return WEFT_OK;
}

static weft_status open_columns(runs *r, weft_arena *arena)
{
    const size_t n = (size_t)r->n, n_flights = (r->t->n_flights + 1) * n;
    r->now = weft_arena_take(arena, 5 * n * sizeof *r->now);
    r->over = weft_arena_take(arena, WAYS * r->t->plan->n_queues * n * sizeof *r->over);
    r->begin = weft_arena_take(arena, n_flights * sizeof *r->begin);
    r->end = weft_arena_take(arena, n_flights * sizeof *r->end);
    if (!r->now || !r->over || !r->begin || !r->end)
        return weft_fail_memory(r->t->error, n_flights * sizeof *r->begin);
    r->seconds = r->now + n;
    r->left = r->seconds + n;
    r->taken = r->left + n;
    r->until = r->taken + n;
    return WEFT_OK;
}

static weft_status open_scans(runs *r, weft_arena *arena)
{
    const uint32_t depth = r->t->depth, n_steps = r->t->plan->n_steps;
    const size_t n_times = 3 * (size_t)r->n * (1 + WAYS * r->t->plan->n_queues);
    r->times = weft_arena_take(arena, (depth + 1) * sizeof *r->times);
    r->before = weft_arena_take(arena, (depth + 1) * sizeof *r->before);
    if (!r->times || !r->before) return weft_fail_memory(r->t->error, depth * sizeof *r->times);
    for (uint32_t d = 0; d < depth; d++) {
        r->times[d] = weft_arena_take(arena, n_times * sizeof **r->times);
        if (r->notes) r->before[d] = weft_arena_take(arena, n_steps * sizeof **r->before);
        if (!r->times[d] || (r->notes && !r->before[d]))
            return weft_fail_memory(r->t->error, n_times * sizeof **r->times);
    }
    return WEFT_OK;
}

weft_status weft_runs_open(runs *r, const timeline *t, int n_runs, const notes *noted,
                           weft_arena *arena)
{
    const size_t n = t->plan->n_steps + 1;
    *r = (runs){
        .t = t, .n_runs = n_runs, .n = n_runs * t->classes.n, .tempo = usual_tempo, .notes = noted};
    r->due = weft_arena_take(arena, n * sizeof *r->due);
    r->next = weft_arena_take(arena, n * sizeof *r->next);
    if (!r->due || !r->next) return weft_fail_memory(t->error, n * sizeof *r->due);
    WEFT_TRY(open_meetings(r, arena));
    WEFT_TRY(open_lines(r, arena));
    WEFT_TRY(open_columns(r, arena));
    return open_scans(r, arena);
}

weft_status weft_notes_open(const timeline *t, weft_arena *arena, notes *to)
{
    const size_t n = t->plan->n_steps + 1;
    to->sums = weft_arena_take(arena, n * sizeof *to->sums);
    to->begin = weft_arena_take(arena, n * sizeof *to->begin);
    to->end = weft_arena_take(arena, n * sizeof *to->end);
    if (!to->sums || !to->begin || !to->end)
        return weft_fail_memory(t->error, n * sizeof *to->sums);
    for (size_t s = 0; s < n; s++)
        to->begin[s] = -1;
    return WEFT_OK;
}
