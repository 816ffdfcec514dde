/* compose_ctc.c: connectionist temporal classification: the likelihood of a row of labels over all ways to spread it over time, as a
 * scan along time.
 *
 * The labels with a blank before, between and behind them are states. A state's number is the log-likelihood of all
 * ways that have come so far and stand there: a trip adds up those that stay, come from the state before, or skip the
 * blank between two different labels. An unreachable state has the number NEVER, which is finite, and so are the
 * gradients of its readers.
 * source  Graves et al., Connectionist temporal classification (2006)
 */
#include <math.h>
#include <string.h>

#include "op.h"
#include "weft/ops.h"
#include "weft/scan.h"

static const double NEVER = -1e30, IMPOSSIBLE = -1e29;

/* One call. */
typedef struct ctc {
    weft_graph *graph;
    weft_value logits, labels; /* f32 or f64 [batch, time, classes]; i32 [batch, label] */
    weft_ctc_options options;
    weft_shape batch;
    weft_dim state; /* 2 label + 1 */
} ctc;

static weft_value integer(const ctc *c, int64_t value)
{
    return weft_constant(c->graph, WEFT_I32, WEFT_SCALAR, (double)value);
}

static weft_value number(const ctc *c, double value)
{
    return weft_constant(c->graph, weft_dtype_of(c->logits), WEFT_SCALAR, value);
}

static weft_value state_number(const ctc *c)
{
    return weft_iota(c->graph, WEFT_I32, c->state);
}

static weft_value is_label(const ctc *c)
{
    return weft_mod(state_number(c), integer(c, 2));
}

/* ---- what states stand for ----------------------------------------------------------------------- */

/* i32 [batch, state]: blank, label, blank, ... */
static weft_value class_of_states(const ctc *c)
{
    const weft_value half = weft_floor_div(state_number(c), integer(c, 2));
    const weft_value label = weft_gather(c->labels, half, c->options.label);
    return weft_where(is_label(c), label, integer(c, c->options.blank));
}

/* i32 [batch, state]: 1 for a label that is another than the one before it. */
static weft_value may_skip(const ctc *c, weft_value classes)
{
    const weft_value before = weft_shift_along(classes, c->state, 2);
    return weft_mul(weft_mul(is_label(c), weft_less(integer(c, 2), state_number(c))),
                    weft_not_equal(classes, before));
}

/* i32 [batch, state]: 1 for a blank, and for a label that is a class and no blank. */
static weft_value is_class(const ctc *c, weft_value classes)
{
    const weft_value is_one = weft_mul(weft_less(integer(c, -1), classes),
                                       weft_less(classes, integer(c, c->options.classes.size)));
    const weft_value is_said = weft_not_equal(classes, integer(c, c->options.blank));
    return weft_mul(is_one, weft_equal(is_said, is_label(c)));
}

/* What lies behind a row's frames is not looked at, a NaN neither. */
static weft_value counted(const ctc *c)
{
    if (c->options.n_times.id == 0) return c->logits;
    const weft_value frame = weft_iota(c->graph, WEFT_I32, c->options.time);
    return weft_where(weft_less(frame, c->options.n_times), c->logits, number(c, 0.0));
}

/* [batch, state, time]: the log-likelihood of its class; never, of one that is none. */
static weft_value emitted_by(const ctc *c, weft_value log_p, weft_value classes)
{
    const weft_value picked = weft_pick(log_p, classes, c->options.classes);
    const weft_value never = number(c, NEVER);
    return weft_where(is_class(c, classes), weft_maximum(picked, never), never);
}

/* ---- a trip -------------------------------------------------------------------------------------- */

/* log(exp a + exp b + exp c). What is taken off first changes nothing: no gradient goes through it. */
static weft_value log_of_sum(weft_value a, weft_value b, weft_value c)
{
    const weft_value top = weft_stop_gradient(weft_maximum(weft_maximum(a, b), c));
    const weft_value sum =
        weft_add(weft_add(weft_exp(weft_sub(a, top)), weft_exp(weft_sub(b, top))),
                 weft_exp(weft_sub(c, top)));
    return weft_add(top, weft_log(sum));
}

static weft_value after_trip(const ctc *c, weft_value so_far, weft_value emitted, weft_value skips)
{
    const weft_value never = number(c, NEVER);
    const weft_value one =
        weft_where(state_number(c), weft_shift_along(so_far, c->state, 1), never);
    const weft_value two = weft_where(skips, weft_shift_along(so_far, c->state, 2), never);
    return weft_add(log_of_sum(so_far, one, two), emitted);
}

/* [batch, state] when all frames have been seen. emissions [batch, state, time]. */
static weft_value go_through(const ctc *c, weft_value emissions, weft_value skips)
{
    const weft_dim time = c->options.time;
    const weft_shape states = weft_shape_without(weft_shape_of(emissions), time.name);
    const weft_value first = weft_where(state_number(c), number(c, NEVER), number(c, 0.0));
    const weft_value begin = weft_broadcast_to(first, states);
    const weft_value trip = weft_scan_begin(c->graph, time.size), so_far = weft_scan_carry(begin);
    weft_value next = after_trip(c, so_far, weft_scan_each(emissions, time), skips);
    if (c->options.n_times.id != 0)
        next = weft_where(weft_less(trip, c->options.n_times), next, so_far);
    weft_scan_next(so_far, next);
    weft_scan_end(trip);
    return weft_scan_last(so_far);
}

/* ---- the end ------------------------------------------------------------------------------------- */

