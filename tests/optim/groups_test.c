/* RANKS: 2 4 */
/* groups_test: a group of variables goes as by an optimizer of its own, to the bit, under layouts and stages of ZeRO; the first
 * pattern that matches counts; what is refused.
 */
#include "handed.h"
#include "weft/extend/optimizer.h"

static weft_oracle oracle;

enum { STEPS = 3 };
static const weft_optimizer_options common = {.rate = 0.02, .beta1 = 0.8, .momentum = 0.7};

static weft_optimizer_options of(const trained *t, int first, int n)
{
    weft_optimizer_options o = common;
    o.variables = (weft_values){t->variables + first, n};
    o.gradients = (weft_values){t->gradients + first, n};
    return o;
}

/* One call. The last pattern would match all. */
static weft_value in_groups(const trained *t, weft_value loss)
{
    static const weft_optimizer_group groups[] = {
        {"v0", .rate_scale = 0.5, .weight_decay = 0.2},
        {"?[23]", .optimizer = "momentum"},
        {"*4", .weight_decay = -1.0, .optimizer = "adamw"},
        {"v*"},
    };
    weft_optimizer_options o = of(t, 0, N);
    o.groups = (weft_optimizer_groups){groups, 4};
    return weft_adam(loss, &o);
}

/* The same by a call for each. */
static weft_value one_by_one(const trained *t, weft_value loss)
{
    weft_optimizer_options v0 = of(t, 0, 1), v1 = of(t, 1, 1), v23 = of(t, 2, 2), v4 = of(t, 4, 1),
                           v5 = of(t, 5, 1);
    v0.rate = 0.01, v0.weight_decay = 0.2, v4.weight_decay = -1.0;
    const weft_value all[] = {weft_adam(loss, &v0), weft_adam(loss, &v1), weft_momentum(loss, &v23),
                              weft_adamw(loss, &v4), weft_adam(loss, &v5)};
    return weft_group(t->graph, (weft_values){all, 5});
}

static int train_by(weft_value (*build)(const trained *t, weft_value loss), weft_mesh *mesh, int l,
                    int stage, double *numbers)
{
    weft_value loss;
    weft_program *program = NULL;
    weft_error error = {0};
    int used = 0;
    trained t = make_variables(&loss);
    t.update = weft_group(t.graph, WEFT_VALUES(build(&t, loss), loss));
    const bool is_trained =
        CHECK_OK(compile(&t, mesh, layouts[l], stage, &program, &error), error) &&
        CHECK_OK(train(&t, program, STEPS, &error), error);
    for (int k = 0; k < N && is_trained; k++) {
        double *found = NULL;
        if (!CHECK_OK(weft_oracle_read(program, t.variables[k], &found, &error), error)) break;
        for (int i = 0; i < extents[k][0] * count_of(k); i++)
            numbers[used++] = found[i];
        free(found);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&t.graph);
    return used;
}

static void test_a_group_is_an_optimizer_of_its_own(void)
{
    static double one[6 * LARGEST], many[6 * LARGEST];
    for (int m = -1; m < oracle.n_meshes; m++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
            const int stage = (m + 1 + l) % 4;
            const int n = train_by(in_groups, mesh, l, stage, one);
            CHECK_EQ_INT(n, train_by(one_by_one, mesh, l, stage, many));
            for (int i = 0; i < n; i++)
                CHECK(one[i] == many[i]);
        }
}

/* Slots tell by which optimizer, in the graph that a checkpoint's names come from. */
static void test_the_first_pattern_counts(void)
{
    static const weft_optimizer_group groups[] = {{"v1", .optimizer = "sgd"},
                                                  {"v[12]", .optimizer = "momentum"},
                                                  {"v*", .optimizer = "lion"}};
    trained t = make("adamw", (weft_optimizer_options){.groups = {groups, 3}});
    CHECK_TEXT(weft_graph_error(t.graph)->message, "");
    CHECK(weft_graph_find(t.graph, "v1/momentum", NULL).id == 0);
    CHECK(weft_graph_find(t.graph, "v2/momentum", NULL).id != 0);
    CHECK(weft_graph_find(t.graph, "v3/m", NULL).id != 0);
    CHECK(weft_graph_find(t.graph, "v3/v", NULL).id == 0);
    weft_graph_destroy(&t.graph);
}

