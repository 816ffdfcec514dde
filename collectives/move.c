/* move: a conversion step made ready for one rank, of one tensor or of several that move in one exchange.
 *
 * A move is what can be known before it runs, and never changes; a flight (flight.c) is one run of it at a time. All
 * kinds but all_reduce are one algorithm: pieces travel (move_pieces.c).
 */
#include "move.h"

#include <stdlib.h>

_Static_assert(1 << WEFT_MAX_AXES <= WEFT_QUEUES, "each set of axes has a queue");

static const weft_move_way *const ways[WEFT_CONVERTS] = {
    [WEFT_SLICE] = &weft_move_exchanges, /* with itself only */
    [WEFT_ALL_REDUCE] = &weft_move_reduces,
    [WEFT_REDUCE_SCATTER] = &weft_move_exchanges,
    [WEFT_ALL_GATHER] = &weft_move_exchanges,
    [WEFT_ALL_TO_ALL] = &weft_move_exchanges,
    [WEFT_MOVE] = &weft_move_exchanges,
    [WEFT_COUNT_ONCE] = &weft_move_exchanges, /* with itself only */
    [WEFT_BORDER] = &weft_move_exchanges,
};

int64_t weft_move_take(weft_move *move, int64_t bytes)
{
    const int64_t at = move->scratch_bytes;
    move->scratch_bytes += weft_aligned(bytes);
    return at;
}

/* ---- what is asked for ------------------------------------------------------------------------- */

/* Whether an element could come twice: along one of the step's axes a window of `from` shows it to several ranks. */
static bool comes_twice(const weft_convert_step *step, int n_dims)
{
    for (int d = 0; d < n_dims; d++)
        for (int i = 0; i < step->from.n_split[d] && step->from.window[d].lead != 0; i++)
            if (step->axes >> step->from.split[d][i] & 1) return true;
    return false;
}

static weft_status check_sizes(const weft_shape *shape, weft_error *error)
{
    for (int d = 0; d < shape->n_dims; d++) /* 0: a tensor of which nobody has anything */
        WEFT_GIVEN_RANGE(shape->dims[d].size, 0, (int64_t)1 << 40, error);
    WEFT_GIVEN_RANGE(weft_shape_count(shape), 0, (int64_t)1 << 50, error);
    return WEFT_OK;
}

static weft_status check_part(const weft_mesh *mesh, const weft_move_part *part, weft_error *error)
{
    const weft_shape *shape = part->shape;
    const weft_convert_step *step = &part->step;
    WEFT_GIVEN(shape, error);
    WEFT_GIVEN_ENUM(step->kind, WEFT_CONVERTS, error);
    if (!weft_spec_is_valid(&step->from, mesh, shape) ||
        !weft_spec_is_valid(&step->to, mesh, shape))
        return weft_fail(error, WEFT_USAGE,
                         "weft_move_create: step->from or step->to is no spec of a tensor of %d "
                         "dims on mesh %.200s; take steps from weft_convert_plan",
                         shape->n_dims, weft_mesh_text(mesh));
    if (comes_twice(step, shape->n_dims))
        return weft_fail(error, WEFT_USAGE,
                         "weft_move_create: step->from is split through a window over one of the "
                         "step's axes, so several ranks have an element and which is asked is not "
                         "said; move the tensor without a window, as weft_convert_plan does");
    return check_sizes(shape, error);
}

/* How the partial results that end in a step are combined. */
static weft_combine combine_of(const weft_convert_step *step)
{
    const bool ends = step->axes & step->from.partial & ~(uint32_t)step->to.partial;
    return ends ? (weft_combine)step->from.combine : WEFT_NOT_PARTIAL;
}

static weft_status check_joined(const weft_convert_step *first, const weft_convert_step *step,
                                weft_error *error)
{
    if (first->kind == step->kind && first->axes == step->axes &&
        combine_of(first) == combine_of(step))
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_move_create_joined: %s over axes %#x cannot be one exchange with %s "
                     "over axes %#x; join steps of one kind, of the same axes, whose partial "
                     "results end by the same combine",
                     weft_convert_name(step->kind), (unsigned)step->axes,
                     weft_convert_name(first->kind), (unsigned)first->axes);
}

