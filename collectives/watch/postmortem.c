/* postmortem: the records of a job that is over, read from their files. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "judge.h"
#include "text.h"
#include "weft/watch.h"

struct weft_postmortem {
    int n;
    weft_recorder **recorders; /* [n] by rank */
    weft_rank_view *views;     /* [n] */
    weft_rank_report *reports; /* [n] */
    weft_verdict verdict;
};

/* ---- reading --------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const weft_recorder *const *one = a, *const *other = b;
    return (*one)->head.rank - (*other)->head.rank;
}

static weft_status read_all(weft_postmortem *p, const char *folder, struct dirent **entries, int n,
                            weft_error *error)
{
    char path[8192];
    p->recorders = calloc((size_t)n + 1, sizeof *p->recorders);
    p->views = calloc((size_t)n + 1, sizeof *p->views);
    p->reports = calloc((size_t)n + 1, sizeof *p->reports);
    if (!p->recorders || !p->views || !p->reports)
        return weft_fail_memory(error, (size_t)n * sizeof *p->views);
    weft_status status = WEFT_OK;
    for (int i = 0; i < n && status == WEFT_OK; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        status = weft_recorder_read(path, &p->recorders[p->n++], error);
    }
    if (status == WEFT_OK) qsort(p->recorders, (size_t)n, sizeof *p->recorders, by_rank);
    return status;
}

/* ---- what they say --------------------------------------------------------------------------- */

/* How long before the last of them each was alive. Clocks of hosts may differ by less than what counts (judge.c). */
static void take_views(weft_postmortem *p)
{
    int64_t latest = 0;
    for (int i = 0; i < p->n; i++) {
        const int64_t alive = weft_sync_load(&p->recorders[i]->head.alive);
        weft_view_take(p->recorders[i], &p->views[i]);
        if (alive > latest) latest = alive;
    }
    const weft_recall asked = weft_views_ask(p->views, p->n);
    for (int i = 0; i < p->n; i++)
        weft_view_recall(p->recorders[i], &asked, &p->views[i]);
    for (int i = 0; i < p->n; i++)
        p->views[i].silent =
            1e-9 * ((double)latest - (double)weft_sync_load(&p->recorders[i]->head.alive));
}

/* When all has ended, being killed together with the others is no mark of being at fault. */
static void judge_views(weft_postmortem *p)
{
    const weft_recorder *said = NULL;
    take_views(p);
    for (int i = 0; i < p->n; i++) {
        if (weft_sync_load(&p->recorders[i]->head.status) != 0 &&
            p->recorders[i]->head.verdict[0] && !said)
            said = p->recorders[i];
    }
    if (said) {
        p->verdict.status = weft_sync_load(&said->head.status);
        snprintf(p->verdict.text, sizeof p->verdict.text, "%s", said->head.verdict);
    } else if (!weft_judge_remains(p->views, p->n, &p->verdict)) {
        snprintf(p->verdict.text, sizeof p->verdict.text, "All %d ranks have left the job.", p->n);
    }
}

static const char *ending(const weft_recorder *recorder, const weft_rank_view *view)
{
    static const struct {
        int signal;
        const char *text;
    } deaths[] = {{SIGSEGV, "died of SIGSEGV"},
                  {SIGBUS, "died of SIGBUS"},
                  {SIGFPE, "died of SIGFPE"},
                  {SIGILL, "died of SIGILL"},
                  {SIGABRT, "died of SIGABRT"}};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        if (view->signal == deaths[i].signal) return deaths[i].text;
    if (weft_sync_load(&recorder->head.status) != 0) return "ended by the watch";
    return view->presence == WEFT_LEFT ? "left the job" : "ended without a word";
}

static void fill_report(const weft_postmortem *p, int i)
{
    const weft_recorder *recorder = p->recorders[i];
    const weft_rank_view *view = &p->views[i];
    weft_record last;
    const bool has_last =
        weft_record_read(recorder, weft_sync_load(&recorder->head.n_begun), &last);
    p->reports[i] = (weft_rank_report){
        .rank = view->rank,
        .pid = view->pid,
        .host = view->host,
        .run = view->run,
        .saved = view->saved,
        .n_calls = view->n_begun,
        .doing = view->doing,
        .ended = ending(recorder, view),
        .alive = 1e-9 * (double)weft_sync_load(&recorder->head.alive),
        .call = has_last ? 1e-9 * (double)last.begun : 0,
    };
}

/* ---- public ---------------------------------------------------------------------------------- */

