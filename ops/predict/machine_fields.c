/* machine_fields: single fields of a machine file, each checked when it is read. */
#include "machine_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double SMALLEST = 1e-15, LARGEST = 1e30; /* of points and amounts */

/* "kernels[3]." and back. */
size_t weft_json_into(weft_reading *r, const char *format, const char *key, size_t index)
{
    const size_t was = strlen(r->place);
    snprintf(r->place + was, sizeof r->place - was, format, key, index);
    return was;
}

void weft_json_out(weft_reading *r, size_t was)
{
    if (was < sizeof r->place) r->place[was] = 0;
}

/* As it stands in the file, cut short: one line, whatever it is. */
static void show(const json_t *found, char text[60])
{
    char *all = json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    snprintf(text, 60, ", and is %.40s%s", all ? all : "?", all && strlen(all) > 40 ? "..." : "");
    free(all);
}

weft_status weft_json_refuse(const weft_reading *r, const json_t *found, const char *key,
                             const char *wanted)
{
    char is[60] = ", and is missing";
    const size_t n = strlen(r->place);
    const int named = (int)(n > 0 && *key == '\0' && r->place[n - 1] == '.' ? n - 1 : n);
    if (found) show(found, is);
    return weft_fail(
        r->error, WEFT_USAGE,
        "machine file %.200s: %.*s%.60s should be %s%s; `weft calibrate` writes such files",
        r->path, named, r->place, key, wanted, is);
}

weft_status weft_json_take(weft_reading *r, size_t bytes, void *memory)
{
    void **out = memory;
    *out = weft_arena_take(r->model->arena, bytes ? bytes : 1);
    return *out ? WEFT_OK : weft_fail_memory(r->error, bytes);
}

/* ---- single values --------------------------------------------------------------------------------- */

weft_status weft_json_number(weft_reading *r, const json_t *in, const char *key, double low,
                             double high, double *number)
{
    char wanted[80];
    const json_t *found = json_object_get(in, key);
    *number = json_is_number(found) ? json_number_value(found) : NAN;
    if (*number >= low && *number <= high && isfinite(*number)) return WEFT_OK;
    snprintf(wanted, sizeof wanted, "a number from %g to %g", low, high);
    return weft_json_refuse(r, found, key, wanted);
}

weft_status weft_json_count(weft_reading *r, const json_t *in, const char *key, int low, int *count)
{
    double number;
    WEFT_TRY(weft_json_number(r, in, key, low, WEFT_MAX_RANKS, &number));
    *count = (int)number;
    return (double)*count == number
               ? WEFT_OK
               : weft_json_refuse(r, json_object_get(in, key), key, "a whole number");
}

weft_status weft_json_text(weft_reading *r, const json_t *in, const char *key, const char **text)
{
    const json_t *found = json_object_get(in, key);
    if (!json_is_string(found)) return weft_json_refuse(r, found, key, "a text");
    *text = weft_arena_intern(r->model->arena, json_string_value(found));
    return *text ? WEFT_OK : weft_fail_memory(r->error, json_string_length(found));
}

weft_status weft_json_list(weft_reading *r, const json_t *in, const char *key, size_t least,
                           const json_t **list)
{
    *list = json_object_get(in, key);
    if (json_is_array(*list) && json_array_size(*list) >= least) return WEFT_OK;
    return weft_json_refuse(r, *list, key, least ? "a list with at least one entry" : "a list");
}

/* A name of a dtype, of a conversion: one that `name_of` has. */
weft_status weft_json_name(weft_reading *r, const char *key, const char *text,
                           const char *(*name_of)(int), int n, int *found)
{
    const char *names[64];
    for (*found = 0; *found < n; ++*found)
        if (strcmp(name_of(*found), text) == 0) return WEFT_OK;
    for (int i = 0; i < n; i++)
        names[i] = name_of(i);
    const char *nearest = weft_nearest(text, names, n);
    return weft_fail(r->error, WEFT_USAGE,
                     "machine file %.200s: %s%.60s should be a name that Weft has, not "
                     "\"%.60s\"%s%s%s; `weft calibrate` writes such files",
                     r->path, r->place, key, text, nearest ? "; did you mean " : "",
                     nearest ? nearest : "", nearest ? "?" : "");
}

static int count_keys(const char *const *keys)
{
    int n = 0;
    while (keys[n])
        n++;
    return n;
}

static weft_status refuse_key(const weft_reading *r, const char *key, const char *const *keys)
{
    const char *nearest = weft_nearest(key, keys, count_keys(keys));
    return weft_fail(r->error, WEFT_USAGE,
                     "machine file %.200s: %s%.60s is no key that Weft knows there%s%s%s; leave it "
                     "out, or write it as docs/prediction.md has it",
                     r->path, r->place, key, nearest ? "; did you mean " : "",
                     nearest ? nearest : "", nearest ? "?" : "");
}

weft_status weft_json_known(weft_reading *r, json_t *in, const char *const *keys)
{
    const char *key;
    json_t *value;
    if (!json_is_object(in)) return weft_json_refuse(r, in, "", "an object");
    json_object_foreach(in, key, value)
    {
        int k = 0;
        while (keys[k] && strcmp(keys[k], key) != 0)
            k++;
        if (!keys[k]) return refuse_key(r, key, keys);
    }
    return WEFT_OK;
}

weft_status weft_json_amount(const weft_reading *r, const json_t *found, const char *key,
                             double *number)
{
    *number = json_is_number(found) ? json_number_value(found) : NAN;
    if (*number >= 0 && *number <= LARGEST) return WEFT_OK;
    return weft_json_refuse(r, found, key, "a number from 0 to 1e30");
}

/* ---- curves ---------------------------------------------------------------------------------------- */

static bool is_positive(double number)
{
    return number >= SMALLEST && number <= LARGEST;
}

static weft_status read_point(weft_reading *r, const json_t *list, size_t i, weft_curve *curve)
{
    const json_t *point = json_array_get(list, i);
    const double size = json_number_value(json_array_get(point, 0));
    const double value = json_number_value(json_array_get(point, 1));
    const bool ascends = i == 0 || size > curve->size[i - 1];
    if (json_array_size(point) != 2 || !is_positive(size) || !is_positive(value) || !ascends)
        return weft_json_refuse(
            r, point, "",
            "a pair of numbers above 0, with a larger first one than the entry before");
    curve->size[i] = size;
    curve->value[i] = value;
    return WEFT_OK;
}

weft_status weft_json_curve(weft_reading *r, const json_t *in, const char *key, weft_curve *curve)
{
    const json_t *list;
    WEFT_TRY(weft_json_list(r, in, key, 1, &list));
    const size_t n = json_array_size(list);
    WEFT_TRY(weft_json_take(r, n * sizeof(double), &curve->size));
    WEFT_TRY(weft_json_take(r, n * sizeof(double), &curve->value));
    for (size_t i = 0; i < n; i++) {
        const size_t was = weft_json_into(r, "%s[%zu]", key, i);
        WEFT_TRY(read_point(r, list, i, curve));
        weft_json_out(r, was);
    }
    curve->n = (int)n;
    return WEFT_OK;
}
