/* shampoo: a variable of k dims, k at least 2, has along each dim a running mean of products of its gradient with
 * itself, s = b2 s + (1 - b2) g g'. The gradient's mean m is multiplied, along each dim, by the inverse 2k-th root of
 * s / |s| + 1e-6. It is then made as long as Adam's step: p = decayed p - m |adam| / |m|. A variable of one dim or
 * none goes by Adam.
 *
 * The length of m says nothing then, so neither do corrections of the means. For a dim of more than MOST elements the
 * diagonal of s is kept. Roots are found by Newton's iteration for the root and what is left of the matrix together,
 * products alone, every so many updates. Matrices have dims shampoo_a and shampoo_b, and their products shampoo_c,
 * which a layout may split.
 * source  Gupta et al. 2018, "Shampoo"; length, running means, the iteration: Anil et al. 2020, "Scalable second order optimization";
 *         Guo and Higham 2006, "A Schur-Newton method for the matrix pth root"
 */
#include <math.h>
#include <stdio.h>

#include "rules.h"
#include "weft/ops.h"
#include "weft/scan.h"

enum { MOST = 1024, TRIPS = 24 };
static const double RIDGE = 1e-6, TINY = 1e-37;

/* One dim of a variable. */
typedef struct side {
    const weft_update *u;
    weft_value variable;
    weft_shape more; /* of several variables as one: the dim that they differ in */
    weft_dim dim, a, b, c;
    int power; /* 2k */
} side;

static weft_shape with(weft_shape more, weft_dim x, weft_dim y)
{
    more.dims[more.n_dims++] = x;
    more.dims[more.n_dims++] = y;
    return more;
}

/* A slot along the side, and what is built from here on where that lies. */
static weft_value slot_of(const side *s, const char *what, const weft_shape *shape)
{
    char name[80];
    snprintf(name, sizeof name, "%s_%s", what, s->dim.name);
    const weft_value slot = weft_update_slot(s->u, s->variable, name, shape);
    weft_update_at(s->u, slot);
    return slot;
}

/* |x|, of each of several: of x as a share of its largest, whose squares are neither too small nor too large for a dtype. */
static weft_value length_of(weft_value x, weft_shape each)
{
    const weft_value largest =
        weft_at_least(weft_cast(weft_max(each, weft_abs(x)), WEFT_F64), TINY);
    const weft_value share = weft_div(x, weft_scalar_for(largest, x));
    return weft_mul(weft_at_least(weft_norm_of(share, each), 1.0), largest);
}

/* s / |s|, of each of several. */
static weft_value scaled(const side *s, weft_value x)
{
    return weft_div(x, weft_scalar_for(length_of(x, s->more), x));
}

/* ---- the root of an inverse ---------------------------------------------------------------------- */

/* Of [more, b, a] and [more, b, a], of which one is symmetric. */
static weft_value product(const side *s, weft_value x, weft_value y)
{
    return weft_einsum(with(s->more, s->b, s->a), weft_rename(x, s->a, s->c),
                       weft_rename(y, s->b, s->c));
}

static weft_value identity(const side *s, weft_value like)
{
    const weft_value same =
        weft_equal(weft_iota(like.graph, WEFT_I32, s->b), weft_iota(like.graph, WEFT_I32, s->a));
    const weft_shape shape = *weft_shape_of(like);
    return weft_broadcast_to(weft_cast(same, weft_dtype_of(like)), shape);
}

/* x^(2k) */
static weft_value raised(const side *s, weft_value x)
{
    const weft_value square = product(s, x, x);
    weft_value y = square;
    for (int i = 2; i < s->power; i += 2)
        y = product(s, y, square);
    return y;
}

/* m and x are polynomials of one matrix: m begins as that, with eigenvalues from 0 to (p + 1) / 2, and ends as 1; m x^-p stays. */
static weft_value root_of_inverse(const side *s, weft_value matrix)
{
    const double p = s->power, largest = (1.0 + p) / 2.0 / (1.0 + RIDGE);
    const weft_value one = identity(s, matrix);
    const weft_value first_m = weft_scale(matrix, largest),
                     first_x = weft_scale(one, pow(largest, 1.0 / p));
    const weft_value trip = weft_scan_begin(matrix.graph, TRIPS);
    const weft_value m = weft_scan_carry(first_m), x = weft_scan_carry(first_x);
    const weft_value t = weft_sub(weft_scale(one, 1.0 + 1.0 / p), weft_scale(m, 1.0 / p));
    weft_scan_next(m, product(s, raised(s, t), m));
    weft_scan_next(x, product(s, x, t));
    weft_scan_end(trip);
    return weft_scan_last(x);
}

