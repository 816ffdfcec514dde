/* values_test: what ops give, on one rank, against their definitions; and what the op table says of them against
 * what the definitions do. Placements are ops_test's matter.
 *
 *     values_test [NAME]    only cases that begin so (at least one)
 */
#include "called.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/compile/passes.h"
#include "test.h"
#include "weft/autodiff.h"

static weft_oracle oracle;
static const char *only = "";
enum { SEED = CALLED_SEED, MOST = 2 * WEFT_ORACLE_VALUES };

/* ---- results against the reference --------------------------------------------------------------- */

/* The first element that is not within the case's bound, as a sentence; true: none. */
static bool is_near(const op_case *what, const reference_tensor *expected, const double *found,
                    weft_dtype dtype, char *text, size_t bytes)
{
    const int64_t count = weft_shape_count(&expected->shape);
    /* one or two roundings to 8 and 11 bits, beside what f32 does */
    static const double steps[WEFT_DTYPES] = {[WEFT_BF16] = 0x1p-7, [WEFT_F16] = 0x1p-10};
    const double f32 = what->f32 > 0 ? what->f32 : 1e-6, f64 = what->f64 > 0 ? what->f64 : 1e-13;
    const double of_dtype = dtype == WEFT_F64 ? f64 : f32 + steps[dtype];
    const double bound = weft_dtype_is_float(expected->dtype) ? of_dtype : 0.0;
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected->data[i])) largest = fmax(largest, fabs(expected->data[i]));
    for (int64_t i = 0; i < count; i++) {
        const double x = expected->data[i], y = found[i];
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (isfinite(x) && fabs(x - y) <= bound * (what->each ? fabs(x) : largest)) continue;
        snprintf(text, bytes, "element %lld of %lld is %.17g, and by definition %.17g",
                 (long long)i, (long long)count, y, x);
        return false;
    }
    return true;
}

static bool is_right(const called_result *r, char *text, size_t bytes)
{
    for (int o = 0; o < r->expected->n_out; o++)
        if (!is_near(r->what, &r->expected->out[o], r->found[o], r->dtype, text, bytes))
            return false;
    return true;
}

static void visit_values(const op_group *group, const op_case *what, void *argument)
{
    (void)argument;
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        if (what->dtypes >> dtype & 1 && weft_oracle_takes(&oracle))
            called_check(oracle.alone, group, what, (weft_dtype)dtype, 0, "", is_right);
}

static void test_results_are_what_the_definition_says(void)
{
    op_cases_each(only, visit_values, NULL);
}

/* ---- first values of variables ------------------------------------------------------------------- */

/* FNV-1a, 32 bits.  source  Fowler, Noll, Vo; RFC 9923 */
static uint32_t hash_of(const char *name)
{
    uint64_t hash = 2166136261u;
    for (; *name != 0; name++)
        hash = ((hash ^ (unsigned char)*name) * 16777619u) % 4294967296u;
    return (uint32_t)hash;
}

/* A variable's stream is the hash of its name, its run is 0. */
static void check_initial(weft_dtype dtype, const char *name, weft_initial initial,
                          reference expected)
{
    static const weft_dim row = {"row", 37}, column = {"column", 41};
    weft_graph *graph = weft_graph_create(SEED);
    weft_value x = weft_variable(graph, name, dtype, WEFT_DIMS(row, column), initial);
    called c = {.build = {.graph = graph}, .n_results = 1, .results = {x}};
    double *found[1] = {0};
    char text[400], sentence[200] = "";
    weft_error error = {0};
    const op_case what = {.with = {.a = initial.a, .b = initial.b, .stream = hash_of(name)}};
    bool right = called_run(oracle.alone, &c, found, NULL, &error) == WEFT_OK;
    reference_call call = called_as(&what, &c, NULL);
    call.run = 0;
    expected(&call);
    right = right && is_near(&what, &call.out[0], found[0], dtype, sentence, sizeof sentence);
    snprintf(text, sizeof text, "%s of %s: %s%s", name, weft_dtype_name(dtype), sentence,
             error.message);
    weft_test_check(right, __FILE__, __LINE__, text);
    called_free(&call);
    free(found[0]);
    weft_graph_destroy(&graph);
}

