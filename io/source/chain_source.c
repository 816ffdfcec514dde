/* chain_source: files of records as a source of chains.
 *
 * A field whose records have other sizes of one dim is ragged. Where they have others of several, as images do, all records need the
 * sizes of the first: one that differs is refused when it is read, with its number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sources.h"
#include "records.h"

static const char *const dim_names[] = {"row", "column", "channel"};
static const char *const more_names[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"};

typedef struct opened {
    weft_records *records;
    int64_t first[WEFT_MAX_FIELDS][WEFT_RECORD_DIMS]; /* sizes of the first record */
    bool is_open[WEFT_MAX_FIELDS]; /* they are not all fixed, and have to be those of the first */
} opened;

static void records_close(void *self)
{
    opened *o = self;
    weft_records_close(&o->records);
    free(o);
}

static weft_status records_count(const void *self, int64_t record, int field, void *scratch,
                                 int64_t *n, weft_error *error)
{
    (void)scratch;
    return weft_records_shape(((const opened *)self)->records, record, field, n, error);
}

static const char *dim_name(const weft_record_field *f, int d)
{
    return f->n_dims == 1  ? f->is_text ? "byte" : "element"
           : f->n_dims > 3 ? more_names[d]
                           : dim_names[d];
}

static bool is_open(const weft_record_field *f)
{
    for (int d = 0; d < f->n_dims; d++)
        if (f->dims[d] < 0) return true;
    return false;
}

/* One that has no fixed sizes has those of the first. */
static weft_status check_sizes(const opened *o, int64_t record, int field, weft_error *error)
{
    int64_t now[WEFT_RECORD_DIMS];
    const int64_t *first = o->first[field];
    const weft_record_field *f = weft_records_field(o->records, field);
    if (!o->is_open[field] || record == 0) return WEFT_OK;
    WEFT_TRY(weft_records_shape(o->records, record, field, now, error));
    for (int d = 0; d < f->n_dims; d++)
        if (first[d] != now[d])
            return weft_fail(error, WEFT_USAGE,
                             "%.160s: %s of record %lld has %lld %ss, and the first record has "
                             "%lld; give all the same size%s",
                             weft_records_file(o->records, 0), f->name, (long long)record,
                             (long long)now[d], dim_name(f, d), (long long)first[d],
                             f->n_dims == 3 && d < 2 ? ", or name one that they are scaled to"
                                                     : "");
    return WEFT_OK;
}

static weft_status records_read(const void *self, int64_t record, const weft_want *wants,
                                int n_wants, void *scratch, weft_error *error)
{
    const opened *o = self;
    (void)scratch;
    for (int i = 0; i < n_wants; i++) {
        WEFT_TRY(check_sizes(o, record, wants[i].field, error));
        WEFT_TRY(weft_records_read(o->records, record, wants[i].field, wants[i].begin, wants[i].end,
                                   wants[i].to, error));
    }
    return WEFT_OK;
}

static weft_status describe(opened *o, int i, weft_field *field, weft_error *error)
{
    const weft_records *records = o->records;
    const weft_record_field *f = weft_records_field(records, i);
    int64_t *dims = o->first[i];
    *field = (weft_field){.name = f->name, .dtype = f->dtype, .is_unnamed = true};
    field->is_ragged = f->n_dims == 1 && f->dims[0] < 0;
    if (f->n_dims > WEFT_MAX_DIMS - 1)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s: %s has %d dims, and with batch at most %d can be",
                         weft_records_file(records, 0), f->name, f->n_dims, WEFT_MAX_DIMS);
    if (!field->is_ragged) WEFT_TRY(weft_records_shape(records, 0, i, dims, error));
    o->is_open[i] = !field->is_ragged && is_open(f);
    field->shape.n_dims = f->n_dims;
    for (int d = 0; d < f->n_dims; d++) {
        field->shape.dims[d].name = dim_name(f, d);
        field->shape.dims[d].size = dims[d];
    }
    return WEFT_OK;
}

