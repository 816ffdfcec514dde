/* mpi_world: joining the processes of a job through MPI, and spreading the first failure among
 * them. */
#include "mpi_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_id.h"
#include "engine.h"
#include "host.h"
#include "mpi_group.h"
#include "view.h"
#include "watch.h"
#include "world.h"

enum { TURNS = 8 }; /* so that several exchanges of one call have tags of their own */

/* MPI is one a process, and so is this. */
static MPI_Comm everybody = MPI_COMM_NULL;
static bool is_ours; /* we began MPI, so we end it */
static uint64_t n_tags = 1;

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

/* All of a host tell each other which cores they are bound to, so each knows which of its own are others', too.
 * Collective over `host`. */
static int share_cores(MPI_Comm host, weft_world *world)
{
    const weft_told *own = weft_topology_told();
    weft_told *all = calloc((size_t)world->n_host_processes, sizeof *all);
    int has_all = all != NULL, code = MPI_SUCCESS;
    code = MPI_Allreduce(MPI_IN_PLACE, &has_all, 1, MPI_INT, MPI_MIN, host);
    if (code == MPI_SUCCESS && has_all)
        code =
            MPI_Allgather(own, (int)sizeof *own, MPI_BYTE, all, (int)sizeof *own, MPI_BYTE, host);
    if (code == MPI_SUCCESS && has_all) {
        const weft_share share = weft_share_told(all, world->n_host_processes, world->host_process);
        world->cores = share.cores;
        world->n_sharing = share.n_sharing;
        world->n_used = share.n_used;
    }
    free(all);
    return code;
}

/* Processes on this host, this one among them, and its cores. Collective. */
static int meet_host(weft_world *world)
{
    MPI_Comm host;
    int code = MPI_Comm_split_type(everybody, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_size(host, &world->n_host_processes);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(host, &world->host_process);
    if (code == MPI_SUCCESS) code = share_cores(host, world);
    if (code == MPI_SUCCESS) weft_mpi_crowd(world->n_host_processes);
    MPI_Comm_free(&host);
    return code;
}

/* What Open MPI does where nobody has said else. Over TCP it asks the receiver before it sends more than 64 KiB, and both sides
 * look at what has come only now and then while they compute: the link lies idle for every answer. Receives are posted
 * before anybody sends, so there is no need to ask (two hosts at 400 mbit: data parallel steps of 435 ms, not 467, ZeRO 3
 * 475, not 491). */
static void advise_mpi(void)
{
    static const char *const advice[][2] = {{"OMPI_MCA_btl_tcp_eager_limit", "1048576"},
                                            {"OMPI_MCA_btl_tcp_rndv_eager_limit", "1048576"},
                                            {"OMPI_MCA_btl_tcp_max_send_size", "1048576"}};
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        setenv(advice[i][0], advice[i][1], 0);
}

/* Only the first thread of a process calls MPI, so FUNNELED is enough. */
static weft_status begin_mpi(weft_error *error)
{
    int is_begun = 0, provided = 0;
    MPI_Initialized(&is_begun);
    if (is_begun) return WEFT_OK;
    advise_mpi();
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "starting MPI", code);
    is_ours = true;
    if (provided >= MPI_THREAD_FUNNELED) return WEFT_OK;
    return weft_fail(
        error, WEFT_COMM,
        "this MPI allows no threads at all, and Weft's ranks are teams of threads; use an "
        "MPI that grants MPI_THREAD_FUNNELED");
}

/* Tags there are for each turn; MPI promises 15 bits in all, Open MPI has 31. */
static uint64_t find_tags(void)
{
    int *most = NULL, has = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&most, &has);
    return (has && *most > 32767 ? (uint64_t)*most : 32767) / TURNS;
}

int weft_mpi_tag(uint64_t fingerprint, uint64_t ticket)
{
    return (int)(fingerprint % n_tags) * TURNS + (int)(ticket % TURNS);
}

/* ---- what all processes do together ---------------------------------------------------------- */

static weft_recorder *recorder; /* of this process; NULL: not recorded */
static int channel = -1;
/* fingerprint of all such calls so far: there is one when there is no recorder */
static uint64_t chain;

/* What a process tells the others when they differ. */
typedef struct account {
    uint64_t fingerprint;
    char text[192];                                /* the call that it is in */
    char engine[WEFT_MAX_NAME + 1], combines[152]; /* where it makes a group */
} account;

