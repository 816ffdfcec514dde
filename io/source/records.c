/* records: files of one format as one list of records, with the fields that are wanted. */
#include "records.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../dataset.h"
#include "../fingerprint.h"
#include "classes.h"
#include "paths.h"
#include "source.h"

/* The first that fits is it: by bytes, then by ending. */
static const weft_record_kind *const kinds[] = {
    &weft_kind_npy,  &weft_kind_npz, &weft_kind_tar,   &weft_kind_images, &weft_kind_parquet,
    &weft_kind_hdf5, &weft_kind_csv, &weft_kind_jsonl, &weft_kind_lines,  &weft_kind_whole,
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
#define FORMATS "npy, npz, csv, jsonl, lines, text, tar, images, parquet and hdf5"

typedef struct part {
    weft_table table;
    int64_t begin; /* its first record among all */
    int *of;       /* [n_fields] which of the table's a field is */
} part;

struct weft_records {
    const weft_record_kind *kind;
    const weft_record_kind *named; /* the format that was said, or NULL */
    weft_paths paths;
    weft_classes classes;
    int n_parts; /* that are open or half so */
    part *parts; /* [paths.n] */
    int64_t n_records;
    int n_fields;
    weft_record_field *fields; /* [n_fields], of the first part */
};

/* ---- the format ---------------------------------------------------------------------------------- */

static bool has_ending(const weft_record_kind *kind, const char *ending)
{
    char between[24];
    snprintf(between, sizeof between, " %s ", ending);
    return kind->endings != NULL && ending[0] != '\0' && strstr(kind->endings, between) != NULL;
}

static const weft_record_kind *kind_of(const unsigned char *head, size_t n, const char *ending)
{
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i]->is != NULL && kinds[i]->is(head, n)) return kinds[i];
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i]->is == NULL && has_ending(kinds[i], ending)) return kinds[i];
    return NULL;
}

/* What the file is, where it is of no format that has records. */
static weft_status fail_kind(const weft_source *source, const void *head, size_t n,
                             weft_error *error)
{
    WEFT_TRY(weft_bytes_check(head, n, source->path, WEFT_FILE_JSON, error));
    return weft_source_fail(source, error,
                            "neither its bytes nor its ending say what it is; formats of records "
                            "are " FORMATS ", text by the endings .csv, .tsv, .jsonl and .txt");
}

static const weft_record_kind *kind_named(const char *format)
{
    for (int i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i]->name, format) == 0) return kinds[i];
    return NULL;
}

static weft_status find_kind(weft_records *records, const weft_source *source, const char *ending,
                             weft_error *error)
{
    unsigned char head[WEFT_SOURCE_LOOK + 1] = "";
    const int64_t n = source->bytes < WEFT_SOURCE_LOOK ? source->bytes : WEFT_SOURCE_LOOK;
    if (n == 0) return weft_fail(error, WEFT_IO, "data file %.300s is empty", source->path);
    WEFT_TRY(weft_source_read(source, head, n, 0, error));
    const weft_record_kind *kind =
        records->named ? records->named : kind_of(head, (size_t)n, ending);
    if (kind == NULL) return fail_kind(source, head, (size_t)n, error);
    if (records->kind != NULL && records->kind != kind)
        return weft_source_fail(source, error,
                                "its format is %s, and that of %.160s is %s; name files of one",
                                kind->name, records->paths.paths[0], records->kind->name);
    records->kind = kind;
    return WEFT_OK;
}

bool weft_records_expands(const char *path)
{
    weft_source source;
    char ending[16];
    bool is_compressed = false;
    if (weft_source_look(&source, path, ending, &is_compressed, NULL) != WEFT_OK) return false;
    weft_source_close(&source);
    return is_compressed;
}

bool weft_records_finds(const char *format)
{
    return kind_named(format) != NULL;
}

