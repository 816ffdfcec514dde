/* restore: from a checkpoint on disk into a program, whatever its mesh, layout and storage.
 *
 * Every process reads the blocks that its ranks' boxes touch, checks each block's hash, and copies
 * the runs out of it. HDF5's own reader is not used: what it does with a damaged file is not to be
 * relied on.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "runs.h"
#include "save.h"
#include "stored.h"
#include "weft/watch.h"

/* ---- conversion of elements ------------------------------------------------------------------ */

typedef void (*convert_function)(void *to, const void *from, int64_t count);

static void copy_4(void *to, const void *from, int64_t count)
{
    memcpy(to, from, (size_t)count * 4);
}

static void copy_8(void *to, const void *from, int64_t count)
{
    memcpy(to, from, (size_t)count * 8);
}

static void widen(void *to, const void *from, int64_t count)
{
    const float *x = from;
    double *y = to;
    for (int64_t i = 0; i < count; i++)
        y[i] = (double)x[i];
}

static void narrow(void *to, const void *from, int64_t count)
{
    const double *x = from;
    float *y = to;
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)x[i];
}

/* [stored][wanted] */
static const convert_function converts[WEFT_DTYPES][WEFT_DTYPES] = {
    [WEFT_F32] = {[WEFT_F32] = copy_4, [WEFT_F64] = widen},
    [WEFT_F64] = {[WEFT_F32] = narrow, [WEFT_F64] = copy_8},
    [WEFT_I32] = {[WEFT_I32] = copy_4},
};

/* ---- one variable ---------------------------------------------------------------------------- */

static weft_status fail_shapes(const weft_stored *stored, const weft_entry *entry,
                               weft_value variable, weft_error *error)
{
    char there[140], here[140];
    weft_shape_print(&entry->tensor.shape, there, sizeof there);
    weft_shape_print(weft_shape_of(variable), here, sizeof here);
    return weft_fail(error, WEFT_USAGE,
                     "%.60s is %s of %s in %.80s, but %s of %s in this program; use the options "
                     "that the run was started with, or another checkpoint",
                     entry->tensor.name, there, entry->tensor.dtype, stored->path, here,
                     weft_dtype_name(weft_dtype_of(variable)));
}

static bool is_same_shape(const weft_shape *a, const weft_shape *b)
{
    if (a->n_dims != b->n_dims) return false;
    for (int d = 0; d < a->n_dims; d++)
        if (a->dims[d].size != b->dims[d].size || strcmp(a->dims[d].name, b->dims[d].name) != 0)
            return false;
    return true;
}

static weft_status fail_missing(const weft_stored *stored, weft_value variable, weft_error *error)
{
    const weft_manifest *m = stored->manifest;
    const char *name = weft_name_of(variable), *nearest = NULL;
    const char **names = malloc(((size_t)m->n_entries + 1) * sizeof *names);
    for (int i = 0; names && i < m->n_entries; i++)
        names[i] = m->entries[i].tensor.name;
    if (names) nearest = weft_nearest(name, names, m->n_entries);
    free(names);
    return weft_fail(error, WEFT_USAGE,
                     "%.200s has no tensor %.60s, which this program wants%s%.60s; use the model "
                     "and optimizer that the run was started with",
                     stored->path, name, nearest ? "; the nearest it has is " : "",
                     nearest ? nearest : "");
}

static weft_status find_entry(const weft_stored *stored, weft_value variable,
                              const weft_entry **entry, weft_error *error)
{
    *entry = weft_manifest_find(stored->manifest, weft_name_of(variable));
    if (*entry == NULL) return fail_missing(stored, variable, error);
    if (!is_same_shape(&(*entry)->tensor.shape, weft_shape_of(variable)) ||
        !converts[(*entry)->dtype][weft_dtype_of(variable)])
        return fail_shapes(stored, *entry, variable, error);
    return WEFT_OK;
}

/* How far one local rank's box is filled. Bytes are of the stored tensor. */
typedef struct cursor {
    weft_box_runs runs;
    char *next;         /* in the rank's memory    */
    int64_t begin, end; /* what is left of the run */
    bool is_over;
} cursor;

static void next_run(cursor *c, int64_t element)
{
    int64_t at;
    c->is_over = !weft_box_runs_next(&c->runs, &at);
    if (c->is_over) return;
    c->begin = at * element;
    c->end = c->begin + c->runs.count * element;
}