/* Of the blank behind the last label, and of that. A number of labels that there cannot be is no way's. */
static weft_value loss_of(const ctc *c, weft_value states)
{
    const weft_value most = integer(c, c->options.label.size);
    const weft_value said = c->options.n_labels.id != 0 ? c->options.n_labels : most;
    const weft_value n = weft_maximum(weft_minimum(said, most), integer(c, 0));
    const weft_value behind = weft_mul(n, integer(c, 2)), at = weft_sub(behind, integer(c, 1));
    const weft_value never = number(c, NEVER);
    const weft_value blank = weft_pick(states, behind, c->state);
    const weft_value label =
        weft_where(weft_less(integer(c, 0), n), weft_pick(states, at, c->state), never);
    const weft_value all = log_of_sum(blank, label, never);
    const weft_value instead = number(c, c->options.zero_infinity ? 0.0 : (double)INFINITY);
    const weft_value has_none = weft_less(all, number(c, IMPOSSIBLE)); /* NaN is no such */
    const weft_value loss = weft_where(has_none, instead, weft_neg(all));
    return weft_where(weft_equal(said, n), loss, instead);
}

/* ---- what was passed ----------------------------------------------------------------------------- */

static bool is_given(weft_value value)
{
    return value.graph != NULL || value.id != 0;
}

/* `what` is i32, and has some of the batch's dims and perhaps `more`. */
static bool fits(const ctc *c, const char *what, weft_value value, const weft_dim *more)
{
    char found[200], wanted[200];
    if (value.graph != c->graph || value.id == 0 || weft_dtype_of(value) != WEFT_I32) {
        weft_graph_fail(c->graph, "ctc_loss: the %s are no i32 value of this graph; weft_cast them",
                        what);
        return false;
    }
    weft_shape_print(weft_shape_of(value), found, sizeof found);
    weft_shape_print(&c->batch, wanted, sizeof wanted);
    for (int d = 0; d < weft_shape_of(value)->n_dims; d++) {
        const weft_dim dim = weft_shape_of(value)->dims[d];
        const int k = weft_shape_find(&c->batch, dim.name);
        if (more != NULL && strcmp(dim.name, more->name) == 0 && dim.size == more->size) continue;
        if (k >= 0 && c->batch.dims[k].size == dim.size) continue;
        weft_graph_fail(c->graph,
                        "ctc_loss: the %s are %s; beside %s they may have what numbers the rows of "
                        "logits, %s",
                        what, found, more != NULL ? more->name : "nothing", wanted);
        return false;
    }
    return true;
}

static bool check_dim(const ctc *c, const char *what, weft_value value, weft_dim *dim)
{
    weft_dim_attributes taken;
    char text[200];
    if (!weft_graph_dim(c->graph, "ctc_loss", *dim, &taken)) return false;
    *dim = (weft_dim){taken.dim, taken.size};
    if (weft_dim_of(value, taken.dim).size == taken.size) return true;
    weft_shape_print(weft_shape_of(value), text, sizeof text);
    weft_graph_fail(c->graph, "ctc_loss: %s:%lld is to be a dim of the %s, which are %s", taken.dim,
                    (long long)taken.size, what, text);
    return false;
}

static bool check(ctc *c)
{
    weft_ctc_options *o = &c->options;
    if (!check_dim(c, "logits", c->logits, &o->time) ||
        !check_dim(c, "logits", c->logits, &o->classes) ||
        !check_dim(c, "labels", c->labels, &o->label))
        return false;
    const weft_shape frames = weft_shape_without(weft_shape_of(c->logits), o->classes.name);
    c->batch = weft_shape_without(&frames, o->time.name);
    if (o->blank < 0 || o->blank >= o->classes.size)
        weft_graph_fail(c->graph, "ctc_loss: the blank is class %lld of %s:%lld; take one of them",
                        (long long)o->blank, o->classes.name, (long long)o->classes.size);
    if (o->label.size > INT32_MAX / 2 - 1)
        weft_graph_fail(c->graph, "ctc_loss: %s:%lld is too long for states in i32", o->label.name,
                        (long long)o->label.size);
    return weft_graph_status(c->graph) == WEFT_OK && fits(c, "labels", c->labels, &o->label) &&
           (!is_given(o->n_times) || fits(c, "numbers of frames", o->n_times, NULL)) &&
           (!is_given(o->n_labels) || fits(c, "numbers of labels", o->n_labels, NULL));
}

weft_value weft_ctc_loss(weft_value logits, weft_value labels, const weft_ctc_options *options)
{
    weft_graph *graph = logits.graph;
    if (graph == NULL || logits.id == 0) return weft_no_value(graph);
    if (options == NULL || labels.graph != graph || labels.id == 0)
        return weft_graph_fail(graph,
                               "ctc_loss: there are no %s; it takes logits, labels, and "
                               "options with the names of the dims",
                               options == NULL ? "options" : "labels");
    if (!weft_takes_float(logits, "ctc_loss")) return weft_no_value(graph);
    ctc c = {graph, weft_wide(logits), labels, *options};
    if (!check(&c)) return weft_no_value(graph);
    c.state = weft_dim_beside(graph, c.options.label);
    c.state.size = 2 * c.options.label.size + 1;
    const weft_value classes = class_of_states(&c);
    const weft_value log_p = weft_log_softmax(counted(&c), c.options.classes);
    const weft_value emitted = emitted_by(&c, log_p, classes);
    return loss_of(&c, go_through(&c, emitted, may_skip(&c, classes)));
}
