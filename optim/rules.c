/* rules.c: the update rules: sgd, momentum, adam, adamw, adafactor; their formulas are PyTorch's, letter by letter.
 *
 * A rule sees one variable and its gradient and says how the variable and its slots change. Everything is placed as the
 * variable is stored, so with sharded storage (ZeRO) each rank updates its shard and nothing here knows.
 * source  Kingma and Ba 2015, "Adam"; Loshchilov and Hutter 2019, "Decoupled weight decay regularization"; Shazeer and
 *         Stern 2018, "Adafactor"
 */
#include <float.h>
#include <math.h>

#include "update.h"
#include "weft/ops.h"

/* A variable that stands for several is as many along its first dim: the dims of one, ... */
static int dims_of_one(weft_value variable)
{
    return weft_shape_of(variable)->n_dims - weft_has_rows(variable);
}

/* ... and those along which there are several. */
static weft_shape dims_of_all(weft_value variable)
{
    weft_shape all = *weft_shape_of(variable);
    all.n_dims = weft_has_rows(variable);
    return all;
}

/* p -= rate g */
static int sgd(const weft_update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    weft_value move = weft_mul(gradient, weft_scalar_for(u->rate, variable));
    tokens[0] = weft_assign(variable, weft_sub(variable, move));
    return 1;
}

/* b = mu b + g; p -= rate b */
static int momentum(const weft_update *u, weft_value variable, weft_value gradient,
                    weft_value *tokens)
{
    weft_value slot = weft_update_slot(u, variable, "momentum", weft_shape_of(variable));
    weft_value velocity = weft_add(weft_scale(slot, u->options.momentum), gradient);
    weft_value move = weft_mul(velocity, weft_scalar_for(u->rate, variable));
    tokens[0] = weft_assign(slot, velocity);
    tokens[1] = weft_assign(variable, weft_sub(variable, move));
    return 2;
}

/* 1 - beta^t, as -expm1 cannot be had in a graph: in f64 the digits lost do not matter. */
static weft_value bias_of(const weft_update *u, double beta)
{
    return weft_shift(weft_neg(weft_exp(weft_scale(u->run, log(beta)))), 1.0);
}

/* p (1 - rate decay): the decay is not seen by the moments. Gains and biases (one dim) do not decay. */
static weft_value decayed(const weft_update *u, weft_value variable)
{
    if (!(u->options.weight_decay > 0.0) || dims_of_one(variable) < 2) return variable;
    weft_value shrink = weft_shift(weft_scale(u->rate, -u->options.weight_decay), 1.0);
    return weft_mul(variable, weft_scalar_for(shrink, variable));
}

/* m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * p = base - rate / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon) */
static int adam_from(const weft_update *u, weft_value variable, weft_value base,
                     weft_value gradient, weft_value *tokens)
{
    const double beta1 = u->options.beta1, beta2 = u->options.beta2;
    weft_value first = weft_update_slot(u, variable, "m", weft_shape_of(variable));
    weft_value second = weft_update_slot(u, variable, "v", weft_shape_of(variable));
    weft_value m = weft_add(weft_scale(first, beta1), weft_scale(gradient, 1.0 - beta1));
    weft_value v =
        weft_add(weft_scale(second, beta2), weft_scale(weft_square(gradient), 1.0 - beta2));

    weft_value root =
        weft_mul(weft_sqrt(v), weft_scalar_for(weft_rsqrt(bias_of(u, beta2)), variable));
    weft_value pace = weft_scalar_for(weft_div(u->rate, bias_of(u, beta1)), variable);
    weft_value move = weft_mul(weft_div(m, weft_shift(root, u->options.epsilon)), pace);
    tokens[0] = weft_assign(first, m);
    tokens[1] = weft_assign(second, v);
    tokens[2] = weft_assign(variable, weft_sub(base, move));
    return 3;
}

static int adam(const weft_update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    return adam_from(u, variable, variable, gradient, tokens);
}

static int adamw(const weft_update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    return adam_from(u, variable, decayed(u, variable), gradient, tokens);
}

/* ---- adafactor ------------------------------------------------------------------------------- */

