/* calibrate_test: what calibration writes is a whole machine file; kernels of a program that was named are found in it again, of
 * each kind of rank; and a rank's steps are timed alone, whatever the mesh. It checks that figures are there, not how large they are.
 * RANKS: 2
 */
#include "weft/research/predict.h"

#include "ops/planned.h"
#include "ops/predict/machine.h"
#include "test.h"

static weft_world world;

/* A training of two layers, of sizes that no axis divides. */
static void plan_training(planned *p, const char *mesh, const char *layout)
{
    const weft_dim batch = {"batch", 67}, in = {"in", 29}, hidden = {"hidden", 31},
                   out = {"out", 10};
    open_planned(p, mesh, layout);
    const weft_value x = weft_input(p->graph, "x", WEFT_F32, WEFT_DIMS(batch, in)),
                     label = weft_input(p->graph, "label", WEFT_I32, WEFT_DIMS(batch)),
                     w1 = weft_variable(p->graph, "w1", WEFT_F32, WEFT_DIMS(in, hidden),
                                        weft_normal(0, 0.05)),
                     w2 = weft_variable(p->graph, "w2", WEFT_F32, WEFT_DIMS(hidden, out),
                                        weft_normal(0, 0.05));
    const weft_value h = weft_relu(weft_einsum(WEFT_DIMS(batch, hidden), x, w1));
    const weft_value loss =
        weft_mean(weft_cross_entropy(weft_einsum(WEFT_DIMS(batch, out), h, w2), label, out));
    const weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
    plan(p, WEFT_VALUES(loss, update));
}

static int n_told;

static void count(void *context, const char *what, double part)
{
    n_told++;
    CHECK(context == &world && *what && part >= 0 && part <= 1);
}

static void check_load(const weft_load *load)
{
    CHECK(load->ranks >= 1 && load->lanes >= 1 && load->step_seconds > 0);
    CHECK(load->flop_rate[WEFT_F32].n > 0 && load->byte_rate.n > 0 && load->other_act > 0);
    CHECK(load->n_samples > 0);
    CHECK(load->run_seconds >= 0 && load->input_bytes_per_second > 0);
}

/* It says the same after it was written and read. */
static void check_file(const weft_machine_model *model)
{
    char *text = NULL;
    size_t bytes = 0;
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *again = NULL;
    FILE *file = open_memstream(&text, &bytes);
    CHECK_OK(weft_machine_model_write(model, file, &error), error);
    fclose(file);
    CHECK_OK(weft_machine_model_parse(text, bytes, "written.json", &again, &error), error);
    CHECK_EQ_INT(weft_machine_model_rates(again, NULL, 0),
                 weft_machine_model_rates(model, NULL, 0));
    weft_machine_model_destroy(&again);
    free(text);
}

/* Both kinds of work beside exchanges of the innermost level. */
static void check_slows(const weft_machine_model *model)
{
    int n[2] = {0, 0};
    for (int i = 0; i < model->n_slows; i++) {
        const weft_slow *slow = &model->slows[i];
        CHECK(slow->cpu >= 0 && slow->cpu <= 1);
        n[strcmp(slow->work, "loop") == 0] += slow->level == 0;
    }
    CHECK(n[0] > 0 && n[0] == n[1]);
    CHECK(model->levels[0].late_seconds >= 0);
}

/* Every step that computes has the seconds that were measured of it. */
static void check_known(const planned *p, const weft_machine_model *model)
{
    const int n = weft_plan_n_steps(p->program);
    weft_error error = WEFT_NO_ERROR;
    weft_prediction prediction;
    weft_predicted_step *steps = calloc((size_t)n, sizeof *steps);
    int n_known = 0;
    CHECK_OK(weft_plan_predict_steps(p->program, model, NULL, &prediction, steps, &error), error);
    for (int s = 0; s < n; s++) {
        weft_planned_step step;
        CHECK_OK(weft_plan_step_at(p->program, s, 0, &step, &error), error);
        if (step.kind != WEFT_STEP_KERNEL && step.kind != WEFT_STEP_LOOP) continue;
        CHECK_EQ_INT(steps[s].source, WEFT_TIME_MEASURED);
        n_known++;
    }
    CHECK(n_known > 5);
    free(steps);
}

