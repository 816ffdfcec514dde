/* thrift: Thrift's compact protocol. source: the protocol's own description (thrift-compact-protocol) */
#include "thrift.h"

#include <stddef.h>

enum { DEEPEST = 32 };

static uint8_t take(weft_thrift *t)
{
    if (t->is_bad || t->at >= t->end) {
        t->is_bad = true;
        return 0;
    }
    return *t->at++;
}

uint64_t weft_thrift_varint(weft_thrift *t)
{
    uint64_t sum = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = take(t);
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return sum;
    }
    t->is_bad = true;
    return 0;
}

static int64_t zigzag(weft_thrift *t)
{
    const uint64_t n = weft_thrift_varint(t);
    return (int64_t)(n >> 1 ^ (0 - (n & 1)));
}

bool weft_thrift_field(weft_thrift *t, int *id, int *type)
{
    const uint8_t head = take(t);
    if (head == 0 || t->is_bad) return false;
    const int64_t next = head >> 4 ? *id + (head >> 4) : zigzag(t);
    if (next < 0 || next > 32767) t->is_bad = true;
    *id = (int)next;
    *type = head & 15;
    return !t->is_bad;
}

int64_t weft_thrift_number(weft_thrift *t, int type)
{
    if (type == 1 || type == 2) return type == WEFT_THRIFT_TRUE;
    if (type == 3) return (int8_t)take(t);
    if (type < 4 || type > 6) t->is_bad = true;
    return t->is_bad ? 0 : zigzag(t);
}

const char *weft_thrift_text(weft_thrift *t, int type, int64_t *n)
{
    const uint64_t length = type == WEFT_THRIFT_BINARY ? weft_thrift_varint(t) : UINT64_MAX;
    *n = 0;
    if (t->is_bad || length > (uint64_t)(t->end - t->at)) {
        t->is_bad = true;
        return "";
    }
    const uint8_t *text = t->at;
    t->at += length;
    *n = (int64_t)length;
    return (const char *)text;
}

int64_t weft_thrift_list(weft_thrift *t, int type, int *entry)
{
    const uint8_t head = type == WEFT_THRIFT_LIST || type == 10 ? take(t) : 0;
    const uint64_t n = head >> 4 == 15 ? weft_thrift_varint(t) : head >> 4;
    *entry = head & 15;
    if (t->is_bad || (head == 0 && n > 0) || n > (uint64_t)(t->end - t->at)) t->is_bad = true;
    if (type != WEFT_THRIFT_LIST && type != 10) t->is_bad = true;
    return t->is_bad ? 0 : (int64_t)n;
}

static void skip_many(weft_thrift *t, int64_t n, int first, int second)
{
    for (int64_t i = 0; i < n && !t->is_bad; i++) {
        if (first == 1 || first == 2)
            (void)take(t);
        else
            weft_thrift_skip(t, first);
        if (second > 0) weft_thrift_skip(t, second);
    }
}

static void skip_map(weft_thrift *t)
{
    const uint64_t n = weft_thrift_varint(t);
    if (n == 0) return;
    const uint8_t types = take(t);
    if (n > (uint64_t)(t->end - t->at)) t->is_bad = true;
    skip_many(t, (int64_t)n, types >> 4, types & 15);
}

void weft_thrift_skip(weft_thrift *t, int type)
{
    int64_t n;
    int entry, id = 0;
    if (++t->depth > DEEPEST) t->is_bad = true;
    if (t->is_bad) return;
    if (type == 7)
        for (int i = 0; i < 8; i++)
            (void)take(t);
    else if (type == WEFT_THRIFT_BINARY)
        (void)weft_thrift_text(t, type, &n);
    else if (type == WEFT_THRIFT_LIST || type == 10) {
        n = weft_thrift_list(t, type, &entry);
        skip_many(t, n, entry, 0);
    } else if (type == 11)
        skip_map(t);
    else if (type == WEFT_THRIFT_STRUCT)
        while (weft_thrift_field(t, &id, &entry))
            weft_thrift_skip(t, entry);
    else
        (void)weft_thrift_number(t, type);
    t->depth--;
}
