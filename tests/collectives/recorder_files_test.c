/* recorder_files_test: records outlive the process that writes them; files that are damaged are refused or read, and never
 * trusted.
 */
#include "watch/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/recorded.h"
#include "test.h"
#include "watch/view.h"
#include "weft/watch.h"

static char folder[] = "/tmp/weft-recorder-XXXXXX";
static char file_0[64];

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
    weft_error other = {.rank = -1};
    weft_live *live = NULL;
    CHECK(weft_live_open(folder, &live, &other) != WEFT_OK && live == NULL);
    CHECK(other.message[0] != '\0' && strchr(other.message, '\n') == NULL);
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

/* As a job that runs would be looked at. */
static void look_at_everything(void)
{
    weft_live *live = NULL;
    size_t length = 0;
    if (weft_live_open(folder, &live, NULL) != WEFT_OK) return;
    CHECK(weft_live_rank_at(live, 0) == NULL); /* before the first look */
    CHECK(weft_live_look(live) > 1e9);
    for (int i = 0; i < weft_live_n_ranks(live); i++) {
        const weft_live_rank *rank = weft_live_rank_at(live, i);
        length += strlen(rank->host) + strlen(rank->doing) + strlen(rank->unit);
        for (const char *c = rank->doing; *c; c++)
            if ((unsigned char)*c < 0x20) CHECK(false);
    }
    CHECK(length > 0);
    CHECK(weft_live_rank_at(live, weft_live_n_ranks(live)) == NULL);
    weft_live_close(&live);
}

static void read_everything(void)
{
    static int n;
    if (n++ % 8 == 0) look_at_everything(); /* slower: the system maps and unmaps */
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
    remove_records();
    rmdir(folder);
    return weft_test_report();
}
