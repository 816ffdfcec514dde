/* top: `weft top RUN`: a job that runs, four times a second, in a terminal; or one frame, as text or as data.
 *
 * The terminal's other screen is used, and only what every terminal of ANSI has. The program puts it back, also when a signal ends it.
 */
#include "top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

static const option options[] = {
    {"once", OPTION_FLAG, "no", "", "Options", "print one frame as text, of half a second"},
    {"json", OPTION_FLAG, "no", "", "Options", "print one frame as data"},
};
const option_table top_table = {
    .program = "weft top",
    .usage = "weft top RUN [options]   what each rank of the job in run directory RUN does, as\n"
             "                         it does it; q ends it. exposed: the part of the time\n"
             "                         that a rank stands still for others; input: that it\n"
             "                         waits for its next batch\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "what each rank of a running job does, as it does it",
};

enum {
    FRAME_MS = 250,
    USUAL_COLUMNS = 80,
    USUAL_LINES = 24,
    MANY_LINES = 1000,
    MANY_COLUMNS = 200
};
#define OTHER_SCREEN "\033[?1049h\033[?25l"
#define FIRST_SCREEN "\033[?25h\033[?1049l"

/* ---- the terminal ----------------------------------------------------------------------------- */

static struct termios before;
static volatile sig_atomic_t is_ended;

static void note_end(int number)
{
    (void)number;
    is_ended = 1;
}

/* All of a text: a terminal may take less at a time. */
static bool put_all(const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = write(STDOUT_FILENO, text + at, bytes - at);
        if (n < 0 && errno == EINTR && !is_ended) continue;
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

static void open_terminal(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction action = {.sa_handler = note_end};
    struct termios raw = before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &action, NULL);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* stopped, it would leave the terminal so */
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put_all(OTHER_SCREEN, sizeof OTHER_SCREEN - 1);
}

static void close_terminal(void)
{
    put_all(FIRST_SCREEN, sizeof FIRST_SCREEN - 1);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static frame_size size_of_terminal(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return (frame_size){USUAL_COLUMNS, USUAL_LINES};
    return (frame_size){size.ws_col, size.ws_row - 1}; /* the last line would scroll */
}

/* A frame in the place of the one before: each line to its end, then what is below. */
static bool draw(frame *f)
{
    char *text = NULL, *whole = NULL;
    size_t bytes = 0, whole_bytes = 0;
    const frame_size size = size_of_terminal();
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return false;
    frame_print(f, &size, out);
    fclose(out);
    out = open_memstream(&whole, &whole_bytes);
    if (out) fputs("\033[H", out);
    for (size_t i = 0; out && i < bytes; i++)
        if (text[i] == '\n')
            fputs("\033[K\r\n", out);
        else
            fputc(text[i], out);
    if (out) fputs("\033[J", out);
    if (out) fclose(out);
    const bool is_drawn = out && put_all(whole, whole_bytes);
    free(text);
    free(whole);
    return is_drawn;
}

/* Until the next frame; false: q, or the end of what is typed. */
static bool await_key(void)
{
    struct pollfd keys = {STDIN_FILENO, POLLIN, 0};
    if (poll(&keys, 1, FRAME_MS) <= 0) return true;
    char typed[64];
    const ssize_t n = read(STDIN_FILENO, typed, sizeof typed);
    if (n <= 0) return n < 0 && errno == EINTR;
    return memchr(typed, 'q', (size_t)n) == NULL && memchr(typed, 'Q', (size_t)n) == NULL;
}

/* ---- what ends it ----------------------------------------------------------------------------- */

static void time_text(double when, char *text, size_t bytes)
{
    const time_t seconds = (time_t)when;
    struct tm parts;
    *text = '\0';
    if (localtime_r(&seconds, &parts)) strftime(text, bytes, "%Y-%m-%d %H:%M:%S", &parts);
}

static weft_status say_over(const weft_live *live, const char *run, weft_error *error)
{
    char when[32];
    const weft_live_rank *last = weft_live_rank_at(live, 0);
    for (int i = 1; i < weft_live_n_ranks(live); i++)
        if (weft_live_rank_at(live, i)->alive > last->alive) last = weft_live_rank_at(live, i);
    time_text(last->alive, when, sizeof when);
    return weft_fail(
        error, WEFT_USAGE,
        "the run in %.200s is over: last seen %s, in step %lld; weft postmortem %.200s "
        "tells how it ended",
        run, when, (long long)last->run, run);
}

/* Records on another host's disk, or memory, are seen here late or not at all. */
static weft_status check_here(const weft_live *live, const char *run, weft_error *error)
{
    for (int i = 0; i < weft_live_n_ranks(live); i++)
        if (weft_live_rank_at(live, i)->is_here) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "the ranks of the run in %.200s are on host %.60s, and this is another; run weft "
        "top there",
        run, weft_live_rank_at(live, 0)->host);
}

static weft_status check(frame *f, const weft_live *live, const char *run, weft_error *error)
{
    frame_look(f);
    if (frame_is_over(f)) return say_over(live, run, error);
    return check_here(live, run, error);
}

/* ---- the command line ------------------------------------------------------------------------- */

static weft_status watch(frame *f, const weft_live *live, const char *run, weft_error *error)
{
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
        return weft_fail(error, WEFT_USAGE,
                         "weft top draws in a terminal, and this is none; weft top %.200s --once "
                         "prints one frame",
                         run);
    open_terminal();
    bool is_over = false;
    while (!is_ended && draw(f) && await_key()) {
        frame_look(f);
        is_over = frame_is_over(f);
        if (is_over) break;
    }
    close_terminal();
    return is_over ? say_over(live, run, error) : WEFT_OK;
}

static weft_status print_once(frame *f, bool is_json, weft_error *error)
{
    const struct timespec half = {0, 500000000};
    nanosleep(&half, NULL);
    frame_look(f);
    if (is_json) {
        json_t *all = frame_json(f);
        if (!all) return weft_fail_memory(error, 0);
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(all);
    } else {
        frame_print(f, &(frame_size){MANY_COLUMNS, MANY_LINES}, stdout);
    }
    return fflush(stdout) == 0 ? WEFT_OK : weft_fail(error, WEFT_IO, "cannot write to stdout");
}

static weft_status show(const char *run, const settings *s, weft_error *error)
{
    weft_live *live = NULL;
    const bool is_json = settings_flag(s, "json");
    WEFT_TRY(weft_live_open(run, &live, error));
    frame *f = frame_create(live, run);
    weft_status status = f ? check(f, live, run, error) : weft_fail_memory(error, 0);
    if (status == WEFT_OK)
        status = is_json || settings_flag(s, "once") ? print_once(f, is_json, error)
                                                     : watch(f, live, run, error);
    frame_destroy(&f);
    weft_live_close(&live);
    return status;
}

int top_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const int n_paths = options_operands(&top_table, n, arguments, &error);
    settings *s = error.status == WEFT_OK
                      ? settings_read(&top_table, n - n_paths, arguments + n_paths, &error)
                      : NULL;
    if (s && n_paths == 1)
        (void)!show(arguments[0], s, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE, "which job? weft top DIR, as given with --run");
    settings_destroy(&s);
    return app_leave(top_table.program, APP_STARTING, &error);
}