static void formula(const reference_call *call) /* a cos(b i) */
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const long double i = element_index(&call->out[0], &p);
        element_put(&call->out[0], &p, call->with.a * cosl(call->with.b * i));
    }
}

static void test_variables_begin_as_their_names_say(void)
{
    CHECK(hash_of("foobar") == 0xbf9cf968u); /* a known answer of the authors */
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        const weft_dtype t = (weft_dtype)dtype;
        if (!weft_dtype_is_float(t)) continue;
        check_initial(t, "w", weft_constant_of(2.5), reference_constant);
        check_initial(t, "layer/weight", weft_normal(0.5, 0.02), reference_random_normal);
        check_initial(t, "layer/bias", weft_uniform(-0.3, 0.7), reference_random_uniform);
        check_initial(t, "wave", weft_formula(0.3, 0.1), formula);
    }
    check_initial(WEFT_I32, "count", weft_constant_of(-7.0), reference_constant);
    check_initial(WEFT_I64, "far", weft_constant_of(-7e12), reference_constant);
    check_initial(WEFT_U8, "small", weft_constant_of(200.0), reference_constant);
}

/* ---- every op and every builder has cases -------------------------------------------------------- */

/* Does the graph that a case builds have a node of the op? */
static bool has_node(const weft_graph *graph, const weft_op *op)
{
    for (uint32_t n = 1; n < graph->n_nodes; n++)
        if (graph->nodes[n].op == op) return true;
    return false;
}

static bool uses_its_op(const op_group *group)
{
    for (const op_case *c = group->cases; c->name != NULL; c++) {
        int dtype = 0;
        while (!(c->dtypes >> dtype & 1))
            dtype++;
        called b = called_build(c, (weft_dtype)dtype, weft_graph_create(SEED), NULL);
        const bool has = has_node(b.build.graph, group->op);
        weft_graph_destroy(&b.build.graph);
        if (has) return true;
    }
    return group->cases[0].why_none != NULL;
}

static void test_every_op_is_in_a_graph_of_its_cases(void)
{
    for (int g = 0; g < n_op_groups; g++) {
        char text[160];
        snprintf(text, sizeof text, "no case of %s has a node of that op", op_groups[g].name);
        if (op_groups[g].op != NULL)
            weft_test_check(uses_its_op(&op_groups[g]), __FILE__, __LINE__, text);
    }
}

/* Builders whose op is called otherwise. */
static const char *group_of_builder(const char *builder)
{
    static const char *const others[][2] = {
        {"max", "reduce_max"},         {"prod", "reduce_prod"},
        {"broadcast_to", "broadcast"}, {"attention_with", "attention"},
        {"rope_with", "rope"},         {"cross_entropy_with", "cross_entropy"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(builder, others[i][0]) == 0) return others[i][1];
    return builder;
}

static bool has_cases(const char *builder)
{
    for (int g = 0; g < n_op_groups; g++)
        if (strcmp(op_groups[g].name, group_of_builder(builder)) == 0)
            return op_groups[g].cases[0].name != NULL;
    return false;
}

static void test_every_builder_of_the_header_has_cases(void)
{
    FILE *file = fopen(WEFT_TEST_DATA "/../ops/include/weft/ops.h", "r");
    static const char mark[] = "weft_value weft_";
    char line[400];
    int n_builders = 0;
    if (!CHECK(file != NULL)) return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, mark);
        if (at == NULL) continue;
        char name[64] = "", text[160];
        at += strlen(mark);
        for (size_t i = 0; i + 1 < sizeof name && (isalnum((unsigned char)at[i]) || at[i] == '_');
             i++)
            name[i] = at[i];
        if (at[strlen(name)] != '(') continue;
        n_builders++;
        snprintf(text, sizeof text, "weft_%s of weft/ops.h has no case", name);
        weft_test_check(has_cases(name), __FILE__, __LINE__, text);
    }
    fclose(file);
    CHECK(n_builders > 50); /* the header is still written as this test reads it */
}

/* ---- linear and additive are what the definitions are -------------------------------------------- */

/* Operands that could be partial sums as the definition goes, and are not said to, with the reason. */
static const struct {
    const weft_op *op;
    uint8_t linear;
    const char *why;
} left_out[] = {
    {&weft_op_attention, 1 << 2,
     "every rank would do the whole of the work to leave v a partial sum"},
    {&weft_op_settle, 1, "it is there so that nothing is partial behind it"},
    {&weft_op_attention_grad, 1 << 3 | 1 << 4 | 1 << 5, "the same, of dy, which comes last"},
};

