/* found: the files that a report is made of. */
#include "found.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lock.h"

enum { MAX_PATH = 4096 };

/* ---- JSON -------------------------------------------------------------------------------------- */

static weft_status fail_json(const char *path, const json_error_t *fault, weft_error *error)
{
    WEFT_TRY(app_json_status(error));
    return weft_fail(error, WEFT_USAGE,
                     "%.300s is no whole JSON: line %d: %.120s; was it cut off? write it again",
                     path, fault->line, fault->text);
}

static weft_status read_stream(FILE *file, const char *path, json_t **json, weft_error *error)
{
    json_error_t fault = {.line = 0};
    errno = 0;
    *json = json_loadf(file, 0, &fault);
    if (*json) return WEFT_OK;
    if (ferror(file))
        return weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(errno));
    return fail_json(path, &fault, error);
}

static weft_status read_json(const char *path, json_t **json, weft_error *error)
{
    if (strcmp(path, "-") == 0) return read_stream(stdin, "stdin", json, error);
    FILE *file = fopen(path, "re");
    if (!file)
        return weft_fail(error, errno == ENOENT ? WEFT_USAGE : WEFT_IO, "cannot read %.300s: %s",
                         path, strerror(errno));
    const weft_status status = read_stream(file, path, json, error);
    fclose(file);
    return status;
}

static weft_status read_plan(const char *path, report_found *found, weft_error *error)
{
    WEFT_TRY(read_json(path, &found->plan, error));
    const json_t *plan = found->plan;
    if (json_is_string(json_object_get(plan, "mesh")) &&
        json_is_array(json_object_get(plan, "step_list")) &&
        json_is_array(json_object_get(plan, "versions")))
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.300s is JSON, but no plan: it lacks mesh, step_list or versions; a plan is "
                     "what --dry-run --json prints",
                     strcmp(path, "-") == 0 ? "stdin" : path);
}

/* ---- the folder of a run ----------------------------------------------------------------------- */

static bool is_there(const char *folder, const char *name, char *path, size_t room)
{
    snprintf(path, room, "%.4000s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* metrics.jsonl in the folder, or the file that --metrics named. */
static void find_metrics(const char *folder, report_found *found)
{
    const json_t *settings = json_object_get(found->run, "settings");
    const char *named =
        json_string_value(json_object_get(json_object_get(settings, "metrics"), "value"));
    if (is_there(folder, "metrics.jsonl", found->metrics, sizeof found->metrics)) return;
    found->metrics[0] = '\0';
    if (named && *named && access(named, R_OK) == 0)
        snprintf(found->metrics, sizeof found->metrics, "%.4100s", named);
}

static weft_status read_run(const char *folder, const char *plan, report_found *found,
                            weft_error *error)
{
    char path[MAX_PATH + 64];
    weft_error held = {.rank = -1};
    found->is_run = true;
    if (is_there(folder, "run.json", path, sizeof path))
        WEFT_TRY(read_json(path, &found->run, error));
    if (found->run && !json_is_string(json_object_get(found->run, "program")))
        return weft_fail(error, WEFT_USAGE,
                         "%.300s is JSON, but no run.json: it lacks program; train again with "
                         "--run, or move it away",
                         path);
    if (is_there(folder, "advice.json", path, sizeof path))
        WEFT_TRY(read_json(path, &found->advice, error));
    find_metrics(folder, found);
    WEFT_TRY(rings_find(&found->rings, folder, error));
    if (*plan)
        WEFT_TRY(read_plan(plan, found, error));
    else if (is_there(folder, "plan.json", path, sizeof path))
        WEFT_TRY(read_plan(path, found, error));
    found->is_going = app_lock_look(folder, &held) == WEFT_USAGE;
    if (found->run || found->plan || *found->metrics || found->rings.n > 0) return WEFT_OK;
    if (is_there(folder, "ckpt", path, sizeof path))
        return weft_fail(error, WEFT_USAGE,
                         "the run in %.200s has checkpoints alone, which no report is about; train "
                         "with --keep-plan or --trace N..M",
                         folder);
    return weft_fail(error, WEFT_USAGE,
                     "%.200s is no run: it has neither run.json nor metrics.jsonl, plan.json or a "
                     "trace; name a folder as given with --run, or a plan of --dry-run --json",
                     folder);
}

weft_status report_find(const char *source, const char *plan, report_found *found,
                        weft_error *error)
{
    struct stat facts;
    *found = (report_found){.source = source};
    if (strlen(source) > 4000)
        return weft_fail(error, WEFT_USAGE, "the name of a run is too long: %.100s...", source);
    if (strcmp(source, "-") == 0 && strcmp(plan, "-") == 0)
        return weft_fail(error, WEFT_USAGE,
                         "both the run and its plan are to come from stdin; name one of them");
    if (strcmp(source, "-") != 0 && stat(source, &facts) != 0)
        return weft_fail(error, errno == ENOENT ? WEFT_USAGE : WEFT_IO,
                         "there is no run and no plan %.300s: %s", source, strerror(errno));
    if (strcmp(source, "-") != 0 && S_ISDIR(facts.st_mode))
        return read_run(source, plan, found, error);
    if (*plan)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s is a plan itself, and --plan %.200s names another; give --plan "
                         "with the folder of a run",
                         source, plan);
    return read_plan(source, found, error);
}

void report_forget(report_found *found)
{
    json_decref(found->run);
    json_decref(found->plan);
    json_decref(found->advice);
    rings_close(&found->rings);
}
