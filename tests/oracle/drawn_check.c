/* drawn_check.c: a drawn graph on its mesh, compared with one rank. Ops that choose, such as round, sort or compare, make much of
 * a last digit. So where results differ the graph is built again with a breath on all that goes in and comes out of ops, about
 * what rounding does: if that alone, on one rank, moves results as far, the difference says nothing. */
#include "drawn.h"
#include "left_open.h"

#include <math.h>
#include <string.h>

#define KEPT "a"
#include "policies.h"

/* Most graphs that rounding decides are moved by the first few. */
enum { BREATHS = 64 };
static const double MARGIN = 30; /* over what breaths do */

/* ---- apart ----------------------------------------------------------------------------------------- */

/* The largest difference of output k; infinite where one is no number and the other is. */
static double apart(const weft_oracle_result *a, const weft_oracle_result *b, int k)
{
    double most = 0.0;
    for (int64_t i = 0; i < a->count[k]; i++) {
        const double x = a->data[k][i], y = b->data[k][i];
        if (x == y || (isnan(x) && isnan(y))) continue;
        const double off = fabs(x - y);
        most = isfinite(off) ? fmax(most, off) : (double)INFINITY;
    }
    return most;
}

static double allowed(const weft_oracle_result *a, int k)
{
    double largest = 1e-3;
    for (int64_t i = 0; i < a->count[k]; i++)
        if (isfinite(a->data[k][i])) largest = fmax(largest, fabs(a->data[k][i]));
    return weft_oracle_tolerance[a->dtype[k]] * largest;
}

static weft_status run(const weft_oracle *oracle, const drawn *g, weft_mesh *mesh, int breath,
                       weft_oracle_result *result, weft_error *error)
{
    char layout[DRAWN_RULES * (DRAWN_TEXT + 32)];
    drawn_how how = {g, breath};
    weft_compile_options options = g->options;
    uint64_t seed = g->policy;
    const weft_policy policy = policy_of(&seed);
    drawn_layout(g, layout, sizeof layout);
    if (seed != 0) options.policy = &policy;
    const bool is_alone = mesh == oracle->alone;
    const weft_oracle_case what = {.name = "drawn",
                                   .build = drawn_build,
                                   .argument = &how,
                                   .extremes = g->extremes,
                                   .layout = is_alone ? NULL : layout,
                                   .options = is_alone ? NULL : &options};
    return weft_oracle_run(mesh, &what, NULL, result, error);
}

/* How far output k may be off: what a dtype's rounding does, and what breaths moved it by. */
static double most_apart(const weft_oracle_result *alone, int k, const double *moved)
{
    return allowed(alone, k) + MARGIN * moved[k];
}

/* The first output that is further off than that; -1: none. */
static int find_far(const weft_oracle_result *alone, const weft_oracle_result *meshed,
                    const double *moved)
{
    for (int k = 0; k < alone->n_outputs; k++)
        if (apart(alone, meshed, k) > most_apart(alone, k, moved)) return k;
    return -1;
}

/* How far a breath moves each output. A breath that is not built moves everything. */
static void blow(const weft_oracle *oracle, const drawn *g, int breath,
                 const weft_oracle_result *alone, double *moved)
{
    weft_oracle_result blown = {0};
    weft_error error = {0};
    const bool ran = run(oracle, g, oracle->alone, breath, &blown, &error) == WEFT_OK &&
                     blown.n_outputs == alone->n_outputs;
    for (int k = 0; k < alone->n_outputs; k++)
        moved[k] = ran ? fmax(moved[k], apart(alone, &blown, k)) : (double)INFINITY;
    weft_oracle_free(&blown);
}

/* Whether any op makes what is no number: sums and products of such are as they come, and 0 times it is not 0. */
static bool is_finite(const weft_oracle *oracle, const drawn *g)
{
    weft_oracle_result every = {0};
    weft_error error = {0};
    bool is = run(oracle, g, oracle->alone, DRAWN_EVERY, &every, &error) == WEFT_OK;
    for (int k = 0; k < every.n_outputs; k++)
        for (int64_t i = 0; i < every.count[k]; i++)
            is &= isfinite(every.data[k][i]) != 0;
    weft_oracle_free(&every);
    return is;
}

