/* snapshot: a program's variables as they are now: copied, and checked while they are.
 *
 * Boxes of two ranks are equal or have nothing in common, so the lowest rank that has a box can
 * write it, and all that have it must hold the same bytes.
 */
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "weft/checkpoint.h"

/* ---- plan ------------------------------------------------------------------------------------ */

static void find_owner(const weft_snapshot *s, int i, int rank, weft_replica *replica)
{
    const weft_mesh *mesh = weft_program_mesh(s->program);
    const int n_dims = weft_shape_of(s->variables[i])->n_dims;
    weft_box own, other;
    *replica = (weft_replica){.owner = -1};
    weft_box_of(s->program, s->variables[i], rank, &own);
    for (int r = 0; r < weft_mesh_n_ranks(mesh); r++) {
        weft_box_of(s->program, s->variables[i], r, &other);
        if (!weft_box_equal(&own, &other, n_dims)) continue;
        if (replica->owner < 0) replica->owner = r;
        replica->is_shared |= r != rank;
        if (replica->is_shared) return;
    }
}

static void plan_piece(weft_snapshot *s, int i)
{
    const weft_mesh *mesh = weft_program_mesh(s->program);
    const weft_value variable = s->variables[i];
    const weft_shape *shape = weft_shape_of(variable);
    const int rank = weft_mesh_first_local(mesh);
    weft_part *piece = &s->pieces[i];
    *piece = (weft_part){.at = s->bytes, .box = weft_box_whole(shape)};
    if (weft_mesh_n_local(mesh) != weft_mesh_n_ranks(mesh)) {
        weft_replica replica;
        find_owner(s, i, rank, &replica);
        if (replica.owner != rank) return;
        weft_box_of(s->program, variable, rank, &piece->box);
    }
    piece->bytes = weft_box_count(&piece->box, shape->n_dims) *
                   (int64_t)weft_dtype_bytes(weft_dtype_of(variable));
    s->bytes += (piece->bytes + 63) / 64 * 64;
}

weft_status weft_snapshot_plan(weft_program *program, weft_snapshot *s, weft_error *error)
{
    const size_t n_local = (size_t)weft_mesh_n_local(weft_program_mesh(program));
    *s = (weft_snapshot){.program = program};
    if (n_local == 0)
        return weft_fail(error, WEFT_USAGE,
                         "the program was compiled on a plan without ranks, so it has no variables "
                         "to save or check; make the mesh with weft_mesh_create");
    while (weft_variable_at(program, s->n).id != 0)
        s->n++;
    const size_t n = (size_t)s->n;
    s->variables = calloc(n + 1, sizeof *s->variables);
    s->pieces = calloc(n + 1, sizeof *s->pieces);
    s->replicas = calloc(n_local * n + 1, sizeof *s->replicas);
    s->errors = calloc(n_local, sizeof *s->errors);
    if (!s->variables || !s->pieces || !s->replicas || !s->errors)
        return weft_fail_memory(error, n_local * n * sizeof *s->replicas);
    for (int i = 0; i < s->n; i++) {
        s->variables[i] = weft_variable_at(program, i);
        plan_piece(s, i);
    }
    return WEFT_OK;
}

void weft_snapshot_free(weft_snapshot *s)
{
    free(s->variables);
    free(s->pieces);
    free(s->replicas);
    free(s->errors);
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

static int64_t (*const find_nonfinite[WEFT_DTYPES])(const void *, int64_t) = {
    [WEFT_F32] = find_nonfinite_f32, [WEFT_F64] = find_nonfinite_f64}; /* integers always are */

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

static void copy_box(const weft_snapshot *s, int i, const char *memory, const weft_box *box)
{
    const weft_part *piece = &s->pieces[i];
    const int n_dims = weft_shape_of(s->variables[i])->n_dims;
    const size_t element = weft_dtype_bytes(weft_dtype_of(s->variables[i]));
    weft_box_runs runs = weft_box_runs_of(n_dims, &piece->box, box);
    const size_t bytes = (size_t)runs.count * element;
    for (int64_t at; weft_box_runs_next(&runs, &at); memory += bytes)
        memcpy(s->staging + piece->at + (size_t)at * element, memory, bytes);
}

static weft_status take_variable(const weft_snapshot *s, int i, int rank, weft_replica *replica,
                                 weft_error *error)
{
    weft_box box;
    const weft_value variable = s->variables[i];
    const weft_dtype dtype = weft_dtype_of(variable);
    find_owner(s, i, rank, replica);
    const char *memory = weft_local(s->program, variable, rank, &box);
    if (memory == NULL) return WEFT_OK;
    const int64_t count = weft_box_count(&box, weft_shape_of(variable)->n_dims);
    if (replica->is_shared)
        replica->hash = weft_hash_of(memory, (size_t)count * weft_dtype_bytes(dtype));
    if (s->staging == NULL || replica->owner != rank) return WEFT_OK;
    if (!s->allow_nonfinite && find_nonfinite[dtype]) {
        const int64_t at = find_nonfinite[dtype](memory, count);
        if (at >= 0) return fail_nonfinite(variable, &box, at, rank, error);
    }
    copy_box(s, i, memory, &box);
    return WEFT_OK;
}

static void take_rank(void *argument, int rank)
{
    weft_snapshot *s = argument;
    const int local = rank - weft_mesh_first_local(weft_program_mesh(s->program));
    for (int i = 0; i < s->n; i++)
        if (take_variable(s, i, rank, &s->replicas[(size_t)local * (size_t)s->n + (size_t)i],
                          &s->errors[local]) != WEFT_OK)
            break;
}

weft_status weft_snapshot_take(weft_snapshot *s, weft_error *error)
{
    weft_mesh *mesh = weft_program_mesh(s->program);
    weft_mesh_each(mesh, take_rank, s);
    for (int local = 0; local < weft_mesh_n_local(mesh); local++) {
        const weft_error *own = &s->errors[local];
        if (own->status != WEFT_OK) return weft_fail(error, own->status, "%s", own->message);
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
            return fail_replicas(weft_name_of(s->variables[i]), owner, &v, error);
        }
    }
    return WEFT_OK;
}

weft_status weft_snapshot_compare(const weft_snapshot *s, const weft_peers *peers,
                                  weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(s->program);
    const int n_ranks = weft_mesh_n_ranks(mesh);
    if (peers->n == 1) return compare(s, s->replicas, n_ranks, error);
    const size_t bytes = (size_t)s->n * sizeof *s->replicas;
    weft_replica *all = malloc((size_t)n_ranks * bytes + 1);
    if (all == NULL) return weft_fail_memory(error, (size_t)n_ranks * bytes);
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
    weft_snapshot_plan(program, &snapshot, &own);
    if (weft_world_agree(&own) == WEFT_OK)
        weft_peers_open(weft_program_mesh(program), &peers, &own);
    if (own.status == WEFT_OK) weft_snapshot_take(&snapshot, &own);
    if (own.status == WEFT_OK) weft_snapshot_compare(&snapshot, &peers, &own);
    weft_peers_close(&peers);
    weft_snapshot_free(&snapshot);
    if (error && own.status != WEFT_OK) *error = own;
    return own.status;
}
