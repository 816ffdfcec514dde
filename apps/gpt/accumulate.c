/* accumulate: a batch gone through micro-batch by micro-batch: a scan over its windows, whose body has the loss and the
 * gradients of a part, and carries their sums.
 */
#include "model.h"

#include <stdlib.h>

#include "weft/autodiff.h"
#include "weft/scan.h"

/* What goes from part to part: the loss, then the gradients. */
typedef struct sums {
    int n;
    weft_value *begin, *carry; /* [n + 1] */
} sums;

static bool take_room(sums *s, int n)
{
    *s = (sums){.n = n, .begin = calloc(2 * ((size_t)n + 1), sizeof *s->begin)};
    s->carry = s->begin + n + 1;
    return s->begin != NULL;
}

static void begin_at_zero(const sums *s, weft_graph *graph, weft_dtype dtype,
                          const weft_value *variables)
{
    s->begin[0] = weft_constant(graph, dtype, WEFT_SCALAR, 0.0);
    for (int i = 0; i < s->n; i++)
        s->begin[i + 1] = weft_constant(graph, dtype, *weft_shape_of(variables[i]), 0.0);
}

/* Left to itself a sum stays partial over all trips, and is finished once. */
static void add(weft_value carry, weft_value part)
{
    weft_scan_next(carry, weft_add(carry, part));
}

/* Each part's gradient is finished into where its variable is stored, and added up there. */
static void add_stored(weft_value carry, weft_value part, weft_value variable)
{
    const weft_value own = weft_place_as(weft_settle(part), variable);
    weft_scan_next(carry, weft_place_as(weft_add(carry, own), variable));
}

/* Every parts-th window goes with the same part, so that each rank has as many of each. */
static weft_value by_parts(weft_value x, weft_dim rows, weft_dim part)
{
    return weft_reshape(x, WEFT_DIMS(rows, part, weft_dim_of(x, "seq")));
}

static gpt_windows windows_by_parts(const gpt_model *m, weft_dim rows, weft_dim part)
{
    gpt_windows all = {.tokens = by_parts(m->tokens, rows, part),
                       .targets = by_parts(m->targets, rows, part),
                       .documents = m->documents};
    if (m->documents.segments.id == 0) return all;
    all.documents.segments = by_parts(m->documents.segments, rows, part);
    all.documents.positions = by_parts(m->documents.positions, rows, part);
    return all;
}

/* In the scan's body; how many targets there are is of all parts. */
static gpt_windows windows_of_part(const gpt_windows *all, weft_dim part)
{
    gpt_windows own = *all;
    own.tokens = weft_scan_each(all->tokens, part);
    own.targets = weft_scan_each(all->targets, part);
    if (all->documents.segments.id == 0) return own;
    own.documents.segments = weft_scan_each(all->documents.segments, part);
    own.documents.positions = weft_scan_each(all->documents.positions, part);
    return own;
}

weft_value gpt_accumulate(const gpt_shape *shape, int64_t parts, bool is_stored, weft_graph *graph,
                          gpt_model *model, weft_value *variables, weft_value *gradients)
{
    gpt_shape small = *shape;
    small.batch /= parts;
    const weft_dim batch = {"batch", shape->batch}, seq = {"seq", shape->seq};
    const weft_dim rows = {"batch", small.batch}, part = {"part", parts};
    sums s;
    if (!take_room(&s, gpt_n_variables(shape))) return (weft_value){graph, 0};
    *model = (gpt_model){.batch = batch, .seq = seq};
    model->tokens = weft_input(graph, "tokens", WEFT_I32, WEFT_DIMS(batch, seq));
    model->targets = weft_input(graph, "targets", WEFT_I32, WEFT_DIMS(batch, seq));
    if (shape->packs) model->documents = gpt_documents_open(graph, batch, seq);
    gpt_documents_count(&model->documents, model->targets, shape->dtype, 1.0 / (double)parts);
    gpt_variables(shape, graph, variables);
    begin_at_zero(&s, graph, shape->dtype, variables);
    model->facts = gpt_facts_none(&shape->mixture, graph, shape->dtype);
    const gpt_windows all = windows_by_parts(model, rows, part);

    const weft_value trip = weft_scan_begin_over(graph, parts, batch);
    for (int i = 0; i <= s.n; i++)
        s.carry[i] = weft_scan_carry(s.begin[i]);
    const gpt_facts carried = gpt_facts_carry(model->facts);
    gpt_facts facts;
    const gpt_windows own = windows_of_part(&all, part);
    const weft_value loss = gpt_loss_on(&small, graph, variables, &own, &facts);
    weft_gradients(loss, (weft_values){variables, s.n}, gradients, 0);
    add(s.carry[0], loss);
    gpt_facts_next(carried, gpt_facts_sum(carried, facts));
    for (int i = 0; i < s.n; i++)
        if (is_stored)
            add_stored(s.carry[i + 1], gradients[i], variables[i]);
        else
            add(s.carry[i + 1], gradients[i]);
    weft_scan_end(trip);

    const double share = 1.0 / (double)parts;
    for (int i = 0; i < s.n; i++)
        gradients[i] = weft_scale(weft_scan_last(s.carry[i + 1]), share);
    model->facts = gpt_facts_last(carried);
    if (model->facts.balance.id != 0)
        model->facts.balance = weft_scale(model->facts.balance, share);
    const weft_value mean = weft_scale(weft_scan_last(s.carry[0]), share);
    free(s.begin);
    return mean;
}
