/* box_copy: elements of one box copied or combined into another: loops over both at once, cut into pieces for the lanes.
 *
 * Where elements that follow each other in one box do so in the other as well, a piece is a stretch of a run. Where they do
 * not, as in a transpose, a piece is as many squares as are side by side, each small enough for the first-level cache: read
 * along lines of one box, written along lines of the other.
 */
#include "mesh_internal.h"
#include "weft/extend/target_clones.h"

#include <string.h>

enum { TILE = 32, WORTH = 64 << 10 /* bytes that take about as long as waking a lane */ };

void weft_box_copy_add(weft_box_copy *box, int64_t count, int64_t from_stride, int64_t to_stride)
{
    const int64_t most = (int64_t)1 << 50; /* elements of a tensor */
    if (box == NULL || count <= 1 || count > most || from_stride > most || to_stride > most) return;
    if (from_stride < 0 || to_stride < 0) return;
    const int last = box->n_loops - 1;
    if (last < 0 && from_stride == box->run && to_stride == box->run) {
        box->run *= count;
    } else if (last >= 0 && from_stride == box->from_stride[last] * box->count[last] &&
               to_stride == box->to_stride[last] * box->count[last]) {
        box->count[last] *= count;
    } else if (box->n_loops < WEFT_BOX_LOOPS) {
        box->count[box->n_loops] = count;
        box->from_stride[box->n_loops] = from_stride;
        box->to_stride[box->n_loops] = to_stride;
        box->n_loops++;
    }
}

/* ---- loops --------------------------------------------------------------------------------------- */

/* A place in the loops: the current run in both boxes. */
typedef struct walk {
    int64_t at[WEFT_BOX_LOOPS], from, to;
} walk;

static walk walk_at(const weft_box_copy *box, int64_t index)
{
    walk w = {.from = box->from_at, .to = box->to_at};
    for (int l = 0; l < box->n_loops && index > 0; l++) {
        w.at[l] = index % box->count[l];
        index /= box->count[l];
        w.from += w.at[l] * box->from_stride[l];
        w.to += w.at[l] * box->to_stride[l];
    }
    return w;
}

/* On by `n` runs, of which the last is at most the last of the innermost loop. */
static void go_on(const weft_box_copy *box, walk *w, int64_t n)
{
    for (int l = 0; l < box->n_loops; l++, n = 1) {
        w->from += n * box->from_stride[l];
        w->to += n * box->to_stride[l];
        if ((w->at[l] += n) < box->count[l]) return;
        w->from -= box->from_stride[l] * box->count[l];
        w->to -= box->to_stride[l] * box->count[l];
        w->at[l] = 0;
    }
}

static int64_t count_runs(const weft_box_copy *box)
{
    int64_t count = 1;
    for (int l = 0; l < box->n_loops; l++)
        count *= box->count[l];
    return count;
}

static void drop_loop(weft_box_copy *box, int l)
{
    box->n_loops--;
    for (; l < box->n_loops; l++) {
        box->count[l] = box->count[l + 1];
        box->from_stride[l] = box->from_stride[l + 1];
        box->to_stride[l] = box->to_stride[l + 1];
    }
}

/* ---- pieces -------------------------------------------------------------------------------------- */

typedef struct job {
    char *to;
    const char *from;
    const weft_box_copy *box;
    size_t element;
    /* Of `n_runs` runs of the innermost loop, the first of which is at `w`, elements [first, first + count); or of squares,
     * rows. */
    void (*piece)(const struct job *job, const walk *w, int64_t n_runs, int64_t first,
                  int64_t count);
    int64_t length, part; /* of a run, or the rows of squares; and how much of that is a piece */
    int64_t n_parts;
    const weft_combining *rule; /* combines */
    /* squares: n elements are side by side in `to`, so far apart in `from`; rows are side by side in `from`, ... */
    int64_t n, from_stride;
    int64_t to_stride; /* ... so far apart in `to` */
} job;

/* Runs that are one piece each, as far as the innermost loop goes. */
static void run_whole(const job *j, int64_t begin, int64_t end)
{
    walk w = walk_at(j->box, begin);
    while (begin < end) {
        const int64_t left = j->box->n_loops > 0 ? j->box->count[0] - w.at[0] : 1;
        const int64_t n = left < end - begin ? left : end - begin;
        j->piece(j, &w, n, 0, j->length);
        go_on(j->box, &w, n);
        begin += n;
    }
}

static void run_parts(const job *j, int64_t begin, int64_t end)
{
    walk w = walk_at(j->box, begin / j->n_parts);
    int64_t first = begin % j->n_parts * j->part;
    for (int64_t i = begin; i < end; i++) {
        const int64_t left = j->length - first;
        j->piece(j, &w, 1, first, left < j->part ? left : j->part);
        first += j->part;
        if (first < j->length) continue;
        first = 0;
        go_on(j->box, &w, 1);
    }
}

static void run_pieces(void *argument, int64_t begin, int64_t end, int lane)
{
    const job *j = argument;
    (void)lane;
    (j->n_parts == 1 ? run_whole : run_parts)(j, begin, end);
}

