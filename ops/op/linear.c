/* linear.c: the sides and the batch of square matrices, and columns that go with them.
 *
 * Kernels want matrices one behind the other, and all columns of a matrix beside each other: builders transpose, and the
 * compiler takes out what transposes nothing.
 */
#include "linear.h"

#include <string.h>

#include "weft/ops.h"

static const weft_field fields[] = {WEFT_FIELD(weft_square_attributes, row),
                                    WEFT_FIELD(weft_square_attributes, column),
                                    WEFT_FIELD(weft_square_attributes, size)};
const weft_attributes weft_attributes_square = WEFT_ATTRIBUTES(weft_square_attributes, fields);

/* ---- for infer and factors ----------------------------------------------------------------------- */

weft_status weft_check_square(const weft_site *site, weft_error *error)
{
    const weft_square_attributes *a = site->attributes;
    WEFT_TRY(weft_check_float(site, 0, error));
    WEFT_TRY(weft_check_dim(site, 0, a->row, a->size, error));
    return weft_check_dim(site, 0, a->column, a->size, error);
}

weft_status weft_infer_solve(weft_site *site, weft_error *error)
{
    const weft_square_attributes *a = site->attributes;
    WEFT_TRY(weft_check_square(site, error));
    WEFT_TRY(weft_check_same_dtype(site, error));
    WEFT_TRY(weft_check_dim(site, 1, a->row, a->size, error));
    WEFT_TRY(weft_check_dims(site, error));
    if (weft_shape_find(&site->in[1].shape, a->column) >= 0)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %s, which the result gets in place of %s; weft_rename it",
                         weft_site_name(site, 1), a->column, a->row);
    site->n_out = 1;
    site->out[0] = site->in[1];
    weft_shape *out = &site->out[0].shape;
    out->dims[weft_shape_find(out, a->row)].name = a->column;
    return WEFT_OK;
}

void weft_factors_solve(const weft_site *site, weft_factors *factors)
{
    const int n_batch = site->in[0].shape.n_dims - 2;
    factors->n_factors = 0;
    for (int d = 0; d < site->out[0].shape.n_dims; d++) {
        if (d == n_batch) continue;
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[1] = factor->out[0] = (int8_t)d;
        if (d < n_batch) factor->in[0] = (int8_t)d;
    }
}

double weft_square_flops(const weft_site *site, double of_matrix, double of_column)
{
    const weft_square_attributes *a = site->attributes;
    const double n = (double)a->size;
    const double matrices = weft_count_of(&site->in[0].shape) / (n * n);
    const double columns = site->n_in > 1 ? weft_count_of(&site->in[1].shape) / n : 0.0;
    return of_matrix * n * n * n * matrices + of_column * n * n * columns;
}

/* ---- for builders -------------------------------------------------------------------------------- */

bool weft_square_sides(weft_value a, const char *op, weft_dim row, weft_dim column,
                       weft_square_attributes *attributes)
{
    weft_dim_attributes sides[2];
    memset(attributes, 0, sizeof *attributes);
    if (!weft_graph_dim(a.graph, op, row, &sides[0]) ||
        !weft_graph_dim(a.graph, op, column, &sides[1]) || !weft_takes_float(a, op))
        return false;
    attributes->row = sides[0].dim, attributes->column = sides[1].dim;
    attributes->size = sides[0].size;
    if (sides[0].size != sides[1].size || strcmp(sides[0].dim, sides[1].dim) == 0)
        weft_graph_fail(a.graph,
                        "%s: %s:%lld and %s:%lld are not the two sides of a square matrix; they "
                        "have two names and one size",
                        op, sides[0].dim, (long long)sides[0].size, sides[1].dim,
                        (long long)sides[1].size);
    return weft_graph_status(a.graph) == WEFT_OK;
}

static bool has(const weft_shape *shape, const char *name)
{
    return weft_shape_find(shape, name) >= 0;
}

static bool has_sides(const weft_shape *shape, const weft_square_attributes *sides)
{
    return has(shape, sides->row) && has(shape, sides->column);
}

static weft_shape batch_of(const weft_shape *shape, const weft_square_attributes *sides)
{
    const weft_shape without = weft_shape_without(shape, sides->row);
    return weft_shape_without(&without, sides->column);
}

weft_value weft_square_last(weft_value a, const weft_square_attributes *sides)
{
    const weft_shape shape = *weft_shape_of(a);
    if (!has_sides(&shape, sides)) return a; /* infer says so */
    weft_shape order = batch_of(&shape, sides);
    order.dims[order.n_dims++] = (weft_dim){sides->row, sides->size};
    order.dims[order.n_dims++] = (weft_dim){sides->column, sides->size};
    return weft_transpose(a, order);
}

/* Dims of `more` that `shape` lacks, at its end. */
static void add_dims(weft_shape *shape, const weft_shape *more)
{
    for (int d = 0; d < more->n_dims; d++)
        if (!has(shape, more->dims[d].name) && shape->n_dims < WEFT_MAX_DIMS)
            shape->dims[shape->n_dims++] = more->dims[d];
}

weft_value weft_emit_solve(const weft_op *op, weft_value a, weft_value b,
                           const weft_square_attributes *attributes, size_t bytes)
{
    weft_value in[] = {weft_square_last(weft_wide(a), attributes), weft_wide(b)};
    if (in[0].id == 0 || in[1].id == 0 || in[0].graph != in[1].graph ||
        !has_sides(weft_shape_of(a), attributes) || !has(weft_shape_of(b), attributes->row) ||
        has(weft_shape_of(b), attributes->column)) /* infer says so */
        return weft_emit(a.graph, op, in, 2, attributes, bytes);
    const weft_shape of_b = *weft_shape_of(b);
    weft_shape order = batch_of(weft_shape_of(a), attributes), result = {0};
    const weft_shape batch = order;
    order.dims[order.n_dims++] = (weft_dim){attributes->row, attributes->size};
    add_dims(&order, &of_b);
    if (order.n_dims > of_b.n_dims) in[1] = weft_broadcast_to(in[1], order);
    in[1] = weft_transpose(in[1], order);
    const weft_value x = weft_emit(a.graph, op, in, 2, attributes, bytes);
    for (int d = 0; d < batch.n_dims; d++)
        if (!has(&of_b, batch.dims[d].name)) result.dims[result.n_dims++] = batch.dims[d];
    add_dims(&result, &of_b);
    const int row = weft_shape_find(&result, attributes->row);
    if (x.id == 0 || row < 0) return x;
    result.dims[row].name = attributes->column;
    return weft_cast(weft_transpose(x, result), weft_dtype_of(b));
}
