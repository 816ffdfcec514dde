/* search: the trials of a search, rung by rung. */
#include "search.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../app.h"
#include "../../json.h"
#include "../../run.h"
#include "../../whole_file.h"
#include "climb.h"
#include "population.h"

enum { MAX_PATH = 4200, MOST_AT_ONCE = 256, LOOK_MS = 20 };

int64_t search_until(const search *s, int rung)
{
    if (s->is_population) return (s->steps * (rung + 1) + s->n_rungs - 1) / s->n_rungs;
    if (s->eta == 0 || rung == s->n_rungs - 1) return s->eta == 0 ? 0 : s->steps;
    double until = (double)s->steps;
    for (int k = rung; k < s->n_rungs - 1; k++)
        until /= s->eta;
    return until < 1 ? 1 : (int64_t)ceil(until);
}

const outcome *search_last(const search *s, int t)
{
    for (int k = s->n_rungs - 1; k >= 0; k--)
        if (s->trials[t].outcomes[k].is_done) return &s->trials[t].outcomes[k];
    return NULL;
}

/* ---- results ----------------------------------------------------------------------------------- */

static void path_of(const search *s, const char *name, char path[MAX_PATH])
{
    snprintf(path, MAX_PATH, "%.4000s/%s", s->launch.folder, name);
}

static void take_line(search *s, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    const json_t *result = json_object_get(line, "result");
    const json_int_t t = json_integer_value(json_object_get(line, "trial")),
                     k = json_integer_value(json_object_get(line, "rung"));
    if (line && t >= 0 && t < s->n + s->n_climb && k >= 0 && k < s->n_rungs)
        s->trials[t].outcomes[k] = (outcome){
            .is_done = true,
            .status = (int)json_integer_value(json_object_get(line, "status")),
            .steps = json_integer_value(json_object_get(line, "step")),
            .result = json_is_number(result) ? json_number_value(result) : NAN,
            .seconds = json_number_value(json_object_get(line, "seconds")),
        };
    json_decref(line);
}

/* A last line that was cut off is no line, and is ended, so that the next is one. */
static weft_status open_results(search *s, weft_error *error)
{
    char path[MAX_PATH], line[4096] = "\n";
    path_of(s, "results.jsonl", path);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        take_line(s, line);
    if (file) fclose(file);
    s->results = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const size_t n = strlen(line); /* 0: a host that broke down has left zeros */
    const bool is_cut = n == 0 || line[n - 1] != '\n';
    if (s->results >= 0 && (!is_cut || write(s->results, "\n", 1) == 1)) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write %.300s: %s", path, strerror(errno));
}

static weft_status keep(search *s, int t, int rung, const outcome *o, weft_error *error)
{
    json_t *line = json_pack("{s:i, s:i, s:I, s:o, s:i, s:f}", "trial", t, "rung", rung, "step",
                             (json_int_t)o->steps, "result", app_json_number(o->result), "status",
                             o->status, "seconds", o->seconds);
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    s->trials[t].outcomes[rung] = *o;
    json_decref(line);
    if (!text) return weft_fail_memory(error, 0);
    const bool is_kept = dprintf(s->results, "%s\n", text) > 0 && fsync(s->results) == 0;
    free(text);
    if (is_kept) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write results of trial %d: %s", t, strerror(errno));
}

/* ---- the folder -------------------------------------------------------------------------------- */

static weft_status check_about(const search *s, const char *about, weft_error *error)
{
    char path[MAX_PATH], there[SEARCH_ABOUT];
    path_of(s, "search.txt", path);
    FILE *file = fopen(path, "re");
    if (file) {
        there[fread(there, 1, sizeof there - 1, file)] = '\0';
        fclose(file);
        if (strcmp(there, about) == 0) return WEFT_OK;
        return weft_fail(
            error, WEFT_USAGE,
            "%.200s has another search: %.300s; go on with that, or name another --run",
            s->launch.folder, there);
    }
    app_whole_file whole;
    WEFT_TRY(app_whole_open(&whole, path, error));
    fputs(about, whole.stream);
    return app_whole_close(&whole, true, error);
}

