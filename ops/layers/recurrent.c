/* recurrent: layers with a state: one scan over the elements of a dim. The contribution of x to the gates is one
 * product before the scan; a trip adds that of the state. Both directions are one scan, too: along a dim of two
 * elements, the second reversed. */
#include <math.h>

#include "layer.h"
#include "op.h"
#include "weft/ops.h"
#include "weft/scan.h"

enum { MOST_STATES = 2 };

typedef struct layer layer;

/* What tells one kind of layer from another. */
typedef struct cell {
    const char *name;
    int n_gates, n_states;
    /* More variables of its own; NULL: none. */
    void (*begin)(layer *l);
    /* One trip: from what x and h give to the gates, and the states, the next states. */
    void (*step)(const layer *l, weft_value of_x, weft_value of_h, const weft_value *state,
                 weft_value *next);
} cell;

struct layer {
    const cell *cell;
    const weft_recurrent_options *options;
    weft_graph *graph;
    weft_dtype dtype;
    weft_dim gate, from;
    weft_shape state; /* dims of a state */
    weft_value input, recurrent, bias, new_bias;
};

/* ---- the kinds ----------------------------------------------------------------------------------- */

static void step_lstm(const layer *l, weft_value of_x, weft_value of_h, const weft_value *state,
                      weft_value *next)
{
    const weft_value all = weft_add(of_x, of_h);
    const weft_value i = weft_sigmoid(weft_unstack(all, l->gate, 0)),
                     f = weft_sigmoid(weft_unstack(all, l->gate, 1)),
                     g = weft_tanh(weft_unstack(all, l->gate, 2)),
                     o = weft_sigmoid(weft_unstack(all, l->gate, 3));
    next[1] = weft_add(weft_mul(f, state[1]), weft_mul(i, g));
    next[0] = weft_mul(o, weft_tanh(next[1]));
}

static void step_gru(const layer *l, weft_value of_x, weft_value of_h, const weft_value *state,
                     weft_value *next)
{
    const weft_value all = weft_add(of_x, of_h);
    const weft_value r = weft_sigmoid(weft_unstack(all, l->gate, 0)),
                     z = weft_sigmoid(weft_unstack(all, l->gate, 1));
    const weft_value old = weft_add(weft_unstack(of_h, l->gate, 2), l->new_bias);
    const weft_value n = weft_tanh(weft_add(weft_unstack(of_x, l->gate, 2), weft_mul(r, old)));
    next[0] = weft_add(n, weft_mul(z, weft_sub(state[0], n)));
}

/* ---- variables ----------------------------------------------------------------------------------- */

static weft_shape with_direction(const layer *l, weft_shape shape)
{
    if (l->options->direction.name == NULL) return shape;
    weft_shape both = {.n_dims = shape.n_dims + 1};
    both.dims[0] = l->options->direction;
    for (int d = 0; d < shape.n_dims; d++)
        both.dims[d + 1] = shape.dims[d];
    return both;
}

static weft_value variable(const layer *l, const char *name, weft_shape shape,
                           const weft_initial *given)
{
    const double most = 1.0 / sqrt((double)l->options->hidden.size);
    const weft_initial initial = given != NULL ? *given : weft_uniform(-most, most);
    const weft_layer common = {l->cell->name, l->options->name, l->graph, l->dtype, NULL};
    return weft_cast(weft_layer_variable(&common, name, with_direction(l, shape), initial),
                     l->dtype);
}

static void begin_gru(layer *l)
{
    l->new_bias = variable(l, "new_bias", WEFT_DIMS(l->options->hidden), l->options->biases);
}

static void make_variables(layer *l)
{
    const weft_recurrent_options *o = l->options;
    l->input = variable(l, "input", WEFT_DIMS(l->gate, o->feature, o->hidden), o->weights);
    l->recurrent = variable(l, "state", WEFT_DIMS(l->gate, l->from, o->hidden), o->weights);
    l->bias = variable(l, "bias", WEFT_DIMS(l->gate, o->hidden), o->biases);
    if (l->cell->begin != NULL) l->cell->begin(l);
}

/* ---- dims ---------------------------------------------------------------------------------------- */

/* x's dims without feature and without `over`, then those that a layer adds. */
static weft_shape state_shape(const layer *l, const weft_shape *x)
{
    const weft_recurrent_options *o = l->options;
    weft_shape shape = weft_shape_without(x, o->feature.name);
    shape = weft_shape_without(&shape, o->over.name);
    if (o->direction.name != NULL) shape.dims[shape.n_dims++] = o->direction;
    shape.dims[shape.n_dims++] = o->hidden;
    return shape;
}

static weft_shape gates_shape(const layer *l, bool is_over)
{
    weft_shape shape = {0};
    if (is_over) shape.dims[shape.n_dims++] = l->options->over;
    for (int d = 0; d + 1 < l->state.n_dims; d++)
        shape.dims[shape.n_dims++] = l->state.dims[d];
    shape.dims[shape.n_dims++] = l->gate;
    shape.dims[shape.n_dims++] = l->options->hidden;
    return shape;
}

/* What the scan goes along first to last, from what lies along x, and back: as it is, turned round, or along a direction the one
 * and the other, of which every rank makes what it has. */
static weft_value turned(const layer *l, weft_value x)
{
    const weft_recurrent_options *o = l->options;
    if (o->direction.name == NULL) return o->is_reversed ? weft_flip(x, o->over) : x;
    const weft_value is_back = weft_iota(l->graph, WEFT_I32, o->direction);
    return weft_where(is_back, weft_flip(x, o->over), x);
}

/* ---- what was asked for -------------------------------------------------------------------------- */

