/* idx: images and labels in IDX files (the format of MNIST), plain or compressed with gzip.
 *
 * A plain file above 64 MiB is read piece by piece as boxes need it. A smaller one is read, and a compressed one
 * decompressed, once, and the samples asked for stay in memory, shared by all ranks of the process. Headers are never
 * believed: what they say is compared with the bytes that are there, before anything is allocated
 * from it. source  the IDX description on the MNIST page: 0 0 type n_dims, then n_dims big-endian
 * 32-bit sizes
 */
#include "dataset.h"
#include "fingerprint.h"
#include "sources.h"

#include "weft/extend/half.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    UNSIGNED_BYTE = 0x08,
    MAX_IDX_DIMS = 4,
    MAX_HEADER = 4 + 4 * MAX_IDX_DIMS,
    CHUNK = 1 << 16,
    FEW_BYTES = 64 << 20
};

typedef struct idx_file {
    char *path;
    int file;             /* -1: compressed */
    unsigned char *bytes; /* samples [first, first + count); NULL: they are in the file alone */
    int64_t begin, end;   /* where those stand in the decompressed file */
    int64_t room;         /* bytes allocated */
    int64_t samples, width, header_bytes;
    char print[WEFT_PRINT_TEXT]; /* of all of it, decompressed */
} idx_file;

typedef struct idx {
    idx_file files[2]; /* images, labels: the order of the fields */
    int64_t first;
    int only; /* field 0 is that of this file: one alone is open */
} idx;

static void file_close(idx_file *f)
{
    if (f->file >= 0) close(f->file);
    free(f->bytes);
    free(f->path);
}

static void idx_close(void *source)
{
    idx *set = source;
    file_close(&set->files[0]);
    file_close(&set->files[1]);
    free(set);
}

/* Bytes 0..255 in the input's dtype; of a float 0..1. */
#define PUT(name, T, number)                                                                       \
    static void name(const unsigned char *from, void *to, int64_t n)                               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)to)[i] = (T)(number);                                                            \
    }
PUT(put_f32, float, (float)from[i] / 255.0f)
PUT(put_f64, double, from[i] / 255.0)
PUT(put_bf16, uint16_t, weft_bf16_of_f64(from[i] / 255.0))
PUT(put_f16, uint16_t, weft_f16_of_f64(from[i] / 255.0))
PUT(put_i32, int32_t, from[i])
PUT(put_i64, int64_t, from[i])
PUT(put_u8, uint8_t, from[i])

static void (*const put[WEFT_DTYPES])(const unsigned char *, void *, int64_t) = {
    [WEFT_F32] = put_f32, [WEFT_F64] = put_f64, [WEFT_BF16] = put_bf16, [WEFT_F16] = put_f16,
    [WEFT_I32] = put_i32, [WEFT_I64] = put_i64, [WEFT_U8] = put_u8};

static weft_status read_one(const idx *set, int64_t sample, const weft_want *want,
                            weft_error *error)
{
    const idx_file *f = &set->files[want->field + set->only];
    const size_t element = weft_dtype_bytes(want->dtype);
    unsigned char piece[4096];
    for (int64_t at = want->begin; at < want->end;) {
        const int64_t n =
            want->end - at < (int64_t)sizeof piece ? want->end - at : (int64_t)sizeof piece;
        const unsigned char *from = piece;
        if (f->bytes)
            from = f->bytes + sample * f->width + at;
        else
            WEFT_TRY(weft_file_read(f->file, f->path, piece, n,
                                    f->header_bytes + (set->first + sample) * f->width + at,
                                    error));
        put[want->dtype](from, (char *)want->to + (size_t)(at - want->begin) * element, n);
        at += n;
    }
    return WEFT_OK;
}

static weft_status idx_read(const void *source, int64_t sample, const weft_want *wants, int n_wants,
                            void *scratch, weft_error *error)
{
    (void)scratch;
    for (int i = 0; i < n_wants; i++)
        WEFT_TRY(read_one(source, sample, &wants[i], error));
    return WEFT_OK;
}

static weft_status idx_numbers(const void *source, int field, int64_t at, int64_t n, int64_t *to,
                               weft_error *error)
{
    const weft_want want = {field, WEFT_I64, at, at + n, to}; /* samples lie one behind the other */
    return read_one(source, 0, &want, error);
}

