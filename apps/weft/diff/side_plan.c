/* side_plan: a plan as `--dry-run --json` writes it, with its prediction where --machine made one. */
#include "side.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../json.h"
#include "../../text.h"

static void free_json(void *json)
{
    json_decref(json);
}

/* ---- what else a file may be ------------------------------------------------------------------------------ */

/* Files of JSON that Weft writes, by a key that no other has. */
static const struct {
    const char *key, *is;
} others[] = {
    {"weft_machine", "a machine's file; weft machine diff compares two of them"},
    {"settings", "the run.json of a run; name the folder that it is in"},
    {"checks", "what weft doctor has found"},
    {"differences", "what weft ckpt diff or weft diff has found"},
    {"verdict", "what weft postmortem has found"},
};

static weft_status fail_other(const char *path, const json_t *json, weft_error *error)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(json, others[i].key))
            return weft_fail(error, WEFT_USAGE, "%.200s is no plan: it is %s", path, others[i].is);
    return weft_fail(error, WEFT_USAGE,
                     "%.200s is JSON and no plan: it has no step_list; gpt train --dry-run --json "
                     "writes one",
                     path);
}

static weft_status fail_at(const char *path, const char *list, size_t index,
                           const json_error_t *where, weft_error *error)
{
    WEFT_TRY(app_json_status(error));
    return weft_fail(error, WEFT_USAGE,
                     "%.200s: %s[%zu] is not as this Weft writes it: %.120s; make the plan anew "
                     "with --dry-run --json",
                     path, list, index, where->text);
}

/* ---- steps ------------------------------------------------------------------------------------------------ */

/* NULL where it is null, or not there. */
static const char *text_of(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

/* Versions are numbered from 1, in the order of the list. */
static const char *spec_of(const json_t *root, const json_t *step)
{
    const json_t *of =
        json_object_get(step, json_array_size(json_object_get(step, "out")) > 0 ? "out" : "in");
    const json_int_t id = json_integer_value(json_array_get(of, 0));
    const json_t *versions = json_object_get(root, "versions");
    const json_t *version = id > 0 ? json_array_get(versions, (size_t)id - 1) : NULL;
    const char *spec = json_string_value(json_object_get(version, "spec"));
    return spec ? spec : "";
}

/* Kept in the tree of the step, so that it lives as long. */
static const char *place_of(json_t *step, const char *op, int line)
{
    char text[400];
    const char *builder = text_of(step, "builder"), *file = text_of(step, "file");
    const bool is_inner = builder && strcmp(op, builder) != 0;
    if (!file) return op;
    snprintf(text, sizeof text, "%s%s%s at %s:%d", op, is_inner ? " of " : "",
             is_inner ? builder : "", file, line);
    json_object_set_new(step, "place", json_string(text));
    return json_string_value(json_object_get(step, "place"));
}

static const char *what_of(const char *kind, const char *collective)
{
    if (collective) return collective;
    return strcmp(kind, "kernel") == 0 || strcmp(kind, "loop") == 0 ? "work" : kind;
}

/* What takes no time is no step here: the fences of scans. */
static bool is_fence(const char *kind)
{
    return strcmp(kind, "begin") == 0 || strcmp(kind, "end") == 0 || strcmp(kind, "guard") == 0;
}

static weft_status add_step(diff_side *side, const json_t *root, size_t index, weft_error *error)
{
    const char *kind, *op;
    int line;
    json_int_t bytes;
    json_error_t where;
    diff_step s = {.seconds = NAN};
    json_t *step = json_array_get(json_object_get(root, "step_list"), index);
    if (json_unpack_ex(step, &where, 0, "{s:s, s:s, s:s, s:i, s:s, s:s, s:F, s:I, s:F}", "phase",
                       &s.phase, "kind", &kind, "op", &op, "line", &line, "reason", &s.reason,
                       "axes", &s.axes, "flops", &s.flops, "bytes", &bytes, "times", &s.times) != 0)
        return fail_at(side->path, "step_list", index, &where, error);
    if (is_fence(kind)) return WEFT_OK;
    s.what = what_of(kind, text_of(step, "collective"));
    s.place = place_of(step, op, line);
    s.spec = spec_of(root, step);
    s.kernel = text_of(step, "kernel") ? text_of(step, "kernel") : "";
    s.bytes = (double)bytes * s.times;
    s.flops *= s.times;
    const json_t *predicted =
        json_array_get(json_object_get(json_object_get(root, "prediction"), "steps"), index);
    if (predicted)
        s.seconds = json_number_value(json_object_get(predicted, *s.axes ? "exposed" : "total"));
    side->steps[side->n_steps++] = s;
    return s.place ? WEFT_OK : weft_fail_memory(error, sizeof s);
}

static weft_status add_steps(diff_side *side, const json_t *root, weft_error *error)
{
    const size_t n = json_array_size(json_object_get(root, "step_list"));
    const json_t *predicted = json_object_get(json_object_get(root, "prediction"), "steps");
    side->steps = calloc(n + 1, sizeof *side->steps);
    if (!side->steps) return weft_fail_memory(error, (n + 1) * sizeof *side->steps);
    if (predicted && json_array_size(predicted) != n)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s: it has %zu steps and predicts %zu; make the plan anew with "
                         "--dry-run --json",
                         side->path, n, json_array_size(predicted));
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(add_step(side, root, i, error));
    side->has_seconds = predicted != NULL;
    side->has_phases = true;
    return WEFT_OK;
}

