/* save: one save under way, up to its commit. */
#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "build_id.h"
#include "skeleton.h"
#include "recorder.h"
#include "weft/watch.h"
#include "work.h"

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

static const char *digest_text(weft_arena *arena, uint64_t digest)
{
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)digest);
    return weft_arena_intern(arena, text);
}

static weft_status make_manifest(weft_save *save, const weft_checkpoint_state *state,
                                 const weft_checkpoints *c, weft_error *error)
{
    const size_t n = (size_t)save->snapshot.n;
    weft_manifest *m = save->manifest = calloc(1, sizeof *m);
    if (m == NULL || (m->arena = weft_arena_create()) == NULL)
        return weft_fail_memory(error, sizeof *m);
    const weft_program *program = save->snapshot.program;
    m->state = *state;
    m->mesh = weft_arena_intern(m->arena, weft_mesh_text(weft_program_mesh(program)));
    m->layout = weft_arena_intern(m->arena, weft_program_layout(program));
    m->data = weft_arena_intern(m->arena, c->data);
    m->held_out = weft_arena_intern(m->arena, c->held_out);
    m->program = digest_text(m->arena, weft_program_digest(program));
    m->library = digest_text(m->arena, weft_build_id());
    m->files = weft_arena_take(m->arena, sizeof *m->files);
    m->entries = weft_arena_take(m->arena, n * sizeof *m->entries + 1);
    m->by_name = weft_arena_take(m->arena, n * sizeof *m->by_name + 1);
    m->by_place = weft_arena_take(m->arena, n * sizeof *m->by_place + 1);
    if (!m->mesh || !m->layout || !m->data || !m->held_out || !m->program || !m->library ||
        !m->files || !m->entries || !m->by_name || !m->by_place)
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
    const size_t n = (size_t)save->n_blocks;
    save->hashes = calloc(n + 1, sizeof *save->hashes);
    save->own = calloc(n + 1, sizeof *save->own);
    if (!save->hashes || !save->own) return weft_fail_memory(error, n * sizeof *save->hashes);
    weft_hash *next = save->hashes;
    for (int i = 0; i < m->n_entries; i++) {
        m->entries[i].blocks = next;
        next += m->entries[i].n_blocks;
    }
    return WEFT_OK;
}

void weft_staging_free(weft_checkpoints *c)
{
    if (c->staging != NULL) c->device->give_staging(c->staging, (size_t)c->staging_bytes);
    c->staging = NULL;
}

/* The memory that is written from while the program goes on. Kept: its pages are there the next
 * time. */
static weft_status make_staging(weft_checkpoints *c, int64_t bytes, weft_error *error)
{
    void *memory;
    if (c->staging && bytes <= c->staging_bytes) return WEFT_OK;
    weft_staging_free(c);
    c->device = weft_devices[weft_mesh_device(c->save->snapshot.mesh)];
    WEFT_TRY(c->device->take_staging((size_t)bytes + 1, &memory, error));
    c->staging = memory;
    c->staging_bytes = bytes + 1;
    return WEFT_OK;
}

/* Only what is copied may be written before all is. */
static bool may_write(const weft_save *save, const void *memory)
{
    return save->is_taken ||
           (save->snapshot.staging && weft_snapshot_has_taken(&save->snapshot, memory));
}

static void wait_taken(weft_snapshot_guard *guard, const void *memory)
{
    weft_save *save = (weft_save *)((char *)guard - offsetof(weft_save, guard));
    weft_lock_take(&save->lock);
    while (!may_write(save, memory))
        weft_condition_wait(&save->taken, &save->lock, "a variable to be copied");
    weft_lock_give(&save->lock);
}

static void tell_one_taken(void *argument)
{
    weft_save *save = argument;
    weft_lock_take(&save->lock);
    weft_condition_tell(&save->taken);
    weft_lock_give(&save->lock);
}

