/* experts.h: in place of a block's MLP a mixture of them, few for each token; and its results beside the residual
 * stream, summed over the blocks.
 */
#ifndef WEFT_APPS_GPT_EXPERTS_H
#define WEFT_APPS_GPT_EXPERTS_H

#include "weft/layers.h"

typedef struct gpt_mixture {
    int64_t experts; /* 0, 1: an MLP */
    int64_t top_k;   /* experts of a token; where experts choose, on average; 0: 1 */
    /* places of an expert, of an even share of a window's tokens; 0: as many as come */
    double capacity;
    bool experts_choose; /* their tokens, in place of tokens their experts */
    double balance;      /* weight of the balance of each block in the loss */
} gpt_mixture;

/* Sums over all blocks; id 0: there are no experts. */
typedef struct gpt_facts {
    weft_value balance; /* scalar, of the variables' dtype: 1 a block where the load is even */
    weft_value dropped; /* i32: tokens that no expert took */
} gpt_facts;

/* gpt_facts_none - zeros, to which blocks add; nothing where there are no experts. Local. */
gpt_facts gpt_facts_none(const gpt_mixture *mixture, weft_graph *graph, weft_dtype dtype);

/* gpt_facts_carry - facts go from trip to trip of the scan that is open, beginning as they are; returns what they are in a trip.
 * gpt_facts_next - what they are in the next one. gpt_facts_last - after the scan. All Local, and nothing where there are no experts. */
gpt_facts gpt_facts_carry(gpt_facts facts);
void gpt_facts_next(gpt_facts carried, gpt_facts next);
gpt_facts gpt_facts_last(gpt_facts carried);
gpt_facts gpt_facts_sum(gpt_facts a, gpt_facts b);

/* gpt_facts_loss - the loss, to which the balance is added by its weight. Local. */
weft_value gpt_facts_loss(const gpt_mixture *mixture, weft_value loss, gpt_facts facts);

#endif
