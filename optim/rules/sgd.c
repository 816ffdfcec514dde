/* sgd: p -= rate g. */
#include "rules.h"
#include "weft/ops.h"

int weft_rule_sgd(const weft_update *u, weft_value variable, weft_value gradient,
                  weft_value *tokens)
{
    weft_value move = weft_mul(gradient, weft_scalar_for(u->rate, variable));
    tokens[0] = weft_move_down(u, variable, move);
    return 1;
}