static void tell_taken(weft_save *save)
{
    weft_lock_take(&save->lock);
    save->is_taken = true;
    weft_condition_tell(&save->taken);
    weft_lock_give(&save->lock);
}

static weft_status prepare(weft_checkpoints *c, weft_program *program,
                           const weft_checkpoint_state *state, weft_error *error)
{
    weft_save *save = c->save = calloc(1, sizeof *save);
    if (save == NULL) return weft_fail_memory(error, sizeof *save);
    save->file = -1;
    save->peers.n = 1;
    save->guard.wait = wait_taken;
    pthread_mutex_init(&save->lock, NULL);
    pthread_cond_init(&save->taken, NULL);
    if (state->step < 0 || state->sample < 0)
        return weft_fail(error, WEFT_USAGE, "save: step %lld and sample %lld may not be negative",
                         (long long)state->step, (long long)state->sample);
    if (state->has_loss && !isfinite(state->loss))
        return weft_fail(error, WEFT_USAGE,
                         "save: the loss %g of step %lld is no number; leave has_loss out",
                         state->loss, (long long)state->step);
    WEFT_TRY(weft_snapshot_plan(program, &save->snapshot, error));
    const int n_threads = weft_work_threads(weft_program_mesh(program));
    save->n_threads = c->options.is_synchronous ? n_threads : 1; /* the others compute */
    save->n_copying = c->options.is_synchronous ? n_threads : (n_threads + 1) / 2;
    save->error.rank = -1;
    save->snapshot.allow_nonfinite = c->options.allow_nonfinite;
    save->snapshot.tell = tell_one_taken;
    save->snapshot.told = save;
    WEFT_TRY(make_manifest(save, state, c, error));
    WEFT_TRY(make_hashes(save, error));
    WEFT_TRY(weft_path(save->temporary, error, "%s/step_%08lld.tmp", c->directory,
                       (long long)state->step));
    return weft_path(save->path, error, "%s/" WEFT_STATE_FILE, save->temporary);
}

/* ---- the gate and the skeleton --------------------------------------------------------------- */

/* Without what lies between fields. */
static bool is_same_state(const weft_checkpoint_state *a, const weft_checkpoint_state *b)
{
    return a->step == b->step && a->sample == b->sample && a->seed == b->seed &&
           a->has_loss == b->has_loss && (!a->has_loss || a->loss == b->loss);
}

