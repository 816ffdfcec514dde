/* matrices: see matrices.h. All ways are tried: which tensors are copied, and by whose strides the dims of each group are ordered. */
#include "matrices.h"

#include <string.h>

#include "kernels.h"
#include "weft/extend/op.h"

typedef struct group {
    int n;
    matrices_dim dim[WEFT_MAX_DIMS]; /* outermost first */
} group;

/* The tensors that have a group's dims; the first has the plan's usual order. */
static const struct {
    int n, tensor[MATRICES_TENSORS];
} holders[MATRICES_GROUPS] = {
    [MATRICES_M] = {2, {MATRICES_OUT, MATRICES_A}},
    [MATRICES_N] = {2, {MATRICES_OUT, MATRICES_B}},
    [MATRICES_K] = {2, {MATRICES_A, MATRICES_B}},
    [MATRICES_BATCH] = {3, {MATRICES_OUT, MATRICES_A, MATRICES_B}},
};

/* How a tensor that is copied lies: groups, outermost first. */
static const int order_of[MATRICES_TENSORS][3] = {
    [MATRICES_A] = {MATRICES_BATCH, MATRICES_M, MATRICES_K},
    [MATRICES_B] = {MATRICES_BATCH, MATRICES_N, MATRICES_K},
    [MATRICES_OUT] = {MATRICES_BATCH, MATRICES_M, MATRICES_N},
};

/* A product that is launched by itself takes as long as so many elements that are copied. */
enum { LAUNCH = 1 << 20 };

/* ---- dims in groups -------------------------------------------------------------------------- */

static int group_of(const bool has[MATRICES_TENSORS])
{
    for (int g = 0; g < MATRICES_GROUPS; g++) {
        bool is[MATRICES_TENSORS] = {false};
        for (int h = 0; h < holders[g].n; h++)
            is[holders[g].tensor[h]] = true;
        if (memcmp(is, has, sizeof is) == 0) return g;
    }
    return -1;
}

static bool add_dim(group groups[], const weft_call *call, const weft_view *view, int d)
{
    const weft_view *const views[] = {&call->in[0], &call->in[1], &call->out[0]};
    const char *name = view->shape.dims[d].name;
    matrices_dim dim = {.count = weft_view_size(view, d)};
    bool has[MATRICES_TENSORS];
    for (int t = 0; t < MATRICES_TENSORS; t++) {
        has[t] = weft_shape_find(&views[t]->shape, name) >= 0;
        dim.stride[t] = cuda_stride_of(views[t], name);
    }
    const int g = group_of(has);
    if (dim.count == 1) return true;
    if (dim.count == 0 || g < 0) return false;
    groups[g].dim[groups[g].n++] = dim;
    return true;
}

static bool sort_dims(group groups[], const weft_call *call)
{
    const weft_view *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
    bool is_product = true;
    for (int d = 0; d < out->shape.n_dims; d++)
        is_product = is_product && add_dim(groups, call, out, d);
    for (int d = 0; d < a->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, a->shape.dims[d].name) < 0)
            is_product = is_product && add_dim(groups, call, a, d);
    for (int d = 0; d < b->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, b->shape.dims[d].name) < 0 &&
            weft_shape_find(&a->shape, b->shape.dims[d].name) < 0)
            is_product = is_product && add_dim(groups, call, b, d);
    return is_product;
}

static void order_by(group *g, int tensor)
{
    for (int i = 1; i < g->n; i++)
        for (int k = i; k > 0 && g->dim[k - 1].stride[tensor] < g->dim[k].stride[tensor]; k--) {
            const matrices_dim dim = g->dim[k];
            g->dim[k] = g->dim[k - 1];
            g->dim[k - 1] = dim;
        }
}

/* ---- one way --------------------------------------------------------------------------------- */

/* What is copied lies in the order of groups and of their dims. The copy is told before strides are those of scratch. */
static int64_t lay_out(group groups[], int tensor, weft_box_copy *copy)
{
    int64_t count = 1;
    *copy = (weft_box_copy){.run = 1};
    for (int k = 2; k >= 0; k--) {
        group *g = &groups[order_of[tensor][k]];
        for (int d = g->n - 1; d >= 0; d--) {
            matrices_dim *dim = &g->dim[d];
            const int64_t there = dim->stride[tensor];
            weft_box_copy_add(copy, dim->count, tensor == MATRICES_OUT ? count : there,
                              tensor == MATRICES_OUT ? there : count);
            dim->stride[tensor] = count;
            count *= dim->count;
        }
    }
    return count;
}

/* Neighbours are one walk in every tensor: the innermost ones of a group, from `first` on, are one index then. */
static bool joins(const group *g, int first)
{
    for (int d = first; d + 1 < g->n; d++)
        for (int t = 0; t < MATRICES_TENSORS; t++)
            if (g->dim[d].stride[t] != g->dim[d + 1].stride[t] * g->dim[d + 1].count) return false;
    return true;
}

static matrices_dim join(const group *g, int first)
{
    matrices_dim all = {.count = 1};
    for (int d = first; d < g->n; d++) {
        all.count *= g->dim[d].count;
        memcpy(all.stride, g->dim[d].stride, sizeof all.stride);
    }
    return all;
}

