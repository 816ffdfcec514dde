/* predict_json: a prediction as JSON, in that of its plan. */
#include "foretold.h"
#include "report_json.h"

#include <errno.h>

static json_t *machine_json(const weft_machine_model *model)
{
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)weft_machine_model_hash(model));
    return json_pack("{s:s, s:s, s:s, s:s}", "name", weft_machine_model_name(model), "processor",
                     weft_machine_model_processor(model), "made", weft_machine_model_made(model),
                     "hash", hash);
}

static json_t *phases_json(const weft_prediction *p)
{
    json_t *phases = json_object();
    for (int phase = 0; phase < WEFT_PHASES; phase++)
        json_object_set_new(phases, weft_phase_name((weft_phase)phase),
                            json_real(p->phase_seconds[phase]));
    return phases;
}

static json_t *sources_json(const weft_prediction *p)
{
    json_t *sources = json_object();
    for (int i = 0; i < WEFT_TIME_SOURCES; i++)
        json_object_set_new(sources, weft_time_source_name((weft_time_source)i),
                            json_real(p->source_seconds[i]));
    return sources;
}

static json_t *queues_json(const weft_foretold *told)
{
    json_t *queues = json_array();
    for (int q = 0; q < told->whole.n_queues; q++) {
        const weft_predicted_queue *queue = &told->whole.queues[q];
        json_array_append_new(queues,
                              json_pack("{s:i, s:f, s:f, s:f}", "queue", q, "busy",
                                        queue->busy_seconds, "waiting", queue->waiting_seconds,
                                        "exposed", queue->exposed_seconds));
    }
    return queues;
}

static json_t *axes_json(const weft_foretold *told)
{
    const weft_mesh *mesh = weft_program_mesh(told->program);
    json_t *axes = json_array();
    for (int a = 0; a < told->whole.n_axes; a++) {
        const weft_predicted_axis *axis = &told->whole.axes[a];
        json_array_append_new(
            axes,
            json_pack("{s:s, s:f, s:f, s:f, s:f}", "axis", weft_mesh_axis_name(mesh, a), "bytes",
                      axis->bytes, "seconds", axis->seconds, "exposed", axis->exposed_seconds,
                      "hidden", weft_predicted_hidden(axis->seconds, axis->exposed_seconds)));
    }
    return axes;
}

static json_t *costliest_json(const weft_foretold *told)
{
    json_t *list = json_array();
    for (int i = 0; i < told->n_costly && i < WEFT_COSTLIEST; i++) {
        const weft_costly *costly = &told->costly[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:i, s:f, s:f, s:s}", "place", costly->place,
                                        "first", costly->first, "steps", costly->n_steps, "times",
                                        costly->times, "seconds", costly->seconds, "source",
                                        weft_time_source_name(costly->source)));
    }
    return list;
}

static json_t *prices_json(const weft_foretold *told)
{
    json_t *list = json_array();
    for (int i = 0; i < told->n_prices; i++) {
        const weft_priced_exchange *price = &told->prices[i];
        weft_step_line line;
        if (weft_report_step(told->program, price->first, &line, NULL) != WEFT_OK) continue;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f}", "place",
                            line.place, "phase", weft_phase_name(line.s.phase), "collective",
                            weft_convert_name(line.s.collective), "axes", line.axes, "reason",
                            line.s.reason ? line.s.reason : "", "first", price->first, "steps",
                            price->n_steps, "times", price->times, "seconds", price->seconds,
                            "shorter", price->price));
    }
    return list;
}

/* One for each of the plan's steps, by number. */
static json_t *steps_json(const weft_foretold *told)
{
    json_t *list = json_array();
    for (int s = 0; s < told->n_steps; s++) {
        const weft_predicted_step *step = &told->steps[s];
        json_array_append_new(
            list, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s}", "seconds",
                            step->seconds, "begin", step->begin, "end", step->end, "total",
                            step->total_seconds, "exposed", step->exposed_seconds, "late",
                            step->late_seconds, "hidden",
                            weft_predicted_hidden(step->total_seconds,
                                                  step->exposed_seconds - step->late_seconds),
                            "elapsed", step->elapsed_seconds, "times", step->times, "alive_bytes",
                            (json_int_t)step->alive_bytes, "source",
                            weft_time_source_name(step->source)));
    }
    return list;
}

static json_t *pricings_json(const weft_foretold *told)
{
    json_t *list = json_array();
    for (int i = 0; i < weft_plan_n_pricings(told->program); i++) {
        weft_planned_pricing pricing;
        if (weft_plan_pricing_at(told->program, i, &pricing, NULL) != WEFT_OK) continue;
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:I, s:b, s:b}", "by", pricing.name, "seconds",
                                        pricing.seconds, "arena", (json_int_t)pricing.arena_bytes,
                                        "allowed", pricing.is_allowed, "taken", pricing.is_taken));
    }
    return list;
}

static json_t *told_json(const weft_foretold *told)
{
    const weft_prediction *p = &told->whole;
    return json_pack("{s:o, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:o, s:o, s:o, "
                     "s:o, s:o, s:o, s:o, "
                     "s:{s:I, s:I, s:i}, s:o}",
                     "machine", machine_json(told->model), "seconds", p->seconds, "besides_seconds",
                     p->besides_seconds, "draws", told->draws, "median_seconds", p->median_seconds,
                     "slow_seconds", p->slow_seconds, "work_seconds", p->work_seconds,
                     "exchange_seconds", p->exchange_seconds, "exposed_seconds", p->exposed_seconds,
                     "late_seconds", p->late_seconds, "bubble_seconds", p->bubble_seconds, "kinds",
                     p->n_kinds, "phases", phases_json(p), "sources", sources_json(p), "queues",
                     queues_json(told), "axes", axes_json(told), "costliest", costliest_json(told),
                     "pricings", pricings_json(told), "prices", prices_json(told), "memory",
                     "arena", (json_int_t)p->arena_bytes, "peak", (json_int_t)p->peak_bytes,
                     "fullest", p->fullest, "steps", steps_json(told));
}

static weft_status write_told(const weft_foretold *told, FILE *file, weft_error *error)
{
    weft_error own = WEFT_NO_ERROR;
    json_t *root = weft_report_json(told->program, &own), *prediction = told_json(told);
    if (!root) {
        json_decref(prediction);
        return weft_fail(error, own.status, "%s", own.message);
    }
    weft_status status = json_object_set_new(root, "prediction", prediction) == 0
                             ? weft_report_json_write(root, file, error)
                             : weft_fail_memory(error, (size_t)told->n_steps);
    json_decref(root);
    return status;
}

weft_status weft_predict_json(const weft_program *program, const weft_machine_model *model,
                              const weft_predict_options *options, FILE *file, weft_error *error)
{
    weft_foretold told;
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(model, error);
    WEFT_GIVEN(file, error);
    WEFT_TRY(weft_foretell(program, model, options, &told, error));
    errno = 0;
    const weft_status status = write_told(&told, file, error);
    weft_foretold_end(&told);
    return status;
}
