/* world: how this process was started, joining the others, and agreeing on failure.
 *
 * Only the environment is asked: MPI is not touched unless a launcher has set its variables, so a
 * program that runs alone starts at once. A shell inside sbatch has Slurm's variables too, but no
 * step: it is alone.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#include "watch.h"

typedef struct launcher {
    const char *name;
    const char *sign;     /* set in every process it starts                      */
    const char *process;  /* this one's number                                   */
    const char *count[2]; /* how many it started: the first that is set; or NULL */
} launcher;

/* The first whose sign is set: mpirun inside a Slurm job starts its processes through a Slurm step.
 */
static const launcher launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}},
    {"srun", "SLURM_STEP_ID", "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}},
    {"mpirun", "PMIX_RANK", "PMIX_RANK", {NULL}},
};

/* The process's own state, as the launcher's is. */
static struct {
    bool is_open;
    weft_world world;
} job;

static const launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i].sign) != NULL) return &launchers[i];
    return NULL;
}

static int number_from(const char *variable, int otherwise)
{
    const char *text = variable != NULL ? getenv(variable) : NULL;
    char *end;
    const long number = text != NULL ? strtol(text, &end, 10) : 0;
    return text == NULL || end == text || number < 0 || number > INT32_MAX ? otherwise
                                                                           : (int)number;
}

enum { UNKNOWN = 0 };

static int count_started(const launcher *l)
{
    return number_from(l->count[0], number_from(l->count[1], UNKNOWN));
}

/* ---- with and without MPI -------------------------------------------------------------------- */

#ifdef WEFT_HAVE_MPI

static weft_status fail_unconnected(const launcher *l, int n_started, weft_error *error)
{
    if (strcmp(l->name, "srun") == 0)
        return weft_fail(
            error, WEFT_USAGE,
            "srun started %d copies of this program, but each sees a world of 1 process, "
            "because srun gave them no PMIx; start it with srun --mpi=pmix",
            n_started);
    return weft_fail(
        error, WEFT_USAGE,
        "%s started %d copies of this program, but each sees a world of 1 process; use "
        "the %s of the MPI that Weft was built with",
        l->name, n_started, l->name);
}

/* Whether MPI has what it needs to find the others. An srun without PMIx gives nothing of the kind,
 * and MPI_Init would end the process with words of its own. */
static bool is_connected(void)
{
    static const char *const signs[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]) != NULL) return true;
    return false;
}

static weft_status join(const launcher *l, int n_started, weft_world *world, weft_error *error)
{
    if (!is_connected())
        return n_started == UNKNOWN ? WEFT_OK : fail_unconnected(l, n_started, error);
    /* Waiting ranks must let others run where there are more of them than cores: 5 us instead of 5
     * ms. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    WEFT_TRY(weft_mpi_open(world, error));
    if (world->n_processes == 1 && n_started > 1) return fail_unconnected(l, n_started, error);
    return WEFT_OK;
}

#else

static weft_status join(const launcher *l, int n_started, weft_world *world, weft_error *error)
{
    (void)world, (void)n_started;
    return weft_fail(
        error, WEFT_USAGE,
        "%s started this as process %d of several, but this Weft was built without MPI; "
        "build it where MPI is installed, or start one process and give it the mesh",
        l->name, number_from(l->process, 0));
}

static void weft_mpi_close(void)
{
}

static weft_status weft_mpi_agree(const weft_world *world, weft_error *error)
{
    (void)world; /* alone always */
    return error->status;
}

static weft_status weft_mpi_any(bool mine, bool *any, weft_error *error)
{
    (void)error;
    *any = mine;
    return WEFT_OK;
}

static weft_status weft_mpi_same_group(const char *engine, int n_ranks, weft_error *error)
{
    (void)engine, (void)n_ranks, (void)error;
    return WEFT_OK;
}

#endif

/* ---- public ---------------------------------------------------------------------------------- */

weft_status weft_world_open(weft_world *world, weft_error *error)
{
    WEFT_GIVEN(world, error);
    weft_blas_start();
    if (!job.is_open) {
        weft_world found = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
        const launcher *l = find_launcher();
        const int n_started = l != NULL ? count_started(l) : 1;
        if (l != NULL) found.launcher = l->name;
        if (n_started != 1) WEFT_TRY(join(l, n_started, &found, error));
        job.world = found;
        job.is_open = true;
    }
    *world = job.world;
    return WEFT_OK;
}

void weft_world_close(void)
{
    weft_mpi_close();
    weft_watch_end();
    job.is_open = false;
}

bool weft_world_is_root(void)
{
    if (job.is_open) return job.world.process == 0;
    const launcher *l = find_launcher();
    return l == NULL || number_from(l->process, 0) == 0;
}

weft_status weft_world_agree(weft_error *error)
{
    weft_error none = {.rank = -1};
    if (error == NULL) error = &none;
    if (!job.is_open || job.world.n_processes == 1) return error->status;
    return weft_mpi_agree(&job.world, error);
}

weft_status weft_world_any(bool mine, bool *any, weft_error *error)
{
    WEFT_GIVEN(any, error);
    *any = mine;
    if (!job.is_open || job.world.n_processes == 1) return WEFT_OK;
    return weft_mpi_any(mine, any, error);
}

/* ---- for this room ------------------------------------------------------------------------------- */

int weft_world_n_near(void)
{
    return job.is_open ? job.world.n_host_processes : 1;
}

weft_status weft_world_same_group(const char *engine, int n_ranks, weft_error *error)
{
    if (!job.is_open || job.world.n_processes == 1) return WEFT_OK;
    return weft_mpi_same_group(engine, n_ranks, error);
}
