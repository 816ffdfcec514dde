/* choose: for one op and each axis, split along a direction, keep a partial sum partial, or run
 * whole.
 *
 * The ways of an axis are listed in the order in which ties are settled, each with its price; the
 * cheapest is the default, and a policy may pick another. Ways that nothing asks for (no operand is
 * along the direction, and no result wants to be) are listed last, for policies only.
 */
#include "weft/extend/combine.h"
#include "ways.h"

#include <math.h>
#include <string.h>

/* ---- prices ---------------------------------------------------------------------------------- */

/* Bytes of a tensor's box if `axis` left it whole. */
static double bytes_without(const weft_choosing *c, const weft_holding *holding,
                            const int8_t *states)
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

static double price_over(const weft_choosing *c, uint32_t axes, int from, int to, double bytes)
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
    return weft_exchange_price(c->in->plan, &c->in->plan->build.cost, &exchange);
}

/* `reduced`: the axes before this one over which the same tensor is all_reduced anyway: one all_reduce is over all of them,
 * and this axis costs what it adds to that. */
static double convert_price(const weft_choosing *c, int from, int to, double bytes,
                            uint32_t reduced)
{
    const uint32_t axis = 1u << c->decision.axis;
    if (from != WEFT_PARTIAL || to != WEFT_REPLICATED) reduced = 0;
    const double alone = reduced ? price_over(c, reduced, from, to, bytes) : 0;
    const double price = price_over(c, reduced | axis, from, to, bytes);
    if (!isfinite(alone)) return price; /* what a user's cost function says */
    return reduced && price < alone ? 0 : price - alone;
}

/* A tensor partial in `states` is all_reduced over these axes, of those decided, where `stays` does not say that it stays so. */
static uint32_t axes_reduced(const weft_choosing *c, const int8_t *states, const int8_t *stays,
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
static double gathered_by_most(const weft_choosing *c, int i, int need, double bytes)
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
static double operand_price(const weft_choosing *c, int i, int need)
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
static double border_price(const weft_choosing *c, int i, int f)
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
    return weft_exchange_price(c->in->plan, &c->in->plan->build.cost, &exchange);
}

/* f: the factor that the way cuts along; -1: none. */
weft_price weft_price_of(const weft_choosing *c, const weft_way *way, int f)
{
    const weft_decision *decision = &c->decision;
    double n = decision->n_ranks;
    weft_price price = {0};
    if (way->kind != WEFT_WAY_CUT)
        price.repeated = weft_work_price(&c->in->plan->build.cost, decision->flops * (n - 1) / n);
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

/* ---- the decision ---------------------------------------------------------------------------- */

static weft_status refuse(const weft_choosing *c, const char *format, ...) WEFT_FORMAT(2, 3);
static weft_status refuse(const weft_choosing *c, const char *format, ...)
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
static weft_status find_cheapest(weft_choosing *c)
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

static weft_status pick(weft_choosing *c)
{
    const weft_policy *policy = c->in->plan->build.policy;
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
static void remember(weft_choosing *c)
{
    int axis = c->decision.axis, w = c->decision.picked;
    memcpy(c->before_need[axis], c->need[w], sizeof c->need[w]);
    memcpy(c->before_make[axis], c->make[w], sizeof c->make[w]);
    c->before[axis] = c->ways[w];
    c->before[axis].need = c->before_need[axis];
    c->before[axis].make = c->before_make[axis];
}

static void take(weft_choosing *c)
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

static void show_operand(const weft_choosing *c, const weft_holding *holding, bool is_in,
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

static void show(weft_choosing *c)
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

static weft_status keep(const weft_choosing *c)
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

static weft_status decide(weft_choosing *c)
{
    weft_list_ways(c);
    WEFT_TRY(find_cheapest(c));
    WEFT_TRY(pick(c));
    return c->is_shown && c->in->plan->build.is_explained ? keep(c) : WEFT_OK;
}

bool weft_is_shown(const weft_choice_in *in)
{
    const weft_plan *plan = in->plan;
    return !in->is_draft &&
           (plan->build.is_explained || (plan->build.policy && plan->build.policy->pick));
}

weft_status weft_choose(const weft_choice_in *in, weft_choice *choice, weft_error *error)
{
    const weft_plan *plan = in->plan;
    weft_choosing c = {.in = in,
                       .choice = choice,
                       .error = error,
                       .n_axes = weft_mesh_n_axes(plan->mesh),
                       .is_shown = weft_is_shown(in)};
    memset(choice, 0, sizeof *choice);
    c.decision = (weft_decision){.mesh = plan->mesh,
                                 .node = in->node,
                                 .flops = weft_site_flops(in->site),
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
