/* signum: m = b m + (1 - b) g; p -= rate sign(m).
 *
 * source  Bernstein et al. 2018, "signSGD: compressed optimisation for non-convex problems"
 */
#include "tables.h"

#include <weft/ops.h>

static int rule(const weft_update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    const double share = u->options.momentum;
    weft_value slot = weft_update_slot(u, variable, "signum", weft_shape_of(variable));
    weft_value mean = weft_add(weft_scale(slot, share), weft_scale(gradient, 1.0 - share));
    weft_value move = weft_mul(weft_sign(mean), weft_scalar_for(u->rate, variable));
    tokens[0] = weft_assign(slot, mean);
    tokens[1] = weft_assign(variable, weft_sub(variable, move));
    return 2;
}

const weft_optimizer_rule plugin_rule_signum = {
    .size = sizeof(weft_optimizer_rule),
    .name = "signum",
    .rule = rule,
    .build = plugin_signum,
    .defaults = {.rate = 1e-3, .momentum = 0.9},
};

weft_value plugin_signum(weft_value loss, const weft_optimizer_options *options)
{
    return weft_optimize(&plugin_rule_signum, loss, options);
}
