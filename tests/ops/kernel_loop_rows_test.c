/* Loops over rows: softmax and layer norm of rows of every length, rows that have nothing, the largest loop, and memory that
 * cannot be written in step. */
#include "loop.h"
#include "kernel_lanes.h"
#include "op.h"

#define ROW_BLOCKS(T, suffix)                                                                      \
    static void double_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e) \
    {                                                                                              \
        (void)e;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = 2 * ((const T *)x[0])[i];                                                \
    }                                                                                              \
    static void exp_of_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e) \
    {                                                                                              \
        (void)e;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = (T)exp((double)((const T *)x[0])[i] - (double)((const T *)x[1])[i] -     \
                                 (double)((const T *)x[2])[i]);                                    \
    }                                                                                              \
    static void norm_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e)   \
    {                                                                                              \
        (void)e;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = (((const T *)x[0])[i] - ((const T *)x[1])[i]) * ((const T *)x[2])[i];    \
    }
ROW_BLOCKS(float, f32)
ROW_BLOCKS(double, f64)

/* A loop over [rows, row] of one operand, whose last result is written to `out`. */
typedef struct row_loop {
    weft_arena *arena;
    weft_loop *loop;
    weft_view x, y;
    int64_t n_rows, row;
} row_loop;

static row_loop row_loop_open(weft_dtype dtype, int64_t n_rows, int64_t row, int n_ops)
{
    weft_error error = {0};
    row_loop r = {.arena = weft_arena_create(), .n_rows = n_rows, .row = row};
    const weft_loop counts = {.n_in = 1, .n_ops = n_ops, .n_out = 1, .n_segments = 1};
    CHECK_OK(weft_loop_take(r.arena, counts, &r.loop, &error), error);
    r.x = view_of(dtype, 2, (part[]){{"r", n_rows, 0, n_rows}, {"i", row, 0, row}});
    r.y = view_like(&r.x);
    r.loop->in[0] = (weft_loop_in){(int)weft_dtype_bytes(dtype), 1};
    r.loop->segment[0].n_dims = 2, r.loop->segment[0].n_row_dims = 1;
    r.loop->segment[0].size[0] = n_rows, r.loop->segment[0].size[1] = row;
    r.loop->segment[0].in[0] = (weft_loop_operand){r.x.data, {row, 1}};
    r.loop->segment[0].out[0] = r.y.data;
    return r;
}

static void row_op(row_loop *r, int k, weft_loop_kind kind, int n_out, int n_in, const int *in)
{
    weft_loop_op *op = &r->loop->op[k];
    op->kind = kind, op->n_out = n_out, op->n_in = n_in;
    op->dtype = r->x.dtype, op->bytes = (int)weft_dtype_bytes(r->x.dtype);
    memcpy(op->in, in, (size_t)n_in * sizeof *in);
}

/* On 1 to 4 lanes, and over the operand itself: the same bits. */
static void row_loop_run(row_loop *r)
{
    weft_error error = {0};
    const weft_prepared_loop *prepared;
    weft_view again = view_like(&r->y);
    if (!CHECK_OK(weft_loop_prepare(r->loop, r->arena, &prepared, &error), error)) return;
    weft_loop_run(prepared, 1, streams[1]);
    r->loop->segment[0].out[0] = again.data;
    if (!CHECK_OK(weft_loop_prepare(r->loop, r->arena, &prepared, &error), error)) return;
    for (int lanes = 2; lanes <= MOST_LANES; lanes++) {
        view_spoil(&again);
        weft_loop_run(prepared, 1, streams[lanes]);
        CHECK(view_same_bits(&r->y, &again));
    }
    const size_t bytes = (size_t)(r->n_rows * r->row) * weft_dtype_bytes(r->x.dtype);
    void *x = malloc(bytes);
    memcpy(x, r->x.data, bytes);
    r->loop->segment[0].out[0] = r->x.data;
    if (!CHECK_OK(weft_loop_prepare(r->loop, r->arena, &prepared, &error), error)) return;
    weft_loop_run(prepared, 1, streams[2]);
    CHECK(view_same_bits(&r->y, &r->x));
    memcpy(r->x.data, x, bytes);
    free(x);
    view_free(&again);
}

