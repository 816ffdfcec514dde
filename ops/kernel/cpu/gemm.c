/* gemm.c: c = alpha a b, by blocks that stay in cache.
 *
 * k is cut into depths by its own size alone, and each element is summed up along a depth in one register, so the
 * bits of c do not depend on how m and n are cut. At each depth the side with fewer rows or columns is packed once
 * and stays in L2; the other flows past it in small blocks. Both are packed as panels in which a tile's operands lie
 * one after the other, by the first tile that reads a panel: its arithmetic hides the copying. The next operands to
 * pack are prefetched while tiles are computed. Rows that one panel goes past are not packed. Lanes that share a
 * product pack what stays, each for itself, and take what flows. bf16 is packed as pairs along k where the processor
 * multiplies those well; else, as f16, it is widened as it is packed, and computed with in f32.
 * source  Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication"; Van Zee and van de Geijn 2015
 */
#include "cpu/gemm_tile.h"

#include <string.h>

#include "weft/extend/half.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)

typedef float floats __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef uint32_t pairs __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t pairs_8 __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint16_t halves
    __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(uint16_t)), may_alias));
typedef uint16_t halves_8
    __attribute__((vector_size(VECTOR_BYTES / 4), aligned(sizeof(uint16_t)), may_alias));

/* As weft_bf16_of_f32. */
TILE_INLINE TILE_TARGET void narrow_floats(uint16_t *to, floats x)
{
    const pairs bits = (pairs)x, rounded = bits + 0x7FFFu + (bits >> 16 & 1u),
                is_nan = (pairs)(x != x);
    const pairs narrow = (rounded & ~is_nan) | ((bits | 0x400000u) & is_nan);
    *(halves *)to = __builtin_convertvector(narrow >> 16, halves);
}

/* Elements of two rows side by side, those of the first below. */
TILE_INLINE TILE_TARGET pairs pair_rows(const uint16_t *at, int64_t deep)
{
    return __builtin_convertvector(*(const halves *)(const void *)at, pairs) |
           __builtin_convertvector(*(const halves *)(const void *)(at + deep), pairs) << 16;
}

TILE_INLINE TILE_TARGET pairs_8 pair_rows_8(const uint16_t *at, int64_t deep)
{
    return __builtin_convertvector(*(const halves_8 *)(const void *)at, pairs_8) |
           __builtin_convertvector(*(const halves_8 *)(const void *)(at + deep), pairs_8) << 16;
}

TILE_INLINE uint32_t pair_of(const uint16_t *at, int64_t deep, int64_t n)
{
    return (uint32_t)at[0] | (n > 1 ? (uint32_t)at[deep] << 16 : 0);
}

#define STORED                 float
#define ELEMENT                float
#define EACH                   1
#define SUM                    float
#define TILE(name)             JOIN(name, f32)
#define LOW                    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH                   8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define INSTRUCTIONS           TILE_TARGET
#define ADDED(sum, row, a)     ((sum) + (row) * (a))
#define NARROW(to, sums)       narrow_floats(to, (floats)(sums))
#define JOINED(at, deep, n)    (*(at))
#define LEVEL_VECTOR(at, deep) (*(const vector_f32 *)(const void *)(at))
#define LEVEL_EIGHT(at, deep)  (*(const eight_f32 *)(const void *)(at))
#include "cpu/gemm_tile.inc"

#define STORED                 double
#define ELEMENT                double
#define EACH                   1
#define SUM                    double
#define TILE(name)             JOIN(name, f64)
#define LOW                    0, 8, 1, 9, 2, 10, 3, 11
#define HIGH                   4, 12, 5, 13, 6, 14, 7, 15
#define INSTRUCTIONS           TILE_TARGET
#define ADDED(sum, row, a)     ((sum) + (row) * (a))
#define NARROW(to, sums)       (void)(to), (void)(sums) /* f64 is not stored as bf16 */
#define JOINED(at, deep, n)    (*(at))
#define LEVEL_VECTOR(at, deep) (*(const vector_f64 *)(const void *)(at))
#define LEVEL_EIGHT(at, deep)  (*(const eight_f64 *)(const void *)(at))
#include "cpu/gemm_tile.inc"

/* Pairs of bf16, which the processor multiplies and adds up in f32 by one instruction. */
#define PAIR_TARGET                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")))
#define STORED       uint16_t
#define ELEMENT      uint32_t
#define EACH         2
#define SUM          float
#define TILE(name)   JOIN(name, bf16)
#define LOW          0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH         8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define INSTRUCTIONS PAIR_TARGET
#define ADDED(sum, row, a)                                                                         \
    ((sums_bf16)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)(row),                                   \
                                 (__m512bh)_mm512_set1_epi32((int32_t)(a))))
