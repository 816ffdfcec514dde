/* held.h: data that nothing is learned from, and what a model in training makes of it: the options, the program that looks, one look.
 *
 *     WEFT_TRY(app_held_check(s, error));
 *     if (app_held_is_wanted(s)) {
 *         ... held.data, held.graph, held.loss and held.batch are set
 *         WEFT_TRY(app_held_count(&held, s, error));
 *         WEFT_TRY(app_held_compile(&held, mesh, layout, &options, error));
 *     }
 *     if (app_held_is_due(&held, s, step, last)) WEFT_TRY(app_held_look(&held, &numbers, error));
 *
 * The program shares the variables of the one that is trained, and has no dropout. A look changes nothing that training reads.
 */
#ifndef WEFT_APPS_HELD_H
#define WEFT_APPS_HELD_H

#include <jansson.h>

#include "options.h"
#include "weft/io.h"

/* For a program's table; where there is no file to name, as what is held out is drawn, APP_EVAL_OPTIONS alone. */
#define APP_EVAL_OPTIONS(group, steps, least)                                                      \
    {"eval-every", OPTION_COUNT,                                                                   \
     "0",          "N",                                                                            \
     group,        "steps between two looks at the loss of held-out data; 0: only at the end"},    \
        {"eval-steps", OPTION_COUNT, steps,                                                        \
         "N",          group,        "batches of it at each look, the same each time; 0: all",     \
         NULL,         least},                                                                     \
    {                                                                                              \
        "best", OPTION_FLAG, "no", "", group,                                                      \
            "keep the checkpoint of the lowest such loss beside the newest"                        \
    }
#define APP_HELD_OPTIONS(group, unit, help)                                                        \
    {"eval-data", OPTION_TEXT, "", unit, group, help},                                             \
        {"eval-share", OPTION_REAL,                                                                \
         "0",          "X",                                                                        \
         group,        "in place of --eval-data: hold out the last X of --data, as 0.05"},         \
        APP_EVAL_OPTIONS(group, "0", 0)

typedef struct app_held {
    weft_graph *graph;
    weft_program *program;
    weft_dataset *data;     /* NULL: nothing is held out */
    weft_value loss, right; /* of a batch, scalars; right: how many are; id 0: that is not asked */
    int64_t batch, n_batches;
} app_held;

typedef struct app_held_numbers {
    bool is_there;   /* false: there was no look, or it was cut short */
    double loss;     /* mean of all batches; may be no number */
    double accuracy; /* where `right` is asked, else NaN */
} app_held_numbers;

/* app_held_is_wanted - whether options ask for held-out data; never where the table has none of them. Local; pure. */
bool app_held_is_wanted(const settings *s);
/* app_held_check - whether what they say fits together. Local. */
weft_status app_held_check(const settings *s, weft_error *error);
/* app_held_split - of a set that was opened on --data what is learned from, or the last --eval-share of it; nothing where that is 0.
 * Before the set is started. Local. */
weft_status app_held_split(const settings *s, bool is_held, weft_dataset *data, weft_error *error);
/* app_held_count - how many batches a look takes; the data's facts say it. Local. */
weft_status app_held_count(app_held *held, const settings *s, weft_error *error);
/* app_held_compile - the program, by options.share, and the data bound to it. Collective over the mesh; agrees on failure. On a mesh
 * without ranks: Local, and no data is bound. */
weft_status app_held_compile(app_held *held, weft_mesh *mesh, weft_layout *layout,
                             const weft_compile_options *options, weft_error *error);
/* app_held_is_due - whether there is a look after a step: the last one, and each of --eval-every. Local; pure. */
bool app_held_is_due(const app_held *held, const settings *s, int64_t step, int64_t last);
/* app_held_look - what the model makes of it now. A signal that asks the process to end cuts it short: no numbers. Collective over the
 * job. */
weft_status app_held_look(app_held *held, app_held_numbers *numbers, weft_error *error);
/* app_held_plan - print, by the root, what looks take, beside the plan of a step: memory, and on --machine time. Local. */
weft_status app_held_plan(const app_held *held, const settings *s, weft_error *error);
/* app_held_json - the same as an object, own it; NULL where nothing is held out. Local. */
weft_status app_held_json(const app_held *held, const settings *s, json_t **json,
                          weft_error *error);
void app_held_close(app_held *held);

#endif
