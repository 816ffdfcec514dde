/* machine_read: a machine model from the text of its file. */
#include "machine_fields.h"

#include <stdlib.h>
#include <string.h>

static const char *dtype_name(int dtype)
{
    return weft_dtype_name((weft_dtype)dtype);
}

static const char *convert_name(int kind)
{
    return weft_convert_name((weft_convert_kind)kind);
}

/* ---- loads ----------------------------------------------------------------------------------------- */

static weft_status read_flop_rates(weft_reading *r, const json_t *in, weft_load *load)
{
    json_t *rates = json_object_get(in, "flops_per_second");
    const char *key;
    json_t *value;
    int dtype;
    if (!json_is_object(rates))
        return weft_json_refuse(r, rates, "flops_per_second",
                                "an object: a list of points by dtype");
    const size_t was = weft_json_into(r, "%s.", "flops_per_second", 0);
    json_object_foreach(rates, key, value)
    {
        WEFT_TRY(weft_json_name(r, "", key, dtype_name, WEFT_DTYPES, &dtype));
        WEFT_TRY(weft_json_curve(r, rates, key, &load->flop_rate[dtype]));
    }
    weft_json_out(r, was);
    if (load->flop_rate[WEFT_F32].n == 0)
        return weft_json_refuse(r, NULL, "flops_per_second.f32", "a list of points");
    return WEFT_OK;
}

/* Seconds an element by the op's name; "other" stands for those that are not named. */
static weft_status read_acts(weft_reading *r, const json_t *in, weft_load *load)
{
    json_t *acts = json_object_get(in, "act_seconds");
    const char *key;
    json_t *value;
    if (!json_is_object(acts))
        return weft_json_refuse(r, acts, "act_seconds",
                                "an object: seconds an element by op, and \"other\"");
    WEFT_TRY(weft_json_take(r, json_object_size(acts) * sizeof *load->acts, &load->acts));
    const size_t was = weft_json_into(r, "%s.", "act_seconds", 0);
    WEFT_TRY(weft_json_number(r, acts, "other", 0, 1, &load->other_act));
    json_object_foreach(acts, key, value)
    {
        weft_act *act = &load->acts[load->n_acts];
        if (strcmp(key, "other") == 0) continue;
        WEFT_TRY(weft_json_number(r, acts, key, 0, 1, &act->elements));
        act->op = weft_arena_intern(r->model->arena, key);
        if (!act->op) return weft_fail_memory(r->error, strlen(key));
        load->n_acts++;
    }
    weft_json_out(r, was);
    return WEFT_OK;
}

static weft_status read_sizes(weft_reading *r, const json_t *in, weft_workload *work)
{
    const json_t *list;
    WEFT_TRY(weft_json_list(r, in, "bytes", 1, &list));
    work->n_sizes = (int)json_array_size(list);
    if (work->n_sizes > WEFT_WORK_SIZES)
        return weft_json_refuse(r, list, "bytes", "a list of at most 12 numbers");
    for (int i = 0; i < work->n_sizes; i++) {
        WEFT_TRY(weft_json_amount(r, json_array_get(list, (size_t)i), "bytes", &work->sizes[i]));
        work->bytes += work->sizes[i];
    }
    return WEFT_OK;
}

/* How many elements each op of a loop is applied to; a file may leave it out. */
static weft_status read_sample_acts(weft_reading *r, const json_t *in, weft_workload *work)
{
    json_t *acts = json_object_get(in, "acts");
    const char *key;
    json_t *value;
    if (!acts) return WEFT_OK;
    if (!json_is_object(acts) || json_object_size(acts) > WEFT_WORK_ACTS)
        return weft_json_refuse(r, acts, "acts", "an object of at most 12 entries: elements by op");
    json_object_foreach(acts, key, value)
    {
        weft_act *act = &work->acts[work->n_acts];
        act->op = weft_arena_intern(r->model->arena, key);
        if (!act->op) return weft_fail_memory(r->error, strlen(key));
        WEFT_TRY(weft_json_amount(r, value, "acts", &act->elements));
        work->n_acts++;
    }
    return WEFT_OK;
}

