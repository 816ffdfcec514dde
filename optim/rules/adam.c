/* adam, and adamw, which has weight decay by default: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * p = decayed p - rate / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon).
 *
 * source  Kingma and Ba 2015, "Adam"; Loshchilov and Hutter 2019, "Decoupled weight decay regularization"
 */
#include <math.h>

#include "rules.h"
#include "weft/ops.h"

/* 1 - beta^t, as -expm1 cannot be had in a graph: in f64 the digits lost do not matter. */
weft_value weft_bias_of(const weft_update *u, double beta)
{
    return weft_shift(weft_neg(weft_exp(weft_scale(u->run, log(beta)))), 1.0);
}

weft_value weft_adam_move(const weft_update *u, weft_value variable, weft_value gradient,
                          weft_value rate, weft_value *tokens)
{
    const double beta1 = u->options.beta1, beta2 = u->options.beta2;
    weft_value first = weft_update_slot(u, variable, "m", weft_shape_of(variable));
    weft_value second = weft_update_slot(u, variable, "v", weft_shape_of(variable));
    weft_value m = weft_running_mean(first, gradient, beta1);
    weft_value v = weft_running_mean(second, weft_square(gradient), beta2);
    weft_value root =
        weft_mul(weft_sqrt(v), weft_scalar_for(weft_rsqrt(weft_bias_of(u, beta2)), variable));
    weft_value pace = weft_scalar_for(weft_div(rate, weft_bias_of(u, beta1)), variable);
    weft_value move = weft_mul(weft_div(m, weft_shift(root, u->options.epsilon)), pace);
    tokens[0] = weft_assign(first, m);
    tokens[1] = weft_assign(second, v);
    return move;
}

int weft_rule_adam(const weft_update *u, weft_value variable, weft_value gradient,
                   weft_value *tokens)
{
    weft_value base = weft_decayed(u, variable);
    weft_value move = weft_adam_move(u, variable, gradient, u->rate, tokens);
    tokens[2] = weft_assign(variable, weft_sub(base, move));
    return 3;
}
