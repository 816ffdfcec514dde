/* parts: what the parts of a report share: texts and kinds of steps that are written once, notes, and the choice of steps. */
#include "parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES = 400, LIST_ITEMS = 200, DEPTH = 12 };

/* ---- texts ------------------------------------------------------------------------------------- */

/* The most bytes of UTF-8 up to `most` that end with a whole letter. */
static size_t whole_letters(const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n <= most) return n;
    n = most;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

json_t *report_short_text(const char *text)
{
    const size_t n = whole_letters(text, TEXT_BYTES);
    json_t *value = text[n] == '\0' ? json_string(text) : json_sprintf("%.*s...", (int)n, text);
    return value ? value : json_string("?");
}

json_int_t report_text(report_data *data, const char *text)
{
    json_t *value = report_short_text(text ? text : "");
    const json_t *known = json_object_get(data->text_numbers, json_string_value(value));
    if (known) {
        json_decref(value);
        return json_integer_value(known);
    }
    const json_int_t number = (json_int_t)json_array_size(data->texts);
    json_object_set_new(data->text_numbers, json_string_value(value), json_integer(number));
    json_array_append_new(data->texts, value);
    return number;
}

void report_note(report_data *data, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(data->notes, report_short_text(text));
}

static json_t *copy_at(const json_t *value, int depth);

static json_t *copy_list(const json_t *value, int depth)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value) && i < LIST_ITEMS; i++)
        json_array_append_new(list, copy_at(json_array_get(value, i), depth));
    return list;
}

static json_t *copy_object(const json_t *value, int depth)
{
    json_t *object = json_object();
    const char *name;
    json_t *one;
    json_object_foreach((json_t *)value, name, one)
    {
        if (json_object_size(object) == LIST_ITEMS) break;
        if (strlen(name) <= TEXT_BYTES) json_object_set_new(object, name, copy_at(one, depth));
    }
    return object;
}

static json_t *copy_at(const json_t *value, int depth)
{
    if (json_is_string(value)) return report_short_text(json_string_value(value));
    if (json_is_array(value) && depth < DEPTH) return copy_list(value, depth + 1);
    if (json_is_object(value) && depth < DEPTH) return copy_object(value, depth + 1);
    return json_is_array(value) || json_is_object(value) ? json_null() : json_copy((json_t *)value);
}

json_t *report_copy(const json_t *value)
{
    return value ? copy_at(value, 0) : NULL;
}

/* ---- kinds of steps ---------------------------------------------------------------------------- */

json_int_t report_kind(report_data *data, const report_step *step)
{
    char key[256];
    const char *const texts[] = {step->phase, step->name, step->place,  step->from,
                                 step->spec,  step->box,  step->reason, step->queue};
    enum { TEXTS = sizeof texts / sizeof *texts };
    json_t *row = json_array();
    for (int i = 0; i < TEXTS; i++)
        json_array_append_new(row, json_integer(report_text(data, texts[i])));
    json_array_append_new(row, app_json_number(step->flops));
    json_array_append_new(row, app_json_number(step->bytes));
    json_array_append_new(row, app_json_number(step->times));
    const size_t n = json_dumpb(row, key, sizeof key - 1, JSON_COMPACT);
    key[n < sizeof key ? n : 0] = '\0';
    const json_t *known = n < sizeof key ? json_object_get(data->kind_numbers, key) : NULL;
    if (known) {
        json_decref(row);
        return json_integer_value(known);
    }
    const json_int_t number = (json_int_t)json_array_size(data->kinds);
    if (n < sizeof key) json_object_set_new(data->kind_numbers, key, json_integer(number));
    json_array_append_new(data->kinds, row);
    return number;
}

/* ---- the steps that are shown ------------------------------------------------------------------ */

typedef struct weighed {
    double weight;
    size_t step;
} weighed;

