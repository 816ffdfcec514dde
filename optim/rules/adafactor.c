/* adafactor: the second moment of a matrix (the last two dims) is kept as the means of its rows and of its columns alone.
 *
 * source  Shazeer and Stern 2018, "Adafactor", algorithm 4 with 5 and 6; as PyTorch
 */
#include <float.h>

#include "rules.h"
#include "weft/ops.h"

/* A running mean of `x` over the dims that the slot lacks: s += (mean - s) (1 - b2(t)), 1 - b2(t) = t^decay. */
static weft_value keep_mean(const weft_update *u, weft_value variable, const char *name,
                            const weft_shape *shape, weft_value x, weft_value *token)
{
    weft_value slot = weft_update_slot(u, variable, name, shape);
    weft_update_at(u, slot);
    weft_value weight = weft_exp(weft_scale(weft_log(u->run), u->options.beta2_decay));
    weft_value fresh = weft_mean_over(*shape, x);
    weft_value change = weft_mul(weft_sub(fresh, slot), weft_scalar_for(weight, slot));
    weft_value mean = weft_add(slot, change);
    *token = weft_assign(slot, mean);
    weft_update_at(u, variable);
    return mean;
}

/* What g^2 is on average: of a matrix (the last two dims), the product of what its rows and its columns are. */
static weft_value second_moment(const weft_update *u, weft_value variable, weft_value gradient,
                                double epsilon, weft_value *tokens, int *n_tokens)
{
    const weft_shape shape = *weft_shape_of(variable); /* the graph grows */
    weft_value squares = weft_square(gradient);
    const bool is_matrix = weft_dims_of_one(variable) >= 2;
    *n_tokens = is_matrix ? 2 : 1;
    if (!is_matrix) return keep_mean(u, variable, "v", &shape, squares, &tokens[0]);
    const weft_shape row = weft_shape_without(&shape, shape.dims[shape.n_dims - 1].name);
    const weft_shape column = weft_shape_without(&shape, shape.dims[shape.n_dims - 2].name);
    const weft_shape both = weft_shape_without(&row, row.dims[row.n_dims - 1].name);
    weft_value rows = keep_mean(u, variable, "row", &row, squares, &tokens[0]);
    weft_value columns = keep_mean(u, variable, "column", &column, squares, &tokens[1]);
    weft_value share = weft_div(rows, weft_at_least(weft_mean_over(both, rows), epsilon));
    return weft_mul(share, columns);
}

/* step = g / sqrt(estimate of g^2); p = decayed p - step max(floor, rms(p)) min(rate, 1 / sqrt(t)) / max(1, rms(step) / limit) */
int weft_rule_adafactor(const weft_update *u, weft_value variable, weft_value gradient,
                        weft_value *tokens)
{
    const weft_optimizer_options *o = &u->options;
    const double precision = weft_dtype_of(variable) == WEFT_F64 ? DBL_EPSILON : FLT_EPSILON;
    const double epsilon = o->epsilon > 0.0 ? o->epsilon : precision;
    const weft_shape each = weft_dims_of_each(variable);
    int n_tokens;
    weft_value moment = second_moment(u, variable, gradient, epsilon, tokens, &n_tokens);
    weft_value step = weft_mul(gradient, weft_rsqrt(weft_at_least(moment, epsilon * epsilon)));
    weft_value slow = weft_minimum(u->rate, weft_rsqrt(u->run));
    weft_value pace = weft_mul(weft_at_least(weft_rms_of(variable, each), o->scale_floor), slow);
    weft_value excess =
        weft_at_least(weft_scale(weft_rms_of(step, each), 1.0 / o->step_limit), 1.0);
    weft_value move = weft_mul(step, weft_scalar_for(weft_div(pace, excess), variable));
    tokens[n_tokens] = weft_move_down(u, variable, move);
    return n_tokens + 1;
}
