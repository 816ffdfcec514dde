/* choose: for one op and each axis, split along a direction, keep a partial sum partial, or run
 * whole.
 *
 * The ways of an axis are listed in the order in which ties are settled, each with its price; the
 * cheapest is the default, and a policy may pick another. Ways that nothing asks for (no operand is
 * along the direction, and no result wants to be) are listed last, for policies only.
 */
#include "weft/extend/combine.h"
#include "choose.h"

#include <math.h>
#include <string.h>

enum { MAX_WAYS = WEFT_MAX_FACTORS + 2 * WEFT_MAX_IN + 3 };

typedef struct choosing {
    const weft_choice_in *in;
    weft_choice *choice;
    weft_error *error;
    int n_axes;
    uint32_t axes_of[WEFT_MAX_FACTORS];
    bool is_shown; /* somebody looks at the decision: a policy, or who asked to have it kept */
    weft_decision decision; /* the axis under way; its flops: with the axes decided so far */
    weft_operand in_of[WEFT_MAX_IN], out_of[WEFT_MAX_OUT];
    weft_way ways[MAX_WAYS], before[WEFT_MAX_AXES];
    int8_t before_need[WEFT_MAX_AXES][WEFT_MAX_IN], before_make[WEFT_MAX_AXES][WEFT_MAX_OUT];
    int8_t need[MAX_WAYS][WEFT_MAX_IN], make[MAX_WAYS][WEFT_MAX_OUT];
    int8_t factor[MAX_WAYS]; /* of each way; -1: no cut */
} choosing;

/* ---- prices ---------------------------------------------------------------------------------- */

/* Bytes of a tensor's box if `axis` left it whole. */
static double bytes_without(const choosing *c, const weft_holding *holding, const int8_t *states)
{
    double bytes = holding->bytes;
    for (int a = 0; a < c->n_axes; a++)
        if (a != c->decision.axis && states[a] >= 0)
            bytes /= weft_mesh_axis_size(c->in->plan->mesh, a);
    return bytes;
}

static weft_convert_kind kind_of(int from, int to)
{
    if (from == WEFT_PARTIAL) return to == WEFT_REPLICATED ? WEFT_ALL_REDUCE : WEFT_REDUCE_SCATTER;
    return to == WEFT_REPLICATED ? WEFT_ALL_GATHER : WEFT_ALL_TO_ALL;
}

static double price_over(const choosing *c, uint32_t axes, int from, int to, double bytes)
{
    int n_ranks = 1;
    for (int a = 0; a < c->n_axes; a++)
        if (axes >> a & 1) n_ranks *= weft_mesh_axis_size(c->in->plan->mesh, a);
    const double link_bytes = weft_state_cost(from, to, n_ranks, bytes);
    if (link_bytes <= 0) return link_bytes;
    const weft_exchange exchange = {.mesh = c->decision.mesh,
                                    .axes = axes,
                                    .n_ranks = n_ranks,
                                    .kind = kind_of(from, to),
                                    .bytes = bytes,
                                    .link_bytes = link_bytes};
    return weft_exchange_price(c->in->plan, &c->in->plan->cost, &exchange);
}

/* `reduced`: the axes before this one over which the same tensor is all_reduced anyway: one all_reduce is over all of them,
 * and this axis costs what it adds to that. */
static double convert_price(const choosing *c, int from, int to, double bytes, uint32_t reduced)
{
    const uint32_t axis = 1u << c->decision.axis;
    if (from != WEFT_PARTIAL || to != WEFT_REPLICATED) reduced = 0;
    const double alone = reduced ? price_over(c, reduced, from, to, bytes) : 0;
    const double price = price_over(c, reduced | axis, from, to, bytes);
    if (!isfinite(alone)) return price; /* what a user's cost function says */
    return reduced && price < alone ? 0 : price - alone;
}

/* A tensor partial in `states` is all_reduced over these axes, of those decided, where `stays` does not say that it stays so. */
static uint32_t axes_reduced(const choosing *c, const int8_t *states, const int8_t *stays,
                             const int8_t *finished)
{
    uint32_t axes = 0;
    for (int a = 0; a < c->decision.axis; a++)
        if (states[a] == WEFT_PARTIAL && finished[a] == WEFT_REPLICATED &&
            !(stays && stays[a] == WEFT_PARTIAL))
            axes |= 1u << a;
    return axes;
}

