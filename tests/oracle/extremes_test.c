/* RANKS: 2 */
/* extremes_test: what ops and compositions give of operands at the edges of their dtype: zeros, denormal numbers, the least
 * and the largest, numbers whose square is too large, infinities. Against the definitions on one rank: finite is what by
 * definition is finite, infinite what is infinite or more than the dtype has, and no number what is none. Against one rank on
 * meshes.
 *
 *     extremes_test [--all] [--say] [NAME]
 */
#include "called.h"
#include "left_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static weft_oracle oracle;
static const char *only = "";

/* What is mixed with numbers of the usual range. */
static const struct {
    const char *words; /* behind the case's name */
    int extremes;
} mixtures[] = {
    {", least", WEFT_ORACLE_ZERO | WEFT_ORACLE_DENORMAL | WEFT_ORACLE_TINY},
    {", roots", WEFT_ORACLE_ROOT},
    {", largest", WEFT_ORACLE_HUGE},
    {", infinite", WEFT_ORACLE_INFINITE},
    {", all", WEFT_ORACLE_ZERO | WEFT_ORACLE_TINY | WEFT_ORACLE_ROOT | WEFT_ORACLE_HUGE |
                  WEFT_ORACLE_INFINITE},
};
enum { MIXTURES = sizeof mixtures / sizeof mixtures[0] };

/* ---- against the definitions --------------------------------------------------------------------- */

static const double largest_of[WEFT_DTYPES] = {[WEFT_F64] = 0x1.fffffffffffffp1023,
                                               [WEFT_F32] = 0x1.fffffep127,
                                               [WEFT_BF16] = 0x1.fep127,
                                               [WEFT_F16] = 65504};

static double largest_finite(const double *data, int64_t count, double least)
{
    for (int64_t i = 0; i < count; i++)
        if (isfinite(data[i])) least = fmax(least, fabs(data[i]));
    return least;
}

/* The first element that is of another kind than by definition, or finite and farther off than rounding the largest number
 * that went in makes it. */
static bool is_of_kind(const reference_tensor *expected, const double *found, double scale,
                       double within, char *text, size_t bytes)
{
    const double most = largest_of[expected->dtype];
    const int64_t count = weft_shape_count(&expected->shape);
    for (int64_t i = 0; i < count; i++) {
        const double x = expected->data[i], y = found[i];
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (weft_dtype_is_float(expected->dtype) && !isnan(x) && !isnan(y)) {
            if (fabs(x) > 0.9 * most && fabs(y) > 0.9 * most && (x > 0) == (y > 0)) continue;
            if (isfinite(x) && isfinite(y) && fabs(x / 2 - y / 2) <= within * (scale / 2)) continue;
        }
        snprintf(text, bytes, "element %lld of %lld is %.9g, and by definition %.9g", (long long)i,
                 (long long)count, y, x);
        return false;
    }
    return true;
}

static bool is_right(const called_result *r, char *text, size_t bytes)
{
    static const double within[WEFT_DTYPES] = {
        [WEFT_F64] = 1e-12, [WEFT_F32] = 1e-5, [WEFT_BF16] = 2e-2, [WEFT_F16] = 2e-3};
    const reference_call *call = r->expected;
    double scale = 1;
    for (int i = 0; i < call->n_in; i++)
        scale = largest_finite(call->in[i].data, weft_shape_count(&call->in[i].shape), scale);
    for (int o = 0; o < call->n_out; o++)
        scale = largest_finite(call->out[o].data, weft_shape_count(&call->out[o].shape), scale);
    for (int o = 0; o < call->n_out; o++)
        if (!is_of_kind(&call->out[o], r->found[o], scale,
                        fmax(within[r->dtype], within[call->out[o].dtype]), text, bytes))
            return false;
    return true;
}

static void visit_values(const op_group *group, const op_case *what, void *argument)
{
    (void)argument;
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        for (int m = 0; m < MIXTURES; m += weft_test_stride(MIXTURES - 1)) /* the last has all */
            if ((what->dtypes >> dtype & 1) && weft_dtype_is_float((weft_dtype)dtype) &&
                !(left_open_of(group->name) & mixtures[m].extremes))
                called_check(oracle.alone, group, what, (weft_dtype)dtype, mixtures[m].extremes,
                             mixtures[m].words, is_right);
}

static void test_results_are_of_the_kind_that_the_definition_gives(void)
{
    op_cases_each(only, visit_values, NULL);
}

/* ---- against one rank ------------------------------------------------------------------------------ */

typedef struct scene {
    const op_case *what;
    weft_dtype dtype;
} scene;

static void build_placed(weft_oracle_build *b)
{
    const scene *s = b->argument;
    weft_oracle_output(b, s->what->build(b, s->dtype));
    for (int k = 0; k < b->n_others; k++)
        weft_oracle_output(b, b->others[k]);
}

static void visit_placed(const op_group *group, const op_case *what, void *argument)
{
    (void)argument;
    if (what->alone) return;
    for (int m = 0; m < MIXTURES; m += weft_test_stride(MIXTURES - 1)) {
        const scene s = {what, WEFT_F32};
        char name[120];
        if (!(what->dtypes >> s.dtype & 1)) continue;
        if (left_open_of(group->name) & mixtures[m].extremes || !weft_oracle_takes(&oracle))
            continue;
        snprintf(name, sizeof name, "%s%s", what->name, mixtures[m].words);
        weft_oracle_sweep(&oracle,
                          &(weft_oracle_case){.name = name,
                                              .build = build_placed,
                                              .argument = &s,
                                              .extremes = mixtures[m].extremes},
                          4);
    }
}

static void test_results_are_of_one_kind_on_every_mesh(void)
{
    op_cases_each(only, visit_placed, NULL);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        if (!op_cases_options(argc, argv, &oracle, &only)) return 2;
        if (oracle.world.n_processes == 1)
            RUN(test_results_are_of_the_kind_that_the_definition_gives);
        RUN(test_results_are_of_one_kind_on_every_mesh);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
