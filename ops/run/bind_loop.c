/* bind_loop.c: a step that is a loop, with pointers and strides: prepared, so that a run only runs it. */
#include "program.h"

#include <string.h>

/* Operands and results of the loop itself: the step has them once for each segment. */
static int per_segment(const weft_step *step, int n)
{
    return n / step->n_segments;
}

/* ---- what is done: the same in all segments -------------------------------------------------- */

static weft_status bind_block(const weft_plan *plan, const weft_link *link, weft_loop_op *op,
                              weft_error *error)
{
    const weft_graph *graph = plan->graph;
    const weft_node *node = &graph->nodes[link->node];
    const weft_op *does = weft_link_op(plan, link);
    const weft_dtype made = graph->tensors[node->out].type.dtype;
    const weft_dtype read = node->n_in ? graph->tensors[node->in[node->n_in - 1]].type.dtype : made;
    op->block = does->element->block[read][made];
    if (!op->block)
        return weft_fail(error, WEFT_INTERNAL, "op %s is not defined from %s to %s", does->name,
                         weft_dtype_name(read), weft_dtype_name(made));
    if (read == WEFT_F32 && made == WEFT_F32) op->relay = weft_relay_of(does->element);
    op->env.seed = graph->seed;
    if (does != node->op) return WEFT_OK; /* the attributes are the reduction's */
    const weft_element_attributes *attributes = node->attributes;
    memcpy(op->env.number, attributes->number, sizeof op->env.number);
    op->env.random = attributes->random;
    return WEFT_OK;
}

static weft_status bind_reduce(const weft_plan *plan, const weft_link *link, weft_loop_op *op,
                               weft_error *error)
{
    (void)error;
    const weft_node *node = &plan->graph->nodes[link->node];
    op->combine = node->op->row->combine;
    op->dtype = plan->graph->tensors[node->in[0]].type.dtype;
    return WEFT_OK;
}

static weft_status bind_finish(const weft_plan *plan, const weft_link *link, weft_loop_op *op,
                               weft_error *error)
{
    (void)error;
    const weft_node *node = &plan->graph->nodes[link->node];
    op->finish = node->op->row->finish[plan->graph->tensors[node->in[0]].type.dtype];
    if (node->op->attributes == &weft_attributes_number)
        op->env.number[0] = ((const weft_number_attributes *)node->attributes)->number;
    return WEFT_OK;
}

static weft_status bind_op(const weft_plan *plan, const weft_link *link, weft_loop_op *op,
                           weft_error *error)
{
    static weft_status (*const binders[])(const weft_plan *, const weft_link *, weft_loop_op *,
                                          weft_error *) = {[WEFT_LOOP_ELEMENTS] = bind_block,
                                                           [WEFT_LOOP_REDUCE] = bind_reduce,
                                                           [WEFT_LOOP_ROWS] = bind_block,
                                                           [WEFT_LOOP_FINISH] = bind_finish};
    const weft_node *node = &plan->graph->nodes[link->node];
    op->kind = link->kind;
    op->n_in = link->n_in;
    memcpy(op->in, link->in, sizeof op->in);
    op->n_out = link->n_out;
    op->bytes = (int)weft_dtype_bytes(plan->graph->tensors[node->out].type.dtype);
    return binders[link->kind](plan, link, op, error);
}

/* A dim that the space lacks holds the numbers of a state. */
static int width_in(const weft_shape *space, const weft_shape *shape)
{
    const int at = weft_shape_find(shape, WEFT_STATE_DIM);
    return at < 0 || weft_shape_find(space, WEFT_STATE_DIM) >= 0 ? 1 : (int)shape->dims[at].size;
}

/* The link, + 1, whose result the link's op resumes (weft_row); 0: none. */
static int bind_difference(const weft_plan *plan, const weft_step *step, const weft_link *link)
{
    const weft_op *op = weft_link_op(plan, link);
    for (int k = 0, slot = step->n_in / step->n_segments; op->row && k < step->n_links; k++) {
        if (slot == link->in[0])
            return weft_link_op(plan, &step->links[k]) == op->row->resumes ? k + 1 : 0;
        slot += step->links[k].n_out;
    }
    return 0;
}

