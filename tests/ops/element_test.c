/* element_test: the block functions of element ops, by themselves: hand-worked numbers, and random
 * numbers that depend on the element's index alone. */
#include "ops/graph/op.h"
#include "ops/graph/random.h"
#include "test.h"

/* Run one block of f64 numbers; x may be NULL. */
static void run_f64(const weft_op *op, int64_t n, double *y, const double *x0, const double *x1,
                    const weft_block_env *env)
{
    const void *in[2] = {x0, x1};
    op->element->block[WEFT_F64][WEFT_F64](n, y, in, env);
}

static void test_hand_worked_numbers(void)
{
    const double x[4] = {-2.0, 0.0, 0.5, 3.0}, z[4] = {1.0, -1.0, 0.5, NAN};
    double y[4];
    const weft_block_env env = {.number = {2.5}};
    run_f64(&weft_op_relu, 4, y, x, NULL, &env);
    CHECK(y[0] == 0.0 && y[1] == 0.0 && y[2] == 0.5 && y[3] == 3.0);
    run_f64(&weft_op_scale, 4, y, x, NULL, &env);
    CHECK(y[0] == -5.0 && y[3] == 7.5);
    run_f64(&weft_op_maximum, 4, y, x, z, &env);
    CHECK(y[0] == 1.0 && y[1] == 0.0 && isnan(y[3]));
    run_f64(&weft_op_gelu, 4, y, x, NULL, &env);
    CHECK_CLOSE(y[0], -0.045402305912, 1e-9); /* torch gelu(approximate="tanh") */
    CHECK_CLOSE(y[3], 2.99636260, 1e-7);
}

static void test_cast_keeps_to_the_range_of_i32(void)
{
    const double x[5] = {1e300, -1e300, NAN, -2.9, 2.9};
    int32_t y[5];
    const void *in[1] = {x};
    const weft_block_env env = {.seed = 0};
    weft_op_cast.element->block[WEFT_F64][WEFT_I32](5, y, in, &env);
    CHECK_EQ_INT(y[0], INT32_MAX);
    CHECK_EQ_INT(y[1], INT32_MIN);
    CHECK_EQ_INT(y[2], 0);
    CHECK_EQ_INT(y[3], -2);
    CHECK_EQ_INT(y[4], 2);
}

static void test_where_does_not_leak_the_other_branch(void)
{
    const int32_t c[2] = {1, 0};
    const double x[2] = {1.0, NAN}, z[2] = {INFINITY, 2.0};
    double y[2];
    const void *in[3] = {c, x, z};
    const weft_block_env env = {.seed = 0};
    weft_op_where.element->block[WEFT_F64][WEFT_F64](2, y, in, &env);
    CHECK(y[0] == 1.0 && y[1] == 2.0);
}

/* Whatever block and stride an element is computed in, it is the same number. */
static void test_random_numbers_depend_on_the_index_alone(void)
{
    enum { N = 96 };
    static const weft_op *const ops[] = {&weft_op_random_uniform, &weft_op_random_normal,
                                         &weft_op_dropout};
    double x[N], whole[N], part[N];
    for (int i = 0; i < N; i++)
        x[i] = 1.0;
    for (int o = 0; o < 3; o++) {
        weft_block_env env = {
            .number = {0.25, 1.5}, .seed = 7, .random = 3, .step = 2, .stride = 1};
        run_f64(ops[o], N, whole, x, NULL, &env);
        for (int stride = 1; stride <= 7; stride++) {
            env.index = 5, env.stride = stride;
            run_f64(ops[o], 12, part, x, NULL, &env);
            for (int i = 0; i < 12; i++)
                CHECK(part[i] == whole[5 + i * stride]);
        }
        env.index = 0, env.stride = 1, env.step = 3;
        run_f64(ops[o], N, part, x, NULL, &env);
        CHECK(memcmp(part, whole, sizeof whole) != 0);
    }
}