static void row_loop_close(row_loop *r)
{
    view_free(&r->x), view_free(&r->y);
    weft_arena_destroy(&r->arena);
}

/* exp((2 x - maximum) - log_sum), of the rows of 2 x: what is doubled is kept, or in long rows of doubles computed again. */
static void check_softmax(weft_dtype dtype, int64_t n_rows, int64_t row)
{
    row_loop r = row_loop_open(dtype, n_rows, row, 4);
    row_op(&r, 0, WEFT_LOOP_ELEMENTS, 1, 1, (int[]){0});
    row_op(&r, 1, WEFT_LOOP_REDUCE, 1, 1, (int[]){1});
    row_op(&r, 2, WEFT_LOOP_FINISH, 2, 1, (int[]){2});
    row_op(&r, 3, WEFT_LOOP_ELEMENTS, 1, 3, (int[]){1, 3, 4});
    r.loop->op[0].block = dtype == WEFT_F32 ? double_f32 : double_f64;
    r.loop->op[1].combine = WEFT_LSE;
    r.loop->op[2].finish = weft_lse_finishes[dtype];
    r.loop->op[3].block = dtype == WEFT_F32 ? exp_of_f32 : exp_of_f64;
    r.loop->out[0] = 5;
    row_loop_run(&r);
    double worst = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < row; j++)
            sum += expl(2 * view_get(&r.x, i * row + j));
        for (int64_t j = 0; j < row; j++) {
            const double y = (double)(expl(2 * view_get(&r.x, i * row + j)) / sum);
            worst = fmax(worst, fabs(view_get(&r.y, i * row + j) - y) / y);
        }
    }
    CHECK(worst < (dtype == WEFT_F32 ? 3e-6 : 1e-13));
    row_loop_close(&r);
}

/* (x - mean) / sqrt(variance + 0.1): a finish with two results. */
static void check_norm(weft_dtype dtype, int64_t n_rows, int64_t row)
{
    row_loop r = row_loop_open(dtype, n_rows, row, 3);
    row_op(&r, 0, WEFT_LOOP_REDUCE, 1, 1, (int[]){0});
    row_op(&r, 1, WEFT_LOOP_FINISH, 2, 1, (int[]){1});
    row_op(&r, 2, WEFT_LOOP_ELEMENTS, 1, 3, (int[]){0, 2, 3});
    r.loop->op[0].combine = WEFT_MOMENTS;
    r.loop->op[1].finish = weft_moments_finishes[dtype];
    r.loop->op[1].env.number[0] = 0.1;
    r.loop->op[2].block = dtype == WEFT_F32 ? norm_f32 : norm_f64;
    r.loop->out[0] = 4;
    row_loop_run(&r);
    double worst = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        long double mean = 0, square = 0;
        for (int64_t j = 0; j < row; j++)
            mean += view_get(&r.x, i * row + j) / (long double)row;
        for (int64_t j = 0; j < row; j++)
            square += powl(view_get(&r.x, i * row + j) - mean, 2) / row;
        for (int64_t j = 0; j < row; j++) {
            const double y = (double)((view_get(&r.x, i * row + j) - mean) / sqrtl(square + 0.1L));
            worst = fmax(worst, fabs(view_get(&r.y, i * row + j) - y));
        }
    }
    CHECK(worst < (dtype == WEFT_F32 ? 3e-6 : 1e-13));
    row_loop_close(&r);
}

static void test_rows_of_every_length(void)
{
    static const int64_t lengths[] = {1, 2, 3, 63, 64, 65, 511, 512, 513, 1024, 3072, 50304};
    static const int64_t rows[] = {1, 2, 5, 300};
    for (int dtype = WEFT_F32; dtype <= WEFT_F64; dtype++)
        for (int i = 0; i < 12; i++)
            for (int k = 0; k < 4; k++) {
                if (lengths[i] * rows[k] > 200000) continue;
                check_softmax((weft_dtype)dtype, rows[k], lengths[i]);
                check_norm((weft_dtype)dtype, rows[k], lengths[i]);
            }
}

