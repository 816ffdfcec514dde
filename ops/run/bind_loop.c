/* bind_loop.c: a step that is a loop, with pointers and strides: prepared, so that a run only runs it. */
#include "bind_loop.h"
#include "loops.h"

#include <string.h>

/* Operands and results of the loop itself: the step has them once for each segment. */
static int per_segment(const weft_step *step, int n)
{
    return n / step->n_segments;
}

/* ---- where it is done: a segment ------------------------------------------------------------- */

typedef struct loop_order { /* of the dims of a space: those of the row are last */
    weft_view view;
    int n_row_dims, n_piece_dims;
} loop_order;

/* Dim d of the tensor comes next. */
static void add_dim(weft_view *view, const weft_view *tensor, int d)
{
    const int at = view->shape.n_dims++;
    view->shape.dims[at] = tensor->shape.dims[d];
    view->box.begin[at] = tensor->box.begin[d], view->box.end[at] = tensor->box.end[d];
}

/* Both parts keep the order that they lie in. A row lies in one piece if its dims were the last ones. */
static void put_in_order(const weft_view *tensor, unsigned row_dims, loop_order *order)
{
    const int n = tensor->shape.n_dims;
    *order = (loop_order){.view.dtype = tensor->dtype};
    for (int d = 0; d < n; d++)
        if (!(row_dims >> d & 1)) add_dim(&order->view, tensor, d);
    order->n_row_dims = n - order->view.shape.n_dims;
    for (int d = 0; d < n; d++)
        if (row_dims >> d & 1) add_dim(&order->view, tensor, d);
    for (int d = n - 1; d >= 0 && (row_dims >> d & 1); d--)
        order->n_piece_dims++;
    if (order->n_piece_dims == order->n_row_dims) order->n_piece_dims = 0;
}

static void view_of(const weft_rank *rank, uint32_t placed, weft_view *view)
{
    weft_placed_view(rank->program->plan, placed, rank->rank, view);
    view->data = rank->memory[placed];
}

static void bind_strides(const weft_rank *rank, uint32_t placed, const weft_shape *space,
                         int64_t *stride)
{
    const weft_plan *plan = rank->program->plan;
    const weft_shape *shape = &plan->placed[placed].type.shape;
    weft_lie lie;
    weft_placed_lie(plan, placed, rank->rank, &lie);
    for (int d = 0; d < shape->n_dims; d++) {
        const int at = weft_shape_find(space, shape->dims[d].name);
        if (at >= 0) stride[at] = lie.stride[d];
    }
}

/* The index a block function sees, as an affine function of the space: in the whole of the op's own result, or along
 * one dim. */
static void bind_block_index(const weft_plan *plan, const weft_fused_op *link,
                             const weft_view *space, weft_loop_index *index)
{
    const weft_node *node = &plan->graph->nodes[link->node];
    const weft_element *element = weft_link_op(plan, link)->element;
    const weft_element_attributes *attributes = node->attributes;
    const weft_shape *out = &plan->graph->tensors[node->out].type.shape;
    int64_t stride = 1;
    if (element->index == WEFT_INDEX_NONE) return;
    for (int d = out->n_dims - 1; d >= 0; d--) {
        const int at = weft_shape_find(&space->shape, out->dims[d].name);
        const bool is_named =
            attributes->dim != NULL && strcmp(out->dims[d].name, attributes->dim) == 0;
        const int64_t every = is_named && attributes->every > 0 ? attributes->every : 1;
        const bool counts = element->index == WEFT_INDEX_LINEAR || is_named;
        index->stride[at] = counts ? stride * every : 0;
        index->begin += index->stride[at] * space->box.begin[at];
        if (is_named) index->begin += stride * attributes->from;
        if (is_named && attributes->every > 0) index->trip = stride;
        if (element->index == WEFT_INDEX_LINEAR) stride *= out->dims[d].size * every;
    }
}

/* Argmax: the index of a row's first element along the dim that is reduced. */
static void bind_row_index(const weft_plan *plan, const weft_fused_op *link, const weft_view *space,
                           weft_loop_index *index)
{
    const weft_node *node = &plan->graph->nodes[link->node];
    if (node->op->row->combine != WEFT_ARGMAX) return;
    const weft_reduce_attributes *attributes = node->attributes;
    index->begin = space->box.begin[weft_shape_find(&space->shape, attributes->dim)];
}

static void bind_index(const weft_plan *plan, const weft_fused_op *link, const weft_view *space,
                       weft_loop_index *index)
{
    if (link->kind == WEFT_LOOP_REDUCE)
        bind_row_index(plan, link, space, index);
    else if (link->kind != WEFT_LOOP_FINISH)
        bind_block_index(plan, link, space, index);
}

