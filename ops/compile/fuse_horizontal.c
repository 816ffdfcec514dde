/* fuse_horizontal: small loops that do the same to several tensors become one step with a segment for each (horizontal
 * fusion). The update rules of biases and norms are such loops. To start a step costs more than to go through so few
 * elements, and where ranks write a variable together each step costs a barrier.
 *
 * All stand where the first of them stood, so what each reads has to be there by then. Only loops with results stored
 * in variables are taken, and only where order can still have each made in its variable's own memory. So nothing
 * lives longer than it did, and operands of theirs alone live shorter. No segment reads what another one writes.
 */
#include "passes.h"
#include "regions.h"

#include <string.h>

enum {
    SMALL = 1 << 14, /* elements: about what a lane does while a step is started */
    OPEN = 16        /* bundles that a loop may still join: the last that were begun */
};

typedef struct fusing {
    weft_plan *plan;
    uint32_t *maker;        /* [n_placed] step + 1; 0: it is there before the run               */
    uint32_t *variable;     /* [n_placed] in which it is stored; 0: in none, or in several      */
    uint32_t *last_reader;  /* [n_placed] of a variable's old value: step + 1                   */
    uint32_t *read_before;  /* [n_placed] the same, of the steps gone through                   */
    uint32_t *written_with; /* [n_placed] of a variable: the first step of its bundle, + 1      */
    weft_regions regions;
    uint32_t *head, *next; /* [n_steps] the first of a step's bundle; the one after it; itself */
    uint32_t *tail;        /* [n_steps] of a first one                                         */
    uint32_t open[OPEN];   /* their first steps */
    int n_open;
} fusing;

static bool is_store(const weft_plan *plan, const weft_step *step)
{
    return step->kind == WEFT_STEP_COPY && plan->placed[step->out[0]].home == WEFT_VARIABLE_HOME;
}

/* ---- which loops ----------------------------------------------------------------------------- */

/* Its numbers are the same wherever the elements are. */
static bool is_plain(const weft_plan *plan, const weft_fused_op *link)
{
    const weft_op *op = weft_link_op(plan, link);
    return link->kind == WEFT_LOOP_ELEMENTS && op->element &&
           op->element->index == WEFT_INDEX_NONE && !op->flops;
}

/* Will order have the result made in its variable's memory, if step s stands at `at`? */
static bool is_made_in_place(const fusing *b, uint32_t s, uint32_t result, uint32_t at)
{
    const weft_plan *plan = b->plan;
    const weft_step *step = &plan->steps[s];
    const uint32_t variable = b->variable[result];
    const weft_placed *placed = &plan->placed[result];
    if (!variable || placed->home != WEFT_TEMPORARY || placed->shares || placed->is_output)
        return false;
    if (b->last_reader[variable] > s + 1 || b->read_before[variable] > at) return false;
    for (int i = 0; i < step->n_in; i++)
        if (weft_placed_owner(plan, step->in[i]) == variable &&
            !weft_lie_alike(plan, step->in[i], result))
            return false;
    return true;
}

static bool is_small(const fusing *b, uint32_t s)
{
    const weft_plan *plan = b->plan;
    const weft_step *step = &plan->steps[s];
    weft_view space;
    if (step->kind != WEFT_STEP_LOOP || step->n_segments != 1 || step->row_dims != 0) return false;
    weft_placed_view(plan, step->space[0], 0, &space);
    if (weft_view_count(&space) > SMALL) return false;
    for (int k = 0; k < step->n_links; k++)
        if (!is_plain(plan, &step->links[k])) return false;
    for (int o = 0; o < step->n_out; o++)
        if (!is_made_in_place(b, s, step->out[o], s)) return false;
    return true;
}

/* ---- which of them do the same --------------------------------------------------------------- */

