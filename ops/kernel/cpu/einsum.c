/* einsum.c: the product of two tensors over named dims, as matrix products wherever strides allow.
 *
 * Each dim name belongs to a group by where it occurs: batch (a, b, out), m (a, out), n (b, out), k (a, b). The
 * largest loop of m, n and k that BLAS can walk becomes the matrix direction. Other loops that do not collapse into
 * it stay outside: batch, m and n as independent products, k by adding up. Where no unit stride can be found strided
 * loops do the work.
 *
 * All of that is worked out once, and with it which way does the work: our own packed kernels (gemm.h), those of a vector and
 * a matrix (gemv.h), BLAS, plain loops where the matrices are tiny, or strided ones. The result has the same bits on any number
 * of lanes: our kernels may be cut anywhere, so lanes share a product out as they go; calls of BLAS are cut by shape alone.
 */
#include "cpu/einsum.h"
#include "cpu/gemm.h"
#include "cpu/matrix.h"
#include "cpu/widened.h"

#include <string.h>

/* ---- sorting dims into groups ---------------------------------------------------------------- */

static void add_dim(weft_einsum *p, const weft_dim *dim, int64_t size, const weft_strided tensor[3])
{
    int64_t stride[3];
    bool has[3];
    for (int t = 0; t < 3; t++) {
        has[t] = weft_shape_find(&tensor[t].view->shape, dim->name) >= 0;
        stride[t] = weft_strided_of(&tensor[t], dim->name);
    }
    weft_nest *group = has[WEFT_A] && has[WEFT_B] ? (has[WEFT_OUT] ? &p->free : &p->k)
                       : !has[WEFT_OUT]           ? &p->lone
                       : has[WEFT_A]              ? &p->m
                                                  : &p->n;
    weft_nest_add(group, size, stride);
}

static void sort_dims(weft_einsum *p, const weft_strided tensor[3])
{
    const weft_view *out = tensor[WEFT_OUT].view, *a = tensor[WEFT_A].view,
                    *b = tensor[WEFT_B].view;
    for (int d = 0; d < out->shape.n_dims; d++)
        add_dim(p, &out->shape.dims[d], weft_view_size(out, d), tensor);
    for (int d = 0; d < a->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, a->shape.dims[d].name) < 0)
            add_dim(p, &a->shape.dims[d], weft_view_size(a, d), tensor);
    for (int d = 0; d < b->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, b->shape.dims[d].name) < 0 &&
            weft_shape_find(&a->shape, b->shape.dims[d].name) < 0)
            add_dim(p, &b->shape.dims[d], weft_view_size(b, d), tensor);
}

/* ---- choosing the matrix --------------------------------------------------------------------- */

static weft_einsum_dim pick_dim(const weft_nest *nest, int d)
{
    weft_einsum_dim dim = {1, {1, 1, 1}};
    if (d >= nest->n_dims) return dim;
    dim.size = nest->size[d];
    memcpy(dim.stride, nest->stride[d], sizeof dim.stride);
    return dim;
}

static bool fits(const weft_einsum_dim *row, const weft_einsum_dim *column, int tensor)
{
    return weft_matrix_fits(row->size, column->size, row->stride[tensor], column->stride[tensor]);
}

weft_einsum_dim weft_einsum_take_last(weft_nest *nest)
{
    const weft_einsum_dim dim = pick_dim(nest, nest->n_dims > 0 ? nest->n_dims - 1 : 0);
    if (nest->n_dims > 0) weft_nest_drop(nest, nest->n_dims - 1);
    return dim;
}

/* Many dots, each of which would be read across rows, where the dots themselves are neighbours in a and b. */
static bool is_dots_across(const weft_einsum *p)
{
    if (p->m.n_dims > 0 || p->n.n_dims > 0 || p->free.n_dims == 0) return false;
    const int64_t *dot = p->free.stride[p->free.n_dims - 1];
    return dot[WEFT_A] == 1 && dot[WEFT_B] == 1;
}

