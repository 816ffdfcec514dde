/* op_help.c: what nearly every op says about itself: inference, factors and checks that follow from
 * dim names. */
#include <string.h>

#include "op.h"

/* ---- sentences ------------------------------------------------------------------------------- */

const char *weft_site_name(const weft_site *site, int operand)
{
    static const char *const ordinal[WEFT_MAX_IN] = {
        "the first operand", "the second operand", "the third operand",   "the fourth operand",
        "the fifth operand", "the sixth operand",  "the seventh operand", "the eighth operand"};
    if (site == NULL || operand < 0 || operand >= WEFT_MAX_IN) return "no operand";
    if (site->in_name[operand] != NULL) return site->in_name[operand];
    return site->n_in == 1 ? "the operand" : ordinal[operand];
}

static const char *shape_text(const weft_shape *shape, char text[160])
{
    weft_shape_print(shape, text, 160);
    return text;
}

static weft_status check_operand(const weft_site *site, int operand, const char *function,
                                 weft_error *error)
{
    WEFT_TRY(weft_check_given(site != NULL, function, "site", error));
    return weft_check_range(operand, 0, site->n_in - 1, function, "operand", error);
}

weft_status weft_check_dim(const weft_site *site, int operand, const char *dim, int64_t size,
                           weft_error *error)
{
    WEFT_TRY(check_operand(site, operand, __func__, error));
    WEFT_GIVEN(dim, error);
    const weft_shape *shape = &site->in[operand].shape;
    const int d = weft_shape_find(shape, dim);
    char text[160];
    if (d >= 0 && (size < 0 || shape->dims[d].size == size)) return WEFT_OK;
    if (d >= 0)
        return weft_fail(
            error, WEFT_USAGE, "%s is %s and %s is said to be of size %lld; pass the same size",
            weft_site_name(site, operand), shape_text(shape, text), dim, (long long)size);
    const char *names[WEFT_MAX_DIMS];
    for (int i = 0; i < shape->n_dims; i++)
        names[i] = shape->dims[i].name;
    const char *near = weft_nearest(dim, names, shape->n_dims);
    return weft_fail(error, WEFT_USAGE, "%s is %s and has no dim %s%s%s%s",
                     weft_site_name(site, operand), shape_text(shape, text), dim,
                     near == NULL ? "; name one it has" : "; did you mean ",
                     near == NULL ? "" : near, near == NULL ? "" : "?");
}

/* ---- checks ---------------------------------------------------------------------------------- */

weft_status weft_check_dims(const weft_site *site, weft_error *error)
{
    WEFT_GIVEN(site, error);
    for (int i = 1; i < site->n_in; i++)
        for (int d = 0; d < site->in[i].shape.n_dims; d++)
            for (int k = 0; k < i; k++) {
                const weft_dim *dim = &site->in[i].shape.dims[d];
                const int e = weft_shape_find(&site->in[k].shape, dim->name);
                if (e < 0 || site->in[k].shape.dims[e].size == dim->size) continue;
                char a[160], b[160];
                return weft_fail(error, WEFT_USAGE,
                                 "%s is %s and %s is %s; dims of the same name must have the same "
                                 "size. Rename one %s, or check the layer before",
                                 weft_site_name(site, k), shape_text(&site->in[k].shape, a),
                                 weft_site_name(site, i), shape_text(&site->in[i].shape, b),
                                 dim->name);
            }
    return WEFT_OK;
}

weft_status weft_check_float(const weft_site *site, int operand, weft_error *error)
{
    WEFT_TRY(check_operand(site, operand, __func__, error));
    if (weft_dtype_is_float(site->in[operand].dtype)) return WEFT_OK;
    char floats[80];
    size_t used = 0;
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        if (weft_dtype_is_float((weft_dtype)dtype))
            used += (size_t)snprintf(floats + used, sizeof floats - used, "%s%s", used ? ", " : "",
                                     weft_dtype_name((weft_dtype)dtype));
    return weft_fail(
        error, WEFT_USAGE, "%s is %s, and only floats are possible here: %s. weft_cast it",
        weft_site_name(site, operand), weft_dtype_name(site->in[operand].dtype), floats);
}

