/* cumulate.c: sums, products and largest elements along a dim that is whole, in its order or against it; kept in double for floats.
 *
 * Both tensors are [outer, dim, inner]. A *line* is what is cumulated: one place of outer and inner. By blocks each block of a
 * line is cumulated by itself, rounded, and put on top of what came before it. That is what the op is made of where the dim is split
 * (ops/op/cumulate.c), to the bit: nothing before the first block changes nothing. Each element is added to the one before it, so what
 * goes on at once are lines that have nothing to do with each other:
 *
 *     inner is long    a stretch of lines beside each other, in one pass along the dim
 *     outer is long    GROUP lines of outer; tiles of GROUP elements of each are turned, so that they lie beside each other
 *     else             as many blocks, as if they were lines; a second pass puts them on top
 */
#include "cpu/nest.h"
#include "weft/extend/target_clones.h"

#include <math.h>
#include <string.h>

enum { GROUP = 8, HALVES = 2, TILE = HALVES * GROUP };
/* Lines that are worth a stretch, and of how many: the most, and no fewer so that lanes have MANY to share. */
enum { LEAST_LINES = 4, STRETCH = 256, LEAST_STRETCH = 32, MANY = 16 };

/* Lines of n elements each, whose first elements lie `spacing` apart and whose elements lie `step` apart. */
typedef struct lines {
    int64_t n, block, spacing, step;
    bool exclusive;
} lines;

/* What functions of a dtype do: T, with what is cumulated in SUM. */
typedef struct cumulate {
    /* GROUP lines from x, y on, of step 1 or -1, or any one; each one's last sum into totals */
    void (*group)(const void *x, void *y, const lines *l, void *totals);
    void (*one)(const void *x, void *y, const lines *l, void *totals);
    /* totals [n]: each becomes that of those before it */
    void (*before)(void *totals, int64_t n);
    /* y [n, inner] on top of before, of which each element of inner has one, `stride` apart */
    void (*on_top)(void *y, int64_t n, int64_t inner, const void *before, int64_t stride);
    /* lines beside each other, l->n long */
    void (*stretch)(const void *x, void *y, const lines *l, int64_t n_lines);
} cumulate;

#define ALWAYS       static inline __attribute__((always_inline))
#define NOT_UNROLLED _Pragma("GCC unroll 1")
/* What the list's operations are of vectors: bits of the one or the other. */
#define V_ADDED(a, b)        ((a) + (b))
#define V_TIMES(a, b)        ((a) * (b))
#define BITS(x)              ((__typeof__((x) > (x)))(x))
#define EITHER(is, a, b)     ((__typeof__(a))((BITS(a) & (is)) | (BITS(b) & ~(is))))
#define V_LARGER(a, b)       EITHER(((b) > (a)) | ((b) != (b)), b, a)
#define V_LARGER_FIRST(a, b) EITHER(((a) >= (b)) | ((a) != (a)), a, b)

/* Pairs of rows, `by` apart, exchange the halves of their pairs of elements that lie `by` apart. */
#define TURN_BY(r, by, l0, l1, l2, l3, l4, l5, l6, l7, h0, h1, h2, h3, h4, h5, h6, h7)             \
    for (int i_ = 0; i_ < GROUP; i_++)                                                             \
        if (!(i_ & (by))) {                                                                        \
            const __typeof__((r)[0]) a_ = (r)[i_], b_ = (r)[i_ + (by)];                            \
            (r)[i_] = __builtin_shufflevector(a_, b_, l0, l1, l2, l3, l4, l5, l6, l7);             \
            (r)[i_ + (by)] = __builtin_shufflevector(a_, b_, h0, h1, h2, h3, h4, h5, h6, h7);      \
        }
#define TURN(r)                                                                                    \
    TURN_BY(r, 1, 0, 8, 2, 10, 4, 12, 6, 14, 1, 9, 3, 11, 5, 13, 7, 15)                            \
    TURN_BY(r, 2, 0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 10, 11, 6, 7, 14, 15)                            \
    TURN_BY(r, 4, 0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15)

