/* experts: a mixture of experts: a router assigns tokens to experts, pick brings tokens to the experts' places,
 * unpick brings the experts' results back.
 *
 * Places are counted within a group, that is along one dim of x: so no layout changes who sits where. The router's
 * values have a dim of their own name, `route`: they are small, and whole on every rank; it is called experts where
 * tokens go. A rule for experts that takes the axis of the batch then finds [experts, batch, place, feature] made
 * along the batch, and read along the experts.
 */
#include <math.h>
#include <string.h>

#include "layer.h"
#include "op.h"
#include "weft/ops.h"

typedef struct layer {
    weft_layer base;
    const weft_experts_options *options;
    weft_graph *graph;
    weft_shape x, groups; /* groups: x's dims but token and feature */
    weft_dim token, feature, experts, hidden, route, place;
    int64_t top_k;
    weft_experts_weights w;
    weft_value logits, shares; /* [groups, token, route]: of the router, and their softmax */
    weft_value ids;            /* i32 [groups, token, choice]: whom a token chooses */
    weft_value chosen;         /* i32, of the same: whom a token chooses; {0} where experts do */
} layer;

/* Who sits where, and the gate by which what is made of it goes back: [groups, place, route]. */
typedef struct seating {
    weft_value token; /* i32; -1: nobody */
    weft_value gate;
} seating;

/* ---- shapes ---------------------------------------------------------------------------------------- */

/* Too many dims keep their number, of which builders tell. */
static weft_shape joined(weft_shape a, weft_shape b)
{
    for (int d = 0; d < b.n_dims; d++, a.n_dims++)
        if (a.n_dims < WEFT_MAX_DIMS) a.dims[a.n_dims] = b.dims[d];
    return a;
}

static weft_shape of_tokens(const layer *l, weft_shape last)
{
    return joined(joined(l->groups, WEFT_DIMS(l->token)), last);
}

/* Experts first: those of a rank, or of all groups, are one product's rows. */
static weft_shape of_places(const layer *l, weft_dim first, weft_shape last)
{
    return joined(joined(WEFT_DIMS(first), l->groups), joined(WEFT_DIMS(l->place), last));
}

/* Of a group and expert: as many as an even share, times the capacity. */
static int64_t n_places(const weft_experts_options *o, int64_t top_k)
{
    const double factor = o->capacity == 0 ? 1.25 : o->capacity, n = (double)o->token.size;
    const double places = ceil(factor * (double)top_k * n / (double)o->experts.size);
    return places < 1 ? 1 : places > n ? o->token.size : (int64_t)places;
}

/* ---- variables ------------------------------------------------------------------------------------- */

static weft_value variable(const layer *l, const char *name, weft_shape shape, weft_dim fan_in,
                           weft_dim fan_out, double scale)
{
    weft_layer wide = l->base; /* products read it rounded, the router as it is */
    wide.dtype = weft_dtype_computes(wide.dtype);
    return weft_layer_weight_of(&wide, &(weft_layer_weight){.name = name,
                                                            .shape = shape,
                                                            .fan_in = (double)fan_in.size,
                                                            .fan_out = (double)fan_out.size,
                                                            .initializer = l->options->initializer,
                                                            .exactly = l->options->weights,
                                                            .scale = scale});
}

static weft_experts_weights make_variables(const layer *l)
{
    const weft_dim in = l->feature, hidden = l->hidden;
    weft_experts_weights w;
    w.router = variable(l, "router", WEFT_DIMS(in, l->route), in, l->route, 0);
    w.up = variable(l, "up", WEFT_DIMS(l->experts, in, hidden), in, hidden, 0);
    w.down =
        variable(l, "down", WEFT_DIMS(l->experts, hidden, in), hidden, in, l->options->out_scale);
    return w;
}

/* As products read it. */
static weft_value operand(const layer *l, weft_value weights)
{
    return weft_cast(weights, l->base.dtype);
}

/* ---- who goes to whom ------------------------------------------------------------------------------ */

static weft_value whole_number(const layer *l, double value)
{
    return weft_constant(l->graph, WEFT_I32, WEFT_SCALAR, value);
}

/* What the router reads, and nobody else. */
static weft_value jittered(const layer *l, weft_value x)
{
    const double by = l->options->jitter;
    const weft_shape shape = *weft_shape_of(x);
    if (by == 0) return x;
    return weft_mul(x, weft_random_uniform(l->graph, weft_dtype_of(x), shape, 1 - by, 1 + by));
}

static void route(layer *l, weft_value x)
{
    const weft_value wide = jittered(l, weft_cast(x, weft_dtype_of(l->w.router)));
    l->logits = weft_einsum(of_tokens(l, WEFT_DIMS(l->route)), wide, l->w.router);
    l->shares = weft_softmax(l->logits, l->route);
    if (l->options->chooser == WEFT_EXPERTS_CHOOSE) return;
    const weft_dim choice = {"choice", l->top_k};
    (void)weft_top_k(l->shares, l->route, choice, &l->ids);
    l->chosen =
        weft_sum(of_tokens(l, WEFT_DIMS(l->route)), weft_one_hot(l->ids, l->route, WEFT_I32));
}

