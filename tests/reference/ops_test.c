/* ops_test: every op and composition that PyTorch has, and its gradient, against PyTorch in float64: the oracle's cases, with the
 * operands that the oracle gives them.
 *
 * The table ops.txt comes from torch_ops.py, which tells what its lines mean. An op has a case there, or a reason here.
 */
#include "op_cases.h"
#include "weft/autodiff.h"

#include "test.h"
#include "torch_table.h"

/* ---- what PyTorch has not ----------------------------------------------------------------------------- */

typedef struct lacking {
    const char *op, *why;
} lacking;

#define IS_A_STATE "a state of what is reduced over ranks, which only expansions make"
#define HAS_OTHERS "PyTorch's generator has other random numbers; oracle/values has what they are"
static const lacking not_in_pytorch[] = {
    {"lse_state", IS_A_STATE},
    {"lse_finish", IS_A_STATE},
    {"normalizer", "both its results are in logsumexp, which has a case"},
    {"argmax_state", IS_A_STATE},
    {"argmax_finish", IS_A_STATE},
    {"moments_state", IS_A_STATE},
    {"moments_finish", IS_A_STATE},
    {"same", "a value of its own, which changes nothing"},
    {"masked", "made by gradients of pick, which has a case"},
    {"pow_log", "made by gradients of pow, which has a case"},
    {"unpool", "made by gradients of max_pool, which has a case"},
    {"pool_pick", "made by gradients of max_pool, which has a case"},
    {"run_number", "there are no runs"},
    {"settle", "it says where a value is, and changes nothing"},
    {"in_order", "made by order, which has a case"},
    {"reindex", "its parts have cases: slices, zeros around and between, reversals"},
    {"smooth_labels", "a part of cross_entropy there: reference/functions has both together"},
    {"rope", "no op of it"},
    {"in_order", "a copy, or what ranks make of a long dim's order: sort has a case"},
    {"unpick_product", "made by gradients of pick_product, which has a case"},
    {"require", "it checks, and changes nothing"},
    {"checked_ids", "it checks, and changes nothing"},
    {"alibi", "no op of it"},
    {"random_uniform", HAS_OTHERS},
    {"random_normal", HAS_OTHERS},
    {"dropout", HAS_OTHERS},
    {"dropout_over", HAS_OTHERS},
    {"random_int", HAS_OTHERS},
    {"random_bernoulli", HAS_OTHERS},
    {"random_bernoulli_of", HAS_OTHERS},
    {"random_truncated_normal", HAS_OTHERS},
    {"random_gumbel", HAS_OTHERS},
    {"random_categorical", HAS_OTHERS},
};
enum { N_LACKING = sizeof not_in_pytorch / sizeof not_in_pytorch[0] };

static const char *why_lacking(const char *op)
{
    for (int i = 0; i < N_LACKING; i++)
        if (strcmp(not_in_pytorch[i].op, op) == 0) return not_in_pytorch[i].why;
    return NULL;
}

/* ---- a case -------------------------------------------------------------------------------------------- */

typedef struct given {
    const op_case *what;
    char names[WEFT_ORACLE_VALUES + 1][8]; /* of the outputs */
} given;

static void give(weft_oracle_build *b, given *of, const char *name, weft_value value)
{
    snprintf(of->names[b->n_outputs], sizeof of->names[0], "%s", name);
    weft_oracle_output(b, weft_cast(value, WEFT_F64));
}

/* y, and the sum of y^2 / 2 + y^3 / 3 taken back to the operands that are floats. */
static void build_case(weft_oracle_build *b)
{
    given *of = (given *)b->argument;
    const bool in_f64 = of->what->dtypes & OP_F64;
    const weft_value y = of->what->build(b, in_f64 ? WEFT_F64 : WEFT_I32);
    weft_value by[WEFT_ORACLE_VALUES], gradients[WEFT_ORACLE_VALUES];
    char name[8];
    int n = 0, which[WEFT_ORACLE_VALUES];
    give(b, of, "y", y);
    for (int k = 0; k < b->n_inputs; k++)
        if (weft_dtype_is_float(weft_dtype_of(b->inputs[k]))) which[n] = k, by[n++] = b->inputs[k];
    if (n == 0 || !weft_dtype_is_float(weft_dtype_of(y))) return;
    const weft_value square = weft_square(y), cube = weft_mul(square, y);
    const weft_value loss = weft_add(weft_scale(square, 1.0 / 2), weft_scale(cube, 1.0 / 3));
    weft_gradients(weft_sum(WEFT_SCALAR, loss), (weft_values){by, n}, gradients,
                   WEFT_ZEROS_ALLOWED);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "d%d", which[i]);
        give(b, of, name, gradients[i]);
    }
}

/* ---- the table ------------------------------------------------------------------------------------------ */

static bool is_in_table(const char *name)
{
    char line[512];
    bool is_there = false;
    const size_t length = strlen(name);
    FILE *file = fopen(WEFT_TEST_DATA "/reference/ops.txt", "r");
    if (!CHECK(file != NULL)) return false;
    while (!is_there && fgets(line, sizeof line, file) != NULL)
        is_there = strncmp(line, name, length) == 0 && line[length] == ' ';
    fclose(file);
    return is_there;
}

static weft_oracle oracle;

static void check_case(const op_case *what)
{
    given of = {what, {{0}}};
    const char *names[WEFT_ORACLE_VALUES];
    const weft_oracle_case one = {.name = what->name, .build = build_case, .argument = &of};
    weft_oracle_result result = {0};
    weft_error error = {0};
    for (int k = 0; k < WEFT_ORACLE_VALUES; k++)
        names[k] = of.names[k];
    if (CHECK_OK(weft_oracle_run(oracle.alone, &one, NULL, &result, &error), error))
        check_torch_table("ops.txt", what->name, names, &result);
    weft_oracle_free(&result);
}

static void check_group(const op_group *group)
{
    int n = 0;
    char text[300];
    for (const op_case *c = group->cases; c->name != NULL; c++)
        if (is_in_table(c->name)) check_case(c), n++;
    const char *why = why_lacking(group->name);
    const bool computes = group->cases[0].name != NULL;
    snprintf(
        text, sizeof text,
        "%s: %d cases in ops.txt, and %s; give it one in torch_ops.py, or a reason why it has none",
        group->name, n, why != NULL ? why : "no reason for none");
    weft_test_check(!computes || (n > 0) == (why == NULL), __FILE__, __LINE__, text);
}

static void test_every_op_is_pytorchs_or_has_a_reason(void)
{
    for (int g = 0; g < n_op_groups; g++)
        check_group(&op_groups[g]);
}

static void test_reasons_are_of_ops_that_are_there(void)
{
    for (int i = 0; i < N_LACKING; i++) {
        bool is_there = false;
        for (int g = 0; g < n_op_groups; g++)
            is_there |= strcmp(op_groups[g].name, not_in_pytorch[i].op) == 0;
        weft_test_check(is_there, __FILE__, __LINE__, not_in_pytorch[i].op);
    }
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error)) {
        RUN(test_every_op_is_pytorchs_or_has_a_reason);
        RUN(test_reasons_are_of_ops_that_are_there);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
