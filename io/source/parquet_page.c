/* parquet_page: pages of a chunk. gzip is zlib's; snappy and zstd are weft-read-files's, a process apart. Sizes that a header says are compared with what is
 * there before anything is allocated, and have an upper bound. */
#include "parquet_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../apart/apart.h"

enum { DATA = 0, DICTIONARY = 2, DATA_2 = 3, LARGEST = 1 << 28, MOST_ENTRIES = 1 << 24 };
enum { NONE = 0, SNAPPY = 1, GZIP = 2, ZSTD = 6 };

typedef struct header {
    int64_t type, unpacked, packed, n, encoding, def_bytes, rep_bytes, is_packed, def_encoding,
        rep_encoding;
} header;

static weft_status fail(const weft_parquet_pages *p, const char *why, weft_error *error)
{
    return weft_source_fail(p->source, error,
                            "column %s at byte %lld: %s; get it again, or write it again",
                            p->column->name, (long long)(p->chunk->at + p->at), why);
}

/* ---- headers ---------------------------------------------------------------------------------------- */

/* Fields of the three kinds of headers have other numbers. */
static void read_inner(weft_thrift *t, int kind, header *h)
{
    int id = 0, type;
    while (weft_thrift_field(t, &id, &type)) {
        int64_t *to = id == 1 ? &h->n : NULL;
        if (kind != 8 && id == 2) to = &h->encoding;
        if (kind == 5 && id == 3) to = &h->def_encoding;
        if (kind == 5 && id == 4) to = &h->rep_encoding;
        if (kind == 8 && id == 4) to = &h->encoding;
        if (kind == 8 && id == 5) to = &h->def_bytes;
        if (kind == 8 && id == 6) to = &h->rep_bytes;
        if (kind == 8 && id == 7) to = &h->is_packed;
        if (to != NULL)
            *to = weft_thrift_number(t, type);
        else
            weft_thrift_skip(t, type);
    }
}

static weft_status read_header(weft_parquet_pages *p, header *h, weft_error *error)
{
    const uint8_t *from = (const uint8_t *)p->bytes;
    weft_thrift t = {from + p->at, from + p->chunk->bytes, false, 0};
    int id = 0, type;
    *h = (header){.is_packed = 1, .def_encoding = 3, .rep_encoding = 3};
    while (weft_thrift_field(&t, &id, &type)) {
        if (id == 1)
            h->type = weft_thrift_number(&t, type);
        else if (id == 2)
            h->unpacked = weft_thrift_number(&t, type);
        else if (id == 3)
            h->packed = weft_thrift_number(&t, type);
        else if ((id == 5 || id == 7 || id == 8) && type == WEFT_THRIFT_STRUCT)
            read_inner(&t, id, h);
        else
            weft_thrift_skip(&t, type);
    }
    const int64_t left = t.end - t.at;
    if (t.is_bad || h->packed < 0 || h->packed > left || h->unpacked < 0 || h->unpacked > LARGEST ||
        h->n < 0 || h->n > MOST_ENTRIES || h->def_bytes < 0 || h->rep_bytes < 0 ||
        h->def_bytes > h->packed || h->rep_bytes > h->packed - h->def_bytes ||
        h->def_bytes + h->rep_bytes > h->unpacked)
        return fail(p, "the header of a page is damaged", error);
    p->at = t.at - from;
    return WEFT_OK;
}

/* ---- decompressing ---------------------------------------------------------------------------------- */

static bool gunzip(const char *from, int64_t n, uint8_t *to, int64_t bytes)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (unsigned)n,
                  .next_out = to,
                  .avail_out = (unsigned)bytes};
    if (inflateInit2(&z, 32 + MAX_WBITS) != Z_OK) return false;
    const int code = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return code == Z_STREAM_END && (int64_t)z.total_out == bytes;
}

static weft_status expand(const weft_parquet_pages *p, const char *from, int64_t n, uint8_t *to,
                          int64_t bytes, weft_error *error)
{
    static const char *const names[] = {"none",   "snappy", "gzip", "lzo",
                                        "brotli", "lz4",    "zstd", "lz4_raw"};
    const int codec = p->chunk->codec;
    char place[360];
    if (codec == NONE) {
        if (n != bytes) return fail(p, "a page has another size than it says", error);
        if (n > 0) memcpy(to, from, (size_t)n);
        return WEFT_OK;
    }
    if (codec == GZIP)
        return gunzip(from, n, to, bytes) ? WEFT_OK : fail(p, "its gzip is damaged", error);
    if (codec != SNAPPY && codec != ZSTD)
        return weft_source_fail(
            p->source, error,
            "column %s is compressed by %s, and none, snappy, gzip and zstd can be read; in "
            "Python: pyarrow.parquet.write_table(pyarrow.parquet.read_table(FILE), NEW)",
            p->column->name, codec >= 0 && codec < 8 ? names[codec] : "something unknown");
    snprintf(place, sizeof place, "%.160s: column %.80s at byte %lld", p->source->path,
             p->column->name, (long long)(p->chunk->at + p->at));
    return weft_apart_block(codec == SNAPPY ? FILES_SNAPPY : FILES_ZSTD, p->source->path, place,
                            from, n, to, bytes, error);
}

