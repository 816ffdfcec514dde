/* climb_test: where a search that climbs trains next: inside the ranges, with the best one's values of lists, never twice, the same every time; it
 * goes on where that gains, and closes in on a best that is enclosed. */
#include "apps/weft/tune/climb.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

enum { MOST_DRAWN = 30, MOST_MOVES = 20, MOST = MOST_DRAWN + MOST_MOVES };

/* A search of one rung or two, whose trainings are a function of their points. */
typedef struct acted {
    space space;
    trial trials[MOST];
    search search;
    int ends[MOST], n_ends;
    double (*result)(const space *s, const trial *t);
} acted;

static bool is_better(const acted *a, int x, int y)
{
    const int k = a->search.n_rungs - 1;
    const double p = a->search.trials[x].outcomes[k].result,
                 q = a->search.trials[y].outcomes[k].result;
    return isnan(q) ? !isnan(p) : p > q;
}

/* To the end, and among the others by what it came to. */
static void end_trial(acted *a, int t)
{
    int at = a->n_ends++;
    a->trials[t].outcomes[a->search.n_rungs - 1] =
        (outcome){.is_done = true, .result = a->result(&a->space, &a->trials[t])};
    a->ends[at] = t;
    for (; at > 0 && is_better(a, t, a->ends[at - 1]); at--) {
        a->ends[at] = a->ends[at - 1];
        a->ends[at - 1] = t;
    }
}

static void open_acted(acted *a, const char *vary, uint64_t seed, int n, int n_ends)
{
    static double shares[MOST_DRAWN * SPACE_AXES];
    weft_error error = {0};
    CHECK_OK(space_read(vary, &a->space, &error), error);
    CHECK_OK(space_at_random(&a->space, seed, n, shares, &error), error);
    memset(a->trials, 0, sizeof a->trials);
    a->search = (search){.launch = {.space = &a->space},
                         .trials = a->trials,
                         .n = n,
                         .n_rungs = n_ends < n ? 2 : 1,
                         .is_highest = true};
    a->n_ends = 0;
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < a->space.n; i++)
            space_value(&a->space.axes[i], shares[t * a->space.n + i], a->trials[t].values[i]);
        a->trials[t].outcomes[0] =
            (outcome){.is_done = true, .result = a->result(&a->space, &a->trials[t])};
    }
    for (int t = 0; t < n_ends; t++)
        end_trial(a, n - 1 - t); /* the last, so that some have the values of an earlier one */
}

/* The trial that the move is trained as; -1: there is no move. */
static int move_on(acted *a, int turn, climb_move *move)
{
    if (!climb_next(&a->search, a->ends, a->n_ends, turn, move)) return -1;
    int t = climb_find(&a->search, move->values);
    if (t < 0) t = a->search.n++;
    memcpy(a->trials[t].values, move->values, sizeof move->values);
    end_trial(a, t);
    return t;
}

/* ---- any function, any space ------------------------------------------------------------------- */

static uint64_t salt;

/* No order at all, and some that fail. */
static double noise(const space *s, const trial *t)
{
    uint64_t hash = salt;
    for (int a = 0; a < s->n; a++)
        for (const char *at = t->values[a]; *at; at++)
            hash = (hash ^ (uint64_t)*at) * 0x100000001b3u;
    const double draw = space_draw(salt, hash);
    return draw < 0.15 ? NAN : draw;
}

static void check_values(const acted *a, const climb_move *move)
{
    int n_changed = 0;
    for (int i = 0; i < a->space.n; i++) {
        const space_axis *axis = &a->space.axes[i];
        const char *from = a->trials[move->from].values[i];
        const double x = atof(move->values[i]);
        n_changed += strcmp(move->values[i], from) != 0;
        if (axis->n > 0)
            CHECK(strcmp(move->values[i], from) == 0);
        else
            CHECK(x >= axis->low * 0.9995 && x <= axis->high * 1.0005);
        if (axis->is_whole) CHECK(x == floor(x) && x >= axis->low && x <= axis->high);
    }
    CHECK_EQ_INT(n_changed, 1);
}

static bool has_same_values(const acted *a, int t, const climb_move *move)
{
    for (int i = 0; i < a->space.n; i++)
        if (strcmp(a->trials[t].values[i], move->values[i]) != 0) return false;
    return true;
}

