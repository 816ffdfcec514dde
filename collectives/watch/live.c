/* live: the records of a job that runs, looked at where its ranks write them. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "judge_parts.h"
#include "weft/watch.h"

static const double SILENT_S = 10; /* of another host's rank: it is no longer there */

struct weft_live {
    int n;
    bool has_looked;
    const weft_recorder **recorders; /* [n] by rank, mapped */
    weft_rank_view *views;           /* [n] */
    weft_live_rank *ranks;           /* [n] */
    char (*units)[WEFT_UNIT_BYTES];  /* [n] */
    char host[WEFT_HOST_BYTES];      /* this one */
};

/* ---- life ------------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const weft_recorder *const *one = a, *const *other = b;
    return (*one)->head.rank - (*other)->head.rank;
}

static weft_status map_all(weft_live *live, const char *folder, struct dirent **entries, int n,
                           weft_error *error)
{
    char path[8192];
    const size_t room = (size_t)n + 1;
    live->recorders = calloc(room, sizeof *live->recorders);
    live->views = calloc(room, sizeof *live->views);
    live->ranks = calloc(room, sizeof *live->ranks);
    live->units = calloc(room, sizeof *live->units);
    if (!live->recorders || !live->views || !live->ranks || !live->units)
        return weft_fail_memory(error, room * sizeof *live->views);
    gethostname(live->host, sizeof live->host - 1);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        WEFT_TRY(weft_recorder_map(path, &live->recorders[live->n++], error));
    }
    qsort(live->recorders, (size_t)n, sizeof *live->recorders, by_rank);
    return WEFT_OK;
}

weft_status weft_live_open(const char *path, weft_live **made, weft_error *error)
{
    char folder[4096];
    struct dirent **entries = NULL;
    weft_error own = {.rank = -1};
    WEFT_GIVEN(made, error);
    *made = NULL;
    WEFT_GIVEN(path, error);
    const int n = weft_recorders_find(path, folder, sizeof folder, &entries, &own);
    weft_live *live = n > 0 ? calloc(1, sizeof *live) : NULL;
    if (n > 0 && !live) weft_fail_memory(&own, sizeof *live);
    if (live) (void)!map_all(live, folder, entries, n, &own);
    weft_recorders_found(entries, n);
    *made = live;
    if (own.status == WEFT_OK) return WEFT_OK;
    weft_live_close(made);
    return weft_fail(error, own.status, "%s", own.message);
}

void weft_live_close(weft_live **it)
{
    weft_live *live = it ? *it : NULL;
    if (!live) return;
    for (int i = 0; i < live->n; i++)
        weft_recorder_unmap(&live->recorders[i]);
    free(live->recorders);
    free(live->views);
    free(live->ranks);
    free(live->units);
    free(live);
    *it = NULL;
}

/* ---- a look ----------------------------------------------------------------------------------- */

/* The second number of /proc/PID/statm, in pages. */
static int64_t memory_of(int pid)
{
    char path[64];
    long long all = 0, there = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const int got = fscanf(file, "%lld %lld", &all, &there);
    fclose(file);
    return got == 2 ? (int64_t)there * sysconf(_SC_PAGESIZE) : 0;
}

/* When a process of this host began, ns since 1970, by the 22nd number of /proc/PID/stat; 0: not known. */
static int64_t begun_of(int pid, int64_t now)
{
    char path[64], text[1024];
    unsigned long long ticks = 0;
    struct timespec up;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *at = strrchr(text, ')');           /* its name may have blanks */
    for (int field = 2; at && field < 22; field++) /* each begins behind a blank */
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &up) != 0) return 0;
    const double since = (double)up.tv_sec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return now - (int64_t)(1e9 * since);
}

/* Not one that has got the number of a rank that died. A clock that was set does not count where the rank gives signs of life. */
static bool is_there(const weft_rank_view *view, const weft_recorder_head *head, int64_t now)
{
    if (view->pid <= 0 || (kill(view->pid, 0) != 0 && errno != EPERM)) return false;
    if (1e-9 * (double)(now - weft_sync_load(&head->alive)) < SILENT_S) return true;
    return begun_of(view->pid, now) < head->opened + 2 * INT64_C(1000000000);
}

/* A wait that is under way counts up to now. */
static double waited(const weft_recorder *recorder, int64_t now)
{
    const weft_recorder_head *head = &recorder->head;
    weft_record record;
    int64_t ns = weft_sync_load(&head->waited);
    const uint64_t waiting = weft_sync_load(&head->waiting);
    if (weft_record_read(recorder, waiting, &record) && record.ended == 0) {
        const int64_t since = record.awaited ? record.awaited : record.begun;
        ns += now > since && since > 0 ? now - since : 0;
    }
    return 1e-9 * (double)ns;
}

static void fill(weft_live *live, int i, int64_t now)
{
    const weft_recorder *recorder = live->recorders[i];
    const weft_recorder_head *head = &recorder->head;
    const weft_rank_view *view = &live->views[i];
    const double alive = 1e-9 * (double)weft_sync_load(&head->alive);
    const bool is_here = strcmp(view->host, live->host) == 0;
    memcpy(live->units[i], head->unit, WEFT_UNIT_BYTES);
    weft_text_mend(live->units[i], WEFT_UNIT_BYTES);
    live->ranks[i] = (weft_live_rank){
        .rank = view->rank,
        .pid = view->pid,
        .host = view->host,
        .is_here = is_here,
        .is_running = is_here ? is_there(view, head, now) : 1e-9 * (double)now - alive < SILENT_S,
        .has_left = view->presence == WEFT_LEFT,
        .run = view->run,
        .saved = view->saved,
        .last = weft_sync_load(&head->last_run),
        .items = weft_sync_load(&head->items),
        .unit = live->units[i],
        .doing = view->doing,
        .awaits = -1,
        .waited = waited(recorder, now),
        .input = 1e-9 * (double)weft_sync_load(&head->input),
        .opened = 1e-9 * (double)head->opened,
        .begun = 1e-9 * (double)weft_sync_load(&head->run_begun),
        .alive = alive,
        .memory = is_here ? memory_of(view->pid) : 0,
    };
}

static void take(weft_live *live, int i)
{
    weft_rank_view *view = &live->views[i];
    weft_view_take(live->recorders[i], view);
    weft_text_mend(view->host, sizeof view->host);
    weft_text_mend(view->doing, sizeof view->doing);
}

double weft_live_look(weft_live *live)
{
    const int64_t now = weft_clock_ns();
    if (!live) return 1e-9 * (double)now;
    for (int i = 0; i < live->n; i++) {
        take(live, i);
        fill(live, i, now);
    }
    const weft_bench bench = {.views = live->views, .n = live->n};
    for (int i = 0; i < live->n; i++) {
        const weft_rank_view *other = weft_awaited_by(&bench, &live->views[i]);
        if (other == NULL) continue;
        live->ranks[i].awaits = other->rank;
        live->ranks[other - live->views].n_waiters++;
    }
    live->has_looked = true;
    return 1e-9 * (double)now;
}

int weft_live_n_ranks(const weft_live *live)
{
    return live ? live->n : 0;
}

const weft_live_rank *weft_live_rank_at(const weft_live *live, int index)
{
    if (!live || !live->has_looked || index < 0 || index >= live->n) return NULL;
    return &live->ranks[index];
}
