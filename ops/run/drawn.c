/* drawn: numbers for inputs that nobody has written, for kernels that are timed on them.
 *
 * A kernel may take longer where numbers differ: a branch that is not always the same, a row of a table that is another each time.
 * So ids are uniform below the size of the dim that they are ids of. Floats are a wave, since in pictures and sounds what lies side
 * by side is alike: of numbers that are drawn one by one a kernel that looks for the largest is slower than on any data. A scalar
 * stays zero: it says how something is done (a rate, a factor). So do integers that are no ids.
 */
#include "program.h"

static const double WAVE = 0.1; /* radians from element to element */

/* The input that a value has the numbers of: by value, its placed id; 0: none. Ids keep what they are through ops of integers. */
static void follow(const weft_graph *graph, uint32_t node, uint32_t *input)
{
    const weft_node *n = &graph->nodes[node];
    for (uint32_t o = n->out; o < n->out + n->n_out; o++)
        for (int i = 0; i < n->n_in && input[o] == 0; i++)
            if (!weft_dtype_is_float(graph->tensors[o].type.dtype)) input[o] = input[n->in[i]];
}

/* What ops of an indexed dim say of their ids, which have not the dim themselves. */
static void bound_ids(const weft_graph *graph, uint32_t node, const uint32_t *input, int64_t *bound)
{
    const weft_node *n = &graph->nodes[node];
    if (n->op->attributes != &weft_attributes_dim) return;
    const weft_dim_attributes *indexed = n->attributes;
    for (int i = 0; i < n->n_in; i++) {
        const weft_type *type = &graph->tensors[n->in[i]].type;
        int64_t *of = &bound[input[n->in[i]]];
        if (weft_dtype_is_float(type->dtype) || weft_shape_find(&type->shape, indexed->dim) >= 0)
            continue;
        if (*of == 0 || indexed->size < *of) *of = indexed->size;
    }
}

static void find_bounds(const weft_plan *plan, uint32_t *input, int64_t *bound)
{
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].home == WEFT_INPUT_HOME) input[plan->placed[id].value] = id;
    for (uint32_t node = 1; node < plan->graph->n_nodes; node++) {
        follow(plan->graph, node, input);
        bound_ids(plan->graph, node, input, bound);
    }
}

static weft_status draw(const weft_rank *rank, uint32_t placed, int64_t below, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    const weft_placed *p = &plan->placed[placed];
    const weft_variable_attributes *input = weft_node_of(plan->graph, p->value)->attributes;
    const bool is_float = weft_dtype_is_float(p->type.dtype);
    const weft_variable_attributes drawn = {.name = input->name,
                                            .initial = is_float ? weft_formula(1, WAVE)
                                                                : weft_uniform(0, (double)below)};
    weft_view view;
    if (p->type.shape.n_dims == 0 || (!is_float && below == 0)) return WEFT_OK;
    weft_placed_view(plan, placed, rank->rank, &view);
    view.data = rank->memory[placed];
    return weft_initialize(&drawn, plan->graph->seed, &view, rank->device, rank->stream, error);
}

weft_status weft_draw_inputs(weft_rank *rank, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    weft_arena *arena = rank->program->arena;
    uint32_t *input = weft_arena_take(arena, (plan->graph->n_tensors + 1) * sizeof *input);
    int64_t *bound = weft_arena_take(arena, (plan->n_placed + 1) * sizeof *bound);
    if (!input || !bound) return weft_fail_memory(error, plan->n_placed * sizeof *bound);
    find_bounds(plan, input, bound);
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].home == WEFT_INPUT_HOME && rank->memory[id])
            WEFT_TRY(draw(rank, id, bound[id], error));
    return WEFT_OK;
}