weft_status weft_check_ids(const weft_site *site, int operand, weft_error *error)
{
    WEFT_TRY(check_operand(site, operand, __func__, error));
    if (site->in[operand].dtype == WEFT_I32) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s is %s, and indices and conditions are i32; weft_cast it",
                     weft_site_name(site, operand), weft_dtype_name(site->in[operand].dtype));
}

weft_status weft_check_dtype(weft_dtype dtype, weft_error *error)
{
    if ((unsigned)dtype < WEFT_DTYPES) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%d is no dtype; there are %s", (int)dtype,
                     weft_dtype_names());
}

weft_status weft_check_same_dtype(const weft_site *site, weft_error *error)
{
    WEFT_GIVEN(site, error);
    for (int i = 1; i < site->n_in; i++)
        if (site->in[i].dtype != site->in[0].dtype)
            return weft_fail(error, WEFT_USAGE,
                             "%s is %s and %s is %s; operands have one dtype. weft_cast one",
                             weft_site_name(site, 0), weft_dtype_name(site->in[0].dtype),
                             weft_site_name(site, i), weft_dtype_name(site->in[i].dtype));
    return WEFT_OK;
}

/* "f32, f64, bf16": what an element op makes what is asked for of. */
static void print_dtypes(const weft_op *op, weft_dtype in, weft_dtype out, char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int dtype = 0; dtype < WEFT_DTYPES && used < room; dtype++) {
        weft_element_way way;
        const weft_dtype other = (weft_dtype)dtype;
        if (weft_element_find(op->element, other, in == out ? other : out, &way))
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "",
                                     weft_dtype_name(other));
    }
}

/* Whether the op's element table has block functions for these dtypes. */
static weft_status check_block(const weft_site *site, weft_error *error)
{
    if (site->op == NULL || site->op->element == NULL || site->n_in == 0) return WEFT_OK;
    const weft_dtype in = site->in[site->n_in - 1].dtype, out = site->out[0].dtype;
    weft_element_way way;
    if (weft_element_find(site->op->element, in, out, &way)) return WEFT_OK;
    char there[80];
    print_dtypes(site->op, in, out, there, sizeof there);
    return weft_fail(
        error, WEFT_USAGE, "%s is %s, for which %s is not defined; it is for %s. weft_cast it",
        weft_site_name(site, site->n_in - 1), weft_dtype_name(in), site->op->name, there);
}

/* ---- infer ----------------------------------------------------------------------------------- */

weft_status weft_infer_same(weft_site *site, weft_error *error)
{
    WEFT_TRY(check_operand(site, 0, __func__, error));
    site->n_out = 1;
    site->out[0] = site->in[0];
    return check_block(site, error);
}

weft_status weft_broadcast_shape(const weft_site *site, weft_shape *shape, weft_error *error)
{
    WEFT_TRY(check_operand(site, 0, __func__, error));
    WEFT_GIVEN(shape, error);
    WEFT_TRY(weft_check_dims(site, error));
    int most = 0;
    for (int i = 1; i < site->n_in; i++)
        if (site->in[i].shape.n_dims > site->in[most].shape.n_dims) most = i;
    *shape = site->in[most].shape;
    for (int i = 0; i < site->n_in; i++)
        for (int d = 0; d < site->in[i].shape.n_dims; d++) {
            const weft_dim *dim = &site->in[i].shape.dims[d];
            if (weft_shape_find(shape, dim->name) >= 0) continue;
            if (shape->n_dims == WEFT_MAX_DIMS)
                return weft_fail(error, WEFT_USAGE,
                                 "the operands have more than %d dims together (%s is "
                                 "one too many); rename those that should match",
                                 WEFT_MAX_DIMS, dim->name);
            shape->dims[shape->n_dims++] = *dim;
        }
    return WEFT_OK;
}

