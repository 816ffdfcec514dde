/* Loops over a few long rows, which lanes share out: equal bits on any number of lanes and in any parts, those of the
 * reduction's kernel, for every combine; several reductions in one pass, and elements written beside them. */
#include "loop.h"
#include "kernel_lanes.h"

static void square(int64_t n, void *y, const void *const *x, const weft_block_env *e)
{
    (void)e;
    for (int64_t i = 0; i < n; i++)
        ((float *)y)[i] = ((const float *)x[0])[i] * ((const float *)x[0])[i];
}

static void add_one(int64_t n, void *y, const void *const *x, const weft_block_env *e)
{
    (void)e;
    for (int64_t i = 0; i < n; i++)
        ((float *)y)[i] = ((const float *)x[0])[i] + 1;
}

enum { MOST_ROWS = 17, MOST_STATE = 3 };

/* The squares of [rows, row], reduced twice: by a combine and by sum, to which one is added; and the squares. */
typedef struct long_rows {
    weft_arena *arena;
    weft_loop *loop;
    int64_t n_rows, row;
    weft_view x, squares, made, state;
    float sum[MOST_ROWS], more[MOST_ROWS];
} long_rows;

static void set_op(weft_loop_op *op, weft_loop_kind kind, int in)
{
    *op = (weft_loop_op){
        .kind = kind, .n_in = 1, .in = {in}, .n_out = 1, .dtype = WEFT_F32, .bytes = 4};
}

static void open_rows(long_rows *l, weft_combine combine, int64_t n_rows, int64_t row)
{
    weft_error error = {0};
    const int width = weft_combine_width(combine);
    *l = (long_rows){.arena = weft_arena_create(), .n_rows = n_rows, .row = row};
    const weft_loop counts = {.n_in = 1, .n_ops = 4, .n_out = 4, .n_segments = 1};
    CHECK_OK(weft_loop_take(l->arena, counts, &l->loop, &error), error);
    l->x = view_of(WEFT_F32, 2, (part[]){{"r", n_rows, 0, n_rows}, {"i", row, 0, row}});
    l->squares = view_like(&l->x), l->made = view_like(&l->x);
    l->state =
        width > 1 ? view_of(WEFT_F32, 2, (part[]){{"r", n_rows, 0, n_rows}, {"c", width, 0, width}})
                  : view_of(WEFT_F32, 1, (part[]){{"r", n_rows, 0, n_rows}});
    square(n_rows * row, l->squares.data, (const void *const[]){l->x.data}, NULL);
    weft_loop_segment *s = &l->loop->segment[0];
    s->n_dims = 2, s->n_row_dims = 1, s->size[0] = n_rows, s->size[1] = row;
    s->in[0] = (weft_loop_operand){l->x.data, {row, 1}};
    l->loop->in[0] = (weft_loop_in){4, 1};
    set_op(&l->loop->op[0], WEFT_LOOP_ELEMENTS, 0);
    set_op(&l->loop->op[1], WEFT_LOOP_REDUCE, 1);
    set_op(&l->loop->op[2], WEFT_LOOP_REDUCE, 1);
    set_op(&l->loop->op[3], WEFT_LOOP_ROWS, 3);
    l->loop->op[0].block = square, l->loop->op[3].block = add_one;
    l->loop->op[1].combine = combine, l->loop->op[2].combine = WEFT_SUM;
    for (int o = 0; o < 4; o++)
        l->loop->out[o] = o + 1;
    s->out[0] = l->made.data, s->out[1] = l->state.data, s->out[2] = l->sum, s->out[3] = l->more;
}

static void close_rows(long_rows *l)
{
    view_free(&l->x), view_free(&l->squares), view_free(&l->made), view_free(&l->state);
    weft_arena_destroy(&l->arena);
}

