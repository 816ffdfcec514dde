/* bind_ops.c: what a loop does, of the links of a step.
 *
 * Where all dtypes are computed with as they are stored, a link is an op. A number of 16 bits, or a u8, is *widened*
 * by an op of its own where it is first read, and *narrowed* where it is a result. A value that goes on in the loop
 * is *rounded* as if it had been stored. So a value is the same whether or not its maker and its reader are one loop,
 * and ops in between run over registers in f32.
 */
#include "bind_loop.h"

#include <string.h>

enum { OF_ELEMENTS, OF_ROWS, KINDS };

/* A slot of the links, and the slots of the loop that it is in some form; -1: not (yet). */
typedef struct form {
    weft_dtype dtype;
    int stored;
    int raw;             /* as its op has made it, not yet rounded */
    int wide[KINDS];     /* in what it is computed with; for ops on elements, on rows */
    weft_loop_kind kind; /* of the op that made it raw */
} form;

typedef struct wiring {
    const weft_plan *plan;
    const weft_step *step;
    weft_loop *loop;
    form *form;      /* [slots of the links] */
    int *op_of;      /* [n_links] */
    int n_ops, slot; /* so far; the next one's first */
} wiring;

static bool reads_rows(weft_loop_kind kind)
{
    return kind == WEFT_LOOP_ROWS || kind == WEFT_LOOP_FINISH;
}

/* Returns the first slot of the op that is added. */
static int add_op(wiring *w, weft_loop_op op)
{
    const int first = w->slot;
    w->loop->op[w->n_ops++] = op;
    w->slot += op.n_out;
    return first;
}

static int add_block(wiring *w, weft_loop_kind kind, const weft_element_way *way, int in)
{
    return add_op(w, (weft_loop_op){.kind = kind,
                                    .block = way->block,
                                    .n_in = 1,
                                    .in = {in},
                                    .n_out = 1,
                                    .bytes = (int)weft_dtype_bytes(way->makes),
                                    .name = "cast",
                                    .text = way->text,
                                    .reads = way->reads,
                                    .makes = way->makes});
}

/* ---- a value in one of its forms ------------------------------------------------------------- */

static int round_raw(wiring *w, form *f)
{
    const weft_dtype wide = weft_dtype_computes(f->dtype);
    const weft_element *round = weft_storages[f->dtype].round;
    const weft_element_way way = {round->block[wide][wide], wide, wide, round->text[wide][wide]};
    const int slot = add_block(w, f->kind, &way, f->raw);
    if (f->kind == WEFT_LOOP_ELEMENTS) w->loop->op[w->n_ops - 1].relay = weft_relay_of(round);
    return slot;
}

/* As it is computed with, for an op of a kind. */
static int wide_slot(wiring *w, int link_slot, weft_loop_kind reader)
{
    form *f = &w->form[link_slot];
    const weft_dtype wide = weft_dtype_computes(f->dtype);
    if (wide == f->dtype) return f->stored;
    const bool of_rows = reads_rows(reader);
    int *at = &f->wide[of_rows ? OF_ROWS : OF_ELEMENTS];
    if (*at >= 0) return *at;
    if (f->raw >= 0) return f->wide[OF_ELEMENTS] = f->wide[OF_ROWS] = round_raw(w, f);
    const weft_storage *storage = &weft_storages[f->dtype];
    return *at = add_block(w, of_rows ? WEFT_LOOP_ROWS : WEFT_LOOP_ELEMENTS,
                           &(weft_element_way){storage->widen, f->dtype, wide, storage->widen_text},
                           f->stored);
}

static int slot_in(wiring *w, int link_slot, weft_loop_kind reader, bool is_wide)
{
    return is_wide ? wide_slot(w, link_slot, reader) : w->form[link_slot].stored;
}

/* What an op has made of a link's result: as it is stored, or as it is computed with. */
static void set_result(wiring *w, int link_slot, int slot, bool is_wide, weft_loop_kind kind,
                       bool is_result)
{
    form *f = &w->form[link_slot];
    f->kind = kind;
    if (!is_wide || weft_dtype_computes(f->dtype) == f->dtype) {
        f->stored = slot;
        return;
    }
    f->raw = slot;
    const weft_storage *storage = &weft_storages[f->dtype];
    const weft_element_way narrow = {storage->narrow, weft_dtype_computes(f->dtype), f->dtype,
                                     storage->narrow_text};
    if (is_result) f->stored = add_block(w, kind, &narrow, slot);
}

