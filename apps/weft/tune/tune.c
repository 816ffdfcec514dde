/* tune: `weft tune`: the options of a training that learn best, searched for by many trainings. */
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../beside.h"
#include "program.h"
#include "results.h"

static const option options[] = {
    {"vary", OPTION_TEXT, "", "WHAT", "The search",
     "options of the program and their values: rate=1e-4..1e-1:log,batch=32|64"},
    {"search", OPTION_CHOICE, "random", "HOW", "The search",
     "points that fill the space evenly, every value, or some that learn of the best",
     "random grid population"},
    {"trials", OPTION_COUNT, "20", "N", "The search", "trainings; of a grid as many as it has",
     NULL, 1, 100000},
    {"points", OPTION_COUNT, "5", "N", "The search", "of a grid: values of each range", NULL, 1,
     1000},
    {"halving", OPTION_COUNT, "0", "N", "The search",
     "train all for few steps, the better part for N times as many, and so on; 0: all to the end",
     NULL, 0, 100},
    {"climb", OPTION_COUNT, "0", "N", "The search",
     "then N more trainings to the end, each a step along a range from the best until then", NULL,
     0, 1000},
    {"rounds", OPTION_COUNT, "8", "N", "The search",
     "of a population: then the worst quarter goes on from the best, changed a little", NULL, 2,
     TRIAL_RUNGS},
    {"by", OPTION_TEXT, "loss", "NAME", "The search",
     "what counts: a number of metrics.jsonl, its mean over the last ten steps; the lowest, or the "
     "highest with NAME:highest"},
    {"seed", OPTION_COUNT, "1", "N", "The search", "where the points begin"},
    {"at-once", OPTION_COUNT, "1", "N", "Where it runs",
     "trials beside each other, each on cores of its own", NULL, 1, 256},
    {"ranks", OPTION_FLAG, "no", "", "Where it runs",
     "a rank for each core of a part: --mesh data:N --layout batch:data; a trial that goes on in a "
     "larger part takes its checkpoint there"},
    {"max-time", OPTION_TIME, "", "TIME", "Where it runs",
     "stop after so long; the same command goes on: 90s, 30m, 2h"},
    {"run", OPTION_TEXT, "runs/tune", "DIR", "Output",
     "folder for results, a picture, and the run of each trial"},
    {"show", OPTION_COUNT, "10", "N", "Output", "the best N trials in the table", NULL, 1},
    {"quiet", OPTION_FLAG, "no", "", "Output", "no line for each trial"},
    {"json", OPTION_FLAG, "no", "", "Output", "the results as data"},
};
const option_table tune_table = {
    .program = "weft tune",
    .usage = "weft tune --vary WHAT [options] -- PROGRAM ...   train many times, and tell\n"
             "                                                 what learns best\n"
             "\n"
             "  weft tune --vary rate=1e-4..1e-1:log,batch=32|64|128 --trials 11 \\\n"
             "      --halving 27 --climb 4 -- mnist --data t10k --steps 405\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "search for the options that a training learns best with",
};

/* ---- what is asked for ------------------------------------------------------------------------- */

static void read_by(const char *text, char *by, size_t room, bool *is_highest)
{
    const size_t n = strlen(text), tail = strlen(":highest");
    *is_highest = n > tail && strcmp(text + n - tail, ":highest") == 0;
    const bool is_lowest =
        n > strlen(":lowest") && strcmp(text + n - strlen(":lowest"), ":lowest") == 0;
    const size_t cut = *is_highest ? tail : is_lowest ? strlen(":lowest") : 0;
    snprintf(by, room, "%.*s", (int)(n - cut), text);
}

/* --steps of the command; 0: it has none. */
static int64_t steps_of(char *const *command, int n)
{
    int64_t steps = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(command[i], "--steps") == 0 && i + 1 < n) steps = atoll(command[i + 1]);
        if (strncmp(command[i], "--steps=", 8) == 0) steps = atoll(command[i] + 8);
    }
    return steps > 0 ? steps : 0;
}

/* As many rungs as there are trials to halve, and steps. */
static int rungs_of(int n, int eta, int64_t steps)
{
    int rungs = 1;
    for (int64_t left = n, first = steps;
         eta > 1 && left > 1 && first >= eta && rungs < TRIAL_RUNGS; rungs++) {
        left = (left + eta - 1) / eta;
        first /= eta;
    }
    return rungs;
}

