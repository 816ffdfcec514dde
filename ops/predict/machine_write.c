/* machine_write: a machine model as JSON, sorted by name, units in the names. */
#include "machine.h"

#include "recorder.h"
#include "sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static json_t *curve_json(const weft_curve *curve)
{
    json_t *list = json_array();
    for (int i = 0; i < curve->n; i++)
        json_array_append_new(list, json_pack("[ff]", curve->size[i], curve->value[i]));
    return list;
}

static json_t *rates_json(const weft_load *load)
{
    json_t *rates = json_object();
    for (int d = 0; d < WEFT_DTYPES; d++)
        if (load->flop_rate[d].n > 0)
            json_object_set_new(rates, weft_dtype_name((weft_dtype)d),
                                curve_json(&load->flop_rate[d]));
    return rates;
}

static json_t *acts_json(const weft_load *load)
{
    json_t *acts = json_object();
    for (int a = 0; a < load->n_acts; a++)
        json_object_set_new(acts, load->acts[a].op, json_real(load->acts[a].elements));
    json_object_set_new(acts, "other", json_real(load->other_act));
    return acts;
}

static json_t *sample_json(const weft_sample *sample)
{
    char id[24];
    json_t *bytes = json_array();
    for (int i = 0; i < sample->work.n_sizes; i++)
        json_array_append_new(bytes, json_real(sample->work.sizes[i]));
    json_t *acts = json_object();
    for (int a = 0; a < sample->work.n_acts; a++)
        json_object_set_new(acts, sample->work.acts[a].op,
                            json_real(sample->work.acts[a].elements));
    snprintf(id, sizeof id, "%016llx", (unsigned long long)sample->work.id);
    return json_pack("{ss ss ss sf so so sf sf}", "name", sample->work.name, "dtype",
                     weft_dtype_name(sample->work.dtype), "id", id, "flops", sample->work.flops,
                     "bytes", bytes, "acts", acts, "seconds", sample->seconds, "spread",
                     sample->spread);
}

static json_t *load_json(const weft_load *load)
{
    json_t *samples = json_array();
    for (int s = 0; s < load->n_samples; s++)
        json_array_append_new(samples, sample_json(&load->samples[s]));
    return json_pack("{si si sf sf sf so so so so}", "ranks", load->ranks, "lanes", load->lanes,
                     "step_seconds", load->step_seconds, "run_seconds", load->run_seconds,
                     "input_bytes_per_second", load->input_bytes_per_second, "flops_per_second",
                     rates_json(load), "bytes_per_second", curve_json(&load->byte_rate),
                     "act_seconds", acts_json(load), "kernels", samples);
}

static json_t *level_json(const weft_level *level)
{
    return json_pack("{ss si sf sf sf sf sf}", "name", level->name, "ranks", level->ranks,
                     "latency_seconds", level->latency_seconds, "bytes_per_second",
                     level->bytes_per_second, "cpu", level->cpu, "late_seconds",
                     level->late_seconds, "crowded_seconds", level->crowded_seconds);
}

static json_t *slows_json(const weft_machine_model *model)
{
    json_t *list = json_array();
    for (int i = 0; i < model->n_slows; i++) {
        const weft_slow *slow = &model->slows[i];
        json_array_append_new(list, json_pack("{ss ss ss sf}", "work", slow->work, "by",
                                              weft_convert_name(slow->kind), "level",
                                              model->levels[slow->level].name, "cpu", slow->cpu));
    }
    return list;
}

json_t *weft_machine_model_json(const weft_machine_model *model)
{
    json_t *loads = json_array(), *levels = json_array(), *exchanges = json_array();
    for (int l = 0; l < model->n_loads; l++)
        json_array_append_new(loads, load_json(&model->loads[l]));
    for (int l = 0; l < model->n_levels; l++)
        json_array_append_new(levels, level_json(&model->levels[l]));
    for (int e = 0; e < model->n_exchanges; e++) {
        const weft_exchange_curve *exchange = &model->exchanges[e];
        json_array_append_new(
            exchanges, json_pack("{ss ss si so}", "kind", weft_convert_name(exchange->kind),
                                 "level", model->levels[exchange->level].name, "ranks",
                                 exchange->ranks, "seconds", curve_json(&exchange->seconds)));
    }
    json_t *root = json_pack("{si ss ss ss si sf so so so}", "weft_machine", 1, "name", model->name,
                             "processor", model->processor, "made", model->made, "cores",
                             model->cores, "spread", model->spread, "loads", loads, "levels",
                             levels, "exchanges", exchanges);
    json_t *sources = json_array();
    for (int i = 0; i < model->n_sources; i++)
        json_array_append_new(sources, json_string(model->sources[i]));
    if (model->n_sources > 0) json_object_set(root, "sources", sources);
    json_decref(sources);
    json_object_set_new(root, "slows", slows_json(model));
    if (*model->library) json_object_set_new(root, "weft", json_string(model->library));
    return root;
}

/* Jansson writes numbers with memory that its calls share, and several threads may plan for one machine at once (ops/search). */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static int add_to_hash(const char *text, size_t bytes, void *hash)
{
    *(uint64_t *)hash = weft_digest(*(uint64_t *)hash, text, bytes);
    return 0;
}

uint64_t weft_machine_model_hash(const weft_machine_model *model)
{
    uint64_t hash = 0;
    weft_lock_take(&writing);
    json_t *root = model ? weft_machine_model_json(model) : NULL;
    if (root) json_dump_callback(root, add_to_hash, &hash, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(root);
    weft_lock_give(&writing);
    return hash;
}

/* Each point and kernel on a line of its own: a file that diff compares well. */
weft_status weft_machine_model_write(const weft_machine_model *model, FILE *file, weft_error *error)
{
    WEFT_GIVEN(model, error);
    WEFT_GIVEN(file, error);
    json_t *root = weft_machine_model_json(model);
    if (!root) return weft_fail_memory(error, sizeof *model);
    const int failed =
        json_dumpf(root, file, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
    json_decref(root);
    if (!failed && fputc('\n', file) != EOF && fflush(file) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write the machine file: %s", strerror(errno));
}

static weft_status copy_model(const weft_machine_model *model, weft_machine_model **copy,
                              weft_error *error)
{
    json_t *root = weft_machine_model_json(model);
    char *text = root ? json_dumps(root, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (!text)
        return weft_fail(error, WEFT_USAGE, "a figure of machine %.60s is no number", model->name);
    const weft_status status =
        weft_machine_model_parse(text, strlen(text), model->name, copy, error);
    free(text);
    return status;
}

weft_status weft_machine_model_copy(const weft_machine_model *model, weft_machine_model **copy,
                                    weft_error *error)
{
    weft_lock_take(&writing);
    const weft_status status = copy_model(model, copy, error);
    weft_lock_give(&writing);
    return status;
}
