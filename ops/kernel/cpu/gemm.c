/* gemm.c: c = alpha a b, by blocks that stay in cache.
 *
 * k is cut into depths by its own size alone, and each element is summed up along a depth in one register, so the
 * bits of c do not depend on how m and n are cut. At each depth the side with fewer rows or columns is packed once
 * and stays in L2; the other flows past it in small blocks. Both are packed as panels in which a tile's operands lie
 * one after the other, by the first tile that reads a panel: its arithmetic hides the copying. The next operands to
 * pack are prefetched while tiles are computed. Rows that one panel goes past are not packed. Lanes that share a
 * product pack what stays, each for itself, and take what flows. bf16 is packed as pairs along k where the processor
 * multiplies those well; else, as f16, it is widened as it is packed, and computed with in f32. An operand of f32 may be
 * rounded to bf16 as it is packed.
 * source  Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication"; Van Zee and van de Geijn 2015
 */
#include "cpu/gemm_tile.h"

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

/* The same panel as kernels read it: it is packed from there. Rows end apart, so that they do not fall on the same cache sets. */
enum { CONVERTED_ROW = PAIRS_DEPTH_BYTES + 64 };
static void convert_panel(side *s, int n, int64_t k, char *to)
{
    const bool is_upright = s->deep == 1, is_level = s->step == 1 && !is_upright;
    const int64_t bytes = s->converted, row = is_level ? 1 : CONVERTED_ROW / bytes,
                  deep = is_level ? n : 1;
    for (int i = 0; i < n && is_upright; i++)
        s->convert(k, at(s, i, 0), to + i * row * bytes);
    for (int64_t l = 0; l < k && is_level; l++)
        s->convert(n, at(s, 0, l), to + l * deep * bytes);
    for (int i = 0; i < n && !is_upright && !is_level; i++)
        for (int64_t l = 0; l < k; l++)
            s->convert(1, at(s, i, l), to + (i * row + l) * bytes);
    s->data = to;
    s->step = row, s->deep = deep, s->bytes = s->converted;
}

static void pack_panel(const product *p, const side *s, const packed_part *part, int64_t i,
                       char *to)
{
    const int n = (int)smaller(s->panel, part->n - i);
    char converted[WEFT_GEMM_COLUMNS * CONVERTED_ROW] __attribute__((aligned(64)));
    side panel = *s;
    panel.data = at(s, part->first + i, part->l);
    if (s->pack_wide != NULL && s->step == 1 && n % p->kernels->width == 0) {
        s->pack_wide(&panel, n, part->k, to);
        return;
    }
    if (s->convert != NULL) convert_panel(&panel, n, part->k, converted);
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
    return p->a.deep == 1 && p->a.convert == NULL && columns->n <= p->b.panel &&
           columns->n % p->kernels->width == 0 && columns->k % p->kernels->each == 0;
}

/* The last depth's sums are narrowed, if any are. */
static uint16_t *narrow_at(const product *p, const packed_part *rows, int64_t row, int64_t column)
{
    if (p->narrow == NULL || rows->l + rows->k < p->k) return NULL;
    return p->narrow + row * p->narrow_leading + column;
}

/* All whole tiles of m by one panel at one depth, a not packed; returns their rows. From one l to the next b moves by so many
 * elements: those of a packed panel, or of a row of b. */
static int64_t run_loose(const product *p, const packed_part *rows, const packed_part *columns,
                         const char *b, int64_t b_step)
{
    const int64_t whole = rows->n / TILE_ROWS * TILE_ROWS;
    loose_tile t = {.k = steps_of(p, rows->k),
                    .b = b,
                    .a_row = p->a.step,
                    .a_step = p->a.deep,
                    .b_step = b_step,
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

/* A panel that goes past a few rows is read so few times that to pack it costs more than it spares: as long as all of b stays
 * in a cache, both operands are read as they lie. So a trip of a scan multiplies its state by a matrix. */
enum { FEW_ROWS = 4 * TILE_ROWS };
static bool is_few(const product *p)
{
    return p->a_stays && p->m <= FEW_ROWS && p->m % TILE_ROWS == 0 && p->a.deep == 1 &&
           p->b.step == 1 && p->a.convert == NULL && p->b.convert == NULL &&
           p->kernels->each == 1 && p->n % p->kernels->width == 0 &&
           p->k * p->n * (int64_t)p->bytes <= 2 * STAYS_BYTES;
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
    if (!is_whole || (!is_level && !is_upright) || s->convert != NULL ||
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
        const int64_t done = run_loose(p, &flows, held->part, held->memory, held->part->n);
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

/* Columns [flows.first, + flows.n), depth by depth, as sums go elsewhere too. */
static void run_columns(const product *p, const packed_part *flows, int64_t depth)
{
    for (int64_t l = 0; l < p->k; l += depth)
        for (int64_t j = 0; j < flows->n; j += p->b.panel) {
            const packed_part rows = {0, p->m, l, smaller(depth, p->k - l)},
                              columns = {flows->first + j, smaller(p->b.panel, flows->n - j), l,
                                         rows.k};
            (void)run_loose(p, &rows, &columns, at(&p->b, columns.first, l), p->b.deep);
        }
}

static void run_few(const product *p, int64_t depth)
{
    for (packed_part flows = {0}; take(p, p->n, &flows); weft_stream_pause(p->stream, p->lane))
        run_columns(p, &flows, depth);
}

static void run(const product *p, char *scratch)
{
    if (is_few(p)) {
        run_few(p, depth_of(p));
        return;
    }
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

static void take_as_stored(side *s, weft_dtype reads, bool rounds)
{
    const weft_dtype stored = rounds ? WEFT_F32 : reads;
    s->bytes = (int)weft_dtype_bytes(stored);
    s->convert = weft_gemm_convert(reads, stored);
    s->pack_wide = weft_gemm_pack_wide(reads, stored);
    s->converted = weft_gemm_kernels_for(reads)->each > 1 ? 2 : 4; /* bytes of bf16, of f32 */
}

void weft_gemm(const weft_product *x, void *scratch)
{
    const weft_dtype reads = weft_dtype_computes(x->reads) == x->reads ? x->dtype : x->reads;
    const tile_kernels *table = weft_gemm_kernels_for(reads);
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
    /* of an element of one row or column no stride is meant: the result's rows, or those of its transpose, are contiguous. The sums
     * of one row are so either way, where it goes as bf16 may not */
    const weft_matrix *result = x->narrow.data != NULL ? &x->narrow : &x->c;
    const bool is_turned = result->column != 1 && x->n > 1;
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
    take_as_stored(&p.a, reads, is_turned ? x->rounds_b : x->rounds_a);
    take_as_stored(&p.b, reads, is_turned ? x->rounds_a : x->rounds_b);
    run(&p, scratch);
}
