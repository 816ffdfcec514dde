/* order: stores go to the earliest place after which nobody reads the variable's old value, and
 * vanish where the value can be computed in the variable's own memory. So do those of what goes from trip to trip of a scan, within its
 * body; those of variables never go into one.
 *
 * Everything else keeps the order it was built in: forward, backward in reverse, updates. A store
 * that is gone costs neither a copy nor a temporary as large as the parameter.
 */
#include "passes.h"
#include "regions.h"

#include <stdlib.h>
#include <string.h>

typedef struct use {
    uint32_t step, operand, next; /* of the same memory; 0: none */
} use;

typedef struct uses {
    use *reads;       /* [n_reads], from 1 on */
    uint32_t n_reads; /* so far, and 1 */
    uint32_t
        *first_read; /* [n_placed] into `reads`, of all under any name of its memory; 0: none */
    uint32_t *last_reader; /* [n_placed] step + 1; 0: nobody */
    uint32_t *maker;       /* [n_placed] step + 1            */
    bool *is_output;       /* [n_placed] read after the run, under this name or another */
    weft_regions regions;
} uses;

/* What is carried is read as the old value in its scan; after the scan it is the last one. */
static bool reads_old(const weft_plan *plan, const weft_step *step, uint32_t owner)
{
    return weft_scan_holds(plan->graph, plan->placed[owner].carried, step->scan);
}

/* What is carried is made, for who reads it behind the scan, where that ends. */
static void make_at_ends(const weft_plan *plan, uses *u)
{
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].carried) u->maker[id] = u->regions.end[plan->placed[id].carried] + 1;
}

static void add_read(uses *u, uint32_t owner, uint32_t step, uint32_t operand)
{
    u->reads[u->n_reads] = (use){step, operand, u->first_read[owner]};
    u->first_read[owner] = u->n_reads++;
}

/* The memory of `value` is that of `variable` from now on. */
static void join_reads(uses *u, uint32_t value, uint32_t variable)
{
    uint32_t *end = &u->first_read[value];
    while (*end != 0)
        end = &u->reads[*end].next;
    *end = u->first_read[variable];
    u->first_read[variable] = u->first_read[value];
    u->first_read[value] = 0;
}

static weft_status take_uses(const weft_plan *plan, uses *u, weft_error *error)
{
    const size_t bytes = plan->n_placed * sizeof(uint32_t);
    size_t n = 1;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        n += (size_t)plan->steps[s].n_in;
    u->last_reader = weft_arena_take(plan->arena, bytes);
    u->maker = weft_arena_take(plan->arena, bytes);
    u->is_output = weft_arena_take(plan->arena, plan->n_placed * sizeof *u->is_output);
    u->first_read = weft_arena_take(plan->arena, bytes);
    u->reads = weft_arena_take(plan->arena, n * sizeof *u->reads);
    u->n_reads = 1;
    if (u->last_reader && u->maker && u->is_output && u->first_read && u->reads) return WEFT_OK;
    return weft_fail_memory(error, bytes + n * sizeof *u->reads);
}

static weft_status count_uses(const weft_plan *plan, uses *u, weft_error *error)
{
    WEFT_TRY(take_uses(plan, u, error));
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in; i++) {
            const uint32_t owner = weft_placed_owner(plan, step->in[i]);
            if (reads_old(plan, step, owner)) u->last_reader[owner] = s + 1;
            add_read(u, owner, s, (uint32_t)i);
        }
        if (weft_is_store(plan, step)) continue;
        for (int o = 0; o < step->n_out; o++)
            u->maker[step->out[o]] = s + 1;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].is_output) u->is_output[weft_placed_owner(plan, id)] = true;
    WEFT_TRY(weft_find_regions(plan, plan->arena, &u->regions, error));
    make_at_ends(plan, u);
    return WEFT_OK;
}

/* A loop may write what it reads, if it reads it in step with that result; a kernel over the sum that it begins with alone. */
static bool reads_in_step(const weft_plan *plan, const weft_step *maker, int i)
{
    return maker->kind == WEFT_STEP_LOOP ||
           (weft_step_accumulates(plan, maker) && i == maker->n_in - 1);
}

/* No operand may have the memory of `variable` and be read out of step with the result, or lie there in another way. */
static bool may_overwrite(const weft_plan *plan, const uses *u, uint32_t value, uint32_t variable)
{
    const uint32_t s = u->maker[value] - 1;
    const weft_step *maker = &plan->steps[s];
    for (uint32_t r = u->first_read[variable]; r != 0; r = u->reads[r].next) {
        const int i = (int)u->reads[r].operand;
        if (u->reads[r].step != s) continue;
        if (!reads_in_step(plan, maker, i) || !weft_lie_alike(plan, maker->in[i], value))
            return false;
    }
    return true;
}

/* What a store in a body leaves is left by trips that are made alone. */
static bool is_behind_guard(const uses *u, const weft_step *store, uint32_t s)
{
    return store->scan == 0 || s > u->regions.guard[store->scan];
}

