/* solve: x [.., column, rest] with a x = b, for any regular matrices a [.., row, column].
 *
 * By elimination with the largest pivot of each column. A matrix that is singular to the last bit has an x of NaN alone; one that
 * is nearly so has large errors, and nothing tells. An infinite pivot is one as any other: what it stands for is 0.
 * Cut along the batch, and along b's own dims. Linear in b.
 * Gradient: a' db = dx; da = -db x'. The elimination is done again there.
 */
#include "linear.h"
#include "weft/ops.h"

static double flops(const weft_site *site)
{
    return weft_square_flops(site, 2.0 / 3.0, 2.0);
}

static void gradient(weft_vjp *vjp)
{
    const weft_square_attributes *a = vjp->site->attributes;
    const weft_dim row = {a->row, a->size}, column = {a->column, a->size};
    const weft_value db = weft_solve(vjp->in[0], vjp->dout[0], column, row);
    const weft_shape of_a = *weft_shape_of(vjp->in[0]);
    vjp->din[1] = db;
    if (vjp->wanted[0]) vjp->din[0] = weft_neg(weft_einsum(of_a, db, vjp->out[0]));
}

const weft_op weft_op_solve = {
    .name = "solve",
    .attributes = &weft_attributes_square,
    .infer = weft_infer_solve,
    .factors = weft_factors_solve,
    .linear = 1 << 1,
    .gradient = gradient,
    .flops = flops,
};

weft_value weft_solve(weft_value a, weft_value b, weft_dim row, weft_dim column)
{
    weft_square_attributes sides;
    if (!weft_square_sides(a, "solve", row, column, &sides)) return weft_no_value(a.graph);
    return weft_emit_solve(&weft_op_solve, a, b, &sides, sizeof sides);
}

/* l y = b, then l' x = y. */
weft_value weft_solve_positive(weft_value a, weft_value b, weft_dim row, weft_dim column)
{
    const weft_value l = weft_cholesky(weft_wide(a), row, column);
    const weft_value y = weft_triangular_solve(l, weft_wide(b), row, column, false);
    const weft_value x = weft_triangular_solve(l, y, column, row, true);
    return x.id == 0 ? x : weft_cast(weft_rename(x, row, column), weft_dtype_of(b));
}
