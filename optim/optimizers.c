/* optimizers.c: what all optimizers have in common, around one rule: options, the rate, gradients brought to where
 * their variables are stored, clipping. A failed call leaves nothing in the graph but its error.
 */
#include <float.h>
#include <stddef.h>
#include <string.h>

#include "update.h"
#include "weft/ops.h"

/* ---- options --------------------------------------------------------------------------------- */

/* Every number of the options: where it is, and what it may be. */
static const struct {
    size_t offset;
    const char *name;
    double low, high;
    const char *rule;
} numbers[] = {
#define NUMBER(field, name, low, high, rule)                                                       \
    {                                                                                              \
        offsetof(weft_optimizer_options, field), name, low, high, rule                             \
    }
    NUMBER(rate, "the rate", 0.0, DBL_MAX, "not negative"),
    NUMBER(momentum, "momentum", 0.0, DBL_MAX, "not negative"),
    NUMBER(beta1, "beta1", 0.0, 1.0 - DBL_EPSILON, "between 0 and 1"),
    NUMBER(beta2, "beta2", 0.0, 1.0 - DBL_EPSILON, "between 0 and 1"),
    NUMBER(beta2_decay, "beta2_decay", -DBL_MAX, 0.0, "negative"),
    NUMBER(epsilon, "epsilon", 0.0, DBL_MAX, "positive"),
    NUMBER(scale_floor, "scale_floor", 0.0, DBL_MAX, "positive"),
    NUMBER(step_limit, "step_limit", 0.0, DBL_MAX, "positive"),
    NUMBER(weight_decay, "weight_decay", -DBL_MAX, DBL_MAX, "a number; a negative one means none"),
    NUMBER(clip, "the largest gradient norm", 0.0, DBL_MAX, "positive, or 0 for no clipping"),
#undef NUMBER
};
enum { n_numbers = sizeof numbers / sizeof numbers[0] };

/* The rule's defaults where the user has 0; false: one is not what it may be. */
static bool take_numbers(weft_update *u, const weft_optimizer_rule *rule)
{
    for (int i = 0; i < n_numbers; i++) {
        double *number = (double *)((char *)&u->options + numbers[i].offset);
        if (*number == 0.0)
            *number = *(const double *)((const char *)&rule->defaults + numbers[i].offset);
        if (*number >= numbers[i].low && *number <= numbers[i].high) continue; /* a NaN is not */
        weft_graph_fail(u->graph, "%s: %s is %g; it is %s", u->name, numbers[i].name, *number,
                        numbers[i].rule);
        return false;
    }
    if (u->options.every == 0) u->options.every = rule->defaults.every;
    if (u->options.every < 0)
        weft_graph_fail(u->graph, "%s: every is %lld; it is a number of updates", u->name,
                        (long long)u->options.every);
    return weft_graph_status(u->graph) == WEFT_OK;
}

