/* machine: values between measured ones, and which of what was measured counts. See machine.h. */
#include "machine.h"

#include <math.h>

/* The last point at or below `size`; -1: it is below all. */
static int point_below(const weft_curve *curve, double size)
{
    int low = -1, high = curve->n;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (curve->size[middle] <= size)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double between(const weft_curve *curve, int at, double size)
{
    const double from = log(curve->size[at]), to = log(curve->size[at + 1]);
    const double part = (log(size) - from) / (to - from);
    return exp((1 - part) * log(curve->value[at]) + part * log(curve->value[at + 1]));
}

double weft_curve_at(const weft_curve *curve, double size)
{
    if (curve->n == 0) return 0;
    const int at = point_below(curve, size);
    if (at < 0) return curve->value[0];
    if (at == curve->n - 1) return curve->value[at];
    return between(curve, at, size);
}

double weft_curve_along(const weft_curve *curve, double size)
{
    const int last = curve->n - 1;
    if (curve->n == 0 || size <= curve->size[last]) return weft_curve_at(curve, size);
    return curve->value[last] * (size / curve->size[last]);
}

const weft_load *weft_load_of(const weft_machine_model *model, int ranks)
{
    const weft_load *load = &model->loads[0];
    for (int l = 1; l < model->n_loads; l++)
        if (model->loads[l].ranks <= ranks) load = &model->loads[l];
    return load;
}

double weft_load_crowd(const weft_machine_model *model, const weft_load *load, int host_ranks)
{
    if (load->ranks * load->lanes < model->cores) return 1;
    const double cores = fmax(1, (double)model->cores / load->lanes);
    const double at_once = fmin(load->ranks, cores);
    return fmax(1, host_ranks / at_once);
}

int weft_level_of(const weft_machine_model *model, int first_rank, int last_rank)
{
    for (int l = 0; l < model->n_levels; l++) {
        const int ranks = model->levels[l].ranks;
        if (ranks == 0 || first_rank / ranks == last_rank / ranks) return l;
    }
    return model->n_levels - 1;
}

void weft_machine_model_destroy(weft_machine_model **model)
{
    if (!model || !*model) return;
    weft_arena *arena = (*model)->arena;
    weft_arena_destroy(&arena); /* it is in there itself */
    *model = NULL;
}

const char *weft_machine_model_name(const weft_machine_model *model)
{
    return model ? model->name : "";
}

const char *weft_machine_model_processor(const weft_machine_model *model)
{
    return model ? model->processor : "";
}

int weft_machine_model_host_ranks(const weft_machine_model *model, int n_ranks)
{
    if (!model) return 0;
    const int levels = model->n_levels > 1 ? model->levels[model->n_levels - 2].ranks : n_ranks;
    return levels < n_ranks ? levels : n_ranks;
}

const char *weft_machine_model_made(const weft_machine_model *model)
{
    return model ? model->made : "";
}

const char *weft_time_source_name(weft_time_source source)
{
    static const char *const names[WEFT_TIME_SOURCES] = {"measured", "similar", "rates"};
    return (unsigned)source < WEFT_TIME_SOURCES ? names[source] : "?";
}
