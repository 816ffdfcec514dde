/* order_columns_test: a split dim in order by columns is, to the bit, that of one rank, with what is equal, with NaN, both ways; and
 * what the plan says goes over ranks, and what one of them holds. In-process ranks, as many as columns are worth it for.
 */
#include "oracle.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"

#include "test.h"

static weft_oracle oracle;

typedef struct kind {
    weft_dtype dtype;
    bool descending, has_nan;
    int64_t n;     /* elements */
    int64_t equal; /* that many different numbers */
} kind;

static weft_value of_whole(weft_oracle_build *b, double n)
{
    return weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, n);
}

/* Of few numbers many are equal; of them every third is none. */
static weft_value numbers(weft_oracle_build *b, weft_shape shape)
{
    const kind *k = b->argument;
    const weft_value whole = weft_oracle_input(b, WEFT_I32, shape, 0, (double)k->equal);
    const weft_value x = weft_cast(whole, k->dtype);
    if (!k->has_nan) return x;
    const weft_value nan = weft_constant(b->graph, k->dtype, WEFT_SCALAR, (double)NAN);
    return weft_where(weft_equal(weft_mod(whole, of_whole(b, 3)), of_whole(b, 2)), nan, x);
}

static void build_sort(weft_oracle_build *b)
{
    const kind *k = b->argument;
    const weft_dim many = {"many", k->n}, two = {"two", 2};
    weft_value ids;
    const weft_value y = weft_sort(numbers(b, WEFT_DIMS(many, two)), many, k->descending, &ids);
    weft_oracle_output(b, y);
    weft_oracle_output(b, ids);
}

/* More than the first few: the order is made by columns as well. */
static void build_few(weft_oracle_build *b)
{
    const kind *k = b->argument;
    const weft_dim many = {"many", k->n}, some = {"some", k->n / 3};
    const weft_value x = numbers(b, WEFT_DIMS(many));
    weft_oracle_output(b, weft_argsort(x, many, k->descending));
    weft_oracle_output(b, weft_top_k(x, many, some, NULL));
    if (weft_dtype_is_float(k->dtype)) weft_oracle_output(b, weft_median(x, many));
}

static void build_gradient(weft_oracle_build *b)
{
    const kind *k = b->argument;
    const weft_dim many = {"many", k->n};
    const weft_value x = weft_oracle_input(b, k->dtype, WEFT_DIMS(many), -1.0, 1.0);
    const weft_value w = weft_iota(b->graph, k->dtype, many);
    const weft_value loss =
        weft_sum(WEFT_SCALAR, weft_mul(weft_sort(x, many, k->descending, NULL), w));
    weft_value dx;
    weft_gradients(loss, (weft_values){&x, 1}, &dx, 0);
    weft_oracle_output(b, dx);
}

/* ---- is it so made? ------------------------------------------------------------------------------- */

/* Whether a rank never hold more than one and a half times its part of what is ordered; what goes over ranks. */
static bool fits(weft_mesh *mesh, void (*build)(weft_oracle_build *b), const kind *k,
                 int64_t *wire_bytes)
{
    weft_oracle_build b = {.graph = weft_graph_create(1), .argument = k};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    int64_t most = 0;
    const int64_t part = k->n / weft_mesh_n_ranks(mesh) * (int64_t)weft_dtype_bytes(k->dtype);
    build(&b);
    *wire_bytes = 0;
    if (CHECK_OK(weft_layout_create("many:d", &layout, &error), error) &&
        CHECK_OK(weft_compile(mesh, layout, (weft_values){b.outputs, b.n_outputs}, NULL, &program,
                              &error),
                 error))
        for (int s = 0; s < weft_plan_n_steps(program); s++) {
            weft_planned_step step = {0};
            CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error);
            *wire_bytes += step.wire_bytes;
            for (int o = 0; o < step.n_out; o++) {
                weft_planned_tensor tensor = {0};
                CHECK_OK(weft_plan_tensor_at(program, step.out[o], 0, &tensor, &error), error);
                if (tensor.bytes > most) most = tensor.bytes;
            }
        }
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&b.graph);
    return CHECK(most > 0) && 2 * most <= 3 * part;
}

