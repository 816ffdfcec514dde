/* lion: p -= rate (sign(b1 m + (1 - b1) g) + decay p); m = b2 m + (1 - b2) g.
 *
 * source  Chen et al. 2023, "Symbolic discovery of optimization algorithms"
 */
#include "tables.h"

#include <weft/ops.h>

/* -1, 0 or 1, as x has it */
static weft_value sign_of(weft_value x)
{
    weft_value zero = weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, 0.0);
    weft_value above = weft_cast(weft_greater(x, zero), weft_dtype_of(x));
    return weft_sub(above, weft_cast(weft_less(x, zero), weft_dtype_of(x)));
}

static weft_value mixed(weft_value a, weft_value b, double share)
{
    return weft_add(weft_scale(a, share), weft_scale(b, 1.0 - share));
}

static int rule(const weft_update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    weft_value mean = weft_update_slot(u, variable, "lion", weft_shape_of(variable));
    weft_value step = sign_of(mixed(mean, gradient, u->options.beta1));
    if (u->options.weight_decay > 0)
        step = weft_add(step, weft_scale(variable, u->options.weight_decay));
    weft_value move = weft_mul(step, weft_scalar_for(u->rate, variable));
    tokens[0] = weft_assign(mean, mixed(mean, gradient, u->options.beta2));
    tokens[1] = weft_assign(variable, weft_sub(variable, move));
    return 2;
}

const weft_optimizer_rule plugin_rule_lion = {
    .size = sizeof(weft_optimizer_rule),
    .name = "lion",
    .rule = rule,
    .build = plugin_lion,
    .defaults = {.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.99},
};

weft_value plugin_lion(weft_value loss, const weft_optimizer_options *options)
{
    return weft_optimize(&plugin_rule_lion, loss, options);
}
