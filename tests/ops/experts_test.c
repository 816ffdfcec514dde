/* RANKS: 2 4 */
/* experts_test: a mixture of experts is what a few loops make of the same weights, its gradients are those by differences, and every
 * layout gives the numbers of one rank.
 */
#include "weft/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

enum { BATCH = 5, TOKENS = 7, FEATURES = 4, EXPERTS = 6, HIDDEN = 3 };
static const weft_dim batch = {"batch", BATCH}, token = {"token", TOKENS},
                      embed = {"embed", FEATURES}, experts = {"experts", EXPERTS},
                      hidden = {"hidden", HIDDEN}, route = {"route", EXPERTS};

typedef struct way {
    const char *name;
    int64_t top_k;
    double capacity;
    weft_chooser chooser;
    bool is_dropless, normalizes, is_tanh, is_picked;
    double jitter;
    bool is_by_hand; /* x is jittered before the layer sees it */
} way;

static const way ways[] = {
    {"one choice", 1, 1.0},
    {"one choice, few places", 1, 0.5},
    {"one choice, by tanh", .is_tanh = true},
    {"two choices", 2, 1.0, .normalizes = true},
    {"two choices, room for all", 2, 100.0},
    {"three choices", 3, 0.75, .normalizes = true, .is_tanh = true},
    {"one choice, dropless", 1, .is_dropless = true},
    {"two choices, dropless", 2, .is_dropless = true, .normalizes = true},
    {"experts choose", 1, 0.5, WEFT_EXPERTS_CHOOSE},
    {"experts choose, by tanh", 2, 1.0, WEFT_EXPERTS_CHOOSE, .is_tanh = true},
    {"one choice, picked", 1, .is_dropless = true, .is_picked = true},
    {"two choices, picked, by tanh", 2, .is_dropless = true, .normalizes = true, .is_tanh = true,
     .is_picked = true},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

/* ---- the layer --------------------------------------------------------------------------------------- */

enum { Y, BALANCE, Z, DROPPED, TURNED_AWAY, LOSS, OF_X, OF_ROUTER, OF_UP, OF_DOWN, N_OUTPUTS };

static void build(weft_oracle_build *b)
{
    const way *w = b->argument;
    const weft_shape tokens = WEFT_DIMS(batch, token, embed);
    weft_value x = weft_oracle_input(b, WEFT_F64, tokens, -2, 2);
    if (w->is_by_hand) x = weft_mul(x, weft_random_uniform(b->graph, WEFT_F64, tokens, 0.7, 1.3));
    const weft_experts_weights weights = {
        weft_oracle_input(b, WEFT_F64, WEFT_DIMS(embed, route), -1, 1),
        weft_oracle_input(b, WEFT_F64, WEFT_DIMS(experts, embed, hidden), -1, 1),
        weft_oracle_input(b, WEFT_F64, WEFT_DIMS(experts, hidden, embed), -1, 1)};
    const weft_experts_options options = {.token = token,
                                          .feature = embed,
                                          .experts = experts,
                                          .hidden = hidden,
                                          .top_k = w->top_k,
                                          .chooser = w->chooser,
                                          .capacity = w->capacity,
                                          .is_dropless = w->is_dropless,
                                          .is_picked = w->is_picked,
                                          .normalizes = w->normalizes,
                                          .jitter = w->jitter,
                                          .activation = w->is_tanh ? "tanh" : NULL,
                                          .given = &weights};
    weft_experts_facts facts;
    const weft_value y = weft_experts(x, &options, &facts);
    const weft_value loss =
        weft_add(weft_add(weft_mean(weft_square(weft_sub(y, x))), weft_scale(facts.balance, 0.1)),
                 weft_scale(facts.z, 0.01));
    weft_value d[4];
    weft_gradients(loss, WEFT_VALUES(x, weights.router, weights.up, weights.down), d, 0);
    const weft_value all[N_OUTPUTS] = {
        y, facts.balance, facts.z, facts.dropped, facts.turned_away, loss, d[0], d[1], d[2], d[3]};
    for (int i = 0; i < N_OUTPUTS; i++)
        weft_oracle_output(b, all[i]);
}

/* ---- the same in loops ------------------------------------------------------------------------------- */

typedef struct numbers {
    double x[BATCH][TOKENS][FEATURES], router[FEATURES][EXPERTS];
    double up[EXPERTS][FEATURES][HIDDEN], down[EXPERTS][HIDDEN][FEATURES];
} numbers;

typedef struct outcome {
    double y[BATCH][TOKENS][FEATURES], balance, z, dropped, turned_away, loss;
} outcome;

static void fill(double *to, int input, double low, double high, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        to[i] = low + (high - low) * weft_oracle_unit(input, (int64_t)i);
}

static void draw(numbers *n)
{
    fill(&n->x[0][0][0], 0, -2, 2, sizeof n->x);
    fill(&n->router[0][0], 1, -1, 1, sizeof n->router);
    fill(&n->up[0][0][0], 2, -1, 1, sizeof n->up);
    fill(&n->down[0][0][0], 3, -1, 1, sizeof n->down);
}

/* How many of n numbers, `stride` apart, come before number i when the largest stand first. */
static int rank_of(const double *all, int n, int stride, int i)
{
    int before = 0;
    for (int j = 0; j < n; j++)
        before +=
            all[j * stride] > all[i * stride] || (all[j * stride] == all[i * stride] && j < i);
    return before;
}

typedef struct group {
    double share[TOKENS][EXPERTS], gate[TOKENS][EXPERTS];
    bool chose[TOKENS][EXPERTS], sits[TOKENS][EXPERTS];
} group;

static void share(const numbers *n, int b, group *g, outcome *o)
{
    for (int t = 0; t < TOKENS; t++) {
        double sum = 0;
        for (int e = 0; e < EXPERTS; e++) {
            double logit = 0;
            for (int f = 0; f < FEATURES; f++)
                logit += n->x[b][t][f] * n->router[f][e];
            sum += g->share[t][e] = exp(logit);
        }
        for (int e = 0; e < EXPERTS; e++)
            g->share[t][e] /= sum;
        o->z += log(sum) * log(sum) / (BATCH * TOKENS);
    }
}

static int places_of(const way *w)
{
    const double k = w->top_k == 0 ? 1 : (double)w->top_k,
                 c = w->capacity == 0 ? 1.25 : w->capacity;
    const double n = ceil(c * k * TOKENS / EXPERTS);
    return n < 1 ? 1 : n > TOKENS ? TOKENS : (int)n;
}

static void seat(const way *w, group *g, outcome *o)
{
    const int places = places_of(w), k = w->top_k == 0 ? 1 : (int)w->top_k;
    const bool is_choice = w->chooser == WEFT_EXPERTS_CHOOSE;
    for (int e = 0; e < EXPERTS; e++)
        for (int t = 0, n = 0; t < TOKENS; t++) {
            g->chose[t][e] = !is_choice && rank_of(g->share[t], EXPERTS, 1, e) < k;
            g->sits[t][e] = is_choice ? rank_of(&g->share[0][e], TOKENS, EXPERTS, t) < places
                                      : g->chose[t][e] && (w->is_dropless || n < places);
            n += g->chose[t][e];
            o->turned_away += g->chose[t][e] && !g->sits[t][e];
        }
}

static void weigh(const way *w, group *g, outcome *o)
{
    for (int t = 0; t < TOKENS; t++) {
        double sum = 0;
        int n = 0;
        for (int e = 0; e < EXPERTS; e++)
            sum += g->chose[t][e] ? g->share[t][e] : 0, n += g->sits[t][e];
        for (int e = 0; e < EXPERTS; e++)
            g->gate[t][e] = g->sits[t][e] ? g->share[t][e] / (w->normalizes ? sum : 1) : 0;
        o->dropped += n == 0;
    }
}

static void add_balance(const way *w, const group *g, outcome *o)
{
    for (int e = 0; e < EXPERTS; e++) {
        double part = 0, mean = 0;
        for (int t = 0; t < TOKENS; t++)
            part += g->chose[t][e], mean += g->share[t][e] / TOKENS;
        part /= TOKENS * (w->top_k == 0 ? 1 : (double)w->top_k);
        o->balance += EXPERTS * part * mean / BATCH;
    }
    if (w->chooser == WEFT_EXPERTS_CHOOSE) o->balance = 1;
}

static double activation(const way *w, double x)
{
    if (w->is_tanh) return tanh(x);
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static void compute(const way *w, const numbers *n, int b, const group *g, outcome *o)
{
    for (int t = 0; t < TOKENS; t++)
        for (int e = 0; e < EXPERTS; e++)
            for (int h = 0; h < HIDDEN; h++) {
                double inside = 0;
                for (int f = 0; f < FEATURES; f++)
                    inside += n->x[b][t][f] * n->up[e][f][h];
                for (int f = 0; f < FEATURES; f++)
                    o->y[b][t][f] += g->gate[t][e] * activation(w, inside) * n->down[e][h][f];
            }
}

static void plain(const way *w, const numbers *n, outcome *o)
{
    *o = (outcome){0};
    for (int b = 0; b < BATCH; b++) {
        group g;
        share(n, b, &g, o);
        seat(w, &g, o);
        weigh(w, &g, o);
        add_balance(w, &g, o);
        compute(w, n, b, &g, o);
    }
    o->loss = 0.1 * o->balance + 0.01 * o->z;
    for (int i = 0; i < BATCH * TOKENS * FEATURES; i++)
        o->loss += pow((&o->y[0][0][0])[i] - (&n->x[0][0][0])[i], 2) / (BATCH * TOKENS * FEATURES);
}

/* ---- values and gradients ----------------------------------------------------------------------------- */

static weft_oracle oracle;

static void check_near(const way *w, const char *what, int i, double found, double expected,
                       double within)
{
    char text[200];
    snprintf(text, sizeof text, "%s: %s %d is %.15g, and by loops %.15g", w->name, what, i, found,
             expected);
    weft_test_check(fabs(found - expected) <= within, __FILE__, __LINE__, text);
}

static void check_differences(const way *w, const weft_oracle_result *r)
{
    static numbers n;
    outcome above, below;
    double *const from[] = {&n.x[0][0][0], &n.router[0][0], &n.up[0][0][0], &n.down[0][0][0]};
    static const char *const names[] = {"gradient of x", "of router", "of up", "of down"};
    draw(&n);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < r->count[OF_X + k]; i++) {
            const double was = from[k][i], step = 1e-6;
            from[k][i] = was + step, plain(w, &n, &above);
            from[k][i] = was - step, plain(w, &n, &below);
            from[k][i] = was;
            check_near(w, names[k], i, r->data[OF_X + k][i], (above.loss - below.loss) / (2 * step),
                       1e-8);
        }
}

static void check_way(const way *w)
{
    const weft_oracle_case what = {.name = w->name, .build = build, .argument = w};
    weft_oracle_result r;
    weft_error error = {0};
    numbers n;
    outcome o;
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    draw(&n);
    plain(w, &n, &o);
    for (int i = 0; i < r.count[Y]; i++)
        check_near(w, "result", i, r.data[Y][i], (&o.y[0][0][0])[i], 1e-12);
    const double scalars[] = {o.balance, o.z, o.dropped, o.turned_away, o.loss};
    for (int i = 0; i < 5; i++)
        check_near(w, "fact", i, r.data[BALANCE + i][0], scalars[i], 1e-12);
    check_differences(w, &r);
    weft_oracle_free(&r);
}

static void test_experts_are_what_loops_make(void)
{
    for (int i = 0; i < N_WAYS; i++)
        check_way(&ways[i]);
}

/* The ways above are not all without drops, nor all with. */
static void test_few_places_drop_tokens(void)
{
    static numbers n;
    outcome o;
    draw(&n);
    plain(&ways[1], &n, &o);
    CHECK(o.dropped >= 3 && o.dropped == o.turned_away);
    plain(&ways[3], &n, &o);
    CHECK(o.turned_away > o.dropped);
    plain(&ways[4], &n, &o);
    CHECK(o.turned_away == 0);
    plain(&ways[8], &n, &o);
    CHECK(o.dropped > 0 && o.turned_away == 0);
}

/* ---- layouts ------------------------------------------------------------------------------------------- */

static const char *const layouts[][2] = {
    {"d:2", "batch:d"},
    {"d:2", "batch:d,experts:d"},
    {"d:2", "experts:d"},
    {"d:2", "token:d"},
    {"d:2", "token:d,experts:d"},
    {"d:2", "experts:d,batch:d"},
    {"d:2", "embed:d,experts:d"},
    {"d:2", "route:d"},
    {"d:4", "batch:d,experts:d"},
    {"d:2,m:2", "batch:d,experts:m"},
    {"d:2,m:2", "batch:d,experts:d,hidden:m"},
    {"d:2,m:2", "batch:d,token:m,experts:d+m"},
    {"d:2,m:2", "batch:d,experts:m,embed:m"},
};

static weft_mesh *mesh_of(const char *text)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        if (strcmp(weft_mesh_text(oracle.meshes[m]), text) == 0) return oracle.meshes[m];
    return NULL;
}

