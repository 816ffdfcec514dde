/* checkpoint_power_test: the power fails during saves, also during the one after a crash or a failed call. Any part
 * of the unsynced bytes may be on the disk. A promised state is restored to the bit, or the state of a later save;
 * nothing else is accepted.
 *
 * --states N: how many states of the disk.
 */
#include "crash_net.h"
#include "disk.h"

/* In the record. */
enum { BEGUN = 1, PROMISED = 2, RESTARTED = 3 };

/* A save that is left alone, ends by a kill, or has a call that fails; then, after a kill in a new
 * process, what is there is restored and one more is saved. */
typedef struct history {
    const scenario *scene;
    fault_action action;
    int64_t at;
    int log;
} history;

static char folder[128], inner[160], after[128];

static void start(const history *h, bool is_struck)
{
    faults_start(&(fault_plan){.folder = folder,
                               .calls = FAULT_CHANGES,
                               .at = is_struck ? h->at : 0,
                               .action = is_struck ? h->action : FAULT_NOTHING,
                               .error = EIO,
                               .has_no_exchange = h->scene->has_no_exchange,
                               .is_unsynced = true,
                               .log = h->log});
}

static void save_marked(int version, int64_t step)
{
    weft_error error = {0};
    faults_mark(BEGUN, version);
    if (save_version(inner, version, step, &error) == WEFT_OK) faults_mark(PROMISED, version);
}

static void save_first(const void *argument)
{
    const history *h = argument;
    const scenario *s = h->scene;
    weft_error error = {0};
    start(h, false);
    keep_open(s, inner);
    for (int i = 0; i < s->n; i++) {
        start(h, i == s->n - 1);
        CHECK_OK(net_run(&blank, i + 1, i + 1, NULL, &error), error);
        save_marked(i + 1, s->steps[i]);
    }
    said->n_calls = faults_seen();
}

/* Whoever is told of a state must find it ever after. */
static void save_on(const void *argument)
{
    const history *h = argument;
    weft_error error = {0};
    weft_checkpoint_state state;
    start(h, false);
    faults_mark(RESTARTED, 0);
    if (!CHECK_OK(net_restore(&blank, inner, WEFT_NEWEST, &state, &error), error)) return;
    faults_mark(PROMISED, state.sample);
    /* A version is so many runs, whatever its step; with none there, memory is as it was. */
    const int in_memory = h->action == FAULT_FAIL ? h->scene->n : 0,
              done = state.sample > 0 ? (int)state.sample : in_memory;
    weft_set_runs(blank.program, done);
    CHECK_OK(net_run(&blank, done + 1, h->scene->n + 1, NULL, &error), error);
    save_marked(h->scene->n + 1, h->scene->steps[h->scene->n - 1]);
}

static void save_first_and_on(const void *argument)
{
    save_first(argument);
    save_on(argument);
}

static bool make_history(const history *h)
{
    forget();
    remove_folder(folder);
    if (!CHECK_EQ_INT(mkdir(folder, 0777), 0) || !CHECK_EQ_INT(ftruncate(h->log, 0), 0))
        return false;
    if (h->action == FAULT_FAIL) return CHECK_EQ_INT(in_child(save_first_and_on, h), 0);
    const int status = in_child(save_first, h);
    if (h->action == FAULT_NOTHING) return CHECK_EQ_INT(status, 0);
    return CHECK(was_killed(status)) && CHECK_EQ_INT(in_child(save_on, h), 0);
}

/* ---- states ---------------------------------------------------------------------------------- */

typedef struct tally {
    int n, n_old, n_new, n_none, n_lost, n_wrong;
} tally;

static tally *all; /* shared */

typedef struct states {
    const history *history;
    const disk_log *log;
    int n;
    uint64_t seed;
} states;

static void find_promise(const disk_log *log, int n, int64_t *promised, int64_t *begun)
{
    *promised = *begun = 0;
    for (int i = 0; i < n; i++) {
        const fault_record *call = &log->records[i].call;
        if (call->call != FAULT_MARK) continue;
        if (call->at == PROMISED) *promised = call->bytes;
        if (call->at == BEGUN) *begun = call->bytes;
    }
}