static weft_status fail_other(const account *first, const account *other, int process,
                              weft_error *error)
{
    if (strcmp(first->engine, other->engine) != 0 && first->engine[0] && other->engine[0])
        return weft_fail(error, WEFT_MISMATCH,
                         "rank %d exchanges by engine %s, but rank 0 by %s; choose the same on all "
                         "ranks",
                         process, other->engine, first->engine);
    if (strcmp(first->combines, other->combines) != 0 && first->engine[0] && other->engine[0])
        return weft_fail(error, WEFT_MISMATCH,
                         "rank %d has these combines from outside: %s; rank 0 has: %s; register "
                         "the same ones in the same order on all ranks",
                         process, other->combines, first->combines);
    return weft_fail(error, WEFT_MISMATCH,
                     "rank %d is in %s, but rank 0 is in %s; all ranks must make the same calls in "
                     "the same order",
                     process, other->text, first->text);
}

/* What this process is doing and since which call, to everybody; the first that differs from process 0 is named. Only when
 * they do differ. */
static weft_status fail_mismatch(const weft_call_mark *mark, const char *engine, weft_error *error)
{
    account own = {.fingerprint = mark->fingerprint}, *all;
    int n = 0, other = 0;
    weft_record record;
    if (recorder && weft_record_read(recorder, mark->number, &record))
        weft_record_print(recorder, &record, own.text, sizeof own.text);
    snprintf(own.engine, sizeof own.engine, "%s", engine);
    weft_combines_print(own.combines, sizeof own.combines);
    MPI_Comm_size(everybody, &n);
    all = calloc((size_t)n, sizeof *all);
    if (all == NULL) return weft_fail_memory(error, (size_t)n * sizeof *all);
    const int code =
        MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, all, (int)sizeof own, MPI_BYTE, everybody);
    while (other + 1 < n && all[other].fingerprint == all[0].fingerprint)
        other++;
    const weft_status status = code != MPI_SUCCESS ? weft_mpi_fail(error, "comparing calls", code)
                                                   : fail_other(&all[0], &all[other], other, error);
    free(all);
    return status;
}

typedef struct range {
    int64_t lowest, highest;
} range;

/* The range of everybody's numbers, if all make the same call: with it travels the fingerprint of all such calls so far. Both
 * go as they are and negated, so that the lowest of each tells the highest too. engine: of a group that is made, else "". */
static weft_status compare(const weft_call_facts *call, const char *engine, int64_t number,
                           range *of_all, weft_error *error)
{
    weft_call_mark mark = weft_recorder_begin(recorder, channel, call);
    mark.fingerprint = chain = weft_call_fingerprint(chain, call);
    const int64_t print = (int64_t)(mark.fingerprint >> 1);
    int64_t own[4] = {number, -number, print, -print}, all[4] = {0};
    weft_recorder_wait(recorder, &mark);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Iallreduce(own, all, 4, MPI_INT64_T, MPI_MIN, everybody, &request);
    code = weft_mpi_finish(code, request);
    weft_status status = WEFT_OK;
    if (code != MPI_SUCCESS)
        status = weft_mpi_fail(error, weft_call_name(call->kind), code);
    else if (all[2] != -all[3])
        status = fail_mismatch(&mark, engine, error);
    if (status == WEFT_MISMATCH) {
        chain = 0; /* all know, and go on to say so */
        weft_recorder_settle(recorder, channel);
    }
    weft_recorder_end(recorder, &mark);
    *of_all = (range){all[0], -all[1]};
    return status;
}

static weft_call_facts call_of(int kind, int64_t count)
{
    return (weft_call_facts){.kind = (uint8_t)kind,
                             .dtype = WEFT_NO_DTYPE,
                             .combine = WEFT_NO_COMBINE,
                             .root = -1,
                             .count = count};
}

weft_status weft_mpi_same_group(const char *engine, int n_ranks, weft_error *error)
{
    weft_call_facts call = call_of(WEFT_CALL_GROUP, n_ranks);
    range nothing;
    call.digest = weft_digest(0, engine, strlen(engine));
    for (int kind = WEFT_COMBINES; weft_combine_is_known((weft_combine)kind); kind++) {
        const uint64_t digest = weft_combine_digest((weft_combine)kind);
        call.digest = weft_digest(call.digest, &digest, sizeof digest);
    }
    return compare(&call, engine, 0, &nothing, error);
}

/* ---- open and close -------------------------------------------------------------------------- */

