/* slice: the part [begin, end) of x along one dim, which may get another name. Linear. A block of
 * the part is seen through a window that begins `begin` further.
 *
 * Gradient: reindex, which puts dy among zeros.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

typedef struct slice_attributes {
    weft_slice_attributes slice; /* what the kernel reads */
    const char *to;
    int64_t size; /* of the dim in x */
} slice_attributes;
static const weft_field fields[] = {
    WEFT_FIELD(slice_attributes, slice.dim), WEFT_FIELD(slice_attributes, slice.begin),
    WEFT_FIELD(slice_attributes, slice.end), WEFT_FIELD(slice_attributes, to),
    WEFT_FIELD(slice_attributes, size)};
static const weft_attributes described = WEFT_ATTRIBUTES(slice_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const slice_attributes *attributes = site->attributes;
    const weft_slice_attributes *slice = &attributes->slice;
    WEFT_TRY(weft_check_dim(site, 0, slice->dim, attributes->size, error));
    if (slice->begin < 0 || slice->end > attributes->size)
        return weft_fail(error, WEFT_USAGE,
                         "[%lld, %lld) is asked of %s, whose %s goes from 0 to %lld",
                         (long long)slice->begin, (long long)slice->end, weft_site_name(site, 0),
                         slice->dim, (long long)attributes->size);
    site->n_out = 1;
    site->out[0] = site->in[0];
    weft_shape *out = &site->out[0].shape;
    out->dims[weft_shape_find(out, slice->dim)] =
        (weft_dim){attributes->to, slice->end - slice->begin};
    return WEFT_OK; /* a name that stands twice now is found by weft_emit */
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_slice_attributes *slice = &((const slice_attributes *)site->attributes)->slice;
    const weft_window window = {.lead = slice->end - slice->begin,
                                .low = slice->begin,
                                .high = slice->begin,
                                .stride = 1,
                                .over = 1};
    weft_factors_by_place(site, slice->dim, &window, factors);
}

static void gradient(weft_vjp *vjp)
{
    const slice_attributes *attributes = vjp->site->attributes;
    const weft_slice_attributes *slice = &attributes->slice;
    vjp->din[0] = weft_reindex(vjp->dout[0], (weft_dim){attributes->to, slice->end - slice->begin},
                               (weft_dim){slice->dim, attributes->size}, 1, -slice->begin, 1);
}

const weft_op weft_op_slice = {
    .name = "slice",
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_slice(weft_value x, weft_dim dim, int64_t begin, weft_dim to)
{
    weft_dim_attributes old, new;
    if (!weft_graph_dim(x.graph, "slice", dim, &old)) return weft_no_value(x.graph);
    if (!weft_graph_dim(x.graph, "slice", to, &new)) return weft_no_value(x.graph);
    if (begin < 0 || begin > old.size)
        return weft_graph_fail(x.graph, "slice: it begins at %lld of %s, whose size is %lld",
                               (long long)begin, old.dim, (long long)old.size);
    slice_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.slice.dim = old.dim;
    attributes.slice.begin = begin;
    attributes.slice.end = begin + new.size;
    attributes.to = new.dim;
    attributes.size = old.size;
    return weft_emit(x.graph, &weft_op_slice, &x, 1, &attributes, sizeof attributes);
}
