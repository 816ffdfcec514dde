/* extend_test: update rules from outside: by name, with the options of all, the same bits as Weft's own of one formula;
 * what is refused. */
#include "weft/autodiff.h"
#include "weft/collectives.h"
#include "weft/extend/optimizer.h"
#include "weft/ops.h"
#include "weft/program.h"

#include "test.h"

/* Momentum once more, with a slot of another name. */
static int heavy_rule(const weft_update *u, weft_value variable, weft_value gradient,
                      weft_value *tokens)
{
    weft_value slot = weft_update_slot(u, variable, "speed", weft_shape_of(variable));
    weft_value speed = weft_add(weft_scale(slot, u->options.momentum), gradient);
    weft_value move = weft_mul(speed, weft_scalar_for(u->rate, variable));
    tokens[0] = weft_assign(slot, speed);
    tokens[1] = weft_assign(variable, weft_sub(variable, move));
    return 2;
}
static weft_value build_heavy(weft_value loss, const weft_optimizer_options *options);
static const weft_optimizer_rule heavy = {
    sizeof heavy, "heavy", heavy_rule, build_heavy, {.rate = 0.1, .momentum = 0.9}};
static weft_value build_heavy(weft_value loss, const weft_optimizer_options *options)
{
    return weft_optimize(&heavy, loss, options);
}

/* The variable after three steps of an optimizer, split over 3 ranks and stored in shards. */
static void train(const char *optimizer, double w[5])
{
    static const weft_world alone = {.n_processes = 1};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(3);
    const weft_dim row = {"row", 6}, column = {"column", 5};
    const weft_optimizer *by = weft_optimizer_find(optimizer, &error);
    if (!CHECK(by != NULL)) return;
    CHECK_OK(weft_mesh_create(&alone, "data:3", &mesh, &error), error);
    CHECK_OK(weft_layout_create("row:data", &layout, &error), error);
    CHECK_OK(weft_layout_store(layout, 3, "row", &error), error);
    weft_value v = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(column), weft_uniform(-1, 1));
    weft_value x = weft_random_normal(graph, WEFT_F32, WEFT_DIMS(row, column), 0.0, 1.0);
    weft_value loss = weft_mean(weft_square(weft_shift(weft_mul(x, v), 1.0)));
    weft_value update = by->build(loss, &(weft_optimizer_options){.clip = 0.5});
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(update), NULL, &program, &error), error);
    for (int run = 0; run < 3 && program; run++)
        CHECK_OK(weft_run(program, &error), error);
    float read[5] = {0};
    if (program) CHECK_OK(weft_read(program, v, WEFT_F32, read, sizeof read, &error), error);
    for (int i = 0; i < 5; i++)
        w[i] = read[i];
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void test_a_rule_from_outside_gives_the_bits_of_wefts_own(void)
{
    double outside[5], own[5], other[5];
    train("heavy", outside);
    train("momentum", own);
    train("sgd", other);
    for (int i = 0; i < 5; i++) {
        CHECK(outside[i] == own[i]);
        CHECK(outside[i] != other[i] && outside[i] == outside[i]);
    }
}

static void test_it_is_found_by_name_among_all(void)
{
    weft_error error = {0};
    const weft_optimizer *at;
    int n = 0, n_heavy = 0;
    for (; (at = weft_optimizer_at(n)) != NULL; n++)
        n_heavy += strcmp(at->name, "heavy") == 0;
    CHECK_EQ_INT(n, weft_n_optimizers + 1);
    CHECK_EQ_INT(n_heavy, 1);
    CHECK(weft_optimizer_at(-1) == NULL);
    CHECK(weft_optimizer_find("heavi", &error) == NULL);
    CHECK_TEXT(error.message, "did you mean heavy?");
}

static void check_refused(const weft_optimizer_rule *rule, const char *sentence)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_extend_optimizer(rule, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, sentence);
}

static void test_wrong_rules_are_refused(void)
{
    const weft_optimizer_rule good = {sizeof good, "good", heavy_rule, build_heavy, {.rate = 1}};
    weft_optimizer_rule bad;
    check_refused(NULL, "rule is NULL");
    bad = good, bad.size = 3;
    check_refused(&bad, "size is 3");
    bad = good, bad.name = "a b";
    check_refused(&bad, "a b");
    bad = good, bad.rule = NULL;
    check_refused(&bad, "rule is NULL");
    bad = good, bad.build = NULL;
    check_refused(&bad, "build is NULL");
    bad = good, bad.defaults.rate = 0;
    check_refused(&bad, "rate");
    bad = good, bad.name = "adam";
    check_refused(&bad, "there is an optimizer adam already");
    bad = good, bad.name = "heavy";
    check_refused(&bad, "there is an optimizer heavy already");
}

/* No tokens, or more than there is room for. */
static int n_given;
static int loose_rule(const weft_update *u, weft_value variable, weft_value gradient,
                      weft_value *tokens)
{
    (void)u, (void)variable, (void)gradient, (void)tokens;
    return n_given;
}

static void test_a_rule_that_gives_no_tokens_is_the_graphs_error(void)
{
    static const weft_optimizer_rule loose = {sizeof loose, "loose", loose_rule, NULL, {.rate = 1}};
    for (n_given = -1; n_given < 7; n_given += n_given < 0 ? 1 : 6) {
        weft_graph *graph = weft_graph_create(1);
        weft_value v =
            weft_variable(graph, "w", WEFT_F64, WEFT_DIMS({"row", 4}), weft_constant_of(1));
        CHECK_EQ_INT(weft_optimize(&loose, weft_mean(weft_square(v)), NULL).id, 0);
        CHECK_TEXT(weft_graph_error(graph)->message, "its rule gave");
        weft_graph_destroy(&graph);
    }
}

int main(void)
{
    weft_error error = {0};
    CHECK_OK(weft_extend_optimizer(&heavy, &error), error);
    RUN(test_a_rule_from_outside_gives_the_bits_of_wefts_own);
    RUN(test_it_is_found_by_name_among_all);
    RUN(test_wrong_rules_are_refused);
    RUN(test_a_rule_that_gives_no_tokens_is_the_graphs_error);
    return weft_test_report();
}
