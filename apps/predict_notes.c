/* predict_notes: the machine that a prediction rests on, and kernels that its file lacks. */
#include "predict_notes.h"

#include <stdlib.h>
#include <string.h>

/* Steps with the same kernel, of the same sizes. */
typedef struct kernel {
    weft_planned_step step; /* the first of them */
    weft_time_source source;
    double seconds; /* of all of them */
} kernel;

void app_note_machine(const weft_machine_model *model, bool runs_here, FILE *file)
{
    char text[480];
    if (weft_machine_model_differs(model, runs_here, text, sizeof text))
        fprintf(file, "%s\n", text);
}

static const char *name_of(const weft_planned_step *step)
{
    return step->builder ? step->builder : step->op ? step->op : "a loop";
}

static bool is_same(const weft_planned_step *a, const weft_planned_step *b)
{
    return strcmp(name_of(a), name_of(b)) == 0 && a->kind == b->kind && a->flops == b->flops &&
           a->in_bytes == b->in_bytes && a->out_bytes == b->out_bytes;
}

static void add(kernel *all, int *n, const weft_planned_step *step,
                const weft_predicted_step *predicted)
{
    int k = 0;
    while (k < *n && !(is_same(&all[k].step, step) && all[k].source == predicted->source))
        k++;
    if (k == *n) all[(*n)++] = (kernel){*step, predicted->source, 0};
    all[k].seconds += predicted->total_seconds;
}

static weft_status find(const weft_program *program, const weft_predicted_step *steps, kernel *all,
                        int *n, weft_error *error)
{
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        WEFT_TRY(weft_plan_step_at(program, s, 0, &step, error));
        const bool computes = step.kind == WEFT_STEP_KERNEL || step.kind == WEFT_STEP_LOOP;
        if (computes && steps[s].total_seconds > 0) add(all, n, &step, &steps[s]);
    }
    return WEFT_OK;
}

static int longer(const void *a, const void *b)
{
    const double x = ((const kernel *)a)->seconds, y = ((const kernel *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void print_one(const kernel *k, FILE *file)
{
    static const char *const instead[WEFT_TIME_SOURCES] = {
        [WEFT_TIME_SIMILAR] = "the same kernel with other sizes is used",
        [WEFT_TIME_RATES] = "rates alone are used"};
    fprintf(file, "%s", name_of(&k->step));
    if (k->step.file) fprintf(file, " at %s:%d", k->step.file, k->step.line);
    fprintf(file, " (%.3g flops, %.3g bytes): %s\n", k->step.flops,
            (double)(k->step.in_bytes + k->step.out_bytes), instead[k->source]);
}

/* Those that were not measured come first, the longest first. */
static int keep_missing(kernel *all, int n)
{
    int missing = 0;
    for (int k = 0; k < n; k++)
        if (all[k].source != WEFT_TIME_MEASURED) all[missing++] = all[k];
    qsort(all, (size_t)missing, sizeof *all, longer);
    return missing;
}

static void print(kernel *kernels, int n, bool all, FILE *file)
{
    const int missing = keep_missing(kernels, n);
    if (missing == 0) return;
    fprintf(file, "  of %d kernels %d are not in the file (weft calibrate --for adds them%s)%s", n,
            missing, all || missing == 1 ? "" : "; --dry-run=all lists them",
            all ? ":\n" : "; the longest: ");
    for (int k = 0; k < (all ? missing : 1); k++) {
        if (all) fprintf(file, "    ");
        print_one(&kernels[k], file);
    }
}

weft_status app_note_kernels(const weft_program *program, const weft_machine_model *model, bool all,
                             FILE *file, weft_error *error)
{
    const size_t room = (size_t)weft_plan_n_steps(program) + 1;
    weft_prediction whole;
    int n = 0;
    weft_predicted_step *steps = calloc(room, sizeof *steps);
    kernel *kernels = calloc(room, sizeof *kernels);
    weft_status status =
        steps && kernels ? WEFT_OK : weft_fail_memory(error, room * sizeof *kernels);
    if (status == WEFT_OK)
        status = weft_plan_predict_steps(program, model, NULL, &whole, steps, error);
    if (status == WEFT_OK) status = find(program, steps, kernels, &n, error);
    if (status == WEFT_OK) print(kernels, n, all, file);
    free(steps);
    free(kernels);
    return status;
}