/* Of each token's experts, 0 of others; [groups, token, route]. */
static weft_value gates(const layer *l)
{
    const weft_value none = weft_constant(l->graph, weft_dtype_of(l->shares), WEFT_SCALAR, 0.0);
    const weft_value kept = weft_where(l->chosen, l->shares, none);
    if (!l->options->normalizes) return kept;
    return weft_div(kept, weft_sum(of_tokens(l, (weft_shape){0}), kept));
}

/* Of what is 1 where a token chose the expert the largest are they, in their order: who comes first sits first. Who comes later changes
 * nothing for it. */
static seating seat_tokens(const layer *l)
{
    weft_value ids;
    const weft_value is_in = weft_top_k(l->chosen, l->token, l->place, &ids);
    const weft_value token = weft_where(is_in, ids, whole_number(l, -1));
    return (seating){token, weft_pick(gates(l), token, l->token)};
}

/* Each expert takes the tokens of which it has the largest shares. */
static seating choose_tokens(const layer *l)
{
    seating s;
    s.gate = weft_top_k(l->shares, l->token, l->place, &s.token);
    return s;
}

/* ---- there and back -------------------------------------------------------------------------------- */

static weft_value acted(const layer *l, weft_value x)
{
    const char *activation = l->options->activation;
    return weft_layer_activated(&l->base, x, activation != NULL ? activation : "gelu");
}

/* Who sits where has the router's dim, also what is brought there; inside experts alone it is theirs. */
static weft_value at_places(const layer *l, weft_value x, const seating *s)
{
    const weft_shape seats = of_places(l, l->route, (weft_shape){0}),
                     inside = of_places(l, l->experts, WEFT_DIMS(l->hidden)),
                     outside = of_places(l, l->experts, WEFT_DIMS(l->feature));
    const weft_value token = weft_transpose(s->token, seats), gate = weft_transpose(s->gate, seats);
    const weft_value sent = weft_rename(weft_pick(x, token, l->token), l->route, l->experts);
    const weft_value h = acted(l, weft_einsum(inside, sent, operand(l, l->w.up)));
    const weft_value made = weft_einsum(outside, h, operand(l, l->w.down));
    const weft_value back = weft_rename(made, l->experts, l->route);
    return weft_unpick(l->x, weft_mul(back, operand(l, gate)), token, l->token);
}

/* Without places: every expert on every token, by gates that are 0 where it was not chosen. */
static weft_value everywhere(const layer *l, weft_value x)
{
    const weft_value gate = operand(l, weft_rename(gates(l), l->route, l->experts));
    const weft_shape inside = of_tokens(l, WEFT_DIMS(l->experts, l->hidden));
    const weft_value h = acted(l, weft_einsum(inside, x, operand(l, l->w.up)));
    return weft_einsum(l->x, weft_mul(h, gate), operand(l, l->w.down));
}

/* Each token with its own experts: [groups, token, choice, ..] inside of them. */
static weft_value with_chosen(const layer *l, weft_value x)
{
    const weft_value shares = weft_pick(l->shares, l->ids, l->route);
    const weft_value sum = weft_sum(of_tokens(l, (weft_shape){0}), shares);
    const weft_value gate = l->options->normalizes ? weft_div(shares, sum) : shares;
    const weft_value h = acted(l, weft_pick_product(x, operand(l, l->w.up), l->ids, l->experts));
    const weft_value made = weft_pick_product(h, operand(l, l->w.down), l->ids, l->experts);
    return weft_einsum(l->x, made, operand(l, gate));
}

/* ---- facts ----------------------------------------------------------------------------------------- */

/* Of each group: the mean over experts of its part of all choices times its mean share, relative to an even one. */
static weft_value balance(const layer *l)
{
    const weft_dtype dtype = weft_dtype_of(l->shares);
    if (l->chosen.id == 0) return weft_constant(l->graph, dtype, WEFT_SCALAR, 1.0);
    const weft_shape kept = joined(l->groups, WEFT_DIMS(l->route));
    const weft_value part = weft_mean_over(kept, weft_cast(l->chosen, dtype)),
                     share = weft_mean_over(kept, l->shares);
    return weft_scale(weft_mean(weft_mul(part, share)),
                      (double)l->experts.size * (double)l->experts.size / (double)l->top_k);
}

static void count(const layer *l, const seating *s, weft_experts_facts *facts)
{
    facts->dropped = facts->turned_away = whole_number(l, 0);
    if (s == NULL) return;
    const weft_shape shape = *weft_shape_of(s->token);
    const weft_value one = weft_broadcast_to(whole_number(l, 1), shape);
    const weft_value taken = weft_unpick(of_tokens(l, (weft_shape){0}), one, s->token, l->token);
    facts->dropped = weft_sum(WEFT_SCALAR, weft_equal(taken, whole_number(l, 0)));
    if (l->chosen.id != 0)
        facts->turned_away =
            weft_sub(weft_sum(WEFT_SCALAR, l->chosen), weft_sum(WEFT_SCALAR, taken));
}