static const weft_record_kind *look_at(const char *path)
{
    unsigned char head[WEFT_SOURCE_LOOK + 1] = "";
    weft_source source;
    char ending[16];
    bool is_compressed = false;
    const weft_record_kind *kind = NULL;
    if (weft_source_look(&source, path, ending, &is_compressed, NULL) != WEFT_OK) return NULL;
    const int64_t n = source.bytes < WEFT_SOURCE_LOOK ? source.bytes : WEFT_SOURCE_LOOK;
    if (is_compressed) {
        for (int i = 0; i < N_KINDS && kind == NULL; i++)
            if (has_ending(kinds[i], ending)) kind = kinds[i];
    } else if (weft_source_read(&source, head, n, 0, NULL) == WEFT_OK)
        kind = kind_of(head, (size_t)n, ending);
    weft_source_close(&source);
    return kind;
}

const char *weft_records_sees(const char *pattern)
{
    weft_paths paths;
    const weft_record_kind *kind = NULL;
    if (weft_paths_find(pattern, 0, 0, &paths, NULL) == WEFT_OK) kind = look_at(paths.paths[0]);
    weft_paths_free(&paths);
    return kind == NULL || kind == &weft_kind_lines ? NULL : kind->name;
}

/* ---- fields -------------------------------------------------------------------------------------- */

static int find_field(const weft_table *table, const char *name, size_t n)
{
    for (int i = 0; i < table->n_fields; i++)
        if (strlen(table->fields[i].name) == n && memcmp(table->fields[i].name, name, n) == 0)
            return i;
    return -1;
}

static weft_status fail_field(const weft_records *records, const weft_table *table,
                              const char *name, size_t n, weft_error *error)
{
    const char *names[WEFT_RECORD_FIELDS];
    char said[WEFT_RECORD_NAME + 1], list[160] = "";
    int shown = 0;
    snprintf(said, sizeof said, "%.*s", n < WEFT_RECORD_NAME ? (int)n : WEFT_RECORD_NAME, name);
    weft_table whole = *table; /* with the fields that are not wanted, too */
    whole.state = NULL, whole.fields = NULL, whole.n_fields = whole.room = 0;
    const bool is_open = records->kind->open(&whole, NULL, NULL) == WEFT_OK;
    for (; is_open && shown < whole.n_fields && shown < WEFT_RECORD_FIELDS; shown++) {
        const size_t used = strlen(list);
        names[shown] = whole.fields[shown].name;
        snprintf(list + used, sizeof list - used, "%s%s", shown > 0 ? ", " : "", names[shown]);
    }
    const char *near = weft_nearest(said, names, shown);
    const weft_status status =
        weft_source_fail(&table->source, error, "it has no field %s%s%s%s; it has: %s", said,
                         near ? "; did you mean " : "", near ? near : "", near ? "?" : "", list);
    if (whole.state != NULL) records->kind->close(&whole);
    free(whole.fields);
    return status;
}

/* The fields of the first file, as they are wanted. */
static weft_status choose(weft_records *records, const char *wanted, weft_error *error)
{
    const weft_table *table = &records->parts[0].table;
    const size_t room =
        (size_t)(table->n_fields > WEFT_RECORD_FIELDS ? table->n_fields : WEFT_RECORD_FIELDS);
    records->fields = calloc(room, sizeof *records->fields);
    if (records->fields == NULL) return weft_fail_memory(error, room * sizeof *records->fields);
    if (wanted == NULL) {
        records->n_fields = table->n_fields;
        if (table->n_fields > 0)
            memcpy(records->fields, table->fields,
                   (size_t)table->n_fields * sizeof *records->fields);
    }
    while (wanted != NULL && *(wanted += strspn(wanted, ", ")) != '\0') {
        const size_t length = strcspn(wanted, ",");
        size_t n = length;
        while (n > 0 && wanted[n - 1] == ' ')
            n--;
        const int at = find_field(table, wanted, n);
        if (at < 0) return fail_field(records, table, wanted, n, error);
        if (records->n_fields < WEFT_RECORD_FIELDS)
            records->fields[records->n_fields++] = table->fields[at];
        wanted += length;
    }
    if (records->n_fields > 0 && records->n_fields <= WEFT_RECORD_FIELDS) return WEFT_OK;
    return weft_source_fail(&table->source, error,
                            "its records have %d fields, and 1 to %d can be read; name those that "
                            "are wanted",
                            records->n_fields, WEFT_RECORD_FIELDS);
}

