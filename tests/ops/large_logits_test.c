/* RANKS: 2 */
/* large_logits_test: what is normalized by a sum of exponentials is the same of logits that are all larger, or smaller, by the
 * same number, however large that is: values, gradients and the gradients of those, in f32 and f64, on one rank and where the
 * classes are split.
 *
 * Logits are base + step * (small integers), with a step that the dtype holds beside the base: exact. So the same with base 0
 * is what is right.
 */
#include "oracle.h"

#include <math.h>

#include "test.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

static weft_oracle oracle;

static const weft_dim row = {"row", 5}, column = {"column", 7};

typedef weft_value builder(weft_oracle_build *b, weft_value logits);

typedef struct scene {
    const char *name;
    builder *of;
    weft_dtype dtype;
    double base, step;
} scene;

/* ---- what is normalized ---------------------------------------------------------------------- */

static weft_value labels(weft_oracle_build *b)
{
    return weft_oracle_input(b, WEFT_I32, WEFT_DIMS(row), 0, (double)column.size);
}

static weft_value weights(weft_oracle_build *b, weft_value like)
{
    return weft_oracle_input(b, weft_dtype_of(like), WEFT_DIMS(column), 0.5, 2);
}

static weft_value softmax(weft_oracle_build *b, weft_value x)
{
    (void)b;
    return weft_softmax(x, column);
}

static weft_value log_softmax(weft_oracle_build *b, weft_value x)
{
    (void)b;
    return weft_log_softmax(x, column);
}

/* Their logsumexp, beside the largest of them: what is left is small. */
static weft_value above_the_largest(weft_oracle_build *b, weft_value x)
{
    (void)b;
    return weft_logsumexp(weft_sub(x, weft_stop_gradient(weft_max(WEFT_DIMS(row), x))), column);
}

static weft_value cross_entropy(weft_oracle_build *b, weft_value x)
{
    return weft_cross_entropy(x, labels(b), column);
}

static weft_value smoothed(weft_oracle_build *b, weft_value x)
{
    return weft_cross_entropy_with(x, labels(b), column,
                                   &(weft_cross_entropy_options){.label_smoothing = 0.2});
}

static weft_value smoothed_by_weights(weft_oracle_build *b, weft_value x)
{
    const weft_cross_entropy_options options = {.label_smoothing = 0.2,
                                                .class_weights = weights(b, x)};
    return weft_cross_entropy_with(x, labels(b), column, &options);
}

static weft_value soft_labels(weft_oracle_build *b, weft_value x)
{
    return weft_soft_cross_entropy(x, weft_softmax(weights(b, x), column), column);
}

static weft_value frames_of_a_word(weft_oracle_build *b, weft_value x)
{
    const weft_dim letter = {"letter", 2};
    const weft_value word =
        weft_oracle_input(b, WEFT_I32, WEFT_DIMS(letter), 1, (double)column.size);
    return weft_ctc_loss(x, word,
                         &(weft_ctc_options){.time = row, .classes = column, .label = letter});
}

static weft_value attended(weft_oracle_build *b, weft_value x)
{
    const weft_dim feature = {"feature", 4};
    const weft_dtype dtype = weft_dtype_of(x);
    const weft_value zero = weft_constant(b->graph, dtype, WEFT_SCALAR, 0.0);
    const weft_value q = weft_broadcast_to(zero, WEFT_DIMS(row, feature));
    const weft_value k = weft_broadcast_to(zero, WEFT_DIMS(column, feature));
    const weft_value v = weft_oracle_input(b, dtype, WEFT_DIMS(column, feature), -1, 1);
    return weft_attention_with(
        q, k, v,
        &(weft_attention_options){.query = row, .memory = column, .feature = feature, .bias = x});
}

static weft_value drawn(weft_oracle_build *b, weft_value x)
{
    (void)b;
    return weft_random_categorical(x, column);
}

/* ---- base and no base ------------------------------------------------------------------------ */

/* The value, and of a number its gradient, and of that the gradient, each by weights of its own. */
static void build(weft_oracle_build *b)
{
    const scene *s = b->argument;
    const weft_value whole = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(row, column), 0, 5);
    const weft_value x = weft_shift(weft_scale(weft_cast(whole, s->dtype), s->step), s->base);
    weft_value y = s->of(b, x);
    weft_oracle_output(b, y);
    for (int order = 1; order <= 2 && weft_dtype_is_float(weft_dtype_of(y)); order++) {
        const weft_value by = weft_oracle_input(b, s->dtype, *weft_shape_of(y), -1, 1);
        weft_gradients(weft_sum(WEFT_SCALAR, weft_mul(y, by)), WEFT_VALUES(x), &y,
                       WEFT_ZEROS_ALLOWED);
        weft_oracle_output(b, y);
    }
}

