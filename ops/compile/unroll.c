/* unroll: a scan of few trips becomes the nodes of its body as often as there are trips. Another stays, its body in
 * one place, and so does one with trips that depend on computed values (scan_guard).
 *
 * In an unrolled body a carried value is the value that the trip before made, an element seen of a tensor is a slice,
 * and a stack is put together after the last trip. A body's nodes need not be neighbours: gradients append to it.
 * They are all translated where the scan begins, since nothing in it reads what was made after that but itself.
 *
 * A scan that stays is a new one in the new graph, once for each trip of those around it that are written down. Its
 * nodes are neighbours there, behind its trip, which only says that it begins: the number of the trip is what a trip
 * sees of all numbers. A tensor seen element by element has that dim first, so that an element is one piece of
 * memory.
 */
#include "rewrite.h"

#include <string.h>

#include "weft/ops.h"

/* What is done in one place: the nodes of a body, a scan in it being its trip alone. */
typedef struct body {
    uint32_t n_nodes, *nodes;
} body;

typedef struct unrolling {
    weft_rewrite rewrite;
    body *bodies;  /* [n_scans] that of 0 is all that is in no scan */
    int64_t *trip; /* [n_scans] of those under way; -1: of no other */
    /* [n_tensors] of what is carried: what it is in the next trip, in the new graph */
    uint32_t *next;
    uint32_t **parts;  /* [n_nodes] of a stack: its values in all trips, in the new graph */
    bool *is_guarded;  /* [n_scans] of some trips it is not known whether they are made */
    bool *is_open;     /* [n_scans] it is kept, and its body is under way */
    uint32_t *kept;    /* [n_scans] which it is in the new graph; 0: it is written down */
    uint32_t *numbers; /* [n_scans] of one that is kept: the numbers of all trips */
    uint32_t *seen; /* [n_nodes] of what a trip sees of a tensor: that tensor, with the dim first */
} unrolling;

static weft_value made(const unrolling *u, uint32_t value)
{
    return (weft_value){u->rewrite.to, u->rewrite.value[value]};
}

static int64_t trip_of(const unrolling *u, const weft_scan_attributes *attributes)
{
    const int64_t trip = u->trip[attributes->scan];
    return attributes->is_reversed ? u->rewrite.from->scans[attributes->scan].trips - 1 - trip
                                   : trip;
}

/* ---- what belongs to a scan -------------------------------------------------------------------- */

static weft_value trip_number(unrolling *u, const weft_node *node)
{
    return weft_constant(u->rewrite.to, WEFT_I32, WEFT_SCALAR,
                         (double)trip_of(u, weft_scan_of(node)));
}

static weft_value each(unrolling *u, const weft_node *node)
{
    const weft_scan_attributes *attributes = weft_scan_of(node);
    const weft_dim dim = {attributes->dim.dim, attributes->dim.size};
    weft_dim one = weft_dim_beside(u->rewrite.to, dim);
    one.size = 1;
    const weft_value part = weft_slice(made(u, node->in[0]), dim, trip_of(u, attributes), one);
    return weft_reshape(part, weft_shape_without(weft_shape_of(part), one.name));
}

/* `n` of the values that are stacked, put together along a dim called `name`; those put together before have `inner`. */
static weft_value together(unrolling *u, const uint32_t *parts, int64_t n, const char *inner,
                           const char *name)
{
    if (n == 1) {
        const weft_value part = {u->rewrite.to, parts[0]};
        weft_shape shape = *weft_shape_of(part);
        memmove(shape.dims + 1, shape.dims, (size_t)shape.n_dims++ * sizeof shape.dims[0]);
        shape.dims[0] = (weft_dim){name, 1};
        return weft_reshape(part, shape);
    }
    const weft_value a = together(u, parts, n / 2, inner, inner);
    const weft_value b = together(u, parts + n / 2, n - n / 2, inner, inner);
    return weft_concat(a, b, (weft_dim){inner, n / 2}, (weft_dim){inner, n - n / 2},
                       (weft_dim){name, n});
}

static weft_value stack(unrolling *u, uint32_t id)
{
    const weft_scan_attributes *attributes = weft_scan_of(&u->rewrite.from->nodes[id]);
    const weft_dim dim = {attributes->dim.dim, attributes->dim.size};
    return together(u, u->parts[id], dim.size, weft_dim_beside(u->rewrite.to, dim).name, dim.name);
}

/* ---- what belongs to a scan that stays --------------------------------------------------------- */