/* One definition, written with libm; and one hash of the bits, which every instruction set and every compiler gives. */
static void test_normal_numbers_are_what_box_and_muller_say(void)
{
    enum { N = 64 * WEFT_BLOCK };
    static double x[N];
    uint64_t hash = 0;
    const weft_philox_key key = {11, 1, 1};
    weft_block_env env = {.seed = 11, .random = 1, .step = 1, .stride = 1};
    for (; env.index < N; env.index += WEFT_BLOCK)
        weft_random_gauss(key, WEFT_BLOCK, &env, x + env.index);
    for (int64_t i = 0; i < N; i++) {
        uint32_t words[4];
        uint64_t bits;
        weft_philox(key, (uint64_t)i / 4, words);
        const uint32_t *pair = words + i % 4 / 2 * 2;
        const double radius = sqrt(-2.0 * log(1.0 - weft_philox_unit(pair[0])));
        const double angle = 2.0 * acos(-1.0) * weft_philox_unit(pair[1]);
        const double expected = radius * (i % 2 == 0 ? cos(angle) : sin(angle));
        if (!(fabs(x[i] - expected) < 1e-14)) CHECK_CLOSE(x[i], expected, 1e-14);
        memcpy(&bits, &x[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001B3u;
    }
    CHECK_EQ_INT((int64_t)hash, -1630218224785432425);
}

/* The ends of what words can say: no radius at all, and the largest; angles of whole quarters of a turn. */
static void test_normal_numbers_at_the_ends(void)
{
    enum { N = 1 << 20 };
    const weft_philox_key key = {3, 1, 1};
    static double x[WEFT_BLOCK];
    weft_block_env env = {.stride = 1};
    double largest = 0.0;
    bool is_finite = true;
    for (; env.index < N; env.index += WEFT_BLOCK) {
        weft_random_gauss(key, WEFT_BLOCK, &env, x);
        for (int i = 0; i < WEFT_BLOCK; i++) {
            is_finite = is_finite && isfinite(x[i]);
            largest = fmax(largest, fabs(x[i]));
        }
    }
    CHECK(is_finite);
    CHECK(largest > 4.0 && largest <= sqrt(48.0 * log(2.0)));
}

static void test_dropout_keeps_the_mean(void)
{
    enum { N = 4096 };
    static double x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = 1.0;
    weft_block_env env = {
        .number = {0.25, 1.0 / 0.75}, .seed = 5, .random = 1, .step = 1, .stride = 1};
    for (; env.index < N; env.index += WEFT_BLOCK)
        run_f64(&weft_op_dropout, WEFT_BLOCK, y + env.index, x, NULL, &env);
    double sum = 0.0;
    for (int i = 0; i < N; i++) {
        CHECK(y[i] == 0.0 || y[i] == 1.0 / 0.75);
        sum += y[i];
    }
    CHECK(fabs(sum / N - 1.0) < 4.0 * sqrt(0.25 / 0.75 / N));
}

/* Devices compile loops from them. */
static void test_every_block_of_ours_has_its_expression(void)
{
    for (int k = 0; k < weft_n_ops; k++) {
        const weft_element *element = weft_ops[k]->element;
        for (int in = 0; element != NULL && in < WEFT_DTYPES; in++)
            for (int out = 0; out < WEFT_DTYPES; out++)
                weft_test_check((element->block[in][out] != NULL) ==
                                    (element->text[in][out] != NULL),
                                __FILE__, __LINE__, weft_ops[k]->name);
    }
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        const weft_storage *storage = &weft_storages[dtype];
        CHECK((storage->widen != NULL) == (storage->widen_text != NULL));
        CHECK((storage->narrow != NULL) == (storage->narrow_text != NULL));
    }
    CHECK_TEXT(weft_op_relu.element->text[WEFT_F32][WEFT_F32], "x < 0 ? 0 : x");
    CHECK_TEXT(weft_op_cast.element->text[WEFT_F32][WEFT_U8], "255");
}

int main(void)
{
    RUN(test_hand_worked_numbers);
    RUN(test_cast_keeps_to_the_range_of_i32);
    RUN(test_where_does_not_leak_the_other_branch);
    RUN(test_random_numbers_depend_on_the_index_alone);
    RUN(test_normal_numbers_are_what_box_and_muller_say);
    RUN(test_normal_numbers_at_the_ends);
    RUN(test_dropout_keeps_the_mean);
    RUN(test_every_block_of_ours_has_its_expression);
    return weft_test_report();
}