static weft_status check_states(const weft_save *save, weft_error *error)
{
    const weft_checkpoint_state *own = &save->manifest->state;
    weft_checkpoint_state *all = calloc((size_t)save->peers.n, sizeof *all);
    weft_status status = weft_peers_gather(&save->peers, own, sizeof *own, all, error);
    for (int p = 1; p < save->peers.n && status == WEFT_OK; p++)
        if (!is_same_state(&all[p], &all[0]))
            status =
                weft_fail(error, WEFT_MISMATCH,
                          "save: process %d is at step %lld, sample %lld, seed %llu, loss %g, "
                          "but process 0 at %lld, %lld, %llu, %g; all must save the same step",
                          p, (long long)all[p].step, (long long)all[p].sample,
                          (unsigned long long)all[p].seed, all[p].loss, (long long)all[0].step,
                          (long long)all[0].sample, (unsigned long long)all[0].seed, all[0].loss);
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
    if (c->frame.is_kept) return weft_frame_lay(&c->frame, save->manifest, save->path, error);
    return weft_skeleton_lay(save->path, save->manifest, false, error);
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

static weft_status open_file(weft_checkpoints *c, weft_error *error)
{
    weft_save *save = c->save;
    struct stat facts;
    save->file = open(save->path, O_RDWR | O_CLOEXEC);
    if (save->file < 0 || fstat(save->file, &facts) != 0)
        return weft_fail(error, WEFT_IO,
                         "cannot open %.250s, which process 0 has made: %s; all processes must see "
                         "one directory",
                         save->path, strerror(errno));
    if (c->frame.is_kept) return WEFT_OK;
    save->manifest->files[0].bytes = facts.st_size;
    weft_manifest_sort(save->manifest);
    return weft_frame_keep(&c->frame, save->manifest, save->peers.self == 0 ? save->file : -1,
                           save->path, error);
}

/* The data file, laid by the root and open everywhere. The next save of the same tensors finds it
 * in the frame: either on all processes or, when one has failed, on none. */
static weft_status make_file(weft_checkpoints *c, weft_error *error)
{
    weft_save *save = c->save;
    if (weft_frame_fits(&c->frame, save->manifest))
        weft_frame_place(&c->frame, save->manifest);
    else
        weft_frame_drop(&c->frame);
    const bool is_known = c->frame.is_kept;
    if (save->peers.self == 0) (void)lay(c, error);
    WEFT_TRY(weft_world_agree(error));
    if (!is_known) WEFT_TRY(tell_offsets(save, error));
    (void)open_file(c, error);
    if (weft_world_agree(error) != WEFT_OK) weft_frame_drop(&c->frame);
    return error->status;
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* When the program waits until all is written, it is written from where it is, unless others have
 * to see it. Collective. */
static weft_status make_room(weft_checkpoints *c, weft_error *error)
{
    static const weft_shared none;
    weft_save *save = c->save;
    weft_snapshot *s = &save->snapshot;
    bool has_rows = false;
    if (save->peers.n > 1) WEFT_TRY(weft_world_any(s->has_rows, &has_rows, error));
    if (has_rows) WEFT_TRY(weft_shared_make(&c->shared, &save->peers, s->bytes, error));
    save->shared = has_rows ? &c->shared : &none;
    if (save->shared->near.n)
        s->staging = save->shared->near.memory[save->shared->near.self];
    else if ((!c->options.is_synchronous || !s->is_open) &&
             make_staging(c, s->bytes, error) == WEFT_OK)
        s->staging = c->staging;
    if (error->status == WEFT_OK) (void)weft_snapshot_see(s, save->shared, error);
    return weft_world_agree(error);
}

static weft_status take_and_write(weft_checkpoints *c, weft_error *error)
{
    weft_save *save = c->save;
    WEFT_TRY(weft_snapshot_take(&save->snapshot, save->n_copying, error));
    if (save->snapshot.staging) tell_taken(save);
    return save->shared->near.n ? WEFT_OK : weft_save_write(save, error);
}

static weft_status write_shared(weft_checkpoints *c, weft_error *error)
{
    return weft_save_write(c->save, error);
}

static weft_status hash_rest(weft_checkpoints *c, weft_error *error)
{
    return weft_save_hash_rest(c->save, error);
}

static weft_status join_hashes(weft_save *save, weft_error *error)
{
    const size_t bytes = (size_t)save->n_blocks * sizeof *save->own;
    WEFT_TRY(weft_peers_join(&save->peers, save->own, (int64_t)bytes, error));
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)save->hashes)[i] |= ((const uint8_t *)save->own)[i];
    memset(save->own, 0, bytes);
    return WEFT_OK;
}

static weft_status compare_and_join(weft_save *save, weft_error *error)
{
    WEFT_TRY(weft_snapshot_compare(&save->snapshot, &save->peers, error));
    return join_hashes(save, error);
}

/* The others' parts have been copied too. */
static weft_status tell_nothing(weft_save *save, weft_error *error)
{
    (void)save, (void)error;
    return WEFT_OK;
}

static bool is_shared(const weft_save *save)
{
    return save->shared->near.n > 0;
}

/* Ranks that do not run the same calls commit nothing. Alone, the start has looked: this is the
 * save's thread, and the ranks run on. */
static weft_status check_and_join(weft_save *save, weft_error *error)
{
    if (save->peers.n > 1) WEFT_TRY(weft_calls_check(save->peers.comm, error));
    return join_hashes(save, error);
}

static bool is_always_needed(const weft_save *save)
{
    (void)save;
    return true;
}

