/* scratch: the memory that a step needs while it runs, beside its operands and results.
 *
 * The scratch of a conversion is known once its move is made. A move lists the data between a rank and each other of
 * its group: on thousands of ranks that takes longer than all else. A kernel tells its scratch once it is found. Several passes ask, and the layers of a model
 * move alike. So it is kept, of a move by all that it depends on, of a kernel by its step: of rank 0, by which passes decide, as long as the plan;
 * of another rank while its memory is laid out.
 */
#include "plan.h"

#include <string.h>

enum { BUCKETS = 64 };

typedef struct known_move {
    struct known_move *next;
    uint64_t hash;
    int n_parts;
    const uint32_t *in, *out; /* [n_parts] placed tensors */
    weft_convert_kind kind;
    uint32_t axes;
    int64_t bytes;
} known_move;

/* Of a kernel step. Lists of a step that is made anew are others. */
typedef struct known_kernel {
    const uint32_t *in, *out; /* the step's lists; out NULL: none is known */
    int64_t bytes;
} known_kernel;

struct weft_known_moves {
    int rank;
    weft_arena *arena;
    known_move *buckets[BUCKETS];
    known_kernel *kernels; /* [n_kernels] by the first result */
    uint32_t n_kernels;
};

/* ---- what a move depends on --------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 0x9E3779B97F4A7C15u;
}

static uint64_t hash_of(const weft_plan *plan, const weft_step *step)
{
    uint64_t hash = mix(mix(step->convert.kind + 1, step->convert.axes), (uint64_t)step->n_in);
    for (int k = 0; k < step->n_in; k++) {
        const weft_type *type = &plan->placed[step->in[k]].type;
        hash = mix(hash, type->dtype);
        for (int d = 0; d < type->shape.n_dims; d++)
            hash = mix(hash, (uint64_t)type->shape.dims[d].size);
    }
    return hash ^ hash >> 32;
}

static bool same_part(const weft_plan *plan, uint32_t a, uint32_t b)
{
    const weft_placed *x = &plan->placed[a], *y = &plan->placed[b];
    const int n_dims = x->type.shape.n_dims;
    if (a == b) return true;
    if (x->type.dtype != y->type.dtype || y->type.shape.n_dims != n_dims) return false;
    for (int d = 0; d < n_dims; d++)
        if (x->type.shape.dims[d].size != y->type.shape.dims[d].size) return false;
    return weft_spec_equal(&x->spec, &y->spec, n_dims);
}

static bool same_move(const weft_plan *plan, const known_move *known, const weft_step *step)
{
    if (known->n_parts != step->n_in || known->kind != step->convert.kind ||
        known->axes != step->convert.axes)
        return false;
    for (int k = 0; k < step->n_in; k++)
        if (!same_part(plan, known->in[k], step->in[k]) ||
            !same_part(plan, known->out[k], step->out[k]))
            return false;
    return true;
}

static const known_move *find_move(const weft_known_moves *moves, const weft_plan *plan,
                                   const weft_step *step, uint64_t hash)
{
    for (const known_move *k = moves->buckets[hash % BUCKETS]; k; k = k->next)
        if (k->hash == hash && same_move(plan, k, step)) return k;
    return NULL;
}

/* ---- one step ----------------------------------------------------------------------------------- */

static weft_status kernel_scratch(const weft_plan *plan, const weft_step *step, int rank,
                                  int64_t *bytes, weft_error *error)
{
    weft_call call;
    weft_kernel_choice choice;
    weft_step_call(plan, step, rank, &call);
    WEFT_TRY(weft_step_kernel(plan, step, &call, &choice, error));
    return weft_kernel_scratch(plan->graph->nodes[step->node].op->name, choice.kernel, &call, bytes,
                               error);
}

static weft_status move_scratch(const weft_plan *plan, const weft_step *step, int rank,
                                int64_t *bytes, weft_error *error)
{
    weft_move *move = NULL;
    WEFT_TRY(weft_step_move(plan, step, rank, &move, error));
    *bytes = weft_move_scratch(move);
    weft_move_destroy(&move);
    return WEFT_OK;
}

weft_status weft_step_scratch(const weft_plan *plan, const weft_step *step, int rank,
                              int64_t *bytes, weft_error *error)
{
    *bytes = 0;
    if (step->kind == WEFT_STEP_KERNEL) return kernel_scratch(plan, step, rank, bytes, error);
    if (step->kind != WEFT_STEP_CONVERT) return WEFT_OK;
    const weft_known_moves *moves = plan->build.moves;
    const known_move *known =
        moves && moves->rank == rank ? find_move(moves, plan, step, hash_of(plan, step)) : NULL;
    if (known == NULL) return move_scratch(plan, step, rank, bytes, error);
    *bytes = known->bytes;
    return WEFT_OK;
}

/* ---- of many ------------------------------------------------------------------------------------ */

weft_status weft_known_moves_open(weft_arena *arena, int rank, weft_known_moves **moves,
                                  weft_error *error)
{
    weft_known_moves *m = *moves = weft_arena_take(arena, sizeof *m);
    if (m == NULL) return weft_fail_memory(error, sizeof *m);
    m->rank = rank;
    m->arena = arena;
    return WEFT_OK;
}

static weft_status make_room(weft_known_moves *moves, uint32_t n, weft_error *error)
{
    if (n <= moves->n_kernels) return WEFT_OK;
    known_kernel *kernels = weft_arena_take(moves->arena, n * sizeof *kernels);
    if (kernels == NULL) return weft_fail_memory(error, n * sizeof *kernels);
    if (moves->n_kernels > 0) memcpy(kernels, moves->kernels, moves->n_kernels * sizeof *kernels);
    moves->kernels = kernels;
    moves->n_kernels = n;
    return WEFT_OK;
}

static weft_status keep_kernel(weft_known_moves *moves, const weft_plan *plan,
                               const weft_step *step, int64_t *bytes, weft_error *error)
{
    if (step->n_out == 0) return kernel_scratch(plan, step, moves->rank, bytes, error);
    WEFT_TRY(make_room(moves, plan->n_placed, error));
    known_kernel *known = &moves->kernels[step->out[0]];
    if (known->out != step->out || known->in != step->in) {
        WEFT_TRY(kernel_scratch(plan, step, moves->rank, &known->bytes, error));
        known->in = step->in;
        known->out = step->out;
    }
    *bytes = known->bytes;
    return WEFT_OK;
}

weft_status weft_keep_scratch(weft_known_moves *moves, const weft_plan *plan, const weft_step *step,
                              int64_t *bytes, weft_error *error)
{
    *bytes = 0;
    if (step->kind == WEFT_STEP_KERNEL) return keep_kernel(moves, plan, step, bytes, error);
    if (step->kind != WEFT_STEP_CONVERT) return WEFT_OK;
    const uint64_t hash = hash_of(plan, step);
    const known_move *known = find_move(moves, plan, step, hash);
    if (known == NULL) {
        known_move *kept = weft_arena_take(moves->arena, sizeof *kept);
        if (kept == NULL) return weft_fail_memory(error, sizeof *kept);
        *kept = (known_move){.next = moves->buckets[hash % BUCKETS],
                             .hash = hash,
                             .n_parts = step->n_in,
                             .in = step->in,
                             .out = step->out,
                             .kind = step->convert.kind,
                             .axes = step->convert.axes};
        WEFT_TRY(move_scratch(plan, step, moves->rank, &kept->bytes, error));
        moves->buckets[hash % BUCKETS] = kept;
        known = kept;
    }
    *bytes = known->bytes;
    return WEFT_OK;
}
