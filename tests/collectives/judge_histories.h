/* judge_histories.h: jobs made up at random, in which ranks have any number of calls in flight, and how the watch sees them. */
#ifndef TEST_JUDGE_HISTORIES_H
#define TEST_JUDGE_HISTORIES_H

#include "judge_views.h"

enum { CALLS = 40, GROUPS = 5, OPS = 4 * CALLS, LIMIT = 60 };

static uint64_t state = 1;
static uint32_t random_below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* ---- made up --------------------------------------------------------------------------------- */

/* PACK: a call is begun, and its bytes are not there before the device has packed them. */
typedef enum what { START, PACK, WAIT, DEVICE, WORK } what;

typedef struct op {
    what what;
    int call; /* of the rank's own list, in the order of its starts */
} op;

typedef struct flight {
    int group, kind;
    uint64_t sequence; /* in the group */
} flight;

typedef struct history { /* of one rank */
    int n_ops, n_calls;
    op ops[OPS];
    flight calls[CALLS + 1];
} history;

typedef struct job {
    int n;
    uint32_t members[GROUPS];
    history of[MOST];
    int at[MOST];        /* the op that a rank is in */
    int stuck, stuck_at; /* a rank that does not come out of an op; -1: none */
} job;

/* Waits for the calls in any order, some of them at once, others at the end; now and then work, or a device. */
static void make_history(const job *j, const flight *list, int rank, history *h)
{
    int open[CALLS + 1], n_open = 0, next = 0;
    h->n_calls = h->n_ops = 0;
    for (int c = 0; c < CALLS + 1; c++)
        if (list[c].group >= 0 && j->members[list[c].group] >> rank & 1)
            h->calls[h->n_calls++] = list[c];
    while (next < h->n_calls || n_open > 0) {
        const bool starts = next < h->n_calls && (n_open == 0 || random_below(5) < 3);
        if (random_below(6) == 0) h->ops[h->n_ops++] = (op){random_below(2) ? DEVICE : WORK, 0};
        if (starts) {
            open[n_open++] = next;
            h->ops[h->n_ops++] = (op){random_below(4) ? START : PACK, next++};
        } else {
            const int picked = (int)random_below((uint32_t)n_open);
            h->ops[h->n_ops++] = (op){WAIT, open[picked]};
            open[picked] = open[--n_open];
        }
    }
    uint64_t sequence[GROUPS] = {0};
    for (int c = 0; c < h->n_calls; c++)
        h->calls[c].sequence = ++sequence[h->calls[c].group];
}

static job random_job(flight *list)
{
    job j = {.n = 2 + (int)random_below(MOST - 1), .stuck = -1};
    for (int g = 0; g < GROUPS; g++) {
        j.members[g] = g == 0 ? (1u << j.n) - 1 : 1 + random_below((1u << j.n) - 1);
        while (__builtin_popcount(j.members[g]) < 2)
            j.members[g] |= 1u << random_below((uint32_t)j.n);
    }
    for (int c = 0; c < CALLS; c++)
        list[c] = (flight){(int)random_below(GROUPS), (int)random_below(4), 0};
    list[CALLS].group = -1;
    for (int r = 0; r < j.n; r++)
        make_history(&j, list, r, &j.of[r]);
    return j;
}

static bool is_on_device(const job *j, int rank, int at)
{
    const what what = at < j->of[rank].n_ops ? j->of[rank].ops[at].what : WORK;
    return what == DEVICE || what == PACK;
}

static int begun(const job *j, int rank, int at)
{
    const history *h = &j->of[rank];
    int n = at < h->n_ops && h->ops[at].what == PACK;
    for (int i = 0; i < at; i++)
        n += h->ops[i].what == START || h->ops[i].what == PACK;
    return n;
}

/* How far a rank has come in a group with its first n calls. */
static weft_channel_view progress_of(const job *j, int rank, int n, int group)
{
    uint64_t fingerprint = 17;
    weft_channel_view c = {.key = (uint64_t)(group + 1),
                           .lowest = __builtin_ctz(j->members[group]),
                           .n_ranks = __builtin_popcount(j->members[group])};
    for (int i = 0; i < n; i++) {
        const flight *f = &j->of[rank].calls[i];
        if (f->group != group) continue;
        c.sequence++;
        fingerprint = (fingerprint ^ (uint64_t)f->kind) * 0x9e3779b97f4a7c15u;
        c.past[c.sequence % WEFT_PAST] = fingerprint;
    }
    return c;
}

