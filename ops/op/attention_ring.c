/* attention_ring: attention where rows of q and rows of k and v are split over the same axes, without gathering k and v.
 *
 * Rows become [blocks, rows of a block], and the blocks are what is split. A turn is attention of each block of q with the block of
 * k and v that lies so many before it, which is seen through a window: so it comes by a border, while an earlier turn is
 * computed, and is gone after it. A turn leaves a result and its logsumexp, and these are combined; the gradient's dk and dv go
 * back to where their rows are. Turns in which no block of q sees anything there are not: of causal rows those that lie behind, with
 * a window those that it does not reach.
 *
 * In a causal ring the last rank sees everything and the first only itself. Balanced, rank c of n has blocks c and 2n - 1 - c of
 * 2n, a part of each: then all see as much. q, k, v, the result and their gradients go there and back.
 * source  Liu et al. 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context"; Brandon et al. 2023, "Striped
 *         Attention", for the balance
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
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
    if (most < from || least > window) return 0;
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

/* ---- a ring ---------------------------------------------------------------------------------- */

/* Element c of a part of the blocks has the one of this number. */
typedef struct part {
    int64_t first, step;
} part;

typedef struct ring {
    const weft_attention_attributes *attributes;
    int64_t n;     /* elements of the dim of blocks: ranks */
    int64_t n_all; /* blocks that rows are cut into */
    int n_parts;   /* 2: balanced */
    part parts[2];
    int64_t n_query, n_memory; /* rows of a block */
} ring;

static ring ring_of(const weft_site *site, int64_t n, bool is_balanced)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape;
    ring r = {.attributes = a,
              .n = n,
              .n_all = is_balanced ? 2 * n : n,
              .n_parts = is_balanced ? 2 : 1,
              .parts = {{0, 1}, {2 * n - 1, -1}}};
    r.n_query = q->dims[weft_shape_find(q, a->query)].size / r.n_all;
    r.n_memory = k->dims[weft_shape_find(k, a->memory)].size / r.n_all;
    return r;
}

/* How much element c of a part of q sees of element m of one of k and v. */
static double seen_between(const ring *r, int of_q, int64_t c, int of_k, int64_t m)
{
    const part *q = &r->parts[of_q], *k = &r->parts[of_k];
    const rows query = {(q->first + q->step * c) * r->n_query, r->n_query},
               memory = {(k->first + k->step * m) * r->n_memory, r->n_memory};
    return seen_of(r->attributes, query, memory);
}

/* A part of q and one of k and v in a turn. */
typedef struct meeting {
    int of_q, of_k;
    int64_t turn;
} meeting;

static bool sees_any(const ring *r, meeting m)
{
    bool any = false;
    for (int64_t c = 0; c < r->n; c++)
        if (c >= m.turn && c < r->n + m.turn)
            any = any || seen_between(r, m.of_q, c, m.of_k, c - m.turn) > 0;
    return any;
}

/* Turn number i: 0, 1, -1, 2, -2, ... */
static int64_t turn_of(int64_t i)
{
    return i % 2 == 1 ? (i + 1) / 2 : -i / 2;
}

static int64_t count_turns(const ring *r)
{
    return 2 * r->n - 1;
}

/* ---- writing it ------------------------------------------------------------------------------ */

typedef struct writing {
    ring r;
    weft_dim query, memory;           /* as operands have them */
    weft_dim query_rows, memory_rows; /* of a block */
    weft_value k[2], v[2];            /* parts */
} writing;

/* One dim as two. */
static weft_shape cut_dim(const weft_shape *shape, weft_dim outer, weft_dim inner)
{
    weft_shape cut = {.n_dims = 0};
    for (int d = 0; d < shape->n_dims; d++) {
        const bool is_it = strcmp(shape->dims[d].name, outer.name) == 0;
        cut.dims[cut.n_dims++] = is_it ? outer : shape->dims[d];
        if (is_it) cut.dims[cut.n_dims++] = inner;
    }
    return cut;
}

/* The blocks of a part, of a tensor with such rows; and back, with zeros for those that are not its. */
static weft_value take_part(const writing *w, weft_value x, weft_dim rows, weft_dim of_block,
                            int which)
{
    const part *p = &w->r.parts[which];
    const weft_dim all = {rows.name, w->r.n_all}, some = {rows.name, w->r.n};
    const weft_shape shape = *weft_shape_of(x);
    x = weft_reshape(x, cut_dim(&shape, all, of_block));
    return w->r.n_parts == 1 ? x : weft_reindex(x, all, some, p->step, p->first, 1);
}