#define NARROW(to, sums)       narrow_floats(to, (floats)(sums))
#define JOINED(at, deep, n)    pair_of(at, deep, n)
#define LEVEL_VECTOR(at, deep) ((vector_bf16)pair_rows(at, deep))
#define LEVEL_EIGHT(at, deep)  ((eight_bf16)pair_rows_8(at, deep))
#include "cpu/gemm_tile.inc"

static TILE_TARGET void widen_bf16(int64_t n, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = weft_f32_of_bf16(from[i]);
}

/* In vectors by the processor's own instruction. */
static TILE_TARGET void widen_f16(int64_t n, const uint16_t *from, float *to)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + i))));
    for (; i < n; i++)
        to[i] = weft_f32_of_f16(from[i]);
}
static void (*const widens[WEFT_DTYPES])(int64_t n, const uint16_t *from, float *to) = {
    [WEFT_BF16] = widen_bf16, [WEFT_F16] = widen_f16};

static const tile_kernels *const kernels[WEFT_DTYPES] = {
    [WEFT_F32] = &kernels_f32, [WEFT_F64] = &kernels_f64};

/* Zen does as many of its products of pairs as of f32 in a second; Intel's processors, half as many or fewer: there f32 is no
 * slower. By the processor alone, so that every run has the same bits. */
static const tile_kernels *pair_kernels(weft_dtype reads)
{
    const bool is_fast = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
    return reads == WEFT_BF16 && is_fast ? &kernels_bf16 : NULL;
}