static void check_search(const char *vary, uint64_t seed, int n, int n_ends)
{
    static acted a, again;
    a.result = again.result = noise;
    salt = seed;
    open_acted(&a, vary, seed, n, n_ends);
    open_acted(&again, vary, seed, n, n_ends);
    for (int i = 0; i < MOST_MOVES; i++) {
        climb_move move, same;
        const int best = a.ends[0];
        if (isnan(a.trials[best].outcomes[a.search.n_rungs - 1].result)) return;
        const int climbed = move_on(&a, i, &move);
        CHECK_EQ_INT(move_on(&again, i, &same), climbed);
        if (climbed < 0) return;
        CHECK(move.from == best && move.from == same.from && move.toward == same.toward);
        CHECK(memcmp(move.values, same.values, sizeof move.values) == 0);
        check_values(&a, &move);
        for (int k = 0; k < a.n_ends; k++) /* the one that has just ended has them, and no other */
            CHECK(has_same_values(&a, a.ends[k], &move) == (a.ends[k] == climbed));
    }
}

static void test_moves_stay_in_the_space_and_are_new(void)
{
    static const char *const spaces[] = {
        "rate=1e-5..1e-1:log",
        "rate=1e-5..1e-1:log,batch=32|64|128",
        "opt=a|b,rate=1e-4..1e-1:log,drop=0..0.5",
        "layers=1..8,rate=1e-4..1e-1:log,width=16..512:log",
        "layers=1..3",
        "opt=a|b,layers=1..2",
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        for (uint64_t seed = 1; seed <= (uint64_t)weft_test_cases(100); seed++) {
            const int n = 2 + (int)(space_draw(seed, i) * (MOST_DRAWN - 1));
            check_search(spaces[i], seed, n, 1 + (int)(space_draw(seed, 99) * n));
        }
}

/* ---- hills ------------------------------------------------------------------------------------- */

static double peaks[SPACE_AXES];

static double hill(const space *s, const trial *t)
{
    double sum = 0;
    for (int a = 0; a < s->n; a++) {
        const double off = s->axes[a].n > 0 ? 0 : space_place(&s->axes[a], t->values[a]) - peaks[a];
        sum -= off * off;
    }
    return sum;
}

/* From wherever it begins, within a fraction of a step. */
static void test_the_top_of_a_hill_is_found(void)
{
    static acted a;
    climb_move move;
    a.result = hill;
    for (uint64_t seed = 1; seed < 60; seed++) {
        peaks[0] = space_draw(seed, 7);
        open_acted(&a, "rate=1e-5..1e-1:log,batch=32|64", seed, 24, 1);
        for (int i = 0; i < 16 && move_on(&a, i, &move) >= 0; i++)
            ;
        CHECK(hill(&a.space, &a.trials[a.ends[0]]) > -0.02 * 0.02);
    }
    for (uint64_t seed = 1; seed < 60; seed++) {
        for (int k = 0; k < 2; k++)
            peaks[k] = space_draw(seed, (uint64_t)k);
        open_acted(&a, "rate=1e-5..1e-1:log,drop=0..0.5", seed, 16, 4);
        for (int i = 0; i < MOST_MOVES && move_on(&a, i, &move) >= 0; i++)
            ;
        CHECK(hill(&a.space, &a.trials[a.ends[0]]) > -0.06 * 0.06);
    }
}

/* A step is a tenth of the range. The first goes where the second best lies. One that gains is followed by another, one that does not by one to
 * the other side; then the best is enclosed. */
static void test_steps_go_on_and_turn(void)
{
    static acted a;
    climb_move move;
    a.result = hill;
    peaks[0] = 0.52;
    open_acted(&a, "drop=0..0.5", 1, 10, 1);
    a.n_ends = 0;
    for (int t = 0; t < 10; t++) {
        a.trials[t].outcomes[1].is_done = false;
        snprintf(a.trials[t].values[0], SPACE_TEXT, "%.4g", 0.025 + 0.05 * t);
        a.trials[t].outcomes[0].result = t == 3 ? 9 : t == 4 ? 8 : 0;
    }
    end_trial(&a, 3); /* 0.175: up, since 0.225 was the next best */
    static const char *const after[] = {"0.225", "0.275", "0.325", "0.25"};
    for (int i = 0; i < 4; i++) {
        CHECK(move_on(&a, i, &move) >= 0);
        weft_test_check(strcmp(move.values[0], after[i]) == 0, __FILE__, __LINE__, move.values[0]);
        CHECK((move.toward >= 0) == (i == 3));
    }
    CHECK_EQ_INT(a.search.n, 11); /* three of the four are points that the first rung has */
}

int main(void)
{
    RUN(test_moves_stay_in_the_space_and_are_new);
    RUN(test_the_top_of_a_hill_is_found);
    RUN(test_steps_go_on_and_turn);
    return weft_test_report();
}