/* sqrt of the mean of squares, of f64: a scalar, or one for each of several. */
static weft_value rms(weft_value x, weft_shape each)
{
    const double count = weft_count_of(weft_shape_of(x)) / weft_count_of(&each);
    weft_value squares = weft_cast(weft_sum(each, weft_square(x)), WEFT_F64);
    return weft_sqrt(weft_scale(squares, 1.0 / count));
}

static weft_value at_least(weft_value x, double low)
{
    return weft_maximum(x, weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, low));
}

/* A running mean of `x` over the dims that the slot lacks: s += (mean - s) (1 - b2(t)), 1 - b2(t) = t^decay. */
static weft_value running_mean(const weft_update *u, weft_value variable, const char *name,
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
    const weft_shape *shape = weft_shape_of(variable);
    weft_value squares = weft_square(gradient);
    const bool is_matrix = dims_of_one(variable) >= 2;
    *n_tokens = is_matrix ? 2 : 1;
    if (!is_matrix) return running_mean(u, variable, "v", shape, squares, &tokens[0]);
    const weft_shape row = weft_shape_without(shape, shape->dims[shape->n_dims - 1].name);
    const weft_shape column = weft_shape_without(shape, shape->dims[shape->n_dims - 2].name);
    const weft_shape both = weft_shape_without(&row, row.dims[row.n_dims - 1].name);
    weft_value rows = running_mean(u, variable, "row", &row, squares, &tokens[0]);
    weft_value columns = running_mean(u, variable, "column", &column, squares, &tokens[1]);
    weft_value share = weft_div(rows, at_least(weft_mean_over(both, rows), epsilon));
    return weft_mul(share, columns);
}

/* step = g / sqrt(estimate of g^2); p = base - step max(floor, rms(p)) min(rate, 1 / sqrt(t)) / max(1, rms(step) / limit) */
static int adafactor(const weft_update *u, weft_value variable, weft_value gradient,
                     weft_value *tokens)
{
    const weft_optimizer_options *o = &u->options;
    const double precision = weft_dtype_of(variable) == WEFT_F64 ? DBL_EPSILON : FLT_EPSILON;
    const double epsilon = o->epsilon > 0.0 ? o->epsilon : precision;
    const weft_shape each = dims_of_all(variable);
    int n_tokens;
    weft_value moment = second_moment(u, variable, gradient, epsilon, tokens, &n_tokens);
    weft_value step = weft_mul(gradient, weft_rsqrt(at_least(moment, epsilon * epsilon)));
    weft_value slow = weft_minimum(u->rate, weft_rsqrt(u->run));
    weft_value pace = weft_mul(at_least(rms(variable, each), o->scale_floor), slow);
    weft_value excess = at_least(weft_scale(rms(step, each), 1.0 / o->step_limit), 1.0);
    weft_value move = weft_mul(step, weft_scalar_for(weft_div(pace, excess), variable));
    tokens[n_tokens] = weft_assign(variable, weft_sub(decayed(u, variable), move));
    return n_tokens + 1;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* One line a rule: its name, its rate, its other defaults. */
#define RULES(X)                                                                                   \
    X(sgd, 0.1, )                                                                                  \
    X(momentum, 0.1, .momentum = 0.9)                                                              \
    X(adam, 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8)                                   \
    X(adamw, 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01)            \
    X(adafactor, 1e-2, .beta2_decay = -0.8, .scale_floor = 1e-3, .step_limit = 1.0)

#define BUILDER(name_, rate_, ...)                                                                 \
    weft_value weft_##name_(weft_value loss, const weft_optimizer_options *options)                \
    {                                                                                              \
        static const weft_optimizer_rule rule = {                                                  \
            sizeof rule, #name_, name_, weft_##name_, {.rate = rate_, __VA_ARGS__}};               \
        return weft_optimize(&rule, loss, options);                                                \
    }
RULES(BUILDER)

#define ENTRY(name_, rate_, ...) {#name_, weft_##name_, rate_},
const weft_optimizer weft_optimizers[] = {RULES(ENTRY)};
const int weft_n_optimizers = (int)(sizeof weft_optimizers / sizeof weft_optimizers[0]);