weft_status weft_infer_broadcast(weft_site *site, weft_error *error)
{
    WEFT_TRY(check_operand(site, 0, __func__, error));
    WEFT_TRY(weft_check_same_dtype(site, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    WEFT_TRY(weft_broadcast_shape(site, &site->out[0].shape, error));
    return check_block(site, error);
}

weft_status weft_infer_compare(weft_site *site, weft_error *error)
{
    WEFT_TRY(check_operand(site, 0, __func__, error));
    WEFT_TRY(weft_check_same_dtype(site, error));
    site->n_out = 1;
    site->out[0].dtype = WEFT_I32;
    return weft_broadcast_shape(site, &site->out[0].shape, error);
}

weft_status weft_infer_generator(weft_site *site, weft_error *error)
{
    const weft_generator_attributes *attributes = site->attributes;
    site->n_out = 1;
    site->out[0] = attributes->type;
    WEFT_TRY(weft_check_dtype(attributes->type.dtype, error));
    const weft_dtype out = site->out[0].dtype;
    weft_element_way way;
    if (weft_element_find(site->op->element, out, out, &way)) return WEFT_OK;
    char there[80];
    print_dtypes(site->op, out, out, there, sizeof there);
    return weft_fail(error, WEFT_USAGE,
                     "%s is not defined for %s; it is for %s. Make one of these and weft_cast it",
                     site->op->name, weft_dtype_name(out), there);
}

weft_value weft_emit_random(weft_graph *graph, const weft_op *op, weft_dtype dtype,
                            weft_shape shape, double first, double second)
{
    weft_generator_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_shape(graph, op->name, &shape, &attributes.type.shape))
        return weft_no_value(graph);
    attributes.type.dtype = dtype;
    attributes.element.number[0] = first;
    attributes.element.number[1] = second;
    attributes.element.random = weft_graph_next_random(graph);
    return weft_emit(graph, op, NULL, 0, &attributes, sizeof attributes);
}

weft_status weft_infer_reduce(weft_site *site, weft_error *error)
{
    const weft_reduced_attributes *attributes = site->attributes;
    const weft_combine combine = attributes->reduce.combine;
    if (combine == WEFT_LSE || combine == WEFT_ARGMAX || combine == WEFT_MOMENTS)
        WEFT_TRY(weft_check_float(site, 0, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    site->out[0].shape = attributes->out;
    return WEFT_OK;
}

weft_status weft_infer_finish(weft_site *site, weft_error *error)
{
    weft_shape shape = site->in[0].shape;
    if (shape.n_dims == 0 || strcmp(shape.dims[shape.n_dims - 1].name, WEFT_STATE_DIM) != 0)
        return weft_fail(error, WEFT_INTERNAL, "the operand is no state of a reduction");
    shape.dims[--shape.n_dims] = (weft_dim){NULL, 0};
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, shape};
    return WEFT_OK;
}

weft_status weft_infer_finish_pair(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_infer_finish(site, error));
    site->out[site->n_out++] = site->out[0];
    return WEFT_OK;
}

/* ---- factors --------------------------------------------------------------------------------- */

/* Whether a factor that runs through operand or result dim `name` is there already. */
static bool has_factor(const weft_site *site, const weft_factors *factors, const char *name)
{
    for (int f = 0; f < factors->n_factors; f++) {
        const weft_factor *factor = &factors->factors[f];
        for (int i = 0; i < site->n_in; i++)
            if (factor->in[i] >= 0 && strcmp(site->in[i].shape.dims[factor->in[i]].name, name) == 0)
                return true;
        for (int i = 0; i < site->n_out; i++)
            if (factor->out[i] >= 0 &&
                strcmp(site->out[i].shape.dims[factor->out[i]].name, name) == 0)
                return true;
    }
    return false;
}

weft_factor *weft_factor_new(weft_factors *factors, weft_combine combine)
{
    if (factors == NULL || factors->n_factors < 0 || factors->n_factors >= WEFT_MAX_FACTORS)
        return NULL;
    weft_factor *factor = &factors->factors[factors->n_factors];
    memset(factors->window[factors->n_factors++], 0, sizeof factors->window[0]);
    memset(factor->in, -1, sizeof factor->in);
    memset(factor->out, -1, sizeof factor->out);
    factor->combine = (uint8_t)combine;
    factor->even = false;
    return factor;
}

static void add_by_name(const weft_site *site, const char *name, weft_combine combine,
                        weft_factors *factors)
{
    if (strcmp(name, WEFT_STATE_DIM) == 0 || has_factor(site, factors, name)) return;
    if (factors->n_factors == WEFT_MAX_FACTORS) return; /* that dim stays whole */
    weft_factor *factor = weft_factor_new(factors, combine);
    bool everywhere = true;
    for (int i = 0; i < site->n_in; i++)
        factor->in[i] = (int8_t)weft_shape_find(&site->in[i].shape, name);
    for (int i = 0; i < site->n_out; i++) {
        factor->out[i] = (int8_t)weft_shape_find(&site->out[i].shape, name);
        everywhere = everywhere && factor->out[i] >= 0;
    }
    if (!everywhere && combine == WEFT_NOT_PARTIAL) factors->n_factors--;
}

void weft_factors_by_name(const weft_site *site, weft_combine combine, weft_factors *factors)
{
    if (factors == NULL) return;
    factors->n_factors = 0;
    if (site == NULL) return;
    for (int i = 0; i < site->n_out; i++)
        for (int d = 0; d < site->out[i].shape.n_dims; d++)
            add_by_name(site, site->out[i].shape.dims[d].name, combine, factors);
    for (int i = 0; i < site->n_in; i++)
        for (int d = 0; d < site->in[i].shape.n_dims; d++)
            add_by_name(site, site->in[i].shape.dims[d].name, combine, factors);
}

void weft_factors_whole(const weft_site *site, const char *name, weft_factors *factors)
{
    int kept = 0;
    if (site == NULL || name == NULL || factors == NULL) return;
    for (int f = 0; f < factors->n_factors; f++) {
        const weft_factors one = {1, {factors->factors[f]}};
        if (has_factor(site, &one, name)) continue;
        memmove(factors->window[kept], factors->window[f], sizeof factors->window[f]);
        factors->factors[kept++] = factors->factors[f];
    }
    factors->n_factors = kept;
}

bool weft_shares_blocks(const weft_spec *spec, int dim, int64_t blocks, const weft_mesh *mesh)
{
    for (int a = 0; a < spec->n_split[dim]; a++)
        if (blocks % weft_mesh_axis_size(mesh, spec->split[dim][a]) == 0) return true;
    return false;
}

void weft_factor_show(const weft_site *site, weft_factors *factors, int operand,
                      const weft_window *window)
{
    if (site == NULL || factors == NULL || window == NULL) return;
    if (operand < 0 || operand >= WEFT_MAX_IN || factors->n_factors < 1 ||
        factors->n_factors > WEFT_MAX_FACTORS || !weft_window_is_valid(window))
        return;
    const int f = factors->n_factors - 1, d = factors->factors[f].in[operand];
    if (d < 0 || d >= WEFT_MAX_DIMS) return;
    const bool is_itself = window->lead == site->in[operand].shape.dims[d].size &&
                           window->low == 0 && window->high == 0 && window->stride == window->over;
    if (!is_itself) factors->window[f][operand] = *window;
}

void weft_factors_by_place(const weft_site *site, const char *dim, const weft_window *window,
                           weft_factors *factors)
{
    if (site == NULL || factors == NULL) return;
    const weft_shape *in = &site->in[0].shape;
    const int shown = dim != NULL && window != NULL ? weft_shape_find(in, dim) : -1;
    factors->n_factors = 0;
    for (int d = 0; d < in->n_dims; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = factor->out[0] = (int8_t)d;
        if (d == shown) weft_factor_show(site, factors, 0, window);
    }
}

void weft_factors_pass(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, WEFT_NOT_PARTIAL, factors);
}

