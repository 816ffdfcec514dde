/* The fast einsum against six nested loops: random names, orders, boxes and dtypes. */
#include "kernel_views.h"
#include "weft/extend/half.h"

#include <string.h>

extern const weft_kernel weft_kernel_einsum;

static const char *const names[] = {"batch", "seq", "embed", "heads", "kv", "hidden"};
enum { NAMES = 6 };

static void shuffle(part *parts, int n)
{
    for (int i = n - 1; i > 0; i--) {
        const int j = random_below(i + 1);
        const part p = parts[i];
        parts[i] = parts[j];
        parts[j] = p;
    }
}

static void say_what(const weft_call *call, const char *how, double distance)
{
    char a[200], b[200], out[200];
    weft_shape_print(&call->in[0].shape, a, sizeof a);
    weft_shape_print(&call->in[1].shape, b, sizeof b);
    weft_shape_print(&call->out[0].shape, out, sizeof out);
    printf("%s %s -> %s%s: off by %g\n", a, b, out, how, distance);
}

static void copy_view(weft_view *to, const weft_view *from)
{
    const size_t bytes = (size_t)weft_view_count(from) * weft_dtype_bytes(from->dtype);
    if (bytes > 0) memcpy(to->data, from->data, bytes);
}

/* Begun with a sum so far, in memory of its own, and then where that lies: the same bits. */
static void compare_begun(const weft_call *call, double tolerance)
{
    weft_call begun = *call;
    weft_view kept = view_like(&call->out[0]), sum = view_like(&call->out[0]);
    begun.accumulates = true;
    begun.n_in = 3;
    begun.in[2] = view_like(&call->out[0]);
    begun.out[0] = view_like(&call->out[0]);
    view_randomize(&begun.in[2]);
    copy_view(&kept, &begun.in[2]);
    for (int64_t i = 0; i < weft_view_count(&sum); i++)
        view_set(&sum, i, view_get(&kept, i) + view_get(&call->out[0], i));
    run_on_lanes(weft_einsum_cpu, &begun);
    const double distance = view_distance(&begun.out[0], &sum);
    if (!CHECK(distance <= tolerance)) say_what(call, ", begun", distance);
    CHECK(view_same_bits(&begun.in[2], &kept));
    weft_call over = begun;
    over.out[0] = over.in[2] = kept;
    weft_einsum_cpu(&over);
    CHECK(view_same_bits(&over.out[0], &begun.out[0]));
    view_free(&kept);
    view_free(&sum);
    view_free(&begun.in[2]);
    view_free(&begun.out[0]);
}

/* A result of bf16 is the f32 one rounded, to the bit; its sums are in scratch. */
static void compare_narrow(const weft_call *call)
{
    weft_call narrow = *call;
    narrow.out[0].dtype = WEFT_BF16;
    narrow.out[0] = view_like(&narrow.out[0]);
    const int64_t bytes = weft_kernel_einsum.scratch(&narrow), count = weft_view_count(narrow.out);
    CHECK(weft_kernel_einsum.takes(&narrow));
    CHECK(bytes <= 4 * count);
    narrow.scratch = aligned_alloc(64, (size_t)(bytes + 64) / 64 * 64);
    if (narrow.scratch == NULL) exit(2);
    run_on_lanes(weft_einsum_cpu, &narrow);
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < count; i++)
        n_wrong += ((const uint16_t *)narrow.out[0].data)[i] !=
                   weft_bf16_of_f32(((const float *)call->out[0].data)[i]);
    if (!CHECK_EQ_INT(n_wrong, 0)) say_what(call, ", as bf16", (double)n_wrong);
    narrow.accumulates = true;
    CHECK(!weft_kernel_einsum.takes(&narrow));
    free(narrow.scratch);
    view_free(&narrow.out[0]);
}

/* An operand of f32 beside one of bf16 is as its bf16, to the bit. */
static void compare_rounded(const weft_call *call, int operand)
{
    weft_call wide = *call, narrow = *call;
    wide.in[operand].dtype = WEFT_F32;
    wide.in[operand] = view_like(&wide.in[operand]);
    narrow.in[operand] = view_like(&call->in[operand]);
    view_randomize(&wide.in[operand]);
    for (int64_t i = 0; i < weft_view_count(&narrow.in[operand]); i++)
        ((uint16_t *)narrow.in[operand].data)[i] =
            weft_bf16_of_f32(((const float *)wide.in[operand].data)[i]);
    wide.out[0] = view_like(&call->out[0]);
    narrow.out[0] = view_like(&call->out[0]);
    CHECK(weft_kernel_einsum.takes(&wide));
    run_on_lanes(weft_einsum_cpu, &wide);
    run_on_lanes(weft_einsum_cpu, &narrow);
    if (!CHECK(view_same_bits(&wide.out[0], &narrow.out[0])))
        say_what(call, ", of f32", view_distance(&wide.out[0], &narrow.out[0]));
    view_free(&wide.in[operand]), view_free(&narrow.in[operand]);
    view_free(&wide.out[0]), view_free(&narrow.out[0]);
}

