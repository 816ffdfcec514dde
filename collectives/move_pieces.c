/* move_pieces: which boxes a rank sends to each other and gets, and where they lie while they travel.
 *
 * weft_move_sends says which box each rank of the group gives each other, or boxes of their own do; pieces are packed (unless they are
 * contiguous where they lie), exchanged, and copied or combined into place. A destination gets one summand of every
 * element from each coordinate of the partial axes. For one element the senders differ in those coordinates only. So
 * in the group's order coordinate 0 comes first: it is copied, the others are combined, and the order of addition is
 * the same everywhere.
 *
 * Several tensors are packed, and what one rank has for another is one message: tensor after tensor. From memory that
 * the host does not read all is packed, into staging, and out of it, unless devices exchange among themselves.
 */
#include "move.h"

#include <stdlib.h>

typedef struct planner {
    const weft_mesh *mesh;
    const weft_shape *shape;
    const weft_convert_step *step;
    const weft_move_boxes *boxes; /* in place of the step and its specs; NULL: there are none */
    weft_box from, to;            /* of this rank */
    uint32_t ending;              /* axes over which the value is partial before, not after */
    int64_t covered;              /* elements of `to` that pieces bring, once for each summand */
} planner;

static int64_t piece_count(const planner *p, int source, int destination, weft_box *box)
{
    if (p->boxes != NULL)
        return weft_box_meet(&p->boxes->from[source], &p->boxes->to[destination], p->shape->n_dims,
                             box);
    const bool sends = weft_move_sends(p->mesh, p->shape, p->step, source, destination, box);
    return sends ? weft_box_count(box, p->shape->n_dims) : 0;
}

/* The own pieces are no message, unless the engine gathers. */
static void list_outgoing(weft_move *move, const planner *planners, const int *ranks)
{
    const int64_t element = (int64_t)weft_dtype_bytes(move->dtype);
    move->gathers = move->kind == WEFT_ALL_GATHER && move->n_ranks > 1 && move->n_parts == 1 &&
                    !move->is_staged;
    move->packs = move->n_parts > 1 || move->is_staged;
    for (int i = 0; i < move->n_ranks; i++)
        for (int k = 0; k < move->n_parts; k++) {
            const planner *p = &planners[k];
            weft_box box;
            const int64_t count = piece_count(p, move->rank, ranks[i], &box);
            if (count != move->parts[k].count) move->gathers = false;
            if (count == 0 || i == move->self) continue;
            weft_move_piece *out = &move->out[move->n_out++];
            out->part = k;
            out->peer = i;
            weft_box_copy_make(&out->run, p->shape->n_dims, &box, &p->from, &box);
            move->send_bytes[i] += count * element;
            if (out->run.n_loops > 0) move->packs = true;
        }
}

/* A summand is the first of its elements when its sender has coordinate 0 on all axes that end. */
static bool is_first(const planner *p, int source)
{
    int at[WEFT_MAX_AXES];
    weft_mesh_coordinates(p->mesh, source, at);
    for (int a = 0; a < weft_mesh_n_axes(p->mesh); a++)
        if (p->ending >> a & 1 && at[a] != 0) return false;
    return true;
}

static void list_incoming(weft_move *move, planner *planners, const int *ranks)
{
    const int64_t element = (int64_t)weft_dtype_bytes(move->dtype);
    move->unpacks = move->n_parts > 1 || move->is_staged;
    for (int i = 0; i < move->n_ranks; i++)
        for (int k = 0; k < move->n_parts; k++) {
            planner *p = &planners[k];
            weft_box box;
            const int64_t count = piece_count(p, ranks[i], move->rank, &box);
            if (count == 0) continue;
            const bool comes_packed = i != move->self || move->gathers;
            weft_move_piece *in = &move->in[move->n_in++];
            in->part = k;
            in->peer = i;
            in->is_first = is_first(p, ranks[i]);
            if (in->is_first) p->covered += count;
            weft_box_copy_make(&in->run, p->shape->n_dims, &box, comes_packed ? &box : &p->from,
                               &p->to);
            if (!comes_packed) continue;
            move->recv_bytes[i] += count * element;
            if (in->run.n_loops > 0 || move->combine != WEFT_NOT_PARTIAL) move->unpacks = true;
        }
}

static int64_t piece_bytes(const weft_move *move, const weft_move_piece *piece)
{
    int64_t count = piece->run.run;
    for (int l = 0; l < piece->run.n_loops; l++)
        count *= piece->run.count[l];
    return count * (int64_t)weft_dtype_bytes(move->dtype);
}

/* Pieces lie in the scratch, those of one rank side by side and `bytes` of them together; or, where there is one tensor
 * and they are contiguous in its box, right there. */
static void place_pieces(weft_move *move, weft_move_piece *pieces, int n, const int64_t *bytes,
                         int64_t *at, bool is_packed)
{
    int64_t next = 0;
    for (int i = 0; i < n; i++) {
        weft_move_piece *piece = &pieces[i];
        const bool begins = i == 0 || pieces[i - 1].peer != piece->peer;
        if (begins) next = is_packed ? weft_move_take(move, bytes[piece->peer]) : piece->at;
        if (begins) at[piece->peer] = next;
        piece->at = next;
        next += piece_bytes(move, piece);
    }
}

static void place_all(weft_move *move)
{
    const int64_t element = (int64_t)weft_dtype_bytes(move->dtype);
    for (int i = 0; i < move->n_out; i++)
        move->out[i].at = move->out[i].run.from_at * element;
    for (int i = 0; i < move->n_in; i++)
        move->in[i].at = move->in[i].run.to_at * element;
    if (!move->gathers)
        place_pieces(move, move->out, move->n_out, move->send_bytes, move->send_at, move->packs);
    place_pieces(move, move->in, move->n_in, move->recv_bytes, move->recv_at, move->unpacks);
}

