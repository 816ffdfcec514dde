/* foretold_test: what a prediction tells beside its seconds, by hand: queues, axes, bubbles, memory, quantiles; and that it is the same
 * bits each time, on any number of threads.
 */
#include <pthread.h>
#include <stdlib.h>

#include "ops/round_machine.h"
#include "weft/philox.h"

/* A machine whose probes differed by `spread`, and with these kernels. */
static weft_machine_model *restless(const char *spread, const char *kernels)
{
    char text[4000], wanted[40];
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    snprintf(text, sizeof text, machine_text, kernels, "0", "0", "", "");
    snprintf(wanted, sizeof wanted, "\"spread\": %s,\"loads\"", spread);
    char *at = strstr(text, "\"spread\": 0,\"loads\""), *after = at + 19;
    CHECK(at != NULL);
    memmove(at + strlen(wanted), after, strlen(after) + 1);
    memcpy(at, wanted, strlen(wanted));
    CHECK_OK(weft_machine_model_parse(text, strlen(text), "round.json", &model, &error), error);
    return model;
}

/* Two products: the sum of the first, 240 us, goes on beside the second, 0.2 s, and takes a quarter of the cores. */
static void test_queues_are_busy_and_wait(void)
{
    planned p;
    plan_beside(&p);
    const weft_prediction t = predict(&p, plain_machine("0.25"), NULL);
    CHECK_EQ_INT(t.n_queues, 2);
    CHECK_CLOSE(t.queues[0].busy_seconds, 480e-9 + 0.2 + 60e-6, 1e-9);
    CHECK_CLOSE(t.queues[0].waiting_seconds, 0, 1e-12);
    CHECK_CLOSE(t.queues[1].busy_seconds, 240e-6, 1e-12);
    CHECK_CLOSE(t.queues[1].exposed_seconds, 60e-6, 1e-9);
    CHECK_CLOSE(t.axes[0].bytes, 240, 1e-12);
    CHECK_CLOSE(t.axes[0].seconds, 240e-6, 1e-12);
    CHECK_CLOSE(weft_predicted_hidden(t.axes[0].seconds, t.axes[0].exposed_seconds), 0.75, 1e-5);
    close_planned(&p);
}

