/* live_test: what ranks write of their waits and their work, seen from beside: waits add up to what their records say, those under way count
 * at once, and who waits for whom is told.
 */
#include "watch/recorder.h"

#include <stdlib.h>
#include <unistd.h>

#include "collectives/recorded.h"
#include "test.h"
#include "watch/view.h"
#include "weft/watch.h"

static char folder[] = "/tmp/weft-live-XXXXXX";

static weft_live *look(void)
{
    weft_error error = {.rank = -1};
    weft_live *live = NULL;
    CHECK_OK(weft_live_open(folder, &live, &error), error);
    (void)weft_live_look(live);
    return live;
}

static int64_t took(const weft_recorder *r, const weft_call_mark *mark)
{
    weft_record record;
    if (!CHECK(weft_record_read(r, mark->number, &record))) return 0;
    return record.ended - (record.awaited ? record.awaited : record.begun);
}

/* Calls that were waited for, from when they were; a call that nobody waited for adds nothing. */
static void test_waits_add_up(void)
{
    weft_recorder *r = weft_recorder_of(0);
    const int channel = weft_recorder_channel(r, 1, 0, 2, "data");
    int64_t sum = 0;
    for (int i = 0; i < 20; i++) {
        const weft_call_mark mark = weft_recorder_begin(r, channel, &reduce_8);
        if (i % 3 == 0) weft_recorder_wait(r, &mark);
        if (i % 3 == 1) weft_recorder_stamp_wait(r, &mark);
        weft_recorder_end(r, &mark);
        sum += i % 3 < 2 ? took(r, &mark) : 0;
    }
    weft_live *live = look();
    CHECK(sum > 0 && fabs(weft_live_rank_at(live, 0)->waited - 1e-9 * (double)sum) < 1e-12);
    weft_live_close(&live);
}

/* Rank 1 waits in the next call, to which rank 0 has not come. */
static void test_a_wait_under_way_counts_at_once(void)
{
    weft_recorder *r = weft_recorder_of(1), *other = weft_recorder_of(0);
    const int channel = weft_recorder_channel(r, 1, 0, 2, "data");
    for (int i = 0; i < 21; i++) {
        const weft_call_mark mark = weft_recorder_begin(r, channel, &reduce_8);
        if (i < 20) weft_recorder_end(r, &mark);
        if (i == 20) weft_recorder_wait(r, &mark);
    }
    weft_live *live = look();
    const weft_live_rank *waiter = weft_live_rank_at(live, 1), *late = weft_live_rank_at(live, 0);
    const double before = waiter->waited;
    CHECK(before > 0 && waiter->awaits == 0 && waiter->n_waiters == 0);
    CHECK(late->awaits == -1 && late->n_waiters == 1);
    CHECK_TEXT(waiter->doing, "in all_reduce 21 over data");
    (void)weft_live_look(live);
    CHECK(weft_live_rank_at(live, 1)->waited > before);
    const weft_call_mark comes = weft_recorder_begin(other, 0, &reduce_8);
    weft_recorder_end(other, &comes);
    (void)weft_live_look(live);
    CHECK(weft_live_rank_at(live, 1)->awaits == -1 && weft_live_rank_at(live, 0)->n_waiters == 0);
    weft_live_close(&live);
}

static void test_work_and_input_are_seen(void)
{
    weft_watch_work(800, 4096, "tokens");
    weft_recorders_input(250000000);
    weft_recorders_input(500000000);
    weft_recorder_run(weft_recorder_of(0), 41);
    weft_live *live = look();
    const weft_live_rank *r = weft_live_rank_at(live, 0);
    CHECK(r->last == 800 && r->items == 4096 && strcmp(r->unit, "tokens") == 0 && r->run == 41);
    CHECK(r->input == 0.75 && r->begun >= r->opened && r->pid == getpid());
    CHECK(r->is_here && r->is_running && !r->has_left && r->memory > 100000);
    weft_watch_work(0, -5, NULL);
    (void)weft_live_look(live);
    r = weft_live_rank_at(live, 1);
    CHECK(r->last == 0 && r->items == 0 && *r->unit == '\0' && r->input == 0.75);
    weft_live_close(&live);
    CHECK(live == NULL);
}

static void test_nothing_is_refused(void)
{
    weft_error error = {.rank = -1};
    weft_live *live = NULL;
    CHECK(weft_live_look(NULL) > 1e9);
    CHECK_EQ_INT(weft_live_n_ranks(NULL), 0);
    CHECK(weft_live_rank_at(NULL, 0) == NULL);
    CHECK_EQ_INT(weft_live_open("/proc", &live, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "has no records of a job");
}

int main(void)
{
    char line[64];
    weft_error error = {.rank = -1};
    if (mkdtemp(folder) == NULL) return 1;
    CHECK(weft_recorder_of(0) != NULL && weft_recorder_of(1) != NULL);
    CHECK_OK(weft_recorders_keep(folder, &error), error);
    RUN(test_waits_add_up);
    RUN(test_a_wait_under_way_counts_at_once);
    RUN(test_work_and_input_are_seen);
    RUN(test_nothing_is_refused);
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(system(line), 0);
    return weft_test_report();
}
