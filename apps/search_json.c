/* search_json: what a search found, as JSON (schemas/search.schema.json). */
#include "search.h"

#include "json.h"

#include <string.h>

static json_t *knobs_of(const weft_choice *choice)
{
    json_t *all = json_object();
    for (int k = 0; k < choice->n_knobs; k++) {
        const weft_knob *knob = &choice->knobs[k];
        const int64_t value = choice->values[k];
        json_object_set_new(all, knob->name,
                            knob->words ? json_string(knob->words[value]) : json_integer(value));
    }
    return all;
}

static json_t *phases_of(const weft_prediction *p)
{
    json_t *all = json_object();
    for (int i = 0; i < WEFT_PHASES; i++)
        json_object_set_new(all, weft_phase_name((weft_phase)i),
                            app_json_number(p->phase_seconds[i]));
    return all;
}

/* What is no UTF-8, as the name of a file may be, becomes "?". */
static json_t *text_json(const char *text)
{
    char whole[4096];
    json_t *value = json_string(text);
    if (value) return value;
    snprintf(whole, sizeof whole, "%s", text);
    for (char *at = whole; *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    return json_string(whole);
}

static json_t *choice_json(const app_search *search, const weft_found_choice *c, double measured)
{
    const weft_prediction *p = &c->prediction;
    char command[4096];
    app_search_command(search, &c->choice, command, sizeof command);
    return json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "mesh", c->choice.mesh,
        "layout", c->choice.layout, "zero", c->choice.zero, "options", knobs_of(&c->choice),
        "seconds", app_json_number(p->seconds), "measured_seconds",
        measured > 0 ? app_json_number(measured) : json_null(), "bytes", (json_int_t)c->bytes,
        "floor_seconds", app_json_number(c->floor_seconds), "work_seconds",
        app_json_number(p->work_seconds), "exchange_seconds", app_json_number(p->exchange_seconds),
        "exposed_seconds", app_json_number(p->exposed_seconds), "phases", phases_of(p), "command",
        text_json(command));
}

static json_t *best_of(const app_search *search, const app_search_result *result)
{
    json_t *all = json_array();
    for (int i = 0; i < result->found.n; i++)
        json_array_append_new(all,
                              choice_json(search, &result->found.best[i], result->measured[i]));
    return all;
}

static json_t *turns_of(const app_search_result *result)
{
    const weft_turn *turns = result->turns;
    json_t *all = json_array();
    for (int i = 0; i < result->n_turns; i++)
        json_array_append_new(
            all, json_pack("{s:s, s:o}", "what", turns[i].what, "factor",
                           turns[i].factor > 0 ? app_json_number(turns[i].factor) : json_null()));
    return all;
}

weft_status app_search_json(const app_search *search, const app_search_result *result,
                            weft_error *error)
{
    const weft_search_options *options = result->options;
    const weft_found *found = &result->found;
    const weft_left_out *out = &found->left_out;
    json_t *all = json_pack(
        "{s:i, s:s, s:I, s:i, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:o}, s:b, s:b, s:o, s:o, "
        "s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o}",
        "ranks", options->ranks, "machine", weft_machine_model_name(options->machine), "memory",
        (json_int_t)options->memory, "roles", found->n_roles, "choices",
        (json_int_t)found->n_choices, "planned", (json_int_t)found->n_planned, "estimated",
        (json_int_t)found->n_estimated, "misfits", (json_int_t)found->n_misfits, "left_out",
        "memory", (json_int_t)out->memory, "floors", (json_int_t)out->floors, "unlooked",
        (json_int_t)out->unlooked, "refused", (json_int_t)out->illegal, "sentence",
        text_json(out->sentence), "is_exact", (int)found->is_exact, "out_of_time",
        (int)found->out_of_time, "least_seconds", app_json_number(found->least_seconds),
        "floor_part", app_json_number(found->floor_part), "guess_seconds",
        app_json_number(found->guess_seconds), "guess_error", app_json_number(found->guess_error),
        "seconds", app_json_number(found->seconds), "best", best_of(search, result), "tie_seconds",
        app_json_number(found->tie_seconds), "chosen",
        choice_json(search, app_search_chosen(result), result->measured[0]), "beyond",
        found->beyond.bytes > 0 ? choice_json(search, &found->beyond, 0) : json_null(), "turns",
        turns_of(result));
    const bool is_written =
        all && json_dumpf(all, stdout, JSON_INDENT(1)) == 0 && puts("") >= 0 && fflush(stdout) == 0;
    json_decref(all);
    WEFT_TRY(app_json_status(error));
    if (is_written) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write to stdout");
}