/* Of a dim with fewer elements than ranks a rank has nothing, and gets all of what is gathered; else a share is its own. */
static double gathered_by_most(const choosing *c, int i, int need, double bytes)
{
    const weft_holding *holding = &c->in->in[i];
    const int d = holding->now[c->decision.axis], n = c->decision.n_ranks;
    if (need != WEFT_REPLICATED || d < 0) return bytes;
    int64_t size = c->in->site->in[i].shape.dims[d].size;
    for (int a = 0; a < c->decision.axis; a++)
        if (holding->now[a] == d)
            size = (size + weft_mesh_axis_size(c->in->plan->mesh, a) - 1) /
                   weft_mesh_axis_size(c->in->plan->mesh, a);
    return (size + n - 1) / n * (n - 1) >= size ? bytes * n / (n - 1) : bytes;
}

/* A partial operand is finished once, for all its readers. */
static double operand_price(const choosing *c, int i, int need)
{
    const weft_holding *holding = &c->in->in[i];
    int now = holding->now[c->decision.axis], finished = holding->finished[c->decision.axis];
    double bytes = bytes_without(c, holding, holding->now);
    if (now == need || holding->is_free) return 0;
    if (now != WEFT_PARTIAL)
        return convert_price(c, now, need, gathered_by_most(c, i, need, bytes), 0);
    int readers = holding->readers > 1 ? holding->readers : 1;
    const uint32_t reduced = axes_reduced(c, holding->now, c->choice->need[i], holding->finished);
    return convert_price(c, now, finished, bytes, reduced) / readers +
           convert_price(c, finished, need, bytes, 0);
}

/* What a window of factor f shows of an operand beside the rank's own block. Where the operand is whole, all is there. */
static double border_price(const choosing *c, int i, int f)
{
    const weft_decision *decision = &c->decision;
    const weft_holding *holding = &c->in->in[i];
    const int axis = decision->axis;
    weft_window window = c->in->factors->window[f][i];
    const int now =
        holding->now[axis] == WEFT_PARTIAL ? holding->finished[axis] : holding->now[axis];
    if (window.lead == 0 || holding->is_free || now == WEFT_REPLICATED) return 0;
    int64_t size = c->in->site->in[i].shape.dims[c->in->factors->factors[f].in[i]].size;
    for (int a = 0; a < c->n_axes; a++) {
        const int64_t n = weft_mesh_axis_size(c->in->plan->mesh, a);
        if (!(c->axes_of[f] >> a & 1)) continue;
        size = (size + n - 1) / n; /* cut already */
        window.lead = (window.lead + n - 1) / n;
    }
    const double bytes = bytes_without(c, holding, holding->now);
    const double lacking = weft_border_cost(&window, size, decision->n_ranks, bytes);
    const weft_exchange exchange = {.mesh = decision->mesh,
                                    .axes = 1u << axis,
                                    .n_ranks = decision->n_ranks,
                                    .kind = WEFT_BORDER,
                                    .bytes = lacking,
                                    .link_bytes = lacking};
    if (lacking <= 0) return 0;
    return weft_exchange_price(c->in->plan, &c->in->plan->cost, &exchange);
}

/* f: the factor that the way cuts along; -1: none. */
static weft_price price_of(const choosing *c, const weft_way *way, int f)
{
    const weft_decision *decision = &c->decision;
    double n = decision->n_ranks;
    weft_price price = {0};
    if (way->kind != WEFT_WAY_CUT)
        price.repeated = weft_work_price(&c->in->plan->cost, decision->flops * (n - 1) / n);
    price.total = price.repeated;
    for (int i = 0; i < decision->n_in; i++) {
        double operand = operand_price(c, i, way->need[i]);
        if (f >= 0) operand += border_price(c, i, f);
        price.operands += operand;
        price.total += operand;
    }
    for (int o = 0; o < decision->n_out; o++) {
        const weft_holding *holding = &c->in->out[o];
        double bytes = bytes_without(c, holding, holding->finished);
        int finished = holding->finished[decision->axis];
        const uint32_t reduced = axes_reduced(c, c->choice->make[o], NULL, holding->finished);
        double result = convert_price(c, way->make[o], finished, bytes, reduced);
        if (way->make[o] == WEFT_PARTIAL && weft_combine_adds(way->combine))
            result *= holding->share[decision->axis];
        price.results += result;
        price.total += result;
    }
    return price;
}

