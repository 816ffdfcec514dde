/* fuse: a loop whose only reader is another loop over the same elements becomes part of it.
 *
 * The value in between never reaches memory. Values with several readers stay: they are computed
 * once.
 */
#include "plan.h"

#include <string.h>

typedef struct fusing {
    weft_plan *plan;
    uint32_t *readers; /* [n_placed] steps that read it, outputs count as one more */
    uint32_t *maker;   /* [n_placed] step + 1 that makes it; 0: none                */
    bool *is_gone;     /* [n_steps] became part of a later step                      */
} fusing;

static bool same_space(const weft_plan *plan, uint32_t a, uint32_t b)
{
    const weft_placed *p = &plan->placed[a], *q = &plan->placed[b];
    const weft_shape *x = &p->type.shape, *y = &q->type.shape;
    if (x->n_dims != y->n_dims || !weft_spec_equal(&p->spec, &q->spec, x->n_dims)) return false;
    for (int d = 0; d < x->n_dims; d++)
        if (strcmp(x->dims[d].name, y->dims[d].name) || x->dims[d].size != y->dims[d].size)
            return false;
    return true;
}

static int find_operand(const uint32_t *in, int n_in, uint32_t placed)
{
    for (int i = 0; i < n_in; i++)
        if (in[i] == placed) return i;
    return -1;
}

/* Can `maker`, whose result is operand `which` of `step`, be joined into it? */
static bool can_join(const fusing *f, const weft_step *maker, const weft_step *step, int which)
{
    const weft_plan *plan = f->plan;
    uint32_t between = step->in[which];
    if (maker->kind != WEFT_STEP_LOOP || maker->phase != step->phase) return false;
    if (f->readers[between] != 1 || plan->placed[between].home != WEFT_TEMPORARY) return false;
    if (!same_space(plan, between, step->out[0])) return false;
    int added = 0;
    for (int i = 0; i < maker->n_in; i++)
        added += find_operand(step->in, step->n_in, maker->in[i]) < 0;
    return step->n_in - 1 + added <= WEFT_LOOP_IN &&
           step->n_links + maker->n_links <= WEFT_LOOP_OPS;
}

/* The links of `old` as part of a loop that has its operands in slots `slot_of` and its results from `first` on. */
static void copy_links(const weft_step *old, const int *slot_of, int first, weft_link *links)
{
    for (int k = 0; k < old->n_links; k++) {
        links[k] = old->links[k];
        for (int i = 0; i < links[k].n_in; i++) {
            int slot = links[k].in[i];
            links[k].in[i] = slot < old->n_in ? slot_of[slot] : first + slot - old->n_in;
        }
    }
}

/* Operands: step's without the one between, then maker's new ones. Links: maker's, then step's. */
static weft_status join(fusing *f, const weft_step *maker, weft_step *step, int which,
                        weft_error *error)
{
    const int room = maker->n_in + step->n_in, n_links = maker->n_links + step->n_links;
    uint32_t *in = weft_arena_take(f->plan->arena, (size_t)room * sizeof *in);
    int *slot_of = weft_arena_take(f->plan->arena, (size_t)room * sizeof *slot_of);
    weft_link *links = weft_arena_take(f->plan->arena, (size_t)n_links * sizeof *links);
    if (!in || !slot_of || !links) return weft_fail_memory(error, (size_t)n_links * sizeof *links);
    int *slot_of_maker = slot_of + step->n_in, n_in = 0;
    for (int i = 0; i < step->n_in; i++) {
        slot_of[i] = n_in;
        if (i != which) in[n_in++] = step->in[i];
    }
    for (int i = 0; i < maker->n_in; i++) {
        int at = find_operand(in, n_in, maker->in[i]);
        slot_of_maker[i] = at < 0 ? n_in : at;
        if (at < 0) in[n_in++] = maker->in[i];
    }
    slot_of[which] = n_in + maker->n_links - 1; /* the maker's last result */
    copy_links(maker, slot_of_maker, n_in, links);
    copy_links(step, slot_of, n_in + maker->n_links, links + maker->n_links);
    for (int k = 0; k < maker->n_links; k++)
        links[k].out = -1;
    step->in = in, step->n_in = n_in;
    step->links = links, step->n_links = n_links;
    return WEFT_OK;
}

static weft_status fuse_into(fusing *f, uint32_t s, weft_error *error)
{
    weft_step *step = &f->plan->steps[s];
    for (int i = 0; i < step->n_in;) {
        uint32_t maker = f->maker[step->in[i]];
        if (maker && can_join(f, &f->plan->steps[maker - 1], step, i)) {
            WEFT_TRY(join(f, &f->plan->steps[maker - 1], step, i, error));
            f->is_gone[maker - 1] = true;
            i = 0; /* the operands are new */
        } else {
            i++;
        }
    }
    return WEFT_OK;
}

static void count_readers(fusing *f)
{
    const weft_plan *plan = f->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in; i++)
            f->readers[step->in[i]] += find_operand(step->in, step->n_in, step->in[i]) == i;
        for (int o = 0; o < step->n_out; o++)
            f->maker[step->out[o]] = s + 1;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        f->readers[id] += plan->placed[id].is_output;
        if (plan->placed[id].shares) f->readers[plan->placed[id].shares] += 2;
    }
}

weft_status weft_pass_fuse(weft_plan *plan, weft_error *error)
{
    fusing f = {.plan = plan};
    f.readers = weft_arena_take(plan->arena, plan->n_placed * sizeof *f.readers);
    f.maker = weft_arena_take(plan->arena, plan->n_placed * sizeof *f.maker);
    f.is_gone = weft_arena_take(plan->arena, (plan->n_steps + 1) * sizeof *f.is_gone);
    if (!f.readers || !f.maker || !f.is_gone)
        return weft_fail_memory(error, plan->n_placed * sizeof *f.readers);
    count_readers(&f);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].kind == WEFT_STEP_LOOP) WEFT_TRY(fuse_into(&f, s, error));
    uint32_t kept = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (!f.is_gone[s]) plan->steps[kept++] = plan->steps[s];
    plan->n_steps = kept;
    return WEFT_OK;
}