static bool is_mark(const disk_record *r, int64_t what, int64_t number)
{
    return r->call.call == FAULT_MARK && r->call.at == what && r->call.bytes == number;
}

/* Half of the losses soon after the fault, when somebody tidies up; most others at the last save
 * or after it. */
static int choose_moment(const history *h, const disk_log *log, uint64_t *seed)
{
    enum { SOON = 16 };
    int first = 0, fault = 0;
    for (int i = 0; i < log->n; i++) {
        const disk_record *r = &log->records[i];
        if (is_mark(r, BEGUN, h->scene->n)) first = i;
        const bool is_after = (h->action == FAULT_FAIL && first && r->call.number >= h->at) ||
                              is_mark(r, RESTARTED, 0);
        if (is_after && !fault) fault = i;
    }
    const double way = disk_random(seed);
    if (fault && way < 0.5)
        return fault + (int)(disk_random(seed) * (log->n - fault < SOON ? log->n - fault : SOON));
    if (way > 0.95) first = 0;
    return first + (int)(disk_random(seed) * (log->n - first + 1));
}

static power_loss choose_loss(const history *h, const disk_log *log, uint64_t seed)
{
    static const double kept[] = {0, 0.1, 0.5, 0.9, 1};
    power_loss loss;
    loss.n = choose_moment(h, log, &seed);
    loss.kept = kept[(int)(disk_random(&seed) * 5)];
    loss.is_ordered = disk_random(&seed) < 0.25;
    loss.is_torn = disk_random(&seed) < 0.5;
    loss.seed = seed;
    return loss;
}

/* What has the name of a step is whole, also if it is not the newest. */
static bool are_whole(const char *path)
{
    int64_t steps[8];
    const int n = weft_stored_steps(path, steps, 8);
    bool is_good = n <= 3;
    for (int i = 0; i < n && is_good; i++) {
        char step[4096];
        weft_error error = {0};
        weft_stored *stored = NULL;
        snprintf(step, sizeof step, "%s/step_%08lld", path, (long long)steps[i]);
        is_good = weft_stored_open(step, &stored, &error) == WEFT_OK &&
                  weft_stored_verify(stored, &error) == WEFT_OK;
        snprintf(said->message, sizeof said->message, "%s", error.message);
        weft_stored_close(&stored);
    }
    return is_good;
}

static void check_state(const states *s, int i)
{
    char path[160], text[900];
    int64_t promised, begun;
    const power_loss loss = choose_loss(s->history, s->log, s->seed + (uint64_t)i * 1000003);
    find_promise(s->log, loss.n, &promised, &begun);
    remove_folder(after);
    if (!CHECK(disk_after(s->log, &loss, after))) return;
    snprintf(path, sizeof path, "%s/ckpt", after);
    forget();
    const bool is_whole = are_whole(path);
    if (is_whole) look(path);
    const bool is_none = said->status == WEFT_OK && said->step == 0;
    const bool is_lost = said->status != WEFT_OK || said->skipped[0] ||
                         (is_none ? promised > 0 : said->version < promised);
    const bool is_wrong = !is_lost && !is_none && (!said->is_exact || said->version > begun);
    all->n++;
    all->n_lost += is_lost;
    all->n_wrong += is_wrong;
    all->n_none += is_none;
    all->n_old += !is_none && said->version == promised;
    all->n_new += said->version > promised;
    snprintf(text, sizeof text,
             "%s, fault %d at call %lld, power lost after %d of %d, kept %g%s%s: version %lld of "
             "%lld to %lld, exact %d, status %d %s, skipped \"%s\"",
             s->history->scene->name, s->history->action, (long long)s->history->at, loss.n,
             s->log->n, loss.kept, loss.is_ordered ? ", ordered" : "", loss.is_torn ? ", torn" : "",
             (long long)said->version, (long long)promised, (long long)begun, said->is_exact,
             said->status, said->message, said->skipped);
    weft_test_check(!is_lost && !is_wrong && said->next_status == WEFT_OK, __FILE__, __LINE__,
                    text);
}

