/* needed.c: the numbers that values and scans have in a file. A program is written whole, with the graph's numbers; frozen, it is what
 * its outputs need, counted anew: no gradients, updates, or inputs of theirs.
 */
#include "saved.h"

#include <stdlib.h>

typedef struct marking {
    const weft_graph *graph;
    weft_saved_numbers *numbers; /* 1: needed, until they are counted */
    uint32_t *waiting;           /* nodes whose operands are not looked at yet */
    uint32_t n_waiting;
} marking;

static void need(marking *m, uint32_t value)
{
    if (value == 0 || m->numbers->values[value] != 0) return;
    const weft_node *node = weft_node_of(m->graph, value);
    for (uint32_t i = 0; i < node->n_out; i++)
        m->numbers->values[node->out + i] = 1;
    m->waiting[m->n_waiting++] = m->graph->tensors[value].node;
}

/* A body is there with its trip, the condition of its trips, the bodies around it, and the one whose trips it makes again or
 * backwards. */
static void need_scan(marking *m, uint32_t s)
{
    while (s != 0 && m->numbers->scans[s] == 0) {
        const weft_scan *scan = &m->graph->scans[s];
        const uint32_t guard = weft_scan_guard_of(m->graph, s);
        m->numbers->scans[s] = 1;
        need(m, scan->trip);
        if (guard != 0) need(m, m->graph->nodes[guard].out);
        need_scan(m, scan->mirrors);
        need_scan(m, scan->repeats);
        s = scan->parent;
    }
}

/* The node that says what is carried in the next trip. */
static void need_next(marking *m, uint32_t carry)
{
    for (uint32_t n = m->graph->tensors[carry].node + 1; n < m->graph->n_nodes; n++) {
        const weft_node *node = &m->graph->nodes[n];
        if (node->op == &weft_op_scan_next && node->in[0] == carry) need(m, node->out);
    }
}

static void need_home(marking *m, const weft_node *node)
{
    const weft_variable_attributes *home = node->attributes;
    if (node->op == &weft_op_variable) need(m, home->owner);
}

static weft_status need_operands(marking *m, weft_error *error)
{
    while (m->n_waiting > 0) {
        const weft_node *node = &m->graph->nodes[m->waiting[--m->n_waiting]];
        weft_saved_op op;
        WEFT_TRY(weft_saved_op_of(m->graph, node, true, &op, error));
        for (int i = 0; i < op.n_in; i++)
            need(m, op.in[i]);
        need_scan(m, node->scan);
        if (op.op != node->op) continue;
        need_home(m, node);
        if (node->op == &weft_op_scan_carry) need_next(m, node->out);
        if (weft_is_of_scan(node->op)) need_scan(m, (uint32_t)weft_scan_of(node)->scan);
    }
    return WEFT_OK;
}

/* In the order in which they are written. */
static void count(const weft_graph *graph, weft_saved_numbers *numbers)
{
    uint32_t n = 0;
    for (uint32_t id = 1; id < graph->n_tensors; id++)
        if (numbers->values[id] != 0) numbers->values[id] = ++n;
    n = 0;
    for (uint32_t s = 1; s < graph->n_scans; s++)
        if (numbers->scans[s] != 0) numbers->scans[s] = ++n;
}

static void need_all(const weft_graph *graph, weft_saved_numbers *numbers)
{
    for (uint32_t id = 1; id < graph->n_tensors; id++)
        numbers->values[id] = 1;
    for (uint32_t s = 1; s < graph->n_scans; s++)
        numbers->scans[s] = 1;
}

weft_status weft_saved_number(const weft_graph *graph, const weft_saving *what,
                              weft_saved_numbers *numbers, weft_error *error)
{
    const size_t n = (size_t)graph->n_tensors + graph->n_scans + graph->n_nodes + 3;
    numbers->is_frozen = what->is_frozen;
    numbers->values = calloc(n, sizeof *numbers->values);
    if (numbers->values == NULL) return weft_fail_memory(error, n * sizeof *numbers->values);
    numbers->scans = numbers->values + graph->n_tensors + 1;
    marking m = {graph, numbers, numbers->scans + graph->n_scans + 1, 0};
    if (!what->is_frozen) need_all(graph, numbers);
    for (int i = 0; what->is_frozen && i < what->outputs.n_values; i++)
        need(&m, what->outputs.values[i].id);
    WEFT_TRY(need_operands(&m, error));
    count(graph, numbers);
    return WEFT_OK;
}