static bool stays(const unrolling *u, uint32_t scan)
{
    return u->is_guarded[scan] ||
           u->rewrite.from->scans[scan].trips > u->rewrite.plan->build.unrolled;
}

/* The scan of the new graph that the node, an op of scans, belongs to; 0: it is another op, or of one that is written down. */
static uint32_t kept_of(const unrolling *u, const weft_node *node)
{
    return weft_is_of_scan(node->op) ? u->kept[weft_scan_of(node)->scan] : 0;
}

static weft_value number_in(unrolling *u, const weft_node *node, uint32_t kept)
{
    weft_graph *to = u->rewrite.to;
    const weft_value numbers = {to, u->numbers[weft_scan_of(node)->scan]};
    return weft_scan_each_of(numbers, kept, weft_shape_of(numbers)->dims[0],
                             weft_scan_of(node)->is_reversed);
}

static weft_value each_in(unrolling *u, const weft_node *node, uint32_t kept)
{
    const weft_value x = {u->rewrite.to, u->seen[node - u->rewrite.from->nodes]};
    return weft_scan_each_of(x, kept, weft_shape_of(x)->dims[0], weft_scan_of(node)->is_reversed);
}

static weft_value copy_in(unrolling *u, const weft_node *node, uint32_t kept)
{
    weft_graph *to = u->rewrite.to;
    uint32_t in[UINT8_MAX];
    weft_scan_attributes *attributes =
        weft_arena_copy(to->arena, node->attributes, node->attribute_bytes);
    if (attributes == NULL) {
        weft_fail_memory(&to->error, node->attribute_bytes);
        return weft_no_value(to);
    }
    attributes->scan = kept;
    for (int i = 0; i < node->n_in; i++)
        in[i] = u->rewrite.value[node->in[i]];
    weft_node own = *node;
    own.scan = to->scan;
    own.attributes = attributes;
    return (weft_value){to, weft_node_copy(to, u->rewrite.from, &own, in)};
}

static weft_value translate_in(unrolling *u, const weft_node *node, uint32_t kept)
{
    if (node->op == &weft_op_scan_trip) return number_in(u, node, kept);
    if (node->op == &weft_op_scan_each) return each_in(u, node, kept);
    return copy_in(u, node, kept);
}

/* ---- random numbers ------------------------------------------------------------------------------ */

/* Which trip of a scan is seen: one that is written down, or that of a scan that stays, which perhaps goes back through it. */
typedef struct seen_trip {
    int64_t trip;  /* -1: it is not known yet, or there is none */
    uint32_t kept; /* 0: none */
    bool is_reversed;
} seen_trip;

static seen_trip trip_seen(const unrolling *u, uint32_t scan)
{
    const weft_graph *from = u->rewrite.from;
    seen_trip seen = {-1, 0, false};
    if (u->trip[scan] >= 0) return (seen_trip){u->trip[scan], 0, false};
    if (u->is_open[scan]) return (seen_trip){-1, u->kept[scan], false};
    uint32_t m = scan;
    while (++m < from->n_scans && seen.trip < 0 && seen.kept == 0)
        if (from->scans[m].mirrors == scan || from->scans[m].repeats == scan)
            seen = trip_seen(u, m);
    if (from->scans[m - 1].mirrors != scan) return seen;
    if (seen.trip >= 0) seen.trip = from->scans[scan].trips - 1 - seen.trip;
    seen.is_reversed = !seen.is_reversed;
    return seen;
}

/* Random numbers of a trip are those of a stream of its own: in it are the marks of trips that are written down; those of others
 * come when it is run. */
static uint32_t stream_of_trip(const unrolling *u, uint32_t stream, weft_draw *draws,
                               uint32_t *n_draws)
{
    uint32_t level = 0, marked = stream;
    for (uint32_t s = weft_scan_of_stream(u->rewrite.from, stream); s != 0;
         s = u->rewrite.from->scans[s].parent, level++) {
        const bool is_over =
            u->rewrite.from->scans[s].over.dim != NULL; /* numbered as in the whole */
        const seen_trip seen = trip_seen(u, s);
        if (seen.trip >= 0 && !is_over) marked ^= weft_scan_mark(level, seen.trip);
        if (seen.kept != 0)
            draws[(*n_draws)++] = (weft_draw){seen.kept, level, seen.is_reversed, is_over};
    }
    return marked;
}

static uint32_t depth_of(const weft_graph *graph, uint32_t scan)
{
    uint32_t depth = 0;
    for (; scan != 0; scan = graph->scans[scan].parent)
        depth++;
    return depth;
}

