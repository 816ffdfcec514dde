/* asked: a body of TensorFlow Serving's REST API into numbers, each thing that is wrong one sentence.
 *
 * source  the API's "Predict": {"inputs": ..} by name, and {"instances": [..]} by row
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../json.h"
#include "served.h"
#include "weft/name.h"

enum { PLACE = WEFT_MAX_PATH + 300 };
static const double most_exact =
    9007199254740991.0; /* JSON's readers have it, and its neighbours */

typedef struct reading {
    const served_facts *facts;
    served_request *r;
    const char *rows;  /* how a list of rows is called */
    char place[PLACE]; /* "x[0][2]": what is read */
    size_t n_place;
} reading;

/* ---- places --------------------------------------------------------------------------------------- */

static size_t go_to(reading *x, const char *name)
{
    const int n = snprintf(x->place, PLACE, "%.*s", WEFT_MAX_PATH, name);
    x->n_place = (size_t)n;
    return x->n_place;
}

static size_t go_in(reading *x, size_t index)
{
    const size_t before = x->n_place;
    if (before + 24 < PLACE)
        x->n_place += (size_t)snprintf(x->place + before, PLACE - before, "[%zu]", index);
    return before;
}

static void go_back(reading *x, size_t before)
{
    x->n_place = before;
    x->place[before] = '\0';
}

/* ---- numbers -------------------------------------------------------------------------------------- */

const char *served_kind_of(const json_t *value)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"};
    return kinds[json_typeof(value)];
}

static weft_status fail_number(const reading *x, double number, weft_dtype dtype, const char *way,
                               weft_error *error)
{
    return weft_fail(error, WEFT_USAGE, "%s is %.15g, which is no %s; %s", x->place, number,
                     weft_dtype_name(dtype), way);
}

static weft_status take_number(const reading *x, const served_tensor *t, const json_t *value,
                               void *to, int64_t at, weft_error *error)
{
    const double number = json_number_value(value);
    if (!json_is_number(value))
        return weft_fail(error, WEFT_USAGE, "%s is %s; it has to be a number, of %s", x->place,
                         served_kind_of(value), weft_dtype_name(t->dtype));
    weft_dtype_put(t->dtype, to, at, number);
    const double kept = weft_dtype_get(t->dtype, to, at);
    if (weft_dtype_is_float(t->dtype))
        return isfinite(kept) ? WEFT_OK
                              : fail_number(x, number, t->dtype, "it is too large", error);
    if (kept == number && fabs(number) <= most_exact) return WEFT_OK;
    return fail_number(x, number, t->dtype, "give an integer that fits, below 2^53", error);
}

static weft_status fail_list(const reading *x, const served_tensor *t, const json_t *value, int dim,
                             int64_t most, weft_error *error)
{
    char shape[256];
    weft_shape_print(t->shape, shape, sizeof shape);
    if (!json_is_array(value))
        return weft_fail(error, WEFT_USAGE, "%s is %s; %s is %s%s, and along %s there is a list",
                         x->place, served_kind_of(value), t->name, weft_dtype_name(t->dtype), shape,
                         t->shape->dims[dim].name);
    return weft_fail(
        error, WEFT_USAGE, "%s has %zu elements; %s is %s%s, and along %s there are %s%lld",
        x->place, json_array_size(value), t->name, weft_dtype_name(t->dtype), shape,
        t->shape->dims[dim].name, dim == 0 && t->has_rows ? "1 to " : "", (long long)most);
}

/* Lists in lists, from dim `dim` on: *at counts numbers. */
static weft_status take_lists(reading *x, const served_tensor *t, const json_t *value, int dim,
                              void *to, int64_t *at, weft_error *error)
{
    if (dim == t->shape->n_dims) return take_number(x, t, value, to, (*at)++, error);
    const int64_t size = t->shape->dims[dim].size;
    const int64_t wanted = dim == 0 && t->has_rows ? x->r->n_rows : size;
    const size_t n = json_array_size(value);
    if (!json_is_array(value) || (int64_t)n != wanted)
        return fail_list(x, t, value, dim, size, error);
    for (size_t i = 0; i < n; i++) {
        const size_t before = go_in(x, i);
        WEFT_TRY(take_lists(x, t, json_array_get(value, i), dim + 1, to, at, error));
        go_back(x, before);
    }
    return WEFT_OK;
}

/* ---- by name -------------------------------------------------------------------------------------- */

static int find_input(const served_facts *f, const char *name)
{
    for (int i = 0; i < f->n_inputs; i++)
        if (strcmp(f->inputs[i].name, name) == 0) return i;
    return -1;
}

