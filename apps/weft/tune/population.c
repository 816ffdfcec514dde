/* population: members that go on from others. */
#include "population.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../app.h"
#include "../../run.h"

enum { MAX_PATH = 4200, MOST_OPEN = 16 };

/* ---- folders ----------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

static weft_status remove_tree(const char *path, weft_error *error)
{
    if (nftw(path, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
        return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot remove %.300s: %s", path, strerror(errno));
}

static bool copy_bytes(int from, int to)
{
    char bytes[1 << 16];
    for (ssize_t n; (n = read(from, bytes, sizeof bytes)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        for (ssize_t at = 0, put; at < n; at += put)
            if ((put = write(to, bytes + at, (size_t)(n - at))) < 0) {
                if (errno != EINTR) return false;
                put = 0;
            }
    }
    return true;
}

static bool copy_file(const char *from, const char *to)
{
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool is_copied = out >= 0 && copy_bytes(in, out);
    if (out >= 0 && close(out) != 0) is_copied = false;
    if (in >= 0) close(in);
    return is_copied;
}

/* nftw has no argument of ours: which tree goes where. */
static const char *copied_to;
static size_t copied_from;

/* Nobody writes into a file of a checkpoint that is whole: a second name for it will do, where the file system has those. */
static int copy_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    char to[2 * MAX_PATH];
    (void)facts;
    (void)place;
    snprintf(to, sizeof to, "%s%s", copied_to, path + copied_from);
    if (kind == FTW_D) return mkdir(to, 0777);
    return link(path, to) == 0 || copy_file(path, to) ? 0 : -1;
}

static bool copy_tree(const char *from, const char *to)
{
    copied_to = to;
    copied_from = strlen(from);
    return nftw(from, copy_one, MOST_OPEN, FTW_PHYS) == 0;
}

/* The newest checkpoint of a run directory, and its numbers, into another one. */
static weft_status copy_run(const char *from, const char *to, weft_error *error)
{
    char ckpt[MAX_PATH + 8], made[MAX_PATH + 8], one[MAX_PATH + 40], other[MAX_PATH + 40];
    int64_t *steps;
    int n;
    app_checkpoint_folder(from, ckpt, sizeof ckpt);
    app_checkpoint_folder(to, made, sizeof made);
    WEFT_TRY(app_steps(ckpt, &steps, &n, error));
    const int64_t newest = n > 0 ? steps[n - 1] : 0;
    free(steps);
    if (newest == 0)
        return weft_fail(error, WEFT_IO, "%.300s has no checkpoint for others to go on from", ckpt);
    WEFT_TRY(app_make_folder(made, error));
    snprintf(one, sizeof one, "%s/step_%08lld", ckpt, (long long)newest);
    snprintf(other, sizeof other, "%s/step_%08lld", made, (long long)newest);
    bool is_copied = copy_tree(one, other);
    snprintf(one, sizeof one, "%s/metrics.jsonl", from);
    snprintf(other, sizeof other, "%s/metrics.jsonl", to);
    is_copied = is_copied && copy_file(one, other);
    if (is_copied) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot copy %.200s into %.200s: %s", from, to,
                     strerror(errno));
}

/* The member's folder is there, or begins with what the other's has. What it leaves has no checkpoint any more: nobody goes on
 * from there. */
static weft_status move_in(const search *s, const trial *before, const trial *t, const trial *other,
                           weft_error *error)
{
    char to[MAX_PATH], fresh[MAX_PATH + 8], from[MAX_PATH], left[MAX_PATH + 8];
    trial_folder(s->launch.folder, t, to, sizeof to);
    trial_folder(s->launch.folder, other, from, sizeof from);
    snprintf(fresh, sizeof fresh, "%s.new", to);
    if (access(to, F_OK) != 0) {
        WEFT_TRY(remove_tree(fresh, error));
        WEFT_TRY(copy_run(from, fresh, error));
        if (rename(fresh, to) != 0)
            return weft_fail(error, WEFT_IO, "cannot rename %.300s: %s", fresh, strerror(errno));
    }
    trial_folder(s->launch.folder, before, from, sizeof from);
    app_checkpoint_folder(from, left, sizeof left);
    return remove_tree(left, error);
}

/* ---- a turn ------------------------------------------------------------------------------------- */

/* What is drawn for a member after a round: number `what` of it. */
static double draw(const search *s, int round, int member, int what)
{
    const uint64_t which = ((uint64_t)round * 1000003u + (uint64_t)member) * 64u + (uint64_t)what;
    return space_draw(s->seed ^ 0x706f70756c617465u, which);
}

static void note_round(const search *s, int round, int t, int from)
{
    trial *of = &s->trials[t];
    if (round >= s->n_rungs) return;
    memcpy(of->rounds[round].values, of->values, sizeof of->values);
    of->rounds[round].from = from;
}

/* One of the worst takes what one of the best has, and changes it. */
static weft_status replace(search *s, int round, int member, const int *best, int n_best,
                           weft_error *error)
{
    trial *t = &s->trials[member];
    const trial before = *t;
    const int other = best[(int)(draw(s, round, member, 0) * n_best)];
    for (int a = 0; a < s->launch.space->n; a++)
        space_near(&s->launch.space->axes[a], s->trials[other].values[a],
                   draw(s, round, member, a + 1), t->values[a]);
    t->life = round + 1;
    note_round(s, round + 1, member, other);
    return move_in(s, &before, t, &s->trials[other], error);
}

/* All who came to nothing count among the worst, as long as there is somebody to go on from. */
weft_status population_turn(search *s, int round, int *trials, int *n, weft_error *error)
{
    const int good = search_rank(s, round, trials, *n);
    const int quarter = *n / 4 > 0 ? *n / 4 : *n > 1;
    const int n_best = quarter < good ? quarter : good;
    int n_worst = *n - good > quarter ? *n - good : quarter;
    if (n_worst > *n - n_best) n_worst = *n - n_best;
    for (int i = 0; i < *n; i++)
        note_round(s, round + 1, trials[i], -1);
    if (good == 0) *n = 0;
    if (good == 0 || round + 1 == s->n_rungs) return WEFT_OK;
    for (int i = *n - n_worst; i < *n; i++)
        WEFT_TRY(replace(s, round, trials[i], trials, n_best, error));
    return WEFT_OK;
}

weft_status population_open(search *s, weft_error *error)
{
    for (int t = 0; t < s->n; t++) {
        s->trials[t].rounds = calloc((size_t)s->n_rungs, sizeof *s->trials[t].rounds);
        if (!s->trials[t].rounds)
            return weft_fail_memory(error, (size_t)s->n_rungs * sizeof *s->trials[t].rounds);
        note_round(s, 0, t, -1);
    }
    return WEFT_OK;
}
