/* images: a JPEG or PNG file is a record. Its pixels are decoded in a process apart. Where files lie in folders of classes, so is its
 * class. */
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
    const int64_t dims[] = {table->rows > 0 ? table->rows : -1,
                            table->columns > 0 ? table->columns : -1, -1};
    (void)wanted;
    table->n_records = 1;
    if (weft_table_field(table, "image", 5, WEFT_U8, 3, dims) != NULL &&
        (table->label < 0 || weft_table_field(table, "label", 5, WEFT_I32, 0, NULL) != NULL))
        return WEFT_OK;
    return weft_fail_memory(error, 2 * sizeof *table->fields);
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
    if (field == 1) {
        memcpy(to, &(int32_t){table->label}, sizeof(int32_t));
        return WEFT_OK;
    }
    return weft_member_read(&table->source, &table->fields[field], "png",
                            &(weft_member){0, table->source.bytes}, begin, end, to, error);
}

const weft_record_kind weft_kind_images = {.name = "images",
                                           .is = images_is,
                                           .open = images_open,
                                           .shape = images_shape,
                                           .read = images_read};