static weft_status fail_unknown(const served_facts *f, const char *name, weft_error *error)
{
    char all[400];
    const char *near = NULL;
    const char **names = calloc((size_t)f->n_inputs + 1, sizeof *names);
    for (int i = 0; names && i < f->n_inputs; i++)
        names[i] = f->inputs[i].name;
    if (names) near = weft_nearest(name, names, f->n_inputs);
    free(names);
    served_print(f->inputs, f->n_inputs, all, sizeof all);
    return weft_fail(error, WEFT_USAGE, "the program has no input \"%.60s\" to fill; %s%s%s", name,
                     near ? "did you mean " : "it has ", near ? near : all, near ? "?" : "");
}

static weft_status fail_missing(const served_tensor *t, weft_error *error)
{
    char text[400];
    served_print(t, 1, text, sizeof text);
    return weft_fail(error, WEFT_USAGE, "nothing fills the input %s; give it by its name", text);
}

static weft_status check_names(const served_facts *f, const json_t *values, weft_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)values, name, value)
    {
        if (find_input(f, name) < 0) return fail_unknown(f, name, error);
    }
    for (int i = 0; i < f->n_inputs; i++)
        if (!json_object_get(values, f->inputs[i].name)) return fail_missing(&f->inputs[i], error);
    return WEFT_OK;
}

/* Of an object by name; of one input alone the value itself will do. */
static const json_t *value_of(const served_facts *f, const json_t *values, int i)
{
    return json_is_object(values) ? json_object_get(values, f->inputs[i].name) : values;
}

static weft_status check_values(const served_facts *f, const json_t *values, const char *place,
                                weft_error *error)
{
    if (json_is_object(values)) return check_names(f, values, error);
    if (f->n_inputs == 1) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s is %s; it has to be an object of the program's inputs "
                     "by their names",
                     place, served_kind_of(values));
}

/* ---- the two forms -------------------------------------------------------------------------------- */

static weft_status take_memory(reading *x, weft_error *error)
{
    served_request *r = x->r;
    const served_facts *f = x->facts;
    r->inputs = calloc((size_t)f->n_inputs + 1, sizeof *r->inputs);
    if (r->inputs == NULL) return weft_fail_memory(error, sizeof *r->inputs);
    r->n_inputs = f->n_inputs;
    for (int i = 0; i < f->n_inputs; i++) {
        const served_tensor *t = &f->inputs[i];
        const int64_t bytes = t->has_rows ? r->n_rows * t->row_bytes : t->bytes;
        r->inputs[i] = malloc((size_t)bytes + 1);
        if (r->inputs[i] == NULL) return weft_fail_memory(error, (size_t)bytes);
    }
    return WEFT_OK;
}

/* By what has rows, the first of them. */
static weft_status count_rows(reading *x, const json_t *values, weft_error *error)
{
    const served_facts *f = x->facts;
    x->r->n_rows = 1;
    for (int i = 0; i < f->n_inputs; i++) {
        const served_tensor *t = &f->inputs[i];
        if (!t->has_rows) continue;
        const json_t *value = value_of(f, values, i);
        const size_t n = json_array_size(value);
        go_to(x, t->name);
        if (!json_is_array(value) || n == 0 || n > (size_t)f->rows)
            return fail_list(x, t, value, 0, f->rows, error);
        x->r->n_rows = (int64_t)n;
        return WEFT_OK;
    }
    return WEFT_OK;
}

static weft_status take_inputs(reading *x, const json_t *values, weft_error *error)
{
    const served_facts *f = x->facts;
    WEFT_TRY(check_values(f, values, "inputs", error));
    WEFT_TRY(count_rows(x, values, error));
    WEFT_TRY(take_memory(x, error));
    for (int i = 0; i < f->n_inputs; i++) {
        int64_t at = 0;
        go_to(x, f->inputs[i].name);
        WEFT_TRY(
            take_lists(x, &f->inputs[i], value_of(f, values, i), 0, x->r->inputs[i], &at, error));
    }
    return WEFT_OK;
}

static weft_status take_row(reading *x, const json_t *values, int64_t row, weft_error *error)
{
    const served_facts *f = x->facts;
    char place[64];
    snprintf(place, sizeof place, "%s[%lld]", x->rows, (long long)row);
    WEFT_TRY(check_values(f, values, place, error));
    for (int i = 0; i < f->n_inputs; i++) {
        const served_tensor *t = &f->inputs[i];
        int64_t at = row * (t->row_bytes / (int64_t)weft_dtype_bytes(t->dtype));
        x->n_place =
            (size_t)snprintf(x->place, PLACE, "%s%s%s", place, json_is_object(values) ? "." : "",
                             json_is_object(values) ? t->name : "");
        WEFT_TRY(take_lists(x, t, value_of(f, values, i), 1, x->r->inputs[i], &at, error));
    }
    return WEFT_OK;
}

