/* nccl: the library, and what it says, as sentences. */
#include "nccl_parts.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mesh/cuda/library.h"

nccl_library nccl;

static const cuda_entry entries[] = {
#define NCCL_CALL(name) {#name, offsetof(nccl_library, name)},
#include "nccl_list.inc"
#undef NCCL_CALL
};

/* Kernels of several communicators go onto a GPU in the order in which the host asks for them: each rank asks in one order, the
 * plan's, so ranks do not wait for each other crosswise. */
static const char *const always[][2] = {{"NCCL_LAUNCH_ORDER_IMPLICIT", "1"}};

/* NCCL refuses two ranks on one GPU of one host: so each process says that it is a host of its own, and all that NCCL would find out
 * else, and that would then be wrong, is turned off: it goes by sockets. */
static const char *const sharing[][2] = {
    {"NCCL_NET", "Socket"},          {"NCCL_IB_DISABLE", "1"},   {"NCCL_P2P_DISABLE", "1"},
    {"NCCL_SHM_DISABLE", "1"},       {"NCCL_MNNVL_ENABLE", "0"}, {"NCCL_NVLS_ENABLE", "0"},
    {"NCCL_COLLNET_ENABLE", "0"},    {"NCCL_RAS_ENABLE", "0"},   {"NCCL_CUMEM_ENABLE", "0"},
    {"NCCL_CUMEM_HOST_ENABLE", "0"}, {"NCCL_MAX_CTAS", "2"},     {"NCCL_BUFFSIZE", "1048576"},
    {"NCCL_PROTO", "Simple"}};

/* What the user has said stays. */
static void say(const char *const settings[][2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        setenv(settings[i][0], settings[i][1], 0);
}

static void say_all(bool on_one_gpu)
{
    char host[120];
    say(always, sizeof always / sizeof *always);
    if (!on_one_gpu) return;
    say(sharing, sizeof sharing / sizeof *sharing);
    if (gethostname(host, 80) != 0) host[0] = '\0';
    host[79] = '\0';
    snprintf(host + strlen(host), 40, "-weft-%ld", (long)getpid());
    setenv("NCCL_HOSTID", host, 0);
}

static weft_status check_version(weft_error *error)
{
    int version = 0;
    (void)nccl.ncclGetVersion(&version);
    if (version >= NCCL_VERSION_CODE && version / 10000 == NCCL_MAJOR) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "engine nccl: libnccl.so.2 is NCCL %d.%d.%d, and this Weft was built for %d.%d.%d; "
        "install that or a later one of the same first number, or exchange by --engine mpi",
        version / 10000, version / 100 % 100, version % 100, NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
}

static weft_status load(bool on_one_gpu, weft_error *error)
{
    say_all(on_one_gpu); /* it reads them as it is loaded, or when it is first used */
    const char *file = "libnccl.so.2", *missing;
    missing = cuda_library_fill(file, entries, sizeof entries / sizeof *entries, &nccl);
    if (missing == file)
        return weft_fail(error, WEFT_USAGE,
                         "engine nccl: NCCL cannot be loaded: %.240s; install libnccl2, name its "
                         "folder in LD_LIBRARY_PATH, or exchange by --engine mpi",
                         dlerror());
    if (missing != NULL)
        return weft_fail(error, WEFT_USAGE,
                         "engine nccl: %s has no %s; install NCCL %d.%d or later", file, missing,
                         NCCL_MAJOR, NCCL_MINOR);
    return check_version(error);
}

weft_status nccl_open(bool on_one_gpu, weft_error *error)
{
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    static bool is_known;
    static weft_error answer;
    pthread_mutex_lock(&opening);
    if (!is_known) (void)load(on_one_gpu, &answer);
    is_known = true;
    pthread_mutex_unlock(&opening);
    return answer.status == WEFT_OK ? WEFT_OK
                                    : weft_fail(error, answer.status, "%s", answer.message);
}

/* ---- what it says ------------------------------------------------------------------------------ */

static weft_status give_up(nccl_group *group, ncclResult_t result, const char *what,
                           weft_error *error)
{
    char last[200] = "";
    if (group->comm != NULL) {
        const char *text = nccl.ncclGetLastError(group->comm);
        if (text != NULL && text[0] != '\0') snprintf(last, sizeof last, " (%.190s)", text);
        (void)nccl.ncclCommAbort(group->comm);
    }
    group->comm = NULL;
    return weft_fail(error, WEFT_COMM, "NCCL: %s: %s%s; NCCL_DEBUG=INFO says more", what,
                     nccl.ncclGetErrorString(result), last);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Ranks that have ended the watch finds; this is for what neither knows. */
weft_status nccl_settle(nccl_group *group, ncclResult_t result, const char *what, weft_error *error)
{
    enum { MOST_MS = 300000, LOOKS = 100 };
    const int64_t begin = now_ms();
    for (int n = 0; result == ncclInProgress; n++) {
        const ncclResult_t asked = nccl.ncclCommGetAsyncError(group->comm, &result);
        if (asked != ncclSuccess) result = asked;
        if (result == ncclInProgress && now_ms() - begin > MOST_MS)
            return give_up(group, ncclInProgress, what, error);
        if (result == ncclInProgress && n > LOOKS) nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return result == ncclSuccess ? WEFT_OK : give_up(group, result, what, error);
}

weft_status nccl_look(nccl_group *group, weft_error *error)
{
    ncclResult_t state = ncclSuccess;
    if (group->comm == NULL) return WEFT_OK; /* whoever gave it up has said so */
    const ncclResult_t asked = nccl.ncclCommGetAsyncError(group->comm, &state);
    if (asked != ncclSuccess) state = asked;
    if (state == ncclSuccess || state == ncclInProgress) return WEFT_OK;
    return give_up(group, state, "ranks of a group have lost each other", error);
}
