/* graph.c: nodes and values in growing arrays, everything they point to in one arena; the first
 * error stays.
 *
 * A sentence of a failed builder begins with the op that found out: "maximum: ...". The macro around the builder (weft_at)
 * then knows what was called, and where, and makes it "minimum at file.c:41: ...".
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ir.h"
#include "outside.h"
#include "text.h"

static const weft_error no_graph = {WEFT_MEMORY, -1,
                                    "there is no graph: it was not created, or out of memory then"};
static const weft_type no_type;

/* ---- life ------------------------------------------------------------------------------------ */

weft_graph *weft_graph_create(uint64_t seed)
{
    weft_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) return NULL;
    graph->arena = weft_arena_create();
    graph->cap_nodes = graph->cap_tensors = 256;
    graph->nodes = calloc(graph->cap_nodes, sizeof *graph->nodes);
    graph->tensors = calloc(graph->cap_tensors, sizeof *graph->tensors);
    if (graph->arena == NULL || graph->nodes == NULL || graph->tensors == NULL) {
        weft_graph_destroy(&graph);
        return NULL;
    }
    graph->seed = seed;
    graph->error.rank = -1;
    graph->n_nodes = graph->n_tensors = 1; /* 0 is the invalid one */
    graph->built = weft_graph_here(graph);
    return graph;
}

weft_status weft_graph_destroy(weft_graph **graph)
{
    if (graph == NULL || *graph == NULL) return WEFT_OK;
    if ((*graph)->n_users > 0) return WEFT_USAGE;
    weft_arena_destroy(&(*graph)->arena);
    free((*graph)->nodes);
    free((*graph)->tensors);
    free(*graph);
    *graph = NULL;
    return WEFT_OK;
}

/* The count is the graph's own book-keeping: a program may only look at the rest. */
void weft_graph_keep(const weft_graph *graph)
{
    ((weft_graph *)(uintptr_t)graph)->n_users++;
}

void weft_graph_release(const weft_graph *graph)
{
    ((weft_graph *)(uintptr_t)graph)->n_users--;
}

/* ---- errors ---------------------------------------------------------------------------------- */

const weft_error *weft_graph_error(const weft_graph *graph)
{
    return graph == NULL ? &no_graph : &graph->error;
}

weft_status weft_graph_status(const weft_graph *graph)
{
    return weft_graph_error(graph)->status;
}

weft_value weft_no_value(weft_graph *graph)
{
    return (weft_value){graph, 0};
}

weft_value weft_graph_fail(weft_graph *graph, const char *format, ...)
{
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (format == NULL) format = "failed, without a word";
    va_list arguments;
    va_start(arguments, format);
    weft_text_formatv(graph->error.message, sizeof graph->error.message, format, arguments);
    va_end(arguments);
    graph->error.status = WEFT_USAGE;
    return weft_no_value(graph);
}

static weft_value fail_memory(weft_graph *graph, size_t bytes)
{
    if (graph->error.status == WEFT_OK) weft_fail_memory(&graph->error, bytes);
    graph->error_has_origin = true;
    return weft_no_value(graph);
}

void weft_graph_error_at(weft_graph *graph, const weft_origin *origin)
{
    char *message = graph->error.message;
    if (graph->error.status == WEFT_OK || graph->error_has_origin || origin->file == NULL) return;
    const char *colon =
        strstr(message, ": "); /* "maximum: x is ..." becomes "minimum at mlp.c:41: x is ..." */
    char placed[sizeof graph->error.message + 256];
    snprintf(placed, sizeof placed, "%s at %s:%d: %s", origin->builder, origin->file, origin->line,
             colon == NULL ? message : colon + 2);
    memcpy(message, placed, sizeof graph->error.message - 1);
    message[sizeof graph->error.message - 1] = 0;
    graph->error_has_origin = true;
}

static weft_origin take_origin(weft_graph *graph, const weft_origin *origin)
{
    if (origin->file == NULL) return *origin;
    return (weft_origin){weft_graph_intern(graph, origin->builder),
                         weft_graph_intern(graph, origin->file), origin->line};
}