void weft_factors_reduce(const weft_site *site, weft_factors *factors)
{
    const weft_reduced_attributes *attributes = site->attributes;
    weft_factors_by_name(site, attributes->reduce.combine, factors);
}

/* ---- emitting -------------------------------------------------------------------------------- */

weft_value weft_emit_element(const weft_op *op, const weft_value *in, int n_in, double n0,
                             double n1)
{
    weft_element_attributes attributes;
    memset(&attributes, 0, sizeof attributes); /* padding too: equal attributes are equal bytes */
    attributes.number[0] = n0;
    attributes.number[1] = n1;
    return weft_emit(NULL, op, in, n_in, &attributes, sizeof attributes);
}

bool weft_graph_dim(weft_graph *graph, const char *op, weft_dim dim,
                    weft_dim_attributes *attributes)
{
    weft_shape shape;
    const weft_shape one = weft_shape_make(&dim, 1);
    memset(attributes, 0, sizeof *attributes);
    if (!weft_graph_shape(graph, op, &one, &shape)) return false;
    attributes->dim = shape.dims[0].name;
    attributes->size = shape.dims[0].size;
    return true;
}

weft_value weft_emit_dim(const weft_op *op, const weft_value *in, int n_in, weft_dim dim)
{
    weft_dim_attributes attributes;
    if (op == NULL || in == NULL || n_in < 1) return weft_emit(NULL, op, in, n_in, NULL, 0);
    if (!weft_graph_dim(in[0].graph, op->name, dim, &attributes)) return weft_no_value(in[0].graph);
    return weft_emit(in[0].graph, op, in, n_in, &attributes, sizeof attributes);
}