/* The name of a direction, which also orders its axes: the result's, else an operand's. */
const char *weft_factor_name(const weft_site *site, const weft_factor *factor)
{
    for (int o = 0; o < site->n_out; o++)
        if (factor->out[o] >= 0) return site->out[o].shape.dims[factor->out[o]].name;
    for (int i = 0; i < site->n_in; i++)
        if (factor->in[i] >= 0) return site->in[i].shape.dims[factor->in[i]].name;
    return "";
}

/* ---- the ways -------------------------------------------------------------------------------- */

/* An axis that nothing mentions along a direction is not put to work there. */
static bool is_mentioned(const choosing *c, const weft_factor *factor)
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
static bool is_another(const choosing *c, weft_combine combine)
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
    for (int k = 0; k < node->n_in && plan->has_infinities; k++)
        if (k != i && weft_dtype_is_float(plan->graph->tensors[node->in[k]].type.dtype))
            return false;
    return true;
}

static bool may_all_be_partial(const choosing *c)
{
    const weft_site *site = c->in->site;
    for (int o = 0; o < site->n_out; o++)
        if (!weft_may_be_partial(site->op, site->out[o].dtype)) return false;
    return true;
}

/* Two directions may run through one dim of an operand, which then is cut along one of them. */
static bool crosses_another(const choosing *c, int f)
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

static bool is_legal(const choosing *c, int f)
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
static weft_way *new_way(choosing *c, weft_way_kind kind, int factor)
{
    int w = c->decision.n_ways++;
    memset(c->need[w], WEFT_REPLICATED, sizeof c->need[w]);
    memset(c->make[w], WEFT_REPLICATED, sizeof c->make[w]);
    c->factor[w] = (int8_t)factor;
    c->ways[w] = (weft_way){.kind = kind, .need = c->need[w], .make = c->make[w], .is_usual = true};
    return &c->ways[w];
}

static void add_cut(choosing *c, int f, bool is_usual)
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
    way->price = price_of(c, way, f);
}

static void add_cuts(choosing *c, bool is_wanted, bool is_usual)
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

static summands summands_in(const choosing *c, uint32_t mask, weft_combine *combine)
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
static void add_partial(choosing *c, uint32_t mask, summands kind)
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
    way->price = price_of(c, way, -1);
}

static void add_partials(choosing *c, summands kind)
{
    const weft_node *node = &c->in->plan->graph->nodes[c->in->node];
    for (int i = 0; i < c->decision.n_in; i++)
        if (weft_is_linear_in(c->in->plan, node, i)) add_partial(c, 1u << i, kind);
    add_partial(c, node->op->additive, kind);
}

static void list_ways(choosing *c)
{
    const bool can_cut = c->decision.n_ranks > 1;
    c->decision.n_ways = 0;
    if (can_cut) add_cuts(c, true, true); /* where the result goes */
    if (can_cut) add_partials(c, ARE_PARTIAL);
    if (can_cut) add_cuts(c, false, true);
    weft_way *whole = new_way(c, WEFT_WAY_WHOLE, -1);
    whole->price = price_of(c, whole, -1);
    if (can_cut) add_partials(c, SOME_ARE_PARTIAL);
    if (!c->is_shown || !can_cut) return;
    add_cuts(c, false, false);
    add_partials(c, NONE_IS_PARTIAL);
}

/* ---- the decision ---------------------------------------------------------------------------- */

static weft_status refuse(const choosing *c, const char *format, ...) WEFT_FORMAT(2, 3);
static weft_status refuse(const choosing *c, const char *format, ...)
{
    const weft_decision *decision = &c->decision;
    char place[160], what[240];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    weft_origin_print(&c->in->plan->graph->nodes[decision->node], place, sizeof place);
    return weft_fail(c->error, WEFT_USAGE, "%s, over %s: %s", place,
                     weft_mesh_axis_name(decision->mesh, decision->axis), what);
}

