/* attention_variants: the variants in which attention and its gradient can be written where rows of k and v are split, and
 * what each costs the rank that has most to do. Where those of q are split over the same axes, blocks of k and v can
 * go round, or heads and rows change places. In any case k and v can be gathered, or stay in place with their partial
 * results combined.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attention_ring.h"
#include "ir.h"
#include "weft/ops.h"

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

/* The axes that split the rows of both k and v; 0: none, or they differ. */
static uint32_t memory_axes(const weft_site *site, const weft_spec *in, const weft_mesh *mesh)
{
    const weft_attention_attributes *a = site->attributes;
    const int of_k = weft_shape_find(&site->in[1].shape, a->memory),
              of_v = weft_shape_find(&site->in[2].shape, a->memory);
    const uint32_t axes = axes_of(&in[1], of_k, &in[2], of_v);
    return a->blocks != NULL || ranks_along(mesh, axes) < 2 ? 0 : axes;
}

/* Are those of q split as they are? */
static bool are_rows_alike(const weft_site *site, const weft_spec *in)
{
    const weft_attention_attributes *a = site->attributes;
    const int of_q = weft_shape_find(&site->in[0].shape, a->query),
              of_k = weft_shape_find(&site->in[1].shape, a->memory);
    return axes_of(&in[0], of_q, &in[1], of_k) != 0;
}

/* Bits of q, k, v, bias and mask: what the gradient reads besides stands where q does. */
static uint32_t operands_of(const weft_attention_attributes *a)
{
    return (1u << (3 + (a->bias > 0) + (a->mask > 0))) - 1;
}

/* Can there be a dim of blocks more? */
static bool has_room(const weft_site *site, int64_t n)
{
    const weft_attention_attributes *a = site->attributes;
    const bool has_column = a->bias + a->mask > 0 && weft_attention_has_column(a);
    return site->in[0].shape.n_dims + 1 + has_column < WEFT_MAX_DIMS && n <= MOST_RANKS;
}

/* The sizes that prices are made of: bytes of q, of k and v together with what is split as they are of bias and mask, of what of
 * these has query rows, and work, were the rows not split. */
typedef struct sizes {
    double q, kv, scores, flops;
    double matrix, matrix_flops; /* all scores, seen or not, and the work for all of them */
    bool is_gradient, is_query_split;
    int64_t n;
    uint32_t axes;
} sizes;

/* Of the bias or the mask. */
static void add_scores(const weft_site *site, const weft_spec *in, const weft_mesh *mesh, int i,
                       sizes *s)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *shape = &site->in[i].shape;
    const int query = weft_shape_find(shape, a->query), column = weft_shape_find(shape, a->column);
    if (i == 0) return;
    const double bytes = bytes_of(site, in, mesh, i, s->axes);
    if (query >= 0)
        s->scores += bytes;
    else if (column >= 0 && in[i].n_split[column] > 0)
        s->kv += bytes;
}

static sizes sizes_of(const weft_site *site, const weft_spec *in, const weft_mesh *mesh,
                      uint32_t axes)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape;
    const double rows = (double)k->dims[weft_shape_find(k, a->memory)].size;
    sizes s = {.axes = axes, .n = ranks_along(mesh, axes), .is_gradient = site->n_out > 2};
    s.is_query_split = are_rows_alike(site, in);
    s.q = bytes_of(site, in, mesh, 0, axes);
    s.kv = bytes_of(site, in, mesh, 1, axes) + bytes_of(site, in, mesh, 2, axes);
    add_scores(site, in, mesh, a->bias, &s);
    add_scores(site, in, mesh, a->mask, &s);
    double each = s.is_gradient ? 10.0 : 4.0;
    for (int x = 0; x < weft_mesh_n_axes(mesh); x++)
        if (!(axes >> x & 1) && weft_spec_state(&in[0], q->n_dims, x) >= 0)
            each /= weft_mesh_axis_size(mesh, x);
    s.flops = each * weft_attention_work(site);
    s.matrix_flops = each * weft_count_of(q) * rows;
    s.matrix = s.q / (double)q->dims[weft_shape_find(q, a->feature)].size * rows;
    return s;
}

static weft_variant variant_of(const sizes *s, const char *name, weft_convert_kind kind)
{
    return (weft_variant){.name = name, .axes = s->axes, .n_ranks = (int)s->n, .kind = kind};
}

/* What the busiest rank does of all that is done: of rows as they are split, or balanced. */
static double busiest(const weft_ring *r)
{
    double all = 0, most = 0;
    for (int64_t c = 0; c < r->n; c++) {
        double mine = 0;
        for (int p = 0; p < r->n_parts * r->n_parts; p++)
            for (int64_t m = 0; m < r->n; m++)
                mine += weft_ring_seen(r, p / r->n_parts, c, p % r->n_parts, m);
        all += mine;
        most = fmax(most, mine);
    }
    return all > 0 ? most / all : 1;
}

