/* predict: how long a run of a program takes on a machine (weft/research/predict.h). */
#include "prices.h"
#include "timeline.h"

#include "program.h"

enum { MAX_DRAWS = 10000 };

static weft_status check_options(const weft_program *program, const weft_predict_options *options,
                                 weft_error *error)
{
    const int n = weft_mesh_n_ranks(program->plan->mesh);
    if (options->slow_by < 0 || !(options->slow_by < 1e9))
        return weft_fail(
            error, WEFT_USAGE,
            "weft_plan_predict: slow_by is %g; it is by what the rank's work takes longer: 1.3",
            options->slow_by);
    if (options->host_ranks < 0)
        return weft_fail(error, WEFT_USAGE,
                         "weft_plan_predict: host_ranks is %d; a host has 1 or more, and 0 is as "
                         "the machine has them",
                         options->host_ranks);
    WEFT_GIVEN_RANGE(options->draws, 0, MAX_DRAWS, error);
    if (options->pipe_dim && !(options->pipe_idle >= 0 && options->pipe_idle <= 1))
        return weft_fail(error, WEFT_USAGE,
                         "weft_plan_predict: pipe_idle is %g; it is the part of its time that a "
                         "stage works on nothing: 0 to 1",
                         options->pipe_idle);
    if (options->slow_by > 0) WEFT_GIVEN_RANGE(options->slow_rank, 0, n - 1, error);
    return WEFT_OK;
}

weft_status weft_plan_predict_steps(const weft_program *program, const weft_machine_model *model,
                                    const weft_predict_options *options,
                                    weft_prediction *prediction, weft_predicted_step *steps,
                                    weft_error *error)
{
    static const weft_predict_options none;
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(model, error);
    WEFT_GIVEN(prediction, error);
    if (!options) options = &none;
    WEFT_TRY(check_options(program, options, error));
    return weft_timeline(program->plan, model, options, prediction, steps, error);
}

weft_status weft_plan_predict(const weft_program *program, const weft_machine_model *model,
                              const weft_predict_options *options, weft_prediction *prediction,
                              weft_error *error)
{
    return weft_plan_predict_steps(program, model, options, prediction, NULL, error);
}

weft_status weft_plan_prices(const weft_program *program, const weft_machine_model *model,
                             const weft_predict_options *options, weft_priced_exchange *prices,
                             int room, int *n, weft_error *error)
{
    static const weft_predict_options none;
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(model, error);
    WEFT_GIVEN(n, error);
    WEFT_GIVEN_RANGE(room, 0, INT32_MAX, error);
    if (room > 0) WEFT_GIVEN(prices, error);
    if (!options) options = &none;
    WEFT_TRY(check_options(program, options, error));
    return weft_timeline_prices(program->plan, model, options, prices, room, n, error);
}
