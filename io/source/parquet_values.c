/* parquet_values: values out of the bytes of a page, by each encoding that writers use today.
 *
 * source  Encodings.md of the format: plain, runs and packed numbers, dictionaries, differences, and the bytes of floats apart
 */
#include <stdlib.h>
#include <string.h>

#include "parquet.h"

enum {
    PLAIN = 0,
    PLAIN_DICTIONARY = 2,
    RLE = 3,
    DELTA = 5,
    DELTA_LENGTHS = 6,
    DELTA_BYTES = 7,
    DICTIONARY = 8,
    SPLIT = 9
};
static const char damaged[] = "its values are damaged";

void weft_parquet_values_free(weft_parquet_values *values)
{
    free(values->bytes);
    free(values->ends);
    *values = (weft_parquet_values){0};
}

/* Room for `more` bytes, and a value more. */
static bool reserve(weft_parquet_values *v, int64_t more, bool has_ends)
{
    if (v->bytes == NULL || v->n_bytes + more > v->room) {
        const int64_t room = v->n_bytes + more + v->room / 2 + 64;
        uint8_t *grown = realloc(v->bytes, (size_t)room);
        if (grown == NULL) return false;
        v->bytes = grown;
        v->room = room;
    }
    void *ends = v->ends;
    const bool is_good =
        !has_ends || weft_grow(&ends, v->n, &v->ends_room, sizeof *v->ends, NULL) == WEFT_OK;
    v->ends = ends;
    return is_good;
}

static bool add(weft_parquet_values *v, const weft_parquet_column *c, const void *bytes, int64_t n)
{
    if (!reserve(v, n, c->width == 0)) return false;
    if (n > 0) memcpy(v->bytes + v->n_bytes, bytes, (size_t)n);
    v->n_bytes += n;
    if (c->width == 0) v->ends[v->n] = v->n_bytes;
    v->n++;
    return true;
}

/* ---- runs and packed numbers ------------------------------------------------------------------------ */

typedef struct bits {
    const uint8_t *from;
    int64_t n_bits, at;
} bits;

/* The next number of so many bits, at most 64; 0 behind the end. */
static uint64_t take_bits(bits *b, int width)
{
    uint64_t number = 0;
    for (int done = 0; done < width && b->at < b->n_bits;) {
        const int shift = (int)(b->at & 7),
                  here = 8 - shift < width - done ? 8 - shift : width - done;
        number |= (uint64_t)(b->from[b->at >> 3] >> shift & ((1 << here) - 1)) << done;
        done += here;
        b->at += here;
    }
    return number;
}

bool weft_parquet_levels(const uint8_t *from, int64_t bytes, int width, int64_t n, uint32_t *to)
{
    weft_thrift t = {from, from + bytes, false, 0};
    const int whole = (width + 7) / 8;
    if (width < 0 || width > 32) return false;
    for (int64_t i = 0; i < n;) {
        const uint64_t head = weft_thrift_varint(&t);
        uint64_t count = head >> 1;
        if (t.is_bad || count == 0 || count > (uint64_t)INT32_MAX) return false;
        if (head & 1) {
            const int64_t packed = (int64_t)count * width, there = t.end - t.at,
                          length = packed < there ? packed : there;
            bits b = {t.at, 8 * length, 0};
            const int64_t stop = i + 8 * (int64_t)count < n ? i + 8 * (int64_t)count : n;
            if ((stop - i) * width > 8 * length) return false;
            while (i < stop)
                to[i++] = (uint32_t)take_bits(&b, width);
            t.at += length;
        } else {
            uint32_t number = 0;
            if (t.end - t.at < whole) return false;
            memcpy(&number, t.at, (size_t)whole);
            t.at += whole;
            for (; count > 0 && i < n; count--)
                to[i++] = number;
        }
    }
    return true;
}

/* ---- differences ------------------------------------------------------------------------------------ */

static int64_t take_signed(weft_thrift *t)
{
    const uint64_t z = weft_thrift_varint(t);
    return (int64_t)(z >> 1 ^ (0 - (z & 1)));
}

