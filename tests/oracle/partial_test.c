/* RANKS: 2 4 */
/* partial_test: in 16 bits, however work is cut and over however many ranks, a result is what one rank has but for one
 * rounding of its own: what is partial is a sum of f32, or one where one rank alone has something. Every case of the op list
 * under every way that a policy can pick, sums of sums, and an op from outside that adds up in 16 bits itself.
 */
#include "op_cases.h"

#include <math.h>
#include <string.h>

#include "test.h"
#include "weft/autodiff.h"
#include "weft/extend/half.h"
#include "weft/extend/kernel.h"
#include "weft/extend/op.h"
#include "weft/research/policy.h"

static weft_oracle oracle;
static int64_t n_compared, n_partial;

/* ---- every way ------------------------------------------------------------------------------- */

enum { MOST_PARTIAL = -1 };

static bool makes_partial(const weft_decision *decision, int w)
{
    return decision->n_out > 0 && decision->ways[w].make[0] == WEFT_PARTIAL;
}

/* The same place in every list of ways, for as many as there are; or what leaves the most partial. */
static int n_most;
static int take_way(void *context, const weft_decision *decision)
{
    const int way = *(const int *)context;
    int w = way < 0 ? 0 : way % decision->n_ways;
    if (decision->n_ways > n_most) n_most = decision->n_ways;
    while (way == MOST_PARTIAL && w < decision->n_ways && !makes_partial(decision, w))
        w++;
    if (w == decision->n_ways) return WEFT_DEFAULT_WAY;
    for (int o = 0; o < decision->n_out; o++)
        n_partial += decision->ways[w].make[o] == WEFT_PARTIAL;
    return w;
}

/* One unit in the last place of a number of the dtype, relative to it, at most; nothing but equal bits of others. */
static double step_of(weft_dtype dtype)
{
    return dtype == WEFT_BF16 ? 0x1p-7 : dtype == WEFT_F16 ? 0x1p-10 : 0;
}

/* Sums of f32 differ in their last digits; rounded, they are neighbours at most. */
static bool is_rounded_once(const weft_oracle_result *a, const weft_oracle_result *b, double steps,
                            char *text, size_t bytes)
{
    for (int k = 0; k < a->n_outputs; k++) {
        double largest = 1e-3;
        for (int64_t i = 0; i < a->count[k]; i++)
            if (isfinite(a->data[k][i])) largest = fmax(largest, fabs(a->data[k][i]));
        for (int64_t i = 0; i < a->count[k]; i++) {
            const double x = a->data[k][i], y = b->data[k][i];
            const double digits = weft_dtype_is_float(a->dtype[k]) ? 4e-6 * largest : 0;
            if (x == y || (isnan(x) && isnan(y))) continue;
            if (fabs(x - y) <= steps * step_of(a->dtype[k]) * fmax(fabs(x), fabs(y)) + digits)
                continue;
            snprintf(text, bytes, "output %d, element %lld: one rank has %.9g, the mesh %.9g", k,
                     (long long)i, x, y);
            return false;
        }
    }
    return true;
}

/* `steps`: 0: equal bits, or sums of f32 that are not rounded. */
static void check_way(const weft_oracle_case *plain, const weft_oracle_result *expected, int mesh,
                      int way, double steps)
{
    const weft_policy policy = {.name = "one way", .pick = take_way, .context = &way};
    const weft_compile_options options = {.policy = &policy};
    weft_oracle_case cut = *plain;
    weft_oracle_result found = {0};
    weft_error error = {0};
    char what[300] = "", text[700];
    cut.options = &options;
    const bool ran = weft_oracle_run(oracle.meshes[mesh], &cut, NULL, &found, &error) == WEFT_OK;
    const bool same = ran && is_rounded_once(expected, &found, steps, what, sizeof what);
    snprintf(text, sizeof text, "%s on %s, way %d: %s%s", plain->name,
             weft_mesh_text(oracle.meshes[mesh]), way, what, error.message);
    weft_test_check(same, __FILE__, __LINE__, text);
    n_compared++;
    weft_oracle_free(&found);
}

static void check_ways(const weft_oracle_case *what, double steps)
{
    weft_oracle_result expected = {0};
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, what, NULL, &expected, &error), error)) return;
    n_most = 1;
    for (int way = MOST_PARTIAL; way < n_most; way++, oracle.n_sweeps++)
        for (int mesh = 0; mesh < oracle.n_meshes; mesh++)
            if (weft_oracle_turn(&oracle, weft_test_share(), mesh) > 0)
                check_way(what, &expected, mesh, way, steps);
    weft_oracle_free(&expected);
}

/* ---- the op list ----------------------------------------------------------------------------- */

typedef struct forward {
    const op_case *op;
    weft_dtype dtype;
} forward;

static void build_forward(weft_oracle_build *build)
{
    const forward *f = build->argument;
    weft_oracle_output(build, f->op->build(build, f->dtype));
    for (int k = 0; k < build->n_others; k++)
        weft_oracle_output(build, build->others[k]);
}

static void visit_case(const op_group *group, const op_case *what, void *dtype)
{
    const forward f = {what, *(weft_dtype *)dtype};
    char name[120];
    snprintf(name, sizeof name, "%s of %s", what->name, weft_dtype_name(f.dtype));
    const weft_oracle_case forward = {.name = name, .build = build_forward, .argument = &f};
    (void)group;
    if (what->dtypes >> f.dtype & 1 && weft_oracle_takes(&oracle)) check_ways(&forward, 1);
}