/* ---- the whole -------------------------------------------------------------------------------------------- */

static double sent_by(const json_t *root)
{
    const json_t *list = json_object_get(root, "traffic");
    double bytes = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        bytes += json_number_value(json_object_get(json_array_get(list, i), "bytes"));
    return bytes;
}

static weft_status add_facts(diff_side *side, const json_t *root, weft_error *error)
{
    const char *mesh, *layout;
    int zero, ranks;
    double flops;
    json_int_t peak;
    json_error_t where;
    if (json_unpack_ex((json_t *)(uintptr_t)root, &where, 0, "{s:s, s:i, s:s, s:i, s:F, s:{s:I}}",
                       "mesh", &mesh, "ranks", &ranks, "layout", &layout, "zero", &zero, "flops",
                       &flops, "memory", "peak", &peak) != 0)
        return weft_fail(error, WEFT_USAGE, "%.200s is no plan of this Weft: %.120s", side->path,
                         where.text);
    diff_fact(side, "mesh", "%s", mesh);
    diff_fact(side, "ranks", "%d", ranks);
    diff_fact(side, "layout", "%s", *layout ? layout : "none");
    diff_fact(side, "zero", "%d", zero);
    diff_fact(side, "memory of a rank", "%.1f MiB", (double)peak / 1048576.0);
    diff_fact(side, "flops of a rank", "%.4g", flops);
    diff_fact(side, "bytes exchanged", "%.4g", sent_by(root));
    return WEFT_OK;
}

static void add_prediction(diff_side *side, const json_t *root)
{
    const json_t *prediction = json_object_get(root, "prediction");
    const char *machine =
        json_string_value(json_object_get(json_object_get(prediction, "machine"), "name"));
    if (!prediction) return;
    side->seconds = json_number_value(json_object_get(prediction, "seconds"));
    snprintf(side->from, sizeof side->from, "predicted for %.80s", machine ? machine : "?");
    diff_fact(side, "machine", "%s", machine ? machine : "?");
}

weft_status diff_plan_open(const char *path, diff_side *side, weft_error *error)
{
    json_t *root = NULL;
    side->kind = "plan";
    WEFT_TRY(app_json_read(path, "plan", &root, error));
    side->owner = root;
    side->free_owner = free_json;
    if (!json_is_array(json_object_get(root, "step_list"))) return fail_other(path, root, error);
    WEFT_TRY(add_facts(side, root, error));
    add_prediction(side, root);
    return add_steps(side, root, error);
}
