/* cholesky: of symmetric, positive definite matrices a [.., row, column] the lower triangular l [.., row, column] with l l' = a.
 *
 * Elements above the diagonal of a are not read. A matrix that is not positive definite has an l of NaN alone. Cut
 * along the batch. Not linear. Gradient: with s = l^-T phi(l' dl) l^-1, phi the lower triangle with half the
 * diagonal, da is (s + s') / 2: that of a symmetric matrix.  source  Murray, Differentiation of the Cholesky
 * decomposition (2016)
 */
#include "linear.h"
#include "weft/ops.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_square(site, error));
    site->n_out = 1;
    site->out[0] = site->in[0];
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_square_attributes *a = site->attributes;
    weft_factors_pass(site, factors);
    weft_factors_whole(site, a->row, factors);
    weft_factors_whole(site, a->column, factors);
}

static double flops(const weft_site *site)
{
    return weft_square_flops(site, 1.0 / 3.0, 0.0);
}

/* x with its names a and b in each other's place. */
static weft_value turned(weft_value x, weft_dim a, weft_dim b)
{
    const weft_dim between = weft_dim_beside(x.graph, a);
    return weft_rename(weft_rename(weft_rename(x, a, between), b, a), between, b);
}

/* phi(l' dl), of which row i is called `column`, and column j `other`. */
static weft_value inner(weft_value l, weft_value dl, weft_dim row, weft_dim column, weft_dim other)
{
    weft_shape out = weft_shape_without(weft_shape_of(l), row.name);
    out.dims[out.n_dims++] = other;
    const weft_value x = weft_einsum(out, l, weft_rename(dl, column, other));
    const weft_value twice = weft_add(weft_lower_triangle(x, column, other, 0),
                                      weft_lower_triangle(x, column, other, -1));
    return weft_scale(twice, 0.5);
}

static void gradient(weft_vjp *vjp)
{
    const weft_square_attributes *a = vjp->site->attributes;
    const weft_dim row = {a->row, a->size}, column = {a->column, a->size};
    const weft_dim other = weft_dim_beside(vjp->graph, column);
    const weft_value l = vjp->out[0];
    const weft_value dl = weft_lower_triangle(vjp->dout[0], row, column, 0);
    /* l' y = phi, then s l = y */
    const weft_value phi = inner(l, dl, row, column, other);
    const weft_value y = weft_triangular_solve(l, phi, column, row, true);
    const weft_value again = weft_rename(weft_rename(l, column, other), row, column);
    const weft_value s = weft_triangular_solve(again, y, other, column, true);
    vjp->din[0] = weft_scale(weft_add(s, turned(s, row, column)), 0.5);
}

const weft_op weft_op_cholesky = {
    .name = "cholesky",
    .attributes = &weft_attributes_square,
    .infer = infer,
    .factors = factors,
    .gradient = gradient,
    .flops = flops,
};

weft_value weft_cholesky(weft_value x, weft_dim row, weft_dim column)
{
    weft_square_attributes sides;
    if (!weft_square_sides(x, "cholesky", row, column, &sides)) return weft_no_value(x.graph);
    const weft_value in = weft_square_last(weft_wide(x), &sides);
    const weft_value l = weft_emit(x.graph, &weft_op_cholesky, &in, 1, &sides, sizeof sides);
    return l.id == 0 ? l : weft_cast(weft_transpose(l, *weft_shape_of(x)), weft_dtype_of(x));
}
