/* proto: the fields of protobuf: a number, a kind, a value. */
#include <stdlib.h>
#include <string.h>

#include "proto.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

void proto_raw(proto *to, const void *data, size_t bytes)
{
    if (to->bytes + bytes > to->room) {
        const size_t room = 2 * (to->bytes + bytes) + 64;
        unsigned char *all = to->is_short ? NULL : realloc(to->all, room);
        to->is_short = all == NULL;
        if (to->is_short) return;
        to->all = all;
        to->room = room;
    }
    if (bytes > 0) memcpy(to->all + to->bytes, data, bytes);
    to->bytes += bytes;
}

/* Seven bits a byte, the lowest first; the eighth says that more follow. */
static void put_varint(proto *to, uint64_t number)
{
    unsigned char bytes[10];
    size_t n = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[n++] = (unsigned char)(number | 0x80);
    bytes[n++] = (unsigned char)number;
    proto_raw(to, bytes, n);
}

void proto_number(proto *to, uint32_t field, uint64_t number)
{
    put_varint(to, field << 3 | VARINT);
    put_varint(to, number);
}

/* The lowest byte first. */
static void put_fixed(proto *to, uint64_t number, size_t n_bytes)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
    proto_raw(to, bytes, n_bytes);
}

static uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

void proto_fixed(proto *to, uint32_t field, uint64_t number)
{
    put_varint(to, field << 3 | FIXED64);
    put_fixed(to, number, 8);
}

void proto_double(proto *to, uint32_t field, double number)
{
    proto_fixed(to, field, bits_of(number));
}

void proto_float(proto *to, uint32_t field, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_varint(to, field << 3 | FIXED32);
    put_fixed(to, bits, 4);
}

void proto_doubles(proto *to, uint32_t field, const double *numbers, size_t n)
{
    put_varint(to, field << 3 | BYTES);
    put_varint(to, 8 * n);
    for (size_t i = 0; i < n; i++)
        put_fixed(to, bits_of(numbers[i]), 8);
}

void proto_message(proto *to, uint32_t field, proto *inner)
{
    proto_bytes(to, field, inner->all, inner->bytes);
    to->is_short |= inner->is_short;
    inner->bytes = 0;
}

void proto_bytes(proto *to, uint32_t field, const void *data, size_t bytes)
{
    put_varint(to, field << 3 | BYTES);
    put_varint(to, bytes);
    proto_raw(to, data, bytes);
}

void proto_text(proto *to, uint32_t field, const char *text)
{
    proto_bytes(to, field, text, strlen(text));
}

void proto_free(proto *it)
{
    free(it->all);
    *it = (proto){0};
}