/* The largest product BLAS can do; false: none. Leaves the chosen loops out of m, n and k. */
static bool choose_matrix(weft_einsum *p)
{
    int best[3] = {-1, -1, -1};
    double best_work = 0;
    for (int i = 0; i == 0 || i < p->m.n_dims; i++)
        for (int j = 0; j == 0 || j < p->n.n_dims; j++)
            for (int l = 0; l == 0 || l < p->k.n_dims; l++) {
                const weft_einsum_dim m = pick_dim(&p->m, i), n = pick_dim(&p->n, j),
                                      k = pick_dim(&p->k, l);
                const double work = (double)m.size * (double)n.size * (double)k.size;
                if (!fits(&m, &k, WEFT_A) || !fits(&k, &n, WEFT_B) || !fits(&m, &n, WEFT_OUT) ||
                    work <= best_work)
                    continue;
                best_work = work;
                best[0] = i, best[1] = j, best[2] = l;
            }
    if (best[0] < 0) return false;
    p->dm = pick_dim(&p->m, best[0]);
    p->dn = pick_dim(&p->n, best[1]);
    p->dk = pick_dim(&p->k, best[2]);
    if (p->m.n_dims > 0) weft_nest_drop(&p->m, best[0]);
    if (p->n.n_dims > 0) weft_nest_drop(&p->n, best[1]);
    if (p->k.n_dims > 0) weft_nest_drop(&p->k, best[2]);
    return true;
}

/* ---- many products, on all lanes ------------------------------------------------------------- */

/* By shape alone. Long slices, because each packs the other operand again; an even number of them,
 * for even lanes. */
static void cut_slices(weft_einsum *p)
{
    const double work = 2.0 * (double)p->dm.size * (double)p->dn.size * (double)p->dk.size;
    const int64_t longer = p->dm.size >= p->dn.size ? p->dm.size : p->dn.size;
    enum { ROUND = 16 };
    int64_t slices = longer >= 1024 ? longer / 256 : longer / 128;
    if (slices > 8) slices = 8;
    if ((double)slices > work / 2e6) slices = (int64_t)(work / 2e6);
    slices = slices < 2 ? 1 : slices / 2 * 2;
    p->slice = slices == 1 ? longer : ((longer + slices - 1) / slices + ROUND - 1) / ROUND * ROUND;
    p->slices = (longer + p->slice - 1) / p->slice;
}

static weft_matrix matrix_at(const weft_einsum *p, int tensor, int64_t offset,
                             const weft_einsum_dim *row, const weft_einsum_dim *column)
{
    return (weft_matrix){p->data[tensor] + (size_t)offset * p->bytes[tensor], row->stride[tensor],
                         column->stride[tensor]};
}

/* Where the product goes as bf16, once all of it is summed up; nowhere: {0}. */
static weft_matrix narrow_at(const weft_einsum *p, int64_t offset, bool is_last,
                             const weft_einsum_dim *row, const weft_einsum_dim *column)
{
    if (p->narrow == NULL || !is_last) return (weft_matrix){0};
    return (weft_matrix){p->narrow + offset, row->stride[WEFT_OUT], column->stride[WEFT_OUT]};
}

/* Where it is summed up: in a strip's own memory, or as out lies. */
static weft_matrix sums_at(const weft_einsum *p, int64_t offset, const weft_einsum_dim *row,
                           const weft_einsum_dim *column)
{
    weft_matrix sums = matrix_at(p, WEFT_OUT, offset, row, column);
    if (p->is_strip) sums.row = p->sums[0], sums.column = p->sums[1];
    return sums;
}

/* Of which lanes share out the longer side; of several, each has some. */
static bool is_one_product(const weft_einsum *p)
{
    return p->count == p->slices;
}