/* Of values that have the dim which a scan goes over; from the first trip on, where it is not known yet which it is. */
static void number_as_whole(const unrolling *u, const weft_node *node,
                            weft_element_attributes *attributes)
{
    const weft_graph *from = u->rewrite.from;
    const uint32_t s = weft_scan_over(from, weft_scan_of_stream(from, attributes->random));
    const weft_shape *shape = &from->tensors[node->out].type.shape;
    if (s == 0) return;
    const int d = weft_shape_find(shape, from->scans[s].over.dim);
    if (d < 0 || shape->dims[d].size * from->scans[s].trips != from->scans[s].over.size) return;
    attributes->dim = from->scans[s].over.dim;
    attributes->every = from->scans[s].trips;
    const int64_t trip = trip_seen(u, s).trip;
    attributes->from = trip >= 0 ? trip : 0;
}

/* The stream of a node that draws in a body. false: no memory. */
static bool set_stream(const unrolling *u, weft_node *node)
{
    weft_arena *arena = u->rewrite.to->arena;
    const weft_element_attributes *element = node->attributes;
    const uint32_t scan = weft_scan_of_stream(u->rewrite.from, element->random);
    weft_element_attributes *taken =
        weft_arena_copy(arena, node->attributes, node->attribute_bytes);
    weft_draw *draws = weft_arena_take(arena, depth_of(u->rewrite.from, scan) * sizeof *draws);
    if (taken == NULL || draws == NULL) return false;
    number_as_whole(u, node, taken);
    taken->random = stream_of_trip(u, element->random, draws, &node->n_draws);
    node->attributes = taken;
    node->draws = draws;
    return true;
}

/* ---- one node ---------------------------------------------------------------------------------- */

/* A copy of a node that belongs to no scan: as it is, but for the stream of random numbers. */
static weft_value copy(unrolling *u, const weft_node *node)
{
    const weft_rewrite *rewrite = &u->rewrite;
    uint32_t in[UINT8_MAX];
    for (int i = 0; i < node->n_in; i++)
        in[i] = rewrite->value[node->in[i]];
    weft_node own = *node;
    own.scan = rewrite->to->scan;
    const weft_element_attributes *element = node->op->element != NULL ? node->attributes : NULL;
    if (element != NULL && weft_scan_of_stream(rewrite->from, element->random) != 0 &&
        !set_stream(u, &own)) {
        weft_fail_memory(&rewrite->to->error, node->attribute_bytes);
        return weft_no_value(rewrite->to);
    }
    return (weft_value){rewrite->to, weft_node_copy(rewrite->to, rewrite->from, &own, in)};
}

static weft_value carried(unrolling *u, const weft_node *node)
{
    const bool is_first = u->trip[weft_scan_of(node)->scan] == 0;
    return (weft_value){u->rewrite.to,
                        is_first ? u->rewrite.value[node->in[0]] : u->next[node->out]};
}

static weft_value translate(unrolling *u, uint32_t id)
{
    const weft_node *node = &u->rewrite.from->nodes[id];
    const uint32_t kept = kept_of(u, node);
    if (kept != 0) return translate_in(u, node, kept);
    if (node->op == &weft_op_scan_trip) return trip_number(u, node);
    if (node->op == &weft_op_scan_carry) return carried(u, node);
    if (node->op == &weft_op_scan_each) return each(u, node);
    if (node->op == &weft_op_scan_last) return (weft_value){u->rewrite.to, u->next[node->in[0]]};
    if (node->op == &weft_op_scan_stack) return stack(u, id);
    return copy(u, node);
}

/* Nodes that were made anew, and not copied, come from where the old one did. */
static void set_origins(unrolling *u, const weft_node *node, uint32_t first)
{
    weft_graph *to = u->rewrite.to;
    weft_graph_error_at(to, &node->origin);
    for (uint32_t id = first; id < to->n_nodes; id++) {
        to->nodes[id].origin = node->origin;
        to->nodes[id].phase = node->phase;
    }
}

static void tag(unrolling *u, const weft_node *node, uint32_t first, weft_value value)
{
    weft_graph *to = u->rewrite.to;
    set_origins(u, node, first);
    for (uint32_t i = 0; i < node->n_out && to->error.status == WEFT_OK; i++) {
        u->rewrite.value[node->out + i] = value.id + i;
        if (first < to->n_nodes) weft_rewrite_tags(&u->rewrite, node->out + i, value.id + i);
    }
}

