/* variable: a tensor that keeps its value from run to run; slots are variables that belong to
 * another one. No kernel: the compiler knows it.
 */
#include <string.h>

#include "ir.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    (void)error;
    const weft_variable_attributes *attributes = site->attributes;
    site->n_out = 1;
    site->out[0] = attributes->type;
    return WEFT_OK;
}

const weft_op weft_op_variable = {.name = "variable",
                                  .attributes = &weft_attributes_variable,
                                  .infer = infer,
                                  .factors = weft_factors_pass,
                                  .is_outside = true};

weft_initial weft_constant_of(double value)
{
    return (weft_initial){.kind = WEFT_INITIAL_CONSTANT, .a = value};
}

weft_initial weft_normal(double mean, double deviation)
{
    return (weft_initial){.kind = WEFT_INITIAL_NORMAL, .a = mean, .b = deviation};
}

weft_initial weft_uniform(double low, double high)
{
    return (weft_initial){.kind = WEFT_INITIAL_UNIFORM, .a = low, .b = high};
}

weft_initial weft_formula(double scale, double frequency)
{
    return (weft_initial){.kind = WEFT_INITIAL_FORMULA, .a = scale, .b = frequency};
}

/* ---- by name --------------------------------------------------------------------------------- */

/* The name of the input or variable that node `n` is; NULL: it is none (any more: what failed is taken back). */
static const char *home_name(const weft_graph *graph, uint32_t n)
{
    if (n == 0 || n >= graph->n_nodes) return NULL;
    const weft_node *node = &graph->nodes[n];
    if (node->op != &weft_op_input && node->op != &weft_op_variable) return NULL;
    return ((const weft_variable_attributes *)node->attributes)->name;
}

/* Names are interned, so a name's pointer is its key. */
static uint32_t first_place(const weft_graph *graph, const char *name)
{
    const uint64_t key = (uint64_t)(uintptr_t)name >> 4;
    return (uint32_t)(key * 0x9E3779B97F4A7C15u >> 32) & graph->homes_mask;
}

/* The input or variable called `name` (interned); 0: none. */
static uint32_t find_home(const weft_graph *graph, const char *name)
{
    if (graph->homes == NULL) return 0;
    uint32_t at = first_place(graph, name);
    for (; graph->homes[at] != 0; at = (at + 1) & graph->homes_mask)
        if (home_name(graph, graph->homes[at]) == name) return graph->homes[at];
    return 0;
}

static void enter_home(weft_graph *graph, uint32_t n)
{
    uint32_t at = first_place(graph, home_name(graph, n));
    while (graph->homes[at] != 0)
        at = (at + 1) & graph->homes_mask;
    graph->homes[at] = n;
    graph->n_homes++;
}

/* At most half of the table is in use. False: no memory, which is the graph's error. */
static bool make_room(weft_graph *graph)
{
    const uint32_t *old = graph->homes, n_old = old == NULL ? 0 : graph->homes_mask + 1;
    if (2 * (graph->n_homes + 1) <= n_old) return true;
    const uint32_t n = n_old == 0 ? 64 : 2 * n_old;
    uint32_t *homes = weft_arena_take(graph->arena, n * sizeof *homes);
    if (homes == NULL) {
        weft_fail_memory(&graph->error, n * sizeof *homes);
        graph->error_has_origin = true;
        return false;
    }
    graph->homes = homes;
    graph->homes_mask = n - 1;
    graph->n_homes = 0;
    for (uint32_t i = 0; i < n_old; i++)
        if (home_name(graph, old[i]) != NULL) enter_home(graph, old[i]);
    return true;
}

/* ---- builders -------------------------------------------------------------------------------- */

/* Emit an input or variable: both have a name of their own, a type, a first value, and maybe an
 * owner, or names of rows. */
weft_value weft_emit_home_of(weft_graph *graph, const weft_op *op, const char *name, weft_type type,
                             weft_initial initial, uint32_t owner, const char *rows)
{
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    weft_error error = {WEFT_OK, -1, ""};
    if (weft_path_check(op->name, name, &error) != WEFT_OK)
        return weft_graph_fail(graph, "%s", error.message);
    if ((unsigned)initial.kind > WEFT_INITIAL_FORMULA)
        return weft_graph_fail(graph,
                               "%s: %s: %d is no kind of initial value; use weft_constant_of, "
                               "weft_normal, weft_uniform or weft_formula",
                               op->name, name, (int)initial.kind);
    weft_variable_attributes attributes;
    char head[160]; /* of sentences */
    snprintf(head, sizeof head, "%s: %.80s", op->name, name);
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_shape(graph, head, &type.shape, &attributes.type.shape))
        return weft_no_value(graph);
    if ((unsigned)type.dtype >= WEFT_DTYPES)
        return weft_graph_fail(graph, "%s: %d is no dtype; there are %s", head, (int)type.dtype,
                               weft_dtype_names());
    if (initial.kind == WEFT_INITIAL_CONSTANT && !weft_holds(graph, head, type.dtype, initial.a))
        return weft_no_value(graph);
    attributes.type.dtype = type.dtype;
    attributes.name = weft_graph_intern(graph, name);
    if (rows != NULL) attributes.rows = weft_graph_intern(graph, rows);
    attributes.initial = initial;
    attributes.owner = owner;
    const uint32_t other = attributes.name == NULL ? 0 : find_home(graph, attributes.name);
    if (other != 0) {
        char other_origin[160];
        weft_origin_print(&graph->nodes[other], other_origin, sizeof other_origin);
        return weft_graph_fail(graph,
                               "%s: %s has this name already; names of inputs and variables are "
                               "unique in a graph, so choose another",
                               head, other_origin);
    }
    if (!make_room(graph)) return weft_no_value(graph);
    weft_value value = weft_emit(graph, op, NULL, 0, &attributes, sizeof attributes);
    if (value.id == 0) return value;
    graph->tensors[value.id].name = attributes.name;
    enter_home(graph, graph->tensors[value.id].node);
    return value;
}

