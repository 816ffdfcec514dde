/* products_test: einsum by cuBLASLt: products of every order and number of dims against the CPU's, copied first where
 * strides do not allow them, summed onto a value, and in less than f32 where a program says so. Wrong descriptions
 * are found. On the emulated GPU by an emulated library, which multiplies as it is told. */
#include "calls.h"
#include "child.h"
#include "weft/ops.h"
#include "weft/program.h"

static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_BF16, WEFT_F16};
enum { N_DTYPES = 4 };

/* Which kernel does it: "einsum" are the plain loops. */
static const char *kernel_of(weft_dtype dtype, const char *a, const char *b, const char *out)
{
    weft_kernel_choice choice;
    weft_error error = {0};
    weft_call call = {.n_in = 2, .n_out = 1};
    call.in[0] = view_of(dtype, a), call.in[1] = view_of(dtype, b);
    call.out[0] = view_of(weft_dtype_computes(dtype), out);
    if (weft_kernel_find("einsum", kind, &call, &choice, &error) != WEFT_OK) return "none";
    return choice.kernel->name;
}

static int check_product(weft_dtype dtype, const char *a, const char *b, const char *out, bool adds)
{
    weft_call call = {.accumulates = adds};
    add_in(&call, dtype, a, 1);
    add_in(&call, dtype, b, 1);
    if (adds) add_in(&call, weft_dtype_computes(dtype), out, 1);
    add_out(&call, weft_dtype_computes(dtype), out);
    return check_call("einsum", &call);
}

/* ---- shapes ----------------------------------------------------------------------------------- */

/* As transformers have them; all of these are one product of what lies there. */
static const char *const usual[][3] = {
    {"m:7 k:33", "k:33 n:9", "m:7 n:9"},
    {"m:7 k:33", "n:9 k:33", "n:9 m:7"},
    {"k:12 m:7", "k:12 n:9", "m:7 n:9"},
    {"k:12 m:7", "n:9 k:12", "n:9 m:7"},
    {"b:2 s:5 e:6", "e:6 f:7", "b:2 s:5 f:7"},
    {"b:2 s:5 e:6", "e:6 h:3 d:4", "b:2 s:5 h:3 d:4"},
    {"b:2 s:5 h:3 d:4", "h:3 d:4 e:6", "b:2 s:5 e:6"},
    {"b:2 s:5 f:7", "b:2 s:5 e:6", "e:6 f:7"},
    {"b:2 s:5 v:9", "v:9 e:6", "b:2 s:5 e:6"},
    {"x:3 s:5 e:6", "x:3 e:6 f:4", "x:3 s:5 f:4"},
    {"s:5 x:3 e:6", "t:4 x:3 e:6", "s:5 x:3 t:4"}, /* a batch between rows */
    {"k:300", "k:300", ""},
    {"m:5", "n:4", "m:5 n:4"},
    {"m:5 k:6", "k:6", "m:5"},
    {"k:6", "k:6 n:5", "n:5"},
    {"m:40 k:8/3", "k:8/3 n:3/1", "m:40 n:3/1"},
    {"m:1 k:6", "k:6 n:1", "m:1 n:1"},
    {"b:1 m:4 k:1", "b:1 k:1 n:3", "b:1 m:4 n:3"},
};
/* These are copied, or are several products. */
static const char *const unusual[][3] = {
    {"b:2 s:5 h:3 d:4", "b:2 t:6 h:3 d:4", "b:2 h:3 s:5 t:6"},
    {"b:3 m:4 k:5 l:6", "k:5 b:3 l:6 n:2", "b:3 m:4 n:2"},
    {"b:3 m:4 k:5", "b:3 k:5 n:6", "m:4 n:6 b:3"},
    {"a:2 m:3 b:4 k:5", "b:4 k:5 a:2 n:3", "n:3 b:4 m:3 a:2"},
    {"k:2 m:3 l:4 n:5", "l:4 o:2 k:2 p:3", "o:2 m:3 p:3 n:5"},
};

/* By the library and by the plain kernel, which is there as well; with a sum so far and without. */
static void check_library(weft_dtype dtype, const char *const shape[3])
{
    CHECK_TEXT(kernel_of(dtype, shape[0], shape[1], shape[2]), "cublaslt");
    CHECK_EQ_INT(check_product(dtype, shape[0], shape[1], shape[2], false), 2);
    CHECK_EQ_INT(check_product(dtype, shape[0], shape[1], shape[2], true), 2);
}

static void test_the_usual_products_are_the_librarys(void)
{
    for (size_t c = 0; c < sizeof usual / sizeof *usual; c++)
        for (int d = 0; d < N_DTYPES; d++)
            check_library(dtypes[d], usual[c]);
}

