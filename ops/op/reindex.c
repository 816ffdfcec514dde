/* reindex: y[o] = x[(stride o + offset) / over] along one dim, which may get another name, where that is whole and an
 * element of x; else 0. A slice with steps, zeros around or between, a shift, a reversal are this with other numbers. Linear.
 * A block of the result is seen through the window of that slope.
 *
 * Gradient: the same op with stride and over exchanged, for o = (over j - offset) / stride.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"
#include "reindex.h"

static const weft_field fields[] = {
    WEFT_FIELD(weft_reindex_attributes, dim),    WEFT_FIELD(weft_reindex_attributes, to),
    WEFT_FIELD(weft_reindex_attributes, size),   WEFT_FIELD(weft_reindex_attributes, to_size),
    WEFT_FIELD(weft_reindex_attributes, offset), WEFT_FIELD(weft_reindex_attributes, stride),
    WEFT_FIELD(weft_reindex_attributes, over)};
static const weft_attributes described = WEFT_ATTRIBUTES(weft_reindex_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_reindex_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    const weft_reindex_run run =
        weft_reindex_between(attributes, 0, attributes->to_size, 0, attributes->size);
    if (run.count == 0)
        return weft_fail(error, WEFT_USAGE,
                         "nothing of %s is read: element i of %s:%lld is element (%lld i + %lld) / "
                         "%lld of %s:%lld. Look at the offset",
                         weft_site_name(site, 0), attributes->to, (long long)attributes->to_size,
                         (long long)attributes->stride, (long long)attributes->offset,
                         (long long)attributes->over, attributes->dim, (long long)attributes->size);
    site->n_out = 1;
    site->out[0] = site->in[0];
    weft_shape *out = &site->out[0].shape;
    out->dims[weft_shape_find(out, attributes->dim)] =
        (weft_dim){attributes->to, attributes->to_size};
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_reindex_attributes *attributes = site->attributes;
    const weft_window window = {.lead = attributes->to_size,
                                .low = attributes->offset,
                                .high = attributes->offset,
                                .stride = (int32_t)attributes->stride,
                                .over = (int32_t)attributes->over};
    weft_factors_by_place(site, attributes->dim, &window, factors);
}

static void gradient(weft_vjp *vjp)
{
    const weft_reindex_attributes *of = vjp->site->attributes;
    const bool is_back = of->stride < 0;
    vjp->din[0] =
        weft_reindex(vjp->dout[0], (weft_dim){of->to, of->to_size}, (weft_dim){of->dim, of->size},
                     is_back ? -of->over : of->over, is_back ? of->offset : -of->offset,
                     is_back ? -of->stride : of->stride);
}

const weft_op weft_op_reindex = {
    .name = "reindex",
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_reindex(weft_value x, weft_dim dim, weft_dim to, int64_t stride, int64_t offset,
                        int64_t over)
{
    weft_dim_attributes old, new;
    if (!weft_graph_dim(x.graph, "reindex", dim, &old)) return weft_no_value(x.graph);
    if (!weft_graph_dim(x.graph, "reindex", to, &new)) return weft_no_value(x.graph);
    const int64_t most = WEFT_MAX_STRIDE, furthest = (int64_t)1 << 60;
    if (stride == 0 || stride < -most || stride > most || over < 1 || over > most)
        return weft_graph_fail(x.graph,
                               "reindex: %lld / %lld elements of %s for each of %s; give a stride "
                               "that is not 0, and over what is above 0, both at most %lld",
                               (long long)stride, (long long)over, old.dim, new.dim,
                               (long long)most);
    if (offset < -furthest || offset > furthest)
        return weft_graph_fail(x.graph, "reindex: an offset of %lld is past 2^60",
                               (long long)offset);
    weft_reindex_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.dim = old.dim;
    attributes.to = new.dim;
    attributes.size = old.size;
    attributes.to_size = new.size;
    attributes.offset = offset;
    attributes.stride = stride;
    attributes.over = over;
    return weft_emit(x.graph, &weft_op_reindex, &x, 1, &attributes, sizeof attributes);
}