/* Can the value of this store be made right in the variable's memory? Others may read it there. */
static bool is_in_place(const weft_plan *plan, const uses *u, const weft_step *store)
{
    uint32_t value = store->in[0], variable = store->out[0];
    const weft_placed *placed = &plan->placed[value];
    if (placed->home != WEFT_TEMPORARY || placed->shares || placed->carried ||
        u->is_output[value] || !u->maker[value])
        return false;
    const weft_step *maker = &plan->steps[u->maker[value] - 1];
    return maker->scan == store->scan && is_behind_guard(u, store, u->maker[value] - 1) &&
           u->last_reader[variable] <= u->maker[value] && may_overwrite(plan, u, value, variable);
}

/* The step that makes it, under this name or that of its memory. */
static uint32_t made_at(const weft_plan *plan, const uses *u, uint32_t placed)
{
    while (!u->maker[placed] && plan->placed[placed].shares)
        placed = plan->placed[placed].shares;
    return u->maker[placed];
}

/* Behind step s - 1, or behind the outermost scan that it is in and the store is not; not before the store's own begins, or its guard. 0: s
 * is none. */
static uint32_t step_behind(const weft_plan *plan, const uses *u, const weft_step *store,
                            uint32_t s)
{
    uint32_t scan = s > 0 ? plan->steps[s - 1].scan : 0;
    for (; !weft_scan_holds(plan->graph, scan, store->scan); scan = plan->graph->scans[scan].parent)
        s = u->regions.end[scan] + 1;
    const uint32_t begin = store->scan != 0 ? u->regions.guard[store->scan] + 1 : 0;
    return s > begin ? s : begin;
}

/* ---- stacks of what is carried ------------------------------------------------------------------- */

/* A copy of what a trip begins with into a stack. */
static bool stacks_carried(const weft_plan *plan, const weft_step *step)
{
    const weft_node *node = &plan->graph->nodes[step->node];
    return step->kind == WEFT_STEP_COPY && step->scan != 0 && node->op == &weft_op_scan_stack &&
           weft_scan_of(node)->scan == step->scan &&
           plan->placed[step->in[0]].carried == step->scan;
}

/* They stand first in their trips: then the next value may be made where the old one was. */
static weft_status lead_with_stacks(weft_plan *plan, weft_error *error)
{
    weft_regions regions;
    weft_step *led = malloc((plan->n_steps + 1) * sizeof *led);
    uint32_t n = 0;
    if (!led) return weft_fail_memory(error, plan->n_steps * sizeof *led);
    const weft_status status = weft_find_regions(plan, plan->arena, &regions, error);
    for (uint32_t s = 0; s < plan->n_steps && status == WEFT_OK; s++) {
        const weft_step *step = &plan->steps[s];
        if (stacks_carried(plan, step)) continue;
        led[n++] = *step;
        if (!weft_is_fence(step) || regions.guard[step->scan] != s) continue;
        for (uint32_t t = s + 1; t < regions.end[step->scan]; t++)
            if (plan->steps[t].scan == step->scan && stacks_carried(plan, &plan->steps[t]))
                led[n++] = plan->steps[t];
    }
    if (status == WEFT_OK) memcpy(plan->steps, led, n * sizeof *led);
    free(led);
    return status;
}

/* ---- the pass ------------------------------------------------------------------------------------ */

typedef struct slot {
    uint32_t place; /* 2 (s + 1) for step s as built; a store right behind it has one more */
    uint32_t step;
} slot;

static int by_place(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return x->step < y->step ? -1 : 1;
}

weft_status weft_pass_order(weft_plan *plan, weft_error *error)
{
    uses u;
    if (plan->graph->n_scans > 0) WEFT_TRY(lead_with_stacks(plan, error));
    WEFT_TRY(count_uses(plan, &u, error));
    slot *slots = weft_arena_take(plan->arena, (plan->n_steps + 1) * sizeof *slots);
    weft_step *ordered = malloc((plan->n_steps + 1) * sizeof *ordered);
    if (!slots || !ordered) {
        free(ordered);
        return weft_fail_memory(error, plan->n_steps * sizeof *slots);
    }
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        if (!weft_is_store(plan, step)) {
            slots[n++] = (slot){.place = 2 * (s + 1), .step = s};
            continue;
        }
        if (is_in_place(plan, &u, step)) {
            plan->placed[step->in[0]].shares = step->out[0];
            join_reads(&u, step->in[0], step->out[0]);
            continue;
        }
        uint32_t made = made_at(plan, &u, step->in[0]);
        uint32_t read = u.last_reader[step->out[0]];
        const uint32_t behind = step_behind(plan, &u, step, made > read ? made : read);
        slots[n++] = (slot){.place = 2 * behind + 1, .step = s};
    }
    qsort(slots, n, sizeof *slots, by_place);
    for (uint32_t i = 0; i < n; i++)
        ordered[i] = plan->steps[slots[i].step];
    free(plan->steps);
    plan->steps = ordered;
    plan->build.cap_steps = plan->n_steps + 1;
    plan->n_steps = n;
    return WEFT_OK;
}
