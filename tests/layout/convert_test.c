/* convert_test: hand-worked plans; random plans are legal chains; pieces cover each box once a
 * summand. */
#include "random_specs.h"

#include <stdlib.h>

static weft_mesh *mesh; /* a:2,b:3 for the hand-worked cases */
static const weft_shape shape = {2, {{"i", 8}, {"j", 12}}};

/* The plan as text: "reduce_scatter[8x4] ..." with the axes of each step. */
static bool plans(weft_spec from, weft_spec to, const char *expected)
{
    weft_convert_step steps[WEFT_MAX_CONVERT];
    char text[400] = "";
    int n = weft_convert_plan(mesh, &shape, &from, &to, steps);
    for (int s = 0, at = 0; s < n; s++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", s > 0 ? " " : "",
                       weft_convert_name(steps[s].kind));
        for (int a = 0; a < 3; a++)
            if (steps[s].axes >> a & 1)
                at += snprintf(text + at, sizeof text - (size_t)at, "/%s",
                               weft_mesh_axis_name(mesh, a));
    }
    return CHECK_TEXT(text, expected) && CHECK_EQ_INT(strlen(text), strlen(expected));
}

static weft_spec split(const char *i_axes, const char *j_axes) /* letters, outermost first */
{
    weft_spec spec = {0};
    for (; *i_axes != '\0'; i_axes++)
        spec.split[0][spec.n_split[0]++] = (int8_t)(*i_axes - 'a');
    for (; *j_axes != '\0'; j_axes++)
        spec.split[1][spec.n_split[1]++] = (int8_t)(*j_axes - 'a');
    return spec;
}

static weft_spec partial(weft_spec spec, uint8_t axes)
{
    spec.partial = axes;
    spec.combine = WEFT_SUM;
    return spec;
}

static void test_one_axis_takes_its_fast_path(void)
{
    CHECK(plans(split("a", ""), split("a", ""), ""));
    CHECK(plans(split("", ""), split("a", ""), "slice"));
    CHECK(plans(split("a", ""), split("", ""), "all_gather/a"));
    CHECK(plans(split("a", ""), split("", "a"), "all_to_all/a"));
    CHECK(plans(partial(split("", ""), 1), split("", ""), "all_reduce/a"));
    CHECK(plans(partial(split("", ""), 1), split("", "a"), "reduce_scatter/a"));
}

static void test_what_becomes_partial_moves_nothing(void)
{
    CHECK(plans(split("", ""), partial(split("", ""), 1), "count_once"));
    CHECK(plans(split("", ""), partial(split("", ""), 7), "count_once"));
    CHECK(plans(split("a", ""), partial(split("", ""), 1), "count_once"));
    CHECK(plans(split("ab", "c"), partial(split("", ""), 7), "count_once"));
    CHECK(plans(split("", ""), partial(split("b", ""), 1), "slice count_once"));
    CHECK(plans(partial(split("", ""), 2), partial(split("", ""), 1), "all_reduce/b count_once"));
    CHECK(plans(partial(split("", ""), 2), partial(split("", ""), 3), "count_once"));
    CHECK(plans(split("ab", ""), partial(split("b", ""), 1), "move/a/b"));
    weft_spec largest = partial(split("", ""), 1), sum = partial(split("", ""), 1);
    weft_convert_step steps[WEFT_MAX_CONVERT];
    largest.combine = WEFT_MAX;
    CHECK_EQ_INT(weft_convert_plan(mesh, &shape, &largest, &sum, steps), -1);
    CHECK(plans(largest, partial(split("", ""), 2), "all_reduce/a count_once"));
}

/* The spec with dim j, where split, seen through a window that reaches one element to either side. */
static weft_spec around(weft_spec spec)
{
    spec.window[1] = (weft_window){.lead = 12, .low = -1, .high = 1, .stride = 1, .over = 1};
    return spec;
}