static weft_value join_parts(const writing *w, const weft_value parts[2], weft_dim rows,
                             weft_shape to)
{
    const weft_dim all = {rows.name, w->r.n_all}, some = {rows.name, w->r.n};
    weft_value x = parts[0];
    for (int i = 0; i < w->r.n_parts && w->r.n_parts > 1; i++) {
        const part *p = &w->r.parts[i];
        weft_value y = weft_reindex(parts[i], some, all, p->step, -p->step * p->first, 1);
        x = i == 0 ? y : weft_add(x, y);
    }
    return weft_reshape(x, to);
}

static writing begin_writing(weft_vjp *vjp, const weft_form *form, bool is_balanced)
{
    writing w = {.r = ring_of(vjp->site, form->n_ranks, is_balanced)};
    const weft_attention_attributes *a = w.r.attributes;
    w.query = weft_dim_of(vjp->in[0], a->query), w.memory = weft_dim_of(vjp->in[1], a->memory);
    w.query_rows = weft_dim_beside(vjp->graph, w.query);
    w.memory_rows = weft_dim_beside(vjp->graph, w.memory);
    w.query_rows.size = w.r.n_query, w.memory_rows.size = w.r.n_memory;
    for (int i = 0; i < w.r.n_parts; i++) {
        w.k[i] = take_part(&w, vjp->in[1], w.memory, w.memory_rows, i);
        w.v[i] = take_part(&w, vjp->in[2], w.memory, w.memory_rows, i);
    }
    return w;
}

static weft_attention_attributes attributes_of(const writing *w, const meeting *m)
{
    const part *of_q = &w->r.parts[m->of_q], *of_k = &w->r.parts[m->of_k];
    weft_attention_attributes a;
    memcpy(&a, w->r.attributes, sizeof a);
    a.query = a.column = w->query_rows.name, a.memory = w->memory_rows.name;
    a.blocks = w->query.name, a.memory_blocks = w->memory.name;
    a.n_blocks = w->r.n, a.turn = m->turn;
    a.query_first = of_q->first, a.query_step = of_q->step;
    a.memory_first = of_k->first, a.memory_step = of_k->step;
    return a;
}

/* A result and the logsumexp of its scores. */
typedef struct state {
    weft_value y, sums;
} state;

static weft_value number(weft_value like, double value)
{
    return weft_constant(like.graph, weft_dtype_of(like), WEFT_SCALAR, value);
}

/* exp(sums - top), 0 where nothing was seen: top is finite. */
static weft_value weight(weft_value sums, weft_value top)
{
    return weft_exp(weft_sub(sums, top));
}

static state combine(state a, state b)
{
    if (a.y.id == 0) return b;
    weft_value top = weft_maximum(weft_maximum(a.sums, b.sums), number(a.sums, -1e30));
    weft_value of_a = weight(a.sums, top), of_b = weight(b.sums, top);
    weft_value all = weft_add(of_a, of_b);
    weft_value over = weft_div(
        number(all, 1.0), weft_where(weft_greater(all, number(all, 0.0)), all, number(all, 1.0)));
    weft_value y =
        weft_add(weft_mul(a.y, weft_mul(of_a, over)), weft_mul(b.y, weft_mul(of_b, over)));
    return (state){y, weft_add(top, weft_log(all))};
}

static state attend(const writing *w, weft_value q, int of_q)
{
    state all = {.y = weft_no_value(q.graph)};
    for (int64_t i = 0; i < count_turns(&w->r); i++)
        for (int of_k = 0; of_k < w->r.n_parts; of_k++) {
            const meeting m = {of_q, of_k, turn_of(i)};
            if (!sees_any(&w->r, m)) continue;
            const weft_attention_attributes a = attributes_of(w, &m);
            const weft_value in[] = {q, w->k[of_k], w->v[of_k]};
            weft_value y = weft_emit(q.graph, &weft_op_attention, in, 3, &a, sizeof a);
            all = combine(all, (state){y, weft_result(y, 1)});
        }
    return all;
}

static void write_forward(weft_vjp *vjp, const weft_form *form, bool is_balanced)
{
    const writing w = begin_writing(vjp, form, is_balanced);
    weft_value y[2], sums[2];
    for (int i = 0; i < w.r.n_parts; i++) {
        const state s = attend(&w, take_part(&w, vjp->in[0], w.query, w.query_rows, i), i);
        y[i] = s.y, sums[i] = s.sums;
    }
    for (int o = 0; o < 2; o++)
        vjp->out[o] = join_parts(&w, o == 0 ? y : sums, w.query, vjp->site->out[o].shape);
}

static weft_value add_to(weft_value sum, weft_value x)
{
    return sum.id == 0 ? x : weft_add(sum, x);
}

/* Gradients of parts of q, k and v. */
typedef struct slopes {
    weft_value q[2], k[2], v[2];
} slopes;

