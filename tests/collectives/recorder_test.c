/* recorder_test: what a rank does is written down whole, whoever reads it meanwhile.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "collectives/recorded.h"
#include "test.h"
#include "watch/view.h"
#include "weft/watch.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_ring_keeps_the_last_calls(void)
{
    enum { CALLS = 3 * WEFT_RECORDS + 17 };
    weft_recorder *r = weft_recorder_of(10);
    const int channel = weft_recorder_channel(r, 1, 0, 4, "data");
    weft_record record;
    for (int i = 1; i <= CALLS; i++) {
        weft_call_facts call = reduce_8;
        call.count = i;
        call_once(r, channel, &call);
    }
    int n_right = 0;
    for (uint64_t number = 1; number <= CALLS; number++)
        if (weft_record_read(r, number, &record)) {
            n_right += record.number == number && record.count == (int64_t)number &&
                       record.sequence == number && record.ended >= record.begun;
            CHECK(number > CALLS - WEFT_RECORDS);
        }
    CHECK(n_right >= WEFT_RECORDS - 2 && n_right <= WEFT_RECORDS);
    CHECK(!weft_record_read(r, 0, &record));
    CHECK(!weft_record_read(r, CALLS + 1, &record));
}

static void test_full_tables_do_no_harm(void)
{
    char text[400];
    weft_recorder *r = weft_recorder_of(11);
    for (int i = 0; i < WEFT_CHANNELS + 5; i++)
        CHECK_EQ_INT(weft_recorder_channel(r, (uint64_t)(100 + i), 0, 2,
                                           "an axis with a name that is far too long"),
                     i < WEFT_CHANNELS ? i : -1);
    CHECK_EQ_INT(weft_recorder_channel(r, 103, 0, 2, "x"), 3); /* is there already */
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (uint32_t i = 1; i < WEFT_SPOTS + 5; i++) {
        snprintf(text, 8, "%07u", i);
        text[7] = 'y';
        CHECK_EQ_INT(weft_recorder_spot(r, i, text), i < WEFT_SPOTS ? i : 0);
    }
    for (uint32_t i = WEFT_SPOTS - 1; i >= 1; i--) { /* all are found again, by text as by digest */
        snprintf(text, 8, "%07u", i);
        text[7] = 'y';
        CHECK_EQ_INT(weft_recorder_spot(r, i, text), i);
        CHECK_EQ_INT(weft_recorder_spot(r, i, "another"), 0);
    }
    weft_call_facts call = reduce_8;
    const weft_call_mark none = call_once(r, -1, &call);
    CHECK_EQ_INT(none.number, 0);
    CHECK_EQ_INT(call_once(NULL, 0, &call).number, 0);
    call.spot = WEFT_SPOTS - 1;
    CHECK_EQ_INT(call_once(r, WEFT_CHANNELS - 1, &call).number, 1);
    weft_rank_view view;
    weft_view_take(r, &view);
    CHECK_EQ_INT(view.n_channels, WEFT_CHANNELS);
    CHECK(strlen(view.doing) < sizeof view.doing);
    CHECK_TEXT(view.doing, "after all_reduce 1 over an axis with a name");
}

/* Of a call that goes on beside the rank's work: when the rank began to wait for it, and when all was there. */
static void test_going_on_and_waiting_have_times(void)
{
    weft_recorder *r = weft_recorder_of(25);
    const int channel = weft_recorder_channel(r, 5, 0, 2, "data");
    weft_rank_view view;
    weft_record first, second;
    const weft_call_mark early = weft_recorder_begin(r, channel, &reduce_8);
    const weft_call_mark late = weft_recorder_begin(r, channel, &reduce_8);
    weft_recorder_stamp_arrival(r, &early);
    weft_recorder_stamp_wait(r, &late);
    weft_view_take(r, &view);
    CHECK(view.is_waiting && view.call.sequence == 2);
    weft_recorder_stamp_arrival(r, &late);
    weft_recorder_end(r, &late);
    CHECK(weft_record_read(r, early.number, &first) && weft_record_read(r, late.number, &second));
    CHECK(first.awaited == 0 && first.arrived >= first.begun && first.ended == 0);
    CHECK(second.awaited >= second.begun && second.arrived >= second.awaited);
    CHECK(second.ended >= second.arrived);
    weft_recorder_end(r, &early);
    const weft_call_mark none = {0};
    weft_recorder_stamp_wait(r, &none);
    weft_recorder_stamp_arrival(NULL, &none);
}