static void do_node(unrolling *u, uint32_t id)
{
    const weft_node *node = &u->rewrite.from->nodes[id];
    const uint32_t first = u->rewrite.to->n_nodes;
    if (node->op == &weft_op_scan_next && kept_of(u, node) == 0) return; /* when the trip is over */
    tag(u, node, first, translate(u, id));
}

/* ---- bodies ------------------------------------------------------------------------------------ */

static void do_body(unrolling *u, uint32_t scan);

/* When a trip is over: what is carried on, and what is stacked. */
static void end_trip(unrolling *u, uint32_t scan)
{
    const weft_graph *from = u->rewrite.from;
    const body *own = &u->bodies[scan], *around = &u->bodies[from->scans[scan].parent];
    for (uint32_t i = 0; i < own->n_nodes; i++) {
        const weft_node *node = &from->nodes[own->nodes[i]];
        if (node->op == &weft_op_scan_next) u->next[node->in[0]] = u->rewrite.value[node->in[1]];
    }
    for (uint32_t i = 0; i < around->n_nodes; i++) {
        const weft_node *node = &from->nodes[around->nodes[i]];
        if (node->op == &weft_op_scan_stack && weft_scan_of(node)->scan == scan)
            u->parts[around->nodes[i]][trip_of(u, weft_scan_of(node))] =
                u->rewrite.value[node->in[0]];
    }
}

/* The same dims, that one first. */
static weft_shape with_first(const weft_shape *shape, const char *name)
{
    weft_shape first = *shape;
    const int at = weft_shape_find(shape, name);
    for (int d = at; d > 0; d--)
        first.dims[d] = shape->dims[d - 1];
    if (at > 0) first.dims[0] = shape->dims[at];
    return first;
}

/* The tensors of which its trips see an element, as they are outside. */
static void find_seen(unrolling *u, uint32_t scan)
{
    const weft_graph *from = u->rewrite.from;
    weft_graph *to = u->rewrite.to;
    for (uint32_t id = 1; id < from->n_nodes && to->error.status == WEFT_OK; id++) {
        const weft_node *node = &from->nodes[id];
        const uint32_t first = to->n_nodes;
        if (!u->rewrite.is_live[id] || node->op != &weft_op_scan_each ||
            weft_scan_of(node)->scan != scan)
            continue;
        const weft_value x = made(u, node->in[0]);
        u->seen[id] =
            weft_transpose(x, with_first(weft_shape_of(x), weft_scan_of(node)->dim.dim)).id;
        set_origins(u, node, first);
    }
}

/* It begins with its trip. */
static void begin_kept(unrolling *u, uint32_t scan, const weft_node *trip)
{
    weft_graph *to = u->rewrite.to;
    const uint32_t first = to->n_nodes;
    const int64_t trips = u->rewrite.from->scans[scan].trips;
    u->numbers[scan] = weft_iota(to, WEFT_I32, weft_dim_beside(to, (weft_dim){"trip", trips})).id;
    u->kept[scan] = weft_scan_open(to, trips);
    const weft_value begin = weft_scan_trip_of(to, u->kept[scan], false);
    if (begin.id != 0) to->scans[u->kept[scan]].trip = begin.id;
    set_origins(u, trip, first);
}

static void keep_scan(unrolling *u, uint32_t scan)
{
    weft_graph *to = u->rewrite.to;
    const uint32_t around = to->scan;
    const uint32_t trip = u->rewrite.from->tensors[u->rewrite.from->scans[scan].trip].node;
    find_seen(u, scan);
    begin_kept(u, scan, &u->rewrite.from->nodes[trip]);
    u->is_open[scan] = true;
    if (to->error.status == WEFT_OK) do_node(u, trip);
    do_body(u, scan);
    u->is_open[scan] = false;
    to->scan = around;
}

static void do_scan(unrolling *u, uint32_t scan)
{
    if (stays(u, scan)) {
        keep_scan(u, scan);
        return;
    }
    u->kept[scan] = 0;
    const int64_t trips = u->rewrite.from->scans[scan].trips;
    const uint32_t trip = u->rewrite.from->tensors[u->rewrite.from->scans[scan].trip].node;
    for (int64_t t = 0; t < trips && u->rewrite.to->error.status == WEFT_OK; t++) {
        u->trip[scan] = t;
        do_node(u, trip);
        do_body(u, scan);
        end_trip(u, scan);
    }
    u->trip[scan] = -1;
}

/* The scan that begins with this node; 0: none does. */
static uint32_t begins(const weft_graph *graph, const weft_node *node)
{
    return node->scan != 0 && graph->scans[node->scan].trip == node->out ? node->scan : 0;
}