/* ---- making it --------------------------------------------------------------------------------- */

static weft_status measure_part(weft_move *move, const weft_mesh *mesh, const weft_move_part *part,
                                weft_moved *moved, weft_error *error)
{
    const weft_convert_step *step = &part->step;
    weft_box box;
    weft_spec_box(&step->from, mesh, part->shape, move->rank, &box);
    moved->count = weft_box_count(&box, part->shape->n_dims);
    weft_spec_box(&step->to, mesh, part->shape, move->rank, &box);
    moved->to_count = weft_box_count(&box, part->shape->n_dims);
    move->total += weft_shape_count(part->shape);
    move->wire_bytes += weft_convert_bytes(mesh, part->shape, move->dtype, step, move->rank);
    if (!(step->to.partial & ~(uint32_t)step->from.partial)) return WEFT_OK;
    moved->begins = (weft_combine)step->to.combine;
    return weft_combine_check(moved->begins, move->dtype, error);
}

/* Those of one set of axes follow each other; what a rank has alone is as a kernel's work. */
static int queue_of(const weft_move *move, uint32_t axes)
{
    return move->n_ranks == 1 ? WEFT_COMPUTE : (int)axes;
}

static weft_status make(weft_move *move, const weft_mesh *mesh, const weft_move_part *parts,
                        weft_error *error)
{
    const weft_convert_step *first = &parts[0].step;
    const size_t bytes = (size_t)move->n_parts * sizeof *move->parts;
    move->parts = calloc(1, bytes);
    if (move->parts == NULL) return weft_fail_memory(error, bytes);
    move->way = ways[first->kind];
    move->kind = first->kind;
    move->combine = combine_of(first);
    move->n_ranks = weft_mesh_group(mesh, first->axes, move->rank, NULL, &move->self);
    move->device = weft_devices[weft_mesh_device(mesh)];
    move->stream = weft_mesh_stream((weft_mesh *)(uintptr_t)mesh, move->rank);
    move->queue = queue_of(move, first->axes);
    move->is_staged = !move->device->is_open && !weft_engine_puts(mesh);
    if (move->combine != WEFT_NOT_PARTIAL)
        WEFT_TRY(weft_combine_check(move->combine, move->dtype, error));
    move->rule = weft_combining_of(move->combine, move->dtype);
    for (int k = 0; k < move->n_parts; k++)
        WEFT_TRY(measure_part(move, mesh, &parts[k], &move->parts[k], error));
    return move->way->prepare(move, mesh, parts, error);
}

/* ---- by boxes ---------------------------------------------------------------------------------- */

static weft_status check_boxes(const weft_mesh *mesh, const weft_move_boxes *boxes,
                               weft_error *error)
{
    const weft_shape *shape = boxes->shape;
    WEFT_GIVEN(shape, error);
    WEFT_GIVEN_RANGE(shape->n_dims, 0, WEFT_MAX_DIMS, error);
    WEFT_TRY(check_sizes(shape, error));
    WEFT_GIVEN(boxes->from, error);
    WEFT_GIVEN(boxes->to, error);
    for (int r = 0; r < 2 * weft_mesh_n_ranks(mesh); r++) {
        const weft_box *box = r % 2 ? &boxes->to[r / 2] : &boxes->from[r / 2];
        for (int d = 0; d < shape->n_dims; d++)
            if (box->begin[d] < 0 || box->end[d] < box->begin[d] ||
                box->end[d] > shape->dims[d].size)
                return weft_fail(error, WEFT_USAGE,
                                 "weft_move_create_boxes: the box of rank %d in `%s` is %lld to "
                                 "%lld of dim %d, which has %lld; boxes lie within the shape",
                                 r / 2, r % 2 ? "to" : "from", (long long)box->begin[d],
                                 (long long)box->end[d], d, (long long)shape->dims[d].size);
    }
    return WEFT_OK;
}