/* ---- pages ------------------------------------------------------------------------------------------- */

static int bits_of(int most)
{
    int n = 0;
    for (; most > 0; most >>= 1)
        n++;
    return n;
}

/* Levels, of which version 1 writes the length before them. */
static bool take_levels(const uint8_t **at, const uint8_t *end, int64_t said, int most, int64_t n,
                        uint32_t *to)
{
    uint32_t length = (uint32_t)said;
    if (most == 0) {
        *at += said > 0 ? said : 0;
        return true;
    }
    if (said < 0) {
        if (end - *at < 4) return false;
        memcpy(&length, *at, 4);
        *at += 4;
    }
    if (length > end - *at || !weft_parquet_levels(*at, length, bits_of(most), n, to)) return false;
    *at += length;
    for (int64_t i = 0; i < n; i++)
        if (to[i] > (uint32_t)most) return false;
    return true;
}

static weft_status decode(weft_parquet_pages *p, const header *h, const uint8_t *at,
                          const uint8_t *end, weft_error *error)
{
    const weft_parquet_column *c = p->column;
    const bool is_2 = h->type == DATA_2;
    const char *why;
    int64_t n = 0;
    free(p->defs);
    free(p->reps);
    p->defs = malloc(((size_t)h->n + 1) * sizeof *p->defs);
    p->reps = malloc(((size_t)h->n + 1) * sizeof *p->reps);
    if (p->defs == NULL || p->reps == NULL) return weft_fail_memory(error, (size_t)h->n * 8);
    if ((c->most_def > 0 && h->def_encoding != 3) || (c->most_rep > 0 && h->rep_encoding != 3))
        return fail(p, "its levels are packed as only old files have them; write it again", error);
    if (!take_levels(&at, end, is_2 ? h->rep_bytes : -1, c->most_rep, h->n, p->reps) ||
        !take_levels(&at, end, is_2 ? h->def_bytes : -1, c->most_def, h->n, p->defs))
        return fail(p, "its levels are damaged", error);
    for (int64_t i = 0; i < h->n; i++)
        n += c->most_def == 0 || p->defs[i] == (uint32_t)c->most_def;
    p->n = h->n;
    p->values.n = p->values.n_bytes = 0;
    return weft_parquet_decode((int)h->encoding, c, at, end - at, n, &p->dictionary, &p->values,
                               &why)
               ? WEFT_OK
               : fail(p, why, error);
}

static weft_status read_page(weft_parquet_pages *p, const header *h, weft_error *error)
{
    const char *from = p->bytes + p->at, *why;
    const int64_t plain = h->type == DATA_2 ? h->def_bytes + h->rep_bytes : 0;
    uint8_t *room = malloc((size_t)h->unpacked + 8);
    weft_status status = WEFT_OK;
    if (room == NULL) return weft_fail_memory(error, (size_t)h->unpacked);
    memcpy(room, from, (size_t)plain);
    if (h->is_packed || p->chunk->codec == NONE)
        status = h->packed == plain && h->unpacked == plain
                     ? WEFT_OK
                     : expand(p, from + plain, h->packed - plain, room + plain, h->unpacked - plain,
                              error);
    else if (h->packed == h->unpacked)
        memcpy(room, from, (size_t)h->packed);
    else
        status = fail(p, "a page has another size than it says", error);
    if (status == WEFT_OK && h->type == DICTIONARY) {
        p->dictionary.n = p->dictionary.n_bytes = 0;
        if (!weft_parquet_decode(0, p->column, room, h->unpacked, h->n, NULL, &p->dictionary, &why))
            status = fail(p, why, error);
    } else if (status == WEFT_OK)
        status = decode(p, h, room, room + h->unpacked, error);
    free(room);
    return status;
}

weft_status weft_parquet_pages_next(weft_parquet_pages *p, weft_error *error)
{
    header h;
    p->n = 0;
    while (p->n == 0 && p->seen < p->chunk->n_values) {
        WEFT_TRY(read_header(p, &h, error));
        if ((h.type == DATA || h.type == DATA_2) && h.n > p->chunk->n_values - p->seen)
            return fail(p, "a page has more values than its chunk says", error);
        if (h.type == DATA || h.type == DATA_2 || h.type == DICTIONARY)
            WEFT_TRY(read_page(p, &h, error));
        p->at += h.packed;
        p->seen += p->n;
    }
    return WEFT_OK;
}

weft_status weft_parquet_pages_open(const weft_source *source, const weft_parquet_column *column,
                                    const weft_parquet_chunk *chunk, weft_parquet_pages *pages,
                                    weft_error *error)
{
    *pages = (weft_parquet_pages){.source = source, .column = column, .chunk = chunk};
    return weft_source_take(source, &pages->bytes, chunk->bytes, chunk->at, error);
}

void weft_parquet_pages_close(weft_parquet_pages *p)
{
    free(p->bytes);
    free(p->defs);
    free(p->reps);
    weft_parquet_values_free(&p->dictionary);
    weft_parquet_values_free(&p->values);
}
