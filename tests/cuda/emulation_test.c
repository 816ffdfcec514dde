/* emulation_test: the emulated GPU finds its kinds of faults: threads that do not meet, memory past its end, pointers
 * that are not the GPU's. An error of the driver becomes a sentence, of a stream and of a run. */
#include "child.h"
#include "driver/faults.h"
#include "mesh/cuda/parts.h"
#include "mesh/devices.h"
#include "ops/kernel/cuda/plugin.h"
#include "weft/extend/op.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { N = 128 }; /* two blocks of 64 */

static const weft_device *device;
static weft_device_kind kind;
static weft_stream *stream;
static int32_t numbers[N];

static void run_kernel(const char *name)
{
    static const uint32_t image[2] = {0xBA55ED50u};
    weft_error error = {0};
    void *memory = NULL;
    cuda_kernel kernel = {name, NULL}, *kernels[] = {&kernel};
    CHECK_OK(cuda_load_image(image, kernels, 1, &error), error);
    CHECK_OK(device->take_zeroed(stream, sizeof numbers, &memory, &error), error);
    const fault_work work = {memory, N};
    cuda_launch_blocks(stream, WEFT_COMPUTE, &kernel, 2, N / 2, &work);
    device->get(stream, numbers, memory, sizeof numbers);
    device->give(stream, memory, sizeof numbers);
}

static int count_right(void)
{
    int n = 0;
    for (int i = 0; i < N; i++)
        n += numbers[i] == N / 2 - 1 - i % (N / 2);
    return n;
}

static void test_threads_that_meet_see_what_others_wrote(void)
{
    for (int round = 0; round < 20; round++) {
        run_kernel("fault_none");
        CHECK_EQ_INT(count_right(), N);
    }
}

static void test_a_missing_meeting_gives_wrong_numbers(void)
{
    run_kernel("fault_no_sync");
    CHECK(count_right() < N);
}

static int run_in_child(const void *name)
{
    run_kernel(name);
    return 0;
}

static bool is_ended_by(const char *name)
{
    return in_a_child(run_in_child, name, true) != 0;
}

static void test_what_a_gpu_might_forgive_ends_the_program(void)
{
    CHECK(!is_ended_by("fault_none"));
    CHECK(is_ended_by("fault_some_meet"));
    CHECK(is_ended_by("fault_not_global"));
    CHECK(is_ended_by("fault_past_the_end"));
}

/* Long tests take and give memory a hundred thousand times. */
static void test_memory_that_was_given_back_is_nobodys(void)
{
    enum { TIMES = 20000 };
    weft_error error = {0};
    void *memory = NULL;
    for (int i = 0; i < TIMES && error.status == WEFT_OK; i++) {
        if (device->take(stream, 8, &memory, &error) == WEFT_OK) device->give(stream, memory, 8);
    }
    CHECK_OK(error.status, error);
}

/* ---- what the driver refuses ------------------------------------------------------------------- */

static void test_a_kernel_that_there_is_not_is_a_sentence(void)
{
    static const uint32_t image[2] = {0xBA55ED50u}, none[2] = {0};
    weft_error error = {0};
    cuda_kernel kernel = {"no_such_kernel", NULL}, *kernels[] = {&kernel};
    CHECK_EQ_INT(cuda_load_image(image, kernels, 1, &error), WEFT_INTERNAL);
    CHECK_TEXT(error.message,
               "device cuda 0 (emulated GPU 0): no_such_kernel: named symbol not found "
               "(CUDA_ERROR_NOT_FOUND)");
    error = (weft_error){0};
    CHECK_EQ_INT(cuda_load_image(none, kernels, 1, &error), WEFT_INTERNAL);
    CHECK_TEXT(error.message, "cuLibraryLoadData: invalid argument");
}

static const weft_dim row = {"row", 4}, inner = {"inner", 5}, column = {"column", 3};

