/* simplify: common-subexpression elimination and dead-code elimination. Equal nodes become one, unused ones go.
 *
 * Two nodes are equal when op, operands, attributes and placement are, and the first is where the second can read it:
 * not in the body of another scan. Ops that stand for memory (input, variable, assign, group; what a scan carries)
 * are never merged. Gradients rely on this: they ask again for what the forward pass has, and get it. Nodes that are
 * to be computed again say so (weft_node.again).
 */
#include "rewrite.h"

#include <string.h>

static bool stands_for_memory(const weft_op *op)
{
    return op == &weft_op_input || op == &weft_op_variable || op == &weft_op_assign ||
           op == &weft_op_group || op == &weft_op_scan_trip || op == &weft_op_scan_carry ||
           op == &weft_op_scan_next || op == &weft_op_scan_guard;
}

/* Eight bytes at a time; the upper bits come down, since the lower ones choose the place in the table. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, byte + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Is node `id` of the new graph what `node` would become with operands `in`? */
static bool is_equal(const weft_rewrite *rewrite, uint32_t id, const weft_node *node,
                     const uint32_t *in)
{
    const weft_node *other = &rewrite->to->nodes[id];
    if (other->op != node->op || other->n_in != node->n_in || other->again != node->again ||
        other->attribute_bytes != node->attribute_bytes ||
        !weft_scan_holds(rewrite->from, other->scan, node->scan))
        return false;
    for (int i = 0; i < node->n_in; i++)
        if (other->in[i] != in[i]) return false;
    if (node->attribute_bytes > 0 &&
        memcmp(other->attributes, node->attributes, node->attribute_bytes) != 0)
        return false;
    for (uint32_t i = 0; i < node->n_out; i++) {
        const weft_tensor *a = &rewrite->from->tensors[node->out + i];
        const weft_tensor *b = &rewrite->to->tensors[other->out + i];
        uint32_t place_as = a->place_as ? rewrite->value[a->place_as] : 0;
        if (!same_text(a->placement, b->placement) || place_as != b->place_as) return false;
    }
    return true;
}

typedef struct table {
    uint32_t *ids; /* open addressing; 0: free */
    uint32_t mask;
} table;

/* The equal node of the new graph, or a fresh copy. Returns its first result. */
static uint32_t find_or_copy(weft_rewrite *rewrite, table *seen, const weft_node *node,
                             const uint32_t *in)
{
    uint64_t hash = mix(0xCBF29CE484222325u, &node->op, sizeof node->op);
    hash = mix(hash, in, node->n_in * sizeof *in);
    hash = mix(hash, &node->again, sizeof node->again);
    if (node->attribute_bytes) hash = mix(hash, node->attributes, node->attribute_bytes);
    uint32_t at = (uint32_t)hash & seen->mask;
    for (; seen->ids[at]; at = (at + 1) & seen->mask)
        if (!stands_for_memory(node->op) && is_equal(rewrite, seen->ids[at], node, in))
            return rewrite->to->nodes[seen->ids[at]].out;
    uint32_t first = weft_node_copy(rewrite->to, rewrite->from, node, in);
    if (first) seen->ids[at] = rewrite->to->tensors[first].node;
    return first;
}

weft_status weft_pass_simplify(weft_plan *plan, weft_error *error)
{
    weft_rewrite rewrite;
    WEFT_TRY(weft_rewrite_begin(plan, &rewrite, error));
    table seen = {.mask = 15};
    while (seen.mask < 2 * rewrite.from->n_nodes)
        seen.mask = 2 * seen.mask + 1;
    seen.ids = weft_arena_take(plan->arena, ((size_t)seen.mask + 1) * sizeof *seen.ids);
    if (!seen.ids) {
        weft_graph_like_destroy(&rewrite.to);
        return weft_fail_memory(error, seen.mask * sizeof *seen.ids);
    }
    for (uint32_t id = 1; id < rewrite.from->n_nodes; id++) {
        const weft_node *node = &rewrite.from->nodes[id];
        if (!rewrite.is_live[id] || rewrite.to->error.status != WEFT_OK) continue;
        uint32_t in[UINT8_MAX];
        for (int i = 0; i < node->n_in; i++)
            in[i] = rewrite.value[node->in[i]];
        uint32_t first = find_or_copy(&rewrite, &seen, node, in);
        for (uint32_t i = 0; i < node->n_out && first; i++) {
            rewrite.value[node->out + i] = first + i;
            weft_rewrite_tags(&rewrite, node->out + i, first + i);
        }
    }
    return weft_rewrite_end(&rewrite, error);
}
