/* units_test: ranks over several GPUs, in one process and in several. Each has one of its own, or shares one where
 * the user says so, else all get one sentence. The same holds where the program needs more memory than one of them
 * has. RANKS: 2 4
 */
#include "mesh/devices.h"
#include "ops/kernel/cuda/plugin.h"

#include <stdlib.h>

#include "mesh/cuda/driver.h"
#include "test.h"
#include "weft.h"

enum { COLUMNS = 1 << 17, MIB_EACH = 64 };

static weft_world world;
static int n_gpus, n_most; /* as many ranks as there are GPUs, and twice as many */

/* The sum of a variable of `mib` MiB of ones on every rank, and of an input that is split. */
static weft_status run(int n_ranks, int mib, double *result, weft_error *error)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    char text[16];
    snprintf(text, sizeof text, "data:%d", n_ranks);
    const weft_dim row = {"row", 2 * mib}, column = {"column", COLUMNS}, batch = {"batch", 8};
    weft_value w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(row, column), weft_constant_of(1));
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch));
    weft_value sum = weft_add(weft_sum(WEFT_SCALAR, w), weft_sum(WEFT_SCALAR, x));
    weft_status status = weft_mesh_create(&world, text, &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create("batch:data", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, (weft_values){&sum, 1}, NULL, &program, error);
    if (status == WEFT_OK)
        status = weft_write(program, x, WEFT_F32, numbers, sizeof numbers, error);
    if (status == WEFT_OK) status = weft_run(program, error);
    if (status == WEFT_OK) status = weft_read_scalar(program, sum, result, error);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    return status;
}

static void check_runs(int n_ranks, int mib)
{
    weft_error error = {0};
    double result = 0;
    CHECK_OK(run(n_ranks, mib, &result, &error), error);
    CHECK_CLOSE(result, 2.0 * mib * COLUMNS + 36, 1e-6 * result);
}

static void check_refused(int n_ranks, int mib, weft_status status, const char *sentence)
{
    weft_error error = {0};
    double result;
    CHECK_EQ_INT(run(n_ranks, mib, &result, &error), status);
    CHECK_TEXT(error.message, sentence);
}

static void test_each_rank_has_a_gpu_of_its_own(void)
{
    if (world.n_processes == 1) check_runs(n_gpus, 1);
    if (world.n_processes == 1) check_runs(1, 1);
}

static void test_ranks_share_one_only_where_the_user_says_so(void)
{
    char sentence[200];
    snprintf(
        sentence, sizeof sentence,
        "ranks 0 and %d would share device cuda 0 (emulated GPU 0), as %d ranks have %d of them "
        "in all; start one rank for each, or set WEFT_SHARE_GPU=1",
        n_gpus, n_most, n_gpus);
    check_refused(n_most, 1, WEFT_USAGE, sentence);
    setenv("WEFT_SHARE_GPU", "0", 1);
    check_refused(n_most, 1, WEFT_USAGE, sentence);
    setenv("WEFT_SHARE_GPU", "1", 1);
    check_runs(n_most, 1);
}

/* Of what each rank could have alone, two on a GPU have too much. */
static void test_what_ranks_of_a_gpu_need_is_compared_with_what_it_has(void)
{
    check_refused(n_most, MIB_EACH - 24, WEFT_MEMORY, "rank 0 of this program needs 0.0 GiB (");
    check_refused(n_most, MIB_EACH - 24, WEFT_MEMORY,
                  ", all 2 ranks there 0.1 GiB, and 0.1 GiB are free on cuda 0 (emulated GPU 0); "
                  "use a smaller batch or model, more devices, or ZeRO");
    check_runs(n_most, MIB_EACH / 4);
    if (world.n_processes > 1) return;
    check_runs(n_gpus, MIB_EACH - 24);
    check_refused(n_gpus, 2 * MIB_EACH, WEFT_MEMORY, " and 0.1 GiB are free on cuda 0 (");
}

int main(void)
{
    weft_error error = {0};
    char text[16];
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    n_most = world.n_processes > 1 ? world.n_processes : 4;
    n_gpus = n_most / 2;
    snprintf(text, sizeof text, "%d", n_gpus);
    setenv("TEST_CUDA_DEVICES", text, 1);
    snprintf(text, sizeof text, "%d", MIB_EACH);
    setenv("TEST_CUDA_MEMORY", text, 1);
    unsetenv("WEFT_SHARE_GPU");
    weft_status status = cuda_open_all(&error);
    if (status != WEFT_OK || strncmp(cuda_gpu_here.name, "emulated", 8) != 0) {
        printf("skipped: %s\n", status != WEFT_OK ? error.message : "this is no emulated GPU");
        weft_world_close();
        return 77;
    }
    weft_mesh_use_device((weft_device_kind)weft_device_named("cuda"));
    RUN(test_each_rank_has_a_gpu_of_its_own);
    RUN(test_ranks_share_one_only_where_the_user_says_so);
    RUN(test_what_ranks_of_a_gpu_need_is_compared_with_what_it_has);
    weft_world_close();
    return weft_test_report();
}
