/* machine_merge: two measurements of one machine made into one.
 *
 * Others on a machine make times longer, and nothing makes them shorter. So of two times of the same thing the shorter one is nearer
 * to what the machine can do. How much longer the other was is kept as spread.
 */
#include "machine.h"

#include <math.h>
#include <string.h>

typedef double (*keeper)(double a, double b);

/* ---- curves, element ops, kernels ------------------------------------------------------------------ */

/* A file keeps a few digits of a size. */
static bool is_same_size(double a, double b)
{
    return fabs(a - b) <= 1e-4 * a;
}

static weft_status merge_curve(weft_arena *arena, weft_curve *into, const weft_curve *from,
                               keeper keep, weft_error *error)
{
    for (int i = 0; i < from->n; i++) {
        int at = 0;
        while (at < into->n && !is_same_size(into->size[at], from->size[i]))
            at++;
        if (at < into->n)
            into->value[at] = keep(into->value[at], from->value[i]);
        else
            WEFT_TRY(weft_curve_add(arena, into, from->size[i], from->value[i], error));
    }
    return WEFT_OK;
}

/* 0: not measured. */
static double shorter(double a, double b)
{
    return a > 0 && b > 0 ? fmin(a, b) : fmax(a, b);
}

static weft_status merge_act(weft_machine_model *model, weft_load *into, const weft_act *act,
                             weft_error *error)
{
    for (int a = 0; a < into->n_acts; a++) {
        if (strcmp(into->acts[a].op, act->op) != 0) continue;
        into->acts[a].elements = fmin(into->acts[a].elements, act->elements);
        return WEFT_OK;
    }
    return weft_machine_add_act(model, into, act->op, act->elements, error);
}

/* The spread is of the mean of both their means. */
static void keep_sample(weft_sample *into, const weft_sample *from)
{
    const double mean =
        0.5 * (into->seconds * (1 + into->spread) + from->seconds * (1 + from->spread));
    into->seconds = fmin(into->seconds, from->seconds);
    into->spread = mean / into->seconds - 1;
}

static weft_status merge_sample(weft_machine_model *model, weft_load *into, const weft_sample *from,
                                weft_error *error)
{
    weft_sample *same = weft_load_sample(into, &from->work);
    if (!same)
        return weft_machine_add_sample(model, into, &from->work, from->seconds, from->spread,
                                       error);
    keep_sample(same, from);
    return WEFT_OK;
}

static weft_status merge_load(weft_machine_model *model, weft_load *into, const weft_load *from,
                              weft_error *error)
{
    into->step_seconds = shorter(into->step_seconds, from->step_seconds);
    into->run_seconds = shorter(into->run_seconds, from->run_seconds);
    into->input_bytes_per_second = fmax(into->input_bytes_per_second, from->input_bytes_per_second);
    into->other_act = shorter(into->other_act, from->other_act);
    WEFT_TRY(merge_curve(model->arena, &into->byte_rate, &from->byte_rate, fmax, error));
    for (int d = 0; d < WEFT_DTYPES; d++)
        WEFT_TRY(merge_curve(model->arena, &into->flop_rate[d], &from->flop_rate[d], fmax, error));
    for (int a = 0; a < from->n_acts; a++)
        WEFT_TRY(merge_act(model, into, &from->acts[a], error));
    for (int s = 0; s < from->n_samples; s++)
        WEFT_TRY(merge_sample(model, into, &from->samples[s], error));
    return WEFT_OK;
}

static weft_status find_load(weft_machine_model *model, const weft_load *like, weft_load **found,
                             weft_error *error)
{
    for (int l = 0; l < model->n_loads; l++) {
        *found = &model->loads[l];
        if ((*found)->ranks == like->ranks && (*found)->lanes == like->lanes) return WEFT_OK;
        if ((*found)->ranks == like->ranks)
            return weft_fail(error, WEFT_USAGE,
                             "%.40s was measured with %d lanes for each of %d ranks, and now each "
                             "has %d; name another file, which is then measured whole",
                             model->name, (*found)->lanes, like->ranks, like->lanes);
    }
    return weft_machine_add_load(model, like->ranks, like->lanes, found, error);
}

/* ---- links ----------------------------------------------------------------------------------------- */

