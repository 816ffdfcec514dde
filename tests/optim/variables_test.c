/* RANKS: 2 4 */
/* variables_test: optimizers with variables of their own: frozen ones, two optimizers in one program, a prefix, gradients
 * handed in; under layouts and ZeRO stages against one rank; and the sentences for what does not fit.
 */
#include "ops/graph/ir.h"
#include "training.h"

static weft_oracle oracle;

enum { STEPS = 4, W0 = 0, W1 = 20, B1 = 48, W2 = 55, EXTRA = 76, LOSS = 77, ALL = 78 };

static const weft_optimizer *rule_of(const void *name)
{
    weft_error error = {0};
    const weft_optimizer *rule = weft_optimizer_find(name, &error);
    CHECK_OK(error.status, error);
    return rule;
}

/* ---- ways to train --------------------------------------------------------------------------- */

static weft_value train_all(net *n, const void *rule)
{
    return rule_of(rule)->build(n->loss, &(weft_optimizer_options){.rate = 0.05});
}

/* The same by two optimizers of one kind: by a prefix, and by a list. */
static weft_value train_in_two(net *n, const void *rule)
{
    const weft_value *v = n->variables;
    weft_value block =
        rule_of(rule)->build(n->loss, &(weft_optimizer_options){.rate = 0.05, .prefix = "block."});
    weft_value rest = rule_of(rule)->build(
        n->loss, &(weft_optimizer_options){.rate = 0.05, .variables = WEFT_VALUES(v[3], v[0])});
    return weft_group(n->graph, WEFT_VALUES(block, rest));
}

/* The same from gradients taken here, one of them with its dims in another order. */
static weft_value train_by_gradients(net *n, const void *rule)
{
    weft_value d[N_VARIABLES];
    weft_gradients(n->loss, (weft_values){n->variables, N_VARIABLES}, d, 0);
    const weft_shape *shape = weft_shape_of(d[1]);
    d[1] = weft_transpose(d[1], WEFT_DIMS(shape->dims[1], shape->dims[0]));
    const weft_optimizer_options options = {
        .rate = 0.05, .variables = {n->variables, N_VARIABLES}, .gradients = {d, N_VARIABLES}};
    return rule_of(rule)->build((weft_value){0}, &options);
}

/* The same once more: every gradient handed to both, and each keeps those of its prefix. */
static weft_value train_by_prefixes(net *n, const void *rule)
{
    weft_value d[N_VARIABLES], tokens[3];
    static const char *const prefixes[] = {"block.", "head.w", "e"};
    weft_gradients(n->loss, (weft_values){n->variables, N_VARIABLES}, d, 0);
    for (int i = 0; i < 3; i++)
        tokens[i] = rule_of(rule)->build(
            n->loss, &(weft_optimizer_options){.rate = 0.05,
                                               .prefix = prefixes[i],
                                               .variables = {n->variables, N_VARIABLES},
                                               .gradients = {d, N_VARIABLES}});
    return weft_group(n->graph, (weft_values){tokens, 3});
}

static void test_ways_to_say_the_same(void)
{
    for (int k = 0; k < weft_n_optimizers; k++) {
        const char *rule = weft_optimizers[k].name;
        double alone[MOST_NUMBERS], numbers[MOST_NUMBERS];
        static const trainer ways[] = {train_all, train_in_two, train_by_gradients,
                                       train_by_prefixes};
        CHECK_EQ_INT(net_train(oracle.alone, &places[0], train_all, rule, STEPS, alone), ALL);
        for (int m = -1; m < oracle.n_meshes; m++)
            for (int p = 0; p < N_PLACES; p++) {
                weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
                const trainer way =
                    ways[(p + m + 1 + k) % 4]; /* every place has all of them on some mesh */
                if (net_train(mesh, &places[p], way, rule, STEPS, numbers) != ALL) return;
                net_same(alone, numbers, 0, ALL, 2e-11, rule);
            }
    }
}

/* ---- freezing -------------------------------------------------------------------------------- */

static weft_value train_the_head(net *n, const void *argument)
{
    (void)argument;
    return weft_adamw(n->loss,
                      &(weft_optimizer_options){.rate = 0.05, .prefix = "head", .clip = 0.01});
}

static weft_value train_none(net *n, const void *argument)
{
    (void)argument;
    return n->loss;
}

