/* lamb: step = Adam's + decay p; p -= rate step |p| / |step|, norms of a whole variable: the rate says by which part of its
 * norm a variable moves, whatever its gradients, which batches of many thousand need.
 *
 * Where either norm is 0, step is taken as it is.
 * source  You et al. 2020, "Large batch optimization for deep learning", algorithm 2 with phi(x) = x
 */
#include "rules.h"
#include "weft/ops.h"

/* |p| / |step| */
static weft_value trust(weft_value variable, weft_value step)
{
    const weft_shape each = weft_dims_of_each(variable);
    weft_value size = weft_norm_of(variable, each), length = weft_norm_of(step, each);
    weft_value zero = weft_constant(variable.graph, WEFT_F64, WEFT_SCALAR, 0.0);
    weft_value one = weft_constant(variable.graph, WEFT_F64, WEFT_SCALAR, 1.0);
    weft_value has_both = weft_greater(weft_mul(size, length), zero);
    return weft_where(has_both, weft_div(size, length), one);
}

int weft_rule_lamb(const weft_update *u, weft_value variable, weft_value gradient,
                   weft_value *tokens)
{
    weft_value one = weft_constant(u->graph, WEFT_F64, WEFT_SCALAR, 1.0);
    weft_value step = weft_adam_move(u, variable, gradient, one, tokens);
    if (weft_decays(u, variable))
        step = weft_add(step, weft_scale(variable, u->options.weight_decay));
    weft_value pace = weft_scalar_for(weft_mul(trust(variable, step), u->rate), variable);
    tokens[2] = weft_assign(variable, weft_sub(variable, weft_mul(step, pace)));
    return 3;
}
