/* workload: what a step asks of a machine. See workload.h. */
#include "workload.h"

#include "attributes.h"
#include "recorder.h"
#include <math.h>
#include <string.h>

static uint64_t mix_text(uint64_t id, const char *text)
{
    return weft_digest(id, text, strlen(text) + 1);
}

static uint64_t mix_view(uint64_t id, const weft_view *view)
{
    id = weft_digest(id, &view->dtype, sizeof view->dtype);
    for (int d = 0; d < view->shape.n_dims; d++) {
        const int64_t size = weft_view_size(view, d);
        id = mix_text(id, view->shape.dims[d].name);
        id = weft_digest(id, &size, sizeof size);
    }
    return id;
}

static double bytes_of(const weft_view *view)
{
    return (double)weft_view_count(view) * (double)weft_dtype_bytes(view->dtype);
}

static void act(weft_workload *work, const char *op, double elements)
{
    int at = 0;
    while (at < work->n_acts && strcmp(work->acts[at].op, op) != 0)
        at++;
    if (at == WEFT_WORK_ACTS) at--;
    if (at == work->n_acts) work->acts[work->n_acts++] = (weft_act){op, 0};
    work->acts[at].elements += elements;
}

/* Numbers that enter the arithmetic change no time, and shapes are those of the views. */
static uint64_t mix_attributes(uint64_t id, const weft_node *node)
{
    const weft_attributes *described = node->op->attributes;
    for (int f = 0; described && node->attributes && f < described->n_fields; f++) {
        const weft_field *field = &described->fields[f];
        const void *value = (const char *)node->attributes + field->offset;
        if (field->kind == &weft_field_name)
            id = mix_text(id, *(const char *const *)value ? *(const char *const *)value : "");
        else if (field->kind == &weft_field_bool)
            id = weft_digest(id, value, sizeof(bool));
        else if (field->kind == &weft_field_int || field->kind == &weft_field_unsigned)
            id = weft_digest(id, value, sizeof(int));
        else if (field->kind == &weft_field_int64)
            id = weft_digest(id, value, sizeof(int64_t));
    }
    return id;
}

/* ---- one kind of step each ----------------------------------------------------------------------- */

static void see(weft_workload *work, const weft_plan *plan, uint32_t placed, int rank, int size)
{
    weft_view view;
    weft_placed_view(plan, placed, rank, &view);
    work->id = mix_view(work->id, &view);
    work->bytes += bytes_of(&view);
    work->sizes[size] += bytes_of(&view);
}

/* All operands are one size, and all results another. */
static void see_all(weft_workload *work, const weft_plan *plan, const weft_step *step, int rank)
{
    for (int i = 0; i < step->n_in; i++)
        see(work, plan, step->in[i], rank, 0);
    for (int o = 0; o < step->n_out; o++)
        see(work, plan, step->out[o], rank, 1);
    work->n_sizes = 2;
}

static void see_kernel(weft_workload *work, const weft_plan *plan, const weft_step *step, int rank)
{
    const weft_node *node = &plan->graph->nodes[step->node];
    work->name = node->op->name;
    work->id = mix_attributes(mix_text(work->id, work->name), node);
    for (int i = 0; i < step->n_in; i++)
        see(work, plan, step->in[i], rank, work->n_sizes++);
    for (int o = 0; o < step->n_out; o++)
        see(work, plan, step->out[o], rank, work->n_sizes++);
    const double flops = weft_step_flops(plan, step, rank);
    if (node->op->flops)
        work->flops = flops;
    else
        act(work, work->name, flops);
}

static void see_loop(weft_workload *work, const weft_plan *plan, const weft_step *step, int rank)
{
    double elements = 0;
    work->name = "loop";
    for (int g = 0; g < step->n_segments; g++) {
        weft_view space;
        weft_placed_view(plan, step->space[g], rank, &space);
        elements += (double)weft_view_count(&space);
    }
    for (int k = 0; k < step->n_links; k++) {
        const char *op = weft_link_op(plan, &step->links[k])->name;
        work->id = mix_text(work->id, op);
        work->id = weft_digest(work->id, step->links[k].in,
                               sizeof *step->links[k].in * (size_t)step->links[k].n_in);
        act(work, op, elements);
    }
    see_all(work, plan, step, rank);
}

/* Of a stack the trip's element alone. */
static void see_copy(weft_workload *work, const weft_plan *plan, const weft_step *step, int rank)
{
    work->name = "copy";
    see_all(work, plan, step, rank);
    work->sizes[0] = work->sizes[1] = fmin(work->sizes[0], work->sizes[1]);
    work->bytes = work->sizes[0] + work->sizes[1];
}

static void see_convert(weft_workload *work, const weft_plan *plan, const weft_step *step, int rank)
{
    work->name = "move";
    work->id = mix_text(work->id, weft_convert_name(step->convert.kind));
    see_all(work, plan, step, rank);
}

typedef void (*seer)(weft_workload *work, const weft_plan *plan, const weft_step *step, int rank);
/* NULL: it does nothing worth the name. */
static const seer seers[WEFT_STEPS] = {[WEFT_STEP_KERNEL] = see_kernel,
                                       [WEFT_STEP_LOOP] = see_loop,
                                       [WEFT_STEP_CONVERT] = see_convert,
                                       [WEFT_STEP_COPY] = see_copy};

void weft_step_workload(const weft_plan *plan, const weft_step *step, int rank,
                        weft_workload *workload)
{
    weft_view first;
    *workload = (weft_workload){.id = 0xcbf29ce484222325};
    if (!seers[step->kind]) return;
    weft_placed_view(plan, step->n_in > 0 ? step->in[0] : step->out[0], rank, &first);
    workload->dtype = first.dtype;
    seers[step->kind](workload, plan, step, rank);
}