static void test_each_gpu_has_a_handle_of_its_own(void)
{
    on_another_gpu(test_the_usual_products_are_the_librarys);
    test_the_usual_products_are_the_librarys();
}

static void test_what_does_not_lie_so_is_copied(void)
{
    for (size_t c = 0; c < sizeof unusual / sizeof *unusual; c++)
        for (int d = 0; d < N_DTYPES; d++)
            check_library(dtypes[d], unusual[c]);
}

static void test_what_is_no_product_of_matrices_is_the_plain_kernels(void)
{
    static const char *const cases[][3] = {
        {"m:3 k:0", "k:0 n:4", "m:3 n:4"}, {"m:0 k:3", "k:3 n:4", "m:0 n:4"},
        {"m:3 k:4 l:2", "k:4", "m:3"},     {"b:3 k:4", "b:3 k:4", "b:3"},
        {"b:3 c:2", "b:3 c:2", "b:3 c:2"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        CHECK_TEXT(kernel_of(WEFT_F32, cases[c][0], cases[c][1], cases[c][2]), "einsum");
        CHECK_EQ_INT(check_product(WEFT_F32, cases[c][0], cases[c][1], cases[c][2], false), 1);
        CHECK_EQ_INT(check_product(WEFT_F32, cases[c][0], cases[c][1], cases[c][2], true), 1);
    }
    CHECK_TEXT(kernel_of(WEFT_I32, "m:3 k:4", "k:4 n:5", "m:3 n:5"), "einsum");
    CHECK_EQ_INT(check_product(WEFT_I64, "m:3 k:4", "k:4 n:5", "m:3 n:5", true), 1);
}

/* ---- any dims in any order ---------------------------------------------------------------------- */

typedef struct random_dim {
    char name;
    int size, begin;
    bool is_in[3];
} random_dim;

static int random_dims(random_dim dims[])
{
    static const bool groups[4][3] = {{1, 0, 1}, {0, 1, 1}, {1, 1, 0}, {1, 1, 1}};
    int n = 0;
    for (int g = 0; g < 4; g++)
        for (int left = (int)random_below(3); left > 0; left--) {
            dims[n] = (random_dim){(char)('a' + n),
                                   1 + (int)random_below(4),
                                   random_below(4) == 0 ? 1 + (int)random_below(3) : -1,
                                   {0}};
            memcpy(dims[n++].is_in, groups[g], sizeof groups[g]);
        }
    return n;
}

/* The tensor's dims in an order of its own. */
static void print_tensor(char text[100], const random_dim dims[], int n, int tensor)
{
    int order[8] = {0}, used = 0;
    for (int d = 0; d < n; d++) {
        const int at = (int)random_below((uint32_t)d + 1);
        order[d] = order[at];
        order[at] = d;
    }
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        const random_dim *dim = &dims[order[i]];
        if (!dim->is_in[tensor]) continue;
        used += snprintf(text + used, 100 - (size_t)used, "%s%c:%d", used ? " " : "", dim->name,
                         dim->size);
        if (dim->begin >= 0) used += snprintf(text + used, 100 - (size_t)used, "/%d", dim->begin);
    }
}

static void test_any_dims_in_any_order(void)
{
    int n_library = 0;
    for (int round = 0; round < weft_test_cases(600); round++) {
        random_dim dims[8];
        char text[3][100];
        const int n = random_dims(dims);
        const weft_dtype dtype = dtypes[random_below(N_DTYPES)];
        for (int t = 0; t < 3; t++)
            print_tensor(text[t], dims, n, t);
        n_library += check_product(dtype, text[0], text[1], text[2], random_below(2) == 0) == 2;
    }
    CHECK(n_library > weft_test_cases(600) / 2);
}

/* ---- how exactly ------------------------------------------------------------------------------ */

enum { M = 3, K = 5, L = 4 };
static const weft_dim row = {"row", M}, inner = {"inner", K}, column = {"column", L};

/* The sum of two products of x, of which the second goes on with the first. */
static weft_status run_program(weft_device_kind on, weft_precision precision,
                               const float *x_numbers, float out[M * L], int *n_steps,
                               weft_error *error)
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    const weft_compile_options options = {.precision = precision};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_usage usage = {0};
    weft_graph *g = weft_graph_create(3);
    weft_mesh_use_device(on);
    weft_status status = weft_mesh_create(&alone, "data:1", &mesh, error);
    weft_mesh_use_device(WEFT_CPU);
    if (status == WEFT_OK) status = weft_layout_create("", &layout, error);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(row, inner));
    weft_value u = weft_variable(g, "u", WEFT_F32, WEFT_DIMS(inner, column), weft_constant_of(2));
    weft_value v = weft_variable(g, "v", WEFT_F32, WEFT_DIMS(column, inner), weft_constant_of(-1));
    weft_value y = weft_add(weft_einsum(WEFT_DIMS(row, column), x, u),
                            weft_einsum(WEFT_DIMS(row, column), x, v));
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(y), &options, &program, error);
    if (status == WEFT_OK)
        status = weft_write(program, x, WEFT_F32, x_numbers, M * K * sizeof(float), error);
    if (status == WEFT_OK) status = weft_run(program, error);
    if (status == WEFT_OK)
        status = weft_read(program, y, WEFT_F32, out, M * L * sizeof(float), error);
    if (status == WEFT_OK) status = weft_plan_usage(program, 0, &usage, error);
    *n_steps = usage.n_steps;
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    return status;
}

