/* training.h: a whole training program, made of a table of options, a loss, data, and what it does with the trained model.
 *
 *     static const app_training_parts parts = {.table = &table, .loss = loss, .open = open_data, .look = test};
 *     int main(int n, char **arguments)
 *     {
 *         return app_training_main(&parts, NULL, n, arguments);
 *     }
 *
 * Mesh, layout, optimizer, schedule, checkpoints, signals and exit status are the same for all of them, and so are the options
 * that say them.
 */
#ifndef WEFT_APPS_TRAINING_H
#define WEFT_APPS_TRAINING_H

#include "advise.h"
#include "app.h"
#include "feed.h"
#include "metrics.h"
#include "plan.h"
#include "rate.h"
#include "run.h"
#include "search.h"
#include "weft/optim.h"

/* The options it reads, for a program's table, by group. `dims`: what --layout may name. */
#define APP_PLACE_OPTIONS(dims)                                                                    \
    {"mesh", OPTION_TEXT, "", "AXES", "Where it runs", "as data:2,model:2; else data:N"},          \
        {"layout", OPTION_TEXT, "", "RULES", "Where it runs", "of dims " dims},                    \
        {"zero", OPTION_CHOICE, "0", "STAGE", "Where it runs", "sharded storage", "0 1 2 3"},      \
        APP_READERS_OPTION("Where it runs"), APP_EXTEND_OPTIONS("Where it runs")
#define APP_DTYPE_OPTION                                                                           \
    {                                                                                              \
        "dtype", OPTION_CHOICE, "f32", "TYPE", "Model", "numbers to compute in", "f32 f64"         \
    }
#define APP_LEARN_OPTIONS(steps, steps_help, batch, batch_help, rate, warmup, floor, clip)         \
    {"steps", OPTION_COUNT, steps, "N", "Learning", steps_help, NULL, 1},                          \
        {"until", OPTION_COUNT, "0",                                                               \
         "N",     "Learning",   "stop after this step, the schedule unchanged; 0: at the end"},    \
        {"batch", OPTION_COUNT, batch, "N", "Learning", batch_help, NULL, 1},                      \
        {"optimizer",                                                                              \
         OPTION_TEXT,                                                                              \
         "adamw",                                                                                  \
         "NAME",                                                                                   \
         "Learning",                                                                               \
         "sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, adamw, adamax, adafactor, "   \
         "lamb, lion, shampoo or muon"},                                                           \
        {"rate", OPTION_REAL, rate, "X", "Learning", "highest learning rate"},                     \
        APP_RATE_OPTIONS("Learning", warmup, floor),                                               \
    {                                                                                              \
        "clip", OPTION_REAL, clip, "X", "Learning", "largest norm of the gradient; 0: any"         \
    }
#define APP_CONTINUE_OPTIONS(folder)                                                               \
    {"run", OPTION_TEXT, folder, "DIR", "Continuing", "folder for checkpoints, metrics.jsonl"},    \
        APP_RUN_OPTIONS, APP_METRICS_OPTION("Continuing"), APP_TRACE_OPTION("Continuing"),         \
        APP_PLAN_OPTIONS("The plan"), APP_ADVICE_OPTION("Continuing"),                             \
        APP_SEARCH_OPTIONS("Search"),                                                              \
    {                                                                                              \
        "config", OPTION_TEXT, "", "FILE", "Continuing", "read settings from here first"           \
    }

/* [APP_LEARNS] is trained; [APP_LOOKS], over the same variables, is for what was learned. */
enum { APP_LEARNS, APP_LOOKS, APP_PROGRAMS };

typedef struct app_training {
    settings *settings;
    weft_world world;
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph[APP_PROGRAMS];
    weft_program *program[APP_PROGRAMS];
    weft_dataset *data[APP_PROGRAMS];
    app_held held; /* of --eval-data and the like */
    app_run run;
    uint64_t mark; /* app_run_setup's; begin or open may set it */
    void *own;     /* the program's */
} app_training;

typedef struct app_training_parts {
    const option_table *table;
    const char *hints; /* weft_search_options.hints */
    /* what options say together, before anything is made, and what the loss depends on: all ranks agree afterwards; NULL: none.
     * Local */
    weft_status (*begin)(app_training *training, weft_error *error);
    /* in graph[APP_LEARNS]; its errors may stay in the graph. Local */
    weft_value (*loss)(app_training *training);
    /* what a step does to the variables, by this rate, in place of an optimizer; NULL, or the invalid value: the optimizer of the
     * options. Local */
    weft_value (*update)(app_training *training, weft_value loss, weft_value rate);
    /* what a run does to other variables besides: a token of graph[APP_LEARNS]; NULL, or the invalid value: nothing. Local */
    weft_value (*beside)(app_training *training);
    /* data[APP_LEARNS]; all ranks agree afterwards. Local */
    weft_status (*open)(app_training *training, weft_error *error);
    /* where options ask for held-out data: held.batch, held.loss and held.right in held.graph, which is there; with has_data
     * held.data too. All ranks agree afterwards; NULL: its table has no such options. Local */
    weft_status (*hold)(app_training *training, bool has_data, weft_error *error);
    /* after the last step, unless the run was stopped; NULL: nothing. Collective */
    weft_status (*look)(app_training *training, weft_error *error);
    /* what begin made, however far it came; NULL: nothing. Local */
    void (*close)(app_training *training);
} app_training_parts;

/* app_training_main - all of it; behind the word search, a search for the quickest layout in its place. Collective over the job.
 * returns the exit status */
int app_training_main(const app_training_parts *parts, void *own, int n, char **arguments);

/* app_training_check_heads - --heads divides --width. app_training_check_data - --data names something: `what`, "a text to learn". Local. */
weft_status app_training_check_heads(const app_training *training, weft_error *error);
weft_status app_training_check_data(const app_training *training, const char *what,
                                    weft_error *error);
/* app_training_fact - what the samples to learn from are, besides what the library knows: data[APP_LEARNS] must be there. Local. */
weft_status app_training_fact(app_training *training, const char *name, int64_t number,
                              weft_error *error);
/* app_training_last - the step that ends the run: --until, or --steps. Local. */
int64_t app_training_last(const app_training *training);
/* app_training_dtype - what --dtype says. Local. */
weft_dtype app_training_dtype(const app_training *training);
/* app_training_graph - graph[APP_LOOKS]. Collective over the job. */
weft_status app_training_graph(app_training *training, weft_error *error);
/* app_training_look - program[APP_LOOKS], for values of that graph, over the variables that are trained. Collective over the mesh. */
weft_status app_training_look(app_training *training, weft_values values, weft_error *error);

#endif
