/* app.h: what every program of ours does first and last. */
#ifndef WEFT_APPS_APP_H
#define WEFT_APPS_APP_H

#include "options.h"
#include "weft/collectives.h"

/* Until its first step a program can blame what it was given; from then on it cannot. */
typedef enum app_phase { APP_STARTING, APP_RUNNING, APP_PHASES } app_phase;
enum { APP_STOPPED = 75 /* exit status of a run that was stopped early: start it again */ };

/* app_join - weft_world_open. The first thing after it is to agree (weft_world_agree): a rank that
 * failed before it could join says so there, in app_leave. Collective over the job. */
weft_status app_join(weft_world *world, weft_error *error);
/* app_leave - the last call of main: agree on the first failure unless joined, print "program:
 * sentence" from the root rank, leave the world, and give the exit status that goes with the
 * failure (docs/reliability.md has the table). Collective over the job, joined or not: a launcher
 * ends all ranks when the first one fails, so nobody may be gone before the root has spoken. */
int app_leave(const char *program, app_phase phase, const weft_error *error);

/* The options of what comes from outside, and of the device, for a program's table. */
#define APP_EXTEND_OPTIONS(group)                                                                  \
    {"plugin",                                                                                     \
     OPTION_TEXT,                                                                                  \
     "",                                                                                           \
     "FILES",                                                                                      \
     group,                                                                                        \
     "shared libraries that add optimizers, kernels, engines, with : between them; loaded first"}, \
        {"engine",                                                                                 \
         OPTION_TEXT,                                                                              \
         "",                                                                                       \
         "NAME",                                                                                   \
         group,                                                                                    \
         "by which ranks exchange: threads, mpi, nccl, or of a plug-in; without it, what is "      \
         "there"},                                                                                 \
        {"deterministic",                                                                          \
         OPTION_FLAG,                                                                              \
         "no",                                                                                     \
         "",                                                                                       \
         group,                                                                                    \
         "sums between ranks in the order of the ranks, on GPUs too: the bits of other engines"},  \
        {"device", OPTION_TEXT,                                                                    \
         "cpu",    "NAME",                                                                         \
         group,    "where tensors live: cpu, cuda, or auto: cuda where there is one, else cpu"},   \
        {"device-path", OPTION_TEXT, "",                                                           \
         "DIR",         group,       "where libweft_cuda.so is; without it, beside libweft.so"},   \
    {                                                                                              \
        "lanes", OPTION_COUNT, "0", "N", group,                                                    \
            "threads of each rank, at most 1024; 0: as many as its share of the cores", NULL, 0,   \
            WEFT_MAX_LANES                                                                         \
    }
/* app_extend - load what --plugin names, and choose --engine, --device and --lanes. Local, before the mesh is made;
 * the caller agrees. */
weft_status app_extend(const settings *s, weft_error *error);

/* app_device_path - tell the library what --device-path says. Local. */
void app_device_path(const settings *s);

/* app_begin - join the world, app_extend. app_lay_out - mesh and layout as --mesh, --layout and --zero say. app_open - both. Collective
 * over the job.
 *
 * is_plan  the mesh has no ranks: it is for a plan. All processes say the same, or it fails */
weft_status app_begin(const settings *s, bool is_plan, weft_world *world, weft_error *error);
weft_status app_lay_out(const settings *s, bool is_plan, const weft_world *world, weft_mesh **mesh,
                        weft_layout **layout, weft_error *error);
weft_status app_open(const settings *s, bool is_plan, weft_world *world, weft_mesh **mesh,
                     weft_layout **layout, weft_error *error);
/* app_close - destroys what app_open made, then app_leave. */
int app_close(const option_table *table, settings **s, weft_mesh **mesh, weft_layout **layout,
              app_phase phase, const weft_error *error);

/* app_name_options - where the library's sentence names a function, the option that stands for it here. Local. */
void app_name_options(weft_error *error);

/* app_find_command - which of names [n] a command's subcommand is. Local. returns its number; -1 and WEFT_USAGE, with the nearest
 * name or all of them, for one that it has not. */
int app_find_command(const char *command, const char *name, const char *const *names, int n,
                     weft_error *error);

/* app_put_byte - a byte of a text to stdout; one that would confuse a terminal is shown as ?. Local. */
void app_put_byte(int byte);

/* Beside checkpoints that came from another program: options of the model, {"options": {"epsilon": "1e-6"}}. */
#define APP_MODEL_FILE "model.json"

/* app_steps - the steps of the checkpoints in a folder, ascending, to be freed; none where it is not there. Local. */
weft_status app_steps(const char *folder, int64_t **steps, int *n, weft_error *error);

#endif