#define CUMULATE(name, T, SUM, SAME, FIRST, OP, BOTH)                                              \
    typedef SAME name##_row __attribute__((vector_size(GROUP * sizeof(T))));                       \
    typedef SUM name##_sums __attribute__((vector_size(GROUP * sizeof(SUM))));                     \
    /* elements [from, n) of a line; so far: its block's sum, the total of blocks before */        \
    ALWAYS SUM name##_go(const T *x, T *y, const lines *l, int64_t from, SUM sum, SUM total)       \
    {                                                                                              \
        for (int64_t k = from; k < l->n; k++) {                                                    \
            if (k > 0 && k % l->block == 0) total = OP(total, (SUM)(T)sum), sum = FIRST;           \
            const SUM with = OP(sum, (SUM)x[k * l->step]);                                         \
            const T own = (T)(l->exclusive ? sum : with);                                          \
            y[k * l->step] = (T)BOTH((SAME)(T)total, (SAME)own);                                   \
            sum = with;                                                                            \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
    static void name##_one(const void *x, void *y, const lines *l, void *totals)                   \
    {                                                                                              \
        *(T *)totals = (T)name##_go(x, y, l, 0, FIRST, FIRST);                                     \
    }                                                                                              \
    /* TILE elements of each line; those left of a block before them, and after */                 \
    ALWAYS int64_t name##_tile(const T *x, T *y, const lines *l, int64_t left, name##_sums *sum,   \
                               name##_sums *total)                                                 \
    {                                                                                              \
        name##_row r[HALVES][GROUP], before = __builtin_convertvector(*total, name##_row);         \
        const int turn = l->step < 0 ? TILE - 1 : 0;                                               \
        const bool exclusive = l->exclusive;                                                       \
        for (int j = 0; j < GROUP; j++)                                                            \
            memcpy(&r[0][j], x + j * l->spacing, sizeof r[0][j]),                                  \
                memcpy(&r[1][j], x + j * l->spacing + GROUP, sizeof r[1][j]);                      \
        TURN(r[0])                                                                                 \
        TURN(r[1])                                                                                 \
        NOT_UNROLLED for (int i = 0; i < TILE; i++, left--)                                        \
        {                                                                                          \
            name##_row *const row = &r[0][0] + (i ^ turn);                                         \
            if (left == 0) {                                                                       \
                const name##_row whole = __builtin_convertvector(*sum, name##_row);                \
                *total = V_##OP(*total, __builtin_convertvector(whole, name##_sums));              \
                before = __builtin_convertvector(*total, name##_row);                              \
                for (int j = 0; j < GROUP; j++)                                                    \
                    (*sum)[j] = FIRST;                                                             \
                left = l->block;                                                                   \
            }                                                                                      \
            const name##_sums with = V_##OP(*sum, __builtin_convertvector(*row, name##_sums));     \
            const name##_row own = __builtin_convertvector(exclusive ? *sum : with, name##_row);   \
            *row = V_##BOTH(before, own);                                                          \
            *sum = with;                                                                           \
        }                                                                                          \
        TURN(r[0])                                                                                 \
        TURN(r[1])                                                                                 \
        for (int j = 0; j < GROUP; j++)                                                            \
            memcpy(y + j * l->spacing, &r[0][j], sizeof r[0][j]),                                  \
                memcpy(y + j * l->spacing + GROUP, &r[1][j], sizeof r[1][j]);                      \
        return left;                                                                               \
    }                                                                                              \
    WEFT_TARGET_CLONES static void name##_group(const void *x, void *y, const lines *l,            \
                                                void *totals)                                      \
    {                                                                                              \
        name##_sums sum, total;                                                                    \
        int64_t k = 0, left = l->block;                                                            \
        for (int j = 0; j < GROUP; j++)                                                            \
            sum[j] = total[j] = FIRST;                                                             \
        for (; sizeof(T) == sizeof(uint32_t) && k + TILE <= l->n; k += TILE) {                     \
            const int64_t at = l->step < 0 ? -k - (TILE - 1) : k;                                  \
            left = name##_tile((const T *)x + at, (T *)y + at, l, left, &sum, &total);             \
        }                                                                                          \
        for (int j = 0; j < GROUP; j++)                                                            \
            ((T *)totals)[j] = (T)name##_go((const T *)x + j * l->spacing,                         \
                                            (T *)y + j * l->spacing, l, k, sum[j], total[j]);      \
    }                                                                                              \
    static void name##_before(void *totals, int64_t n)                                             \
    {                                                                                              \
        SUM sum = FIRST;                                                                           \
        for (int64_t b = 0; b < n; b++) {                                                          \
            const T total = ((T *)totals)[b];                                                      \
            ((T *)totals)[b] = (T)sum;                                                             \
            sum = OP(sum, (SUM)total);                                                             \
        }                                                                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static void name##_on_top(void *y, int64_t n, int64_t inner,                \
                                                 const void *before, int64_t stride)               \
    {                                                                                              \
        T *to = y;                                                                                 \
        const SAME first = (SAME)((const T *)before)[0];                                           \
        for (int64_t k = 0; k < n && inner == 1; k++)                                              \
            to[k] = (T)BOTH(first, (SAME)to[k]);                                                   \
        for (int64_t k = 0; k < n && inner > 1; k++, to += inner)                                  \
            for (int64_t i = 0; i < inner; i++)                                                    \
                to[i] = (T)BOTH((SAME)((const T *)before)[i * stride], (SAME)to[i]);               \
    }                                                                                              \
    ALWAYS void name##_along(const T *restrict x, T *restrict y, int64_t n,                        \
                             const T *restrict before, SUM *restrict sum, const bool exclusive)    \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const SUM with = OP(sum[i], (SUM)x[i]);                                                \
            const T own = (T)(exclusive ? sum[i] : with);                                          \
            y[i] = (T)BOTH((SAME)before[i], (SAME)own);                                            \
            sum[i] = with;                                                                         \
        }                                                                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static void name##_stretch(const void *x, void *y, const lines *l,          \
                                                  int64_t n_lines)                                 \
    {                                                                                              \
        SUM sum[STRETCH], total[STRETCH];                                                          \
        T before[STRETCH];                                                                         \
        const T *from = x;                                                                         \
        T *to = y;                                                                                 \
        for (int64_t i = 0; i < n_lines; i++)                                                      \
            sum[i] = total[i] = FIRST, before[i] = (T)sum[i];                                      \
        for (int64_t k = 0; k < l->n; k++, from += l->step, to += l->step) {                       \
            for (int64_t i = 0; i < n_lines && k > 0 && k % l->block == 0; i++) {                  \
                total[i] = OP(total[i], (SUM)(T)sum[i]);                                           \
                before[i] = (T)total[i], sum[i] = FIRST;                                           \
            }                                                                                      \
            if (l->exclusive)                                                                      \
                name##_along(from, to, n_lines, before, sum, true);                                \
            else                                                                                   \
                name##_along(from, to, n_lines, before, sum, false);                               \
        }                                                                                          \
    }                                                                                              \
    static const cumulate name = {name##_group, name##_one, name##_before, name##_on_top,          \
                                  name##_stretch};
#include "cumulate_list.inc"

#define OF_DTYPES(name)                                                                            \
    {                                                                                              \
        [WEFT_F32] = &name##_f32, [WEFT_F64] = &name##_f64, [WEFT_I32] = &name##_i32,              \
        [WEFT_I64] = &name##_i64                                                                   \
    }
static const cumulate *const sums[WEFT_DTYPES] = OF_DTYPES(cumsum);
static const cumulate *const products[WEFT_DTYPES] = OF_DTYPES(cumprod);
static const cumulate *const tops[WEFT_DTYPES] = OF_DTYPES(cummax);

typedef struct cumulating {
    const cumulate *of;
    const char *x;
    char *y, *totals; /* [outer, inner, n_blocks] */
    int64_t bytes;    /* of an element */
    int64_t outer, length, inner, block, n_blocks;
    int64_t first,
        step; /* elements from where a line lies to where it begins; from one to the next */
    bool exclusive, reverse;
    int64_t stretch, n_stretches;
} cumulating;

/* n lines from element `at` on. */
static void run_lines(const cumulating *c, int64_t at, const lines *l, int64_t n, char *totals)
{
    for (int64_t i = 0; i < n;) {
        const bool is_group = n - i >= GROUP && (l->step == 1 || l->step == -1);
        const int64_t from = (at + i * l->spacing) * c->bytes;
        (is_group ? c->of->group : c->of->one)(c->x + from, c->y + from, l, totals + i * c->bytes);
        i += is_group ? GROUP : 1;
    }
}

/* ---- inner is long ------------------------------------------------------------------------------ */

static void run_stretches(void *argument, int64_t begin, int64_t end, int lane)
{
    const cumulating *c = argument;
    const lines l = {.n = c->length, .block = c->block, .step = c->step, .exclusive = c->exclusive};
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = i % c->n_stretches * c->stretch, left = c->inner - from;
        const int64_t at = i / c->n_stretches * c->length * c->inner + c->first + from;
        c->of->stretch(c->x + at * c->bytes, c->y + at * c->bytes, &l,
                       left < c->stretch ? left : c->stretch);
    }
}

