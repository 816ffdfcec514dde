/* save: one save under way, up to its commit. */
#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runs.h"
#include "skeleton.h"
#include "stored.h"

/* ---- what will be in the manifest ------------------------------------------------------------ */

static bool fill_entry(weft_arena *arena, weft_value variable, weft_entry *entry)
{
    const weft_shape *shape = weft_shape_of(variable);
    weft_stored_tensor *tensor = &entry->tensor;
    entry->dtype = weft_dtype_of(variable);
    tensor->name = weft_arena_intern(arena, weft_name_of(variable));
    tensor->dtype = weft_dtype_name(entry->dtype);
    tensor->shape = *shape;
    bool is_good = tensor->name != NULL;
    for (int d = 0; d < shape->n_dims; d++) {
        tensor->shape.dims[d].name = weft_arena_intern(arena, shape->dims[d].name);
        is_good &= tensor->shape.dims[d].name != NULL;
    }
    tensor->file = WEFT_STATE_FILE;
    tensor->bytes = weft_shape_count(shape) * (int64_t)weft_dtype_bytes(entry->dtype);
    tensor->is_slot = weft_is_slot(variable);
    entry->dataset = is_good ? weft_dataset_path(arena, tensor->name, tensor->is_slot) : NULL;
    entry->n_blocks = weft_n_blocks(tensor->bytes);
    return entry->dataset != NULL;
}

static weft_status make_manifest(weft_save *save, const weft_checkpoint_state *state,
                                 weft_error *error)
{
    const size_t n = (size_t)save->snapshot.n;
    weft_manifest *m = save->manifest = calloc(1, sizeof *m);
    if (m == NULL || (m->arena = weft_arena_create()) == NULL)
        return weft_fail_memory(error, sizeof *m);
    const weft_program *program = save->snapshot.program;
    m->state = *state;
    m->mesh = weft_arena_intern(m->arena, weft_mesh_text(weft_program_mesh(program)));
    m->layout = weft_arena_intern(m->arena, weft_program_layout(program));
    m->files = weft_arena_take(m->arena, sizeof *m->files);
    m->entries = weft_arena_take(m->arena, n * sizeof *m->entries + 1);
    m->by_name = weft_arena_take(m->arena, n * sizeof *m->by_name + 1);
    m->by_place = weft_arena_take(m->arena, n * sizeof *m->by_place + 1);
    if (!m->mesh || !m->layout || !m->files || !m->entries || !m->by_name || !m->by_place)
        return weft_fail_memory(error, n * sizeof *m->entries);
    m->n_files = 1;
    m->files[0].name = WEFT_STATE_FILE;
    for (m->n_entries = 0; m->n_entries < save->snapshot.n; m->n_entries++) {
        weft_entry *entry = &m->entries[m->n_entries];
        if (!fill_entry(m->arena, save->snapshot.variables[m->n_entries], entry))
            return weft_fail_memory(error, sizeof *entry);
        save->n_blocks += entry->n_blocks;
    }
    return WEFT_OK;
}

static weft_status make_hashes(weft_save *save, weft_error *error)
{
    weft_manifest *m = save->manifest;
    save->share = (save->n_blocks + save->peers.n - 1) / save->peers.n;
    const size_t share = (size_t)save->share, n = share * (size_t)save->peers.n;
    save->hashes = calloc(n + 1, sizeof *save->hashes);
    save->own = calloc(share + 1, sizeof *save->own);
    if (!save->hashes || !save->own) return weft_fail_memory(error, n * sizeof *save->hashes);
    weft_hash *next = save->hashes;
    for (int i = 0; i < m->n_entries; i++) {
        m->entries[i].blocks = next;
        next += m->entries[i].n_blocks;
    }
    return WEFT_OK;
}

/* The memory that is written from while the program goes on. */
static weft_status make_staging(weft_checkpoints *c, int64_t bytes, weft_error *error)
{
    if (c->staging && bytes <= c->staging_bytes) return WEFT_OK;
    free(c->staging);
    c->staging = malloc((size_t)bytes + 1);
    c->staging_bytes = c->staging ? bytes : 0;
    return c->staging ? WEFT_OK : weft_fail_memory(error, (size_t)bytes);
}