static void merge_level(weft_level *into, const weft_level *from)
{
    into->latency_seconds = fmin(into->latency_seconds, from->latency_seconds);
    into->bytes_per_second = fmax(into->bytes_per_second, from->bytes_per_second);
    into->cpu = fmin(into->cpu, from->cpu);
    into->late_seconds = fmin(into->late_seconds, from->late_seconds);
    into->crowded_seconds = shorter(into->crowded_seconds, from->crowded_seconds);
}

static weft_status merge_slow(weft_machine_model *model, const weft_slow *from, weft_error *error)
{
    for (int i = 0; i < model->n_slows; i++) {
        weft_slow *into = &model->slows[i];
        if (strcmp(into->work, from->work) != 0 || into->kind != from->kind ||
            into->level != from->level)
            continue;
        into->cpu = fmin(into->cpu, from->cpu);
        return WEFT_OK;
    }
    return weft_machine_add_slow(model, from, error);
}

static weft_status merge_exchange(weft_machine_model *model, const weft_exchange_curve *from,
                                  weft_error *error)
{
    weft_exchange_curve *into = NULL;
    for (int e = 0; e < model->n_exchanges && !into; e++) {
        weft_exchange_curve *curve = &model->exchanges[e];
        if (curve->kind == from->kind && curve->level == from->level && curve->ranks == from->ranks)
            into = curve;
    }
    if (!into)
        WEFT_TRY(
            weft_machine_add_exchange(model, from->kind, from->level, from->ranks, &into, error));
    return merge_curve(model->arena, &into->seconds, &from->seconds, fmin, error);
}

/* One of them may have no links: it was made of kernels alone. */
static weft_status merge_links(weft_machine_model *into, const weft_machine_model *from,
                               weft_error *error)
{
    const bool is_new = into->n_levels == 0;
    for (int l = 0; l < from->n_levels; l++)
        if (is_new)
            WEFT_TRY(weft_machine_add_level(into, &from->levels[l], error));
        else
            merge_level(&into->levels[l], &from->levels[l]);
    for (int e = 0; e < from->n_exchanges; e++)
        WEFT_TRY(merge_exchange(into, &from->exchanges[e], error));
    for (int s = 0; s < from->n_slows; s++)
        WEFT_TRY(merge_slow(into, &from->slows[s], error));
    return WEFT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static weft_status check_levels(const weft_machine_model *a, const weft_machine_model *b,
                                weft_error *error)
{
    if (a->n_levels == 0 || b->n_levels == 0) return WEFT_OK;
    for (int l = 0; l < a->n_levels || l < b->n_levels; l++) {
        const char *of_a = l < a->n_levels ? a->levels[l].name : "none",
                   *of_b = l < b->n_levels ? b->levels[l].name : "none";
        if (strcmp(of_a, of_b) != 0)
            return weft_fail(error, WEFT_USAGE,
                             "their links differ: level %d is %.40s in %.40s and %.40s in %.40s; "
                             "measure both with ranks started alike",
                             l, of_a, a->name, of_b, b->name);
    }
    return WEFT_OK;
}

static weft_status check_same(const weft_machine_model *a, const weft_machine_model *b,
                              weft_error *error)
{
    if (strcmp(a->processor, b->processor) == 0 && a->cores == b->cores)
        return check_levels(a, b, error);
    return weft_fail(error, WEFT_USAGE,
                     "they are of two machines: %.40s has %d cores of %.60s, and %.40s has %d of "
                     "%.60s",
                     a->name, a->cores, a->processor, b->name, b->cores, b->processor);
}

weft_status weft_machine_model_merge(weft_machine_model *into, const weft_machine_model *from,
                                     weft_error *error)
{
    WEFT_GIVEN(into, error);
    WEFT_GIVEN(from, error);
    WEFT_TRY(check_same(into, from, error));
    const char *made = weft_arena_intern(into->arena, from->made);
    if (!made) return weft_fail_memory(error, strlen(from->made));
    into->made = made;
    into->spread = fmin(into->spread, from->spread);
    for (int l = 0; l < from->n_loads; l++) {
        weft_load *load;
        WEFT_TRY(find_load(into, &from->loads[l], &load, error));
        WEFT_TRY(merge_load(into, load, &from->loads[l], error));
    }
    return merge_links(into, from, error);
}
