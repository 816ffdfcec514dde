/* initial.c: initial values, a pure function of (seed, variable's name, element index): the same
 * bits on every mesh, layout and launcher.
 */
#include "program.h"

#include "random.h"

#include <math.h>

/* FNV-1a: the Philox stream of a name. */
static uint32_t stream_of(const char *name)
{
    uint32_t hash = 0x811C9DC5u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x01000193u;
    return hash;
}

typedef double (*initial_rule)(const weft_initial *initial, weft_philox_key key, int64_t index);

static double constant(const weft_initial *initial, weft_philox_key key, int64_t index)
{
    (void)key, (void)index;
    return initial->a;
}

static double uniform(const weft_initial *initial, weft_philox_key key, int64_t index)
{
    return initial->a + (initial->b - initial->a) * weft_random_unit(key, index);
}

static double normal(const weft_initial *initial, weft_philox_key key, int64_t index)
{
    return initial->a + initial->b * weft_random_gauss(key, index);
}

static double formula(const weft_initial *initial, weft_philox_key key, int64_t index)
{
    (void)key;
    return initial->a * cos(initial->b * (double)index);
}

static const initial_rule rules[] = {[WEFT_INITIAL_CONSTANT] = constant,
                                     [WEFT_INITIAL_NORMAL] = normal,
                                     [WEFT_INITIAL_UNIFORM] = uniform,
                                     [WEFT_INITIAL_FORMULA] = formula};

static void put(void *data, weft_dtype dtype, int64_t at, double value)
{
    if (dtype == WEFT_F32) ((float *)data)[at] = (float)value;
    if (dtype == WEFT_F64) ((double *)data)[at] = value;
    if (dtype == WEFT_I32) ((int32_t *)data)[at] = (int32_t)value;
}

void weft_initialize(const weft_variable_attributes *variable, uint64_t seed, const weft_view *view)
{
    weft_philox_key key = {.seed = seed, .stream = stream_of(variable->name), .step = 0};
    initial_rule rule = rules[variable->initial.kind];
    int n_dims = view->shape.n_dims;
    int64_t at[WEFT_MAX_DIMS], count = weft_view_count(view);
    for (int d = 0; d < n_dims; d++)
        at[d] = view->box.begin[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t index = 0;
        for (int d = 0; d < n_dims; d++)
            index = index * view->shape.dims[d].size + at[d];
        put(view->data, view->dtype, i, rule(&variable->initial, key, index));
        for (int d = n_dims - 1; d >= 0; d--) { /* the next element, row-major */
            if (++at[d] < view->box.end[d]) break;
            at[d] = view->box.begin[d];
        }
    }
}
