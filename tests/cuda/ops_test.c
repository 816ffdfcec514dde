/* ops_test: every kernel of the device cuda against the CPU's, on numbers, dtypes, boxes and strides of every kind,
 * and whole programs on meshes. It runs on a driver that does things late and blocks in any order, or on a GPU where
 * there is one. */
#include "calls.h"
#include "weft/ops.h"
#include "weft/program.h"

/* ---- products --------------------------------------------------------------------------------- */

static void check_einsum(weft_dtype dtype, const char *a, const char *b, const char *out)
{
    weft_call call = {0};
    add_in(&call, dtype, a, 1);
    add_in(&call, dtype, b, 1);
    add_out(&call, weft_dtype_computes(dtype), out);
    check_call("einsum", &call);
}

static void test_einsum(void)
{
    static const weft_dtype dtypes[] = {WEFT_F32,  WEFT_F64, WEFT_I32,
                                        WEFT_BF16, WEFT_F16, WEFT_I64};
    static const char *const cases[][3] = {
        {"m:7 k:33", "k:33 n:9", "m:7 n:9"},
        {"m:7 k:33", "n:9 k:33", "n:9 m:7"},
        {"b:3 m:4 k:5 l:6", "k:5 b:3 l:6 n:2", "b:3 m:4 n:2"},
        {"b:2 s:5 h:3 d:4", "b:2 t:6 h:3 d:4", "b:2 h:3 s:5 t:6"},
        {"m:40 k:8/3", "k:8/3", "m:40"},
        {"k:300", "k:300", ""},
        {"m:3", "n:4", "m:3 n:4"},
        {"m:3 k:0", "k:0 n:4", "m:3 n:4"},
        {"m:0 k:3", "k:3 n:4", "m:0 n:4"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            check_einsum(dtypes[d], cases[c][0], cases[c][1], cases[c][2]);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void check_reduce(const char *op, weft_combine combine, weft_dtype dtype, const char *in,
                         const char *out)
{
    const weft_reduce_attributes attributes = {combine, combine == WEFT_ARGMAX ? "r" : NULL};
    const int width = weft_combine_width(combine);
    char text[100];
    weft_call call = {.attributes = &attributes};
    snprintf(text, sizeof text, "%s", out);
    if (width > 1) snprintf(text, sizeof text, "%s%s~:%d", out, *out ? " " : "", width);
    add_in(&call, dtype, in, 1);
    add_out(&call, dtype, text);
    check_call(op, &call);
}

static void test_reductions(void)
{
    static const struct {
        const char *op;
        weft_combine combine;
        uint32_t dtypes;
    } ops[] = {
        {"sum", WEFT_SUM, WEFT_WIDE_DTYPES},
        {"reduce_max", WEFT_MAX, WEFT_WIDE_DTYPES},
        {"reduce_prod", WEFT_PROD, WEFT_WIDE_DTYPES},
        {"lse_state", WEFT_LSE, WEFT_FLOAT_DTYPES},
        {"argmax_state", WEFT_ARGMAX, WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_I32)},
        {"moments_state", WEFT_MOMENTS, WEFT_FLOAT_DTYPES},
    };
    static const char *const cases[][2] = {
        {"m:5 r:7", "m:5"},
        {"r:700 m:3", "m:3"},
        {"m:4 r:300/2 n:3", "m:4 n:3"},
        {"m:4 r:300/2 n:3", "n:3 m:4"},
        {"r:1000", ""},
        {"m:3 r:1", "m:3"},
        {"m:0 r:4", "m:0"},
    };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
                if (ops[k].dtypes & WEFT_DTYPE_BIT(dtype))
                    check_reduce(ops[k].op, ops[k].combine, (weft_dtype)dtype, cases[c][0],
                                 cases[c][1]);
    check_reduce("sum", WEFT_SUM, WEFT_F32, "m:3 r:4 q:5 n:6", "n:6 m:3");
    check_reduce("sum", WEFT_SUM, WEFT_F64, "m:3 r:0", "m:3");
}

static void check_finish(const char *op, weft_dtype dtype, const char *state, int width,
                         const char *first, const char *second)
{
    const weft_number_attributes attributes = {1e-3};
    weft_call call = {.attributes = &attributes};
    add_in(&call, dtype, state, width);
    add_out(&call, strcmp(op, "argmax_finish") == 0 ? WEFT_I32 : dtype, first);
    if (second != NULL) add_out(&call, dtype, second);
    check_call(op, &call);
}

static void test_finishes(void)
{
    for (int d = 0; d < 2; d++) {
        const weft_dtype dtype = d ? WEFT_F64 : WEFT_F32;
        check_finish("lse_finish", dtype, "m:3 n:50 ~:2", 2, "n:50 m:3", "m:3 n:50");
        check_finish("argmax_finish", dtype, "m:3 n:5 ~:2", 2, "m:3 n:5", NULL);
        check_finish("moments_finish", dtype, "m:3 n:5 ~:3", 3, "m:3 n:5", "n:5 m:3");
    }
    check_finish("argmax_finish", WEFT_I32, "m:300 ~:2", 2, "m:300", NULL);
}

/* ---- indices ---------------------------------------------------------------------------------- */

/* Some past the table's box, some before. */
static void add_ids(weft_call *call, const char *text, int n)
{
    add_in(call, WEFT_I32, text, 1);
    weft_view *ids = &call->in[call->n_in - 1];
    for (int64_t i = 0; i < weft_view_count(ids); i++)
        ((int32_t *)ids->data)[i] = (int32_t)random_below((uint32_t)n);
}

static void check_indexing(const char *op, weft_dtype dtype, const char *table, const char *ids,
                           const char *rows)
{
    const weft_dim_attributes attributes = {"v", 20};
    weft_call call = {.attributes = &attributes};
    const bool is_scatter = strncmp(op, "scatter_", 8) == 0 || strcmp(op, "unpick") == 0;
    add_in(&call, dtype, is_scatter ? rows : table, 1);
    add_ids(&call, ids, 20);
    add_out(&call, dtype, is_scatter ? table : rows);
    check_call(op, &call);
}

static void test_indexing(void)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        check_indexing("gather", (weft_dtype)dtype, "v:20 d:5", "b:3 s:7", "b:3 s:7 d:5");
        check_indexing("gather", (weft_dtype)dtype, "v:8/5 d:5 e:2", "b:30", "b:30 d:5 e:2");
        check_indexing("pick", (weft_dtype)dtype, "b:6 v:9/4 s:2", "b:6 s:2", "b:6 s:2");
        if (!(WEFT_WIDE_DTYPES & WEFT_DTYPE_BIT(dtype))) continue;
        check_indexing("scatter_add", (weft_dtype)dtype, "v:8/5 d:5", "b:3 s:7", "b:3 s:7 d:5");
        check_indexing("scatter_add", (weft_dtype)dtype, "v:20 d:90", "b:40", "b:40 d:90");
        check_indexing("scatter_add", (weft_dtype)dtype, "v:20 d:3", "b:0", "b:0 d:3");
        check_indexing("scatter_max", (weft_dtype)dtype, "v:8/5 d:5", "b:3 s:7", "b:3 s:7 d:5");
        check_indexing("scatter_max", (weft_dtype)dtype, "v:20 d:3", "b:0", "b:0 d:3");
        check_indexing("pick", (weft_dtype)dtype, "b:6 v:9/4 s:2", "b:6 s:2 k:3", "b:6 s:2 k:3");
        check_indexing("unpick", (weft_dtype)dtype, "b:6 v:9/4 s:2", "b:6 k:3", "b:6 k:3 s:2");
    }
}

