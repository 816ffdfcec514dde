/* The elements that a reduction leaves: a softmax has one exp an element. It has the same bits on any number of lanes
 * and in place, and the numbers of the definition, for rows of every length and infinite elements. */
#include "kernel_lanes.h"

#include "loop.h"
#include "weft/extend/math.h"

static _Atomic int n_subs, n_exps; /* calls, of all lanes */

#define BLOCKS(T, suffix)                                                                          \
    static void sub_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e)    \
    {                                                                                              \
        n_subs += e->number[0] > 0;                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = ((const T *)x[0])[i] - ((const T *)x[1])[i];                             \
    }                                                                                              \
    static void exp_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e)    \
    {                                                                                              \
        n_exps += e->number[0] > 0;                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = weft_exp_##suffix(((const T *)x[0])[i]);                                 \
    }
BLOCKS(float, f32)
BLOCKS(double, f64)

/* exp((x - maximum) - log_sum) over [rows, row]; `all`: and the difference, the maxima and the logarithms. */
typedef struct softmax {
    weft_arena *arena;
    weft_view x, y, difference, maximum, log_sum;
    int64_t n_rows, row;
    bool all;
} softmax;

static softmax softmax_open(weft_dtype dtype, int64_t n_rows, int64_t row, bool all)
{
    softmax s = {.arena = weft_arena_create(), .n_rows = n_rows, .row = row, .all = all};
    s.x = view_of(dtype, 2, (part[]){{"r", n_rows, 0, n_rows}, {"i", row, 0, row}});
    s.y = view_like(&s.x), s.difference = view_like(&s.x);
    s.maximum = view_of(dtype, 1, (part[]){{"r", n_rows, 0, n_rows}});
    s.log_sum = view_like(&s.maximum);
    return s;
}

static void softmax_close(softmax *s)
{
    view_free(&s->x), view_free(&s->y), view_free(&s->difference);
    view_free(&s->maximum), view_free(&s->log_sum);
    weft_arena_destroy(&s->arena);
}

static void softmax_run(const softmax *s, void *y, int lanes)
{
    const weft_dtype dtype = s->x.dtype;
    const int bytes = (int)weft_dtype_bytes(dtype);
    const weft_loop counts = {.n_in = 1, .n_ops = 5, .n_out = s->all ? 4 : 1, .n_segments = 1};
    enum { X, STATE, MAXIMUM, LOG_SUM, BELOW, DIFFERENCE, Y };
    const weft_prepared_loop *prepared;
    weft_error error = {0};
    weft_loop *loop;
    if (!CHECK_OK(weft_loop_take(s->arena, counts, &loop, &error), error)) return;
    loop->in[0] = (weft_loop_in){bytes, 1};
    const weft_block sub = dtype == WEFT_F32 ? sub_f32 : sub_f64;
    const weft_loop_op ops[] = {
        {.kind = WEFT_LOOP_REDUCE, .combine = WEFT_LSE, .dtype = dtype, .n_in = 1, .in = {X}},
        {.kind = WEFT_LOOP_FINISH,
         .finish = weft_lse_finishes[dtype],
         .n_in = 1,
         .in = {STATE},
         .n_out = 2},
        {.block = sub, .n_in = 2, .in = {X, MAXIMUM}},
        {.block = sub, .n_in = 2, .in = {BELOW, LOG_SUM}},
        {.block = dtype == WEFT_F32 ? exp_f32 : exp_f64,
         .n_in = 1,
         .in = {DIFFERENCE},
         .difference = {4, 3}},
    };
    for (int k = 0; k < 5; k++) {
        loop->op[k] = ops[k];
        if (ops[k].n_out == 0) loop->op[k].n_out = 1;
        loop->op[k].bytes = bytes;
        loop->op[k].env.number[0] = lanes == 1;
    }
    loop->out[0] = Y;
    for (int o = 1; o < counts.n_out; o++)
        loop->out[o] = o == 1 ? DIFFERENCE : o == 2 ? MAXIMUM : LOG_SUM;
    weft_loop_segment *segment = &loop->segment[0];
    segment->n_dims = 2, segment->n_row_dims = 1;
    segment->size[0] = s->n_rows, segment->size[1] = s->row;
    segment->in[0] = (weft_loop_operand){s->x.data, {s->row, 1}};
    segment->out[0] = y;
    if (s->all) {
        segment->out[1] = s->difference.data;
        segment->out[2] = s->maximum.data, segment->out[3] = s->log_sum.data;
    }
    n_subs = n_exps = 0;
    if (CHECK_OK(weft_loop_prepare(loop, s->arena, &prepared, &error), error))
        weft_loop_run(prepared, 1, streams[lanes]);
}

