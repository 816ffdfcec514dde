/* print.c: the graph as text, a node a line, and the names of its parts. */
#include "ir.h"
#include "text.h"

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

void weft_decimal_print(int64_t number, FILE *file)
{
    char text[24], *at = text + sizeof text - 1;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) *--at = '-';
    fputs(at, file);
}

void weft_id_print(uint32_t id, FILE *file)
{
    fputc('%', file);
    weft_decimal_print(id, file);
}

static void print_tensor(const weft_graph *graph, uint32_t id, FILE *file)
{
    const weft_tensor *tensor = &graph->tensors[id];
    char shape[512];
    weft_shape_print(&tensor->type.shape, shape, sizeof shape);
    weft_id_print(id, file);
    if (tensor->name != NULL) {
        fputc(' ', file);
        fputs(tensor->name, file);
    }
    fputc(' ', file);
    fputs(weft_dtype_name(tensor->type.dtype), file);
    fputs(shape, file);
    if (tensor->placement != NULL) fprintf(file, " placed \"%s\"", tensor->placement);
    if (tensor->place_as != 0) {
        fputs(" stored as ", file);
        weft_id_print(tensor->place_as, file);
    }
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
    const locale_t before = weft_text_plain();
    for (uint32_t n = 1; n < graph->n_nodes; n++) {
        const weft_node *node = &graph->nodes[n];
        char origin[160];
        if (node->scan != 0) fprintf(file, "in scan %u: ", node->scan);
        for (uint32_t i = 0; i < node->n_draws; i++)
            fprintf(file, "drawn in scan %u%s%s: ", node->draws[i].scan,
                    node->draws[i].is_over ? " over a dim" : "",
                    node->draws[i].is_reversed ? " reversed" : "");
        for (uint32_t i = 0; i < node->n_out; i++) {
            if (i > 0) fputs(", ", file);
            print_tensor(graph, node->out + i, file);
        }
        fputs(" = ", file);
        fputs(node->op->name, file);
        if (node->op->version != 0) fprintf(file, " version %u", (unsigned)node->op->version);
        fputc('(', file);
        for (int i = 0; i < node->n_in; i++) {
            fputs(i > 0 ? ", " : "", file);
            weft_id_print(node->in[i], file);
        }
        fputc(')', file);
        print_attributes(node, file);
        fputs("  ", file);
        fputs(weft_phase_name((weft_phase)node->phase), file);
        if (with_origins && node->origin.file != NULL) {
            weft_origin_print(node, origin, sizeof origin);
            fprintf(file, " %s", origin);
        }
        fputc('\n', file);
    }
    weft_text_end(before);
}
