/* top_test: weft top beside a job on threads, and one of processes: its frames, in a terminal of its own too, which it leaves as it was; and one
 * sentence where there is no job to look at. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <utmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <termios.h>
#include <stddef.h>
#include <unistd.h>

#include "recorder.h"
#include "test.h"
#include "text_folder.h"

static const command_result *top(const char *arguments)
{
    static command_result r;
    char line[1024];
    snprintf(line, sizeof line, "cd %s && " WEFT_TEST_BIN "/weft top %s 2>&1", folder, arguments);
    r = command_run_all(line);
    return &r;
}

/* A training without end, in a group of its own, on one core. */
static pid_t start_job(const char *launcher, const char *run)
{
    char line[1024], path[256];
    snprintf(
        line, sizeof line,
        "cd %s && exec taskset -c %d %s " WEFT_TEST_BIN
        "/gpt train --data text.txt --layers 1 --width 16 --heads 2 --seq 16 --batch 8 --quiet "
        "--layout batch:data --steps 1000000 --run %s %s >said.txt 2>&1",
        folder, command_first_core(), launcher, run, *launcher ? "" : "--mesh data:2");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    struct stat facts;
    for (int i = 0; i < 3000 && (stat(path, &facts) != 0 || facts.st_size < 2000); i++)
        usleep(20000);
    return child;
}

static void end_job(pid_t job)
{
    int status;
    kill(-job, SIGKILL);
    waitpid(job, &status, 0);
}

static void check_frame(const char *run)
{
    char line[256];
    snprintf(line, sizeof line, "%s --once", run);
    const command_result *r = top(line);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_TEXT(r->text, "of 1000000, 2 ranks");
    CHECK_TEXT(r->text, "tokens/s, memory ");
    CHECK_TEXT(r->text, "loss ");
    CHECK_TEXT(r->text, "exposed");
    CHECK(command_lines(r->text, "      0 ") == 1 && command_lines(r->text, "      1 ") == 1);
}

static double number_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) : NAN;
}

/* Shares are parts, the step goes on, and a frame's steps and time make its rate. */
static void check_data(const char *run)
{
    char line[256];
    snprintf(line, sizeof line, "%s --json", run);
    const command_result *r = top(line);
    if (!CHECK_EQ_INT(r->status, 0)) return;
    const double step = number_of(r->text, "\"step\": "),
                 rate = number_of(r->text, "\"items_per_s\": ");
    const double seconds = number_of(r->text, "\"step_seconds\": ");
    const char *ranks = strstr(r->text, "\"ranks\"");
    CHECK(step >= 1 && fabs(rate * seconds - 8 * 16) < 1e-6 * 8 * 16);
    for (int i = 0; i < 2 && CHECK(ranks != NULL); i++) {
        const double exposed = number_of(ranks, "\"exposed\": "),
                     input = number_of(ranks, "\"input\": ");
        CHECK(exposed >= 0 && exposed <= 1 && input >= 0 && input <= 1);
        CHECK(number_of(ranks, "\"memory_bytes\": ") > 1e6);
        ranks = strstr(ranks + 1, "\"rank\"");
    }
    CHECK(number_of(top(line)->text, "\"step\": ") > step);
}

/* ---- a terminal --------------------------------------------------------------------------------- */

typedef struct terminal {
    int master;
    pid_t child;
    struct termios before;
    char said[1 << 16];
    size_t n;
} terminal;

static void open_terminal(terminal *t, const char *run, int lines, int columns)
{
    const struct winsize size = {.ws_row = (unsigned short)lines,
                                 .ws_col = (unsigned short)columns};
    char path[256];
    int slave;
    *t = (terminal){.master = -1};
    if (!CHECK(openpty(&t->master, &slave, NULL, NULL, &size) == 0)) exit(1);
    tcgetattr(slave, &t->before);
    snprintf(path, sizeof path, "%s/%s", folder, run);
    fflush(NULL);
    t->child = fork();
    if (t->child == 0) {
        login_tty(slave);
        execl(WEFT_TEST_BIN "/weft", "weft", "top", path, (char *)NULL);
        _exit(127);
    }
    close(slave);
}

/* Until it has said so, or a while has passed. */
static bool await(terminal *t, const char *what)
{
    for (int i = 0; i < 2000 && t->n + 1 < sizeof t->said; i++) {
        fcntl(t->master, F_SETFL, O_NONBLOCK);
        const ssize_t got = read(t->master, t->said + t->n, sizeof t->said - 1 - t->n);
        if (got > 0) t->n += (size_t)got;
        t->said[t->n] = '\0';
        if (strstr(t->said, what)) return true;
        if (got < 0 && errno == EIO) return false;
        usleep(10000);
    }
    return false;
}

