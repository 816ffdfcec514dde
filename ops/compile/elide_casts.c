/* elide_casts: casts around kernels that read and write 16-bit numbers themselves are left out.
 *
 * Ops that add up have results of f32, and many operands of f32: a program of bf16 makes f32 of its numbers before attention,
 * and bf16 of the result. A kernel may do so as it reads and stores (`converts`, `rounds`). Where a program lets products be computed in
 * bf16, it may round its operands to that (`narrows`). Then both casts are steps for nothing. Such an operand is read as it
 * was before it was cast; where it is rounded, as what it is cast to, if that is there by then. A result that nobody reads but
 * a cast comes out as what that gives. The bits are those of a kernel that rounds at its edges.
 *
 * A variable of f32 that is cast for products alone is rounded by them as they read it: so no copy of it stays from the forward
 * pass to the backward pass.
 */
#include "passes.h"

#include <string.h>

typedef struct eliding {
    weft_plan *plan;
    uint32_t *maker;   /* [n_placed] step + 1; 0: it is there before the run, or the trip */
    uint32_t *n_reads; /* [n_placed] of its memory; an output has one more */
    uint32_t *cast;    /* [n_placed] the first step + 1 that makes bf16 of it; 0: none */
    bool *is_gone;     /* [n_steps] */
} eliding;

static bool is_carried(const weft_plan *plan, uint32_t placed)
{
    return plan->placed[placed].carried != 0 || plan->placed[placed].shares != 0;
}

bool weft_is_cast(const weft_plan *plan, const weft_step *step, weft_dtype from, weft_dtype to)
{
    if (step->kind != WEFT_STEP_LOOP || step->n_links != 1 || step->n_segments != 1 ||
        step->n_in != 1 || step->n_out != 1)
        return false;
    const weft_placed *in = &plan->placed[step->in[0]], *out = &plan->placed[step->out[0]];
    return weft_link_op(plan, &step->links[0])->recodes && in->type.dtype == from &&
           out->type.dtype == to && out->type.shape.n_dims == in->type.shape.n_dims &&
           weft_same_dims(plan, step->in[0], step->out[0], in->type.shape.n_dims);
}

bool weft_has_bf16(const weft_plan *plan)
{
    bool any = false;
    for (uint32_t id = 1; id < plan->n_placed && !any; id++)
        any = plan->placed[id].type.dtype == WEFT_BF16;
    return any;
}

static weft_status count_uses(eliding *n, weft_error *error)
{
    const weft_plan *plan = n->plan;
    const size_t bytes = plan->n_placed * sizeof(uint32_t);
    n->maker = weft_arena_take(plan->arena, bytes);
    n->n_reads = weft_arena_take(plan->arena, bytes);
    n->cast = weft_arena_take(plan->arena, bytes);
    n->is_gone = weft_arena_take(plan->arena, plan->n_steps + 1);
    if (!n->maker || !n->n_reads || !n->cast || !n->is_gone) return weft_fail_memory(error, bytes);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in; i++)
            n->n_reads[weft_placed_owner(plan, step->in[i])]++;
        for (int o = 0; o < step->n_out; o++)
            if (plan->placed[step->out[o]].carried == 0) n->maker[step->out[o]] = s + 1;
        if (weft_is_cast(plan, step, WEFT_F32, WEFT_BF16) && !n->cast[step->in[0]])
            n->cast[step->in[0]] = s + 1;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++)
        n->n_reads[weft_placed_owner(plan, id)] += plan->placed[id].is_output;
    return WEFT_OK;
}

/* ---- whether ------------------------------------------------------------------------------------- */

/* What is changed of a step: an operand is read before it is widened, or as it is rounded elsewhere; a result is stored rounded; a
 * variable is read before it is rounded. */
typedef enum change { UNWIDENED, ROUNDED, RESULT, VARIABLE } change;

static bool takes_change(const weft_kernel *kernel, change kind)
{
    return (kernel->converts && (kind == UNWIDENED || kind == RESULT)) ||
           (kernel->rounds && (kind == VARIABLE || kind == RESULT));
}

/* Is it the only kernel of its op on its device? Then one that converts or rounds is every rank's, as it takes calls by their
 * dtypes alone. */
static bool is_alone(const weft_kernel *kernel, const char *op)
{
    const weft_kernel *at;
    const char *of;
    int n = 0;
    for (int k = 0; (at = weft_kernel_at(k, &of)) != NULL; k++)
        n += at->device == kernel->device && strcmp(of, op) == 0;
    return n == 1 && (kernel->converts || kernel->rounds);
}

