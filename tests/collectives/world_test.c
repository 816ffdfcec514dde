/* world: how a start is recognised, and agreeing on the first failure.
 * RANKS: 2 3 4
 */
#include "on_ranks.h"

static bool is_launched(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMIX_RANK") != NULL ||
           getenv("SLURM_STEP_ID") != NULL;
}

/* Before the world is open: an environment as srun makes it where there is no PMIx. */
static void test_srun_without_pmix_is_told_the_way_out(void)
{
    if (is_launched()) return;
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_PROCID", "3", 1);
    weft_world world;
    weft_error error = {0};
    CHECK(!weft_world_is_root());
    CHECK_EQ_INT(weft_world_open(&world, &error), WEFT_USAGE);
    const bool has_mpi = WEFT_TEST_MPIEXEC[0] != '\0';
    CHECK_TEXT(error.message,
               has_mpi ? "srun started 4 copies" : "but this Weft was built without MPI");
    unsetenv("SLURM_STEP_ID"); /* a shell inside sbatch: alone */
    CHECK(weft_world_is_root());
    error = (weft_error){0};
    CHECK_OK(weft_world_open(&world, &error), error);
    CHECK_EQ_INT(world.n_processes, 1);
    CHECK_TEXT(world.launcher, "alone");
    weft_world_close();
    unsetenv("SLURM_STEP_NUM_TASKS");
    unsetenv("SLURM_PROCID");
}

static void test_the_world_is_what_the_launcher_said(void)
{
    const char *size = getenv("OMPI_COMM_WORLD_SIZE"), *process = getenv("OMPI_COMM_WORLD_RANK");
    CHECK_EQ_INT(world_now.n_processes, size != NULL ? atoi(size) : 1);
    CHECK_EQ_INT(world_now.process, process != NULL ? atoi(process) : 0);
    CHECK_EQ_INT(world_now.n_host_processes, world_now.n_processes); /* tests have one host */
    CHECK_EQ_INT(weft_world_is_root(), world_now.process == 0);
    weft_world again;
    weft_error error = {0};
    CHECK_OK(weft_world_open(&again, &error), error);
    CHECK_EQ_INT(again.n_processes, world_now.n_processes);
}

static void test_nobody_failed(void)
{
    weft_error error = {.rank = -1};
    CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK);
    CHECK_EQ_INT(error.status, WEFT_OK);
    CHECK_EQ_INT(error.rank, -1);
    CHECK_EQ_INT(weft_world_agree(NULL), WEFT_OK);
}

/* All from `first` on have failed, each with a message of its own. */
static void check_agreement(int first)
{
    weft_error error = {.rank = -1};
    char expected[64];
    snprintf(expected, sizeof expected, "process %d has no data", first);
    if (world_now.process >= first)
        weft_fail(&error, WEFT_IO, "process %d has no data", world_now.process);
    CHECK_EQ_INT(weft_world_agree(&error), WEFT_IO);
    CHECK_EQ_INT(error.status, WEFT_IO);
    CHECK_TEXT(error.message, expected);
    if (world_now.n_processes > 1) CHECK_EQ_INT(error.rank, first);
}

static void test_all_return_the_failure_of_the_lowest_process(void)
{
    for (int first = 0; first < world_now.n_processes; first++)
        check_agreement(first);
    test_nobody_failed(); /* and it can go on */
}

static void test_any_of_them_decides_for_all(void)
{
    bool any = true;
    weft_error error = {.rank = -1};
    CHECK_OK(weft_world_any(false, &any, &error), error);
    CHECK(!any);
    for (int who = 0; who < world_now.n_processes; who++) {
        any = false;
        CHECK_OK(weft_world_any(world_now.process == who, &any, &error), error);
        CHECK(any);
    }
}

int main(void)
{
    RUN(test_srun_without_pmix_is_told_the_way_out);
    if (open_world()) {
        RUN(test_the_world_is_what_the_launcher_said);
        RUN(test_nobody_failed);
        RUN(test_all_return_the_failure_of_the_lowest_process);
        RUN(test_any_of_them_decides_for_all);
    }
    weft_world_close();
    return weft_test_report();
}