static void check_states(const void *argument)
{
    const states *s = argument;
    for (int i = 0; i < s->n; i++)
        check_state(s, i);
    remove_folder(after);
}

/* ---- the record is whole --------------------------------------------------------------------- */

/* Without a loss the model is what the calls have made: no call goes past the record. */
static void check_record(const disk_log *log)
{
    char line[512];
    const power_loss nothing = {.n = log->n, .kept = 1};
    remove_folder(after);
    CHECK(disk_after(log, &nothing, after));
    snprintf(line, sizeof line, "diff -r '%s' '%s'", folder, after);
    CHECK_EQ_INT(system(line), 0);
}

/* Returns the calls of its last save; *commit: the one that gives it its name. */
static int64_t check_history(const history *h, int n_states, uint64_t seed, int64_t *commit)
{
    disk_log log = {0};
    int64_t n_calls = 0;
    if (make_history(h) && CHECK(disk_load(h->log, &log))) {
        n_calls = said->n_calls;
        *commit = read_record(h->log, h->scene->steps[h->scene->n - 1]).commit;
        if (h->action == FAULT_NOTHING || h->at % 16 == 0) check_record(&log);
        CHECK_EQ_INT(in_child(check_states, &(states){h, &log, n_states, seed}), 0);
    }
    disk_unload(&log);
    return n_calls;
}

static int n_states_wanted = 400;

/* Any call of the last save, but half of them from shortly before the new name on. */
static int64_t choose_call(int64_t n_calls, int64_t commit, uint64_t *seed)
{
    const int64_t first = disk_random(seed) < 0.5 ? commit - 2 : 1;
    return first + (int64_t)(disk_random(seed) * (double)(n_calls - first + 1));
}

/* As many histories as give each ten states, at the least. */
static void test_power_is_lost(void)
{
    enum { A_HISTORY = 10 };
    char path[160];
    int n_histories = 0;
    uint64_t seed = 99;
    int64_t n_calls[N_SCENARIOS], commits[N_SCENARIOS], ignored;
    snprintf(path, sizeof path, "%s/log", root);
    history h = {.log = open(path, O_RDWR | O_CREAT | O_APPEND, 0666)};
    for (int i = 0; i < N_SCENARIOS; i++, n_histories++) {
        h = (history){.scene = &scenarios[i], .log = h.log};
        n_calls[i] =
            check_history(&h, n_states_wanted / 10 / N_SCENARIOS, (uint64_t)i << 40, &commits[i]);
        CHECK(n_calls[i] > 20);
    }
    while (all->n < n_states_wanted && weft_test_.n_failed < WEFT_TEST_SHOWN) {
        const int i = n_histories % N_SCENARIOS;
        h.scene = &scenarios[i];
        h.action = disk_random(&seed) < 0.6 ? FAULT_CRASH_BEFORE : FAULT_FAIL;
        h.at = choose_call(n_calls[i], commits[i], &seed);
        check_history(&h, A_HISTORY, (uint64_t)n_histories++ << 40, &ignored);
    }
    close(h.log);
    printf("  %d states of the disk after %d histories: %d with what was promised last, %d with a "
           "later one, %d with none yet; %d lost, %d wrong\n",
           all->n, n_histories, all->n_old, all->n_new, all->n_none, all->n_lost, all->n_wrong);
    CHECK(all->n_old > 0 && all->n_new > 0 && all->n_none > 0);
}

int main(int n, char **arguments)
{
    if (n > 2 && strcmp(arguments[1], "--states") == 0) n_states_wanted = atoi(arguments[2]);
    if (!CAN_SAVE) {
        weft_test_skip("built without HDF5, which checkpoints are written with");
    } else if (CHECK(crash_open()) && CHECK((all = share(sizeof *all)) != MAP_FAILED)) {
        snprintf(folder, sizeof folder, "%s/run", root);
        snprintf(inner, sizeof inner, "%s/ckpt", folder);
        snprintf(after, sizeof after, "%s/after", root);
        RUN(test_power_is_lost);
        crash_close();
    }
    return weft_test_report();
}
