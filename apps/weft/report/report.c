/* report: `weft report RUN|PLAN`: one HTML file of a run or of a plan, to be looked at in a browser, without a network. */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../whole_file.h"
#include "page.h"
#include "parts.h"

enum { MAX_PATH = 4200 };

static const option options[] = {
    {"out", OPTION_TEXT, "", "FILE", "Options",
     "where to; without it, report.html in RUN, or beside PLAN (also -o)"},
    {"plan", OPTION_TEXT, "", "FILE", "Options",
     "the plan of RUN, as --dry-run --json prints it; without it, plan.json in RUN"},
};
const option_table report_table = {
    .program = "weft report",
    .usage = "weft report RUN|PLAN [-o FILE]   one HTML file of a run's folder, or of a plan\n"
             "                                 that --dry-run --json has printed; -: stdin\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "a run or a plan as one HTML file",
};

/* ---- where to ---------------------------------------------------------------------------------- */

static void name_beside(const report_found *found, char *path, size_t room)
{
    const char *source = found->source;
    size_t length = strlen(source);
    if (strcmp(source, "-") == 0)
        snprintf(path, room, "report.html");
    else if (found->is_run)
        snprintf(path, room, "%.4000s/report.html", source);
    else {
        if (length > 5 && strcmp(source + length - 5, ".json") == 0) length -= 5;
        snprintf(path, room, "%.*s.html", (int)length, source);
    }
}

/* Nobody's file is written over but an older report. */
static weft_status check_place(const char *path, weft_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || report_page_is_ours(path))
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.300s is there, and is no report; remove it, or name another file with -o",
                     path);
}

/* ---- the file ---------------------------------------------------------------------------------- */

/* With fewer and fewer of each, until the page is one that a browser opens at once. */
static weft_status make_text(report_data *data, report_found *found, char **text, weft_error *error)
{
    report_limits limits = {.steps = 12000, .events = 24000, .tensors = 6000, .points = 1000};
    for (;;) {
        WEFT_TRY(report_data_make(data, found, &limits, error));
        *text = report_page_text(data->root);
        if (!*text) return weft_fail_memory(error, 0);
        if (report_page_bytes(*text) <= REPORT_MOST_BYTES || limits.points <= 10) return WEFT_OK;
        free(*text);
        *text = NULL;
        report_data_free(data);
        limits = (report_limits){limits.steps * 3 / 4, limits.events * 3 / 4,
                                 limits.tensors * 3 / 4, limits.points * 3 / 4};
    }
}

/* From the open file on, a failure is the disk's, not the command line's. */
static weft_status write_file(const char *path, const char *text, app_phase *phase,
                              weft_error *error)
{
    app_whole_file file;
    WEFT_TRY(app_whole_open(&file, path, error));
    *phase = APP_RUNNING;
    report_page_write(text, file.stream);
    return app_whole_close(&file, true, error);
}

static void say(const report_data *data, const char *path, const char *text)
{
    size_t i;
    json_t *note;
    printf("%s: %.0f KB%s; open it in a browser\n", path, 1e-3 * (double)report_page_bytes(text),
           data->found->is_going ? ", of a run that is going on" : "");
    json_array_foreach(data->notes, i, note) printf("%s\n", json_string_value(note));
}

static weft_status make(const settings *s, report_found *found, app_phase *phase, weft_error *error)
{
    char path[MAX_PATH], *text = NULL;
    report_data data = {.root = NULL};
    name_beside(found, path, sizeof path);
    if (*settings_text(s, "out")) snprintf(path, sizeof path, "%.4000s", settings_text(s, "out"));
    WEFT_TRY(check_place(path, error));
    weft_status status = make_text(&data, found, &text, error);
    if (status == WEFT_OK) status = write_file(path, text, phase, error);
    if (status == WEFT_OK) say(&data, path, text);
    free(text);
    report_data_free(&data);
    if (status != WEFT_OK) return status;
    return fflush(stdout) == 0 ? WEFT_OK : weft_fail(error, WEFT_IO, "cannot write to stdout");
}

/* ---- the command line -------------------------------------------------------------------------- */

static weft_status report_run(const char *source, const settings *s, app_phase *phase,
                              weft_error *error)
{
    report_found found;
    weft_status status = report_find(source, settings_text(s, "plan"), &found, error);
    if (status == WEFT_OK) status = make(s, &found, phase, error);
    report_forget(&found);
    return status;
}

int report_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    app_phase phase = APP_STARTING;
    static char out[] = "--out";
    for (int i = 0; i < n; i++)
        if (strcmp(arguments[i], "-o") == 0) arguments[i] = out;
    const int n_paths = options_operands(&report_table, n, arguments, &error);
    settings *s = error.status == WEFT_OK
                      ? settings_read(&report_table, n - n_paths, arguments + n_paths, &error)
                      : NULL;
    if (s && n_paths == 1)
        (void)!report_run(arguments[0], s, &phase, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE,
                  "of what? weft report RUN, the folder given with --run; or weft report PLAN, "
                  "what --dry-run --json printed");
    settings_destroy(&s);
    return app_leave(report_table.program, phase, &error);
}
