/* triangular_solve: x [.., column, rest] with a x = b, a [.., row, column] being lower, or upper, triangular.
 *
 * Elements on the other side of the diagonal are not read; a 0 on it gives infinities or NaN. With the names of the
 * two sides in each other's place it is a' x = b, of the other triangle. Cut along the batch, and along b's own dims.
 * Linear in b. Gradient: a' db = dx; da = -db x', of the triangle.
 */
#include <string.h>

#include "linear.h"
#include "weft/ops.h"

static const weft_field fields[] = {WEFT_FIELD(weft_triangle_attributes, square.row),
                                    WEFT_FIELD(weft_triangle_attributes, square.column),
                                    WEFT_FIELD(weft_triangle_attributes, square.size),
                                    WEFT_FIELD(weft_triangle_attributes, is_upper)};
static const weft_attributes described = WEFT_ATTRIBUTES(weft_triangle_attributes, fields);

static double flops(const weft_site *site)
{
    return weft_square_flops(site, 0.0, 1.0);
}

static void gradient(weft_vjp *vjp)
{
    const weft_triangle_attributes *a = vjp->site->attributes;
    const weft_dim row = {a->square.row, a->square.size},
                   column = {a->square.column, a->square.size};
    const weft_value db =
        weft_triangular_solve(vjp->in[0], vjp->dout[0], column, row, !a->is_upper);
    vjp->din[1] = db;
    if (!vjp->wanted[0]) return;
    const weft_shape of_a = *weft_shape_of(vjp->in[0]);
    const weft_value da = weft_neg(weft_einsum(of_a, db, vjp->out[0]));
    vjp->din[0] = (a->is_upper ? weft_upper_triangle : weft_lower_triangle)(da, row, column, 0);
}

const weft_op weft_op_triangular_solve = {
    .name = "triangular_solve",
    .attributes = &described,
    .infer = weft_infer_solve,
    .factors = weft_factors_solve,
    .linear = 1 << 1,
    .gradient = gradient,
    .flops = flops,
};

weft_value weft_triangular_solve(weft_value a, weft_value b, weft_dim row, weft_dim column,
                                 bool is_upper)
{
    weft_triangle_attributes triangle;
    memset(&triangle, 0, sizeof triangle);
    if (!weft_square_sides(a, "triangular_solve", row, column, &triangle.square))
        return weft_no_value(a.graph);
    triangle.is_upper = is_upper;
    return weft_emit_solve(&weft_op_triangular_solve, a, b, &triangle.square, sizeof triangle);
}