static void compare(weft_call *call, double tolerance)
{
    weft_view plain = view_like(&call->out[0]);
    run_on_lanes(weft_einsum_cpu, call);
    weft_call oracle = *call;
    oracle.out[0] = plain;
    weft_einsum_plain(&oracle);
    const double distance = view_distance(&call->out[0], &plain);
    if (!CHECK(distance <= tolerance)) say_what(call, "", distance);
    view_free(&plain);
    compare_begun(call, tolerance);
    if (call->in[0].dtype != WEFT_BF16) return;
    compare_narrow(call);
    compare_rounded(call, random_below(2));
}

static void random_case(weft_dtype dtype, int most)
{
    part a[NAMES], b[NAMES], out[NAMES];
    int n_a = 0, n_b = 0, n_out = 0;
    for (int i = 0; i < NAMES; i++) {
        part p = random_part(names[i], most);
        if (random_below(60) == 0) p.end = p.begin; /* empty */
        const int where = random_below(9);          /* mostly batch, m, n, k; sometimes alone */
        if (where == 0) continue;
        const bool in_a = where <= 5 || where == 8, in_b = where <= 3 || where >= 6;
        const bool in_out = where == 1 || where == 4 || where == 5 || where == 6 || where == 7;
        if (in_a) a[n_a++] = p;
        if (in_b && where != 8) b[n_b++] = p;
        if (in_out) out[n_out++] = p;
    }
    shuffle(a, n_a);
    shuffle(b, n_b);
    shuffle(out, n_out);
    weft_call call = {.n_in = 2, .n_out = 1};
    call.in[0] = view_of(dtype, n_a, a);
    call.in[1] = view_of(dtype, n_b, b);
    const weft_dtype made = weft_dtype_computes(dtype);
    call.out[0] = view_of(made, n_out, out);
    compare(&call, made == WEFT_F32 ? 1e-3 : made == WEFT_F64 ? 1e-11 : 0);
    call_free(&call);
}

static void test_random_products_equal_plain_loops(void)
{
    for (int i = 0; i < weft_test_cases(400); i++)
        for (int dtype = 0; dtype < WEFT_U8; dtype++)
            random_case((weft_dtype)dtype, i % 4 == 0 ? 9 : 4);
}

/* Matrices large enough to be cut into slices, in all eight orders of their dims. */
static void test_large_matrices_in_every_order(void)
{
    const part m = {"m", 700, 3, 503}, n = {"n", 260, 0, 251}, k = {"k", 90, 1, 83};
    const int every = weft_test_stride(2);
    for (int order = 0; order < 8; order++)
        for (int dtype = order % every; dtype < WEFT_I64; dtype += every) {
            weft_call call = {.n_in = 2, .n_out = 1};
            const part a[2][2] = {{m, k}, {k, m}}, b[2][2] = {{k, n}, {n, k}},
                       out[2][2] = {{m, n}, {n, m}};
            call.in[0] = view_of((weft_dtype)dtype, 2, a[order & 1]);
            call.in[1] = view_of((weft_dtype)dtype, 2, b[order >> 1 & 1]);
            const weft_dtype made = weft_dtype_computes((weft_dtype)dtype);
            call.out[0] = view_of(made, 2, out[order >> 2]);
            compare(&call, made == WEFT_F32 ? 2e-4 : 1e-12);
            call_free(&call);
        }
}

/* A product of operands whose dims are given. */
typedef struct product {
    int n_a, n_b, n_out;
    part a[4], b[4], out[3];
} product;

/* In every dtype; `near` is for f32. */
static void check_product(const product *p, double near)
{
    for (int dtype = 0; dtype < WEFT_U8; dtype++) {
        const weft_dtype made = weft_dtype_computes((weft_dtype)dtype);
        weft_call call = {.n_in = 2, .n_out = 1};
        call.in[0] = view_of((weft_dtype)dtype, p->n_a, p->a);
        call.in[1] = view_of((weft_dtype)dtype, p->n_b, p->b);
        call.out[0] = view_of(made, p->n_out, p->out);
        compare(&call, made == WEFT_F32 ? near : made == WEFT_F64 ? 1e-12 : 0);
        call_free(&call);
    }
}

