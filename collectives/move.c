/* move: a conversion step, executed by one rank.
 *
 * A move is what can be known before it runs, and never changes; a flight is one run of it at a time. Flights of one move
 * and of several may be under way together, in any group, and are waited for in any order: a flight is a state machine
 * that whatever wait of its rank brings on (pending.h).
 *
 * All kinds but all_reduce are one algorithm: weft_move_sends says which box each rank of the group
 * gives each other; pieces are packed (unless they are contiguous where they lie), exchanged, and
 * copied or combined into place. A destination gets one summand of every element from each
 * coordinate of the partial axes; for one element the senders differ in those coordinates only, so
 * in the group's order coordinate 0 comes first: it is copied, the others are combined, and the
 * order of addition is the same everywhere.
 */
#include "box_run.h"
#include "reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 64 };

typedef struct piece {
    int peer; /* its place in the group                                                        */
    bool is_first; /* summand of its elements: copied, later ones are combined */
    int64_t at; /* of a packed piece: bytes into the scratch                                     */
    /* outgoing: box to packed; incoming: packed to box; own incoming: box to box */
    weft_box_run run;
} piece;

/* How a kind of step is carried out. */
typedef struct algorithm {
    weft_status (*prepare)(weft_move *move, const weft_mesh *mesh, const weft_shape *shape,
                           const weft_convert_step *step, weft_error *error);
    weft_status (*start)(weft_flight *flight, weft_error *error);
    /* As weft_pending's; not called where the rank is alone in its group. */
    bool (*poll)(weft_flight *flight, weft_error *error);
    void (*finish)(weft_flight *flight);
} algorithm;

struct weft_move {
    const algorithm *algorithm;
    weft_convert_kind kind;
    weft_dtype dtype;
    weft_combine combine; /* of the partial results that end here */
    weft_combine begins;  /* of those that begin: what no piece covers is its identity */
    int rank, n_ranks, self;
    int64_t count;    /* of the rank's box in `from` */
    int64_t to_count; /* and in `to` */
    int64_t total;    /* of the whole tensor         */
    int64_t scratch_bytes, wire_bytes;
    weft_reduce reduce; /* all_reduce */

    bool gathers; /* all get all of the box: the engine's all_gather, own part too */
    bool packs, unpacks;
    int n_out, n_in;
    piece *out, *in;                                      /* [n_ranks] each, in the group's order */
    int64_t *numbers;                                     /* that the following are parts of      */
    int64_t *send_bytes, *send_at, *recv_bytes, *recv_at; /* [n_ranks] */
    _Atomic int n_flights;                                /* that refer to it */
};

struct weft_flight {
    weft_pending pending; /* first */
    weft_move *move;
    weft_comm *comm;              /* NULL: the rank is alone */
    weft_comm_exchange *exchange; /* its own; NULL: the rank is alone */
    weft_reduction reduction;
    const char *from;
    char *to, *scratch;
    bool is_started;
    weft_call_mark mark;
    uint32_t spot; /* as recorded */
    uint64_t digest;
};

/* ---- all_reduce ------------------------------------------------------------------------------ */

static weft_status reduce_prepare(weft_move *move, const weft_mesh *mesh, const weft_shape *shape,
                                  const weft_convert_step *step, weft_error *error)
{
    (void)mesh, (void)shape, (void)step;
    if (move->combine == WEFT_NOT_PARTIAL)
        return weft_fail(error, WEFT_INTERNAL,
                         "an all_reduce step whose value is not partial over its axes; report this "
                         "program's plan");
    const size_t bytes = WEFT_REDUCE_NUMBERS * (size_t)move->n_ranks * sizeof *move->numbers;
    move->numbers = malloc(bytes);
    if (move->numbers == NULL) return weft_fail_memory(error, bytes);
    weft_reduce_make(&move->reduce, move->n_ranks, move->self, move->combine, move->dtype,
                     move->count, move->numbers);
    move->scratch_bytes = weft_reduce_bytes(move->n_ranks, move->combine, move->dtype, move->count);
    return WEFT_OK;
}

