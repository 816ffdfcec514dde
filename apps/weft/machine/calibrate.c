/* calibrate: how fast this machine computes and exchanges, into a file. */
#include "../../calibrate.h"
#include "../beside.h"

#include "machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const option options[] = {
    {"out", OPTION_TEXT, "machine.json", "FILE", "Options",
     "where it goes; --machine FILE reads it"},
    {"name", OPTION_TEXT, "", "NAME", "Options", "what the machine is called; without it, here"},
    {"seconds", OPTION_COUNT, "60", "N", "Options", "that it may take, about", NULL, 1, 3600},
    {"add", OPTION_FLAG, "no", "", "Options", "of what the file says already keep what is faster"},
    {"noisy", OPTION_FLAG, "no", "", "Options",
     "write it even where something else disturbed the measuring"},
    {"for", OPTION_TEXT, "", "COMMAND", "Options",
     "the last option: a command that trains, as you type it, whose kernels are added to the file"},
};

const option_table calibrate_table = {
    .program = "weft calibrate",
    .usage =
        "weft calibrate [options]   measure this machine for --machine\n"
        "weft calibrate [options] --for gpt train --layers 4 --mesh data:2 --layout batch:data\n"
        "                           the kernels of that training too\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "measure how fast this machine computes and exchanges",
};

/* ---- of a program ------------------------------------------------------------------------------------ */

/* The program measures itself: it alone knows its plan. This process becomes it, under mpirun too. */
static weft_status become(const settings *s, int n, char **command, weft_error *error)
{
    static char calibrate[] = "--calibrate", seconds[] = "--calibrate-seconds", noisy[] = "--noisy";
    char path[4400], out[4096], time[24];
    char **all = calloc((size_t)n + 6, sizeof *all);
    if (!all) return weft_fail_memory(error, (size_t)n * sizeof *all);
    memcpy(all, command, (size_t)n * sizeof *all);
    snprintf(out, sizeof out, "%s", settings_text(s, "out"));
    snprintf(time, sizeof time, "%lld", (long long)settings_count(s, "seconds"));
    char *const more[] = {calibrate, out, seconds, time, settings_flag(s, "noisy") ? noisy : NULL};
    memcpy(all + n, more, sizeof more);
    find_program(command[0], path, sizeof path);
    (void)execvp(path, all);
    free(all);
    return weft_fail(error, WEFT_USAGE,
                     "--for %.100s: it cannot be started (%s); name a program that trains, as gpt "
                     "train, and its options",
                     command[0], strerror(errno));
}

static weft_status measure(const settings *s, weft_error *error)
{
    weft_world world;
    WEFT_TRY(app_join(&world, error));
    WEFT_TRY(weft_world_agree(error));
    const app_calibration calibration = {.path = settings_text(s, "out"),
                                         .name = settings_text(s, "name"),
                                         .seconds = (double)settings_count(s, "seconds"),
                                         .noisy = settings_flag(s, "noisy"),
                                         .adds = settings_flag(s, "add")};
    return app_calibrate(&world, &calibration, error);
}

/* Where --for is: what is behind it is a command line of its own. */
static int find_for(int n, char **arguments)
{
    int i = 0;
    while (i < n && strcmp(arguments[i], "--for") != 0)
        i++;
    return i;
}

int calibrate_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const int own = find_for(n, arguments);
    settings *s = settings_read(&calibrate_table, own, arguments, &error);
    if (s && own < n - 1)
        (void)!become(s, n - own - 1, arguments + own + 1, &error);
    else if (s && (own < n || *settings_text(s, "for")))
        weft_fail(&error, WEFT_USAGE,
                  "--for stands before a command that trains, as --for gpt train --layers 4");
    else if (s)
        (void)!measure(s, &error);
    settings_destroy(&s);
    return app_leave("weft calibrate", APP_STARTING, &error);
}