/* Would every rank's kernel do the step, and do so with numbers of either kind? */
static bool all_take(const weft_plan *plan, const weft_step *step, change kind)
{
    const bool may_round = plan->precision == WEFT_PRECISION_BF16;
    int n_ranks = weft_mesh_n_ranks(plan->mesh);
    bool all = true;
    for (int rank = 0; rank < n_ranks && all; rank++) {
        weft_call call;
        weft_kernel_choice choice = {0};
        weft_step_call(plan, step, rank, &call);
        all = weft_step_kernel(plan, step, &call, &choice, NULL) == WEFT_OK &&
              (takes_change(choice.kernel, kind) || (may_round && choice.kernel->narrows));
        if (rank == 0 && all && is_alone(choice.kernel, plan->graph->nodes[step->node].op->name))
            n_ranks = 1;
    }
    return all;
}

/* Where the numbers stand in bf16 from which an operand of step s was cast; 0: nowhere. */
static uint32_t cast_from(const eliding *n, uint32_t s, uint32_t placed)
{
    const weft_plan *plan = n->plan;
    const uint32_t m = n->maker[placed];
    const bool is_cast_there = m && !is_carried(plan, placed) &&
                               weft_is_cast(plan, &plan->steps[m - 1], WEFT_BF16, WEFT_F32) &&
                               plan->steps[m - 1].scan == plan->steps[s].scan;
    return is_cast_there ? plan->steps[m - 1].in[0] : 0;
}

/* Where an operand stands rounded when step s begins; 0: nowhere. */
static uint32_t cast_to(const eliding *n, uint32_t s, uint32_t placed)
{
    const weft_plan *plan = n->plan;
    const uint32_t c = n->cast[placed];
    const bool is_there = c && c - 1 < s && !is_carried(plan, placed) &&
                          plan->steps[c - 1].scan == plan->steps[s].scan;
    return is_there && !is_carried(plan, plan->steps[c - 1].out[0]) ? plan->steps[c - 1].out[0] : 0;
}

/* The cast that alone reads a result, by step + 1; 0: others do. */
static uint32_t only_cast(const eliding *n, const weft_step *step, int o)
{
    const weft_plan *plan = n->plan;
    const uint32_t placed = step->out[o], c = n->cast[placed];
    const bool is_only = c && n->n_reads[placed] == 1 && !is_carried(plan, placed) &&
                         plan->steps[c - 1].scan == step->scan &&
                         plan->steps[c - 1].phase == step->phase &&
                         plan->placed[placed].home == WEFT_TEMPORARY &&
                         plan->placed[plan->steps[c - 1].out[0]].home == WEFT_TEMPORARY &&
                         !is_carried(plan, plan->steps[c - 1].out[0]);
    return is_only ? c : 0;
}

static bool may_change(const weft_plan *plan, const weft_step *step)
{
    return step->kind == WEFT_STEP_KERNEL && !weft_step_accumulates(plan, step);
}

/* ---- what is done -------------------------------------------------------------------------------- */

/* One reader less; a cast that nobody reads any more goes. */
static void let_go(eliding *n, uint32_t placed)
{
    const weft_plan *plan = n->plan;
    const uint32_t m = n->maker[placed];
    if (--n->n_reads[placed] > 0 || !m || plan->steps[m - 1].kind != WEFT_STEP_LOOP) return;
    if (!weft_is_cast(plan, &plan->steps[m - 1], WEFT_BF16, WEFT_F32)) return;
    n->is_gone[m - 1] = true;
    n->n_reads[weft_placed_owner(plan, plan->steps[m - 1].in[0])]--;
}

/* A list of a step's own, which others do not share. */
static uint32_t *own_list(const weft_plan *plan, const uint32_t *list, int n, weft_error *error)
{
    uint32_t *own = weft_arena_take(plan->arena, (size_t)n * sizeof *own);
    if (!own) weft_fail_memory(error, (size_t)n * sizeof *own);
    for (int i = 0; i < n && own; i++)
        own[i] = list[i];
    return own;
}

static weft_status narrow_operands(eliding *n, uint32_t s, weft_error *error)
{
    weft_plan *plan = n->plan;
    weft_step *step = &plan->steps[s];
    uint32_t *in = own_list(plan, step->in, step->n_in, error);
    if (!in) return WEFT_MEMORY;
    const weft_step before = *step;
    step->in = in;
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t from = cast_from(n, s, before.in[i]),
                       to = from ? from : cast_to(n, s, before.in[i]);
        const change kind = from ? UNWIDENED : ROUNDED;
        if (!to || !all_take(plan, &before, kind)) continue;
        in[i] = to;
        if (!all_take(plan, step, kind)) {
            in[i] = before.in[i];
            continue;
        }
        n->n_reads[weft_placed_owner(plan, to)]++;
        let_go(n, before.in[i]);
    }
    return WEFT_OK;
}