static bool same_link(const weft_plan *plan, const weft_fused_op *a, const weft_fused_op *b)
{
    const weft_node *x = &plan->graph->nodes[a->node], *y = &plan->graph->nodes[b->node];
    if (x->op != y->op || a->kind != b->kind || a->n_in != b->n_in || a->n_out != b->n_out ||
        x->attribute_bytes != y->attribute_bytes || weft_link_op(plan, a) != weft_link_op(plan, b))
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i] ||
            plan->graph->tensors[x->in[i]].type.dtype != plan->graph->tensors[y->in[i]].type.dtype)
            return false;
    for (int o = 0; o < a->n_out; o++)
        if (a->out[o] != b->out[o]) return false;
    return plan->graph->tensors[x->out].type.dtype == plan->graph->tensors[y->out].type.dtype &&
           (!x->attribute_bytes || memcmp(x->attributes, y->attributes, x->attribute_bytes) == 0);
}

/* The same ranks hold copies of both, and so can write them together. */
static bool same_holders(const weft_plan *plan, uint32_t a, uint32_t b)
{
    const weft_placed *x = &plan->placed[a], *y = &plan->placed[b];
    for (int axis = 0; axis < weft_mesh_n_axes(plan->mesh); axis++)
        if ((weft_spec_state(&x->spec, x->type.shape.n_dims, axis) == WEFT_REPLICATED) !=
            (weft_spec_state(&y->spec, y->type.shape.n_dims, axis) == WEFT_REPLICATED))
            return false;
    return true;
}

static bool do_the_same(const fusing *b, const weft_step *x, const weft_step *y)
{
    const weft_plan *plan = b->plan;
    if (x->phase != y->phase || x->n_in != y->n_in || x->n_out != y->n_out ||
        x->n_links != y->n_links)
        return false;
    for (int i = 0; i < x->n_in; i++)
        if (plan->placed[x->in[i]].type.dtype != plan->placed[y->in[i]].type.dtype) return false;
    for (int o = 0; o < x->n_out; o++)
        if (!same_holders(plan, b->variable[x->out[o]], b->variable[y->out[o]])) return false;
    for (int k = 0; k < x->n_links; k++)
        if (!same_link(plan, &x->links[k], &y->links[k])) return false;
    return true;
}

/* ---- together -------------------------------------------------------------------------------- */

/* Is all that step s reads there at `first`, unwritten by those in its bundle, and each variable free to be written? */
static bool may_stand_at(const fusing *b, uint32_t s, uint32_t first)
{
    const weft_step *step = &b->plan->steps[s];
    if (b->regions.part[s] != b->regions.part[first]) return false;
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(b->plan, step->in[i]);
        if (b->maker[owner] > first || b->written_with[owner] == first + 1) return false;
    }
    for (int o = 0; o < step->n_out; o++)
        if (b->written_with[b->variable[step->out[o]]] == first + 1 ||
            !is_made_in_place(b, s, step->out[o], first))
            return false;
    return true;
}

static uint32_t find_bundle(const fusing *b, uint32_t s)
{
    const int n = b->n_open < OPEN ? b->n_open : OPEN;
    for (int i = 0; i < n; i++) {
        const uint32_t first = b->open[i];
        if (do_the_same(b, &b->plan->steps[first], &b->plan->steps[s]) && may_stand_at(b, s, first))
            return first;
    }
    return s;
}

static void take_in(fusing *b, uint32_t s)
{
    const weft_step *step = &b->plan->steps[s];
    const uint32_t first = find_bundle(b, s);
    if (first == s)
        b->open[b->n_open++ % OPEN] = s;
    else
        b->next[b->tail[first]] = s;
    b->tail[first] = s;
    b->head[s] = first;
    for (int o = 0; o < step->n_out; o++)
        b->written_with[b->variable[step->out[o]]] = first + 1;
}