/* ---- links ----------------------------------------------------------------------------------- */

static weft_dtype result_dtype(const wiring *w, const weft_fused_op *link, int o)
{
    return w->plan->graph->tensors[w->plan->graph->nodes[link->node].out + (uint32_t)o].type.dtype;
}

static void set_env(const weft_graph *graph, const weft_fused_op *link, const weft_op *does,
                    weft_loop_op *op)
{
    const weft_node *node = &graph->nodes[link->node];
    op->env.seed = graph->seed;
    if (does != node->op) return; /* the attributes are the reduction's */
    const weft_element_attributes *attributes = node->attributes;
    memcpy(op->env.number, attributes->number, sizeof op->env.number);
    op->env.random = attributes->random;
}

/* Operands that are not read in the dtype of the last one, as conditions, are stored as they are computed with. */
static weft_status wire_block(wiring *w, const weft_fused_op *link, int link_slot,
                              weft_error *error)
{
    const weft_graph *graph = w->plan->graph;
    const weft_op *does = weft_link_op(w->plan, link);
    const weft_dtype made = result_dtype(w, link, 0);
    const weft_dtype read = link->n_in ? w->form[link->in[link->n_in - 1]].dtype : made;
    weft_element_way way;
    if (!weft_element_find(does->element, read, made, &way))
        return weft_fail(error, WEFT_INTERNAL, "op %s is not defined from %s to %s", does->name,
                         weft_dtype_name(read), weft_dtype_name(made));
    weft_loop_op op = {.kind = link->kind,
                       .block = way.block,
                       .n_in = link->n_in,
                       .n_out = 1,
                       .bytes = (int)weft_dtype_bytes(way.makes),
                       .name = does->name,
                       .text = way.text,
                       .reads = way.reads,
                       .makes = way.makes};
    for (int i = 0; i < link->n_in; i++)
        op.in[i] = slot_in(w, link->in[i], link->kind, way.reads != read);
    if (way.reads == WEFT_F32 && way.makes == WEFT_F32) op.relay = weft_relay_of(does->element);
    set_env(graph, link, does, &op);
    const int slot = way.block ? add_op(w, op) : op.in[0];
    w->op_of[link - w->step->links] = way.block ? w->n_ops - 1 : -1;
    set_result(w, link_slot, slot, way.makes != made || !way.block, link->kind, link->out[0] >= 0);
    return WEFT_OK;
}

static weft_status wire_reduce(wiring *w, const weft_fused_op *link, int link_slot,
                               weft_error *error)
{
    (void)error;
    const weft_node *node = &w->plan->graph->nodes[link->node];
    const weft_dtype dtype = weft_dtype_computes(w->form[link->in[0]].dtype);
    weft_loop_op op = {.kind = link->kind,
                       .combine = node->op->row->combine,
                       .dtype = dtype,
                       .n_in = 1,
                       .in = {wide_slot(w, link->in[0], link->kind)},
                       .n_out = 1,
                       .bytes = (int)weft_dtype_bytes(dtype)};
    w->op_of[link - w->step->links] = w->n_ops;
    set_result(w, link_slot, add_op(w, op), true, WEFT_LOOP_ROWS, link->out[0] >= 0);
    return WEFT_OK;
}

static weft_status wire_finish(wiring *w, const weft_fused_op *link, int link_slot,
                               weft_error *error)
{
    (void)error;
    const weft_node *node = &w->plan->graph->nodes[link->node];
    weft_loop_op op = {.kind = link->kind,
                       .finish = node->op->row->finish[w->form[link->in[0]].dtype],
                       .combine = node->op->row->combine,
                       .dtype = w->form[link->in[0]].dtype,
                       .name = node->op->name,
                       .n_in = link->n_in,
                       .in = {w->form[link->in[0]].stored},
                       .n_out = link->n_out,
                       .bytes = (int)weft_dtype_bytes(result_dtype(w, link, 0))};
    if (node->op->attributes == &weft_attributes_number)
        op.env.number[0] = ((const weft_number_attributes *)node->attributes)->number;
    w->op_of[link - w->step->links] = w->n_ops;
    const int first = add_op(w, op);
    for (int o = 0; o < link->n_out; o++)
        w->form[link_slot + o].stored = first + o;
    return WEFT_OK;
}

