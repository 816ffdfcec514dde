/* max_pool: the largest of the elements of x that a window shows, and which tap that was; ties: the first, a NaN
 * before all. Elements outside x are left out; the largest of none is -inf, and it has no tap.
 *
 * Factors: dims pass by place; those of the windows are seen through them. Not linear.
 * Gradient: unpool, by the taps.
 */
#include <string.h>

#include "pool.h"
#include "reindex.h"
#include "weft/ops.h"

#define OF(s, member) #member #s, offsetof(weft_pool_attributes, window[s].member)
#define WINDOW(s)                                                                                  \
    {OF(s, x), &weft_field_name}, {OF(s, y), &weft_field_name},                                    \
        {OF(s, x_size), &weft_field_int64}, {OF(s, y_size), &weft_field_int64},                    \
        {OF(s, taps), &weft_field_int64}, {OF(s, stride), &weft_field_int64},                      \
        {OF(s, dilation), &weft_field_int64},                                                      \
    {                                                                                              \
        OF(s, offset), &weft_field_int64                                                           \
    }
static const weft_field fields[] = {WEFT_FIELD(weft_pool_attributes, n_windows), WINDOW(0),
                                    WINDOW(1), WINDOW(2)};
const weft_attributes weft_attributes_pool = WEFT_ATTRIBUTES(weft_pool_attributes, fields);

/* ---- shared with unpool and pool_pick ---------------------------------------------------------- */

static weft_dim dim_of(const weft_pool_window *window, weft_pool_side side)
{
    return side == WEFT_POOL_X ? (weft_dim){window->x, window->x_size}
                               : (weft_dim){window->y, window->y_size};
}

weft_status weft_pool_shape(const weft_site *site, int operand, weft_pool_side from, weft_shape *to,
                            weft_error *error)
{
    const weft_pool_attributes *pool = site->attributes;
    const weft_shape *shape = &site->in[operand].shape;
    *to = *shape;
    for (int s = 0; s < pool->n_windows; s++) {
        const weft_dim dim = dim_of(&pool->window[s], from);
        WEFT_TRY(weft_check_dim(site, operand, dim.name, dim.size, error));
        to->dims[weft_shape_find(shape, dim.name)] = dim_of(&pool->window[s], 1 - from);
    }
    return WEFT_OK;
}

weft_status weft_pool_check_taps(const weft_site *site, const weft_shape *y, weft_error *error)
{
    const weft_shape *taps = &site->in[1].shape;
    bool fits = taps->n_dims == y->n_dims;
    for (int d = 0; fits && d < y->n_dims; d++)
        fits = strcmp(taps->dims[d].name, y->dims[d].name) == 0 &&
               taps->dims[d].size == y->dims[d].size;
    if (fits) return WEFT_OK;
    char text[2][160];
    weft_shape_print(taps, text[0], sizeof text[0]);
    weft_shape_print(y, text[1], sizeof text[1]);
    return weft_fail(error, WEFT_USAGE,
                     "the taps are %s and what was pooled is %s; they are the same", text[0],
                     text[1]);
}

/* What of one side goes with a block of the other. */
static weft_window window_to(const weft_pool_window *w, weft_pool_side seen)
{
    const int64_t spread = w->dilation * (w->taps - 1);
    if (seen == WEFT_POOL_X)
        return (weft_window){.lead = w->y_size,
                             .low = w->offset,
                             .high = w->offset + spread,
                             .stride = (int32_t)w->stride,
                             .over = 1};
    return (weft_window){.lead = w->x_size,
                         .low = -w->offset - spread,
                         .high = -w->offset,
                         .stride = 1,
                         .over = (int32_t)w->stride};
}

void weft_pool_factors(const weft_site *site, weft_pool_side of_seen, uint32_t seen,
                       weft_factors *factors)
{
    const weft_pool_attributes *pool = site->attributes;
    factors->n_factors = 0;
    for (int d = 0; d < site->in[0].shape.n_dims; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        for (int i = 0; i < site->n_in; i++)
            factor->in[i] = (int8_t)d;
        for (int o = 0; o < site->n_out; o++)
            factor->out[o] = (int8_t)d;
        for (int s = 0; s < pool->n_windows; s++) {
            const weft_window window = window_to(&pool->window[s], of_seen);
            const char *name = dim_of(&pool->window[s], of_seen).name;
            for (int i = 0; i < site->n_in; i++)
                if ((seen >> i & 1) && strcmp(site->in[i].shape.dims[d].name, name) == 0)
                    weft_factor_show(site, factors, i, &window);
        }
    }
}