/* A vector on either side, an outer product, a batch of dots, a scalar. */
static void test_vectors(void)
{
    const part m = {"m", 300, 0, 300}, n = {"n", 40, 0, 40}, k = {"k", 200, 0, 200},
               t = {"t", 7, 2, 6};
    const product cases[] = {
        {2, 1, 1, {m, k}, {k}, {m}},    {2, 1, 1, {k, m}, {k}, {m}},
        {1, 2, 1, {k}, {k, n}, {n}},    {1, 1, 2, {m}, {n}, {m, n}},
        {1, 1, 2, {m}, {n}, {n, m}},    {2, 2, 1, {t, k}, {t, k}, {t}},
        {2, 2, 1, {t, k}, {k, t}, {t}}, {1, 1, 0, {k}, {k}, {m}},
        {0, 1, 1, {m}, {k}, {k}},       {3, 2, 2, {m, t, k}, {k, t}, {t, m}},
        {0, 0, 0, {m}, {m}, {m}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_product(&cases[i], 1e-4);
}

/* Longer than a chunk of results and than a stretch of what is summed, and of neither a whole number; either side's matrix either
 * way round; of a batch, and with more to be summed than one loop. */
static void test_vectors_and_large_matrices(void)
{
    const part n = {"n", 2200, 3, 2150}, k = {"k", 2100, 2, 2095}, few = {"n", 40, 1, 38},
               t = {"t", 3, 0, 3}, s = {"s", 5, 1, 4}, d = {"d", 50, 1, 50};
    const product cases[] = {
        {1, 2, 1, {k}, {k, few}, {few}},
        {1, 2, 1, {k}, {few, k}, {few}},
        {2, 1, 1, {n, s}, {s}, {n}},
        {2, 1, 1, {s, n}, {s}, {n}},
        {2, 1, 1, {n, d}, {d}, {n}},
        {1, 2, 1, {d}, {d, n}, {n}},
        {2, 3, 2, {t, few}, {t, few, k}, {t, k}},
        {2, 3, 2, {few, t}, {k, few, t}, {k, t}},
        {2, 3, 1, {s, few}, {few, s, k}, {k}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_product(&cases[i], 1e-3);
}

/* Sums down columns of a product element by element: what the gradient of a layer norm's gain is. */
static void test_products_of_elements_summed_down_columns(void)
{
    const part b = {"batch", 5, 1, 5}, s = {"seq", 31, 0, 31}, e = {"embed", 700, 3, 673},
               h = {"heads", 3, 0, 3};
    const product cases[] = {
        {3, 3, 1, {b, s, e}, {b, s, e}, {e}},          {3, 2, 1, {b, s, e}, {s, e}, {e}},
        {4, 4, 2, {b, s, h, e}, {b, s, h, e}, {h, e}}, {3, 3, 1, {b, s, e}, {s, b, e}, {e}},
        {4, 3, 2, {b, s, h, e}, {s, h, e}, {h, e}},    {3, 3, 1, {b, e, s}, {b, s, e}, {e}},
        {3, 3, 2, {b, s, e}, {b, s, e}, {b, e}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_product(&cases[i], 1e-5);
}

static void test_empty_contraction_gives_zeros(void)
{
    const part m = {"m", 5, 0, 5}, none = {"k", 8, 8, 8};
    weft_call call = {.n_in = 2, .n_out = 1};
    call.in[0] = view_of(WEFT_F32, 2, (part[]){m, none});
    call.in[1] = view_of(WEFT_F32, 1, (part[]){none});
    call.out[0] = view_of(WEFT_F32, 1, (part[]){m});
    run_on_lanes(weft_einsum_cpu, &call);
    for (int i = 0; i < 5; i++)
        CHECK(view_get(&call.out[0], i) == 0);
    call_free(&call);
}

/* Results of bf16 whose sums do not all have memory at once, in some orders: 2.1 million of them. Of some, one row or column is
 * left behind the others. */
static void test_large_results_of_bf16(void)
{
    static const int64_t sizes[][2] = {{1500, 1460}, {1489, 1400}, {1400, 1489}};
    for (int i = 0; i < 3; i++)
        for (int order = 0; order < 8; order += i == 0 ? 3 : 4) {
            const part m = {"m", sizes[i][0], 0, sizes[i][0]},
                       n = {"n", sizes[i][1], 0, sizes[i][1]}, k = {"k", 21, 0, 21};
            weft_call call = {.n_in = 2, .n_out = 1};
            const part a[2][2] = {{m, k}, {k, m}}, b[2][2] = {{k, n}, {n, k}},
                       out[2][2] = {{m, n}, {n, m}};
            call.in[0] = view_of(WEFT_BF16, 2, a[order & 1]);
            call.in[1] = view_of(WEFT_BF16, 2, b[order >> 1 & 1]);
            call.out[0] = view_of(WEFT_F32, 2, out[order >> 2 & 1]);
            run_on_lanes(weft_einsum_cpu, &call);
            compare_narrow(&call);
            call_free(&call);
        }
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_random_products_equal_plain_loops);
    RUN(test_large_results_of_bf16);
    RUN(test_large_matrices_in_every_order);
    RUN(test_vectors);
    RUN(test_vectors_and_large_matrices);
    RUN(test_products_of_elements_summed_down_columns);
    RUN(test_empty_contraction_gives_zeros);
    streams_close();
    return weft_test_report();
}
