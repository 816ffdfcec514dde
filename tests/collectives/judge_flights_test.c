/* judge_flights_test: ranks that have any number of calls in flight and wait for them in any order, and for their
 * devices in between. Through random histories with a known truth no innocent rank is accused, and every faulty one
 * is found.
 */
#include "judge_histories.h"

/* ---- nobody is at fault ------------------------------------------------------------------------ */

/* Views of any moment; every device goes on, though it may have been slow for as long as it is allowed. */
static void test_the_same_calls_in_flight_are_never_accused(void)
{
    enum { JOBS = 600 };
    flight list[CALLS + 1];
    int n_verdicts = 0, n_samples = 0, n_on_device = 0, n_open = 0;
    for (int k = 0; k < JOBS; k++) {
        job j = random_job(list);
        look(&j);
        do {
            for (int r = 0; r < j.n; r++)
                if (random_below(4) == 0) views[r] = view_of(&j, r);
            for (int r = 0; r < j.n; r++)
                views[r].device_idle = LIMIT - 1;
            n_verdicts += weft_judge(views, j.n, INFINITY, &verdict);
            const weft_recall asked = weft_views_ask(views, j.n);
            for (int r = 0; r < j.n && asked.sequence > 0; r++) {
                const weft_channel_view *c = weft_view_channel(&views[r], asked.key, asked.lowest);
                if (!c) continue;
                views[r].recalled = asked;
                views[r].recalled.fingerprint =
                    c->sequence >= asked.sequence
                        ? fingerprint_after(&j, r, (int)asked.key - 1, asked.sequence)
                        : 0;
            }
            for (int r = 0; r < j.n; r++) {
                n_on_device += views[r].is_on_device;
                n_open += views[r].is_waiting && views[r].call.sequence + 1 < views[r].n_begun;
            }
            n_samples++;
        } while (advance(&j));
        CHECK(have_all_ended(&j)); /* truth: whatever the waits' order, it comes to an end */
    }
    CHECK_EQ_INT(n_verdicts, 0);
    CHECK(n_on_device > n_samples / 10 && n_open > n_samples / 10);
    printf("%d samples, %d verdicts\n", n_samples, n_verdicts);
}

/* One rank's device is busy for long and goes on, all others wait for it as long: a word, no verdict. */
static void test_a_rank_on_a_healthy_device_is_never_idle(void)
{
    enum { JOBS = 3000 };
    flight list[CALLS + 1];
    int n_tried = 0, n_words = 0;
    char text[1024];
    while (n_tried < JOBS) {
        job j = random_job(list);
        const int rank = (int)random_below((uint32_t)j.n);
        const int at = (int)random_below((uint32_t)j.of[rank].n_ops);
        if (!is_on_device(&j, rank, at)) continue;
        j.stuck = rank, j.stuck_at = at; /* for as long as we look */
        while (advance(&j))
            ;
        look(&j);
        for (int r = 0; r < j.n; r++) {
            views[r].waiting = views[r].stalled = views[r].is_waiting ? 10 * LIMIT : 0;
            views[r].device_idle = LIMIT - 1;
            views[r].idle = views[r].is_on_device ? 10 * LIMIT : 0;
        }
        CHECK(!judge_and_ask(&j, PATIENCE));
        n_words += weft_judge_slow(views, j.n, PATIENCE, text, sizeof text) == rank;
        n_tried++;
    }
    CHECK(n_words > n_tried / 2); /* where somebody waits for it */
}

/* ---- one rank is at fault ---------------------------------------------------------------------- */

static void alter(flight *list, int way)
{
    const int at = (int)random_below(CALLS - 1);
    const flight kept = list[at];
    if (way == 0) { /* left out */
        memmove(list + at, list + at + 1, (size_t)(CALLS - at) * sizeof *list);
        list[CALLS].group = -1;
    } else if (way == 1) { /* made twice */
        memmove(list + at + 1, list + at, (size_t)(CALLS - at) * sizeof *list);
    } else if (way == 2) { /* two of them the other way round */
        list[at] = list[at + 1];
        list[at + 1] = kept;
    } else {
        list[at].kind ^= 1 + (int)random_below(3);
    }
}