/* ---- the op ------------------------------------------------------------------------------------ */

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_pool_attributes *pool = site->attributes;
    site->n_out = 2;
    site->out[0].dtype = site->in[0].dtype;
    site->out[1].dtype = WEFT_I32;
    WEFT_TRY(weft_pool_shape(site, 0, WEFT_POOL_X, &site->out[0].shape, error));
    site->out[1].shape = site->out[0].shape;
    for (int s = 0; s < pool->n_windows; s++) {
        const weft_pool_window *w = &pool->window[s];
        const weft_reindex_attributes first = {.stride = w->stride,
                                               .offset = w->offset,
                                               .over = 1,
                                               .size = w->x_size,
                                               .to_size = w->y_size};
        if (weft_reindex_reaches(first, w->taps, w->dilation)) continue;
        return weft_fail(
            error, WEFT_USAGE,
            "nothing of %s is read: no element of %s:%lld with %lld taps, %lld apart, beginning at "
            "%lld, is one of %s:%lld. Look at the padding",
            weft_site_name(site, 0), w->y, (long long)w->y_size, (long long)w->taps,
            (long long)w->stride, (long long)w->offset, w->x, (long long)w->x_size);
    }
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_pool_factors(site, WEFT_POOL_X, 1, factors);
}

static void gradient(weft_vjp *vjp)
{
    if (vjp->dout[0].id != 0)
        vjp->din[0] = weft_unpool(vjp->dout[0], vjp->out[1], vjp->site->attributes);
}

static double flops(const weft_site *site)
{
    const weft_pool_attributes *pool = site->attributes;
    double count = weft_count_of(&site->out[0].shape);
    for (int s = 0; s < pool->n_windows; s++)
        count *= (double)pool->window[s].taps;
    return count;
}

const weft_op weft_op_max_pool = {
    .name = "max_pool",
    .attributes = &weft_attributes_pool,
    .infer = infer,
    .factors = factors,
    .gradient = gradient,
    .flops = flops,
};

/* ---- builders ---------------------------------------------------------------------------------- */

static bool take_window(weft_graph *graph, const weft_spatial *of, weft_pool_window *window)
{
    const int64_t most = WEFT_MAX_STRIDE, furthest = (int64_t)1 << 50;
    weft_dim_attributes in, tap, out;
    if (!weft_graph_dim(graph, "max_pool", of->in, &in) ||
        !weft_graph_dim(graph, "max_pool", of->tap, &tap) ||
        !weft_graph_dim(graph, "max_pool", of->out, &out))
        return false;
    *window = (weft_pool_window){.x = in.dim,
                                 .y = out.dim,
                                 .x_size = in.size,
                                 .y_size = out.size,
                                 .taps = tap.size,
                                 .stride = of->stride != 0 ? of->stride : 1,
                                 .dilation = of->dilation != 0 ? of->dilation : 1};
    if (window->stride >= 1 && window->stride <= most && window->dilation >= 1 &&
        window->dilation <= most && tap.size <= most && of->before >= -furthest &&
        of->before <= furthest) {
        window->offset = -of->before;
        return true;
    }
    (void)weft_graph_fail(graph,
                          "max_pool: along %s %lld taps, stride %lld, dilation %lld, %lld elements "
                          "before the first; taps, stride and dilation are from 1 to %lld",
                          in.dim, (long long)tap.size, (long long)window->stride,
                          (long long)window->dilation, (long long)of->before, (long long)most);
    return false;
}

weft_value weft_max_pool(weft_value x, weft_spatials spatial)
{
    weft_pool_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (x.id == 0) return weft_no_value(x.graph);
    if (spatial.dims == NULL || spatial.n_dims < 1 || spatial.n_dims > WEFT_CONV_WINDOWS)
        return weft_graph_fail(x.graph, "max_pool: %d dims of space; there are 1 to %d",
                               spatial.dims == NULL ? 0 : spatial.n_dims, WEFT_CONV_WINDOWS);
    attributes.n_windows = spatial.n_dims;
    double taps = 1;
    for (int s = 0; s < spatial.n_dims; s++) {
        if (!take_window(x.graph, &spatial.dims[s], &attributes.window[s]))
            return weft_no_value(x.graph);
        taps *= (double)attributes.window[s].taps;
    }
    if (taps > INT32_MAX)
        return weft_graph_fail(x.graph, "max_pool: %.0f taps together; there are 2^31 at most",
                               taps);
    const weft_dtype dtype = weft_dtype_of(x);
    const weft_value wide = weft_wide(x);
    return weft_cast(
        weft_emit(x.graph, &weft_op_max_pool, &wide, 1, &attributes, sizeof attributes), dtype);
}