/* All of k, for the part [first, first + count) of the longer of m and n. */
static void multiply_part(const weft_einsum *p, const int64_t free[3], int64_t first, int64_t count,
                          int lane, void *scratch)
{
    int64_t at[3], added[3];
    weft_einsum_dim m = p->dm, n = p->dn;
    weft_einsum_dim *cut = m.size >= n.size ? &m : &n;
    cut->size = cut->size - first < count ? cut->size - first : count;
    for (int t = 0; t < 3; t++) /* first is 0 where a tensor lacks it */
        at[t] = free[t] + (first > 0 ? first * cut->stride[t] : 0);
    const int64_t n_added = weft_nest_count(&p->k);
    const bool is_shared = scratch != NULL && is_one_product(p);
    for (int64_t l = 0; l < n_added; l++) {
        weft_nest_offset(&p->k, l, added);
        if (is_shared && l > 0) weft_stream_again(p->stream, lane);
        const weft_product one = {.dtype = p->dtype,
                                  .reads = p->reads,
                                  .rounds_a = p->rounds[WEFT_A],
                                  .rounds_b = p->rounds[WEFT_B],
                                  .m = m.size,
                                  .n = n.size,
                                  .k = p->dk.size,
                                  .alpha = 1,
                                  .beta = l == 0 && !p->adds ? 0 : 1,
                                  .a = matrix_at(p, WEFT_A, at[WEFT_A] + added[WEFT_A], &m, &p->dk),
                                  .b = matrix_at(p, WEFT_B, at[WEFT_B] + added[WEFT_B], &p->dk, &n),
                                  .c = sums_at(p, at[WEFT_OUT], &m, &n),
                                  .narrow = narrow_at(p, at[WEFT_OUT], l + 1 == n_added, &m, &n),
                                  .stream = p->stream,
                                  .lane = lane,
                                  .unit = is_shared ? p->slice : 0};
        if (scratch != NULL)
            weft_gemm(&one, scratch);
        else
            weft_multiply(&one);
    }
}

static void run_slices(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_einsum *p = argument;
    for (int64_t i = begin; i < end; i++) {
        int64_t free[3];
        weft_nest_offset(&p->free, i / p->slices, free);
        multiply_part(p, free, i % p->slices * p->slice, p->slice, lane, NULL);
    }
}

/* A lane's slices of one product are one call, by which what stays is packed once. */
static void run_packed(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_einsum *p = argument;
    void *scratch = weft_stream_scratch(p->stream, lane);
    if (is_one_product(p)) {
        multiply_part(p, (int64_t[3]){0}, 0, p->slices * p->slice, lane, scratch);
        return;
    }
    for (int64_t i = begin, n; i < end; i += n) {
        int64_t free[3];
        const int64_t left = p->slices - i % p->slices;
        n = end - i < left ? end - i : left;
        weft_nest_offset(&p->free, i / p->slices, free);
        multiply_part(p, free, i % p->slices * p->slice, n * p->slice, lane, scratch);
    }
}

static void run_whole(const weft_einsum *p, weft_stream *stream)
{
    weft_parallel_whole(stream, p->count, p->grain, p->body, (void *)(uintptr_t)p);
}

/* ---- matrices ------------------------------------------------------------------------------------ */

static bool is_vector(const weft_einsum *p)
{
    return (p->dm.size == 1) != (p->dn.size == 1);
}

/* Rows or vectors of the longer of m and n, of which a lane takes as many as make a panel. Whole panels would be shared out
 * unevenly where there are few. */
static void cut_panels(weft_einsum *p)
{
    p->slice = p->dm.size >= p->dn.size ? WEFT_GEMM_ROWS : WEFT_GEMM_UNIT;
    const int64_t longer = p->dm.size >= p->dn.size ? p->dm.size : p->dn.size;
    p->slices = (longer + p->slice - 1) / p->slice;
}

static bool is_packed(const weft_einsum *p, weft_stream *stream)
{
    return stream != NULL && weft_gemm_has(p->dtype) && p->dm.size > 1 && p->dn.size > 1;
}

static void plan_matrices(weft_einsum *p, weft_stream *stream)
{
    const int64_t work = p->dm.size * p->dn.size * p->dk.size;
    weft_nest_append(&p->free, &p->m);
    weft_nest_append(&p->free, &p->n);
    const bool packs = is_packed(p, stream);
    if (packs)
        cut_panels(p);
    else
        cut_slices(p);
    p->run = packs ? run_whole : weft_einsum_run_lanes;
    p->body = packs ? run_packed : run_slices;
    p->count = weft_nest_count(&p->free) * p->slices;
    p->grain = weft_grain(work / p->slices * weft_nest_count(&p->k) / 16);
}