/* The host's: no stream of a rank has to do with it. */
static weft_status make_of_boxes(weft_move *move, const weft_mesh *mesh,
                                 const weft_move_boxes *boxes, weft_error *error)
{
    const int n_dims = boxes->shape->n_dims;
    const uint32_t everybody = (1u << weft_mesh_n_axes(mesh)) - 1;
    move->parts = calloc(1, sizeof *move->parts);
    if (move->parts == NULL) return weft_fail_memory(error, sizeof *move->parts);
    move->way = &weft_move_exchanges;
    move->kind = WEFT_MOVE;
    move->rule = weft_combining_of(WEFT_NOT_PARTIAL, move->dtype);
    move->n_ranks = weft_mesh_group(mesh, everybody, move->rank, NULL, &move->self);
    move->device = weft_host_device();
    move->queue = WEFT_COMPUTE;
    move->total = weft_shape_count(boxes->shape);
    move->parts->count = weft_box_count(&boxes->from[move->rank], n_dims);
    move->parts->to_count = weft_box_count(&boxes->to[move->rank], n_dims);
    WEFT_TRY(weft_pieces_of_boxes(move, mesh, boxes, error));
    for (int r = 0; r < move->n_ranks; r++)
        move->wire_bytes += move->send_bytes[r];
    return WEFT_OK;
}

/* ---- public ------------------------------------------------------------------------------------ */

weft_status weft_move_create_boxes(const weft_mesh *mesh, const weft_move_boxes *boxes, int rank,
                                   weft_move **move, weft_error *error)
{
    WEFT_GIVEN(move, error);
    *move = NULL;
    WEFT_GIVEN(mesh, error);
    WEFT_GIVEN(boxes, error);
    WEFT_GIVEN_ENUM(boxes->dtype, WEFT_DTYPES, error);
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(mesh) - 1, error);
    WEFT_TRY(check_boxes(mesh, boxes, error));
    weft_move *m = *move = calloc(1, sizeof *m);
    if (m == NULL) return weft_fail_memory(error, sizeof *m);
    m->n_parts = 1;
    m->dtype = boxes->dtype;
    m->rank = rank;
    const weft_status status = make_of_boxes(m, mesh, boxes, error);
    if (status != WEFT_OK) weft_move_destroy(move);
    return status;
}

weft_status weft_move_create(const weft_mesh *mesh, const weft_shape *shape, weft_dtype dtype,
                             const weft_convert_step *step, int rank, weft_move **move,
                             weft_error *error)
{
    WEFT_GIVEN(move, error);
    *move = NULL;
    WEFT_GIVEN(shape, error);
    WEFT_GIVEN(step, error);
    const weft_move_part part = {shape, *step};
    return weft_move_create_joined(mesh, &part, 1, dtype, rank, move, error);
}

weft_status weft_move_create_joined(const weft_mesh *mesh, const weft_move_part *parts, int n_parts,
                                    weft_dtype dtype, int rank, weft_move **move, weft_error *error)
{
    WEFT_GIVEN(move, error);
    *move = NULL;
    WEFT_GIVEN(mesh, error);
    WEFT_GIVEN(parts, error);
    WEFT_GIVEN_RANGE(n_parts, 1, INT32_MAX, error);
    WEFT_GIVEN_ENUM(dtype, WEFT_DTYPES, error);
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(mesh) - 1, error);
    for (int k = 0; k < n_parts; k++) {
        WEFT_TRY(check_part(mesh, &parts[k], error));
        WEFT_TRY(check_joined(&parts[0].step, &parts[k].step, error));
    }
    weft_move *m = *move = calloc(1, sizeof *m);
    if (m == NULL) return weft_fail_memory(error, sizeof *m);
    m->n_parts = n_parts;
    m->dtype = dtype;
    m->rank = rank;
    const weft_status status = make(m, mesh, parts, error);
    if (status != WEFT_OK) weft_move_destroy(move);
    return status;
}

void weft_move_destroy(weft_move **move)
{
    weft_move *m = move != NULL ? *move : NULL;
    if (m == NULL || atomic_load(&m->n_flights) > 0) return;
    free(m->parts);
    free(m->out);
    free(m->numbers);
    free(m);
    *move = NULL;
}

int64_t weft_move_scratch(const weft_move *move)
{
    return move != NULL ? move->scratch_bytes : 0;
}

int64_t weft_move_wire_bytes(const weft_move *move)
{
    return move != NULL ? move->wire_bytes : 0;
}
