/* calibrate: how fast this machine computes and exchanges, into a file. */
#include "../../calibrate.h"

#include "machine.h"

static const option options[] = {
    {"out", OPTION_TEXT, "machine.json", "FILE", "Options",
     "where it goes; --machine FILE reads it"},
    {"name", OPTION_TEXT, "", "NAME", "Options", "what the machine is called; without it, here"},
    {"seconds", OPTION_COUNT, "60", "N", "Options", "that it may take, about", NULL, 1, 3600},
    {"add", OPTION_FLAG, "no", "", "Options", "of what the file says already keep what is faster"},
    {"noisy", OPTION_FLAG, "no", "", "Options",
     "write it even where something else disturbed the measuring"},
};

const option_table calibrate_table = {
    .program = "weft calibrate",
    .usage = "weft calibrate [options]   measure this machine for --machine\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "measure how fast this machine computes and exchanges",
};

int calibrate_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    weft_world world;
    settings *s = settings_read(&calibrate_table, n, arguments, &error);
    if (s && app_join(&world, &error) == WEFT_OK && weft_world_agree(&error) == WEFT_OK) {
        const app_calibration calibration = {.path = settings_text(s, "out"),
                                             .name = settings_text(s, "name"),
                                             .seconds = (double)settings_count(s, "seconds"),
                                             .noisy = settings_flag(s, "noisy"),
                                             .adds = settings_flag(s, "add")};
        (void)!app_calibrate(&world, &calibration, &error);
    }
    settings_destroy(&s);
    return app_leave("weft calibrate", APP_STARTING, &error);
}