static void build_order(weft_oracle_build *b)
{
    const kind *k = b->argument;
    const weft_dim many = {"many", k->n};
    weft_oracle_output(b, weft_argsort(numbers(b, WEFT_DIMS(many)), many, false));
}
static void build_both(weft_oracle_build *b)
{
    const kind *k = b->argument;
    const weft_dim many = {"many", k->n};
    weft_value ids;
    weft_oracle_output(b, weft_sort(numbers(b, WEFT_DIMS(many)), many, false, &ids));
    weft_oracle_output(b, ids);
}

static void test_nobody_holds_all_where_that_is_cheaper(void)
{
    const kind k = {.dtype = WEFT_F32, .n = 1000000, .equal = 1000};
    static const struct {
        const char *mesh;
        bool by_columns;
    } meshes[] = {{"d:2", false}, {"d:4", false}, {"d:5", false}, {"d:6", true},
                  {"d:8", true},  {"d:16", true}, {"d:48", true}, {"d:64", false}};
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
        weft_mesh *mesh = NULL;
        weft_error error = {0};
        int64_t bytes, of_both;
        if (!CHECK_OK(weft_mesh_plan(meshes[m].mesh, &mesh, &error), error)) continue;
        const int64_t p = weft_mesh_n_ranks(mesh), gathered = 4 * k.n * (p - 1) / p;
        CHECK(fits(mesh, build_order, &k, &bytes) == meshes[m].by_columns);
        CHECK(fits(mesh, build_both, &k, &of_both) == meshes[m].by_columns);
        printf("%s: order sends %lld bytes, sort %lld, a gather %lld\n", meshes[m].mesh,
               (long long)bytes, (long long)of_both, (long long)gathered);
        if (meshes[m].by_columns) CHECK(bytes < gathered && of_both < gathered);
        weft_mesh_destroy(&mesh);
    }
}

/* ---- against one rank ------------------------------------------------------------------------------ */

static void compare(const char *mesh_text, void (*build)(weft_oracle_build *b), const kind *k)
{
    const weft_oracle_case one = {
        .name = "order", .build = build, .argument = k, .layout = "many:d?"};
    weft_oracle_result a = {0}, b = {0};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    char text[400];
    bool is_same = CHECK_OK(weft_mesh_create(&oracle.world, mesh_text, &mesh, &error), error) &&
                   CHECK_OK(weft_oracle_run(oracle.alone, &one, NULL, &a, &error), error) &&
                   CHECK_OK(weft_oracle_run(mesh, &one, NULL, &b, &error), error);
    for (int o = 0; o < a.n_outputs && is_same; o++)
        for (int64_t i = 0; i < a.count[o]; i++)
            is_same = is_same && (a.data[o][i] == b.data[o][i] ||
                                  (isnan(a.data[o][i]) && isnan(b.data[o][i])));
    snprintf(text, sizeof text, "%lld of %s on %s, %lld different: not as on one rank",
             (long long)k->n, weft_dtype_name(k->dtype), mesh_text, (long long)k->equal);
    weft_test_check(is_same, __FILE__, __LINE__, text);
    weft_oracle_free(&a);
    weft_oracle_free(&b);
    weft_mesh_destroy(&mesh);
}

static void test_columns_are_one_ranks_order(void)
{
    static const kind kinds[] = {
        {WEFT_F32, false, false, 2773, 5},      {WEFT_F32, true, true, 3024, 9},
        {WEFT_F64, false, true, 4000, 1000000}, {WEFT_I32, true, false, 3333, 2},
        {WEFT_F64, true, false, 25500, 300},    {WEFT_I64, false, false, 26000, 1},
        {WEFT_F32, true, true, 25393, 1 << 20}, {WEFT_BF16, false, true, 30000, 40},
        {WEFT_U8, true, false, 30001, 250},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        compare("d:6", build_sort, &kinds[i]);
        compare("d:12", build_few, &kinds[i]);
        if (kinds[i].n > 20000) compare("d:8", build_few, &kinds[i]);
    }
}

static void test_columns_of_a_long_dim(void)
{
    const kind k = {WEFT_F32, false, true, 213000, 1 << 18};
    compare("d:16", build_few, &k);
}

static void test_gradients_go_back_to_where_elements_were(void)
{
    const kind k = {.dtype = WEFT_F64, .n = 3000};
    compare("d:6", build_gradient, &k);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error)) {
        RUN(test_nobody_holds_all_where_that_is_cheaper);
        RUN(test_columns_are_one_ranks_order);
        RUN(test_columns_of_a_long_dim);
        RUN(test_gradients_go_back_to_where_elements_were);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