static weft_status reduce_start(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    const size_t bytes = (size_t)move->count * weft_dtype_bytes(move->dtype);
    if (move->n_ranks == 1 || bytes == 0) {
        if (bytes > 0) memcpy(flight->to, flight->from, bytes);
        return WEFT_OK;
    }
    flight->reduction = (weft_reduction){.reduce = &move->reduce,
                                         .comm = flight->comm,
                                         .exchange = flight->exchange,
                                         .fingerprint = flight->mark.fingerprint,
                                         .send = flight->from,
                                         .recv = flight->to,
                                         .scratch = flight->scratch};
    return weft_reduction_start(&flight->reduction, error);
}

static bool reduce_poll(weft_flight *flight, weft_error *error)
{
    return flight->move->count == 0 || weft_reduction_poll(&flight->reduction, error);
}

static void reduce_finish(weft_flight *flight)
{
    (void)flight;
}

static const algorithm reduce = {reduce_prepare, reduce_start, reduce_poll, reduce_finish};

/* ---- exchange: which pieces ------------------------------------------------------------------ */

typedef struct planner {
    const weft_mesh *mesh;
    const weft_shape *shape;
    const weft_convert_step *step;
    weft_box from, to; /* of this rank */
    uint32_t ending;   /* axes over which the value is partial before, not after */
    int64_t covered;   /* elements of `to` that pieces bring, once for each summand */
} planner;