/* The sum so far is an operand more. */
static void test_scatter_add_goes_on_with_a_sum(void)
{
    const weft_dim_attributes attributes = {"v", 20};
    weft_call call = {.attributes = &attributes, .accumulates = true};
    add_in(&call, WEFT_F32, "b:9 d:5", 1);
    add_ids(&call, "b:9", 20);
    add_in(&call, WEFT_F32, "v:20 d:5", 1);
    add_out(&call, WEFT_F32, "v:20 d:5");
    check_call("scatter_add", &call);
}

/* Rows `own` to each row of x; ids in 20, of which the matrices have 8 from 5 on, or all 5, so that some have no matrix here. */
static void check_chosen(weft_dtype dtype, const char *x, const char *ids, const char *y,
                         const char *w, const char *turned)
{
    const weft_dim_attributes attributes = {"v", 20};
    const char *const matrices[] = {w, turned};
    for (int form = 0; form < 2; form++) {
        weft_call call = {.attributes = &attributes};
        add_in(&call, dtype, x, 1), add_in(&call, dtype, matrices[form], 1);
        add_ids(&call, ids, 20);
        add_out(&call, dtype, y);
        CHECK_EQ_INT(check_call("pick_product", &call), 1);
    }
    weft_call back = {.attributes = &attributes};
    add_in(&back, dtype, x, 1), add_in(&back, dtype, y, 1);
    add_ids(&back, ids, 20);
    add_out(&back, dtype, w);
    CHECK_EQ_INT(check_call("unpick_product", &back), 1);
}

