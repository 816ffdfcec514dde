/* images: a JPEG or PNG file is a record. Its pixels are decoded in a process apart. */
#include <stdlib.h>
#include <string.h>

#include "member.h"

static bool images_is(const unsigned char *head, size_t n)
{
    return (n >= 8 && memcmp(head, "\x89PNG\r\n\032\n", 8) == 0) ||
           (n >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0);
}

static weft_status images_open(weft_table *table, const char *wanted, weft_error *error)
{
    const int64_t any[] = {-1, -1, -1};
    (void)wanted;
    table->n_records = 1;
    return weft_table_field(table, "image", 5, WEFT_U8, 3, any)
               ? WEFT_OK
               : weft_fail_memory(error, sizeof *table->fields);
}

static weft_status images_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                                weft_error *error)
{
    (void)record;
    return weft_member_shape(&table->source, &table->fields[field], "png",
                             &(weft_member){0, table->source.bytes}, dims, error);
}

static weft_status images_read(const weft_table *table, int64_t record, int field, int64_t begin,
                               int64_t end, void *to, weft_error *error)
{
    (void)record;
    return weft_member_read(&table->source, &table->fields[field], "png",
                            &(weft_member){0, table->source.bytes}, begin, end, to, error);
}

const weft_record_kind weft_kind_images = {.name = "images",
                                           .is = images_is,
                                           .open = images_open,
                                           .shape = images_shape,
                                           .read = images_read};