static int begin_watch(const weft_world *world)
{
    weft_hub_address hub = {0};
    n_tags = find_tags();
    recorder = weft_recorder_of(world->process);
    if (recorder != NULL)
        channel = weft_recorder_channel(recorder, weft_digest(0, "world", 5), 0, world->n_processes,
                                        "all processes");
    weft_recorder_tells(recorder, channel);
    if (world->process == 0) weft_watch_invite(&hub);
    const int code = MPI_Bcast(&hub, (int)sizeof hub, MPI_BYTE, 0, everybody);
    if (code == MPI_SUCCESS) weft_watch_begin(world->process, world->n_processes, &hub);
    return code;
}

/* Collective. */
static weft_status check_builds(const weft_world *world, weft_error *error)
{
    struct {
        uint64_t id;
        char host[WEFT_HOST_BYTES];
    } own = {.id = weft_build_id()}, first;
    weft_error other = {.rank = -1};
    gethostname(own.host, sizeof own.host - 1);
    first = own;
    if (MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, 0, everybody) != MPI_SUCCESS)
        return WEFT_OK;                                               /* the next call tells */
    if (recorder == NULL) weft_fail_memory(&other, sizeof *recorder); /* groups.c says why */
    if (first.id != own.id)
        weft_fail(&other, WEFT_MISMATCH,
                  "rank %d on host %s runs another build of Weft (%016llx) than rank 0 on host %s "
                  "(%016llx); install the same one on all hosts",
                  world->process, own.host, (unsigned long long)own.id, first.host,
                  (unsigned long long)first.id);
    if (weft_mpi_agree(world, &other) == WEFT_OK) return WEFT_OK;
    return weft_fail(error, other.status, "%s", other.message);
}

weft_status weft_mpi_open(weft_world *world, weft_error *error)
{
    WEFT_TRY(begin_mpi(error));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &everybody); /* with its error handler */
    if (code == MPI_SUCCESS) code = MPI_Comm_size(everybody, &world->n_processes);
    if (code == MPI_SUCCESS) code = MPI_Comm_rank(everybody, &world->process);
    if (code == MPI_SUCCESS) code = meet_host(world);
    if (code == MPI_SUCCESS && world->n_processes > 1) code = begin_watch(world);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "joining the job", code);
    return world->n_processes > 1 ? check_builds(world, error) : WEFT_OK;
}

/* Others that are still about something else learn here, call by call, that this one leaves, and fail, until they leave
 * too. */
static void leave_together(void)
{
    enum { MOST = 1000 };
    const weft_call_facts call = call_of(WEFT_CALL_LEAVE, 0);
    weft_status status = WEFT_MISMATCH;
    range nothing;
    for (int i = 0; i < MOST && status == WEFT_MISMATCH; i++)
        status = compare(&call, "", 0, &nothing, NULL);
}

void weft_mpi_close(void)
{
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (!is_over && everybody != MPI_COMM_NULL) {
        leave_together();
        weft_mpi_groups_close();
        MPI_Comm_free(&everybody);
    }
    if (!is_over && is_ours) MPI_Finalize();
    everybody = MPI_COMM_NULL;
    is_ours = false;
    recorder = NULL;
    channel = -1;
    chain = 0;
}

/* Usually nobody has failed, and one small all_reduce is all. */
weft_status weft_mpi_agree(const weft_world *world, weft_error *error)
{
    const weft_call_facts call = call_of(WEFT_CALL_AGREE, 0);
    const int64_t own = error->status == WEFT_OK ? world->n_processes : world->process;
    range all;
    WEFT_TRY(compare(&call, "", own, &all, error));
    const int64_t first = all.lowest;
    if (first == world->n_processes) return WEFT_OK;
    const int code = MPI_Bcast(error, (int)sizeof *error, MPI_BYTE, (int)first, everybody);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "agreeing on failure", code);
    error->rank = (int)first;
    return error->status;
}

weft_status weft_mpi_same(int64_t number, bool *is_same, weft_error *error)
{
    const weft_call_facts call = call_of(WEFT_CALL_DECIDE, 0);
    range all;
    WEFT_TRY(compare(&call, "", number, &all, error));
    *is_same = all.lowest == all.highest;
    return WEFT_OK;
}

weft_status weft_mpi_any(bool mine, bool *any, weft_error *error)
{
    const weft_call_facts call = call_of(WEFT_CALL_DECIDE, 0);
    range none;
    WEFT_TRY(compare(&call, "", !mine, &none, error));
    *any = none.lowest == 0;
    return WEFT_OK;
}
