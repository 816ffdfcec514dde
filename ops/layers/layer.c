/* layer: what layers have in common. */
#include "layer.h"

#include <stdio.h>
#include <string.h>

#include "ir.h"
#include "op.h"
#include "weft/ops.h"

/* ---- what was told ------------------------------------------------------------------------------- */

bool weft_layer_begin(weft_layer *layer, const char *kind, const char *name,
                      const weft_layer_source *source, weft_value x)
{
    *layer = (weft_layer){kind, name, x.graph, weft_dtype_of(x), source, *weft_shape_of(x)};
    if (name == NULL)
        weft_graph_fail(x.graph, "%s: it has no name, which its variables are called by", kind);
    else if (!weft_dtype_is_float(layer->dtype))
        weft_graph_fail(x.graph, "%s: layer %.60s: x is %s; it is a float. weft_cast it", kind,
                        name, weft_dtype_name(layer->dtype));
    return weft_graph_status(x.graph) == WEFT_OK;
}

/* "did you mean pixel?", or nothing. */
static void guess(const weft_shape *shape, const char *name, char *text, size_t bytes)
{
    const char *names[WEFT_MAX_DIMS];
    for (int d = 0; d < shape->n_dims; d++)
        names[d] = shape->dims[d].name;
    const char *near =
        weft_shape_find(shape, name) < 0 ? weft_nearest(name, names, shape->n_dims) : NULL;
    snprintf(text, bytes, "%s%s%s", near ? "; did you mean " : "", near ? near : "",
             near ? "?" : "");
}

static void refuse(const weft_layer *layer, const char *what, const char *of, const weft_shape *x,
                   weft_dim dim, const char *end)
{
    char text[300];
    weft_shape_print(x, text, sizeof text);
    weft_graph_fail(layer->graph, "%s: layer %.60s: %s %.63s:%lld, but %s is %s%s", layer->kind,
                    layer->name, what, dim.name ? dim.name : "(none)", (long long)dim.size, of,
                    text, end);
}

bool weft_layer_has(const weft_layer *layer, const char *what, weft_value x, weft_dim dim)
{
    return weft_layer_has_of(layer, what, "x", x, dim);
}

bool weft_layer_has_of(const weft_layer *layer, const char *what, const char *of, weft_value x,
                       weft_dim dim)
{
    char end[100] = "";
    const weft_shape *shape = weft_shape_of(x);
    if (weft_graph_status(layer->graph) != WEFT_OK) return false;
    if (dim.name != NULL && dim.size > 0 && weft_dim_of(x, dim.name).size == dim.size) return true;
    if (dim.name != NULL) guess(shape, dim.name, end, sizeof end);
    refuse(layer, what, of, shape, dim, end);
    return false;
}

weft_shape weft_layer_instead(const weft_layer *layer, weft_value x, const weft_shape *gone,
                              const weft_shape *added)
{
    weft_shape shape = *weft_shape_of(x);
    for (int d = 0; d < gone->n_dims; d++)
        shape = weft_shape_without(&shape, gone->dims[d].name);
    for (int d = 0; d < added->n_dims; d++) {
        const weft_dim dim = added->dims[d];
        if (dim.name == NULL || dim.size < 1 || weft_shape_find(&shape, dim.name) >= 0)
            refuse(layer, "it makes a dim", "x", &shape, dim, " besides");
        else if (shape.n_dims == WEFT_MAX_DIMS)
            refuse(layer, "it makes a dim", "x", &shape, dim, ", and there is room for no more");
        else
            shape.dims[shape.n_dims++] = dim;
    }
    return weft_graph_status(layer->graph) == WEFT_OK ? shape : (weft_shape){0};
}

double weft_layer_fan(const weft_shape *shape)
{
    return shape->n_dims == 0 ? 1.0 : weft_count_of(shape);
}

/* ---- variables ----------------------------------------------------------------------------------- */

/* Shapes of another layer's variable and of this one's. */
static weft_value refuse_other(const weft_layer *layer, const char *whole, weft_value made,
                               const weft_shape *shape, weft_dtype dtype)
{
    char was[150], is[150];
    weft_shape_print(weft_shape_of(made), was, sizeof was);
    weft_shape_print(shape, is, sizeof is);
    return weft_graph_fail(layer->graph,
                           "%s: %.100s is %s%s, and here it would be %s%s; layers of one name "
                           "have the same dims and dtype",
                           layer->kind, whole, weft_dtype_name(weft_dtype_of(made)), was,
                           weft_dtype_name(dtype), is);
}

static bool same_dims(const weft_shape *a, const weft_shape *b)
{
    bool same = weft_shape_same_order(a, b);
    for (int d = 0; same && d < a->n_dims; d++)
        same = a->dims[d].size == b->dims[d].size;
    return same;
}

static bool has_dims(const weft_shape *all, const weft_shape *some)
{
    for (int d = 0; d < some->n_dims; d++) {
        const int found = weft_shape_find(all, some->dims[d].name);
        if (found < 0 || all->dims[found].size != some->dims[d].size) return false;
    }
    return true;
}

