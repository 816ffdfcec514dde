/* adamax: m = b1 m + (1 - b1) g; u = max(b2 u, |g| + epsilon); p = decayed p - rate / (1 - b1^t) m / u: Adam with the largest
 * gradient of late in place of the root of a mean of squares.
 *
 * source  Kingma and Ba 2015, "Adam", section 7.1
 */
#include "rules.h"
#include "weft/ops.h"

int weft_rule_adamax(const weft_update *u, weft_value variable, weft_value gradient,
                     weft_value *tokens)
{
    weft_value first = weft_update_slot(u, variable, "m", weft_shape_of(variable));
    weft_value past = weft_update_slot(u, variable, "largest", weft_shape_of(variable));
    weft_value m = weft_running_mean(first, gradient, u->options.beta1);
    weft_value largest = weft_maximum(weft_scale(past, u->options.beta2),
                                      weft_shift(weft_abs(gradient), u->options.epsilon));
    weft_value pace =
        weft_scalar_for(weft_div(u->rate, weft_bias_of(u, u->options.beta1)), variable);
    tokens[0] = weft_assign(first, m);
    tokens[1] = weft_assign(past, largest);
    tokens[2] = weft_move_down(u, variable, weft_mul(weft_div(m, largest), pace));
    return 3;
}
