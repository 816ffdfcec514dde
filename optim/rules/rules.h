/* rules.h: inside optim only: update rules, one a file, and what they share. */
#ifndef WEFT_RULES_H
#define WEFT_RULES_H

#include "update.h"

/* rule_list.inc: a file of rules/ each. */
#define WEFT_RULE(name, rule, rate, ...)                                                           \
    int weft_rule_##rule(const weft_update *u, weft_value variable, weft_value gradient,           \
                         weft_value *tokens);
#include "rule_list.inc"
#undef WEFT_RULE

/* A variable that stands for several is as many along its first dim: the number of dims of one, ... */
int weft_dims_of_one(weft_value variable);
/* ... and the dims along which there are several: what a number for each of them has. */
weft_shape weft_dims_of_each(weft_value variable);

/* p (1 - rate decay): no slot sees the decay. Gains and biases (one dim) do not decay. */
weft_value weft_decayed(const weft_update *u, weft_value variable);
/* Does it decay at all? */
bool weft_decays(const weft_update *u, weft_value variable);
/* p = decayed p - move: a token. */
weft_value weft_move_down(const weft_update *u, weft_value variable, weft_value move);
/* beta mean + (1 - beta) x */
weft_value weft_running_mean(weft_value mean, weft_value x, double beta);
weft_value weft_at_least(weft_value x, double low);
/* sqrt of the sum of squares, and of their mean, in f64: a scalar, or one for each of several. */
weft_value weft_norm_of(weft_value x, weft_shape each);
weft_value weft_rms_of(weft_value x, weft_shape each);

/* adam.c: 1 - beta^t: what part of a running mean that began at 0 is there after t updates. */
weft_value weft_bias_of(const weft_update *u, double beta);
/* Both moments, whose slots and first two tokens it makes; returns rate mean / (sqrt(squares) + epsilon), corrected. */
weft_value weft_adam_move(const weft_update *u, weft_value variable, weft_value gradient,
                          weft_value rate, weft_value *tokens);

#endif