static bool is_same_for(const history *a, const history *b)
{
    if (a->n_calls != b->n_calls) return false;
    for (int c = 0; c < a->n_calls; c++)
        if (a->calls[c].group != b->calls[c].group || a->calls[c].kind != b->calls[c].kind)
            return false;
    return true;
}

static void test_altered_calls_in_flight_are_always_found(void)
{
    enum { CHANGED = 4000 };
    flight list[CALLS + 1];
    int n_tried = 0, n_harmless = 0, n_missed = 0, n_other = 0, n_asked = 0;
    while (n_tried < CHANGED) {
        job j = random_job(list);
        const int rank = (int)random_below((uint32_t)j.n);
        history before = j.of[rank];
        alter(list, n_tried % 4);
        make_history(&j, list, rank, &j.of[rank]);
        if (is_same_for(&before, &j.of[rank])) continue;
        n_tried++;
        while (advance(&j))
            ;
        if (have_all_ended(&j)) { /* of two calls of different groups, neither missed the other */
            n_harmless++;
            continue;
        }
        look(&j);
        n_asked += weft_views_ask(views, j.n).sequence > 0;
        if (!judge_and_ask(&j, INFINITY))
            n_missed++;
        else
            n_other += verdict.status != WEFT_ENDS_MISMATCH;
    }
    CHECK_EQ_INT(n_missed, 0);
    CHECK_EQ_INT(n_other, 0);
    CHECK(n_asked > 100);
    CHECK(n_harmless < n_tried / 3);
    printf("%d altered, %d of them without effect, %d not found\n", n_tried, n_harmless, n_missed);
}

/* The device, or the rank itself, stops for good: that rank is named, by the sentence that says which. */
static void test_who_hangs_is_always_found(void)
{
    enum { HUNG = 3000 };
    flight list[CALLS + 1];
    int n_tried = 0, n_missed = 0, n_others = 0, n_idle = 0;
    while (n_tried < HUNG) {
        job j = random_job(list);
        const int rank = (int)random_below((uint32_t)j.n);
        const int at = (int)random_below((uint32_t)j.of[rank].n_ops);
        const bool is_device = is_on_device(&j, rank, at);
        if (!is_device && j.of[rank].ops[at].what != WORK) continue;
        j.stuck = rank, j.stuck_at = at;
        while (advance(&j))
            ;
        look(&j);
        bool is_awaited = false;
        for (int r = 0; r < j.n; r++) {
            views[r].waiting = views[r].stalled = views[r].is_waiting ? 10 * LIMIT : 0;
            views[r].device_idle = views[r].is_on_device ? LIMIT + 1 : 0;
            views[r].idle = r == rank && !is_device ? 10 * LIMIT : 0;
            is_awaited |= views[r].is_waiting;
        }
        if (!is_device && !is_awaited) continue; /* nobody minds */
        n_tried++;
        n_idle += !is_device;
        if (!judge_and_ask(&j, PATIENCE))
            n_missed++;
        else
            n_others += verdict.status != WEFT_ENDS_HUNG || verdict.rank != rank ||
                        (strstr(verdict.text, "a device that hangs") != NULL) != is_device;
    }
    CHECK_EQ_INT(n_missed, 0);
    CHECK_EQ_INT(n_others, 0);
    CHECK(n_idle > HUNG / 8 && n_idle < 7 * HUNG / 8);
}

/* ---- single rules ------------------------------------------------------------------------------ */

static void test_what_a_hung_device_is_told_by(void)
{
    make_views(3);
    wait_on(0, WORLD, 0, 3, 100);
    wait_on(1, WORLD, 0, 3, 100);
    views[2].is_on_device = true;
    views[2].device_allowed = LIMIT;
    views[2].device_idle = LIMIT - 1;
    views[2].idle = 1000; /* says nothing of who waits for a device */
    CHECK(!judged(3));
    views[2].device_idle = LIMIT + 1;
    check_verdict(3, WEFT_ENDS_HUNG, 2);
    check_names(2);
    CHECK_TEXT(verdict.text, "waits for a device that hangs: for 61 s");
    CHECK_TEXT(verdict.text, "ranks 0, 1 wait for it, rank 0 in call 6");
    CHECK(!weft_judge(views, 3, 1000, &verdict)); /* never before the patience of ranks */
    views[2].device_allowed = 0;                  /* for ever */
    CHECK(!judged(3));
}

