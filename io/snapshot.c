/* snapshot: a stage that keeps what its chain gives in a file, and reads that from then on, in this run and in the next.
 *
 * The file is called by the chain's digest. It has a head, a hash for each part of the records, how long ragged fields are, and the
 * records, one behind the other. It is written under another name, and gets its own when all of it is on the disk. A process
 * that writes holds a lock on the folder. So the processes of a job write it once, and what a killed one left is overwritten. A part is compared with its hash when a
 * record of it is first read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "chain.h"
#include "checkpoint/files.h"
#include "kept.h"
#include "sync.h"

enum {
    PART_BYTES = 1 << 20, /* of records, about, that have a hash in common */
    ALIGNED = 8           /* where fields begin in a row: sources write into it */
};
static const char magic[16] = "weft snapshot 1";

typedef struct head {
    char magic[sizeof magic];
    weft_hash key, hash; /* the chain's digest; of the table that follows */
    int64_t records, per_part, row_bytes, total;
} head;

typedef struct snapshot {
    const weft_chain *operand;
    char path[WEFT_PATH_BYTES];
    int file;
    head head;
    int64_t n_parts, rows_at;
    int n_ragged, ragged[WEFT_MAX_FIELDS]; /* which of them a field is; -1: none */
    char *table;       /* hashes [n_parts], counts [records, n_ragged]: as it lies in the file */
    weft_hash *hashes; /* in the table */
    int64_t *counts;
    int64_t *starts;            /* [records + 1] where rows begin; NULL: all are row_bytes long */
    _Atomic unsigned char *has; /* [n_parts] it was compared */
} snapshot;

static void snapshot_close(void *self)
{
    snapshot *s = self;
    if (s->file >= 0) close(s->file);
    free(s->table), free(s->starts), free(s->has);
    free(s);
}

/* ---- where things are ------------------------------------------------------------------------------- */

static int64_t start_of(const snapshot *s, int64_t record)
{
    return s->starts ? s->starts[record] : record * s->head.row_bytes;
}

static int64_t count_of(const snapshot *s, int64_t record, int field)
{
    const weft_field *f = &s->operand->found.fields[field];
    if (s->ragged[field] >= 0) return s->counts[record * s->n_ragged + s->ragged[field]];
    return f->shape.n_dims > 0 ? f->shape.dims[0].size : 1;
}

/* Numbers that a record has of a field. */
static int64_t numbers_of(const snapshot *s, int64_t record, int field)
{
    const int64_t one = weft_field_count(&s->operand->found.fields[field]);
    return s->ragged[field] >= 0 ? one * count_of(s, record, field) : one;
}