static void test_what_is_not_listed_is_frozen(void)
{
    double first[MOST_NUMBERS], alone[MOST_NUMBERS], numbers[MOST_NUMBERS];
    CHECK_EQ_INT(net_train(oracle.alone, &places[0], train_none, NULL, 1, first), ALL);
    CHECK_EQ_INT(net_train(oracle.alone, &places[0], train_the_head, NULL, STEPS, alone), ALL);
    for (int m = 0; m < oracle.n_meshes; m++)
        for (int p = 0; p < N_PLACES; p++) {
            if (net_train(oracle.meshes[m], &places[p], train_the_head, NULL, STEPS, numbers) !=
                ALL)
                return;
            net_same(first, numbers, W0, W2, 0.0, "frozen");
            net_same(alone, numbers, 0, ALL, 2e-11, "head");
            CHECK(numbers[LOSS] < first[LOSS]);
            for (int i = W2; i < EXTRA; i++)
                CHECK(numbers[i] != first[i]);
        }
}

/* Nothing of a frozen variable's gradient is computed: no node is there for it. */
static void test_frozen_variables_have_no_backward_pass(void)
{
    int n_nodes[2];
    for (int all = 0; all < 2; all++) {
        net n = net_make();
        const uint32_t before = n.graph->n_nodes;
        weft_sgd(n.loss, &(weft_optimizer_options){.prefix = all ? NULL : "head."});
        n_nodes[all] = (int)(n.graph->n_nodes - before);
        int n_assigned = 0;
        for (uint32_t id = before; id < n.graph->n_nodes; id++)
            n_assigned += n.graph->nodes[id].op == &weft_op_assign;
        CHECK_EQ_INT(n_assigned, all ? N_VARIABLES : 1);
        weft_graph_destroy(&n.graph);
    }
    CHECK(2 * n_nodes[0] < n_nodes[1]);
}

/* ---- gradients changed on the way ------------------------------------------------------------ */

/* Halved gradients: of sgd that is half the rate. argument: whether it is done so. */
static weft_value train_halved(net *n, const void *argument)
{
    if (argument == NULL) return weft_sgd(n->loss, &(weft_optimizer_options){.rate = 0.05});
    weft_value d[N_VARIABLES];
    weft_gradients(n->loss, (weft_values){n->variables, N_VARIABLES}, d, 0);
    for (int i = 0; i < N_VARIABLES; i++)
        d[i] = weft_scale(d[i], 0.5);
    return weft_sgd(n->loss, &(weft_optimizer_options){.rate = 0.1,
                                                       .variables = {n->variables, N_VARIABLES},
                                                       .gradients = {d, N_VARIABLES}});
}

static void test_gradients_may_be_changed_on_the_way(void)
{
    double half[MOST_NUMBERS], numbers[MOST_NUMBERS];
    CHECK_EQ_INT(net_train(oracle.alone, &places[0], train_halved, NULL, STEPS, half), ALL);
    for (int m = 0; m < oracle.n_meshes; m++)
        for (int p = 0; p < N_PLACES; p++) {
            if (net_train(oracle.meshes[m], &places[p], train_halved, "halved", STEPS, numbers) !=
                ALL)
                return;
            net_same(half, numbers, 0, ALL, 2e-11, "halved");
        }
}

/* Two lists, two norms: each optimizer clips by the norm of what it updates. The extra is the sum of both norms. */
static weft_value train_clipped(net *n, const void *argument)
{
    weft_value norm[2], d[3];
    const weft_value *v = n->variables;
    if (argument == NULL) {
        weft_gradients(n->loss, WEFT_VALUES(v[1], v[2], v[0]), d, 0);
        norm[0] = weft_sqrt(weft_add(weft_sum(WEFT_SCALAR, weft_square(d[0])),
                                     weft_sum(WEFT_SCALAR, weft_square(d[1]))));
        norm[1] = weft_sqrt(weft_sum(WEFT_SCALAR, weft_square(d[2])));
        n->extra = weft_add(norm[0], norm[1]);
        return n->loss;
    }
    weft_value block = weft_momentum(
        n->loss,
        &(weft_optimizer_options){.prefix = "block.", .clip = 0.02, .gradient_norm = &norm[0]});
    weft_value embed = weft_momentum(
        n->loss, &(weft_optimizer_options){
                     .variables = WEFT_VALUES(v[0]), .clip = 0.03, .gradient_norm = &norm[1]});
    n->extra = weft_add(norm[0], norm[1]);
    return weft_group(n->graph, WEFT_VALUES(block, embed));
}

