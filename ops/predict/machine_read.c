/* machine_read: a machine model from its file. Each number is checked when it is read, so a mistake is told
 * with its place: "loads[1].bytes_per_second[3]".
 */
#include "machine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    const char *path;
    weft_machine_model *model;
    weft_error *error;
    char place[160]; /* in the file */
} reading;

/* "kernels[3]." and back. */
static size_t go_into(reading *r, const char *format, const char *key, size_t index)
{
    const size_t was = strlen(r->place);
    snprintf(r->place + was, sizeof r->place - was, format, key, index);
    return was;
}

static weft_status refuse(const reading *r, const char *key, const char *wanted)
{
    return weft_fail(r->error, WEFT_USAGE,
                     "machine file %s: %s%s should be %s; `weft calibrate` writes such files",
                     r->path, r->place, key, wanted);
}

/* A list of n entries, with the room that machine_make's lists have, so that more may be added. */
static weft_status take(reading *r, size_t n, size_t bytes, void *memory)
{
    void **out = memory;
    size_t room = 1;
    while (room < n)
        room *= 2;
    *out = weft_arena_take(r->model->arena, room * bytes);
    return *out ? WEFT_OK : weft_fail_memory(r->error, room * bytes);
}

/* ---- single values --------------------------------------------------------------------------------- */

static weft_status read_number(reading *r, const json_t *in, const char *key, double low,
                               double high, double *number)
{
    char wanted[80];
    const json_t *found = json_object_get(in, key);
    *number = json_is_number(found) ? json_number_value(found) : NAN;
    if (*number >= low && *number <= high && isfinite(*number)) return WEFT_OK;
    snprintf(wanted, sizeof wanted, "a number from %g to %g", low, high);
    return refuse(r, key, wanted);
}

static weft_status read_count(reading *r, const json_t *in, const char *key, int low, int *count)
{
    double number;
    WEFT_TRY(read_number(r, in, key, low, WEFT_MAX_RANKS, &number));
    *count = (int)number;
    return (double)*count == number ? WEFT_OK : refuse(r, key, "a whole number");
}

static weft_status read_text(reading *r, const json_t *in, const char *key, const char **text)
{
    const json_t *found = json_object_get(in, key);
    if (!json_is_string(found)) return refuse(r, key, "a text");
    *text = weft_arena_intern(r->model->arena, json_string_value(found));
    return *text ? WEFT_OK : weft_fail_memory(r->error, json_string_length(found));
}

static weft_status read_list(reading *r, const json_t *in, const char *key, size_t least,
                             const json_t **list)
{
    *list = json_object_get(in, key);
    if (json_is_array(*list) && json_array_size(*list) >= least) return WEFT_OK;
    return refuse(r, key, least ? "a list with at least one entry" : "a list");
}

