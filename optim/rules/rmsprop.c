/* rmsprop: v = b v + (1 - b) g^2; step = g / (sqrt(v) + epsilon), with b = beta2; p -= rate step. Where a momentum is given,
 * s = momentum s + step; p -= rate s.
 *
 * source  Tieleman and Hinton 2012, lecture 6.5 of "Neural networks for machine learning"; not centred, as PyTorch
 */
#include "rules.h"
#include "weft/ops.h"

/* What the variable moves by, but for the rate; tokens[0] is there if it has a slot. */
static weft_value with_momentum(const weft_update *u, weft_value variable, weft_value step,
                                weft_value *tokens)
{
    weft_value slot = weft_update_slot(u, variable, "momentum", weft_shape_of(variable));
    weft_value velocity = weft_add(weft_scale(slot, u->options.momentum), step);
    tokens[0] = weft_assign(slot, velocity);
    return velocity;
}

int weft_rule_rmsprop(const weft_update *u, weft_value variable, weft_value gradient,
                      weft_value *tokens)
{
    int n = 0;
    weft_value slot = weft_update_slot(u, variable, "v", weft_shape_of(variable));
    weft_value v = weft_running_mean(slot, weft_square(gradient), u->options.beta2);
    weft_value step = weft_div(gradient, weft_shift(weft_sqrt(v), u->options.epsilon));
    tokens[n++] = weft_assign(slot, v);
    if (u->options.momentum > 0.0) step = with_momentum(u, variable, step, &tokens[n++]);
    tokens[n++] = weft_move_down(u, variable, weft_mul(step, weft_scalar_for(u->rate, variable)));
    return n;
}