/* What a turn gives to rows of k or v goes back to where these are. */
static weft_value send_back(const writing *w, weft_value x, const meeting *m)
{
    const weft_dim here = {w->query.name, w->r.n}, there = {w->memory.name, w->r.n};
    return weft_reindex(x, here, there, 1, m->turn, 1);
}

/* rows: q, y, its logsumexp and dy, of a part of q. */
static void differentiate(const writing *w, const weft_value rows[4], int of_q, slopes *d)
{
    for (int64_t i = 0; i < count_turns(&w->r); i++)
        for (int of_k = 0; of_k < w->r.n_parts; of_k++) {
            const meeting m = {of_q, of_k, turn_of(i)};
            if (!sees_any(&w->r, m)) continue;
            const weft_attention_attributes a = attributes_of(w, &m);
            const weft_value in[] = {rows[0], w->k[of_k], w->v[of_k], rows[1], rows[2], rows[3]};
            weft_value one = weft_emit(rows[0].graph, &weft_op_attention_grad, in, 6, &a, sizeof a);
            d->q[of_q] = add_to(d->q[of_q], one);
            d->k[of_k] = add_to(d->k[of_k], send_back(w, weft_result(one, 1), &m));
            d->v[of_k] = add_to(d->v[of_k], send_back(w, weft_result(one, 2), &m));
        }
}

static void write_gradient(weft_vjp *vjp, const weft_form *form, bool is_balanced)
{
    const writing w = begin_writing(vjp, form, is_balanced);
    slopes d;
    for (int i = 0; i < 2; i++)
        d.q[i] = d.k[i] = d.v[i] = weft_no_value(vjp->graph);
    for (int i = 0; i < w.r.n_parts; i++) {
        weft_value rows[4];
        for (int k = 0; k < 4; k++)
            rows[k] = take_part(&w, vjp->in[k == 0 ? 0 : 2 + k], w.query, w.query_rows, i);
        differentiate(&w, rows, i, &d);
    }
    vjp->out[0] = join_parts(&w, d.q, w.query, vjp->site->out[0].shape);
    vjp->out[1] = join_parts(&w, d.k, w.memory, vjp->site->out[1].shape);
    vjp->out[2] = join_parts(&w, d.v, w.memory, vjp->site->out[2].shape);
}

static void write_ring(weft_vjp *vjp, const weft_form *form)
{
    (vjp->site->n_out > 2 ? write_gradient : write_forward)(vjp, form, false);
}

static void write_balanced(weft_vjp *vjp, const weft_form *form)
{
    (vjp->site->n_out > 2 ? write_gradient : write_forward)(vjp, form, true);
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* Written down turn by turn. */
enum { MOST_RANKS = 64 };

/* Bytes of an operand on a rank, were the axes of the rows not there. */
static double bytes_of(const weft_site *site, const weft_spec *in, const weft_mesh *mesh, int i,
                       uint32_t rows)
{
    double bytes = weft_count_of(&site->in[i].shape) * (double)weft_dtype_bytes(site->in[i].dtype);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (!(rows >> a & 1) && weft_spec_state(&in[i], site->in[i].shape.n_dims, a) >= 0)
            bytes /= weft_mesh_axis_size(mesh, a);
    return bytes;
}

/* The axes that split a dim; 0: they are not those of the other, in its order. */
static uint32_t axes_of(const weft_spec *a, int dim, const weft_spec *b, int other)
{
    uint32_t axes = 0;
    if (a->n_split[dim] != b->n_split[other]) return 0;
    for (int i = 0; i < a->n_split[dim]; i++) {
        if (a->split[dim][i] != b->split[other][i]) return 0;
        axes |= 1u << a->split[dim][i];
    }
    return axes;
}

static int64_t ranks_along(const weft_mesh *mesh, uint32_t axes)
{
    int64_t n = 1;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (axes >> a & 1) n *= weft_mesh_axis_size(mesh, a);
    return n;
}

/* The axes over which there can be a ring; 0: none. */
static uint32_t ring_axes(const weft_site *site, const weft_spec *in, const weft_mesh *mesh)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape, *v = &site->in[2].shape;
    const int of_q = weft_shape_find(q, a->query), of_k = weft_shape_find(k, a->memory),
              of_v = weft_shape_find(v, a->memory);
    if (a->blocks != NULL || a->bias > 0 || a->mask > 0 || q->n_dims >= WEFT_MAX_DIMS) return 0;
    const uint32_t axes = axes_of(&in[0], of_q, &in[1], of_k);
    if (axes != axes_of(&in[0], of_q, &in[2], of_v)) return 0;
    const int64_t n = ranks_along(mesh, axes);
    if (n < 2 || n > MOST_RANKS) return 0;
    return q->dims[of_q].size % n == 0 && k->dims[of_k].size % n == 0 ? axes : 0;
}