/* Several calls under way: the one that is waited in comes first, and the oldest is told too. */
static void test_calls_under_way_are_told(void)
{
    weft_recorder *r = weft_recorder_of(22);
    const int channel = weft_recorder_channel(r, 5, 0, 2, "data");
    weft_call_mark marks[4];
    weft_rank_view view;
    for (int i = 0; i < 4; i++)
        marks[i] = weft_recorder_begin(r, channel, &reduce_8);
    weft_view_take(r, &view);
    CHECK_EQ_INT(view.n_open, 4);
    CHECK_TEXT(view.doing, "after all_reduce 4 over data");
    CHECK_TEXT(view.doing, "; 4 calls under way since all_reduce 1 over data");
    weft_recorder_wait(r, &marks[2]);
    weft_view_take(r, &view);
    CHECK(view.is_waiting && view.call.sequence == 3);
    CHECK_EQ_INT((int64_t)view.call_fingerprint, (int64_t)marks[2].fingerprint);
    CHECK_TEXT(view.doing, "in all_reduce 3 over data of 8 f32, sum; 3 more calls under way since "
                           "all_reduce 1 over data");
    weft_recorder_end(r, &marks[2]);
    weft_recorder_end(r, &marks[0]);
    weft_recorder_wait(r, &marks[1]);
    weft_view_take(r, &view);
    CHECK_EQ_INT(view.n_open, 2);
    CHECK_TEXT(view.doing, "in all_reduce 2 over data of 8 f32, sum; 1 call behind it");
    weft_recorder_end(r, &marks[1]);
    weft_view_take(r, &view);
    CHECK_TEXT(view.doing, "; 1 call under way since all_reduce 4 over data");
    weft_recorder_end(r, &marks[3]);
    weft_view_take(r, &view);
    CHECK_EQ_INT(view.n_open, 0);
    CHECK(strstr(view.doing, "under way") == NULL);
}

/* A wait for the device is no call, and is told for what it is. */
static void test_waits_for_the_device_are_told(void)
{
    weft_recorder *r = weft_recorder_of(23);
    const int channel = weft_recorder_channel(r, 5, 0, 2, "data");
    weft_rank_view view;
    weft_device_wait wait;
    const weft_call_mark mark = weft_recorder_begin(r, channel, &reduce_8);
    CHECK(!weft_device_wait_read(r, &wait));
    weft_recorder_await(r, "a device with a name that is far too long", 3, 17, 12);
    weft_recorder_goes_on(r, 16);
    weft_view_take(r, &view);
    CHECK(view.is_on_device && !view.is_waiting);
    CHECK_EQ_INT((int64_t)view.device_wait, 1);
    CHECK_EQ_INT((int64_t)view.device_done, 16);
    CHECK_TEXT(view.doing, "waiting for event 17 of queue 3 of its device a device with a name th");
    CHECK_TEXT(view.doing, "which has done 16, after all_reduce 1 over data");
    weft_recorder_awaited(r);
    CHECK(weft_device_wait_read(r, &wait) && wait.ended >= wait.begun);
    weft_recorder_wait(r, &mark);
    weft_view_take(r, &view);
    CHECK(!view.is_on_device && view.is_waiting);
    CHECK_EQ_INT((int64_t)view.n_begun, 1);
    weft_recorder_await(NULL, "none", 0, 0, 0); /* nobody records */
    weft_recorder_goes_on(NULL, 1);
    weft_recorder_awaited(NULL);
}

/* What is asked for is found as long as its record is there. */
static void test_calls_of_long_ago_are_recalled(void)
{
    weft_recorder *r = weft_recorder_of(21);
    const int one = weft_recorder_channel(r, 5, 0, 2, "a"),
              two = weft_recorder_channel(r, 6, 0, 2, "b");
    uint64_t made[WEFT_RECORDS] = {0};
    weft_rank_view view;
    for (int i = 1; i <= 100; i++) {
        made[i] = call_once(r, one, &reduce_8).fingerprint;
        call_once(r, two, &reduce_8);
    }
    for (uint64_t i = 1; i <= 101; i++) {
        const weft_recall asked = {.key = 5, .sequence = i};
        weft_view_take(r, &view);
        weft_view_recall(r, &asked, &view);
        CHECK_EQ_INT(view.recalled.sequence, i);
        CHECK(view.recalled.fingerprint == (i <= 100 ? made[i] : 0));
    }
    for (int i = 0; i < WEFT_RECORDS; i++)
        call_once(r, two, &reduce_8);
    weft_view_recall(r, &(weft_recall){.key = 5, .sequence = 7}, &view);
    CHECK(view.recalled.sequence == 7 && view.recalled.fingerprint == 0);
    weft_view_take(r, &view);
    weft_view_recall(r, &(weft_recall){.key = 7, .sequence = 7}, &view); /* no group of its own */
    CHECK_EQ_INT(view.recalled.sequence, 0);
}

