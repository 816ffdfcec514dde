/* board_graph: a plan as a GraphDef of TensorFlow, which TensorBoard draws.
 *
 * Slashes in names make groups: forward/dense.model.c.41/einsum.12. The edges lead from the step that has made a version last. A tensor
 * that nobody has made yet is an input, a variable, or carried from the trip before: then there is no edge, since the picture flows one
 * way.
 */
#include "board_graph.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* fields of messages */
       GRAPH_NODE = 1,
       NODE_NAME = 1,
       NODE_OP = 2,
       NODE_INPUT = 3,
       NODE_DEVICE = 4,
       NODE_ATTRIBUTE = 5,
       ENTRY_KEY = 1,
       ENTRY_VALUE = 2,
       VALUE_LIST = 1,
       VALUE_TEXT = 2,
       LIST_SHAPE = 7,
       SHAPE_DIM = 2,
       DIM_SIZE = 1,
       DIM_NAME = 2
};
enum { MAX_NAME = 400 };

typedef struct drawing {
    const weft_program *program;
    char **names; /* [n_tensors + 1] of the node that has made it last; NULL: none */
    proto *graph, node;
    weft_error *error;
} drawing;

/* ---- words -------------------------------------------------------------------------------------- */

/* One part of a path: only letters that names of TensorFlow may have. A point of ours begins a part where `cuts`. */
static void add_part(char name[MAX_NAME], const char *part, bool cuts)
{
    size_t used = strlen(name);
    for (; *part != '\0' && used + 1 < MAX_NAME; part++) {
        const unsigned char c = (unsigned char)*part;
        name[used++] = isalnum(c) || c == '_' || c == '-' ? *part : cuts && c == '.' ? '/' : '.';
    }
    name[used] = '\0';
}

static void add_slash(char name[MAX_NAME])
{
    const size_t used = strlen(name);
    if (used + 1 < MAX_NAME) memcpy(name + used, "/", 2);
}

static void add_text(char *text, size_t room, const char *more, const char *after)
{
    const size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s%s", used > 0 ? "," : "", more, after);
}

/* Which axes split what. */
static void print_place(const weft_program *program, const weft_planned_tensor *t, char *text,
                        size_t room)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    *text = '\0';
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        char axis[80];
        const int state = weft_spec_state(&t->spec, t->shape->n_dims, a);
        snprintf(axis, sizeof axis, ":%s", weft_mesh_axis_name(mesh, a));
        if (state >= 0)
            add_text(text, room, t->shape->dims[state].name, axis);
        else if (state == WEFT_PARTIAL)
            add_text(text, room, "partial", axis);
    }
    if (*text == '\0') snprintf(text, room, "whole");
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *op_of(const weft_planned_step *step)
{
    switch (step->kind) {
    case WEFT_STEP_CONVERT:
        return weft_convert_name(step->collective);
    case WEFT_STEP_KERNEL:
        return step->op ? step->op : "kernel";
    default:
        return weft_step_kind_name(step->kind);
    }
}

