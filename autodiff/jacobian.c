/* jacobian: all derivatives of a value, and products of second ones with vectors: gradients with seeds.
 *
 * A Jacobian is as many gradients as the value has elements, each with a seed that is 1 at one of them. It is a scan
 * with a trip for each, and the body is one backward walk. So the plan is as long for a thousand elements as for two,
 * and the forward pass is done once.
 */
#include "ir.h"
#include "walk.h"
#include "weft/autodiff.h"
#include "weft/ops.h"
#include "weft/scan.h"

/* ---- the Jacobian ---------------------------------------------------------------------------------- */

static weft_value refuse(weft_value of, const weft_shape *rows, const char *rule)
{
    char has[160], given[160];
    weft_shape_print(weft_shape_of(of), has, sizeof has);
    weft_shape_print(rows, given, sizeof given);
    return weft_graph_fail(of.graph, "jacobian: rows is %s and the value is %s; %s", given, has,
                           rule);
}

/* rows are the value's dims by any names that nothing has with respect to which it is. */
static bool fits(weft_value of, weft_values with_respect_to, const weft_shape *rows)
{
    const weft_shape *shape = weft_shape_of(of);
    bool is_alike = rows->n_dims == shape->n_dims;
    for (int d = 0; is_alike && d < shape->n_dims; d++)
        is_alike = rows->dims[d].size == shape->dims[d].size;
    if (!is_alike) refuse(of, rows, "pass its dims, in its order and of its sizes");
    for (int i = 0; is_alike && i < with_respect_to.n_values; i++)
        for (int d = 0; d < rows->n_dims; d++)
            if (weft_shape_find(weft_shape_of(with_respect_to.values[i]), rows->dims[d].name) >= 0)
                refuse(
                    of, rows,
                    "a value that it is taken with respect to has one of these dims too, and the "
                    "result has both's. Pass another name for it in rows");
    return weft_graph_status(of.graph) == WEFT_OK;
}

/* [element], 1 where the trip is. */
static weft_value seed_of(weft_value flat, weft_dim element, weft_value trip)
{
    const weft_value at = weft_iota(flat.graph, WEFT_I32, element);
    return weft_cast(weft_equal(at, trip), weft_dtype_of(flat));
}

/* [element, x's dims] to [rows, x's dims] */
static weft_value in_rows(weft_value stacked, const weft_shape *rows)
{
    weft_shape out = *rows;
    const weft_shape *shape = weft_shape_of(stacked);
    for (int d = 1; d < shape->n_dims && out.n_dims < WEFT_MAX_DIMS; d++)
        out.dims[out.n_dims++] = shape->dims[d];
    if (rows->n_dims + shape->n_dims - 1 <= WEFT_MAX_DIMS) return weft_reshape(stacked, out);
    return weft_graph_fail(stacked.graph,
                           "jacobian: a result would have %d dims, those of the value and those of "
                           "what it is taken with respect to; a tensor has at most %d. "
                           "weft_reshape one of them first",
                           rows->n_dims + shape->n_dims - 1, WEFT_MAX_DIMS);
}

static weft_value take_rows(weft_value of, weft_values with_respect_to, const weft_shape *rows,
                            weft_value *jacobians, int flags)
{
    const weft_dim element = {weft_graph_intern(of.graph, "~element"),
                              weft_shape_count(weft_shape_of(of))};
    const weft_value flat = weft_reshape(of, weft_shape_make(&element, 1));
    const weft_value trip = weft_scan_begin(of.graph, element.size);
    const weft_value seed = seed_of(flat, element, trip);
    weft_gradients_seeded((weft_values){&flat, 1}, (weft_values){&seed, 1}, with_respect_to,
                          jacobians, flags | WEFT_OF_ROWS);
    weft_scan_end(trip);
    for (int i = 0; i < with_respect_to.n_values && weft_graph_status(of.graph) == WEFT_OK; i++)
        jacobians[i] = in_rows(weft_scan_stack(jacobians[i], element), rows);
    return jacobians[0];
}

static void void_all(weft_value of, weft_values with_respect_to, weft_value *results)
{
    const int n = results == NULL ? 0 : with_respect_to.n_values;
    for (int i = 0; i < n && n <= WEFT_MOST_VALUES; i++)
        results[i] = weft_no_value(of.graph);
}

static bool takes(weft_value of, weft_values with_respect_to, const char *call,
                  const weft_value *results)
{
    if (!weft_graph_takes(of.graph, call, "of", (weft_values){&of, 1}) ||
        !weft_graph_takes(of.graph, call, "with_respect_to", with_respect_to))
        return false;
    if (with_respect_to.n_values > 0 && results != NULL) return true;
    weft_graph_fail(of.graph, "%s: %s; pass the values to derive by, and room for a result of each",
                    call, results == NULL ? "the results are NULL" : "with_respect_to is empty");
    return false;
}

weft_value weft_jacobian(weft_value of, weft_values with_respect_to, weft_shape rows,
                         weft_value *jacobians, int flags)
{
    weft_shape taken;
    void_all(of, with_respect_to, jacobians);
    if (!takes(of, with_respect_to, "jacobian", jacobians) ||
        !weft_graph_shape(of.graph, "jacobian", &rows, &taken) ||
        !fits(of, with_respect_to, &taken))
        return weft_no_value(of.graph);
    if (taken.n_dims == 0) return weft_gradients(of, with_respect_to, jacobians, flags);
    return take_rows(of, with_respect_to, &taken, jacobians, flags);
}

/* ---- second derivatives ------------------------------------------------------------------------------ */

/* The Hessian is its own transpose, so a product with it is one of a vector with the Jacobian of the gradient. */
weft_value weft_hessian_vector(weft_value of, weft_values with_respect_to, weft_values vectors,
                               weft_value *products, int flags)
{
    void_all(of, with_respect_to, products);
    if (!takes(of, with_respect_to, "hessian_vector", products)) return weft_no_value(of.graph);
    const size_t bytes = (size_t)with_respect_to.n_values * sizeof(weft_value);
    weft_value *gradients = weft_arena_take(of.graph->arena, bytes);
    if (gradients == NULL) weft_fail_memory(&of.graph->error, bytes);
    if (gradients == NULL) return weft_no_value(of.graph);
    if (vectors.n_values != with_respect_to.n_values)
        return weft_graph_fail(of.graph,
                               "hessian_vector: there are %d vectors for %d values; pass one for "
                               "each, with its dims",
                               vectors.n_values, with_respect_to.n_values);
    weft_gradients(of, with_respect_to, gradients, flags);
    return weft_gradients_seeded((weft_values){gradients, with_respect_to.n_values}, vectors,
                                 with_respect_to, products, flags | WEFT_ZEROS_ALLOWED);
}