static void print_field(const weft_record_field *f, char text[160])
{
    size_t used =
        (size_t)snprintf(text, 160, "%s", f->is_text ? "text" : weft_dtype_name(f->dtype));
    for (int d = 0; d < f->n_dims && !f->is_text && used < 100; d++)
        used +=
            (size_t)(f->dims[d] < 0 ? snprintf(text + used, 160 - used, "%s?", d == 0 ? " [" : ", ")
                                    : snprintf(text + used, 160 - used, "%s%lld",
                                               d == 0 ? " [" : ", ", (long long)f->dims[d]));
    if (f->n_dims > 0 && !f->is_text) snprintf(text + used, 160 - used, "]");
}

static bool same_field(const weft_record_field *a, const weft_record_field *b)
{
    return a->dtype == b->dtype && a->is_text == b->is_text && a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

/* Fields may stand in another order in another file. */
static weft_status match(weft_records *records, part *p, weft_error *error)
{
    p->of = calloc((size_t)records->n_fields, sizeof *p->of);
    if (p->of == NULL) return weft_fail_memory(error, (size_t)records->n_fields * sizeof *p->of);
    for (int i = 0; i < records->n_fields; i++) {
        const weft_record_field *f = &records->fields[i];
        char one[160], other[160];
        p->of[i] = find_field(&p->table, f->name, strlen(f->name));
        if (p->of[i] < 0) return fail_field(records, &p->table, f->name, strlen(f->name), error);
        if (same_field(f, &p->table.fields[p->of[i]])) continue;
        print_field(&p->table.fields[p->of[i]], one);
        print_field(f, other);
        return weft_source_fail(&p->table.source, error,
                                "field %s is %s, and %s in %.140s; write them alike", f->name, one,
                                other, records->paths.paths[0]);
    }
    return WEFT_OK;
}

/* ---- life ----------------------------------------------------------------------------------------- */

static weft_status open_part(weft_records *records, int i, const weft_records_options *o,
                             weft_error *error)
{
    part *p = &records->parts[i];
    const char *wanted = o->fields;
    char ending[16];
    const bool is_kept = records->paths.n <= WEFT_SOURCE_MANY;
    WEFT_TRY(weft_source_open(&p->table.source, records->paths.paths[i], is_kept, ending, error));
    records->n_parts = i + 1;
    WEFT_TRY(find_kind(records, &p->table.source, ending, error));
    p->table.rows = o->rows, p->table.columns = o->columns;
    p->table.label = records->classes.n > 0 ? records->classes.of[i] : -1;
    WEFT_TRY(records->kind->open(&p->table, wanted, error));
    if (p->table.n_records < 1)
        return weft_source_fail(&p->table.source, error, "there is no record in it");
    p->begin = records->n_records;
    records->n_records += p->table.n_records;
    if (i == 0) WEFT_TRY(choose(records, wanted, error));
    return match(records, p, error);
}

static weft_status open_all(weft_records *records, const weft_records_options *o, weft_error *error)
{
    const size_t n = (size_t)records->paths.n;
    records->parts = calloc(n, sizeof *records->parts);
    if (records->parts == NULL) return weft_fail_memory(error, n * sizeof *records->parts);
    for (int i = 0; i < records->paths.n; i++)
        WEFT_TRY(open_part(records, i, o, error));
    return WEFT_OK;
}

weft_status weft_records_open(const char *pattern, const weft_records_options *options,
                              weft_records **records, weft_error *error)
{
    const weft_records_options all = {0}, *o = options != NULL ? options : &all;
    WEFT_GIVEN(records, error);
    *records = NULL;
    WEFT_GIVEN(pattern, error);
    WEFT_GIVEN_RANGE(o->n_parts, 0, 1 << 20, error);
    WEFT_GIVEN_RANGE(o->part, 0, o->n_parts > 0 ? o->n_parts - 1 : 0, error);
    weft_records *made = calloc(1, sizeof *made);
    if (made == NULL) return weft_fail_memory(error, sizeof *made);
    if (o->format != NULL) made->named = kind_named(o->format);
    weft_status status = weft_paths_find(pattern, o->part, o->n_parts, &made->paths, error);
    if (status == WEFT_OK && o->format != NULL && made->named == NULL)
        status =
            weft_fail(error, WEFT_USAGE, "there is no format %.40s; there are " FORMATS, o->format);
    if (status == WEFT_OK) status = weft_classes_find(&made->paths, pattern, &made->classes, error);
    if (status == WEFT_OK) status = open_all(made, o, error);
    if (status != WEFT_OK) weft_records_close(&made);
    *records = made;
    return status;
}

void weft_records_close(weft_records **records)
{
    weft_records *r = records != NULL ? *records : NULL;
    if (r == NULL) return;
    for (int i = 0; i < r->n_parts; i++) {
        if (r->kind != NULL && r->parts[i].table.state != NULL) r->kind->close(&r->parts[i].table);
        weft_source_close(&r->parts[i].table.source);
        free(r->parts[i].table.fields);
        free(r->parts[i].of);
    }
    free(r->parts);
    free(r->fields);
    weft_paths_free(&r->paths);
    weft_classes_free(&r->classes);
    free(r);
    *records = NULL;
}

/* ---- asking ---------------------------------------------------------------------------------------- */

int64_t weft_records_count(const weft_records *records)
{
    return records != NULL ? records->n_records : 0;
}

int weft_records_files(const weft_records *records)
{
    return records != NULL ? records->paths.n : 0;
}

const char *weft_records_file(const weft_records *records, int file)
{
    return records != NULL && file >= 0 && file < records->paths.n ? records->paths.paths[file]
                                                                   : "";
}

const char *weft_records_format(const weft_records *records)
{
    return records != NULL ? records->kind->name : "";
}

int weft_records_fields(const weft_records *records)
{
    return records != NULL ? records->n_fields : 0;
}

const weft_record_field *weft_records_field(const weft_records *records, int field)
{
    return records != NULL && field >= 0 && field < records->n_fields ? &records->fields[field]
                                                                      : NULL;
}

const char *const *weft_records_classes(const weft_records *records, int *n)
{
    *n = records != NULL && records->kind == &weft_kind_images ? records->classes.n : 0;
    return *n > 0 ? records->classes.names : NULL;
}

weft_hash weft_records_labels_hash(const weft_records *records)
{
    const weft_classes *c = &records->classes;
    return weft_hash_of(c->of, c->n > 0 ? (size_t)records->paths.n * sizeof *c->of : 0);
}

/* The file that a record is in: the last that begins at it or before. */
static const part *part_of(const weft_records *records, int64_t record)
{
    int low = 0, high = records->n_parts - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (records->parts[middle].begin <= record)
            low = middle;
        else
            high = middle - 1;
    }
    return &records->parts[low];
}