static weft_status describe_all(opened *o, weft_chain_found *found, weft_error *error)
{
    char list[200] = "";
    const weft_records *records = o->records;
    found->records = weft_records_count(records);
    found->n_fields = weft_records_fields(records);
    for (int i = 0; i < found->n_fields && strlen(list) + 2 < sizeof list; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "",
                 weft_records_field(records, i)->name);
    if (found->n_fields > WEFT_MAX_FIELDS)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s: records have %d fields, and a chain has up to %d; name those "
                         "that are wanted: %s",
                         weft_records_file(records, 0), found->n_fields, WEFT_MAX_FIELDS, list);
    for (int i = 0; i < found->n_fields; i++)
        WEFT_TRY(describe(o, i, &found->fields[i], error));
    return WEFT_OK;
}

static const weft_chain_kind records_kind = {
    .name = "records", .read = records_read, .close = records_close, .count = records_count};

/* Classes have their folders' names, and files their folders: neither is in the bytes. */
static weft_status say_classes(const weft_records *records, weft_chain **chain, weft_error *error)
{
    size_t bytes = 64;
    int n;
    const char *const *names = weft_records_classes(records, &n);
    const int field = n > 0 ? weft_chain_field(*chain, "label") : -1;
    if (field < 0) return WEFT_OK;
    (*chain)->found.fields[field].labels = names;
    (*chain)->found.fields[field].n_labels = n;
    (*chain)->found.fields[field].ids = "classes";
    for (int i = 0; i < n; i++)
        bytes += strlen(names[i]) + 2;
    char *text = malloc(bytes), digits[WEFT_HASH_DIGITS + 1];
    if (text == NULL) {
        weft_chain_close(chain);
        return weft_fail_memory(error, bytes);
    }
    const weft_hash hash = weft_records_labels_hash(records);
    weft_hash_print(&hash, digits);
    size_t used = (size_t)sprintf(text, "%d (hash %s)", n, digits);
    for (int i = 0; i < n; i++)
        used += (size_t)sprintf(text + used, "%s%s", i > 0 ? ", " : " ", names[i]);
    const weft_status status = weft_chain_say(chain, "classes", text, error);
    free(text);
    return status;
}

static weft_status say_size(const weft_open_options *o, weft_chain **chain, weft_error *error)
{
    char text[64];
    if (o->rows <= 0) return WEFT_OK;
    snprintf(text, sizeof text, "%lld x %lld", (long long)o->rows, (long long)o->columns);
    return weft_chain_say(chain, "scaled to", text, error);
}

static weft_status check_scale(const weft_open_options *o, const char *path, weft_error *error)
{
    const bool is_none = o->rows == 0 && o->columns == 0;
    if (is_none || (o->rows >= 1 && o->columns >= 1 && o->rows <= 1 << 14 && o->columns <= 1 << 14))
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.240s: images of %lld rows and %lld columns; both are 1 to 16384, or both 0 "
                     "for images as they are",
                     path, (long long)o->rows, (long long)o->columns);
}

weft_status weft_records_source(const char *path, const weft_open_options *options,
                                weft_chain **chain, weft_error *error)
{
    const weft_records_options wanted = {.format = options->format,
                                         .fields = options->fields,
                                         .rows = options->rows,
                                         .columns = options->columns};
    weft_chain_found found = {0};
    char print[WEFT_RECORDS_PRINT];
    WEFT_TRY(check_scale(options, path, error));
    opened *o = calloc(1, sizeof *o);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    weft_status status = weft_records_open(path, &wanted, &o->records, error);
    if (status == WEFT_OK) status = describe_all(o, &found, error);
    if (status == WEFT_OK) status = weft_records_print(o->records, print, error);
    if (status != WEFT_OK) {
        records_close(o);
        return status;
    }
    const char *format = weft_records_format(o->records);
    WEFT_TRY(weft_chain_make(&records_kind, o, &found, chain, error));
    (*chain)->format = format;
    WEFT_TRY(weft_chain_say(chain, format, print, error));
    WEFT_TRY(say_classes(o->records, chain, error));
    WEFT_TRY(say_size(options, chain, error));
    return options->fields ? weft_chain_say(chain, "fields", options->fields, error) : WEFT_OK;
}
