/* join_parts: in bodies of scans, parts that stand among zeros and are added up become one tensor, joined of them.
 *
 * The gradient of a slice is what comes back for it, among zeros; of several slices of one tensor these are added up. Each
 * such tensor is as large as the whole, and most of it is zeros. Where the slices do not overlap, and there is one for each
 * place, they are joined one behind the other. pass views then has them made in their places.
 *
 * Gradients of bf16 are added up in f32, so there each part is widened before. They are joined as they were, and the whole is widened
 * for those who read the sum. A cast that rounds the sum again reads the whole itself.
 */
#include "reindex.h"
#include "regions.h"
#include "rewrite.h"

#include "weft/ops.h"

enum { MOST_PARTS = 64 };

typedef struct joining {
    weft_rewrite rewrite;
} joining;

/* What one sum has. */
typedef struct parts {
    const weft_node *part[MOST_PARTS]; /* by their places */
    int n;
} parts;

static const weft_reindex_attributes *place_of(const weft_node *part)
{
    return part->attributes;
}

static int64_t begin_of(const weft_node *part)
{
    return -place_of(part)->offset;
}

/* Whole, in its order, among zeros. */
static bool is_part(const weft_node *node)
{
    if (node->op != &weft_op_reindex) return false;
    const weft_reindex_attributes *a = node->attributes;
    return a->stride == 1 && a->over == 1 && a->offset <= 0 && a->size - a->offset <= a->to_size;
}

static weft_dtype dtype_of(const joining *j, uint32_t value)
{
    return j->rewrite.from->tensors[value].type.dtype;
}

static bool add_part(const joining *j, parts *p, const weft_node *node)
{
    int at = p->n;
    if (!is_part(node) || p->n == MOST_PARTS ||
        (p->n > 0 && (place_of(node)->to != place_of(p->part[0])->to ||
                      dtype_of(j, node->out) != dtype_of(j, p->part[0]->out))))
        return false;
    for (; at > 0 && begin_of(p->part[at - 1]) > begin_of(node); at--)
        p->part[at] = p->part[at - 1];
    p->part[at] = node;
    p->n++;
    return true;
}

static const weft_shape *shape_of(const joining *j, uint32_t value)
{
    return &j->rewrite.from->tensors[value].type.shape;
}

/* A cast to the dtype that its operand is computed with: it changes no number. */
static bool is_widening(const weft_graph *graph, const weft_node *node)
{
    if (node->op != &weft_op_cast) return false;
    const weft_dtype from = graph->tensors[node->in[0]].type.dtype,
                     to = graph->tensors[node->out].type.dtype;
    return from != to && weft_dtype_computes(from) == to;
}

/* What a summand is, before it was widened in the sum's own scan. */
static const weft_node *before_widening(const weft_graph *graph, const weft_node *node)
{
    if (!is_widening(graph, node)) return node; /* which may have no operand */
    const weft_node *before = weft_node_of(graph, node->in[0]);
    return before->scan == node->scan ? before : node;
}

/* The summands of a sum. */
static bool find_parts(const joining *j, const weft_node *sum, parts *p)
{
    for (int i = 0; i < 2; i++) {
        const weft_node *node = weft_node_of(j->rewrite.from, sum->in[i]);
        if (node->scan != sum->scan) return false;
        if (!weft_shape_same_dims(shape_of(j, sum->in[i]), shape_of(j, sum->out))) return false;
        const bool is_sum = node->op == &weft_op_add;
        if (!is_sum) node = before_widening(j->rewrite.from, node);
        if (!(is_sum ? find_parts(j, node, p) : add_part(j, p, node))) return false;
    }
    return true;
}

static bool fill_all(const parts *p)
{
    int64_t end = 0;
    for (int i = 0; i < p->n; i++) {
        if (begin_of(p->part[i]) != end) return false;
        end += place_of(p->part[i])->size;
    }
    return end == place_of(p->part[0])->to_size;
}

/* A sum of parts, one for each place. */
static bool can_join(const joining *j, const weft_node *node, parts *p)
{
    *p = (parts){.n = 0};
    return node->scan != 0 && node->op == &weft_op_add && find_parts(j, node, p) && fill_all(p);
}

