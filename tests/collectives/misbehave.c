/* misbehave: a program whose ranks make a fixed series of calls, where one rank does something
 * wrong at one of them.
 *
 *     mpirun -n 4 misbehave count 3 --patience 3       rank 1 gives half the count in call site 3
 *     misbehave skip 7 --threads 4                     the same with ranks that are threads
 *
 * Every result of a call that returned WEFT_OK is checked: a wrong number is said on a line that
 * begins with WRONG. Ends with the exit status that our programs have (apps/app.c).
 */
#include "misbehave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/app.h"
#include "weft/watch.h"

plan the = {.rank = 1, .seconds = 6, .patience = 10};

/* What all make at a site where a way to misbehave has no meaning, so that it has one. */
static const site probe = {REDUCE, 3, 64, WEFT_F32, WEFT_SUM};

/* ---- the series ------------------------------------------------------------------------------ */

/* One rank at the site where it goes wrong, and the others there. */
static weft_status go_wrong(int rank, int round, weft_error *error)
{
    const misbehaviour *k = the.kind;
    site s = site_here(the.site);
    const bool has_meaning = k->actions >> s.action & 1, is_culprit = rank == the.rank;
    if (k->by_all) {
        if (is_culprit) say_when(rank);
        WEFT_TRY(k->act(rank, round, error));
    } else if (!has_meaning) {
        site tried = probe;
        if (is_culprit) say_when(rank), k->alter(&tried);
        WEFT_TRY(perform(rank, round, the.site, &tried, error));
    }
    if (is_culprit && has_meaning && !k->by_all) {
        say_when(rank);
        if (k->act) return k->act(rank, round, error);
        k->alter(&s);
    }
    return perform(rank, round, the.site, &s, error);
}

static void go_through(void *argument, int rank)
{
    weft_error *error = &the.errors[rank - weft_mesh_first_local(the.mesh)];
    const bool swaps = rank == the.rank && swaps_calls(the.kind);
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int at = 0; at < SITES; at++) {
            const site s = site_here(at);
            const bool is_bad = round == BAD_ROUND && at == the.site;
            const int before =
                the.site + 1; /* which a rank that swaps two calls has made already */
            if (swaps && (before < SITES ? round == BAD_ROUND && at == before
                                         : round == BAD_ROUND + 1 && at == 0))
                continue;
            if ((is_bad ? go_wrong(rank, round, error) : perform(rank, round, at, &s, error)) !=
                WEFT_OK)
                return;
            if (rank == the.rank && the.leaves_early) return;
        }
    }
}

/* ---- start and end --------------------------------------------------------------------------- */

static weft_status start(weft_world *world, weft_error *error)
{
    char text[64];
    const int n = the.threads > 0 ? the.threads : world->n_processes;
    if (n > MOST_RANKS || n % 2 != 0)
        return weft_fail(error, WEFT_USAGE, "%d ranks; misbehave takes 2, 4, 6 or 8", n);
    snprintf(text, sizeof text, "data:2,model:%d", n / 2);
    WEFT_TRY(weft_mesh_create(world, text, &the.mesh, error));
    WEFT_TRY(weft_comms_create(the.mesh, &the.comms, error));
    for (uint32_t axes = 1; axes < 4; axes++)
        WEFT_TRY(weft_comms_prepare(the.comms, axes, error));
    weft_watch_patience(the.patience);
    if (the.folder) WEFT_TRY(weft_watch_record(the.folder, error));
    if (the.threads == 0) WEFT_TRY(compile(0, "batch:data", 1, error));
    if (the.threads == 0) WEFT_TRY(compile(1, "batch:data", 3, error));
    return WEFT_OK;
}

static void go(weft_error *error)
{
    if (the.threads > 0)
        weft_mesh_each(the.mesh, go_through, NULL);
    else
        go_through(NULL, weft_mesh_first_local(the.mesh));
    for (int i = 0; i < weft_mesh_n_local(the.mesh); i++)
        if (error->status == WEFT_OK) *error = the.errors[i];
    if (error->status == WEFT_OK && !the.leaves_early) (void)weft_world_agree(error);
}

static bool read_option(const char *name, const char *text)
{
    if (strcmp(name, "--threads") == 0)
        the.threads = atoi(text);
    else if (strcmp(name, "--rank") == 0)
        the.rank = atoi(text);
    else if (strcmp(name, "--seconds") == 0)
        the.seconds = atof(text);
    else if (strcmp(name, "--patience") == 0)
        the.patience = atof(text);
    else if (strcmp(name, "--folder") == 0)
        the.folder = text;
    else
        return false;
    return true;
}

static bool read_arguments(int n, char **arguments)
{
    if (n < 3 || n % 2 != 1) return false;
    for (int i = 3; i < n; i += 2)
        if (!read_option(arguments[i], arguments[i + 1])) return false;
    the.site = atoi(arguments[2]);
    the.kind = find_misbehaviour(arguments[1]);
    return the.kind && the.site >= 0 && the.site < SITES;
}

int main(int n, char **arguments)
{
    weft_world world;
    weft_error error = {.rank = -1};
    app_phase phase = APP_STARTING;
    if (!read_arguments(n, arguments)) {
        fprintf(stderr, "misbehave KIND SITE [--threads N] [--rank R] [--seconds S] [--patience S] "
                        "[--folder DIR]\n");
        return 2;
    }
    weft_lanes_choose(1);
    if (app_join(&world, &error) == WEFT_OK && start(&world, &error) == WEFT_OK) {
        phase = APP_RUNNING;
        go(&error);
        if (error.status == WEFT_OK && weft_world_is_root()) fprintf(stderr, "misbehave: done\n");
    }
    forget(0);
    forget(1);
    weft_comms_destroy(&the.comms);
    weft_mesh_destroy(&the.mesh);
    return app_leave("misbehave", phase, &error);
}
