/* transfer.c: whole tensors in and out of a program, and the parts that local ranks hold. */
#include "hold.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* Between a box [contiguous] and the whole tensor it is a part of. */
static void copy_box(const weft_view *view, char *part, char *whole, bool into_whole)
{
    int n_dims = view->shape.n_dims, last = n_dims - 1;
    int64_t count = weft_view_count(view), at[WEFT_MAX_DIMS] = {0};
    int64_t run = n_dims ? weft_view_size(view, last) : 1;
    size_t element = weft_dtype_bytes(view->dtype), bytes = (size_t)run * element;
    for (int64_t done = 0; done < count; done += run) {
        int64_t index = 0;
        for (int d = 0; d < n_dims; d++)
            index = index * view->shape.dims[d].size + view->box.begin[d] + at[d];
        char *from = part + (size_t)done * element, *to = whole + (size_t)index * element;
        if (into_whole)
            memcpy(to, from, bytes);
        else
            memcpy(from, to, bytes);
        for (int d = last - 1; d >= 0; d--) {
            if (++at[d] < weft_view_size(view, d)) break;
            at[d] = 0;
        }
    }
}

uint32_t weft_home_of(const weft_program *program, weft_value value)
{
    const weft_plan *plan = program->plan;
    if (value.graph != program->user || value.id == 0 || value.id >= plan->n_user_values) return 0;
    return plan->home[plan->user_value[value.id]];
}

static const char *label_of(weft_value value)
{
    const char *name = value.graph && value.id ? weft_name_of(value) : NULL;
    return name ? name : "the value";
}

static weft_status check_bytes(const char *verb, weft_value value, int64_t bytes, weft_error *error)
{
    const weft_shape *shape = weft_shape_of(value);
    weft_dtype dtype = weft_dtype_of(value);
    int64_t whole = weft_shape_count(shape) * (int64_t)weft_dtype_bytes(dtype);
    if (bytes == whole) return WEFT_OK;
    char text[240];
    weft_shape_print(shape, text, sizeof text);
    return weft_fail(error, WEFT_USAGE, "%s: %s is %s of %s, %lld bytes, but the buffer has %lld",
                     verb, label_of(value), text, weft_dtype_name(dtype), (long long)whole,
                     (long long)bytes);
}

static weft_status check(const weft_program *program, weft_value value, int64_t bytes,
                         const char *verb, uint32_t *home, weft_error *error)
{
    *home = weft_home_of(program, value);
    if (!program->n_local)
        return weft_fail(error, WEFT_USAGE, "%s: the program was compiled on a plan without ranks",
                         verb);
    if (!*home)
        return weft_fail(error, WEFT_USAGE,
                         "%s: %s is not kept by this program; name it in weft_compile's values",
                         verb, label_of(value));
    return check_bytes(verb, value, bytes, error);
}

/* An input that nothing of this program depends on: simplify took it out. */
static bool is_unused_input(const weft_program *program, weft_value value)
{
    return value.graph == program->user && value.id && !weft_home_of(program, value) &&
           weft_node_of(value.graph, value.id)->op == &weft_op_input;
}

weft_status weft_write(weft_program *program, weft_value value, const void *data, int64_t bytes,
                       weft_error *error)
{
    uint32_t home;
    if (is_unused_input(program, value)) return check_bytes("write", value, bytes, error);
    WEFT_TRY(check(program, value, bytes, "write", &home, error));
    if (program->plan->placed[home].home == WEFT_TEMPORARY)
        return weft_fail(error, WEFT_USAGE, "write: only inputs and variables can be written");
    if (program->plan->placed[home].home == WEFT_VARIABLE_HOME) weft_hold_wait(program);
    for (int at = 0; at < program->n_local; at++) {
        weft_rank *rank = &program->ranks[at];
        weft_view view;
        weft_placed_view(program->plan, home, rank->rank, &view);
        copy_box(&view, rank->memory[home], (char *)(uintptr_t)data, false);
    }
    return WEFT_OK;
}

/* Every rank's box to every process, then each to its place. The one process's ranks are all here
 * already. */
static weft_status gather(weft_program *program, uint32_t home, char *parts, int64_t *counts,
                          int64_t *offsets, weft_error *error)
{
    weft_rank *rank = &program->ranks[0];
    uint32_t everybody = (1u << weft_mesh_n_axes(program->mesh)) - 1;
    weft_comm *comm = weft_comm_of(program->comms, rank->rank, everybody);
    weft_request request;
    WEFT_TRY(weft_all_gather_start(comm, rank->memory[home], counts[rank->rank], parts, counts,
                                   offsets, &request, error));
    return weft_wait(&request, error);
}