/* The sizes that prices are made of: bytes of q, and of k and v together, and work, were the rows not split. */
typedef struct sizes {
    double q, kv, flops;
    bool is_gradient;
    int64_t n;
    uint32_t axes;
} sizes;

static sizes sizes_of(const weft_site *site, const weft_spec *in, const weft_mesh *mesh,
                      uint32_t axes)
{
    sizes s = {.axes = axes, .n = ranks_along(mesh, axes), .is_gradient = site->n_out > 2};
    s.q = bytes_of(site, in, mesh, 0, axes);
    s.kv = bytes_of(site, in, mesh, 1, axes) + bytes_of(site, in, mesh, 2, axes);
    s.flops = (s.is_gradient ? 10.0 : 4.0) * weft_attention_work(site);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (!(axes >> a & 1) && weft_spec_state(&in[0], site->in[0].shape.n_dims, a) >= 0)
            s.flops /= weft_mesh_axis_size(mesh, a);
    return s;
}

static weft_form form_of(const sizes *s, const char *name)
{
    return (weft_form){.name = name, .axes = s->axes, .n_ranks = (int)s->n};
}

/* What the busiest rank does of all that is done: of rows as they are split, or balanced. */
static double busiest(const ring *r)
{
    double all = 0, most = 0;
    for (int64_t c = 0; c < r->n; c++) {
        double mine = 0;
        for (int p = 0; p < r->n_parts * r->n_parts; p++)
            for (int64_t m = 0; m < r->n; m++)
                mine += seen_between(r, p / r->n_parts, c, p % r->n_parts, m);
        all += mine;
        most = fmax(most, mine);
    }
    return all > 0 ? most / all : 1;
}

static weft_form gathered(const sizes *s, const ring *r)
{
    weft_form f = form_of(s, "gathered");
    f.before = s->kv * (double)(s->n - 1) / (double)s->n;
    f.flops = f.last = s->flops * busiest(r);
    f.held = s->is_gradient ? 2 * s->kv : s->kv;
    f.n_exchanges = 2;
    return f;
}

/* Parts of q that have to do with one of k and v in a turn. */
static int count_meetings(const ring *r, int of_k, int64_t turn)
{
    int n = 0;
    for (int of_q = 0; of_q < r->n_parts; of_q++)
        n += sees_any(r, (meeting){of_q, of_k, turn});
    return n;
}

static weft_form ring_form(const sizes *s, const ring *r)
{
    const double times =
        s->is_gradient ? 2 : 1; /* dk and dv go back the way that k and v have come */
    const double of_q = s->q / (double)r->n_all, of_kv = s->kv / (double)r->n_all;
    weft_form f = form_of(s, r->n_parts == 1 ? "ring" : "balanced ring");
    f.write = r->n_parts == 1 ? write_ring : write_balanced;
    f.flops = s->flops * busiest(r);
    int n_meetings = 0, n_turns = 0;
    for (int64_t i = 0; i < count_turns(r); i++)
        for (int of_k = 0; of_k < r->n_parts; of_k++) {
            const int n = count_meetings(r, of_k, turn_of(i));
            n_meetings += n;
            n_turns += n > 0 && i > 0;
        }
    f.beside = times * of_kv * fmin(n_turns, (double)((r->n - 1) * r->n_parts));
    f.n_exchanges = (int)times * 2 * n_turns;
    f.copied = n_meetings * (4 * of_q + (s->is_gradient ? 6 * of_kv : 0));
    f.last = f.flops / fmax(1, n_meetings);
    f.held = times * 2 * of_kv;
    if (r->n_parts == 1) return f;
    f.before = times * (2 * s->q + s->kv) / (double)s->n; /* to balanced places and back */
    f.n_exchanges += (int)times * 8;
    return f;
}

int weft_attention_forms(const weft_site *site, const weft_spec *in, const weft_mesh *mesh,
                         weft_form *forms)
{
    const weft_attention_attributes *a = site->attributes;
    const uint32_t axes = ring_axes(site, in, mesh);
    if (axes == 0) return 0;
    const sizes s = sizes_of(site, in, mesh, axes);
    const ring straight = ring_of(site, s.n, false), balanced = ring_of(site, s.n, true);
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape;
    const int64_t n_query = q->dims[weft_shape_find(q, a->query)].size,
                  n_memory = k->dims[weft_shape_find(k, a->memory)].size;
    int n = 0;
    forms[n++] = gathered(&s, &straight);
    forms[n++] = ring_form(&s, &straight);
    if (a->causal && n_query == n_memory && n_query % (2 * s.n) == 0)
        forms[n++] = ring_form(&s, &balanced);
    return n;
}
