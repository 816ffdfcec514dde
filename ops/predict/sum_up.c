/* sum_up: what a walk through a plan has to tell: of the whole, by queue, by axis, by step. */
#include "pack.h"
#include "walk.h"

#include <math.h>
#include <string.h>

static double exposed_of(const sums *s)
{
    return s->waits + s->charged;
}

double weft_predicted_hidden(double seconds, double exposed_seconds)
{
    return seconds > 0 ? fmin(fmax(1 - exposed_seconds / seconds, 0), 1) : 0;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static weft_time_source source_of(const runs *r, uint32_t s)
{
    return (weft_time_source)r->t->source[r->t->steps[s].kind];
}

static void add_queue(const runs *r, uint32_t s, weft_prediction *p)
{
    const sums *of = &r->notes->sums[s];
    weft_predicted_queue *computing = &p->queues[0];
    if (weft_axes_of(&r->t->plan->steps[s]) == 0) {
        computing->busy_seconds += of->total;
        return;
    }
    weft_predicted_queue *queue = &p->queues[r->t->plan->timings[s].queue];
    queue->busy_seconds += of->total;
    queue->waiting_seconds += of->queued;
    queue->exposed_seconds += exposed_of(of);
    computing->busy_seconds += of->charged;
    computing->waiting_seconds += of->waits;
}

static void add_axes(const runs *r, uint32_t s, weft_prediction *p)
{
    const weft_step *step = &r->t->plan->steps[s];
    const uint32_t axes = weft_axes_of(step);
    if (axes == 0) return;
    const double bytes = r->notes->sums[s].times * r->t->wire_bytes[r->t->steps[s].kind];
    for (int a = 0; a < p->n_axes; a++) {
        if (!(axes >> a & 1)) continue;
        p->axes[a].bytes += bytes;
        p->axes[a].seconds += r->notes->sums[s].total;
        p->axes[a].exposed_seconds += exposed_of(&r->notes->sums[s]) - r->notes->sums[s].late;
    }
}

/* Whether what a step makes is held by the stages of the pipeline. */
static bool is_of_pipe(const weft_plan *plan, const weft_step *step,
                       const weft_predict_options *options)
{
    if (!options->pipe_dim || step->phase == WEFT_UPDATE) return false;
    for (int o = 0; o < step->n_out; o++) {
        const weft_shape *shape = &plan->placed[step->out[o]].type.shape;
        const int d = weft_shape_find(shape, options->pipe_dim);
        if (d >= 0 && shape->dims[d].size == options->pipe_size) return true;
    }
    return false;
}

static void add_step(const runs *r, uint32_t s, const weft_predict_options *options,
                     weft_prediction *p)
{
    const weft_step *step = &r->t->plan->steps[s];
    const sums *of = &r->notes->sums[s];
    *(weft_axes_of(step) ? &p->exchange_seconds : &p->work_seconds) += of->total;
    p->exposed_seconds += exposed_of(of);
    p->late_seconds += of->late;
    p->source_seconds[source_of(r, s)] += of->total;
    p->phase_seconds[step->phase] += of->elapsed;
    if (is_of_pipe(r->t->plan, step, options))
        p->bubble_seconds += options->pipe_idle * of->elapsed;
    add_queue(r, s, p);
    add_axes(r, s, p);
}

/* ---- by step ----------------------------------------------------------------------------------------- */

static void tell_step(const runs *r, uint32_t s, weft_predicted_step *step)
{
    const sums *of = &r->notes->sums[s];
    *step = (weft_predicted_step){.seconds = weft_first_seconds(r->t, s),
                                  .begin = fmax(r->notes->begin[s], 0),
                                  .end = fmax(r->notes->end[s], 0),
                                  .total_seconds = of->total,
                                  .exposed_seconds = exposed_of(of),
                                  .source = source_of(r, s),
                                  .late_seconds = of->late,
                                  .elapsed_seconds = of->elapsed,
                                  .times = of->times};
}

/* By the buffers of rank 0, which holds no fewer than another. */
static void tell_memory(const weft_plan *plan, weft_predicted_step *steps)
{
    const weft_memory *memory = &plan->packed;
    int64_t alive = 0;
    for (uint32_t b = 0; b < memory->n_packed; b++) {
        const weft_buffer *buffer = memory->buffers[b];
        steps[buffer->first].alive_bytes += buffer->bytes;
        if (buffer->last + 1 < plan->n_steps) steps[buffer->last + 1].alive_bytes -= buffer->bytes;
    }
    for (uint32_t s = 0; s < plan->n_steps; s++)
        steps[s].alive_bytes = alive += steps[s].alive_bytes;
}

static void sum_memory(const weft_plan *plan, weft_prediction *p)
{
    const weft_memory *memory = &plan->packed;
    p->arena_bytes = memory->arena_bytes;
    p->fullest = (int)memory->fullest;
    for (uint32_t b = 0; b < memory->n_packed; b++) {
        const weft_buffer *buffer = memory->buffers[b];
        if (buffer->first <= memory->fullest && memory->fullest <= buffer->last)
            p->peak_bytes += buffer->bytes;
    }
}

void weft_walk_sum_up(const runs *r, const weft_predict_options *options, weft_prediction *p,
                      weft_predicted_step *steps)
{
    const timeline *t = r->t;
    const weft_plan *plan = t->plan;
    double last = r->now[0];
    p->seconds = weft_walk_seconds(r, 0);
    p->besides_seconds = t->besides;
    p->n_kinds = t->classes.n;
    p->n_queues = (int)plan->n_queues;
    p->n_axes = weft_mesh_n_axes(plan->mesh);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        add_step(r, s, options, p);
        last -= r->notes->sums[s].elapsed;
        if (steps) tell_step(r, s, &steps[s]);
    }
    if (plan->n_steps > 0) p->phase_seconds[plan->steps[plan->n_steps - 1].phase] += last;
    sum_memory(plan, p);
    if (steps) tell_memory(plan, steps);
}
