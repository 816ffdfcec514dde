/* npz: arrays of NumPy's in a zip archive: a row of all arrays is a record, an array a field.
 *
 * Stored members are read where they lie. Compressed ones are decompressed when the file is opened, as no row of them can be found
 * without all before it; their memory grows with what comes out, whatever the archive says.
 * source  PKWARE's description of zip: the directory at the end, with 64-bit sizes in an extra field
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "npy.h"

enum {
    END = 22,     /* bytes of the record at the end */
    END64 = 56,   /* of the same with 64-bit sizes */
    LOCATOR = 20, /* of what says where that is */
    ENTRY = 46,   /* of a member in the directory, without its name */
    LOCAL = 30,   /* of the same before the member */
    DEFLATED = 8,
    COMMENT = 1 << 16, /* the longest behind the end */
    DIRECTORY = 64 << 20
};

typedef struct member {
    char name[WEFT_RECORD_NAME];
    int64_t packed, bytes, at; /* of its bytes in the file */
    uint32_t crc;
    int method;
    weft_npy array;
    unsigned char *unpacked; /* NULL: stored */
} member;

typedef struct archive {
    int64_t n, room;
    member *members; /* [n], those that are wanted */
} archive;

static int64_t little(const unsigned char *b, int n)
{
    uint64_t sum = 0;
    for (int i = n - 1; i >= 0; i--)
        sum = sum << 8 | b[i];
    return (int64_t)sum;
}

static weft_status fail_damaged(const weft_source *source, const char *what, weft_error *error)
{
    return weft_source_fail(source, error,
                            "%s, so it is cut off or damaged; write it again by numpy.savez", what);
}

/* ---- the directory ------------------------------------------------------------------------------- */

typedef struct directory {
    char *bytes;
    int64_t length, n;
} directory;

/* Where the sizes do not fit: 64-bit ones, before the end. */
static weft_status find_end64(const weft_source *source, int64_t end, int64_t *at, int64_t *length,
                              int64_t *n, weft_error *error)
{
    unsigned char locator[LOCATOR], record[END64];
    if (end < LOCATOR) return fail_damaged(source, "its directory is not where it says", error);
    WEFT_TRY(weft_source_read(source, locator, LOCATOR, end - LOCATOR, error));
    if (memcmp(locator, "PK\6\7", 4) != 0) return WEFT_OK;
    WEFT_TRY(weft_source_read(source, record, END64, little(locator + 8, 8), error));
    if (memcmp(record, "PK\6\6", 4) != 0)
        return fail_damaged(source, "its directory is not where it says", error);
    *n = little(record + 32, 8);
    *length = little(record + 40, 8);
    *at = little(record + 48, 8);
    return WEFT_OK;
}

static weft_status find_directory(const weft_source *source, directory *d, weft_error *error)
{
    const int64_t tail = source->bytes < END + COMMENT ? source->bytes : END + COMMENT;
    char *bytes;
    WEFT_TRY(weft_source_take(source, &bytes, tail, source->bytes - tail, error));
    int64_t i = tail - END;
    while (i >= 0 && memcmp(bytes + i, "PK\5\6", 4) != 0)
        i--;
    const unsigned char *end = (const unsigned char *)bytes + (i >= 0 ? i : 0);
    int64_t at = i >= 0 ? little(end + 16, 4) : 0;
    d->length = i >= 0 ? little(end + 12, 4) : 0;
    d->n = i >= 0 ? little(end + 10, 2) : 0;
    free(bytes);
    if (i < 0) return fail_damaged(source, "it has no directory at its end", error);
    WEFT_TRY(find_end64(source, source->bytes - tail + i, &at, &d->length, &d->n, error));
    if (d->length < 0 || d->length > DIRECTORY)
        return fail_damaged(source, "its directory has more than 64 MiB", error);
    return weft_source_take(source, &d->bytes, d->length, at, error);
}

/* Sizes that are all ones stand in the extra field 1, in their order. */
static void take_wide(const unsigned char *extra, int64_t n, member *m)
{
    int64_t *const wide[] = {&m->bytes, &m->packed, &m->at};
    for (int64_t i = 0; i + 4 <= n;) {
        const int64_t length = little(extra + i + 2, 2), end = i + 4 + length;
        int64_t from = i + 4;
        if (end > n) return;
        for (int k = 0; little(extra + i, 2) == 1 && k < 3 && from + 8 <= end; k++)
            if (*wide[k] == 0xffffffff) {
                *wide[k] = little(extra + from, 8);
                from += 8;
            }
        i = end;
    }
}

