/* run: what a training does before its first step, after each, and after its last, so that it can
 * be continued. */
#include "run.h"

#include "app.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weft/collectives.h"
#include "weft/watch.h"

enum { MAX_PATH = 4096 };

/* ---- folders -------------------------------------------------------------------------------- */

weft_status app_make_folder(const char *path, weft_error *error)
{
    char part[MAX_PATH];
    struct stat facts;
    if (*path == '\0')
        return weft_fail(error, WEFT_USAGE,
                         "the run directory has no name; name it with --run DIR");
    snprintf(part, sizeof part, "%s", path);
    for (char *c = part + 1; *part && *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        mkdir(part, 0777); /* the last one tells whether it worked */
        *c = '/';
    }
    if (mkdir(part, 0777) == 0 ||
        (errno == EEXIST && stat(part, &facts) == 0 && S_ISDIR(facts.st_mode)))
        return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "cannot make run directory %.300s: %s; name another with --run DIR", path,
                     errno == EEXIST ? "a file of that name is in the way" : strerror(errno));
}

void app_checkpoint_folder(const char *folder, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.4000s/ckpt", folder);
}

/* The first of PATH.1, PATH.2 ... that is not there. */
static void free_name(const char *path, char *name, size_t bytes)
{
    int length = (int)strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    for (int i = 1;; i++) {
        snprintf(name, bytes, "%.*s.%d", length, path, i);
        if (access(name, F_OK) != 0) return;
    }
}

static weft_status move(const char *from, const char *to, weft_error *error)
{
    if (rename(from, to) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot move %s aside to %s: %s; name another --run DIR", from,
                     to, strerror(errno));
}

static weft_status move_aside(const char *path, weft_error *error)
{
    char name[MAX_PATH + 16];
    if (access(path, F_OK) != 0) return WEFT_OK;
    free_name(path, name, sizeof name);
    return move(path, name, error);
}