static weft_status prepare(weft_checkpoints *c, weft_program *program,
                           const weft_checkpoint_state *state, weft_error *error)
{
    weft_save *save = c->save = calloc(1, sizeof *save);
    if (save == NULL) return weft_fail_memory(error, sizeof *save);
    save->file = -1;
    save->peers.n = 1;
    if (state->step < 0 || state->sample < 0)
        return weft_fail(error, WEFT_USAGE, "save: step %lld and sample %lld may not be negative",
                         (long long)state->step, (long long)state->sample);
    WEFT_TRY(weft_snapshot_plan(program, &save->snapshot, error));
    save->snapshot.allow_nonfinite = c->options.allow_nonfinite;
    WEFT_TRY(make_manifest(save, state, error));
    WEFT_TRY(make_staging(c, save->snapshot.bytes, error));
    save->snapshot.staging = c->staging;
    save->staging = c->staging;
    WEFT_TRY(weft_path(save->temporary, error, "%s/step_%08lld.tmp", c->directory,
                       (long long)state->step));
    return weft_path(save->path, error, "%s/" WEFT_STATE_FILE, save->temporary);
}

/* ---- the gate and the skeleton --------------------------------------------------------------- */

static weft_status check_states(const weft_save *save, weft_error *error)
{
    const weft_checkpoint_state *own = &save->manifest->state;
    weft_checkpoint_state *all = calloc((size_t)save->peers.n, sizeof *all);
    if (all == NULL) return weft_fail_memory(error, (size_t)save->peers.n * sizeof *all);
    weft_status status = weft_peers_gather(&save->peers, own, sizeof *own, all, error);
    for (int p = 1; p < save->peers.n && status == WEFT_OK; p++)
        if (memcmp(&all[p], &all[0], sizeof *all) != 0)
            status = weft_fail(error, WEFT_MISMATCH,
                               "save: process %d is at step %lld, sample %lld, seed %llu, but "
                               "process 0 at %lld, %lld, %llu; all must save the same step",
                               p, (long long)all[p].step, (long long)all[p].sample,
                               (unsigned long long)all[p].seed, (long long)all[0].step,
                               (long long)all[0].sample, (unsigned long long)all[0].seed);
    free(all);
    return status;
}

static weft_status check_space(const weft_checkpoints *c, weft_error *error)
{
    struct statvfs space;
    const weft_manifest *m = c->save->manifest;
    int64_t bytes = 0;
    for (int i = 0; i < m->n_entries; i++)
        bytes += m->entries[i].tensor.bytes;
    if (statvfs(c->directory, &space) != 0) return WEFT_OK; /* the write will tell */
    const int64_t room = (int64_t)space.f_bavail * (int64_t)space.f_frsize;
    if (bytes <= room) return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "a checkpoint has %lld bytes, but the disk of %.200s has only %lld free; make "
                     "room, or keep fewer checkpoints",
                     (long long)bytes, c->directory, (long long)room);
}

static weft_status lay(const weft_checkpoints *c, weft_error *error)
{
    weft_save *save = c->save;
    WEFT_TRY(check_space(c, error));
    WEFT_TRY(weft_directory_remove(save->temporary, error));
    WEFT_TRY(weft_directory_make(save->temporary, error));
    return weft_skeleton_lay(save->path, save->manifest, error);
}

/* Where the root's skeleton has put every tensor, to everybody. */
static weft_status tell_offsets(weft_save *save, weft_error *error)
{
    const int n = save->manifest->n_entries;
    int64_t *offsets = malloc(((size_t)n + 1) * sizeof *offsets);
    if (offsets == NULL) return weft_fail_memory(error, (size_t)n * sizeof *offsets);
    for (int i = 0; i < n; i++)
        offsets[i] = save->manifest->entries[i].tensor.offset;
    const weft_status status =
        weft_peers_tell(&save->peers, offsets, n * (int64_t)sizeof *offsets, error);
    for (int i = 0; i < n; i++)
        save->manifest->entries[i].tensor.offset = offsets[i];
    free(offsets);
    return status;
}