typedef struct probe { /* bit i: operand i */
    uint8_t floats, linear, additive;
    int n_cases;
} probe;

/* And not because there is nothing but zeros. */
static bool is_close(const double *a, const double *b, const double *sum, int64_t n)
{
    bool is_zero = true;
    for (int64_t i = 0; i < n; i++) {
        is_zero = is_zero && sum[i] == 0;
        if (!(fabs(a[i] + b[i] - sum[i]) <= 1e-10 * (1.0 + fabs(a[i]) + fabs(b[i])))) return false;
    }
    return !is_zero;
}

/* Is f(a + b) = f(a) + f(b) where the operands of `mask` vary and the others stay? */
static bool adds_up(const op_group *group, const op_case *what, const called *c, uint8_t mask)
{
    double *arguments[3][WEFT_ORACLE_VALUES] = {0};
    reference_call calls[3];
    for (int k = 0; k < c->build.n_arguments; k++) {
        const int64_t n = weft_shape_count(weft_shape_of(c->build.arguments[k]));
        for (int v = 0; v < 3; v++)
            arguments[v][k] = called_zeros(c->build.arguments[k]);
        for (int64_t i = 0; i < n; i++) {
            const double a = weft_oracle_element(&c->build, k, i);
            const double b = 2.0 * weft_oracle_unit(40 + k, i) - 0.7;
            arguments[0][k][i] = arguments[1][k][i] = arguments[2][k][i] = a;
            if (mask >> k & 1) arguments[1][k][i] = b, arguments[2][k][i] = a + b;
        }
    }
    for (int v = 0; v < 3; v++) {
        calls[v] = called_as(what, c, arguments[v]);
        group->reference(&calls[v]);
    }
    bool close = true;
    for (int o = 0; o < c->n_results; o++)
        close = close && is_close(calls[0].out[o].data, calls[1].out[o].data, calls[2].out[o].data,
                                  weft_shape_count(&calls[0].out[o].shape));
    for (int v = 0; v < 3; v++) {
        called_free(&calls[v]);
        for (int k = 0; k < c->build.n_arguments; k++)
            free(arguments[v][k]);
    }
    return close;
}

/* Only cases whose arguments are the operands themselves, in f64: all else would be rounded. */
static void probe_case(const op_group *group, const op_case *what, probe *found)
{
    if (!(what->dtypes & OP_F64)) return;
    called c = called_build(what, WEFT_F64, weft_graph_create(SEED), NULL);
    bool plain = c.build.n_arguments == c.build.n_inputs;
    uint8_t floats = 0;
    for (int k = 0; k < c.build.n_arguments; k++) {
        plain = plain && c.build.arguments[k].id == c.build.operands[k].id;
        if (weft_dtype_is_float(weft_dtype_of(c.build.arguments[k]))) floats |= (uint8_t)(1 << k);
    }
    for (int k = 0; k < c.build.n_arguments && plain; k++)
        if ((floats >> k & 1) && !adds_up(group, what, &c, (uint8_t)(1 << k)))
            found->linear &= (uint8_t) ~(1 << k);
    if (plain && !adds_up(group, what, &c, floats)) found->additive = 0;
    if (plain) found->floats |= floats, found->n_cases++;
    weft_graph_destroy(&c.build.graph);
}

static void check_linear(const op_group *group)
{
    probe found = {.linear = 0xff, .additive = 0xff};
    for (const op_case *c = group->cases; c->name != NULL; c++)
        probe_case(group, c, &found);
    if (found.n_cases == 0) return;
    found.linear &= found.floats, found.additive &= found.floats;
    if ((found.additive & (found.additive - 1)) == 0) found.additive = 0; /* one: that is linear */
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        if (left_out[i].op == group->op) found.linear &= (uint8_t)~left_out[i].linear;
    char text[240];
    snprintf(text, sizeof text,
             "%s: operands that add up one at a time: bits 0x%x, and .linear says 0x%x; all at "
             "once: 0x%x, and .additive says 0x%x",
             group->name, found.linear, group->op->linear, found.additive, group->op->additive);
    weft_test_check(found.linear == group->op->linear && found.additive == group->op->additive,
                    __FILE__, __LINE__, text);
}