/* ---- numbers of parts of a row --------------------------------------------------------------- */

static void element_op(row_loop *r, int k, const weft_element *element, int first, int second)
{
    row_op(r, k, WEFT_LOOP_ELEMENTS, 1, 2, (int[]){first, second});
    r->loop->op[k].block = element->block[WEFT_F32][WEFT_F32];
    r->loop->op[k].relay = weft_relay_of(element);
}

/* Rows of channels of places, and a gain that each channel has of its own: (gain - (x - most)) gain, where most is the row's. */
static void check_gains(int64_t n_rows, int64_t channels, int64_t places)
{
    weft_error error = {0};
    const int64_t row = channels * places;
    row_loop r = row_loop_open(WEFT_F32, n_rows, row, 4);
    const weft_loop counts = {.n_in = 2, .n_ops = 4, .n_out = 1, .n_segments = 1};
    if (!CHECK_OK(weft_loop_take(r.arena, counts, &r.loop, &error), error)) return;
    weft_view gains = view_of(WEFT_F32, 1, (part[]){{"c", channels, 0, channels}});
    weft_loop_segment *s = &r.loop->segment[0];
    s->n_dims = 3, s->n_row_dims = 2;
    s->size[0] = n_rows, s->size[1] = channels, s->size[2] = places;
    s->in[0] = (weft_loop_operand){r.x.data, {row, places, 1}};
    s->in[1] = (weft_loop_operand){gains.data, {0, 1, 0}};
    s->out[0] = r.y.data;
    r.loop->in[0] = r.loop->in[1] = (weft_loop_in){sizeof(float), 1};
    row_op(&r, 0, WEFT_LOOP_REDUCE, 1, 1, (int[]){0});
    r.loop->op[0].combine = WEFT_MAX;
    element_op(&r, 1, weft_op_sub.element, 0, 2);
    element_op(&r, 2, weft_op_sub.element, 1, 3);
    element_op(&r, 3, weft_op_mul.element, 4, 1);
    r.loop->out[0] = 5;
    row_loop_run(&r);
    int64_t n_wrong = 0;
    double most = 0;
    for (int64_t i = 0; i < n_rows * row; i++) {
        const double gain = view_get(&gains, i / places % channels);
        for (int64_t j = i; i % row == 0 && j < i + row; j++)
            most = j == i ? view_get(&r.x, j) : fmax(most, view_get(&r.x, j));
        const double y = (gain - (view_get(&r.x, i) - most)) * gain;
        n_wrong += fabs(view_get(&r.y, i) - y) > 1e-5 * fmax(fabs(y), 1);
    }
    CHECK_EQ_INT(n_wrong, 0);
    view_free(&gains);
    row_loop_close(&r);
}