static weft_status narrow_results(eliding *n, uint32_t s, weft_error *error)
{
    weft_plan *plan = n->plan;
    weft_step *step = &plan->steps[s];
    uint32_t *out = own_list(plan, step->out, step->n_out, error);
    if (!out) return WEFT_MEMORY;
    const weft_step before = *step;
    step->out = out;
    for (int o = 0; o < step->n_out; o++) {
        const uint32_t c = only_cast(n, &before, o);
        if (!c || !all_take(plan, &before, RESULT)) continue;
        out[o] = plan->steps[c - 1].out[0];
        if (!all_take(plan, step, RESULT)) {
            out[o] = before.out[o];
            continue;
        }
        n->maker[out[o]] = s + 1;
        n->is_gone[c - 1] = true;
    }
    return WEFT_OK;
}

/* ---- variables read as they are ------------------------------------------------------------------ */

/* Which operand of a step is that; it has no other of the same. -1: none, or several. */
static int only_operand(const weft_plan *plan, const weft_step *step, uint32_t placed)
{
    int found = -1, n = 0;
    for (int i = 0; i < step->n_in; i++)
        if (weft_placed_owner(plan, step->in[i]) == placed) found = i, n++;
    return n == 1 && step->in[found] == placed ? found : -1;
}

static bool is_in(const weft_plan *plan, const weft_step *step, uint32_t variable)
{
    for (int o = 0; o < step->n_out; o++)
        if (weft_placed_owner(plan, step->out[o]) == variable) return true;
    return false;
}

/* May step s read the variable that step c casts? Its op has an operand of bf16, and none of f32: which of two to round nobody
 * could tell. */
static bool takes_variable(const eliding *n, uint32_t c, uint32_t s)
{
    const weft_plan *plan = n->plan;
    const weft_step *step = &plan->steps[s];
    const uint32_t from = plan->steps[c].in[0], placed = plan->steps[c].out[0];
    const int i = only_operand(plan, step, placed);
    if (i < 0 || !may_change(plan, step) || step->scan != plan->steps[c].scan) return false;
    const weft_node *node = &plan->graph->nodes[step->node];
    if (plan->graph->tensors[node->in[i]].type.dtype != WEFT_BF16) return false;
    uint32_t in[WEFT_MAX_IN + 1];
    weft_step changed = *step;
    for (int k = 0; k < step->n_in; k++) {
        in[k] = k == i ? from : step->in[k];
        if (k != i && plan->placed[step->in[k]].type.dtype == WEFT_F32) return false;
    }
    changed.in = in;
    return all_take(plan, &changed, VARIABLE);
}

/* Do all who read what step c casts take the variable itself, and before it is written? */
static bool all_take_variable(const eliding *n, uint32_t c)
{
    const weft_plan *plan = n->plan;
    const uint32_t variable = weft_placed_owner(plan, plan->steps[c].in[0]),
                   placed = plan->steps[c].out[0];
    uint32_t left = n->n_reads[weft_placed_owner(plan, placed)];
    for (uint32_t s = c + 1; s < plan->n_steps && left > 0; s++) {
        if (is_in(plan, &plan->steps[s], variable)) return false;
        bool reads = false;
        for (int i = 0; i < plan->steps[s].n_in; i++)
            reads = reads || weft_placed_owner(plan, plan->steps[s].in[i]) == placed;
        if (!reads) continue;
        if (!takes_variable(n, c, s)) return false;
        left--;
    }
    return left == 0;
}

static weft_status read_variables(eliding *n, uint32_t c, weft_error *error)
{
    weft_plan *plan = n->plan;
    if (n->is_gone[c] || !weft_is_cast(plan, &plan->steps[c], WEFT_F32, WEFT_BF16)) return WEFT_OK;
    const uint32_t from = plan->steps[c].in[0], placed = plan->steps[c].out[0];
    const bool is_copy = plan->placed[from].home == WEFT_VARIABLE_HOME &&
                         plan->placed[placed].home == WEFT_TEMPORARY && !is_carried(plan, placed);
    if (!is_copy || !all_take_variable(n, c)) return WEFT_OK;
    for (uint32_t s = c + 1; s < plan->n_steps; s++) {
        weft_step *step = &plan->steps[s];
        const int i = only_operand(plan, step, placed);
        if (i < 0) continue;
        uint32_t *in = own_list(plan, step->in, step->n_in, error);
        if (!in) return WEFT_MEMORY;
        in[i] = from;
        step->in = in;
    }
    n->is_gone[c] = true;
    return WEFT_OK;
}

/* Operands of all steps first: a gradient reads what its op gave, which a cast alone should. */
weft_status weft_pass_elide_casts(weft_plan *plan, weft_error *error)
{
    eliding n = {.plan = plan};
    uint32_t kept = 0;
    if (!weft_has_bf16(plan)) return WEFT_OK;
    WEFT_TRY(count_uses(&n, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (may_change(plan, &plan->steps[s])) WEFT_TRY(narrow_operands(&n, s, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (may_change(plan, &plan->steps[s])) WEFT_TRY(narrow_results(&n, s, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        WEFT_TRY(read_variables(&n, s, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (!n.is_gone[s]) plan->steps[kept++] = plan->steps[s];
    plan->n_steps = kept;
    return WEFT_OK;
}
