/* write: from parts of tensors to whole blocks of the file, hashed on the way.
 *
 * A block that is whole here, or on this host, is put together, hashed and written in one go, and never read again.
 * Where other processes have parts of a block, ours are written to their place; it is hashed later, from the file.
 * Pages are handed to the disk as they come, so that it works while the next ones are made, and the fsync at the end
 * finds little to do.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "save.h"
#include "work.h"

/* ---- which block is meant -------------------------------------------------------------------- */

typedef struct place {
    int entry;
    int64_t block, begin, end; /* bytes of the tensor */
} place;

/* Blocks are counted over all tensors. An entry's hashes point to where its blocks begin. */
static place find_block(const weft_save *save, int64_t number)
{
    const weft_manifest *m = save->manifest;
    int low = 0, high = m->n_entries;
    while (high - low > 1) { /* the last that begins no later: those without blocks come before */
        const int middle = low + (high - low) / 2;
        if (m->entries[middle].blocks - save->hashes <= number)
            low = middle;
        else
            high = middle;
    }
    const weft_entry *entry = &m->entries[low];
    const int64_t block = number - (entry->blocks - save->hashes), begin = block * WEFT_BLOCK_BYTES;
    return (place){low, block, begin, begin + weft_block_bytes(entry, block)};
}

/* ---- write ----------------------------------------------------------------------------------- */

/* One piece of memory that goes to one place in the block. */
typedef struct piece {
    const char *from;
    int64_t at, bytes; /* at: in the tensor */
} piece;

typedef weft_status (*piece_body)(void *argument, const piece *p, weft_error *error);

/* All that this process sees of a block. */
static weft_status each_piece(const weft_save *save, const place *b, piece_body body,
                              void *argument, weft_error *error)
{
    const weft_snapshot *s = &save->snapshot;
    const weft_entry *entry = &save->manifest->entries[b->entry];
    const int64_t element = (int64_t)weft_dtype_bytes(entry->dtype);
    const weft_box whole = weft_box_whole(&entry->tensor.shape);
    for (int k = 0; k < s->n_seen; k++) {
        const weft_snapshot_part *part = &s->seen[(size_t)b->entry * (size_t)s->n_seen + (size_t)k];
        if (part->begin == part->end) continue;
        weft_box_runs runs = weft_box_runs_of(entry->tensor.shape.n_dims, &whole, &part->box);
        weft_box_runs_seek(&runs, b->begin / element);
        for (weft_box_cut cut;
             weft_box_runs_cut(&runs, b->begin / element, b->end / element, &cut);) {
            const piece p = {part->from + cut.inner * element, cut.at * element,
                             cut.count * element};
            WEFT_TRY(body(argument, &p, error));
        }
    }
    return WEFT_OK;
}

enum { STRETCH_BYTES = 256 << 10, WORTH_STARTING = 1 << 20 };

/* A block being put together. */
typedef struct gathering {
    char *memory;     /* [STRETCH_BYTES]     */
    int64_t begin;    /* of it in the tensor */
    int64_t bytes;    /* so far             */
    const char *only; /* the one piece that is the whole block: it needs no copy */
    int64_t whole;
} gathering;

static weft_status count_piece(void *argument, const piece *p, weft_error *error)
{
    gathering *g = argument;
    (void)error;
    g->bytes += p->bytes;
    if (p->bytes == g->whole) g->only = p->from;
    return WEFT_OK;
}

static weft_status gather_piece(void *argument, const piece *p, weft_error *error)
{
    const gathering *g = argument;
    (void)error;
    memcpy(g->memory + (p->at - g->begin), p->from, (size_t)p->bytes);
    return WEFT_OK;
}

typedef struct writing {
    const weft_save *save;
    const weft_entry *entry;
} writing;

static weft_status write_piece(void *argument, const piece *p, weft_error *error)
{
    const writing *w = argument;
    return weft_bytes_write(w->save->file, w->save->path, p->from, p->bytes,
                            w->entry->tensor.offset + p->at, error);
}