/* Blocks begin with a part, or in the middle of one. */
static void test_a_number_for_each_part_of_a_row(void)
{
    static const int64_t places[] = {3, 96, 256, 500, 512, 1000, 1024, 1536};
    for (int i = 0; i < 8; i++)
        for (int64_t channels = 1; channels <= 4; channels++)
            check_gains(3, channels, places[i]);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* A row that a rank has nothing of: the reduction's identity. */
static void test_an_empty_row_has_the_identity(void)
{
    static const weft_combine combines[] = {WEFT_SUM, WEFT_MAX, WEFT_MIN, WEFT_LSE, WEFT_MOMENTS};
    static const double first[] = {0, -INFINITY, INFINITY, -INFINITY, 0};
    for (int i = 0; i < 5; i++) {
        row_loop r = row_loop_open(WEFT_F32, 3, 0, 1);
        float state[9] = {7, 7, 7, 7, 7, 7, 7, 7, 7};
        const int width = weft_combine_width(combines[i]);
        row_op(&r, 0, WEFT_LOOP_REDUCE, 1, 1, (int[]){0});
        r.loop->op[0].combine = combines[i];
        r.loop->out[0] = 1;
        r.loop->segment[0].out[0] = state;
        weft_error error = {0};
        const weft_prepared_loop *prepared;
        if (CHECK_OK(weft_loop_prepare(r.loop, r.arena, &prepared, &error), error))
            weft_loop_run(prepared, 1, streams[2]);
        for (int k = 0; k < 9; k++)
            CHECK(state[k] == (k >= 3 * width ? 7.0f : k % width == 0 ? (float)first[i] : 0.0f));
        row_loop_close(&r);
    }
}

/* a + 2 b, which stays small. */
static void turn(int64_t n, void *y, const void *const *x, const weft_block_env *e)
{
    (void)e;
    for (int64_t i = 0; i < n; i++)
        ((double *)y)[i] = remainder(((const double *)x[0])[i] + 2 * ((const double *)x[1])[i], 16);
}

/* Each op adds the one before to itself twice over; and after half of them, as many reductions as there can be. */
static void test_the_largest_loop_fits(void)
{
    enum { N_OPS = WEFT_LOOP_SLOTS - 1, ROW = 513 };
    row_loop r = row_loop_open(WEFT_F64, 3, ROW, N_OPS);
    for (int k = 0; k < N_OPS; k++) {
        const bool is_state = k > 40 && k <= 40 + WEFT_LOOP_STATES;
        row_op(&r, k, is_state ? WEFT_LOOP_REDUCE : WEFT_LOOP_ELEMENTS, 1, is_state ? 1 : 2,
               (int[]){k < 40 ? k : 40, k < 40 ? k : 40});
        r.loop->op[k].block = turn;
        r.loop->op[k].combine = WEFT_MOMENTS;
    }
    r.loop->out[0] = N_OPS;
    row_loop_run(&r);
    double x = view_get(&r.x, 7);
    for (int k = 0; k < 41; k++)
        x = remainder(3 * x, 16);
    CHECK(view_get(&r.y, 7) == x);
    row_loop_close(&r);
}

static void test_memory_that_is_not_read_in_step_is_refused(void)
{
    weft_error error = {0};
    const weft_prepared_loop *prepared;
    row_loop r = row_loop_open(WEFT_F32, 4, 4, 1);
    row_op(&r, 0, WEFT_LOOP_ELEMENTS, 1, 1, (int[]){0});
    r.loop->op[0].block = double_f32;
    r.loop->out[0] = 1;
    r.loop->segment[0].in[0] = (weft_loop_operand){r.x.data, {1, 4}}; /* transposed */
    r.loop->segment[0].out[0] = r.x.data;
    CHECK_EQ_INT(weft_loop_prepare(r.loop, r.arena, &prepared, &error), WEFT_INTERNAL);
    CHECK_TEXT(error.message, "not read in step");
    CHECK(prepared == NULL);
    r.loop->segment[0].in[0].data = (char *)r.x.data + 16; /* shifted by a row */
    r.loop->segment[0].in[0].stride[0] = 4, r.loop->segment[0].in[0].stride[1] = 1;
    r.loop->segment[0].size[0] = 3;
    CHECK_EQ_INT(weft_loop_prepare(r.loop, r.arena, &prepared, NULL), WEFT_INTERNAL);
    r.loop->segment[0].out[0] = r.y.data;
    CHECK_OK(weft_loop_prepare(r.loop, r.arena, &prepared, &error), error);
    row_loop_close(&r);
}

int main(void)
{
    if (!streams_open() || !lanes_open()) return 1;
    RUN(test_rows_of_every_length);
    RUN(test_a_number_for_each_part_of_a_row);
    RUN(test_an_empty_row_has_the_identity);
    RUN(test_the_largest_loop_fits);
    RUN(test_memory_that_is_not_read_in_step_is_refused);
    lanes_close();
    streams_close();
    return weft_test_report();
}
