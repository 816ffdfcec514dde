/* board: what a training writes for TensorBoard.
 *
 * Every step's events are handed to the system at once, as metrics are: what a run that dies has done is there.
 */
#include "board.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board_graph.h"
#include "run.h"
#include "weft/collectives.h"
#include "weft/research/plan.h"

weft_status app_board_check(const settings *s, weft_error *error)
{
    if (settings_count(s, "histograms") == 0 || app_board_is_wanted(s)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--histograms %lld and no --tensorboard: name the folder that they go to with "
                     "--tensorboard DIR",
                     (long long)settings_count(s, "histograms"));
}

bool app_board_is_wanted(const settings *s)
{
    return *settings_text(s, "tensorboard") != '\0';
}

/* The training goes on without. */
static void give_up(app_board *board, const weft_error *error)
{
    if (error->status == WEFT_OK) return;
    fprintf(stderr, "%s; the training goes on without events for TensorBoard\n", error->message);
    events_close(&board->events);
}

static void flush(app_board *board)
{
    weft_error own = {.rank = -1};
    (void)!events_flush(board->events, &own);
    give_up(board, &own);
}

/* ---- what was asked for ------------------------------------------------------------------------- */

/* The words of this process, a blank between two, as the kernel has them. */
static void put_command(FILE *out)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    if (!file) return;
    for (int c = fgetc(file); c != EOF;) {
        const int next = fgetc(file);
        if (c != '\0')
            fputc(c, out);
        else if (next != EOF)
            fputc(' ', out);
        c = next;
    }
    fclose(file);
}

typedef struct telling {
    const settings *settings;
    const weft_program *program;
    weft_error *error;
} telling;

static weft_status tell_command(const telling *t, FILE *out)
{
    put_command(out);
    fputs("\n\n", out);
    settings_print(t->settings, out);
    return WEFT_OK;
}

static weft_status tell_layout(const telling *t, FILE *out)
{
    const weft_layout *layout = weft_plan_layout(t->program);
    const char *text = layout ? weft_layout_text(layout) : "";
    fprintf(out, "mesh %s\nlayout %s\nzero %d\n", weft_mesh_text(weft_program_mesh(t->program)),
            *text ? text : "none", layout ? weft_layout_stage(layout) : 0);
    return WEFT_OK;
}

static weft_status tell_plan(const telling *t, FILE *out)
{
    return weft_plan_summary(t->program, out, t->error);
}

/* As it is printed: between fences, Markdown leaves a text alone. */
static weft_status put_text(events *e, int64_t step, const char *tag, const telling *t,
                            weft_status (*tell)(const telling *, FILE *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return weft_fail_memory(t->error, 0);
    fputs("```\n", out);
    weft_status status = tell(t, out);
    fputs("\n```\n", out);
    if (fclose(out) != 0 && status == WEFT_OK) status = weft_fail_memory(t->error, bytes);
    if (status == WEFT_OK) status = events_text(e, step, tag, text, t->error);
    free(text);
    return status;
}

static weft_status put_graph(events *e, const weft_program *program, weft_error *error)
{
    proto graph = {0};
    weft_status status = board_graph(program, &graph, error);
    if (status == WEFT_OK) status = events_graph(e, graph.all, graph.bytes, error);
    proto_free(&graph);
    return status;
}

static weft_status put_all(events *e, int64_t step, const telling *t)
{
    WEFT_TRY(put_text(e, step, "command", t, tell_command));
    WEFT_TRY(put_text(e, step, "layout", t, tell_layout));
    WEFT_TRY(put_text(e, step, "plan", t, tell_plan));
    return put_graph(e, t->program, t->error);
}

/* A folder that cannot be written is the command's mistake; what fails from then on is the disk. */
static weft_status open_events(app_board *board, const settings *s, const weft_program *program,
                               int64_t first, weft_error *error)
{
    weft_error own = {.rank = -1};
    const telling t = {s, program, &own};
    const char *folder = settings_text(s, "tensorboard");
    (void)!app_make_folder(folder, &own); /* the file tells */
    own = (weft_error){.rank = -1};
    WEFT_TRY(events_open(folder, first + 1, &board->events, error));
    (void)!put_all(board->events, first, &t);
    give_up(board, &own);
    if (board->events) flush(board);
    return WEFT_OK;
}

weft_status app_board_open(app_board *board, const settings *s, const histograms_of *of,
                           int64_t first, weft_error *error)
{
    const bool wants = app_board_is_wanted(s) && settings_count(s, "histograms") > 0;
    bool any;
    *board = (app_board){.every = settings_count(s, "histograms")};
    if (app_board_is_wanted(s) && weft_world_is_root())
        (void)!open_events(board, s, of->program, first, error);
    WEFT_TRY(weft_world_agree(error));
    /* A process that was started with other options does as the others. */
    WEFT_TRY(weft_world_any(wants, &any, error));
    if (!any) return WEFT_OK;
    if (!wants)
        weft_fail(error, WEFT_USAGE,
                  "some ranks were started with --histograms and others without; give all ranks "
                  "the same command");
    WEFT_TRY(weft_world_agree(error));
    return histograms_open(of, &board->histograms, error);
}

/* ---- the steps ---------------------------------------------------------------------------------- */

static weft_status put_histogram(events *e, int64_t step, const histogram *h, weft_error *error)
{
    char tag[512];
    const events_histogram counts = {h->low,         h->high,   h->sum,
                                     h->sum_squares, h->counts, HISTOGRAM_PARTS};
    snprintf(tag, sizeof tag, "%s/%.480s", h->is_gradient ? "gradients" : "variables", h->name);
    return h->is_finite ? events_counts(e, step, tag, &counts, error) : WEFT_OK;
}

weft_status app_board_before(app_board *board, int64_t step, weft_error *error)
{
    weft_error own = {.rank = -1};
    const histogram *h;
    if (!board->histograms || (step % board->every != 0 && step != 1)) return WEFT_OK;
    WEFT_TRY(histograms_take(board->histograms, error));
    for (int i = 0; board->events && (h = histograms_at(board->histograms, i)) != NULL; i++) {
        (void)!put_histogram(board->events, step, h, &own);
        give_up(board, &own);
    }
    if (board->events) flush(board);
    return WEFT_OK;
}

void app_board_line(app_board *board, int64_t step, const json_t *line)
{
    const char *name;
    json_t *value;
    weft_error own = {.rank = -1};
    if (!board || !board->events || !line) return;
    json_object_foreach((json_t *)line, name, value)
    {
        if (strcmp(name, "step") == 0 || !(json_is_number(value) || json_is_null(value))) continue;
        const double number = json_is_number(value) ? json_number_value(value) : NAN;
        if (own.status == WEFT_OK) (void)!events_scalar(board->events, step, name, number, &own);
    }
    give_up(board, &own);
    if (board->events) flush(board);
}

void app_board_close(app_board *board)
{
    histograms_close(&board->histograms);
    events_close(&board->events);
}
