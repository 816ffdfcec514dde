/* elide_casts_test: numbers of bf16 go unchanged into and out of attention and convolutions by cuDNN, and their gradients,
 * where a program lets products be computed in bf16. The bits are those of a program of f32 with the same numbers. In
 * f32 nothing is cast less.
 */
#include "calls.h"
#include "ops/run/program.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

enum { B = 2, S = 5, H = 2, D = 8, ROWS = 40, TAPS = 3, N = B * ROWS * 2 * D, VALUES = 4 };
static const weft_dim batch = {"b", B}, seq = {"s", S}, heads = {"h", H}, feature = {"d", D};
static const weft_dim row = {"row", ROWS}, tap = {"tap", TAPS}, in_channel = {"c", 2 * D},
                      out_channel = {"k", D};

/* What is computed of operands and, last, of what its result's gradient is; and how its kernels are called. */
typedef struct narrow_op {
    const char *name;
    int n_operands;
    weft_shape (*shape)(int v); /* of operand v; of the result, behind them */
    weft_value (*build)(const weft_value *operands);
    int n_kernels; /* with those of gradients */
    struct narrow_place {
        const char *mesh, *layout;
        int n_narrow; /* of what goes in and comes out, what is bf16: sums of ranks' parts are f32 */
    } places[3];
} narrow_op;

static weft_shape shape_of_heads(int v)
{
    (void)v;
    return WEFT_DIMS(batch, seq, heads, feature);
}

static weft_value build_attention(const weft_value *of)
{
    return weft_attention(of[0], of[1], of[2], seq, seq, feature, true);
}

static weft_shape shape_of_images(int v)
{
    return v == 0   ? WEFT_DIMS(batch, row, in_channel)
           : v == 1 ? WEFT_DIMS(tap, in_channel, out_channel)
                    : WEFT_DIMS(batch, row, out_channel);
}

static weft_value build_convolution(const weft_value *of)
{
    const weft_spatial rows = {row, tap, row, 1, 1, 1};
    return weft_conv(shape_of_images(2), of[0], of[1], WEFT_SPATIAL(rows));
}

/* q, k, v and the result, twice, dy, and three gradients. */
static const narrow_op attention = {
    "attention",
    3,
    shape_of_heads,
    build_attention,
    2,
    {{"data:1", "", 12}, {"data:2", "b:data", 12}, {"data:2,model:2", "b:data,h:model", 12}}};
/* Three products of an image and a filter, in turn; where images are split, the gradient of the filter is a sum, where channels are, the result. */
static const narrow_op convolution = {
    "conv",
    2,
    shape_of_images,
    build_convolution,
    3,
    {{"data:1", "", 9}, {"data:2", "b:data", 8}, {"model:2", "c:model", 8}}};

/* Kernels of an op and its gradient; those of their operands and results that are of bf16; and casts of all kinds. */
typedef struct counts {
    int kernels, narrow, casts;
} counts;

static int count_bf16(const weft_plan *plan, const uint32_t *placed, int n)
{
    int narrow = 0;
    for (int i = 0; i < n; i++)
        narrow += plan->placed[placed[i]].type.dtype == WEFT_BF16;
    return narrow;
}

static counts count_steps(const weft_plan *plan, const char *name)
{
    counts n = {0};
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        const char *op = plan->graph->nodes[step->node].op->name;
        const bool is_ours = strncmp(op, name, strlen(name)) == 0; /* or its gradient's */
        for (int l = 0; l < step->n_links; l++)
            n.casts += weft_link_op(plan, &step->links[l])->recodes;
        if (step->kind != WEFT_STEP_KERNEL || !is_ours) continue;
        n.kernels++;
        n.narrow +=
            count_bf16(plan, step->in, step->n_in) + count_bf16(plan, step->out, step->n_out);
    }
    return n;
}

static int64_t count_numbers(weft_value value)
{
    int64_t n = 1;
    for (int d = 0; d < weft_shape_of(value)->n_dims; d++)
        n *= weft_shape_of(value)->dims[d].size;
    return n;
}

/* Numbers that bf16 has. */
static void feed(weft_program *program, const weft_value *in, int n)
{
    weft_error error = {0};
    for (int v = 0; v < n; v++) {
        float numbers[N];
        const int64_t count = count_numbers(in[v]);
        for (int i = 0; i < count; i++)
            numbers[i] = (float)((i * (7 + 2 * v) + v) % 17 - 8) / 16;
        CHECK_OK(
            weft_write(program, in[v], WEFT_F32, numbers, (size_t)count * sizeof *numbers, &error),
            error);
    }
}

/* The result, and the gradients of the operands, of numbers of that dtype, as those before and behind are, whose signs change. */
static void build(weft_graph *g, const narrow_op *op, weft_dtype dtype, weft_value in[VALUES],
                  weft_value found[VALUES])
{
    static const char *const names[VALUES] = {"in0", "in1", "in2", "in3"};
    weft_value cast[VALUES];
    for (int v = 0; v <= op->n_operands; v++) {
        in[v] = weft_input(g, names[v], WEFT_F32, op->shape(v));
        cast[v] = weft_neg(weft_cast(in[v], dtype));
    }
    const weft_value y = weft_neg(op->build(cast));
    weft_gradients_seeded((weft_values){&y, 1}, (weft_values){&cast[op->n_operands], 1},
                          (weft_values){in, op->n_operands}, found + 1, 0);
    found[0] = weft_cast(y, WEFT_F32);
}