static void test_fingerprints_tell_every_fact(void)
{
    weft_recorder *r[2] = {weft_recorder_of(12), weft_recorder_of(13)};
    const int channel = weft_recorder_channel(r[0], 5, 0, 2, "a");
    weft_recorder_channel(r[1], 5, 0, 2, "a");
    weft_call_facts others[7];
    for (int i = 0; i < 7; i++)
        others[i] = reduce_8;
    others[1].kind++, others[2].dtype++, others[3].combine++, others[4].root++, others[5].count++,
        others[6].digest++;
    CHECK(call_once(r[0], channel, &others[0]).fingerprint ==
          call_once(r[1], channel, &others[0]).fingerprint);
    for (int i = 1; i < 7; i++) {
        weft_recorder_settle(r[0], channel);
        weft_recorder_settle(r[1], channel);
        CHECK(call_once(r[0], channel, &others[0]).fingerprint !=
              call_once(r[1], channel, &others[i]).fingerprint);
        CHECK(call_once(r[0], channel, &others[0]).fingerprint !=
              call_once(r[1], channel, &others[0]).fingerprint); /* once apart, they stay so */
    }
}

/* ---- a reader beside a writer ------------------------------------------------------------------
 */

static int updates;
static uint64_t *expected; /* [updates + 1] fingerprint after so many calls */
static weft_recorder *written;
static atomic_bool is_over;
static int64_t n_read, n_torn, n_unread, n_backward;

static void *read_on(void *nothing)
{
    uint64_t last = 0;
    while (!atomic_load(&is_over)) {
        weft_rank_view view;
        weft_view_take(written, &view);
        n_unread += view.n_channels == 0;
        if (view.n_channels == 0) continue;
        const weft_channel_view *c = &view.channels[0];
        for (uint64_t back = 0; back < WEFT_PAST && back < c->sequence; back++)
            n_torn += c->past[(c->sequence - back) % WEFT_PAST] != expected[c->sequence - back];
        if (view.is_waiting) n_torn += view.call.sequence > c->sequence; /* read before it */
        n_backward += c->sequence < last;
        last = c->sequence;
        n_read++;
    }
    return nothing;
}

static void test_readers_never_see_a_torn_channel(void)
{
    pthread_t reader;
    weft_recorder *first = weft_recorder_of(14);
    written = weft_recorder_of(15);
    updates = weft_test_cases(15000000);
    expected = calloc((size_t)updates + 1, sizeof *expected);
    if (!CHECK(expected != NULL)) return;
    weft_recorder_channel(first, 6, 0, 2, "a");
    weft_recorder_channel(written, 6, 0, 2, "a");
    for (int i = 1; i <= updates; i++)
        expected[i] = call_once(first, 0, &reduce_8).fingerprint;
    if (!CHECK(pthread_create(&reader, NULL, read_on, NULL) == 0)) return;
    for (int i = 1; i <= updates; i++)
        call_once(written, 0, &reduce_8);
    atomic_store(&is_over, true);
    pthread_join(reader, NULL);
    CHECK_EQ_INT(n_torn, 0);
    CHECK_EQ_INT(n_backward, 0);
    CHECK(n_read > 100);
    printf("%d updates, %lld views, %lld of them torn, %lld without the channel\n", updates,
           (long long)n_read, (long long)n_torn, (long long)n_unread);
    free(expected);
}

int main(void)
{
    RUN(test_ring_keeps_the_last_calls);
    RUN(test_full_tables_do_no_harm);
    RUN(test_going_on_and_waiting_have_times);
    RUN(test_calls_under_way_are_told);
    RUN(test_waits_for_the_device_are_told);
    RUN(test_calls_of_long_ago_are_recalled);
    RUN(test_fingerprints_tell_every_fact);
    RUN(test_readers_never_see_a_torn_channel);
    return weft_test_report();
}