weft_status search_open(search *s, const char *about, weft_error *error)
{
    s->results = -1;
    WEFT_TRY(app_make_folder(s->launch.folder, error));
    WEFT_TRY(app_lock_take(&s->lock, s->launch.folder, error));
    WEFT_TRY(check_about(s, about, error));
    return open_results(s, error);
}

void search_close(search *s)
{
    if (s->results >= 0) close(s->results);
    app_lock_leave(&s->lock);
}

/* ---- a rung ------------------------------------------------------------------------------------ */

static volatile sig_atomic_t is_ended;

static void note_end(int number)
{
    (void)number;
    is_ended = 1;
}

static void hear_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_end};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &action, NULL);
}

/* A part of the machine, and the trial that it is at. */
typedef struct part {
    pid_t process; /* 0: it is free */
    int trial;
    double begun;
} part;

typedef struct rung {
    search *search;
    int number, n_parts, cores; /* of a part */
    int64_t until;
    part parts[MOST_AT_ONCE];
    double begun; /* the search */
} rung;

static int count_cores(void)
{
    cpu_set_t all;
    return sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 1;
}

static void say(const search *s, const trial *t, const outcome *o)
{
    char said[300];
    if (!s->says) return;
    printf("trial %4d ", t->number);
    for (int a = 0; a < s->launch.space->n; a++)
        printf(" %s=%s", s->launch.space->axes[a].name, t->values[a]);
    if (o->status == 0) {
        printf("   step %lld   %s %.6g   %.1f s\n", (long long)o->steps, s->by, o->result,
               o->seconds);
    } else {
        trial_said(s->launch.folder, t->number, said, sizeof said);
        printf("   failed with status %d: %s\n", o->status, said);
    }
    fflush(stdout);
}

/* A process is over: what it came to. One that was told to stop has come to nothing yet. */
static weft_status finish(rung *r, part *p, int status, weft_error *error)
{
    search *s = r->search;
    weft_error own = {.rank = -1};
    trial *t = &s->trials[p->trial];
    outcome o = {.is_done = true, .seconds = app_seconds() - p->begun};
    p->process = 0;
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (s->is_stopped && o.status != 0) return WEFT_OK;
    o.result = trial_result(s->launch.folder, t, s->by, r->until, &o.steps, &own);
    if (o.status == 0 && own.status != WEFT_OK)
        return weft_fail(error, own.status, "%s", own.message);
    if (o.status != 0) o.result = NAN;
    WEFT_TRY(keep(s, p->trial, r->number, &o, error));
    say(s, t, &o);
    return WEFT_OK;
}

static weft_status look_at_parts(rung *r, weft_error *error)
{
    for (int i = 0; i < r->n_parts; i++) {
        part *p = &r->parts[i];
        int status;
        if (p->process > 0 && waitpid(p->process, &status, WNOHANG) == p->process)
            WEFT_TRY(finish(r, p, status, error));
    }
    return WEFT_OK;
}

static int count_busy(const rung *r)
{
    int n = 0;
    for (int i = 0; i < r->n_parts; i++)
        n += r->parts[i].process > 0;
    return n;
}

/* They save, and go on when the search does. Each signal is told on: one that does not heed the first may heed the second. */
static void stop_all(rung *r)
{
    for (int i = 0; i < r->n_parts; i++)
        if (r->parts[i].process > 0) kill(r->parts[i].process, SIGTERM);
}

static void check_end(rung *r)
{
    search *s = r->search;
    const bool is_late = s->max_seconds > 0 && app_seconds() - r->begun > s->max_seconds;
    if (!is_ended && (s->is_stopped || !is_late)) return;
    is_ended = 0;
    s->is_stopped = true;
    stop_all(r);
}

static weft_status start(rung *r, part *p, int t, int index, weft_error *error)
{
    const search *s = r->search;
    *p = (part){.trial = t, .begun = app_seconds()};
    p->process =
        trial_start(&s->launch, &s->trials[t], r->until, index * r->cores, r->cores, error);
    return p->process > 0 ? WEFT_OK : error->status;
}