static weft_status read_sample(weft_reading *r, json_t *in, weft_sample *sample)
{
    static const char *const keys[] = {"name",  "dtype",   "id",     "acts", "flops",
                                       "bytes", "seconds", "spread", NULL};
    const char *dtype, *id;
    char *end;
    int number;
    WEFT_TRY(weft_json_known(r, in, keys));
    WEFT_TRY(weft_json_text(r, in, "name", &sample->work.name));
    WEFT_TRY(weft_json_text(r, in, "dtype", &dtype));
    WEFT_TRY(weft_json_name(r, "dtype", dtype, dtype_name, WEFT_DTYPES, &number));
    sample->work.dtype = (weft_dtype)number;
    WEFT_TRY(weft_json_text(r, in, "id", &id));
    sample->work.id = strtoull(id, &end, 16);
    if (*end || !*id)
        return weft_json_refuse(r, json_object_get(in, "id"), "id",
                                "a hexadecimal number as a text");
    WEFT_TRY(weft_json_number(r, in, "flops", 0, 1e30, &sample->work.flops));
    WEFT_TRY(read_sizes(r, in, &sample->work));
    WEFT_TRY(read_sample_acts(r, in, &sample->work));
    WEFT_TRY(weft_json_number(r, in, "seconds", 1e-12, 1e6, &sample->seconds));
    return weft_json_number(r, in, "spread", 0, 1e6, &sample->spread);
}

static weft_status read_samples(weft_reading *r, const json_t *in, weft_load *load)
{
    const json_t *list;
    WEFT_TRY(weft_json_list(r, in, "kernels", 0, &list));
    load->n_samples = (int)json_array_size(list);
    WEFT_TRY(weft_json_take(r, (size_t)weft_machine_room(load->n_samples) * sizeof *load->samples,
                            &load->samples));
    for (int i = 0; i < load->n_samples; i++) {
        const size_t was = weft_json_into(r, "%s[%zu].", "kernels", (size_t)i);
        WEFT_TRY(read_sample(r, json_array_get(list, (size_t)i), &load->samples[i]));
        weft_json_out(r, was);
    }
    return WEFT_OK;
}

static weft_status read_load(weft_reading *r, json_t *in, weft_load *load)
{
    static const char *const keys[] = {
        "ranks",       "lanes",   "step_seconds", "flops_per_second",       "bytes_per_second",
        "act_seconds", "kernels", "run_seconds",  "input_bytes_per_second", NULL};
    WEFT_TRY(weft_json_known(r, in, keys));
    WEFT_TRY(weft_json_count(r, in, "ranks", 1, &load->ranks));
    WEFT_TRY(weft_json_count(r, in, "lanes", 1, &load->lanes));
    WEFT_TRY(weft_json_number(r, in, "step_seconds", 0, 1, &load->step_seconds));
    if (json_object_get(in, "run_seconds"))
        WEFT_TRY(weft_json_number(r, in, "run_seconds", 0, 100, &load->run_seconds));
    if (json_object_get(in, "input_bytes_per_second"))
        WEFT_TRY(weft_json_number(r, in, "input_bytes_per_second", 0, 1e18,
                                  &load->input_bytes_per_second));
    WEFT_TRY(read_flop_rates(r, in, load));
    WEFT_TRY(weft_json_curve(r, in, "bytes_per_second", &load->byte_rate));
    WEFT_TRY(read_acts(r, in, load));
    return read_samples(r, in, load);
}

static weft_status read_loads(weft_reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    WEFT_TRY(weft_json_list(r, root, "loads", 1, &list));
    model->n_loads = (int)json_array_size(list);
    WEFT_TRY(weft_json_take(r, (size_t)weft_machine_room(model->n_loads) * sizeof *model->loads,
                            &model->loads));
    for (int i = 0; i < model->n_loads; i++) {
        const size_t was = weft_json_into(r, "%s[%zu].", "loads", (size_t)i);
        WEFT_TRY(read_load(r, json_array_get(list, (size_t)i), &model->loads[i]));
        if (i > 0 && model->loads[i].ranks <= model->loads[i - 1].ranks)
            return weft_json_refuse(r, json_object_get(json_array_get(list, (size_t)i), "ranks"),
                                    "ranks", "more than those of the load before");
        weft_json_out(r, was);
    }
    return WEFT_OK;
}

/* ---- levels and exchanges ------------------------------------------------------------------------------ */

static weft_status read_level(weft_reading *r, json_t *in, weft_level *level)
{
    static const char *const keys[] = {
        "name", "ranks",        "latency_seconds", "bytes_per_second",
        "cpu",  "late_seconds", "crowded_seconds", NULL};
    WEFT_TRY(weft_json_known(r, in, keys));
    WEFT_TRY(weft_json_text(r, in, "name", &level->name));
    WEFT_TRY(weft_json_count(r, in, "ranks", 0, &level->ranks));
    WEFT_TRY(weft_json_number(r, in, "latency_seconds", 0, 100, &level->latency_seconds));
    WEFT_TRY(weft_json_number(r, in, "bytes_per_second", 1, 1e18, &level->bytes_per_second));
    if (json_object_get(in, "late_seconds"))
        WEFT_TRY(weft_json_number(r, in, "late_seconds", 0, 1, &level->late_seconds));
    if (json_object_get(in, "crowded_seconds"))
        WEFT_TRY(weft_json_number(r, in, "crowded_seconds", 0, 1, &level->crowded_seconds));
    return weft_json_number(r, in, "cpu", 0, 1, &level->cpu);
}