/* A folder of plain files; none is fine. */
static weft_status remove_files(const char *folder, weft_error *error)
{
    char path[2 * MAX_PATH];
    DIR *listing = opendir(folder);
    if (!listing && errno == ENOENT) return WEFT_OK;
    if (!listing)
        return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO, "cannot list %s: %s",
                         folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    closedir(listing);
    if (rmdir(folder) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot remove %s: %s", folder, strerror(errno));
}

/* Checkpoints of later steps than the one to begin at would be taken for the newest at the next
 * start: they go to ckpt.1, ckpt.2 ... */
static weft_status move_later(const char *folder, int64_t step, weft_error *error)
{
    char name[MAX_PATH], from[2 * MAX_PATH], to[2 * MAX_PATH];
    int64_t *steps;
    int n;
    WEFT_TRY(app_steps(folder, &steps, &n, error));
    weft_status status = WEFT_OK;
    bool is_there = false;
    free_name(folder, name, sizeof name);
    for (int i = 0; i < n; i++)
        is_there = is_there || steps[i] == step;
    for (int i = 0; i < n && is_there && status == WEFT_OK; i++) {
        if (steps[i] <= step) continue;
        status = app_make_folder(name, error);
        snprintf(from, sizeof from, "%s/step_%08lld", folder, (long long)steps[i]);
        snprintf(to, sizeof to, "%s/step_%08lld", name, (long long)steps[i]);
        if (status == WEFT_OK) status = move(from, to, error);
    }
    free(steps);
    return status;
}

/* ---- the start ------------------------------------------------------------------------------ */

static weft_status resume_step(const settings *s, int64_t *step, weft_error *error)
{
    const char *text = settings_text(s, "resume");
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    const bool is_number = end != text && *end == '\0' && errno == 0 && number >= 1;
    *step = is_number ? number : 0;
    if (settings_flag(s, "fresh") || strcmp(text, "none") == 0 || is_number) return WEFT_OK;
    *step = WEFT_NEWEST;
    if (strcmp(text, "auto") == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--resume %s: it can be auto, none, or the number of a saved step from 1",
                     text);
}

static void note(app_run *run, const char *text)
{
    const size_t used = strlen(run->note);
    if (*text)
        snprintf(run->note + used, sizeof run->note - used, "%s%s", used > 0 ? "\n" : "", text);
}

static void recorder_folder(const char *folder, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.4000s/recorder", folder);
}

/* The records of the job before this one stay, until the next. */
static weft_status prepare_records(const char *folder, weft_error *error)
{
    char path[MAX_PATH], last[MAX_PATH + 8];
    recorder_folder(folder, path, sizeof path);
    snprintf(last, sizeof last, "%s.last", path);
    if (access(path, F_OK) == 0) {
        WEFT_TRY(remove_files(last, error));
        WEFT_TRY(move(path, last, error));
    }
    return app_make_folder(path, error);
}

/* Not to be recorded is no reason not to run. */
static void record(app_run *run, const char *folder)
{
    char path[MAX_PATH];
    weft_error error = {.rank = -1};
    recorder_folder(folder, path, sizeof path);
    weft_watch_patience(settings_seconds(run->setup.settings, "patience"));
    if (weft_watch_record(path, &error) != WEFT_OK) note(run, error.message);
}

/* Locked before it is moved aside, so that no other job is in it; and the new one is locked before
 * the old one is let go. */
static weft_status claim_folder(app_run *run, weft_error *error)
{
    const settings *s = run->setup.settings;
    const char *folder = settings_text(s, "run");
    if (settings_flag(s, "fresh") && access(folder, F_OK) == 0) {
        WEFT_TRY(app_lock_take(&run->lock, folder, error));
        WEFT_TRY(move_aside(folder, error));
    }
    WEFT_TRY(app_make_folder(folder, error));
    return app_lock_take(&run->lock, folder, error);
}

/* What only one process may do to the run directory. */
static weft_status prepare_folder(app_run *run, int64_t from, weft_error *error)
{
    char checkpoints[MAX_PATH];
    const char *folder = settings_text(run->setup.settings, "run");
    WEFT_TRY(claim_folder(run, error));
    WEFT_TRY(prepare_records(folder, error));
    app_checkpoint_folder(folder, checkpoints, sizeof checkpoints);
    if (from == 0) return move_aside(checkpoints, error);
    return from == WEFT_NEWEST ? WEFT_OK : move_later(checkpoints, from, error);
}

/* Advice is of a run that has ended. */
static void forget_advice(const app_run *run)
{
    char path[MAX_PATH];
    app_spent_path(settings_text(run->setup.settings, "run"), path, sizeof path);
    if (weft_world_is_root()) (void)unlink(path);
}

static weft_status newest_step(const char *folder, int64_t *newest, weft_error *error)
{
    int64_t *steps;
    int n;
    WEFT_TRY(app_steps(folder, &steps, &n, error));
    *newest = n > 0 ? steps[n - 1] : 0;
    free(steps);
    return WEFT_OK;
}

/* Say the way out of a checkpoint that does not fit. */
static weft_status explain(const char *folder, weft_error *error)
{
    const size_t used = strlen(error->message);
    if (error->status == WEFT_USAGE)
        snprintf(error->message + used, sizeof error->message - used,
                 "; or begin again with --fresh, which moves %.100s aside", folder);
    return error->status;
}

/* A checkpoint may hold more than a program wants, which is right for a part of a model, but not
 * for a training that goes on: it has been made with another number of layers, or with another
 * optimizer. */
static weft_status check_all_used(const app_run *run, const weft_stored *stored, weft_error *error)
{
    int n = 0;
    while (weft_variable_at(run->setup.program, n).id != 0)
        n++;
    if (weft_stored_n_tensors(stored) == n) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.200s has %d tensors and this program wants only %d of them; use the model "
                     "and optimizer that the run was started with",
                     weft_stored_path(stored), weft_stored_n_tensors(stored), n);
}

