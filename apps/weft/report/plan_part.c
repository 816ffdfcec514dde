/* plan_part: the plan of a report: its facts as they are, its steps by kinds, its tensors by where they live. */
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 300, PLACE_BYTES = 600 };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* ---- facts ------------------------------------------------------------------------------------- */

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

/* All but the lists that grow with the plan: what is new in a plan gets to the page by itself. */
static json_t *facts_of(const json_t *object, const char *const *without)
{
    json_t *facts = json_object();
    const char *name;
    json_t *one;
    json_object_foreach((json_t *)object, name, one)
    {
        if (!is_among(name, without)) json_object_set_new(facts, name, report_copy(one));
    }
    return facts;
}

static void add_facts(report_data *data, const json_t *plan)
{
    static const char *const lists[] = {"versions",  "step_list",  "collectives", "tensors",
                                        "decisions", "prediction", "advice",      NULL};
    static const char *const steps[] = {"steps", NULL};
    const json_t *prediction = json_object_get(plan, "prediction");
    json_object_set_new(data->root, "plan", facts_of(plan, lists));
    if (json_is_object(prediction))
        json_object_set_new(data->root, "prediction", facts_of(prediction, steps));
}

/* ---- steps ------------------------------------------------------------------------------------- */

/* The version with an id; they stand in the order of these. NULL: none. */
static const json_t *version_of(const json_t *plan, const json_t *ids)
{
    const json_int_t id = json_integer_value(json_array_get(ids, 0));
    const json_t *versions = json_object_get(plan, "versions");
    return id > 0 ? json_array_get(versions, (size_t)id - 1) : NULL;
}

/* "add and 7 more" of a loop, the kernel of one op, the kind of an exchange. */
static void name_of(const json_t *step, char name[NAME_BYTES])
{
    const json_t *ops = json_object_get(step, "ops");
    const char *collective = text_of(step, "collective"), *kernel = text_of(step, "kernel");
    const size_t n = json_array_size(ops);
    const char *first = n > 0         ? text_of(json_array_get(ops, 0), "op")
                        : *collective ? collective
                        : *kernel     ? kernel
                                      : text_of(step, "kind");
    snprintf(name, NAME_BYTES, "%.200s", first);
    if (n > 1) snprintf(name, NAME_BYTES, "%.200s and %zu more", first, n - 1);
}

static void place_of(const json_t *step, char place[PLACE_BYTES])
{
    const char *builder = text_of(step, "builder"), *file = text_of(step, "file");
    const int n = snprintf(place, PLACE_BYTES, "%.150s%s%.150s", text_of(step, "op"),
                           *builder ? " of " : "", builder);
    if (*file)
        snprintf(place + n, PLACE_BYTES - (size_t)n, " at %.200s:%lld", file,
                 (long long)number_of(step, "line"));
}

static json_int_t kind_of(report_data *data, const json_t *plan, const json_t *step)
{
    char name[NAME_BYTES], place[PLACE_BYTES];
    const json_t *in = version_of(plan, json_object_get(step, "in"));
    const json_t *out = version_of(plan, json_object_get(step, "out"));
    name_of(step, name);
    place_of(step, place);
    return report_kind(data, &(report_step){.phase = text_of(step, "phase"),
                                            .name = name,
                                            .place = place,
                                            .from = text_of(in, "spec"),
                                            .spec = text_of(out ? out : in, "spec"),
                                            .box = text_of(out ? out : in, "box"),
                                            .reason = text_of(step, "reason"),
                                            .queue = text_of(step, "queue"),
                                            .flops = number_of(step, "flops"),
                                            .bytes = number_of(step, "bytes"),
                                            .times = number_of(step, "times")});
}

/* How much a step weighs: its predicted seconds, or what there is to guess them by. */
static double weight_of(const json_t *step, const json_t *predicted)
{
    const double bytes = number_of(step, "in_bytes") + number_of(step, "out_bytes");
    if (predicted) return number_of(predicted, "total");
    return (number_of(step, "flops") + bytes + number_of(step, "bytes")) * number_of(step, "times");
}

/* Of each step: a member of its prediction, in whole units. */
static void predicted_column(report_data *data, const json_t *predicted, double *numbers,
                             const char *member, const char *name, double unit, bool is_sum)
{
    for (size_t s = 0; s < data->n_steps; s++)
        numbers[s] = unit * number_of(json_array_get(predicted, s), member);
    report_column(data, name, numbers, is_sum);
}

