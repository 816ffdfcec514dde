/* nodes.c: a node as a line of a saved program, and back through the op's own inference, as if a builder had made it.
 *
 *     %7 loss f32 [] = sum(%6) {out=[]} forward in 1 at sum mlp.c 41
 *
 * Rules that are code are not written: a custom gradient, once taken, and the beginning of a part become their first operand
 * (`same`). So numbers of values and nodes stay what they are.
 */
#include "saved.h"

#include <string.h>

#include "outside.h"
#include "same.h"

/* ---- ops --------------------------------------------------------------------------------------- */

static const weft_op *op_called(const char *name)
{
    for (int i = 0; i < weft_n_ops; i++)
        if (strcmp(weft_ops[i]->name, name) == 0) return weft_ops[i];
    for (int i = 0; weft_op_outside_at(i) != NULL; i++)
        if (strcmp(weft_op_outside_at(i)->name, name) == 0) return weft_op_outside_at(i);
    return NULL;
}

/* What is written for the node's op; NULL, and a sentence: it cannot be. */
static const weft_op *written(const weft_node *node, bool is_frozen, weft_error *error)
{
    char origin[160];
    weft_origin_print(node, origin, sizeof origin);
    if (op_called(node->op->name) == node->op && weft_saved_can_hold(weft_op_attributes(node->op)))
        return node->op;
    if (node->op->expand != weft_same_expand)
        (void)!weft_fail(error, WEFT_USAGE,
                         "graph_save: %s has attributes that no file can hold; leave it out",
                         origin);
    else if (is_frozen || node->has_gradient || node->op->gradient == weft_same_gradient)
        return &weft_op_same;
    else
        (void)!weft_fail(
            error, WEFT_USAGE,
            "graph_save: %s has a gradient rule, which is code, and no gradient has been "
            "taken of it; call weft_gradients first, or save it frozen",
            origin);
    return NULL;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static void put_result(const weft_tensor *tensor, uint32_t id, const weft_saved_numbers *numbers,
                       FILE *file)
{
    const uint32_t place_as = numbers->values[tensor->place_as],
                   frozen = numbers->values[tensor->frozen];
    weft_id_print(id, file);
    fputc(' ', file);
    if (tensor->name != NULL) {
        fputs("called ", file);
        weft_saved_put(tensor->name, file);
        fputc(' ', file);
    }
    fputs(weft_dtype_name(tensor->type.dtype), file);
    fputc(' ', file);
    weft_saved_put_shape(&tensor->type.shape, file);
    if (tensor->placement != NULL) {
        fputs(" placed ", file);
        weft_saved_put(tensor->placement, file);
    }
    if (place_as != 0) {
        fputs(" stored ", file);
        weft_id_print(place_as, file);
    }
    if (frozen != 0) {
        fputs(" frozen ", file);
        weft_id_print(frozen, file);
    }
}

/* With the numbers of the file, where attributes have some. */
static void put_attributes(const weft_node *node, const weft_saved_numbers *numbers, FILE *file)
{
    const weft_attributes *described = weft_op_attributes(node->op);
    if (described == NULL) return;
    fputc(' ', file);
    if (node->op == &weft_op_variable || node->op == &weft_op_input) {
        weft_variable_attributes home = *(const weft_variable_attributes *)node->attributes;
        home.owner = numbers->values[home.owner];
        weft_saved_put_attributes(described, &home, file);
    } else if (weft_is_of_scan(node->op)) {
        weft_scan_attributes of = {0};
        memcpy(&of, node->attributes, described->bytes);
        of.scan = numbers->scans[of.scan];
        weft_saved_put_attributes(described, &of, file);
    } else {
        weft_saved_put_attributes(described, node->attributes, file);
    }
}

static void put_marks(const weft_node *node, const weft_saved_numbers *numbers, FILE *file)
{
    fprintf(file, " %s", weft_phase_name((weft_phase)node->phase));
    if (node->scan != 0) fprintf(file, " in %u", numbers->scans[node->scan]);
    if (node->again != 0) fprintf(file, " again %u", node->again);
    if (node->repeats) fputs(" repeats", file);
    if (node->origin.file != NULL) {
        fputs(" at ", file);
        weft_saved_put(node->origin.builder, file);
        fputc(' ', file);
        weft_saved_put(node->origin.file, file);
        fprintf(file, " %d", node->origin.line);
    }
    fputc('\n', file);
}

weft_status weft_saved_op_of(const weft_graph *graph, const weft_node *node, bool is_frozen,
                             weft_saved_op *op, weft_error *error)
{
    const uint32_t *fixed = is_frozen ? &graph->tensors[node->out].frozen : NULL;
    if (fixed != NULL && *fixed != 0) {
        *op = (weft_saved_op){&weft_op_same, fixed, 1};
        return WEFT_OK;
    }
    op->op = written(node, is_frozen, error);
    op->in = node->in;
    op->n_in = op->op != node->op ? 1 : node->n_in;
    return op->op != NULL ? WEFT_OK : WEFT_USAGE;
}

weft_status weft_saved_put_node(const weft_graph *graph, uint32_t n,
                                const weft_saved_numbers *numbers, FILE *file, weft_error *error)
{
    const weft_node *node = &graph->nodes[n];
    weft_saved_op op;
    if (numbers->values[node->out] == 0) return WEFT_OK;
    WEFT_TRY(weft_saved_op_of(graph, node, numbers->is_frozen, &op, error));
    for (uint32_t i = 0; i < node->n_out; i++) {
        fputs(i > 0 ? ", " : "", file);
        put_result(&graph->tensors[node->out + i], numbers->values[node->out + i], numbers, file);
    }
    fprintf(file, " = %s", op.op->name);
    if (op.op->version != 0) fprintf(file, " version %u", (unsigned)op.op->version);
    fputc('(', file);
    for (int i = 0; i < op.n_in; i++) {
        fputs(i > 0 ? ", " : "", file);
        weft_id_print(numbers->values[op.in[i]], file);
    }
    fputc(')', file);
    if (op.op == node->op) put_attributes(node, numbers, file);
    put_marks(node, numbers, file);
    return WEFT_OK;
}

/* ---- reading ----------------------------------------------------------------------------------- */

typedef struct result {
    weft_type type;
    const char *name, *placement;
    uint32_t place_as, frozen;
} result;

typedef struct line {
    int n_out, n_in;
    result out[WEFT_MAX_OUT];
    const weft_op *op;
    weft_value in[WEFT_MAX_IN];
    void *attributes;
    weft_phase phase;
    int64_t scan, again;
    bool repeats;
    weft_origin origin;
} line;

/* A value that there is, below `end`. */
static bool read_id(weft_saved_text *t, int64_t end, uint32_t *id)
{
    int64_t number;
    if (!weft_saved_expect(t, "%") || !weft_saved_whole(t, 1, end - 1, &number)) return false;
    *id = (uint32_t)number;
    return true;
}

static bool read_dtype(weft_saved_text *t, weft_dtype *dtype)
{
    const char *name;
    if (!weft_saved_word(t, &name)) return false;
    *dtype = weft_dtype_find(name);
    return (unsigned)*dtype < WEFT_DTYPES ||
           weft_saved_fail(t, "%s is no dtype; there are %s", name, weft_dtype_names());
}

static bool read_result(weft_saved_text *t, line *l)
{
    result *r = &l->out[l->n_out];
    const int64_t end = t->graph->n_tensors, mine = end + l->n_out;
    int64_t id;
    if (!weft_saved_expect(t, "%") || !weft_saved_whole(t, mine, mine, &id)) return false;
    if (weft_saved_has(t, "called") && !weft_saved_word(t, &r->name)) return false;
    if (!read_dtype(t, &r->type.dtype) || !weft_saved_shape(t, &r->type.shape)) return false;
    if (weft_saved_has(t, "placed") && !weft_saved_word(t, &r->placement)) return false;
    if (weft_saved_has(t, "stored") && !read_id(t, UINT32_MAX, &r->place_as)) return false;
    if (weft_saved_has(t, "frozen") && !read_id(t, end, &r->frozen)) return false;
    l->n_out++;
    return true;
}

static bool read_results(weft_saved_text *t, line *l)
{
    do {
        if (l->n_out == WEFT_MAX_OUT)
            return weft_saved_fail(t, "more than %d results", WEFT_MAX_OUT);
        if (!read_result(t, l)) return false;
    } while (weft_saved_has(t, ","));
    return weft_saved_expect(t, "=");
}

static bool read_op(weft_saved_text *t, line *l)
{
    const char *name;
    int64_t version = 0;
    if (!weft_saved_word(t, &name)) return false;
    if (weft_saved_has(t, "version") && !weft_saved_whole(t, 1, UINT32_MAX, &version)) return false;
    l->op = op_called(name);
    if (l->op == NULL)
        return weft_saved_fail(t,
                               "there is no op %s here; load the plug-in that has it before, or "
                               "take the Weft that saved the program",
                               name);
    if (l->op->version != version)
        return weft_saved_fail(t,
                               "op %s is of version %lld in the file, and of version %u here; load "
                               "the plug-in of that version",
                               name, (long long)version, (unsigned)l->op->version);
    return true;
}

static bool read_operands(weft_saved_text *t, line *l)
{
    if (!weft_saved_expect(t, "(")) return false;
    while (!weft_saved_has(t, ")")) {
        if (l->n_in > 0 && !weft_saved_expect(t, ",")) return false;
        if (l->n_in == WEFT_MAX_IN) return weft_saved_fail(t, "more than %d operands", WEFT_MAX_IN);
        l->in[l->n_in].graph = t->graph;
        if (!read_id(t, t->graph->n_tensors, &l->in[l->n_in].id)) return false;
        l->n_in++;
    }
    return true;
}

static bool read_attributes(weft_saved_text *t, line *l)
{
    const weft_attributes *described = weft_op_attributes(l->op);
    if (described == NULL) return true;
    l->attributes = weft_arena_take(t->graph->arena, described->bytes);
    if (l->attributes == NULL) return weft_saved_fail(t, "no memory for attributes");
    memset(l->attributes, 0, described->bytes);
    return weft_saved_attributes(t, described, l->attributes);
}

static bool read_marks(weft_saved_text *t, line *l)
{
    int64_t number;
    int phase = 0;
    while (phase < WEFT_PHASES && !weft_saved_has(t, weft_phase_name((weft_phase)phase)))
        phase++;
    if (phase == WEFT_PHASES) return weft_saved_fail(t, "\"%.30s\" is no phase", t->at);
    l->phase = (weft_phase)phase;
    const int64_t last = t->graph->n_scans == 0 ? 0 : t->graph->n_scans - 1;
    if (weft_saved_has(t, "in") && !weft_saved_whole(t, 1, last, &l->scan)) return false;
    if (weft_saved_has(t, "again") && !weft_saved_whole(t, 1, UINT32_MAX, &l->again)) return false;
    l->repeats = weft_saved_has(t, "repeats");
    if (!weft_saved_has(t, "at")) return true;
    if (!weft_saved_word(t, &l->origin.builder) || !weft_saved_word(t, &l->origin.file) ||
        !weft_saved_whole(t, 0, INT32_MAX, &number))
        return false;
    l->origin.line = (int)number;
    return true;
}

/* ---- making it --------------------------------------------------------------------------------- */

/* Whether an owner is a variable, and rows are as many as there are names. */
static bool check_home(weft_saved_text *t, const weft_variable_attributes *a)
{
    int64_t names = 1;
    const bool has_owner = a->owner != 0;
    if (has_owner && (a->owner >= t->graph->n_tensors ||
                      weft_node_of(t->graph, a->owner)->op != &weft_op_variable ||
                      weft_owner_of(t->graph, a->owner) != 0))
        return weft_saved_fail(t, "%%%u is no variable that could have a slot", a->owner);
    for (const char *c = a->rows; c != NULL && *c != 0; c++)
        names += *c == ' ';
    if (a->rows != NULL && (a->type.shape.n_dims == 0 || a->type.shape.dims[0].size != names))
        return weft_saved_fail(t, "%lld names of rows do not fit the variable", (long long)names);
    return true;
}

static weft_value emit(weft_saved_text *t, const line *l)
{
    const weft_attributes *described = weft_op_attributes(l->op);
    const weft_variable_attributes *home = l->attributes;
    if (l->op != &weft_op_input && l->op != &weft_op_variable)
        return weft_emit_own(t->graph, l->op, l->in, l->n_in, l->attributes,
                             described == NULL ? 0 : described->bytes);
    if (home->name == NULL || l->n_in > 0 || !check_home(t, home)) return weft_no_value(t->graph);
    return weft_emit_home_of(t->graph, l->op, home->name, home->type, home->initial, home->owner,
                             home->rows);
}

static bool is_type(const weft_type *a, const weft_type *b)
{
    if (a->dtype != b->dtype || a->shape.n_dims != b->shape.n_dims) return false;
    for (int d = 0; d < a->shape.n_dims; d++)
        if (strcmp(a->shape.dims[d].name, b->shape.dims[d].name) != 0 ||
            a->shape.dims[d].size != b->shape.dims[d].size)
            return false;
    return true;
}

static bool keep(weft_saved_text *t, const line *l, weft_value first)
{
    weft_node *node = &t->graph->nodes[t->graph->n_nodes - 1];
    if (node->n_out != l->n_out)
        return weft_saved_fail(t, "%s has %d results, not %d", l->op->name, node->n_out, l->n_out);
    for (int i = 0; i < l->n_out; i++) {
        const result *r = &l->out[i];
        weft_tensor *tensor = &t->graph->tensors[first.id + (uint32_t)i];
        if (!is_type(&tensor->type, &r->type))
            return weft_saved_fail(t,
                                   "result %d of %s is of another type in the file than the op "
                                   "gives it",
                                   i, l->op->name);
        tensor->name = r->name;
        tensor->placement = r->placement;
        tensor->place_as = r->place_as;
        tensor->frozen = r->frozen;
        tensor->placed_by = r->placement != NULL ? l->origin : (weft_origin){0};
    }
    node->again = (uint32_t)l->again;
    node->repeats = l->repeats;
    node->origin = l->origin;
    return true;
}

bool weft_saved_node(weft_saved_text *t)
{
    line l = {.n_out = 0};
    weft_graph *graph = t->graph;
    if (!read_results(t, &l) || !read_op(t, &l) || !read_operands(t, &l)) return false;
    if (!read_attributes(t, &l) || !read_marks(t, &l)) return false;
    graph->phase = l.phase;
    graph->scan = (uint32_t)l.scan;
    const weft_value first = emit(t, &l);
    graph->scan = 0;
    if (graph->error.status != WEFT_OK) return weft_saved_fail(t, "%s", graph->error.message);
    if (t->error->status != WEFT_OK) return false;
    if (first.id == 0) return weft_saved_fail(t, "%s has no name", l.op->name);
    return keep(t, &l, first);
}