static void run(weft_stream *stream, job *j, int64_t part_bytes)
{
    j->n_parts = (j->length + j->part - 1) / j->part;
    const int64_t grain = part_bytes < WORTH ? WORTH / part_bytes : 1;
    weft_parallel(stream, count_runs(j->box) * j->n_parts, grain, run_pieces, j);
}

static void copy_stretch(const job *j, const walk *w, int64_t n_runs, int64_t first, int64_t count)
{
    const size_t bytes = (size_t)count * j->element;
    char *to = j->to + (size_t)(w->to + first) * j->element;
    const char *from = j->from + (size_t)(w->from + first) * j->element;
    for (int64_t r = 0; r < n_runs; r++) {
        memcpy(to, from, bytes);
        if (n_runs == 1) return;
        to += (size_t)j->box->to_stride[0] * j->element;
        from += (size_t)j->box->from_stride[0] * j->element;
    }
}

static void combine_stretch(const job *j, const walk *w, int64_t n_runs, int64_t first,
                            int64_t count)
{
    for (int64_t r = 0; r < n_runs; r++) {
        const int64_t to = r > 0 ? r * j->box->to_stride[0] : 0;
        const int64_t from = r > 0 ? r * j->box->from_stride[0] : 0;
        char *into = j->to + (size_t)(w->to + to + first) * j->element;
        const char *with = j->from + (size_t)(w->from + from + first) * j->element;
        j->rule->host(into, into, with, count / j->rule->width);
    }
}

/* ---- squares ------------------------------------------------------------------------------------- */

typedef uint8_t __attribute__((may_alias)) word1;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

/* Elements [begin, end) of each of `rows`. */
#define SQUARE(T)                                                                                  \
    static void square_##T(const job *j, char *to, const char *from, int64_t begin, int64_t end,   \
                           int64_t rows)                                                           \
    {                                                                                              \
        const int64_t from_stride = j->from_stride, to_stride = j->to_stride;                      \
        for (int64_t i = 0; i < rows; i++) {                                                       \
            T *y = (T *)(void *)to + i * to_stride;                                                \
            const T *x = (const T *)(const void *)from + i;                                        \
            for (int64_t l = begin; l < end; l++)                                                  \
                y[l] = x[l * from_stride];                                                         \
        }                                                                                          \
    }
SQUARE(word1)
SQUARE(word2)
SQUARE(word4)
SQUARE(word8)

/* Squares of SIDE x SIDE words turned in registers: pairs of rows, 1, 2 and 4 apart, exchange the halves of pairs of words that lie as
 * far apart. */
enum { SIDE = 8, PAIR = 2 * SIDE };
typedef uint32_t words __attribute__((vector_size(SIDE * sizeof(uint32_t))));
#define EXCHANGE(r, by, l0, l1, l2, l3, l4, l5, l6, l7, h0, h1, h2, h3, h4, h5, h6, h7)            \
    for (int i_ = 0; i_ < SIDE; i_++)                                                              \
        if (!(i_ & (by))) {                                                                        \
            const words a_ = (r)[i_], b_ = (r)[i_ + (by)];                                         \
            (r)[i_] = __builtin_shufflevector(a_, b_, l0, l1, l2, l3, l4, l5, l6, l7);             \
            (r)[i_ + (by)] = __builtin_shufflevector(a_, b_, h0, h1, h2, h3, h4, h5, h6, h7);      \
        }

/* A line of either side is a pair of squares: two are turned one after the other, so that a line is written as a whole. Rows that
 * lie a power of two apart share few places of the first-level cache, and half a line would be gone before the other half comes. To
 * ask for lines ahead gained nothing. */

/* On by one line. A compiler that works out the places of all lines ahead has no registers for them. */
#define GO_ON(p, stride)                                                                           \
    (p) += (stride);                                                                               \
    __asm__("" : "+r"(p));
#define TURN(r, x, stride)                                                                         \
    for (int k_ = 0; k_ < SIDE; k_++) {                                                            \
        memcpy(&(r)[k_], x, sizeof(r)[k_]);                                                        \
        GO_ON(x, stride)                                                                           \
    }                                                                                              \
    EXCHANGE(r, 1, 0, 8, 2, 10, 4, 12, 6, 14, 1, 9, 3, 11, 5, 13, 7, 15)                           \
    EXCHANGE(r, 2, 0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 10, 11, 6, 7, 14, 15)                           \
    EXCHANGE(r, 4, 0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15)