/* Copy what block bytes [begin, end) have of a cursor's box. */
static void take_block(cursor *c, const weft_entry *entry, weft_dtype wanted, const char *block,
                       int64_t begin, int64_t end)
{
    const int64_t element = (int64_t)weft_dtype_bytes(entry->dtype);
    while (!c->is_over && c->begin < end) {
        const int64_t last = c->end < end ? c->end : end, count = (last - c->begin) / element;
        converts[entry->dtype][wanted](c->next, block + (c->begin - begin), count);
        c->next += count * (int64_t)weft_dtype_bytes(wanted);
        c->begin = last;
        if (c->begin == c->end) next_run(c, element);
    }
}

typedef struct restoring {
    weft_program *program;
    const weft_stored *stored;
    char *block;     /* [WEFT_BLOCK_BYTES] */
    cursor *cursors; /* [local ranks]      */
} restoring;

static void start_cursors(const restoring *r, weft_value variable, const weft_entry *entry)
{
    const weft_mesh *mesh = weft_program_mesh(r->program);
    const weft_shape *shape = weft_shape_of(variable);
    const weft_box whole = weft_box_whole(shape);
    for (int local = 0; local < weft_mesh_n_local(mesh); local++) {
        cursor *c = &r->cursors[local];
        weft_box box;
        *c = (cursor){.is_over = true};
        c->next = weft_local(r->program, variable, weft_mesh_first_local(mesh) + local, &box);
        if (c->next == NULL) continue;
        c->runs = weft_box_runs_of(shape->n_dims, &whole, &box);
        next_run(c, (int64_t)weft_dtype_bytes(entry->dtype));
    }
}

static weft_status read_variable(const restoring *r, weft_value variable, weft_error *error)
{
    const weft_entry *entry;
    const int n_local = weft_mesh_n_local(weft_program_mesh(r->program));
    WEFT_TRY(find_entry(r->stored, variable, &entry, error));
    start_cursors(r, variable, entry);
    for (int64_t b = 0; b < entry->n_blocks; b++) {
        const int64_t begin = b * WEFT_BLOCK_BYTES, end = begin + weft_block_bytes(entry, b);
        bool is_wanted = false;
        for (int local = 0; local < n_local; local++)
            is_wanted |= !r->cursors[local].is_over && r->cursors[local].begin < end;
        if (!is_wanted) continue;
        WEFT_TRY(weft_stored_block(r->stored, entry, b, r->block, error));
        for (int local = 0; local < n_local; local++)
            take_block(&r->cursors[local], entry, weft_dtype_of(variable), r->block, begin, end);
    }
    return WEFT_OK;
}

/* ---- one checkpoint -------------------------------------------------------------------------- */

/* Names and shapes first: a program that does not fit keeps its values. */
static weft_status check_fit(const restoring *r, weft_error *error)
{
    const weft_entry *entry;
    weft_value variable;
    for (int i = 0; (variable = weft_variable_at(r->program, i)).id != 0; i++)
        WEFT_TRY(find_entry(r->stored, variable, &entry, error));
    return WEFT_OK;
}

static weft_status read_all(restoring *r, weft_error *error)
{
    weft_value variable;
    const weft_mesh *mesh = weft_program_mesh(r->program);
    r->block = malloc(WEFT_BLOCK_BYTES);
    r->cursors = calloc((size_t)weft_mesh_n_local(mesh), sizeof *r->cursors);
    if (!r->block || !r->cursors) return weft_fail_memory(error, WEFT_BLOCK_BYTES);
    WEFT_TRY(check_fit(r, error));
    if (weft_mesh_is_root(mesh)) WEFT_TRY(weft_stored_check_structure(r->stored, error));
    for (int i = 0; (variable = weft_variable_at(r->program, i)).id != 0; i++)
        WEFT_TRY(read_variable(r, variable, error));
    return WEFT_OK;
}

static weft_status restore_step(weft_program *program, const char *path, int64_t step,
                                weft_checkpoint_state *state, weft_error *error)
{
    weft_stored *stored;
    WEFT_TRY(weft_stored_open_step(path, &stored, error));
    restoring r = {.program = program, .stored = stored};
    weft_status status = WEFT_OK;
    if (stored->manifest->state.step != step)
        status = weft_fail(error, WEFT_CORRUPT, "%.200s holds step %lld: it was moved or renamed",
                           path, (long long)stored->manifest->state.step);
    if (status == WEFT_OK) status = read_all(&r, error);
    if (status == WEFT_OK) weft_stored_state(stored, state);
    free(r.block);
    free(r.cursors);
    weft_stored_close(&stored);
    return status;
}