/* In stretches that are still in the core's cache when they are hashed and written. */
static weft_status write_whole(weft_save *save, int64_t number, const place *b, gathering *g,
                               weft_error *error)
{
    const int64_t offset = save->manifest->entries[b->entry].tensor.offset;
    weft_hashing hashing;
    weft_hash_begin(&hashing);
    place part = *b;
    for (part.end = b->begin; part.end < b->end;) {
        part.begin = part.end;
        part.end = b->end - part.begin < STRETCH_BYTES ? b->end : part.begin + STRETCH_BYTES;
        const int64_t bytes = part.end - part.begin;
        g->begin = part.begin;
        if (g->only == NULL) WEFT_TRY(each_piece(save, &part, gather_piece, g, error));
        const char *from = g->only ? g->only + (part.begin - b->begin) : g->memory;
        weft_hash_add(&hashing, from, (size_t)bytes);
        WEFT_TRY(weft_bytes_write(save->file, save->path, from, bytes, offset + part.begin, error));
    }
    save->own[number] = weft_hash_end(&hashing);
    return WEFT_OK;
}

/* Those who see the same parts share the blocks, each a stretch of them. */
static bool is_ours(const weft_save *save, int64_t number)
{
    const weft_shared *shared = save->shared;
    return shared->near.n == 0 || number * shared->near.n / save->n_blocks == shared->near.self;
}

static weft_status write_block(void *argument, int64_t number, void *scratch, weft_error *error)
{
    weft_save *save = argument;
    const place b = find_block(save, number);
    const weft_entry *entry = &save->manifest->entries[b.entry];
    gathering g = {.memory = scratch, .begin = b.begin, .whole = b.end - b.begin};
    if (weft_sync_load(&save->is_cancelled) || !is_ours(save, number)) return WEFT_OK;
    WEFT_TRY(each_piece(save, &b, count_piece, &g, error));
    if (g.bytes == 0) return WEFT_OK;
    if (g.bytes == g.whole)
        WEFT_TRY(write_whole(save, number, &b, &g, error));
    else
        WEFT_TRY(each_piece(save, &b, write_piece, &(writing){save, entry}, error));
    /* A wish: where it cannot be had, the fsync does it all, as it does what is small. */
    if (g.whole >= WORTH_STARTING)
        (void)sync_file_range(save->file, entry->tensor.offset + b.begin, b.end - b.begin,
                              SYNC_FILE_RANGE_WRITE);
    return WEFT_OK;
}

weft_status weft_save_write(weft_save *save, weft_error *error)
{
    WEFT_TRY(weft_work(save->n_threads, save->n_blocks, STRETCH_BYTES, write_block, save, error));
    return weft_sync_load(&save->is_cancelled) ? WEFT_OK
                                               : weft_file_sync(save->file, save->path, error);
}

/* ---- what nobody has had whole --------------------------------------------------------------- */

static bool is_open(const weft_hash *hash)
{
    static const weft_hash zero;
    return weft_hash_equal(hash, &zero);
}

bool weft_save_has_rest(const weft_save *save)
{
    for (int64_t i = 0; i < save->n_blocks; i++)
        if (is_open(&save->hashes[i])) return true;
    return false;
}

typedef struct hashing {
    weft_save *save;
    int64_t *blocks; /* our share of those that are open */
    int64_t n;
} hashing;

static weft_status hash_block(void *argument, int64_t item, void *scratch, weft_error *error)
{
    const hashing *h = argument;
    weft_save *save = h->save;
    const int64_t number = h->blocks[item];
    const place b = find_block(save, number);
    if (weft_sync_load(&save->is_cancelled)) return WEFT_OK;
    WEFT_TRY(weft_bytes_read(save->file, save->path, scratch, b.end - b.begin,
                             save->manifest->entries[b.entry].tensor.offset + b.begin, error));
    save->own[number] = weft_hash_of(scratch, (size_t)(b.end - b.begin));
    return WEFT_OK;
}

weft_status weft_save_hash_rest(weft_save *save, weft_error *error)
{
    hashing h = {.save = save, .blocks = malloc(((size_t)save->n_blocks + 1) * sizeof *h.blocks)};
    int64_t n_open = 0;
    if (h.blocks == NULL) return weft_fail_memory(error, (size_t)save->n_blocks * sizeof *h.blocks);
    for (int64_t i = 0; i < save->n_blocks; i++)
        if (is_open(&save->hashes[i]) && n_open++ % save->peers.n == save->peers.self)
            h.blocks[h.n++] = i;
    const weft_status status =
        weft_work(save->n_threads, h.n, WEFT_BLOCK_BYTES, hash_block, &h, error);
    free(h.blocks);
    return status;
}
