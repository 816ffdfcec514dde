/* adagrad: s += g^2; p -= rate g / (sqrt(s) + epsilon): a step grows smaller where gradients have been large.
 *
 * source  Duchi, Hazan and Singer 2011, "Adaptive subgradient methods"
 */
#include "rules.h"
#include "weft/ops.h"

int weft_rule_adagrad(const weft_update *u, weft_value variable, weft_value gradient,
                      weft_value *tokens)
{
    weft_value slot = weft_update_slot(u, variable, "squares", weft_shape_of(variable));
    weft_value squares = weft_add(slot, weft_square(gradient));
    weft_value step = weft_div(gradient, weft_shift(weft_sqrt(squares), u->options.epsilon));
    tokens[0] = weft_assign(slot, squares);
    tokens[1] = weft_move_down(u, variable, weft_mul(step, weft_scalar_for(u->rate, variable)));
    return 2;
}