static void predicted_columns(report_data *data, const json_t *predicted, double *numbers)
{
    predicted_column(data, predicted, numbers, "begin", "begin", 1e9, true);
    predicted_column(data, predicted, numbers, "end", "end", 1e9, true);
    predicted_column(data, predicted, numbers, "total", "total", 1e9, false);
    predicted_column(data, predicted, numbers, "exposed", "exposed", 1e9, false);
    predicted_column(data, predicted, numbers, "alive_bytes", "alive", 1, true);
    for (size_t s = 0; s < data->n_steps; s++)
        numbers[s] = (double)report_text(data, text_of(json_array_get(predicted, s), "source"));
    report_column(data, "source", numbers, false);
}

static weft_status add_steps(report_data *data, const json_t *plan, double *numbers,
                             weft_error *error)
{
    const json_t *steps = json_object_get(plan, "step_list");
    const json_t *predicted = json_object_get(json_object_get(plan, "prediction"), "steps");
    const size_t n = json_array_size(steps);
    if (predicted && json_array_size(predicted) != n) {
        report_note(data, "the prediction is of %zu steps, and the plan has %zu: it is left out",
                    json_array_size(predicted), n);
        predicted = NULL;
    }
    for (size_t s = 0; s < n; s++)
        numbers[s] = weight_of(json_array_get(steps, s), json_array_get(predicted, s));
    WEFT_TRY(report_choose(data, numbers, n, predicted ? "predicted seconds" : "flops and bytes",
                           error));
    for (size_t s = 0; s < n; s++)
        numbers[s] = data->is_shown[s] ? (double)kind_of(data, plan, json_array_get(steps, s)) : 0;
    report_column(data, "kind", numbers, false);
    if (predicted) predicted_columns(data, predicted, numbers);
    return WEFT_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------- */

/* The number of the class of a tensor: all that is equal for layers that are alike. */
static json_int_t class_of(report_data *data, json_t *classes, json_t *numbers,
                           const json_t *tensor)
{
    static const char *const members[] = {"kind", "dtype", "spec", "storage", "box"};
    char key[200];
    json_t *row = json_array();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        json_array_append_new(row, json_integer(report_text(data, text_of(tensor, members[i]))));
    json_array_append_new(row, json_real(number_of(tensor, "bytes")));
    const size_t n = json_dumpb(row, key, sizeof key - 1, JSON_COMPACT);
    key[n < sizeof key ? n : 0] = '\0';
    const json_t *known = json_object_get(numbers, key);
    if (known) {
        json_decref(row);
        return json_integer_value(known);
    }
    const json_int_t number = (json_int_t)json_array_size(classes);
    json_object_set_new(numbers, key, json_integer(number));
    json_array_append_new(classes, row);
    return number;
}

static void add_tensors(report_data *data, const json_t *plan)
{
    const json_t *tensors = json_object_get(plan, "tensors");
    json_t *classes = json_array(), *numbers = json_object();
    json_t *names = json_array(), *kinds = json_array();
    const size_t n = json_array_size(tensors);
    const size_t most = n < data->limits.tensors ? n : data->limits.tensors;
    for (size_t t = 0; t < most; t++) {
        const json_t *tensor = json_array_get(tensors, t);
        json_t *name = report_copy(json_object_get(tensor, "name"));
        json_array_append_new(names, name ? name : json_string(""));
        json_array_append_new(kinds, json_integer(class_of(data, classes, numbers, tensor)));
    }
    if (most < n)
        report_note(data, "%zu of %zu variables and inputs are left out: the last ones", n - most,
                    n);
    json_object_set_new(
        data->root, "tensors",
        json_pack("{s:o, s:o, s:o}", "name", names, "class", kinds, "classes", classes));
    json_decref(numbers);
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* Of gpt, run.json says which plan has run; a plan that was kept for another mesh is told apart. */
static bool is_of_run(report_data *data, const json_t *plan)
{
    const json_t *run = data->found->run;
    const char *mesh = text_of(run, "mesh");
    const double steps = number_of(json_object_get(run, "plan"), "steps");
    if (!run || (strcmp(mesh, text_of(plan, "mesh")) == 0 &&
                 strcmp(text_of(run, "layout"), text_of(plan, "layout")) == 0 &&
                 steps == number_of(plan, "steps")))
        return true;
    report_note(data,
                "the plan is of mesh %.100s and %.0f steps, and the run is on mesh %.100s with "
                "%.0f steps: the plan is left out",
                text_of(plan, "mesh"), number_of(plan, "steps"), mesh, steps);
    return false;
}

weft_status report_plan_part(report_data *data, weft_error *error)
{
    const json_t *plan = data->found->plan;
    if (!plan || !is_of_run(data, plan)) return WEFT_OK;
    const size_t n = json_array_size(json_object_get(plan, "step_list"));
    double *numbers = calloc(n + 1, sizeof *numbers);
    if (!numbers) return weft_fail_memory(error, n * sizeof *numbers);
    add_facts(data, plan);
    add_tensors(data, plan);
    const weft_status status = add_steps(data, plan, numbers, error);
    free(numbers);
    return status;
}