static weft_status take_rows(reading *x, const json_t *list, weft_error *error)
{
    const served_facts *f = x->facts;
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n == 0 || n > (size_t)f->rows)
        return weft_fail(error, WEFT_USAGE, "%s is %s%s; it is a list of 1 to %lld rows", x->rows,
                         served_kind_of(list),
                         !json_is_array(list) ? ""
                         : n == 0             ? " of nothing"
                                              : " of more rows",
                         (long long)f->rows);
    x->r->n_rows = (int64_t)n;
    WEFT_TRY(take_memory(x, error));
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(take_row(x, json_array_get(list, i), (int64_t)i, error));
    return WEFT_OK;
}

static weft_status take_instances(reading *x, const json_t *list, weft_error *error)
{
    x->r->tells = served_predictions;
    if (x->facts->is_joined) return take_rows(x, list, error);
    return weft_fail(error, WEFT_USAGE,
                     "instances are rows, and this program is not sure to treat each row of its "
                     "own; send all of its tensors as \"inputs\"");
}

weft_status served_take_rows(const served_facts *facts, served_request *r, const char *name,
                             const json_t *list, weft_error *error)
{
    reading x = {.facts = facts, .r = r, .rows = name};
    return take_rows(&x, list, error);
}

/* ---- all together --------------------------------------------------------------------------------- */

static weft_status take_signature(reading *x, const json_t *name, weft_error *error)
{
    const char *text = json_string_value(name);
    (void)x;
    if (text && (*text == '\0' || strcmp(text, "serving_default") == 0)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "signature_name is served as \"serving_default\" alone; leave it out");
}

static const struct {
    const char *name;
    bool is_data; /* one of these is to be there */
    weft_status (*take)(reading *x, const json_t *value, weft_error *error);
} fields[] = {{"inputs", true, take_inputs},
              {"instances", true, take_instances},
              {"signature_name", false, take_signature}};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static weft_status fail_field(const char *name, weft_error *error)
{
    const char *names[N_FIELDS];
    for (int i = 0; i < N_FIELDS; i++)
        names[i] = fields[i].name;
    const char *near = weft_nearest(name, names, N_FIELDS);
    return weft_fail(error, WEFT_USAGE, "unknown field \"%.60s\"; %s%s%s", name,
                     near ? "did you mean " : "the program's inputs stand in ",
                     near ? near : "{\"inputs\": {..}}", near ? "?" : "");
}

static weft_status take_field(reading *x, const char *name, const json_t *value, int *n_data,
                              weft_error *error)
{
    for (int i = 0; i < N_FIELDS; i++) {
        if (strcmp(fields[i].name, name) != 0) continue;
        *n_data += fields[i].is_data;
        if (*n_data < 2 || !fields[i].is_data) return fields[i].take(x, value, error);
        return weft_fail(error, WEFT_USAGE,
                         "inputs and instances are two forms of the same; give "
                         "one of them");
    }
    return fail_field(name, error);
}

/* A program may need nothing. */
static weft_status take_nothing(reading *x, weft_error *error)
{
    char all[400];
    x->r->n_rows = 1;
    if (x->facts->n_inputs == 0) return take_memory(x, error);
    served_print(x->facts->inputs, x->facts->n_inputs, all, sizeof all);
    return weft_fail(error, WEFT_USAGE,
                     "there are no inputs; the body is {\"inputs\": {..}}, with %s", all);
}

static weft_status fail_json(const json_error_t *wrong, weft_error *error)
{
    WEFT_TRY(app_json_status(error));
    return weft_fail(error, WEFT_USAGE, "the body is no JSON: line %d, column %d: %s", wrong->line,
                     wrong->column, wrong->text);
}

weft_status served_parse(const char *body, size_t n, const char *example, json_t **all,
                         weft_error *error)
{
    json_error_t wrong;
    *all = json_loadb(body, n, JSON_REJECT_DUPLICATES, &wrong);
    if (!*all) return fail_json(&wrong, error);
    if (json_is_object(*all)) return WEFT_OK;
    json_decref(*all);
    return weft_fail(error, WEFT_USAGE, "the body is no object of JSON; it is one, as %s", example);
}

weft_status served_read(const void *facts, const char *body, size_t n, serve_request *r,
                        weft_error *error)
{
    reading x = {.facts = facts, .r = (served_request *)r, .rows = "instances"};
    const char *name;
    json_t *value, *all;
    int n_data = 0;
    weft_status status = WEFT_OK;
    x.r->tells = served_outputs;
    WEFT_TRY(served_parse(body, n, "{\"inputs\": {..}}", &all, error));
    json_object_foreach(all, name, value)
    {
        if (status == WEFT_OK) status = take_field(&x, name, value, &n_data, error);
    }
    if (status == WEFT_OK && n_data == 0) status = take_nothing(&x, error);
    json_decref(all);
    return status;
}

void served_drop(serve_request *base)
{
    served_request *r = (served_request *)base;
    for (int i = 0; i < r->n_inputs; i++)
        free(r->inputs[i]);
    free(r->inputs);
}

const serve_kind served_kind = {sizeof(served_request), served_read, served_drop, NULL};