/* Members named *.npy, without that ending. */
static bool take_name(const unsigned char *name, int64_t n, member *m)
{
    if (n < 5 || memcmp(name + n - 4, ".npy", 4) != 0) return false;
    snprintf(m->name, sizeof m->name, "%.*s", (int)(n - 4 < 1000 ? n - 4 : 1000),
             (const char *)name);
    return true;
}

static weft_status add(archive *a, const member *m, weft_error *error)
{
    void *members = a->members;
    const weft_status status = weft_grow(&members, a->n, &a->room, sizeof *m, error);
    a->members = members;
    if (status == WEFT_OK) a->members[a->n++] = *m;
    return status;
}

static weft_status read_directory(const weft_source *source, const directory *d, archive *a,
                                  const char *wanted, weft_error *error)
{
    const unsigned char *at = (const unsigned char *)d->bytes;
    const unsigned char *const end = at + d->length;
    for (int64_t i = 0; i < d->n; i++) {
        if (end - at < ENTRY || memcmp(at, "PK\1\2", 4) != 0)
            return fail_damaged(source, "its directory ends early", error);
        member m = {.method = (int)little(at + 10, 2),
                    .crc = (uint32_t)little(at + 16, 4),
                    .packed = little(at + 20, 4),
                    .bytes = little(at + 24, 4),
                    .at = little(at + 42, 4)};
        const int64_t n = little(at + 28, 2), extra = little(at + 30, 2), more = little(at + 32, 2);
        if (end - at - ENTRY < n + extra + more)
            return fail_damaged(source, "its directory ends early", error);
        take_wide(at + ENTRY + n, extra, &m);
        if (take_name(at + ENTRY, n, &m) && weft_table_wants(wanted, m.name, strlen(m.name)))
            WEFT_TRY(add(a, &m, error));
        at += ENTRY + n + extra + more;
    }
    return WEFT_OK;
}

/* ---- members -------------------------------------------------------------------------------------- */

static weft_status find_bytes(const weft_source *source, member *m, weft_error *error)
{
    unsigned char local[LOCAL];
    WEFT_TRY(weft_source_read(source, local, LOCAL, m->at, error));
    if (memcmp(local, "PK\3\4", 4) != 0)
        return fail_damaged(source, "an array is not where its directory says", error);
    m->at += LOCAL + little(local + 26, 2) + little(local + 28, 2);
    if (m->packed < 0 || m->bytes < 0 || m->at > source->bytes || m->packed > source->bytes - m->at)
        return fail_damaged(source, "an array goes beyond its end", error);
    return WEFT_OK;
}

/* What comes out, as long as the archive said there would be so much; grows with it. */
static weft_status inflate_all(const weft_source *source, z_stream *z, member *m, weft_error *error)
{
    unsigned char chunk[1 << 15];
    int64_t room = 1 << 16, from = 0;
    int code = Z_OK;
    if ((m->unpacked = malloc((size_t)room)) == NULL) return weft_fail_memory(error, (size_t)room);
    while (code == Z_OK) {
        if (z->avail_in == 0) {
            const int64_t left = m->packed - from,
                          n = left < (int64_t)sizeof chunk ? left : (int64_t)sizeof chunk;
            if (n == 0) break;
            WEFT_TRY(weft_source_read(source, chunk, n, m->at + from, error));
            from += n;
            z->next_in = chunk;
            z->avail_in = (unsigned)n;
        }
        const int64_t done = (int64_t)z->total_out;
        if (done > m->bytes) break;
        if (done == room) {
            unsigned char *grown = realloc(m->unpacked, (size_t)(room *= 2));
            if (grown == NULL) return weft_fail_memory(error, (size_t)room);
            m->unpacked = grown;
        }
        z->next_out = m->unpacked + done;
        z->avail_out = room - done < 1 << 20 ? (unsigned)(room - done) : 1 << 20;
        code = inflate(z, Z_NO_FLUSH);
    }
    if (code == Z_STREAM_END && (int64_t)z->total_out == m->bytes) return WEFT_OK;
    return weft_source_fail(
        source, error,
        "array %s cannot be decompressed after %lld of %lld bytes (%s); get it again", m->name,
        (long long)z->total_out, (long long)m->bytes, z->msg ? z->msg : "cut off");
}