static uint64_t seed_of(const app_run_setup *setup)
{
    return (uint64_t)settings_count(setup->settings, "seed");
}

/* Before checkpoints said their data, some had a mark of it in their seed. */
static weft_status check_seed(const app_run *run, const weft_stored *stored, weft_error *error)
{
    weft_checkpoint_state state;
    const settings *s = run->setup.settings;
    const char *folder = settings_text(s, "run");
    const uint64_t seed = seed_of(&run->setup), mark = run->setup.mark;
    const bool is_old = mark != 0 && *weft_stored_data(stored) == '\0';
    weft_stored_state(stored, &state);
    if (state.seed == seed || (is_old && state.seed == (seed ^ mark))) return WEFT_OK;
    if (is_old && settings_flag(s, "data-changed")) return WEFT_OK;
    if (is_old)
        return weft_fail(error, WEFT_USAGE,
                         "the run in %s has learned from other data, or has another --seed; give "
                         "those that it was started with, or --fresh",
                         folder);
    return weft_fail(error, WEFT_USAGE,
                     "the run in %s has seed %llu and --seed is %llu, which is another order of "
                     "samples; give --seed %llu or --fresh",
                     folder, (unsigned long long)state.seed, (unsigned long long)seed,
                     (unsigned long long)state.seed);
}

/* What a restore leaves to us, at the root. */
static weft_status check_stored(app_run *run, const char *folder, int64_t step, weft_error *error)
{
    char path[2 * MAX_PATH];
    weft_stored *stored = NULL;
    if (!weft_world_is_root() || step == 0) return WEFT_OK;
    snprintf(path, sizeof path, "%s/step_%08lld", folder, (long long)step);
    WEFT_TRY(weft_stored_open(path, &stored, error));
    weft_status status = check_all_used(run, stored, error);
    if (status != WEFT_OK) (void)explain(settings_text(run->setup.settings, "run"), error);
    if (status == WEFT_OK) status = check_seed(run, stored, error);
    if (status == WEFT_OK) app_run_found(run, folder, stored);
    weft_stored_close(&stored);
    return status;
}

static weft_status restore(app_run *run, const char *folder, int64_t from, weft_error *error)
{
    const settings *s = run->setup.settings;
    weft_checkpoint_state state = {0};
    char text[120];
    int64_t newest = 0;
    if (weft_world_is_root()) (void)newest_step(folder, &newest, error);
    WEFT_TRY(weft_world_agree(error));
    if (from == 0) return WEFT_OK;
    if (weft_checkpoints_restore(run->checkpoints, run->setup.program, from, &state, error))
        return explain(settings_text(s, "run"), error);
    WEFT_TRY(check_stored(run, folder, state.step, error));
    snprintf(text, sizeof text, "the checkpoint of step %lld is damaged and was passed over",
             (long long)newest);
    if (from == WEFT_NEWEST && state.step < newest) note(run, text);
    note(run, weft_checkpoints_data(run->checkpoints));
    run->first = run->step = run->saved = state.step;
    weft_set_runs(run->setup.program, state.step);
    weft_dataset_seek(run->setup.data, state.sample);
    return WEFT_OK;
}

/* A first guess, for a slow disk; saves that are seen to take longer count as they are. */
static double guess_saving(const weft_program *program)
{
    weft_usage usage = {0};
    weft_error error = {.rank = -1};
    if (weft_plan_usage(program, 0, &usage, &error) != WEFT_OK) return 1;
    return 0.2 + (double)(usage.variable_bytes + usage.slot_bytes) / 100e6;
}

/* Before a step: the trace begins, or ends. */
static weft_status trace_before(app_run *run, int64_t step, weft_error *error)
{
    const int64_t n = run->tracing.last - step + 1;
    weft_trace_part parts[] = {{run->setup.program, "train", n, run->comparison.steps},
                               run->setup.looks};
    parts[1].runs *= n;
    run->tracing.says = weft_world_is_root() && !run->setup.is_quiet;
    return app_tracing_before(&run->tracing, step, parts, parts[1].program ? 2 : 1, error);
}

