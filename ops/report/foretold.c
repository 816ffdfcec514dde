/* foretold: a prediction, and which calls of the program it is spent on. */
#include "foretold.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const weft_costly *costly, const weft_step_line *line, weft_time_source source)
{
    return costly->source == source && strcmp(costly->place, line->place) == 0;
}

static weft_costly *find_costly(weft_foretold *told, const weft_step_line *line,
                                weft_time_source source)
{
    int at = 0;
    while (at < told->n_costly && !is_of(&told->costly[at], line, source))
        at++;
    if (at == told->n_costly) {
        told->costly[at] = (weft_costly){.source = source, .first = line->s.index};
        memcpy(told->costly[at].place, line->place, sizeof line->place);
        told->n_costly++;
    }
    return &told->costly[at];
}

static int most_first(const void *a, const void *b)
{
    const weft_costly *x = a, *y = b;
    if (x->seconds != y->seconds) return x->seconds < y->seconds ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

static weft_status find_costliest(weft_foretold *told, weft_error *error)
{
    for (int s = 0; s < told->n_steps; s++) {
        weft_step_line line;
        const weft_predicted_step *step = &told->steps[s];
        if (step->total_seconds <= 0) continue;
        WEFT_TRY(weft_report_step(told->program, s, &line, error));
        weft_costly *costly = find_costly(told, &line, step->source);
        costly->n_steps++;
        costly->times += step->times;
        costly->seconds += step->total_seconds;
    }
    qsort(told->costly, (size_t)told->n_costly, sizeof *told->costly, most_first);
    return WEFT_OK;
}

/* There are no more groups than steps. */
static weft_status find_prices(weft_foretold *told, const weft_predict_options *options,
                               weft_error *error)
{
    const size_t n = (size_t)told->n_steps + 1;
    told->prices = calloc(n, sizeof *told->prices);
    if (!told->prices) return weft_fail_memory(error, n * sizeof *told->prices);
    return weft_plan_prices(told->program, told->model, options, told->prices, told->n_steps,
                            &told->n_prices, error);
}

weft_status weft_foretell(const weft_program *program, const weft_machine_model *model,
                          const weft_predict_options *options, weft_foretold *told,
                          weft_error *error)
{
    WEFT_GIVEN(program, error);
    const size_t n = (size_t)weft_plan_n_steps(program);
    *told = (weft_foretold){.program = program,
                            .model = model,
                            .draws = options ? options->draws : 0,
                            .n_steps = (int)n};
    told->steps = calloc(n + 1, sizeof *told->steps);
    told->costly = calloc(n + 1, sizeof *told->costly);
    weft_status status = told->steps && told->costly
                             ? WEFT_OK
                             : weft_fail_memory(error, (n + 1) * sizeof *told->costly);
    if (status == WEFT_OK)
        status = weft_plan_predict_steps(program, model, options, &told->whole, told->steps, error);
    if (status == WEFT_OK) status = find_costliest(told, error);
    if (status == WEFT_OK) status = find_prices(told, options, error);
    if (status != WEFT_OK) weft_foretold_end(told);
    return status;
}

void weft_foretold_end(weft_foretold *told)
{
    free(told->steps);
    free(told->costly);
    free(told->prices);
    told->steps = NULL;
    told->costly = NULL;
    told->prices = NULL;
}