static weft_status check_population(const settings *s, const search *all, weft_error *error)
{
    const long long rounds = settings_count(s, "rounds"), trials = settings_count(s, "trials");
    if (all->eta > 0)
        return weft_fail(error, WEFT_USAGE,
                         "--search population trains all members to the end, and --halving %d does "
                         "not; leave out one of the two",
                         all->eta);
    if (all->n_climb > 0)
        return weft_fail(
            error, WEFT_USAGE,
            "--search population draws near the best after each round, and has no last "
            "rung for --climb %d to begin at; leave out one of the two",
            all->n_climb);
    if (trials < 2)
        return weft_fail(error, WEFT_USAGE,
                         "--search population --trials %lld: one member has nobody to go on from; "
                         "give 2 or more",
                         trials);
    if (all->steps < rounds)
        return weft_fail(error, WEFT_USAGE,
                         "--search population has %lld rounds, and the program is to train %lld "
                         "steps; give the program --steps of %lld or more",
                         rounds, (long long)all->steps, rounds);
    return WEFT_OK;
}

static weft_status read_space(const settings *s, space *sp, weft_error *error)
{
    if (*settings_text(s, "vary")) return space_read(settings_text(s, "vary"), sp, error);
    return weft_fail(error, WEFT_USAGE,
                     "there is nothing to vary; name options and values with --vary, as "
                     "rate=1e-4..1e-1:log");
}

static bool has_range(const space *sp)
{
    int a = 0;
    while (a < sp->n && sp->axes[a].n > 0)
        a++;
    return a < sp->n;
}

static weft_status check(const settings *s, const search *all, weft_error *error)
{
    if (settings_count(s, "halving") == 1)
        return weft_fail(error, WEFT_USAGE,
                         "--halving 1 leaves all trials: 2 is the least, 0 is none");
    if (all->eta > 0 && all->steps == 0)
        return weft_fail(
            error, WEFT_USAGE,
            "--halving %d has to know how long a training is; give the program --steps N",
            all->eta);
    if (all->n_climb > 0 && !has_range(all->launch.space))
        return weft_fail(error, WEFT_USAGE,
                         "--climb %d steps along ranges, and --vary has lists alone; give a range, "
                         "as rate=1e-4..1e-1:log",
                         all->n_climb);
    return all->is_population ? check_population(s, all, error) : WEFT_OK;
}

static weft_status draw_trials(search *all, weft_error *error)
{
    const space *sp = all->launch.space;
    double *shares = calloc((size_t)all->n, (size_t)sp->n * sizeof *shares);
    if (!shares) return weft_fail_memory(error, (size_t)all->n * (size_t)sp->n * sizeof *shares);
    const weft_status status = space_at_random(sp, all->seed, all->n, shares, error);
    for (int t = 0; status == WEFT_OK && t < all->n; t++)
        for (int a = 0; a < sp->n; a++)
            space_value(&sp->axes[a], shares[(size_t)t * (size_t)sp->n + (size_t)a],
                        all->trials[t].values[a]);
    free(shares);
    return status;
}

static weft_status make_trials(const settings *s, search *all, weft_error *error)
{
    const space *sp = all->launch.space;
    const bool is_grid = settings_is(s, "search", "grid");
    const int points = (int)settings_count(s, "points");
    const int64_t n = is_grid ? space_trials(sp, points) : settings_count(s, "trials");
    if (n > 100000)
        return weft_fail(
            error, WEFT_USAGE,
            "the grid has %lld trials, more than 100000; name fewer values, or --points",
            (long long)n);
    all->n = (int)n;
    all->trials = calloc((size_t)(n + all->n_climb), sizeof *all->trials);
    if (!all->trials) return weft_fail_memory(error, (size_t)n * sizeof *all->trials);
    all->n_rungs = all->is_population ? (int)settings_count(s, "rounds")
                                      : rungs_of(all->n, all->eta, all->steps);
    for (int t = 0; t < all->n; t++) {
        all->trials[t].number = t;
        for (int a = 0; is_grid && a < sp->n; a++)
            space_on_grid(sp, points, t, a, all->trials[t].values[a]);
    }
    return is_grid ? WEFT_OK : draw_trials(all, error);
}