/* So narrow that there are enough for lanes to share. */
static void by_stretches(cumulating *c, weft_stream *stream)
{
    c->stretch = STRETCH;
    while (c->stretch > LEAST_STRETCH && c->outer * c->inner < MANY * c->stretch)
        c->stretch /= 2;
    c->n_stretches = (c->inner + c->stretch - 1) / c->stretch;
    weft_parallel(stream, c->outer * c->n_stretches, weft_grain(c->length * c->stretch),
                  run_stretches, c);
}

/* ---- outer is long ------------------------------------------------------------------------------- */

static void run_groups_of_outer(void *argument, int64_t begin, int64_t end, int lane)
{
    const cumulating *c = argument;
    const int64_t size = c->length * c->inner;
    const lines l = {c->length, c->block, size, c->step, c->exclusive};
    double totals[GROUP]; /* as large as any of a dtype, and not asked for */
    (void)lane;
    for (int64_t g = begin; g < end; g++) {
        const int64_t row = g * GROUP, left = c->outer - row;
        for (int64_t i = 0; i < c->inner; i++)
            run_lines(c, row * size + c->first + i, &l, left < GROUP ? left : GROUP,
                      (char *)totals);
    }
}

static void by_outer(cumulating *c, weft_stream *stream)
{
    weft_parallel(stream, (c->outer + GROUP - 1) / GROUP, weft_grain(c->length * c->inner * GROUP),
                  run_groups_of_outer, c);
}