/* The call that a rank waits in is long ago in its own series, too. */
static void test_two_that_are_far_ahead_are_compared_in_the_call_that_is_waited_in(void)
{
    make_views(2);
    for (int r = 0; r < 2; r++) {
        wait_on(r, WORLD, 0, 2, 1);
        views[r].call_fingerprint = r == 0 ? 6000 : 6001;
        channel_of(&views[r], WORLD, 0)->sequence = r == 0 ? 30 : 20;
    }
    const weft_recall asked = weft_views_ask(views, 2);
    CHECK_EQ_INT(asked.sequence, 6);
    check_verdict(2, WEFT_ENDS_MISMATCH, 1); /* each knows what it waits in */
    views[1].call_fingerprint = 6000;
    CHECK(!judged(2));
    views[1].is_waiting = false;
    CHECK(!judged(2));
    views[1].recalled = asked;
    views[1].recalled.fingerprint = 6001;
    check_verdict(2, WEFT_ENDS_MISMATCH, 1);
}

/* Three groups of two, in each of which one waits and the other is far ahead: every one is asked about in its turn, and what
 * differs in the last is found. */
static void test_every_question_has_its_turn(void)
{
    make_views(6);
    for (int r = 0; r < 6; r++) {
        wait_on(r, DATA, r / 2 * 2, 2, 1);
        views[r].call_fingerprint = 1000;
        if (r % 2 == 0) continue;
        views[r].is_waiting = false;
        channel_of(&views[r], DATA, r - 1)->sequence = 30;
    }
    bool is_found = false;
    for (int turn = 0; turn < 6 && !is_found; turn++) {
        const weft_recall asked = weft_views_ask(views, 6);
        CHECK_EQ_INT(asked.sequence, 1);
        for (int r = 0; r < 6; r++)
            if (weft_view_channel(&views[r], asked.key, asked.lowest)) {
                views[r].recalled = asked;
                views[r].recalled.fingerprint = r == 5 ? 1001 : 1000;
            }
        is_found = judged(6);
    }
    CHECK(is_found);
    CHECK_EQ_INT(verdict.rank, 5);
}

/* One rank is far ahead in three groups, in each of which another waits for it; it keeps one answer, and forgets the one before.
 * Who always asked the first that lacks one would ask of the first two in turn, for ever: the third is where they differ. */
static void test_one_that_is_asked_by_several_answers_them_all(void)
{
    enum { ASKED = 3 };
    bool was_asked[ASKED] = {0};
    make_views(ASKED + 1);
    for (int r = 0; r < ASKED; r++) {
        wait_on(r, DATA, r, 2, 1);
        views[r].call_fingerprint = 1000;
        weft_channel_view *its = channel_of(&views[ASKED], DATA, r);
        its->n_ranks = 2;
        its->sequence = 30;
    }
    bool is_found = false;
    for (int turn = 0; turn < ASKED && !is_found; turn++) {
        const weft_recall asked = weft_views_ask(views, ASKED + 1);
        if (!CHECK(asked.sequence == 1 && asked.lowest >= 0 && asked.lowest < ASKED)) return;
        was_asked[asked.lowest] = true;
        views[ASKED].recalled = asked;
        views[ASKED].recalled.fingerprint = asked.lowest == ASKED - 1 ? 1001 : 1000;
        is_found = judged(ASKED + 1);
    }
    CHECK(was_asked[0] && was_asked[1] && was_asked[2]);
    CHECK(is_found);
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_MISMATCH);
}

int main(void)
{
    RUN(test_what_a_hung_device_is_told_by);
    RUN(test_two_that_are_far_ahead_are_compared_in_the_call_that_is_waited_in);
    RUN(test_every_question_has_its_turn);
    RUN(test_one_that_is_asked_by_several_answers_them_all);
    RUN(test_the_same_calls_in_flight_are_never_accused);
    RUN(test_a_rank_on_a_healthy_device_is_never_idle);
    RUN(test_altered_calls_in_flight_are_always_found);
    RUN(test_who_hangs_is_always_found);
    return weft_test_report();
}
