/* whole: a file of text as one record: a pattern of books is as many records. Compressed ones too. */
#include "source.h"
#include "weft/io.h"

static weft_status whole_open(weft_table *table, const char *wanted, weft_error *error)
{
    char head[WEFT_SOURCE_LOOK];
    const weft_source *source = &table->source;
    const int64_t n = source->bytes < WEFT_SOURCE_LOOK ? source->bytes : WEFT_SOURCE_LOOK;
    (void)wanted;
    WEFT_TRY(weft_source_read(source, head, n, 0, error));
    WEFT_TRY(weft_bytes_check(head, (size_t)n, source->path, WEFT_FILE_TEXT, error));
    table->n_records = 1;
    return weft_table_text(table, "text", 4) ? WEFT_OK
                                             : weft_fail_memory(error, sizeof *table->fields);
}

static weft_status whole_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                               weft_error *error)
{
    (void)record, (void)field, (void)error;
    *dims = table->source.bytes;
    return WEFT_OK;
}

static weft_status whole_read(const weft_table *table, int64_t record, int field, int64_t begin,
                              int64_t end, void *to, weft_error *error)
{
    (void)record, (void)field;
    return weft_source_read(&table->source, to, end - begin, begin, error);
}

const weft_record_kind weft_kind_whole = {
    .name = "text", .open = whole_open, .shape = whole_shape, .read = whole_read};
