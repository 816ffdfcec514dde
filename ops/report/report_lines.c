/* report_lines: tensors and steps of a plan as lines of text, for the report and for the one as JSON. */
#include "report.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void weft_report_axes(const weft_mesh *mesh, uint32_t axes, char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (!(axes >> a & 1) || used >= room) continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "+" : "",
                                 weft_mesh_axis_name(mesh, a));
    }
}

void weft_report_queue(const weft_program *program, uint32_t axes, char *text, size_t room)
{
    weft_report_axes(weft_program_mesh(program), axes, text, room);
    if (!axes) snprintf(text, room, "compute");
}

void weft_report_place(const char *op, const char *builder, const char *file, int line, char *text,
                       size_t room)
{
    const bool is_inner = builder && strcmp(op, builder) != 0;
    if (file)
        snprintf(text, room, "%s%s%s at %s:%d", op, is_inner ? " of " : "", is_inner ? builder : "",
                 file, line);
    else
        snprintf(text, room, "%s", op);
}

static void box_text(const weft_planned_tensor *tensor, char *text, size_t room)
{
    weft_shape local = *tensor->shape;
    for (int d = 0; d < local.n_dims; d++)
        local.dims[d].size = tensor->box.end[d] - tensor->box.begin[d];
    weft_shape_print(&local, text, room);
}

weft_status weft_report_tensor(const weft_program *program, uint32_t id, weft_tensor_line *line,
                               weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    WEFT_TRY(weft_plan_tensor_at(program, id, 0, &line->t, error));
    const weft_planned_tensor *t = &line->t;
    weft_shape_print(t->shape, line->dims, sizeof line->dims);
    weft_spec_print(&t->spec, mesh, t->shape, line->spec, sizeof line->spec);
    weft_spec_print(&t->wanted, mesh, t->shape, line->wanted, sizeof line->wanted);
    weft_spec_print(&t->storage, mesh, t->shape, line->storage, sizeof line->storage);
    box_text(t, line->box, sizeof line->box);
    return WEFT_OK;
}

bool weft_report_exchanges(const weft_planned_step *step)
{
    return step->kind == WEFT_STEP_CONVERT && step->axes;
}

weft_status weft_report_step(const weft_program *program, int index, weft_step_line *line,
                             weft_error *error)
{
    *line = (weft_step_line){0};
    WEFT_TRY(weft_plan_step_at(program, index, 0, &line->s, error));
    const weft_planned_step *s = &line->s;
    weft_report_place(s->op, s->builder, s->file, s->line, line->place, sizeof line->place);
    weft_report_queue(program, weft_report_exchanges(s) ? s->axes : 0, line->queue,
                      sizeof line->queue);
    if (!weft_report_exchanges(s)) return WEFT_OK;
    weft_planned_tensor moved;
    uint32_t id = s->collective == WEFT_ALL_GATHER ? s->out[0] : s->in[0];
    WEFT_TRY(weft_plan_tensor_at(program, id, 0, &moved, error));
    box_text(&moved, line->box, sizeof line->box);
    line->n_more = s->n_in - 1;
    weft_report_axes(weft_program_mesh(program), s->axes, line->axes, sizeof line->axes);
    line->value = moved.name;
    return WEFT_OK;
}

weft_traffic *weft_report_traffic(const weft_program *program, int *n)
{
    *n = weft_plan_traffic(program, 0, NULL, 0);
    weft_traffic *traffic = calloc((size_t)*n + 1, sizeof *traffic);
    if (traffic) weft_plan_traffic(program, 0, traffic, *n);
    return traffic;
}

weft_status weft_report_fail(weft_error *error)
{
    const int reason = errno;
    return weft_fail(error, reason == ENOMEM ? WEFT_MEMORY : WEFT_IO,
                     "the plan could not be written%s%s", reason ? ": " : "",
                     reason ? strerror(reason) : "");
}