/* A program whose product is `times` as long, and one run of it. */
static weft_status run_program(int64_t times, const char *failure, weft_error *error)
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    const weft_dim rows = {row.name, row.size * times};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(3);
    weft_mesh_use_device(kind);
    weft_status status = weft_mesh_create(&alone, "data:1", &mesh, error);
    weft_mesh_use_device(WEFT_CPU);
    if (status == WEFT_OK) status = weft_layout_create("", &layout, error);
    weft_value x = weft_variable(g, "x", WEFT_F32, WEFT_DIMS(rows, inner), weft_uniform(-1, 1));
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(inner, column), weft_uniform(-1, 1));
    weft_value y = weft_einsum(WEFT_DIMS(rows, column), x, w);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, error);
    if (failure != NULL) setenv("TEST_CUDA_FAIL", failure, 1);
    if (status == WEFT_OK) status = weft_run(program, error);
    unsetenv("TEST_CUDA_FAIL");
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    return status;
}

static void test_a_run_returns_what_failed_on_the_gpu(void)
{
    weft_error error = {0};
    CHECK_OK(run_program(1, NULL, &error), error);
    CHECK_EQ_INT(run_program(1, "cuLaunchKernel:1", &error), WEFT_INTERNAL);
    CHECK_TEXT(error.message, "device cuda 0 (emulated GPU 0): ");
    CHECK(strstr(error.message, "cublasLtMatmul: the function failed to launch on the GPU "
                                "(CUBLAS_STATUS_EXECUTION_FAILED)") != NULL ||
          strstr(error.message,
                 "product_f32: unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)") != NULL);
    error = (weft_error){0};
    CHECK_OK(run_program(1, NULL, &error), error);
}

static void test_a_program_that_is_too_large_is_refused_with_both_figures(void)
{
    weft_error error = {0};
    setenv("TEST_CUDA_MEMORY", "205", 1); /* MiB */
    CHECK_EQ_INT(run_program(10000000, NULL, &error), WEFT_MEMORY);
    unsetenv("TEST_CUDA_MEMORY");
    CHECK_TEXT(error.message, "needs 1.2 GiB");
    CHECK_TEXT(error.message, "0.2 GiB are free");
}

static void same(int64_t n, void *out, const void *const *in, const weft_block_env *env)
{
    (void)env;
    memcpy(out, in[0], (size_t)n * sizeof(float));
}

/* A block function is the CPU's alone, where nothing says what it is made of. */
static void test_a_block_without_an_expression_is_refused_when_it_is_compiled(void)
{
    static const weft_element by_hand = {.size = sizeof by_hand, .block[WEFT_F32][WEFT_F32] = same};
    const weft_op same_by_hand = {.size = sizeof same_by_hand,
                                  .name = "same_by_hand",
                                  .infer = weft_infer_same,
                                  .factors = weft_factors_pass,
                                  .element = &by_hand};
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(3);
    CHECK_OK(weft_extend_op(&same_by_hand, &error), error);
    weft_mesh_use_device(kind);
    CHECK_OK(weft_mesh_create(&alone, "data:1", &mesh, &error), error);
    weft_mesh_use_device(WEFT_CPU);
    CHECK_OK(weft_layout_create("", &layout, &error), error);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(row));
    weft_value y = weft_emit_element(&same_by_hand, &x, 1, 0, 0);
    CHECK_EQ_INT(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "same_by_hand cannot be computed on the device cuda");
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    weft_error error = {0};
    if (cuda_open_all(&error) != WEFT_OK) puts(error.message), exit(1);
    if (strncmp(cuda_gpu_here.name, "emulated", 8) != 0) {
        weft_test_skip("it is about the emulated GPU, and this is another");
        return weft_test_report();
    }
    kind = (weft_device_kind)weft_device_named("cuda");
    device = weft_devices[kind];
    if (device->stream_create(1, &stream, &error) != WEFT_OK ||
        device->seat(stream, 0, &error) != WEFT_OK)
        puts(error.message), exit(1);
    RUN(test_threads_that_meet_see_what_others_wrote);
    RUN(test_a_missing_meeting_gives_wrong_numbers);
    RUN(test_what_a_gpu_might_forgive_ends_the_program);
    RUN(test_memory_that_was_given_back_is_nobodys);
    RUN(test_a_kernel_that_there_is_not_is_a_sentence);
    RUN(test_a_run_returns_what_failed_on_the_gpu);
    RUN(test_a_program_that_is_too_large_is_refused_with_both_figures);
    RUN(test_a_block_without_an_expression_is_refused_when_it_is_compiled);
    device->stream_destroy(&stream);
    return weft_test_report();
}
