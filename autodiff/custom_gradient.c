/* custom_gradient: a value as it is, with gradients that the user's own function builds.
 *
 * One node; its operands are the value and those it was made from. Going back, it asks the user's rule for the
 * gradients of the latter and gives none to the former, so the forward pass is not differentiated. The compiler never
 * sees it: it expands to its first operand.
 */
#include <string.h>

#include "same.h"
#include "weft/autodiff.h"

typedef struct custom {
    weft_gradient_rule rule;
    void *argument;
} custom;

static bool take(weft_graph *graph, void *to, const void *from)
{
    (void)graph;
    memcpy(to, from, sizeof(custom));
    return true;
}

static void print(const void *field, FILE *file)
{
    (void)field; /* an address says nothing */
    fputs("given", file);
}

static const weft_field_kind custom_kind = {sizeof(custom), take, print};
static const weft_field fields[] = {{"rule", 0, &custom_kind}};
static const weft_attributes described = WEFT_ATTRIBUTES(custom, fields);

/* Whether a rule's gradient fits operand i; if not, that is the graph's error. */
static bool fits(const weft_vjp *vjp, int i, weft_value din)
{
    weft_graph *graph = vjp->graph;
    char given[200], wanted[200];
    if (din.graph != graph || din.id >= graph->n_tensors) {
        weft_graph_fail(graph,
                        "custom_gradient: what the rule gave as the gradient of %s is not a value "
                        "of this graph; pass what a builder returned",
                        weft_site_name(vjp->site, i));
        return false;
    }
    const weft_type *type = &vjp->site->in[i];
    const weft_shape *shape = weft_shape_of(din);
    if (weft_dtype_of(din) == type->dtype && weft_shape_same_dims(shape, &type->shape)) return true;
    weft_shape_print(shape, given, sizeof given);
    weft_shape_print(&type->shape, wanted, sizeof wanted);
    weft_graph_fail(graph,
                    "custom_gradient: the rule gave %s, which is %s%s, a gradient that is %s%s; "
                    "both must have the same dims and dtype",
                    weft_site_name(vjp->site, i), weft_dtype_name(type->dtype), wanted,
                    weft_dtype_name(weft_dtype_of(din)), given);
    return false;
}

static void gradient(weft_vjp *vjp)
{
    const custom *own = vjp->site->attributes;
    const int n = vjp->site->n_in - 1;
    weft_value din[WEFT_MAX_IN];
    for (int i = 0; i < n; i++)
        din[i] = weft_no_value(vjp->graph);
    own->rule(own->argument, (weft_values){vjp->in + 1, n}, vjp->out[0], vjp->dout[0], din);
    for (int i = 0; i < n && weft_graph_status(vjp->graph) == WEFT_OK; i++)
        if (din[i].id != 0 && fits(vjp, i + 1, din[i])) vjp->din[i + 1] = din[i];
}

/* Not in the table of ops: it has no kernel, and no pass but expand meets it. */
static const weft_op op = {
    .name = "custom_gradient",
    .attributes = &described,
    .infer = weft_same_infer,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .expand = weft_same_expand,
    .expands = true,
};

weft_value weft_custom_gradient(weft_values in, weft_value out, weft_gradient_rule rule,
                                void *argument)
{
    weft_graph *graph = out.graph;
    const custom own = {rule, argument};
    weft_value operands[WEFT_MAX_IN] = {out};
    if (!weft_graph_takes(graph, op.name, "out", (weft_values){&out, 1}) ||
        !weft_graph_takes(graph, op.name, "in", in))
        return weft_no_value(graph);
    if (rule == NULL)
        return weft_graph_fail(graph,
                               "custom_gradient: rule is NULL; pass the function that builds "
                               "the gradients");
    if (in.n_values < 1 || in.n_values >= WEFT_MAX_IN)
        return weft_graph_fail(graph, "custom_gradient: in has %d values; it has from 1 to %d",
                               in.n_values, WEFT_MAX_IN - 1);
    if (!weft_dtype_is_float(weft_dtype_of(out)))
        return weft_graph_fail(graph,
                               "custom_gradient: out is i32; only float values have gradients");
    memcpy(operands + 1, in.values, (size_t)in.n_values * sizeof *in.values);
    return weft_emit_own(graph, &op, operands, in.n_values + 1, &own, sizeof own);
}