/* What each precision makes of 1 + 2^-20, 1 + 2^-9 and their like: exact sums of five. */
static void check_precision(weft_precision precision, float unit, bool is_kept)
{
    weft_error error = {0};
    float x[M * K], got[M * L] = {0};
    int n_steps = 0;
    for (int i = 0; i < M * K; i++)
        x[i] = 1 + unit;
    CHECK_OK(run_program(kind, precision, x, got, &n_steps, &error), error);
    for (int i = 0; i < M * L; i++)
        CHECK_CLOSE(got[i], is_kept ? 5 * (1 + unit) : 5, 0);
}

static void test_f32_means_f32(void)
{
    check_precision(WEFT_PRECISION_F32, 0x1p-20F, true);
    if (strncmp(cuda_gpu_here.name, "emulated", 8) != 0)
        return; /* a GPU may be better than asked */
    check_precision(WEFT_PRECISION_TF32, 0x1p-20F, false);
    check_precision(WEFT_PRECISION_TF32, 0x1p-9F, true);
    check_precision(WEFT_PRECISION_BF16, 0x1p-9F, false);
    check_precision(WEFT_PRECISION_BF16, 0x1p-6F, true);
}

static void test_a_precision_that_is_none_is_refused(void)
{
    weft_error error = {0};
    float x[M * K] = {0}, got[M * L];
    int n_steps;
    CHECK_EQ_INT(run_program(kind, (weft_precision)9, x, got, &n_steps, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "precision is 9; it is one of f32 (0), tf32 (1) and bf16 (2)");
}

static void test_a_sum_of_products_is_two_steps(void)
{
    weft_error error = {0};
    float x[M * K], got[M * L], expected[M * L];
    int n_steps = 0, n_on_cpu = 0;
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(i % 7) - 3;
    CHECK_OK(run_program(WEFT_CPU, WEFT_PRECISION_F32, x, expected, &n_on_cpu, &error), error);
    CHECK_OK(run_program(kind, WEFT_PRECISION_F32, x, got, &n_steps, &error), error);
    CHECK_EQ_INT(n_on_cpu, 3);
    CHECK_EQ_INT(n_steps, 2);
    for (int i = 0; i < M * L; i++)
        CHECK_CLOSE(got[i], expected[i], 0);
}

/* ---- faults ----------------------------------------------------------------------------------- */

static bool has_library(void)
{
    return strcmp(kernel_of(WEFT_F32, "m:3 k:4", "k:4 n:5", "m:3 n:5"), "cublaslt") == 0;
}

static int look_with(const void *fault)
{
    if (!open_device() || !has_library() || strncmp(cuda_gpu_here.name, "emulated", 8) != 0)
        return OTHER_GPU;
    setenv("TEST_CUBLASLT_FAULT", fault, 1);
    test_the_usual_products_are_the_librarys();
    test_what_does_not_lie_so_is_copied();
    test_f32_means_f32();
    return weft_test_report() == 0 ? RIGHT : WRONG;
}

static void test_what_is_described_wrongly_is_found(void)
{
    static const char *const faults[] = {"turn",  "ld",    "stride",   "batch",
                                         "depth", "begin", "precision"};
    check_faults(look_with, faults, sizeof faults / sizeof *faults);
}

int main(void)
{
    RUN(test_what_is_described_wrongly_is_found); /* in processes that open the device themselves */
    if (!open_device()) return weft_test_report();
    if (!has_library()) {
        weft_test_skip("cuBLASLt is not there");
        close_device();
        return weft_test_report();
    }
    RUN(test_the_usual_products_are_the_librarys);
    RUN(test_each_gpu_has_a_handle_of_its_own);
    RUN(test_what_does_not_lie_so_is_copied);
    RUN(test_what_is_no_product_of_matrices_is_the_plain_kernels);
    RUN(test_any_dims_in_any_order);
    RUN(test_f32_means_f32);
    RUN(test_a_precision_that_is_none_is_refused);
    RUN(test_a_sum_of_products_is_two_steps);
    close_device();
    return weft_test_report();
}