/* Has it the elements of rows, or a value of each? */
static bool has_row(const weft_rank *rank, uint32_t placed, const weft_shape *space)
{
    const weft_shape *its = &rank->program->plan->placed[placed].type.shape;
    return weft_shape_find(its, space->dims[space->n_dims - 1].name) >= 0;
}

static void bind_segment(const weft_rank *rank, const weft_step *step, int g, const int *op_of,
                         weft_loop_segment *segment)
{
    const weft_plan *plan = rank->program->plan;
    const int n_in = per_segment(step, step->n_in), n_out = per_segment(step, step->n_out);
    weft_view tensor;
    loop_order order;
    view_of(rank, step->space[g], &tensor);
    put_in_order(&tensor, step->row_dims, &order);
    const weft_shape *shape = &order.view.shape;
    segment->n_dims = shape->n_dims;
    segment->n_row_dims = order.n_row_dims, segment->n_piece_dims = order.n_piece_dims;
    for (int d = 0; d < shape->n_dims; d++)
        segment->size[d] = weft_view_size(&order.view, d);
    for (int i = 0; i < n_in; i++) {
        segment->in[i].data = rank->memory[step->in[g * n_in + i]];
        bind_strides(rank, step->in[g * n_in + i], shape, segment->in[i].stride);
    }
    for (int o = 0; o < n_out; o++) {
        const uint32_t placed = step->out[g * n_out + o];
        segment->out[o] = rank->memory[placed];
        if (!weft_is_contiguous(plan, placed) ||
            (order.n_piece_dims && has_row(rank, placed, shape)))
            bind_strides(rank, placed, shape, segment->out_stride[o]);
    }
    for (int k = 0; k < step->n_links; k++)
        if (op_of[k] >= 0)
            bind_index(plan, &step->links[k], &order.view, &segment->index[op_of[k]]);
}

/* As its step says. */
static weft_status bind_anew(weft_rank *rank, weft_bound_step *bound,
                             const weft_loop_driver *driver, weft_error *error)
{
    const weft_step *step = bound->step;
    const weft_plan *plan = rank->program->plan;
    weft_arena *arena = rank->program->arena;
    const size_t bytes = (size_t)step->n_links * sizeof(int);
    weft_loop *loop;
    const weft_loop counts = {.n_in = per_segment(step, step->n_in),
                              .n_ops = weft_bind_count_ops(plan, step),
                              .n_out = per_segment(step, step->n_out),
                              .n_segments = step->n_segments};
    int *op_of = weft_arena_take(arena, bytes);
    if (!op_of) return weft_fail_memory(error, bytes);
    WEFT_TRY(weft_loop_take(arena, counts, &loop, error));
    WEFT_TRY(weft_bind_ops(plan, step, loop, op_of, arena, error));
    for (int g = 0; g < step->n_segments; g++)
        bind_segment(rank, step, g, op_of, &loop->segment[g]);
    return driver->bind(loop, bound->part, rank->stream, arena, &bound->loop.prepared, error);
}

/* As one that is like it was, at its own addresses. */
static weft_status bind_again(weft_rank *rank, weft_bound_step *bound, const void *like,
                              const weft_loop_driver *driver, weft_error *error)
{
    const weft_step *step = bound->step;
    weft_arena *arena = rank->program->arena;
    const size_t n_in = (size_t)step->n_in, n_out = (size_t)step->n_out;
    const void **in = weft_arena_take(arena, n_in * sizeof *in);
    void **out = weft_arena_take(arena, n_out * sizeof *out);
    if (!in || !out) return weft_fail_memory(error, (n_in + n_out) * sizeof *in);
    for (int i = 0; i < step->n_in; i++)
        in[i] = rank->memory[step->in[i]];
    for (int o = 0; o < step->n_out; o++)
        out[o] = rank->memory[step->out[o]];
    return driver->again(like, bound->part, in, out, arena, &bound->loop.prepared, error);
}

weft_status weft_bind_loop(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    weft_bound_like *like = &rank->likes[plan->likes.of_step[bound - rank->steps]];
    const weft_loop_driver *driver;
    WEFT_TRY(weft_loop_driver_of(weft_mesh_device(rank->program->mesh), &driver, error));
    bound->loop.run = driver->run;
    bound->loop.move = driver->move;
    bound->loop.draws = weft_loop_draws(plan, bound->step);
    if (like->loop && driver->again) WEFT_TRY(bind_again(rank, bound, like->loop, driver, error));
    if (!bound->loop.prepared) WEFT_TRY(bind_anew(rank, bound, driver, error));
    if (!like->loop) like->loop = bound->loop.prepared;
    return WEFT_OK;
}
