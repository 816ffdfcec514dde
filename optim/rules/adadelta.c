/* adadelta: v = b v + (1 - b) g^2; d = g sqrt(s + epsilon) / sqrt(v + epsilon); s = b s + (1 - b) d^2; p -= rate d,
 * with b = beta2: steps have the size of those before, so that the rate has no unit.
 *
 * source  Zeiler 2012, "ADADELTA"
 */
#include "rules.h"
#include "weft/ops.h"

int weft_rule_adadelta(const weft_update *u, weft_value variable, weft_value gradient,
                       weft_value *tokens)
{
    const double beta = u->options.beta2, epsilon = u->options.epsilon;
    weft_value slot = weft_update_slot(u, variable, "v", weft_shape_of(variable));
    weft_value past = weft_update_slot(u, variable, "steps", weft_shape_of(variable));
    weft_value v = weft_running_mean(slot, weft_square(gradient), beta);
    weft_value size =
        weft_div(weft_sqrt(weft_shift(past, epsilon)), weft_sqrt(weft_shift(v, epsilon)));
    weft_value step = weft_mul(gradient, size);
    tokens[0] = weft_assign(slot, v);
    tokens[1] = weft_assign(past, weft_running_mean(past, weft_square(step), beta));
    tokens[2] = weft_move_down(u, variable, weft_mul(step, weft_scalar_for(u->rate, variable)));
    return 3;
}
