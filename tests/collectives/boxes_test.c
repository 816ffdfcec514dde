/* boxes: a move by boxes that no spec describes: each rank gets every element of its box from the one that has it.
 * RANKS: 2 3 4 6
 */
#include "on_ranks.h"
#include "stacked.h"

#include "layout/random_specs.h"

enum { MOST_RANKS = 8, WIDE = 5 };

/* The same on all ranks: rows are cut at random among some of them, and each gets a random box. */
static struct {
    weft_shape shape;
    weft_dtype dtype;
    weft_box from[MOST_RANKS], to[MOST_RANKS];
} set; /* picked while no rank runs */

/* Rows go to ranks in a random order, some of which have none. */
static void pick_from(int n)
{
    int order[MOST_RANKS];
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        const int k = pick(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < n; i++) {
        const int64_t left = set.shape.dims[0].size - at;
        const int64_t own = i == n - 1 ? left : pick(3) == 0 ? 0 : pick((int)left + 1);
        weft_box *box = &set.from[order[i]];
        *box = (weft_box){.begin = {at}, .end = {at + own, WIDE}};
        at += own;
    }
}

static void pick_to(int n)
{
    for (int r = 0; r < n; r++)
        for (int d = 0; d < 2; d++) {
            const int64_t size = set.shape.dims[d].size, begin = pick((int)size + 1);
            set.to[r].begin[d] = begin;
            set.to[r].end[d] = begin + pick((int)(size - begin) + 1);
        }
}

static double number_at(int64_t row, int64_t column)
{
    return (double)(row * WIDE + column + 1);
}

static void *fill(const weft_box *box)
{
    int64_t i = 0;
    void *data = dirty(weft_box_count(box, 2) * (int64_t)weft_dtype_bytes(set.dtype));
    for (int64_t row = box->begin[0]; row < box->end[0]; row++)
        for (int64_t column = box->begin[1]; column < box->end[1]; column++)
            weft_dtype_put(set.dtype, data, i++, number_at(row, column));
    return data;
}

static void run_flight(const ranks *all, int rank, weft_move *move, const void *from, void *to)
{
    weft_error error = {0};
    weft_flight *flight;
    weft_comm *comm = weft_comm_of(all->comms, rank, everybody(all));
    char *scratch = dirty(weft_move_scratch(move) + 1);
    CHECK_OK(weft_flight_create(move, comm, &flight, &error), error);
    for (int round = 0; round < 2; round++) {
        CHECK_OK(weft_flight_start(flight, from, to, scratch, &error), error);
        CHECK_OK(weft_flight_finish(flight, &error), error);
    }
    CHECK_EQ_INT(scratch[weft_move_scratch(move)], (char)0xA5);
    weft_flight_destroy(&flight);
    free(scratch);
}

static void move_on_rank(void *argument, int rank)
{
    const ranks *all = argument;
    weft_error error = {0};
    weft_move *move;
    const weft_move_boxes boxes = {&set.shape, set.dtype, set.from, set.to};
    const int64_t count = weft_box_count(&set.to[rank], 2);
    const int64_t bytes = count * (int64_t)weft_dtype_bytes(set.dtype);
    if (!CHECK_OK(weft_move_create_boxes(all->mesh, &boxes, rank, &move, &error), error)) return;
    void *from = fill(&set.from[rank]), *expected = fill(&set.to[rank]), *to = dirty(bytes);
    run_flight(all, rank, move, from, to);
    CHECK(memcmp(to, expected, (size_t)bytes) == 0);
    weft_move_destroy(&move);
    free(from), free(to), free(expected);
}

static void test_each_gets_every_element_of_its_box(void)
{
    static const weft_dtype dtypes[] = {WEFT_U8, WEFT_I32, WEFT_F64};
    char texts[MAX_MESHES][48];
    const int n_meshes = meshes_here(texts);
    for (int m = 0; m < n_meshes; m++) {
        ranks all;
        if (open_ranks(texts[m], &all))
            for (int trial = 0; trial < 60; trial++) {
                const int n = weft_mesh_n_ranks(all.mesh);
                set.shape = (weft_shape){2, {{"row", 1 + pick(20)}, {"column", WIDE}}};
                set.dtype = dtypes[trial % 3];
                pick_from(n);
                pick_to(n);
                weft_mesh_each(all.mesh, move_on_rank, &all);
            }
        close_ranks(&all);
    }
}

/* ---- planning, and misuse ------------------------------------------------------------------------ */

static void check_refused(const weft_mesh *mesh, const weft_move_boxes *boxes, const char *reason)
{
    weft_error error = {0};
    weft_move *move;
    CHECK_EQ_INT(weft_move_create_boxes(mesh, boxes, 1, &move, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, reason);
    CHECK(move == NULL);
}

static void test_an_element_that_nobody_or_two_have_is_refused(void)
{
    const weft_shape shape = {1, {{"i", 10}}};
    weft_box from[2] = {{{0}, {6}}, {{6}, {10}}}, to[2] = {{{0}, {10}}, {{2}, {9}}};
    const weft_move_boxes boxes = {&shape, WEFT_F32, from, to};
    weft_error error = {0};
    weft_mesh *mesh;
    weft_move *move;
    if (!CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error)) return;
    CHECK_OK(weft_move_create_boxes(mesh, &boxes, 1, &move, &error), error);
    CHECK_EQ_INT(weft_move_wire_bytes(move), 4 * 4); /* elements 6 to 9 */
    weft_move_destroy(&move);
    from[0].end[0] = 5;
    check_refused(mesh, &boxes, "of what rank 1 gets some elements are in no box");
    from[1] = (weft_box){{3}, {7}}; /* as many: 3 and 4 twice, and 7 and 8 never */
    check_refused(mesh, &boxes, "or in those of two ranks");
    from[0] = (weft_box){{1}, {3}}, from[1] = (weft_box){{3}, {11}};
    check_refused(mesh, &boxes, "the box of rank 1 in `from` is 3 to 11 of dim 0, which has 10");
    to[0].begin[0] = -1, from[1].end[0] = 10;
    check_refused(mesh, &boxes, "the box of rank 0 in `to` is -1 to 10");
    CHECK_EQ_INT(weft_move_create_boxes(mesh, &boxes, 2, &move, &error), WEFT_USAGE);
    weft_mesh_destroy(&mesh);
}

static void run_all(void)
{
    RUN(test_each_gets_every_element_of_its_box);
    RUN(test_an_element_that_nobody_or_two_have_is_refused);
}

int main(void)
{
    if (open_world()) {
        run_all();
        test_again_by_stacked(run_all);
    }
    weft_world_close();
    return weft_test_report();
}