/* By the kernel, of the squares. */
static weft_view reduce_alone(const long_rows *l, weft_combine combine, const weft_view *like)
{
    weft_view out = view_like(like);
    const weft_reduce_attributes attributes = {combine, "i"};
    weft_reduce_cpu(&(weft_call){.n_in = 1,
                                 .n_out = 1,
                                 .in[0] = l->squares,
                                 .out[0] = out,
                                 .attributes = &attributes,
                                 .stream = streams[3]});
    return out;
}

static void check_results(const long_rows *l, const weft_view *state, const weft_view *sum)
{
    CHECK(view_same_bits(&l->state, state));
    CHECK(view_same_bits(&l->made, &l->squares));
    CHECK(memcmp(l->sum, sum->data, (size_t)l->n_rows * sizeof *l->sum) == 0);
    for (int64_t i = 0; i < l->n_rows; i++)
        CHECK(l->more[i] == l->sum[i] + 1);
}

static void spoil(long_rows *l)
{
    view_spoil(&l->state), view_spoil(&l->made);
    memset(l->sum, 7, sizeof l->sum), memset(l->more, 7, sizeof l->more);
}

/* All by one; then by two and by five, the last first. */
static void run_parts(long_rows *l, const weft_prepared_loop *prepared, int count)
{
    weft_error error = {0};
    for (int index = count - 1; index >= 0; index--) {
        weft_bound_loop *bound;
        const weft_status status =
            weft_loop_bind(prepared, (weft_loop_part){index, count},
                           streams[1 + index % MOST_LANES], l->arena, &bound, &error);
        if (CHECK_OK(status, error)) weft_bound_loop_run(bound, 1, 0);
    }
}

static void check_rows(weft_combine combine, int64_t n_rows, int64_t row)
{
    weft_error error = {0};
    const weft_prepared_loop *prepared;
    const weft_view one = view_of(WEFT_F32, 1, (part[]){{"r", n_rows, 0, n_rows}});
    long_rows l;
    open_rows(&l, combine, n_rows, row);
    weft_view state = reduce_alone(&l, combine, &l.state), sum = reduce_alone(&l, WEFT_SUM, &one);
    if (CHECK_OK(weft_loop_prepare(l.loop, l.arena, &prepared, &error), error)) {
        for (int lanes = 1; lanes <= MOST_LANES; lanes++) {
            spoil(&l);
            weft_loop_run(prepared, 1, streams[lanes]);
            check_results(&l, &state, &sum);
        }
        static const int counts[] = {1, 2, 5};
        for (int i = 0; i < 3; i++) {
            spoil(&l);
            run_parts(&l, prepared, counts[i]);
            check_results(&l, &state, &sum);
        }
    }
    for (int64_t r = 0; r < n_rows; r++) {
        long double exact = 0;
        for (int64_t i = 0; i < row; i++)
            exact += view_get(&l.squares, r * row + i);
        CHECK(fabsl(exact - l.sum[r]) <= 1e-6L * exact);
    }
    view_free(&state), view_free(&sum), view_free((weft_view *)&one);
    close_rows(&l);
}

static void test_long_rows_have_the_kernels_bits_on_any_lanes_in_any_parts(void)
{
    static const int64_t lengths[] = {32767, 32768, 32769, 100000, 1000003};
    for (int combine = WEFT_SUM; combine <= WEFT_MOMENTS; combine++)
        for (int i = 0; i < 5; i++)
            check_rows((weft_combine)combine, 1 + random_below(lengths[i] > 200000 ? 2 : 4),
                       lengths[i]);
}

static void test_many_rows_are_not_cut(void)
{
    check_rows(WEFT_SUM, 15, 40000);
    check_rows(WEFT_SUM, 16, 40000);
    check_rows(WEFT_LSE, 17, 40000);
}

int main(void)
{
    if (!streams_open() || !lanes_open()) return 1;
    RUN(test_long_rows_have_the_kernels_bits_on_any_lanes_in_any_parts);
    RUN(test_many_rows_are_not_cut);
    lanes_close();
    streams_close();
    return weft_test_report();
}
