/* op_cases.c: the table of cases: of every op of the list, and of every builder that is a composition. The cases
 * themselves are in cases_*.c, what they must give in reference_*.c; a name that is missing there does not link.
 */
#include "cases.h"

#include <stdio.h>
#include <string.h>

/* ---- dims and operands ----------------------------------------------------------------------- */

weft_dim case_dims[CASE_DIMS] = {
    {"a", 5},       {"b", 7},      {"c", 3},       {"d", 2},       {"one", 1},       {"batch", 3},
    {"heads", 2},   {"seq", 5},    {"memory", 7},  {"feature", 4}, {"rows", 9},      {"other", 7},
    {"merged", 12}, {"six", 6},    {"outer", 4},   {"ten", 10},    {"part_of_b", 4}, {"joined", 10},
    {"key", 5},     {"long", 150}, {"later", 170},
};

void op_cases_fresh_names(void)
{
    enum { LONGEST = 16 };
    static char memory[2][CASE_DIMS][LONGEST];
    static int now;
    now = 1 - now;
    for (int d = 0; d < CASE_DIMS; d++) {
        snprintf(memory[now][d], LONGEST, "%s", case_dims[d].name);
        case_dims[d].name = memory[now][d];
    }
    memset(memory[1 - now], '?', sizeof memory[0] - 1);
}

weft_value case_in(build_t *b, weft_dtype dtype, weft_shape shape)
{
    if (weft_dtype_is_float(dtype)) return weft_oracle_input(b, dtype, shape, -1.5, 1.5);
    return weft_oracle_input(b, dtype, shape, dtype == WEFT_U8 ? 0 : -9, 10);
}

weft_value case_positive(build_t *b, weft_dtype dtype, weft_shape shape)
{
    return weft_dtype_is_float(dtype) ? weft_oracle_input(b, dtype, shape, 0.5, 2.5)
                                      : weft_oracle_input(b, dtype, shape, 1, 10);
}

weft_value case_ids(build_t *b, weft_shape shape, int64_t n)
{
    return weft_oracle_input(b, WEFT_I32, shape, -1,
                             (double)n + 1); /* with one below and one past the end */
}

weft_value case_with(build_t *b, weft_dtype dtype, weft_shape shape, double limit, double instead)
{
    weft_value x = case_in(b, dtype, shape);
    weft_value edge = weft_constant(b->graph, dtype, WEFT_SCALAR, limit);
    weft_value value = weft_constant(b->graph, dtype, WEFT_SCALAR, instead);
    return weft_oracle_made(b, weft_where(weft_less(x, edge), value, x));
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Ops that compute nothing of their own: no case, no reference, and why. */
#define NO_VALUES(op, why)                                                                         \
    const op_case cases_of_##op[] = {{NULL, .why_none = why}};                                     \
    void reference_##op(const reference_call *call)                                                \
    {                                                                                              \
        (void)call;                                                                                \
    }
NO_VALUES(input, "the host gives its values: every operand of every case is one")
NO_VALUES(variable, "it keeps its last assignment; values_test.c tests its first values")
NO_VALUES(assign, "its result is a token; tests/ops/program checks the variable")
NO_VALUES(group, "its result is a token")

#define OF_A_SCAN(op)                                                                              \
    NO_VALUES(op,                                                                                  \
              "the compiler unrolls scans; tests/autodiff/scan compares them with unrolled ones")
OF_A_SCAN(scan_trip)
OF_A_SCAN(scan_carry)
OF_A_SCAN(scan_next)
OF_A_SCAN(scan_guard)
OF_A_SCAN(scan_each)
OF_A_SCAN(scan_last)
OF_A_SCAN(scan_stack)

#define WEFT_OP(op)     extern const op_case cases_of_##op[];
#define COMPOSITION(op) WEFT_OP(op)
#include "op/op_list.inc"
#include "compositions.inc"
#undef WEFT_OP
#undef COMPOSITION

const op_group op_groups[] = {
#define WEFT_OP(op)     {#op, &weft_op_##op, reference_##op, cases_of_##op},
#define COMPOSITION(op) {#op, NULL, reference_##op, cases_of_##op},
#include "op/op_list.inc"
#include "compositions.inc"
#undef WEFT_OP
#undef COMPOSITION
};
const int n_op_groups = sizeof op_groups / sizeof op_groups[0];

/* ---- walking it ------------------------------------------------------------------------------ */

int op_cases_each(const char *begin, op_visit visit, void *argument)
{
    int n = 0;
    for (int g = 0; g < n_op_groups; g++)
        for (const op_case *c = op_groups[g].cases; c->name != NULL; c++) {
            if (strncmp(c->name, begin, strlen(begin)) != 0) continue;
            n++;
            if (visit != NULL) visit(&op_groups[g], c, argument);
        }
    return n;
}

static void take_name(const op_group *group, const op_case *what, void *argument)
{
    const char ***next = argument;
    (void)group;
    *(*next)++ = what->name;
}

/* False, with a sentence, when no case begins so. */
static bool is_known(const char *begin)
{
    enum { MOST = 1024 };
    static const char *names[MOST];
    const char **next = names;
    if (op_cases_each(begin, NULL, NULL) > 0) return true;
    const int n = op_cases_each("", NULL, NULL);
    if (n <= MOST) op_cases_each("", take_name, &next);
    const char *near = weft_nearest(begin, names, (int)(next - names));
    fprintf(stderr, "no case is called \"%s\"%s%s%s\n", begin,
            near != NULL ? "; did you mean " : "; they are in tests/oracle/cases_*.c",
            near != NULL ? near : "", near != NULL ? "?" : "");
    return false;
}

bool op_cases_options(int argc, char **argv, weft_oracle *oracle, const char **begin)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            oracle->all = true;
        else if (strcmp(argv[i], "--say") == 0)
            oracle->says = true;
        else if (!is_known(*begin = argv[i]))
            return false;
    }
    return true;
}