static double length(const double *a, const double *b, int from, int to)
{
    double sum = 0.0;
    for (int i = from; i < to; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

static void test_clipping_is_of_the_given_list(void)
{
    double first[MOST_NUMBERS], numbers[MOST_NUMBERS];
    CHECK_EQ_INT(net_train(oracle.alone, &places[0], train_clipped, NULL, 1, first), ALL);
    for (int m = 0; m < oracle.n_meshes; m++)
        for (int p = 0; p < N_PLACES; p++) {
            if (net_train(oracle.meshes[m], &places[p], train_clipped, "clipped", 1, numbers) !=
                ALL)
                return;
            CHECK_CLOSE(numbers[EXTRA], first[EXTRA], 1e-11);
            CHECK_CLOSE(length(first, numbers, W1, W2), 0.1 * 0.02, 1e-3); /* rate times the norm */
            CHECK_CLOSE(length(first, numbers, W0, W1), 0.1 * 0.03, 1e-3);
            net_same(first, numbers, W2, EXTRA, 0.0, "frozen");
        }
}

/* ---- sentences ------------------------------------------------------------------------------- */

typedef weft_value (*mistake)(net *n, weft_value *d);

#define MISTAKE(name, call)                                                                        \
    static weft_value name(net *n, weft_value *d)                                                  \
    {                                                                                              \
        (void)d;                                                                                   \
        return call;                                                                               \
    }
#define OPTIONS(...) (&(weft_optimizer_options){__VA_ARGS__})

MISTAKE(prefix_typo, weft_sgd(n->loss, OPTIONS(.prefix = "blok")))
MISTAKE(prefix_far, weft_sgd(n->loss, OPTIONS(.prefix = "decoder.layer")))
MISTAKE(prefix_in_list,
        weft_sgd(n->loss, OPTIONS(.prefix = "head", .variables = WEFT_VALUES(n->variables[0]))))
MISTAKE(listed_twice,
        weft_adam(n->loss, OPTIONS(.variables = WEFT_VALUES(n->variables[0], n->variables[1],
                                                            n->variables[0]))))
MISTAKE(listed_input, weft_adam(n->loss, OPTIONS(.variables = WEFT_VALUES(n->x))))
MISTAKE(listed_slot,
        weft_adam(n->loss, OPTIONS(.variables = WEFT_VALUES(weft_slot(n->variables[0], "s",
                                                                      weft_constant_of(0.0))))))
MISTAKE(listed_null, weft_adam(n->loss, OPTIONS(.variables = {NULL, 3})))
MISTAKE(listed_many, weft_adam(n->loss, OPTIONS(.variables = {n->variables, INT32_MAX})))
MISTAKE(listed_nothing,
        weft_adam(n->loss, OPTIONS(.variables = WEFT_VALUES(((weft_value){n->graph, 0})))))
MISTAKE(unused,
        weft_adam(n->loss, OPTIONS(.variables = WEFT_VALUES(weft_variable(n->graph, "unused",
                                                                          WEFT_F64, WEFT_SCALAR,
                                                                          weft_constant_of(0.0))))))
MISTAKE(whole_number,
        weft_adam(n->loss, OPTIONS(.variables = WEFT_VALUES(weft_variable(n->graph, "n", WEFT_I32,
                                                                          WEFT_SCALAR,
                                                                          weft_constant_of(0.0))))))
MISTAKE(gradients_alone, weft_sgd(n->loss, OPTIONS(.gradients = {d, 2})))
MISTAKE(gradients_few,
        weft_sgd(n->loss, OPTIONS(.gradients = {d, 1}, .variables = {n->variables, 2})))
MISTAKE(gradients_crossed,
        weft_sgd(n->loss, OPTIONS(.gradients = {d, 2},
                                  .variables = WEFT_VALUES(n->variables[1], n->variables[0]))))
MISTAKE(gradient_token,
        weft_sgd(n->loss,
                 OPTIONS(.variables = {n->variables, 1},
                         .gradients = WEFT_VALUES(weft_assign(n->variables[3], n->variables[3])))))
MISTAKE(no_loss, weft_sgd((weft_value){n->graph, 0}, NULL))
/* The second gets as far as embed.w, whose slots are undone. */
MISTAKE(two_adams, (weft_adam(n->loss, OPTIONS(.prefix = "block")), weft_adam(n->loss, NULL)))
MISTAKE(nan_rate, weft_sgd(n->loss, OPTIONS(.rate = NAN)))
MISTAKE(infinite_decay, weft_adamw(n->loss, OPTIONS(.weight_decay = INFINITY)))
MISTAKE(rising_decay, weft_adafactor(n->loss, OPTIONS(.beta2_decay = 0.5)))
MISTAKE(rate_of_nothing, weft_sgd(n->loss, OPTIONS(.rate_value = {n->graph, 0})))
MISTAKE(rate_of_a_vector, weft_sgd(n->loss, OPTIONS(.rate_value = n->variables[2])))

static const struct {
    mistake make;
    const char *says, *says_too;
} mistakes[] = {
    {prefix_typo,
     "sgd at variables_test.c:", "no variable's name begins with blok; did you mean block?"},
    {prefix_far, "begins with decoder.layer; one of them is embed.w", ""},
    {prefix_in_list, "begins with head; ", "embed"},
    {listed_twice, "adam at variables_test.c:", "embed.w is in variables twice, as number 0 and 2"},
    {listed_input, "value 0 of variables is the result of input at training.h:",
     "list what weft_variable returned"},
    {listed_slot, "embed.w/s is a slot", ""},
    {listed_null, "variables is a list of 3 values, and its pointer is NULL", ""},
    {listed_many, "variables has 2147483647 values", ""},
    {listed_nothing, "value 0 of variables is not a value", ""},
    {unused, "does not depend, through floats, on unused", ""},
    {whole_number, "the variable n is i32", ""},
    {gradients_alone, "gradients has 2 values and variables has 0", ""},
    {gradients_few, "gradients has 1 values and variables has 2", ""},
    {gradients_crossed,
     "block.w is f64[hidden:4, wide:7] and its gradient, number 0, is f64[in:5, hidden:4]", ""},
    {gradient_token, "its gradient, number 0, is i32[]", ""},
    {no_loss, "value 0 of loss is not a value", ""},
    {two_adams,
     "block.w is updated by another optimizer already: its slot block.w/m was made at "
     "variables_test.c:",
     "adam at variables_test.c:"},
    {nan_rate, "the rate is ", "nan"},
    {infinite_decay, "weight_decay is inf", ""},
    {rising_decay, "beta2_decay is 0.5; it is negative", ""},
    {rate_of_nothing, "value 0 of rate_value is not a value", ""},
    {rate_of_a_vector, "rate_value is f64[wide:7] and the loss is f64", ""},
};

static void test_what_does_not_fit_has_its_sentence_and_leaves_nothing(void)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        net n = net_make();
        weft_value d[N_VARIABLES];
        weft_gradients(n.loss, (weft_values){n.variables, N_VARIABLES}, d, 0);
        CHECK_EQ_INT(mistakes[i].make(&n, d).id, 0);
        CHECK_TEXT(weft_graph_error(n.graph)->message, mistakes[i].says);
        CHECK_TEXT(weft_graph_error(n.graph)->message, mistakes[i].says_too);
        CHECK_EQ_INT(n.graph->phase, WEFT_FORWARD);
        CHECK_EQ_INT(n.graph->place_as, 0);
        CHECK_EQ_INT(weft_graph_find(n.graph, "embed.w/m", NULL).id, 0);
        weft_graph_clear_error(n.graph);
        CHECK(weft_momentum(n.loss, NULL).id != 0); /* no slot was left behind */
        weft_graph_destroy(&n.graph);
    }
    weft_value norm = {NULL, 9};
    CHECK_EQ_INT(weft_adam((weft_value){0}, NULL).id, 0);
    CHECK_EQ_INT(weft_adam((weft_value){0}, OPTIONS(.gradient_norm = &norm)).id, 0);
    CHECK_EQ_INT(norm.id, 0);
}

