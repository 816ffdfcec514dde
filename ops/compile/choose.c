/* choose: for one op and each axis, split along a direction, keep a partial sum partial, or run
 * whole. */
#include "choose.h"

#include <string.h>

/* Flops that take as long as one byte through a link: 100 GFLOP/s a core against about 3 GB/s. Only
 * its order of magnitude matters: it weighs work done twice against bytes moved. */
static const double flops_per_byte = 30.0;
static const double impossible = 1e300;

typedef struct candidate {
    int8_t need[WEFT_MAX_IN], make[WEFT_MAX_OUT];
    int8_t factor;
    uint8_t combine;
    bool is_repeated; /* every rank of the axis does all of the work */
} candidate;

typedef struct choosing {
    const weft_choice_in *in;
    weft_choice *choice;
    int axis, n_axes, n; /* n: ranks along the axis */
    uint32_t axes_of[WEFT_MAX_FACTORS];
    double flops; /* of the part one rank does, with the axes chosen so far */
    candidate best;
    double best_cost;
} choosing;

/* Bytes of a tensor's box if `axis` left it whole. */
static double bytes_without(const choosing *c, const weft_holding *holding, const int8_t *states)
{
    double bytes = holding->bytes;
    for (int a = 0; a < c->n_axes; a++)
        if (a != c->axis && states[a] >= 0) bytes /= weft_mesh_axis_size(c->in->plan->mesh, a);
    return bytes;
}

static double operand_cost(const choosing *c, int i, int need)
{
    const weft_holding *holding = &c->in->in[i];
    int now = holding->now[c->axis], finished = holding->finished[c->axis];
    double bytes = bytes_without(c, holding, holding->now);
    if (need == WEFT_PARTIAL) return now == WEFT_PARTIAL ? 0 : impossible;
    if (now != WEFT_PARTIAL) return weft_state_cost(now, need, c->n, bytes);
    int readers = holding->readers > 1 ? holding->readers : 1;
    return weft_state_cost(now, finished, c->n, bytes) / readers +
           weft_state_cost(finished, need, c->n, bytes);
}

static double cost_of(const choosing *c, const candidate *candidate)
{
    double cost = candidate->is_repeated ? c->flops * (c->n - 1) / c->n / flops_per_byte : 0;
    for (int i = 0; i < c->in->site->n_in; i++)
        cost += operand_cost(c, i, candidate->need[i]);
    for (int o = 0; o < c->in->site->n_out; o++) {
        const weft_holding *holding = &c->in->out[o];
        double bytes = bytes_without(c, holding, holding->finished);
        cost += weft_state_cost(candidate->make[o], holding->finished[c->axis], c->n, bytes);
    }
    return cost;
}

static void consider(choosing *c, const candidate *candidate)
{
    double cost = cost_of(c, candidate);
    if (cost >= c->best_cost) return;
    c->best = *candidate;
    c->best_cost = cost;
}

/* An axis that nothing mentions along a direction is not put to work there. */
static bool is_mentioned(const choosing *c, const weft_factor *factor)
{
    for (int i = 0; i < c->in->site->n_in; i++) {
        const weft_holding *holding = &c->in->in[i];
        if (factor->in[i] < 0) continue;
        if (holding->now[c->axis] == factor->in[i]) return true;
        if (holding->now[c->axis] == WEFT_PARTIAL && holding->finished[c->axis] == factor->in[i])
            return true;
    }
    for (int o = 0; o < c->in->site->n_out; o++)
        if (factor->out[o] >= 0 && c->in->out[o].finished[c->axis] == factor->out[o]) return true;
    return false;
}

static bool divides(int64_t size, int64_t parts)
{
    return size % parts == 0;
}

static bool is_legal(const choosing *c, int f)
{
    const weft_factor *factor = &c->in->factors.factors[f];
    const weft_site *site = c->in->site;
    int64_t parts = c->n;
    for (int a = 0; a < c->n_axes; a++)
        if (c->axes_of[f] >> a & 1) parts *= weft_mesh_axis_size(c->in->plan->mesh, a);
    for (int i = 0; i < site->n_in; i++)
        if (factor->even && factor->in[i] >= 0 &&
            !divides(site->in[i].shape.dims[factor->in[i]].size, parts))
            return false;
    for (int o = 0; o < site->n_out; o++) {
        if (factor->out[o] < 0 && factor->combine == WEFT_NOT_PARTIAL) return false;
        if (factor->even && factor->out[o] >= 0 &&
            !divides(site->out[o].shape.dims[factor->out[o]].size, parts))
            return false;
    }
    return true;
}

