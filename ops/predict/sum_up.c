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

static void add_queue(const timeline *t, uint32_t s, weft_prediction *p)
{
    const sums *of = &t->sums[s];
    weft_predicted_queue *computing = &p->queues[0];
    if (weft_axes_of(&t->plan->steps[s]) == 0) {
        computing->busy_seconds += of->total;
        return;
    }
    weft_predicted_queue *queue = &p->queues[t->plan->timings[s].queue];
    queue->busy_seconds += of->total;
    queue->waiting_seconds += of->queued;
    queue->exposed_seconds += exposed_of(of);
    computing->busy_seconds += of->charged;
    computing->waiting_seconds += of->waits;
}

static void add_axes(const timeline *t, uint32_t s, weft_prediction *p)
{
    const weft_step *step = &t->plan->steps[s];
    const uint32_t axes = weft_axes_of(step);
    if (axes == 0) return;
    const double bytes = t->sums[s].times * (double)weft_step_wire_bytes(t->plan, step, 0);
    for (int a = 0; a < p->n_axes; a++) {
        if (!(axes >> a & 1)) continue;
        p->axes[a].bytes += bytes;
        p->axes[a].seconds += t->sums[s].total;
        p->axes[a].exposed_seconds += exposed_of(&t->sums[s]) - t->sums[s].late;
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

static void add_step(const timeline *t, uint32_t s, const weft_predict_options *options,
                     weft_prediction *p)
{
    const weft_step *step = &t->plan->steps[s];
    const sums *of = &t->sums[s];
    *(weft_axes_of(step) ? &p->exchange_seconds : &p->work_seconds) += of->total;
    p->exposed_seconds += exposed_of(of);
    p->late_seconds += of->late;
    p->source_seconds[t->source[s]] += of->total;
    p->phase_seconds[step->phase] += of->elapsed;
    if (is_of_pipe(t->plan, step, options)) p->bubble_seconds += options->pipe_idle * of->elapsed;
    add_queue(t, s, p);
    add_axes(t, s, p);
}

/* ---- by step ----------------------------------------------------------------------------------------- */

static void tell_step(const timeline *t, uint32_t s, weft_predicted_step *step)
{
    const sums *of = &t->sums[s];
    *step = (weft_predicted_step){.seconds = t->clocks[0].seconds[s],
                                  .begin = fmax(t->begin[s], 0),
                                  .end = fmax(t->end[s], 0),
                                  .total_seconds = of->total,
                                  .exposed_seconds = exposed_of(of),
                                  .source = (weft_time_source)t->source[s],
                                  .late_seconds = of->late,
                                  .elapsed_seconds = of->elapsed,
                                  .times = of->times};
}

/* By the buffers of rank 0, which holds no fewer than another. */
static void tell_memory(const timeline *t, weft_predicted_step *steps)
{
    const weft_memory *memory = &t->plan->packed;
    int64_t alive = 0;
    for (uint32_t b = 0; b < memory->n_packed; b++) {
        const weft_buffer *buffer = memory->buffers[b];
        steps[buffer->first].alive_bytes += buffer->bytes;
        if (buffer->last + 1 < t->plan->n_steps)
            steps[buffer->last + 1].alive_bytes -= buffer->bytes;
    }
    for (uint32_t s = 0; s < t->plan->n_steps; s++)
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

weft_status weft_walk_sum_up(const timeline *t, const weft_predict_options *options,
                             weft_prediction *p, weft_predicted_step *steps)
{
    const weft_plan *plan = t->plan;
    double last = t->clocks[0].now;
    p->seconds = weft_walk_seconds(t);
    p->besides_seconds = t->besides;
    p->n_kinds = t->classes.n;
    p->n_queues = (int)plan->n_queues;
    p->n_axes = weft_mesh_n_axes(plan->mesh);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        add_step(t, s, options, p);
        last -= t->sums[s].elapsed;
        if (steps) tell_step(t, s, &steps[s]);
    }
    if (plan->n_steps > 0) p->phase_seconds[plan->steps[plan->n_steps - 1].phase] += last;
    sum_memory(plan, p);
    if (steps) tell_memory(t, steps);
    return WEFT_OK;
}
