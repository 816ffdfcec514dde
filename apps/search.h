/* search.h: `gpt search`, and the same of every program that trains: the quickest mesh, layout and options on a machine.
 *
 * The program says how its graph is built for a choice, and which knobs it has. All else is the same for all of them.
 */
#ifndef WEFT_APPS_SEARCH_H
#define WEFT_APPS_SEARCH_H

#include "app.h"
#include "weft/research/search.h"

#define APP_SEARCH_OPTIONS(group)                                                                  \
    {"ranks", OPTION_COUNT,  "0", "N", group, "search: how many ranks there are to place", NULL,   \
     0,       WEFT_MAX_RANKS},                                                                     \
        {"memory", OPTION_TEXT,                                                                    \
         "",       "BYTES",                                                                        \
         group,    "search: that a rank has, as 80GB or 64GiB; without it, any number"},           \
        {"vary", OPTION_TEXT,                                                                      \
         "",     "NAMES",                                                                          \
         group,  "search: mesh, layout, zero and options of the program; without it, all"},        \
        {"within", OPTION_TIME, "0s",                                                              \
         "TIME",   group,       "search: end it after so long, as 10s; 0s: when it is done",       \
         NULL,     -1},                                                                            \
        {"plans", OPTION_COUNT, "300",                                                             \
         "N",     group,        "search: how many choices to plan at most; 0: any number"},        \
    {                                                                                              \
        "measure", OPTION_COUNT, "0", "K", group,                                                  \
            "search: run the K best and the choice without it here, and believe the clock", NULL,  \
            0, WEFT_MAX_FOUND                                                                      \
    }

typedef struct app_search {
    const settings *settings; /* borrowed */
    const weft_world *world;  /* borrowed */
    const char *command;      /* "gpt train" */
    weft_search_builder build;
    void *context;
    int n_knobs;
    weft_knob knobs[WEFT_MAX_KNOBS];
    const char *hints; /* as weft_search_options has them */
    int64_t layers;
    const char *layers_knob;
} app_search;

/* app_search_check - whether what is about a search comes with it. Local. */
weft_status app_search_check(const settings *s, bool is_search, weft_error *error);

/* app_search_knob - one more: the option `name` of the program with these values [n], of which what it is set to comes first; those that are
 * not from 1 to `most` are left out. A flag has both values. Local. */
void app_search_knob(app_search *search, const char *name, bool is_flag, const int64_t *values,
                     int n, int64_t most);

/* app_search_word_knob - one more whose values are words [n], of which one is set: it varies only where --vary names it. `words` stays. Local. */
void app_search_word_knob(app_search *search, const char *name, const char *const *words, int n);

/* app_search_settings - the settings of a choice: those of the search, with mesh, layout, stage and the knobs' values in them, and
 * `layers` where it is not 0. Own it. Local. */
settings *app_search_settings(const app_search *search, const weft_choice *choice,
                              weft_error *error);

/* app_search_run - search, and print what was found, or as JSON. Local: on the root alone. */
weft_status app_search_run(const app_search *search, weft_error *error);

/* What a search came to. */
typedef struct app_search_result {
    const weft_search_options *options;
    weft_found found;
    double measured
        [WEFT_MAX_FOUND]; /* seconds of a step here, of each of the best; 0: it was not run */
    int n_turns;
    weft_turn turns[WEFT_MAX_TURNS]; /* of the second */
} app_search_result;

/* app_search_chosen - what to type: the plainest of a tie; of what was measured the quickest. Pure. */
static inline const weft_found_choice *app_search_chosen(const app_search_result *result)
{
    return result->measured[0] > 0 ? &result->found.best[0] : &result->found.chosen;
}

/* search_print.c: what was found as text; search_json.c: as JSON. Local. */
void app_search_print(const app_search *search, const app_search_result *result);
weft_status app_search_json(const app_search *search, const app_search_result *result,
                            weft_error *error);
/* app_search_same - whether both are printed alike. Pure. */
bool app_search_same(const weft_choice *a, const weft_choice *b);
/* app_search_command - the command that trains by a choice. Local. */
void app_search_command(const app_search *search, const weft_choice *choice, char *text,
                        size_t room);

/* search_measure.c: whether so many ranks can run here: asked before the search, which may be long. Local. */
weft_status app_search_measure_check(const app_search *search, int ranks, weft_error *error);
/* The best `n` and what is chosen without a clock run here, ten at most, some steps each, and are put in the order of their fastest steps.
 * Inputs are zeros. Local. */
weft_status app_search_measure(const app_search *search, int n, app_search_result *result,
                               weft_error *error);

#endif
