/* faults: which call fails, kills or is recorded. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_state.h"

fault_state fault_now = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- where a call goes ----------------------------------------------------------------------- */

static void settle(fault_place *p)
{
    const size_t n = strlen(fault_now.folder);
    p->is_inside = strncmp(p->path, fault_now.folder, n) == 0 && (p->path[n] == '/' || !p->path[n]);
}

void fault_place_of_file(int file, fault_place *p)
{
    char link[64];
    p->is_inside = false;
    if (!atomic_load(&fault_now.is_on)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t n = readlink(link, p->path, sizeof p->path - 1);
    p->path[n > 0 ? n : 0] = '\0';
    settle(p);
}

void fault_place_of_path(int directory, const char *path, fault_place *p)
{
    char base[FAULT_PATH] = "";
    p->is_inside = false;
    if (!atomic_load(&fault_now.is_on)) return;
    if (path[0] != '/' && directory == AT_FDCWD) {
        if (getcwd(base, sizeof base) == NULL) base[0] = '\0';
    } else if (path[0] != '/') {
        fault_place_of_file(directory, p);
        snprintf(base, sizeof base, "%s", p->path);
    }
    snprintf(p->path, sizeof p->path, "%s%s%s", base, path[0] == '/' ? "" : "/", path);
    settle(p);
}

/* ---- the record ------------------------------------------------------------------------------ */

static void put(const void *bytes, size_t n)
{
    if (bytes && n > 0 && FAULT_REAL(write)(fault_now.plan.log, bytes, n) != (ssize_t)n) abort();
}

static const char *below(const fault_place *p)
{
    const char *path = p->path + strlen(fault_now.folder);
    return *path == '/' ? path + 1 : path;
}

void fault_record_call(fault_call call, const fault_place *p, const fault_place *other, int64_t at,
                       int64_t bytes, const void *data)
{
    if (fault_now.plan.log <= 0) return;
    const char *path = p ? below(p) : "", *second = other ? below(other) : "";
    const fault_record r = {.call = (int32_t)call,
                            .path_bytes = (int32_t)strlen(path),
                            .other_bytes = (int32_t)strlen(second),
                            .at = at,
                            .bytes = bytes,
                            .data_bytes = data ? bytes : 0,
                            .number = atomic_load(&fault_now.seen)};
    put(&r, sizeof r);
    put(path, (size_t)r.path_bytes);
    put(second, (size_t)r.other_bytes);
    put(data, (size_t)r.data_bytes);
}

/* ---- what happens to a call ------------------------------------------------------------------ */

static const fault_verdict verdicts[] = {[FAULT_NOTHING] = GO,
                                         [FAULT_CRASH_AFTER] = GO_AND_DIE,
                                         [FAULT_CRASH_HALF] = HALF_AND_DIE,
                                         [FAULT_FAIL] = REFUSE,
                                         [FAULT_SHORT] = HALF};

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static fault_verdict judge(fault_call call)
{
    const fault_plan *plan = &fault_now.plan;
    if (!(plan->calls & 1u << call)) return GO;
    const int64_t n = atomic_fetch_add(&fault_now.seen, 1) + 1;
    const bool is_now = plan->at > 0 && (n == plan->at || (n > plan->at && plan->is_for_good));
    if (!is_now || plan->action == FAULT_NOTHING) return GO;
    atomic_store(&fault_now.has_struck, true);
    if (plan->action == FAULT_CRASH_BEFORE) die();
    return verdicts[plan->action];
}

fault_verdict fault_begin(fault_call call, bool is_inside)
{
    if (!is_inside || !atomic_load(&fault_now.is_on)) return PASS;
    pthread_mutex_lock(&fault_now.mutex);
    return judge(call);
}

void fault_end(fault_verdict v)
{
    const int kept = errno;
    if (v == PASS) return;
    if (v == HALF_AND_DIE || v == GO_AND_DIE) die();
    pthread_mutex_unlock(&fault_now.mutex);
    errno = kept;
}

int fault_refuse(void)
{
    errno = fault_now.plan.error;
    return -1;
}

/* ---- for the tests --------------------------------------------------------------------------- */

void faults_start(const fault_plan *plan)
{
    faults_stop();
    fault_now.plan = *plan;
    if (realpath(plan->folder, fault_now.folder) == NULL)
        snprintf(fault_now.folder, sizeof fault_now.folder, "%s", plan->folder);
    fault_now.plan.folder = fault_now.folder;
    atomic_store(&fault_now.seen, 0);
    atomic_store(&fault_now.bytes_read, 0);
    atomic_store(&fault_now.has_struck, false);
    atomic_store(&fault_now.is_on, true);
}

void faults_stop(void)
{
    atomic_store(&fault_now.is_on, false);
}

int64_t faults_seen(void)
{
    return atomic_load(&fault_now.seen);
}

bool faults_struck(void)
{
    return atomic_load(&fault_now.has_struck);
}

int64_t faults_bytes_read(void)
{
    return atomic_load(&fault_now.bytes_read);
}

void faults_mark(int64_t what, int64_t number)
{
    pthread_mutex_lock(&fault_now.mutex);
    fault_record_call(FAULT_MARK, NULL, NULL, what, number, NULL);
    pthread_mutex_unlock(&fault_now.mutex);
}

__attribute__((constructor)) static void start_from_environment(void)
{
    const char *text = getenv(FAULTS_VARIABLE), *rank = getenv("OMPI_COMM_WORLD_RANK"),
               *wanted = getenv(FAULTS_RANK_VARIABLE);
    static char folder[FAULT_PATH];
    int action, has_no_exchange;
    long long at;
    fault_plan plan = {.folder = folder};
    if (text == NULL || (wanted && rank && strcmp(wanted, rank) != 0)) return;
    if (sscanf(text, "%u %lld %d %d %d %4000s", &plan.calls, &at, &action, &plan.error,
               &has_no_exchange, folder) != 6)
        return;
    plan.at = at;
    plan.action = (fault_action)action;
    plan.has_no_exchange = has_no_exchange;
    faults_start(&plan);
}