/* What a file said that cannot be read ends with the number of the record. */
static weft_status at_record(weft_status status, int64_t record, weft_error *error)
{
    if (status == WEFT_OK || status == WEFT_MEMORY || error == NULL) return status;
    const size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, " (record %lld)",
             (long long)record);
    return status;
}

static weft_status shape_of(const part *p, const weft_record_kind *kind, int64_t record, int field,
                            int64_t *dims, int64_t *elements, weft_error *error)
{
    const weft_record_field *f = &p->table.fields[p->of[field]];
    bool is_fixed = true;
    for (int d = 0; d < f->n_dims; d++) {
        dims[d] = f->dims[d];
        is_fixed = is_fixed && dims[d] >= 0;
    }
    if (!is_fixed)
        WEFT_TRY(at_record(kind->shape(&p->table, record - p->begin, p->of[field], dims, error),
                           record, error));
    *elements = 1;
    for (int d = 0; d < f->n_dims; d++)
        *elements *= dims[d];
    return WEFT_OK;
}

weft_status weft_records_shape(const weft_records *records, int64_t record, int field,
                               int64_t *dims, weft_error *error)
{
    int64_t elements;
    WEFT_GIVEN(records, error);
    WEFT_GIVEN_RANGE(record, 0, records->n_records - 1, error);
    WEFT_GIVEN_RANGE(field, 0, records->n_fields - 1, error);
    WEFT_GIVEN(dims, error);
    return shape_of(part_of(records, record), records->kind, record, field, dims, &elements, error);
}

