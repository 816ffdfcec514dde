/* recorder_test: what a rank does is written down whole, whoever reads it meanwhile, and outlives
 * the process; files that are damaged are refused or read, and never trusted.
 */
#include "watch/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "watch/view.h"
#include "weft/watch.h"

static char folder[] = "/tmp/weft-recorder-XXXXXX";
static char file_0[64];

static const weft_call_facts reduce_8 = {.kind = WEFT_CALL_ALL_REDUCE,
                                         .dtype = 0 /* f32 */,
                                         .combine = 1 /* sum */,
                                         .root = -1,
                                         .count = 8};

static weft_call_mark call_once(weft_recorder *r, int channel, const weft_call_facts *call)
{
    const weft_call_mark mark = weft_recorder_begin(r, channel, call);
    weft_recorder_wait(r, &mark);
    weft_recorder_end(r, &mark);
    return mark;
}

static void remove_records(void)
{
    DIR *all = opendir(folder);
    char path[512];
    for (struct dirent *entry; all && (entry = readdir(all));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (all) closedir(all);
}

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

/* ---- files ----------------------------------------------------------------------------------- */

/* A process that keeps its records in `folder`, and makes calls until it is killed. */
static pid_t start_rank(int rank, int calls)
{
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0) return -1;
    const pid_t child = fork();
    if (child > 0) {
        close(ready[1]);
        const bool is_ready = read(ready[0], &byte, 1) == 1;
        close(ready[0]);
        return is_ready ? child : -1;
    }
    weft_recorder *r = weft_recorder_of(rank);
    const int channel = weft_recorder_channel(r, 1, 0, 2, "data");
    weft_call_facts call = reduce_8;
    call.spot = weft_recorder_spot(r, 77, "of w.grad [hidden:64] f32, called at model.c:88");
    for (int i = 0; i < 3; i++) /* before there is a file */
        call_once(r, channel, &call);
    if (weft_recorders_keep(folder, NULL) != WEFT_OK) _exit(1);
    weft_recorder_run(r, 41);
    const weft_call_mark flight = weft_recorder_begin(r, channel, &call);
    weft_recorder_stamp_wait(r, &flight);
    weft_recorder_stamp_arrival(r, &flight);
    weft_recorder_end(r, &flight);
    for (int i = calls < 0 ? 0 : 1; calls < 0 || i < calls; i++) {
        call_once(r, channel, &call);
        if (i == 0 && write(ready[1], "", 1) != 1) _exit(1);
    }
    const weft_call_mark mark = weft_recorder_begin(r, channel, &call);
    weft_recorder_wait(r, &mark);
    (void)!write(ready[1], "", 1);
    for (;;)
        pause();
}