weft_status weft_postmortem_open(const char *path, weft_postmortem **postmortem, weft_error *error)
{
    char folder[4096];
    struct dirent **entries = NULL;
    WEFT_GIVEN(postmortem, error);
    *postmortem = NULL;
    WEFT_GIVEN(path, error);
    const int n = weft_recorders_find(path, folder, sizeof folder, &entries, error);
    if (n == 0) return error ? error->status : WEFT_USAGE;
    weft_postmortem *p = *postmortem = calloc(1, sizeof *p);
    weft_status status =
        p ? read_all(p, folder, entries, n, error) : weft_fail_memory(error, sizeof *p);
    weft_recorders_found(entries, n);
    if (status != WEFT_OK) {
        weft_postmortem_close(postmortem);
        return status;
    }
    judge_views(p);
    for (int i = 0; i < p->n; i++)
        fill_report(p, i);
    return WEFT_OK;
}

void weft_postmortem_close(weft_postmortem **postmortem)
{
    weft_postmortem *p = postmortem ? *postmortem : NULL;
    if (!p) return;
    for (int i = 0; i < p->n; i++)
        free(p->recorders[i]);
    free(p->recorders);
    free(p->views);
    free(p->reports);
    free(p);
    *postmortem = NULL;
}

const char *weft_postmortem_text(const weft_postmortem *postmortem)
{
    return postmortem ? postmortem->verdict.text : "";
}

int weft_postmortem_status(const weft_postmortem *postmortem)
{
    return postmortem ? postmortem->verdict.status : 0;
}

int weft_postmortem_n_ranks(const weft_postmortem *postmortem)
{
    return postmortem ? postmortem->n : 0;
}

const weft_rank_report *weft_postmortem_rank_at(const weft_postmortem *postmortem, int index)
{
    if (index < 0 || index >= weft_postmortem_n_ranks(postmortem)) return NULL;
    return &postmortem->reports[index];
}

static void print_line(int64_t begun, int64_t ended, int64_t run, const char *what, FILE *out)
{
    char clock[32] = "?";
    struct tm parts;
    const time_t seconds = (time_t)(begun / 1000000000);
    if (localtime_r(&seconds, &parts)) strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    fprintf(out, "%s.%06lld  step %-7lld ", clock, (long long)(begun / 1000 % 1000000),
            (long long)run);
    if (ended > 0)
        fprintf(out, "%10.3f ms", 1e-6 * ((double)ended - (double)begun));
    else
        fprintf(out, "%13s", "not ended");
    fprintf(out, "  %s\n", what);
}

/* How long a call that went on beside the rank's work was under way, and how long the rank stood still for it. */
static void print_flight(const weft_record *record, char *text, size_t bytes)
{
    *text = '\0';
    if (record->awaited == 0 || record->arrived == 0 || record->ended == 0) return;
    const double under_way = 1e-6 * ((double)record->arrived - (double)record->begun);
    const double waited = 1e-6 * ((double)record->arrived - (double)record->awaited);
    snprintf(text, bytes, "; there after %.3f ms, waited for %.3f", under_way,
             waited > 0 ? waited : 0);
}

static void print_call(const weft_recorder *recorder, const weft_record *record, FILE *out)
{
    char call[WEFT_DOING_BYTES], all[WEFT_DOING_BYTES + 80], flight[80];
    weft_record_print(recorder, record, call, sizeof call);
    print_flight(record, flight, sizeof flight);
    snprintf(all, sizeof all, "%s%s", call, flight);
    print_line(record->begun, record->ended, record->run, all, out);
}

/* The last time that the rank waited for its device. */
static void print_device(const weft_recorder *recorder, FILE *out)
{
    const weft_recorder_head *head = &recorder->head;
    weft_device_wait wait;
    char what[WEFT_DOING_BYTES];
    if (!weft_device_wait_read(recorder, &wait)) return;
    weft_device_wait_print(&wait, weft_sync_load(&head->device_done), what, sizeof what);
    print_line(wait.begun, wait.ended, weft_sync_load(&head->run), what, out);
}

char *weft_postmortem_calls(const weft_postmortem *postmortem, int index, int most)
{
    if (index < 0 || index >= weft_postmortem_n_ranks(postmortem)) return NULL;
    const weft_recorder *recorder = postmortem->recorders[index];
    const uint64_t n = weft_sync_load(&recorder->head.n_begun);
    const uint64_t room = most < WEFT_RECORDS ? (uint64_t)(most > 0 ? most : 0) : WEFT_RECORDS;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    const locale_t before = weft_text_plain();
    for (uint64_t back = n < room ? n : room; back > 0; back--) {
        weft_record record;
        if (weft_record_read(recorder, n - back + 1, &record)) print_call(recorder, &record, out);
    }
    if (room > 0) print_device(recorder, out);
    weft_text_end(before);
    return fclose(out) == 0 ? text : (free(text), NULL);
}
