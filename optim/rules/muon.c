/* muon: of a matrix, b = mu b + (1 - mu) g; step = mu b + (1 - mu) g with all singular values brought near 1; p -=
 * 0.2 rate sqrt(longer side) step, which is as large as a step of AdamW's. Other variables go by AdamW, at the same
 * rate.
 *
 * Singular values are brought near 1 by an odd polynomial of the matrix, five times: products alone, no decomposition.
 * Dims that these have beside the matrix's are called muon_a and muon_b, and a layout may split them.
 * source  Jordan et al. 2024, "Muon"; the size of steps: Liu et al. 2025, "Muon is scalable for LLM training"
 */
#include <math.h>

#include "rules.h"
#include "weft/ops.h"

enum { ROUNDS = 5 };
/* a x + b x^3 + c x^5 of all singular values: steep at 0, and back to about 1 from wherever it leads to. */
static const double A = 3.4445, B = -4.7750, C = 2.0315;

/* A matrix [more, small, large], in this order or with the last two the other way round. */
typedef struct sides {
    weft_shape more; /* of several matrices as one: the dim that they differ in */
    weft_dim small, large, a, b;
} sides;

static sides sides_of(weft_value matrix)
{
    const weft_shape *shape = weft_shape_of(matrix);
    const weft_dim x = shape->dims[shape->n_dims - 2], y = shape->dims[shape->n_dims - 1];
    const weft_dim small = x.size <= y.size ? x : y, large = x.size <= y.size ? y : x;
    const int64_t n = small.size;
    return (sides){weft_dims_of_each(matrix), small, large, {"muon_a", n}, {"muon_b", n}};
}

static weft_shape with(weft_shape more, weft_dim x, weft_dim y)
{
    more.dims[more.n_dims++] = x;
    more.dims[more.n_dims++] = y;
    return more;
}

/* (A + B (x x') + C (x x')^2) x; x x' is symmetric, so either of its dims may be renamed. */
static weft_value round_of(weft_value x, const sides *s)
{
    const weft_shape shape = *weft_shape_of(x);
    weft_value again = weft_rename(x, s->small, s->a);
    weft_value gram = weft_einsum(with(s->more, s->small, s->a), x, again);
    weft_value other = weft_rename(gram, s->small, s->b);
    weft_value square = weft_einsum(with(s->more, s->small, s->b), gram, other);
    weft_value both = weft_add(weft_scale(weft_rename(gram, s->a, s->b), B), weft_scale(square, C));
    weft_value y = weft_einsum(shape, both, weft_rename(x, s->small, s->b));
    return weft_add(weft_scale(x, A), y);
}

static weft_value orthogonal(weft_value variable, weft_value step)
{
    const sides s = sides_of(variable);
    weft_value norm = weft_at_least(weft_norm_of(step, s.more), 1e-7);
    weft_value x = weft_div(step, weft_scalar_for(norm, step));
    for (int i = 0; i < ROUNDS; i++)
        x = round_of(x, &s);
    return weft_scale(x, 0.2 * sqrt((double)s.large.size));
}

int weft_rule_muon(const weft_update *u, weft_value variable, weft_value gradient,
                   weft_value *tokens)
{
    if (weft_dims_of_one(variable) != 2) return weft_rule_adam(u, variable, gradient, tokens);
    const double mu = u->options.momentum;
    weft_value slot = weft_update_slot(u, variable, "momentum", weft_shape_of(variable));
    weft_value mean = weft_running_mean(slot, gradient, mu);
    weft_value step = orthogonal(variable, weft_running_mean(mean, gradient, mu));
    tokens[0] = weft_assign(slot, mean);
    tokens[1] = weft_move_down(u, variable, weft_mul(step, weft_scalar_for(u->rate, variable)));
    return 2;
}
