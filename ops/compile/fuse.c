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

static int find_operand(const weft_step *step, uint32_t placed)
{
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] == placed) return i;
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
        added += find_operand(step, maker->in[i]) < 0;
    return step->n_in - 1 + added <= WEFT_LOOP_IN &&
           step->n_links + maker->n_links <= WEFT_LOOP_OPS;
}

/* Operands: step's without the one between, then maker's new ones. Links: maker's, then step's. */
static weft_status join(fusing *f, const weft_step *maker, weft_step *step, int which,
                        weft_error *error)
{
    weft_step joined = *step;
    int slot_of_step[WEFT_LOOP_IN], slot_of_maker[WEFT_LOOP_IN];
    joined.n_in = 0;
    for (int i = 0; i < step->n_in; i++) {
        if (i == which) continue;
        slot_of_step[i] = joined.n_in;
        joined.in[joined.n_in++] = step->in[i];
    }
    for (int i = 0; i < maker->n_in; i++) {
        int at = find_operand(&joined, maker->in[i]);
        if (at < 0) {
            at = joined.n_in;
            joined.in[joined.n_in++] = maker->in[i];
        }
        slot_of_maker[i] = at;
    }
    slot_of_step[which] = joined.n_in + maker->n_links - 1; /* the maker's last result */
    joined.n_links = maker->n_links + step->n_links;
    joined.links = weft_arena_take(f->plan->arena, (size_t)joined.n_links * sizeof(weft_link));
    if (!joined.links) return weft_fail_memory(error, sizeof(weft_link));
    for (int k = 0; k < joined.n_links; k++) {
        bool is_maker = k < maker->n_links;
        const weft_step *old = is_maker ? maker : step;
        weft_link link = old->links[is_maker ? k : k - maker->n_links];
        for (int i = 0; i < link.n_in; i++) {
            int slot = link.in[i];
            if (slot < old->n_in)
                link.in[i] = is_maker ? slot_of_maker[slot] : slot_of_step[slot];
            else
                link.in[i] = joined.n_in + slot - old->n_in + (is_maker ? 0 : maker->n_links);
        }
        joined.links[k] = link;
    }
    *step = joined;
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
            f->readers[step->in[i]] += find_operand(step, step->in[i]) == i;
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
