/* data: `weft data FILES...`: what files hold that programs read: their format, records and fields; and some records as they are. */
#include "data.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../app.h"
#include "../../json.h"
#include "weft/collectives.h"
#include "weft/data.h"

static const option options[] = {
    {"format", OPTION_TEXT, "", "NAME", "Options",
     "csv, jsonl, lines, npy, npz, parquet, tar, images, text, tokens, idx; without it, by the "
     "first bytes and the ending"},
    {"fields", OPTION_TEXT, "", "NAMES", "Options", "these alone, as image,label"},
    {"records", OPTION_COUNT, "0", "N", "Options", "print so many of the first records", NULL, 0,
     1000},
    {"json", OPTION_FLAG, "no", "", "Options", "the same as data"},
};
const option_table data_table = {
    .program = "weft data",
    .usage = "weft data FILES... [options]   what files hold: formats, records, fields\n"
             "\n"
             "  weft data train.csv 'books/*.txt' photos --records 2\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "what data files hold: formats, records, fields",
};

enum { SHOWN = 60 /* letters or numbers of a field */, LARGE = 1 << 26 };

/* ---- numbers of a record -------------------------------------------------------------------------- */

/* Of one field of a record, own it; n: how many numbers; NULL: too many to show some of them. */
static weft_status read_field(const weft_chain *chain, int64_t record, int field, void **numbers,
                              int64_t *n, weft_error *error)
{
    const weft_shape *shape = weft_chain_field_shape(chain, field);
    int64_t length = 1;
    *n = 1;
    if (shape->n_dims > 0) WEFT_TRY(weft_chain_lengths(chain, record, 1, field, &length, error));
    for (int d = 0; d < shape->n_dims; d++)
        *n *= d == 0 ? length : shape->dims[d].size;
    const int64_t bytes = *n * (int64_t)weft_dtype_bytes(weft_chain_field_dtype(chain, field));
    if (bytes > LARGE) return WEFT_OK;
    *numbers = calloc(1, (size_t)bytes + 1);
    if (*numbers == NULL) return weft_fail_memory(error, (size_t)bytes + 1);
    return weft_chain_read(chain, record, 1, field, *numbers, bytes, error);
}

static bool is_text(const weft_chain *chain, int field)
{
    const weft_shape *shape = weft_chain_field_shape(chain, field);
    return weft_chain_field_dtype(chain, field) == WEFT_U8 && shape->n_dims == 1 &&
           strcmp(shape->dims[0].name, "byte") == 0;
}

/* A letter of UTF-8 is not cut in two. */
static int64_t shown_bytes(const unsigned char *text, int64_t n)
{
    int64_t shown = n < SHOWN ? n : SHOWN;
    while (shown < n && shown > 0 && (text[shown] & 0xC0) == 0x80)
        shown--;
    return shown;
}

static void print_text(const unsigned char *text, int64_t n)
{
    const int64_t shown = shown_bytes(text, n);
    putchar('"');
    for (int64_t i = 0; i < shown; i++)
        putchar(text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i]);
    printf("%s\"", shown < n ? "..." : "");
}

static void print_numbers(weft_dtype dtype, const void *numbers, int64_t n, bool is_one)
{
    enum { MOST = 12 };
    printf("%s", is_one ? "" : "[");
    for (int64_t i = 0; i < n && i < MOST; i++)
        printf("%s%.6g", i > 0 ? ", " : "", weft_dtype_get(dtype, numbers, i));
    printf("%s%s", n > MOST ? ", ..." : "", is_one ? "" : "]");
}