static int close_terminal(terminal *t)
{
    int status = -1;
    (void)await(t, "\033[?1049l");
    if (waitpid(t->child, &status, 0) != t->child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

static void check_left_as_it_was(terminal *t)
{
    struct termios after;
    CHECK(strstr(t->said, "\033[?1049h") && strstr(t->said, "\033[?25l"));
    const char *end = strstr(t->said, "\033[?25h\033[?1049l");
    CHECK(end != NULL);
    if (tcgetattr(t->master, &after) == 0)
        CHECK(after.c_lflag == t->before.c_lflag && after.c_iflag == t->before.c_iflag);
}

/* No line is longer than the terminal, and no frame has more lines. */
static void check_fits(const terminal *t, int lines, int columns)
{
    int line = 0, column = 0;
    for (const char *at = t->said; *at; at++) {
        if (strncmp(at, "\033[H", 3) == 0) line = column = 0;
        if (*at == '\n') line++, column = 0;
        if (*at == '\033') {
            at += strcspn(at, "HhlKJ");
            if (!*at) break;
            continue;
        }
        column += (unsigned char)*at >= ' ' && ((unsigned char)*at & 0xc0) != 0x80;
        CHECK(column <= columns && line < lines);
    }
}

static void check_terminal(const char *run, int lines, int columns, int ends_by)
{
    static terminal t;
    open_terminal(&t, run, lines, columns);
    CHECK(await(&t, lines > 5 ? "ranks" : "step"));
    usleep(300000); /* one more frame */
    if (ends_by == 0)
        CHECK(write(t.master, "q", 1) == 1);
    else if (ends_by == SIGINT)
        CHECK(write(t.master, "\003", 1) == 1);
    else
        kill(t.child, ends_by);
    CHECK_EQ_INT(close_terminal(&t), 0);
    check_left_as_it_was(&t);
    check_fits(&t, lines, columns);
}

/* ---- tests -------------------------------------------------------------------------------------- */

/* Records that say another host: of a job that is heard, but not seen from here. */
static void check_elsewhere(const char *run)
{
    char line[1024];
    snprintf(line, sizeof line,
             "cd %s && mkdir other && cp -r %s/recorder other && for file in other/recorder/*; do "
             "printf 'elsewhere\\0' | dd of=$file bs=1 seek=%zu conv=notrunc 2>/dev/null; done",
             folder, run, offsetof(weft_recorder, head.host));
    CHECK_EQ_INT(command_run_all(line).status, 0);
    const command_result *r = top("other --once");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "the ranks of the run in other are on host elsewhere, and this is another");
    CHECK_EQ_INT(command_lines(r->text, ""), 1);
}

static void test_a_job_on_threads(void)
{
    const pid_t job = start_job("", "threads");
    check_elsewhere("threads");
    check_frame("threads");
    check_data("threads");
    check_terminal("threads", 24, 80, 0);
    check_terminal("threads", 24, 80, SIGINT);
    check_terminal("threads", 5, 30, SIGTERM);
    const command_result *r = top("threads");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "draws in a terminal, and this is none; weft top threads --once");
    end_job(job);
}

static void test_a_job_of_processes(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    const pid_t job = start_job(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "processes");
    check_frame("processes");
    check_data("processes");
    end_job(job);
}

/* In its terminal too it ends with the sentence. */
static void test_a_job_that_ends(void)
{
    static terminal t;
    const pid_t job = start_job("", "ended");
    open_terminal(&t, "ended", 24, 80);
    CHECK(await(&t, "ranks"));
    end_job(job);
    CHECK_EQ_INT(close_terminal(&t), 2);
    check_left_as_it_was(&t);
    const command_result *r = top("ended --once");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "the run in ended is over: last seen 2");
    CHECK_TEXT(r->text, "weft postmortem ended tells how it ended");
    CHECK_EQ_INT(command_lines(r->text, ""), 1);
}

static void test_no_job_is_told(void)
{
    char line[512];
    CHECK_TEXT(top("nowhere --once")->text, "nowhere has no records of a job");
    CHECK_TEXT(top("")->text, "which job? weft top DIR");
    CHECK_TEXT(top("ended --onc")->text, "did you mean --once?");
    snprintf(line, sizeof line, "cd %s && truncate -s 1000 ended/recorder/rank_00001.rec", folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    CHECK_TEXT(top("ended --once")->text, "is not a record of this version of Weft");
}

int main(void)
{
    if (!text_folder_open("/tmp", "top")) return 1;
    RUN(test_a_job_on_threads);
    RUN(test_a_job_of_processes);
    RUN(test_a_job_that_ends);
    RUN(test_no_job_is_told);
    text_folder_close();
    return weft_test_report();
}