/* Up to its field n_fields. */
static int64_t bytes_of(const snapshot *s, int64_t record, int n_fields)
{
    int64_t bytes = 0;
    for (int f = 0; f < n_fields; f++) {
        const size_t element = weft_dtype_bytes(s->operand->found.fields[f].dtype);
        bytes += (numbers_of(s, record, f) * (int64_t)element + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    return bytes;
}

static int64_t part_end(const snapshot *s, int64_t part)
{
    const int64_t end = (part + 1) * s->head.per_part;
    return end < s->head.records ? end : s->head.records;
}

static size_t table_bytes(const snapshot *s)
{
    return (size_t)s->n_parts * sizeof *s->hashes +
           (size_t)s->head.records * (size_t)s->n_ragged * sizeof *s->counts;
}

/* Where the rows begin, from how long they are. */
static weft_status find_starts(snapshot *s, weft_error *error)
{
    const int n_fields = s->operand->found.n_fields;
    if (s->n_ragged == 0) return WEFT_OK;
    s->starts = malloc((size_t)(s->head.records + 1) * sizeof *s->starts);
    if (s->starts == NULL)
        return weft_fail_memory(error, (size_t)s->head.records * sizeof *s->starts);
    s->starts[0] = 0;
    for (int64_t i = 0; i < s->head.records; i++)
        s->starts[i + 1] = s->starts[i] + bytes_of(s, i, n_fields);
    return WEFT_OK;
}

/* Room for the table, of which the sizes are known. */
static weft_status make_table(snapshot *s, weft_error *error)
{
    s->n_parts = (s->head.records + s->head.per_part - 1) / s->head.per_part;
    s->table = calloc(1, table_bytes(s) + 1);
    s->has = calloc((size_t)s->n_parts, sizeof *s->has);
    if (s->table == NULL || s->has == NULL) return weft_fail_memory(error, table_bytes(s));
    s->hashes = (weft_hash *)(void *)s->table;
    s->counts = (int64_t *)(void *)(s->table + (size_t)s->n_parts * sizeof *s->hashes);
    s->rows_at = (int64_t)(sizeof s->head + table_bytes(s));
    return WEFT_OK;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static weft_status compare(const snapshot *s, int64_t part, weft_error *error)
{
    const int64_t first = part * s->head.per_part, begin = start_of(s, first);
    const int64_t bytes = start_of(s, part_end(s, part)) - begin;
    char *rows = malloc((size_t)bytes + 1);
    if (rows == NULL) return weft_fail_memory(error, (size_t)bytes);
    weft_status status = weft_bytes_read(s->file, s->path, rows, bytes, s->rows_at + begin, error);
    const weft_hash hash = weft_hash_of(rows, status == WEFT_OK ? (size_t)bytes : 0);
    if (status == WEFT_OK && !weft_hash_equal(&hash, &s->hashes[part]))
        status = weft_fail(error, WEFT_CORRUPT,
                           "%s: records %lld to %lld are not as they were written; remove the "
                           "file, and it is made again",
                           s->path, (long long)first, (long long)part_end(s, part) - 1);
    if (status == WEFT_OK) weft_sync_store(&s->has[part], 1);
    free(rows);
    return status;
}

static weft_status snapshot_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                                 void *scratch, weft_error *error)
{
    const snapshot *s = self;
    const int64_t record = i % s->head.records, part = record / s->head.per_part;
    if (!weft_sync_load(&s->has[part])) WEFT_TRY(compare(s, part, error));
    for (const weft_want *w = wants; w < wants + n_wants; w++) {
        if (w->dtype != s->operand->found.fields[w->field].dtype) {
            WEFT_TRY(weft_chain_ask(s->operand, i, w, 1, scratch, error));
            continue;
        }
        const int64_t element = (int64_t)weft_dtype_bytes(w->dtype);
        const int64_t at = start_of(s, record) + bytes_of(s, record, w->field);
        WEFT_TRY(weft_bytes_read(s->file, s->path, w->to, (w->end - w->begin) * element,
                                 s->rows_at + at + w->begin * element, error));
    }
    return WEFT_OK;
}

static weft_status snapshot_count(const void *self, int64_t i, int field, void *scratch, int64_t *n,
                                  weft_error *error)
{
    const snapshot *s = self;
    (void)scratch, (void)error;
    *n = count_of(s, i % s->head.records, field);
    return WEFT_OK;
}

static void snapshot_place(const void *self, int field, int64_t i, int64_t number, char *text,
                           size_t bytes)
{
    weft_chain_place(((const snapshot *)self)->operand, field, i, number, text, bytes);
}

static const weft_chain_kind snapshot_kind = {.name = "snapshot",
                                              .read = snapshot_read,
                                              .count = snapshot_count,
                                              .place = snapshot_place,
                                              .close = snapshot_close,
                                              .is_stage = true,
                                              .is_same = true};

/* ---- one that is there ------------------------------------------------------------------------------ */

static bool is_ours(const snapshot *s, const head *h, const weft_hash *key, int64_t bytes)
{
    return memcmp(h->magic, magic, sizeof magic) == 0 && weft_hash_equal(&h->key, key) &&
           h->records == s->operand->found.records && h->per_part >= 1 && h->total >= 0 &&
           bytes >= (int64_t)sizeof *h;
}

static weft_status read_table(snapshot *s, weft_error *error)
{
    WEFT_TRY(make_table(s, error));
    WEFT_TRY(weft_bytes_read(s->file, s->path, s->table, (int64_t)table_bytes(s), sizeof s->head,
                             error));
    const weft_hash hash = weft_hash_of(s->table, table_bytes(s));
    if (!weft_hash_equal(&hash, &s->head.hash))
        return weft_fail(error, WEFT_CORRUPT, "%s: its table is damaged", s->path);
    return find_starts(s, error);
}

static void forget(snapshot *s)
{
    if (s->file >= 0) close(s->file);
    free(s->table), free(s->starts), free(s->has);
    s->file = -1, s->table = NULL, s->starts = NULL, s->has = NULL;
}

/* Whether a file is there that is whole; what is no such file, or cut, is made again. */
static bool find(snapshot *s, const weft_hash *key)
{
    weft_error ignored = {.rank = -1};
    int64_t bytes;
    if (weft_stored_file_open(s->path, &s->file, &bytes, &ignored) != WEFT_OK) {
        s->file = -1;
        return false;
    }
    if (weft_bytes_read(s->file, s->path, &s->head, sizeof s->head, 0, &ignored) == WEFT_OK &&
        is_ours(s, &s->head, key, bytes) && read_table(s, &ignored) == WEFT_OK &&
        start_of(s, s->head.records) == s->head.total && s->rows_at + s->head.total == bytes)
        return true;
    forget(s);
    return false;
}

/* ---- making one ------------------------------------------------------------------------------------- */

enum { COUNTED = 4096 /* records that a thread counts at once */ };

static void *scratch_of(const weft_chain *chain)
{
    return aligned_alloc(64, (chain->found.scratch_bytes + 127) / 64 * 64);
}

static weft_status count_part(void *argument, int64_t part, weft_error *error)
{
    snapshot *s = argument;
    const int64_t first = part * COUNTED, most = first + COUNTED;
    const int64_t end = most < s->head.records ? most : s->head.records;
    void *scratch = scratch_of(s->operand);
    weft_status status =
        scratch ? WEFT_OK : weft_fail_memory(error, s->operand->found.scratch_bytes);
    for (int64_t i = first; i < end; i++)
        for (int f = 0; f < s->operand->found.n_fields && status == WEFT_OK; f++)
            if (s->ragged[f] >= 0)
                status = weft_chain_count(s->operand, i, f, scratch,
                                          &s->counts[i * s->n_ragged + s->ragged[f]], error);
    free(scratch);
    return status;
}

static weft_status read_rows(const snapshot *s, int64_t first, int64_t end, char *rows,
                             void *scratch, weft_error *error)
{
    const int n_fields = s->operand->found.n_fields;
    for (int64_t i = first; i < end; i++) {
        weft_want wants[WEFT_MAX_FIELDS];
        int n = 0;
        for (int f = 0; f < n_fields; f++) {
            const int64_t numbers = numbers_of(s, i, f);
            char *to = rows + start_of(s, i) - start_of(s, first) + bytes_of(s, i, f);
            if (numbers > 0)
                wants[n++] = (weft_want){f, s->operand->found.fields[f].dtype, 0, numbers, to};
        }
        WEFT_TRY(weft_chain_ask(s->operand, i, wants, n, scratch, error));
    }
    return WEFT_OK;
}

static weft_status write_part(void *argument, int64_t part, weft_error *error)
{
    snapshot *s = argument;
    const int64_t first = part * s->head.per_part, end = part_end(s, part);
    const int64_t bytes = start_of(s, end) - start_of(s, first);
    char *rows = calloc(1, (size_t)bytes + 1); /* what is between fields is hashed too */
    void *scratch = scratch_of(s->operand);
    weft_status status = rows && scratch ? WEFT_OK : weft_fail_memory(error, (size_t)bytes);
    if (status == WEFT_OK) status = read_rows(s, first, end, rows, scratch, error);
    if (status == WEFT_OK) s->hashes[part] = weft_hash_of(rows, (size_t)bytes);
    if (status == WEFT_OK)
        status =
            weft_bytes_write(s->file, s->path, rows, bytes, s->rows_at + start_of(s, first), error);
    free(rows), free(scratch);
    return status;
}

/* How long all is, and into how many parts it goes: rows of unknown length are counted first. */
static weft_status measure(snapshot *s, int n_threads, weft_error *error)
{
    const int64_t n = s->head.records;
    s->head.per_part = n;
    if (s->n_ragged > 0) {
        WEFT_TRY(make_table(s, error));
        WEFT_TRY(weft_parts_do((n + COUNTED - 1) / COUNTED, n_threads, count_part, s, error));
        WEFT_TRY(find_starts(s, error));
    } else {
        s->head.row_bytes = bytes_of(s, 0, s->operand->found.n_fields);
    }
    s->head.total = start_of(s, n);
    const int64_t mean = s->head.total / n + 1;
    s->head.per_part = mean < PART_BYTES ? PART_BYTES / mean : 1;
    if (s->head.per_part > n) s->head.per_part = n;
    char *counted = s->table;
    const int64_t *counts = s->counts;
    free(s->has), s->table = NULL, s->has = NULL;
    const weft_status status = make_table(s, error);
    if (status == WEFT_OK && counted != NULL)
        memcpy(s->counts, counts, (size_t)n * (size_t)s->n_ragged * sizeof *counts);
    free(counted);
    return status;
}

static weft_status write_all(snapshot *s, const weft_hash *key, int n_threads, weft_error *error)
{
    WEFT_TRY(weft_parts_do(s->n_parts, n_threads, write_part, s, error));
    memcpy(s->head.magic, magic, sizeof magic);
    s->head.key = *key;
    s->head.hash = weft_hash_of(s->table, table_bytes(s));
    WEFT_TRY(weft_bytes_write(s->file, s->path, &s->head, sizeof s->head, 0, error));
    WEFT_TRY(weft_bytes_write(s->file, s->path, s->table, (int64_t)table_bytes(s), sizeof s->head,
                              error));
    return weft_file_sync(s->file, s->path, error);
}

static weft_status give_name(snapshot *s, const char *folder, const char *path, weft_error *error)
{
    if (rename(s->path, path) != 0) return weft_fail_io(error, "rename to", path, 0);
    memcpy(s->path, path, sizeof s->path);
    return weft_directory_sync(folder, error);
}

/* Under another name until it is whole; there is nothing of it when that fails. */
static weft_status make(snapshot *s, const char *folder, const weft_hash *key, int n_threads,
                        weft_error *error)
{
    char path[WEFT_PATH_BYTES];
    memcpy(path, s->path, sizeof path);
    s->head = (head){.records = s->operand->found.records};
    WEFT_TRY(weft_path(s->path, error, "%s.new", path));
    WEFT_TRY(measure(s, n_threads, error));
    s->file = open(s->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (s->file < 0) return weft_fail_io(error, "create", s->path, s->head.total);
    weft_status status = write_all(s, key, n_threads, error);
    if (status == WEFT_OK) status = give_name(s, folder, path, error);
    if (status != WEFT_OK) unlink(s->path);
    return status;
}

/* One process of a host makes it; the others wait for that, and find it. */
static weft_status find_or_make(snapshot *s, const weft_snapshot_options *o, weft_error *error)
{
    char digits[WEFT_HASH_DIGITS + 1];
    const weft_hash key = weft_chain_digest(s->operand);
    weft_hash_print(&key, digits);
    WEFT_TRY(weft_path(s->path, error, "%s/%s.snapshot", o->folder, digits));
    if (find(s, &key)) return WEFT_OK;
    WEFT_TRY(weft_directory_make(o->folder, error));
    const int lock = open(o->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR)
        ;
    weft_status status = WEFT_OK;
    if (!find(s, &key))
        status = make(s, o->folder, &key, o->n_threads > 0 ? o->n_threads : 1, error);
    if (lock >= 0) close(lock);
    return status;
}

/* ---- what is asked for ------------------------------------------------------------------------------ */

weft_status weft_chain_snapshot(weft_chain **chain, const weft_snapshot_options *options,
                                weft_error *error)
{
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_GIVEN(options->folder, error);
    WEFT_GIVEN_RANGE(options->n_threads, 0, 64, error);
    WEFT_TRY(weft_chain_check_fixed(*chain, "weft_chain_snapshot", "a file has one",
                                    "put it before that", error));
    snapshot *s = calloc(1, sizeof *s);
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    s->operand = *chain, s->file = -1;
    for (int f = 0; f < WEFT_MAX_FIELDS; f++)
        s->ragged[f] = f < (*chain)->found.n_fields && (*chain)->found.fields[f].is_ragged
                           ? s->n_ragged++
                           : -1;
    const weft_status status = find_or_make(s, options, error);
    if (status != WEFT_OK) {
        snapshot_close(s);
        return status;
    }
    weft_chain_found found = (*chain)->found;
    for (int f = 0; f < found.n_fields; f++)
        if (!weft_dtype_is_float(
                found.fields[f].dtype)) /* widened here as there; floats may not be */
            found.fields[f].native = 0;
    return weft_stage_make(&snapshot_kind, s, &found, "", chain, 1, chain, error);
}