static weft_status unpack(const weft_source *source, member *m, weft_error *error)
{
    z_stream z = {0};
    if (m->method != DEFLATED)
        return weft_source_fail(source, error,
                                "array %s is compressed by method %d, and none and deflate can be "
                                "read; numpy.savez writes them",
                                m->name, m->method);
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return weft_fail_memory(error, 1 << 16);
    const weft_status status = inflate_all(source, &z, m, error);
    inflateEnd(&z);
    WEFT_TRY(status);
    uLong crc = crc32_z(0, m->unpacked, (size_t)m->bytes);
    if (crc == m->crc) return WEFT_OK;
    return weft_source_fail(source, error, "array %s has a wrong check sum; get it again", m->name);
}

static weft_status open_member(const weft_source *source, member *m, weft_error *error)
{
    char what[WEFT_RECORD_NAME + 8], *head = NULL;
    snprintf(what, sizeof what, "array %s", m->name);
    WEFT_TRY(find_bytes(source, m, error));
    if (m->method != 0) {
        WEFT_TRY(unpack(source, m, error));
        return weft_npy_parse(source, what, m->unpacked,
                              m->bytes < WEFT_NPY_HEADER ? m->bytes : WEFT_NPY_HEADER, m->bytes,
                              &m->array, error);
    }
    const int64_t n = m->packed < WEFT_NPY_HEADER ? m->packed : WEFT_NPY_HEADER;
    WEFT_TRY(weft_source_take(source, &head, n, m->at, error));
    const weft_status status =
        weft_npy_parse(source, what, (unsigned char *)head, n, m->packed, &m->array, error);
    free(head);
    return status;
}

/* ---- the kind --------------------------------------------------------------------------------------- */

/* A zip archive whose first file is an array. */
static bool npz_is(const unsigned char *head, size_t n)
{
    if (n < LOCAL || memcmp(head, "PK\3\4", 4) != 0) return false;
    const size_t length = (size_t)little(head + 26, 2);
    return length >= 4 && LOCAL + length <= n && memcmp(head + LOCAL + length - 4, ".npy", 4) == 0;
}

static weft_status npz_open(weft_table *table, const char *wanted, weft_error *error)
{
    archive *a = table->state = calloc(1, sizeof *a);
    directory d = {NULL, 0, 0};
    if (a == NULL) return weft_fail_memory(error, sizeof *a);
    WEFT_TRY(find_directory(&table->source, &d, error));
    const weft_status status = read_directory(&table->source, &d, a, wanted, error);
    free(d.bytes);
    WEFT_TRY(status);
    for (int64_t i = 0; i < a->n; i++) {
        member *m = &a->members[i];
        WEFT_TRY(open_member(&table->source, m, error));
        if (m->array.dims[0] != a->members[0].array.dims[0])
            return weft_source_fail(&table->source, error,
                                    "array %s has %lld rows and %s has %lld; all need as many, "
                                    "name those that go together",
                                    m->name, (long long)m->array.dims[0], a->members[0].name,
                                    (long long)a->members[0].array.dims[0]);
        if (!weft_table_field(table, m->name, strlen(m->name), m->array.dtype, m->array.n_dims - 1,
                              m->array.dims + 1))
            return weft_fail_memory(error, sizeof *table->fields);
    }
    table->n_records = a->n > 0 ? a->members[0].array.dims[0] : 0;
    return WEFT_OK;
}

static weft_status npz_read(const weft_table *table, int64_t record, int field, int64_t begin,
                            int64_t end, void *to, weft_error *error)
{
    const member *m = &((const archive *)table->state)->members[field];
    const int64_t row = m->array.count / m->array.dims[0], from = record * row + begin;
    if (m->unpacked == NULL)
        return weft_npy_read(&table->source, &m->array, m->at, from, record * row + end, to, error);
    weft_npy_convert(&m->array, m->unpacked + m->array.begin + from * m->array.stored, end - begin,
                     to);
    return WEFT_OK;
}

static void npz_close(weft_table *table)
{
    archive *a = table->state;
    for (int64_t i = 0; i < a->n; i++)
        free(a->members[i].unpacked);
    free(a->members);
    free(a);
}

const weft_record_kind weft_kind_npz = {.name = "npz",
                                        .endings = " .npz ",
                                        .is = npz_is,
                                        .open = npz_open,
                                        .read = npz_read,
                                        .close = npz_close};