static void idx_place(const void *source, int field, int64_t sample, int64_t element, char *text,
                      size_t bytes)
{
    const idx *set = source;
    const idx_file *f = &set->files[field + set->only];
    snprintf(text, bytes, "data file %.180s: %s %lld", f->path,
             field + set->only == 0 ? "byte" : "label",
             (long long)((set->first + sample) * f->width + element));
}

enum {
    LABELS = 1u << WEFT_I32 | 1u << WEFT_I64 | 1u << WEFT_U8,
    IMAGES = 1u << WEFT_F32 | 1u << WEFT_F64 | 1u << WEFT_BF16 | 1u << WEFT_F16 | 1u << WEFT_U8
};
static const weft_chain_kind idx_kind = {
    .name = "idx",
    .read = idx_read,
    .close = idx_close,
    .numbers = idx_numbers,
    .number_bytes = 1,
    .place = idx_place,
};
static const weft_field idx_fields[2] = {
    {.name = "image", .dtype = WEFT_F32, .native = IMAGES, .dtypes = IMAGES},
    {.name = "label",
     .dtype = WEFT_U8,
     .native = LABELS,
     .dtypes = LABELS,
     .ids = "classes",
     .mend = "give as many classes as there are, or the labels that go with them"}};

static int64_t big_endian(const unsigned char *b)
{
    return (int64_t)b[0] << 24 | (int64_t)b[1] << 16 | (int64_t)b[2] << 8 | b[3];
}

/* header [bytes], as much of the file as there is up to MAX_HEADER; is_label: one dim, else two to
 * four */
static weft_status parse(idx_file *f, const unsigned char *header, int64_t bytes, bool is_label,
                         weft_error *error)
{
    if (bytes < 4 || header[0] != 0 || header[1] != 0 || header[2] != UNSIGNED_BYTE)
        return weft_fail(
            error, WEFT_USAGE,
            "%s is not an IDX file of bytes: it must begin with 00 00 08 and the number of "
            "dims, and begins with %02x %02x %02x (%lld bytes read)",
            f->path, bytes > 0 ? header[0] : 0, bytes > 1 ? header[1] : 0,
            bytes > 2 ? header[2] : 0, (long long)bytes);
    const int n_dims = header[3];
    if (is_label ? n_dims != 1 : n_dims < 2 || n_dims > MAX_IDX_DIMS)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %d dims and %s; were images and labels swapped?", f->path, n_dims,
                         is_label ? "labels have 1" : "images have 2 to 4");
    f->header_bytes = 4 + 4 * n_dims;
    if (bytes < f->header_bytes)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %lld bytes and its header alone needs %lld; it is cut off",
                         f->path, (long long)bytes, (long long)f->header_bytes);
    f->samples = big_endian(header + 4);
    f->width = 1;
    for (int d = 1; d < n_dims; d++) {
        const int64_t size = big_endian(header + 4 + 4 * d);
        if (size == 0 || size > (INT64_C(1) << 30) / f->width)
            return weft_fail(error, WEFT_USAGE,
                             "%s says a sample has %lld x %lld bytes; 1 to 2^30 can be", f->path,
                             (long long)f->width, (long long)size);
        f->width *= size;
    }
    return WEFT_OK;
}

static int64_t said_bytes(const idx_file *f)
{
    return f->header_bytes + f->samples * f->width; /* below 2^32 * 2^30 */
}

static weft_status check_size(const idx_file *f, int64_t bytes, weft_error *error)
{
    const int64_t said = said_bytes(f);
    if (said == bytes) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "%s says %lld samples of %lld bytes, which with the header makes %lld bytes, and holds "
        "%lld; it is %s, get it again",
        f->path, (long long)f->samples, (long long)f->width, (long long)said, (long long)bytes,
        bytes < said ? "cut off" : "damaged");
}

/* Bytes [at, at + n) of the file have been decompressed: keep what belongs to the samples wanted.
 */
static weft_status keep(idx_file *f, const unsigned char *from, int64_t at, int64_t n,
                        weft_error *error)
{
    const int64_t low = at > f->begin ? at : f->begin, high = at + n < f->end ? at + n : f->end;
    if (high <= low) return WEFT_OK;
    const int64_t needed = high - f->begin;
    if (needed > f->room) {
        const int64_t room = f->room * 2 > needed ? f->room * 2 : needed;
        unsigned char *grown = realloc(f->bytes, (size_t)room);
        if (!grown) return weft_fail_memory(error, (size_t)room);
        f->bytes = grown;
        f->room = room;
    }
    memcpy(f->bytes + (low - f->begin), from + (low - at), (size_t)(high - low));
    return WEFT_OK;
}