/* Parts [begin, end), one behind the other, along the dim of the whole. */
static weft_value join(const joining *j, const parts *p, int begin, int end)
{
    weft_graph *to = j->rewrite.to;
    weft_value all = {to, j->rewrite.value[p->part[begin]->in[0]]};
    if (end - begin == 1) return all;
    const int middle = begin + (end - begin) / 2;
    const char *name = place_of(p->part[0])->to;
    const int64_t first = begin_of(p->part[middle]) - begin_of(p->part[begin]);
    const int64_t past = begin_of(p->part[end - 1]) + place_of(p->part[end - 1])->size;
    const weft_dim a = {middle - begin == 1 ? place_of(p->part[begin])->dim : name, first};
    const weft_dim b = {end - middle == 1 ? place_of(p->part[middle])->dim : name,
                        past - begin_of(p->part[middle])};
    return weft_concat(join(j, p, begin, middle), join(j, p, middle, end), a, b,
                       (weft_dim){name, a.size + b.size});
}

static void make_joined(joining *j, const weft_node *sum, const parts *p)
{
    const uint32_t first = j->rewrite.to->n_nodes;
    const weft_value all = weft_cast(weft_transpose(join(j, p, 0, p->n), *shape_of(j, sum->out)),
                                     dtype_of(j, sum->out));
    weft_rewrite_origin(&j->rewrite, sum, first);
    j->rewrite.value[sum->out] = all.id;
}

/* What a cast is of that rounds a whole which was widened for it: nobody tells the two apart. 0: it is no such cast. */
static uint32_t rounded_again(const joining *j, const weft_node *node)
{
    const weft_rewrite *rewrite = &j->rewrite;
    const weft_graph *to = rewrite->to;
    const weft_tensor *old = &rewrite->from->tensors[node->out];
    if (node->op != &weft_op_cast || old->name || old->placement || old->place_as ||
        rewrite->plan->kept[node->out])
        return 0;
    const weft_tensor *operand = &to->tensors[rewrite->value[node->in[0]]];
    const weft_node *widened = &to->nodes[operand->node];
    const bool is_same = is_widening(to, widened) && widened->scan == node->scan &&
                         !operand->placement && !operand->place_as &&
                         to->tensors[widened->in[0]].type.dtype == old->type.dtype;
    return is_same ? widened->in[0] : 0;
}

static void make_one(joining *j, const weft_node *node)
{
    parts p;
    uint32_t whole;
    if (can_join(j, node, &p))
        make_joined(j, node, &p);
    else if ((whole = rounded_again(j, node)) != 0)
        j->rewrite.value[node->out] = whole;
    else
        weft_rewrite_copy(&j->rewrite, node);
}

static bool look(const joining *j)
{
    const weft_graph *from = j->rewrite.from;
    parts p;
    for (uint32_t id = 1; id < from->n_nodes; id++)
        if (j->rewrite.is_live[id] && can_join(j, &from->nodes[id], &p)) return true;
    return false;
}

static void make_all(joining *j)
{
    weft_rewrite *rewrite = &j->rewrite;
    for (uint32_t id = 1; id < rewrite->from->n_nodes && rewrite->to->error.status == WEFT_OK;
         id++) {
        const weft_node *node = &rewrite->from->nodes[id];
        if (!rewrite->is_live[id]) continue;
        rewrite->to->scan = node->scan;
        make_one(j, node);
        for (uint32_t out = node->out; out < node->out + node->n_out; out++)
            if (rewrite->value[out] != 0) weft_rewrite_tags(rewrite, out, rewrite->value[out]);
    }
    rewrite->to->scan = 0;
}

weft_status weft_pass_join_parts(weft_plan *plan, weft_error *error)
{
    joining j;
    if (plan->graph->n_scans == 0) return WEFT_OK;
    WEFT_TRY(weft_rewrite_begin(plan, &j.rewrite, error));
    if (!look(&j)) {
        weft_graph_like_destroy(&j.rewrite.to);
        return WEFT_OK;
    }
    make_all(&j);
    WEFT_TRY(weft_rewrite_end(&j.rewrite, error));
    return weft_pass_simplify(plan, error); /* parts among zeros, which nobody reads any more */
}
