/* narrow_test: numbers of bf16 go into attention by cuDNN, and its gradient, as they are, and come out of them so, where a program
 * lets products be computed in bf16; the bits are those that a program of f32 has of the same numbers. In f32 nothing is cast less.
 */
#include "calls.h"
#include "ops/run/program.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

enum { B = 2, S = 5, H = 2, D = 8, N = B * S * H * D, VALUES = 4 };
static const weft_dim batch = {"b", B}, seq = {"s", S}, heads = {"h", H}, feature = {"d", D};

/* Kernels of attention and its gradient; those of their operands and results that are of bf16; and casts of all kinds. */
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

static counts count_steps(const weft_plan *plan)
{
    counts n = {0};
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        const char *op = plan->graph->nodes[step->node].op->name;
        for (int l = 0; l < step->n_links; l++)
            n.casts += weft_link_op(plan, &step->links[l])->recodes;
        if (step->kind != WEFT_STEP_KERNEL || strncmp(op, "attention", 9) != 0) continue;
        n.kernels++;
        n.narrow +=
            count_bf16(plan, step->in, step->n_in) + count_bf16(plan, step->out, step->n_out);
    }
    return n;
}

/* q, k, v and the gradient of the result; numbers that bf16 has. */
static void feed(weft_program *program, const weft_value in[VALUES])
{
    weft_error error = {0};
    for (int v = 0; v < VALUES; v++) {
        float numbers[N];
        for (int i = 0; i < N; i++)
            numbers[i] = (float)((i * (7 + 2 * v) + v) % 17 - 8) / 16;
        CHECK_OK(weft_write(program, in[v], WEFT_F32, numbers, sizeof numbers, &error), error);
    }
}

/* The result, and the gradients of q, k and v, in a program whose attention is of numbers of that dtype, and so are those before and
 * behind, whose signs change. */
static counts attend(const char *mesh_text, const char *layout_text, weft_dtype dtype,
                     weft_precision precision, float out[VALUES][N])
{
    static const char *const names[VALUES] = {"q", "k", "v", "dy"};
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    const weft_compile_options options = {.precision = precision};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(3);
    weft_value in[VALUES], cast[VALUES], found[VALUES];
    for (int v = 0; v < VALUES; v++) {
        in[v] = weft_input(g, names[v], WEFT_F32, WEFT_DIMS(batch, seq, heads, feature));
        cast[v] = weft_neg(weft_cast(in[v], dtype));
    }
    const weft_value y =
        weft_neg(weft_attention(cast[0], cast[1], cast[2], seq, seq, feature, true));
    weft_gradients_seeded((weft_values){&y, 1}, (weft_values){&cast[3], 1}, (weft_values){in, 3},
                          found + 1, 0);
    found[0] = weft_cast(y, WEFT_F32);
    weft_mesh_use_device(kind);
    CHECK_OK(weft_mesh_create(&alone, mesh_text, &mesh, &error), error);
    weft_mesh_use_device(WEFT_CPU);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, (weft_values){found, VALUES}, &options, &program, &error),
             error);
    feed(program, in);
    CHECK_OK(weft_run(program, &error), error);
    for (int v = 0; v < VALUES; v++)
        CHECK_OK(weft_read(program, found[v], WEFT_F32, out[v], sizeof out[v], &error), error);
    const counts n = count_steps(program->plan);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
    return n;
}

static float expected[VALUES][N], got[VALUES][N];

static const char *const places[][2] = {
    {"data:1", ""}, {"data:2", "b:data"}, {"data:2,model:2", "b:data,h:model"}};

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

/* A GPU adds dq up in the order in which its blocks come. */
static void check_equal(void)
{
    if (strncmp(cuda_gpu_here.name, "emulated", 8) == 0)
        CHECK(memcmp(expected, got, sizeof got) == 0);
    else
        check_near();
}

/* q, k, v and the result, twice, dy, and the gradients; the casts left are the program's own: into bf16, and back. */
static void test_numbers_of_bf16_go_through_attention_as_they_are(void)
{
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        const counts wide =
            attend(places[p][0], places[p][1], WEFT_F32, WEFT_PRECISION_BF16, expected);
        const counts n = attend(places[p][0], places[p][1], WEFT_BF16, WEFT_PRECISION_BF16, got);
        CHECK_EQ_INT(wide.kernels, 2);
        CHECK_EQ_INT(wide.narrow, 0);
        CHECK_EQ_INT(n.kernels, 2);
        CHECK_EQ_INT(n.narrow, 4 + 8);
        CHECK_EQ_INT(n.casts, 4 + 4);
        check_equal();
    }
}

static void test_in_f32_they_are_cast_before(void)
{
    const counts n = attend("data:1", "", WEFT_BF16, WEFT_PRECISION_F32, got);
    CHECK_EQ_INT(n.kernels, 2);
    CHECK_EQ_INT(n.narrow, 0);
    attend("data:1", "", WEFT_F32, WEFT_PRECISION_F32, expected);
    check_near();
}

/* Rows of q that are parts have another kernel, which takes f32 alone: so have their keys' gradients, which are sums. */
static void test_what_another_kernel_does_is_cast_before(void)
{
    const counts n = attend("data:2", "s:data", WEFT_BF16, WEFT_PRECISION_BF16, got);
    CHECK_EQ_INT(n.narrow, 0);
    attend("data:1", "", WEFT_F32, WEFT_PRECISION_F32, expected);
    check_near();
}

static bool has_library(void)
{
    return attend("data:1", "", WEFT_BF16, WEFT_PRECISION_BF16, got).narrow > 0;
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
    RUN(test_in_f32_they_are_cast_before);
    RUN(test_what_another_kernel_does_is_cast_before);
    close_device();
    return weft_test_report();
}