static void test_products_with_chosen_matrices(void)
{
    static const struct {
        const char *x, *ids, *y, *w, *turned;
    } cases[] = {
        {"r:9 i:5", "r:9", "r:9 o:7", "v:8/5 i:5 o:7", "v:8/5 o:7 i:5"},
        {"r:41 i:33", "r:41 k:2", "r:41 k:2 o:35", "v:3/5 i:33 o:35",
         "v:3/5 o:35 i:33"}, /* tiles and rests */
        {"b:2 s:60 i:3", "b:2 s:60", "b:2 s:60 o:2", "v:1/7 i:3 o:2", "v:1/7 o:2 i:3"},
        {"r:0 i:5", "r:0", "r:0 o:7", "v:20 i:5 o:7", "v:20 o:7 i:5"},
        {"r:9 i:0", "r:9", "r:9 o:7", "v:20 i:0 o:7", "v:20 o:7 i:0"},
        {"r:9 i:5", "r:9", "r:9 o:7", "v:0 i:5 o:7", "v:0 o:7 i:5"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int d = 0; d < 2; d++)
            check_chosen(d ? WEFT_F64 : WEFT_F32, cases[c].x, cases[c].ids, cases[c].y, cases[c].w,
                         cases[c].turned);
}

static void check_order(weft_dtype dtype, const char *in, const char *out, int64_t size,
                        int64_t count)
{
    for (int descending = 0; descending < 2; descending++) {
        const weft_order_attributes attributes = {"v", "k", size, count, descending};
        weft_call call = {.attributes = &attributes};
        add_in(&call, dtype, in, 1);
        weft_view *x = &call.in[0];
        for (int64_t i = 0; i < weft_view_count(x); i++) /* many are equal, some are no numbers */
            weft_dtype_put(dtype, x->data, i,
                           weft_dtype_is_float(dtype) && random_below(9) == 0
                               ? (double)NAN
                               : random_below(20) - 7.0);
        add_out(&call, WEFT_I32, out);
        check_call("order", &call);
    }
}

static void test_order(void)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        if (!(WEFT_WIDE_DTYPES & WEFT_DTYPE_BIT(dtype))) continue;
        check_order((weft_dtype)dtype, "b:3 v:50 s:4", "b:3 k:50 s:4", 50, 50);
        check_order((weft_dtype)dtype, "v:300 s:2", "k:7 s:2", 300, 7);
        check_order((weft_dtype)dtype, "b:0 v:9", "b:0 k:2", 9, 2);
        check_order((weft_dtype)dtype, "b:4 v:1", "b:4 k:1", 1, 1);
        /* runs that are merged: whole, few of them, in pairs and alone */
        check_order((weft_dtype)dtype, "v:2500 s:2", "k:2500 s:2", 2500, 2500);
        check_order((weft_dtype)dtype, "b:2 v:4100", "b:2 k:9", 4100, 9);
        check_order((weft_dtype)dtype, "v:3100", "k:1500", 3100, 1500);
    }
}

/* ---- small matrices ----------------------------------------------------------------------------- */

/* One number is more than the rest of a row: on the diagonal, or `beside` it, where rows have to be swapped. But of the last matrix
 * nothing is right: all of it is -1. */