static void choose(idx_file *f, int64_t first, int64_t count)
{
    const int64_t there = first < f->samples ? f->samples - first : 0;
    f->begin = there > 0 ? f->header_bytes + first * f->width : 0;
    f->end = f->begin + (count > 0 && count < there ? count : there) * f->width;
}

/* The end of a gzip stream: whole, cut off, or damaged. */
static weft_status stream_end(const idx_file *f, gzFile stream, int n, int64_t bytes,
                              weft_error *error)
{
    int code = Z_OK;
    const char *why = gzerror(stream, &code);
    if (n == 0 && (code == Z_OK || code == Z_STREAM_END)) return WEFT_OK;
    if (code == Z_MEM_ERROR) return weft_fail_memory(error, CHUNK);
    return weft_fail(error, WEFT_USAGE,
                     "%s breaks off after %lld decompressed bytes (%s); get it again", f->path,
                     (long long)bytes, code == Z_ERRNO ? strerror(errno) : why);
}

static weft_status decompress(idx_file *f, gzFile stream, bool is_label, int64_t first,
                              int64_t count, weft_error *error)
{
    unsigned char chunk[CHUNK];
    weft_fingerprint print;
    int64_t at = 0;
    int n;
    while ((n = gzread(stream, chunk, sizeof chunk)) > 0) {
        if (at == 0) {
            WEFT_TRY(weft_bytes_check(chunk, (size_t)n, f->path, WEFT_FILE_IDX, error));
            WEFT_TRY(parse(f, chunk, n, is_label, error));
            choose(f, first, count);
            weft_fingerprint_begin(&print, said_bytes(f));
        }
        weft_fingerprint_add(&print, chunk, n);
        WEFT_TRY(keep(f, chunk, at, n, error));
        at += n;
    }
    WEFT_TRY(stream_end(f, stream, n, at, error));
    if (at == 0)
        return weft_fail(error, WEFT_USAGE, "%s is empty; an IDX file has a header at least",
                         f->path);
    WEFT_TRY(check_size(f, at, error));
    weft_fingerprint_end(&print, "bytes", at, f->print);
    return WEFT_OK;
}

static weft_status open_compressed(idx_file *f, bool is_label, int64_t first, int64_t count,
                                   weft_error *error)
{
    gzFile stream = gzdopen(f->file, "rb");
    if (!stream) return weft_fail_memory(error, CHUNK);
    f->file = -1; /* the stream's now */
    const weft_status status = decompress(f, stream, is_label, first, count, error);
    gzclose(stream);
    return status;
}

/* A copy of `path`, with .gz where only that file is there; NULL when out of memory. */
static char *path_there(const char *path)
{
    char *name = malloc(strlen(path) + sizeof ".gz");
    if (!name) return NULL;
    sprintf(name, "%s.gz", path);
    if (access(path, F_OK) == 0 || access(name, F_OK) != 0) strcpy(name, path);
    return name;
}

/* Where the samples that are wanted are few bytes they are read at once: a call of the system for each takes longer than what is
 * done with it. Without room for them they are read piece by piece. */
static weft_status read_all(idx_file *f, int64_t first, int64_t count, weft_error *error)
{
    choose(f, first, count);
    const int64_t bytes = f->end - f->begin;
    if (bytes <= 0 || bytes > FEW_BYTES) return WEFT_OK;
    f->bytes = malloc((size_t)bytes);
    return f->bytes ? weft_file_read(f->file, f->path, f->bytes, bytes, f->begin, error) : WEFT_OK;
}

static weft_status file_open(idx_file *f, const char *path, bool is_label, int64_t first,
                             int64_t count, weft_error *error)
{
    unsigned char header[MAX_HEADER];
    int64_t bytes;
    f->path = path_there(path);
    if (!f->path) return weft_fail_memory(error, strlen(path) + sizeof ".gz");
    WEFT_TRY(weft_file_open(f->path, &f->file, &bytes, error));
    const int64_t n = bytes < MAX_HEADER ? bytes : MAX_HEADER;
    if (n == 0) return weft_fail(error, WEFT_IO, "data file %s is empty", f->path);
    WEFT_TRY(weft_kind_check(f->file, f->path, bytes, WEFT_FILE_IDX, error));
    WEFT_TRY(weft_file_read(f->file, f->path, header, n, 0, error));
    if (n >= 2 && header[0] == 0x1f && header[1] == 0x8b)
        return open_compressed(f, is_label, first, count, error);
    WEFT_TRY(parse(f, header, n, is_label, error));
    WEFT_TRY(check_size(f, bytes, error));
    WEFT_TRY(weft_fingerprint_file(f->file, f->path, 0, bytes, "bytes", bytes, f->print, error));
    return read_all(f, first, count, error);
}