/* What makes it another search. */
static weft_status tell_about(const settings *s, const search *all, char *text, size_t room,
                              weft_error *error)
{
    static const char *const names[] = {"vary",    "search", "trials", "points",
                                        "halving", "by",     "seed"};
    size_t used = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "--%s %s ", names[i],
                                 settings_text(s, names[i]));
    if (used < room && all->is_population)
        used += (size_t)snprintf(text + used, room - used, "--rounds %d ", all->n_rungs);
    if (used < room && all->n_climb > 0)
        used += (size_t)snprintf(text + used, room - used, "--climb %d ", all->n_climb);
    /* Points that an older build drew lie elsewhere. */
    if (used < room && space_is_sliced(all->launch.space) && !settings_is(s, "search", "grid"))
        used +=
            (size_t)snprintf(text + used, room - used, "(points even for each value of a list) ");
    if (used < room) used += (size_t)snprintf(text + used, room - used, "--");
    for (int i = 0; i < all->launch.n && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, " %s", all->launch.command[i]);
    if (used < room) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "the command is longer than %zu letters; put options of the program into a "
                     "file, and name it with --config FILE",
                     room - 1);
}

/* ---- the command line -------------------------------------------------------------------------- */

static weft_status tell(const settings *s, const search *all, weft_error *error)
{
    char path[4200];
    snprintf(path, sizeof path, "%.4000s/tune.svg", all->launch.folder);
    WEFT_TRY(results_picture(all, path, error));
    if (settings_flag(s, "json")) return results_json(all, error);
    WEFT_TRY(results_table(all, (int)settings_count(s, "show"), error));
    printf("a picture is in %s\n", path);
    if (all->is_stopped) puts("stopped early; the same command goes on");
    return WEFT_OK;
}

static weft_status run(const settings *s, search *all, weft_error *error)
{
    char about[SEARCH_ABOUT];
    WEFT_TRY(tell_about(s, all, about, sizeof about, error));
    WEFT_TRY(search_open(all, about, error));
    WEFT_TRY(search_run(all, error));
    return tell(s, all, error);
}

static weft_status tune(const settings *s, int n, char *const *command, search *all,
                        weft_error *error)
{
    static char program[4400], by[64];
    static space sp;
    find_program(command[0], program, sizeof program);
    read_by(settings_text(s, "by"), by, sizeof by, &all->is_highest);
    all->launch = (launch){.space = &sp,
                           .command = command,
                           .n = n,
                           .folder = settings_text(s, "run"),
                           .program = program,
                           .makes_mesh = settings_flag(s, "ranks")};
    all->by = by;
    all->says = !settings_flag(s, "quiet") && !settings_flag(s, "json");
    all->eta = (int)settings_count(s, "halving");
    all->n_climb = (int)settings_count(s, "climb");
    all->steps = steps_of(command, n);
    all->is_population = settings_is(s, "search", "population");
    all->seed = (uint64_t)settings_count(s, "seed");
    all->at_once = (int)settings_count(s, "at-once");
    all->max_seconds = settings_seconds(s, "max-time");
    WEFT_TRY(read_space(s, &sp, error));
    WEFT_TRY(check(s, all, error));
    WEFT_TRY(program_check(program, command, n, &sp, all->eta > 0 || all->is_population, error));
    WEFT_TRY(make_trials(s, all, error));
    return run(s, all, error);
}

int tune_main(int n, char **arguments)
{
    int own = 0;
    search all = {.results = -1};
    weft_error error = {.rank = -1};
    while (own < n && strcmp(arguments[own], "--") != 0)
        own++;
    settings *s = settings_read(&tune_table, own, arguments, &error);
    if (s && own + 1 < n)
        (void)!tune(s, n - own - 1, arguments + own + 1, &all, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE,
                  "what is to be tuned? Write it behind --, as weft tune --vary rate=1e-3|1e-2 -- "
                  "mnist --steps 100");
    search_close(&all);
    for (int t = 0; all.trials && t < all.n; t++)
        free(all.trials[t].rounds);
    free(all.trials);
    settings_destroy(&s);
    const int code = app_leave(tune_table.program, APP_STARTING, &error);
    return code == 0 && all.is_stopped ? APP_STOPPED : code;
}
