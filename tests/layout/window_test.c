/* window_test: what windows show of a dim, against their definition element by element; what a border costs.
 */
#include "random_specs.h"

static weft_mesh *mesh_of(const char *text)
{
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_OK(weft_mesh_plan(text, &mesh, &error), error);
    return mesh;
}

/* The boxes of all ranks along a:n, as "0-3 2-6": the dim of `size` elements seen through the window. */
static bool shows(int n, int64_t size, weft_window window, const char *expected)
{
    char mesh_text[20], text[200] = "";
    snprintf(mesh_text, sizeof mesh_text, "a:%d", n);
    weft_mesh *mesh = mesh_of(mesh_text);
    const weft_shape shape = {1, {{"i", size}}};
    const weft_spec spec = {.n_split = {1}, .split = {{0}}, .window = {window}};
    CHECK(weft_spec_is_valid(&spec, mesh, &shape));
    for (int rank = 0, at = 0; rank < n; rank++) {
        weft_box box;
        weft_spec_box(&spec, mesh, &shape, rank, &box);
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%d-%d", rank > 0 ? " " : "",
                       (int)box.begin[0], (int)box.end[0]);
    }
    weft_mesh_destroy(&mesh);
    return CHECK_TEXT(text, expected) && CHECK_EQ_INT(strlen(text), strlen(expected));
}

static void test_windows_of_the_usual_ops(void)
{
    const weft_window same = {.lead = 10, .low = -1, .high = 1, .stride = 1, .over = 1};
    CHECK(shows(4, 10, same, "0-4 2-7 5-10 8-10")); /* blocks of 3, and one at the end */
    const weft_window strided = {.lead = 5, .low = -1, .high = 1, .stride = 2, .over = 1};
    CHECK(shows(2, 10, strided, "0-6 5-10"));
    const weft_window part = {.lead = 4, .low = 5, .high = 5, .stride = 1, .over = 1};
    CHECK(shows(4, 10, part, "5-6 6-7 7-8 8-9")); /* [5, 9) of it */
    const weft_window second = {.lead = 9, .low = -6, .high = -6, .stride = 1, .over = 1};
    CHECK(shows(3, 3, second, "0-0 0-0 0-3")); /* what is joined behind 6 others */
    const weft_window adjoint = {.lead = 10, .low = -1, .high = 1, .stride = 1, .over = 2};
    CHECK(shows(2, 5, adjoint, "0-3 2-5"));
    const weft_window reversed = {.lead = 6, .low = 5, .high = 5, .stride = -1, .over = 1};
    CHECK(shows(3, 6, reversed, "4-6 2-4 0-2"));
}

static void test_windows_reach_over_several_boxes_and_beyond_all(void)
{
    const weft_window wide = {.lead = 8, .low = -5, .high = 0, .stride = 1, .over = 1};
    CHECK(shows(4, 8, wide, "0-2 0-4 0-6 1-8"));
    const weft_window far = {.lead = 8, .low = 20, .high = 30, .stride = 1, .over = 1};
    CHECK(shows(4, 8, far, "8-8 8-8 8-8 8-8"));
    const weft_window before = {.lead = 8, .low = -30, .high = -9, .stride = 1, .over = 1};
    CHECK(shows(2, 8, before, "0-0 0-0"));
}

static void test_nothing_goes_with_an_empty_block(void)
{
    const weft_window wide = {.lead = 5, .low = -9, .high = 9, .stride = 1, .over = 1};
    CHECK(shows(4, 5, wide, "0-5 0-5 0-5 0-0")); /* blocks 2 2 1 0 */
}

/* Slope 2: late ranks look further and further from their own blocks of the dim. */
static void test_blocks_drift_apart(void)
{
    const weft_window half = {.lead = 8, .low = 0, .high = 0, .stride = 2, .over = 1};
    CHECK(shows(4, 32, half, "0-3 4-7 8-11 12-15"));
}

static bool goes_with(const weft_window *window, int64_t i, int64_t j)
{
    return window->stride * i + window->low <= window->over * j &&
           window->over * j <= window->stride * i + window->high;
}

/* Do the windows of neighbours touch, so that all between the first and the last element is wanted? */
static bool is_gapless(const weft_window *window)
{
    const int64_t stride = window->stride < 0 ? -window->stride : window->stride;
    return stride == 1 || (window->over == 1 && window->high - window->low + 1 >= stride);
}

static void check_image(const weft_window *window, int64_t size, int64_t begin, int64_t end)
{
    int64_t first = begin, past = end, low = size, high = 0;
    weft_window_image(window, size, &first, &past);
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < size; j++) {
            if (!goes_with(window, i, j)) continue;
            low = j < low ? j : low;
            high = j + 1 > high ? j + 1 : high;
        }
    CHECK(0 <= first && first <= past && past <= size);
    if (low < high) CHECK(first <= low && high <= past);
    if (is_gapless(window)) CHECK_EQ_INT(past - first, low < high ? high - low : 0);
    if (begin >= end) CHECK_EQ_INT(first, past);
}

static void test_an_image_has_all_that_goes_with_the_block(void)
{
    for (int trial = 0; trial < 20000; trial++) {
        const int64_t size = pick(14);
        const weft_window window = random_window(size);
        CHECK(weft_window_is_valid(&window));
        const int64_t begin = pick((int)window.lead + 1);
        check_image(&window, size, begin, begin + pick((int)(window.lead - begin) + 1));
    }
}

static void test_no_window_shows_the_dim_itself(void)
{
    const weft_window none = {0};
    CHECK(weft_window_is_valid(&none));
    check_image(&(weft_window){.lead = 7, .stride = 1, .over = 1}, 7, 2, 5);
    int64_t begin = 3, end = 9;
    weft_window_image(&none, 5, &begin, &end);
    CHECK(begin == 3 && end == 5);
}

