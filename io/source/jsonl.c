/* jsonl: JSON lines: a line is a record, a key of its object a field: text, a number, or a row of numbers.
 *
 * The first line says which fields there are; a line that has another type in one of them is refused when it is read, with its number.
 * A key that is absent, or null, is an empty text, an empty row or NaN; of a whole number it is refused.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

static weft_status parse(const weft_source *source, const weft_lines *lines, int64_t i,
                         json_t **object, weft_error *error)
{
    json_error_t why;
    char *line;
    int64_t n;
    WEFT_TRY(weft_lines_take(source, lines, i, &line, &n, error));
    *object = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &why);
    free(line);
    if (json_is_object(*object)) return WEFT_OK;
    const bool is_other = *object != NULL;
    json_decref(*object);
    *object = NULL;
    return weft_source_fail(source, error,
                            "line %lld is no JSON object: %.120s; write one object a line",
                            (long long)weft_lines_number(source, lines, i),
                            is_other ? "it is a value of another type" : why.text);
}

static weft_record_field *add_field(weft_table *table, const char *key, const json_t *value)
{
    const size_t n = strlen(key);
    const int64_t any = -1;
    bool is_whole = true;
    size_t i;
    json_t *entry;
    if (json_is_string(value)) return weft_table_text(table, key, n);
    if (json_is_integer(value) || json_is_boolean(value))
        return weft_table_field(table, key, n, WEFT_I64, 0, NULL);
    if (json_is_real(value)) return weft_table_field(table, key, n, WEFT_F64, 0, NULL);
    json_array_foreach((json_t *)(uintptr_t)value, i, entry) is_whole =
        is_whole && json_is_integer(entry);
    return weft_table_field(table, key, n, is_whole ? WEFT_I64 : WEFT_F64, 1, &any);
}

/* A row of numbers, and no row of anything else. */
static bool is_readable(json_t *value)
{
    size_t i;
    json_t *entry;
    json_array_foreach(value, i, entry) if (!json_is_number(entry)) return false;
    return json_is_string(value) || json_is_number(value) || json_is_boolean(value) ||
           json_is_array(value);
}

static weft_status add_fields(weft_table *table, json_t *object, const char *wanted,
                              weft_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!weft_table_wants(wanted, key, strlen(key)) || !is_readable(value)) continue;
        if (strlen(key) >= WEFT_RECORD_NAME)
            return weft_source_fail(&table->source, error,
                                    "its first line has the key %.80s..., and names of fields have "
                                    "up to %d bytes; name the fields that are wanted",
                                    key, WEFT_RECORD_NAME - 1);
        if (add_field(table, key, value) == NULL)
            return weft_fail_memory(error, sizeof *table->fields);
    }
    return WEFT_OK;
}

static weft_status jsonl_open(weft_table *table, const char *wanted, weft_error *error)
{
    weft_lines *lines = table->state = calloc(1, sizeof *lines);
    json_t *object;
    if (lines == NULL) return weft_fail_memory(error, sizeof *lines);
    WEFT_TRY(weft_lines_find(&table->source, false, lines, error));
    table->n_records = lines->n;
    if (lines->n == 0) return WEFT_OK;
    WEFT_TRY(parse(&table->source, lines, 0, &object, error));
    const weft_status status = add_fields(table, object, wanted, error);
    json_decref(object);
    return status;
}

static bool fits(const weft_record_field *field, json_t *value)
{
    size_t i;
    json_t *entry;
    if (value == NULL || json_is_null(value)) return field->dtype != WEFT_I64 || field->n_dims > 0;
    if (field->is_text) return json_is_string(value);
    if (field->n_dims == 0)
        return json_is_integer(value) || json_is_boolean(value) ||
               (field->dtype == WEFT_F64 && json_is_real(value));
    json_array_foreach(value, i,
                       entry) if (!json_is_integer(entry) &&
                                  !(field->dtype == WEFT_F64 && json_is_real(entry))) return false;
    return json_is_array(value);
}

static weft_status take(const weft_table *table, int64_t record, int field, json_t **object,
                        json_t **value, weft_error *error)
{
    const weft_record_field *f = &table->fields[field];
    WEFT_TRY(parse(&table->source, table->state, record, object, error));
    *value = json_object_get(*object, f->name);
    if (fits(f, *value)) return WEFT_OK;
    json_decref(*object);
    return weft_source_fail(
        &table->source, error,
        "line %lld has another type of %s than the first line, or none; write all alike",
        (long long)weft_lines_number(&table->source, table->state, record), f->name);
}

static weft_status jsonl_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                               weft_error *error)
{
    json_t *object, *value;
    WEFT_TRY(take(table, record, field, &object, &value, error));
    *dims = (int64_t)(table->fields[field].is_text ? json_string_length(value)
                                                   : json_array_size(value));
    json_decref(object);
    return WEFT_OK;
}

static void put_number(const weft_record_field *field, const json_t *value, void *to)
{
    if (field->dtype == WEFT_F64)
        *(double *)to = json_is_number(value)    ? json_number_value(value)
                        : json_is_boolean(value) ? json_is_true(value)
                                                 : NAN;
    else
        *(int64_t *)to = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
}

static weft_status jsonl_read(const weft_table *table, int64_t record, int field, int64_t begin,
                              int64_t end, void *to, weft_error *error)
{
    const weft_record_field *f = &table->fields[field];
    json_t *object, *value;
    WEFT_TRY(take(table, record, field, &object, &value, error));
    if (f->is_text)
        memcpy(to, json_string_value(value) + begin, (size_t)(end - begin));
    else if (f->n_dims == 0)
        put_number(f, value, to);
    else
        for (int64_t i = begin; i < end; i++)
            put_number(f, json_array_get(value, (size_t)i), (char *)to + 8 * (i - begin));
    json_decref(object);
    return WEFT_OK;
}

static void jsonl_close(weft_table *table)
{
    weft_lines *lines = table->state;
    free(lines->begins);
    free(lines);
}

const weft_record_kind weft_kind_jsonl = {.name = "jsonl",
                                          .endings = " .jsonl .ndjson .json ",
                                          .open = jsonl_open,
                                          .shape = jsonl_shape,
                                          .read = jsonl_read,
                                          .close = jsonl_close};