/* Of what a source has given: its own dims, and others of x, of which each element has weights of its own. */
static bool has_no_others(const weft_layer *layer, const char *whole, weft_value made,
                          const weft_shape *shape)
{
    const weft_shape *given = weft_shape_of(made);
    for (int d = 0; d < given->n_dims; d++) {
        const char *name = given->dims[d].name;
        const int in_x = weft_shape_find(&layer->x, name);
        if (weft_shape_find(shape, name) >= 0 ||
            (in_x >= 0 && layer->x.dims[in_x].size == given->dims[d].size))
            continue;
        weft_graph_fail(
            layer->graph,
            "%s: the layer's source gives %.100s with %s:%lld, which neither that nor x "
            "has; each dim of a variable is one of them",
            layer->kind, whole, name, (long long)given->dims[d].size);
        return false;
    }
    return true;
}

/* What the program's own function gives; other dims of x may lead. */
static weft_value of_source(const weft_layer *layer, const char *whole, weft_dtype dtype,
                            const weft_shape *shape, weft_initial initial)
{
    const weft_layer_source *source = layer->source;
    if (weft_graph_status(layer->graph) != WEFT_OK) return weft_no_value(layer->graph);
    if (source->variable == NULL)
        return weft_graph_fail(layer->graph,
                               "%s: layer %.60s: its source has no function that gives a variable",
                               layer->kind, layer->name);
    const weft_value made =
        source->variable(source->context, layer->graph, whole, dtype, *shape, initial);
    if (weft_graph_status(layer->graph) != WEFT_OK) return weft_no_value(layer->graph);
    if (made.id == 0 || made.graph != layer->graph)
        return weft_graph_fail(layer->graph, "%s: the layer's source gives no %.100s", layer->kind,
                               whole);
    const bool is_float = weft_dtype_of(made) == dtype || weft_dtype_of(made) == layer->dtype;
    if (!has_dims(weft_shape_of(made), shape) || !is_float)
        return refuse_other(layer, whole, made, shape, dtype);
    return has_no_others(layer, whole, made, shape) ? made : weft_no_value(layer->graph);
}

weft_value weft_layer_variable(const weft_layer *layer, const char *name, weft_shape shape,
                               weft_initial initial)
{
    char whole[2 * WEFT_MAX_PATH]; /* one that is too long stays so, and is refused */
    const weft_dtype dtype = weft_dtype_computes(layer->dtype);
    snprintf(whole, sizeof whole, "%.*s/%s", WEFT_MAX_PATH + 1, layer->name, name);
    if (layer->source != NULL) return of_source(layer, whole, dtype, &shape, initial);
    const weft_value made = weft_variable_called(layer->graph, whole);
    if (made.id == 0) return weft_variable(layer->graph, whole, dtype, shape, initial);
    if (same_dims(weft_shape_of(made), &shape) && weft_dtype_of(made) == dtype) return made;
    return refuse_other(layer, whole, made, &shape, dtype);
}

static weft_initial scaled(weft_initial initial, double by)
{
    initial.a *= by;
    if (initial.kind != WEFT_INITIAL_FORMULA) initial.b *= by;
    return initial;
}

weft_value weft_layer_weight_of(const weft_layer *layer, const weft_layer_weight *weight)
{
    weft_error error = {WEFT_OK, -1, ""};
    weft_initial initial;
    const char *scheme = weight->initializer != NULL ? weight->initializer : "glorot_uniform";
    if (weight->exactly != NULL)
        initial = *weight->exactly;
    else if (weft_initial_of(scheme, weight->fan_in, weight->fan_out, &initial, &error) != WEFT_OK)
        return weft_graph_fail(layer->graph, "%s: layer %.60s: %s", layer->kind, layer->name,
                               error.message);
    if (weight->scale != 0) initial = scaled(initial, weight->scale);
    return weft_cast(weft_layer_variable(layer, weight->name, weight->shape, initial),
                     layer->dtype);
}

weft_value weft_layer_biased(const weft_layer *layer, weft_value y, weft_shape shape,
                             const weft_initial *initial)
{
    const weft_initial first = initial != NULL ? *initial : weft_constant_of(0.0);
    return weft_add(y, weft_cast(weft_layer_variable(layer, "bias", shape, first), layer->dtype));
}

/* ---- activations --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    weft_value (*build)(weft_value x);
} activations[] = {{"relu", weft_relu}, {"gelu", weft_gelu}, {"gelu_erf", weft_gelu_erf},
                   {"silu", weft_silu}, {"tanh", weft_tanh}, {"sigmoid", weft_sigmoid}};
enum { N_ACTIVATIONS = sizeof activations / sizeof *activations };

weft_value weft_layer_activated(const weft_layer *layer, weft_value y, const char *activation)
{
    const char *names[N_ACTIVATIONS];
    if (activation == NULL) return y;
    for (int i = 0; i < N_ACTIVATIONS; i++) {
        if (strcmp(activations[i].name, activation) == 0) return activations[i].build(y);
        names[i] = activations[i].name;
    }
    const char *near = weft_nearest(activation, names, N_ACTIVATIONS);
    return weft_graph_fail(
        layer->graph,
        "%s: layer %.60s: there is no activation \"%.60s\"%s%s%s; there are relu, "
        "gelu, gelu_erf, silu, tanh and sigmoid",
        layer->kind, layer->name, activation, near ? "; did you mean " : "", near ? near : "",
        near ? "?" : "");
}