static void do_body(unrolling *u, uint32_t scan)
{
    const body *own = &u->bodies[scan];
    for (uint32_t i = 0; i < own->n_nodes && u->rewrite.to->error.status == WEFT_OK; i++) {
        const uint32_t inner = begins(u->rewrite.from, &u->rewrite.from->nodes[own->nodes[i]]);
        if (inner != 0)
            do_scan(u, inner);
        else
            do_node(u, own->nodes[i]);
    }
}

/* ---- the pass ---------------------------------------------------------------------------------- */

/* Inputs and variables come first: a body may be the first that asks for one. */
static weft_status find_bodies(unrolling *u, weft_error *error)
{
    const weft_graph *from = u->rewrite.from;
    weft_arena *arena = u->rewrite.plan->arena;
    for (int is_filling = 0; is_filling < 2; is_filling++) {
        for (uint32_t s = 0; is_filling && s < from->n_scans; s++) {
            u->bodies[s].nodes =
                weft_arena_take(arena, (u->bodies[s].n_nodes + 1) * sizeof(uint32_t));
            if (u->bodies[s].nodes == NULL) return weft_fail_memory(error, u->bodies[s].n_nodes);
            u->bodies[s].n_nodes = 0;
        }
        for (int others = 0; others < 2; others++)
            for (uint32_t id = 1; id < from->n_nodes; id++) {
                const weft_node *node = &from->nodes[id];
                const bool is_home = node->op == &weft_op_input || node->op == &weft_op_variable;
                if (!u->rewrite.is_live[id] || is_home == others) continue;
                body *its =
                    &u->bodies[begins(from, node) ? from->scans[node->scan].parent : node->scan];
                if (is_filling) its->nodes[its->n_nodes] = id;
                its->n_nodes++;
            }
    }
    return WEFT_OK;
}

static weft_status take_room(unrolling *u, weft_error *error)
{
    const weft_graph *from = u->rewrite.from;
    weft_arena *arena = u->rewrite.plan->arena;
    u->bodies = weft_arena_take(arena, from->n_scans * sizeof *u->bodies);
    u->trip = weft_arena_take(arena, from->n_scans * sizeof *u->trip);
    u->next = weft_arena_take(arena, from->n_tensors * sizeof *u->next);
    u->parts = weft_arena_take(arena, from->n_nodes * sizeof *u->parts);
    u->seen = weft_arena_take(arena, from->n_nodes * sizeof *u->seen);
    u->is_guarded = weft_arena_take(arena, from->n_scans * sizeof *u->is_guarded);
    u->is_open = weft_arena_take(arena, from->n_scans * sizeof *u->is_open);
    u->kept = weft_arena_take(arena, from->n_scans * sizeof *u->kept);
    u->numbers = weft_arena_take(arena, from->n_scans * sizeof *u->numbers);
    if (!u->bodies || !u->trip || !u->next || !u->parts || !u->seen || !u->is_guarded ||
        !u->is_open || !u->kept || !u->numbers)
        return weft_fail_memory(error, from->n_nodes * sizeof *u->parts);
    for (uint32_t s = 0; s < from->n_scans; s++) {
        u->trip[s] = -1;
        u->is_guarded[s] = s != 0 && weft_scan_guard_of(from, s) != 0;
    }
    for (uint32_t id = 1; id < from->n_nodes; id++) {
        const weft_node *node = &from->nodes[id];
        if (!u->rewrite.is_live[id] || node->op != &weft_op_scan_stack ||
            stays(u, (uint32_t)weft_scan_of(node)->scan))
            continue;
        const size_t bytes = (size_t)weft_scan_of(node)->dim.size * sizeof *u->parts[id];
        if (!(u->parts[id] = weft_arena_take(arena, bytes))) return weft_fail_memory(error, bytes);
    }
    return find_bodies(u, error);
}

weft_status weft_pass_unroll(weft_plan *plan, weft_error *error)
{
    unrolling u = {0};
    if (plan->graph->n_scans == 0) return WEFT_OK;
    WEFT_TRY(weft_rewrite_begin(plan, &u.rewrite, error));
    const weft_status status = take_room(&u, error);
    if (status != WEFT_OK) {
        weft_graph_like_destroy(&u.rewrite.to);
        return status;
    }
    u.rewrite.to->scans = NULL; /* it gets those that stay */
    u.rewrite.to->n_scans = 0;
    do_body(&u, 0);
    return weft_rewrite_end(&u.rewrite, error);
}