/* Where q is whole on all ranks, each does all, and there is nothing to send for dk and dv. */
static weft_variant gathered(const sizes *s, const weft_ring *r)
{
    weft_variant f = variant_of(s, "gathered", WEFT_ALL_GATHER);
    const bool is_sent = s->is_query_split || !s->is_gradient;
    f.before = is_sent ? s->kv * (double)(s->n - 1) / (double)s->n : 0;
    f.flops = f.last = s->is_query_split ? s->flops * busiest(r) : s->flops;
    f.held = s->is_gradient ? 2 * s->kv : s->kv;
    f.n_exchanges = is_sent ? 2 : 0;
    return f;
}

/* ---- k and v stay ---------------------------------------------------------------------------- */

/* By simpler ops, with a matrix of query x memory: each rank has the scores of its own memory rows. */
static void write_partial(weft_vjp *vjp, const weft_variant *variant)
{
    (void)variant;
    const bool is_gradient = vjp->site->n_out > 2;
    (is_gradient ? weft_op_attention_grad : weft_op_attention).expand(vjp);
}

/* For each row of q its maximum and its sum are combined, then what is weighted is added up; of the gradient a mean, then dq. The
 * matrix is written and read a few times. */
static weft_variant partial(const sizes *s, double feature)
{
    enum { TIMES = 6, TIMES_BACK = 10 };
    const double n = (double)s->n, sums = s->q / feature;
    weft_variant f = variant_of(s, "partial", WEFT_ALL_REDUCE);
    f.write = write_partial;
    f.before = 2 * (n - 1) / n * (s->q + (s->is_gradient ? sums : 2 * sums));
    f.before += s->is_query_split ? s->q * (n - 1) / n : 0;
    f.flops = f.last = s->matrix_flops / n;
    f.copied = (s->is_gradient ? TIMES_BACK : TIMES) * s->matrix / n;
    f.held = s->matrix / n;
    f.n_exchanges = 2 + s->is_query_split;
    return f;
}

/* Parts of q that have to do with one of k and v in a turn. */
static int count_meetings(const weft_ring *r, int of_k, int64_t turn)
{
    int n = 0;
    for (int of_q = 0; of_q < r->n_parts; of_q++)
        n += weft_ring_sees_any(r, (weft_ring_pair){of_q, of_k, turn});
    return n;
}

static bool fills_up(const weft_ring *r)
{
    return r->n_query * r->n_all != r->all_query || r->n_memory * r->n_all != r->all_memory;
}

static weft_variant ring_variant(const sizes *s, const weft_ring *r)
{
    const double times =
        s->is_gradient ? 2 : 1; /* dk and dv go back the way that k and v have come */
    const double of_q = s->q / (double)r->n_all, of_kv = s->kv / (double)r->n_all;
    weft_variant f = variant_of(s, r->n_parts == 1 ? "ring" : "balanced ring", WEFT_BORDER);
    f.write = r->n_parts == 1 ? weft_ring_write : weft_ring_write_balanced;
    f.flops = s->flops * busiest(r);
    int n_meetings = 0, n_turns = 0;
    for (int64_t i = 0; i < weft_ring_n_turns(r); i++)
        for (int of_k = 0; of_k < r->n_parts; of_k++) {
            const int n = count_meetings(r, of_k, weft_ring_turn(i));
            n_meetings += n;
            n_turns += n > 0 && i > 0;
        }
    f.beside = times * of_kv * fmin(n_turns, (double)((r->n - 1) * r->n_parts));
    f.n_exchanges = (int)times * 2 * n_turns;
    f.copied = n_meetings * (4 * of_q + (s->is_gradient ? 6 * of_kv : 0));
    f.copied += fills_up(r) ? 2 * times * (2 * s->q + s->kv) / (double)r->n : 0;
    f.last = f.flops / fmax(1, n_meetings);
    f.held = times * 2 * of_kv;
    if (r->n_parts == 1) return f;
    f.before =
        times * (2 * s->q + s->kv + s->scores) / (double)s->n; /* to balanced places and back */
    f.n_exchanges += (int)times * 8;
    return f;
}

/* ---- heads and rows change places ------------------------------------------------------------ */

/* Of a dim of k that q has too, and that is not its rows: how even it is over n ranks more; 0: there are fewer elements. */
static double evenness(const weft_site *site, const weft_spec *in, const weft_mesh *mesh, int d,
                       int64_t n)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_dim dim = site->in[0].shape.dims[d];
    int64_t size = dim.size;
    if (weft_shape_find(&site->in[1].shape, dim.name) < 0 || strcmp(dim.name, a->query) == 0 ||
        strcmp(dim.name, a->feature) == 0)
        return 0;
    for (int i = 0; i < in[0].n_split[d]; i++)
        size /= weft_mesh_axis_size(mesh, in[0].split[d][i]);
    const int64_t filled = (size + n - 1) / n * n;
    return size < n ? 0 : (double)size / (double)filled;
}

static void add_text(char *text, size_t bytes, const char *more, const char *name)
{
    const size_t n = strlen(text);
    snprintf(text + n, bytes - n, "%s%s", more, name);
}

