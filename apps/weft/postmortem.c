/* postmortem: `weft postmortem DIR`: what ended a job, and what every rank was doing, from the records that it left. */
#include "postmortem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft/watch.h"

static const option options[] = {
    {"calls", OPTION_COUNT, "0", "N", "Options", "the last N calls of every rank too"},
    {"json", OPTION_FLAG, "no", "", "Options", "the same as data"},
};
const option_table postmortem_table = {
    .program = "weft postmortem",
    .usage = "weft postmortem DIR [options]   what ended the job in run directory DIR, and\n"
             "                                where its ranks were (DIR/recorder.last: the job\n"
             "                                before it)\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "what ended a job, and where its ranks were",
};

/* ---- for a person ---------------------------------------------------------------------------- */

static void print_time(double when, char *text, size_t bytes)
{
    const time_t seconds = (time_t)when;
    struct tm parts;
    localtime_r(&seconds, &parts);
    strftime(text, bytes, "%Y-%m-%d %H:%M:%S", &parts);
}

static void print_rank(const weft_rank_report *r)
{
    char alive[32];
    print_time(r->alive, alive, sizeof alive);
    printf("rank %-4d host %s, process %d: %s; last seen %s\n", r->rank, r->host, r->pid, r->ended,
           alive);
    printf("          step %lld, %llu calls, %s\n", (long long)r->run,
           (unsigned long long)r->n_calls, r->doing);
}

static void print_all(const weft_postmortem *p, int n_calls)
{
    printf("%s\n\n", weft_postmortem_text(p));
    for (int i = 0; i < weft_postmortem_n_ranks(p); i++) {
        print_rank(weft_postmortem_rank_at(p, i));
        if (n_calls == 0) continue;
        char *calls = weft_postmortem_calls(p, i, n_calls);
        printf("%s\n", calls ? calls : "");
        free(calls);
    }
}

/* ---- as data --------------------------------------------------------------------------------- */

/* Lines as an array of texts. */
static json_t *lines_json(char *text)
{
    json_t *lines = json_array();
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        json_array_append_new(lines, json_string(line));
    return lines;
}

static json_t *rank_json(const weft_postmortem *p, int index, int n_calls)
{
    const weft_rank_report *r = weft_postmortem_rank_at(p, index);
    json_t *rank =
        json_pack("{s:i, s:s, s:i, s:I, s:I, s:I, s:s, s:s, s:f, s:f}", "rank", r->rank, "host",
                  r->host, "process", r->pid, "step", (json_int_t)r->run, "saved",
                  (json_int_t)r->saved, "calls", (json_int_t)r->n_calls, "doing", r->doing, "ended",
                  r->ended, "alive", r->alive, "last_call", r->call);
    char *calls = n_calls > 0 ? weft_postmortem_calls(p, index, n_calls) : NULL;
    if (calls) json_object_set_new(rank, "last_calls", lines_json(calls));
    free(calls);
    return rank;
}

static void dump_all(const weft_postmortem *p, int n_calls)
{
    json_t *ranks = json_array();
    for (int i = 0; i < weft_postmortem_n_ranks(p); i++)
        json_array_append_new(ranks, rank_json(p, i, n_calls));
    json_t *all = json_pack("{s:s, s:i, s:o}", "verdict", weft_postmortem_text(p), "status",
                            weft_postmortem_status(p), "ranks", ranks);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

/* ---- the command line ------------------------------------------------------------------------ */

static weft_status show(const char *path, const settings *s, weft_error *error)
{
    weft_postmortem *p = NULL;
    const int n_calls = (int)settings_count(s, "calls");
    WEFT_TRY(weft_postmortem_open(path, &p, error));
    if (settings_flag(s, "json"))
        dump_all(p, n_calls);
    else
        print_all(p, n_calls);
    weft_postmortem_close(&p);
    return fflush(stdout) == 0 ? WEFT_OK : weft_fail(error, WEFT_IO, "cannot write to stdout");
}

int postmortem_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const int n_paths = options_operands(&postmortem_table, n, arguments, &error);
    settings *s = error.status == WEFT_OK
                      ? settings_read(&postmortem_table, n - n_paths, arguments + n_paths, &error)
                      : NULL;
    if (s && n_paths == 1)
        (void)!show(arguments[0], s, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE, "of which job? weft postmortem DIR, as given with --run");
    settings_destroy(&s);
    return app_leave(postmortem_table.program, APP_STARTING, &error);
}