static weft_status read_far(weft_program *program, uint32_t home, char *whole, weft_error *error)
{
    int n = weft_mesh_n_ranks(program->mesh);
    int64_t *counts = calloc(2 * (size_t)n, sizeof *counts), total = 0;
    if (!counts) return weft_fail_memory(error, (size_t)n * sizeof *counts);
    for (int r = 0; r < n; r++) {
        counts[r] = weft_placed_bytes(program->plan, home, r);
        counts[n + r] = total;
        total += counts[r];
    }
    char *parts = malloc((size_t)total + 1);
    weft_status status = parts ? gather(program, home, parts, counts, counts + n, error)
                               : weft_fail_memory(error, (size_t)total);
    for (int r = 0; r < n && status == WEFT_OK; r++) {
        weft_view view;
        weft_placed_view(program->plan, home, r, &view);
        copy_box(&view, parts + counts[n + r], whole, true);
    }
    free(parts);
    free(counts);
    return status;
}

weft_status weft_read(weft_program *program, weft_value value, void *data, int64_t bytes,
                      weft_error *error)
{
    uint32_t home;
    WEFT_TRY(check(program, value, bytes, "read", &home, error));
    if (program->n_local != weft_mesh_n_ranks(program->mesh))
        return read_far(program, home, data, error);
    for (int at = 0; at < program->n_local; at++) {
        weft_rank *rank = &program->ranks[at];
        weft_view view;
        weft_placed_view(program->plan, home, rank->rank, &view);
        copy_box(&view, rank->memory[home], data, true);
    }
    return WEFT_OK;
}

weft_status weft_read_scalar(weft_program *program, weft_value value, double *number,
                             weft_error *error)
{
    union {
        float f32;
        double f64;
        int32_t i32;
    } bits = {0};
    uint32_t home = weft_home_of(program, value);
    weft_dtype dtype = home ? program->plan->placed[home].type.dtype : WEFT_F32;
    WEFT_TRY(weft_read(program, value, &bits, (int64_t)weft_dtype_bytes(dtype), error));
    if (dtype == WEFT_F32) *number = bits.f32;
    if (dtype == WEFT_F64) *number = bits.f64;
    if (dtype == WEFT_I32) *number = bits.i32;
    return WEFT_OK;
}

void *weft_local(weft_program *program, weft_value value, int rank, weft_box *box)
{
    uint32_t home = weft_home_of(program, value);
    weft_rank *self = weft_rank_of(program, rank);
    if (!home || !self || program->plan->placed[home].home == WEFT_TEMPORARY) return NULL;
    const weft_placed *placed = &program->plan->placed[home];
    weft_spec_box(&placed->spec, program->mesh, &placed->type.shape, rank, box);
    return weft_box_count(box, placed->type.shape.n_dims) ? self->memory[home] : NULL;
}

void weft_box_of(const weft_program *program, weft_value value, int rank, weft_box *box)
{
    *box = (weft_box){0};
    uint32_t home = weft_home_of(program, value);
    if (!home) return;
    const weft_placed *placed = &program->plan->placed[home];
    weft_spec_box(&placed->spec, program->mesh, &placed->type.shape, rank, box);
}

bool weft_is_slot(weft_value variable)
{
    const weft_node *node = weft_node_of(variable.graph, variable.id);
    return node->op == &weft_op_variable &&
           ((const weft_variable_attributes *)node->attributes)->owner != 0;
}

const char *weft_program_layout(const weft_program *program)
{
    return weft_layout_text(program->plan->layout);
}

uint64_t weft_program_digest(const weft_program *program)
{
    return program->digest;
}

/* The user's value that a value of the plan's graph stands for. */
static weft_value user_value_of(const weft_program *program, uint32_t value)
{
    const weft_plan *plan = program->plan;
    for (uint32_t id = 1; id < plan->n_user_values; id++)
        if (plan->user_value[id] == value)
            return (weft_value){(weft_graph *)(uintptr_t)program->user, id};
    return (weft_value){(weft_graph *)(uintptr_t)program->user, 0};
}

weft_value weft_find_input(const weft_program *program, const char *name)
{
    const weft_graph *graph = program->plan->graph;
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_input &&
            strcmp(graph->tensors[graph->nodes[id].out].name, name) == 0)
            return user_value_of(program, graph->nodes[id].out);
    return (weft_value){(weft_graph *)(uintptr_t)program->user, 0};
}

weft_value weft_variable_at(const weft_program *program, int index)
{
    const weft_graph *graph = program->plan->graph;
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_variable && index-- == 0)
            return user_value_of(program, graph->nodes[id].out);
    return (weft_value){(weft_graph *)(uintptr_t)program->user, 0};
}

const char *weft_name_of(weft_value value)
{
    return value.graph->tensors[value.id].name;
}