static weft_status take_lists(weft_move *move, weft_error *error)
{
    const size_t n = (size_t)move->n_ranks, n_pieces = n * (size_t)move->n_parts;
    move->out = calloc(2 * n_pieces, sizeof *move->out);
    move->numbers = calloc(4 * n, sizeof *move->numbers);
    if (move->out == NULL || move->numbers == NULL)
        return weft_fail_memory(error, 2 * n_pieces * sizeof *move->out);
    move->in = move->out + n_pieces;
    move->send_bytes = move->numbers;
    move->send_at = move->send_bytes + n;
    move->recv_bytes = move->send_at + n;
    move->recv_at = move->recv_bytes + n;
    return WEFT_OK;
}

static void list_all(weft_move *move, planner *planners, const int *ranks)
{
    list_outgoing(move, planners, ranks);
    list_incoming(move, planners, ranks);
    place_all(move);
}

static void begin_plan(const weft_move *move, const weft_mesh *mesh, const weft_move_part *part,
                       planner *p)
{
    const weft_convert_step *step = &part->step;
    *p = (planner){.mesh = mesh,
                   .shape = part->shape,
                   .step = step,
                   .ending = step->axes & step->from.partial & ~(uint32_t)step->to.partial};
    weft_spec_box(&step->from, mesh, part->shape, move->rank, &p->from);
    weft_spec_box(&step->to, mesh, part->shape, move->rank, &p->to);
}

weft_status weft_pieces_prepare(weft_move *move, const weft_mesh *mesh, const weft_move_part *parts,
                                weft_error *error)
{
    const size_t n_parts = (size_t)move->n_parts;
    int *ranks = malloc((size_t)move->n_ranks * sizeof *ranks);
    planner *planners = malloc(n_parts * sizeof *planners);
    weft_status status = take_lists(move, error);
    if (status == WEFT_OK && (ranks == NULL || planners == NULL))
        status = weft_fail_memory(error, n_parts * sizeof *planners);
    if (status == WEFT_OK) {
        for (size_t k = 0; k < n_parts; k++)
            begin_plan(move, mesh, &parts[k], &planners[k]);
        weft_mesh_group(mesh, parts[0].step.axes, move->rank, ranks, NULL);
        list_all(move, planners, ranks);
    }
    for (size_t k = 0; k < n_parts && status == WEFT_OK; k++)
        if (planners[k].covered == move->parts[k].to_count) /* nothing is left to fill */
            move->parts[k].begins = WEFT_NOT_PARTIAL;
    free(planners);
    free(ranks);
    return status;
}

/* Pieces are as many elements as the rank gets, and no two have one in common: each is there once. */
static bool comes_once(const weft_move *move, const planner *p)
{
    const weft_box *from = p->boxes->from;
    const int n_dims = p->shape->n_dims;
    weft_box common, got;
    for (int i = 0; i < move->n_in; i++)
        for (int k = 0; k < i; k++) {
            const weft_box *a = &from[move->in[i].peer], *b = &from[move->in[k].peer];
            if (weft_box_meet(a, b, n_dims, &common) > 0 &&
                weft_box_meet(&common, &p->to, n_dims, &got) > 0)
                return false;
        }
    return p->covered == move->parts[0].to_count;
}

weft_status weft_pieces_of_boxes(weft_move *move, const weft_mesh *mesh,
                                 const weft_move_boxes *boxes, weft_error *error)
{
    planner p = {.mesh = mesh,
                 .shape = boxes->shape,
                 .boxes = boxes,
                 .from = boxes->from[move->rank],
                 .to = boxes->to[move->rank]};
    int *ranks = malloc((size_t)move->n_ranks * sizeof *ranks);
    if (ranks == NULL) return weft_fail_memory(error, (size_t)move->n_ranks * sizeof *ranks);
    weft_status status = take_lists(move, error);
    for (int r = 0; r < move->n_ranks; r++)
        ranks[r] = r;
    if (status == WEFT_OK) list_all(move, &p, ranks);
    free(ranks);
    if (status != WEFT_OK || comes_once(move, &p)) return status;
    return weft_fail(error, WEFT_USAGE,
                     "weft_move_create_boxes: of what rank %d gets some elements are in no box of "
                     "`from`, or in those of two ranks; let each be in one",
                     move->rank);
}

/* The own piece is the box before, in a box of its own whether it is packed or not. */
weft_status weft_move_bring(const weft_move *move, const weft_move_memory *memory,
                            weft_error *error)
{
    WEFT_GIVEN(move, error);
    WEFT_GIVEN(memory, error);
    if (move->kind != WEFT_ALL_GATHER)
        return weft_fail(error, WEFT_USAGE,
                         "weft_move_bring: %s does more than to put each rank's part in its place; "
                         "only an all_gather can be carried out so. Start a flight of it",
                         weft_convert_name(move->kind));
    const weft_device *device = move->device;
    for (int i = 0; i < move->n_in; i++) {
        const weft_move_piece *in = &move->in[i];
        const void *from = memory[in->part].from;
        void *to = memory[in->part].to;
        if (in->peer != move->self) continue;
        WEFT_GIVEN(from, error);
        WEFT_GIVEN(to, error);
        device->copy_box(move->stream, WEFT_COMPUTE, to, from, &in->run,
                         weft_dtype_bytes(move->dtype));
    }
    device->wait(move->stream, device->record(move->stream, WEFT_COMPUTE));
    return WEFT_OK;
}
