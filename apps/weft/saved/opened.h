/* opened.h: a saved program, on a mesh, with its variables: what `weft run` and `weft serve` have in common.
 *
 *     opened o = {.command = "weft run", .s = settings, .path = "net.weft"};
 *     WEFT_TRY(opened_begin(&o, false, &world, error));
 *     WEFT_TRY(opened_restore(&o, error));
 *     ... o.program ...
 *     opened_end(&o);                                     then app_close of settings, mesh and layout
 */
#ifndef WEFT_APPS_OPENED_H
#define WEFT_APPS_OPENED_H

#include "../../app.h"
#include "weft/program.h"
#include "weft/saved.h"

/* The options by which it is opened. */
#define OPENED_OPTIONS(group)                                                                      \
    {"checkpoint",                                                                                 \
     OPTION_TEXT,                                                                                  \
     "",                                                                                           \
     "PATH",                                                                                       \
     group,                                                                                        \
     "a run or checkpoint that has its variables; without it, the one it was saved with"},         \
        {"mesh", OPTION_TEXT, "", "AXES", group, "as for gpt; without it, that of the file"},      \
        {"layout", OPTION_TEXT,                                                                    \
         "",       "RULES",                                                                        \
         group,    "as for gpt; without it, that of the file, by the axes that the mesh has"},     \
        {"zero", OPTION_CHOICE, "0", "STAGE", group, "as for gpt", "0 1 2 3"},                     \
        APP_EXTEND_OPTIONS(group)

typedef struct opened {
    const char *command; /* for what is said on stderr */
    settings *s;         /* with OPENED_OPTIONS */
    const char *path;    /* of the file */
    weft_graph *graph;
    const weft_saved *saved; /* the graph's */
    weft_mesh *mesh;
    weft_layout *layout;
    weft_program *program;
} opened;

/* opened_begin - the file loaded, and compiled for the mesh and layout that the options say, or the file. Collective over the job.
 *
 * is_plan  as of app_begin */
weft_status opened_begin(opened *o, bool is_plan, weft_world *world, weft_error *error);
/* opened_restore - its variables from --checkpoint, or the file's. Collective over the job; agrees on failure. */
weft_status opened_restore(opened *o, weft_error *error);
/* What can be read after a run. */
typedef struct opened_output {
    weft_value value;
    char name[WEFT_MAX_PATH + 16]; /* its own, or "output0" by its place */
} opened_output;
/* opened_outputs - all of them; updates, which have no numbers, are none. To be freed. Local. returns besides: WEFT_USAGE where two have
 * one name */
weft_status opened_outputs(const weft_saved *saved, opened_output **all, int *n, weft_error *error);

/* opened_end - program and graph. */
void opened_end(opened *o);

#endif