weft_value weft_at(const char *builder, const char *file, int line, weft_value value)
{
    weft_graph *graph = value.graph;
    if (graph == NULL || builder == NULL || file == NULL) return value;
    const char *slash = strrchr(file, '/');
    weft_origin origin = {builder, slash == NULL ? file : slash + 1, line};
    weft_graph_error_at(graph, &origin);
    if (graph->error.status != WEFT_OK) return value;
    if (graph->built.n_nodes < graph->n_nodes || graph->marked != 0) {
        origin = take_origin(graph, &origin);
    }
    for (uint32_t id = graph->built.n_nodes; id < graph->n_nodes; id++)
        if (graph->nodes[id].origin.file == NULL) graph->nodes[id].origin = origin;
    if (graph->marked != 0) graph->tensors[graph->marked].placed_by = origin;
    graph->marked = 0;
    graph->built = weft_graph_here(graph);
    return value;
}

weft_value weft_hand_back(weft_value value)
{
    if (value.graph != NULL) value.graph->handed_back = value.id;
    return value;
}

/* ---- names and shapes ------------------------------------------------------------------------ */

const char *weft_graph_intern(weft_graph *graph, const char *name)
{
    const char *interned = weft_arena_intern(graph->arena, name);
    if (interned == NULL) fail_memory(graph, strlen(name) + 1);
    return interned;
}

weft_dim weft_dim_beside(weft_graph *graph, weft_dim dim)
{
    if (weft_graph_status(graph) != WEFT_OK) return dim;
    char name[256];
    snprintf(name, sizeof name, "%s'", dim.name);
    const char *interned = weft_graph_intern(graph, name);
    return interned == NULL ? dim : (weft_dim){interned, dim.size};
}

uint32_t weft_graph_next_random(weft_graph *graph)
{
    return graph == NULL ? 0 : ++graph->n_random;
}

weft_shape weft_shape_make(const weft_dim *dims, int n_dims)
{
    weft_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.n_dims = n_dims;
    for (int d = 0; dims != NULL && d < n_dims && d < WEFT_MAX_DIMS; d++)
        shape.dims[d] = dims[d];
    return shape;
}

/* Dim names are what a layout can write, but for those of Weft's own making ("seq'", "~"), which are known by being
 * this graph's interned copy: nobody else has that pointer. */
static bool check_dim_names(weft_graph *graph, const char *op, const weft_shape *shape)
{
    for (int d = 0; d < shape->n_dims; d++) {
        const char *name = shape->dims[d].name;
        if (weft_name_check("dim", name, NULL) == WEFT_OK) continue;
        if (weft_arena_intern(graph->arena, name) == name) continue;
        weft_error error = {WEFT_OK, -1, ""};
        (void)weft_name_check("dim", name, &error);
        weft_graph_fail(graph, "%s: %s", op, error.message);
        return false;
    }
    return true;
}

bool weft_graph_shape(weft_graph *graph, const char *op, const weft_shape *from, weft_shape *to)
{
    if (to == NULL) return false;
    memset(to, 0, sizeof *to);
    if (weft_graph_status(graph) != WEFT_OK) return false;
    weft_error error = {WEFT_OK, -1, ""};
    if (weft_shape_check(from, &error) != WEFT_OK) {
        weft_graph_fail(graph, "%s: %s", op, error.message);
        return false;
    }
    if (!check_dim_names(graph, op, from)) return false;
    to->n_dims = from->n_dims;
    for (int d = 0; d < from->n_dims; d++) {
        to->dims[d].name = weft_graph_intern(graph, from->dims[d].name);
        to->dims[d].size = from->dims[d].size;
    }
    return graph->error.status == WEFT_OK;
}

/* ---- looking at values ----------------------------------------------------------------------- */

static const weft_type *type_of(weft_value value)
{
    if (value.graph == NULL || value.id == 0 || value.id >= value.graph->n_tensors) return &no_type;
    return &value.graph->tensors[value.id].type;
}