bool weft_gemm_has(weft_dtype dtype)
{
    return kernels[dtype] != NULL && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#else
static void (*const widens[WEFT_DTYPES])(int64_t n, const uint16_t *from, float *to);
static const tile_kernels *const kernels[WEFT_DTYPES];

static const tile_kernels *pair_kernels(weft_dtype reads)
{
    (void)reads;
    return NULL;
}

bool weft_gemm_has(weft_dtype dtype)
{
    (void)dtype;
    return false;
}
#endif

const tile_kernels *weft_gemm_kernels(weft_dtype dtype)
{
    return weft_gemm_has(dtype) ? kernels[dtype] : NULL;
}

bool weft_gemm_has_pairs(void)
{
    return weft_gemm_has(WEFT_F32) && pair_kernels(WEFT_BF16) != NULL;
}

/* A panel of b at full depth is in L1, what stays in L2. What flows is one panel of columns, or a few of rows, at a time,
 * packed to memory small enough for L1: four times as much at once made products 0 to 5 % slower. Rows or columns are cut
 * in whole panels of every kind. A short sum is one depth: c is written once. */
enum { DEPTH_BYTES = 768, MOST_DEPTH_BYTES = 1024, STAYS_BYTES = 1056 * DEPTH_BYTES };
enum { PAIRS_DEPTH_BYTES = 1536 };
enum { FLOWS = WEFT_GEMM_COLUMNS };
_Static_assert(WEFT_GEMM_COLUMNS % WEFT_GEMM_ROWS == 0, "whole panels");
_Static_assert(STAYS_BYTES + FLOWS * PAIRS_DEPTH_BYTES <= WEFT_GEMM_SCRATCH, "scratch holds both");

typedef struct product {
    const tile_kernels *kernels;
    size_t bytes; /* of an element of c, and of a step of a packed row */
    int64_t m, n, k, leading;
    side a, b;
    char *c;
    uint16_t *narrow; /* as in weft_product */
    int64_t narrow_leading;
    double alpha;
    bool add;
    bool a_stays;
    weft_stream *stream; /* as in weft_product */
    int lane;
    int64_t unit;
} product;

/* Rows [first, first + n) of a side at the depth [l, l + k). */
typedef struct packed_part {
    int64_t first, n, l, k;
} packed_part;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Of k as it is packed. */
static int64_t steps_of(const product *p, int64_t k)
{
    return (k + p->kernels->each - 1) / p->kernels->each;
}

static const char *at(const side *s, int64_t first, int64_t l)
{
    return s->data + (first * s->step + l * s->deep) * s->bytes;
}

/* The same panel in f32: it is packed from there, as f32 is. Rows end apart, so that they do not fall on the same cache sets. */
enum { WIDE_ROW = MOST_DEPTH_BYTES / sizeof(float) + 16 };
static void widen_panel(side *s, int n, int64_t k, float *wide)
{
    const uint16_t *from = (const uint16_t *)(const void *)s->data;
    const bool is_upright = s->deep == 1, is_level = s->step == 1;
    for (int i = 0; i < n && is_upright; i++)
        s->widen(k, from + i * s->step, wide + i * WIDE_ROW);
    for (int64_t l = 0; l < k && !is_upright && is_level; l++)
        s->widen(n, from + l * s->deep, wide + l * n);
    for (int i = 0; i < n && !is_upright && !is_level; i++)
        for (int64_t l = 0; l < k; l++)
            s->widen(1, from + i * s->step + l * s->deep, wide + i * WIDE_ROW + l);
    s->data = (const char *)wide;
    s->step = is_level && !is_upright ? 1 : WIDE_ROW;
    s->deep = is_level && !is_upright ? n : 1;
}

static void pack_panel(const product *p, const side *s, const packed_part *part, int64_t i,
                       char *to)
{
    const int n = (int)smaller(s->panel, part->n - i);
    float wide[WEFT_GEMM_COLUMNS * WIDE_ROW];
    side panel = *s;
    panel.data = at(s, part->first + i, part->l);
    if (s->widen != NULL) widen_panel(&panel, n, part->k, wide);
    p->kernels->pack(&panel, n, (n + s->pad - 1) / s->pad * s->pad, part->k, to);
}

static void pack(const product *p, const side *s, const packed_part *part, char *to)
{
    for (int64_t i = 0; i < part->n; i += s->panel)
        pack_panel(p, s, part, i, to + (size_t)(i * steps_of(p, part->k)) * p->bytes);
}

/* The same memory, to be fetched in `n_times` goes. */
static ahead ahead_of(const side *s, const packed_part *part, int64_t n_times)
{
    const bool by_row = s->step != 1;
    const int64_t bytes = s->bytes;
    ahead next = {.at = at(s, part->first, part->l),
                  .rows = by_row ? part->n : part->k,
                  .stride = (by_row ? s->step : s->deep) * bytes,
                  .lines = (int)(((by_row ? part->k : part->n) * bytes + 63) / 64)};
    next.share = (int)((next.rows * next.lines + n_times - 1) / n_times);
    return next;
}

/* Where one panel is all columns, a tile that packed rows would do it for nobody: their elements are read as they lie. */
static bool is_loose(const product *p, const packed_part *columns)
{
    return p->a.deep == 1 && p->a.widen == NULL && columns->n <= p->b.panel &&
           columns->n % p->kernels->width == 0 && columns->k % p->kernels->each == 0;
}

/* The last depth's sums are narrowed, if any are. */
static uint16_t *narrow_at(const product *p, const packed_part *rows, int64_t row, int64_t column)
{
    if (p->narrow == NULL || rows->l + rows->k < p->k) return NULL;
    return p->narrow + row * p->narrow_leading + column;
}

/* All whole tiles of m by one panel at one depth, a not packed; returns their rows. */
static int64_t run_loose(const product *p, const packed_part *rows, const packed_part *columns,
                         const char *b)
{
    const int64_t whole = rows->n / TILE_ROWS * TILE_ROWS;
    loose_tile t = {.k = steps_of(p, rows->k),
                    .b = b,
                    .a_row = p->a.step,
                    .a_step = p->a.deep,
                    .b_step = columns->n,
                    .leading = p->leading,
                    .add = p->add || rows->l > 0,
                    .alpha = p->alpha,
                    .narrow_leading = p->narrow_leading};
    for (int64_t i = 0; i < whole; i += TILE_ROWS) {
        t.a = at(&p->a, rows->first + i, rows->l);
        t.c = p->c + (size_t)((rows->first + i) * p->leading + columns->first) * p->bytes;
        t.narrow = narrow_at(p, rows, rows->first + i, columns->first);
        p->kernels->loose[columns->n / p->kernels->width - 1](&t);
    }
    return whole;
}

/* A part and where it is packed. */
typedef struct packing {
    const packed_part *part;
    char *memory;
    bool is_packed; /* all of it; else each panel is when it is first read */
} packing;

/* Panel i, which nothing has read yet. */
static lies read_first(const product *p, const side *s, const packing *x, int64_t i, bool is_whole,
                       operand *o)
{
    const bool is_level = s->step == 1, is_upright = s->deep == 1 && s->panel == TILE_ROWS;
    if (!is_whole || (!is_level && !is_upright) || s->widen != NULL ||
        x->part->k % p->kernels->each != 0) {
        pack_panel(p, s, x->part, i, o->to);
        return PACKED;
    }
    o->from = at(s, x->part->first + i, x->part->l);
    o->stride = is_level ? s->deep : s->step;
    return is_level ? LEVEL : UPRIGHT;
}

static lies read_panel(const product *p, const side *s, const packing *x, int64_t i, bool is_first,
                       bool is_whole, operand *o)
{
    o->from = o->to = x->memory + (size_t)(i * steps_of(p, x->part->k)) * p->bytes;
    return x->is_packed || !is_first ? PACKED : read_first(p, s, x, i, is_whole, o);
}

/* All tiles of m by n at one depth. */
static void run_block(const product *p, const packing *a, const packing *b, ahead *next)
{
    const packed_part *rows = a->part, *columns = b->part;
    const int panel = p->b.panel, width = p->kernels->width;
    tile t = {.k = steps_of(p, rows->k),
              .leading = p->leading,
              .add = p->add || rows->l > 0,
              .alpha = p->alpha,
              .narrow_leading = p->narrow_leading,
              .next = next};
    for (int64_t j = 0; j < columns->n; j += panel) {
        t.columns = (int)smaller(panel, columns->n - j);
        const int n_vectors = (t.columns + width - 1) / width;
        for (int64_t i = 0; i < rows->n; i += TILE_ROWS) {
            const int64_t n_rows = smaller(TILE_ROWS, rows->n - i);
            const bool is_whole = n_rows == TILE_ROWS && t.columns % width == 0;
            const lies of_a = read_panel(p, &p->a, a, i, j == 0, is_whole, &t.a),
                       of_b = read_panel(p, &p->b, b, j, i == 0, is_whole, &t.b);
            t.c = p->c + (size_t)((rows->first + i) * p->leading + columns->first + j) * p->bytes;
            t.narrow = narrow_at(p, rows, rows->first + i, columns->first + j);
            if (of_a == PACKED && of_b == PACKED)
                p->kernels->compute[n_rows - 1][n_vectors - 1](&t);
            else
                p->kernels->first[of_a][of_b][n_vectors - 1](&t);
        }
    }
}

static int64_t count_tiles(const product *p, int64_t m, int64_t n)
{
    return ((m + TILE_ROWS - 1) / TILE_ROWS) * ((n + p->b.panel - 1) / p->b.panel);
}

/* What of the flowing side comes next; false: nothing does. */
static bool take(const product *p, int64_t n_moving, packed_part *flows)
{
    if (p->unit == 0) {
        flows->first += flows->n;
        flows->n = smaller(FLOWS, n_moving - flows->first);
        return flows->n > 0;
    }
    int64_t begin, end;
    if (!weft_stream_take(p->stream, p->lane, FLOWS / p->unit, &begin, &end)) return false;
    flows->first = begin * p->unit;
    flows->n = smaller(end * p->unit, n_moving) - flows->first;
    return true;
}

/* Most likely, what comes behind `flows`; at the end, it is the first at the next depth. */
static packed_part guess_next(const product *p, const packed_part *flows, int64_t n_moving,
                              int64_t depth)
{
    const int64_t first = flows->first + flows->n, deeper = flows->l + depth;
    if (first < n_moving)
        return (packed_part){first, smaller(FLOWS, n_moving - first), flows->l, flows->k};
    return (packed_part){0, smaller(FLOWS, n_moving), deeper, smaller(depth, p->k - deeper)};
}

/* Tiles of a lane's share, by which what comes next is fetched. */
static int64_t count_own_tiles(const product *p, const packed_part *stays)
{
    const int64_t n_tiles =
        p->a_stays ? count_tiles(p, stays->n, p->n) : count_tiles(p, p->m, stays->n);
    const int64_t own = p->unit == 0 ? n_tiles : n_tiles / weft_stream_lanes(p->stream);
    return own > 0 ? own : 1;
}

/* A part that flows goes past what stays. */
static void run_past(const product *p, const packing *held, packed_part flows, bool is_loose,
                     ahead *next, char *scratch)
{
    if (is_loose) {
        const int64_t done = run_loose(p, &flows, held->part, held->memory);
        flows.first += done, flows.n -= done;
    }
    const packing flowing = {&flows, scratch + STAYS_BYTES, false};
    if (flows.n > 0) run_block(p, p->a_stays ? held : &flowing, p->a_stays ? &flowing : held, next);
}

/* All that flows, or what this lane takes of it, goes past what stays. */
static void run_depth(const product *p, const packed_part *stays, int64_t depth, char *scratch)
{
    const side *still = p->a_stays ? &p->a : &p->b, *moving = p->a_stays ? &p->b : &p->a;
    const int64_t n_moving = p->a_stays ? p->n : p->m, deeper = stays->l + depth;
    const bool loose = !p->a_stays && is_loose(p, stays);
    packing held = {stays, scratch, loose};
    ahead next[2] = {{0}};
    if (deeper < p->k)
        next[1] = ahead_of(
            still, &(packed_part){stays->first, stays->n, deeper, smaller(depth, p->k - deeper)},
            TILE_ROWS * count_own_tiles(p, stays));
    if (loose) pack(p, still, stays, scratch);
    for (packed_part flows = {0, 0, stays->l, stays->k}; take(p, n_moving, &flows);) {
        const packed_part later = guess_next(p, &flows, n_moving, depth);
        next[0] = (ahead){0};
        if (later.k > 0)
            next[0] = ahead_of(moving, &later,
                               TILE_ROWS * (p->a_stays ? count_tiles(p, stays->n, flows.n)
                                                       : count_tiles(p, flows.n, stays->n)));
        run_past(p, &held, flows, loose, next, scratch);
        held.is_packed = true;
        weft_stream_pause(p->stream, p->lane);
    }
}

static int64_t depth_of(const product *p)
{
    const int64_t bytes = (int64_t)p->bytes / p->kernels->each;
    const int64_t most = (p->kernels->each > 1 ? PAIRS_DEPTH_BYTES : DEPTH_BYTES) / bytes;
    if (p->k * bytes <= (p->kernels->each > 1 ? PAIRS_DEPTH_BYTES : MOST_DEPTH_BYTES)) return p->k;
    const int64_t n_depths = (p->k + most - 1) / most;
    return smaller(most, ((p->k + n_depths - 1) / n_depths + 7) / 8 * 8);
}

static void run(const product *p, char *scratch)
{
    const int64_t depth = depth_of(p),
                  panels = STAYS_BYTES / (FLOWS * steps_of(p, depth) * (int64_t)p->bytes);
    const int64_t n = p->a_stays ? p->m : p->n,
                  most = FLOWS * smaller(panels, (n + FLOWS - 1) / FLOWS);
    for (int64_t first = 0; first < n; first += most)
        for (int64_t l = 0; l < p->k; l += depth) {
            if (p->unit > 0 && first + l > 0) weft_stream_again(p->stream, p->lane);
            run_depth(p,
                      &(packed_part){first, smaller(most, n - first), l, smaller(depth, p->k - l)},
                      depth, scratch);
        }
}

void weft_gemm(const weft_product *x, void *scratch)
{
    const tile_kernels *paired = pair_kernels(x->reads),
                       *table = paired ? paired : kernels[x->dtype];
    product p = {.kernels = table,
                 .bytes = weft_dtype_bytes(x->dtype),
                 .k = x->k,
                 .c = x->c.data,
                 .alpha = x->alpha,
                 .add = x->beta != 0,
                 .stream = x->stream,
                 .lane = x->lane,
                 .unit = x->unit,
                 .narrow = x->narrow.data};
    /* of an element of one row or column no stride is meant: c's rows, or those of its transpose, are contiguous */
    const bool is_turned = x->c.column != 1 && x->n > 1;
    const weft_matrix *a = is_turned ? &x->b : &x->a, *b = is_turned ? &x->a : &x->b;
    p.m = is_turned ? x->n : x->m, p.n = is_turned ? x->m : x->n;
    const bool takes_rows = x->m >= x->n;
    p.a_stays = x->unit == 0 ? p.m < p.n : is_turned == takes_rows;
    p.leading = is_turned ? x->c.column : x->c.row;
    p.narrow_leading = is_turned ? x->narrow.column : x->narrow.row;
    p.a = (side){a->data, is_turned ? a->column : a->row, is_turned ? a->row : a->column, TILE_ROWS,
                 1};
    p.b = (side){b->data, is_turned ? b->row : b->column, is_turned ? b->column : b->row,
                 table->width * TILE_VECTORS, table->width};
    p.a.widen = p.b.widen = paired ? NULL : widens[x->reads];
    p.a.bytes = p.b.bytes =
        (int)weft_dtype_bytes(paired || p.a.widen != NULL ? x->reads : x->dtype);
    run(&p, scratch);
}