static void consider_factor(choosing *c, int f)
{
    const weft_factor *factor = &c->in->factors.factors[f];
    candidate candidate = {.factor = (int8_t)f, .combine = factor->combine};
    for (int i = 0; i < c->in->site->n_in; i++)
        candidate.need[i] = factor->in[i] >= 0 ? factor->in[i] : WEFT_REPLICATED;
    for (int o = 0; o < c->in->site->n_out; o++)
        candidate.make[o] = factor->out[o] >= 0 ? factor->out[o] : WEFT_PARTIAL;
    consider(c, &candidate);
}

/* The operands in `mask` are partial sums and stay so; the others are whole. */
static void consider_partial(choosing *c, uint32_t mask)
{
    candidate candidate = {.factor = -1, .combine = WEFT_SUM, .is_repeated = true};
    for (int i = 0; i < c->in->site->n_in; i++) {
        const weft_holding *holding = &c->in->in[i];
        bool stays = mask >> i & 1;
        if (stays && (holding->now[c->axis] != WEFT_PARTIAL || holding->combine != WEFT_SUM))
            return;
        candidate.need[i] = stays ? WEFT_PARTIAL : WEFT_REPLICATED;
    }
    memset(candidate.make, WEFT_PARTIAL, sizeof candidate.make);
    consider(c, &candidate);
}

static void choose_axis(choosing *c)
{
    const weft_op *op = c->in->site->op;
    const weft_factors *factors = &c->in->factors;
    c->best_cost = impossible;
    for (int wanted = 1; wanted >= 0; wanted--) { /* first what the result's names ask for */
        for (int f = 0; f < factors->n_factors; f++) {
            const weft_factor *factor = &factors->factors[f];
            bool is_wanted = factor->out[0] >= 0 && c->in->site->n_out > 0 &&
                             c->in->out[0].finished[c->axis] == factor->out[0];
            if (is_wanted == (wanted == 1) && is_mentioned(c, factor) && is_legal(c, f))
                consider_factor(c, f);
        }
        if (!wanted) continue;
        for (int i = 0; i < c->in->site->n_in; i++)
            if (op->linear >> i & 1) consider_partial(c, 1u << i);
        if (op->additive) consider_partial(c, op->additive);
    }
    candidate whole = {.factor = -1, .is_repeated = true};
    memset(whole.need, WEFT_REPLICATED, sizeof whole.need);
    memset(whole.make, WEFT_REPLICATED, sizeof whole.make);
    consider(c, &whole);
}

static void take(choosing *c)
{
    weft_choice *choice = c->choice;
    const candidate *best = &c->best;
    choice->factor[c->axis] = best->factor;
    for (int i = 0; i < c->in->site->n_in; i++)
        choice->need[i][c->axis] = best->need[i];
    for (int o = 0; o < c->in->site->n_out; o++) {
        choice->make[o][c->axis] = best->make[o];
        if (best->make[o] == WEFT_PARTIAL) choice->combine = best->combine;
    }
    if (best->factor < 0) return;
    c->axes_of[best->factor] |= 1u << c->axis;
    c->flops /= c->n;
}

static double flops_of(const weft_site *site)
{
    if (site->op->flops) return site->op->flops(site);
    return site->n_out ? (double)weft_shape_count(&site->out[0].shape) : 0;
}

void weft_choose(const weft_choice_in *in, weft_choice *choice)
{
    memset(choice, 0, sizeof *choice);
    choosing c = {.in = in,
                  .choice = choice,
                  .n_axes = weft_mesh_n_axes(in->plan->mesh),
                  .flops = flops_of(in->site)};
    for (c.axis = 0; c.axis < c.n_axes; c.axis++) {
        c.n = weft_mesh_axis_size(in->plan->mesh, c.axis);
        choose_axis(&c);
        take(&c);
    }
}