static weft_status check_pair(const idx *set, int64_t first, int64_t *count, weft_error *error)
{
    const idx_file *images = &set->files[0], *labels = &set->files[1];
    if (images->samples != labels->samples)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %lld images and %s has %lld labels; they belong to different sets",
                         images->path, (long long)images->samples, labels->path,
                         (long long)labels->samples);
    if (*count == 0) *count = images->samples - first;
    if (*count < 1 || first > images->samples - *count)
        return weft_fail(error, WEFT_USAGE, "samples %lld to %lld of %s, which has %lld",
                         (long long)first, (long long)(first + *count - 1), images->path,
                         (long long)images->samples);
    return WEFT_OK;
}

/* Takes over the set, also on failure. */
static weft_status make(idx *set, int64_t count, weft_chain **chain, weft_error *error)
{
    static const char *const facts[2] = {"images", "labels"};
    const bool is_pair = set->files[0].path && set->files[1].path;
    weft_chain_found found = {.records = count, .n_fields = 1 + is_pair};
    char part[64];
    snprintf(part, sizeof part, "%lld from %lld on", (long long)count, (long long)set->first);
    for (int i = 0; i < found.n_fields; i++)
        found.fields[i] = idx_fields[i + set->only];
    if (set->only == 0) found.fields[0].shape = (weft_shape){1, {{"pixel", set->files[0].width}}};
    WEFT_TRY(weft_chain_make(&idx_kind, set, &found, chain, error));
    for (int i = set->only; i < set->only + found.n_fields; i++)
        WEFT_TRY(weft_chain_say(chain, facts[i], set->files[i].print, error));
    return weft_chain_say(chain, "samples", part, error);
}

static idx *new_set(void)
{
    idx *set = calloc(1, sizeof *set);
    if (set) set->files[0].file = set->files[1].file = -1;
    return set;
}

/* Images, or where the file says so labels. */
weft_status weft_idx_source(const char *path, const weft_open_options *options, weft_chain **chain,
                            weft_error *error)
{
    idx *set = new_set();
    (void)options;
    if (!set) return weft_fail_memory(error, sizeof *set);
    if (file_open(&set->files[0], path, false, 0, 0, NULL) != WEFT_OK) {
        file_close(&set->files[0]);
        set->files[0] = (idx_file){.file = -1};
        set->only = 1;
    }
    idx_file *f = &set->files[set->only];
    weft_status status = WEFT_OK;
    if (set->only == 1) status = file_open(f, path, true, 0, 0, error);
    if (status == WEFT_OK && f->samples == 0)
        status = weft_fail(error, WEFT_USAGE, "%.240s has no samples; get it again", path);
    if (status == WEFT_OK) return make(set, f->samples, chain, error);
    idx_close(set);
    return status;
}

weft_status weft_idx_open(const char *images, const char *labels, int64_t first, int64_t count,
                          bool shuffled, uint64_t seed, weft_dataset **dataset, weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    *dataset = NULL;
    WEFT_GIVEN(images, error);
    WEFT_GIVEN(labels, error);
    if (first < 0 || count < 0 || first > INT64_C(1) << 40 || count > INT64_C(1) << 40)
        return weft_fail(error, WEFT_USAGE,
                         "samples from %lld, %lld of them; both must be 0 to 2^40",
                         (long long)first, (long long)count);
    weft_chain *chain = NULL;
    idx *set = new_set();
    if (!set) return weft_fail_memory(error, sizeof *set);
    set->first = first;
    weft_status status = file_open(&set->files[0], images, false, first, count, error);
    if (status == WEFT_OK) status = file_open(&set->files[1], labels, true, first, count, error);
    if (status == WEFT_OK) status = check_pair(set, first, &count, error);
    if (status != WEFT_OK) {
        idx_close(set);
        return status;
    }
    WEFT_TRY(make(set, count, &chain, error));
    return weft_dataset_make(&chain, shuffled, seed, dataset, error);
}