/* One step of all that follow each other from `first`. */
static weft_status fuse_group(fusing *b, uint32_t first, weft_error *error)
{
    weft_plan *plan = b->plan;
    weft_step *step = &plan->steps[first];
    const int n_in = step->n_in, n_out = step->n_out;
    size_t n = 1, at = 0;
    for (uint32_t s = first; b->next[s] != s; s = b->next[s])
        n++;
    if (n == 1) return WEFT_OK;
    uint32_t *in = weft_arena_take(plan->arena, (n * (size_t)n_in + 1) * sizeof *in);
    uint32_t *out = weft_arena_take(plan->arena, n * (size_t)n_out * sizeof *out);
    uint32_t *space = weft_arena_take(plan->arena, n * sizeof *space);
    if (!in || !out || !space) return weft_fail_memory(error, n * sizeof *in);
    for (uint32_t s = first;; s = b->next[s], at++) {
        const weft_step *its = &plan->steps[s];
        if (n_in > 0) memcpy(in + at * (size_t)n_in, its->in, (size_t)n_in * sizeof *in);
        memcpy(out + at * (size_t)n_out, its->out, (size_t)n_out * sizeof *out);
        space[at] = its->space[0];
        if (b->next[s] == s) break;
    }
    step->in = in, step->out = out, step->space = space;
    step->n_in *= (int)n, step->n_out *= (int)n;
    step->n_segments = (int)n;
    return WEFT_OK;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void note_step(fusing *b, uint32_t s)
{
    const weft_plan *plan = b->plan;
    const weft_step *step = &plan->steps[s];
    for (int i = 0; i < step->n_in; i++)
        b->last_reader[weft_placed_owner(plan, step->in[i])] = s + 1;
    for (int o = 0; o < step->n_out && !is_store(plan, step); o++)
        b->maker[step->out[o]] = s + 1;
    b->head[s] = b->next[s] = b->tail[s] = s;
}

/* A value that is stored twice, or a variable that has two stores, is nobody's. */
static void note_store(fusing *b, const weft_step *step)
{
    if (!is_store(b->plan, step)) return;
    const uint32_t value = step->in[0], variable = step->out[0];
    const bool is_single = !b->written_with[value] && !b->written_with[variable];
    b->variable[value] = is_single ? variable : 0;
    b->written_with[value] = b->written_with[variable] = 1;
}

static weft_status open_bundling(fusing *b, weft_error *error)
{
    const weft_plan *plan = b->plan;
    uint32_t **const by_placed[] = {&b->maker, &b->variable, &b->last_reader, &b->read_before,
                                    &b->written_with};
    uint32_t **const by_step[] = {&b->head, &b->next, &b->tail};
    for (size_t i = 0; i < sizeof by_placed / sizeof *by_placed; i++)
        if (!(*by_placed[i] = weft_arena_take(plan->arena, plan->n_placed * sizeof(uint32_t))))
            return weft_fail_memory(error, plan->n_placed * sizeof(uint32_t));
    for (size_t i = 0; i < sizeof by_step / sizeof *by_step; i++)
        if (!(*by_step[i] = weft_arena_take(plan->arena, (plan->n_steps + 1) * sizeof(uint32_t))))
            return weft_fail_memory(error, plan->n_steps * sizeof(uint32_t));
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        note_step(b, s);
        note_store(b, &plan->steps[s]);
    }
    memset(b->written_with, 0, plan->n_placed * sizeof *b->written_with);
    return weft_find_regions(plan, plan->arena, &b->regions, error);
}

weft_status weft_pass_fuse_horizontal(weft_plan *plan, weft_error *error)
{
    fusing b = {.plan = plan};
    WEFT_TRY(open_bundling(&b, error));
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        if (is_small(&b, s)) take_in(&b, s);
        for (int i = 0; i < step->n_in; i++)
            b.read_before[weft_placed_owner(plan, step->in[i])] = s + 1;
    }
    uint32_t kept = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        if (b.head[s] != s) continue;
        WEFT_TRY(fuse_group(&b, s, error));
        plan->steps[kept++] = plan->steps[s];
    }
    plan->n_steps = kept;
    return WEFT_OK;
}