/* To the root's model; the other processes have none. What was there stays. */
static void check_added(const weft_calibrate_options *options, const weft_machine_model *model)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *more = NULL;
    weft_calibrate_options again = *options;
    again.base = world.process == 0 ? model : NULL;
    if (!CHECK_OK(weft_calibrate(&world, &again, &more, &error), error)) return;
    if (world.process == 0) {
        CHECK_EQ_INT(weft_machine_model_rates(more, NULL, 0),
                     weft_machine_model_rates(model, NULL, 0));
        for (int l = 0; l < model->n_loads; l++)
            CHECK(more->loads[l].n_samples >=
                  model->loads[l].n_samples); /* kinds that had no time */
    }
    weft_machine_model_destroy(&more);
}

static void test_a_calibrated_machine_knows_the_kernels_of_a_program(void)
{
    planned p;
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    plan_training(&p, "data:4", "batch:data");
    const weft_program *const programs[] = {p.program};
    const weft_calibrate_options options = {.name = "this one",
                                            .programs = programs,
                                            .n_programs = 1,
                                            .seconds = 0.1,
                                            .noisy = true,
                                            .progress = count,
                                            .context = &world};
    if (CHECK_OK(weft_calibrate(&world, &options, &model, &error), error)) {
        weft_prediction prediction;
        CHECK(n_told > 5 && strcmp(weft_machine_model_name(model), "this one") == 0);
        for (int l = 0; l < model->n_loads; l++)
            check_load(&model->loads[l]);
        check_slows(model);
        check_file(model);
        CHECK(model->n_exchanges > 0 || world.n_processes == 1);
        check_known(&p, model);
        CHECK_OK(weft_plan_predict(p.program, model, NULL, &prediction, &error), error);
        CHECK(prediction.seconds > 0 && prediction.seconds < 100);
        CHECK_EQ_INT(prediction.n_kinds, 2);
        check_added(&options, model);
    }
    weft_machine_model_destroy(&model);
    close_planned(&p);
}

/* Every step that computes takes some time, on every rank of a mesh that nobody has; exchanges take none. */
static void check_alone(int lanes)
{
    static const struct {
        const char *mesh, *layout;
    } cases[] = {
        {"data:64,model:8", "batch:data,hidden:model"}, {"one:1", ""}, {"data:5", "batch:data"}};
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = WEFT_NO_ERROR;
    weft_mesh *host = NULL;
    weft_lanes_choose(lanes);
    CHECK_OK(weft_mesh_create(&alone, "rank:2", &host, &error), error);
    weft_lanes_choose(0);
    CHECK_EQ_INT(weft_mesh_lanes(host), lanes);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        planned p;
        plan_training(&p, cases[c].mesh, cases[c].layout);
        const int n = weft_plan_n_steps(p.program), last = weft_mesh_n_ranks(p.mesh) - 1;
        double *seconds = calloc((size_t)n, sizeof *seconds),
               *spread = calloc((size_t)n, sizeof *spread);
        for (int rank = 0; rank <= last; rank += last > 0 ? last : 1) {
            CHECK_OK(weft_plan_measure(p.program, rank, host, 3, seconds, spread, &error), error);
            for (int s = 0; s < n; s++) {
                weft_planned_step step;
                CHECK_OK(weft_plan_step_at(p.program, s, rank, &step, &error), error);
                const bool exchanges = step.kind == WEFT_STEP_CONVERT && step.axes != 0;
                CHECK(exchanges ? seconds[s] == 0 : seconds[s] > 0 && seconds[s] < 10);
                CHECK(spread[s] >= 0);
            }
        }
        free(seconds);
        free(spread);
        close_planned(&p);
    }
    (void)!weft_mesh_destroy(&host);
}

static void test_steps_are_timed_alone(void)
{
    for (int lanes = 1; lanes <= 5; lanes += 2)
        check_alone(lanes);
}

static void test_wrong_calls(void)
{
    planned p;
    double seconds[1000];
    weft_error error = WEFT_NO_ERROR;
    plan_training(&p, "data:2", "batch:data");
    CHECK_EQ_INT(weft_plan_measure(p.program, 0, p.mesh, 3, seconds, NULL, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "of the mesh data:2, 0 ranks are of this process");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_plan_measure(p.program, 2, p.mesh, 3, seconds, NULL, &error), WEFT_USAGE);
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_plan_measure(p.program, 0, p.mesh, 0, seconds, NULL, &error), WEFT_USAGE);
    close_planned(&p);
}

int main(void)
{
    weft_error error = WEFT_NO_ERROR;
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    RUN(test_a_calibrated_machine_knows_the_kernels_of_a_program);
    RUN(test_steps_are_timed_alone);
    RUN(test_wrong_calls);
    weft_world_close();
    return weft_test_report();
}
