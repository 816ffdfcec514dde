/* order_columns.c: a split dim in order, without anybody who has all of it: by columns, which ranks share.
 *
 * n elements in s columns of r, one behind the other. Each column's owner orders it. All are dealt out, element i to
 * column i mod s, ordered, and collected in the reverse way; they are ordered, moved half a column down, ordered, and
 * moved back. Then all are in order, whatever they were, if s divides r and r is at least 2 (s-1)^2. Only dealing,
 * collecting and half a column go over ranks: twice each rank's part, however many ranks there are, in places that
 * are known beforehand. An element goes with its index, which tells equal ones apart: so the result is the one of a
 * rank that has all.
 * source  Leighton, Tight bounds on the complexity of parallel sorting (1985)
 */
#include "order.h"

#include <math.h>
#include <string.h>

#include "weft/ops.h"

typedef struct columns {
    weft_dim dim,
        within;   /* s columns, called as the dim, so that they lie where it does; r elements */
    weft_dim all; /* s r */
    bool descending;
} columns;

/* ---- whether ------------------------------------------------------------------------------------- */

static int64_t padded(int64_t size, int64_t s)
{
    return (size + s * s - 1) / (s * s) * s * s;
}

int64_t weft_order_columns(int64_t size)
{
    static const int64_t numbers[] = {48, 24, 12};
    for (int i = 0; i < 3; i++) {
        const int64_t s = numbers[i], n = padded(size, s);
        if (size <= INT32_MAX / 2 && n / s >= 2 * (s - 1) * (s - 1)) return s;
    }
    return 0;
}

static int64_t ranks_of(const weft_spec *spec, int d, const weft_mesh *mesh)
{
    int64_t n = 1;
    for (int a = 0; a < spec->n_split[d]; a++)
        n *= weft_mesh_axis_size(mesh, spec->split[d][a]);
    return n;
}

/* Dealt and collected, each with its index: 2 (bytes + 4) / p; gathered: bytes (p - 1) / p. */
bool weft_order_goes_by_columns(const weft_site *site, int x, const weft_spec *in,
                                const weft_mesh *mesh)
{
    const weft_order_attributes *a = site->attributes;
    const weft_shape *shape = &site->in[x].shape;
    const int dim = weft_shape_find(shape, a->dim);
    const int64_t s = weft_order_columns(a->size), p = ranks_of(&in[x], dim, mesh);
    const int64_t bytes = (int64_t)weft_dtype_bytes(site->in[x].dtype);
    if (s == 0 || s % p != 0 || 2 * (bytes + 4) > bytes * (p - 1)) return false;
    if (shape->n_dims + 2 > WEFT_MAX_DIMS) return false;
    for (int d = 0; d < shape->n_dims; d++)
        if (d != dim && in[x].n_split[d] == 0 && shape->dims[d].size >= p) return false;
    return true;
}

/* ---- columns ------------------------------------------------------------------------------------- */

/* x with some neighbouring dims from `dim` on in the place of `n` that there are. */
static weft_value cut(weft_value x, const char *dim, int n, weft_shape by)
{
    const weft_shape whole = *weft_shape_of(x);
    const int at = weft_shape_find(&whole, dim);
    weft_shape shape = whole;
    if (at < 0) return x;
    shape.n_dims = at;
    for (int d = 0; d < by.n_dims; d++)
        shape.dims[shape.n_dims++] = by.dims[d];
    for (int d = at + n; d < whole.n_dims; d++)
        shape.dims[shape.n_dims++] = whole.dims[d];
    return weft_reshape(x, shape);
}

/* x with three neighbours from `first` on in another order. */
static weft_value turned(weft_value x, const char *first, weft_shape order)
{
    weft_shape shape = *weft_shape_of(x);
    const int at = weft_shape_find(&shape, first);
    for (int d = 0; at >= 0 && d < order.n_dims; d++)
        shape.dims[at + d] = order.dims[d];
    return weft_transpose(x, shape);
}

/* Element i, counted through all columns, is dealt to column i mod s; or back. */
static weft_value dealt(const columns *c, weft_value x, bool is_back)
{
    weft_graph *graph = x.graph;
    const int64_t s = c->dim.size;
    weft_dim u = weft_dim_beside(graph, c->within), t = weft_dim_beside(graph, u);
    const weft_dim rows = {u.name, c->within.size / s}, to = {t.name, s};
    const weft_dim from = weft_dim_beside(graph, to);
    x = cut(x, c->within.name, 1, is_back ? WEFT_DIMS(to, rows) : WEFT_DIMS(rows, to));
    x = turned(x, c->dim.name, is_back ? WEFT_DIMS(to, rows, c->dim) : WEFT_DIMS(to, c->dim, rows));
    x = weft_rename(weft_rename(x, c->dim, from), to, c->dim);
    return cut(x, is_back ? rows.name : from.name, 2, WEFT_DIMS(c->within));
}

