/* Loops with operands and results that are parts of larger tensors, row by row, and that are moved: they make the elements of plain
 * arithmetic, and none beside them, on any number of lanes. */
#include "kernel_lanes.h"
#include "loop.h"
#include "op.h"

#include <string.h>

enum { PARTS = 3, PLACES = 4 };

/* [rows, PARTS, columns] of operands and of results: a loop reads part 0 and part 2 of one, and makes parts 1 and 0 of the other:
 * their sum, and its square. */
typedef struct case_of {
    int64_t rows, columns, n; /* n: numbers of one place */
    float *x, *y;             /* [PLACES][rows][PARTS][columns] */
    weft_arena *arena;
    weft_loop *loop;
} case_of;

static int64_t at(const case_of *c, int place, int64_t row, int part, int64_t column)
{
    return place * c->n + (row * PARTS + part) * c->columns + column;
}

static void set_op(weft_loop_op *op, const weft_element *element, int n_in, int first, int second)
{
    *op = (weft_loop_op){.kind = WEFT_LOOP_ELEMENTS,
                         .block = element->block[WEFT_F32][WEFT_F32],
                         .relay = weft_relay_of(element),
                         .n_in = n_in,
                         .in = {first, second},
                         .n_out = 1,
                         .bytes = 4,
                         .dtype = WEFT_F32};
}

static bool open_case(case_of *c, int64_t rows, int64_t columns)
{
    weft_error error = {0};
    *c = (case_of){.rows = rows, .columns = columns, .n = rows * PARTS * columns};
    c->x = calloc((size_t)(PLACES * c->n) + 1, sizeof *c->x);
    c->y = calloc((size_t)(PLACES * c->n) + 1, sizeof *c->y);
    c->arena = weft_arena_create();
    for (int64_t i = 0; i < PLACES * c->n; i++)
        c->x[i] = (float)(i % 97) - 40.0f;
    const weft_loop counts = {.n_in = 2, .n_ops = 2, .n_out = 2, .n_segments = 1};
    if (!CHECK_OK(weft_loop_take(c->arena, counts, &c->loop, &error), error)) return false;
    set_op(&c->loop->op[0], weft_op_add.element, 2, 0, 1);
    set_op(&c->loop->op[1], weft_op_square.element, 1, 2, 0);
    weft_loop_segment *s = &c->loop->segment[0];
    s->n_dims = 2;
    s->size[0] = rows, s->size[1] = columns;
    for (int k = 0; k < 2; k++) {
        c->loop->in[k] = (weft_loop_in){.bytes = 4, .width = 1, .dtype = WEFT_F32};
        c->loop->out[k] = 2 + k;
        s->in[k].data = c->x + at(c, 0, 0, 2 * k, 0);
        s->out[k] = c->y + at(c, 0, 0, 1 - k, 0);
        s->in[k].stride[0] = s->out_stride[k][0] = PARTS * columns;
        s->in[k].stride[1] = s->out_stride[k][1] = 1;
    }
    return true;
}

static void close_case(case_of *c)
{
    weft_arena_destroy(&c->arena);
    free(c->x);
    free(c->y);
}

/* Of the places whose bit is set there are results, and nowhere else is anything. */
static void check_places(const case_of *c, unsigned done)
{
    int64_t n_wrong = 0;
    for (int place = 0; place < PLACES; place++)
        for (int64_t r = 0; r < c->rows; r++)
            for (int64_t k = 0; k < c->columns; k++) {
                const float sum = c->x[at(c, place, r, 0, k)] + c->x[at(c, place, r, 2, k)];
                const float expected = done >> place & 1 ? sum : 0.0f;
                n_wrong += c->y[at(c, place, r, 1, k)] != expected ||
                           c->y[at(c, place, r, 0, k)] != expected * expected ||
                           c->y[at(c, place, r, 2, k)] != 0.0f;
            }
    CHECK_EQ_INT(n_wrong, 0);
}

static void move_to(const case_of *c, weft_bound_loop *bound, int place)
{
    for (int k = 0; k < 2; k++) {
        weft_bound_loop_move(bound, k, c->x + at(c, place, 0, 2 * k, 0));
        weft_bound_loop_move(bound, -1 - k, c->y + at(c, place, 0, 1 - k, 0));
    }
}

static void check_size(int64_t rows, int64_t columns)
{
    static const int places[] = {2, 0, 3};
    weft_error error = {0};
    const weft_prepared_loop *prepared;
    weft_bound_loop *bound;
    case_of c;
    if (!open_case(&c, rows, columns) ||
        !CHECK_OK(weft_loop_prepare(c.loop, c.arena, &prepared, &error), error))
        return;
    for (int lanes = 1; lanes <= MOST_LANES; lanes++) {
        unsigned done = 0;
        memset(c.y, 0, (size_t)(PLACES * c.n) * sizeof *c.y);
        if (!CHECK_OK(weft_loop_bind(prepared, (weft_loop_part){0, 1}, streams[lanes], c.arena,
                                     &bound, &error),
                      error))
            return;
        for (int i = 0; i < 3; i++) {
            move_to(&c, bound, places[i]);
            weft_bound_loop_run(bound, 1, 0);
            done |= 1u << places[i];
            check_places(&c, done);
        }
    }
    close_case(&c);
}

static void test_parts_are_made_and_read_where_they_lie(void)
{
    static const int64_t sizes[][2] = {{1, 1},  {7, 1},   {1, 7},   {5, 16},    {3, 63},
                                       {4, 64}, {33, 65}, {2, 512}, {40, 1030}, {0, 8}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_size(sizes[i][0], sizes[i][1]);
}

int main(void)
{
    if (lanes_open()) RUN(test_parts_are_made_and_read_where_they_lie);
    lanes_close();
    return weft_test_report();
}