/* ---- blocks of a line ---------------------------------------------------------------------------- */

static char *totals_of(const cumulating *c, int64_t row, int64_t i)
{
    return c->totals + (row * c->inner + i) * c->n_blocks * c->bytes;
}

static int64_t groups_of(const cumulating *c)
{
    return (c->n_blocks + GROUP - 1) / GROUP;
}

/* GROUP blocks of a line; the last of all may be shorter. */
static void run_group(const cumulating *c, int64_t row, int64_t i, int64_t first)
{
    const int64_t left = c->n_blocks - first, n = left < GROUP ? left : GROUP;
    const int64_t last = c->length - (c->n_blocks - 1) * c->block;
    const int64_t whole = left <= GROUP && last < c->block ? n - 1 : n;
    const int64_t at = row * c->length * c->inner + c->first + i + first * c->block * c->step;
    lines l = {c->block, c->block, c->block * c->step, c->step, c->exclusive};
    char *totals = totals_of(c, row, i) + first * c->bytes;
    run_lines(c, at, &l, whole, totals);
    l.n = last;
    run_lines(c, at + whole * l.spacing, &l, n - whole, totals + whole * c->bytes);
}

static void run_groups(void *argument, int64_t begin, int64_t end, int lane)
{
    const cumulating *c = argument;
    const int64_t n = groups_of(c);
    (void)lane;
    for (int64_t g = begin; g < end; g++)
        run_group(c, g / n / c->inner, g / n % c->inner, g % n * GROUP);
}