static weft_channel_view progress(const job *j, int rank, int at, int group)
{
    return progress_of(j, rank, begun(j, rank, at), group);
}

/* Calls of which the bytes are there. */
static uint64_t n_sent(const job *j, int rank, int group)
{
    const int at = j->at[rank];
    const bool packs = at < j->of[rank].n_ops && j->of[rank].ops[at].what == PACK;
    return progress_of(j, rank, begun(j, rank, at) - packs, group).sequence;
}

/* After the call of that number in a group; 0: the rank never makes so many. */
static uint64_t fingerprint_after(const job *j, int rank, int group, uint64_t sequence)
{
    for (int n = 0; n <= j->of[rank].n_calls; n++) {
        const weft_channel_view c = progress_of(j, rank, n, group);
        if (c.sequence == sequence) return c.past[sequence % WEFT_PAST];
    }
    return 0;
}

static bool is_over(const job *j, int rank)
{
    return j->at[rank] == j->of[rank].n_ops;
}

static weft_rank_view view_of(const job *j, int rank)
{
    const history *h = &j->of[rank];
    const int at = j->at[rank];
    weft_rank_view v = {.is_known = 1,
                        .rank = rank,
                        .n_begun = (uint64_t)begun(j, rank, at),
                        .saved = -1,
                        .device_allowed = LIMIT};
    for (int g = 0; g < GROUPS; g++)
        if (j->members[g] >> rank & 1) v.channels[v.n_channels++] = progress(j, rank, at, g);
    snprintf(v.doing, sizeof v.doing, "at op %d", at);
    if (is_over(j, rank)) {
        v.presence = WEFT_LEFT;
        return v;
    }
    v.is_waiting = h->ops[at].what == WAIT;
    v.is_on_device = is_on_device(j, rank, at);
    v.at_work = h->ops[at].what == WORK && rank != j->stuck;
    if (!v.is_waiting) return v;
    const flight *f = &h->calls[h->ops[at].call];
    v.call = (weft_channel_view){.key = (uint64_t)(f->group + 1),
                                 .sequence = f->sequence,
                                 .lowest = __builtin_ctz(j->members[f->group]),
                                 .n_ranks = __builtin_popcount(j->members[f->group])};
    v.call_fingerprint = fingerprint_after(j, rank, f->group, f->sequence);
    return v;
}

/* A call ends when all of the group have begun it, and the same one. */
static bool has_come(const job *j, int rank, const flight *f)
{
    const uint64_t own = fingerprint_after(j, rank, f->group, f->sequence);
    for (int r = 0; r < j->n; r++) {
        if (!(j->members[f->group] >> r & 1)) continue;
        if (n_sent(j, r, f->group) < f->sequence ||
            fingerprint_after(j, r, f->group, f->sequence) != own)
            return false;
    }
    return true;
}

static bool can_go_on(const job *j, int rank)
{
    const history *h = &j->of[rank];
    const int at = j->at[rank];
    if (is_over(j, rank) || (rank == j->stuck && at == j->stuck_at)) return false;
    return h->ops[at].what != WAIT || has_come(j, rank, &h->calls[h->ops[at].call]);
}

static bool advance(job *j)
{
    const int first = (int)random_below((uint32_t)j->n);
    for (int i = 0; i < j->n; i++) {
        const int rank = (first + i) % j->n;
        if (!can_go_on(j, rank)) continue;
        j->at[rank]++;
        return true;
    }
    return false;
}

static bool have_all_ended(const job *j)
{
    for (int r = 0; r < j->n; r++)
        if (!is_over(j, r)) return false;
    return true;
}

static void look(const job *j)
{
    for (int r = 0; r < j->n; r++)
        views[r] = view_of(j, r);
}

/* What the watch does: it judges, asks what it wants to know, and judges again. */
static bool judge_and_ask(const job *j, double patience)
{
    for (int turn = 0; turn < 4 * MOST; turn++) {
        if (weft_judge(views, j->n, patience, &verdict)) return true;
        const weft_recall asked = weft_views_ask(views, j->n);
        for (int r = 0; r < j->n && asked.sequence > 0; r++) {
            if (!weft_view_channel(&views[r], asked.key, asked.lowest)) continue;
            views[r].recalled = asked;
            views[r].recalled.fingerprint =
                progress(j, r, j->at[r], (int)asked.key - 1).sequence >= asked.sequence
                    ? fingerprint_after(j, r, (int)asked.key - 1, asked.sequence)
                    : 0;
        }
    }
    return false;
}

#endif