/* A program that lets two optimizers update one variable is refused when it is compiled, with both lines. */
static void test_one_variable_is_assigned_once_in_a_program(void)
{
    net n = net_make();
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value a = weft_sgd(n.loss, OPTIONS(.prefix = "block"));
    weft_value b = weft_adam(n.loss, OPTIONS(.prefix = "b"));
    CHECK_EQ_INT(net_compile(&n, weft_group(n.graph, WEFT_VALUES(a, b)), oracle.alone, &places[0],
                             NULL, &program, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "block.w");
    CHECK_TEXT(error.message, "variables_test.c:");
    weft_error_clear(&error);
    CHECK_OK(net_compile(&n, b, oracle.alone, &places[0], NULL, &program, &error),
             error); /* alone it is fine */
    weft_program_destroy(&program);
    weft_graph_destroy(&n.graph);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2",        "data:3",
                                         "data:4", "data:2,model:2", "model:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        RUN(test_ways_to_say_the_same);
        RUN(test_what_is_not_listed_is_frozen);
        RUN(test_frozen_variables_have_no_backward_pass);
        RUN(test_gradients_may_be_changed_on_the_way);
        RUN(test_clipping_is_of_the_given_list);
        RUN(test_what_does_not_fit_has_its_sentence_and_leaves_nothing);
        RUN(test_one_variable_is_assigned_once_in_a_program);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