weft_status weft_records_read(const weft_records *records, int64_t record, int field, int64_t begin,
                              int64_t end, void *to, weft_error *error)
{
    int64_t dims[WEFT_RECORD_DIMS], elements;
    WEFT_GIVEN(records, error);
    WEFT_GIVEN_RANGE(record, 0, records->n_records - 1, error);
    WEFT_GIVEN_RANGE(field, 0, records->n_fields - 1, error);
    WEFT_GIVEN(to, error);
    const part *p = part_of(records, record);
    WEFT_TRY(shape_of(p, records->kind, record, field, dims, &elements, error));
    WEFT_GIVEN_RANGE(end, 0, elements, error);
    WEFT_GIVEN_RANGE(begin, 0, end, error);
    if (begin == end) return WEFT_OK;
    return at_record(
        records->kind->read(&p->table, record - p->begin, p->of[field], begin, end, to, error),
        record, error);
}

/* ---- identity -------------------------------------------------------------------------------------- */

static weft_status hash_file(const weft_source *source, int64_t blocks, weft_hashing *hashing,
                             char *room, weft_error *error)
{
    const int64_t bytes = source->bytes, block = WEFT_PRINT_BLOCK;
    const bool is_whole = blocks == 0 || bytes <= blocks * block;
    const int64_t n = is_whole ? (bytes + block - 1) / block : blocks;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = is_whole ? i * block : n > 1 ? (bytes - block) / (n - 1) * i : 0;
        const int64_t there = i == n - 1 && !is_whole ? bytes - block : at;
        const int64_t length = bytes - there < block ? bytes - there : block;
        WEFT_TRY(weft_source_read(source, room, length, there, error));
        weft_hash_add(hashing, room, (size_t)length);
    }
    return WEFT_OK;
}

weft_status weft_records_print(const weft_records *records, char *text, weft_error *error)
{
    weft_fingerprint print;
    int64_t bytes = 0;
    WEFT_GIVEN(records, error);
    WEFT_GIVEN(text, error);
    weft_status status = WEFT_OK;
    char *room = malloc(WEFT_PRINT_BLOCK);
    if (room == NULL) return weft_fail_memory(error, WEFT_PRINT_BLOCK);
    for (int i = 0; i < records->n_parts; i++)
        bytes += records->parts[i].table.source.bytes;
    const int64_t few =
        WEFT_PRINT_BLOCKS / records->n_parts > 2 ? WEFT_PRINT_BLOCKS / records->n_parts : 2;
    weft_fingerprint_begin(&print, bytes);
    for (int i = 0; i < records->n_parts && status == WEFT_OK; i++) {
        const weft_source *source = &records->parts[i].table.source;
        weft_hash_add(&print.hashing, &source->bytes, sizeof source->bytes);
        status = hash_file(source, bytes > WEFT_PRINT_WHOLE ? few : 0, &print.hashing, room, error);
    }
    free(room);
    weft_fingerprint_end(&print, "bytes", bytes, text);
    return status;
}
