/* plan: --dry-run: the plan of a training step in place of the training. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "whole_file.h"

weft_status app_plan_check(const settings *s, weft_error *error)
{
    const bool is_plan = settings_flag(s, "dry-run");
    if (settings_flag(s, "json") && !is_plan && settings_count(s, "ranks") == 0)
        return weft_fail(error, WEFT_USAGE,
                         "--json is a form of the plan; give --dry-run as well, or use "
                         "--metrics FILE for a run's numbers");
    if (settings_flag(s, "explain") && !is_plan)
        return weft_fail(error, WEFT_USAGE, "--explain is about the plan; give --dry-run as well");
    return app_predict_check(s, error);
}

static bool measures(const settings *s)
{
    return *settings_text(s, "calibrate") != '\0';
}

bool app_only_plans(const settings *s)
{
    return settings_flag(s, "dry-run") || measures(s);
}

/* NULL is nothing; takes `value`. */
static int put(json_t *plan, const char *name, json_t *value)
{
    return value ? json_object_set_new(plan, name, value) : 0;
}

/* The plan with the advice and what looks at held-out data take in it. A plan may have many MB, and is a tree twice then, one after the other. */
static weft_status print_with(const settings *s, const weft_program *program, const app_pipe *pipe,
                              json_t *advice, json_t *held, weft_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory) return weft_fail_memory(error, 0);
    weft_status status = app_predict_json(s, program, pipe, memory, error);
    if (fclose(memory) != 0 && status == WEFT_OK) status = weft_fail_memory(error, bytes);
    json_t *plan = status == WEFT_OK ? json_loadb(text, bytes, 0, NULL) : NULL;
    free(text);
    if (status == WEFT_OK &&
        put(plan, "advice", json_incref(advice)) + put(plan, "held_out", json_incref(held)) != 0)
        status = weft_fail_memory(error, bytes);
    if (status == WEFT_OK &&
        (json_dumpf(plan, stdout, JSON_INDENT(1)) != 0 || putchar('\n') == EOF))
        status = weft_fail(error, WEFT_IO, "cannot write the plan to stdout");
    json_decref(plan);
    return status;
}

/* Without a machine nothing is asked but whether it fits. */
static weft_status print_json(const settings *s, const weft_program *program,
                              const app_plan_asked *asked, weft_error *error)
{
    json_t *advice = NULL, *held = NULL;
    WEFT_TRY(app_held_json(asked->held, s, &held, error));
    weft_status status = asked->advise(asked->context, &advice, error);
    const bool is_told = advice && (*settings_text(s, "machine") || json_array_size(advice) > 0);
    if (status == WEFT_OK)
        status = is_told || held
                     ? print_with(s, program, &asked->pipe, is_told ? advice : NULL, held, error)
                     : app_predict_json(s, program, &asked->pipe, stdout, error);
    json_decref(advice);
    json_decref(held);
    return status;
}

static weft_status print(const settings *s, const weft_program *program,
                         const app_plan_asked *asked, weft_error *error)
{
    const bool is_whole = settings_is(s, "dry-run", "all") || settings_flag(s, "explain");
    if (settings_flag(s, "json")) return print_json(s, program, asked, error);
    WEFT_TRY(is_whole ? weft_plan_print(program, stdout, error)
                      : weft_plan_summary(program, stdout, error));
    WEFT_TRY(app_predict(s, program, &asked->pipe, is_whole, error));
    if (!is_whole) puts("each of them, and where it comes from: --dry-run=all");
    return WEFT_OK;
}

weft_status app_plan(const settings *s, const weft_world *world, const weft_program *program,
                     const app_plan_asked *asked, weft_error *error)
{
    if (measures(s)) /* only now are ranks here: those that measure */
        WEFT_TRY(app_calibrate_program(s, world, program, error));
    if (!weft_world_is_root() || !settings_flag(s, "dry-run")) return WEFT_OK;
    WEFT_TRY(print(s, program, asked, error));
    if (fflush(stdout) != 0) return weft_fail(error, WEFT_IO, "cannot write the plan to stdout");
    return WEFT_OK;
}

weft_status app_plan_keep(const settings *s, const weft_program *program, const app_pipe *pipe,
                          weft_error *error)
{
    char path[4096];
    app_whole_file file;
    weft_error own = WEFT_NO_ERROR;
    if (!settings_flag(s, "keep-plan")) return WEFT_OK;
    snprintf(path, sizeof path, "%.4000s/plan.json", settings_text(s, "run"));
    WEFT_TRY(app_whole_open(&file, path, error));
    const weft_status status = app_predict_json(s, program, pipe, file.stream, &own);
    WEFT_TRY(app_whole_close(&file, status == WEFT_OK, error));
    return status == WEFT_OK ? WEFT_OK
                             : weft_fail(error, status, "%.300s: %.150s", path, own.message);
}