/* The outgoing pieces. The own one is no message, unless the engine gathers. */
static void list_outgoing(weft_move *move, const planner *p, const int *ranks)
{
    const int64_t element = (int64_t)weft_dtype_bytes(move->dtype);
    move->gathers = p->step->kind == WEFT_ALL_GATHER && move->n_ranks > 1;
    for (int i = 0; i < move->n_ranks; i++) {
        weft_box box;
        const bool sends = weft_move_sends(p->mesh, p->shape, p->step, move->rank, ranks[i], &box);
        const int64_t count = sends ? weft_box_count(&box, p->shape->n_dims) : 0;
        if (count != move->count) move->gathers = false;
        if (!sends || i == move->self) continue;
        piece *out = &move->out[move->n_out++];
        out->peer = i;
        weft_box_run_make(&out->run, p->shape->n_dims, &box, &p->from, &box);
        move->send_bytes[i] = count * element;
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

static void list_incoming(weft_move *move, planner *p, const int *ranks)
{
    const int64_t element = (int64_t)weft_dtype_bytes(move->dtype);
    for (int i = 0; i < move->n_ranks; i++) {
        weft_box box;
        if (!weft_move_sends(p->mesh, p->shape, p->step, ranks[i], move->rank, &box)) continue;
        const bool comes_packed = i != move->self || move->gathers;
        piece *in = &move->in[move->n_in++];
        in->peer = i;
        in->is_first = is_first(p, ranks[i]);
        if (in->is_first) p->covered += weft_box_count(&box, p->shape->n_dims);
        weft_box_run_make(&in->run, p->shape->n_dims, &box, comes_packed ? &box : &p->from, &p->to);
        if (!comes_packed) continue;
        move->recv_bytes[i] = weft_box_count(&box, p->shape->n_dims) * element;
        if (in->run.n_loops > 0 || move->combine != WEFT_NOT_PARTIAL) move->unpacks = true;
    }
}

/* ---- exchange: where they lie ---------------------------------------------------------------- */

static int64_t take_scratch(weft_move *move, int64_t bytes)
{
    const int64_t at = move->scratch_bytes;
    move->scratch_bytes += (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    return at;
}

/* Places of parts: in the scratch when packed, else in the box itself. */
static void place_pieces(weft_move *move)
{
    const int64_t element = (int64_t)weft_dtype_bytes(move->dtype);
    for (int i = 0; i < move->n_out && !move->gathers; i++) {
        piece *out = &move->out[i];
        const int64_t bytes = move->send_bytes[out->peer];
        out->at = move->packs ? take_scratch(move, bytes) : out->run.from_at * element;
        move->send_at[out->peer] = out->at;
    }
    for (int i = 0; i < move->n_in; i++) {
        piece *in = &move->in[i];
        const int64_t bytes = move->recv_bytes[in->peer];
        in->at = move->unpacks ? take_scratch(move, bytes) : in->run.to_at * element;
        move->recv_at[in->peer] = in->at;
    }
}

static weft_status exchange_prepare(weft_move *move, const weft_mesh *mesh, const weft_shape *shape,
                                    const weft_convert_step *step, weft_error *error)
{
    const size_t n = (size_t)move->n_ranks;
    int *ranks = malloc(n * sizeof *ranks);
    move->out = calloc(2 * n, sizeof *move->out);
    move->numbers = calloc(4 * n, sizeof *move->numbers);
    if (ranks == NULL || move->out == NULL || move->numbers == NULL) {
        free(ranks);
        return weft_fail_memory(error, n * (2 * sizeof *move->out + 4 * sizeof *move->numbers));
    }
    move->in = move->out + n;
    move->send_bytes = move->numbers;
    move->send_at = move->send_bytes + n;
    move->recv_bytes = move->send_at + n;
    move->recv_at = move->recv_bytes + n;
    planner p = {.mesh = mesh,
                 .shape = shape,
                 .step = step,
                 .ending = step->axes & step->from.partial & ~(uint32_t)step->to.partial};
    weft_spec_box(&step->from, mesh, shape, move->rank, &p.from);
    weft_spec_box(&step->to, mesh, shape, move->rank, &p.to);
    weft_mesh_group(mesh, step->axes, move->rank, ranks, NULL);
    list_outgoing(move, &p, ranks);
    list_incoming(move, &p, ranks);
    if (p.covered == move->to_count) move->begins = WEFT_NOT_PARTIAL; /* nothing is left to fill */
    place_pieces(move);
    free(ranks);
    return WEFT_OK;
}

/* ---- exchange: running ----------------------------------------------------------------------- */

static void settle(const weft_flight *flight, const piece *in)
{
    const weft_move *move = flight->move;
    const bool is_own = in->peer == move->self && !move->gathers;
    const char *from = is_own ? flight->from : flight->scratch + in->at;
    if (in->is_first || move->combine == WEFT_NOT_PARTIAL)
        weft_box_run_copy(&in->run, flight->to, from, weft_dtype_bytes(move->dtype));
    else
        weft_box_run_combine(&in->run, flight->to, from, move->combine, move->dtype);
}

static weft_status exchange_begin(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    weft_comm_exchange *exchange = flight->exchange;
    char *recv = move->unpacks ? flight->scratch : flight->to;
    char *send = move->packs ? flight->scratch : (char *)(uintptr_t)flight->from;
    exchange->recv = (weft_parts){recv, move->recv_bytes, move->recv_at, 0};
    exchange->send = (weft_parts){send, move->send_bytes, move->send_at, 0};
    if (move->gathers)
        exchange->send = (weft_parts){(char *)(uintptr_t)flight->from, NULL, NULL,
                                      move->count * (int64_t)weft_dtype_bytes(move->dtype)};
    return weft_exchange_begin(exchange, flight->comm->next++, flight->mark.fingerprint, error);
}

/* While the others' pieces travel, the own one is copied, if no order has to be kept. */
static bool settles_early(const weft_move *move, const piece *in)
{
    return in->peer == move->self && !move->gathers && move->combine == WEFT_NOT_PARTIAL;
}

static weft_status exchange_start(weft_flight *flight, weft_error *error)
{
    const weft_move *move = flight->move;
    const size_t element = weft_dtype_bytes(move->dtype);
    if (move->begins != WEFT_NOT_PARTIAL)
        weft_combine_identity(move->begins, move->dtype, flight->to, move->to_count);
    for (int i = 0; i < move->n_out && move->packs; i++)
        weft_box_run_copy(&move->out[i].run, flight->scratch + move->out[i].at, flight->from,
                          element);
    if (move->n_ranks > 1) WEFT_TRY(exchange_begin(flight, error));
    for (int i = 0; i < move->n_in; i++)
        if (settles_early(move, &move->in[i])) settle(flight, &move->in[i]);
    return WEFT_OK;
}

static bool exchange_poll(weft_flight *flight, weft_error *error)
{
    weft_pending *pending = &flight->exchange->pending;
    if (!pending->poll(pending)) return false;
    weft_fail(error, pending->error.status, "%s", pending->error.message);
    return true;
}

static void exchange_finish(weft_flight *flight)
{
    const weft_move *move = flight->move;
    for (int i = 0; i < move->n_in; i++) {
        const piece *in = &move->in[i];
        const bool is_there = settles_early(move, in) ||
                              (in->peer != move->self && !move->unpacks) ||
                              (move->gathers && !move->unpacks);
        if (!is_there) settle(flight, in);
    }
}

static const algorithm exchange = {exchange_prepare, exchange_start, exchange_poll,
                                   exchange_finish};

static const algorithm *const algorithms[WEFT_CONVERTS] = {
    [WEFT_SLICE] = &exchange, /* with itself only */
    [WEFT_ALL_REDUCE] = &reduce,   [WEFT_REDUCE_SCATTER] = &exchange,
    [WEFT_ALL_GATHER] = &exchange, [WEFT_ALL_TO_ALL] = &exchange,
    [WEFT_MOVE] = &exchange,       [WEFT_COUNT_ONCE] = &exchange, /* with itself only */
};

/* ---- public ---------------------------------------------------------------------------------- */

weft_status weft_move_create(const weft_mesh *mesh, const weft_shape *shape, weft_dtype dtype,
                             const weft_convert_step *step, int rank, weft_move **move,
                             weft_error *error)
{
    WEFT_GIVEN(move, error);
    *move = NULL;
    WEFT_GIVEN(mesh, error);
    WEFT_GIVEN(shape, error);
    WEFT_GIVEN(step, error);
    WEFT_GIVEN_ENUM(dtype, WEFT_DTYPES, error);
    WEFT_GIVEN_ENUM(step->kind, WEFT_CONVERTS, error);
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(mesh) - 1, error);
    if (!weft_spec_is_valid(&step->from, mesh, shape) ||
        !weft_spec_is_valid(&step->to, mesh, shape))
        return weft_fail(error, WEFT_USAGE,
                         "weft_move_create: step->from or step->to is no spec of a tensor of %d "
                         "dims on mesh %.200s; take steps from weft_convert_plan",
                         shape->n_dims, weft_mesh_text(mesh));
    for (int d = 0; d < shape->n_dims; d++) /* 0: a tensor of which nobody has anything */
        WEFT_GIVEN_RANGE(shape->dims[d].size, 0, (int64_t)1 << 40, error);
    WEFT_GIVEN_RANGE(weft_shape_count(shape), 0, (int64_t)1 << 50, error);
    weft_move *m = *move = calloc(1, sizeof *m);
    if (m == NULL) return weft_fail_memory(error, sizeof *m);
    weft_box box;
    weft_spec_box(&step->from, mesh, shape, rank, &box);
    m->algorithm = algorithms[step->kind];
    m->kind = step->kind;
    m->dtype = dtype;
    m->rank = rank;
    m->count = weft_box_count(&box, shape->n_dims);
    weft_spec_box(&step->to, mesh, shape, rank, &box);
    m->to_count = weft_box_count(&box, shape->n_dims);
    m->total = weft_shape_count(shape);
    m->n_ranks = weft_mesh_group(mesh, step->axes, rank, NULL, &m->self);
    m->wire_bytes = weft_convert_bytes(mesh, shape, dtype, step, rank);
    weft_status status = WEFT_OK;
    if (step->axes & step->from.partial & ~(uint32_t)step->to.partial) {
        m->combine = (weft_combine)step->from.combine;
        status = weft_combine_check(m->combine, dtype, error);
    }
    if (step->to.partial & ~(uint32_t)step->from.partial) {
        m->begins = (weft_combine)step->to.combine;
        if (status == WEFT_OK) status = weft_combine_check(m->begins, dtype, error);
    }
    if (status == WEFT_OK) status = m->algorithm->prepare(m, mesh, shape, step, error);
    if (status != WEFT_OK) weft_move_destroy(move);
    return status;
}

void weft_move_destroy(weft_move **move)
{
    weft_move *m = move != NULL ? *move : NULL;
    if (m == NULL || atomic_load(&m->n_flights) > 0) return;
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

/* ---- flights --------------------------------------------------------------------------------- */

static bool poll_flight(weft_pending *it)
{
    weft_flight *flight = (weft_flight *)(void *)it;
    return flight->move->algorithm->poll(flight, &it->error);
}

weft_status weft_flight_create(weft_move *move, weft_comm *comm, weft_flight **flight,
                               weft_error *error)
{
    WEFT_GIVEN(flight, error);
    *flight = NULL;
    WEFT_GIVEN(move, error);
    const int n_ranks = comm != NULL ? comm->n_ranks : 1;
    if (n_ranks != move->n_ranks)
        return weft_fail(error, WEFT_USAGE,
                         "a move among %d ranks was given a group of %d; prepare the group of the "
                         "step's axes and pass it",
                         move->n_ranks, n_ranks);
    weft_flight *f = calloc(1, sizeof *f);
    if (f == NULL) return weft_fail_memory(error, sizeof *f);
    f->move = move;
    f->comm = comm;
    f->pending.poll = poll_flight;
    if (n_ranks > 1 && weft_exchange_take(comm, &f->exchange, error) != WEFT_OK) {
        free(f);
        return WEFT_MEMORY;
    }
    atomic_fetch_add(&move->n_flights, 1);
    *flight = f;
    return WEFT_OK;
}

void weft_flight_destroy(weft_flight **flight)
{
    weft_flight *f = flight != NULL ? *flight : NULL;
    if (f == NULL || f->is_started) return;
    if (f->exchange != NULL) weft_exchange_give(f->exchange);
    atomic_fetch_sub(&f->move->n_flights, 1);
    free(f);
    *flight = NULL;
}

void weft_flight_name(weft_flight *flight, uint64_t program, const char *what, const char *where)
{
    char text[WEFT_SPOT_BYTES];
    if (flight == NULL || what == NULL || where == NULL) return;
    if (flight->comm == NULL || flight->comm->recorder == NULL) return;
    snprintf(text, sizeof text, "%s%s", what, where);
    flight->digest = weft_digest(weft_digest(0, &program, sizeof program), what, strlen(what));
    flight->spot = weft_recorder_spot(flight->comm->recorder, flight->digest, text);
}

static weft_call_facts facts_of(const weft_flight *flight)
{
    const weft_move *move = flight->move;
    return (weft_call_facts){.kind = (uint8_t)move->kind,
                             .dtype = (uint8_t)move->dtype,
                             .combine = (uint8_t)move->combine,
                             .root = -1,
                             .count = move->total,
                             .spot = flight->spot,
                             .digest = flight->digest};
}

weft_status weft_flight_start(weft_flight *flight, const void *from, void *to, void *scratch,
                              weft_error *error)
{
    WEFT_GIVEN(flight, error);
    const weft_move *move = flight->move;
    if (flight->is_started)
        return weft_fail(error, WEFT_USAGE,
                         "weft_flight_start: this flight is under way already; finish it first, or "
                         "create another one of its move");
    if (move->count > 0) WEFT_GIVEN(from, error);
    if (move->to_count > 0) WEFT_GIVEN(to, error);
    if (move->scratch_bytes > 0) WEFT_GIVEN(scratch, error);
    flight->from = from;
    flight->to = to;
    flight->scratch = scratch;
    weft_error_clear(&flight->pending.error);
    const weft_call_facts facts = facts_of(flight);
    flight->mark = weft_comm_begin(flight->comm, &facts);
    const weft_status status = move->algorithm->start(flight, error);
    flight->is_started = status == WEFT_OK;
    if (status != WEFT_OK && flight->comm) weft_recorder_end(flight->comm->recorder, &flight->mark);
    if (flight->is_started && flight->exchange) /* there is something to wait for */
        weft_desk_begin(flight->comm->desk, &flight->pending);
    return status;
}

static weft_status wait_flight(weft_flight *flight, weft_error *error)
{
    weft_comm *comm = flight->comm;
    if (flight->exchange == NULL) return WEFT_OK;
    weft_recorder_wait(comm->recorder, &flight->mark);
    return weft_desk_wait(comm->desk, &flight->pending, error);
}

weft_status weft_flight_finish(weft_flight *flight, weft_error *error)
{
    WEFT_GIVEN(flight, error);
    if (!flight->is_started)
        return weft_fail(error, WEFT_USAGE,
                         "weft_flight_finish: this flight has not been started; weft_flight_start "
                         "it");
    flight->is_started = false;
    const weft_status status = wait_flight(flight, error);
    if (status == WEFT_OK) flight->move->algorithm->finish(flight);
    if (flight->comm) weft_recorder_end(flight->comm->recorder, &flight->mark);
    return status;
}