static bool is_near(const weft_oracle_result *a, const weft_oracle_result *b, double within,
                    char *text, size_t bytes)
{
    for (int k = 0; k < a->n_outputs; k++) {
        double largest =
            0.1; /* what is summed is near 1: below this, a result is what cancelling left */
        for (int64_t i = 0; i < a->count[k]; i++)
            largest = fmax(largest, fabs(a->data[k][i]));
        for (int64_t i = 0; i < a->count[k]; i++) {
            const double x = a->data[k][i], y = b->data[k][i];
            if (fabs(x - y) <= within * largest) continue; /* not of a NaN */
            snprintf(text, bytes, "output %d, element %lld: %.9g with base 0, and %.9g", k,
                     (long long)i, x, y);
            return false;
        }
    }
    return true;
}

/* By one rank with base 0, and by a mesh with it. */
static void check(const scene *s, weft_mesh *mesh, const char *layout)
{
    scene at_0 = *s;
    at_0.base = 0;
    const weft_oracle_case expected = {.name = s->name, .build = build, .argument = &at_0};
    const weft_oracle_case what = {
        .name = s->name, .build = build, .argument = s, .layout = layout};
    const double within = s->dtype == WEFT_F64 ? 1e-13 : 1e-6;
    weft_oracle_result a = {0}, b = {0};
    weft_error error = {0};
    char found[200] = "", text[600];
    bool same = weft_oracle_run(oracle.alone, &expected, NULL, &a, &error) == WEFT_OK &&
                weft_oracle_run(mesh, &what, NULL, &b, &error) == WEFT_OK;
    same = same && is_near(&a, &b, within, found, sizeof found);
    snprintf(text, sizeof text, "%s of %s, %g + %g n, on %s, layout \"%s\": %s%s", s->name,
             weft_dtype_name(s->dtype), s->base, s->step, weft_mesh_text(mesh), layout, found,
             error.message);
    weft_test_check(same, __FILE__, __LINE__, text);
    weft_oracle_free(&a), weft_oracle_free(&b);
}

/* On one rank, and under each layout on one or all of the meshes. */
static void check_everywhere(const scene *s)
{
    static const char *const layouts[] = {"column:m", "row:m", ""};
    for (int l = 0; l < 3; l++, oracle.n_sweeps++)
        for (int m = 0; m < oracle.n_meshes; m++)
            if (weft_oracle_turn(&oracle, weft_test_share(), m) > 0)
                check(s, oracle.meshes[m], layouts[l]);
    if (oracle.world.n_processes == 1) check(s, oracle.alone, "");
}

#define OF(name)                                                                                   \
    {                                                                                              \
#name, name                                                                                \
    }
static const struct {
    const char *name;
    builder *of;
} builders[] = {OF(softmax),     OF(log_softmax),      OF(above_the_largest),
                OF(smoothed),    OF(cross_entropy),    OF(smoothed_by_weights),
                OF(soft_labels), OF(frames_of_a_word), OF(attended),
                OF(drawn)};

static void check_base(const char *name, builder *of, weft_dtype dtype, double base)
{
    const int digits = dtype == WEFT_F64 ? 51 : 22;
    const double neighbour = ldexp(1, ilogb(base) - digits);
    const double steps[] = {0, neighbour, neighbour < 0.25 ? 0.25 : 16 * neighbour};
    for (int i = 0; i < 3; i++)
        if (weft_oracle_takes(&oracle)) check_everywhere(&(scene){name, of, dtype, base, steps[i]});
}

static void test_a_base_changes_nothing(void)
{
    static const double bases[] = {1e4, -1e4, 1e6, -1e6, 1e9, -1e9, 1e16, -1e16};
    const size_t every = (size_t)weft_test_stride(5);
    for (size_t k = 0; k < sizeof builders / sizeof *builders; k++)
        for (size_t i = 0; i < sizeof bases / sizeof *bases; i += every)
            for (weft_dtype dtype = WEFT_F32; dtype <= WEFT_F64; dtype++)
                check_base(builders[k].name, builders[k].of, dtype, (double)(float)bases[i]);
}

static void build_equal(weft_oracle_build *b)
{
    const weft_dim eighth = {"eighth", 8};
    const weft_dtype dtype = *(const weft_dtype *)b->argument;
    const weft_value zero = weft_constant(b->graph, dtype, WEFT_SCALAR, 0.0);
    const weft_value x = weft_shift(weft_broadcast_to(zero, WEFT_DIMS(eighth)), -1e9);
    const weft_value label = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 3);
    weft_oracle_output(b, weft_softmax(x, eighth));
    weft_oracle_output(b, weft_cross_entropy(x, label, eighth));
}

static void test_of_eight_equal_ones_each_has_an_eighth(void)
{
    for (weft_dtype dtype = WEFT_F32; dtype <= WEFT_F64; dtype++) {
        weft_oracle_result r = {0};
        weft_error error = {0};
        const weft_oracle_case what = {.name = "equal", .build = build_equal, .argument = &dtype};
        if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
        for (int i = 0; i < 8; i++)
            CHECK_CLOSE(r.data[0][i], 0.125, 1e-8);
        CHECK_CLOSE(r.data[1][0], log(8), 1e-6);
        weft_oracle_free(&r);
    }
}

int main(void)
{
    static const char *const meshes[] = {"m:2", "m:3"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 2, &error), error)) {
        RUN(test_of_eight_equal_ones_each_has_an_eighth);
        RUN(test_a_base_changes_nothing);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
