/* recorder_test: in all orders within a bound, who looks at a recorder while its rank writes it sees calls, channels
 * and texts whole, or not at all.
 */
#include "view.h"

#include "explored.h"
#include "weft/watch.h"

enum { CALLS = 3 };

typedef struct recorded {
    weft_recorder *recorder;
    int channel;
    uint64_t fingerprints[CALLS + 1]; /* after so many calls */
} recorded;

static const weft_call_facts call = {.kind = WEFT_CALL_ALL_REDUCE, .root = -1, .count = 4};

static void write_calls(recorded *r)
{
    for (int i = 0; i < CALLS; i++) {
        const weft_call_mark mark = weft_recorder_begin(r->recorder, r->channel, &call);
        weft_recorder_stamp_wait(r->recorder, &mark);
        weft_recorder_stamp_arrival(r->recorder, &mark);
        weft_recorder_end(r->recorder, &mark);
    }
}

static void look_at_calls(recorded *r)
{
    static weft_rank_view view;
    for (int look = 0; look < 2; look++) {
        weft_record record;
        weft_view_take(r->recorder, &view);
        const weft_channel_view *c = &view.channels[0];
        if (view.n_channels == 1 && c->sequence > 0 &&
            c->past[c->sequence % WEFT_PAST] != r->fingerprints[c->sequence])
            schedule_fail("call %d has the fingerprint of another", (int)c->sequence);
        const uint64_t last = view.n_begun;
        if (last > 0 && weft_record_read(r->recorder, last, &record) &&
            record.fingerprint != r->fingerprints[last])
            schedule_fail("record %d is torn", (int)last);
    }
}

static void record(void *state, int thread)
{
    if (thread == 0)
        write_calls(state);
    else
        look_at_calls(state);
}

static void record_calls(void *state)
{
    recorded *r = state;
    memset(&r->recorder->head, 0, sizeof r->recorder->head);
    memset(r->recorder->records, 0, 8 * sizeof r->recorder->records[0]);
    r->channel = weft_recorder_channel(r->recorder, 3, 0, 2, "data");
    explored_each(2, record, r);
}

static void test_calls_are_seen_whole(void)
{
    recorded r = {.recorder = calloc(1, sizeof *r.recorder)};
    for (int i = 0; i < CALLS; i++)
        r.fingerprints[i + 1] = weft_call_fingerprint(r.fingerprints[i], &call);
    explore("a rank that calls, and who looks, at random", record_calls, &r,
            (schedule_options){.seed = 4, .most_runs = weft_test_cases(3000)});
    explore("a rank that calls, and who looks", record_calls, &r,
            (schedule_options){.n_preemptions = 2});
    free(r.recorder);
}

/* ---- memory under a version ---------------------------------------------------------------------- */

enum { WORDS = 3 };
typedef struct guarded {
    _Atomic uint32_t version;
    uint64_t words[WORDS];
    int n_seen;
} guarded;

static void write_or_read(void *state, int thread)
{
    guarded *g = state;
    uint64_t words[WORDS];
    for (uint64_t turn = 1; turn <= 2; turn++) {
        if (thread == 0) {
            for (int i = 0; i < WORDS; i++)
                words[i] = turn;
            weft_guarded_write(&g->version, g->words, words, sizeof words);
        } else if (weft_guarded_read(&g->version, words, g->words, sizeof words)) {
            g->n_seen++;
            for (int i = 1; i < WORDS; i++)
                if (words[i] != words[0])
                    schedule_fail("words %d and %d were not written together", (int)words[0],
                                  (int)words[i]);
        }
    }
}

static void write_and_read(void *state)
{
    guarded *g = state;
    const int n_seen = g->n_seen;
    *g = (guarded){.n_seen = n_seen};
    explored_each(3, write_or_read, g);
}

static void test_guarded_words_belong_together(void)
{
    guarded g = {0};
    explore("one writes, two read", write_and_read, &g, (schedule_options){.n_preemptions = 2});
    CHECK(g.n_seen > 0);
}

/* ---- what a rank is busy with -------------------------------------------------------------------- */

static void say_busy_or_look(void *state, int thread)
{
    static const char *const texts[] = {"reading a very long list of files", "waiting"};
    static weft_rank_view view;
    (void)state;
    if (thread < 2) {
        weft_watch_busy(texts[thread]);
        return;
    }
    for (int look = 0; look < 2; look++) {
        weft_view_take(weft_recorder_at(0), &view);
        if (view.busy[0] && strcmp(view.busy, texts[0]) != 0 && strcmp(view.busy, texts[1]) != 0)
            schedule_fail("\"%s\" is of two texts", view.busy);
    }
}

static void be_busy(void *state)
{
    weft_watch_busy(NULL);
    explored_each(3, say_busy_or_look, state);
    if (weft_sync_load(&weft_recorder_at(0)->head.busy_version) % 2 != 0)
        schedule_fail("the text is left in the middle of a change");
}

static void test_two_threads_say_what_a_rank_is_busy_with(void)
{
    CHECK(weft_recorder_of(0) != NULL);
    explore("two that say and one that looks, at random", be_busy, NULL,
            (schedule_options){.seed = 3, .most_runs = weft_test_cases(10000)});
    explore("two that say and one that looks", be_busy, NULL,
            (schedule_options){.n_preemptions = 2, .most_runs = weft_test_cases(10000)});
}

int main(void)
{
    RUN(test_guarded_words_belong_together);
    RUN(test_calls_are_seen_whole);
    RUN(test_two_threads_say_what_a_rank_is_busy_with);
    return weft_test_report();
}
