/* proto.h: messages of protobuf, written field by field: a number, a kind, a value.
 *
 *     proto event = {0};
 *     proto_double(&event, 1, seconds);
 *     proto_number(&event, 2, (uint64_t)step);
 *     ... event.all [event.bytes] ...
 *     proto_free(&event);
 *
 * A message inside a message is its bytes (proto_message). Where memory runs out, is_short says so, and what was put since is lost.
 */
#ifndef WEFT_APPS_PROTO_H
#define WEFT_APPS_PROTO_H

#include <stddef.h>
#include <stdint.h>

typedef struct proto {
    unsigned char *all;
    size_t bytes, room;
    int is_short; /* of memory */
} proto;

void proto_number(proto *to, uint32_t field, uint64_t number); /* varint */
void proto_fixed(proto *to, uint32_t field, uint64_t number);  /* 8 bytes */
void proto_double(proto *to, uint32_t field, double number);   /* 8 bytes */
void proto_float(proto *to, uint32_t field, float number);     /* 4 bytes */
void proto_bytes(proto *to, uint32_t field, const void *data, size_t bytes);
void proto_text(proto *to, uint32_t field, const char *text);
/* proto_doubles - a packed list. */
void proto_doubles(proto *to, uint32_t field, const double *numbers, size_t n);
/* proto_message - puts `inner` and empties it, its memory kept. */
void proto_message(proto *to, uint32_t field, proto *inner);
void proto_raw(proto *to, const void *data, size_t bytes); /* as it is */
void proto_free(proto *it);

#endif