/* [more, dim, a]: made anew in every so many updates, and kept for those between. */
static weft_value kept_root(const side *s, weft_value mean, weft_value *token)
{
    const weft_shape shape = with(s->more, s->dim, s->a);
    const weft_value slot = slot_of(s, "root", &shape);
    const weft_value since =
        weft_mod(weft_shift(s->u->run, -1.0),
                 weft_constant(s->u->graph, WEFT_F64, WEFT_SCALAR, (double)s->u->options.every));
    const weft_value is_time =
        weft_less(since, weft_constant(s->u->graph, WEFT_F64, WEFT_SCALAR, 0.5));
    const weft_value begun = weft_cond_begin(is_time);
    const weft_value matrix = weft_rename(scaled(s, mean), s->dim, s->b);
    const weft_value ridged = weft_add(matrix, weft_scale(identity(s, matrix), RIDGE));
    const weft_value fresh = weft_rename(root_of_inverse(s, ridged), s->b, s->dim);
    weft_cond_end(begun);
    const weft_value root = weft_cond(fresh, slot);
    *token = weft_assign(slot, root);
    return root;
}

/* ---- along one dim ------------------------------------------------------------------------------- */

static weft_value by_matrix(const side *s, weft_value gradient, weft_value x, weft_value *token)
{
    const weft_shape of_mean = with(s->more, s->dim, s->a), shape = *weft_shape_of(x);
    const weft_value slot = slot_of(s, "along", &of_mean);
    const weft_value gram = weft_einsum(of_mean, gradient, weft_rename(gradient, s->dim, s->a));
    const weft_value mean = weft_running_mean(slot, gram, s->u->options.beta2);
    weft_value tokens[2] = {weft_assign(slot, mean)};
    const weft_value root = kept_root(s, mean, &tokens[1]);
    *token = weft_group(s->u->graph, (weft_values){tokens, 2});
    weft_update_at(s->u, s->variable);
    return weft_einsum(shape, root, weft_rename(x, s->dim, s->a));
}

static weft_value by_diagonal(const side *s, weft_value gradient, weft_value x, weft_value *token)
{
    weft_shape shape = s->more;
    shape.dims[shape.n_dims++] = s->dim;
    const weft_value slot = slot_of(s, "along", &shape);
    const weft_value squares = weft_sum(shape, weft_square(gradient));
    const weft_value mean = weft_running_mean(slot, squares, s->u->options.beta2);
    const weft_value ridged = weft_shift(scaled(s, mean), RIDGE);
    const weft_value root = weft_exp(weft_scale(weft_log(ridged), -1.0 / s->power));
    *token = weft_assign(slot, mean);
    weft_update_at(s->u, s->variable);
    return weft_mul(x, root);
}

/* The mean of gradients that Adam keeps, as this update leaves it. */
static weft_value first_moment(const weft_update *u, weft_value variable, weft_value gradient)
{
    const weft_value slot = {u->graph, weft_slot_called(variable, "m")->out};
    return weft_running_mean(slot, gradient, u->options.beta1);
}

int weft_rule_shampoo(const weft_update *u, weft_value variable, weft_value gradient,
                      weft_value *tokens)
{
    const weft_shape shape = *weft_shape_of(variable), more = weft_dims_of_each(variable);
    const int k = shape.n_dims - more.n_dims;
    if (k < 2) return weft_rule_adam(u, variable, gradient, tokens);
    const weft_value adam = weft_adam_move(u, variable, gradient, u->rate, tokens);
    if (weft_graph_status(u->graph) != WEFT_OK) return 2;
    weft_value x = first_moment(u, variable, gradient), sides[WEFT_MAX_DIMS];
    for (int d = 0; d < k; d++) {
        const weft_dim dim = shape.dims[more.n_dims + d];
        const int64_t n = dim.size;
        const side s = {
            u, variable, more, dim, {"shampoo_a", n}, {"shampoo_b", n}, {"shampoo_c", n}, 2 * k};
        x = (n <= MOST ? by_matrix : by_diagonal)(&s, gradient, x, &sides[d]);
    }
    const weft_value by = weft_div(weft_norm_of(adam, more), length_of(x, more));
    tokens[2] = weft_group(u->graph, (weft_values){sides, k});
    tokens[3] = weft_move_down(u, variable, weft_mul(x, weft_scalar_for(by, variable)));
    return 4;
}
