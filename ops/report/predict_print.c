/* predict_print: a prediction for people. */
#include "foretold.h"
#include "text.h"

#include <errno.h>
#include <string.h>

enum { COLUMNS = 60 /* of the picture of memory */ };

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static void print_whole(const weft_foretold *told, FILE *file)
{
    char step[WEFT_TIME_TEXT], work[WEFT_TIME_TEXT], exchange[WEFT_TIME_TEXT],
        exposed[WEFT_TIME_TEXT], late[WEFT_TIME_TEXT];
    const weft_prediction *p = &told->whole;
    fprintf(file, "\ntime on %s (%s): %s a step\n", weft_machine_model_name(told->model),
            weft_machine_model_processor(told->model), weft_time_text(p->seconds, step));
    if (p->slow_seconds > p->seconds)
        fprintf(file, "  half of the steps take no longer than %s, 95 of 100 no longer than %s\n",
                weft_time_text(p->median_seconds, work), weft_time_text(p->slow_seconds, exchange));
    fprintf(file,
            "  computing %s, exchanges %s, which make the step %s longer; waiting for late ranks "
            "is %s of that\n",
            weft_time_text(p->work_seconds, work), weft_time_text(p->exchange_seconds, exchange),
            weft_time_text(p->exposed_seconds, exposed), weft_time_text(p->late_seconds, late));
    if (p->besides_seconds > 0)
        fprintf(file, "  inputs written, ranks woken and a number read: %s\n",
                weft_time_text(p->besides_seconds, work));
    if (p->bubble_seconds > 0)
        fprintf(file, "  bubbles of the pipeline %s, %.1f %% of the step\n",
                weft_time_text(p->bubble_seconds, work), percent(p->bubble_seconds, p->seconds));
}

static void print_phases(const weft_prediction *p, FILE *file)
{
    char text[WEFT_TIME_TEXT];
    for (int phase = 0; phase < WEFT_PHASES; phase++)
        fprintf(file, "%s%s %s", phase == 0 ? "  " : ", ", weft_phase_name((weft_phase)phase),
                weft_time_text(p->phase_seconds[phase], text));
    fputc('\n', file);
}

static void print_sources(const weft_prediction *p, FILE *file)
{
    const double all = p->work_seconds + p->exchange_seconds;
    fprintf(file,
            "  of this %.0f %% is from kernels that were measured, %.0f %% from similar ones, %.0f "
            "%% from rates alone\n",
            percent(p->source_seconds[WEFT_TIME_MEASURED], all),
            percent(p->source_seconds[WEFT_TIME_SIMILAR], all),
            percent(p->source_seconds[WEFT_TIME_RATES], all));
}

/* Nothing to choose from: nothing is said. */
static weft_status print_pricings(const weft_foretold *told, FILE *file, weft_error *error)
{
    const int n = weft_plan_n_pricings(told->program);
    if (n < 2) return WEFT_OK;
    fprintf(file, "  planned for %s, by", weft_plan_machine(told->program));
    for (int i = 0; i < n; i++) {
        weft_planned_pricing pricing;
        char text[WEFT_TIME_TEXT];
        WEFT_TRY(weft_plan_pricing_at(told->program, i, &pricing, error));
        fprintf(file, "%s %s: %s%s%s", i ? "," : "", pricing.name,
                weft_time_text(pricing.seconds, text), pricing.is_taken ? " (taken)" : "",
                pricing.is_allowed ? "" : " (too much memory)");
    }
    fputc('\n', file);
    return WEFT_OK;
}

/* ---- queues and axes ------------------------------------------------------------------------------- */

static weft_status print_queues(const weft_foretold *told, FILE *file, weft_error *error)
{
    if (told->whole.n_queues < 2) return WEFT_OK;
    fputs("\nqueues of rank 0 (busy, waiting, by how much they make the step longer)\n", file);
    for (int q = 0; q < told->whole.n_queues; q++) {
        const weft_predicted_queue *queue = &told->whole.queues[q];
        weft_planned_queue planned;
        char name[100], busy[WEFT_TIME_TEXT], waiting[WEFT_TIME_TEXT], exposed[WEFT_TIME_TEXT];
        WEFT_TRY(weft_plan_queue_at(told->program, q, 0, &planned, error));
        weft_report_queue(told->program, planned.axes, name, sizeof name);
        fprintf(file, "  %-16s %9s %9s %9s\n", name, weft_time_text(queue->busy_seconds, busy),
                weft_time_text(queue->waiting_seconds, waiting),
                weft_time_text(queue->exposed_seconds, exposed));
    }
    return WEFT_OK;
}

static void print_axes(const weft_foretold *told, FILE *file)
{
    const weft_mesh *mesh = weft_program_mesh(told->program);
    if (told->whole.n_queues < 2) return;
    fputs("\nexchanges along each axis (bytes of rank 0, time, part that is hidden)\n", file);
    for (int a = 0; a < told->whole.n_axes; a++) {
        const weft_predicted_axis *axis = &told->whole.axes[a];
        char text[WEFT_TIME_TEXT];
        if (axis->seconds <= 0) continue;
        fprintf(file, "  %-16s %12.0f %9s %5.1f %%\n", weft_mesh_axis_name(mesh, a), axis->bytes,
                weft_time_text(axis->seconds, text),
                100 * weft_predicted_hidden(axis->seconds, axis->exposed_seconds));
    }
}

