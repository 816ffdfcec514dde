/* flow_tolls: the ways of a kernel, and what it pays along each of them: what comes to its operands, and goes from its results. See flows.c. */
#include "flows.h"

#include "regions.h"

#include <math.h>

static void add_toll(weft_search_work *work, weft_search_toll toll)
{
    if (toll.bytes <= 0 || work->n_tolls < 0) return;
    if (work->n_tolls ==
        WEFT_SEARCH_TOLLS) /* a toll left out is none; one spared that is left out would be one */
        work->n_tolls = -1;
    else
        work->tolls[work->n_tolls++] = toll;
}

/* How often an event is for each time that its kernel is done: once in each trip, where both are of one body. */
static double often(const search_flows *f, uint32_t from, uint32_t to, uint32_t kernel)
{
    const uint32_t a = f->graph->nodes[from].scan, b = f->graph->nodes[to].scan;
    const double times = weft_trips_of(f->graph, a);
    return (a == b ? times : 1) / weft_trips_of(f->graph, f->graph->nodes[kernel].scan);
}

static uint64_t dims_of(const search_flows *f, weft_search_dims *dims, uint32_t value)
{
    return weft_search_dims_of(dims, &f->graph->tensors[value].type.shape);
}

static uint64_t dims_of_factor(const weft_site *site, const weft_factor *factor,
                               weft_search_dims *dims)
{
    uint64_t bits = 0;
    for (int i = 0; i < site->n_in; i++)
        if (factor->in[i] >= 0) {
            const weft_shape one = {.n_dims = 1, .dims = {site->in[i].shape.dims[factor->in[i]]}};
            bits |= weft_search_dims_of(dims, &one);
        }
    for (int o = 0; o < site->n_out; o++)
        if (factor->out[o] >= 0) {
            const weft_shape one = {.n_dims = 1, .dims = {site->out[o].shape.dims[factor->out[o]]}};
            bits |= weft_search_dims_of(dims, &one);
        }
    return bits;
}

/* Those along which a node can be cut: another axis may leave sums of what is exchanged, which are exchanged together. */
static uint64_t dims_of_cuts(const search_flows *f, weft_search_dims *dims, uint32_t node)
{
    weft_site site;
    weft_factors factors = {0};
    uint64_t bits = 0;
    weft_site_of(f->graph, &f->graph->nodes[node], &site);
    site.op->factors(&site, &factors);
    for (int i = 0; i < factors.n_factors; i++)
        bits |= dims_of_factor(&site, &factors.factors[i], dims);
    return bits;
}

/* The event on the way to `value`, as a toll. */
static weft_search_toll toll_of(const search_flows *f, weft_search_dims *dims, uint32_t value,
                                uint32_t kernel, double bytes)
{
    const flow_target *t = &f->targets[value];
    const uint32_t from = weft_flows_node(f, t->source);
    return (weft_search_toll){.dims = dims_of_cuts(f, dims, from) | dims_of(f, dims, value),
                              .bytes = bytes,
                              .often = often(f, from, t->reader, kernel),
                              .share = 1,
                              .kind = t->kind,
                              .is_first = (f->order[t->reader] & WEFT_WORK_FIRST) != 0};
}

/* The node that would be whole. */
static void spare(const search_flows *f, uint32_t node, weft_search_toll *toll)
{
    toll->whole_id = f->ids[node];
    toll->whole_order = f->order[node];
}

static void look_at_variable(const search_flows *f, weft_search_dims *dims, uint32_t kernel, int i,
                             weft_search_work *work)
{
    const weft_node *node = &f->graph->nodes[kernel];
    const uint32_t value = node->in[i], variable = f->variable[value];
    int all = 0;
    for (int p = 0; p < WEFT_PHASES; p++)
        all += f->n_readers[p][variable];
    if (f->graph->tensors[variable].placement) return;
    const double bytes = fmin(weft_flows_bytes(f, value), weft_flows_bytes(f, variable)) /
                         weft_trips_of(f->graph, node->scan);
    add_toll(work, (weft_search_toll){.dims = dims_of(f, dims, value),
                                      .bytes = bytes / all,
                                      .again = bytes / f->n_readers[node->phase][variable],
                                      .share = 1,
                                      .often = 1 / weft_trips_of(f->graph, node->scan),
                                      .of = WEFT_TOLL_VARIABLE,
                                      .term = (uint8_t)i});
}