static void check_layout(const way *w, const weft_oracle_result *expected, const char *mesh,
                         const char *layout)
{
    const weft_oracle_case what = {.build = build, .argument = w, .layout = layout};
    weft_oracle_result found = {0};
    weft_error error = {0};
    char differs[400] = "", text[900];
    const bool is_run = weft_oracle_run(mesh_of(mesh), &what, NULL, &found, &error) == WEFT_OK;
    const bool is_same = is_run && weft_oracle_same(expected, &found, 0, differs, sizeof differs);
    snprintf(text, sizeof text, "%s on %s by %s: %s%s", w->name, mesh, layout, error.message,
             differs);
    weft_test_check(is_same, __FILE__, __LINE__, text);
    weft_oracle_free(&found);
}

static void check_layouts(const way *w)
{
    const weft_oracle_case what = {.build = build, .argument = w};
    weft_oracle_result expected;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &expected, &error), error)) return;
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
        if (mesh_of(layouts[k][0]) != NULL)
            check_layout(w, &expected, layouts[k][0], layouts[k][1]);
    weft_oracle_free(&expected);
}

static void test_every_layout_has_the_numbers_of_one_rank(void)
{
    for (int i = 0; i < N_WAYS; i++)
        check_layouts(&ways[i]);
}

/* ---- jitter -------------------------------------------------------------------------------------------- */