/* A process of a search that was killed may still save there. */
static bool is_free(const search *s, int t)
{
    char path[MAX_PATH];
    weft_error own = {.rank = -1};
    trial_folder(s->launch.folder, &s->trials[t], path, sizeof path);
    return access(path, F_OK) != 0 || app_lock_look(path, &own) != WEFT_USAGE;
}

/* The trials that are to be at this rung: [n], of which the first `next` are under way or done. */
typedef struct queue {
    const int *trials;
    int n, next;
} queue;

static weft_status fill_parts(rung *r, queue *q, weft_error *error)
{
    const search *s = r->search;
    for (int i = 0; i < r->n_parts && !s->is_stopped; i++) {
        while (q->next < q->n && s->trials[q->trials[q->next]].outcomes[r->number].is_done)
            q->next++;
        if (q->next == q->n) return WEFT_OK;
        if (r->parts[i].process > 0 || !is_free(s, q->trials[q->next])) continue;
        WEFT_TRY(start(r, &r->parts[i], q->trials[q->next++], i, error));
    }
    return WEFT_OK;
}

static weft_status run_rung(rung *r, queue *q, weft_error *error)
{
    const struct timespec pause = {0, LOOK_MS * 1000000L};
    weft_status status = WEFT_OK;
    for (;;) {
        weft_error own = {.rank = -1};
        check_end(r);
        if (status == WEFT_OK) (void)!fill_parts(r, q, &own);
        if (count_busy(r) == 0 && (r->search->is_stopped || q->next == q->n)) return status;
        nanosleep(&pause, NULL);
        if (own.status == WEFT_OK) (void)!look_at_parts(r, &own);
        if (own.status == WEFT_OK || status != WEFT_OK) continue;
        status = weft_fail(error, own.status, "%s", own.message);
        r->search->is_stopped = true;
        stop_all(r);
    }
}

/* ---- rungs ------------------------------------------------------------------------------------- */

static const search *sorted; /* of qsort */
static int sorted_rung;

static int better(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    const double p = sorted->trials[x].outcomes[sorted_rung].result,
                 q = sorted->trials[y].outcomes[sorted_rung].result;
    if (isnan(p) != isnan(q)) return isnan(p) ? 1 : -1;
    if (p != q && !isnan(p)) return (p < q) == !sorted->is_highest ? -1 : 1;
    return x - y;
}

int search_rank(const search *s, int k, int *trials, int n)
{
    int good = 0;
    sorted = s;
    sorted_rung = k;
    qsort(trials, (size_t)n, sizeof *trials, better);
    while (good < n && !isnan(s->trials[trials[good]].outcomes[k].result))
        good++;
    return good;
}

/* Steps grow by eta from rung to rung, and trials become fewer by its power of two thirds alone. What a
 * short training comes to is an early guess: where the rate falls to the end, a high one looks worse until then than it is. On digits
 * the best of 27 was the ninth or so after a fifth of its steps. */
int search_at_rung(const search *s, int k)
{
    const int n = (int)lround(s->n * pow(s->eta, -2.0 / 3 * k));
    return n > 1 ? n : 1;
}

/* The best of those that came through a rung, to the front. Returns how many go on. */
static int select_best(const search *s, int k, int *trials, int n)
{
    const int good = search_rank(s, k, trials, n), go_on = search_at_rung(s, k + 1);
    return good < go_on ? good : go_on;
}

static int64_t count_trained(const search *s)
{
    int64_t steps = 0;
    for (int t = 0; t < s->n; t++) {
        const outcome *last = search_last(s, t);
        steps += last ? last->steps : 0;
    }
    return steps;
}

static weft_status say_failed(const search *s, weft_error *error)
{
    char said[300];
    trial_said(s->launch.folder, 0, said, sizeof said);
    return weft_fail(error, WEFT_USAGE, "no trial came to anything; the first one said: %s", said);
}

/* What is there of an earlier start is not trained again, however little time there is. */
static bool is_rung_done(const search *s, int k, const int *trials, int n)
{
    for (int i = 0; i < n; i++)
        if (!s->trials[trials[i]].outcomes[k].is_done) return false;
    return true;
}

