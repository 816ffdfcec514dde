/* machine_make: a machine model put together from what was measured. */
#include "machine.h"

#include <string.h>

/* Room for one entry more at the end of a list in the arena; NULL: no memory. A list grows by doubling, at powers of two. */
static void *one_more(weft_arena *arena, void *list, int n, size_t bytes)
{
    if (n > 0 && (n & (n - 1)) != 0) return list;
    void *grown = weft_arena_take(arena, (n > 0 ? 2 * (size_t)n : 1) * bytes);
    if (grown && n > 0) memcpy(grown, list, (size_t)n * bytes);
    return grown;
}

int weft_machine_room(int n)
{
    int room = 1;
    while (room < n)
        room *= 2;
    return room;
}

weft_status weft_machine_model_make(const char *name, const char *processor, const char *made,
                                    int cores, weft_machine_model **model, weft_error *error)
{
    weft_arena *arena = weft_arena_create();
    weft_machine_model *m = arena ? weft_arena_take(arena, sizeof *m) : NULL;
    if (m) {
        *m = (weft_machine_model){.arena = arena, .cores = cores};
        m->name = weft_arena_intern(arena, name);
        m->processor = weft_arena_intern(arena, processor);
        m->made = weft_arena_intern(arena, made);
        m->library = weft_arena_intern(arena, weft_machine_library());
    }
    *model = m;
    if (m && m->name && m->processor && m->made && m->library) return WEFT_OK;
    weft_arena_destroy(&arena);
    *model = NULL;
    return weft_fail_memory(error, sizeof *m);
}

weft_status weft_machine_add_load(weft_machine_model *model, int ranks, int lanes, weft_load **load,
                                  weft_error *error)
{
    weft_load *loads = one_more(model->arena, model->loads, model->n_loads, sizeof *loads);
    if (!loads) return weft_fail_memory(error, sizeof *loads);
    model->loads = loads;
    int at = model->n_loads++;
    for (; at > 0 && loads[at - 1].ranks > ranks; at--)
        loads[at] = loads[at - 1];
    *load = &loads[at];
    **load = (weft_load){.ranks = ranks, .lanes = lanes};
    return WEFT_OK;
}

weft_status weft_curve_add(weft_arena *arena, weft_curve *curve, double size, double value,
                           weft_error *error)
{
    double *sizes = one_more(arena, curve->size, curve->n, sizeof *sizes);
    double *values = one_more(arena, curve->value, curve->n, sizeof *values);
    if (!sizes || !values) return weft_fail_memory(error, sizeof *sizes);
    int at = curve->n++;
    for (; at > 0 && sizes[at - 1] > size; at--)
        sizes[at] = sizes[at - 1], values[at] = values[at - 1];
    sizes[at] = size;
    values[at] = value;
    curve->size = sizes;
    curve->value = values;
    return WEFT_OK;
}

weft_status weft_machine_add_act(weft_machine_model *model, weft_load *load, const char *op,
                                 double seconds, weft_error *error)
{
    weft_act *acts = one_more(model->arena, load->acts, load->n_acts, sizeof *acts);
    const char *name = weft_arena_intern(model->arena, op);
    if (!acts || !name) return weft_fail_memory(error, sizeof *acts);
    load->acts = acts;
    acts[load->n_acts++] = (weft_act){name, seconds};
    return WEFT_OK;
}

/* One that is there already gets the mean of all that were seen: a kernel in several layers. */
weft_status weft_machine_add_sample(weft_machine_model *model, weft_load *load,
                                    const weft_workload *work, double seconds, double spread,
                                    weft_error *error)
{
    for (int s = 0; s < load->n_samples; s++) {
        weft_sample *sample = &load->samples[s];
        if (sample->work.id != work->id || strcmp(sample->work.name, work->name) != 0) continue;
        const double n = ++sample->n_seen;
        sample->seconds += (seconds - sample->seconds) / n;
        sample->spread += (spread - sample->spread) / n;
        return WEFT_OK;
    }
    weft_sample *samples = one_more(model->arena, load->samples, load->n_samples, sizeof *samples);
    const char *name = weft_arena_intern(model->arena, work->name);
    if (!samples || !name) return weft_fail_memory(error, sizeof *samples);
    load->samples = samples;
    weft_sample *sample = &samples[load->n_samples++];
    *sample = (weft_sample){.work = *work, .seconds = seconds, .spread = spread, .n_seen = 1};
    sample->work.name = name;
    for (int a = 0; a < work->n_acts; a++) {
        sample->work.acts[a].op = weft_arena_intern(model->arena, work->acts[a].op);
        if (!sample->work.acts[a].op) return weft_fail_memory(error, strlen(work->acts[a].op));
    }
    return WEFT_OK;
}

weft_status weft_machine_add_slow(weft_machine_model *model, const weft_slow *slow,
                                  weft_error *error)
{
    weft_slow *slows = one_more(model->arena, model->slows, model->n_slows, sizeof *slows);
    const char *work = weft_arena_intern(model->arena, slow->work);
    if (!slows || !work) return weft_fail_memory(error, sizeof *slows);
    model->slows = slows;
    slows[model->n_slows] = *slow;
    slows[model->n_slows++].work = work;
    return WEFT_OK;
}

weft_status weft_machine_add_level(weft_machine_model *model, const weft_level *level,
                                   weft_error *error)
{
    const char *name = weft_arena_intern(model->arena, level->name);
    if (!name) return weft_fail_memory(error, strlen(level->name));
    if (model->n_levels == WEFT_MAX_LEVELS)
        return weft_fail(error, WEFT_INTERNAL, "a machine has at most %d levels", WEFT_MAX_LEVELS);
    model->levels[model->n_levels] = *level;
    model->levels[model->n_levels++].name = name;
    return WEFT_OK;
}

weft_status weft_machine_add_exchange(weft_machine_model *model, weft_convert_kind kind, int level,
                                      int ranks, weft_exchange_curve **exchange, weft_error *error)
{
    weft_exchange_curve *all =
        one_more(model->arena, model->exchanges, model->n_exchanges, sizeof *all);
    if (!all) return weft_fail_memory(error, sizeof *all);
    model->exchanges = all;
    *exchange = &all[model->n_exchanges++];
    **exchange = (weft_exchange_curve){.kind = kind, .level = level, .ranks = ranks};
    return WEFT_OK;
}
