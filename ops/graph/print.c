/* print.c: the graph as text, a node a line, and the names of its parts. */
#include "ir.h"

const char *weft_phase_name(weft_phase phase)
{
    static const char *const names[WEFT_PHASES] = {"forward", "backward", "update"};
    return (unsigned)phase < WEFT_PHASES ? names[phase] : "?";
}

int weft_origin_print(const weft_node *node, char *text, size_t bytes)
{
    const weft_origin *origin = &node->origin;
    if (origin->file == NULL) return snprintf(text, bytes, "%s", node->op->name);
    return snprintf(text, bytes, "%s at %s:%d", origin->builder, origin->file, origin->line);
}

static void print_tensor(const weft_graph *graph, uint32_t id, FILE *file)
{
    const weft_tensor *tensor = &graph->tensors[id];
    char shape[512];
    weft_shape_print(&tensor->type.shape, shape, sizeof shape);
    fprintf(file, "%%%u", id);
    if (tensor->name != NULL) fprintf(file, " %s", tensor->name);
    fprintf(file, " %s%s", weft_dtype_name(tensor->type.dtype), shape);
    if (tensor->placement != NULL) fprintf(file, " placed \"%s\"", tensor->placement);
    if (tensor->place_as != 0) fprintf(file, " stored as %%%u", tensor->place_as);
}

static void print_attributes(const weft_node *node, FILE *file)
{
    const weft_attributes *attributes = weft_op_attributes(node->op);
    if (attributes == NULL) return;
    fputs(" {", file);
    weft_attributes_print(attributes, node->attributes, file);
    fputc('}', file);
}

void weft_graph_print(const weft_graph *graph, bool with_origins, FILE *file)
{
    for (uint32_t n = 1; n < graph->n_nodes; n++) {
        const weft_node *node = &graph->nodes[n];
        char origin[160];
        for (uint32_t i = 0; i < node->n_out; i++) {
            if (i > 0) fprintf(file, ", ");
            print_tensor(graph, node->out + i, file);
        }
        fprintf(file, " = %s", node->op->name);
        if (node->op->version != 0) fprintf(file, " version %u", (unsigned)node->op->version);
        fputc('(', file);
        for (int i = 0; i < node->n_in; i++)
            fprintf(file, "%s%%%u", i > 0 ? ", " : "", node->in[i]);
        fputc(')', file);
        print_attributes(node, file);
        fprintf(file, "  %s", weft_phase_name((weft_phase)node->phase));
        if (with_origins && node->origin.file != NULL) {
            weft_origin_print(node, origin, sizeof origin);
            fprintf(file, " %s", origin);
        }
        fprintf(file, "\n");
    }
}
