/* The element-by-element driver against a plain loop: random strides, chains, dtypes and indices;
 * in place. */
#include "kernel_views.h"

/* y = x0 + 2 x1 (+ 3 x2), in every dtype; and y = 100 x0 + the global index. */
#define BLOCKS(T, suffix)                                                                          \
    static void mix_##suffix(int64_t n, void *out, const void *const *in,                          \
                             const weft_block_env *env)                                            \
    {                                                                                              \
        T *y = out;                                                                                \
        const T *a = in[0], *b = in[1], *c = in[2];                                                \
        CHECK(n > 0 && n <= WEFT_BLOCK);                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = a[i] + (T)env->number[0] * b[i] + (c != NULL ? 3 * c[i] : 0);                   \
    }                                                                                              \
    static void mark_##suffix(int64_t n, void *out, const void *const *in,                         \
                              const weft_block_env *env)                                           \
    {                                                                                              \
        T *y = out;                                                                                \
        const T *a = in[0];                                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = 100 * a[i] + (T)(env->index + i * env->stride);                                 \
    }
BLOCKS(float, f32)
BLOCKS(double, f64)
BLOCKS(int32_t, i32)
static void widen(int64_t n, void *out, const void *const *in, const weft_block_env *env)
{
    (void)env;
    for (int64_t i = 0; i < n; i++)
        ((double *)out)[i] = ((const float *)in[0])[i];
}

static const weft_block mix[] = {mix_f32, mix_f64, mix_i32},
                        mark[] = {mark_f32, mark_f64, mark_i32};

typedef struct one_case {
    weft_loop loop;
    weft_dtype dtype;
    weft_view in[3]; /* memory of operands, as 1-dim views */
} one_case;

static double operand(const one_case *c, int k, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < c->loop.n_dims; d++)
        i += at[d] * c->loop.in[k].stride[d];
    return view_get(&c->in[k], i);
}

/* result = mark(mix(a, b), at index) and then mix(result, c, a). */
static double expect(const one_case *c, const int64_t *at)
{
    const double a = operand(c, 0, at), b = operand(c, 1, at), x = operand(c, 2, at);
    double index = (double)c->loop.op[1].index_begin;
    for (int d = 0; d < c->loop.n_dims; d++)
        index += (double)(at[d] * c->loop.op[1].index_stride[d]);
    return 100 * (a + 2 * b) + index + 2 * x + 3 * a;
}

static void make_operand(one_case *c, int k)
{
    weft_loop *l = &c->loop;
    int order[WEFT_MAX_DIMS];
    for (int d = 0; d < l->n_dims; d++)
        order[d] = d;
    if (k > 0 && random_below(3) == 0) /* transposed */
        for (int d = l->n_dims - 1; d > 0; d--) {
            const int e = random_below(d + 1), o = order[d];
            order[d] = order[e], order[e] = o;
        }
    int64_t step = 1;
    for (int i = l->n_dims - 1; i >= 0; i--) {
        const int d = order[i];
        const bool broadcast = k > 0 && random_below(4) == 0;
        l->in[k].stride[d] = broadcast ? 0 : step;
        if (!broadcast) step *= l->size[d];
    }
    c->in[k] = view_of(c->dtype, 1, &(part){"i", step, 0, step});
    for (int64_t i = 0; i < step; i++)
        view_set(&c->in[k], i, random_below(15) - 7);
    l->in[k].data = c->in[k].data;
    l->in[k].bytes = (int)weft_dtype_bytes(c->dtype);
}

static void add_op(weft_loop *l, weft_block block, int bytes, int n_in, const int *in)
{
    weft_loop_op *op = &l->op[l->n_ops++];
    op->block = block;
    op->bytes = bytes;
    op->n_in = n_in;
    op->env.number[0] = 2;
    memcpy(op->in, in, (size_t)n_in * sizeof *in);
}