static void run_zeros(const weft_einsum *p, weft_stream *stream)
{
    (void)stream;
    if (p->count > 0 && !p->adds)
        memset(p->data[WEFT_OUT], 0, (size_t)p->count * p->bytes[WEFT_OUT]);
}

/* ---- results of bf16 ------------------------------------------------------------------------- */

static void point_at(weft_einsum *p, const weft_call *call)
{
    const bool is_narrow = call->out[0].dtype == WEFT_BF16;
    p->data[WEFT_A] = call->in[0].data, p->data[WEFT_B] = call->in[1].data;
    p->data[WEFT_OUT] = is_narrow ? call->scratch : call->out[0].data;
    p->narrow = is_narrow ? call->out[0].data : NULL;
}

/* A large product of bf16 is done so many of its longer side at a time, so that its sums take little memory. */
enum { STRIP = 1 << 21 };
static int64_t strip_of(const weft_einsum *p)
{
    const int64_t m = p->dm.size, n = p->dn.size, longer = m >= n ? m : n, other = m >= n ? n : m;
    const int64_t units = STRIP / WEFT_GEMM_COLUMNS / other, fit = units > 1 ? units : 1;
    return fit * WEFT_GEMM_COLUMNS < longer ? fit * WEFT_GEMM_COLUMNS : longer;
}

static void run_strip(weft_einsum strip, int64_t first, int64_t size, weft_stream *stream)
{
    weft_einsum_dim *cut = strip.dm.size >= strip.dn.size ? &strip.dm : &strip.dn;
    for (int t = 0; t < WEFT_OUT; t++)
        if (first > 0) strip.data[t] += (size_t)(first * cut->stride[t]) * strip.bytes[t];
    strip.narrow += first * cut->stride[WEFT_OUT];
    cut->size = size;
    strip.is_strip = true;
    strip.sums[0] = strip.dn.stride[WEFT_OUT] == 1 ? strip.dn.size : 1;
    strip.sums[1] = strip.dn.stride[WEFT_OUT] == 1 ? 1 : strip.dm.size;
    cut_panels(&strip); /* the other side may be the longer one now */
    strip.count = strip.slices;
    strip.run(&strip, stream);
}

static void run_strips(const weft_einsum *p, weft_stream *stream)
{
    const int64_t m = p->dm.size, n = p->dn.size, longer = m >= n ? m : n, size = strip_of(p);
    for (int64_t first = 0; first < longer; first += size)
        run_strip(*p, first, longer - first < size ? longer - first : size, stream);
}

/* Kernels of ours, and strided loops, round what they sum up; else it is done afterwards. */
static void run(const weft_einsum *p, const weft_call *call)
{
    const int64_t n = weft_view_count(&call->out[0]);
    if (p->adds) weft_begin_sum(call);
    if (p->narrow != NULL && p->body == run_packed && is_one_product(p)) {
        run_strips(p, call->stream);
        return;
    }
    p->run(p, call->stream);
    if (p->narrow != NULL && p->body != run_packed && !p->narrows)
        weft_narrow(call->stream, n, (const float *)(const void *)p->data[WEFT_OUT], p->narrow);
}

/* ---- once, before any run -------------------------------------------------------------------- */

/* Beside bf16 f32 is rounded to that. */
static weft_dtype reads_of(const weft_call *call)
{
    const weft_dtype a = call->in[0].dtype, b = call->in[1].dtype;
    return a == WEFT_F32 && b == WEFT_BF16 ? b : a;
}

/* Its dims, sorted. */
static weft_einsum sorted(const weft_call *call)
{
    const weft_view *out = &call->out[0];
    const weft_strided tensor[3] = {weft_strided_view(&call->in[0]),
                                    weft_strided_view(&call->in[1]), weft_strided_view(out)};
    weft_einsum p = {.dtype = weft_dtype_computes(out->dtype),
                     .reads = reads_of(call),
                     .stream = call->stream,
                     .run = run_zeros,
                     .adds = call->accumulates,
                     .count = weft_view_count(out)};
    for (int i = 0; i < 2; i++)
        p.rounds[i] = call->in[i].dtype != p.reads;
    for (int t = 0; t < WEFT_NEST_TENSORS; t++)
        p.bytes[t] = weft_dtype_bytes(t == WEFT_OUT ? p.dtype : tensor[t].view->dtype);
    if (p.count > 0) sort_dims(&p, tensor);
    return p;
}