static int heavy_first(const void *a, const void *b)
{
    const weighed *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static void note_left_out(report_data *data, const weighed *all, size_t most, const char *what)
{
    double whole = 0, rest = 0;
    for (size_t i = 0; i < data->n_steps; i++) {
        whole += all[i].weight;
        if (i >= most) rest += all[i].weight;
    }
    report_note(data,
                "%zu of %zu steps are left out: those with the fewest %s, together %.2g %% of all",
                data->n_steps - most, data->n_steps, what, whole > 0 ? 100 * rest / whole : 0);
}

weft_status report_choose(report_data *data, const double *weights, size_t n, const char *what,
                          weft_error *error)
{
    const size_t most = n < data->limits.steps ? n : data->limits.steps;
    weighed *all = calloc(n + 1, sizeof *all);
    data->n_steps = n;
    data->is_shown = calloc(n + 1, sizeof *data->is_shown);
    if (!all || !data->is_shown) {
        free(all);
        return weft_fail_memory(error, n * sizeof *all);
    }
    for (size_t s = 0; s < n; s++)
        all[s] = (weighed){isfinite(weights[s]) ? weights[s] : 0, s};
    if (most < n) qsort(all, n, sizeof *all, heavy_first);
    for (size_t i = 0; i < most; i++)
        data->is_shown[all[i].step] = 1;
    if (most < n) note_left_out(data, all, most, what);
    free(all);
    data->rows = json_object();
    json_object_set_new(data->rows, "n", json_integer((json_int_t)n));
    json_object_set_new(data->root, "steps", data->rows);
    json_t *index = most < n ? json_array() : json_null();
    for (size_t s = 0; s < n && most < n; s++)
        if (data->is_shown[s]) json_array_append_new(index, json_integer((json_int_t)s));
    json_object_set_new(data->rows, "index", index);
    return WEFT_OK;
}

void report_column(report_data *data, const char *name, const double *numbers, bool is_sum)
{
    json_t *column = json_array();
    json_int_t before = 0;
    for (size_t s = 0; s < data->n_steps; s++) {
        if (!data->is_shown[s]) continue;
        const json_int_t number = fabs(numbers[s]) < 9e15 ? (json_int_t)llround(numbers[s]) : 0;
        json_array_append_new(column, json_integer(is_sum ? number - before : number));
        before = number;
    }
    json_object_set_new(data->rows, name, column);
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* Options that somebody has given, as they would be typed. */
static json_t *said_settings(const json_t *run)
{
    json_t *said = json_array();
    const char *name;
    json_t *one;
    json_object_foreach(json_object_get(run, "settings"), name, one)
    {
        const char *origin = json_string_value(json_object_get(one, "origin"));
        if (origin && strcmp(origin, "default") != 0 && json_array_size(said) < LIST_ITEMS)
            json_array_append_new(said, json_pack("[o, o, o]", report_short_text(name),
                                                  report_copy(json_object_get(one, "value")),
                                                  report_short_text(origin)));
    }
    return said;
}

static json_t *run_facts(const json_t *run)
{
    json_t *facts = report_copy(run);
    json_object_del(facts, "settings");
    json_object_set_new(facts, "said", said_settings(run));
    return facts;
}

static void head(report_data *data)
{
    char made[32] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts)) strftime(made, sizeof made, "%Y-%m-%d %H:%M UTC", &parts);
    json_t *facts =
        json_pack("{s:i, s:s, s:s, s:o, s:b, s:b}", "weft_report", 1, "weft", WEFT_VERSION, "made",
                  made, "source", report_short_text(data->found->source), "is_run",
                  data->found->is_run, "is_going", data->found->is_going);
    json_object_update(data->root, facts);
    json_decref(facts);
    if (data->found->run) json_object_set_new(data->root, "run", run_facts(data->found->run));
}

weft_status report_data_make(report_data *data, report_found *found, const report_limits *limits,
                             weft_error *error)
{
    *data = (report_data){.found = found,
                          .limits = *limits,
                          .root = json_object(),
                          .texts = json_array(),
                          .text_numbers = json_object(),
                          .kinds = json_array(),
                          .kind_numbers = json_object(),
                          .notes = json_array()};
    head(data);
    WEFT_TRY(report_plan_part(data, error));
    WEFT_TRY(report_trace_part(data, error));
    WEFT_TRY(report_curves_part(data, error));
    report_advice_part(data);
    json_object_set(data->root, "texts", data->texts);
    json_object_set(data->root, "kinds", data->kinds);
    json_object_set(data->root, "notes", data->notes);
    return app_json_status(error);
}

void report_data_free(report_data *data)
{
    json_decref(data->root);
    json_decref(data->texts);
    json_decref(data->text_numbers);
    json_decref(data->kinds);
    json_decref(data->kind_numbers);
    json_decref(data->notes);
    free(data->is_shown);
    *data = (report_data){.root = NULL};
}