static void name_step(const weft_planned_step *step, char name[MAX_NAME])
{
    char place[200], number[16];
    *name = '\0';
    add_part(name, weft_phase_name(step->phase), false);
    add_slash(name);
    if (step->builder || step->file) {
        snprintf(place, sizeof place, "%.60s.%.100s.%d", step->builder ? step->builder : "call",
                 step->file ? base_of(step->file) : "", step->line);
        add_part(name, place, false);
        add_slash(name);
    }
    snprintf(number, sizeof number, ".%d", step->index);
    add_part(name, op_of(step), false);
    add_part(name, number, false);
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static void put_attribute(drawing *d, const char *key, proto *value)
{
    proto entry = {0};
    proto_text(&entry, ENTRY_KEY, key);
    proto_message(&entry, ENTRY_VALUE, value);
    proto_message(&d->node, NODE_ATTRIBUTE, &entry);
    proto_free(&entry);
}

static void put_text(drawing *d, const char *key, const char *text)
{
    proto value = {0};
    if (text == NULL || *text == '\0') return;
    proto_text(&value, VALUE_TEXT, text);
    put_attribute(d, key, &value);
    proto_free(&value);
}

static void put_shape(drawing *d, const weft_shape *shape)
{
    proto dim = {0}, dims = {0}, list = {0}, value = {0};
    for (int i = 0; i < shape->n_dims; i++) {
        proto_number(&dim, DIM_SIZE, (uint64_t)shape->dims[i].size);
        proto_text(&dim, DIM_NAME, shape->dims[i].name);
        proto_message(&dims, SHAPE_DIM, &dim);
    }
    proto_message(&list, LIST_SHAPE, &dims);
    proto_message(&value, VALUE_LIST, &list);
    put_attribute(d, "_output_shapes", &value);
    proto_free(&dim);
    proto_free(&dims);
    proto_free(&list);
    proto_free(&value);
}

/* Where it lives, of which dims, and how many bytes of it rank 0 has. */
static void put_result(drawing *d, const weft_planned_tensor *t)
{
    char text[480];
    print_place(d->program, t, text, sizeof text);
    proto_text(&d->node, NODE_DEVICE, text);
    put_shape(d, t->shape);
    weft_spec_print(&t->spec, weft_program_mesh(d->program), t->shape, text, sizeof text);
    put_text(d, "spec", text);
    put_text(d, "dtype", weft_dtype_name(t->dtype));
    snprintf(text, sizeof text, "%lld", (long long)t->bytes);
    put_text(d, "bytes", text);
}

static void end_node(drawing *d)
{
    proto_message(d->graph, GRAPH_NODE, &d->node);
}

static weft_status keep_name(drawing *d, uint32_t id, const char *name)
{
    char *copy = strdup(name);
    if (!copy) return weft_fail_memory(d->error, strlen(name) + 1);
    free(d->names[id]);
    d->names[id] = copy;
    return WEFT_OK;
}

/* What is there before a run: inputs, variables, slots. */
static weft_status draw_kept(drawing *d, uint32_t id)
{
    char name[MAX_NAME] = "", number[16];
    weft_planned_tensor t;
    WEFT_TRY(weft_plan_tensor_at(d->program, id, 0, &t, d->error));
    if (t.kind == WEFT_TENSOR_TEMPORARY || t.shares != 0) return WEFT_OK;
    add_part(name, t.kind == WEFT_TENSOR_INPUT ? "inputs" : "variables", false);
    add_slash(name);
    snprintf(number, sizeof number, ".%u", id);
    add_part(name, t.name ? t.name : "value", true);
    add_part(name, number, false);
    proto_text(&d->node, NODE_NAME, name);
    proto_text(&d->node, NODE_OP, weft_tensor_kind_name(t.kind));
    put_result(d, &t);
    end_node(d);
    return keep_name(d, id, name);
}

static void put_inputs(drawing *d, const weft_planned_step *step)
{
    for (int i = 0; i < step->n_in; i++) {
        bool is_again = false;
        const char *from = d->names[step->in[i]], *other;
        for (int k = 0; k < i && from; k++)
            is_again |= (other = d->names[step->in[k]]) != NULL && strcmp(other, from) == 0;
        if (from && !is_again) proto_text(&d->node, NODE_INPUT, from);
    }
}

static void put_work(drawing *d, const weft_planned_step *step)
{
    char text[200];
    put_text(d, "reason", step->reason);
    put_text(d, "kernel", step->kernel);
    snprintf(text, sizeof text, "%.6g", step->flops);
    if (step->flops > 0) put_text(d, "flops", text);
    snprintf(text, sizeof text, "%lld", (long long)step->wire_bytes);
    if (step->wire_bytes > 0) put_text(d, "wire_bytes", text);
    if (step->file) {
        snprintf(text, sizeof text, "%.180s:%d", step->file, step->line);
        put_text(d, "place", text);
    }
}

/* The element ops of a loop, in their order. */
static weft_status put_links(drawing *d, const weft_planned_step *step)
{
    char text[480] = "";
    for (int i = 0; i < step->n_links; i++) {
        weft_planned_link link;
        WEFT_TRY(weft_plan_link_at(d->program, step->index, i, &link, d->error));
        add_text(text, sizeof text, link.op, "");
    }
    put_text(d, "ops", text);
    return WEFT_OK;
}

static weft_status draw_step(drawing *d, int index)
{
    char name[MAX_NAME];
    weft_planned_step step;
    WEFT_TRY(weft_plan_step_at(d->program, index, 0, &step, d->error));
    if (step.n_out == 0) return WEFT_OK; /* the end of a region, a guard */
    name_step(&step, name);
    proto_text(&d->node, NODE_NAME, name);
    proto_text(&d->node, NODE_OP, op_of(&step));
    put_inputs(d, &step);
    weft_planned_tensor t;
    WEFT_TRY(weft_plan_tensor_at(d->program, step.out[0], 0, &t, d->error));
    put_result(d, &t);
    put_work(d, &step);
    if (step.kind == WEFT_STEP_LOOP) WEFT_TRY(put_links(d, &step));
    end_node(d);
    for (int o = 0; o < step.n_out; o++)
        WEFT_TRY(keep_name(d, step.out[o], name));
    return WEFT_OK;
}

static weft_status draw(drawing *d)
{
    const int n = weft_plan_n_tensors(d->program);
    for (int id = 1; id <= n; id++)
        WEFT_TRY(draw_kept(d, (uint32_t)id));
    for (int s = 0; s < weft_plan_n_steps(d->program); s++)
        WEFT_TRY(draw_step(d, s));
    return d->graph->is_short ? weft_fail_memory(d->error, d->graph->bytes) : WEFT_OK;
}

weft_status board_graph(const weft_program *program, proto *graph, weft_error *error)
{
    const size_t n = (size_t)weft_plan_n_tensors(program) + 1;
    drawing d = {.program = program, .graph = graph, .error = error};
    d.names = calloc(n, sizeof *d.names);
    if (!d.names) return weft_fail_memory(error, n * sizeof *d.names);
    const weft_status status = draw(&d);
    for (size_t i = 0; i < n; i++)
        free(d.names[i]);
    free(d.names);
    proto_free(&d.node);
    return status;
}