static bool take_block(weft_thrift *t, uint64_t n_parts, uint64_t per_part, int64_t n, int64_t *i,
                       uint64_t *last, int64_t *to)
{
    const uint64_t least = (uint64_t)take_signed(t);
    const uint8_t *widths = t->at;
    if (t->is_bad || (uint64_t)(t->end - t->at) < n_parts) return false;
    t->at += n_parts;
    for (uint64_t p = 0; p < n_parts && *i < n; p++) {
        const int64_t bytes = (int64_t)(per_part * widths[p] / 8);
        if (widths[p] > 64 || bytes > t->end - t->at) return false;
        bits b = {t->at, 8 * bytes, 0};
        for (uint64_t k = 0; k < per_part && *i < n; k++) {
            *last += least + take_bits(&b, widths[p]);
            to[(*i)++] = (int64_t)*last;
        }
        t->at += bytes;
    }
    return true;
}

/* n numbers at most; *n: how many there are */
static bool take_deltas(weft_thrift *t, int64_t most, int64_t *n, int64_t **to)
{
    const uint64_t block = weft_thrift_varint(t), n_parts = weft_thrift_varint(t),
                   said = weft_thrift_varint(t);
    uint64_t last = (uint64_t)take_signed(t);
    *to = NULL;
    if (t->is_bad || n_parts == 0 || n_parts > 1 << 16 || block == 0 || block > 1 << 20 ||
        block % n_parts != 0 || block / n_parts % 8 != 0 || said > (uint64_t)most)
        return false;
    *n = (int64_t)said;
    *to = malloc(((size_t)said + 1) * sizeof **to);
    if (*to == NULL) return false;
    int64_t i = 0;
    if (said > 0) (*to)[i++] = (int64_t)last;
    while (i < *n)
        if (!take_block(t, n_parts, block / n_parts, *n, &i, &last, *to)) return false;
    return true;
}

static bool decode_deltas(const weft_parquet_column *c, weft_thrift *t, int64_t n,
                          weft_parquet_values *v)
{
    int64_t there = 0, *numbers;
    bool is_good = take_deltas(t, n, &there, &numbers) && there == n;
    for (int64_t i = 0; i < n && is_good; i++)
        is_good = add(v, c, &numbers[i], c->width); /* little endian: the lower half first */
    free(numbers);
    return is_good;
}

static bool decode_lengths(const weft_parquet_column *c, weft_thrift *t, int64_t n,
                           weft_parquet_values *v)
{
    int64_t there = 0, *lengths;
    bool is_good = take_deltas(t, n, &there, &lengths) && there == n;
    for (int64_t i = 0; i < n && is_good; i++) {
        is_good = lengths[i] >= 0 && lengths[i] <= t->end - t->at &&
                  (c->width == 0 || lengths[i] == c->width) && add(v, c, t->at, lengths[i]);
        if (is_good) t->at += lengths[i];
    }
    free(lengths);
    return is_good;
}

/* Each begins as the one before does. */
static bool add_suffixes(const weft_parquet_column *c, weft_thrift *t, int64_t n,
                         const int64_t *prefixes, const int64_t *lengths, weft_parquet_values *v)
{
    int64_t before = v->n_bytes, n_before = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = prefixes[i], s = lengths[i], begin = v->n_bytes;
        if (p < 0 || p > n_before || s < 0 || s > t->end - t->at ||
            (c->width > 0 && p + s != c->width) || !reserve(v, p + s, c->width == 0))
            return false;
        memmove(v->bytes + begin, v->bytes + before, (size_t)p);
        memcpy(v->bytes + begin + p, t->at, (size_t)s);
        t->at += s;
        v->n_bytes += p + s;
        if (c->width == 0) v->ends[v->n] = v->n_bytes;
        v->n++;
        before = begin;
        n_before = p + s;
    }
    return true;
}

static bool decode_suffixes(const weft_parquet_column *c, weft_thrift *t, int64_t n,
                            weft_parquet_values *v)
{
    int64_t n_prefixes = 0, n_lengths = 0, *prefixes, *lengths = NULL;
    const bool is_good = take_deltas(t, n, &n_prefixes, &prefixes) &&
                         take_deltas(t, n, &n_lengths, &lengths) && n_prefixes == n &&
                         n_lengths == n && add_suffixes(c, t, n, prefixes, lengths, v);
    free(prefixes);
    free(lengths);
    return is_good;
}

/* ---- plain, dictionaries, bytes apart ----------------------------------------------------------------- */

