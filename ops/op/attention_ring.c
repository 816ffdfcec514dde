/* attention_ring: attention where rows of q and rows of k and v are split over the same axes, without gathering k and v.
 *
 * Rows become [blocks, rows of a block], and the blocks are split; the last blocks are filled up with masked rows. A
 * turn is attention of each block of q with the block of k and v that is so many before it, read through a window. So
 * it comes by a border, while an earlier turn is computed, and is gone after it. A bias or a mask of memory rows
 * comes as they do; one of query rows has its blocks where these are, with all columns. A turn leaves a result, and
 * the maximum and sum of its rows, and these are combined; the gradient's dk and dv go back to where their rows are.
 * Turns in which no block of q sees anything there are not: of causal rows those that lie behind, with a window those
 * that it does not reach.
 *
 * In a causal ring the last rank sees everything and the first only itself. Balanced, rank c of n has blocks c and 2n - 1 - c of
 * 2n, a part of each: then all see as much. q, k, v, the result and their gradients go there and back.
 * source  Liu et al. 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context"; Brandon et al. 2023, "Striped
 *         Attention", for the balance
 */
#include "attention_ring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weft/ops.h"

/* ---- what is seen ---------------------------------------------------------------------------- */

/* Rows [first, first + n). */
typedef struct rows {
    int64_t first, n;
} rows;

/* How much of some memory rows query rows see, about: all, none, or a half where causal or window cut through. */
static double seen_of(const weft_attention_attributes *a, rows query, rows memory)
{
    const int64_t least = query.first - (memory.first + memory.n - 1),
                  most = query.first + query.n - 1 - memory.first;
    const int64_t window = a->window > 0 ? a->window - 1 : INT64_MAX;
    const int64_t from = a->causal ? 0 : -window;
    if (query.n <= 0 || memory.n <= 0 || most < from || least > window) return 0;
    return least >= from && most <= window ? 1 : 0.5;
}

double weft_attention_blocks_work(const weft_site *site)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape;
    rows query = {.n = q->dims[weft_shape_find(q, a->query)].size},
         memory = {.n = k->dims[weft_shape_find(k, a->memory)].size};
    const double all = weft_count_of(q) * (double)memory.n;
    double seen = 0;
    for (int64_t c = 0; c < a->n_blocks; c++) {
        query.first = (a->query_first + a->query_step * c) * query.n;
        memory.first = (a->memory_first + a->memory_step * (c - a->turn)) * memory.n;
        if (c >= a->turn && c < a->n_blocks + a->turn) seen += seen_of(a, query, memory);
    }
    return all * seen / (double)a->n_blocks;
}

weft_ring weft_ring_of(const weft_site *site, int64_t n, bool is_balanced)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape;
    weft_ring r = {.attributes = a,
                   .n = n,
                   .n_all = is_balanced ? 2 * n : n,
                   .n_parts = is_balanced ? 2 : 1,
                   .parts = {{0, 1}, {2 * n - 1, -1}}};
    r.all_query = q->dims[weft_shape_find(q, a->query)].size;
    r.all_memory = k->dims[weft_shape_find(k, a->memory)].size;
    r.n_query = (r.all_query + r.n_all - 1) / r.n_all;
    r.n_memory = (r.all_memory + r.n_all - 1) / r.n_all;
    return r;
}

/* Those of a block that there are. */
static rows rows_of(const weft_ring_part *part, int64_t c, int64_t n, int64_t all)
{
    const int64_t first = (part->first + part->step * c) * n, left = all - first;
    return (rows){first, left < n ? left : n};
}

double weft_ring_seen(const weft_ring *r, int of_q, int64_t c, int of_k, int64_t m)
{
    const rows query = rows_of(&r->parts[of_q], c, r->n_query, r->all_query),
               memory = rows_of(&r->parts[of_k], m, r->n_memory, r->all_memory);
    const double all = (double)r->n_query * (double)r->n_memory;
    return seen_of(r->attributes, query, memory) * (double)query.n * (double)memory.n / all;
}

