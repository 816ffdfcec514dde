/* held: data that nothing is learned from, and the loss of it. See held.h. */
#include "held.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predict.h"
#include "stop.h"
#include "weft/collectives.h"
#include "weft/number.h"
#include "weft/research/plan.h"

/* ---- what is asked for -------------------------------------------------------------------------- */

static bool has_option(const settings *s, const char *name)
{
    const option *o;
    for (int i = 0; (o = settings_option(s, i)) != NULL; i++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

static bool names_data(const settings *s)
{
    return *settings_text(s, "eval-data") != '\0' || settings_real(s, "eval-share") > 0;
}

static bool asks_to_look(const settings *s)
{
    return settings_count(s, "eval-every") > 0 || settings_flag(s, "best");
}

/* Where no data can be named, it is drawn. */
bool app_held_is_wanted(const settings *s)
{
    if (has_option(s, "eval-data")) return names_data(s);
    return has_option(s, "eval-every") && asks_to_look(s);
}

weft_status app_held_check(const settings *s, weft_error *error)
{
    if (!has_option(s, "eval-data")) return WEFT_OK;
    const double share = settings_real(s, "eval-share");
    const char *path = settings_text(s, "eval-data");
    if (share >= 1)
        return weft_fail(error, WEFT_USAGE,
                         "--eval-share %g leaves nothing to learn from; it must be below 1, as "
                         "0.05 for a twentieth",
                         share);
    if (share > 0 && *path)
        return weft_fail(error, WEFT_USAGE,
                         "--eval-data %.200s and --eval-share %g: both say what is held out; leave "
                         "one of the two away",
                         path, share);
    if (names_data(s) || !(asks_to_look(s) || settings_count(s, "eval-steps") > 0)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s, and nothing is held out: name data with --eval-data, or hold out a part "
                     "of --data with --eval-share 0.05",
                     settings_flag(s, "best")              ? "--best"
                     : settings_count(s, "eval-every") > 0 ? "--eval-every"
                                                           : "--eval-steps");
}

weft_status app_held_split(const settings *s, bool is_held, weft_dataset *data, weft_error *error)
{
    const double share = settings_real(s, "eval-share");
    const int64_t n = weft_dataset_samples(data), held = (int64_t)(share * (double)n);
    if (share <= 0) return WEFT_OK;
    if (held < 1)
        return weft_fail(
            error, WEFT_USAGE,
            "--eval-share %g of %lld samples is less than one; give a larger share, or "
            "name data with --eval-data",
            share, (long long)n);
    return is_held ? weft_dataset_take(data, n - held, held, error)
                   : weft_dataset_take(data, 0, n - held, error);
}

/* "--eval-data book.txt", "--eval-share 0.05 of --data": what the samples are of. */
static void name_source(const settings *s, char *text, size_t room)
{
    const bool has_data = has_option(s, "eval-data");
    if (has_data && *settings_text(s, "eval-data"))
        snprintf(text, room, "--eval-data %.200s", settings_text(s, "eval-data"));
    else if (has_data)
        snprintf(text, room, "--eval-share %g of --data", settings_real(s, "eval-share"));
    else
        snprintf(text, room, "what is held out");
}

/* Samples at the end that make no whole batch are left out. */
weft_status app_held_count(app_held *held, const settings *s, weft_error *error)
{
    char text[24], source[240];
    const long long n = weft_dataset_samples(held->data), asked = settings_count(s, "eval-steps");
    name_source(s, source, sizeof source);
    held->n_batches = n / held->batch;
    if (held->n_batches == 0)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %lld samples, and a batch takes %lld; hold out more, or give a "
                         "smaller --batch",
                         source, n, (long long)held->batch);
    if (asked > held->n_batches)
        return weft_fail(error, WEFT_USAGE,
                         "--eval-steps %lld: %s has %lld batches of %lld; give so many at most, or "
                         "0 for all",
                         asked, source, (long long)held->n_batches, (long long)held->batch);
    if (asked > 0) held->n_batches = asked;
    snprintf(text, sizeof text, "%lld", (long long)(held->n_batches * held->batch));
    return weft_dataset_fact(held->data, "looked at", text, error);
}

/* ---- looking ------------------------------------------------------------------------------------ */

weft_status app_held_compile(app_held *held, weft_mesh *mesh, weft_layout *layout,
                             const weft_compile_options *options, weft_error *error)
{
    const weft_value values[] = {held->loss, held->right};
    const weft_status status =
        weft_compile(mesh, layout, (weft_values){values, held->right.id != 0 ? 2 : 1}, options,
                     &held->program, error);
    if (weft_mesh_n_local(mesh) == 0) return status;
    if (status == WEFT_OK) (void)!weft_dataset_start(held->data, held->program, error);
    return weft_world_agree(error);
}

bool app_held_is_due(const app_held *held, const settings *s, int64_t step, int64_t last)
{
    if (!held || !held->data || step == 0) return false;
    const int64_t every = settings_count(s, "eval-every");
    return step == last || (every > 0 && step % every == 0);
}

static weft_status one_batch(app_held *held, double sums[2], weft_error *error)
{
    double loss, right = 0;
    WEFT_TRY(weft_dataset_next(held->data, held->program, error));
    WEFT_TRY(weft_run(held->program, error));
    WEFT_TRY(weft_read_scalar(held->program, held->loss, &loss, error));
    if (held->right.id != 0) WEFT_TRY(weft_read_scalar(held->program, held->right, &right, error));
    sums[0] += loss;
    sums[1] += right;
    return WEFT_OK;
}

weft_status app_held_look(app_held *held, app_held_numbers *numbers, weft_error *error)
{
    double sums[2] = {0};
    bool is_cut = false;
    *numbers = (app_held_numbers){.loss = NAN, .accuracy = NAN};
    weft_dataset_seek(held->data, 0);
    for (int64_t i = 0; i < held->n_batches && !is_cut; i++) {
        WEFT_TRY(one_batch(held, sums, error));
        WEFT_TRY(weft_world_any(stop_watch_is_asked(), &is_cut, error));
    }
    if (is_cut) return WEFT_OK;
    numbers->is_there = true;
    numbers->loss = sums[0] / (double)held->n_batches;
    if (held->right.id != 0) numbers->accuracy = sums[1] / (double)(held->n_batches * held->batch);
    return WEFT_OK;
}

/* ---- the plan ----------------------------------------------------------------------------------- */

/* Seconds of a batch on the machine that --machine names; below 0: it names none. */
static weft_status predict(const app_held *held, const settings *s, double *seconds,
                           weft_error *error)
{
    weft_machine_model *model;
    weft_prediction prediction;
    *seconds = -1;
    if (*settings_text(s, "machine") == '\0') return WEFT_OK;
    WEFT_TRY(weft_machine_model_read(settings_text(s, "machine"), &model, error));
    const weft_status status = weft_plan_predict(held->program, model, NULL, &prediction, error);
    if (status == WEFT_OK) *seconds = prediction.seconds;
    weft_machine_model_destroy(&model);
    return status;
}

/* Of a look; 0: not known, as the data is not there. */
static int64_t batches_of(const app_held *held, const settings *s)
{
    return held->n_batches > 0 ? held->n_batches : settings_count(s, "eval-steps");
}

weft_status app_held_plan(const app_held *held, const settings *s, weft_error *error)
{
    char batches[48] = "", time[WEFT_TIME_TEXT], takes[160] = "";
    weft_usage usage;
    double seconds;
    if (!held->program) return WEFT_OK;
    const int64_t n = batches_of(held, s);
    WEFT_TRY(weft_plan_usage(held->program, 0, &usage, error));
    WEFT_TRY(predict(held, s, &seconds, error));
    if (n > 0) snprintf(batches, sizeof batches, "%lld batches ", (long long)n);
    if (seconds >= 0)
        snprintf(takes, sizeof takes, ", predicted %s%s",
                 weft_time_text(seconds * (double)(n > 0 ? n : 1), time), n > 0 ? "" : " a batch");
    printf(
        "\nheld-out data: a look is %sof %lld, %.2f GFLOP a rank and batch%s; rank 0 has %.1f MiB "
        "more for it\n",
        batches, (long long)held->batch, usage.flops / 1e9, takes,
        (double)usage.arena_bytes / 1048576.0);
    return WEFT_OK;
}

weft_status app_held_json(const app_held *held, const settings *s, json_t **json, weft_error *error)
{
    weft_usage usage;
    double seconds;
    *json = NULL;
    if (!held || !held->program) return WEFT_OK;
    const int64_t n = batches_of(held, s);
    WEFT_TRY(weft_plan_usage(held->program, 0, &usage, error));
    WEFT_TRY(predict(held, s, &seconds, error));
    *json = json_pack("{s:I, s:o, s:f, s:I, s:o}", "batch", (json_int_t)held->batch, "batches",
                      n > 0 ? json_integer(n) : json_null(), "flops", usage.flops, "arena_bytes",
                      (json_int_t)usage.arena_bytes, "batch_seconds",
                      seconds >= 0 ? json_real(seconds) : json_null());
    return *json ? WEFT_OK : weft_fail_memory(error, 0);
}

void app_held_close(app_held *held)
{
    weft_dataset_close(&held->data);
    weft_program_destroy(&held->program);
    weft_graph_destroy(&held->graph);
}
