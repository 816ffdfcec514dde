/* space_test: what weft tune varies: texts that are read, and those that are not; points of a search at random lie evenly in the space, whatever
 * the seed; a grid has every point once. */
#include "apps/weft/tune/space.h"

#include <stdlib.h>

#include "test.h"

static space read_good(const char *text)
{
    space s;
    weft_error error = {0};
    CHECK_OK(space_read(text, &s, &error), error);
    return s;
}

static void test_lists_and_ranges_are_read(void)
{
    const space s = read_good("rate=1e-4..1e-1:log,batch=32|64|128,width=8..16,optimizer=adamw");
    CHECK(s.n == 4 && s.axes[0].is_log && !s.axes[0].is_whole && s.axes[0].low == 1e-4 &&
          s.axes[0].high == 1e-1);
    CHECK(s.axes[1].n == 3 && strcmp(s.axes[1].values[2], "128") == 0);
    CHECK(s.axes[2].is_whole && !s.axes[2].is_log && s.axes[2].n == 0);
    CHECK(s.axes[3].n == 1 && strcmp(s.axes[3].name, "optimizer") == 0);
}

static void test_mistakes_are_told(void)
{
    static const char *const wrong[][2] = {
        {"", "name an option and its values"},
        {"rate", "name an option and its values"},
        {"rate=", "1 to 63 letters"},
        {"rate=1|", "1 to 63 letters"},
        {"=1|2", "1 to 63 letters"},
        {"rate=1..", "a range has two ends"},
        {"rate=..1", "a range has two ends"},
        {"rate=2..1", "from a number to a larger one"},
        {"rate=a..b", "from a number to a larger one"},
        {"rate=1..inf", "from a number to a larger one"},
        {"rate=0..1:log", ":log wants numbers above 0"},
        {"rate=1..2:lg", "can be :log alone"},
        {"rate=1|2,rate=3", "has rate twice"},
        {"rate=1|2,", "name an option and its values"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        space s;
        weft_error error = {0};
        CHECK_EQ_INT(space_read(wrong[i][0], &s, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, wrong[i][1]);
    }
}

/* Any text at all is read or told. */
static void test_noise_is_no_harm(void)
{
    static const char letters[] = "rate=.|,:log190e-";
    srand(1);
    for (int i = 0; i < weft_test_cases(20000); i++) {
        char text[400];
        space s;
        weft_error error = {0};
        const int n = rand() % 399;
        for (int k = 0; k < n; k++)
            text[k] = letters[(size_t)rand() % (sizeof letters - 1)];
        text[n] = '\0';
        CHECK(space_read(text, &s, &error) == WEFT_OK || error.message[0] != '\0');
    }
}

/* Where the points of a search are that was drawn last. */
static double shares[1000 * SPACE_AXES];

static void draw_points(const space *s, uint64_t seed, int n)
{
    weft_error error = {0};
    CHECK_OK(space_at_random(s, seed, n, shares, &error), error);
}

static void drawn(const space *s, int trial, int a, char value[SPACE_TEXT])
{
    space_value(&s->axes[a], shares[trial * s->n + a], value);
}

/* Of n points the part of the axis below any place is the place, to one point: they are equally far apart. */
static void check_even(const space *s, uint64_t seed, int n, int a)
{
    draw_points(s, seed, n);
    for (int cut = 1; cut < 10; cut++) {
        int below = 0;
        for (int t = 0; t < n; t++) {
            char value[SPACE_TEXT];
            drawn(s, t, a, value);
            const double place = space_place(&s->axes[a], value);
            CHECK(place >= -1e-3 && place <= 1 + 1e-3);
            below += place < 0.1 * cut;
        }
        CHECK(fabs((double)below / n - 0.1 * cut) < 1.0 / n + 0.002); /* places are rounded */
    }
}

static void test_points_lie_evenly(void)
{
    const space s = read_good("rate=1e-4..1e-1:log,drop=0..0.5,width=1..100000");
    for (uint64_t seed = 0; seed < 8; seed++)
        for (int a = 0; a < s.n; a++)
            check_even(&s, seed, 60, a);
}

/* Whatever the number of points and the seed. */
static void test_points_leave_no_gap(void)
{
    const space s = read_good("rate=1e-4..1e-1:log,drop=0..0.5");
    for (uint64_t seed = 1; seed < 6; seed++)
        for (int n = 2; n < 64; n++)
            for (int a = 0; a < 2; a++)
                check_even(&s, seed, n, a);
}

/* Two ranges together: of 64 points each quarter of a quarter has its four, one more or less than two. */
static void test_points_lie_evenly_in_a_plane(void)
{
    const space s = read_good("rate=1e-4..1e-1:log,drop=0..0.5");
    for (uint64_t seed = 1; seed < 6; seed++) {
        int counts[16] = {0};
        draw_points(&s, seed, 64);
        for (int t = 0; t < 64; t++) {
            int at = 0;
            for (int a = 0; a < 2; a++) {
                char value[SPACE_TEXT];
                drawn(&s, t, a, value);
                const double place = space_place(&s.axes[a], value);
                at = 4 * at + (int)fmin(fmax(4 * place, 0), 3);
            }
            counts[at]++;
        }
        for (int i = 0; i < 16; i++)
            CHECK(counts[i] >= 2 && counts[i] <= 6);
    }
}

/* Whatever the seed, points that have the same values of all lists are on a range as far apart as they would be alone: two that follow are two
 * parts of the range from each other at most, and each end is one and a half. */
static void check_slice(const space *s, uint64_t seed, int n, const char *batch, const char *opt)
{
    double places[100];
    int m = 0;
    draw_points(s, seed, n);
    for (int t = 0; t < n; t++) {
        char value[SPACE_TEXT];
        drawn(s, t, 0, value);
        if (strcmp(value, batch) != 0) continue;
        drawn(s, t, 2, value);
        if (strcmp(value, opt) != 0) continue;
        drawn(s, t, 1, value);
        const double place = space_place(&s->axes[1], value);
        int at = m++;
        for (; at > 0 && places[at - 1] > place; at--)
            places[at] = places[at - 1];
        places[at] = place;
    }
    if (!CHECK(m > 0)) return;
    CHECK(places[0] < 1.5 / m + 1e-3 && places[m - 1] > 1 - 1.5 / m - 1e-3);
    for (int i = 0; i + 1 < m; i++)
        CHECK(places[i + 1] - places[i] < 2.0 / m + 1e-3);
}

static void test_points_of_each_value_of_a_list_lie_evenly(void)
{
    const space one = read_good("batch=32|64|128,rate=1e-5..1e-1:log,opt=a");
    const space two = read_good("batch=32|64,rate=1e-5..1e-1:log,opt=a|b");
    for (uint64_t seed = 1; seed < 40; seed++)
        for (int n = 20; n <= 60; n += 7)
            for (int i = 0; i < 3; i++) {
                check_slice(&one, seed, n, one.axes[0].values[i], "a");
                if (i < 2) check_slice(&two, seed, n, two.axes[0].values[i], "a");
                if (i < 2) check_slice(&two, seed, n, two.axes[0].values[i], "b");
            }
}

static void test_every_value_of_a_list_comes(void)
{
    const space s = read_good("batch=32|64|128,rate=1e-3..1e-2");
    int counts[3] = {0};
    draw_points(&s, 5, 30);
    for (int t = 0; t < 30; t++) {
        char value[SPACE_TEXT];
        drawn(&s, t, 0, value);
        for (int i = 0; i < 3; i++)
            counts[i] += strcmp(value, s.axes[0].values[i]) == 0;
    }
    CHECK(counts[0] >= 8 && counts[1] >= 8 && counts[2] >= 8);
    CHECK_EQ_INT(counts[0] + counts[1] + counts[2], 30);
}

static void test_a_grid_has_every_point_once(void)
{
    const space s = read_good("rate=1e-4..1e-1:log,batch=32|64|128,width=1..2");
    char seen[4 * 3 * 2][3 * SPACE_TEXT];
    const int n = (int)space_trials(&s, 4);
    if (!CHECK_EQ_INT(n, 4 * 3 * 2)) return;
    for (int t = 0; t < n; t++) {
        char values[3][SPACE_TEXT];
        for (int a = 0; a < 3; a++)
            space_on_grid(&s, 4, t, a, values[a]);
        snprintf(seen[t], sizeof seen[t], "%s %s %s", values[0], values[1], values[2]);
        for (int k = 0; k < t; k++)
            CHECK(strcmp(seen[k], seen[t]) != 0);
    }
    CHECK_TEXT(seen[0], "0.0001 32 1");
    CHECK_TEXT(seen[n - 1], "0.1 128 2");
    CHECK_TEXT(seen[6], "0.001 32 1");
}

/* Within the range, a step up or down; of a list a neighbour or the same; and never anything else. */
static void test_near_values(void)
{
    const space s = read_good("rate=1e-4..1e-1:log,drop=0..0.5,width=8..16,opt=a|b|c,batch=32");
    char near[SPACE_TEXT];
    space_near(&s.axes[0], "0.01", 1, near);
    CHECK(strcmp(near, "0.015") == 0);
    space_near(&s.axes[0], "0.01", 0, near);
    CHECK(strcmp(near, "0.006667") == 0);
    space_near(&s.axes[0], "0.099", 0.9, near);
    CHECK(strcmp(near, "0.1") == 0);
    space_near(&s.axes[1], "0", 1, near);
    CHECK(strcmp(near, "0.05") == 0);
    space_near(&s.axes[1], "0.02", 0.1, near);
    CHECK(strcmp(near, "0") == 0);
    space_near(&s.axes[2], "9", 0.4, near);
    CHECK(strcmp(near, "8") == 0);
    space_near(&s.axes[2], "9", 0.6, near);
    CHECK(strcmp(near, "10") == 0);
    space_near(&s.axes[2], "16", 0.9, near);
    CHECK(strcmp(near, "16") == 0);
    static const struct {
        const char *from, *to;
        double draw;
    } lists[] = {{"a", "a", 0.1}, {"a", "b", 0.8}, {"b", "a", 0.2},
                 {"b", "b", 0.5}, {"c", "c", 0.9}, {"c", "b", 0}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        space_near(&s.axes[3], lists[i].from, lists[i].draw, near);
        CHECK(strcmp(near, lists[i].to) == 0);
    }
    space_near(&s.axes[4], "32", 0.99, near);
    CHECK(strcmp(near, "32") == 0);
    draw_points(&s, 1, 1000);
    for (uint64_t i = 0; i < 1000; i++) /* however often: inside */
        for (int a = 0; a < 3; a++) {
            char value[SPACE_TEXT];
            drawn(&s, (int)i, a, value);
            space_near(&s.axes[a], value, space_draw(i, 7), near);
            const double x = atof(near);
            CHECK(x >= s.axes[a].low * 0.9999 && x <= s.axes[a].high * 1.0001);
        }
}

static void test_values_between_two(void)
{
    const space s = read_good("rate=1e-4..1e-1:log,drop=0..0.5,width=8..16,opt=a|b|c");
    static const struct {
        int axis;
        const char *x, *y, *between;
    } cases[] = {
        {0, "0.001", "0.1", "0.01"}, {0, "0.1", "0.001", "0.01"}, {0, "0.02", "0.02", "0.02"},
        {1, "0.1", "0.4", "0.25"},   {1, "0", "0.5", "0.25"},     {2, "8", "11", "10"},
        {2, "8", "9", "8"},          {3, "a", "c", "a"},          {3, "c", "a", "c"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char between[SPACE_TEXT];
        space_between(&s.axes[cases[i].axis], cases[i].x, cases[i].y, between);
        weft_test_check(strcmp(between, cases[i].between) == 0, __FILE__, __LINE__, between);
    }
}

static void test_steps(void)
{
    const space s =
        read_good("rate=1e-4..1e-1:log,drop=0..0.5,width=8..16,opt=a|b|c,heads=1..64:log");
    static const struct {
        int axis;
        bool is_up;
        const char *from, *to;
    } cases[] = {{0, true, "0.01", "0.02"}, {0, false, "0.01", "0.005"},
                 {0, true, "0.09", "0.1"},  {0, false, "0.0001", "0.0001"},
                 {1, true, "0.1", "0.15"},  {1, false, "0.01", "0"},
                 {2, true, "9", "10"},      {2, false, "8", "8"},
                 {3, true, "b", "b"},       {4, true, "1", "2"},
                 {4, false, "3", "2"},      {4, true, "48", "64"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char to[SPACE_TEXT];
        space_step(&s.axes[cases[i].axis], cases[i].from, cases[i].is_up, to);
        weft_test_check(strcmp(to, cases[i].to) == 0, __FILE__, __LINE__, to);
    }
}

int main(void)
{
    RUN(test_lists_and_ranges_are_read);
    RUN(test_mistakes_are_told);
    RUN(test_noise_is_no_harm);
    RUN(test_points_lie_evenly);
    RUN(test_points_leave_no_gap);
    RUN(test_points_lie_evenly_in_a_plane);
    RUN(test_points_of_each_value_of_a_list_lie_evenly);
    RUN(test_every_value_of_a_list_comes);
    RUN(test_a_grid_has_every_point_once);
    RUN(test_near_values);
    RUN(test_values_between_two);
    RUN(test_steps);
    return weft_test_report();
}