/* A decay that is meant for a vector is its. */
static void test_a_group_decays_what_has_one_dim(void)
{
    static const weft_optimizer_group groups[] = {{"v1", .rate_scale = 2.0, .weight_decay = 0.5}};
    weft_program *program = NULL;
    weft_error error = {0};
    double *found = NULL;
    trained t = make("sgd", (weft_optimizer_options){.rate = 0.1, .groups = {groups, 1}});
    if (CHECK_OK(compile(&t, oracle.alone, "", 0, &program, &error), error) &&
        CHECK_OK(train(&t, program, 1, &error), error) &&
        CHECK_OK(weft_oracle_read(program, t.variables[1], &found, &error), error))
        for (int i = 0; i < 7; i++)
            CHECK(fabs(found[i] - (begins_at(i) * 0.9 - 0.2 * gradient_at(1, 0, i))) <= 1e-15);
    free(found);
    weft_program_destroy(&program);
    weft_graph_destroy(&t.graph);
}

/* ---- from outside, by its name --------------------------------------------------------------- */

static int flip_rule(const weft_update *u, weft_value variable, weft_value gradient,
                     weft_value *tokens)
{
    (void)gradient;
    tokens[0] =
        weft_assign(variable, weft_mul(weft_neg(variable), weft_scalar_for(u->rate, variable)));
    return 1;
}

static weft_value build_flip(weft_value loss, const weft_optimizer_options *options);
static const weft_optimizer_rule flip = {sizeof flip, "flip", flip_rule, build_flip, {.rate = 1}};
static weft_value build_flip(weft_value loss, const weft_optimizer_options *options)
{
    return weft_optimize(&flip, loss, options);
}

static void test_a_rule_from_outside_serves_a_group(void)
{
    static const weft_optimizer_group groups[] = {{"v1", 3.0, .optimizer = "flip"}};
    weft_program *program = NULL;
    weft_error error = {0};
    double *found = NULL;
    CHECK_OK(weft_extend_optimizer(&flip, &error), error);
    trained t = make("adam", (weft_optimizer_options){.groups = {groups, 1}});
    if (CHECK_OK(compile(&t, oracle.alone, "", 0, &program, &error), error) &&
        CHECK_OK(train(&t, program, 1, &error), error) &&
        CHECK_OK(weft_oracle_read(program, t.variables[1], &found, &error), error))
        for (int i = 0; i < 7; i++)
            CHECK(fabs(found[i] + 3.0 * begins_at(i)) <= 1e-15);
    free(found);
    weft_program_destroy(&program);
    weft_graph_destroy(&t.graph);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void check_refused(weft_optimizer_groups groups, const char *sentence)
{
    weft_value loss;
    trained t = make_variables(&loss);
    weft_optimizer_options o = of(&t, 0, N);
    o.groups = groups;
    CHECK_EQ_INT(weft_adam(loss, &o).id, 0);
    CHECK_TEXT(weft_graph_error(t.graph)->message, sentence);
    CHECK_TEXT(weft_graph_error(t.graph)->message, "adam at groups_test.c:");
    weft_graph_destroy(&t.graph);
}

static void test_wrong_groups_have_their_sentence(void)
{
    static const struct {
        weft_optimizer_group groups[2];
        const char *says;
    } wrongs[] = {
        {{{"v*"}, {"w0*"}}, "group 1: no variable's name matches w0*; did you mean v0?"},
        {{{"q"}, {"v*"}}, "group 0: no variable's name matches q; one of them is v0"},
        {{{"v*"}, {"v3"}}, "group 1, v3, has no variable: v3 is in group 0 already, v*"},
        {{{NULL}, {"v*"}}, "group 0 has no pattern"},
        {{{"v*"}, {"v1", .rate_scale = -1}},
         "group 1, v1: the rate is scaled by -1; it is positive"},
        {{{"v*", .weight_decay = NAN}, {"v1"}}, "group 0, v*: weight_decay is nan"},
        {{{"v*", .optimizer = "adagrat"}, {"v1"}},
         "there is no optimizer adagrat; did you mean adagrad?"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++)
        check_refused((weft_optimizer_groups){wrongs[i].groups, 2}, wrongs[i].says);
    check_refused((weft_optimizer_groups){NULL, 2}, "groups has 2 groups and no array");
    check_refused((weft_optimizer_groups){wrongs[0].groups, -1}, "groups has -1 groups");
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:4", "data:2,model:2",
                                         "model:2,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_a_group_is_an_optimizer_of_its_own);
        RUN(test_the_first_pattern_counts);
        RUN(test_a_group_decays_what_has_one_dim);
        RUN(test_a_rule_from_outside_serves_a_group);
        RUN(test_wrong_groups_have_their_sentence);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