WEFT_TARGET_CLONES static void turned_word4(const job *j, char *to, const char *from, int64_t begin,
                                            int64_t end, int64_t rows)
{
    const int64_t from_stride = j->from_stride, to_stride = j->to_stride;
    const int64_t whole_rows = rows / SIDE * SIDE, whole = begin + (end - begin) / SIDE * SIDE;
    for (int64_t i = 0; i < whole_rows; i += PAIR)
        for (int64_t l = begin; l < whole; l += PAIR) {
            const int64_t pair = i + PAIR < whole_rows ? i + PAIR : whole_rows;
            for (int64_t h = i; h < pair; h += SIDE) {
                const word4 *x = (const word4 *)(const void *)from + l * from_stride + h;
                word4 *y = (word4 *)(void *)to + h * to_stride + l;
                words r[SIDE], next[SIDE];
                TURN(r, x, from_stride)
                if (l + PAIR > whole) {
                    for (int k = 0; k < SIDE; k++) {
                        memcpy(y, &r[k], sizeof r[k]);
                        GO_ON(y, to_stride)
                    }
                    continue;
                }
                TURN(next, x, from_stride)
                for (int k = 0; k < SIDE; k++) {
                    memcpy(y, &r[k], sizeof r[k]);
                    memcpy(y + SIDE, &next[k], sizeof next[k]);
                    GO_ON(y, to_stride)
                }
            }
        }
    square_word4(j, to, from, whole, end, whole_rows);
    square_word4(j, to + (size_t)(whole_rows * to_stride) * sizeof(word4),
                 from + (size_t)whole_rows * sizeof(word4), begin, end, rows - whole_rows);
}

/* By the bytes of an element. */
enum { WORDS = 9 };
static void (*const squares[WORDS])(const job *j, char *to, const char *from, int64_t begin,
                                    int64_t end, int64_t rows) = {
    [1] = square_word1, [2] = square_word2, [4] = turned_word4, [8] = square_word8};

static void copy_squares(const job *j, const walk *w, int64_t n_runs, int64_t first, int64_t count)
{
    const size_t element = j->element;
    for (int64_t r = 0; r < n_runs; r++) {
        const int64_t to = r > 0 ? r * j->box->to_stride[0] : 0;
        const int64_t from = r > 0 ? r * j->box->from_stride[0] : 0;
        for (int64_t l = 0; l < j->n; l += TILE)
            squares[element](j, j->to + (size_t)(w->to + to + first * j->to_stride) * element,
                             j->from + (size_t)(w->from + from + first) * element, l,
                             l + TILE < j->n ? l + TILE : j->n, count);
    }
}

/* The loop along which elements are side by side in `to`, or in `from`; -1: there is none. */
static int side_by_side(const weft_box_copy *box, const int64_t *stride)
{
    for (int l = 0; l < box->n_loops; l++)
        if (stride[l] == 1) return l;
    return -1;
}

/* What is along neither is gone through element by element. */
static void run_squares(weft_stream *stream, job *j)
{
    weft_box_copy outer = *j->box;
    j->n = j->length = 1;
    int l = side_by_side(&outer, outer.to_stride);
    if (l >= 0) {
        j->n = outer.count[l], j->from_stride = outer.from_stride[l];
        drop_loop(&outer, l);
    }
    l = side_by_side(&outer, outer.from_stride);
    if (l >= 0) {
        j->length = outer.count[l], j->to_stride = outer.to_stride[l];
        drop_loop(&outer, l);
    }
    j->box = &outer;
    j->piece = copy_squares;
    j->part = TILE;
    run(stream, j, j->n * (j->length < TILE ? j->length : TILE) * (int64_t)j->element);
}

/* ---- the device's ---------------------------------------------------------------------------------- */

/* Stretches that are worth a lane's while, of whole states. */
static void run_stretches(weft_stream *stream, job *j, int64_t width)
{
    const int64_t most = WORTH / (int64_t)j->element / width * width;
    j->length = j->box->run;
    j->part = j->length < most ? j->length : most;
    run(stream, j, j->part * (int64_t)j->element);
}

void weft_copy_box_cpu(weft_stream *stream, int queue, void *to, const void *from,
                       const weft_box_copy *box, size_t element)
{
    (void)queue;
    if (box->n_loops == 0 && (size_t)box->run <= WORTH / element) {
        memcpy((char *)to + (size_t)box->to_at * element,
               (const char *)from + (size_t)box->from_at * element, (size_t)box->run * element);
        return;
    }
    job j = {.to = to, .from = from, .box = box, .element = element, .piece = copy_stretch};
    if (box->run == 1 && box->n_loops > 0 && element < WORDS && squares[element] != NULL)
        run_squares(stream, &j);
    else
        run_stretches(stream, &j, 1);
}

void weft_combine_box_cpu(weft_stream *stream, int queue, void *to, const void *from,
                          const weft_box_copy *box, const weft_combining *rule)
{
    job j = {.to = to,
             .from = from,
             .box = box,
             .element = (size_t)rule->element,
             .piece = combine_stretch,
             .rule = rule};
    (void)queue;
    run_stretches(stream, &j, rule->width);
}

void weft_copy_box(void *to, const void *from, const weft_box_copy *box, size_t element)
{
    if (to == NULL || from == NULL || box == NULL || box->run < 1) return;
    if (element == 0 || element >= WORDS) return;
    weft_copy_box_cpu(NULL, WEFT_COMPUTE, to, from, box, element);
}

void weft_identity_cpu(weft_stream *stream, int queue, void *into, int64_t n_states,
                       const weft_combining *rule)
{
    (void)stream, (void)queue;
    rule->identity(into, n_states);
}