static weft_status wire_link(wiring *w, const weft_fused_op *link, int link_slot, weft_error *error)
{
    static weft_status (*const wires[])(wiring *, const weft_fused_op *, int,
                                        weft_error *) = {[WEFT_LOOP_ELEMENTS] = wire_block,
                                                         [WEFT_LOOP_REDUCE] = wire_reduce,
                                                         [WEFT_LOOP_ROWS] = wire_block,
                                                         [WEFT_LOOP_FINISH] = wire_finish};
    return wires[link->kind](w, link, link_slot, error);
}

/* The link that makes the first operand of this one, if it is of that op; NULL. */
static const weft_fused_op *maker_of(const wiring *w, const weft_fused_op *link, const weft_op *op)
{
    const weft_step *step = w->step;
    for (int k = 0, slot = step->n_in / step->n_segments; k < step->n_links; k++) {
        if (slot == link->in[0])
            return weft_link_op(w->plan, &step->links[k]) == op ? &step->links[k] : NULL;
        slot += step->links[k].n_out;
    }
    return NULL;
}

/* Of what the link's op resumes (weft_row): the ops, + 1, that made it; 0: it resumes nothing. */
static void find_differences(const wiring *w, const weft_fused_op *link, int difference[2])
{
    const weft_row *row = weft_link_op(w->plan, link)->row;
    for (int i = 0; i < 2 && row != NULL && row->resumes != NULL && link != NULL; i++) {
        link = maker_of(w, link, row->resumes);
        difference[i] = link != NULL ? w->op_of[link - w->step->links] + 1 : 0;
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A dim that the space lacks holds the numbers of a state. */
static int width_in(const weft_shape *space, const weft_shape *shape)
{
    const int at = weft_shape_find(shape, WEFT_STATE_DIM);
    return at < 0 || weft_shape_find(space, WEFT_STATE_DIM) >= 0 ? 1 : (int)shape->dims[at].size;
}

static void wire_operands(wiring *w)
{
    const weft_plan *plan = w->plan;
    const weft_shape *space = &plan->placed[w->step->space[0]].type.shape;
    for (int i = 0; i < w->loop->n_in; i++) {
        const weft_type *type = &plan->placed[w->step->in[i]].type;
        w->loop->in[i] = (weft_loop_in){.bytes = (int)weft_dtype_bytes(type->dtype),
                                        .width = width_in(space, &type->shape),
                                        .dtype = type->dtype};
        w->form[i].dtype = type->dtype;
        w->form[i].stored = i;
    }
}

static int count_slots(const weft_step *step)
{
    int n = step->n_in / step->n_segments;
    for (int k = 0; k < step->n_links; k++)
        n += step->links[k].n_out;
    return n;
}

/* Widened for elements and for rows; or raw, narrowed and rounded. */
int weft_bind_count_ops(const weft_plan *plan, const weft_step *step)
{
    int n = step->n_links;
    for (int i = 0; i < step->n_in / step->n_segments; i++)
        n += weft_loop_slots_of(plan->placed[step->in[i]].type.dtype) - 1;
    for (int k = 0; k < step->n_links; k++)
        n += weft_loop_slots_of(
                 plan->graph->tensors[plan->graph->nodes[step->links[k].node].out].type.dtype) -
             1;
    return n;
}

weft_status weft_bind_ops(const weft_plan *plan, const weft_step *step, weft_loop *loop, int *op_of,
                          weft_arena *arena, weft_error *error)
{
    const int n_slots = count_slots(step);
    wiring w = {.plan = plan, .step = step, .loop = loop, .op_of = op_of, .slot = loop->n_in};
    w.form = weft_arena_take(arena, (size_t)n_slots * sizeof *w.form + 1);
    if (!w.form) return weft_fail_memory(error, (size_t)n_slots * sizeof *w.form);
    for (int i = 0; i < n_slots; i++)
        w.form[i] = (form){.stored = -1, .raw = -1, .wide = {-1, -1}};
    wire_operands(&w);
    for (int k = 0, slot = loop->n_in; k < step->n_links; k++) {
        const weft_fused_op *link = &step->links[k];
        for (int o = 0; o < link->n_out; o++)
            w.form[slot + o].dtype = result_dtype(&w, link, o);
        WEFT_TRY(wire_link(&w, link, slot, error));
        if (op_of[k] >= 0) find_differences(&w, link, loop->op[op_of[k]].difference);
        for (int o = 0; o < link->n_out; o++, slot++)
            if (link->out[o] >= 0) loop->out[link->out[o]] = w.form[slot].stored;
    }
    loop->n_ops = w.n_ops;
    return WEFT_OK;
}