static counts run_op(const narrow_op *op, const struct narrow_place *place, weft_dtype dtype,
                     weft_precision precision, float out[VALUES][N])
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    const weft_compile_options options = {.precision = precision};
    const int n_values = op->n_operands + 1;
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(3);
    weft_value in[VALUES], found[VALUES];
    build(g, op, dtype, in, found);
    weft_mesh_use_device(kind);
    CHECK_OK(weft_mesh_create(&alone, place->mesh, &mesh, &error), error);
    weft_mesh_use_device(WEFT_CPU);
    CHECK_OK(weft_layout_create(place->layout, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, (weft_values){found, n_values}, &options, &program, &error),
             error);
    feed(program, in, n_values);
    CHECK_OK(weft_run(program, &error), error);
    memset(out, 0, VALUES * sizeof *out);
    for (int v = 0; v < n_values; v++)
        CHECK_OK(weft_read(program, found[v], WEFT_F32, out[v],
                           (size_t)count_numbers(found[v]) * sizeof **out, &error),
                 error);
    const counts n = count_steps(program->plan, op->name);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
    return n;
}

static float expected[VALUES][N], got[VALUES][N];

/* By norm, to what rounding to bf16 leaves. */
static void check_near(void)
{
    for (int v = 0; v < VALUES; v++) {
        double all = 0, off = 0;
        for (int i = 0; i < N; i++) {
            all += (double)expected[v][i] * expected[v][i];
            off += pow((double)got[v][i] - expected[v][i], 2);
        }
        CHECK(sqrt(off) <= 1e-2 * sqrt(all));
    }
}

/* A GPU adds attention's dq up in the order in which its blocks come; a sum of ranks' parts is rounded behind. */
static void check_equal(bool is_whole)
{
    if (is_whole && strncmp(cuda_gpu_here.name, "emulated", 8) == 0)
        CHECK(memcmp(expected, got, sizeof got) == 0);
    else
        check_near();
}

/* The casts left are the program's own, into bf16, and back, and those behind sums. */
static void check_places(const narrow_op *op)
{
    for (int p = 0; p < 3; p++) {
        const struct narrow_place *place = &op->places[p];
        const counts wide = run_op(op, place, WEFT_F32, WEFT_PRECISION_BF16, expected);
        const counts n = run_op(op, place, WEFT_BF16, WEFT_PRECISION_BF16, got);
        CHECK_EQ_INT(wide.kernels, op->n_kernels);
        CHECK_EQ_INT(wide.narrow, 0);
        CHECK_EQ_INT(n.kernels, op->n_kernels);
        CHECK_EQ_INT(n.narrow, place->n_narrow);
        const int n_sums = op->places[0].n_narrow - place->n_narrow;
        CHECK_EQ_INT(n.casts, 2 * (op->n_operands + 1) + n_sums);
        check_equal(n_sums == 0);
    }
}

static void test_numbers_of_bf16_go_through_attention_as_they_are(void)
{
    check_places(&attention);
}

static void test_numbers_of_bf16_go_through_convolutions_as_they_are(void)
{
    check_places(&convolution);
}

static void check_in_f32(const narrow_op *op)
{
    const counts n = run_op(op, &op->places[0], WEFT_BF16, WEFT_PRECISION_F32, got);
    CHECK_EQ_INT(n.kernels, op->n_kernels);
    CHECK_EQ_INT(n.narrow, 0);
    run_op(op, &op->places[0], WEFT_F32, WEFT_PRECISION_F32, expected);
    check_near();
}

static void test_in_f32_they_are_cast_before(void)
{
    check_in_f32(&attention);
    check_in_f32(&convolution);
}

/* Rows of q that are parts have another kernel, which takes f32 alone: so have their keys' gradients, which are sums. */
static void test_what_another_kernel_does_is_cast_before(void)
{
    const struct narrow_place rows = {"data:2", "s:data", 0};
    const counts n = run_op(&attention, &rows, WEFT_BF16, WEFT_PRECISION_BF16, got);
    CHECK_EQ_INT(n.narrow, rows.n_narrow);
    run_op(&attention, &attention.places[0], WEFT_F32, WEFT_PRECISION_F32, expected);
    check_near();
}

static bool has_library(void)
{
    return run_op(&attention, &attention.places[0], WEFT_BF16, WEFT_PRECISION_BF16, got).narrow > 0;
}

int main(void)
{
    if (!open_device()) return weft_test_report();
    if (!has_library()) {
        weft_test_skip("cuDNN is not there");
        close_device();
        return weft_test_report();
    }
    RUN(test_numbers_of_bf16_go_through_attention_as_they_are);
    RUN(test_numbers_of_bf16_go_through_convolutions_as_they_are);
    RUN(test_in_f32_they_are_cast_before);
    RUN(test_what_another_kernel_does_is_cast_before);
    close_device();
    return weft_test_report();
}
