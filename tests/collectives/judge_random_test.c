/* judge_random_test: ranks that go through random lists of calls: those that make the same are never accused, at whatever
 * moments they are looked at, and one that does not is always found.
 */
#include "judge_views.h"

enum { CALLS = 24, GROUPS = 6, SAMPLES = 100000, CHANGED = 20000 };

static uint64_t state = 1;
static uint32_t random_below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

typedef struct call {
    int group, kind;
} call;

typedef struct job {
    int n;                    /* ranks */
    uint32_t members[GROUPS]; /* set of ranks */
    call list[MOST][CALLS + 1];
    int length[MOST];
} job;

/* Moment 2k: before call k. 2k + 1: in it. */
typedef struct moment {
    int at[MOST];
} moment;

static bool is_member(const job *j, int group, int rank)
{
    return j->members[group] >> rank & 1;
}

static job random_job(void)
{
    job j = {.n = 2 + (int)random_below(MOST - 1)};
    for (int g = 0; g < GROUPS; g++) {
        j.members[g] = g == 0 ? (1u << j.n) - 1 : 1 + random_below((1u << j.n) - 1);
        while (__builtin_popcount(j.members[g]) < 2)
            j.members[g] |= 1u << random_below((uint32_t)j.n);
    }
    for (int c = 0; c < CALLS; c++) {
        const call made = {(int)random_below(GROUPS), (int)random_below(4)};
        for (int r = 0; r < j.n; r++)
            if (is_member(&j, made.group, r)) j.list[r][j.length[r]++] = made;
    }
    return j;
}

/* How many calls a rank has begun in a group, and the fingerprint of them. */
static weft_channel_view progress(const job *j, int rank, int at, int group)
{
    weft_channel_view c = {.key = (uint64_t)(group + 1),
                           .lowest = __builtin_ctz(j->members[group]),
                           .n_ranks = __builtin_popcount(j->members[group])};
    uint64_t fingerprint = 17;
    for (int i = 0; 2 * i < at; i++) {
        if (j->list[rank][i].group != group) continue;
        c.sequence++;
        fingerprint = (fingerprint ^ (uint64_t)j->list[rank][i].kind) * 0x9e3779b97f4a7c15u;
        c.past[c.sequence % WEFT_PAST] = fingerprint;
    }
    return c;
}

static weft_rank_view view_at(const job *j, int rank, int at)
{
    weft_rank_view v = {
        .is_known = 1, .rank = rank, .n_begun = (uint64_t)(at + 1) / 2, .saved = -1};
    for (int g = 0; g < GROUPS; g++)
        if (is_member(j, g, rank)) v.channels[v.n_channels++] = progress(j, rank, at, g);
    v.is_waiting = at % 2;
    if (v.is_waiting) v.call = progress(j, rank, at, j->list[rank][at / 2].group);
    if (at == 2 * j->length[rank]) v.presence = WEFT_LEFT;
    snprintf(v.doing, sizeof v.doing, "at moment %d", at);
    return v;
}

/* Whether a rank can end the call that it is in: all have begun it. Kind 0 is a broadcast from the
 * lowest: who sends needs nobody, who receives needs the sender. */
static bool can_go_on(const job *j, const moment *m, int rank)
{
    const int at = m->at[rank];
    if (at % 2 == 0) return at < 2 * j->length[rank];
    const call own = j->list[rank][at / 2];
    const weft_channel_view c = progress(j, rank, at, own.group);
    if (own.kind == 0 && rank == c.lowest) return true;
    for (int r = 0; r < j->n; r++) {
        if (!is_member(j, own.group, r)) continue;
        if (own.kind == 0 && r != c.lowest) continue; /* waits for the sender alone */
        if (progress(j, r, m->at[r], own.group).sequence < c.sequence) return false;
    }
    return true;
}

/* One rank takes one step. False: none can. */
static bool advance(const job *j, moment *m)
{
    int order = (int)random_below((uint32_t)j->n);
    for (int i = 0; i < j->n; i++) {
        const int rank = (order + i) % j->n;
        if (!can_go_on(j, m, rank)) continue;
        m->at[rank]++;
        return true;
    }
    return false;
}

/* Views of some ranks are from earlier: of any moment, not only of the last second. */
static void test_same_calls_are_never_accused(void)
{
    int n_verdicts = 0, n_samples = 0, n_waiting = 0;
    while (n_samples < SAMPLES) {
        const job j = random_job();
        moment m = {{0}};
        for (int r = 0; r < j.n; r++)
            views[r] = view_at(&j, r, 0);
        do {
            for (int r = 0; r < j.n; r++)
                if (random_below(4) == 0) views[r] = view_at(&j, r, m.at[r]);
            n_verdicts += weft_judge(views, j.n, INFINITY, &verdict);
            for (int r = 0; r < j.n; r++)
                n_waiting += views[r].is_waiting;
            n_samples++;
        } while (advance(&j, &m));
        for (int r = 0; r < j.n; r++) /* the list is one that ends */
            if (m.at[r] != 2 * j.length[r]) CHECK(false);
    }
    CHECK_EQ_INT(n_verdicts, 0);
    CHECK(n_waiting > n_samples / 4);
    printf("%d samples, %d verdicts\n", n_samples, n_verdicts);
}

