/* lion: p -= rate sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g. One slot; every element moves by the rate.
 *
 * Both means are written as m + (1 - b) (g - m): what they share makes them one loop.
 * source  Chen et al. 2023, "Symbolic discovery of optimization algorithms"
 */
#include "rules.h"
#include "weft/ops.h"

int weft_rule_lion(const weft_update *u, weft_value variable, weft_value gradient,
                   weft_value *tokens)
{
    weft_value slot = weft_update_slot(u, variable, "m", weft_shape_of(variable));
    weft_value change = weft_sub(gradient, slot);
    weft_value mean = weft_add(slot, weft_scale(change, 1.0 - u->options.beta1));
    weft_value kept = weft_add(slot, weft_scale(change, 1.0 - u->options.beta2));
    weft_value step = weft_sign(mean);
    tokens[0] = weft_assign(slot, kept);
    tokens[1] = weft_move_down(u, variable, weft_mul(step, weft_scalar_for(u->rate, variable)));
    return 2;
}
