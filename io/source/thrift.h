/* thrift.h (private): reading Thrift's compact protocol from bytes of any content. Nothing is read beyond them. The first fault is
 * remembered (is_bad), and all later answers are 0. */
#ifndef WEFT_IO_THRIFT_H
#define WEFT_IO_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_thrift {
    const uint8_t *at, *end;
    bool is_bad;
    int depth; /* of what is skipped */
} weft_thrift;

enum {
    WEFT_THRIFT_TRUE = 1,
    WEFT_THRIFT_BINARY = 8,
    WEFT_THRIFT_LIST = 9,
    WEFT_THRIFT_STRUCT = 12
};

/* All Local. */
uint64_t weft_thrift_varint(weft_thrift *t);
/* The next field of a struct, or false at its end. id: 0 before the first. */
bool weft_thrift_field(weft_thrift *t, int *id, int *type);
/* A number of any width; a boolean, which is in its type. */
int64_t weft_thrift_number(weft_thrift *t, int type);
const char *weft_thrift_text(weft_thrift *t, int type, int64_t *n);
/* How many entries; at most as many as there are bytes. */
int64_t weft_thrift_list(weft_thrift *t, int type, int *entry);
void weft_thrift_skip(weft_thrift *t, int type);

#endif
