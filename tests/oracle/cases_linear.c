/* cases_linear.c: square matrices: factors of them, and equations. */
#include "cases.h"

/* x, and `by` on the diagonal. */
static weft_value with_diagonal(build_t *b, weft_value x, weft_dim row, weft_dim column, double by)
{
    const weft_value i = weft_iota(b->graph, WEFT_I32, row),
                     j = weft_iota(b->graph, WEFT_I32, column);
    const weft_value one = weft_cast(weft_equal(i, j), weft_dtype_of(x));
    const weft_shape shape = *weft_shape_of(x);
    return weft_transpose(weft_add(x, weft_scale(one, by)), shape);
}
/* Symmetric and positive: the products of rows of an operand. */
static weft_value positive_matrix(build_t *b, weft_dtype t)
{
    const weft_value x = in(b, t, WEFT_DIMS(D, A, C));
    const weft_value a = weft_einsum(WEFT_DIMS(D, A, KEY), x, weft_rename(x, A, KEY));
    return weft_oracle_made(b, with_diagonal(b, a, A, KEY, 2.0));
}
/* Any matrix, far from singular: a diagonal that is large, so many rows away from where it should be. */
static weft_value any_matrix(build_t *b, weft_dtype t, weft_shape shape, int64_t by)
{
    const weft_value x = weft_scale(in(b, t, shape), 0.25);
    return weft_oracle_made(b, weft_roll(with_diagonal(b, x, A, KEY, 2.0), A, by));
}

static weft_value cholesky_x(build_t *b, weft_dtype t)
{
    return weft_cholesky(positive_matrix(b, t), A, KEY);
}
static weft_value cholesky_inner(build_t *b, weft_dtype t) /* the batch stands last */
{
    const weft_value a = positive_matrix(b, t);
    return weft_cholesky(weft_oracle_made(b, weft_transpose(a, WEFT_DIMS(KEY, A, D))), A, KEY);
}
/* Some matrices have a diagonal below 0. */
static weft_value cholesky_none(build_t *b, weft_dtype t)
{
    const weft_value x = in(b, t, WEFT_DIMS(ROWS, D));
    const weft_value one = weft_constant(b->graph, t, WEFT_DIMS(FEATURE, OUTER), 0.0);
    const weft_value a = weft_add(weft_sum(WEFT_DIMS(ROWS), x), one);
    const weft_value near_two = with_diagonal(b, weft_scale(a, 0.01), FEATURE, OUTER, 2.0);
    const weft_value sign = weft_where(
        weft_less(weft_sum(WEFT_DIMS(ROWS), x), weft_constant(b->graph, t, WEFT_SCALAR, 0.0)),
        weft_neg(near_two), near_two);
    return weft_cholesky(weft_oracle_made(b, sign), FEATURE, OUTER);
}

static weft_value triangular_solve_x(build_t *b, weft_dtype t)
{
    const weft_value a = any_matrix(b, t, WEFT_DIMS(D, A, KEY), 0);
    return weft_triangular_solve(a, in(b, t, WEFT_DIMS(D, A, C)), A, KEY, false);
}
static weft_value triangular_solve_upper(build_t *b, weft_dtype t) /* sides turned, one column */
{
    const weft_value a = any_matrix(b, t, WEFT_DIMS(KEY, D, A), 0);
    return weft_triangular_solve(a, in(b, t, WEFT_DIMS(A, D)), A, KEY, true);
}
static weft_value triangular_solve_shared(build_t *b, weft_dtype t) /* b lacks the batch */
{
    const weft_value a = any_matrix(b, t, WEFT_DIMS(D, A, KEY), 0);
    return weft_triangular_solve(a, in(b, t, WEFT_DIMS(C, A)), A, KEY, true);
}

static weft_value solve_x(build_t *b, weft_dtype t)
{
    const weft_value a = any_matrix(b, t, WEFT_DIMS(D, A, KEY), 2);
    return weft_solve(a, in(b, t, WEFT_DIMS(D, A, C)), A, KEY);
}
static weft_value solve_one(build_t *b, weft_dtype t) /* one matrix, many columns around */
{
    const weft_value a = any_matrix(b, t, WEFT_DIMS(KEY, A), 1);
    return weft_solve(a, in(b, t, WEFT_DIMS(D, A, C)), A, KEY);
}
/* An element of each matrix is infinite, in the first column to be eliminated. */
static weft_value solve_infinite(build_t *b, weft_dtype t)
{
    const weft_value x = any_matrix(b, t, WEFT_DIMS(D, A, KEY), 2);
    const weft_value two = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 2.0),
                     none = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 0.0),
                     top = weft_constant(b->graph, t, WEFT_SCALAR, (double)INFINITY);
    const weft_value is_row = weft_equal(weft_iota(b->graph, WEFT_I32, A), two),
                     is_column = weft_equal(weft_iota(b->graph, WEFT_I32, KEY), none);
    const weft_value a = weft_oracle_made(b, weft_where(weft_mul(is_row, is_column), top, x));
    return weft_solve(a, in(b, t, WEFT_DIMS(D, A, C)), A, KEY);
}
static weft_value solve_singular(build_t *b, weft_dtype t)
{
    const weft_value x = in(b, t, WEFT_DIMS(D, A, KEY));
    const weft_value column = weft_iota(b->graph, WEFT_I32, KEY);
    const weft_value zero = weft_constant(b->graph, t, WEFT_SCALAR, 0.0),
                     three = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 3.0);
    const weft_value a = weft_oracle_made(b, weft_where(weft_equal(column, three), zero, x));
    return weft_solve(a, in(b, t, WEFT_DIMS(D, A)), A, KEY);
}
static weft_value solve_positive_x(build_t *b, weft_dtype t)
{
    const weft_value a = positive_matrix(b, t);
    return weft_solve_positive(a, in(b, t, WEFT_DIMS(A, C, D)), A, KEY);
}

/* with.dim, with.other: row and column; .causal: of the upper triangle. */
#define SIDES(...) .with = {.dim = "a", .other = "key", ##__VA_ARGS__}
CASES(cholesky, CASE(cholesky_x, OP_FLOAT, 2, SIDES()),
      CASE(cholesky_inner, OP_FLOAT, 1, SIDES(), .alone = true),
      CASE(cholesky_none, OP_WIDE, 0, .with = {.dim = "feature", .other = "outer"}, .alone = true))
CASES(triangular_solve, CASE(triangular_solve_x, OP_FLOAT, 2, SIDES()),
      CASE(triangular_solve_upper, OP_FLOAT, 1, SIDES(.causal = true)),
      CASE(triangular_solve_shared, OP_FLOAT, 1, SIDES(.causal = true), .alone = true))
CASES(solve, CASE(solve_x, OP_FLOAT, 2, SIDES()),
      CASE(solve_one, OP_FLOAT, 1, SIDES(), .alone = true),
      CASE(solve_infinite, OP_WIDE, 0, SIDES(), .alone = true),
      CASE(solve_singular, OP_WIDE, 0, SIDES(), .alone = true))
CASES(solve_positive, CASE(solve_positive_x, OP_FLOAT, 1, SIDES()))
