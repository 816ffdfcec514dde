/* bind_loop.c: a step of element ops as a loop with pointers and strides. */
#include "program.h"

#include <string.h>

static void view_of(const weft_rank *rank, uint32_t placed, weft_view *view)
{
    weft_placed_view(rank->program->plan, placed, rank->rank, view);
    view->data = rank->memory[placed];
}

static void bind_operand(const weft_view *view, const weft_shape *space, weft_loop_operand *operand)
{
    operand->data = view->data;
    int64_t stride = 1;
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        int at = weft_shape_find(space, view->shape.dims[d].name);
        if (at >= 0) operand->stride[at] = stride;
        stride *= weft_view_size(view, d);
    }
}

/* The index a block function sees, as an affine function of the iteration space. */
static void bind_index(const weft_element *element, const weft_element_attributes *attributes,
                       const weft_view *out, weft_loop_index *index)
{
    int64_t stride = 1;
    if (element->index == WEFT_INDEX_NONE) return;
    for (int d = out->shape.n_dims - 1; d >= 0; d--) {
        bool counts = element->index == WEFT_INDEX_LINEAR ||
                      strcmp(out->shape.dims[d].name, attributes->dim) == 0;
        index->stride[d] = counts ? stride : 0;
        index->begin += index->stride[d] * out->box.begin[d];
        if (element->index == WEFT_INDEX_LINEAR) stride *= out->shape.dims[d].size;
    }
}

static weft_status bind_op(const weft_rank *rank, const weft_link *link, weft_loop_op *op,
                           weft_error *error)
{
    const weft_graph *graph = rank->program->plan->graph;
    const weft_node *node = &graph->nodes[link->node];
    const weft_element_attributes *attributes = node->attributes;
    weft_dtype made = graph->tensors[node->out].type.dtype;
    weft_dtype read = node->n_in ? graph->tensors[node->in[node->n_in - 1]].type.dtype : made;
    op->kind = WEFT_LOOP_ELEMENTS;
    op->block = node->op->element->block[read][made];
    if (!op->block)
        return weft_fail(error, WEFT_INTERNAL, "op %s is not defined from %s to %s", node->op->name,
                         weft_dtype_name(read), weft_dtype_name(made));
    op->bytes = (int)weft_dtype_bytes(made);
    op->n_out = 1;
    op->n_in = link->n_in;
    memcpy(op->in, link->in, sizeof op->in);
    memcpy(op->env.number, attributes->number, sizeof op->env.number);
    op->env.seed = graph->seed;
    op->env.random = attributes->random;
    return WEFT_OK;
}

static void bind_space(const weft_rank *rank, const weft_step *step, weft_loop_segment *segment)
{
    const weft_graph *graph = rank->program->plan->graph;
    weft_view out, in;
    view_of(rank, step->out[0], &out);
    for (int o = 0; o < step->n_out; o++)
        segment->out[o] = rank->memory[step->out[o]];
    segment->n_dims = out.shape.n_dims;
    for (int d = 0; d < out.shape.n_dims; d++)
        segment->size[d] = weft_view_size(&out, d);
    for (int i = 0; i < step->n_in; i++) {
        view_of(rank, step->in[i], &in);
        bind_operand(&in, &out.shape, &segment->in[i]);
    }
    for (int k = 0; k < step->n_links; k++) {
        const weft_node *node = &graph->nodes[step->links[k].node];
        bind_index(node->op->element, node->attributes, &out, &segment->index[k]);
    }
}

weft_status weft_bind_loop(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_step *step = bound->step;
    const weft_plan *plan = rank->program->plan;
    weft_loop *loop;
    const weft_loop counts = {
        .n_in = step->n_in, .n_ops = step->n_links, .n_out = step->n_out, .n_segments = 1};
    WEFT_TRY(weft_loop_take(rank->program->arena, counts, &loop, error));
    for (int i = 0; i < step->n_in; i++) {
        const weft_dtype dtype = plan->placed[step->in[i]].type.dtype;
        loop->in[i] = (weft_loop_in){.bytes = (int)weft_dtype_bytes(dtype), .width = 1};
    }
    for (int k = 0; k < step->n_links; k++) {
        WEFT_TRY(bind_op(rank, &step->links[k], &loop->op[k], error));
        if (step->links[k].out >= 0) loop->out[step->links[k].out] = step->n_in + k;
    }
    bind_space(rank, step, &loop->segment[0]);
    return weft_loop_prepare(loop, rank->program->arena, &bound->loop, error);
}