static void look_at_operand(const search_flows *f, weft_search_dims *dims, uint32_t kernel, int i,
                            weft_search_work *work)
{
    const uint32_t value = f->graph->nodes[kernel].in[i];
    const flow_target *t = &f->targets[value];
    const bool is_chained = !(f->order[kernel] & WEFT_WORK_BESIDE);
    if (f->variable[value]) look_at_variable(f, dims, kernel, i, work);
    if (t->source == 0) return;
    weft_search_toll toll = toll_of(f, dims, value, kernel, f->sources[t->source].bytes);
    toll.of = WEFT_TOLL_LACK;
    toll.term = (uint8_t)i;
    toll.share = t->n_chained == 0 ? 1.0 / t->n_readers : is_chained ? 1.0 / t->n_chained : 0;
    spare(f, weft_flows_node(f, t->source), &toll);
    if (toll.share > 0) add_toll(work, toll);
    if (t->whole != kernel) return;
    toll = toll_of(f, dims, value, kernel, f->sources[t->source].partial_bytes);
    toll.of = WEFT_TOLL_SPARED; /* a sum that need not be finished for it */
    toll.term = (uint8_t)i;
    add_toll(work, toll);
}

static void look_at_result(const search_flows *f, weft_search_dims *dims, uint32_t kernel, int o,
                           weft_search_work *work)
{
    const uint32_t value = f->graph->nodes[kernel].out + (uint32_t)o;
    const flow_source *s = &f->sources[value];
    const uint8_t term = (uint8_t)(f->graph->nodes[kernel].n_in + o);
    if (s->is_lost) return;
    if (s->of && !f->graph->tensors[s->of].placement) {
        const double each = f->n_gradients[s->of];
        add_toll(work, (weft_search_toll){
                           .dims = dims_of(f, dims, s->of),
                           .bytes = s->partial_bytes / each,
                           .again = fmin(s->bytes, weft_flows_bytes(f, s->of)) / each,
                           .share = 1,
                           .often = 1 / weft_trips_of(f->graph, f->graph->nodes[kernel].scan),
                           .of = WEFT_TOLL_GRADIENT,
                           .term = term});
    }
    if (!s->to || f->targets[s->to].source != value) return;
    weft_search_toll toll = toll_of(f, dims, s->to, kernel, s->partial_bytes);
    toll.of = WEFT_TOLL_LACK;
    toll.term = term;
    spare(f, f->targets[s->to].whole, &toll);
    add_toll(work, toll);
    toll.bytes = s->bytes;
    toll.of = WEFT_TOLL_SPARED;
    add_toll(work, toll);
}

static void add_way(weft_search_work *work, weft_search_way way)
{
    if (work->n_ways == WEFT_SEARCH_WAYS) work->n_tolls = -1;
    if (work->n_ways < WEFT_SEARCH_WAYS) work->ways[work->n_ways++] = way;
}

/* The whole work on every rank: of whole operands, or of partial sums, which are results then. */
static void add_whole_ways(weft_search_work *work, const weft_node *node)
{
    add_way(work, (weft_search_way){.is_whole = true, .spares = (uint16_t)(~0u << node->n_in)});
    for (int i = 0; i < node->n_in; i++)
        if (node->op->linear >> i & 1)
            add_way(work, (weft_search_way){.is_whole = true,
                                            .has = (uint16_t)(1u << i),
                                            .spares = (uint16_t)(1u << i)});
    if (node->op->additive)
        add_way(work, (weft_search_way){.is_whole = true,
                                        .has = node->op->additive,
                                        .spares = node->op->additive});
}

static void add_cuts(weft_search_work *work, const weft_node *node, const weft_site *site,
                     weft_search_dims *dims)
{
    weft_factors factors = {0};
    node->op->factors(site, &factors);
    for (int f = 0; f < factors.n_factors; f++) {
        const weft_factor *factor = &factors.factors[f];
        weft_search_way way = {.dims = dims_of_factor(site, factor, dims)};
        for (int i = 0; i < node->n_in; i++)
            if (factor->in[i] >= 0) way.has |= (uint16_t)(1u << i);
        for (int o = 0; o < node->n_out; o++)
            if (factor->out[o] >= 0) way.has |= (uint16_t)(1u << (node->n_in + o));
        add_way(work, way);
    }
}

void weft_flows_tolls(const search_flows *flows, const weft_step *step, weft_search_dims *dims,
                      weft_search_work *work)
{
    const weft_node *node = &flows->graph->nodes[step->node];
    weft_site site;
    work->n_ways = work->n_tolls = 0;
    work->n_in = node->n_in;
    if (!flows->is_kernel[step->node]) return;
    weft_site_of(flows->graph, node, &site);
    for (int i = 0; i < node->n_in; i++)
        look_at_operand(flows, dims, step->node, i, work);
    for (int o = 0; o < node->n_out; o++)
        look_at_result(flows, dims, step->node, o, work);
    add_whole_ways(work, node);
    add_cuts(work, node, &site, dims);
}
