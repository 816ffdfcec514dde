/* accumulate: a sum becomes part of the kernel that makes one of its summands, if that kernel can begin with the other.
 *
 * The gradient of a table that is both gathered from and multiplied by is what a product makes, as large as the table, and
 * a few rows on top. scatter_add alone would clear a second table and have it added as a whole; begun with the product's
 * result it touches those rows only. Which ops can do so, and for which sum, they say themselves (`accumulates`).
 *
 * It is done where the kernel stands: the other summand is there by then, nobody else reads it or what the kernel makes,
 * and all three lie alike, so that memory writes the result over it. So less is alive at every step.
 *
 * A sum carried from trip to trip of a scan is ready when a trip begins, and its readers after the scan find another
 * value. So a product adds a trip's part of a weight's gradient to the sum of the trips before. No fusion spares the
 * pass over such a sum, as it does over others: so there are kernels that accumulate what is carried alone
 * (`carried_alone`).
 *
 * So is a variable that the sum is stored into, and that nobody reads as it was from there on: rows that scatter_add adds to a table
 * are all that is touched of it.
 */
#include "passes.h"
#include "regions.h"

typedef struct accumulating {
    const weft_plan *plan;
    /* [n_placed] step + 1 that makes it; 0: it is there before the run, or the trip */
    uint32_t *maker;
    /* [n_placed] who reads its memory; of what is carried, in its scan; an output has one more */
    uint32_t *n_reads;
    uint32_t *stored; /* [n_placed] the variable that it is stored into; 0: none */
} accumulating;

/* Behind the scan it is the last one that is read. */
static bool reads_last(const weft_plan *plan, uint32_t owner, uint32_t scan)
{
    return !weft_scan_holds(plan->graph, plan->placed[owner].carried, scan);
}

static bool is_stored_variable(const weft_plan *plan, const weft_step *step)
{
    return weft_is_store(plan, step) && plan->placed[step->out[0]].home == WEFT_VARIABLE_HOME;
}

static weft_status count_uses(accumulating *a, weft_error *error)
{
    const weft_plan *plan = a->plan;
    const size_t bytes = plan->n_placed * sizeof(uint32_t);
    a->maker = weft_arena_take(plan->arena, bytes);
    a->n_reads = weft_arena_take(plan->arena, bytes);
    a->stored = weft_arena_take(plan->arena, bytes);
    if (!a->maker || !a->n_reads || !a->stored) return weft_fail_memory(error, bytes);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in; i++) {
            const uint32_t owner = weft_placed_owner(plan, step->in[i]);
            a->n_reads[owner] += !reads_last(plan, owner, step->scan);
        }
        if (is_stored_variable(plan, step)) {
            a->stored[step->in[0]] = step->out[0];
            continue;
        }
        for (int o = 0; o < step->n_out; o++)
            if (plan->placed[step->out[o]].carried == 0) a->maker[step->out[o]] = s + 1;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        const uint32_t owner = weft_placed_owner(plan, id);
        if (plan->placed[id].is_output && plan->placed[owner].carried == 0) a->n_reads[owner]++;
    }
    return WEFT_OK;
}

/* The one element op that the step is; NULL: it is more, or something else. */
static const weft_op *op_of_sum(const weft_plan *plan, const weft_step *step)
{
    const bool is_one = step->kind == WEFT_STEP_LOOP && step->n_links == 1 &&
                        step->n_segments == 1 && step->n_in == 2 && step->n_out == 1;
    return is_one ? weft_link_op(plan, &step->links[0]) : NULL;
}

/* A temporary in memory of its own, as `sum` lies, that only the sum reads, as often as it is made. */
static bool is_summand(const accumulating *a, uint32_t placed, uint32_t sum)
{
    const weft_placed *p = &a->plan->placed[placed];
    return p->home == WEFT_TEMPORARY && !p->shares && a->n_reads[placed] == 1 &&
           p->type.dtype == a->plan->placed[sum].type.dtype &&
           p->scan == a->plan->placed[sum].scan && (p->carried == 0 || p->carried == p->scan) &&
           weft_lie_alike(a->plan, placed, sum);
}

