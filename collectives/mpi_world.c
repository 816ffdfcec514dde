/* mpi_world: joining the processes of a job through MPI, and spreading the first failure among
 * them. */
#include "mpi_world.h"

#include "world.h"

/* MPI is one a process, and so is this. */
static MPI_Comm everybody = MPI_COMM_NULL;
static bool is_ours; /* we began MPI, so we end it */

MPI_Comm weft_mpi_comm(void)
{
    return everybody;
}

weft_status weft_mpi_fail(weft_error *error, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return weft_fail(error, WEFT_COMM,
                     "%s failed between processes: %.300s; look for the process that ended first",
                     what, text);
}

/* Processes on this host. Collective. */
static int count_host(int *n_host)
{
    MPI_Comm host;
    int code = MPI_Comm_split_type(everybody, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_size(host, n_host);
    MPI_Comm_free(&host);
    return code;
}

/* Only the first thread of a process calls MPI, so FUNNELED is enough. */
static weft_status begin_mpi(weft_error *error)
{
    int is_begun = 0, provided = 0;
    MPI_Initialized(&is_begun);
    if (is_begun) return WEFT_OK;
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "starting MPI", code);
    is_ours = true;
    if (provided >= MPI_THREAD_FUNNELED) return WEFT_OK;
    return weft_fail(
        error, WEFT_COMM,
        "this MPI allows no threads at all, and Weft's ranks are teams of threads; use an "
        "MPI that grants MPI_THREAD_FUNNELED");
}

weft_status weft_mpi_open(weft_world *world, weft_error *error)
{
    WEFT_TRY(begin_mpi(error));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &everybody); /* with its error handler */
    if (code == MPI_SUCCESS) code = MPI_Comm_size(everybody, &world->n_processes);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(everybody, &world->process);
    if (code == MPI_SUCCESS) code = count_host(&world->n_host_processes);
    return code == MPI_SUCCESS ? WEFT_OK : weft_mpi_fail(error, "joining the job", code);
}

void weft_mpi_close(void)
{
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (!is_over && everybody != MPI_COMM_NULL) MPI_Comm_free(&everybody);
    if (!is_over && is_ours) MPI_Finalize();
    everybody = MPI_COMM_NULL;
    is_ours = false;
}

/* Usually nobody has failed, and one small all_reduce is all. */
weft_status weft_mpi_agree(const weft_world *world, weft_error *error)
{
    int mine = error->status == WEFT_OK ? world->n_processes : world->process, first = 0;
    int code = MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, everybody);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "agreeing on failure", code);
    if (first == world->n_processes) return WEFT_OK;
    code = MPI_Bcast(error, (int)sizeof *error, MPI_BYTE, first, everybody);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "agreeing on failure", code);
    error->rank = first;
    return error->status;
}

weft_status weft_mpi_any(bool mine, bool *any, weft_error *error)
{
    int own = mine, all = 0;
    const int code = MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_LOR, everybody);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "taking a decision together", code);
    *any = all != 0;
    return WEFT_OK;
}