static void test_every_op_is_rounded_once(void)
{
    for (weft_dtype dtype = WEFT_BF16; dtype <= WEFT_F16; dtype++)
        op_cases_each("", visit_case, &dtype);
    const double taken =
        oracle.world.n_processes > 1 ? 1.0 / 3 : 1; /* at least (weft_oracle_takes) */
    CHECK((double)n_partial > 100 * taken * oracle.n_meshes * fmin(weft_test_share(), 1));
}

/* ---- sums of what is partial ----------------------------------------------------------------- */

static const weft_dim row = {"row", 40}, column = {"column", 6}, at = {"at", 9},
                      lengthy = {"lengthy", 3000};

/* Each addend is on one rank or another; a sum is rounded after each, as it is written. */
static void build_sum_of_rows(weft_oracle_build *b)
{
    const weft_dtype dtype = *(const weft_dtype *)b->argument;
    weft_value table = weft_oracle_input(b, dtype, WEFT_DIMS(row, column), -100, 100), sum = {0};
    for (int k = 0; k < 8; k++) {
        weft_value ids = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(at), 0, 40);
        weft_value x = weft_scale(weft_gather(table, ids, row), k % 2 ? 1.0 : -0.3);
        sum = k == 0 ? x : k % 3 ? weft_add(sum, x) : weft_sub(x, sum);
    }
    weft_oracle_output(b, weft_mul(sum, weft_oracle_input(b, dtype, WEFT_DIMS(column), 0.5, 2)));
}

static void test_sums_of_rows_are_those_of_one_rank(void)
{
    for (weft_dtype dtype = WEFT_BF16; dtype <= WEFT_F16; dtype++)
        check_ways(&(weft_oracle_case){"a sum of rows", build_sum_of_rows, &dtype}, 0);
}

/* Thousands of addends: the sum, its product with something, and the gradients of both. */
static void build_long(weft_oracle_build *b)
{
    const weft_dtype dtype = *(const weft_dtype *)b->argument;
    weft_value x = weft_oracle_input(b, dtype, WEFT_DIMS(lengthy, column), 0, 1);
    weft_value w = weft_oracle_input(b, dtype, WEFT_DIMS(lengthy), 0, 1), gradients[2];
    weft_value product = weft_einsum(WEFT_DIMS(column), x, w), sum = weft_sum(WEFT_DIMS(column), x);
    weft_gradients(weft_sum(WEFT_SCALAR, weft_mul(weft_sum(WEFT_DIMS(lengthy), x), w)),
                   WEFT_VALUES(x, w), gradients, WEFT_ZEROS_ALLOWED);
    weft_oracle_output(b, product);
    weft_oracle_output(b, sum);
    weft_oracle_output(b, weft_mean_over(WEFT_DIMS(column), x));
    weft_oracle_output(b, gradients[0]);
    weft_oracle_output(b, gradients[1]);
}

static void test_long_sums_are_rounded_once(void)
{
    for (weft_dtype dtype = WEFT_BF16; dtype <= WEFT_F16; dtype++)
        check_ways(&(weft_oracle_case){"long sums", build_long, &dtype}, 1);
}

/* ---- an op from outside that adds up in 16 bits ---------------------------------------------- */

static weft_status infer_total(weft_site *site, weft_error *error)
{
    (void)error;
    site->n_out = 1;
    site->out[0] =
        (weft_type){site->in[0].dtype, weft_shape_without(&site->in[0].shape, lengthy.name)};
    return WEFT_OK;
}

static void total_factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, WEFT_SUM, factors);
}

static const weft_op total_op = {.size = sizeof(weft_op),
                                 .name = "test_total",
                                 .infer = infer_total,
                                 .factors = total_factors,
                                 .linear = 1};

static void launch_total(const weft_call *call) /* x is [lengthy, column] */
{
    const uint16_t *x = call->in[0].data;
    uint16_t *y = call->out[0].data;
    const int64_t columns = weft_view_count(&call->out[0]);
    for (int64_t c = 0; c < columns; c++) {
        float sum = 0;
        for (int64_t i = c; i < weft_view_count(&call->in[0]); i += columns)
            sum += weft_f32_of_bf16(x[i]);
        y[c] = weft_bf16_of_f32(sum);
    }
}

static void build_total(weft_oracle_build *b)
{
    weft_value x = weft_oracle_input(b, WEFT_BF16, WEFT_DIMS(lengthy, column), -1, 1);
    weft_oracle_output(b, weft_emit(b->graph, &total_op, &x, 1, NULL, 0));
}

static void test_what_adds_up_in_16_bits_is_not_cut(void)
{
    weft_error error = {0};
    weft_kernel kernel = {.size = sizeof(weft_kernel),
                          .name = "plain",
                          .dtypes = WEFT_DTYPE_BIT(WEFT_BF16),
                          .launch = launch_total};
    if (!CHECK_OK(weft_extend_op(&total_op, &error), error)) return;
    if (!CHECK_OK(weft_extend_kernel("test_total", &kernel, &error), error)) return;
    check_ways(&(weft_oracle_case){"a total", build_total}, 0);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:4", "data:8", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_every_op_is_rounded_once);
        RUN(test_sums_of_rows_are_those_of_one_rank);
        RUN(test_long_sums_are_rounded_once);
        RUN(test_what_adds_up_in_16_bits_is_not_cut);
        printf("%lld runs compared, %lld results partial\n", (long long)n_compared,
               (long long)n_partial);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
