/* jsonl: JSON lines: a line is a record, a key of its object a field: text, a number, or a row of numbers.
 *
 * The first line says which fields there are; a line that has another type in one of them is refused when it is read, with its number.
 * A key that is absent, or null, is an empty text, an empty row or NaN; of a whole number it is refused.
 *
 * A read takes one value out of a line, without a tree of the others (json_find.h). A reader asks for its shape first and then for its
 * numbers, so the lines that were read last are held. A line with a rare value is parsed whole, as the first line is, and so is one that
 * needs a sentence.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_find.h"
#include "lines.h"
#include "sync.h"

enum {
    N_HELD = 16,
    GROUP = 8 /* lines that are read at once */,
    LONGEST_GROUP = 1 << 15 /* bytes */
};

/* Lines with the value that was found last in one of them. Who wants others in this place, or at the same time, reads for himself. */
typedef struct held {
    _Atomic bool is_taken;
    int64_t first, end; /* lines; first == end: there is none */
    int64_t record;     /* that value is in; -1: none */
    int field;          /* that it is of */
    int64_t room;
    char *text; /* [room] of lines [first, end), ended by a 0 */
    weft_json_value value;
} held;

typedef struct jsonl {
    weft_lines lines; /* first: state is of these as well */
    _Atomic int64_t
        last; /* line that was read from the file: who goes on near it may go on in order */
    held held[N_HELD];
} jsonl;

/* ---- whole lines ------------------------------------------------------------------------------------ */

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
    jsonl *state = table->state = calloc(1, sizeof *state);
    json_t *object;
    if (state == NULL) return weft_fail_memory(error, sizeof *state);
    weft_lines *lines = &state->lines;
    for (int i = 0; i < N_HELD; i++)
        state->held[i].record = -1;
    state->last = -GROUP - 1;
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

static weft_status parse_value(const weft_table *table, int64_t record, int field, json_t **object,
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

static void put_number(const weft_record_field *field, const json_t *value, void *to)
{
    if (field->dtype == WEFT_F64)
        *(double *)to = json_is_number(value)    ? json_number_value(value)
                        : json_is_boolean(value) ? json_is_true(value)
                                                 : NAN;
    else
        *(int64_t *)to = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
}

static weft_status parsed_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                                weft_error *error)
{
    json_t *object, *value;
    WEFT_TRY(parse_value(table, record, field, &object, &value, error));
    *dims = (int64_t)(table->fields[field].is_text ? json_string_length(value)
                                                   : json_array_size(value));
    json_decref(object);
    return WEFT_OK;
}

/* What is wanted is inside what the shape said; unless the file became another one without a sign of it. */
static weft_status check_end(const weft_table *table, const weft_record_field *f, int64_t n,
                             int64_t end, weft_error *error)
{
    if (f->n_dims == 0 || end <= n) return WEFT_OK;
    return weft_source_fail(&table->source, error,
                            "%s has %lld elements, and had %lld or more; do not change data while "
                            "it is read",
                            f->name, (long long)n, (long long)end);
}

static weft_status parsed_read(const weft_table *table, int64_t record, int field, int64_t begin,
                               int64_t end, void *to, weft_error *error)
{
    const weft_record_field *f = &table->fields[field];
    json_t *object, *value;
    WEFT_TRY(parse_value(table, record, field, &object, &value, error));
    const int64_t n = (int64_t)(f->is_text ? json_string_length(value) : json_array_size(value));
    const weft_status status = check_end(table, f, n, end, error);
    if (status != WEFT_OK)
        ; /* nothing is put */
    else if (f->is_text)
        memcpy(to, json_string_value(value) + begin, (size_t)(end - begin));
    else if (f->n_dims == 0)
        put_number(f, value, to);
    else
        for (int64_t i = begin; i < end; i++)
            put_number(f, json_array_get(value, (size_t)i), (char *)to + 8 * (i - begin));
    json_decref(object);
    return status;
}

/* ---- one value -------------------------------------------------------------------------------------- */

/* Whether it is of the field's type; as fits() has it. */
static bool is_of(const weft_record_field *f, const weft_json_value *v)
{
    const bool is_whole = f->dtype == WEFT_I64;
    if (v->kind == WEFT_JSON_ABSENT || v->kind == WEFT_JSON_NULL) return !is_whole || f->n_dims > 0;
    if (f->is_text) return v->kind == WEFT_JSON_TEXT;
    if (f->n_dims > 0) return v->kind == WEFT_JSON_ROW && (v->is_whole || !is_whole);
    return v->kind == WEFT_JSON_WHOLE || v->kind == WEFT_JSON_BOOLEAN ||
           (v->kind == WEFT_JSON_REAL && !is_whole);
}

/* In order all of a group, unless it is long; else the line alone. */
static void choose_lines(jsonl *state, int64_t record, held *h)
{
    const weft_lines *lines = &state->lines;
    const int64_t first = record / GROUP * GROUP,
                  end = first + GROUP < lines->n ? first + GROUP : lines->n;
    const int64_t ahead = record - weft_sync_load_relaxed(&state->last);
    const bool is_one =
        ahead < 0 || ahead > GROUP || lines->begins[end] - lines->begins[first] > LONGEST_GROUP;
    h->first = is_one ? record : first, h->end = is_one ? record + 1 : end;
    weft_sync_store_relaxed(&state->last, record);
}