static bool refuse(const layer *l, const char *what, weft_dim dim, weft_value x)
{
    char text[512];
    weft_shape_print(weft_shape_of(x), text, sizeof text);
    (void)weft_graph_fail(l->graph, "%s: %s %s:%lld, but x is %s", l->cell->name, what,
                          dim.name ? dim.name : "(none)", (long long)dim.size, text);
    return false;
}

static bool is_of(weft_value x, weft_dim dim)
{
    return dim.name != NULL && weft_dim_of(x, dim.name).size == dim.size && dim.size > 0;
}

static bool check_dims(const layer *l, weft_value x)
{
    const weft_recurrent_options *o = l->options;
    const weft_dim added[] = {o->hidden, l->gate, l->from, o->direction};
    if (!is_of(x, o->over)) return refuse(l, "it goes over", o->over, x);
    if (!is_of(x, o->feature)) return refuse(l, "its feature is", o->feature, x);
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        if (added[i].name != NULL && weft_shape_find(weft_shape_of(x), added[i].name) >= 0)
            return refuse(l, "it makes a dim", added[i], x);
    return true;
}

static bool check(const layer *l, weft_value x)
{
    const weft_recurrent_options *o = l->options;
    if (o->name == NULL || o->hidden.name == NULL || o->hidden.size < 1)
        weft_graph_fail(l->graph, "%s: name and hidden are to be said; hidden is %s:%lld",
                        l->cell->name, o->hidden.name ? o->hidden.name : "(none)",
                        (long long)o->hidden.size);
    else if (o->direction.name != NULL && (o->direction.size != 2 || o->is_reversed))
        weft_graph_fail(l->graph,
                        "%s: direction is %s:%lld%s; it is of size 2, there and back, and goes "
                        "without is_reversed",
                        l->cell->name, o->direction.name, (long long)o->direction.size,
                        o->is_reversed ? " and is_reversed is set" : "");
    else
        return check_dims(l, x);
    return false;
}

/* ---- the scan ------------------------------------------------------------------------------------ */

static weft_value first_state(const layer *l, weft_value given)
{
    return given.id != 0 ? weft_transpose(given, l->state)
                         : weft_constant(l->graph, l->dtype, l->state, 0.0);
}

/* Where the mask is 0 the states stay; returns the trip's result. */
static weft_value hold(const layer *l, weft_value mask, const weft_value *state, weft_value *next)
{
    if (mask.id == 0) return next[0];
    const weft_value is_there = weft_scan_each(mask, l->options->over);
    for (int k = 0; k < l->cell->n_states; k++)
        next[k] = weft_where(is_there, next[k], state[k]);
    return weft_where(is_there, next[0], weft_constant(l->graph, l->dtype, WEFT_SCALAR, 0.0));
}

static weft_value go(const layer *l, weft_value of_x, weft_value mask, weft_recurrent_states *last)
{
    const weft_recurrent_options *o = l->options;
    const weft_value first[MOST_STATES] = {o->first_h, o->first_c};
    weft_value state[MOST_STATES] = {{0}}, next[MOST_STATES] = {{0}};
    for (int k = 0; k < l->cell->n_states; k++)
        state[k] = first_state(l, first[k]);
    const weft_value trip = weft_scan_begin(l->graph, o->over.size);
    for (int k = 0; k < l->cell->n_states; k++)
        state[k] = weft_scan_carry(state[k]);
    const weft_value from = weft_rename(state[0], o->hidden, l->from);
    const weft_value of_h = weft_einsum(gates_shape(l, false), from, l->recurrent);
    l->cell->step(l, weft_scan_each(of_x, o->over), of_h, state, next);
    const weft_value result = hold(l, mask, state, next);
    for (int k = 0; k < l->cell->n_states; k++)
        weft_scan_next(state[k], next[k]);
    weft_scan_end(trip);
    *last = (weft_recurrent_states){weft_scan_last(state[0]), {l->graph, 0}};
    if (l->cell->n_states > 1) last->c = weft_scan_last(state[1]);
    return weft_scan_stack(result, o->over);
}

static weft_value build(const cell *kind, weft_value x, const weft_recurrent_options *options,
                        weft_recurrent_states *last)
{
    weft_recurrent_states unread;
    if (last != NULL) *last = (weft_recurrent_states){{x.graph, 0}, {x.graph, 0}};
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(
            x.graph, "%s: options are NULL; they say name, over, feature and hidden", kind->name);
    layer l = {.cell = kind, .options = options, .graph = x.graph, .dtype = weft_dtype_of(x)};
    l.gate = (weft_dim){"gate", kind->n_gates}, l.from = (weft_dim){"from", options->hidden.size};
    if (!check(&l, x)) return weft_no_value(x.graph);
    make_variables(&l);
    l.state = state_shape(&l, weft_shape_of(x));
    const weft_value of_x = weft_einsum(gates_shape(&l, true), turned(&l, x), l.input);
    const weft_value mask = options->mask.id != 0 ? turned(&l, options->mask) : options->mask;
    return turned(&l, go(&l, weft_add(of_x, l.bias), mask, last != NULL ? last : &unread));
}

/* ---- public -------------------------------------------------------------------------------------- */

weft_value weft_lstm(weft_value x, const weft_recurrent_options *options,
                     weft_recurrent_states *last)
{
    static const cell lstm = {"lstm", 4, 2, NULL, step_lstm};
    return build(&lstm, x, options, last);
}

weft_value weft_gru(weft_value x, const weft_recurrent_options *options,
                    weft_recurrent_states *last)
{
    static const cell gru = {"gru", 3, 1, begin_gru, step_gru};
    return build(&gru, x, options, last);
}
