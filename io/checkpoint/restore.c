/* restore: from a checkpoint on disk into a program, whatever its mesh, layout and storage.
 *
 * Every process reads the blocks that its ranks' boxes touch, on all its cores, checks each block's
 * hash, and copies the runs out of it. HDF5's own reader is not used: what it does with a damaged
 * file is not to be relied on.
 */
#include "weft/extend/half.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "part.h"
#include "peers.h"
#include "runs.h"
#include "save.h"
#include "stored.h"
#include "weft/watch.h"
#include "work.h"

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

static void copy_2(void *to, const void *from, int64_t count)
{
    memcpy(to, from, (size_t)count * 2);
}

static void copy_1(void *to, const void *from, int64_t count)
{
    memcpy(to, from, (size_t)count);
}

#define CONVERT(name, T, R, number)                                                                \
    static void name(void *to, const void *from, int64_t count)                                    \
    {                                                                                              \
        const T *x = from;                                                                         \
        R *y = to;                                                                                 \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = (R)(number);                                                                    \
    }
#define BF16(x) weft_f32_of_bf16(x)
#define F16(x)  weft_f32_of_f16(x)
CONVERT(f32_to_f64, float, double, x[i])
CONVERT(f32_to_bf16, float, uint16_t, weft_bf16_of_f32(x[i]))
CONVERT(f32_to_f16, float, uint16_t, weft_f16_of_f32(x[i]))
CONVERT(f64_to_f32, double, float, x[i])
CONVERT(f64_to_bf16, double, uint16_t, weft_bf16_of_f64(x[i]))
CONVERT(f64_to_f16, double, uint16_t, weft_f16_of_f64(x[i]))
CONVERT(bf16_to_f32, uint16_t, float, BF16(x[i]))
CONVERT(bf16_to_f64, uint16_t, double, BF16(x[i]))
CONVERT(bf16_to_f16, uint16_t, uint16_t, weft_f16_of_f32(BF16(x[i])))
CONVERT(f16_to_f32, uint16_t, float, F16(x[i]))
CONVERT(f16_to_f64, uint16_t, double, F16(x[i]))
CONVERT(f16_to_bf16, uint16_t, uint16_t, weft_bf16_of_f32(F16(x[i])))
CONVERT(i32_to_i64, int32_t, int64_t, x[i])
CONVERT(u8_to_i32, uint8_t, int32_t, x[i])
CONVERT(u8_to_i64, uint8_t, int64_t, x[i])