static weft_status read_lines(const weft_table *table, held *h, int64_t record, weft_error *error)
{
    const weft_lines *lines = table->state;
    choose_lines(table->state, record, h);
    const int64_t begin = lines->begins[h->first], n = lines->begins[h->end] - begin;
    h->record = -1;
    if (n >= h->room) {
        free(h->text);
        h->room = n + n / 2 + 64;
        h->text = malloc((size_t)h->room);
    }
    weft_status status = h->text
                             ? weft_source_read_unchecked(&table->source, h->text, n, begin, error)
                             : weft_fail_memory(error, (size_t)h->room);
    if (status != WEFT_OK)
        h->room = h->text ? h->room : 0, h->first = h->end = 0;
    else
        h->text[n] = '\0';
    return status;
}

/* The value in its line; false: the line is to be parsed. */
static bool find_value(const weft_lines *lines, held *h, int64_t record, const char *name)
{
    char *line = h->text + (lines->begins[record] - lines->begins[h->first]);
    const int64_t n = lines->begins[record + 1] - lines->begins[record];
    const char behind = line[n];
    line[n] = '\0';
    const bool is_found = weft_json_find(line, n, name, &h->value);
    line[n] = behind;
    return is_found;
}

static bool has_line(const held *h, int64_t record)
{
    return record >= h->first && record < h->end;
}

/* *is_found false: the line is to be parsed, which has a sentence for one that is too long. */
static weft_status find(const weft_table *table, held *h, int64_t record, int field, bool *is_found,
                        weft_error *error)
{
    const weft_lines *lines = table->state;
    const weft_record_field *f = &table->fields[field];
    *is_found = h->record == record && h->field == field;
    if (*is_found || lines->begins[record + 1] - lines->begins[record] > WEFT_SOURCE_LONGEST)
        return WEFT_OK;
    if (!has_line(h, record)) WEFT_TRY(read_lines(table, h, record, error));
    *is_found = find_value(lines, h, record, f->name) && is_of(f, &h->value);
    h->record = *is_found ? record : -1;
    h->field = field;
    return WEFT_OK;
}

/* The place that a line is held in, taken for this thread; `own` where another has it. */
static held *take(const weft_table *table, int64_t record, held *own)
{
    held *h = &((jsonl *)table->state)->held[record / GROUP % N_HELD];
    bool is_free = false;
    *own = (held){.record = -1};
    return weft_sync_replace(&h->is_taken, &is_free, true) ? h : own;
}

static void give(held *h, held *own)
{
    if (h == own || h->room > 2 * LONGEST_GROUP) {
        free(h->text);
        h->text = NULL, h->room = h->first = h->end = 0, h->record = -1;
    }
    if (h != own) weft_sync_store_release(&h->is_taken, false);
}

static weft_status jsonl_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                               weft_error *error)
{
    held own, *h = take(table, record, &own);
    bool is_found = false;
    const weft_status status = find(table, h, record, field, &is_found, error);
    if (status == WEFT_OK && is_found) *dims = h->value.n;
    give(h, &own);
    return status != WEFT_OK || is_found ? status : parsed_shape(table, record, field, dims, error);
}

static void put_value(const weft_record_field *f, const weft_json_value *v, int64_t begin,
                      int64_t end, void *to)
{
    const bool is_true = v->kind == WEFT_JSON_BOOLEAN && *v->begin == 't';
    if (f->is_text)
        weft_json_take_text(v, begin, end, to);
    else if (v->kind == WEFT_JSON_BOOLEAN && f->dtype == WEFT_F64)
        *(double *)to = is_true;
    else if (v->kind == WEFT_JSON_BOOLEAN)
        *(int64_t *)to = is_true;
    else if (v->kind == WEFT_JSON_ABSENT ||
             v->kind == WEFT_JSON_NULL) /* of a float; rows are empty */
        *(double *)to = NAN;
    else
        weft_json_take_numbers(v, f->dtype, begin, end, to);
}

/* A file that changed is refused here, its lines held or not: a shape alone does no harm. */
static weft_status jsonl_read(const weft_table *table, int64_t record, int field, int64_t begin,
                              int64_t end, void *to, weft_error *error)
{
    const weft_record_field *f = &table->fields[field];
    held own, *h = take(table, record, &own);
    bool is_found = false;
    if (table->source.file < 0)
        h->first = h->end = 0, h->record = -1; /* opened, and checked, by each read */
    weft_status status = find(table, h, record, field, &is_found, error);
    if (status == WEFT_OK) status = weft_source_check(&table->source, error);
    if (status == WEFT_OK && is_found) status = check_end(table, f, h->value.n, end, error);
    if (status == WEFT_OK && is_found) put_value(f, &h->value, begin, end, to);
    give(h, &own);
    return status != WEFT_OK || is_found ? status
                                         : parsed_read(table, record, field, begin, end, to, error);
}

static void jsonl_close(weft_table *table)
{
    jsonl *state = table->state;
    if (state == NULL) return;
    for (int i = 0; i < N_HELD; i++)
        free(state->held[i].text);
    free(state->lines.begins);
    free(state);
}

const weft_record_kind weft_kind_jsonl = {.name = "jsonl",
                                          .endings = " .jsonl .ndjson .json ",
                                          .open = jsonl_open,
                                          .shape = jsonl_shape,
                                          .read = jsonl_read,
                                          .close = jsonl_close};