static bool is_price(const weft_price *price)
{
    return price->operands >= 0 && price->results >= 0 && price->repeated >= 0;
}

/* The first of the lowest price among the usual ways. */
static weft_status find_cheapest(choosing *c)
{
    double lowest = INFINITY;
    c->decision.cheapest = -1;
    for (int w = 0; w < c->decision.n_ways; w++) {
        const weft_price *price = &c->ways[w].price;
        if (!is_price(price))
            return refuse(c,
                          "the cost function gives a way the price %g (operands %g, results %g, "
                          "repeated work %g); give 0 or more, or INFINITY for never",
                          price->total, price->operands, price->results, price->repeated);
        if (!c->ways[w].is_usual || price->total >= lowest) continue;
        lowest = price->total;
        c->decision.cheapest = w;
    }
    if (c->decision.cheapest >= 0) return WEFT_OK;
    return refuse(c, "the cost function gives all %d ways the price INFINITY; leave one way open",
                  c->decision.n_ways);
}

static weft_status pick(choosing *c)
{
    const weft_policy *policy = c->in->plan->policy;
    int picked = WEFT_DEFAULT_WAY;
    c->decision.picked = -1;
    if (c->is_shown && policy && policy->pick) picked = policy->pick(policy->context, &c->decision);
    if (picked < WEFT_DEFAULT_WAY || picked >= c->decision.n_ways)
        return refuse(c,
                      "the policy \"%.60s\" picks way %d; there are 0 to %d, and %d is the default",
                      c->in->plan->policy_name, picked, c->decision.n_ways - 1, WEFT_DEFAULT_WAY);
    c->decision.picked = picked == WEFT_DEFAULT_WAY ? c->decision.cheapest : picked;
    return WEFT_OK;
}

/* Every axis starts with the ways of those before it. */
static void remember(choosing *c)
{
    int axis = c->decision.axis, w = c->decision.picked;
    memcpy(c->before_need[axis], c->need[w], sizeof c->need[w]);
    memcpy(c->before_make[axis], c->make[w], sizeof c->make[w]);
    c->before[axis] = c->ways[w];
    c->before[axis].need = c->before_need[axis];
    c->before[axis].make = c->before_make[axis];
}

static void take(choosing *c)
{
    weft_choice *choice = c->choice;
    int w = c->decision.picked, axis = c->decision.axis, f = c->factor[w];
    choice->factor[axis] = (int8_t)f;
    for (int i = 0; i < c->decision.n_in; i++)
        choice->need[i][axis] = c->need[w][i];
    for (int o = 0; o < c->decision.n_out; o++) {
        choice->make[o][axis] = c->make[w][o];
        if (c->make[w][o] == WEFT_PARTIAL) choice->combine = (uint8_t)c->ways[w].combine;
    }
    if (c->is_shown) remember(c);
    if (f < 0) return;
    c->axes_of[f] |= 1u << axis;
    c->decision.flops /= c->decision.n_ranks;
}

/* ---- what is shown and kept ------------------------------------------------------------------ */

static void show_operand(const choosing *c, const weft_holding *holding, bool is_in,
                         weft_operand *operand)
{
    const weft_tensor *tensor = &c->in->plan->graph->tensors[holding->value];
    *operand = (weft_operand){.value = holding->value,
                              .name = tensor->name,
                              .dtype = tensor->type.dtype,
                              .shape = &tensor->type.shape,
                              .now = is_in ? holding->now : NULL,
                              .wanted = holding->finished,
                              .n_readers = holding->readers,
                              .share = is_in ? NULL : holding->share,
                              .is_generated = is_in && holding->is_generated};
}