/* Do all that read it, but for one, come before step `maker`? */
static bool is_read_before(const accumulating *a, uint32_t placed, uint32_t maker)
{
    const weft_plan *plan = a->plan;
    uint32_t n = 1;
    if (a->n_reads[placed] == 1) return true;
    for (uint32_t s = 0; s < maker; s++)
        for (int i = 0; i < plan->steps[s].n_in; i++)
            n += weft_placed_owner(plan, plan->steps[s].in[i]) == placed;
    return n == a->n_reads[placed];
}

/* A variable that becomes `sum`, and that nobody reads any more but that: `order` then has it made there. */
static bool is_own_variable(const accumulating *a, uint32_t placed, uint32_t sum, uint32_t maker)
{
    const weft_placed *p = &a->plan->placed[placed], *its = &a->plan->placed[sum];
    return p->home == WEFT_VARIABLE_HOME && a->stored[sum] == placed && !p->shares &&
           its->home == WEFT_TEMPORARY && !its->shares && !its->is_output && its->carried == 0 &&
           its->scan == 0 && p->type.dtype == its->type.dtype &&
           weft_lie_alike(a->plan, placed, sum) && is_read_before(a, placed, maker);
}

/* Would the kernel that does the step alone do it so as well, and begin with `other`? That of rank 0 speaks for all. */
static bool has_kernel(const weft_plan *plan, const weft_step *step, uint32_t other)
{
    weft_call call;
    weft_kernel_choice choice;
    weft_step_call(plan, step, 0, &call);
    return weft_step_kernel(plan, step, &call, &choice, NULL) == WEFT_OK &&
           choice.kernel->accumulates &&
           (plan->placed[other].carried != 0 || !choice.kernel->carried_alone);
}

/* Can the maker of summand i do the whole sum, at its own place? Who else reads a variable is looked for at last: it takes long. */
static bool can_take(const accumulating *a, const weft_step *sum, int i)
{
    const weft_plan *plan = a->plan;
    const uint32_t made = sum->in[i], other = sum->in[1 - i], m = a->maker[made];
    if (!m || !is_summand(a, made, sum->out[0])) return false;
    const weft_step *maker = &plan->steps[m - 1];
    return maker->kind == WEFT_STEP_KERNEL && !weft_step_accumulates(plan, maker) &&
           maker->n_in < WEFT_MAX_IN && maker->phase == sum->phase &&
           plan->graph->nodes[maker->node].op->accumulates == op_of_sum(plan, sum) &&
           a->maker[other] < m &&
           (is_summand(a, other, sum->out[0]) || is_own_variable(a, other, sum->out[0], m - 1)) &&
           has_kernel(plan, maker, other);
}

static weft_status take_sum(accumulating *a, weft_step *sum, int i, weft_error *error)
{
    const weft_plan *plan = a->plan;
    const uint32_t m = a->maker[sum->in[i]];
    weft_step *maker = &plan->steps[m - 1];
    uint32_t *in = weft_arena_take(plan->arena, ((size_t)maker->n_in + 1) * sizeof *in);
    if (!in) return weft_fail_memory(error, ((size_t)maker->n_in + 1) * sizeof *in);
    for (int k = 0; k < maker->n_in; k++)
        in[k] = maker->in[k];
    in[maker->n_in] = sum->in[1 - i];
    maker->in = in;
    maker->n_in++;
    maker->out = sum->out;
    a->maker[sum->out[0]] = m;
    return WEFT_OK;
}

weft_status weft_pass_accumulate(weft_plan *plan, weft_error *error)
{
    accumulating a = {.plan = plan};
    WEFT_TRY(count_uses(&a, error));
    uint32_t kept = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        weft_step *step = &plan->steps[s];
        int i = op_of_sum(plan, step) ? 0 : 2;
        while (i < 2 && !can_take(&a, step, i))
            i++;
        if (i < 2) {
            WEFT_TRY(take_sum(&a, step, i, error));
            continue;
        }
        for (int o = 0; o < step->n_out; o++)
            if (plan->placed[step->out[o]].carried == 0) a.maker[step->out[o]] = kept + 1;
        plan->steps[kept++] = *step;
    }
    plan->n_steps = kept;
    return WEFT_OK;
}