static void tell(const layer *l, const seating *s, weft_experts_facts *facts)
{
    facts->balance = balance(l);
    facts->z = weft_mean(weft_z_loss(l->logits, l->route));
    count(l, s, facts);
}

/* ---- what was asked for ---------------------------------------------------------------------------- */

static weft_value build(layer *l, weft_value x, weft_experts_facts *facts)
{
    const weft_experts_options *o = l->options;
    l->w = o->given != NULL ? *o->given : make_variables(l);
    route(l, x);
    if (o->is_dropless) {
        if (facts != NULL) tell(l, NULL, facts);
        return o->is_picked ? with_chosen(l, x) : everywhere(l, x);
    }
    const seating s = o->chooser == WEFT_EXPERTS_CHOOSE ? choose_tokens(l) : seat_tokens(l);
    if (facts != NULL) tell(l, &s, facts);
    return at_places(l, x, &s);
}

static bool makes(const layer *l, weft_value x, weft_dim dim)
{
    const weft_shape none = {0}, made = WEFT_DIMS(dim);
    return weft_layer_instead(&l->base, x, &none, &made).n_dims > 0;
}

static bool check_dims(const layer *l, weft_value x)
{
    const weft_dim made[] = {l->experts, l->hidden, l->route, {"place", 1}, {"choice", 1}};
    if (!weft_layer_has(&l->base, "its tokens are along", x, l->token) ||
        !weft_layer_has(&l->base, "it mixes", x, l->feature))
        return false;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (!makes(l, x, made[i])) return false;
    return true;
}

static bool check_routing(const layer *l)
{
    const weft_experts_options *o = l->options;
    const bool is_choice = o->chooser == WEFT_EXPERTS_CHOOSE;
    if (l->top_k < 1 || l->top_k > l->experts.size)
        weft_graph_fail(l->graph, "experts: top_k is %lld of %lld experts; take 1 to all of them",
                        (long long)l->top_k, (long long)l->experts.size);
    else if (!is_choice && o->chooser != WEFT_TOKENS_CHOOSE)
        weft_graph_fail(l->graph,
                        "experts: chooser is %d; it is WEFT_TOKENS_CHOOSE or WEFT_EXPERTS_CHOOSE",
                        (int)o->chooser);
    else if (!(o->capacity >= 0 && o->capacity <= 1e9))
        weft_graph_fail(l->graph,
                        "experts: capacity is %g; it is above 0: places of an expert, 1 for an "
                        "even share of the tokens. For as many as come, set is_dropless",
                        o->capacity);
    else if (!(o->jitter >= 0 && o->jitter < 1))
        weft_graph_fail(l->graph,
                        "experts: jitter is %g; the router reads x times numbers from 1 - jitter "
                        "to 1 + jitter, so it is from 0 to below 1",
                        o->jitter);
    else if (o->is_picked && !o->is_dropless)
        weft_graph_fail(l->graph, "experts: is_picked is set and is_dropless is not; experts with "
                                  "places are computed at these. Set both");
    else if (o->is_dropless && is_choice)
        weft_graph_fail(l->graph,
                        "experts: experts choose and is_dropless is set; experts take as many "
                        "tokens as they have places. Let tokens choose, or give a capacity");
    else if (o->normalizes && (is_choice || l->top_k == 1))
        weft_graph_fail(l->graph,
                        "experts: normalizes is set and %s; gates of a token add up to 1 where it "
                        "chooses several experts",
                        is_choice ? "experts choose" : "top_k is 1");
    return weft_graph_status(l->graph) == WEFT_OK;
}

static bool check(layer *l, weft_value x)
{
    const weft_experts_options *o = l->options;
    const char *name = o->name == NULL && o->given != NULL ? "without variables" : o->name;
    if (!weft_layer_begin(&l->base, "experts", name, o->source, x)) return false;
    if (o->experts.name == NULL || strcmp(o->experts.name, l->route.name) != 0)
        return check_dims(l, x) && check_routing(l);
    weft_graph_fail(l->graph, "experts: experts are called route, as the router's are before "
                              "they are split; give them another name");
    return false;
}

weft_value weft_experts(weft_value x, const weft_experts_options *options,
                        weft_experts_facts *facts)
{
    const weft_value none = weft_no_value(x.graph);
    if (facts != NULL) *facts = (weft_experts_facts){none, none, none, none};
    if (x.id == 0) return none;
    if (options == NULL)
        return weft_graph_fail(
            x.graph,
            "experts: options are NULL; they say name, token, feature, experts and hidden");
    layer l = {.options = options,
               .graph = x.graph,
               .x = *weft_shape_of(x),
               .token = options->token,
               .feature = options->feature,
               .experts = options->experts,
               .hidden = options->hidden,
               .route = {"route", options->experts.size},
               .top_k = options->top_k == 0 ? 1 : options->top_k};
    if (!check(&l, x)) return none;
    l.groups = weft_shape_without(&l.x, l.token.name);
    l.groups = weft_shape_without(&l.groups, l.feature.name);
    l.place = (weft_dim){"place", n_places(options, l.top_k)};
    const weft_value y = build(&l, x, facts);
    if (y.id == 0 && facts != NULL) *facts = (weft_experts_facts){none, none, none, none};
    return y;
}
