/* nesterov: b = mu b + g; p -= rate (g + mu b): the gradient is taken as if the velocity had carried on already.
 *
 * source  Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning"; as PyTorch
 */
#include "rules.h"
#include "weft/ops.h"

int weft_rule_nesterov(const weft_update *u, weft_value variable, weft_value gradient,
                       weft_value *tokens)
{
    const double mu = u->options.momentum;
    weft_value slot = weft_update_slot(u, variable, "momentum", weft_shape_of(variable));
    weft_value velocity = weft_add(weft_scale(slot, mu), gradient);
    weft_value ahead = weft_add(gradient, weft_scale(velocity, mu));
    tokens[0] = weft_assign(slot, velocity);
    tokens[1] = weft_move_down(u, variable, weft_mul(ahead, weft_scalar_for(u->rate, variable)));
    return 2;
}
