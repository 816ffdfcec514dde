/* round_machine.h: a machine with round numbers, on which seconds can be worked out with a pencil. */
#ifndef TEST_ROUND_MACHINE_H
#define TEST_ROUND_MACHINE_H

#include "weft/research/predict.h"

#include "ops/planned.h"
#include "ops/predict/machine.h"
#include "test.h"

/* 1 flop takes a nanosecond, 1 byte through a link a microsecond; memory takes nothing. %s: the share of the cores, more
 * levels, exchanges. */
static const char machine_text[] =
    "{\"weft_machine\": 1, \"name\": \"round\", \"processor\": \"abacus\", \"made\": \"by hand\", "
    "\"cores\": 64, \"spread\": 0,"
    "\"loads\": [{\"ranks\": 1, \"lanes\": 1, \"step_seconds\": 0, \"flops_per_second\": {\"f32\": "
    "[[1, 1e9]]},"
    "\"bytes_per_second\": [[1, 1e18]], \"act_seconds\": {\"other\": 0}, \"kernels\": [%s]}],"
    "\"levels\": [{\"name\": \"near\", \"ranks\": %s, \"latency_seconds\": 0, "
    "\"bytes_per_second\": 1e6, \"cpu\": %s}%s],"
    "\"exchanges\": [%s]}";

static inline weft_machine_model *machine(const char *kernels, const char *ranks, const char *cpu,
                                          const char *levels, const char *exchanges)
{
    char text[4000];
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    snprintf(text, sizeof text, machine_text, kernels, ranks, cpu, levels, exchanges);
    CHECK_OK(weft_machine_model_parse(text, strlen(text), "round.json", &model, &error), error);
    return model;
}

static inline weft_machine_model *plain_machine(const char *cpu)
{
    return machine("", "0", cpu, "", "");
}

static inline weft_prediction predict(const planned *p, weft_machine_model *model,
                                      const weft_predict_options *options)
{
    weft_error error = WEFT_NO_ERROR;
    weft_prediction prediction = {0};
    CHECK_OK(weft_plan_predict(p->program, model, options, &prediction, &error), error);
    weft_machine_model_destroy(&model);
    return prediction;
}

static inline weft_value input(planned *p, const char *name, weft_shape shape)
{
    return weft_input(p->graph, name, WEFT_F32, shape);
}

/* x [batch, in] and y [batch, out] make [in, out], summed over batch: 2 batch in out flops. */
static inline weft_value product(planned *p, const char *x, const char *y, int64_t batch,
                                 int64_t in, int64_t out)
{
    return weft_einsum(
        WEFT_DIMS(((weft_dim){"in", in}), ((weft_dim){"out", out})),
        input(p, x, WEFT_DIMS(((weft_dim){"batch", batch}), ((weft_dim){"in", in}))),
        input(p, y, WEFT_DIMS(((weft_dim){"batch", batch}), ((weft_dim){"out", out}))));
}

/* On two ranks: the sum of the first product, of 240 bytes, is finished while the second, of 250 x 400 x 1000 on each rank, is
 * computed. */
static inline void plan_beside(planned *p)
{
    const weft_dim batch = {"batch", 500}, k = {"k", 400}, out = {"out", 1000};
    open_planned(p, "data:2", "batch:data");
    const weft_value small = product(p, "x", "y", 8, 10, 6);
    const weft_value large = weft_einsum(WEFT_DIMS(batch, out), input(p, "u", WEFT_DIMS(batch, k)),
                                         input(p, "v", WEFT_DIMS(k, out)));
    plan(p, WEFT_VALUES(small, large));
}

#endif