/* [stored][wanted]: floats to floats, integers to those that hold them all */
static const convert_function converts[WEFT_DTYPES][WEFT_DTYPES] = {
    [WEFT_F32] = {[WEFT_F32] = copy_4,
                  [WEFT_F64] = f32_to_f64,
                  [WEFT_BF16] = f32_to_bf16,
                  [WEFT_F16] = f32_to_f16},
    [WEFT_F64] = {[WEFT_F32] = f64_to_f32,
                  [WEFT_F64] = copy_8,
                  [WEFT_BF16] = f64_to_bf16,
                  [WEFT_F16] = f64_to_f16},
    [WEFT_BF16] = {[WEFT_F32] = bf16_to_f32,
                   [WEFT_F64] = bf16_to_f64,
                   [WEFT_BF16] = copy_2,
                   [WEFT_F16] = bf16_to_f16},
    [WEFT_F16] = {[WEFT_F32] = f16_to_f32,
                  [WEFT_F64] = f16_to_f64,
                  [WEFT_BF16] = f16_to_bf16,
                  [WEFT_F16] = copy_2},
    [WEFT_I32] = {[WEFT_I32] = copy_4, [WEFT_I64] = i32_to_i64},
    [WEFT_I64] = {[WEFT_I64] = copy_8},
    [WEFT_U8] = {[WEFT_U8] = copy_1, [WEFT_I32] = u8_to_i32, [WEFT_I64] = u8_to_i64},
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

typedef struct restoring {
    weft_program *program;
    const weft_stored *stored;
    int n_local, n;             /* ranks here; variables */
    const weft_entry **entries; /* [n]                                             */
    int64_t *blocks;            /* [n + 1] blocks of all variables before this one */
} restoring;

/* One block of one variable. */
typedef struct target {
    weft_value variable;
    const weft_entry *entry;
    int64_t block, begin, end; /* bytes of the stored tensor */
} target;

static target find_target(const restoring *r, int64_t number)
{
    int low = 0, high = r->n;
    while (high - low > 1) { /* the last that begins no later */
        const int middle = low + (high - low) / 2;
        if (r->blocks[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    target t = {weft_variable_at(r->program, low), r->entries[low], number - r->blocks[low], 0, 0};
    t.begin = t.block * WEFT_BLOCK_BYTES;
    t.end = t.begin + weft_block_bytes(t.entry, t.block);
    return t;
}

typedef struct destination {
    weft_box_runs runs;
    bool is_there;      /* the rank's box has elements                   */
    char *memory;       /* of it; NULL: only the device sees it          */
    int64_t begin, end; /* elements of the tensor */
    int64_t element;    /* bytes of one, here */
} destination;

static destination find_destination(const restoring *r, const target *t, int local)
{
    const int rank = weft_mesh_first_local(weft_program_mesh(r->program)) + local;
    const weft_shape *shape = weft_shape_of(t->variable);
    const weft_box whole = weft_box_whole(shape);
    const int64_t stored = (int64_t)weft_dtype_bytes(t->entry->dtype);
    weft_box box;
    destination d = {.begin = t->begin / stored, .end = t->end / stored};
    d.element = (int64_t)weft_dtype_bytes(weft_dtype_of(t->variable));
    weft_box_of(r->program, t->variable, rank, &box);
    d.is_there = weft_box_count(&box, shape->n_dims) > 0;
    d.memory = weft_local(r->program, t->variable, rank, &box);
    if (!d.is_there) return d;
    d.runs = weft_box_runs_of(shape->n_dims, &whole, &box);
    weft_box_runs_seek(&d.runs, d.begin);
    return d;
}

/* Where the block can be read to at once: into a box that has all of it in one piece, in the stored
 * dtype. */
static char *whole_place(const restoring *r, const target *t)
{
    if (t->entry->dtype != weft_dtype_of(t->variable)) return NULL;
    for (int local = 0; local < r->n_local; local++) {
        destination d = find_destination(r, t, local);
        weft_box_cut cut;
        if (d.memory && weft_box_runs_cut(&d.runs, d.begin, d.end, &cut) &&
            cut.count == d.end - d.begin)
            return d.memory + cut.inner * d.element;
    }
    return NULL;
}

static bool is_wanted(const restoring *r, const target *t)
{
    for (int local = 0; local < r->n_local; local++) {
        destination d = find_destination(r, t, local);
        weft_box_cut cut;
        if (d.is_there && weft_box_runs_cut(&d.runs, d.begin, d.end, &cut)) return true;
    }
    return false;
}

/* Into memory that the host does not see: converted a stretch at a time. */
static void put_through(const restoring *r, const target *t, int local, const weft_box_cut *cut,
                        const char *from)
{
    enum { STRETCH = 1024 };
    double stretch[STRETCH]; /* of any dtype */
    const weft_dtype dtype = weft_dtype_of(t->variable);
    const int rank = weft_mesh_first_local(weft_program_mesh(r->program)) + local;
    const int64_t stored = (int64_t)weft_dtype_bytes(t->entry->dtype),
                  element = (int64_t)weft_dtype_bytes(dtype);
    for (int64_t at = 0, n; at < cut->count; at += n) {
        n = cut->count - at < STRETCH ? cut->count - at : STRETCH;
        converts[t->entry->dtype][dtype](stretch, from + at * stored, n);
        weft_part_put(r->program, t->variable, rank, (cut->inner + at) * element, stretch,
                      n * element);
    }
}

/* What bytes [t->begin, t->end) have of one rank's box. */
static void put(const restoring *r, const target *t, int local, const char *bytes)
{
    destination d = find_destination(r, t, local);
    const convert_function convert = converts[t->entry->dtype][weft_dtype_of(t->variable)];
    const int64_t stored = (int64_t)weft_dtype_bytes(t->entry->dtype);
    for (weft_box_cut cut; d.is_there && weft_box_runs_cut(&d.runs, d.begin, d.end, &cut);) {
        const char *from = bytes + (cut.at - d.begin) * stored;
        char *to = d.memory ? d.memory + cut.inner * d.element : NULL;
        if (to == NULL)
            put_through(r, t, local, &cut, from);
        else if (from != to)
            convert(to, from, cut.count);
    }
}

typedef struct putting {
    const restoring *r;
    const target *block;
} putting;

static void put_stretch(const void *argument, const char *bytes, int64_t begin, int64_t end)
{
    const putting *p = argument;
    target t = *p->block;
    t.begin = begin;
    t.end = end;
    for (int local = 0; local < p->r->n_local; local++)
        put(p->r, &t, local, bytes);
}

/* A block is read and hashed once, whichever ranks here want parts of it: where one has all of it,
 * into its memory. */
static weft_status restore_block(void *argument, int64_t number, void *scratch, weft_error *error)
{
    const restoring *r = argument;
    const target t = find_target(r, number);
    if (!is_wanted(r, &t)) return WEFT_OK;
    char *block = whole_place(r, &t);
    if (block == NULL)
        return weft_stored_stretches(r->stored, t.entry, t.block, scratch, put_stretch,
                                     &(putting){r, &t}, error);
    WEFT_TRY(weft_stored_block(r->stored, t.entry, t.block, block, error));
    for (int local = 0; local < r->n_local; local++)
        put(r, &t, local, block);
    return WEFT_OK;
}

/* ---- one checkpoint -------------------------------------------------------------------------- */

/* Names and shapes first: a program that does not fit keeps its values. */
static weft_status find_entries(restoring *r, weft_error *error)
{
    while (weft_variable_at(r->program, r->n).id != 0)
        r->n++;
    r->entries = malloc(((size_t)r->n + 1) * sizeof *r->entries);
    r->blocks = calloc((size_t)r->n + 1, sizeof *r->blocks);
    if (!r->entries || !r->blocks) return weft_fail_memory(error, (size_t)r->n * sizeof *r->blocks);
    for (int i = 0; i < r->n; i++) {
        WEFT_TRY(find_entry(r->stored, weft_variable_at(r->program, i), &r->entries[i], error));
        r->blocks[i + 1] = r->blocks[i] + r->entries[i]->n_blocks;
    }
    return WEFT_OK;
}

static weft_status read_all(restoring *r, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(r->program);
    r->n_local = weft_mesh_n_local(mesh);
    WEFT_TRY(find_entries(r, error));
    if (weft_mesh_is_root(mesh)) WEFT_TRY(weft_stored_check_structure(r->stored, error));
    weft_snapshot_guard_wait(r->program, NULL);
    return weft_work(weft_work_threads(mesh), r->blocks[r->n], WEFT_STRETCH_BYTES, restore_block, r,
                     error);
}

/* Whether it has learned from what is learned from now; where it has not, and that is wanted, what is to be told. */
static weft_status check_data(weft_checkpoints *c, const weft_stored *stored,
                              weft_checkpoint_state *state, weft_error *error)
{
    static const weft_facts_words words = {"was", "", "is ", ""};
    char what[300], grew[160] = "";
    const char *before = stored->manifest->data;
    if (c->data[0] == 0) return WEFT_OK;
    if (before[0] == 0) {
        snprintf(
            c->told, sizeof c->told,
            "the checkpoint of step %lld does not say what it has learned from, so the data is "
            "not compared",
            (long long)state->step);
        return WEFT_OK;
    }
    if (!weft_facts_differ(before, c->data, &words, what, sizeof what)) return WEFT_OK;
    if (c->options.dataset != NULL)
        (void)weft_dataset_grew(c->options.dataset, before, grew, sizeof grew);
    const char *and = grew[0] != '\0' ? ": " : "";
    if (!c->options.other_data)
        return weft_fail(
            error, WEFT_USAGE,
            "%.80s has learned from other data: %.200s%s%s%s; give the data that it was "
            "begun with, or other_data of the options to go on with this",
            stored->path, what, strlen(what) > 200 ? "..." : "", and, grew);
    state->sample = 0;
    snprintf(c->told, sizeof c->told, "goes on with other data, from its first sample: %s%s%s",
             what, and, grew);
    return WEFT_OK;
}

static weft_status restore_step(weft_checkpoints *c, weft_program *program, const char *path,
                                int64_t step, weft_checkpoint_state *state, weft_error *error)
{
    weft_stored *stored;
    WEFT_TRY(weft_stored_open_step(path, &stored, error));
    restoring r = {.program = program, .stored = stored};
    weft_status status = WEFT_OK;
    if (stored->manifest->state.step != step)
        status = weft_fail(error, WEFT_CORRUPT, "%.200s holds step %lld: it was moved or renamed",
                           path, (long long)stored->manifest->state.step);
    c->told[0] = 0;
    weft_stored_state(stored, state);
    if (status == WEFT_OK) status = check_data(c, stored, state, error);
    if (status == WEFT_OK) status = read_all(&r, error);
    if (status != WEFT_OK) *state = (weft_checkpoint_state){0};
    free(r.entries);
    free(r.blocks);
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
        choice found = {.step = -1};
        if (peers->self == 0)
            (void)weft_newest_step(c->directory, below, &found.step, &n_damaged, error);
        WEFT_TRY(weft_world_agree(error));
        found.n_damaged =
            n_damaged + (c->skipped[0] && n_damaged == 0); /* the mark may have failed */
        WEFT_TRY(weft_peers_tell(peers, &found, sizeof found, error));
        if (found.step < 0) return found.n_damaged ? fail_all_damaged(c, &found, error) : WEFT_OK;
        (void)weft_step_path(path, c->directory, found.step, error);
        if (error->status == WEFT_OK)
            (void)restore_step(c, program, path, found.step, state, error);
        const weft_status status = weft_world_agree(error);
        if (status != WEFT_CORRUPT) return status;
        if (peers->self == 0) mark_damaged(path, error);
        note_skipped(c, found.step, error);
        *error = (weft_error){.rank = -1};
        below = found.step;
    }
}

static weft_status restore_number(weft_checkpoints *c, weft_program *program, int64_t step,
                                  weft_checkpoint_state *state, weft_error *error)
{
    char path[WEFT_PATH_BYTES];
    if (weft_step_path(path, c->directory, step, error) == WEFT_OK) {
        if (step >= 0 && weft_path_exists(path))
            (void)restore_step(c, program, path, step, state, error);
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
    WEFT_GIVEN(state, error);
    *state = found;
    WEFT_TRY(weft_check_given(c != NULL, __func__, "checkpoints", error));
    WEFT_GIVEN(program, error);
    c->skipped[0] = c->told[0] = 0;
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
    return c != NULL ? c->skipped : "";
}

const char *weft_checkpoints_data(const weft_checkpoints *c)
{
    return c != NULL ? c->told : "";
}