static void test_operands_that_add_up_are_linear_or_additive(void)
{
    for (int g = 0; g < n_op_groups; g++)
        if (op_groups[g].op != NULL) check_linear(&op_groups[g]);
}

/* ---- what is asked for twice is computed once ------------------------------------------------------ */

/* Whatever a builder leaves unset comes from here. */
static __attribute__((noinline)) void spoil_stack(int with)
{
    volatile char garbage[1 << 15];
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)with;
}

static bool is_random(const weft_graph *graph)
{
    return has_node(graph, &weft_op_random_uniform) || has_node(graph, &weft_op_random_normal) ||
           has_node(graph, &weft_op_dropout);
}

/* The case's results, and its gradients where it has any. */
static int values_of(const op_case *what, weft_dtype dtype, called *c, weft_value *values)
{
    int n = 0, n_wrt = 0;
    weft_value wrt[WEFT_ORACLE_VALUES], gradients[WEFT_ORACLE_VALUES];
    for (int o = 0; o < c->n_results; o++)
        values[n++] = c->results[o];
    if (what->derivatives == 0 || !weft_dtype_is_float(dtype)) return n;
    for (int k = 0; k < c->build.n_inputs; k++)
        if (weft_dtype_is_float(weft_dtype_of(c->build.inputs[k])))
            wrt[n_wrt++] = c->build.inputs[k];
    weft_value loss = weft_sum(WEFT_SCALAR, weft_square(c->results[0]));
    weft_gradients(loss, (weft_values){wrt, n_wrt}, gradients, WEFT_ZEROS_ALLOWED);
    for (int k = 0; k < n_wrt; k++)
        values[n++] = gradients[k];
    return n;
}

/* Of scans nothing is said: two bodies stay two, where they are not written down. */
static void check_twice(const op_group *group, const op_case *what, weft_dtype dtype)
{
    weft_graph *graph = weft_graph_create(SEED);
    weft_value values[2 * MOST];
    weft_error error = {0};
    weft_plan *plan = NULL;
    char text[900];
    spoil_stack(0x55);
    op_cases_fresh_names();
    called first = called_build(what, dtype, graph, NULL);
    const int n = values_of(what, dtype, &first, values);
    spoil_stack(0xaa);
    op_cases_fresh_names();
    called second = called_build(what, dtype, graph, &first.build);
    bool right = values_of(what, dtype, &second, values + n) == n;
    right = right && weft_plan_build(oracle.alone, NULL, (weft_values){values, 2 * n}, NULL, &plan,
                                     &error) == WEFT_OK;
    int same = 0;
    for (int i = 0; i < n && right; i++)
        same += plan->user_value[values[i].id] == plan->user_value[values[n + i].id];
    snprintf(text, sizeof text, "%s of %s, asked for twice: %d of %d values are computed once %s",
             what->name, weft_dtype_name(dtype), same, n, error.message);
    (void)group;
    const bool is_one = has_node(graph, &weft_op_scan_trip) || same == (is_random(graph) ? 0 : n);
    weft_test_check((right && is_one) || weft_oracle_refuses(&error), __FILE__, __LINE__, text);
    weft_plan_destroy(&plan);
    weft_graph_destroy(&graph);
}

static void visit_twice(const op_group *group, const op_case *what, void *argument)
{
    (void)argument;
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        if (what->dtypes >> dtype & 1) check_twice(group, what, (weft_dtype)dtype);
}

static void test_what_is_asked_for_twice_is_computed_once(void)
{
    op_cases_each(only, visit_twice, NULL);
}

static void run_graphs(void)
{
    RUN(test_what_is_asked_for_twice_is_computed_once);
    RUN(test_every_op_is_in_a_graph_of_its_cases);
    RUN(test_every_builder_of_the_header_has_cases);
    RUN(test_operands_that_add_up_are_linear_or_additive);
}

int main(int argc, char **argv)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error)) {
        if (!op_cases_options(argc, argv, &oracle, &only)) return 2;
        RUN(test_results_are_what_the_definition_says);
        RUN(test_variables_begin_as_their_names_say);
        if (oracle.world.n_processes == 1) run_graphs(); /* in which there are no processes */
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
