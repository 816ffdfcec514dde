/* scan_next: what a carried value (operand 0) is in the next trip (operand 1). No kernel: the compiler knows it.
 *
 * The result is a token, as that of assign.
 */
#include "ir.h"
#include "weft/ops.h"
#include "weft/scan.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_same_dtype(site, error));
    if (!weft_shape_same_order(&site->in[0].shape, &site->in[1].shape)) {
        char a[160], b[160];
        weft_shape_print(&site->in[0].shape, a, sizeof a);
        weft_shape_print(&site->in[1].shape, b, sizeof b);
        return weft_fail(
            error, WEFT_USAGE,
            "what is carried is %s and in the next trip it would be %s; both must have the "
            "same dims, in every trip",
            a, b);
    }
    site->n_out = 1;
    site->out[0].dtype = WEFT_I32;
    return WEFT_OK;
}

const weft_op weft_op_scan_next = {.name = "scan_next",
                                   .makes_token = true,
                                   .carries_on = true,
                                   .attributes = &weft_attributes_scan,
                                   .infer = infer,
                                   .factors = weft_factors_pass};

uint32_t weft_scan_next_of(const weft_graph *graph, uint32_t carry)
{
    for (uint32_t id = graph->tensors[carry].node; id < graph->n_nodes; id++) {
        const weft_node *node = &graph->nodes[id];
        if (node->op == &weft_op_scan_next && node->in[0] == carry) return node->in[1];
    }
    return 0;
}

weft_value weft_scan_next(weft_value carry, weft_value next)
{
    weft_graph *graph = carry.graph;
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    if (!weft_is_value(carry) || weft_node_of(graph, carry.id)->op != &weft_op_scan_carry)
        return weft_graph_fail(graph, "scan_next: the first argument is not carried; pass what "
                                      "weft_scan_carry returned");
    if (weft_node_of(graph, carry.id)->scan != graph->scan)
        return weft_graph_fail(graph,
                               "scan_next: it is carried in another scan than the innermost open "
                               "one; say what it will be before that scan's weft_scan_end");
    if (weft_scan_next_of(graph, carry.id) != 0)
        return weft_graph_fail(graph,
                               "scan_next: what is carried has a next value already; give it one");
    if (next.graph == graph && weft_shape_same_dims(weft_shape_of(next), weft_shape_of(carry)))
        next = weft_transpose(next, *weft_shape_of(carry));
    const weft_value in[] = {carry, next};
    if (weft_scan_emit(graph, &weft_op_scan_next, in, 2,
                       (weft_scan_attributes){.scan = graph->scan})
            .id == 0)
        return weft_no_value(graph);
    return weft_hand_back(carry);
}