static weft_status train_to(search *s, int k, const int *trials, int n, double begun,
                            weft_error *error)
{
    rung r = {.search = s, .number = k, .until = search_until(s, k), .begun = begun};
    const int cores = count_cores();
    r.n_parts = s->at_once < n ? s->at_once : n;
    r.cores = cores / r.n_parts > 0 ? cores / r.n_parts : 1;
    if (!is_rung_done(s, k, trials, n)) WEFT_TRY(run_rung(&r, &(queue){trials, n, 0}, error));
    s->trained = count_trained(s);
    return WEFT_OK;
}

/* A point that an earlier rung has goes on from there. */
static int take_move(search *s, const climb_move *move)
{
    climb_move to = *move;
    int t = climb_find(s, to.values);
    if (t < 0) {
        t = s->n++; /* its outcomes are there where the search was started before */
        s->trials[t].number = t;
        memcpy(s->trials[t].values, to.values, sizeof to.values);
    }
    s->trials[t].is_climbed = true;
    s->trials[t].from = to.from;
    s->trials[t].toward = to.toward;
    return t;
}

/* One after the other, since each depends on those before. trials [n] are those of the last rung, with room for n_climb more. */
static weft_status run_climb(search *s, int *trials, int n, double begun, weft_error *error)
{
    const int last = s->n_rungs - 1;
    for (int i = 0; i < s->n_climb && !s->is_stopped; i++, n++) {
        climb_move move;
        const int good = search_rank(s, last, trials, n);
        if (good == 0 || !climb_next(s, trials, n, i, &move)) return WEFT_OK;
        trials[n] = take_move(s, &move);
        WEFT_TRY(train_to(s, last, trials + n, 1, begun, error));
    }
    return WEFT_OK;
}

static weft_status run_rungs(search *s, int *trials, weft_error *error)
{
    int n = s->n;
    const double begun = app_seconds();
    for (int t = 0; t < n; t++)
        trials[t] = t;
    for (int k = 0; k < s->n_rungs && n > 0; k++) {
        WEFT_TRY(train_to(s, k, trials, n, begun, error));
        if (s->is_stopped) return WEFT_OK;
        if (k == s->n_rungs - 1) return run_climb(s, trials, n, begun, error);
        if (s->eta > 0) n = select_best(s, k, trials, n);
        if (s->is_population) WEFT_TRY(population_turn(s, k, trials, &n, error));
    }
    return WEFT_OK;
}

weft_status search_run(search *s, weft_error *error)
{
    int *trials = calloc((size_t)(s->n + s->n_climb) + 1, sizeof *trials);
    if (!trials) return weft_fail_memory(error, (size_t)s->n * sizeof *trials);
    hear_signals();
    weft_status status = s->is_population ? population_open(s, error) : WEFT_OK;
    if (status == WEFT_OK) status = run_rungs(s, trials, error);
    free(trials);
    WEFT_TRY(status);
    for (int t = 0; t < s->n; t++)
        if (search_last(s, t) && !isnan(search_last(s, t)->result)) return WEFT_OK;
    return s->is_stopped ? WEFT_OK : say_failed(s, error);
}

/* By rungs, not steps: trials of one rung may have other numbers of steps, as where --vary has steps. */
static int further(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    const outcome *p = search_last(sorted, x), *q = search_last(sorted, y);
    if (!p || !q) return p ? -1 : q ? 1 : x - y;
    const ptrdiff_t k = p - sorted->trials[x].outcomes, l = q - sorted->trials[y].outcomes;
    if (isnan(p->result) != isnan(q->result)) return isnan(p->result) ? 1 : -1;
    if (k != l) return k > l ? -1 : 1;
    if (p->result != q->result && !isnan(p->result))
        return (p->result < q->result) == !sorted->is_highest ? -1 : 1;
    return x - y;
}

void search_order(const search *s, int *order)
{
    for (int t = 0; t < s->n; t++)
        order[t] = t;
    sorted = s;
    qsort(order, (size_t)s->n, sizeof *order, further);
}
