/* optimizers.c: the update rules: sgd, momentum, adam, adamw; their formulas are PyTorch's, letter
 * by letter.
 *
 * A rule sees one variable and its gradient and says how the variable and its slots change. Around
 * the rules, the same for all: gradients, clipping, the rate. Everything is placed as the variable
 * is stored, so with sharded storage (ZeRO) each rank updates its shard and nothing here knows.
 * source  Kingma and Ba 2015, "Adam"; Loshchilov and Hutter 2019, "Decoupled weight decay
 * regularization"
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clip.h"
#include "ir.h"
#include "weft/autodiff.h"
#include "weft/ops.h"
#include "weft/optim.h"

/* What a rule needs beside the variable; options with their defaults filled in. */
typedef struct update {
    weft_optimizer_options options;
    weft_value rate;         /* scalars, f64: corrections near 1 need the digits */
    weft_value bias1, bias2; /* 1 - beta^t; adam, adamw                           */
} update;

/* tokens: for what the rule assigns; returns how many (at most MAX_TOKENS). */
enum { MAX_TOKENS = 4 };
typedef int (*rule)(const update *u, weft_value variable, weft_value gradient, weft_value *tokens);

/* A scalar of f64 in the dtype of `like`. */
static weft_value scalar_for(weft_value scalar, weft_value like)
{
    return weft_cast(scalar, weft_dtype_of(like));
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* p -= rate g */
static int sgd(const update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    weft_value move = weft_mul(gradient, scalar_for(u->rate, variable));
    tokens[0] = weft_assign(variable, weft_sub(variable, move));
    return 1;
}

/* b = mu b + g; p -= rate b */
static int momentum(const update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    weft_value slot = weft_slot(variable, "momentum", weft_constant_of(0.0));
    weft_value velocity = weft_add(weft_scale(slot, u->options.momentum), gradient);
    weft_value move = weft_mul(velocity, scalar_for(u->rate, variable));
    tokens[0] = weft_assign(slot, velocity);
    tokens[1] = weft_assign(variable, weft_sub(variable, move));
    return 2;
}

/* m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * p = base - rate / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon) */
static int adam_from(const update *u, weft_value variable, weft_value base, weft_value gradient,
                     weft_value *tokens)
{
    const double beta1 = u->options.beta1, beta2 = u->options.beta2;
    weft_value first = weft_slot(variable, "m", weft_constant_of(0.0));
    weft_value second = weft_slot(variable, "v", weft_constant_of(0.0));
    weft_value m = weft_add(weft_scale(first, beta1), weft_scale(gradient, 1.0 - beta1));
    weft_value v =
        weft_add(weft_scale(second, beta2), weft_scale(weft_square(gradient), 1.0 - beta2));

    weft_value root = weft_mul(weft_sqrt(v), scalar_for(weft_rsqrt(u->bias2), variable));
    weft_value pace = scalar_for(weft_div(u->rate, u->bias1), variable);
    weft_value move = weft_mul(weft_div(m, weft_shift(root, u->options.epsilon)), pace);
    tokens[0] = weft_assign(first, m);
    tokens[1] = weft_assign(second, v);
    tokens[2] = weft_assign(variable, weft_sub(base, move));
    return 3;
}

static int adam(const update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    return adam_from(u, variable, variable, gradient, tokens);
}

/* The same from p (1 - rate decay): the decay is not seen by the moments. Gains and biases (one
 * dim) do not decay. */
static int adamw(const update *u, weft_value variable, weft_value gradient, weft_value *tokens)
{
    weft_value base = variable;
    if (u->options.weight_decay > 0.0 && weft_shape_of(variable)->n_dims >= 2) {
        weft_value shrink = weft_shift(weft_scale(u->rate, -u->options.weight_decay), 1.0);
        base = weft_mul(variable, scalar_for(shrink, variable));
    }
    return adam_from(u, variable, base, gradient, tokens);
}

/* ---- around the rules ------------------------------------------------------------------------ */

typedef struct named_rule {
    const char *name;
    rule rule;
    double default_rate;
} named_rule;

static double or_default(double option, double otherwise)
{
    return option == 0.0 ? otherwise : option;
}

/* 1 - beta^t, as -expm1 cannot be had in a graph: in f64 the digits lost do not matter. */
static weft_value bias_of(weft_graph *graph, double beta)
{
    weft_value power = weft_exp(weft_scale(weft_run_number(graph, WEFT_F64), log(beta)));
    return weft_shift(weft_neg(power), 1.0);
}

static bool check_options(weft_graph *graph, const char *name, const weft_optimizer_options *o)
{
    const bool betas = o->beta1 > 0.0 && o->beta1 < 1.0 && o->beta2 > 0.0 && o->beta2 < 1.0;
    if (!betas)
        weft_graph_fail(graph, "%s: beta1 is %g and beta2 is %g; both lie between 0 and 1", name,
                        o->beta1, o->beta2);
    else if (!(o->rate >= 0.0))
        weft_graph_fail(graph, "%s: the rate is %g; it is not negative", name, o->rate);
    else if (!(o->clip >= 0.0))
        weft_graph_fail(graph,
                        "%s: the largest gradient norm is %g; it is positive, or 0 for no clipping",
                        name, o->clip);
    else if (!(o->epsilon > 0.0))
        weft_graph_fail(graph, "%s: epsilon is %g; it is positive", name, o->epsilon);
    return weft_graph_status(graph) == WEFT_OK;
}

/* Options with defaults, and the scalars that all variables share. */
static bool prepare(update *u, weft_value loss, const named_rule *rule,
                    const weft_optimizer_options *options)
{
    weft_optimizer_options *o = &u->options;
    memset(u, 0, sizeof *u);
    if (options != NULL) *o = *options;
    o->rate = or_default(o->rate, rule->default_rate);
    o->momentum = or_default(o->momentum, 0.9);
    o->beta1 = or_default(o->beta1, 0.9);
    o->beta2 = or_default(o->beta2, 0.999);
    o->epsilon = or_default(o->epsilon, 1e-8);
    o->weight_decay = or_default(o->weight_decay, 0.01);
    if (!check_options(loss.graph, rule->name, o)) return false;
    u->rate = o->rate_value;
    if (u->rate.id == 0) u->rate = weft_constant_rate(loss.graph, WEFT_F64, o->rate);
    if (weft_shape_of(u->rate)->n_dims != 0 ||
        (o->rate_value.id != 0 && weft_dtype_of(u->rate) != weft_dtype_of(loss))) {
        char text[160];
        weft_shape_print(weft_shape_of(u->rate), text, sizeof text);
        weft_graph_fail(loss.graph,
                        "%s: rate_value is %s%s and the loss is %s; make it a scalar of that "
                        "dtype",
                        rule->name, weft_dtype_name(weft_dtype_of(u->rate)), text,
                        weft_dtype_name(weft_dtype_of(loss)));
        return false;
    }
    u->rate = weft_cast(u->rate, WEFT_F64);
    u->bias1 = bias_of(loss.graph, o->beta1);
    u->bias2 = bias_of(loss.graph, o->beta2);
    return weft_graph_status(loss.graph) == WEFT_OK;
}

/* Gradients come to where their variables are stored, and are clipped there. */
static void clip_all(const update *u, const weft_value *variables, weft_value *gradients, int n)
{
    weft_graph *graph = variables[0].graph;
    for (int i = 0; i < n && weft_graph_status(graph) == WEFT_OK; i++) {
        const bool is_own = weft_node_of(graph, gradients[i].id)->phase == WEFT_BACKWARD;
        if (is_own && graph->tensors[gradients[i].id].place_as == 0)
            weft_place_as(gradients[i], variables[i]);
    }
    if (u->options.gradient_norm == NULL && u->options.clip == 0.0) return;
    weft_value norm = weft_global_norm((weft_values){gradients, n});
    if (u->options.gradient_norm != NULL) *u->options.gradient_norm = norm;
    if (u->options.clip == 0.0) return;
    weft_value scale = weft_clip_scale(norm, u->options.clip);
    for (int i = 0; i < n; i++) {
        graph->place_as = variables[i].id;
        gradients[i] = weft_mul(gradients[i], weft_cast(scale, weft_dtype_of(gradients[i])));
        graph->place_as = 0;
    }
}

/* [n] variables, then [n] gradients, then room for tokens, all in `values`. */
static weft_value update_all(const update *u, rule rule, weft_value loss, weft_value *values, int n)
{
    weft_graph *graph = loss.graph;
    weft_value *variables = values, *gradients = values + n, *tokens = values + 2 * n;
    weft_trainable(loss, variables, n);
    weft_gradients(loss, (weft_values){variables, n}, gradients, 0);
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    clip_all(u, variables, gradients, n);
    int n_tokens = 0;
    for (int i = 0; i < n && weft_graph_status(graph) == WEFT_OK; i++) {
        graph->place_as = variables[i].id;
        n_tokens += rule(u, variables[i], gradients[i], tokens + n_tokens);
        graph->place_as = 0;
    }
    return weft_group(graph, (weft_values){tokens, n_tokens});
}

static weft_value build(const named_rule *rule, weft_value loss,
                        const weft_optimizer_options *options)
{
    weft_graph *graph = loss.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    const int n = weft_trainable(loss, NULL, 0);
    if (n == 0)
        return weft_graph_fail(
            graph, "%s: the loss depends on no variable; make some with weft_variable", rule->name);
    weft_value *values = calloc((size_t)n * (2 + MAX_TOKENS), sizeof *values);
    if (values == NULL) {
        weft_fail_memory(&graph->error, (size_t)n * (2 + MAX_TOKENS) * sizeof *values);
        return weft_no_value(graph);
    }
    const weft_phase phase = graph->phase;
    graph->phase = WEFT_UPDATE;
    update u;
    weft_value token = weft_no_value(graph);
    if (prepare(&u, loss, rule, options)) token = update_all(&u, rule->rule, loss, values, n);
    graph->phase = phase;
    free(values);
    return token;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define PLAIN_RATE 0.1
#define ADAM_RATE  1e-3

weft_value weft_sgd(weft_value loss, const weft_optimizer_options *options)
{
    return build(&(const named_rule){"sgd", sgd, PLAIN_RATE}, loss, options);
}

weft_value weft_momentum(weft_value loss, const weft_optimizer_options *options)
{
    return build(&(const named_rule){"momentum", momentum, PLAIN_RATE}, loss, options);
}

weft_value weft_adam(weft_value loss, const weft_optimizer_options *options)
{
    return build(&(const named_rule){"adam", adam, ADAM_RATE}, loss, options);
}

weft_value weft_adamw(weft_value loss, const weft_optimizer_options *options)
{
    return build(&(const named_rule){"adamw", adamw, ADAM_RATE}, loss, options);
}

const weft_optimizer weft_optimizers[] = {
    {"sgd", weft_sgd, PLAIN_RATE},
    {"momentum", weft_momentum, PLAIN_RATE},
    {"adam", weft_adam, ADAM_RATE},
    {"adamw", weft_adamw, ADAM_RATE},
};
const int weft_n_optimizers = (int)(sizeof weft_optimizers / sizeof weft_optimizers[0]);

const weft_optimizer *weft_optimizer_find(const char *name, weft_error *error)
{
    const char *names[sizeof weft_optimizers / sizeof weft_optimizers[0]];
    for (int i = 0; i < weft_n_optimizers; i++) {
        names[i] = weft_optimizers[i].name;
        if (strcmp(name, names[i]) == 0) return &weft_optimizers[i];
    }
    const char *near = weft_nearest(name, names, weft_n_optimizers);
    weft_fail(error, WEFT_USAGE, "there is no optimizer %s; %s%s%s", name,
              near == NULL ? "choose sgd, momentum, adam or adamw" : "did you mean ",
              near == NULL ? "" : near, near == NULL ? "" : "?");
    return NULL;
}