/* ---- one rank's list altered -------------------------------------------------------------------
 */

static void skip(job *j, int rank, int at)
{
    j->length[rank]--;
    for (int i = at; i < j->length[rank]; i++)
        j->list[rank][i] = j->list[rank][i + 1];
}

static void extra(job *j, int rank, int at)
{
    for (int i = j->length[rank]; i > at; i--)
        j->list[rank][i] = j->list[rank][i - 1];
    j->length[rank]++;
}

static void swap(job *j, int rank, int at)
{
    const int next = at + 1 < j->length[rank] ? at + 1 : at;
    const call kept = j->list[rank][at];
    j->list[rank][at] = j->list[rank][next];
    j->list[rank][next] = kept;
}

static void other_kind(job *j, int rank, int at)
{
    j->list[rank][at].kind ^= 1 + (int)random_below(3);
}

/* Calls that differ get nothing from each other: as far as the first, all goes well; from there on
 * a rank that is in a call of another fingerprint stays. */
static bool gets_data(const job *j, const moment *m, int rank)
{
    const int at = m->at[rank];
    if (at % 2 == 0) return true;
    const int group = j->list[rank][at / 2].group;
    const weft_channel_view own = progress(j, rank, at, group);
    for (int r = 0; r < j->n; r++) {
        if (!is_member(j, group, r)) continue;
        for (int k = 0; k <= m->at[r]; k++) {
            const weft_channel_view its = progress(j, r, k, group);
            if (its.sequence == own.sequence && weft_channels_differ(&its, &own)) return false;
        }
    }
    return true;
}

static void run_as_far_as_it_goes(const job *j, moment *m)
{
    bool has_moved = true;
    while (has_moved) {
        has_moved = false;
        for (int r = 0; r < j->n; r++) {
            if (!can_go_on(j, m, r) || !gets_data(j, m, r)) continue;
            m->at[r]++;
            has_moved = true;
        }
    }
}

static bool is_same_list(const job *a, const job *b, int rank)
{
    if (a->length[rank] != b->length[rank]) return false;
    for (int i = 0; i < a->length[rank]; i++)
        if (a->list[rank][i].group != b->list[rank][i].group ||
            a->list[rank][i].kind != b->list[rank][i].kind)
            return false;
    return true;
}

/* All came to the end of their lists: the groups have seen the same calls, or one more of a sender
 * that nobody answers and that nothing comes after. weft_calls_check finds that. */
static bool have_all_ended(const job *j, const moment *m)
{
    for (int r = 0; r < j->n; r++)
        if (m->at[r] < 2 * j->length[r]) return false;
    return true;
}

static bool have_groups_seen_the_same(const job *j, const moment *m)
{
    for (int g = 0; g < GROUPS; g++) {
        const int lowest = __builtin_ctz(j->members[g]);
        const weft_channel_view first = progress(j, lowest, m->at[lowest], g);
        for (int r = 0; r < j->n; r++) {
            if (!is_member(j, g, r)) continue;
            const weft_channel_view its = progress(j, r, m->at[r], g);
            if (weft_channels_differ(&its, &first)) return false;
        }
    }
    return true;
}

static void test_altered_calls_are_always_found(void)
{
    static void (*const alter[])(job *, int, int) = {skip, extra, swap, other_kind};
    int n_harmless = 0, n_missed = 0, n_other = 0, n_tried = 0;
    while (n_tried < CHANGED) {
        job j = random_job();
        const job before = j;
        moment m = {{0}};
        const int rank = (int)random_below((uint32_t)j.n);
        if (j.length[rank] < 2) continue;
        alter[n_tried % 4](&j, rank, (int)random_below((uint32_t)j.length[rank]));
        if (is_same_list(&before, &j, rank)) continue;
        run_as_far_as_it_goes(&j, &m);
        n_tried++;
        for (int r = 0; r < j.n; r++)
            views[r] = view_at(&j, r, m.at[r]);
        const bool is_found = weft_judge(views, j.n, INFINITY, &verdict);
        if (have_all_ended(&j, &m) && have_groups_seen_the_same(&j, &m)) {
            n_harmless++;
            n_other += is_found;
            continue;
        }
        if (!is_found)
            n_missed++;
        else
            n_other += verdict.status != WEFT_ENDS_MISMATCH;
    }
    CHECK_EQ_INT(n_missed, 0);
    CHECK_EQ_INT(n_other, 0);
    CHECK(n_harmless < n_tried / 4);
    printf("%d altered, %d of them without effect, %d not found\n", n_tried, n_harmless, n_missed);
}

int main(void)
{
    RUN(test_same_calls_are_never_accused);
    RUN(test_altered_calls_are_always_found);
    return weft_test_report();
}
