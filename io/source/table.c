/* table: the fields of a table, as its kind finds them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

weft_status weft_grow(void **array, int64_t n, int64_t *room, size_t bytes, weft_error *error)
{
    if (n < *room) return WEFT_OK;
    const int64_t more = *room > 0 ? *room * 2 : 64;
    void *grown = realloc(*array, (size_t)more * bytes);
    if (grown == NULL) return weft_fail_memory(error, (size_t)more * bytes);
    *array = grown;
    *room = more;
    return WEFT_OK;
}

weft_record_field *weft_table_field(weft_table *table, const char *name, size_t n, weft_dtype dtype,
                                    int n_dims, const int64_t *dims)
{
    if (table->n_fields == table->room) {
        const int room = table->room > 0 ? 2 * table->room : 8;
        weft_record_field *grown = realloc(table->fields, (size_t)room * sizeof *grown);
        if (grown == NULL) return NULL;
        table->fields = grown;
        table->room = room;
    }
    weft_record_field *field = &table->fields[table->n_fields++];
    *field = (weft_record_field){.dtype = dtype, .n_dims = n_dims};
    snprintf(field->name, sizeof field->name, "%.*s", n < 1000 ? (int)n : 1000, name);
    for (int d = 0; d < n_dims; d++)
        field->dims[d] = dims[d];
    return field;
}

weft_record_field *weft_table_text(weft_table *table, const char *name, size_t n)
{
    const int64_t any = -1;
    weft_record_field *field = weft_table_field(table, name, n, WEFT_U8, 1, &any);
    if (field != NULL) field->is_text = true;
    return field;
}

bool weft_table_wants(const char *wanted, const char *name, size_t n)
{
    if (wanted == NULL) return true;
    while (*wanted != '\0') {
        wanted += strspn(wanted, ", ");
        const size_t length = strcspn(wanted, ",");
        size_t end = length;
        while (end > 0 && wanted[end - 1] == ' ')
            end--;
        if (end == n && memcmp(wanted, name, n) == 0) return true;
        wanted += length;
    }
    return false;
}
