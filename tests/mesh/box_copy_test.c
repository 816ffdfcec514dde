/* box_copy_test: boxes are copied and combined as their loops say, whatever the lanes: element by element against plain
 * loops, and nothing beside them is touched.
 */
#include "mesh/mesh_internal.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { ROOM = 1 << 20, MOST_DIMS = 5 };

static uint64_t seed = 1;
static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* A piece of both boxes: dims outermost first, as many elements of each in the boxes, those of `to` in another order. */
typedef struct piece {
    int n_dims;
    int64_t count[MOST_DIMS], from_stride[MOST_DIMS], to_stride[MOST_DIMS], from_at, to_at;
} piece;

static void lay(const piece *p, const int *order, int64_t *stride, int64_t *at)
{
    int64_t step = 1;
    *at = 0;
    for (int k = p->n_dims - 1; k >= 0; k--) {
        const int d = order[k], spare = below(3) == 0 ? below(3) : 0,
                  before = spare ? below(spare + 1) : 0;
        stride[d] = step;
        *at += before * step;
        step *= p->count[d] + spare;
    }
}

static piece random_piece(int most)
{
    piece p = {.n_dims = below(MOST_DIMS + 1)};
    int order[MOST_DIMS];
    for (int d = 0; d < p.n_dims; d++)
        order[d] = d, p.count[d] = 1 + below(p.n_dims < 3 ? most : 6);
    lay(&p, order, p.from_stride, &p.from_at);
    for (int d = p.n_dims - 1; d > 0 && below(3) > 0; d--) {
        const int e = below(d + 1), kept = order[d];
        order[d] = order[e], order[e] = kept;
    }
    lay(&p, order, p.to_stride, &p.to_at);
    return p;
}

static weft_box_copy box_of(const piece *p)
{
    weft_box_copy box = {.run = 1, .from_at = p->from_at, .to_at = p->to_at};
    for (int d = p->n_dims - 1; d >= 0; d--)
        weft_box_copy_add(&box, p->count[d], p->from_stride[d], p->to_stride[d]);
    return box;
}

/* Calls visit(from, to) for each element's places. */
typedef void (*visit)(void *argument, int64_t from, int64_t to);
static void each(const piece *p, visit visit, void *argument)
{
    int64_t count = 1;
    for (int d = 0; d < p->n_dims; d++)
        count *= p->count[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t from = p->from_at, to = p->to_at, rest = i;
        for (int d = p->n_dims - 1; d >= 0; d--) {
            from += rest % p->count[d] * p->from_stride[d];
            to += rest % p->count[d] * p->to_stride[d];
            rest /= p->count[d];
        }
        visit(argument, from, to);
    }
}

static char *from, *to, *wanted; /* [ROOM] */
static size_t element;

static void copy_one(void *argument, int64_t at, int64_t into)
{
    (void)argument;
    memcpy(wanted + (size_t)into * element, from + (size_t)at * element, element);
}

static void begin(void)
{
    for (int i = 0; i < ROOM; i++)
        from[i] = (char)below(256), to[i] = wanted[i] = (char)(i * 7);
}

static void test_copies_are_those_of_plain_loops(void)
{
    for (int lanes = 1; lanes <= 3; lanes += 2) {
        weft_stream *stream = NULL;
        weft_error error = {0};
        if (!CHECK_OK(weft_stream_create_cpu(lanes, &stream, &error), error)) return;
        for (int round = 0; round < 60; round++)
            for (element = 1; element <= 8; element *= 2) {
                const piece p = random_piece(250);
                const weft_box_copy box = box_of(&p);
                begin();
                each(&p, copy_one, NULL);
                weft_copy_box_cpu(stream, WEFT_COMPUTE, to, from, &box, element);
                CHECK(memcmp(to, wanted, ROOM) == 0);
                begin();
                each(&p, copy_one, NULL);
                weft_copy_box(to, from, &box, element);
                CHECK(memcmp(to, wanted, ROOM) == 0);
            }
        weft_stream_destroy_cpu(&stream);
    }
}

