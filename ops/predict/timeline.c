/* timeline: what walks through a plan read of its steps, found once for all of them. See walk.h. */
#include "walk.h"

#include "regions.h"

#include <math.h>

/* ---- meetings ------------------------------------------------------------------------------------------ */

static weft_status open_meeting(const timeline *t, weft_arena *arena, const weft_step *step,
                                meeting *m)
{
    const size_t n = (size_t)t->classes.n;
    const bool is_crowded = t->clock.host_ranks > t->clock.model->cores;
    *m = (meeting){.axes = step->convert.axes, .kind = step->convert.kind};
    m->first = weft_arena_take(arena, n * sizeof *m->first);
    m->cpu = weft_arena_take(arena, 3 * n * sizeof *m->cpu);
    if (!m->first || !m->cpu) return weft_fail_memory(t->error, 3 * n * sizeof *m->cpu);
    m->late = m->cpu + n;
    m->crowded = m->late + n;
    for (int c = 0; c < t->classes.n; c++) {
        const int rank = weft_class_rank(t->plan, &t->classes, c),
                  at = weft_clock_level(&t->clock, rank, m->axes);
        const weft_level *level = &t->clock.model->levels[at];
        m->first[c] = weft_class_first(&t->classes, c, m->axes);
        m->cpu[c] = weft_exchange_share(t->clock.model, at, m->kind);
        m->late[c] = level->late_seconds;
        m->crowded[c] = is_crowded ? level->crowded_seconds : 0;
    }
    return WEFT_OK;
}

static weft_status find_meeting(timeline *t, weft_arena *arena, const weft_step *step,
                                uint32_t *found)
{
    uint32_t m = 0;
    while (m < t->n_meetings &&
           (t->meetings[m].axes != step->convert.axes || t->meetings[m].kind != step->convert.kind))
        m++;
    *found = m + 1;
    return m < t->n_meetings ? WEFT_OK
                             : open_meeting(t, arena, step, &t->meetings[t->n_meetings++]);
}

/* ---- steps ---------------------------------------------------------------------------------------------- */

/* What begins in a trip is over at its end. */
static uint32_t until_of(const weft_plan *plan, const weft_regions *regions, uint32_t s)
{
    const weft_step *step = &plan->steps[s];
    const uint32_t until = weft_step_end(step, s);
    if (step->scan == 0 || step->kind != WEFT_STEP_CONVERT) return until;
    return until < regions->end[step->scan] ? until : regions->end[step->scan] - 1;
}

static weft_status open_step(timeline *t, weft_arena *arena, const weft_regions *regions,
                             uint32_t s)
{
    const weft_step *step = &t->plan->steps[s];
    const bool is_begin = step->kind == WEFT_STEP_BEGIN;
    walked_step *to = &t->steps[s];
    *to = (walked_step){.kind = t->plan->likes.of_step[s],
                        .end = is_begin ? regions->end[step->scan] : 0,
                        .until = until_of(t->plan, regions, s),
                        .queue = t->plan->timings[s].queue,
                        .is_ahead = step->is_ahead};
    uint32_t depth = 0;
    for (uint32_t scan = step->scan; scan; scan = t->plan->graph->scans[scan].parent)
        depth++;
    if (depth > t->depth) t->depth = depth;
    if (weft_axes_of(step) == 0) return WEFT_OK;
    to->flight = t->n_flights++;
    return find_meeting(t, arena, step, &to->meeting);
}

static weft_status open_steps(timeline *t, weft_arena *arena)
{
    enum { MOST_MEETINGS = (1 << WEFT_MAX_AXES) * WEFT_CONVERTS };
    weft_regions regions;
    const size_t n = t->plan->n_steps + 1;
    t->steps = weft_arena_take(arena, n * sizeof *t->steps);
    t->meetings = weft_arena_take(arena, MOST_MEETINGS * sizeof *t->meetings);
    if (!t->steps || !t->meetings) return weft_fail_memory(t->error, n * sizeof *t->steps);
    WEFT_TRY(weft_find_regions(t->plan, arena, &regions, t->error));
    for (uint32_t s = 0; s < t->plan->n_steps; s++)
        WEFT_TRY(open_step(t, arena, &regions, s));
    return WEFT_OK;
}

/* ---- seconds -------------------------------------------------------------------------------------------- */

/* Steps that do the same to tensors that lie alike take equally long: one of each kind is looked up. */
static void find_seconds(timeline *t, int c, const weft_predict_options *options)
{
    const weft_likes *likes = &t->plan->likes;
    const int rank = weft_class_rank(t->plan, &t->classes, c);
    const bool is_slow = options->slow_by > 0 && rank == options->slow_rank;
    for (uint32_t k = 0; k < likes->n_steps; k++) {
        const weft_step *step = &t->plan->steps[likes->steps[k]];
        const weft_step_time time = weft_clock_step(&t->clock, step, rank);
        const size_t at = (size_t)k * (size_t)t->classes.n + (size_t)c;
        t->usual[at] = time.seconds;
        if (is_slow && weft_axes_of(step) == 0) t->usual[at] *= options->slow_by;
        t->spread[at] = time.spread;
        if (weft_axes_of(step)) t->ways[at] = weft_step_ways(t->plan, step, rank);
        if (c > 0) continue;
        t->source[k] = (uint8_t)time.source;
        if (weft_axes_of(step)) t->wire_bytes[k] = (double)weft_step_wire_bytes(t->plan, step, 0);
    }
    t->besides = fmax(t->besides, weft_clock_besides(&t->clock, rank));
}

static weft_status open_seconds(timeline *t, weft_arena *arena, const weft_predict_options *options)
{
    const size_t n_kinds = t->plan->likes.n_steps + 1, n = n_kinds * (size_t)t->classes.n;
    t->usual = weft_arena_take(arena, n * sizeof *t->usual);
    t->spread = weft_arena_take(arena, n * sizeof *t->spread);
    t->ways = weft_arena_take(arena, n);
    t->source = weft_arena_take(arena, n_kinds);
    t->wire_bytes = weft_arena_take(arena, n_kinds * sizeof *t->wire_bytes);
    if (!t->usual || !t->spread || !t->ways || !t->source || !t->wire_bytes)
        return weft_fail_memory(t->error, n * sizeof *t->usual);
    for (int c = 0; c < t->classes.n; c++)
        find_seconds(t, c, options);
    return WEFT_OK;
}

weft_status weft_walk_open(timeline *t, const weft_machine_model *model,
                           const weft_predict_options *options, weft_arena *arena)
{
    weft_find_classes(t->plan, options->slow_by > 0 ? options->slow_rank : -1, &t->classes);
    const size_t n_asked = (size_t)t->plan->likes.n_steps * (size_t)t->classes.n;
    WEFT_TRY(
        weft_clock_open(t->plan, model, options->host_ranks, n_asked, arena, &t->clock, t->error));
    WEFT_TRY(open_steps(t, arena));
    return open_seconds(t, arena, options);
}
