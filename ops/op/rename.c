/* rename: a dim gets another name. Linear.
 *
 * The two names are one direction: where the layout splits both alike nothing moves.
 * Gradient: dy renamed back.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

typedef struct rename_attributes {
    const char *from, *to;
    int64_t size;
} rename_attributes;
static const weft_field fields[] = {WEFT_FIELD(rename_attributes, from),
                                    WEFT_FIELD(rename_attributes, to),
                                    WEFT_FIELD(rename_attributes, size)};
static const weft_attributes described = WEFT_ATTRIBUTES(rename_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const rename_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_dim(site, 0, attributes->from, attributes->size, error));
    site->n_out = 1;
    site->out[0] = site->in[0];
    weft_shape *out = &site->out[0].shape;
    if (weft_shape_find(out, attributes->to) >= 0) {
        char text[160];
        weft_shape_print(out, text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s, so %s cannot be called %s, which it has already; "
                         "choose a new name",
                         weft_site_name(site, 0), text, attributes->from, attributes->to);
    }
    out->dims[weft_shape_find(out, attributes->from)].name = attributes->to;
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_place(site, NULL, NULL, factors);
}

static void gradient(weft_vjp *vjp)
{
    const rename_attributes *attributes = vjp->site->attributes;
    vjp->din[0] = weft_rename(vjp->dout[0], (weft_dim){attributes->to, attributes->size},
                              (weft_dim){attributes->from, attributes->size});
}

const weft_op weft_op_rename = {
    .name = "rename",
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_rename(weft_value x, weft_dim from, weft_dim to)
{
    weft_dim_attributes old, new;
    if (!weft_graph_dim(x.graph, "rename", from, &old)) return weft_no_value(x.graph);
    if (!weft_graph_dim(x.graph, "rename", to, &new)) return weft_no_value(x.graph);
    if (old.size != new.size)
        return weft_graph_fail(x.graph,
                               "rename: %s has size %lld and %s has size %lld; a new name keeps "
                               "the size",
                               old.dim, (long long)old.size, new.dim, (long long)new.size);
    rename_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.from = old.dim;
    attributes.to = new.dim;
    attributes.size = old.size;
    return weft_emit(x.graph, &weft_op_rename, &x, 1, &attributes, sizeof attributes);
}