static weft_status read_levels(weft_reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    WEFT_TRY(weft_json_list(r, root, "levels", 1, &list));
    if (json_array_size(list) > WEFT_MAX_LEVELS)
        return weft_json_refuse(r, NULL, "levels", "a list of at most 8 entries");
    model->n_levels = (int)json_array_size(list);
    for (int i = 0; i < model->n_levels; i++) {
        const size_t was = weft_json_into(r, "%s[%zu].", "levels", (size_t)i);
        WEFT_TRY(read_level(r, json_array_get(list, (size_t)i), &model->levels[i]));
        const int below = i > 0 ? model->levels[i - 1].ranks : 0;
        const int ranks = model->levels[i].ranks;
        if (ranks == 0 ? i < model->n_levels - 1 : ranks <= below)
            return weft_json_refuse(
                r, json_object_get(json_array_get(list, (size_t)i), "ranks"), "ranks",
                "more than those of the level before; 0, all, in the last alone");
        weft_json_out(r, was);
    }
    return WEFT_OK;
}

static weft_status read_level_name(weft_reading *r, const json_t *in, int *level)
{
    const char *name;
    WEFT_TRY(weft_json_text(r, in, "level", &name));
    for (*level = 0; *level < r->model->n_levels; ++*level)
        if (strcmp(r->model->levels[*level].name, name) == 0) return WEFT_OK;
    return weft_json_refuse(r, json_object_get(in, "level"), "level",
                            "the name of one of the levels");
}

static weft_status read_exchange(weft_reading *r, json_t *in, weft_exchange_curve *exchange)
{
    static const char *const keys[] = {"kind", "level", "ranks", "seconds", NULL};
    const char *kind;
    int number = 0;
    WEFT_TRY(weft_json_known(r, in, keys));
    WEFT_TRY(weft_json_text(r, in, "kind", &kind));
    WEFT_TRY(weft_json_name(r, "kind", kind, convert_name, WEFT_CONVERTS, &number));
    exchange->kind = (weft_convert_kind)number;
    WEFT_TRY(read_level_name(r, in, &exchange->level));
    WEFT_TRY(weft_json_count(r, in, "ranks", 2, &exchange->ranks));
    return weft_json_curve(r, in, "seconds", &exchange->seconds);
}

static bool is_same_exchange(const weft_exchange_curve *a, const weft_exchange_curve *b)
{
    return a->kind == b->kind && a->level == b->level && a->ranks == b->ranks;
}

static weft_status read_exchanges(weft_reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    WEFT_TRY(weft_json_list(r, root, "exchanges", 0, &list));
    model->n_exchanges = (int)json_array_size(list);
    WEFT_TRY(
        weft_json_take(r, (size_t)weft_machine_room(model->n_exchanges) * sizeof *model->exchanges,
                       &model->exchanges));
    for (int i = 0; i < model->n_exchanges; i++) {
        const size_t was = weft_json_into(r, "%s[%zu].", "exchanges", (size_t)i);
        WEFT_TRY(read_exchange(r, json_array_get(list, (size_t)i), &model->exchanges[i]));
        for (int e = 0; e < i; e++)
            if (is_same_exchange(&model->exchanges[e], &model->exchanges[i]))
                return weft_json_refuse(r, json_array_get(list, (size_t)i), "",
                                        "of another kind, level or number of ranks than those "
                                        "before");
        weft_json_out(r, was);
    }
    return WEFT_OK;
}

/* exchange_factor: older files say how many times as long the exchange takes, which nothing asks for. */
static weft_status read_slow(weft_reading *r, json_t *in, weft_slow *slow)
{
    static const char *const keys[] = {"work", "by", "level", "cpu", "exchange_factor", NULL};
    static const char *const works[] = {"product", "loop"};
    const char *by;
    int number = 0;
    WEFT_TRY(weft_json_known(r, in, keys));
    WEFT_TRY(weft_json_text(r, in, "work", &slow->work));
    if (strcmp(slow->work, works[0]) != 0 && strcmp(slow->work, works[1]) != 0)
        return weft_json_refuse(r, json_object_get(in, "work"), "work", "product or loop");
    WEFT_TRY(weft_json_text(r, in, "by", &by));
    WEFT_TRY(weft_json_name(r, "by", by, convert_name, WEFT_CONVERTS, &number));
    slow->kind = (weft_convert_kind)number;
    WEFT_TRY(read_level_name(r, in, &slow->level));
    return weft_json_number(r, in, "cpu", 0, 1, &slow->cpu);
}