bool weft_ring_sees_any(const weft_ring *r, weft_ring_pair m)
{
    bool any = false;
    for (int64_t c = 0; c < r->n; c++)
        if (c >= m.turn && c < r->n + m.turn)
            any = any || weft_ring_seen(r, m.of_q, c, m.of_k, c - m.turn) > 0;
    return any;
}

int64_t weft_ring_turn(int64_t i)
{
    return i % 2 == 1 ? (i + 1) / 2 : -i / 2;
}

int64_t weft_ring_n_turns(const weft_ring *r)
{
    return 2 * r->n - 1;
}

/* ---- rows and blocks ------------------------------------------------------------------------- */

/* Rows as operands have them, and those of a block. */
typedef struct cut {
    weft_dim rows, of_block;
} cut;

enum { BIAS, MASK, SCORES };
typedef struct writing {
    weft_ring r;
    const weft_site *site;
    cut query, memory, column; /* column: the memory rows of bias and mask */
    weft_value k[2], v[2];     /* parts */
    weft_value scores[SCORES][2]
                     [2]; /* bias and mask, parts by query and by column; id 0: there is none */
} writing;

static cut cut_of(weft_graph *graph, weft_dim of, int64_t n)
{
    cut c = {of, weft_dim_beside(graph, of)};
    c.of_block.size = n;
    return c;
}

static bool has(weft_value x, weft_dim dim)
{
    return weft_shape_find(weft_shape_of(x), dim.name) >= 0;
}

/* With the rows that fill up the last blocks, zeros. */
static weft_dim filled(const writing *w, const cut *c)
{
    return (weft_dim){c->rows.name, w->r.n_all * c->of_block.size};
}

/* One dim as two, and two as one. */
static weft_shape cut_dim(const weft_shape *shape, weft_dim outer, weft_dim inner)
{
    weft_shape all = {.n_dims = 0};
    for (int d = 0; d < shape->n_dims; d++) {
        const bool is_it = strcmp(shape->dims[d].name, outer.name) == 0;
        all.dims[all.n_dims++] = is_it ? outer : shape->dims[d];
        if (is_it) all.dims[all.n_dims++] = inner;
    }
    return all;
}

static weft_shape join_dims(const weft_shape *shape, weft_dim outer, weft_dim inner)
{
    weft_shape joined = weft_shape_without(shape, inner.name);
    joined.dims[weft_shape_find(&joined, outer.name)].size = outer.size;
    return joined;
}

/* The blocks of a part, of a tensor with such rows; and back, with zeros for those that are not its. What has no such rows is
 * the same in all parts, and back it is their sum. */
static weft_value take_part(const writing *w, weft_value x, const cut *c, int which)
{
    const weft_ring_part *p = &w->r.parts[which];
    const weft_dim all = {c->rows.name, w->r.n_all}, some = {c->rows.name, w->r.n};
    if (!has(x, c->rows)) return x;
    if (filled(w, c).size != weft_dim_of(x, c->rows.name).size)
        x = weft_reindex(x, c->rows, filled(w, c), 1, 0, 1);
    const weft_shape shape = *weft_shape_of(x);
    x = weft_reshape(x, cut_dim(&shape, all, c->of_block));
    return w->r.n_parts == 1 ? x : weft_reindex(x, all, some, p->step, p->first, 1);
}

static weft_value join_parts(const writing *w, const weft_value parts[2], const cut *c)
{
    const weft_dim all = {c->rows.name, w->r.n_all}, some = {c->rows.name, w->r.n};
    weft_value x = parts[0];
    if (!has(x, c->rows)) return w->r.n_parts == 1 ? x : weft_add(x, parts[1]);
    for (int i = 0; i < w->r.n_parts && w->r.n_parts > 1; i++) {
        const weft_ring_part *p = &w->r.parts[i];
        weft_value y = weft_reindex(parts[i], some, all, p->step, -p->step * p->first, 1);
        x = i == 0 ? y : weft_add(x, y);
    }
    const weft_shape shape = *weft_shape_of(x);
    x = weft_reshape(x, join_dims(&shape, filled(w, c), c->of_block));
    return filled(w, c).size == c->rows.size ? x : weft_reindex(x, filled(w, c), c->rows, 1, 0, 1);
}

