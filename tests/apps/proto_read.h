/* proto_read.h: the fields of a protobuf message, one by one, for tests that read what apps/proto.c wrote. */
#ifndef TEST_PROTO_READ_H
#define TEST_PROTO_READ_H

#include <stdint.h>
#include <stddef.h>

#include "test.h"

/* data NULL: a number. */
typedef struct read_field {
    uint32_t number;
    uint64_t value; /* of a number, as its bits */
    const unsigned char *data;
    size_t bytes;
} read_field;

static inline uint64_t read_little(const unsigned char *at, int n)
{
    uint64_t number = 0;
    for (int i = 0; i < n; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static inline uint64_t read_varint(const unsigned char **at)
{
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        number |= (uint64_t)(**at & 0x7f) << shift;
        if (*(*at)++ < 0x80) return number;
    }
}

/* The next of [*at, end); false: there is none. */
static inline bool read_next(const unsigned char **at, const unsigned char *end, read_field *f)
{
    if (*at >= end) return false;
    const uint64_t key = read_varint(at);
    *f = (read_field){.number = (uint32_t)(key >> 3)};
    const int kind = (int)(key & 7), n = kind == 1 ? 8 : kind == 5 ? 4 : 0;
    if (kind == 0) f->value = read_varint(at);
    if (kind == 2) f->bytes = (size_t)read_varint(at);
    if (kind == 2) f->data = *at;
    if (n > 0) f->value = read_little(*at, n);
    *at += (size_t)n + f->bytes;
    return CHECK(*at <= end);
}

#endif