static void test_what_is_no_window_is_refused(void)
{
    weft_mesh *mesh = mesh_of("a:2");
    const weft_shape shape = {1, {{"i", 8}}};
    const weft_window good = {.lead = 8, .low = -1, .high = 1, .stride = 1, .over = 1};
    weft_window bad[7];
    for (int i = 0; i < 7; i++)
        bad[i] = good;
    bad[0].lead = -1, bad[1].lead = WEFT_MAX_LEAD + 1, bad[2].stride = 0, bad[3].over = 0;
    bad[4].high = -2, bad[5].stride = INT32_MIN, bad[6].low = INT64_MIN;
    for (int i = 0; i < 7; i++) {
        const weft_spec spec = {.n_split = {1}, .split = {{0}}, .window = {bad[i]}};
        weft_box box;
        CHECK(!weft_window_is_valid(&bad[i]));
        CHECK(!weft_spec_is_valid(&spec, mesh, &shape));
        weft_spec_box(&spec, mesh, &shape, 1, &box); /* as if there were none */
        CHECK(box.begin[0] == 4 && box.end[0] == 8);
    }
    const weft_spec whole = {.window = {good}}; /* of a dim that nothing splits */
    CHECK(!weft_spec_is_valid(&whole, mesh, &shape));
    weft_mesh_destroy(&mesh);
}

static void test_equality_and_text_see_windows(void)
{
    weft_mesh *mesh = mesh_of("data:2");
    const weft_shape shape = {1, {{"pixel", 64}}};
    weft_window window = {.lead = 32, .low = -1, .high = 1, .stride = 2, .over = 1};
    weft_spec spec = {.n_split = {1}, .split = {{0}}}, other = spec;
    char text[100];
    spec.window[0] = window;
    CHECK(!weft_spec_equal(&spec, &other, 1));
    other.window[0] = window;
    CHECK(weft_spec_equal(&spec, &other, 1));
    other.window[0].high = 2;
    CHECK(!weft_spec_equal(&spec, &other, 1));
    weft_spec_print(&spec, mesh, &shape, text, sizeof text);
    CHECK_TEXT(text, "[pixel:64/data{2i-1..2i+1, i<32}]");
    spec.window[0] = (weft_window){.lead = 128, .low = 3, .high = 3, .stride = -1, .over = 2};
    weft_spec_print(&spec, mesh, &shape, text, sizeof text);
    CHECK_TEXT(text, "[pixel:64/data{(-i+3)/2, i<128}]");
    weft_mesh_destroy(&mesh);
}

/* The most elements that one rank of a:n gets from others. */
static int64_t most_received(const weft_mesh *mesh, const weft_shape *shape,
                             const weft_convert_step *step)
{
    int64_t most = 0;
    for (int to = 0; to < weft_mesh_n_ranks(mesh); to++) {
        int64_t count = 0;
        for (int from = 0; from < weft_mesh_n_ranks(mesh); from++) {
            weft_box piece;
            if (from != to && weft_move_sends(mesh, shape, step, from, to, &piece))
                count += weft_box_count(&piece, shape->n_dims);
        }
        most = count > most ? count : most;
    }
    return most;
}

static void check_cost(int n, int64_t size, weft_window window, bool is_exact)
{
    char text[20];
    snprintf(text, sizeof text, "a:%d", n);
    weft_mesh *mesh = mesh_of(text);
    const weft_shape shape = {1, {{"i", size}}};
    const weft_spec from = {.n_split = {1}, .split = {{0}}};
    weft_convert_step step = {.kind = WEFT_BORDER, .axes = 1, .from = from, .to = from};
    step.to.window[0] = window;
    const double most = (double)most_received(mesh, &shape, &step);
    const double cost = weft_border_cost(&window, size, n, (double)size);
    CHECK(cost <= most + 1e-9 && (!is_exact || cost >= most - 1e-9));
    const bool is_within = weft_window_is_within(&step.to, mesh, &shape, 0);
    CHECK(is_within == (most == 0));
    if (is_within) CHECK(cost == 0);
    weft_mesh_destroy(&mesh);
}

static void test_a_border_costs_what_the_rank_that_lacks_most_gets(void)
{
    for (int n = 2; n < 9; n++)
        for (int64_t size = 1; size < 40; size++) {
            const weft_window same = {.lead = size, .low = -2, .high = 1, .stride = 1, .over = 1};
            check_cost(n, size, same, size % n == 0);
            const weft_window part = {.lead = size, .low = 3, .high = 3, .stride = 1, .over = 1};
            check_cost(n, size, part, size % n == 0);
            const weft_window pool = {.lead = (size + 1) / 2, .high = 1, .stride = 2, .over = 1};
            check_cost(n, size, pool, size % (2 * n) == 0);
        }
    for (int trial = 0; trial < 3000; trial++) {
        const int64_t size = 1 + pick(20);
        check_cost(2 + pick(7), size, random_window(size), false);
    }
    CHECK(weft_border_cost(&(weft_window){0}, 8, 4, 64) == 0);
}

int main(void)
{
    RUN(test_windows_of_the_usual_ops);
    RUN(test_windows_reach_over_several_boxes_and_beyond_all);
    RUN(test_nothing_goes_with_an_empty_block);
    RUN(test_blocks_drift_apart);
    RUN(test_an_image_has_all_that_goes_with_the_block);
    RUN(test_no_window_shows_the_dim_itself);
    RUN(test_what_is_no_window_is_refused);
    RUN(test_equality_and_text_see_windows);
    RUN(test_a_border_costs_what_the_rank_that_lacks_most_gets);
    return weft_test_report();
}
