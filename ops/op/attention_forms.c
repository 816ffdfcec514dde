/* attention_forms: the forms in which attention and its gradient can be written where rows of q and of k and v are split over the same
 * axes, and what each costs the rank that has most to do.
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

/* The axes over which there can be a ring; 0: none. */
static uint32_t ring_axes(const weft_site *site, const weft_spec *in, const weft_mesh *mesh)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape, *v = &site->in[2].shape;
    const int of_q = weft_shape_find(q, a->query), of_k = weft_shape_find(k, a->memory),
              of_v = weft_shape_find(v, a->memory);
    const bool has_column = a->bias + a->mask > 0 && weft_attention_has_column(a);
    if (a->blocks != NULL || q->n_dims + 1 + has_column >= WEFT_MAX_DIMS) return 0; /* of blocks */
    const uint32_t axes = axes_of(&in[0], of_q, &in[1], of_k);
    if (axes != axes_of(&in[0], of_q, &in[2], of_v)) return 0;
    const int64_t n = ranks_along(mesh, axes);
    return n < 2 || n > MOST_RANKS ? 0 : axes;
}

/* The sizes that prices are made of: bytes of q, of k and v together with what is split as they are of bias and mask, of what of
 * these has query rows, and work, were the rows not split. */
typedef struct sizes {
    double q, kv, scores, flops;
    bool is_gradient;
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
    sizes s = {.axes = axes, .n = ranks_along(mesh, axes), .is_gradient = site->n_out > 2};
    s.q = bytes_of(site, in, mesh, 0, axes);
    s.kv = bytes_of(site, in, mesh, 1, axes) + bytes_of(site, in, mesh, 2, axes);
    add_scores(site, in, mesh, a->bias, &s);
    add_scores(site, in, mesh, a->mask, &s);
    s.flops = (s.is_gradient ? 10.0 : 4.0) * weft_attention_work(site);
    for (int x = 0; x < weft_mesh_n_axes(mesh); x++)
        if (!(axes >> x & 1) && weft_spec_state(&in[0], site->in[0].shape.n_dims, x) >= 0)
            s.flops /= weft_mesh_axis_size(mesh, x);
    return s;
}

static weft_form form_of(const sizes *s, const char *name, weft_convert_kind kind)
{
    return (weft_form){.name = name, .axes = s->axes, .n_ranks = (int)s->n, .kind = kind};
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

static weft_form gathered(const sizes *s, const weft_ring *r)
{
    weft_form f = form_of(s, "gathered", WEFT_ALL_GATHER);
    f.before = s->kv * (double)(s->n - 1) / (double)s->n;
    f.flops = f.last = s->flops * busiest(r);
    f.held = s->is_gradient ? 2 * s->kv : s->kv;
    f.n_exchanges = 2;
    return f;
}

/* Parts of q that have to do with one of k and v in a turn. */
static int count_meetings(const weft_ring *r, int of_k, int64_t turn)
{
    int n = 0;
    for (int of_q = 0; of_q < r->n_parts; of_q++)
        n += weft_ring_sees_any(r, (weft_meeting){of_q, of_k, turn});
    return n;
}

static bool fills_up(const weft_ring *r)
{
    return r->n_query * r->n_all != r->all_query || r->n_memory * r->n_all != r->all_memory;
}

static weft_form ring_form(const sizes *s, const weft_ring *r)
{
    const double times =
        s->is_gradient ? 2 : 1; /* dk and dv go back the way that k and v have come */
    const double of_q = s->q / (double)r->n_all, of_kv = s->kv / (double)r->n_all;
    weft_form f = form_of(s, r->n_parts == 1 ? "ring" : "balanced ring", WEFT_BORDER);
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
    return size < n ? 0 : (double)size / (double)((size + n - 1) / n * n);
}

static void add_text(char *text, size_t bytes, const char *more, const char *name)
{
    const size_t n = strlen(text);
    snprintf(text + n, bytes - n, "%s%s", more, name);
}

/* Where the result is, with the axes of its rows at dim `to`: as a layout says it. */
static void write_place(const weft_site *site, const weft_spec *in, const weft_mesh *mesh, int to,
                        weft_form *f)
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
static void write_at_heads(weft_vjp *vjp, const weft_form *form)
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
        if (o == 0 || !is_gradient) weft_place(result, form->place);
        vjp->out[o] = weft_emit(vjp->graph, &weft_op_copy, &result, 1, NULL, 0);
    }
}

/* Of bias and mask what has query rows comes to all ranks; so does it back, of the gradient. */
static weft_form heads_form(const sizes *s, double even)
{
    const double times = s->is_gradient ? 2 : 1, n = (double)s->n;
    weft_form f = form_of(s, "all-to-all", WEFT_ALL_TO_ALL);
    f.write = write_at_heads;
    f.before = ((2 * s->q + s->kv) / n + times * s->scores) * (n - 1) / n;
    f.flops = f.last = s->flops / n / even;
    f.held = (s->q + s->kv) / n * (n - 1) / n;
    f.copied = 2 * (s->q + (s->is_gradient ? s->kv : 0)) / n;
    f.n_exchanges = 4;
    return f;
}

/* By the dim of heads, or of the batch, that is most even; returns 1, or 0: none has as many elements as there are ranks. */
static int add_heads_form(const weft_site *site, const weft_spec *in, const weft_mesh *mesh,
                          const sizes *s, weft_form *form)
{
    int best = 0;
    double even = 0;
    for (int d = 0; d < site->in[0].shape.n_dims; d++) {
        const double of_d = evenness(site, in, mesh, d, s->n);
        if (of_d > even) best = d, even = of_d;
    }
    if (even == 0) return 0;
    *form = heads_form(s, even);
    write_place(site, &in[0], mesh, best, form);
    return strlen(form->place) + 1 < sizeof form->place;
}

int weft_attention_forms(const weft_site *site, const weft_spec *in, const weft_mesh *mesh,
                         weft_form *forms)
{
    const weft_attention_attributes *a = site->attributes;
    const uint32_t axes = ring_axes(site, in, mesh);
    if (axes == 0) return 0;
    const sizes s = sizes_of(site, in, mesh, axes);
    const weft_ring straight = weft_ring_of(site, s.n, false),
                    balanced = weft_ring_of(site, s.n, true);
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape;
    const int64_t n_query = q->dims[weft_shape_find(q, a->query)].size,
                  n_memory = k->dims[weft_shape_find(k, a->memory)].size;
    int n = 0;
    forms[n++] = gathered(&s, &straight);
    forms[n++] = ring_form(&s, &straight);
    const bool has_two_each = n_query > s.n; /* blocks that are not empty */
    if (a->causal && n_query == n_memory && has_two_each) forms[n++] = ring_form(&s, &balanced);
    return n + add_heads_form(site, in, mesh, &s, &forms[n]);
}