/* Nothing comes before the first block of a row. */
static void put_on_top(void *argument, int64_t begin, int64_t end, int lane)
{
    const cumulating *c = argument;
    (void)lane;
    for (int64_t b = begin; b < end; b++) {
        const int64_t row = b / c->n_blocks, at = b % c->n_blocks, from = at * c->block;
        const int64_t n = c->length - from < c->block ? c->length - from : c->block;
        const int64_t place = row * c->length + (c->reverse ? c->length - from - n : from);
        if (at > 0)
            c->of->on_top(c->y + place * c->inner * c->bytes, n, c->inner,
                          totals_of(c, row, 0) + at * c->bytes, c->n_blocks);
    }
}

static void by_blocks(cumulating *c, weft_stream *stream)
{
    weft_parallel(stream, c->outer * c->inner * groups_of(c), weft_grain(c->block * GROUP),
                  run_groups, c);
    for (int64_t i = 0; i < c->outer * c->inner; i++)
        c->of->before(totals_of(c, 0, i), c->n_blocks);
    weft_parallel(stream, c->outer * c->n_blocks, weft_grain(c->block * c->inner), put_on_top, c);
}

/* ---- a call -------------------------------------------------------------------------------------- */

static cumulating plan(const weft_call *call)
{
    const weft_cumulate_attributes *a = call->attributes;
    const weft_view *out = &call->out[0];
    const int dim = weft_shape_find(&out->shape, a->dim);
    cumulating c = {.x = call->in[0].data,
                    .y = out->data,
                    .totals = call->scratch,
                    .bytes = (int64_t)weft_dtype_bytes(out->dtype),
                    .length = weft_view_size(out, dim),
                    .outer = 1,
                    .inner = 1,
                    .exclusive = a->exclusive,
                    .reverse = a->reverse};
    for (int d = 0; d < out->shape.n_dims; d++)
        *(d < dim ? &c.outer : &c.inner) *= d == dim ? 1 : weft_view_size(out, d);
    c.step = c.reverse ? -c.inner : c.inner;
    c.first = c.reverse ? (c.length - 1) * c.inner : 0;
    c.block = a->blocks > 0 ? (a->size + a->blocks - 1) / a->blocks : a->size;
    c.n_blocks = (a->size + c.block - 1) / c.block;
    return c;
}

/* By which way a line goes changes no bit of it. */
static bool is_by_blocks(const cumulating *c)
{
    return c->inner < LEAST_LINES && c->n_blocks > 1 && c->outer < 2 * GROUP;
}

static int64_t scratch(const weft_call *call)
{
    const cumulating c = plan(call);
    return is_by_blocks(&c) ? c.outer * c.inner * c.n_blocks * c.bytes : 0;
}

static void run(const weft_call *call, const cumulate *const *of)
{
    cumulating c = plan(call);
    c.of = of[call->out[0].dtype];
    if (weft_view_count(&call->out[0]) == 0) return;
    if (is_by_blocks(&c))
        by_blocks(&c, call->stream);
    else if (c.inner >= LEAST_LINES)
        by_stretches(&c, call->stream);
    else
        by_outer(&c, call->stream);
}

void weft_cumsum_cpu(const weft_call *call)
{
    run(call, sums);
}

void weft_cumprod_cpu(const weft_call *call)
{
    run(call, products);
}

void weft_cummax_cpu(const weft_call *call)
{
    run(call, tops);
}

#define KERNEL_OF(op)                                                                              \
    const weft_kernel weft_kernel_##op = {                                                         \
        .size = sizeof(weft_kernel),                                                               \
        .name = #op,                                                                               \
        .device = WEFT_CPU,                                                                        \
        .dtypes = WEFT_WIDE_DTYPES,                                                                \
        .scratch = scratch,                                                                        \
        .launch = weft_##op##_cpu,                                                                 \
    };
KERNEL_OF(cumsum)
KERNEL_OF(cumprod)
KERNEL_OF(cummax)