static void show(choosing *c)
{
    weft_decision *decision = &c->decision;
    const weft_node *node = &c->in->plan->graph->nodes[decision->node];
    for (int i = 0; i < decision->n_in; i++)
        show_operand(c, &c->in->in[i], true, &c->in_of[i]);
    for (int o = 0; o < decision->n_out; o++)
        show_operand(c, &c->in->out[o], false, &c->out_of[o]);
    decision->op = node->op->name;
    decision->builder = node->origin.builder;
    decision->file = node->origin.file;
    decision->line = node->origin.line;
    decision->phase = (weft_phase)node->phase;
    decision->in = c->in_of;
    decision->out = c->out_of;
    decision->before = c->before;
    decision->ways = c->ways;
}

/* Copies whose parts lie in the plan's arena; NULL when out of memory. */
static const weft_way *keep_ways(weft_arena *arena, const weft_way *ways, int n, int n_in,
                                 int n_out)
{
    weft_way *kept = weft_arena_copy(arena, ways, (size_t)n * sizeof *ways);
    for (int w = 0; kept && w < n; w++) {
        kept[w].need = weft_arena_copy(arena, ways[w].need, (size_t)n_in);
        kept[w].make = weft_arena_copy(arena, ways[w].make, (size_t)n_out);
        if (!kept[w].need || !kept[w].make) return NULL;
    }
    return kept;
}

static const weft_operand *keep_operands(weft_arena *arena, const weft_operand *operands, int n)
{
    weft_operand *kept = weft_arena_copy(arena, operands, (size_t)n * sizeof *operands);
    for (int i = 0; kept && i < n; i++) {
        if (kept[i].now) kept[i].now = weft_arena_copy(arena, kept[i].now, WEFT_MAX_AXES);
        kept[i].wanted = weft_arena_copy(arena, kept[i].wanted, WEFT_MAX_AXES);
        if (kept[i].share)
            kept[i].share = weft_arena_copy(arena, kept[i].share, WEFT_MAX_AXES * sizeof(double));
        if ((operands[i].now && !kept[i].now) || !kept[i].wanted ||
            (operands[i].share && !kept[i].share))
            return NULL;
    }
    return kept;
}

static weft_status keep(const choosing *c)
{
    const weft_decision *from = &c->decision;
    weft_arena *arena = c->in->plan->arena;
    weft_decision *kept = weft_plan_decision(c->in->plan);
    if (!kept) return weft_fail_memory(c->error, sizeof *kept);
    *kept = *from;
    kept->in = keep_operands(arena, from->in, from->n_in);
    kept->out = keep_operands(arena, from->out, from->n_out);
    kept->before = keep_ways(arena, from->before, from->axis, from->n_in, from->n_out);
    kept->ways = keep_ways(arena, from->ways, from->n_ways, from->n_in, from->n_out);
    if (!kept->in || !kept->out || !kept->before || !kept->ways)
        return weft_fail_memory(c->error, (size_t)from->n_ways * sizeof *from->ways);
    return WEFT_OK;
}

static weft_status decide(choosing *c)
{
    list_ways(c);
    WEFT_TRY(find_cheapest(c));
    WEFT_TRY(pick(c));
    return c->is_shown && c->in->plan->is_explained ? keep(c) : WEFT_OK;
}

static double flops_of(const weft_site *site)
{
    if (site->op->flops) return site->op->flops(site);
    return site->n_out ? (double)weft_shape_count(&site->out[0].shape) : 0;
}

weft_status weft_choose(const weft_choice_in *in, weft_choice *choice, weft_error *error)
{
    const weft_plan *plan = in->plan;
    choosing c = {.in = in,
                  .choice = choice,
                  .error = error,
                  .n_axes = weft_mesh_n_axes(plan->mesh),
                  .is_shown = !in->is_draft &&
                              (plan->is_explained || (plan->policy && plan->policy->pick))};
    memset(choice, 0, sizeof *choice);
    c.decision = (weft_decision){.mesh = plan->mesh,
                                 .node = in->node,
                                 .flops = flops_of(in->site),
                                 .n_in = in->site->n_in,
                                 .n_out = in->site->n_out};
    if (c.is_shown) show(&c);
    for (int axis = 0; axis < c.n_axes; axis++) {
        c.decision.axis = axis;
        c.decision.n_ranks = weft_mesh_axis_size(plan->mesh, axis);
        WEFT_TRY(decide(&c));
        take(&c);
    }
    choice->flops = c.decision.flops;
    return WEFT_OK;
}