static void take_scores(writing *w, const weft_vjp *vjp)
{
    const int which[SCORES] = {w->r.attributes->bias, w->r.attributes->mask};
    for (int s = 0; s < SCORES; s++)
        for (int p = 0; p < w->r.n_parts * w->r.n_parts; p++) {
            const int of_q = p / w->r.n_parts, of_k = p % w->r.n_parts;
            weft_value *part = &w->scores[s][of_q][of_k];
            *part = weft_no_value(vjp->graph);
            if (which[s] == 0) continue;
            *part = take_part(w, vjp->in[which[s]], &w->query, of_q);
            *part = take_part(w, *part, &w->column, of_k);
        }
}

static writing begin_writing(weft_vjp *vjp, const weft_variant *variant, bool is_balanced)
{
    writing w = {.r = weft_ring_of(vjp->site, variant->n_ranks, is_balanced), .site = vjp->site};
    const weft_attention_attributes *a = w.r.attributes;
    w.query = cut_of(vjp->graph, weft_dim_of(vjp->in[0], a->query), w.r.n_query);
    w.memory = cut_of(vjp->graph, weft_dim_of(vjp->in[1], a->memory), w.r.n_memory);
    w.column.rows.name = "";
    if (weft_attention_has_column(a))
        w.column = cut_of(vjp->graph, (weft_dim){a->column, w.memory.rows.size}, w.r.n_memory);
    for (int i = 0; i < w.r.n_parts; i++) {
        w.k[i] = take_part(&w, vjp->in[1], &w.memory, i);
        w.v[i] = take_part(&w, vjp->in[2], &w.memory, i);
    }
    take_scores(&w, vjp);
    return w;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static weft_attention_attributes attributes_of(const writing *w, const weft_ring_pair *m)
{
    const weft_ring_part *of_q = &w->r.parts[m->of_q], *of_k = &w->r.parts[m->of_k];
    weft_attention_attributes a;
    memcpy(&a, w->r.attributes, sizeof a);
    a.query = a.column = w->query.of_block.name, a.memory = w->memory.of_block.name;
    if (w->column.rows.size > 0 && a.bias + a.mask > 0)
        a.column = w->column.of_block.name, a.column_blocks = w->column.rows.name;
    a.blocks = w->query.rows.name, a.memory_blocks = w->memory.rows.name;
    a.n_blocks = w->r.n, a.turn = m->turn;
    a.query_first = of_q->first, a.query_step = of_q->step;
    a.memory_first = of_k->first, a.memory_step = of_k->step;
    a.memory_end = filled(w, &w->memory).size == w->memory.rows.size ? 0 : w->memory.rows.size;
    return a;
}

/* Attention of a meeting, or, after: y, what is kept of its rows and dy, its gradient. */
static weft_value emit_turn(const writing *w, const weft_op *op, weft_value q, weft_ring_pair m,
                            const weft_value *after)
{
    const weft_attention_attributes a = attributes_of(w, &m);
    weft_value in[WEFT_MAX_IN] = {q, w->k[m.of_k], w->v[m.of_k]};
    int n = 3;
    for (int s = 0; s < SCORES; s++)
        if (w->scores[s][m.of_q][m.of_k].id != 0) in[n++] = w->scores[s][m.of_q][m.of_k];
    for (int i = 0; i < 3 && after != NULL; i++)
        in[n++] = after[i];
    return weft_emit(q.graph, op, in, n, &a, sizeof a);
}

/* A result; the maximum of each row's scores, and the sum of exp(score - maximum). */
typedef struct state {
    weft_value y, top, sum;
} state;

static weft_value number(weft_value like, double value)
{
    return weft_constant(like.graph, weft_dtype_of(like), WEFT_SCALAR, value);
}

/* The maximum, 0 where nothing was seen. */
static weft_value base_of(weft_value top)
{
    weft_value sees = weft_greater(top, number(top, -(double)INFINITY));
    return weft_where(sees, top, number(top, 0.0));
}

static weft_value sum_above(state s, weft_value base)
{
    return weft_mul(s.sum, weft_exp(weft_sub(s.top, base)));
}

static state combine(state a, state b)
{
    if (a.y.id == 0) return b;
    weft_value top = weft_maximum(a.top, b.top), base = base_of(top);
    weft_value of_a = sum_above(a, base), of_b = sum_above(b, base);
    weft_value all = weft_add(of_a, of_b);
    weft_value over = weft_div(
        number(all, 1.0), weft_where(weft_greater(all, number(all, 0.0)), all, number(all, 1.0)));
    weft_value of_y = weft_mul(a.y, weft_mul(of_a, over));
    return (state){weft_add(of_y, weft_mul(b.y, weft_mul(of_b, over))), top, all};
}

static weft_dim kept_dim(const writing *w)
{
    return (weft_dim){w->r.attributes->feature, 2};
}

static state state_of(const writing *w, weft_value y)
{
    state s = {.y = y};
    s.top = weft_unstack(weft_result(y, 1), kept_dim(w), 0);
    s.sum = weft_unstack(weft_result(y, 1), kept_dim(w), 1);
    return s;
}

static state attend(const writing *w, weft_value q, int of_q)
{
    state all = {.y = weft_no_value(q.graph)};
    for (int64_t i = 0; i < weft_ring_n_turns(&w->r); i++)
        for (int of_k = 0; of_k < w->r.n_parts; of_k++) {
            const weft_ring_pair m = {of_q, of_k, weft_ring_turn(i)};
            if (!weft_ring_sees_any(&w->r, m)) continue;
            weft_value y = emit_turn(w, &weft_op_attention, q, m, NULL);
            all = combine(all, state_of(w, y));
        }
    return all;
}

static void write_forward(weft_vjp *vjp, const writing *w)
{
    weft_value y[2], top[2], sum[2], kept[2];
    for (int i = 0; i < w->r.n_parts; i++) {
        const state s = attend(w, take_part(w, vjp->in[0], &w->query, i), i);
        y[i] = s.y, top[i] = s.top, sum[i] = s.sum;
    }
    vjp->out[0] = join_parts(w, y, &w->query);
    kept[0] = join_parts(w, top, &w->query);
    kept[1] = join_parts(w, sum, &w->query);
    vjp->out[1] = weft_stack((weft_values){kept, 2}, kept_dim(w));
}

/* ---- gradients ------------------------------------------------------------------------------- */

static weft_value add_to(weft_value sum, weft_value x)
{
    return sum.id == 0 ? x : weft_add(sum, x);
}

/* Gradients of parts of q, k, v and the bias. */
typedef struct slopes {
    weft_value q[2], k[2], v[2], bias[2][2];
} slopes;

/* What a turn gives to rows of k or v goes back to where these are. */
static weft_value send_back(const writing *w, weft_value x, const cut *to, int64_t turn)
{
    const weft_dim here = {w->query.rows.name, w->r.n}, there = {to->rows.name, w->r.n};
    return weft_reindex(x, here, there, 1, turn, 1);
}

/* Of columns of a turn all, zeros where they are another turn's. */
static weft_value spread(const writing *w, weft_value x, int64_t turn)
{
    const weft_dim here = {w->query.rows.name, w->r.n}, there = {w->column.rows.name, w->r.n};
    weft_value row = weft_iota(x.graph, WEFT_I32, here);
    weft_value apart = weft_sub(row, weft_iota(x.graph, WEFT_I32, there));
    weft_value is_its = weft_equal(apart, number(apart, (double)turn));
    return weft_where(is_its, x, number(x, 0.0));
}

static void add_bias(const writing *w, weft_value x, weft_ring_pair m, slopes *d)
{
    weft_value like = w->scores[BIAS][m.of_q][m.of_k];
    weft_value *sum = &d->bias[m.of_q][m.of_k];
    if (!has(like, w->column.rows))
        *sum = add_to(*sum, weft_sum_to(x, like));
    else if (has(like, w->query.rows))
        *sum = add_to(*sum, weft_sum_to(spread(w, x, m.turn), like));
    else
        *sum = add_to(*sum, send_back(w, x, &w->column, m.turn));
}

/* rows: q, y, what is kept of it and dy, of a part of q. */
static void differentiate(const writing *w, const weft_value row[4], int of_q, slopes *d)
{
    for (int64_t i = 0; i < weft_ring_n_turns(&w->r); i++)
        for (int of_k = 0; of_k < w->r.n_parts; of_k++) {
            const weft_ring_pair m = {of_q, of_k, weft_ring_turn(i)};
            if (!weft_ring_sees_any(&w->r, m)) continue;
            weft_value one = emit_turn(w, &weft_op_attention_grad, row[0], m, row + 1);
            weft_value dk = weft_result(one, 1), dv = weft_result(one, 2);
            d->q[of_q] = add_to(d->q[of_q], one);
            d->k[of_k] = add_to(d->k[of_k], send_back(w, dk, &w->memory, m.turn));
            d->v[of_k] = add_to(d->v[of_k], send_back(w, dv, &w->memory, m.turn));
            if (w->r.attributes->bias_gradient) add_bias(w, weft_result(one, 3), m, d);
        }
}

/* Of parts that see nothing of each other: zeros. */
static weft_value bias_of(const writing *w, const slopes *d, int of_q, int of_k)
{
    const weft_value like = w->scores[BIAS][of_q][of_k];
    const weft_shape shape = *weft_shape_of(like);
    if (d->bias[of_q][of_k].id != 0) return d->bias[of_q][of_k];
    return weft_constant(like.graph, weft_dtype_of(like), shape, 0.0);
}

static weft_value join_bias(const writing *w, const slopes *d)
{
    weft_value parts[2];
    for (int i = 0; i < w->r.n_parts; i++) {
        weft_value columns[2];
        for (int k = 0; k < w->r.n_parts; k++)
            columns[k] = bias_of(w, d, i, k);
        parts[i] = join_parts(w, columns, &w->column);
    }
    return join_parts(w, parts, &w->query);
}

/* What is kept of rows; of those that fill up so much that their weights are 0: a bias of keys has large ones otherwise, and inf
 * times their gradient, 0, is none. */
static weft_value kept_of(const writing *w, weft_value kept)
{
    const weft_dim some = w->query.rows, all = filled(w, &w->query);
    if (all.size == some.size) return kept;
    weft_value row = weft_iota(kept.graph, WEFT_I32, all);
    weft_value is_row = weft_less(row, number(row, (double)some.size));
    weft_value more = weft_where(is_row, number(kept, 0.0), number(kept, 1e30));
    return weft_add(weft_reindex(kept, some, all, 1, 0, 1), more);
}

static void write_gradient(weft_vjp *vjp, const writing *w)
{
    slopes d;
    const int n_in = vjp->site->n_in;
    const weft_value of_rows[4] = {vjp->in[0], vjp->in[n_in - 3], kept_of(w, vjp->in[n_in - 2]),
                                   vjp->in[n_in - 1]};
    for (int i = 0; i < 2; i++)
        d.q[i] = d.k[i] = d.v[i] = d.bias[i][0] = d.bias[i][1] = weft_no_value(vjp->graph);
    for (int i = 0; i < w->r.n_parts; i++) {
        weft_value part[4];
        for (int k = 0; k < 4; k++)
            part[k] = take_part(w, of_rows[k], &w->query, i);
        differentiate(w, part, i, &d);
    }
    vjp->out[0] = join_parts(w, d.q, &w->query);
    vjp->out[1] = join_parts(w, d.k, &w->memory);
    vjp->out[2] = join_parts(w, d.v, &w->memory);
    if (w->r.attributes->bias_gradient) vjp->out[3] = join_bias(w, &d);
}

static void write_in_turns(weft_vjp *vjp, const weft_variant *variant, bool is_balanced)
{
    const writing w = begin_writing(vjp, variant, is_balanced);
    (vjp->site->n_out > 2 ? write_gradient : write_forward)(vjp, &w);
}

void weft_ring_write(weft_vjp *vjp, const weft_variant *variant)
{
    write_in_turns(vjp, variant, false);
}

void weft_ring_write_balanced(weft_vjp *vjp, const weft_variant *variant)
{
    write_in_turns(vjp, variant, true);
}
