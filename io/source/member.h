/* member.h (private): a whole file of one value, alone or in an archive, as a field: what its ending says it is. */
#ifndef WEFT_IO_MEMBER_H
#define WEFT_IO_MEMBER_H

#include "source.h"

typedef struct weft_member {
    int64_t at, bytes; /* in the source */
} weft_member;

/* weft_member_field - a field by an ending: jpg, jpeg, png: image [row, column, channel] u8; npy: an array; cls, id: a whole number; txt,
 * text, json: text; else bytes. All Local. weft_member_shape, weft_member_read - of one of them. */
weft_status weft_member_field(weft_table *table, const char *ending, const weft_member *first,
                              weft_error *error);
weft_status weft_member_shape(const weft_source *source, const weft_record_field *field,
                              const char *ending, const weft_member *member, int64_t *dims,
                              weft_error *error);
weft_status weft_member_read(const weft_source *source, const weft_record_field *field,
                             const char *ending, const weft_member *member, int64_t begin,
                             int64_t end, void *to, weft_error *error);

#endif