/* Nothing is beside the exchange, so the rank waits for all of it. */
static void test_what_is_not_hidden_is_waited_for(void)
{
    planned p;
    open_planned(&p, "data:2,model:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
    const weft_prediction t = predict(&p, plain_machine("0"), NULL);
    CHECK_EQ_INT(t.n_axes, 2);
    CHECK_CLOSE(t.queues[0].busy_seconds, 480e-9, 1e-12);
    CHECK_CLOSE(t.queues[0].waiting_seconds, 240e-6, 1e-12);
    CHECK_CLOSE(t.axes[0].exposed_seconds, 240e-6, 1e-12);
    CHECK(t.axes[1].seconds == 0 && t.axes[1].bytes == 0);
    CHECK(weft_predicted_hidden(t.axes[0].seconds, t.axes[0].exposed_seconds) == 0);
    CHECK(weft_predicted_hidden(0, 1) == 0 && weft_predicted_hidden(2, 0) == 1);
    close_planned(&p);
}

/* Work of stages that is idle for a third of the time: 2 x 10 x 20 x 5 flops, three stages. */
static void test_bubbles_are_a_part_of_the_stages_work(void)
{
    const weft_dim stage = {"stage", 3}, batch = {"batch", 10}, in = {"in", 20}, out = {"out", 5};
    planned p;
    open_planned(&p, "pipe:3", "stage:pipe");
    const weft_value staged =
        weft_einsum(WEFT_DIMS(stage, in, out), input(&p, "x", WEFT_DIMS(stage, batch, in)),
                    input(&p, "y", WEFT_DIMS(stage, batch, out)));
    plan(&p, WEFT_VALUES(staged, product(&p, "u", "v", 10, 20, 5)));
    const weft_predict_options pipe = {.pipe_dim = "stage", .pipe_size = 3, .pipe_idle = 0.25};
    const weft_predict_options other = {.pipe_dim = "stage", .pipe_size = 4, .pipe_idle = 0.25};
    CHECK_CLOSE(predict(&p, plain_machine("0"), &pipe).bubble_seconds, 500e-9, 1e-12);
    CHECK(predict(&p, plain_machine("0"), &other).bubble_seconds == 0);
    CHECK(predict(&p, plain_machine("0"), NULL).bubble_seconds == 0);
    close_planned(&p);
}

/* Steps as they are told are the whole, and their memory is what is laid out. */
static void test_steps_add_up(void)
{
    planned p;
    double elapsed = 0, exposed = 0;
    int64_t most = 0;
    weft_error error = WEFT_NO_ERROR;
    weft_prediction t;
    weft_usage usage;
    open_planned(&p, "data:2", "batch:data");
    const weft_value made = product(&p, "x", "y", 8, 10, 6);
    plan(&p, WEFT_VALUES(weft_relu(weft_add(made, weft_square(made)))));
    const int n = weft_plan_n_steps(p.program);
    weft_predicted_step *steps = calloc((size_t)n, sizeof *steps);
    weft_machine_model *model = plain_machine("0");
    CHECK_OK(weft_plan_predict_steps(p.program, model, NULL, &t, steps, &error), error);
    CHECK_OK(weft_plan_usage(p.program, 0, &usage, &error), error);
    for (int s = 0; s < n; s++) {
        elapsed += steps[s].elapsed_seconds;
        exposed += steps[s].exposed_seconds;
        if (steps[s].alive_bytes > most) most = steps[s].alive_bytes;
        CHECK(steps[s].times == 1);
    }
    CHECK_CLOSE(elapsed, t.seconds, 1e-12);
    CHECK_CLOSE(exposed, t.exposed_seconds, 1e-12);
    CHECK(most > 0 && most == t.peak_bytes && most == steps[t.fullest].alive_bytes);
    CHECK(t.arena_bytes == usage.arena_bytes && most <= t.arena_bytes);
    free(steps);
    weft_machine_model_destroy(&model);
    close_planned(&p);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What a rank is slower by is drawn once a run; of `ranks` the slowest counts. */
static void find_quantiles(double ranks, double *median, double *slow)
{
    double drawn[200];
    for (uint32_t d = 0; d < 200; d++) {
        uint32_t words[4];
        weft_philox((weft_philox_key){20, 0, d}, 0, words);
        drawn[d] = 1 + 0.1 * pow(weft_philox_unit(words[0]), 1 / ranks);
    }
    qsort(drawn, 200, sizeof *drawn, ascending);
    *median = drawn[99];
    *slow = drawn[189];
}

static void test_quantiles_are_those_of_the_draws(void)
{
    const weft_predict_options options = {.draws = 200};
    for (int ranks = 1; ranks <= 64; ranks *= 64) {
        char mesh[20];
        double median, slow;
        planned p;
        snprintf(mesh, sizeof mesh, "data:%d", ranks);
        open_planned(&p, mesh, "");
        plan(&p, WEFT_VALUES(product(&p, "x", "y", 10, 20, 5)));
        const weft_prediction t = predict(&p, restless("0.1", ""), &options);
        find_quantiles(ranks, &median, &slow);
        CHECK_CLOSE(t.seconds, 2000e-9, 1e-12);
        CHECK_CLOSE(t.median_seconds, 2000e-9 * median, 1e-12);
        CHECK_CLOSE(t.slow_seconds, 2000e-9 * slow, 1e-12);
        CHECK(ranks == 1 ? median < 1.06 : median > 1.09);
        close_planned(&p);
    }
}

static void test_without_spread_all_draws_are_the_run(void)
{
    const weft_predict_options options = {.draws = 20};
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
    const weft_prediction t = predict(&p, plain_machine("0"), &options);
    CHECK(t.median_seconds == t.seconds && t.slow_seconds == t.seconds);
    CHECK(predict(&p, plain_machine("0"), NULL).median_seconds == 0);
    close_planned(&p);
}

/* ---- the same bits ------------------------------------------------------------------------------------ */

typedef struct foretelling {
    const planned *p;
    const weft_machine_model *model;
    weft_prediction prediction;
    weft_status status;
} foretelling;

static void *foretell(void *argument)
{
    foretelling *f = argument;
    const weft_predict_options options = {.draws = 50, .slow_rank = 1, .slow_by = 1.5};
    f->status = weft_plan_predict(f->p->program, f->model, &options, &f->prediction, NULL);
    return NULL;
}

static void test_predictions_are_the_same_bits(void)
{
    planned p;
    pthread_t threads[4];
    foretelling all[5];
    weft_machine_model *model = restless("0.1", "");
    open_planned(&p, "data:4", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 401, 10, 6), product(&p, "u", "v", 99, 7, 5)));
    memset(all, 0, sizeof all);
    for (int i = 0; i < 5; i++)
        all[i].p = &p, all[i].model = model;
    foretell(&all[4]);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, foretell, &all[i]) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ_INT(all[i].status, WEFT_OK);
        CHECK(memcmp(&all[i].prediction, &all[4].prediction, sizeof all[4].prediction) == 0);
    }
    CHECK(all[4].prediction.slow_seconds > all[4].prediction.median_seconds);
    weft_machine_model_destroy(&model);
    close_planned(&p);
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static char *printed(const planned *p, const char *cpu, bool is_json)
{
    char *text = NULL;
    size_t bytes = 0;
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = plain_machine(cpu);
    FILE *file = open_memstream(&text, &bytes);
    if (is_json)
        CHECK_OK(weft_predict_json(p->program, model, NULL, file, &error), error);
    else
        CHECK_OK(weft_predict_print(p->program, model, NULL, true, file, &error), error);
    fclose(file);
    weft_machine_model_destroy(&model);
    return text;
}

static void test_it_is_told_as_text(void)
{
    static const char *const lines[] = {"time on round (abacus): 240 us a step",
                                        "computing 0.48 us, exchanges 240 us",
                                        "  compute            0.48 us    240 us      0 us",
                                        "  data                240 us      0 us    240 us",
                                        "  data                      240    240 us   0.0 %",
                                        "rates     einsum at",
                                        "memory of temporaries from step to step",
                                        "all_reduce over data, einsum at"};
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
    char *text = printed(&p, "0", false);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        CHECK_TEXT(text, lines[i]);
    free(text);
    text = printed(&p, "0", true);
    CHECK_TEXT(text, "\"prediction\": {");
    CHECK_TEXT(text, "\"alive_bytes\": ");
    free(text);
    close_planned(&p);
}

int main(void)
{
    RUN(test_queues_are_busy_and_wait);
    RUN(test_what_is_not_hidden_is_waited_for);
    RUN(test_bubbles_are_a_part_of_the_stages_work);
    RUN(test_steps_add_up);
    RUN(test_quantiles_are_those_of_the_draws);
    RUN(test_without_spread_all_draws_are_the_run);
    RUN(test_predictions_are_the_same_bits);
    RUN(test_it_is_told_as_text);
    return weft_test_report();
}
