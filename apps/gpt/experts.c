/* experts: results of blocks with a mixture of experts as their MLP.
 *
 * A group is a window: who is taken depends on a window alone, so parts of a batch have the numbers of the batch. Where a token has
 * several experts their gates add up to 1; of one the gate is its share, as through it the router learns.
 */
#include "experts.h"

#include "weft/ops.h"
#include "weft/scan.h"

gpt_facts gpt_facts_none(const gpt_mixture *mixture, weft_graph *graph, weft_dtype dtype)
{
    if (mixture->experts <= 1) return (gpt_facts){0};
    return (gpt_facts){weft_constant(graph, dtype, WEFT_SCALAR, 0.0),
                       weft_constant(graph, WEFT_I32, WEFT_SCALAR, 0.0)};
}

gpt_facts gpt_facts_sum(gpt_facts a, gpt_facts b)
{
    if (a.balance.id == 0) return a;
    return (gpt_facts){weft_add(a.balance, b.balance), weft_add(a.dropped, b.dropped)};
}

gpt_facts gpt_facts_carry(gpt_facts facts)
{
    if (facts.balance.id == 0) return facts;
    return (gpt_facts){weft_scan_carry(facts.balance), weft_scan_carry(facts.dropped)};
}

void gpt_facts_next(gpt_facts carried, gpt_facts next)
{
    if (carried.balance.id == 0) return;
    weft_scan_next(carried.balance, next.balance);
    weft_scan_next(carried.dropped, next.dropped);
}

gpt_facts gpt_facts_last(gpt_facts carried)
{
    if (carried.balance.id == 0) return carried;
    return (gpt_facts){weft_scan_last(carried.balance), weft_scan_last(carried.dropped)};
}

weft_value gpt_facts_loss(const gpt_mixture *mixture, weft_value loss, gpt_facts facts)
{
    if (facts.balance.id == 0 || mixture->balance == 0) return loss;
    return weft_add(loss, weft_scale(facts.balance, mixture->balance));
}