const weft_shape *weft_shape_of(weft_value value)
{
    return &type_of(value)->shape;
}

weft_dtype weft_dtype_of(weft_value value)
{
    return type_of(value)->dtype;
}

bool weft_is_update(weft_value value)
{
    return weft_is_value(value) && weft_node_of(value.graph, value.id)->op->makes_token;
}

weft_dim weft_dim_of(weft_value value, const char *name)
{
    const weft_shape *shape = weft_shape_of(value);
    const int d = weft_shape_find(shape, name);
    return d < 0 ? (weft_dim){name, 0} : shape->dims[d];
}

weft_value weft_result(weft_value first, int index)
{
    if (!weft_is_value(first)) return weft_no_value(first.graph);
    const weft_node *node = weft_node_of(first.graph, first.id);
    const int64_t id = (int64_t)first.id + index;
    if (id < node->out || id >= (int64_t)node->out + node->n_out) return weft_no_value(first.graph);
    return (weft_value){first.graph, (uint32_t)id};
}

void weft_site_of(const weft_graph *graph, const weft_node *node, weft_site *site)
{
    memset(site, 0, sizeof *site);
    site->op = node->op;
    site->attributes = node->attributes;
    site->n_in = node->n_in;
    site->n_out = node->n_out;
    for (int i = 0; i < node->n_in; i++) {
        site->in[i] = graph->tensors[node->in[i]].type;
        site->in_name[i] = graph->tensors[node->in[i]].name;
    }
    for (int i = 0; i < node->n_out; i++)
        site->out[i] = graph->tensors[node->out + (uint32_t)i].type;
}

/* ---- building nodes -------------------------------------------------------------------------- */

/* Make room for `more` entries of `entry` bytes; new ones are zero. */
static bool grow(void **array, uint32_t *cap, uint32_t used, uint32_t more, size_t entry)
{
    if (used + more <= *cap) return true;
    const uint32_t cap_new = 2 * *cap + more;
    char *grown = realloc(*array, cap_new * entry);
    if (grown == NULL) return false;
    memset(grown + *cap * entry, 0, (cap_new - *cap) * entry);
    *array = grown;
    *cap = cap_new;
    return true;
}

static bool make_room(weft_graph *graph, uint32_t n_out)
{
    if (grow((void **)&graph->nodes, &graph->cap_nodes, graph->n_nodes, 1, sizeof(weft_node)) &&
        grow((void **)&graph->tensors, &graph->cap_tensors, graph->n_tensors, n_out,
             sizeof(weft_tensor)))
        return true;
    fail_memory(graph, sizeof(weft_tensor) * graph->cap_tensors);
    return false;
}

/* The graph's own copy of operands; NULL: no memory, or there is none. */
static const uint32_t *take_ids(weft_graph *graph, const uint32_t *in, int n_in)
{
    const size_t bytes = (size_t)n_in * sizeof *in;
    const uint32_t *taken = n_in > 0 ? weft_arena_copy(graph->arena, in, bytes) : NULL;
    if (n_in > 0 && taken == NULL) fail_memory(graph, bytes);
    return taken;
}

/* Append a node with its operands copied, attributes that the graph holds, and its results with their types; NULL: no
 * memory. */
static weft_node *append(weft_graph *graph, const weft_site *site, const uint32_t *in, size_t bytes)
{
    if (!make_room(graph, (uint32_t)site->n_out)) return NULL;
    weft_node node = {.op = site->op,
                      .out = graph->n_tensors,
                      .n_in = (uint8_t)site->n_in,
                      .n_out = (uint8_t)site->n_out,
                      .phase = (uint8_t)graph->phase,
                      .scan = site->op->is_outside ? 0 : graph->scan,
                      .again = graph->again,
                      .attributes = site->attributes,
                      .attribute_bytes = (uint32_t)bytes};
    node.in = take_ids(graph, in, site->n_in);
    if (site->n_in > 0 && node.in == NULL) return NULL;
    for (int i = 0; i < site->n_out; i++) {
        weft_tensor *tensor = &graph->tensors[graph->n_tensors + (uint32_t)i];
        *tensor = (weft_tensor){.node = graph->n_nodes, .type.dtype = site->out[i].dtype};
        if (!weft_graph_shape(graph, site->op->name, &site->out[i].shape, &tensor->type.shape))
            return NULL;
    }
    graph->n_tensors += (uint32_t)site->n_out;
    graph->nodes[graph->n_nodes] = node;
    return &graph->nodes[graph->n_nodes++];
}