static void add_squares(weft_call *call, weft_dtype dtype, const char *text, int64_t n,
                        int64_t beside)
{
    add_in(call, dtype, text, 1);
    const weft_view *a = &call->in[0];
    const int64_t count = weft_view_count(a), last = count - n * n;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / n % n, column = i % n;
        const double x = (row + beside) % n == column ? 5.0 * (double)n + (double)random_below(9)
                                                      : (double)random_below(9) - 4;
        weft_dtype_put(dtype, a->data, i, n > 1 && i >= last ? -1 : x);
    }
}

static void check_squares(const char *op, const char *a, const char *b, const char *out, int64_t n)
{
    for (int k = 0; k < 4; k++) {
        const weft_dtype dtype = k % 2 ? WEFT_F64 : WEFT_F32;
        const weft_triangle_attributes attributes = {{"i", "j", n}, k / 2 == 1};
        weft_call call = {.attributes = &attributes};
        add_squares(&call, dtype, a, n, strcmp(op, "solve") == 0);
        if (b != NULL) add_in(&call, dtype, b, 1);
        add_out(&call, dtype, out);
        check_call(op, &call);
    }
}

static void test_small_matrices(void)
{
    check_squares("cholesky", "b:3 c:2 i:5 j:5", NULL, "b:3 c:2 i:5 j:5", 5);
    check_squares("cholesky", "b:2 i:40 j:40", NULL, "b:2 i:40 j:40", 40);
    check_squares("cholesky", "i:1 j:1", NULL, "i:1 j:1", 1);
    check_squares("triangular_solve", "b:3 i:5 j:5", "b:3 j:5 k:4 l:2", "b:3 i:5 k:4 l:2", 5);
    check_squares("triangular_solve", "b:2 i:33 j:33", "b:2 j:33", "b:2 i:33", 33);
    check_squares("solve", "b:3 i:5 j:5", "b:3 j:5 k:4", "b:3 i:5 k:4", 5);
    check_squares("solve", "b:2 i:40 j:40", "b:2 j:40 k:3", "b:2 i:40 k:3", 40);
    check_squares("solve", "b:2 i:7 j:7", "b:2 j:7", "b:2 i:7", 7);
    check_squares("solve", "b:0 i:3 j:3", "b:0 j:3", "b:0 i:3", 3);
}

/* ---- shapes ----------------------------------------------------------------------------------- */

static void check_shape(const char *op, const char *in, const char *out, weft_slice_attributes cut)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        weft_call call = {.attributes = &cut};
        add_in(&call, (weft_dtype)dtype, in, 1);
        if (strcmp(op, "concat") == 0) add_in(&call, (weft_dtype)dtype, in, 1);
        add_out(&call, (weft_dtype)dtype, out);
        check_call(op, &call);
    }
}

static void test_shapes(void)
{
    const weft_slice_attributes none = {0}, middle = {"n", 2, 5}, second = {"n", 4, 8};
    check_shape("transpose", "a:5 b:7", "b:7 a:5", none);
    check_shape("transpose", "a:2 b:3 c:4 d:5", "d:5 b:3 a:2 c:4", none);
    check_shape("transpose", "a:2 b:3/1 c:40", "b:3/1 a:2 c:40", none);
    check_shape("transpose", "a:0 b:3", "b:3 a:0", none);
    check_shape("copy", "a:5 b:7", "a:5 b:7", none);
    check_shape("reshape", "a:5 b:6", "c:30", none);
    check_shape("rename", "a:5 b:6", "c:5 d:6", none);
    check_shape("slice", "m:3 n:8 k:4", "m:3 n:3 k:4", middle);
    check_shape("slice", "n:8", "n:3", middle);
    check_shape("concat", "m:3 n:4 k:2", "m:3 n:8 k:2", second);
    /* boxes along the dim that is cut */
    check_shape("slice", "m:3 n:4/3 k:2", "m:3 n:2/1 k:2", middle);
    check_shape("concat", "m:3 n:4 k:2", "m:3 n:5/2 k:2", second);
    check_shape("concat", "m:3 n:4 k:2", "m:3 n:3/5 k:2", second);
}

static void check_reindex(const char *in, const char *out, weft_reindex_attributes moved)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        weft_call call = {.attributes = &moved};
        moved.dim = moved.to = "n";
        add_in(&call, (weft_dtype)dtype, in, 1);
        add_out(&call, (weft_dtype)dtype, out);
        check_call("reindex", &call);
    }
}