static void end_rank(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_records_outlive_a_kill(void)
{
    weft_error error = {.rank = -1};
    weft_postmortem *p = NULL;
    for (int trial = 0; trial < 30; trial++) {
        remove_records();
        const pid_t child = start_rank(0, -1);
        if (!CHECK(child > 0)) return;
        usleep((useconds_t)(100 * trial));
        end_rank(child);
        if (!CHECK_OK(weft_postmortem_open(folder, &p, &error), error)) return;
        const weft_rank_report *report = weft_postmortem_rank_at(p, 0);
        CHECK_EQ_INT(weft_postmortem_n_ranks(p), 1);
        CHECK_EQ_INT(report->pid, child);
        CHECK_EQ_INT(report->run, 41);
        CHECK(report->n_calls >= 4);
        CHECK_TEXT(report->ended, "ended without a word");
        CHECK_TEXT(report->doing, "all_reduce ");
        CHECK_TEXT(report->doing, "of w.grad [hidden:64] f32, called at model.c:88");
        weft_postmortem_close(&p);
    }
}

/* Process 1 is asked about while it waits in call 14; 10 of its 13 calls before that were made
 * after the file was. */
static void test_post_mortem_says_what_a_rank_was_doing(void)
{
    weft_error error = {.rank = -1};
    weft_postmortem *p = NULL;
    remove_records();
    const pid_t child = start_rank(0, 10), other = start_rank(1, 3);
    if (!CHECK(child > 0 && other > 0)) return;
    usleep(100000);
    end_rank(child);
    end_rank(other);
    if (!CHECK_OK(weft_postmortem_open(folder, &p, &error), error)) return;
    CHECK_EQ_INT(weft_postmortem_n_ranks(p), 2);
    CHECK_TEXT(weft_postmortem_rank_at(p, 0)->doing,
               "in all_reduce 14 over data of w.grad [hidden:64] f32, called at model.c:88");
    CHECK_TEXT(weft_postmortem_text(p), "rank 1 ");
    CHECK_EQ_INT(weft_postmortem_status(p), 71);
    char *calls = weft_postmortem_calls(p, 0, 100);
    CHECK_TEXT(calls, "all_reduce 1 over data"); /* from before the file */
    CHECK_TEXT(calls, "not ended  all_reduce 14 over data");
    CHECK_TEXT(calls, "called at model.c:88; there after ");
    free(calls);
    calls = weft_postmortem_calls(p, 0, 2);
    CHECK(calls && strstr(calls, "all_reduce 12 ") == NULL);
    CHECK_TEXT(calls, "all_reduce 13 ");
    free(calls);
    weft_postmortem_close(&p);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static char *image; /* of a good file */

static bool make_image(void)
{
    remove_records();
    const pid_t child = start_rank(0, 5000);
    if (!CHECK(child > 0)) return false;
    usleep(50000);
    end_rank(child);
    image = malloc(sizeof(weft_recorder));
    FILE *file = fopen(file_0, "rb");
    const bool is_read =
        image && file && fread(image, sizeof(weft_recorder), 1, file) == 1 && fgetc(file) == EOF;
    if (file) fclose(file);
    return CHECK(is_read);
}

static void write_image(const char *bytes, size_t n)
{
    FILE *file = fopen(file_0, "wb");
    if (!CHECK(file != NULL)) return;
    CHECK(fwrite(bytes, 1, n, file) == n);
    fclose(file);
}

static void check_refused(weft_status status, const char *part)
{
    weft_error error = {.rank = -1};
    weft_postmortem *p = NULL;
    CHECK_EQ_INT(weft_postmortem_open(folder, &p, &error), status);
    CHECK(p == NULL);
    CHECK_TEXT(error.message, part);
    CHECK(strchr(error.message, '\n') == NULL);
}

static void test_other_files_are_refused_in_a_sentence(void)
{
    static const char part[] = "rank_00000.rec is not a record of this version of Weft";
    if (!make_image()) return;
    weft_recorder *r = (weft_recorder *)(void *)image;
    write_image(image, 0);
    check_refused(WEFT_CORRUPT, part);
    write_image(image, 100);
    check_refused(WEFT_CORRUPT, part);
    write_image(image, sizeof *r - 1);
    check_refused(WEFT_CORRUPT, part);
    r->head.format++;
    write_image(image, sizeof *r);
    check_refused(WEFT_CORRUPT, part);
    r->head.format--;
    r->head.magic[0] = 'W';
    write_image(image, sizeof *r);
    check_refused(WEFT_CORRUPT, part);
    unlink(file_0);
    CHECK_EQ_INT(mkfifo(file_0, 0600), 0); /* would be waited for, for ever */
    check_refused(WEFT_CORRUPT, part);
    unlink(file_0);
    CHECK_EQ_INT(mkdir(file_0, 0700), 0);
    check_refused(WEFT_IO, "cannot read");
    rmdir(file_0);
    check_refused(WEFT_USAGE, "has no records of a job");
    free(image);
}

static void read_everything(void)
{
    weft_error error = {.rank = -1};
    weft_postmortem *p = NULL;
    if (weft_postmortem_open(folder, &p, &error) != WEFT_OK) return;
    size_t length = strlen(weft_postmortem_text(p));
    for (int i = 0; i < weft_postmortem_n_ranks(p); i++) {
        const weft_rank_report *report = weft_postmortem_rank_at(p, i);
        char *calls = weft_postmortem_calls(p, i, 1 << 30);
        length += strlen(report->host) + strlen(report->doing) + strlen(report->ended) +
                  (calls ? strlen(calls) : 0);
        for (const char *c = report->doing; *c; c++)
            if ((unsigned char)*c < 0x20) CHECK(false);
        free(calls);
    }
    CHECK(length > 0);
    weft_postmortem_close(&p);
}

static void test_flipped_bytes_never_crash(void)
{
    const int flips = weft_test_cases(5000);
    uint64_t random = 88172645463325252u;
    if (!make_image()) return;
    char *copy = malloc(sizeof(weft_recorder));
    if (!CHECK(copy != NULL)) return;
    const int file = open(file_0, O_WRONLY);
    for (int i = 0; i < flips; i++) {
        memcpy(copy, image, sizeof(weft_recorder));
        for (int k = 0; k < 1 + i % 40; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            /* Mostly where it hurts: the head, and the records of the last calls. */
            const size_t room = i % 2 ? sizeof(weft_recorder_head) : sizeof(weft_recorder);
            copy[32 + (random >> 20) % (room - 32)] = (char)(random >> 56);
        }
        if (i % 16 == 0) memset(copy + offsetof(weft_recorder_head, n_begun), 0xff, 16);
        CHECK(pwrite(file, copy, sizeof(weft_recorder), 0) == (ssize_t)sizeof(weft_recorder));
        read_everything();
    }
    close(file);
    free(copy);
    free(image);
}

/* ---- where there is no room --------------------------------------------------------------------
 */

static int try_without_room(void)
{
    weft_error error = {.rank = -1};
    const struct rlimit limit = {100000, 100000};
    weft_recorder *r = weft_recorder_of(0);
    const int channel = weft_recorder_channel(r, 1, 0, 2, "data");
    signal(SIGXFSZ, SIG_IGN);
    call_once(r, channel, &reduce_8);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (weft_watch_record(folder, &error) != WEFT_IO) return 2;
    if (strstr(error.message, "they stay in memory") == NULL) return 3;
    if (access(file_0, F_OK) == 0) return 4; /* nothing half-made */
    if (call_once(r, channel, &reduce_8).number != 2) return 5;
    return weft_watch_record("/nowhere/recorder", &error) == WEFT_IO ? 0 : 6;
}

static void test_full_disk_leaves_records_in_memory(void)
{
    int status = 0;
    remove_records();
    const pid_t child = fork();
    if (child == 0) _exit(try_without_room());
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ_INT(WEXITSTATUS(status), 0);
}

int main(void)
{
    if (!CHECK(mkdtemp(folder) != NULL)) return weft_test_report();
    weft_recorder_path(folder, 0, file_0, sizeof file_0);
    RUN(test_records_outlive_a_kill); /* those that fork first: no threads yet, and no recorders */
    RUN(test_post_mortem_says_what_a_rank_was_doing);
    RUN(test_other_files_are_refused_in_a_sentence);
    RUN(test_flipped_bytes_never_crash);
    RUN(test_full_disk_leaves_records_in_memory);
    RUN(test_ring_keeps_the_last_calls);
    RUN(test_full_tables_do_no_harm);
    RUN(test_going_on_and_waiting_have_times);
    RUN(test_calls_under_way_are_told);
    RUN(test_waits_for_the_device_are_told);
    RUN(test_calls_of_long_ago_are_recalled);
    RUN(test_fingerprints_tell_every_fact);
    RUN(test_readers_never_see_a_torn_channel);
    remove_records();
    rmdir(folder);
    return weft_test_report();
}
