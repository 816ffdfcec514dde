/* ways: what can be done with one op along one axis, in the order in which ties are settled. Ways that nothing asks for (no operand
 * is along the direction, and no result wants to be) are listed last, for policies only.
 */
#include "weft/extend/combine.h"
#include "ways.h"

#include <string.h>

/* An axis that nothing mentions along a direction is not put to work there. */
static bool is_mentioned(const weft_choosing *c, const weft_factor *factor)
{
    int axis = c->decision.axis;
    for (int i = 0; i < c->in->site->n_in; i++) {
        const weft_holding *holding = &c->in->in[i];
        if (factor->in[i] < 0 || holding->is_generated) continue;
        if (holding->now[axis] == factor->in[i]) return true;
        if (holding->now[axis] == WEFT_PARTIAL && holding->finished[axis] == factor->in[i])
            return true;
    }
    for (int o = 0; o < c->in->site->n_out; o++)
        if (factor->out[o] >= 0 && c->in->out[o].finished[axis] == factor->out[o]) return true;
    return false;
}

static bool divides(int64_t size, int64_t parts)
{
    return size % parts == 0;
}

/* A tensor that is partial over several axes is so by one combine. */
static bool is_another(const weft_choosing *c, weft_combine combine)
{
    return c->choice->combine != WEFT_NOT_PARTIAL && c->choice->combine != combine;
}

bool weft_may_be_partial(const weft_op *op, weft_dtype dtype)
{
    return op->selects || !weft_dtype_is_float(dtype) || weft_dtype_computes(dtype) == dtype;
}

/* inf (a + b) is an infinity where inf a + inf b is no number: linear in finite numbers alone. */
bool weft_is_linear_in(const weft_plan *plan, const weft_node *node, int i)
{
    if (!(node->op->linear >> i & 1)) return false;
    for (int k = 0; k < node->n_in && plan->build.has_infinities; k++)
        if (k != i && weft_dtype_is_float(plan->graph->tensors[node->in[k]].type.dtype))
            return false;
    return true;
}

static bool may_all_be_partial(const weft_choosing *c)
{
    const weft_site *site = c->in->site;
    for (int o = 0; o < site->n_out; o++)
        if (!weft_may_be_partial(site->op, site->out[o].dtype)) return false;
    return true;
}

/* Two directions may run through one dim of an operand, which then is cut along one of them. */
static bool crosses_another(const weft_choosing *c, int f)
{
    const weft_factor *factors = c->in->factors->factors;
    for (int a = 0; a < c->decision.axis; a++) {
        const int other = c->choice->factor[a];
        if (other < 0 || other == f) continue;
        for (int i = 0; i < c->in->site->n_in; i++)
            if (factors[f].in[i] >= 0 && factors[f].in[i] == factors[other].in[i]) return true;
    }
    return false;
}

static bool is_legal(const weft_choosing *c, int f)
{
    if (crosses_another(c, f)) return false;
    const weft_factor *factor = &c->in->factors->factors[f];
    const weft_site *site = c->in->site;
    int64_t parts = c->decision.n_ranks;
    for (int a = 0; a < c->n_axes; a++)
        if (c->axes_of[f] >> a & 1) parts *= weft_mesh_axis_size(c->in->plan->mesh, a);
    for (int i = 0; i < site->n_in; i++)
        if (factor->even && factor->in[i] >= 0 &&
            !divides(site->in[i].shape.dims[factor->in[i]].size, parts))
            return false;
    for (int o = 0; o < site->n_out; o++) {
        if (factor->out[o] < 0 && factor->combine == WEFT_NOT_PARTIAL) return false;
        if (factor->out[o] < 0 && is_another(c, (weft_combine)factor->combine)) return false;
        if (factor->out[o] < 0 && weft_combine_adds((weft_combine)factor->combine) &&
            !weft_may_be_partial(site->op, site->out[o].dtype))
            return false;
        if (factor->even && factor->out[o] >= 0 &&
            !divides(site->out[o].shape.dims[factor->out[o]].size, parts))
            return false;
    }
    return true;
}

/* The next way of the list, to be filled: whole, unless told otherwise. */
static weft_way *new_way(weft_choosing *c, weft_way_kind kind, int factor)
{
    int w = c->decision.n_ways++;
    memset(c->need[w], WEFT_REPLICATED, sizeof c->need[w]);
    memset(c->make[w], WEFT_REPLICATED, sizeof c->make[w]);
    c->factor[w] = (int8_t)factor;
    c->ways[w] = (weft_way){.kind = kind, .need = c->need[w], .make = c->make[w], .is_usual = true};
    return &c->ways[w];
}