/* How a sentence calls an operand that may be of any graph, or none. */
static const char *name_of(const weft_value *in, int n_in, int i)
{
    weft_site site = {.n_in = n_in};
    if (weft_is_value(in[i])) site.in_name[i] = in[i].graph->tensors[in[i].id].name;
    return weft_site_name(&site, i);
}

/* Whether all operands are values of this graph; if not, that is its error. */
static bool take_operands(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                          uint32_t *ids, weft_site *site)
{
    if (n_in < 0 || n_in > WEFT_MAX_IN || (n_in > 0 && in == NULL)) {
        weft_graph_fail(graph, "%s: %d operands%s; there are from 0 to %d", op->name, n_in,
                        in == NULL ? ", given as NULL" : "", WEFT_MAX_IN);
        return false;
    }
    for (int i = 0; i < n_in; i++) {
        if (in[i].graph != NULL && in[i].graph != graph) {
            weft_graph_fail(graph,
                            "%s: %s belongs to another graph; values of two graphs do not mix",
                            op->name, name_of(in, n_in, i));
            return false;
        }
        if (in[i].id == 0 || in[i].id >= graph->n_tensors) {
            weft_graph_fail(graph, "%s: %s is not a value; pass what a builder returned", op->name,
                            name_of(in, n_in, i));
            return false;
        }
        const weft_op *maker = weft_node_of(graph, in[i].id)->op;
        if (maker->makes_token && !op->takes_tokens) {
            weft_graph_fail(graph,
                            "%s: operand %d is an update (of weft_%s), which has no elements; "
                            "hand updates to weft_group or weft_compile",
                            op->name, i, maker->name);
            return false;
        }
        if (!weft_scan_sees(graph, op, in[i].id)) return false;
        ids[i] = in[i].id;
        site->in[i] = graph->tensors[in[i].id].type;
        site->in_name[i] = graph->tensors[in[i].id].name;
    }
    return true;
}

const weft_attributes *weft_op_attributes(const weft_op *op)
{
    if (op->attributes != NULL || op->element == NULL) return op->attributes;
    return &weft_attributes_element;
}

/* The site's attributes become the graph's own copy; if they are not the struct that the op describes, that is the
 * graph's error. */
static bool take_attributes(weft_graph *graph, weft_site *site, size_t bytes)
{
    const weft_attributes *described = weft_op_attributes(site->op);
    const size_t expected = described == NULL ? 0 : described->bytes;
    if (bytes != expected || (bytes > 0 && site->attributes == NULL)) {
        weft_graph_fail(graph, "%s: attributes of %zu bytes, where its table describes %zu",
                        site->op->name, bytes, expected);
        graph->error.status = WEFT_INTERNAL;
        return false;
    }
    if (described == NULL) return true;
    site->attributes = weft_attributes_take(graph, described, site->attributes);
    if (site->attributes == NULL) fail_memory(graph, bytes);
    return site->attributes != NULL;
}

/* What an op from outside says of its results is looked at too. */
static bool check_results(weft_graph *graph, const weft_site *site)
{
    bool fits = site->n_out >= 1 && site->n_out <= WEFT_MAX_OUT;
    for (int o = 0; fits && o < site->n_out; o++)
        fits = (unsigned)site->out[o].dtype < WEFT_DTYPES;
    if (!fits)
        weft_graph_fail(graph,
                        "%s: its infer says that it has %d results, or one of no dtype; there are "
                        "from 1 to %d",
                        site->op->name, site->n_out, WEFT_MAX_OUT);
    return fits;
}