/* ---- which one ------------------------------------------------------------------------------- */

/* The reason goes beside the data, so that no later start tries it again. A directory that cannot
 * be written keeps its mark to this process. */
static void mark_damaged(const char *path, const weft_error *reason)
{
    char text[600];
    const int bytes = snprintf(text, sizeof text, "%s\n", reason->message);
    (void)weft_file_put(path, WEFT_DAMAGED_NAME, text, (size_t)bytes, NULL);
}

static void note_skipped(weft_checkpoints *c, int64_t step, const weft_error *reason)
{
    const size_t used = strlen(c->skipped);
    snprintf(c->skipped + used, sizeof c->skipped - used, "%sstep %lld is damaged: %s",
             used ? "\n" : "", (long long)step, reason->message);
}

/* What the root has found on disk. */
typedef struct choice {
    int64_t step; /* -1: none */
    int64_t n_damaged;
} choice;

static weft_status fail_all_damaged(const weft_checkpoints *c, const choice *found,
                                    weft_error *error)
{
    return weft_fail(error, WEFT_CORRUPT,
                     "no checkpoint in %.200s can be restored: %lld of them are damaged, each with "
                     "the reason in its file %s; begin again in another directory",
                     c->directory, (long long)found->n_damaged, WEFT_DAMAGED_NAME);
}

static weft_status restore_newest(weft_checkpoints *c, weft_program *program,
                                  const weft_peers *peers, weft_checkpoint_state *state,
                                  weft_error *error)
{
    for (int64_t below = INT64_MAX;;) {
        char path[WEFT_PATH_BYTES];
        int n_damaged = 0;
        choice found = {.step = weft_newest_step(c->directory, below, &n_damaged)};
        found.n_damaged =
            n_damaged + (c->skipped[0] && n_damaged == 0); /* the mark may have failed */
        WEFT_TRY(weft_peers_tell(peers, &found, sizeof found, error));
        if (found.step < 0) return found.n_damaged ? fail_all_damaged(c, &found, error) : WEFT_OK;
        (void)weft_step_path(path, c->directory, found.step, error);
        if (error->status == WEFT_OK) (void)restore_step(program, path, found.step, state, error);
        const weft_status status = weft_world_agree(error);
        if (status != WEFT_CORRUPT) return status;
        if (peers->self == 0) mark_damaged(path, error);
        note_skipped(c, found.step, error);
        *error = (weft_error){.rank = -1};
        below = found.step;
    }
}

static weft_status restore_number(const weft_checkpoints *c, weft_program *program, int64_t step,
                                  weft_checkpoint_state *state, weft_error *error)
{
    char path[WEFT_PATH_BYTES];
    if (weft_step_path(path, c->directory, step, error) == WEFT_OK) {
        if (step >= 0 && weft_path_exists(path))
            (void)restore_step(program, path, step, state, error);
        else
            weft_fail(error, WEFT_USAGE, "there is no checkpoint of step %lld in %.300s",
                      (long long)step, c->directory);
    }
    return weft_world_agree(error);
}

weft_status weft_checkpoints_restore(weft_checkpoints *c, weft_program *program, int64_t step,
                                     weft_checkpoint_state *state, weft_error *error)
{
    weft_error own = {.rank = -1};
    weft_peers peers;
    weft_checkpoint_state found = {0};
    *state = found;
    c->skipped[0] = 0;
    WEFT_TRY(weft_checkpoints_wait(c, error));
    if (weft_mesh_n_local(weft_program_mesh(program)) == 0)
        return weft_fail(error, WEFT_USAGE,
                         "restore: the program was compiled on a plan without "
                         "ranks; make the mesh with weft_mesh_create");
    if (weft_peers_open(weft_program_mesh(program), &peers, &own) == WEFT_OK) {
        if (step == WEFT_NEWEST)
            (void)restore_newest(c, program, &peers, &found, &own);
        else
            (void)restore_number(c, program, step, &found, &own);
        weft_peers_close(&peers);
    }
    if (own.status == WEFT_OK) {
        *state = found;
        weft_set_runs(program, found.step);
        if (found.step > 0) weft_watch_saved(found.step);
    } else if (error != NULL) {
        *error = own;
    }
    return own.status;
}

const char *weft_checkpoints_skipped(const weft_checkpoints *c)
{
    return c->skipped;
}