static void add_cut(weft_choosing *c, int f, bool is_usual)
{
    const weft_factor *factor = &c->in->factors->factors[f];
    weft_way *way = new_way(c, WEFT_WAY_CUT, f);
    int8_t *need = c->need[c->decision.n_ways - 1], *make = c->make[c->decision.n_ways - 1];
    way->combine = (weft_combine)factor->combine;
    way->is_usual = is_usual;
    if (c->is_shown) way->dim = weft_factor_name(c->in->site, factor);
    for (int i = 0; i < c->decision.n_in; i++)
        if (factor->in[i] >= 0) need[i] = factor->in[i];
    for (int o = 0; o < c->decision.n_out; o++)
        make[o] = factor->out[o] >= 0 ? factor->out[o] : WEFT_PARTIAL;
    way->price = weft_price_of(c, way, f);
}

static void add_cuts(weft_choosing *c, bool is_wanted, bool is_usual)
{
    const weft_factors *factors = c->in->factors;
    int axis = c->decision.axis;
    for (int f = 0; f < factors->n_factors; f++) {
        const weft_factor *factor = &factors->factors[f];
        bool its_wanted = factor->out[0] >= 0 && c->decision.n_out > 0 &&
                          c->in->out[0].finished[axis] == factor->out[0];
        if (its_wanted == is_wanted && is_mentioned(c, factor) == is_usual && is_legal(c, f))
            add_cut(c, f, is_usual);
    }
}

/* How a partial way gets its partial operands: by how many of them are partial already. */
typedef enum summands { ARE_PARTIAL, SOME_ARE_PARTIAL, NONE_IS_PARTIAL, CANNOT_BE } summands;

static summands summands_in(const weft_choosing *c, uint32_t mask, weft_combine *combine)
{
    int axis = c->decision.axis, n_partial = 0, n_others = 0;
    for (int i = 0; i < c->decision.n_in; i++) {
        const weft_holding *holding = &c->in->in[i];
        if (!(mask >> i & 1) || holding->is_generated) continue;
        const bool is_partial = holding->now[axis] == WEFT_PARTIAL;
        const weft_combine its = (weft_combine)holding->combine;
        if (is_partial && !weft_combine_adds(its)) return CANNOT_BE;
        if (is_partial && n_partial > 0 && its != *combine) return CANNOT_BE;
        if (is_partial) *combine = its;
        n_partial += is_partial;
        n_others += !is_partial;
    }
    if (n_partial == 0) return NONE_IS_PARTIAL;
    return n_others == 0 ? ARE_PARTIAL : SOME_ARE_PARTIAL;
}

/* The operands in `mask` are partial sums, or are counted once as if they were; the others are whole. */
static void add_partial(weft_choosing *c, uint32_t mask, summands kind)
{
    weft_combine combine = WEFT_SUM;
    if (mask == 0 || !may_all_be_partial(c)) return;
    if (summands_in(c, mask, &combine) != kind || is_another(c, combine)) return;
    weft_way *way = new_way(c, WEFT_WAY_PARTIAL, -1);
    for (int i = 0; i < c->decision.n_in; i++)
        if (mask >> i & 1) c->need[c->decision.n_ways - 1][i] = WEFT_PARTIAL;
    memset(c->make[c->decision.n_ways - 1], WEFT_PARTIAL, sizeof c->make[0]);
    way->combine = combine;
    way->is_usual = kind != NONE_IS_PARTIAL;
    way->price = weft_price_of(c, way, -1);
}

static void add_partials(weft_choosing *c, summands kind)
{
    const weft_node *node = &c->in->plan->graph->nodes[c->in->node];
    for (int i = 0; i < c->decision.n_in; i++)
        if (weft_is_linear_in(c->in->plan, node, i)) add_partial(c, 1u << i, kind);
    add_partial(c, node->op->additive, kind);
}

void weft_list_ways(weft_choosing *c)
{
    const bool can_cut = c->decision.n_ranks > 1;
    c->decision.n_ways = 0;
    if (can_cut) add_cuts(c, true, true); /* where the result goes */
    if (can_cut) add_partials(c, ARE_PARTIAL);
    if (can_cut) add_cuts(c, false, true);
    weft_way *whole = new_way(c, WEFT_WAY_WHOLE, -1);
    whole->price = weft_price_of(c, whole, -1);
    if (can_cut) add_partials(c, SOME_ARE_PARTIAL);
    if (!c->is_shown || !can_cut) return;
    add_cuts(c, false, false);
    add_partials(c, NONE_IS_PARTIAL);
}