/* Against the definition, in long doubles. */
static void check_values(const softmax *s)
{
    double worst = 0;
    for (int64_t i = 0; i < s->n_rows; i++) {
        long double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s->row; j++)
            most = fmaxl(most, view_get(&s->x, i * s->row + j));
        for (int64_t j = 0; j < s->row; j++)
            sum += expl(view_get(&s->x, i * s->row + j) - most);
        for (int64_t j = 0; j < s->row; j++) {
            const double y = (double)(expl(view_get(&s->x, i * s->row + j) - most) / sum);
            const double found = view_get(&s->y, i * s->row + j);
            worst = fmax(worst, y == 0 ? found : fabs(found - y) / y);
            if (y != y || found != found) worst = NAN;
        }
    }
    CHECK(worst < (s->x.dtype == WEFT_F32 ? 6e-6 : 1e-13));
}

/* One exp an element: sub and exp are not called but of rows that are too long to be kept. */
static void check_softmax(weft_dtype dtype, int64_t n_rows, int64_t row, bool all)
{
    softmax s = softmax_open(dtype, n_rows, row, all);
    weft_view again = view_like(&s.y);
    const bool is_kept = row * (int64_t)weft_dtype_bytes(dtype) <= 1 << 17;
    softmax_run(&s, s.y.data, 1);
    CHECK((n_exps == 0) == is_kept);
    CHECK((n_subs == 0) == (is_kept && !all));
    check_values(&s);
    for (int64_t i = 0; i < n_rows * row && all; i++) {
        const double below = view_get(&s.x, i) - view_get(&s.maximum, i / row);
        const double log_sum = view_get(&s.log_sum, i / row);
        CHECK(view_get(&s.difference, i) ==
              (dtype == WEFT_F32 ? (double)((float)below - (float)log_sum) : below - log_sum));
    }
    for (int lanes = 2; lanes <= MOST_LANES; lanes++) {
        view_spoil(&again);
        softmax_run(&s, again.data, lanes);
        CHECK(view_same_bits(&s.y, &again));
    }
    softmax_run(&s, s.x.data, 2); /* in place */
    CHECK(view_same_bits(&s.y, &s.x));
    view_free(&again);
    softmax_close(&s);
}

static void test_a_softmax_has_one_exp_an_element(void)
{
    static const int64_t lengths[] = {1, 2, 16, 63, 64, 65, 511, 512, 513, 3072, 32768, 32769};
    static const int64_t rows[] = {1, 3, 300};
    for (int dtype = WEFT_F32; dtype <= WEFT_F64; dtype++)
        for (int i = 0; i < 12; i++)
            for (int k = 0; k < 3; k++)
                for (int all = 0; all < 2 && lengths[i] * rows[k] < 200000; all++)
                    check_softmax((weft_dtype)dtype, rows[k], lengths[i], all > 0);
}

/* What is masked is 0, a block of it too; blocks far below the largest element do not become NaN or denormal. */
static void test_elements_far_apart(void)
{
    static const double low[] = {-INFINITY, -1e30, -95, -60};
    for (int dtype = WEFT_F32; dtype <= WEFT_F64; dtype++)
        for (int k = 0; k < 4; k++) {
            softmax s = softmax_open((weft_dtype)dtype, 2, 1500, false);
            for (int64_t i = 0; i < 3000; i++)
                if (i % 1500 > 400) view_set(&s.x, i, low[k] + (i % 7));
            softmax_run(&s, s.y.data, 1);
            for (int64_t i = 0; i < 3000; i++) {
                const double y = view_get(&s.y, i);
                CHECK(y == 0 || y >= (dtype == WEFT_F32 ? 0x1p-126 : 0x1p-1022));
                CHECK(i % 1500 <= 400 ? y > 1e-5 : y < 1e-20);
            }
            softmax_close(&s);
        }
}

/* A row with a NaN is NaN; one with inf has a NaN there and 0 elsewhere; one of -inf alone is NaN. Others are not touched. */
static void test_rows_that_have_no_softmax(void)
{
    static const double odd[] = {NAN, INFINITY};
    for (int way = 0; way < 4; way++) {
        const int k = way / 2;
        softmax s = softmax_open(WEFT_F32, 3, 1100, false);
        const weft_view *result = way % 2 ? &s.x : &s.y; /* in place */
        view_set(&s.x, 1100 + 600, odd[k]);
        softmax_run(&s, result->data, 1);
        for (int64_t i = 0; i < 3300; i++) {
            const double y = view_get(result, i);
            if (i / 1100 != 1)
                CHECK(y > 0 && y < 1);
            else
                CHECK(k == 0 || i == 1700 ? y != y : y == 0);
        }
        softmax_close(&s);
    }
    softmax s = softmax_open(WEFT_F32, 2, 40, false);
    for (int64_t i = 0; i < 40; i++)
        view_set(&s.x, i, -INFINITY);
    softmax_run(&s, s.y.data, 1);
    for (int64_t i = 0; i < 80; i++)
        CHECK((view_get(&s.y, i) != view_get(&s.y, i)) == (i < 40));
    softmax_close(&s);
}

int main(void)
{
    if (!streams_open() || !lanes_open()) return 1;
    RUN(test_a_softmax_has_one_exp_an_element);
    RUN(test_elements_far_apart);
    RUN(test_rows_that_have_no_softmax);
    lanes_close();
    streams_close();
    return weft_test_report();
}