static weft_ordered both_dealt(const columns *c, weft_ordered of, bool is_back)
{
    of.x = dealt(c, of.x, is_back);
    of.ids = dealt(c, of.ids, is_back);
    return of;
}

static weft_ordered taken(const columns *c, weft_ordered of, weft_value ids)
{
    const weft_shape shape = *weft_shape_of(of.x);
    of.x = weft_transpose(weft_pick(of.x, ids, c->within), shape);
    of.ids = weft_transpose(weft_pick(of.ids, ids, c->within), shape);
    return of;
}

/* Each column in order: by index, then by what is equal stays as it is. */
static weft_ordered in_order(const columns *c, weft_ordered of, bool is_by_index)
{
    if (!is_by_index) of = taken(c, of, weft_order(of.ids, c->within, c->within, false));
    return taken(c, of, weft_order(of.x, c->within, c->within, c->descending));
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static weft_ordered one_behind_the_other(const columns *c, weft_ordered of)
{
    of.x = cut(of.x, c->dim.name, 2, WEFT_DIMS(c->all));
    of.ids = cut(of.ids, c->dim.name, 2, WEFT_DIMS(c->all));
    return of;
}

static weft_ordered moved(const columns *c, weft_ordered of, int64_t by)
{
    of.x = weft_shift_along(of.x, c->all, by);
    of.ids = weft_shift_along(of.ids, c->all, by);
    return of;
}

static weft_value in_columns(const columns *c, weft_value x)
{
    return cut(x, c->all.name, 1, WEFT_DIMS(c->dim, c->within));
}

/* Of all [n], those that are not in the first or the last half of a column. */
static weft_value inner(const columns *c, weft_graph *graph)
{
    const int64_t in_half = c->within.size / 2;
    const double half = (double)in_half, n = (double)c->all.size;
    const weft_value at = weft_iota(graph, WEFT_I32, c->all);
    const weft_value low = weft_constant(graph, WEFT_I32, WEFT_SCALAR, half);
    const weft_value high = weft_constant(graph, WEFT_I32, WEFT_SCALAR, n - half);
    const weft_value is_past = weft_greater_equal(at, low);
    return weft_mul(is_past, weft_less(at, high));
}

/* Columns that begin in the middle of others; the first and the last half stand where they belong already. */
static weft_ordered across(const columns *c, weft_ordered of)
{
    const int64_t half = c->within.size / 2;
    of = one_behind_the_other(c, of);
    weft_ordered made = moved(c, of, half);
    made.x = in_columns(c, made.x);
    made.ids = in_columns(c, made.ids);
    made = in_order(c, made, false);
    made = moved(c, one_behind_the_other(c, made), -half);
    const weft_shape shape = *weft_shape_of(of.x);
    const weft_value is_inner = weft_broadcast_to(inner(c, of.x.graph), shape);
    of.x = weft_where(is_inner, made.x, of.x);
    of.ids = weft_where(is_inner, made.ids, of.ids);
    return of;
}

static weft_value indices(const columns *c, weft_value like)
{
    const weft_shape shape = *weft_shape_of(like);
    const weft_value r = weft_constant(like.graph, WEFT_I32, WEFT_SCALAR, (double)c->within.size);
    const weft_value first = weft_mul(weft_iota(like.graph, WEFT_I32, c->dim), r);
    return weft_broadcast_to(weft_add(first, weft_iota(like.graph, WEFT_I32, c->within)), shape);
}

static weft_ordered by_columns(weft_value x, const weft_order_attributes *a, bool descending)
{
    const int64_t s = weft_order_columns(a->size), n = padded(a->size, s);
    const weft_dim given = {a->dim, a->size}, to = {a->to, a->count};
    columns c = {.dim = {a->dim, s}, .all = {a->dim, n}, .descending = descending};
    c.within = (weft_dim){weft_dim_beside(x.graph, given).name, n / s};
    if (n > a->size)
        x = weft_pad(x, given, 0, c.all, weft_order_last(weft_dtype_of(x), descending));
    weft_ordered of = {.x = in_columns(&c, x)};
    of.ids = indices(&c, of.x);
    of = in_order(&c, of, true);
    of = in_order(&c, both_dealt(&c, of, false), false);
    of = in_order(&c, both_dealt(&c, of, true), false);
    of = across(&c, of);
    of.x = weft_slice(of.x, c.all, 0, to);
    of.ids = weft_slice(of.ids, c.all, 0, to);
    return of;
}

weft_ordered weft_order_by_columns(weft_value x, const weft_order_attributes *a)
{
    if (!weft_order_is_turned(weft_dtype_of(x), a->descending))
        return by_columns(x, a, a->descending);
    weft_ordered of = by_columns(weft_opposite(x), a, true);
    of.x = weft_opposite(of.x);
    return of;
}
