/* momentum: b = mu b + g; p -= rate b.
 *
 * source  Polyak 1964; without dampening, as PyTorch
 */
#include "rules.h"
#include "weft/ops.h"

int weft_rule_momentum(const weft_update *u, weft_value variable, weft_value gradient,
                       weft_value *tokens)
{
    weft_value slot = weft_update_slot(u, variable, "momentum", weft_shape_of(variable));
    weft_value velocity = weft_add(weft_scale(slot, u->options.momentum), gradient);
    weft_value move = weft_mul(velocity, weft_scalar_for(u->rate, variable));
    tokens[0] = weft_assign(slot, velocity);
    tokens[1] = weft_move_down(u, variable, move);
    return 2;
}