static bool is_half(const weft_einsum *p)
{
    return p->reads == WEFT_BF16 || p->reads == WEFT_F16;
}

/* The product that there is of matrices; false: there is none. */
static bool find_matrices(weft_einsum *p)
{
    const bool is_float = p->reads == WEFT_F32 || p->reads == WEFT_F64 || is_half(p);
    return is_float && p->lone.n_dims == 0 && !is_dots_across(p) && choose_matrix(p);
}

static bool has_nothing(const weft_einsum *p)
{
    return p->count == 0 || weft_nest_count(&p->k) == 0 || weft_nest_count(&p->lone) == 0;
}

static void plan(weft_einsum *p, const weft_call *call)
{
    *p = sorted(call);
    if (has_nothing(p)) return;
    weft_einsum matrices = *p;
    const bool found = find_matrices(&matrices);
    const int64_t work = matrices.dm.size * matrices.dn.size * matrices.dk.size;
    const bool is_tiny = work <= WEFT_EINSUM_TINY;
    const bool is_others =
        is_half(p) && (is_tiny || !(is_vector(&matrices) || is_packed(&matrices, call->stream)));
    if (!found || is_others || (is_tiny && weft_nest_count(&matrices.k) > 1)) {
        weft_einsum_plan_strided(p);
        return;
    }
    *p = matrices;
    if (is_tiny)
        weft_einsum_plan_tiny(p, work);
    else if (is_vector(p))
        weft_einsum_plan_vectors(p);
    else
        plan_matrices(p, call->stream);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    weft_einsum *p = *prepared = weft_arena_take(arena, sizeof *p);
    if (p == NULL) return weft_fail_memory(error, sizeof *p);
    plan(p, call);
    return WEFT_OK;
}

static void launch(const weft_call *call)
{
    weft_einsum *p = call->prepared;
    point_at(p, call);
    run(p, call);
}

/* An operand of bf16 may have one of f32 beside it. Of 16 bits the result is f32, or bf16 for bf16. */
static bool takes(const weft_call *call)
{
    const weft_dtype reads = reads_of(call), makes = call->out[0].dtype;
    for (int i = 0; i < 2; i++) {
        const weft_dtype stored = call->in[i].dtype;
        if (stored != reads && !(stored == WEFT_F32 && reads == WEFT_BF16)) return false;
    }
    return makes == weft_dtype_computes(reads) ||
           (makes == WEFT_BF16 && reads == WEFT_BF16 && !call->accumulates);
}

/* What is to be bf16 is summed up in f32: of one product a strip at a time. The same on every processor. */
static int64_t scratch(const weft_call *call)
{
    if (call->out[0].dtype != WEFT_BF16) return 0;
    weft_einsum p = sorted(call);
    int64_t count = p.count;
    if (!has_nothing(&p) && find_matrices(&p) && p.dm.size > 1 && p.dn.size > 1 &&
        count == p.dm.size * p.dn.size)
        count = strip_of(&p) * (p.dm.size >= p.dn.size ? p.dn.size : p.dm.size);
    return count * (int64_t)sizeof(float);
}

void weft_einsum_cpu(const weft_call *call)
{
    weft_einsum p;
    plan(&p, call);
    point_at(&p, call);
    run(&p, call);
}

const weft_kernel weft_kernel_einsum = {
    .size = sizeof(weft_kernel),
    .name = "einsum",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES | WEFT_HALF_DTYPES,
    .takes = takes,
    .scratch = scratch,
    .prepare = prepare,
    .launch = launch,
    .accumulates = true,
    .carried_alone = true,
    .rounds = true,
    .prepares_alike = true,
};