static weft_status print_record(const weft_chain *chain, int64_t record, weft_error *error)
{
    printf("  record %lld\n", (long long)record);
    for (int f = 0; f < weft_chain_fields(chain); f++) {
        const weft_dtype dtype = weft_chain_field_dtype(chain, f);
        void *numbers = NULL;
        int64_t n;
        const weft_status status = read_field(chain, record, f, &numbers, &n, error);
        printf("    %-12s ", weft_chain_field_name(chain, f));
        if (status == WEFT_OK && numbers == NULL)
            printf("%lld numbers", (long long)n);
        else if (status == WEFT_OK && is_text(chain, f))
            print_text(numbers, n);
        else if (status == WEFT_OK)
            print_numbers(dtype, numbers, n, weft_chain_field_shape(chain, f)->n_dims == 0);
        putchar('\n');
        free(numbers);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

/* ---- for people ------------------------------------------------------------------------------------ */

static void print_labels(const weft_chain *chain, int field)
{
    const int n = weft_chain_labels(chain, field);
    enum { MOST = 8 };
    for (int i = 0; i < n && i < MOST; i++)
        printf("%s%d %s", i == 0 ? ": " : ", ", i, weft_chain_label(chain, field, i));
    if (n > MOST) printf(", ... %d in all", n);
}

/* "[row:28, column:28, channel:1]"; of another size in each record "[byte]" */
static void print_field(const weft_chain *chain, int field)
{
    const weft_shape *shape = weft_chain_field_shape(chain, field);
    printf("  %-14s %s", weft_chain_field_name(chain, field),
           is_text(chain, field) ? "text" : weft_dtype_name(weft_chain_field_dtype(chain, field)));
    for (int d = 0; d < shape->n_dims && !is_text(chain, field); d++) {
        printf("%s%s", d == 0 ? " [" : ", ", shape->dims[d].name);
        if (d > 0 || !weft_chain_is_ragged(chain, field))
            printf(":%lld", (long long)shape->dims[d].size);
    }
    if (shape->n_dims > 0 && !is_text(chain, field)) putchar(']');
    print_labels(chain, field);
    putchar('\n');
}

static weft_status print_source(const char *path, weft_chain *chain, int64_t n, weft_error *error)
{
    const long long records = weft_chain_records(chain);
    printf("%s: %s, %lld record%s\n", path, weft_chain_format(chain), records,
           records == 1 ? "" : "s");
    for (int f = 0; f < weft_chain_fields(chain); f++)
        print_field(chain, f);
    for (int64_t i = 0; i < n && i < records; i++)
        WEFT_TRY(print_record(chain, i, error));
    return WEFT_OK;
}

/* ---- as data --------------------------------------------------------------------------------------- */

static json_t *field_json(const weft_chain *chain, int field)
{
    const weft_shape *shape = weft_chain_field_shape(chain, field);
    const bool is_ragged = weft_chain_is_ragged(chain, field);
    json_t *dims = json_array(), *labels = json_array();
    for (int d = 0; d < shape->n_dims; d++)
        json_array_append_new(
            dims, json_pack("{s:s, s:o}", "name", shape->dims[d].name, "size",
                            d == 0 && is_ragged ? json_null() : json_integer(shape->dims[d].size)));
    for (int i = 0; i < weft_chain_labels(chain, field); i++)
        json_array_append_new(labels, json_string(weft_chain_label(chain, field, i)));
    return json_pack("{s:s, s:s, s:b, s:o, s:o}", "name", weft_chain_field_name(chain, field),
                     "dtype", weft_dtype_name(weft_chain_field_dtype(chain, field)), "text",
                     is_text(chain, field), "dims", dims, "labels", labels);
}

static json_t *numbers_json(const weft_chain *chain, int field, const void *numbers, int64_t n)
{
    const weft_dtype dtype = weft_chain_field_dtype(chain, field);
    const int64_t shown = n < SHOWN ? n : SHOWN;
    if (is_text(chain, field)) {
        json_t *text = json_stringn(numbers, (size_t)shown_bytes(numbers, n));
        return text ? text : json_null(); /* no UTF-8 */
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < shown; i++)
        json_array_append_new(list,
                              weft_dtype_is_float(dtype)
                                  ? app_json_number(weft_dtype_get(dtype, numbers, i))
                                  : json_integer((json_int_t)weft_dtype_get(dtype, numbers, i)));
    return list;
}

static weft_status record_json(const weft_chain *chain, int64_t record, json_t *records,
                               weft_error *error)
{
    json_t *object = json_object();
    json_array_append_new(records, object);
    for (int f = 0; f < weft_chain_fields(chain); f++) {
        void *numbers = NULL;
        int64_t n;
        const weft_status status = read_field(chain, record, f, &numbers, &n, error);
        if (status == WEFT_OK)
            json_object_set_new(object, weft_chain_field_name(chain, f),
                                numbers ? numbers_json(chain, f, numbers, n) : json_null());
        free(numbers);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status source_json(const char *path, weft_chain *chain, int64_t n, json_t *sources,
                               weft_error *error)
{
    json_t *fields = json_array(), *records = json_array();
    for (int f = 0; f < weft_chain_fields(chain); f++)
        json_array_append_new(fields, field_json(chain, f));
    json_array_append_new(sources,
                          json_pack("{s:s, s:s, s:I, s:s, s:o, s:o}", "path", path, "format",
                                    weft_chain_format(chain), "records",
                                    (json_int_t)weft_chain_records(chain), "facts",
                                    weft_chain_facts(chain), "fields", fields, "first", records));
    for (int64_t i = 0; i < n && i < weft_chain_records(chain); i++)
        WEFT_TRY(record_json(chain, i, records, error));
    return WEFT_OK;
}

/* ---- the command line ------------------------------------------------------------------------------ */

static weft_status show(const char *path, const settings *s, json_t *sources, weft_error *error)
{
    const char *format = settings_text(s, "format"), *fields = settings_text(s, "fields");
    const weft_open_options o = {.format = *format ? format : NULL,
                                 .fields = *fields ? fields : NULL};
    const int64_t n = settings_count(s, "records");
    weft_chain *chain = NULL;
    WEFT_TRY(weft_chain_open(path, &o, &chain, error));
    const weft_status status =
        sources ? source_json(path, chain, n, sources, error) : print_source(path, chain, n, error);
    weft_chain_close(&chain);
    return status;
}

static weft_status show_all(int n, char **paths, const settings *s, weft_error *error)
{
    json_t *sources = settings_flag(s, "json") ? json_array() : NULL;
    weft_status status = WEFT_OK;
    if (n == 0)
        status = weft_fail(error, WEFT_USAGE,
                           "data of which files? weft data FILES..., as weft data train.csv");
    for (int i = 0; i < n && status == WEFT_OK; i++)
        status = show(paths[i], s, sources, error);
    if (sources != NULL && status == WEFT_OK) {
        json_dumpf(sources, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(sources);
    if (fflush(stdout) != 0 && status == WEFT_OK)
        return weft_fail(error, WEFT_IO, "cannot write to stdout");
    return status;
}

int data_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const int n_paths = options_operands(&data_table, n, arguments, &error);
    settings *s = error.status == WEFT_OK
                      ? settings_read(&data_table, n - n_paths, arguments + n_paths, &error)
                      : NULL;
    if (s && weft_world_is_root()) (void)!show_all(n_paths, arguments, s, &error);
    settings_destroy(&s);
    const int code = app_leave(data_table.program, APP_STARTING, &error);
    weft_world_close();
    return code;
}