static weft_status print_exchanges(const weft_foretold *told, FILE *file, weft_error *error)
{
    fputs("\neach exchange (step, time of all its times, part that is hidden, waiting for late "
          "ranks)\n",
          file);
    for (int s = 0; s < told->n_steps; s++) {
        const weft_predicted_step *step = &told->steps[s];
        weft_step_line line;
        char seconds[WEFT_TIME_TEXT], late[WEFT_TIME_TEXT];
        WEFT_TRY(weft_report_step(told->program, s, &line, error));
        if (!weft_report_exchanges(&line.s)) continue;
        const double exposed = step->exposed_seconds - step->late_seconds;
        fprintf(file, "  %5d %9s %5.1f %% %9s  %s over %s, %s\n", s,
                weft_time_text(step->total_seconds, seconds),
                100 * weft_predicted_hidden(step->total_seconds, exposed),
                weft_time_text(step->late_seconds, late), weft_convert_name(line.s.collective),
                line.axes, line.place);
    }
    return WEFT_OK;
}

/* ---- what exchanges really cost --------------------------------------------------------------------- */

static weft_status print_price(const weft_foretold *told, int i, FILE *file, weft_error *error)
{
    const weft_priced_exchange *price = &told->prices[i];
    weft_step_line line;
    char shorter[WEFT_TIME_TEXT], seconds[WEFT_TIME_TEXT];
    WEFT_TRY(weft_report_step(told->program, price->first, &line, error));
    fprintf(file, "  %9s %5.1f %% %9s %7.0f  %s over %s, %s, %s: %.*s\n",
            weft_time_text(price->price, shorter), percent(price->price, told->whole.seconds),
            weft_time_text(price->seconds, seconds), price->times,
            weft_convert_name(line.s.collective), line.axes, line.place,
            weft_phase_name(line.s.phase), (int)strcspn(line.s.reason, ";"), line.s.reason);
    return WEFT_OK;
}

static weft_status print_prices(const weft_foretold *told, bool is_whole, FILE *file,
                                weft_error *error)
{
    const int shown = is_whole ? told->n_prices : told->n_prices < 1 ? 0 : 1;
    if (shown > 0)
        fprintf(file,
                "\n%s (by how much the step would be shorter without it, part of the step, its "
                "time, how often)\n",
                is_whole ? "what each exchange really costs" : "the dearest exchange");
    for (int i = 0; i < shown; i++)
        WEFT_TRY(print_price(told, i, file, error));
    return WEFT_OK;
}

/* ---- where the time goes, and memory ----------------------------------------------------------------- */

static void print_costliest(const weft_foretold *told, FILE *file)
{
    const double all = told->whole.work_seconds + told->whole.exchange_seconds;
    fputs("\nwhat takes longest (time, part, how often, whence it is known)\n", file);
    for (int i = 0; i < told->n_costly && i < WEFT_COSTLIEST; i++) {
        const weft_costly *costly = &told->costly[i];
        char text[WEFT_TIME_TEXT];
        fprintf(file, "  %9s %5.1f %% %7.0f  %-8s  %s\n", weft_time_text(costly->seconds, text),
                percent(costly->seconds, all), costly->times, weft_time_source_name(costly->source),
                costly->place);
    }
}

/* Each column is the most of its steps, in eighths of the most of all. */
static void draw_memory(const weft_foretold *told, FILE *file)
{
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const int n = told->n_steps, columns = n < COLUMNS ? n : COLUMNS;
    fputs("  |", file);
    for (int c = 0; c < columns; c++) {
        int64_t most = 0;
        for (int s = (int)((int64_t)c * n / columns); s < (int64_t)(c + 1) * n / columns; s++)
            if (told->steps[s].alive_bytes > most) most = told->steps[s].alive_bytes;
        fputs(eighths[(8 * most + told->whole.peak_bytes - 1) / told->whole.peak_bytes], file);
    }
    fputs("|\n", file);
}

static weft_status print_memory(const weft_foretold *told, FILE *file, weft_error *error)
{
    const weft_prediction *p = &told->whole;
    weft_step_line line;
    if (p->peak_bytes <= 0) return WEFT_OK;
    WEFT_TRY(weft_report_step(told->program, p->fullest, &line, error));
    fprintf(file,
            "\nmemory of temporaries from step to step: %.1f MiB in one block; at most %.1f MiB "
            "at step %d of %d (%s)\n",
            (double)p->arena_bytes / 1048576.0, (double)p->peak_bytes / 1048576.0, p->fullest,
            told->n_steps, line.place);
    draw_memory(told, file);
    return WEFT_OK;
}

static weft_status print_told(const weft_foretold *told, bool is_whole, FILE *file,
                              weft_error *error)
{
    print_whole(told, file);
    print_phases(&told->whole, file);
    print_sources(&told->whole, file);
    WEFT_TRY(print_pricings(told, file, error));
    WEFT_TRY(print_queues(told, file, error));
    print_axes(told, file);
    WEFT_TRY(print_prices(told, is_whole, file, error));
    print_costliest(told, file);
    WEFT_TRY(print_memory(told, file, error));
    if (is_whole && told->whole.n_queues > 1) WEFT_TRY(print_exchanges(told, file, error));
    return ferror(file) ? weft_report_fail(error) : WEFT_OK;
}

weft_status weft_predict_print(const weft_program *program, const weft_machine_model *model,
                               const weft_predict_options *options, bool is_whole, FILE *file,
                               weft_error *error)
{
    weft_foretold told;
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(model, error);
    WEFT_GIVEN(file, error);
    WEFT_TRY(weft_foretell(program, model, options, &told, error));
    errno = 0;
    const locale_t before = weft_text_plain();
    const weft_status status = print_told(&told, is_whole, file, error);
    weft_text_end(before);
    weft_foretold_end(&told);
    return status;
}