/* The graph that a node goes to: the one given, else the operands', also if there are too many. */
static weft_graph *graph_of(weft_graph *graph, const weft_value *in, int n_in)
{
    for (int i = 0; i < n_in && i < WEFT_MAX_IN && in != NULL && graph == NULL; i++)
        graph = in[i].graph;
    return graph;
}

weft_value weft_emit(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                     const void *attributes, size_t bytes)
{
    graph = graph_of(graph, in, n_in);
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (op == NULL) return weft_graph_fail(graph, "weft_emit: op is NULL; pass an op's table");
    if (op->size == 0 && op->infer != NULL && op->name != NULL && op->factors != NULL)
        return weft_emit_own(graph, op, in, n_in, attributes, bytes);
    const weft_op *known = weft_op_outside(op);
    if (known == NULL)
        return weft_graph_fail(graph, "weft_emit: this op has not been registered; weft_extend_op "
                                      "it first, and pass the same table here");
    return weft_emit_own(graph, known, in, n_in, attributes, bytes);
}

weft_value weft_emit_own(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                         const void *attributes, size_t bytes)
{
    graph = graph_of(graph, in, n_in);
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);

    weft_site site = {.op = op, .attributes = attributes, .n_in = n_in};
    uint32_t ids[WEFT_MAX_IN];
    if (!take_operands(graph, op, in, n_in, ids, &site)) return weft_no_value(graph);
    if (graph->scan != 0 && op->makes_token && !op->carries_on)
        return weft_graph_fail(graph,
                               "%s: nothing is updated in a scan; carry the value, and %s what "
                               "weft_scan_last gives after the end",
                               op->name, op->name);
    if (graph->part != 0 && op->makes_token && !op->carries_on)
        return weft_graph_fail(graph,
                               "%s: nothing is updated in a part that is computed again, where it "
                               "would be twice; call it after weft_recompute_end",
                               op->name);
    if (!take_attributes(graph, &site, bytes)) return weft_no_value(graph);
    weft_error error = {WEFT_OK, -1, ""};
    if (op->infer(&site, &error) != WEFT_OK)
        return weft_graph_fail(graph, "%s: %s", op->name, error.message);
    if (!check_results(graph, &site)) return weft_no_value(graph);

    const weft_node *node = append(graph, &site, ids, bytes);
    if (node == NULL) return weft_no_value(graph);
    for (uint32_t id = node->out; graph->place_as != 0 && id < node->out + node->n_out; id++)
        if (weft_shape_same_dims(&graph->tensors[id].type.shape,
                                 &graph->tensors[graph->place_as].type.shape))
            graph->tensors[id].place_as = graph->place_as;
    return (weft_value){graph, node->out};
}

/* Both graphs have one arena, so what the node points at is there already, but for operands that differ. place_as and the
 * owner of a slot are ids, which the caller translates. */
uint32_t weft_node_copy(weft_graph *to, const weft_graph *from, const weft_node *node,
                        const uint32_t *in)
{
    assert(to->arena == from->arena);
    if (to->error.status != WEFT_OK || !make_room(to, node->n_out)) return 0;
    weft_node copy = *node;
    copy.out = to->n_tensors;
    if (node->n_in > 0 && memcmp(in, node->in, node->n_in * sizeof *in) != 0)
        copy.in = take_ids(to, in, node->n_in);
    if (node->n_in > 0 && copy.in == NULL) return 0;
    for (uint32_t i = 0; i < node->n_out; i++) {
        weft_tensor *tensor = &to->tensors[copy.out + i];
        *tensor = from->tensors[node->out + i];
        tensor->node = to->n_nodes;
        tensor->place_as = 0;
    }
    to->n_tensors += node->n_out;
    to->nodes[to->n_nodes++] = copy;
    if (to->n_random < from->n_random) to->n_random = from->n_random;
    return copy.out;
}
