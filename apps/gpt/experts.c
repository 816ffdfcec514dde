/* experts: blocks whose MLP is a mixture of experts.
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

weft_value gpt_experts(const gpt_mixture *mixture, weft_dim token, weft_dim feature,
                       weft_dim experts, weft_dim hidden, const weft_experts_weights *weights,
                       weft_value x, gpt_facts *facts)
{
    const weft_experts_options options = {
        .token = token,
        .feature = feature,
        .experts = experts,
        .hidden = hidden,
        .top_k = mixture->top_k,
        .chooser = mixture->experts_choose ? WEFT_EXPERTS_CHOOSE : WEFT_TOKENS_CHOOSE,
        .capacity = mixture->capacity,
        .is_dropless = mixture->capacity == 0,
        .normalizes = mixture->top_k > 1 && !mixture->experts_choose,
        .given = weights};
    weft_experts_facts own;
    const weft_value y = weft_experts(x, &options, &own);
    *facts = gpt_facts_sum(*facts, (gpt_facts){own.balance, own.dropped});
    return y;
}