static void test_windows_are_reached_by_one_border(void)
{
    CHECK(plans(split("", "a"), around(split("", "a")), "border/a"));
    CHECK(plans(split("", "ab"), around(split("", "ab")), "border/a/b"));
    CHECK(plans(split("", ""), around(split("", "a")), "border"));    /* cut where it is */
    CHECK(plans(split("a", ""), around(split("", "a")), "border/a")); /* no all_to_all first */
    CHECK(plans(split("", ""), around(split("b", "a")), "slice border"));
    CHECK(plans(split("", "a"), around(split("b", "a")), "slice border/a"));
    CHECK(plans(split("", "a"), around(split("", "b")), "border/a")); /* all along b have it */
    CHECK(plans(split("b", "a"), around(split("", "a")), "border/a/b"));
    CHECK(plans(partial(split("", "a"), 2), around(split("", "a")), "all_reduce/b border/a"));
    CHECK(plans(partial(split("", ""), 2), around(split("", "a")), "border all_reduce/b"));
    CHECK(plans(partial(split("", ""), 1), around(split("", "a")), "reduce_scatter/a border/a"));
    CHECK(plans(partial(split("", "a"), 2), partial(around(split("", "a")), 2), "border/a"));
    CHECK(plans(split("", "a"), partial(around(split("", "a")), 2), "border/a"));
    CHECK(plans(around(split("", "a")), partial(around(split("", "a")), 2), "count_once"));
}