static const char *held_facts(const app_run_setup *setup)
{
    return setup->held && setup->held->data ? weft_dataset_facts(setup->held->data) : NULL;
}

static bool keeps_best(const app_run_setup *setup)
{
    return held_facts(setup) != NULL && settings_flag(setup->settings, "best");
}

weft_status app_run_open(app_run *run, const app_run_setup *setup, weft_error *error)
{
    char folder[MAX_PATH];
    int64_t from = WEFT_NEWEST;
    const settings *s = setup->settings;
    const weft_checkpoint_options options = {.keep = (int)settings_count(s, "keep"),
                                             .data = weft_dataset_facts(setup->data),
                                             .dataset = setup->data,
                                             .other_data = settings_flag(s, "data-changed"),
                                             .keep_best = keeps_best(setup),
                                             .held_out = held_facts(setup)};
    *run = (app_run){.setup = *setup};
    stop_survive_failed_writes();
    app_checkpoint_folder(settings_text(s, "run"), folder, sizeof folder);
    (void)!app_comparison_open(&run->comparison, s, setup->program, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(weft_dataset_agree(setup->data, setup->program, error));
    if (app_tracing_read(&run->tracing, s, setup->last, error) == WEFT_OK &&
        resume_step(s, &from, error) == WEFT_OK && weft_world_is_root() &&
        prepare_folder(run, from, error) == WEFT_OK)
        (void)!app_plan_keep(s, setup->program, &setup->pipe, error);
    WEFT_TRY(weft_world_agree(error));
    record(run, settings_text(s, "run"));
    weft_watch_work(setup->last, (int64_t)setup->items, setup->unit);
    if (weft_checkpoints_open(folder, &options, &run->checkpoints, error) == WEFT_OK)
        (void)!restore(run, folder, from, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(weft_world_any(run->looks.is_missing, &run->looks.is_missing, error));
    stop_watch_open(&run->watch, weft_world_is_root() ? settings_text(s, "run") : NULL,
                    settings_seconds(s, "max-time"), guess_saving(setup->program));
    run->save_begun = app_seconds();
    WEFT_TRY(trace_before(run, run->first + 1, error));
    histograms_of of = setup->of;
    of.program = setup->program;
    WEFT_TRY(app_board_open(&run->board, s, &of, run->first, error));
    app_comparison_begin(&run->comparison);
    forget_advice(run);
    app_spent_begin(&run->spent);
    return WEFT_OK;
}

/* ---- the steps ------------------------------------------------------------------------------ */

static weft_status save(app_run *run, weft_error *error)
{
    const bool has_loss = run->looks.step == run->step && isfinite(run->looks.loss);
    const weft_checkpoint_state state = {
        .step = run->step,
        .sample = weft_dataset_position(run->setup.data),
        .seed = seed_of(&run->setup),
        .loss = has_loss ? run->looks.loss : 0,
        .has_loss = has_loss,
    };
    run->looks.is_best = false; /* it is kept */
    run->save_begun = app_seconds();
    WEFT_TRY(weft_checkpoints_save(run->checkpoints, run->setup.program, &state, error));
    run->saved = run->step;
    return WEFT_OK;
}

/* A save takes until it is committed, which is what --max-time has to leave time for. */
static weft_status poll(app_run *run, weft_error *error)
{
    const bool was_saving = weft_checkpoints_is_saving(run->checkpoints);
    WEFT_TRY(weft_checkpoints_poll(run->checkpoints, error));
    if (was_saving && !weft_checkpoints_is_saving(run->checkpoints))
        run->watch.saving = fmax(run->watch.saving, app_seconds() - run->save_begun);
    return WEFT_OK;
}

static bool is_due(const app_run *run, const char *name)
{
    const int64_t every = settings_count(run->setup.settings, name);
    return every > 0 && run->step % every == 0;
}

/* The root's clock decides. */
static bool is_old(const app_run *run)
{
    const double after = settings_seconds(run->setup.settings, "save-after");
    return weft_world_is_root() && after > 0 && run->saved < run->step &&
           app_seconds() - run->save_begun >= after;
}

static weft_status save_meanwhile(app_run *run, weft_error *error)
{
    const weft_status status = save(run, error);
    app_spent_lap(&run->spent, APP_ON_SAVES);
    return status;
}

static weft_status after_step(app_run *run, int64_t step, weft_error *error)
{
    run->step = step;
    app_spent_lap(&run->spent, APP_ON_REST);
    WEFT_TRY(trace_before(run, step + 1, error));
    if (is_due(run, "check-replicas")) WEFT_TRY(weft_check_replicas(run->setup.program, error));
    app_spent_lap(&run->spent, APP_ON_CHECKS);
    WEFT_TRY(poll(run, error));
    if (is_due(run, "save-every") || run->looks.is_best) WEFT_TRY(save(run, error));
    app_spent_lap(&run->spent, APP_ON_SAVES);
    if (step >= run->setup.last) return WEFT_OK; /* over anyway */
    /* Ranks ask each other once a step, and again only where there is something to do. */
    const bool stops = stop_watch_step(&run->watch);
    bool is_wanted; /* by a rank: to stop or to save */
    WEFT_TRY(weft_world_any(stops || is_old(run), &is_wanted, error));
    if (!is_wanted) return WEFT_OK;
    WEFT_TRY(weft_world_any(stops, &run->is_stopped, error));
    app_spent_lap(&run->spent, APP_ON_REST);
    if (!run->is_stopped) return save_meanwhile(run, error);
    if (!*run->watch.why)
        snprintf(run->watch.why, sizeof run->watch.why, "another rank was asked to");
    return WEFT_OK; /* app_run_finish saves */
}

weft_status app_run_begin(app_run *run, app_held_numbers *numbers, weft_error *error)
{
    *numbers = (app_held_numbers){.is_there = false};
    if (!run->looks.is_missing) return WEFT_OK;
    WEFT_TRY(app_run_look(run, run->first, numbers, error));
    return run->looks.is_best ? save(run, error) : WEFT_OK;
}

weft_status app_run_before(app_run *run, int64_t step, weft_error *error)
{
    return app_board_before(&run->board, step, error);
}

weft_status app_run_step(app_run *run, int64_t step, weft_error *error)
{
    app_comparison_end(&run->comparison);
    WEFT_TRY(after_step(run, step, error));
    app_comparison_begin(&run->comparison);
    return WEFT_OK;
}

weft_status app_run_finish(app_run *run, weft_error *error)
{
    WEFT_TRY(app_tracing_end(&run->tracing, error));
    if (weft_world_is_root())
        app_spent_ranks(&run->spent, settings_text(run->setup.settings, "run"));
    if (run->saved < run->step) WEFT_TRY(save(run, error));
    return weft_checkpoints_wait(run->checkpoints, error);
}

void app_run_settle(app_run *run, const weft_error *error)
{
    weft_error ignored = {.rank = -1};
    if (run->checkpoints && (error->status == WEFT_NONFINITE || error->status == WEFT_CORRUPT))
        (void)!weft_checkpoints_wait(run->checkpoints, &ignored);
}

void app_run_close(app_run *run)
{
    stop_watch_close();
    stop_watch_end(&run->watch);
    app_board_close(&run->board);
    (void)!app_metrics_close(&run->metrics, NULL);
    app_tracing_close(&run->tracing);
    app_comparison_close(&run->comparison);
    weft_checkpoints_close(&run->checkpoints);
    app_lock_leave(&run->lock);
}
