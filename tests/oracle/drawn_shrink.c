/* drawn_shrink.c: of a graph that is wrong the smallest that still is, and how it is told. */
#include "drawn.h"

#include <string.h>

#include "ir.h"

/* ---- smaller ---------------------------------------------------------------------------------------- */

typedef struct shrinking {
    const weft_oracle *oracle;
    drawn graph; /* the smallest so far that is wrong */
    drawn_wrong is_wrong;
    void *context;
    int n_left; /* graphs that may be tried */
} shrinking;

/* True when `smaller` is still wrong: then it is the graph. */
static bool take(shrinking *s, const drawn *smaller)
{
    if (memcmp(smaller, &s->graph, sizeof *smaller) == 0 || s->n_left-- <= 0) return false;
    if (!s->is_wrong(s->context, smaller)) return false;
    s->graph = *smaller;
    return true;
}

/* Who read it reads what it read, or an input of its own. */
static drawn without_op(const drawn *g, int gone)
{
    drawn out = *g;
    out.n_ops--;
    for (int i = gone; i < out.n_ops; i++)
        out.ops[i] = g->ops[i + 1];
    memset(&out.ops[out.n_ops], 0, sizeof out.ops[0]);
    for (int i = gone; i < out.n_ops; i++)
        for (int k = 0; k < DRAWN_OPERANDS; k++) {
            int *from = &out.ops[i].from[k];
            *from = *from == gone ? g->ops[gone].from[0] : *from > gone ? *from - 1 : *from;
        }
    return out;
}

static bool fewer_ops(shrinking *s)
{
    bool any = false;
    for (int i = s->graph.n_ops - 1; i >= 0 && s->graph.n_ops > 1; i--) {
        if (i >= s->graph.n_ops) continue;
        const drawn smaller = without_op(&s->graph, i);
        any |= take(s, &smaller);
    }
    return any;
}

#define TRY(change)                                                                                \
    do {                                                                                           \
        drawn smaller = s->graph;                                                                  \
        change;                                                                                    \
        any |= take(s, &smaller);                                                                  \
    } while (0)

static bool plainer_ops(shrinking *s)
{
    bool any = false;
    for (int i = 0; i < s->graph.n_ops; i++) {
        TRY(smaller.ops[i].trips = 0);
        TRY(smaller.ops[i].is_part = false);
        TRY(smaller.ops[i].places = false);
        TRY(smaller.ops[i].has_partial = false);
        TRY(smaller.ops[i].is_plain = true);
        for (int k = 0; k < DRAWN_OPERANDS; k++)
            TRY(smaller.ops[i].from[k] = DRAWN_FRESH);
        if (s->graph.ops[i].what->dtypes >> WEFT_F64 & 1) TRY(smaller.ops[i].dtype = WEFT_F64);
        TRY(smaller.ops[i].seed = 1);
    }
    return any;
}

static bool less_around(shrinking *s)
{
    bool any = false;
    TRY(smaller.derivatives = 0);
    TRY(smaller.derivatives = smaller.derivatives > 1 ? 1 : smaller.derivatives);
    TRY(smaller.policy = 0);
    TRY(smaller.options = (weft_compile_options){0});
    for (int r = s->graph.n_rules - 1; r >= 0; r--)
        TRY(memmove(&smaller.rules[r], &smaller.rules[r + 1],
                    sizeof smaller.rules[0] * (size_t)(DRAWN_RULES - 1 - r));
            smaller.n_rules--);
    return any;
}

static bool fewer_ranks(shrinking *s)
{
    for (int m = 0; m < s->oracle->n_meshes; m++) {
        drawn smaller = s->graph;
        smaller.mesh = s->oracle->meshes[m];
        if (weft_mesh_n_ranks(smaller.mesh) < weft_mesh_n_ranks(s->graph.mesh) && take(s, &smaller))
            return true;
    }
    return false;
}

static bool smaller_dims(shrinking *s)
{
    bool any = false;
    for (int d = 0; d < CASE_DIMS; d++)
        for (int64_t size = 1; size < s->graph.sizes[d] && size < 4; size++)
            TRY(smaller.sizes[d] = size);
    return any;
}

drawn drawn_shrunk(const weft_oracle *oracle, const drawn *graph, drawn_wrong is_wrong,
                   void *context)
{
    shrinking s = {oracle, *graph, is_wrong, context, 2000};
    bool any = true;
    while (any && s.n_left > 0) {
        any = fewer_ops(&s);
        any |= less_around(&s);
        any |= plainer_ops(&s);
        any |= fewer_ranks(&s);
        if (!any) any = smaller_dims(&s);
    }
    return s.graph;
}

/* ---- told -------------------------------------------------------------------------------------------- */

static void print_op(const drawn_op *op, int number, FILE *file)
{
    fprintf(file, "    v%d = %s(%s", number, op->what->name, weft_dtype_name(op->dtype));
    int n = DRAWN_OPERANDS;
    while (n > 0 && op->from[n - 1] == DRAWN_FRESH)
        n--;
    for (int k = 0; k < n; k++)
        if (op->from[k] == DRAWN_FRESH)
            fprintf(file, ", an input");
        else
            fprintf(file, ", v%d", op->from[k]);
    fprintf(file, ");");
    if (op->trips > 0) fprintf(file, " in a scan of %d", op->trips);
    if (op->is_part) fprintf(file, " in a part");
    if (op->places) fprintf(file, " placed");
    if (op->has_partial) fprintf(file, " of partial sums");
    fprintf(file, "\n");
}

void drawn_print(const drawn *g, FILE *file)
{
    char layout[DRAWN_RULES * (DRAWN_TEXT + 32)];
    drawn_how how = {g, 0};
    weft_oracle_build b = {.graph = weft_graph_create(77), .argument = &how};
    drawn_layout(g, layout, sizeof layout);
    fprintf(file, "  seed %llu, mesh %s, layout \"%s\"%s, derivatives %d\n",
            (unsigned long long)g->seed, weft_mesh_text(g->mesh), layout,
            g->policy ? ", with a policy" : "", g->derivatives);
    if (g->extremes != 0) fprintf(file, "  extremes 0x%x of inputs\n", g->extremes);
    for (int i = 0; i < g->n_ops; i++)
        print_op(&g->ops[i], i, file);
    drawn_build(&b);
    weft_graph_print(b.graph, false, file);
    for (int k = 0; k < b.n_outputs; k++)
        fprintf(file, "%s%%%u%s", k > 0 ? ", " : "  outputs ", b.outputs[k].id,
                k + 1 == b.n_outputs ? "\n" : "");
    weft_graph_destroy(&b.graph);
}