/* What was measured of work beside exchanges, if anything was. */
static weft_status read_slows(weft_reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    if (!json_object_get(root, "slows")) return WEFT_OK;
    WEFT_TRY(weft_json_list(r, root, "slows", 0, &list));
    model->n_slows = (int)json_array_size(list);
    WEFT_TRY(weft_json_take(r, (size_t)weft_machine_room(model->n_slows) * sizeof *model->slows,
                            &model->slows));
    for (int i = 0; i < model->n_slows; i++) {
        const size_t was = weft_json_into(r, "%s[%zu].", "slows", (size_t)i);
        WEFT_TRY(read_slow(r, json_array_get(list, (size_t)i), &model->slows[i]));
        weft_json_out(r, was);
    }
    return WEFT_OK;
}

/* Where numbers come from, if the file says it. */
static weft_status read_sources(weft_reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    if (!json_object_get(root, "sources")) return WEFT_OK;
    WEFT_TRY(weft_json_list(r, root, "sources", 0, &list));
    model->n_sources = (int)json_array_size(list);
    WEFT_TRY(weft_json_take(r, (size_t)model->n_sources * sizeof *model->sources, &model->sources));
    for (int i = 0; i < model->n_sources; i++) {
        const char *text = json_string_value(json_array_get(list, (size_t)i));
        model->sources[i] = weft_arena_intern(model->arena, text ? text : "");
        if (!text)
            return weft_json_refuse(r, json_array_get(list, (size_t)i), "sources",
                                    "a list of texts");
        if (!model->sources[i]) return weft_fail_memory(r->error, strlen(text));
    }
    return WEFT_OK;
}

/* Whose kernels were measured, if the file says it. */
static weft_status read_library(weft_reading *r, const json_t *root)
{
    r->model->library = "";
    return json_object_get(root, "weft") ? weft_json_text(r, root, "weft", &r->model->library)
                                         : WEFT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

enum { FORMAT = 1 };

static weft_status read_root(weft_reading *r, json_t *root)
{
    static const char *const keys[] = {"weft_machine", "name",   "processor", "made",  "weft",
                                       "cores",        "spread", "sources",   "loads", "levels",
                                       "exchanges",    "slows",  NULL};
    weft_machine_model *model = r->model;
    int format;
    if (!json_is_object(root)) return weft_json_refuse(r, root, "all of it", "an object");
    WEFT_TRY(weft_json_count(r, root, "weft_machine", 1, &format));
    if (format != FORMAT)
        return weft_fail(r->error, WEFT_USAGE,
                         "machine file %s: it is of format %d, and this Weft reads %d; measure it "
                         "anew: `weft calibrate`",
                         r->path, format, FORMAT);
    WEFT_TRY(weft_json_known(r, root, keys));
    WEFT_TRY(weft_json_text(r, root, "name", &model->name));
    WEFT_TRY(weft_json_text(r, root, "processor", &model->processor));
    WEFT_TRY(weft_json_text(r, root, "made", &model->made));
    WEFT_TRY(read_library(r, root));
    WEFT_TRY(weft_json_count(r, root, "cores", 1, &model->cores));
    WEFT_TRY(weft_json_number(r, root, "spread", 0, 1e6, &model->spread));
    WEFT_TRY(read_sources(r, root));
    WEFT_TRY(read_loads(r, root));
    WEFT_TRY(read_levels(r, root));
    WEFT_TRY(read_exchanges(r, root));
    return read_slows(r, root);
}

/* The parser's sentence may have a piece of the file in it, which may be anything. */
static weft_status refuse_text(const char *path, size_t bytes, const json_error_t *wrong,
                               weft_error *error)
{
    char why[120];
    if (bytes == 0)
        return weft_fail(error, WEFT_USAGE,
                         "machine file %.200s is empty; `weft calibrate` writes such files", path);
    snprintf(why, sizeof why, "%s", wrong->text);
    for (char *c = why; *c; c++)
        if (*c < 32 || *c > 126) *c = '?';
    return weft_fail(error, WEFT_USAGE,
                     "machine file %.200s: line %d is no JSON: %s; `weft calibrate` writes such "
                     "files",
                     path, wrong->line, why);
}

weft_status weft_machine_model_parse(const char *text, size_t bytes, const char *path,
                                     weft_machine_model **model, weft_error *error)
{
    json_error_t wrong;
    weft_arena *arena = weft_arena_create();
    *model = arena ? weft_arena_take(arena, sizeof **model) : NULL;
    if (!*model) {
        weft_arena_destroy(&arena);
        return weft_fail_memory(error, sizeof **model);
    }
    (*model)->arena = arena;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &wrong);
    weft_reading r = {path, *model, error, ""};
    weft_status status = root ? read_root(&r, root) : refuse_text(path, bytes, &wrong, error);
    json_decref(root);
    if (status != WEFT_OK) weft_machine_model_destroy(model);
    return status;
}