/* Sizes about those of the squares that are turned at once; lines with a gap between them, and matrices one behind the other. */
static void test_matrices_are_turned(void)
{
    static const int64_t sizes[] = {1, 7, 8, 9, 31, 33};
    enum { N = sizeof sizes / sizeof *sizes, GAP = 5, MATRICES = 2 };
    for (int i = 0; i < N * N; i++)
        for (element = 1; element <= 8; element *= 2) {
            const int64_t rows = sizes[i / N], columns = sizes[i % N];
            const int64_t from_line = columns + GAP, to_line = rows + GAP;
            weft_box_copy box = {.run = 1};
            weft_box_copy_add(&box, rows, from_line, 1);
            weft_box_copy_add(&box, columns, 1, to_line);
            weft_box_copy_add(&box, MATRICES, rows * from_line, columns * to_line);
            if ((size_t)(MATRICES * (rows + GAP) * (columns + GAP)) * element > ROOM) continue;
            begin();
            for (int64_t k = 0; k < MATRICES * rows * columns; k++) {
                const int64_t m = k / rows / columns, r = k / columns % rows, c = k % columns;
                copy_one(NULL, (m * rows + r) * from_line + c, (m * columns + c) * to_line + r);
            }
            weft_copy_box(to, from, &box, element);
            CHECK(memcmp(to, wanted, ROOM) == 0);
        }
}

/* States of `WIDTH` numbers, whose combination is no commutative one. */
enum { WIDTH = 3 };
static void combine(void *out_, const void *a_, const void *b_, int64_t n_states)
{
    uint16_t *out = out_;
    const uint16_t *a = a_, *b = b_;
    for (int64_t i = 0; i < WIDTH * n_states; i++)
        out[i] = (uint16_t)(3 * a[i] + b[i]);
}

static void combine_one(void *argument, int64_t at, int64_t into)
{
    (void)argument;
    uint16_t *w = (uint16_t *)(void *)wanted;
    w[into] = (uint16_t)(3 * w[into] + ((const uint16_t *)(const void *)from)[at]);
}

/* The innermost dim is the state's, in both boxes; others have room behind them in `from`. */
static piece piece_of_states(void)
{
    piece p = {.n_dims = 1 + below(4)};
    int64_t from_step = 1, to_step = 1;
    for (int d = p.n_dims - 1; d >= 0; d--) {
        const bool is_state = d == p.n_dims - 1;
        p.count[d] = is_state ? WIDTH : 1 + below(p.n_dims < 3 ? 30000 : 8);
        p.from_stride[d] = from_step, p.to_stride[d] = to_step;
        from_step *= p.count[d] + (is_state ? 0 : below(3));
        to_step *= p.count[d];
    }
    return p;
}

static void test_combinations_are_those_of_plain_loops(void)
{
    const weft_combining rule = {.width = WIDTH, .element = 2, .host = combine};
    for (int lanes = 1; lanes <= 3; lanes += 2) {
        weft_stream *stream = NULL;
        weft_error error = {0};
        if (!CHECK_OK(weft_stream_create_cpu(lanes, &stream, &error), error)) return;
        for (int round = 0; round < 60; round++) {
            const piece p = piece_of_states();
            const weft_box_copy box = box_of(&p);
            begin();
            each(&p, combine_one, NULL);
            weft_combine_box_cpu(stream, WEFT_COMPUTE, to, from, &box, &rule);
            CHECK(memcmp(to, wanted, ROOM) == 0);
        }
        weft_stream_destroy_cpu(&stream);
    }
}

/* A tensor's rows side by side are one run; what stands in line outside a loop is the same loop. */
static void test_dims_in_line_are_one_loop(void)
{
    weft_box_copy box = {.run = 1};
    weft_box_copy_add(&box, 4, 1, 1);
    weft_box_copy_add(&box, 5, 4, 4);
    CHECK_EQ_INT(box.run, 20);
    weft_box_copy_add(&box, 3, 40, 20);
    weft_box_copy_add(&box, 1, 7, 7);
    weft_box_copy_add(&box, 2, 120, 60);
    CHECK_EQ_INT(box.run, 20);
    CHECK_EQ_INT(box.n_loops, 1);
    CHECK_EQ_INT(box.count[0], 6);
    weft_box_copy_add(&box, 2, 1, 500);
    CHECK_EQ_INT(box.n_loops, 2);
    weft_box_copy_add(&box, 0, 1, 1);
    weft_box_copy_add(&box, 2, -1, 1);
    CHECK_EQ_INT(box.n_loops, 2);
}

int main(void)
{
    from = malloc(ROOM), to = malloc(ROOM), wanted = malloc(ROOM);
    if (from == NULL || to == NULL || wanted == NULL) return 2;
    RUN(test_copies_are_those_of_plain_loops);
    RUN(test_matrices_are_turned);
    RUN(test_combinations_are_those_of_plain_loops);
    RUN(test_dims_in_line_are_one_loop);
    free(from), free(to), free(wanted);
    return weft_test_report();
}
