/* refused_test: every op of the table, and every builder, in every dtype: it is done, or the sentence says what was called,
 * which dtype it was given, and which there are.
 */
#include "op_cases.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

static weft_oracle oracle;
static int n_done, n_refused[WEFT_DTYPES];

typedef struct forward {
    const op_case *op;
    weft_dtype dtype;
} forward;

static void build_forward(weft_oracle_build *build)
{
    const forward *f = build->argument;
    const weft_value result = f->op->build(build, f->dtype);
    weft_oracle_output(build, result);
}

static bool names(const char *text, weft_dtype dtype)
{
    char word[16];
    snprintf(word, sizeof word, "%s", weft_dtype_name(dtype));
    const size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        const bool begins = at == text || strchr(" (,:", at[-1]) != NULL;
        if (begins && strchr(" ,.;:)", at[length]) != NULL) return true; /* bf16 is no f16 */
    }
    return false;
}

/* The one asked for, or the one that it is computed with. */
static bool names_given(const char *text, weft_dtype dtype)
{
    return names(text, dtype) || names(text, weft_dtype_computes(dtype));
}

static bool names_others(const char *text, weft_dtype dtype)
{
    for (int other = 0; other < WEFT_DTYPES; other++)
        if (other != (int)dtype && other != (int)weft_dtype_computes(dtype) &&
            names(text, (weft_dtype)other))
            return true;
    return false;
}

/* "softmax at cases.c:12: ...": the builder that was called, and a place in a file; or of what only Weft's own builders emit,
 * the op: "lse_state: ...". */
static bool names_call(const char *text)
{
    const size_t length = strcspn(text, ": ");
    const char *at = strstr(text, " at ");
    if (at == text + length && strchr(at, ':') != NULL) return true;
    for (int i = 0; i < weft_n_ops; i++)
        if (strlen(weft_ops[i]->name) == length && strncmp(text, weft_ops[i]->name, length) == 0)
            return true;
    return false;
}

static void try_case(const op_case *what, weft_dtype dtype)
{
    const forward f = {what, dtype};
    const weft_oracle_case plain = {what->name, build_forward, &f};
    weft_oracle_result result = {0};
    weft_error error = {0};
    char text[800];
    if (weft_oracle_run(oracle.alone, &plain, NULL, &result, &error) == WEFT_OK) {
        n_done++;
        weft_oracle_free(&result);
        return;
    }
    n_refused[dtype]++;
    snprintf(text, sizeof text, "%s of %s: %s", what->name, weft_dtype_name(dtype), error.message);
    weft_test_check(!(what->dtypes >> dtype & 1), __FILE__, __LINE__, text);
    weft_test_check(error.status == WEFT_USAGE, __FILE__, __LINE__, text);
    weft_test_check(names_call(error.message), __FILE__, __LINE__, text);
    weft_test_check(names_given(error.message, dtype), __FILE__, __LINE__, text);
    weft_test_check(names_others(error.message, dtype), __FILE__, __LINE__, text);
}

static void visit_case(const op_group *group, const op_case *what, void *argument)
{
    (void)group;
    (void)argument;
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        try_case(what, (weft_dtype)dtype);
}

static void test_every_op_in_every_dtype_is_done_or_refused_in_words(void)
{
    op_cases_each("", visit_case, NULL);
    CHECK(n_done > 500);
    /* integers are refused often, f32 once: a range of integers that it does not hold */
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        CHECK((n_refused[dtype] > 20) == !weft_dtype_is_float((weft_dtype)dtype));
    CHECK_EQ_INT(n_refused[WEFT_F32], 1);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error))
        RUN(test_every_op_in_every_dtype_is_done_or_refused_in_words);
    weft_oracle_close(&oracle);
    return weft_test_report();
}