weft_dim weft_state_dim(weft_graph *graph, weft_combine combine)
{
    if (weft_graph_status(graph) != WEFT_OK) return (weft_dim){NULL, 0};
    return (weft_dim){weft_graph_intern(graph, WEFT_STATE_DIM), weft_combine_width(combine)};
}

int weft_values_given(weft_values values)
{
    return values.values == NULL || values.n_values < 0 ? 0 : values.n_values;
}

/* A user's shape may be none. */
static int dims_of(const weft_shape *shape)
{
    return shape == NULL || shape->n_dims < 0 ? 0
           : shape->n_dims > WEFT_MAX_DIMS    ? WEFT_MAX_DIMS
                                              : shape->n_dims;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

double weft_site_flops(const weft_site *site)
{
    if (site->op->flops) return site->op->flops(site);
    return site->n_out > 0 ? weft_count_of(&site->out[0].shape) : 0;
}

double weft_count_of(const weft_shape *shape)
{
    double count = 1;
    if (shape == NULL) return 0;
    for (int d = 0; d < shape->n_dims && d < WEFT_MAX_DIMS; d++)
        count *= (double)shape->dims[d].size;
    return count;
}

weft_shape weft_shape_without(const weft_shape *shape, const char *name)
{
    weft_shape rest;
    memset(&rest, 0, sizeof rest);
    for (int d = 0; d < dims_of(shape); d++)
        if (name == NULL || !same_name(shape->dims[d].name, name))
            rest.dims[rest.n_dims++] = shape->dims[d];
    return rest;
}

bool weft_shape_same_dims(const weft_shape *a, const weft_shape *b)
{
    if (dims_of(a) != dims_of(b) || a == NULL || b == NULL) return false;
    for (int d = 0; d < dims_of(a); d++)
        if (weft_shape_find(b, a->dims[d].name) < 0) return false;
    return true;
}

bool weft_shape_same_order(const weft_shape *a, const weft_shape *b)
{
    if (dims_of(a) != dims_of(b) || a == NULL || b == NULL) return false;
    for (int d = 0; d < dims_of(a); d++)
        if (!same_name(a->dims[d].name, b->dims[d].name)) return false;
    return true;
}