/* Where the result is, with the axes of its rows at dim `to`: as a layout says it. */
static void write_place(const weft_site *site, const weft_spec *in, const weft_mesh *mesh, int to,
                        weft_variant *f)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *q = &site->in[0].shape;
    const int rows = weft_shape_find(q, a->query), feature = weft_shape_find(q, a->feature);
    for (int d = 0; d < q->n_dims; d++) {
        const int n = d == rows || d == feature ? 0 : in->n_split[d];
        const int more = d == to ? in->n_split[rows] : 0;
        for (int i = 0; i < n + more; i++) {
            const int axis = i < n ? in->split[d][i] : in->split[rows][i - n];
            if (i == 0)
                add_text(f->place, sizeof f->place, f->place[0] ? "," : "", q->dims[d].name);
            add_text(f->place, sizeof f->place, i == 0 ? ":" : "+",
                     weft_mesh_axis_name(mesh, axis));
        }
    }
}

/* Where a value was made that has been brought to where its name wants it. */
static weft_value before_copy(weft_value x)
{
    const weft_node *node = weft_node_of(x.graph, x.id);
    return node->op == &weft_op_copy ? (weft_value){x.graph, node->in[0]} : x;
}

/* The op as it is, with results made where heads are split, and then brought to where their names want them. Of the gradient
 * what the op has left there is read there. */
static void write_at_heads(weft_vjp *vjp, const weft_variant *variant)
{
    const weft_site *site = vjp->site;
    const bool is_gradient = site->n_out > 2;
    weft_value in[WEFT_MAX_IN];
    for (int i = 0; i < site->n_in; i++)
        in[i] = is_gradient && (i == site->n_in - 3 || i == site->n_in - 2)
                    ? before_copy(vjp->in[i])
                    : vjp->in[i];
    weft_value made =
        weft_emit(vjp->graph, is_gradient ? &weft_op_attention_grad : &weft_op_attention, in,
                  site->n_in, site->attributes, sizeof(weft_attention_attributes));
    for (int o = 0; o < site->n_out; o++) {
        weft_value result = weft_result(made, o);
        if (o == 0 || !is_gradient) weft_place(result, variant->place);
        vjp->out[o] = weft_emit(vjp->graph, &weft_op_copy, &result, 1, NULL, 0);
    }
}

/* Of bias and mask what has query rows comes to all ranks; so does it back, of the gradient. */
static weft_variant heads_variant(const sizes *s, double even)
{
    const double times = s->is_gradient ? 2 : 1, n = (double)s->n;
    weft_variant f = variant_of(s, "all-to-all", WEFT_ALL_TO_ALL);
    f.write = write_at_heads;
    f.before = ((2 * s->q + s->kv) / n + times * s->scores) * (n - 1) / n;
    f.flops = f.last = s->flops / n / even;
    f.held = (s->q + s->kv) / n * (n - 1) / n;
    f.copied = 2 * (s->q + (s->is_gradient ? s->kv : 0)) / n;
    f.n_exchanges = 4;
    return f;
}

/* By the dim of heads, or of the batch, that is most even; returns 1, or 0: none has as many elements as there are ranks. */
static int add_heads_variant(const weft_site *site, const weft_spec *in, const weft_mesh *mesh,
                             const sizes *s, weft_variant *variant)
{
    int best = 0;
    double even = 0;
    for (int d = 0; d < site->in[0].shape.n_dims; d++) {
        const double of_d = evenness(site, in, mesh, d, s->n);
        if (of_d > even) best = d, even = of_d;
    }
    if (even == 0) return 0;
    *variant = heads_variant(s, even);
    write_place(site, &in[0], mesh, best, variant);
    return strlen(variant->place) + 1 < sizeof variant->place;
}

/* What can be where the rows of q are split as those of k and v are. */
static int add_alike(const weft_site *site, const weft_spec *in, const weft_mesh *mesh,
                     const sizes *s, const weft_ring *straight, weft_variant *variants)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_ring balanced = weft_ring_of(site, s->n, true);
    int n = 0;
    if (has_room(site, s->n)) variants[n++] = ring_variant(s, straight);
    const bool has_two_each = straight->all_query > s->n; /* blocks that are not empty */
    if (n > 0 && a->causal && straight->all_query == straight->all_memory && has_two_each)
        variants[n++] = ring_variant(s, &balanced);
    return n + add_heads_variant(site, in, mesh, s, &variants[n]);
}

int weft_attention_variants(const weft_site *site, const weft_spec *in, uint32_t placed,
                            const weft_mesh *mesh, weft_variant *variants)
{
    const weft_attention_attributes *a = site->attributes;
    const uint32_t axes = memory_axes(site, in, mesh);
    if (axes == 0) return 0;
    const weft_dim feature =
        site->in[0].shape.dims[weft_shape_find(&site->in[0].shape, a->feature)];
    const sizes s = sizes_of(site, in, mesh, axes);
    const weft_ring straight = weft_ring_of(site, s.n, false);
    int n = 0;
    variants[n++] = gathered(&s, &straight);
    variants[n++] = partial(&s, (double)feature.size);
    if (s.is_query_split && (placed & operands_of(a)) == 0)
        n += add_alike(site, in, mesh, &s, &straight, &variants[n]);
    return n;
}