static void make_case(one_case *c, weft_dtype dtype)
{
    static const int most[] = {1, 1300, 90, 20, 8, 5, 4};
    *c = (one_case){.dtype = dtype};
    weft_loop *l = &c->loop;
    l->n_dims = random_below(7);
    for (int d = 0; d < l->n_dims; d++)
        l->size[d] = random_below(30) == 0 ? 0 : 1 + random_below(most[l->n_dims]);
    l->n_in = 3;
    for (int k = 0; k < 3; k++)
        make_operand(c, k);
    const int bytes = (int)weft_dtype_bytes(dtype);
    add_op(l, mix[dtype], bytes, 2, (int[]){0, 1});
    add_op(l, mark[dtype], bytes, 1, (int[]){3});
    add_op(l, mix[dtype], bytes, 3, (int[]){4, 2, 0});
    l->op[1].index_begin = random_below(50);
    const bool linear = random_below(2);
    int64_t step = 1;
    for (int d = l->n_dims - 1; d >= 0; d--) {
        l->op[1].index_stride[d] = linear ? step : random_below(3) * 5;
        step *= l->size[d] + random_below(2);
    }
}

static void run_case(one_case *c)
{
    weft_loop *l = &c->loop;
    weft_view out = {0};
    for (int d = 0; d < l->n_dims; d++)
        view_add(&out, (part){"d", l->size[d], 0, l->size[d]});
    view_take(&out, c->dtype);
    weft_view two = view_like(&out);
    view_spoil(&out);
    l->out = out.data;
    weft_loop_run(l, one_lane);
    l->out = two.data;
    weft_loop_run(l, two_lanes);
    CHECK(view_same_bits(&out, &two));
    for (int64_t i = 0; i < weft_view_count(&out); i++) {
        int64_t at[WEFT_MAX_DIMS];
        view_at(&out, i, at);
        CHECK(view_get(&out, i) == expect(c, at));
    }
    l->out = c->in[0].data; /* operand 0 is contiguous: the result may take its place */
    weft_loop_run(l, two_lanes);
    CHECK(weft_view_count(&out) == 0 ||
          memcmp(out.data, c->in[0].data,
                 (size_t)weft_view_count(&out) * weft_dtype_bytes(c->dtype)) == 0);
    for (int k = 0; k < 3; k++)
        view_free(&c->in[k]);
    view_free(&out);
    view_free(&two);
}

static void test_random_loops_equal_plain_ones(void)
{
    for (int i = 0; i < 400; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            one_case c;
            make_case(&c, (weft_dtype)dtype);
            run_case(&c);
        }
}

/* f32 operands, f64 results between them: blocks of both widths share the scratch. */
static void test_a_chain_of_two_widths(void)
{
    enum { N = 3000 };
    static float x[N];
    static double y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    weft_loop l = {.n_dims = 1, .size = {N}, .n_in = 1, .in = {{x, 4, {1}}}, .out = y};
    add_op(&l, mix_f32, 4, 2, (int[]){0, 0}); /* 3 x */
    add_op(&l, widen, 8, 1, (int[]){1});
    add_op(&l, mix_f64, 8, 2, (int[]){2, 2}); /* 9 x */
    add_op(&l, widen, 8, 1, (int[]){1});      /* the first one is still there */
    add_op(&l, mix_f64, 8, 2, (int[]){3, 4}); /* 9 x + 2 * 3 x */
    weft_loop_run(&l, two_lanes);
    for (int i = 0; i < N; i++)
        CHECK(y[i] == 15.0 * i);
}

/* Longest chain there can be: each op adds the one before to itself twice over: y = 3^n x. */
static void test_the_longest_chain(void)
{
    enum { N = 700 };
    static double x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = i % 7;
    weft_loop l = {.n_dims = 1, .size = {N}, .n_in = WEFT_LOOP_IN, .out = y};
    for (int k = 0; k < WEFT_LOOP_IN; k++)
        l.in[k] = (weft_loop_operand){x, 8, {1}};
    for (int k = 0; k < WEFT_LOOP_OPS; k++) {
        const int before = k == 0 ? 0 : WEFT_LOOP_IN + k - 1;
        add_op(&l, mix_f64, 8, 2, (int[]){before, before});
    }
    weft_loop_run(&l, one_lane);
    for (int i = 0; i < N; i++)
        CHECK(y[i] == pow(3, WEFT_LOOP_OPS) * (i % 7));
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_random_loops_equal_plain_ones);
    RUN(test_a_chain_of_two_widths);
    RUN(test_the_longest_chain);
    streams_close();
    return weft_test_report();
}
