/* rules.c: what update rules share, and the table of them.
 *
 * A rule sees one variable and its gradient and says how the variable and its slots change. Everything is placed as the
 * variable is stored, so with sharded storage (ZeRO) each rank updates its shard and nothing here knows. Formulas are
 * PyTorch's, letter by letter, where it has the rule.
 */
#include "rules/rules.h"

#include "weft/ops.h"

int weft_dims_of_one(weft_value variable)
{
    return weft_shape_of(variable)->n_dims - weft_has_rows(variable);
}

weft_shape weft_dims_of_each(weft_value variable)
{
    weft_shape all = *weft_shape_of(variable);
    all.n_dims = weft_has_rows(variable);
    return all;
}

bool weft_decays(const weft_update *u, weft_value variable)
{
    const bool is_meant = u->group != NULL && u->group->weight_decay > 0.0;
    return u->options.weight_decay > 0.0 && (is_meant || weft_dims_of_one(variable) >= 2);
}

weft_value weft_decayed(const weft_update *u, weft_value variable)
{
    if (!weft_decays(u, variable)) return variable;
    weft_value shrink = weft_shift(weft_scale(u->rate, -u->options.weight_decay), 1.0);
    return weft_mul(variable, weft_scalar_for(shrink, variable));
}

weft_value weft_move_down(const weft_update *u, weft_value variable, weft_value move)
{
    return weft_assign(variable, weft_sub(weft_decayed(u, variable), move));
}

weft_value weft_running_mean(weft_value mean, weft_value x, double beta)
{
    return weft_add(weft_scale(mean, beta), weft_scale(x, 1.0 - beta));
}

weft_value weft_at_least(weft_value x, double low)
{
    return weft_maximum(x, weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, low));
}

static weft_value squares_of(weft_value x, weft_shape each)
{
    return weft_cast(weft_sum(each, weft_square(x)), WEFT_F64);
}

weft_value weft_norm_of(weft_value x, weft_shape each)
{
    return weft_sqrt(squares_of(x, each));
}

weft_value weft_rms_of(weft_value x, weft_shape each)
{
    const double count = weft_count_of(weft_shape_of(x)) / weft_count_of(&each);
    return weft_sqrt(weft_scale(squares_of(x, each), 1.0 / count));
}

/* ---- the table ------------------------------------------------------------------------------- */

#define WEFT_RULE(name_, rule_, rate_, ...)                                                        \
    {sizeof(weft_optimizer_rule),                                                                  \
     #name_,                                                                                       \
     weft_rule_##rule_,                                                                            \
     weft_##name_,                                                                                 \
     {.rate = rate_, __VA_ARGS__}},
const weft_optimizer_rule weft_rules[] = {
#include "rule_list.inc"
};
#undef WEFT_RULE

#define WEFT_RULE(name_, rule_, rate_, ...) RULE_##name_,
enum {
#include "rule_list.inc"
};
#undef WEFT_RULE

#define WEFT_RULE(name_, rule_, rate_, ...)                                                        \
    weft_value weft_##name_(weft_value loss, const weft_optimizer_options *options)                \
    {                                                                                              \
        return weft_optimize(&weft_rules[RULE_##name_], loss, options);                            \
    }
#include "rule_list.inc"
#undef WEFT_RULE

#define WEFT_RULE(name_, rule_, rate_, ...) {#name_, weft_##name_, rate_},
const weft_optimizer weft_optimizers[] = {
#include "rule_list.inc"
};
#undef WEFT_RULE
const int weft_n_optimizers = (int)(sizeof weft_optimizers / sizeof weft_optimizers[0]);