static int left_open_by(const op_case *what)
{
    for (int g = 0; g < n_op_groups; g++)
        for (const op_case *c = op_groups[g].cases; c->name != NULL; c++)
            if (c == what) return left_open_of(op_groups[g].name);
    return 0;
}

/* Whether inputs at the edges, or what ops make of them, come to an op of which that is left open, or to sums and products that
 * fit one op's result to the next. */
static bool is_left_open(const weft_oracle *oracle, const drawn *g)
{
    bool sums = false;
    for (int i = 0; i < g->n_ops; i++) {
        const int extremes = left_open_by(g->ops[i].what);
        if (extremes & g->extremes) return true;
        sums |= extremes != 0 ||
                g->ops[i].trips > 0; /* a trip's result is fitted to the next one's carry */
        for (int k = 0; k < DRAWN_OPERANDS; k++)
            sums |= g->ops[i].from[k] != DRAWN_FRESH;
    }
    return sums && (g->extremes & (WEFT_ORACLE_ROOT | WEFT_ORACLE_HUGE) || !is_finite(oracle, g));
}

static drawn_verdict compare(const weft_oracle *oracle, const drawn *g,
                             const weft_oracle_result *alone, const weft_oracle_result *meshed,
                             char *text, size_t bytes)
{
    double moved[WEFT_ORACLE_VALUES] = {0};
    const bool is_alike = alone->n_outputs == meshed->n_outputs;
    int far = is_alike ? find_far(alone, meshed, moved) : 0;
    if (far < 0) return DRAWN_SAME;
    weft_oracle_same(alone, meshed, 0, text, bytes);
    if (!is_alike) return DRAWN_DIFFERS;
    if (g->extremes != 0 ? is_left_open(oracle, g) : !is_finite(oracle, g)) return DRAWN_UNSTABLE;
    for (int breath = 1; breath <= BREATHS && far >= 0; breath++) {
        blow(oracle, g, breath, alone, moved);
        far = find_far(alone, meshed, moved);
    }
    if (far < 0) return DRAWN_UNSTABLE;
    snprintf(text, bytes, "output %d of %d is %g off; rounding makes of it %g", far,
             alone->n_outputs, apart(alone, meshed, far), most_apart(alone, far, moved));
    return DRAWN_DIFFERS;
}

/* The rules for dims that some value of the graph has: others are refused. */
static bool has_dim(const weft_oracle_build *b, const char *name)
{
    for (int k = 0; k < b->n_inputs; k++)
        if (weft_shape_find(weft_shape_of(b->inputs[k]), name) >= 0) return true;
    for (int k = 0; k < b->n_outputs; k++)
        if (weft_shape_find(weft_shape_of(b->outputs[k]), name) >= 0) return true;
    return false;
}

static drawn with_known_rules(const drawn *g, weft_error *error)
{
    drawn known = *g;
    drawn_how how = {g, 0};
    weft_oracle_build b = {.graph = weft_graph_create(77), .argument = &how};
    drawn_build(&b);
    *error = *weft_graph_error(b.graph);
    known.n_rules = 0;
    for (int r = 0; r < g->n_rules; r++)
        if (has_dim(&b, case_dims[g->rules[r].dim].name))
            known.rules[known.n_rules++] = g->rules[r];
    weft_graph_destroy(&b.graph);
    return known;
}

drawn_verdict drawn_check(const weft_oracle *oracle, const drawn *graph, char *text, size_t bytes)
{
    weft_error error = {0};
    const drawn g = with_known_rules(graph, &error);
    weft_oracle_result alone = {0}, meshed = {0};
    drawn_verdict verdict = DRAWN_UNBUILT;
    text[0] = '\0';
    if (error.status != WEFT_OK || run(oracle, &g, oracle->alone, 0, &alone, &error) != WEFT_OK)
        verdict = DRAWN_UNBUILT;
    else if (run(oracle, &g, g.mesh, 0, &meshed, &error) == WEFT_OK)
        verdict = compare(oracle, &g, &alone, &meshed, text, bytes);
    else
        verdict = weft_oracle_refuses(&error) ? DRAWN_UNBUILT : DRAWN_DIFFERS;
    if (error.status != WEFT_OK) snprintf(text, bytes, "%s", error.message);
    weft_oracle_free(&alone);
    weft_oracle_free(&meshed);
    return verdict;
}