static void test_from_a_window_no_way_leads_but_to_the_same(void)
{
    const weft_spec from = around(split("", "a"));
    const weft_spec others[] = {split("", "a"), split("", ""), around(split("", "b")),
                                around(split("", "ab"))};
    weft_convert_step steps[WEFT_MAX_CONVERT];
    CHECK_EQ_INT(weft_convert_plan(mesh, &shape, &from, &from, steps), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_EQ_INT(weft_convert_plan(mesh, &shape, &from, &others[i], steps), -1);
}

static void test_partial_axes_end_together(void)
{
    CHECK(plans(partial(split("", ""), 3), split("", ""), "all_reduce/a/b"));
    CHECK(plans(partial(split("", ""), 7), split("", ""), "all_reduce/a/b/c"));
    CHECK(plans(partial(split("", ""), 3), split("ab", ""), "reduce_scatter/a/b"));
    CHECK(plans(partial(split("", ""), 3), split("ba", ""), "reduce_scatter/a/b"));
    CHECK(plans(partial(split("", ""), 7), split("b", "ca"), "reduce_scatter/a/b/c"));
    CHECK(plans(partial(split("", ""), 3), split("", "b"), "reduce_scatter/b all_reduce/a"));
    CHECK(plans(partial(split("", ""), 7), split("", "b"), "reduce_scatter/b all_reduce/a/c"));
    CHECK(plans(partial(split("", ""), 5), split("abc", ""),
                "reduce_scatter/a slice reduce_scatter/c"));
}

static void test_several_axes_go_one_by_one(void)
{
    CHECK(plans(split("ab", ""), split("", ""), "all_gather/b all_gather/a"));
    CHECK(plans(split("", ""), split("ab", "c"), "slice slice slice"));
    CHECK(plans(partial(split("", ""), 1), split("", "b"), "slice all_reduce/a"));
    CHECK(plans(partial(split("", "b"), 1), split("a", "b"), "reduce_scatter/a"));
    CHECK(plans(partial(split("", "b"), 1), split("", "ba"), "reduce_scatter/a"));
    CHECK(plans(partial(split("", "b"), 1), split("", "a"), "all_reduce/a all_gather/b slice"));
    CHECK(plans(split("ab", ""), split("a", "b"), "all_to_all/b"));
    CHECK(plans(split("ab", ""), split("", "a"), "all_gather/b all_to_all/a"));
    CHECK(plans(partial(split("", ""), 3), partial(split("", ""), 1), "all_reduce/b"));
}

static void test_what_fits_no_fast_path_is_one_move(void)
{
    CHECK(plans(split("a", "b"), split("b", "a"), "move/a/b"));
    CHECK(plans(split("ab", ""), split("ba", ""), "move/a/b"));
    CHECK(plans(split("ab", ""), split("b", ""), "move/a/b"));
    CHECK(plans(split("ab", "c"), split("ac", "b"), "move/b/c")); /* a stays outermost */
    CHECK(plans(split("a", "b"), split("b", "ac"), "move/a/b/c"));
    CHECK(plans(partial(split("a", "b"), 4), split("b", "a"), "all_reduce/c move/a/b"));
}

static void check_bytes(weft_spec from, weft_spec to, int rank, int64_t expected)
{
    weft_convert_step steps[WEFT_MAX_CONVERT];
    if (!CHECK_EQ_INT(weft_convert_plan(mesh, &shape, &from, &to, steps), 1)) return;
    CHECK_EQ_INT(weft_convert_bytes(mesh, &shape, WEFT_F32, &steps[0], rank), 4 * expected);
    CHECK_EQ_INT(weft_convert_bytes(mesh, &shape, WEFT_F64, &steps[0], rank), 8 * expected);
}

static void test_bytes_of_each_kind(void)
{
    check_bytes(split("", ""), split("b", ""), 0, 0);
    check_bytes(partial(split("", "a"), 2), split("", "a"), 0, 8 * 6);
    check_bytes(partial(split("", "a"), 2), split("b", "a"), 0, 8 * 6);
    check_bytes(split("b", ""), split("", ""), 0, 8 * 12);
    check_bytes(split("b", ""), split("", "b"), 0, 3 * 8); /* 3 rows, all but its own 4 columns */
    check_bytes(split("b", ""), split("", "b"), 4, 2 * 8); /* the last along b has 2 rows */
    check_bytes(split("", "b"), around(split("", "b")), 0, 8);     /* a column to the right */
    check_bytes(split("", "b"), around(split("", "b")), 2, 2 * 8); /* one to either side */
    check_bytes(split("", ""), around(split("", "b")), 2, 0);
}

/* Count what one destination gets. */
static void count_pieces(const weft_mesh *m, const weft_shape *s, const weft_convert_step *step,
                         int destination, int *counts)
{
    static int ranks[1024];
    weft_box piece;
    int n = weft_mesh_group(m, step->axes, destination, ranks, NULL);
    for (int i = 0; i < n; i++)
        if (weft_move_sends(m, s, step, ranks[i], destination, &piece))
            count_box(s, &piece, counts);
}

/* All elements that a plan's step must bring: each destination box once, once per summand. Where the value begins to be
 * partial, the boxes of all ranks along those axes together. */
static bool pieces_cover(const weft_mesh *m, const weft_shape *s, const weft_convert_step *step)
{
    static int counts[MAX_ELEMENTS];
    static int together[1024];
    uint32_t summed = step->from.partial & ~step->to.partial & step->axes;
    uint32_t begun = step->to.partial & ~step->from.partial;
    int n_summands = ranks_along(m, summed);
    int64_t n_elements = weft_shape_count(s);
    for (int destination = 0; destination < weft_mesh_n_ranks(m); destination++) {
        weft_box box;
        weft_spec_box(&step->to, m, s, destination, &box);
        memset(counts, 0, sizeof counts);
        int n = weft_mesh_group(m, begun, destination, together, NULL);
        for (int i = 0; i < n; i++)
            count_pieces(m, s, step, together[i], counts);
        int64_t n_right = 0, n_other = 0;
        for (int64_t i = 0; i < n_elements; i++) {
            n_right += counts[i] == n_summands;
            n_other += counts[i] != n_summands && counts[i] != 0;
        }
        if (n_right != weft_box_count(&box, s->n_dims) || n_other != 0) return false;
    }
    return true;
}

/* What leaves each rank, counted from the pieces; false when weft_convert_bytes disagrees. */
static bool bytes_agree(const weft_mesh *m, const weft_shape *s, const weft_convert_step *step)
{
    for (int source = 0; source < weft_mesh_n_ranks(m); source++) {
        int64_t count = 0;
        for (int r = 0; r < weft_mesh_n_ranks(m); r++) {
            weft_box piece;
            if (r != source && weft_move_sends(m, s, step, source, r, &piece))
                count += weft_box_count(&piece, s->n_dims);
        }
        if (weft_convert_bytes(m, s, WEFT_F64, step, source) != 8 * count) return false;
    }
    return true;
}

/* What one step may change: one axis, unless it reduces or is local. */
static bool is_legal(const weft_convert_step *step, int n_dims)
{
    uint32_t changed = 0;
    for (uint32_t a = 0; a < WEFT_MAX_AXES; a++)
        if (weft_spec_state(&step->from, n_dims, (int)a) !=
            weft_spec_state(&step->to, n_dims, (int)a))
            changed |= 1u << a;
    const uint32_t ended = step->from.partial & ~step->to.partial;
    const uint32_t begun = step->to.partial & ~step->from.partial;
    if (step->kind == WEFT_MOVE) return step->axes != 0;
    if (step->kind == WEFT_BORDER) return true;
    if (step->kind == WEFT_COUNT_ONCE) return step->axes == 0 && begun && changed == begun;
    if (step->kind == WEFT_ALL_REDUCE || step->kind == WEFT_REDUCE_SCATTER)
        return step->axes == ended && changed == ended;
    return __builtin_popcount(changed) == 1 &&
           step->axes == (step->kind == WEFT_SLICE ? 0 : changed);
}

static void check_plan(const weft_mesh *m, const weft_shape *s, const weft_spec *from,
                       const weft_spec *to)
{
    weft_convert_step steps[WEFT_MAX_CONVERT];
    int n = weft_convert_plan(m, s, from, to, steps);
    CHECK(n <= WEFT_MAX_CONVERT);
    CHECK((n == 0) == weft_spec_equal(from, to, s->n_dims));
    const weft_spec *at = from;
    for (int i = 0; i < n; i++) {
        CHECK(weft_spec_equal(&steps[i].from, at, s->n_dims));
        CHECK(is_legal(&steps[i], s->n_dims));
        CHECK(pieces_cover(m, s, &steps[i]));
        if (steps[i].kind == WEFT_MOVE || steps[i].kind == WEFT_ALL_TO_ALL ||
            steps[i].kind == WEFT_BORDER)
            CHECK(bytes_agree(m, s, &steps[i]));
        at = &steps[i].to;
    }
    CHECK(weft_spec_equal(at, to, s->n_dims));
}

static void test_random_plans_are_legal_and_complete(void)
{
    for (int trial = 0; trial < 1200; trial++) {
        weft_mesh *m = random_mesh();
        weft_shape s = random_shape();
        weft_spec from = random_spec(m, &s, 3), to = random_spec(m, &s, 0);
        if (pick(3) == 0) to = random_spec(m, &s, 2); /* some axes stay partial, others begin */
        if (pick(2) == 0) add_windows(&to, &s);
        check_plan(m, &s, &from, &to);
        weft_mesh_destroy(&m);
    }
}

/* The mover alone must be able to do everything, reductions included. */
static void test_one_move_can_do_any_conversion(void)
{
    for (int trial = 0; trial < 800; trial++) {
        weft_mesh *m = random_mesh();
        weft_shape s = random_shape();
        weft_convert_step step = {.kind = WEFT_MOVE,
                                  .axes = (1u << weft_mesh_n_axes(m)) - 1,
                                  .from = random_spec(m, &s, 3),
                                  .to = random_spec(m, &s, trial & 1 ? 3 : 0)};
        if (pick(2) == 0) add_windows(&step.to, &s);
        CHECK(pieces_cover(m, &s, &step));
        CHECK(bytes_agree(m, &s, &step));
        weft_mesh_destroy(&m);
    }
}

static void test_who_has_it_all_asks_nobody(void)
{
    weft_convert_step step = {
        .kind = WEFT_MOVE, .axes = 7, .from = split("", ""), .to = split("ab", "c")};
    for (int r = 0; r < weft_mesh_n_ranks(mesh); r++)
        CHECK_EQ_INT(weft_convert_bytes(mesh, &shape, WEFT_F32, &step, r), 0);
}

static void test_costs_of_states(void)
{
    CHECK(weft_state_cost(WEFT_REPLICATED, 0, 4, 64) == 0);
    CHECK(weft_state_cost(1, 1, 4, 64) == 0);
    CHECK(weft_state_cost(0, WEFT_REPLICATED, 4, 64) == 48);
    CHECK(weft_state_cost(0, 1, 4, 64) == 12);
    CHECK(weft_state_cost(WEFT_PARTIAL, WEFT_REPLICATED, 4, 64) == 96);
    CHECK(weft_state_cost(WEFT_PARTIAL, 2, 4, 64) == 48);
    CHECK(weft_state_cost(WEFT_PARTIAL, WEFT_PARTIAL, 4, 64) == 0);
    CHECK(weft_state_cost(WEFT_REPLICATED, WEFT_PARTIAL, 4, 64) == 0);
    CHECK(weft_state_cost(0, WEFT_PARTIAL, 4, 64) == 0);
}

int main(void)
{
    weft_error error = {0};
    CHECK_OK(weft_mesh_plan("a:2,b:3,c:2", &mesh, &error), error);
    RUN(test_one_axis_takes_its_fast_path);
    RUN(test_what_becomes_partial_moves_nothing);
    RUN(test_windows_are_reached_by_one_border);
    RUN(test_from_a_window_no_way_leads_but_to_the_same);
    RUN(test_partial_axes_end_together);
    RUN(test_several_axes_go_one_by_one);
    RUN(test_what_fits_no_fast_path_is_one_move);
    RUN(test_bytes_of_each_kind);
    RUN(test_random_plans_are_legal_and_complete);
    RUN(test_one_move_can_do_any_conversion);
    RUN(test_who_has_it_all_asks_nobody);
    RUN(test_costs_of_states);
    weft_mesh_destroy(&mesh);
    return weft_test_report();
}