static bool join_groups(matrices *p, const group groups[])
{
    const group *batch = &groups[MATRICES_BATCH];
    for (int g = 0; g < MATRICES_BATCH; g++) {
        if (!joins(&groups[g], 0)) return false;
        p->group[g] = join(&groups[g], 0);
    }
    while (!joins(batch, p->n_loops)) {
        p->loop[p->n_loops] = batch->dim[p->n_loops];
        p->n_loops++;
    }
    p->group[MATRICES_BATCH] = join(batch, p->n_loops);
    return true;
}

/* Can `row` be the index of neighbours? An index of one element has any stride. */
static bool is_row(const matrices_dim *row, const matrices_dim *column, int tensor)
{
    const bool is_near = row->count == 1 || row->stride[tensor] == 1;
    return is_near && (column->count == 1 || column->stride[tensor] >= row->count);
}

/* Of the two groups of a tensor the one that is its rows; -1: neither can be. Where both can, the longer: it is read in longer pieces. */
static int row_of(const matrices *p, int tensor, int g, int h)
{
    const bool can_g = is_row(&p->group[g], &p->group[h], tensor),
               can_h = is_row(&p->group[h], &p->group[g], tensor);
    if (can_g && can_h) return p->group[g].count >= p->group[h].count ? g : h;
    return can_g ? g : can_h ? h : -1;
}

static matrices_matrix matrix_of(const matrices *p, int tensor, int row, int column)
{
    const matrices_dim *r = &p->group[row], *c = &p->group[column];
    return (matrices_matrix){.rows = r->count,
                             .columns = c->count,
                             .ld = c->count == 1 ? r->count : c->stride[tensor],
                             .stride = p->group[MATRICES_BATCH].stride[tensor]};
}

/* The result's rows are those of the left operand, its columns those of the right one; both may be turned. */
static bool find_matrices(matrices *p)
{
    const int row = row_of(p, MATRICES_OUT, MATRICES_M, MATRICES_N);
    if (row < 0) return false;
    const int column = row == MATRICES_M ? MATRICES_N : MATRICES_M;
    const int left = row == MATRICES_M ? MATRICES_A : MATRICES_B,
              right = left == MATRICES_A ? MATRICES_B : MATRICES_A;
    const int left_row = row_of(p, left, row, MATRICES_K),
              right_row = row_of(p, right, MATRICES_K, column);
    if (left_row < 0 || right_row < 0) return false;
    p->left = left;
    p->is_turned[0] = left_row == MATRICES_K;
    p->is_turned[1] = right_row != MATRICES_K;
    p->matrix[0] = matrix_of(p, left, left_row, p->is_turned[0] ? row : MATRICES_K);
    p->matrix[1] = matrix_of(p, right, right_row, p->is_turned[1] ? MATRICES_K : column);
    p->matrix[2] = matrix_of(p, MATRICES_OUT, row, column);
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

enum { WAYS_TO_COPY = 1 << MATRICES_TENSORS, WAYS_TO_ORDER = 2 * 2 * 2 * 3 };

/* Way number `order` of by whose strides each group is ordered. */
static void order_groups(group groups[], int order)
{
    for (int g = 0; g < MATRICES_GROUPS; g++) {
        order_by(&groups[g], holders[g].tensor[order % holders[g].n]);
        order /= holders[g].n;
    }
}

/* What it moves, in elements; -1: it is none. */
static int64_t try_way(matrices *p, const group sorted[], int copied, int order)
{
    group groups[MATRICES_GROUPS];
    int64_t cost = 0;
    memcpy(groups, sorted, sizeof groups);
    *p = (matrices){0};
    order_groups(groups, order);
    for (int t = 0; t < MATRICES_TENSORS; t++) {
        p->is_copied[t] = (copied >> t & 1) != 0;
        if (p->is_copied[t]) cost += lay_out(groups, t, &p->copy[t]);
    }
    if (!join_groups(p, groups) || !find_matrices(p)) return -1;
    return cost + (cuda_matrices_products(p) - 1) * LAUNCH;
}

bool cuda_matrices_plan(const weft_call *call, matrices *plan)
{
    group groups[MATRICES_GROUPS] = {0};
    int64_t least = -1;
    if (!sort_dims(groups, call)) return false;
    for (int copied = 0; copied < WAYS_TO_COPY && least != 0; copied++)
        for (int order = 0; order < WAYS_TO_ORDER && least != 0; order++) {
            matrices way;
            const int64_t cost = try_way(&way, groups, copied, order);
            if (cost < 0 || (least >= 0 && cost >= least)) continue;
            least = cost;
            *plan = way;
        }
    return least >= 0;
}

int64_t cuda_matrices_products(const matrices *plan)
{
    int64_t n = 1;
    for (int l = 0; l < plan->n_loops; l++)
        n *= plan->loop[l].count;
    return n;
}

void cuda_matrices_offset(const matrices *plan, int64_t product, int64_t offset[MATRICES_TENSORS])
{
    memset(offset, 0, MATRICES_TENSORS * sizeof *offset);
    for (int l = plan->n_loops - 1; l >= 0; l--) {
        const matrices_dim *loop = &plan->loop[l];
        for (int t = 0; t < MATRICES_TENSORS; t++)
            offset[t] += product % loop->count * loop->stride[t];
        product /= loop->count;
    }
}