typedef struct phase {
    weft_status (*tell)(weft_save *save,
                        weft_error *error); /* before it: collective over the mesh */
    bool (*is_needed)(const weft_save *save);
    weft_status (*work)(weft_checkpoints *checkpoints,
                        weft_error *error); /* on the save's thread */
} phase;

static const phase phases[] = {{NULL, is_always_needed, take_and_write},
                               {tell_nothing, is_shared, write_shared},
                               {compare_and_join, weft_save_has_rest, hash_rest},
                               {check_and_join, is_always_needed, weft_save_publish}};
enum { N_PHASES = sizeof phases / sizeof *phases };

/* The next phase that there is something to do in; false: none, or a failure. Collective over the
 * mesh. */
static bool next_phase(weft_save *save, weft_error *error)
{
    while (error->status == WEFT_OK && ++save->phase < N_PHASES) {
        (void)phases[save->phase].tell(save, error);
        if (weft_world_agree(error) == WEFT_OK && phases[save->phase].is_needed(save)) return true;
    }
    return false;
}

/* Alone there is nobody to wait for between the phases. A save that is given up stops between two of them, and only one that
 * came through the last of them is there. */
static void *run_phase(void *argument)
{
    weft_checkpoints *c = argument;
    weft_save *save = c->save;
    do
        (void)phases[save->phase].work(c, &save->error);
    while (save->peers.n == 1 && next_phase(save, &save->error) &&
           !weft_sync_load(&save->is_cancelled));
    if (save->peers.n == 1) {
        if (save->phase == N_PHASES && save->error.status == WEFT_OK)
            weft_watch_saved(save->manifest->state.step);
        weft_watch_saving(false);
    }
    tell_taken(save);
    weft_sync_store(&save->is_done, true);
    return NULL;
}

/* Without a thread to be had the phase runs here: slower, but a save. */
static void start_phase(weft_checkpoints *c)
{
    weft_save *save = c->save;
    weft_sync_store(&save->is_done, false);
    if (save->peers.n == 1) weft_watch_saving(true);
    save->has_thread = weft_thread_start(&save->thread, run_phase, c) == 0;
    if (!save->has_thread) run_phase(c);
}

void weft_save_join(weft_save *save)
{
    if (save->has_thread) weft_thread_join(save->thread);
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
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(check_states(save, error));
    WEFT_TRY(weft_calls_check(save->peers.comm, error));
    WEFT_TRY(make_room(c, error));
    WEFT_TRY(make_file(c, error));
    weft_snapshot_guard_start(&save->guard, program);
    start_phase(c);
    return WEFT_OK;
}

weft_status weft_save_advance(weft_checkpoints *c, weft_error *error)
{
    weft_save *save = c->save;
    weft_save_join(save);
    *error = save->error;
    if (weft_world_agree(error) == WEFT_OK && next_phase(save, error)) {
        start_phase(c);
        return WEFT_OK;
    }
    if (error->status == WEFT_OK) weft_watch_saved(save->manifest->state.step);
    weft_save_free(c, false);
    return error->status;
}

void weft_save_free(weft_checkpoints *c, bool is_alone)
{
    weft_save *save = c->save;
    if (save == NULL) return;
    weft_sync_store(&save->is_cancelled, true);
    weft_save_join(save);
    weft_snapshot_guard_end(&save->guard);
    if (save->file >= 0) close(save->file);
    /* A committed one no longer has this name. */
    if ((!is_alone || save->peers.n == 1) && save->peers.self == 0 && save->temporary[0])
        (void)weft_directory_remove(save->temporary, NULL);
    weft_peers_close(&save->peers);
    weft_snapshot_free(&save->snapshot);
    weft_manifest_destroy(&save->manifest);
    pthread_mutex_destroy(&save->lock);
    pthread_cond_destroy(&save->taken);
    free(save->hashes);
    free(save->own);
    free(save);
    c->save = NULL;
}
