/* snapshot_guard: nobody writes a variable before the reader of a snapshot has read it; the program runs on meanwhile. */
#include "snapshot_guard.h"

#include <stdlib.h>

#include "program.h"

/* Programs may share variables, so what holds one holds all that it takes variables from. */
void weft_snapshot_guard_start(weft_snapshot_guard *guard, weft_program *program)
{
    guard->program = program;
    for (weft_program *p = program; p; p = p->share) {
        if (p->guard) {
            p->guard->wait(p->guard, NULL);
            weft_snapshot_guard_end(p->guard);
        }
        p->guard = guard;
    }
}

void weft_snapshot_guard_end(weft_snapshot_guard *guard)
{
    for (weft_program *p = guard->program; p; p = p->share)
        if (p->guard == guard) p->guard = NULL;
    guard->program = NULL;
}

void weft_snapshot_guard_wait(const weft_program *program, const void *memory)
{
    for (const weft_program *p = program; p; p = p->share)
        if (p->guard) p->guard->wait(p->guard, memory);
}

bool weft_is_snapshot_guarded(const weft_program *program)
{
    for (const weft_program *p = program; p; p = p->share)
        if (p->guard) return true;
    return false;
}

/* Where a variable is written first: the step, and which of its results; behind all steps: nowhere. */
typedef struct written {
    uint64_t at;
    int variable;
} written;

static int by_place(const void *a, const void *b)
{
    const written *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->variable > y->variable) - (x->variable < y->variable);
}

/* By placed tensor: from the last step to the first, so that the first stays. */
static void find_writes(const weft_program *program, uint64_t *first)
{
    const weft_plan *plan = program->plan;
    for (uint32_t id = 0; id < plan->n_placed; id++)
        first[id] = (uint64_t)plan->n_steps << 32;
    for (uint32_t s = plan->n_steps; s-- > program->first_store;)
        for (int o = plan->steps[s].n_out; o-- > 0;)
            first[weft_placed_owner(plan, plan->steps[s].out[o])] = (uint64_t)s << 32 | (uint32_t)o;
}

void weft_write_order(const weft_program *program, int n, int *order)
{
    uint64_t *first = malloc(program->plan->n_placed * sizeof *first);
    written *all = malloc(((size_t)n + 1) * sizeof *all);
    if (first) find_writes(program, first);
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = 0; i < n && first && all; i++)
        all[i] = (written){first[weft_home_of(program, weft_variable_at(program, i))], i};
    if (first && all) qsort(all, (size_t)n, sizeof *all, by_place);
    for (int i = 0; i < n && first && all; i++)
        order[i] = all[i].variable; /* else any order will do */
    free(first);
    free(all);
}