/* The router reads what has been jittered, experts do not. */
static void test_jitter_is_of_the_router_alone(void)
{
    static const way jittered = {"jittered", 2, 1.0, .jitter = 0.3},
                     by_hand = {"by hand", 2, 1.0, .is_by_hand = true};
    const weft_oracle_case what[] = {{.build = build, .argument = &jittered},
                                     {.build = build, .argument = &by_hand},
                                     {.build = build, .argument = &ways[4]}};
    weft_oracle_result r[3] = {0};
    weft_error error = {0};
    for (int i = 0; i < 3; i++)
        CHECK_OK(weft_oracle_run(oracle.alone, &what[i], NULL, &r[i], &error), error);
    if (CHECK_EQ_INT(error.status, WEFT_OK)) {
        for (int fact = BALANCE; fact <= TURNED_AWAY; fact++)
            CHECK_CLOSE(r[0].data[fact][0], r[1].data[fact][0], 1e-14);
        CHECK(fabs(r[0].data[Z][0] - r[2].data[Z][0]) > 1e-3);
        CHECK(fabs(r[0].data[Y][0] - r[1].data[Y][0]) > 1e-6);
    }
    for (int i = 0; i < 3; i++)
        weft_oracle_free(&r[i]);
    check_layouts(&jittered);
}

static void test_jitter_told_wrongly(void)
{
    static const double wrong[] = {1.0, -0.1, NAN};
    for (int i = 0; i < 3; i++) {
        weft_graph *g = weft_graph_create(1);
        const weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, token, embed));
        const weft_experts_options options = {.name = "moe",
                                              .token = token,
                                              .feature = embed,
                                              .experts = experts,
                                              .hidden = hidden,
                                              .jitter = wrong[i]};
        CHECK_EQ_INT(weft_experts(x, &options, NULL).id, 0);
        CHECK_TEXT(weft_graph_error(g)->message, "so it is from 0 to below 1");
        (void)!weft_graph_destroy(&g);
    }
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:4", "d:2,m:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_experts_are_what_loops_make);
        RUN(test_few_places_drop_tokens);
        RUN(test_every_layout_has_the_numbers_of_one_rank);
        RUN(test_jitter_is_of_the_router_alone);
        RUN(test_jitter_told_wrongly);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