static weft_status bind_ops(const weft_plan *plan, const weft_step *step, weft_loop *loop,
                            weft_error *error)
{
    const weft_shape *space = &plan->placed[step->space[0]].type.shape;
    for (int i = 0; i < loop->n_in; i++) {
        const weft_type *type = &plan->placed[step->in[i]].type;
        loop->in[i] = (weft_loop_in){.bytes = (int)weft_dtype_bytes(type->dtype),
                                     .width = width_in(space, &type->shape)};
    }
    for (int k = 0, slot = loop->n_in; k < step->n_links; k++) {
        const weft_link *link = &step->links[k];
        WEFT_TRY(bind_op(plan, link, &loop->op[k], error));
        loop->op[k].difference = bind_difference(plan, step, link);
        for (int o = 0; o < link->n_out; o++, slot++)
            if (link->out[o] >= 0) loop->out[link->out[o]] = slot;
    }
    return WEFT_OK;
}

/* ---- where it is done: a segment ------------------------------------------------------------- */

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

/* The index a block function sees, as an affine function of the space: in the whole of the op's own result, or along
 * one dim. */
static void bind_block_index(const weft_plan *plan, const weft_link *link, const weft_view *space,
                             weft_loop_index *index)
{
    const weft_node *node = &plan->graph->nodes[link->node];
    const weft_element *element = weft_link_op(plan, link)->element;
    const weft_element_attributes *attributes = node->attributes;
    const weft_shape *out = &plan->graph->tensors[node->out].type.shape;
    int64_t stride = 1;
    if (element->index == WEFT_INDEX_NONE) return;
    for (int d = out->n_dims - 1; d >= 0; d--) {
        const int at = weft_shape_find(&space->shape, out->dims[d].name);
        const bool counts =
            element->index == WEFT_INDEX_LINEAR || strcmp(out->dims[d].name, attributes->dim) == 0;
        index->stride[at] = counts ? stride : 0;
        index->begin += index->stride[at] * space->box.begin[at];
        if (element->index == WEFT_INDEX_LINEAR) stride *= out->dims[d].size;
    }
}

/* Argmax: the index of a row's first element along the dim that is reduced. */
static void bind_row_index(const weft_plan *plan, const weft_link *link, const weft_view *space,
                           weft_loop_index *index)
{
    const weft_node *node = &plan->graph->nodes[link->node];
    if (node->op->row->combine != WEFT_ARGMAX) return;
    const weft_reduce_attributes *attributes = node->attributes;
    index->begin = space->box.begin[weft_shape_find(&space->shape, attributes->dim)];
}

static void bind_index(const weft_plan *plan, const weft_link *link, const weft_view *space,
                       weft_loop_index *index)
{
    if (link->kind == WEFT_LOOP_REDUCE)
        bind_row_index(plan, link, space, index);
    else if (link->kind != WEFT_LOOP_FINISH)
        bind_block_index(plan, link, space, index);
}

static void bind_segment(const weft_rank *rank, const weft_step *step, int g,
                         weft_loop_segment *segment)
{
    const weft_plan *plan = rank->program->plan;
    const int n_in = per_segment(step, step->n_in), n_out = per_segment(step, step->n_out);
    weft_view space, view;
    view_of(rank, step->space[g], &space);
    segment->n_dims = space.shape.n_dims;
    segment->n_row_dims = step->n_row_dims;
    for (int d = 0; d < space.shape.n_dims; d++)
        segment->size[d] = weft_view_size(&space, d);
    for (int i = 0; i < n_in; i++) {
        view_of(rank, step->in[g * n_in + i], &view);
        bind_operand(&view, &space.shape, &segment->in[i]);
    }
    for (int o = 0; o < n_out; o++) {
        view_of(rank, step->out[g * n_out + o], &view);
        segment->out[o] = view.data;
    }
    for (int k = 0; k < step->n_links; k++)
        bind_index(plan, &step->links[k], &space, &segment->index[k]);
}

weft_status weft_bind_loop(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_step *step = bound->step;
    weft_loop *loop;
    const weft_loop counts = {.n_in = per_segment(step, step->n_in),
                              .n_ops = step->n_links,
                              .n_out = per_segment(step, step->n_out),
                              .n_segments = step->n_segments};
    WEFT_TRY(weft_loop_take(rank->program->arena, counts, &loop, error));
    WEFT_TRY(bind_ops(rank->program->plan, step, loop, error));
    for (int g = 0; g < step->n_segments; g++)
        bind_segment(rank, step, g, &loop->segment[g]);
    const weft_loop_driver *driver;
    WEFT_TRY(weft_loop_driver_of(weft_mesh_device(rank->program->mesh), &driver, error));
    bound->run_loop = driver->run;
    return driver->bind(loop, bound->part, rank->stream, rank->program->arena, &bound->loop, error);
}
