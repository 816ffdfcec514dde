/* snapshot: a program's variables as they are now: checked, and copied if they will change.
 *
 * Boxes of two ranks are equal or have nothing in common. The ranks that have a box share the
 * writing of it, and all must hold the same bytes. All memory is gone through once, in chunks that
 * stay in a core's cache while they are checked, hashed and copied.
 */
#include "snapshot.h"

#include "sync.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot_guard.h"
#include "manifest.h"
#include "part.h"
#include "runs.h"
#include "weft/checkpoint.h"
#include "work.h"

enum { CHUNK_BYTES = 256 << 10 };

/* ---- plan ------------------------------------------------------------------------------------ */

static weft_snapshot_part *part_of(const weft_snapshot *s, int i, int local)
{
    return &s->parts[(size_t)i * (size_t)s->n_local + (size_t)local];
}

static weft_replica *replica_of(const weft_snapshot *s, int i, int local)
{
    return &s->replicas[(size_t)local * (size_t)s->n + (size_t)i];
}

static int64_t n_chunks(int64_t bytes)
{
    return (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

/* The ranks that have the same box: how many, and how many of them come before. */
typedef struct holders {
    int n, before;
} holders;

static holders find_holders(const weft_snapshot *s, int i, int rank, weft_replica *replica)
{
    const int n_dims = weft_shape_of(s->variables[i])->n_dims;
    weft_box own, other;
    holders h = {0};
    *replica = (weft_replica){.owner = -1};
    weft_box_of(s->program, s->variables[i], rank, &own);
    for (int r = 0; r < weft_mesh_n_ranks(s->mesh); r++) {
        weft_box_of(s->program, s->variables[i], r, &other);
        if (!weft_box_equal(&own, &other, n_dims)) continue;
        if (replica->owner < 0) replica->owner = r;
        h.before += r < rank;
        h.n++;
    }
    replica->is_shared = h.n > 1;
    return h;
}

/* Holder number h->before of h->n writes a range of rows of the outermost dim that has rows to
 * share out: that is one range of its memory. Boxes of a few blocks are written by one holder, the
 * next variable's by the next. */
static void cut_box(const holders *h, int n_dims, weft_box *box)
{
    int d = 0;
    while (d < n_dims - 1 && box->end[d] - box->begin[d] == 1)
        d++;
    const int64_t rows = n_dims ? box->end[d] - box->begin[d] : 0, begin = box->begin[d];
    box->begin[d] = begin + rows * h->before / h->n;
    box->end[d] = begin + rows * (h->before + 1) / h->n;
}

/* Which part of its box a rank writes, here or elsewhere. staged grows by it. */
static void plan_written(const weft_snapshot *s, int i, int rank, weft_snapshot_part *part,
                         weft_replica *replica, int64_t *staged)
{
    enum { WORTH_SHARING = 4 * WEFT_BLOCK_BYTES };
    const int n_dims = weft_shape_of(s->variables[i])->n_dims;
    const int64_t element = (int64_t)weft_dtype_bytes(weft_dtype_of(s->variables[i]));
    const holders h = find_holders(s, i, rank, replica);
    weft_box_of(s->program, s->variables[i], rank, &part->box);
    const weft_box whole = part->box;
    part->bytes = weft_box_count(&whole, n_dims) * element;
    /* Within one process the lowest holder writes all: its threads share the work anyway. */
    const bool is_cut = s->n_local == 1 && part->bytes >= WORTH_SHARING;
    if (part->bytes == 0 || (!is_cut && h.before != (s->n_local > 1 ? 0 : i % h.n))) return;
    if (is_cut) cut_box(&h, n_dims, &part->box);
    const weft_box_runs runs = weft_box_runs_of(n_dims, &whole, &part->box);
    part->begin = runs.first * element;
    part->end = part->begin + runs.count * element * runs.n;
    part->at = *staged;
    *staged += weft_aligned(part->end - part->begin);
}

static void plan_part(weft_snapshot *s, int i, int local)
{
    const int rank = weft_mesh_first_local(s->mesh) + local;
    const weft_shape *shape = weft_shape_of(s->variables[i]);
    const weft_box whole = weft_box_whole(shape);
    weft_snapshot_part *part = part_of(s, i, local);
    weft_box box;
    plan_written(s, i, rank, part, replica_of(s, i, local), &s->bytes);
    part->memory = weft_local(s->program, s->variables[i], rank, &box);
    s->has_rows |= weft_box_runs_of(shape->n_dims, &whole, &part->box).n > 1;
}

/* In the order in which a run writes the variables: it waits for those that it has come to. */
static void number_chunks(weft_snapshot *s)
{
    weft_write_order(s->program, s->n, s->order);
    for (int k = 0; k < s->n; k++) {
        const int64_t before = s->n_chunks;
        for (int local = 0; local < s->n_local; local++) {
            weft_snapshot_part *part = part_of(s, s->order[k], local);
            part->chunk = s->n_chunks;
            s->n_chunks += n_chunks(part->bytes);
        }
        atomic_init(&s->left[s->order[k]], s->n_chunks - before);
    }
}

weft_status weft_snapshot_see(weft_snapshot *s, const weft_shared *shared, weft_error *error)
{
    s->n_seen = shared->near.n ? shared->near.n : s->n_local;
    const size_t n = (size_t)s->n * (size_t)s->n_seen;
    s->seen = calloc(n + 1, sizeof *s->seen);
    if (s->seen == NULL) return weft_fail_memory(error, n * sizeof *s->seen);
    for (int k = 0; k < s->n_seen; k++) {
        int64_t staged = 0;
        for (int i = 0; i < s->n; i++) {
            weft_snapshot_part *part = &s->seen[(size_t)i * (size_t)s->n_seen + (size_t)k];
            weft_replica unused;
            if (shared->near.n)
                plan_written(s, i, shared->near.peers[k], part, &unused, &staged);
            else
                *part = *part_of(s, i, k);
            part->from = shared->near.n ? shared->near.memory[k] + part->at
                         : s->staging   ? s->staging + part->at
                                        : part->memory + part->begin;
        }
    }
    return WEFT_OK;
}

static bool take_name(weft_snapshot *s, int i)
{
    s->variables[i] = weft_variable_at(s->program, i);
    return (s->names[i] = strdup(weft_name_of(s->variables[i]))) != NULL;
}

weft_status weft_snapshot_plan(weft_program *program, weft_snapshot *s, weft_error *error)
{
    *s = (weft_snapshot){.program = program, .mesh = weft_program_mesh(program)};
    s->n_local = weft_mesh_n_local(s->mesh);
    s->is_open = weft_part_is_open(program);
    if (s->n_local == 0)
        return weft_fail(error, WEFT_USAGE,
                         "the program was compiled on a plan without ranks, so it has no variables "
                         "to save or check; make the mesh with weft_mesh_create");
    int n = 0;
    while (weft_variable_at(program, n).id != 0)
        n++;
    const size_t n_parts = (size_t)n * (size_t)s->n_local + 1;
    s->variables = calloc((size_t)n + 1, sizeof *s->variables);
    s->names = calloc((size_t)n + 1, sizeof *s->names);
    s->parts = calloc(n_parts, sizeof *s->parts);
    s->replicas = calloc(n_parts, sizeof *s->replicas);
    s->order = calloc((size_t)n + 1, sizeof *s->order);
    s->left = calloc((size_t)n + 1, sizeof *s->left);
    if (!s->variables || !s->names || !s->parts || !s->replicas || !s->order || !s->left)
        return weft_fail_memory(error, n_parts * sizeof *s->parts);
    for (s->n = n, n = 0; n < s->n; n++) {
        if (!take_name(s, n)) return weft_fail_memory(error, sizeof *s->names);
        for (int local = 0; local < s->n_local; local++)
            plan_part(s, n, local);
    }
    number_chunks(s);
    s->chunks = malloc(((size_t)s->n_chunks + 1) * sizeof *s->chunks);
    return s->chunks ? WEFT_OK : weft_fail_memory(error, (size_t)s->n_chunks * sizeof *s->chunks);
}

void weft_snapshot_free(weft_snapshot *s)
{
    for (int i = 0; s->names && i < s->n; i++)
        free(s->names[i]);
    free(s->names);
    free(s->variables);
    free(s->parts);
    free(s->replicas);
    free(s->order);
    free((void *)s->left);
    free(s->chunks);
    free(s->seen);
    *s = (weft_snapshot){0};
}

/* ---- take ------------------------------------------------------------------------------------ */

/* x - x is 0 for every finite x, and NaN else. One loop without a way out, so that it is
 * vectorised. */
#define FIND_NONFINITE(name, type)                                                                 \
    static int64_t name(const void *data, int64_t count)                                           \
    {                                                                                              \
        const type *x = data;                                                                      \
        int n_bad = 0;                                                                             \
        for (int64_t i = 0; i < count; i++)                                                        \
            n_bad |= !(x[i] - x[i] == 0);                                                          \
        for (int64_t i = 0; n_bad && i < count; i++)                                               \
            if (!(x[i] - x[i] == 0)) return i;                                                     \
        return -1;                                                                                 \
    }
FIND_NONFINITE(find_nonfinite_f32, float)
FIND_NONFINITE(find_nonfinite_f64, double)

/* Of 16 bits: all bits of the exponent are set. */
#define FIND_NONFINITE_HALF(name, exponent)                                                        \
    static int64_t name(const void *data, int64_t count)                                           \
    {                                                                                              \
        const uint16_t *x = data;                                                                  \
        for (int64_t i = 0; i < count; i++)                                                        \
            if ((x[i] & (exponent)) == (exponent)) return i;                                       \
        return -1;                                                                                 \
    }
FIND_NONFINITE_HALF(find_nonfinite_bf16, 0x7F80)
FIND_NONFINITE_HALF(find_nonfinite_f16, 0x7C00)

static int64_t (*const find_nonfinite[WEFT_DTYPES])(const void *, int64_t) = {
    [WEFT_F32] = find_nonfinite_f32, /* integers always are finite */
    [WEFT_F64] = find_nonfinite_f64,
    [WEFT_BF16] = find_nonfinite_bf16,
    [WEFT_F16] = find_nonfinite_f16};

static weft_status fail_nonfinite(weft_value variable, const weft_box *box, int64_t at, int rank,
                                  weft_error *error)
{
    const weft_shape *shape = weft_shape_of(variable);
    weft_shape place = *shape; /* printed as a shape: "[pixel:3, hidden:7]" */
    char text[200];
    for (int d = shape->n_dims - 1; d >= 0; d--) {
        const int64_t size = box->end[d] - box->begin[d];
        place.dims[d].size = box->begin[d] + at % size;
        at /= size;
    }
    weft_shape_print(&place, text, sizeof text);
    return weft_fail(
        error, WEFT_NONFINITE,
        "%.100s holds a NaN or an infinity at %s, on rank %d, so nothing was saved; go "
        "back to the last checkpoint with a smaller rate, or allow such saves",
        weft_name_of(variable), text, rank);
}

/* Number k of the parts as they are taken. */
static int part_taken(const weft_snapshot *s, int k)
{
    return s->order[k / s->n_local] * s->n_local + k % s->n_local;
}

/* The part that a chunk is of: the last that begins no later. A part without memory begins where
 * the next one does. */
static int find_part(const weft_snapshot *s, int64_t chunk)
{
    int low = 0, high = s->n * s->n_local;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (s->parts[part_taken(s, middle)].chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return part_taken(s, low);
}

/* bytes: [begin, end) of the box. */
static weft_status check_finite(const weft_snapshot *s, int number, const char *bytes,
                                int64_t begin, int64_t end, weft_error *error)
{
    const weft_value variable = s->variables[number / s->n_local];
    const weft_dtype dtype = weft_dtype_of(variable);
    const int64_t element = (int64_t)weft_dtype_bytes(dtype);
    const int rank = weft_mesh_first_local(s->mesh) + number % s->n_local;
    if (s->allow_nonfinite || !find_nonfinite[dtype]) return WEFT_OK;
    const int64_t at = find_nonfinite[dtype](bytes, (end - begin) / element);
    if (at < 0) return WEFT_OK;
    weft_box box;
    weft_box_of(s->program, variable, rank, &box);
    return fail_nonfinite(variable, &box, begin / element + at, rank, error);
}

/* What of bytes [first, last) of a box, which are at `chunk`, is written. */
static weft_status take_written(const weft_snapshot *s, int number, const char *chunk,
                                int64_t first, int64_t last, weft_error *error)
{
    const weft_snapshot_part *part = &s->parts[number];
    const int64_t begin = first > part->begin ? first : part->begin,
                  end = last < part->end ? last : part->end;
    if (begin >= end) return WEFT_OK;
    const char *bytes = chunk + (begin - first);
    if (s->staging)
        memcpy(s->staging + part->at + (begin - part->begin), bytes, (size_t)(end - begin));
    return check_finite(s, number, bytes, begin, end, error);
}

/* Bytes [begin, end) of a box, where the host can read them. */
static weft_status see_chunk(const weft_snapshot *s, int number, int64_t begin, int64_t end,
                             void *scratch, const char **bytes, weft_error *error)
{
    const int rank = weft_mesh_first_local(s->mesh) + number % s->n_local;
    *bytes = s->is_open ? s->parts[number].memory + begin : scratch;
    if (s->is_open) return WEFT_OK;
    return weft_part_get(s->program, s->variables[number / s->n_local], rank, begin, scratch,
                         end - begin, error);
}

static weft_status take_chunk(void *argument, int64_t chunk, void *scratch, weft_error *error)
{
    weft_snapshot *s = argument;
    const int number = find_part(s, chunk);
    const weft_snapshot_part *part = &s->parts[number];
    const int64_t begin = (chunk - part->chunk) * CHUNK_BYTES,
                  end = part->bytes - begin < CHUNK_BYTES ? part->bytes : begin + CHUNK_BYTES;
    const char *bytes;
    WEFT_TRY(see_chunk(s, number, begin, end, scratch, &bytes, error));
    if (replica_of(s, number / s->n_local, number % s->n_local)->is_shared)
        s->chunks[chunk] = weft_hash_of(bytes, (size_t)(end - begin));
    WEFT_TRY(take_written(s, number, bytes, begin, end, error));
    if (weft_sync_sub(&s->left[number / s->n_local], 1) == 1 && s->tell) s->tell(s->told);
    return WEFT_OK;
}

bool weft_snapshot_has_taken(const weft_snapshot *s, const void *memory)
{
    for (int k = 0; memory && k < s->n * s->n_local; k++)
        if (s->parts[k].memory == memory) return weft_sync_load(&s->left[k / s->n_local]) == 0;
    return false;
}

weft_status weft_snapshot_take(weft_snapshot *s, int n_threads, weft_error *error)
{
    const size_t scratch = s->is_open ? 0 : CHUNK_BYTES;
    WEFT_TRY(weft_work(n_threads, s->n_chunks, scratch, take_chunk, s, error));
    for (int i = 0; i < s->n; i++) {
        for (int local = 0; local < s->n_local; local++) {
            weft_replica *replica = replica_of(s, i, local);
            const weft_snapshot_part *part = part_of(s, i, local);
            if (replica->is_shared && part->bytes > 0)
                replica->hash = weft_hash_of(&s->chunks[part->chunk],
                                             (size_t)n_chunks(part->bytes) * sizeof *s->chunks);
        }
    }
    return WEFT_OK;
}

/* ---- compare --------------------------------------------------------------------------------- */

/* The ranks that hold the box of `owner`, split by whether their bytes are `hash`. */
typedef struct votes {
    int n_same, n_other, first_other;
    char same[100], other[100]; /* "0, 1, 5" */
} votes;

static void add_rank(char *text, size_t room, int rank)
{
    const size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%d", used ? ", " : "", rank);
}

static void count_votes(const weft_replica *all, int n_ranks, int n, int i, int owner, votes *v)
{
    const weft_hash *hash = &all[(size_t)owner * (size_t)n + (size_t)i].hash;
    *v = (votes){.first_other = -1};
    for (int r = 0; r < n_ranks; r++) {
        const weft_replica *replica = &all[(size_t)r * (size_t)n + (size_t)i];
        if (replica->owner != owner) continue;
        if (weft_hash_equal(&replica->hash, hash)) {
            v->n_same++;
            add_rank(v->same, sizeof v->same, r);
        } else {
            if (v->n_other++ == 0) v->first_other = r;
            add_rank(v->other, sizeof v->other, r);
        }
    }
}

/* With three or more the fewer are the odd ones; of two, nobody can say which. */
static weft_status fail_replicas(const char *name, int owner, const votes *v, weft_error *error)
{
    const bool is_owner_odd = v->n_same < v->n_other;
    const char *odd = is_owner_odd ? v->same : v->other, *even = is_owner_odd ? v->other : v->same;
    const weft_status status =
        v->n_same == v->n_other
            ? weft_fail(error, WEFT_CORRUPT,
                        "%.100s is held by ranks %s and ranks %s, and their bytes differ: a memory "
                        "or a link has failed; restart from the last checkpoint",
                        name, even, odd)
            : weft_fail(error, WEFT_CORRUPT,
                        "rank %s holds other bytes of %.100s than ranks %s do: a memory or a link "
                        "has failed; restart from the last checkpoint without that machine",
                        odd, name, even);
    if (error && error->status == status) error->rank = is_owner_odd ? owner : v->first_other;
    return status;
}

static weft_status compare(const weft_snapshot *s, const weft_replica *all, int n_ranks,
                           weft_error *error)
{
    for (int i = 0; i < s->n; i++) {
        for (int r = 0; r < n_ranks; r++) {
            const weft_replica *replica = &all[(size_t)r * (size_t)s->n + (size_t)i];
            const int owner = replica->owner;
            if (!replica->is_shared ||
                weft_hash_equal(&replica->hash,
                                &all[(size_t)owner * (size_t)s->n + (size_t)i].hash))
                continue;
            votes v;
            count_votes(all, n_ranks, s->n, i, owner, &v);
            return fail_replicas(s->names[i], owner, &v, error);
        }
    }
    return WEFT_OK;
}

weft_status weft_snapshot_compare(const weft_snapshot *s, const weft_peers *peers,
                                  weft_error *error)
{
    const int n_ranks = weft_mesh_n_ranks(s->mesh);
    if (peers->n == 1) return compare(s, s->replicas, n_ranks, error);
    const size_t bytes = (size_t)s->n * sizeof *s->replicas;
    weft_replica *all = malloc((size_t)n_ranks * bytes + 1);
    weft_status status = weft_peers_gather(peers, s->replicas, (int64_t)bytes, all, error);
    if (status == WEFT_OK) status = compare(s, all, n_ranks, error);
    free(all);
    return status;
}

/* ---- weft_check_replicas --------------------------------------------------------------------- */

weft_status weft_check_replicas(weft_program *program, weft_error *error)
{
    weft_error own = {.rank = -1};
    weft_snapshot snapshot;
    weft_peers peers = {.n = 1};
    WEFT_GIVEN(program, error);
    weft_snapshot_plan(program, &snapshot, &own);
    if (weft_world_agree(&own) == WEFT_OK)
        weft_peers_open(weft_program_mesh(program), &peers, &own);
    snapshot.allow_nonfinite = true; /* a NaN that all have is no replica that differs */
    if (own.status == WEFT_OK)
        weft_snapshot_take(&snapshot, weft_work_threads(weft_program_mesh(program)), &own);
    if (own.status == WEFT_OK) weft_snapshot_compare(&snapshot, &peers, &own);
    weft_peers_close(&peers);
    weft_snapshot_free(&snapshot);
    if (error && own.status != WEFT_OK) *error = own;
    return own.status;
}