weft_value weft_emit_home(weft_graph *graph, const weft_op *op, const char *name, weft_dtype dtype,
                          const weft_shape *shape, weft_initial initial)
{
    return weft_emit_home_of(graph, op, name, (weft_type){dtype, *shape}, initial, 0, NULL);
}

weft_value weft_variable(weft_graph *graph, const char *name, weft_dtype dtype, weft_shape shape,
                         weft_initial initial)
{
    return weft_emit_home(graph, &weft_op_variable, name, dtype, &shape, initial);
}

/* How many names there are; -1: one is none, which is the graph's error. */
static int64_t count_rows(weft_graph *graph, const char *head, const char *rows)
{
    char name[WEFT_MAX_PATH + 2];
    weft_error error = {WEFT_OK, -1, ""};
    int64_t n = 0;
    for (const char *at = rows;; at++, n++) {
        const size_t length = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), at);
        if (weft_path_check(head, name, &error) != WEFT_OK) {
            weft_graph_fail(graph, "%s", error.message);
            return -1;
        }
        at += length;
        if (*at == '\0') return n + 1;
    }
}

weft_value weft_variable_of_rows(weft_graph *graph, const char *name, weft_dtype dtype,
                                 weft_shape shape, weft_initial initial, const char *rows)
{
    char head[160];
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    snprintf(head, sizeof head, "variable_of_rows: %.80s", name == NULL ? "" : name);
    if (rows == NULL || shape.n_dims < 1)
        return weft_graph_fail(graph, "%s: %s; give a dim, and a name for each of its elements",
                               head, rows == NULL ? "no names of rows" : "it is a scalar");
    const int64_t n = count_rows(graph, head, rows);
    if (n >= 0 && n != shape.dims[0].size)
        return weft_graph_fail(graph,
                               "%s: %lld names for %lld rows; give a name for each element of the "
                               "first dim",
                               head, (long long)n, (long long)shape.dims[0].size);
    if (n < 0) return weft_no_value(graph);
    return weft_emit_home_of(graph, &weft_op_variable, name, (weft_type){dtype, shape}, initial, 0,
                             rows);
}

bool weft_has_rows(weft_value variable)
{
    const weft_node *node =
        weft_is_value(variable) ? weft_node_of(variable.graph, variable.id) : NULL;
    return node != NULL && node->op == &weft_op_variable &&
           ((const weft_variable_attributes *)node->attributes)->rows != NULL;
}

/* "w/m" for a variable and a slot's name; NULL: no memory. */
static const char *slot_name(weft_value variable, const char *name)
{
    weft_graph *graph = variable.graph;
    return weft_arena_text(graph->arena, "%s/%s", graph->tensors[variable.id].name, name);
}

weft_value weft_variable_called(weft_graph *graph, const char *name)
{
    const uint32_t n = find_home(graph, weft_graph_intern(graph, name));
    if (n == 0 || graph->nodes[n].op != &weft_op_variable) return weft_no_value(graph);
    return (weft_value){graph, graph->nodes[n].out};
}

const weft_node *weft_slot_called(weft_value variable, const char *name)
{
    weft_graph *graph = variable.graph;
    const char *full = slot_name(variable, name);
    const uint32_t n = full == NULL ? 0 : find_home(graph, weft_graph_intern(graph, full));
    return n == 0 ? NULL : &graph->nodes[n];
}

weft_value weft_slot_of(weft_value variable, const char *name, weft_shape shape,
                        weft_initial initial)
{
    weft_graph *graph = variable.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    weft_error error = {WEFT_OK, -1, ""};
    if (weft_path_check("slot", name, &error) != WEFT_OK)
        return weft_graph_fail(graph, "%s", error.message);
    if (!weft_is_value(variable) || weft_node_of(graph, variable.id)->op != &weft_op_variable)
        return weft_graph_fail(graph,
                               "slot: %s is to belong to a variable, and this value is none; pass "
                               "what weft_variable returned",
                               name);
    const char *full = slot_name(variable, name);
    if (full == NULL) return weft_graph_fail(graph, "slot: out of memory for the name of a slot");
    const weft_type type = {weft_dtype_of(variable), shape};
    return weft_emit_home_of(graph, &weft_op_variable, full, type, initial, variable.id, NULL);
}

weft_value weft_slot(weft_value variable, const char *name, weft_initial initial)
{
    return weft_slot_of(variable, name, *weft_shape_of(variable), initial);
}