static bool decode_booleans(const weft_parquet_column *c, const uint8_t *from, int64_t bytes,
                            int64_t n, weft_parquet_values *v)
{
    bits b = {from, 8 * bytes, 0};
    if (n > b.n_bits) return false;
    for (int64_t i = 0; i < n; i++)
        if (!add(v, c, &(uint8_t){(uint8_t)take_bits(&b, 1)}, 1)) return false;
    return true;
}

static bool decode_plain(const weft_parquet_column *c, const uint8_t *from, int64_t bytes,
                         int64_t n, weft_parquet_values *v)
{
    if (c->type == WEFT_PARQUET_BOOLEAN) return decode_booleans(c, from, bytes, n, v);
    if (c->width > 0) {
        if (n > bytes / c->width || !reserve(v, n * c->width, false)) return false;
        if (n > 0) memcpy(v->bytes + v->n_bytes, from, (size_t)(n * c->width));
        v->n_bytes += n * c->width;
        v->n += n;
        return true;
    }
    for (int64_t i = 0, at = 0; i < n; i++) {
        uint32_t length;
        if (bytes - at < 4) return false;
        memcpy(&length, from + at, 4);
        at += 4;
        if (length > bytes - at || !add(v, c, from + at, length)) return false;
        at += length;
    }
    return true;
}

static bool decode_indices(const weft_parquet_column *c, const uint8_t *from, int64_t bytes,
                           int64_t n, const weft_parquet_values *d, weft_parquet_values *v)
{
    uint32_t *indices = malloc(((size_t)n + 1) * sizeof *indices);
    bool is_good =
        indices != NULL &&
        (n == 0 || (bytes > 0 && weft_parquet_levels(from + 1, bytes - 1, from[0], n, indices)));
    for (int64_t i = 0; i < n && is_good; i++) {
        const int64_t at = indices[i];
        is_good = at < d->n;
        if (!is_good) break;
        const int64_t begin = c->width > 0 ? at * c->width
                              : at > 0     ? d->ends[at - 1]
                                           : 0,
                      end = c->width > 0 ? begin + c->width : d->ends[at];
        is_good = add(v, c, d->bytes + begin, end - begin);
    }
    free(indices);
    return is_good;
}

static bool decode_runs(const weft_parquet_column *c, const uint8_t *from, int64_t bytes, int64_t n,
                        weft_parquet_values *v)
{
    uint32_t length, *numbers = malloc(((size_t)n + 1) * sizeof *numbers);
    bool is_good = numbers != NULL && bytes >= 4 && c->type == WEFT_PARQUET_BOOLEAN;
    if (is_good) memcpy(&length, from, 4);
    is_good =
        is_good && length <= bytes - 4 && weft_parquet_levels(from + 4, length, 1, n, numbers);
    for (int64_t i = 0; i < n && is_good; i++)
        is_good = add(v, c, &(uint8_t){(uint8_t)numbers[i]}, 1);
    free(numbers);
    return is_good;
}

static bool decode_split(const weft_parquet_column *c, const uint8_t *from, int64_t bytes,
                         int64_t n, weft_parquet_values *v)
{
    const int64_t width = c->width;
    if (width == 0 || n > bytes / width || !reserve(v, n * width, false)) return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < width; b++)
            v->bytes[v->n_bytes + i * width + b] = from[b * n + i];
    v->n_bytes += n * width;
    v->n += n;
    return true;
}

bool weft_parquet_decode(int encoding, const weft_parquet_column *c, const uint8_t *from,
                         int64_t bytes, int64_t n, const weft_parquet_values *dictionary,
                         weft_parquet_values *v, const char **why)
{
    weft_thrift t = {from, from + bytes, false, 0};
    const bool is_number = c->type == WEFT_PARQUET_INT32 || c->type == WEFT_PARQUET_INT64;
    *why = damaged;
    switch (encoding) {
    case PLAIN:
        return decode_plain(c, from, bytes, n, v);
    case PLAIN_DICTIONARY:
    case DICTIONARY:
        return decode_indices(c, from, bytes, n, dictionary, v);
    case RLE:
        return decode_runs(c, from, bytes, n, v);
    case DELTA:
        return is_number && decode_deltas(c, &t, n, v);
    case DELTA_LENGTHS:
        return decode_lengths(c, &t, n, v);
    case DELTA_BYTES:
        return decode_suffixes(c, &t, n, v);
    case SPLIT:
        return decode_split(c, from, bytes, n, v);
    default:
        *why = "its encoding is none that is known";
        return false;
    }
}