/* A name of a dtype, of a conversion: one that `name_of` has. */
static weft_status read_name(reading *r, const char *key, const char *text,
                             const char *(*name_of)(int), int n, int *found)
{
    const char *names[64];
    char wanted[200];
    for (*found = 0; *found < n; ++*found)
        if (strcmp(name_of(*found), text) == 0) return WEFT_OK;
    for (int i = 0; i < n; i++)
        names[i] = name_of(i);
    const char *nearest = weft_nearest(text, names, n);
    snprintf(wanted, sizeof wanted, "a name that Weft has, not \"%.60s\"%s%s%s", text,
             nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    return refuse(r, key, wanted);
}

static const char *dtype_name(int dtype)
{
    return weft_dtype_name((weft_dtype)dtype);
}

static const char *convert_name(int kind)
{
    return weft_convert_name((weft_convert_kind)kind);
}

/* ---- curves ---------------------------------------------------------------------------------------- */

static weft_status read_point(reading *r, const json_t *list, size_t i, weft_curve *curve)
{
    const json_t *point = json_array_get(list, i);
    const double size = json_number_value(json_array_get(point, 0));
    const double value = json_number_value(json_array_get(point, 1));
    const bool ascends = i == 0 || size > curve->size[i - 1];
    if (json_array_size(point) != 2 || !(size > 0 && value > 0 && ascends) || !isfinite(size) ||
        !isfinite(value))
        return refuse(r, "",
                      "a pair of numbers above 0, with a larger first one than the entry before");
    curve->size[i] = size;
    curve->value[i] = value;
    return WEFT_OK;
}

static weft_status read_curve(reading *r, const json_t *in, const char *key, weft_curve *curve)
{
    const json_t *list;
    WEFT_TRY(read_list(r, in, key, 1, &list));
    const size_t n = json_array_size(list);
    WEFT_TRY(take(r, n, sizeof(double), &curve->size));
    WEFT_TRY(take(r, n, sizeof(double), &curve->value));
    for (size_t i = 0; i < n; i++) {
        const size_t was = go_into(r, "%s[%zu]", key, i);
        WEFT_TRY(read_point(r, list, i, curve));
        r->place[was] = 0;
    }
    curve->n = (int)n;
    return WEFT_OK;
}

/* ---- loads ----------------------------------------------------------------------------------------- */

static weft_status read_flop_rates(reading *r, const json_t *in, weft_load *load)
{
    json_t *rates = json_object_get(in, "flops_per_second");
    const char *key;
    json_t *value;
    int dtype;
    if (!json_is_object(rates))
        return refuse(r, "flops_per_second", "an object: a list of points by dtype");
    const size_t was = go_into(r, "%s.", "flops_per_second", 0);
    json_object_foreach(rates, key, value)
    {
        WEFT_TRY(read_name(r, "", key, dtype_name, WEFT_DTYPES, &dtype));
        WEFT_TRY(read_curve(r, rates, key, &load->flop_rate[dtype]));
    }
    r->place[was] = 0;
    if (load->flop_rate[WEFT_F32].n == 0) return refuse(r, "flops_per_second.f32", "there");
    return WEFT_OK;
}

/* Seconds an element by the op's name; "other" stands for those that are not named. */
static weft_status read_acts(reading *r, const json_t *in, weft_load *load)
{
    json_t *acts = json_object_get(in, "act_seconds");
    const char *key;
    json_t *value;
    if (!json_is_object(acts))
        return refuse(r, "act_seconds", "an object: seconds an element by op, and \"other\"");
    WEFT_TRY(take(r, json_object_size(acts), sizeof *load->acts, &load->acts));
    const size_t was = go_into(r, "%s.", "act_seconds", 0);
    WEFT_TRY(read_number(r, acts, "other", 0, 1, &load->other_act));
    json_object_foreach(acts, key, value)
    {
        weft_act *act = &load->acts[load->n_acts];
        if (strcmp(key, "other") == 0) continue;
        WEFT_TRY(read_number(r, acts, key, 0, 1, &act->elements));
        act->op = weft_arena_intern(r->model->arena, key);
        if (!act->op) return weft_fail_memory(r->error, strlen(key));
        load->n_acts++;
    }
    r->place[was] = 0;
    return WEFT_OK;
}

static weft_status read_sizes(reading *r, const json_t *in, weft_workload *work)
{
    const json_t *list;
    WEFT_TRY(read_list(r, in, "bytes", 1, &list));
    work->n_sizes = (int)json_array_size(list);
    if (work->n_sizes > WEFT_WORK_SIZES) return refuse(r, "bytes", "a list of at most 12 numbers");
    for (int i = 0; i < work->n_sizes; i++) {
        work->sizes[i] = json_number_value(json_array_get(list, (size_t)i));
        if (!(work->sizes[i] >= 0)) return refuse(r, "bytes", "a list of numbers, none below 0");
        work->bytes += work->sizes[i];
    }
    return WEFT_OK;
}

/* How many elements each op of a loop is applied to; a file may leave it out. */
static weft_status read_sample_acts(reading *r, const json_t *in, weft_workload *work)
{
    json_t *acts = json_object_get(in, "acts");
    const char *key;
    json_t *value;
    if (!acts) return WEFT_OK;
    if (!json_is_object(acts) || json_object_size(acts) > WEFT_WORK_ACTS)
        return refuse(r, "acts", "an object of at most 12 entries: elements by op");
    json_object_foreach(acts, key, value)
    {
        weft_act *act = &work->acts[work->n_acts];
        act->op = weft_arena_intern(r->model->arena, key);
        act->elements = json_number_value(value);
        if (!act->op) return weft_fail_memory(r->error, strlen(key));
        if (!(act->elements >= 0)) return refuse(r, "acts", "an object of numbers, none below 0");
        work->n_acts++;
    }
    return WEFT_OK;
}

static weft_status read_sample(reading *r, const json_t *in, weft_sample *sample)
{
    const char *dtype, *id;
    char *end;
    int number;
    WEFT_TRY(read_text(r, in, "name", &sample->work.name));
    WEFT_TRY(read_text(r, in, "dtype", &dtype));
    WEFT_TRY(read_name(r, "dtype", dtype, dtype_name, WEFT_DTYPES, &number));
    sample->work.dtype = (weft_dtype)number;
    WEFT_TRY(read_text(r, in, "id", &id));
    sample->work.id = strtoull(id, &end, 16);
    if (*end || !*id) return refuse(r, "id", "a hexadecimal number as a text");
    WEFT_TRY(read_number(r, in, "flops", 0, 1e30, &sample->work.flops));
    WEFT_TRY(read_sizes(r, in, &sample->work));
    WEFT_TRY(read_sample_acts(r, in, &sample->work));
    WEFT_TRY(read_number(r, in, "seconds", 1e-12, 1e6, &sample->seconds));
    return read_number(r, in, "spread", 0, 1e6, &sample->spread);
}

static weft_status read_samples(reading *r, const json_t *in, weft_load *load)
{
    const json_t *list;
    WEFT_TRY(read_list(r, in, "kernels", 0, &list));
    load->n_samples = (int)json_array_size(list);
    WEFT_TRY(take(r, (size_t)load->n_samples, sizeof *load->samples, &load->samples));
    for (int i = 0; i < load->n_samples; i++) {
        const size_t was = go_into(r, "%s[%zu].", "kernels", (size_t)i);
        WEFT_TRY(read_sample(r, json_array_get(list, (size_t)i), &load->samples[i]));
        r->place[was] = 0;
    }
    return WEFT_OK;
}

static weft_status read_load(reading *r, const json_t *in, weft_load *load)
{
    WEFT_TRY(read_count(r, in, "ranks", 1, &load->ranks));
    WEFT_TRY(read_count(r, in, "lanes", 1, &load->lanes));
    WEFT_TRY(read_number(r, in, "step_seconds", 0, 1, &load->step_seconds));
    WEFT_TRY(read_flop_rates(r, in, load));
    WEFT_TRY(read_curve(r, in, "bytes_per_second", &load->byte_rate));
    WEFT_TRY(read_acts(r, in, load));
    return read_samples(r, in, load);
}

static weft_status read_loads(reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    WEFT_TRY(read_list(r, root, "loads", 1, &list));
    model->n_loads = (int)json_array_size(list);
    WEFT_TRY(take(r, (size_t)model->n_loads, sizeof *model->loads, &model->loads));
    for (int i = 0; i < model->n_loads; i++) {
        const size_t was = go_into(r, "%s[%zu].", "loads", (size_t)i);
        WEFT_TRY(read_load(r, json_array_get(list, (size_t)i), &model->loads[i]));
        if (i > 0 && model->loads[i].ranks <= model->loads[i - 1].ranks)
            return refuse(r, "ranks", "more than those of the load before");
        r->place[was] = 0;
    }
    return WEFT_OK;
}

/* ---- levels and exchanges ------------------------------------------------------------------------------ */

static weft_status read_level(reading *r, const json_t *in, weft_level *level)
{
    WEFT_TRY(read_text(r, in, "name", &level->name));
    WEFT_TRY(read_count(r, in, "ranks", 0, &level->ranks));
    WEFT_TRY(read_number(r, in, "latency_seconds", 0, 100, &level->latency_seconds));
    WEFT_TRY(read_number(r, in, "bytes_per_second", 1, 1e18, &level->bytes_per_second));
    return read_number(r, in, "cpu", 0, 1, &level->cpu);
}

static weft_status read_levels(reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    WEFT_TRY(read_list(r, root, "levels", 1, &list));
    if (json_array_size(list) > WEFT_MAX_LEVELS)
        return refuse(r, "levels", "a list of at most 8 entries");
    model->n_levels = (int)json_array_size(list);
    for (int i = 0; i < model->n_levels; i++) {
        const size_t was = go_into(r, "%s[%zu].", "levels", (size_t)i);
        WEFT_TRY(read_level(r, json_array_get(list, (size_t)i), &model->levels[i]));
        const int below = i > 0 ? model->levels[i - 1].ranks : 0;
        const int ranks = model->levels[i].ranks;
        if (ranks == 0 ? i < model->n_levels - 1 : ranks <= below)
            return refuse(r, "ranks",
                          "more than those of the level before; 0, all, in the last alone");
        r->place[was] = 0;
    }
    return WEFT_OK;
}

static weft_status read_exchange(reading *r, const json_t *in, weft_exchange_curve *exchange)
{
    const char *kind, *level;
    int number = 0;
    WEFT_TRY(read_text(r, in, "kind", &kind));
    WEFT_TRY(read_name(r, "kind", kind, convert_name, WEFT_CONVERTS, &number));
    exchange->kind = (weft_convert_kind)number;
    WEFT_TRY(read_text(r, in, "level", &level));
    while (exchange->level < r->model->n_levels &&
           strcmp(r->model->levels[exchange->level].name, level) != 0)
        exchange->level++;
    if (exchange->level == r->model->n_levels)
        return refuse(r, "level", "the name of one of the levels");
    WEFT_TRY(read_count(r, in, "ranks", 2, &exchange->ranks));
    return read_curve(r, in, "seconds", &exchange->seconds);
}

static weft_status read_exchanges(reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    WEFT_TRY(read_list(r, root, "exchanges", 0, &list));
    model->n_exchanges = (int)json_array_size(list);
    WEFT_TRY(take(r, (size_t)model->n_exchanges, sizeof *model->exchanges, &model->exchanges));
    for (int i = 0; i < model->n_exchanges; i++) {
        const size_t was = go_into(r, "%s[%zu].", "exchanges", (size_t)i);
        WEFT_TRY(read_exchange(r, json_array_get(list, (size_t)i), &model->exchanges[i]));
        r->place[was] = 0;
    }
    return WEFT_OK;
}

/* Where numbers come from, if the file says it. */
static weft_status read_sources(reading *r, const json_t *root)
{
    const json_t *list;
    weft_machine_model *model = r->model;
    if (!json_object_get(root, "sources")) return WEFT_OK;
    WEFT_TRY(read_list(r, root, "sources", 0, &list));
    model->n_sources = (int)json_array_size(list);
    WEFT_TRY(take(r, (size_t)model->n_sources, sizeof *model->sources, &model->sources));
    for (int i = 0; i < model->n_sources; i++) {
        const char *text = json_string_value(json_array_get(list, (size_t)i));
        model->sources[i] = weft_arena_intern(model->arena, text ? text : "");
        if (!text) return refuse(r, "sources", "a list of texts");
        if (!model->sources[i]) return weft_fail_memory(r->error, strlen(text));
    }
    return WEFT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

enum { FORMAT = 1 };

static weft_status read_root(reading *r, const json_t *root)
{
    weft_machine_model *model = r->model;
    int format;
    WEFT_TRY(read_count(r, root, "weft_machine", 1, &format));
    if (format != FORMAT)
        return weft_fail(r->error, WEFT_USAGE,
                         "machine file %s: it is of format %d, and this Weft reads %d; measure it "
                         "anew: `weft calibrate`",
                         r->path, format, FORMAT);
    WEFT_TRY(read_text(r, root, "name", &model->name));
    WEFT_TRY(read_text(r, root, "processor", &model->processor));
    WEFT_TRY(read_text(r, root, "made", &model->made));
    WEFT_TRY(read_count(r, root, "cores", 1, &model->cores));
    WEFT_TRY(read_number(r, root, "spread", 0, 1e6, &model->spread));
    WEFT_TRY(read_sources(r, root));
    WEFT_TRY(read_loads(r, root));
    WEFT_TRY(read_levels(r, root));
    return read_exchanges(r, root);
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
    reading r = {path, *model, error, ""};
    weft_status status =
        root ? read_root(&r, root)
             : weft_fail(error, WEFT_USAGE, "machine file %s: line %d is no JSON: %s", path,
                         wrong.line, wrong.text);
    json_decref(root);
    if (status != WEFT_OK) weft_machine_model_destroy(model);
    return status;
}

/* ---- by name --------------------------------------------------------------------------------------------- */

/* Made by the build from machines/: nominal.c. */
extern const struct weft_nominal {
    const char *name, *text;
} weft_nominal_machines[];
extern const int weft_n_nominal_machines;

const char *weft_machine_model_names(int index)
{
    return index >= 0 && index < weft_n_nominal_machines ? weft_nominal_machines[index].name : NULL;
}

static weft_status read_nominal(const char *name, weft_machine_model **model, weft_error *error)
{
    const char *names[64];
    for (int i = 0; i < weft_n_nominal_machines; i++) {
        const struct weft_nominal *nominal = &weft_nominal_machines[i];
        names[i] = nominal->name;
        if (strcmp(name, nominal->name) == 0)
            return weft_machine_model_parse(nominal->text, strlen(nominal->text), name, model,
                                            error);
    }
    const char *nearest = weft_nearest(name, names, weft_n_nominal_machines);
    return weft_fail(error, WEFT_USAGE,
                     "there is no machine \"%.80s\"%s%s%s; `weft machine` lists those there are, "
                     "and a file's name has a point or a / in it",
                     name, nearest ? "; did you mean " : "", nearest ? nearest : "",
                     nearest ? "?" : "");
}

static weft_status read_all(const char *path, char **text, size_t *bytes, weft_error *error)
{
    FILE *file = fopen(path, "re");
    FILE *whole = file ? open_memstream(text, bytes) : NULL;
    char piece[4096];
    size_t n;
    while (whole && (n = fread(piece, 1, sizeof piece, file)) > 0)
        fwrite(piece, 1, n, whole);
    const bool is_read = whole && !ferror(file);
    const int why = errno;
    if (whole && fclose(whole) != 0 && is_read) return weft_fail_memory(error, *bytes);
    if (file) fclose(file);
    if (is_read) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot read the machine file %.200s: %s", path,
                     strerror(why));
}

weft_status weft_machine_model_read(const char *name, weft_machine_model **model, weft_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    WEFT_GIVEN(name, error);
    WEFT_GIVEN(model, error);
    *model = NULL;
    if (!strpbrk(name, "./")) return read_nominal(name, model, error);
    weft_status status = read_all(name, &text, &bytes, error);
    if (status == WEFT_OK) status = weft_machine_model_parse(text, bytes, name, model, error);
    free(text);
    return status;
}