static void test_reindex(void)
{
    const weft_reindex_attributes behind = {.offset = -2, .stride = 1, .over = 1};
    const weft_reindex_attributes steps = {.offset = 1, .stride = 2, .over = 1};
    const weft_reindex_attributes between = {.offset = -1, .stride = 1, .over = 3};
    const weft_reindex_attributes drifts = {.offset = -1, .stride = 2, .over = 3};
    const weft_reindex_attributes back = {.offset = 8, .stride = -1, .over = 1};
    const weft_reindex_attributes sparse = {.offset = 25, .stride = -2, .over = 3};
    check_reindex("m:3 n:3 k:4", "m:3 n:8 k:4", behind);
    check_reindex("m:3 n:3 k:2", "m:3 n:4/3 k:2", behind);
    check_reindex("m:3 n:2/1 k:2", "m:3 n:2/5 k:2", behind);
    check_reindex("n:8", "n:3", steps);
    check_reindex("m:3 n:5/3 k:2", "m:3 n:2/1 k:2", steps);
    check_reindex("m:2 n:4 k:3", "m:2 n:20 k:3", between);
    check_reindex("m:2 n:9", "m:2 n:9/2", drifts);
    check_reindex("m:2 n:9 k:3", "m:2 n:9 k:3", back);
    check_reindex("m:2 n:5/2 k:3", "m:2 n:4/3 k:3", back);
    check_reindex("n:9", "n:20/1", sparse);
    check_reindex("m:3 n:2/6 k:2", "m:3 n:2/5 k:2", back);
}

/* ---- programs --------------------------------------------------------------------------------- */

enum { M = 6, K = 10, L = 8 };
static const weft_dim row = {"row", M}, inner = {"inner", K}, column = {"column", L};

/* The transposed product of an input and a variable of random numbers. */
static void run_program(weft_device_kind on, const char *mesh_text, const char *layout_text,
                        float out[L * M])
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    float x_numbers[M * K];
    for (int i = 0; i < M * K; i++)
        x_numbers[i] = (float)(i % 7) - 3;
    weft_mesh_use_device(on);
    CHECK_OK(weft_mesh_create(&alone, mesh_text, &mesh, &error), error);
    weft_mesh_use_device(WEFT_CPU);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    weft_graph *g = weft_graph_create(3);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(row, inner));
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(inner, column), weft_uniform(-1, 1));
    weft_value y =
        weft_transpose(weft_einsum(WEFT_DIMS(row, column), x, w), WEFT_DIMS(column, row));
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error);
    CHECK_OK(weft_write(program, x, WEFT_F32, x_numbers, sizeof x_numbers, &error), error);
    for (int run = 0; run < 3; run++)
        CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, y, WEFT_F32, out, L * M * sizeof(float), &error), error);
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* Split rows, a contracted dim that is summed over ranks, and both. */
static void test_a_program_has_the_same_numbers_on_every_mesh(void)
{
    static const char *const cases[][2] = {{"data:1", ""},
                                           {"data:2", "row:data"},
                                           {"data:3", "inner:data"},
                                           {"data:2,model:2", "row:data,inner:model"},
                                           {"data:2,model:2", "column:data,inner:model"}};
    float expected[L * M], got[L * M];
    run_program(WEFT_CPU, "data:1", "", expected);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        run_program(kind, cases[c][0], cases[c][1], got);
        for (int i = 0; i < L * M; i++)
            CHECK_CLOSE(got[i], expected[i], 1e-5);
    }
}

int main(void)
{
    if (!open_device()) return weft_test_report();
    RUN(test_einsum);
    RUN(test_reductions);
    RUN(test_finishes);
    RUN(test_indexing);
    RUN(test_products_with_chosen_matrices);
    RUN(test_scatter_add_goes_on_with_a_sum);
    RUN(test_order);
    RUN(test_small_matrices);
    RUN(test_shapes);
    RUN(test_reindex);
    RUN(test_a_program_has_the_same_numbers_on_every_mesh);
    close_device();
    return weft_test_report();
}