/* `like`: the loss, or a variable where gradients are handed in. */
static bool take_rate(weft_update *u, weft_value like, const char *what)
{
    const weft_value given = u->options.rate_value;
    if (given.id == 0 && given.graph == NULL) {
        u->rate = weft_constant_rate(u->graph, WEFT_F64, u->options.rate);
        return true;
    }
    if (!weft_graph_takes(u->graph, u->name, "rate_value", (weft_values){&given, 1})) return false;
    if (weft_shape_of(given)->n_dims != 0 || weft_dtype_of(given) != weft_dtype_of(like)) {
        char text[160];
        weft_shape_print(weft_shape_of(given), text, sizeof text);
        weft_graph_fail(u->graph,
                        "%s: rate_value is %s%s and the %s is %s; make it a scalar of that dtype",
                        u->name, weft_dtype_name(weft_dtype_of(given)), text, what,
                        weft_dtype_name(weft_dtype_of(like)));
        return false;
    }
    u->rate = weft_cast(given, WEFT_F64);
    return true;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static bool is_placed(weft_value value)
{
    const weft_tensor *tensor = &value.graph->tensors[value.id];
    return tensor->place_as != 0 || tensor->placement != NULL;
}

void weft_bring_home(weft_value variable, weft_value gradient)
{
    const weft_node *node = weft_node_of(gradient.graph, gradient.id);
    if (is_placed(gradient) || node->op == &weft_op_input || node->op == &weft_op_variable) return;
    weft_place_as(gradient, variable);
}

/* One that was taken here; it may be a value of the forward pass, which stays where it is. */
static void bring_own_home(weft_value variable, weft_value gradient)
{
    if (weft_node_of(gradient.graph, gradient.id)->phase == WEFT_BACKWARD)
        weft_bring_home(variable, gradient);
}

/* Gradients come to where their variables are stored, and are clipped there. */
static void clip_all(const weft_update *u, const weft_selection *s)
{
    weft_graph *graph = u->graph;
    for (int i = 0; i < s->n && weft_graph_status(graph) == WEFT_OK; i++)
        (s->is_own ? bring_own_home : weft_bring_home)(s->variables[i], s->gradients[i]);
    const bool is_scaled = graph->loss_scale.scale != 0;
    weft_value norm = weft_no_value(graph);
    weft_unscale(u, s);
    if (u->options.gradient_norm != NULL || is_scaled || weft_clip_needs_norm(u))
        norm = weft_global_norm((weft_values){s->gradients, s->n});
    if (u->options.gradient_norm != NULL) *u->options.gradient_norm = norm;
    weft_skip_unless_finite(u, norm);
    weft_clip(u, s, norm);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* What the call gave, before it was filled with defaults, and to whom. */
typedef struct request {
    const weft_optimizer_rule *rule;
    weft_optimizer_options options;
    weft_value like; /* the loss, or a variable where gradients are handed in */
    const char *what;
} request;

/* As `all`, but for what the variable's group says. false: the graph's error. */
static bool take_group(weft_update *u, const request *r, const weft_update *all, int group,
                       const weft_optimizer_rule **rule)
{
    *u = *all;
    *rule = r->rule;
    if (group < 0) return true;
    const weft_optimizer_group *g = u->group = &all->options.groups.groups[group];
    if (g->optimizer != NULL) {
        *rule = weft_rule_find(g->optimizer, NULL);
        u->options = r->options;
        if (!take_numbers(u, *rule) || !take_rate(u, r->like, r->what)) return false;
    }
    if (g->weight_decay != 0.0) u->options.weight_decay = g->weight_decay;
    if (g->rate_scale != 0.0) u->rate = weft_scale(u->rate, g->rate_scale);
    return true;
}

/* Returns how many tokens there are. */
static int update_one(const weft_update *all, const request *r, const weft_selection *s, int i,
                      weft_value *tokens)
{
    weft_update u;
    const weft_optimizer_rule *rule;
    if (!take_group(&u, r, all, s->group[i], &rule)) return 0;
    weft_update_at(&u, s->variables[i]);
    const int n = rule->rule(&u, s->variables[i], s->gradients[i], tokens);
    if (n >= 1 && n <= WEFT_MAX_TOKENS) return n;
    weft_graph_fail(u.graph, "%s: its rule gave %d tokens for %s; it gives from 1 to %d",
                    rule->name, n, u.graph->tensors[s->variables[i].id].name, WEFT_MAX_TOKENS);
    return 0;
}

static weft_value update_all(weft_update *u, const weft_selection *s, request *r, weft_value loss)
{
    const bool has_loss = weft_is_value(loss);
    const bool is_scaled = u->graph->loss_scale.scale != 0;
    r->like = has_loss ? loss : s->variables[0];
    r->what = has_loss ? "loss" : "first variable";
    u->run = weft_step_number(u->graph);
    if (!take_rate(u, r->like, r->what)) return weft_no_value(u->graph);
    clip_all(u, s);
    int n_tokens = 0;
    for (int i = 0; i < s->n && weft_graph_status(u->graph) == WEFT_OK; i++)
        n_tokens += update_one(u, r, s, i, s->tokens + n_tokens);
    weft_update_at(u, weft_no_value(u->graph));
    const weft_value all = weft_group(u->graph, (weft_values){s->tokens, n_tokens});
    if (!is_scaled || weft_graph_status(u->graph) != WEFT_OK) return all;
    u->graph->loss_scale.is_used = true;
    return weft_group(u->graph, (weft_values){(weft_value[]){all, weft_scale_on(u)}, 2});
}

/* The graph that carries errors: the loss's, else the first variable's. */
static weft_graph *graph_of(weft_value loss, const weft_optimizer_options *options)
{
    if (loss.graph != NULL || options == NULL) return loss.graph;
    const weft_values list = options->variables;
    return list.values != NULL && list.n_values > 0 ? list.values[0].graph : NULL;
}

/* The rule as this version has it; false: it says too little, which is the graph's error. */
static bool take_rule(weft_graph *graph, const weft_optimizer_rule *given,
                      weft_optimizer_rule *rule)
{
    weft_error error = {WEFT_OK, -1, ""};
    if (weft_optimizer_rule_take(given, rule, &error) == WEFT_OK) return true;
    weft_graph_fail(graph, "weft_optimize: %s", error.message);
    return false;
}

weft_value weft_optimize(const weft_optimizer_rule *given, weft_value loss,
                         const weft_optimizer_options *options)
{
    weft_optimizer_rule taken, *rule = &taken;
    weft_update u = {.graph = graph_of(loss, options)};
    if (options != NULL && options->gradient_norm != NULL)
        *options->gradient_norm = weft_no_value(u.graph);
    if (!take_rule(u.graph, given, rule)) return weft_no_value(u.graph);
    u.name = rule->name;
    if (options != NULL) u.options = *options;
    if (u.options.gradient_norm != NULL) *u.options.gradient_norm = weft_no_value(u.graph);
    if (weft_graph_status(u.graph) != WEFT_OK) return weft_no_value(u.graph);
    const weft_graph_point begin = weft_graph_here(u.graph);
    const weft_phase phase = u.graph->phase;
    weft_selection s = {0};
    weft_value token = weft_no_value(u.graph);
    u.graph->phase = WEFT_UPDATE;
    request r = {.rule = rule, .options = u.options};
    if (take_numbers(&u, rule) && weft_select(&u, loss, &s)) token = update_all(&u, &s, &r, loss);
    weft_selection_end(&s);
    u.graph->phase = phase;
    u.graph->place_as = u.graph->assign_if = 0;
    if (weft_graph_status(u.graph) == WEFT_OK) return token;
    if (u.options.gradient_norm != NULL) *u.options.gradient_norm = weft_no_value(u.graph);
    weft_graph_rewind(u.graph, begin);
    return weft_no_value(u.graph);
}