static weft_status open_file(weft_save *save, weft_error *error)
{
    struct stat facts;
    save->file = open(save->path, O_RDWR | O_CLOEXEC);
    if (save->file < 0 || fstat(save->file, &facts) != 0)
        return weft_fail(error, WEFT_IO,
                         "cannot open %.250s, which process 0 has made: %s; all processes must see "
                         "one directory",
                         save->path, strerror(errno));
    save->manifest->files[0].bytes = facts.st_size;
    weft_manifest_sort(save->manifest);
    return WEFT_OK;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static weft_status write_piece(weft_save *save, int i, weft_error *error)
{
    const weft_part *piece = &save->snapshot.pieces[i];
    const weft_entry *entry = &save->manifest->entries[i];
    const int64_t element = (int64_t)weft_dtype_bytes(entry->dtype);
    const weft_box whole = weft_box_whole(&entry->tensor.shape);
    if (piece->bytes == 0) return WEFT_OK;
    const char *from = save->staging + piece->at;
    weft_box_runs runs = weft_box_runs_of(entry->tensor.shape.n_dims, &whole, &piece->box);
    const int64_t bytes = runs.count * element;
    for (int64_t at; weft_box_runs_next(&runs, &at) && !save->is_cancelled; from += bytes)
        WEFT_TRY(weft_bytes_write(save->file, save->path, from, bytes,
                                  entry->tensor.offset + at * element, error));
    return WEFT_OK;
}

static weft_status write_pieces(weft_save *save, weft_error *error)
{
    for (int i = 0; i < save->manifest->n_entries && !save->is_cancelled; i++)
        WEFT_TRY(write_piece(save, i, error));
    return save->is_cancelled ? WEFT_OK : weft_file_sync(save->file, save->path, error);
}

/* Several processes may have written parts of one block, so what is hashed is what the file holds
 * now. */
static weft_status hash_share(weft_save *save, char *buffer, weft_error *error)
{
    const int64_t begin = save->share * save->peers.self, end = begin + save->share;
    int64_t block = 0; /* of all tensors */
    for (int i = 0; i < save->manifest->n_entries; i++) {
        const weft_entry *entry = &save->manifest->entries[i];
        for (int64_t b = 0; b < entry->n_blocks; b++, block++) {
            if (block < begin || block >= end || save->is_cancelled) continue;
            const int64_t bytes = weft_block_bytes(entry, b);
            WEFT_TRY(weft_bytes_read(save->file, save->path, buffer, bytes,
                                     entry->tensor.offset + b * WEFT_BLOCK_BYTES, error));
            save->own[block - begin] = weft_hash_of(buffer, (size_t)bytes);
        }
    }
    return WEFT_OK;
}

static weft_status hash_blocks(weft_save *save, weft_error *error)
{
    char *buffer = malloc(WEFT_BLOCK_BYTES);
    if (buffer == NULL) return weft_fail_memory(error, WEFT_BLOCK_BYTES);
    const weft_status status = hash_share(save, buffer, error);
    free(buffer);
    return status;
}

static weft_status (*const phases[])(weft_save *save, weft_error *error) = {write_pieces,
                                                                            hash_blocks};
enum { N_PHASES = sizeof phases / sizeof *phases };

static void *run_phase(void *argument)
{
    weft_save *save = argument;
    (void)phases[save->phase](save, &save->error);
    atomic_store(&save->is_done, true);
    return NULL;
}

/* Without a thread to be had the phase runs here: slower, but a save. */
static void start_phase(weft_save *save)
{
    atomic_store(&save->is_done, false);
    save->has_thread = pthread_create(&save->thread, NULL, run_phase, save) == 0;
    if (!save->has_thread) run_phase(save);
}

void weft_save_join(weft_save *save)
{
    if (save->has_thread) pthread_join(save->thread, NULL);
    save->has_thread = false;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Every step that can fail on one process alone ends with an agreement, so that all go on or none.
 */
weft_status weft_save_start(weft_checkpoints *c, weft_program *program,
                            const weft_checkpoint_state *state, weft_error *error)
{
    (void)prepare(c, program, state, error);
    WEFT_TRY(weft_world_agree(error));
    weft_save *save = c->save;
    (void)weft_peers_open(weft_program_mesh(program), &save->peers, error);
    if (error->status == WEFT_OK) (void)make_hashes(save, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(check_states(save, error));
    WEFT_TRY(weft_calls_check(save->peers.comm, error));
    (void)weft_snapshot_take(&save->snapshot, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(weft_snapshot_compare(&save->snapshot, &save->peers, error));
    if (save->peers.self == 0) (void)lay(c, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(tell_offsets(save, error));
    (void)open_file(save, error);
    WEFT_TRY(weft_world_agree(error));
    start_phase(save);
    return WEFT_OK;
}

weft_status weft_save_advance(weft_checkpoints *c, weft_error *error)
{
    weft_save *save = c->save;
    weft_save_join(save);
    weft_status status = weft_world_agree(&save->error);
    if (status != WEFT_OK) {
        *error = save->error;
    } else if (++save->phase < N_PHASES) {
        start_phase(save);
        return WEFT_OK;
    } else {
        status = weft_save_commit(c, error);
    }
    weft_save_free(c, false);
    return status;
}

void weft_save_free(weft_checkpoints *c, bool is_alone)
{
    weft_save *save = c->save;
    if (save == NULL) return;
    atomic_store(&save->is_cancelled, true);
    weft_save_join(save);
    if (save->file >= 0) close(save->file);
    /* A committed one no longer has this name. */
    if ((!is_alone || save->peers.n == 1) && save->peers.self == 0 && save->temporary[0])
        (void)weft_directory_remove(save->temporary, NULL);
    weft_peers_close(&save->peers);
    weft_snapshot_free(&save->snapshot);
    weft_manifest_destroy(&save->manifest);
    free(save->hashes);
    free(save->own);
    free(save);
    c->save = NULL;
}
