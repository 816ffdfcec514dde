/* predict_time: how long it takes to predict a plan: ./run bench --predict-time [TIMES].
 *
 * Plans are of meshes without ranks. The machine's file knows every kernel of each plan, with a spread, as after `weft calibrate
 * --for`; it has been read. Of TIMES predictions (5) the fastest counts. All of it is done by one thread.
 */
#include <math.h>
#include <stdlib.h>

#include "apps/gpt/model.h"
#include "bench.h"
#include "ops/predict/machine.h"
#include "ops/run/program.h"
#include "weft/optim.h"

enum { DRAWS = 200 };

typedef struct row {
    const char *what, *mesh, *layout, *machine;
    gpt_shape shape;
} row;

#define TWO_D "batch:data,hidden:model,heads:model,vocab:model"
static const row rows[] = {
    {"gpt, 184 layers, 8 ranks",
     "data:2,model:4",
     TWO_D,
     "h100x8",
     {.batch = 16,
      .seq = 64,
      .layers = 184,
      .width = 256,
      .heads = 8,
      .hidden = 1024,
      .vocab = 256,
      .dtype = WEFT_F32}},
    {"gpt, 96 layers, 65,536 ranks",
     "data:8192,model:8",
     TWO_D,
     "h100x8",
     {.batch = 8192,
      .seq = 2048,
      .layers = 96,
      .width = 12288,
      .heads = 96,
      .hidden = 49152,
      .vocab = 51200,
      .dtype = WEFT_F32,
      .computes = WEFT_BF16}},
    {"the same, blocks that do not divide",
     "data:8190,model:8",
     TWO_D,
     "h100x8",
     {.batch = 8192,
      .seq = 2048,
      .layers = 96,
      .width = 12288,
      .heads = 92,
      .hidden = 49150,
      .vocab = 51203,
      .kv_heads = 92,
      .dtype = WEFT_F32,
      .computes = WEFT_BF16}},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* A step of each kind with its seconds by the machine's rates, as if it had been measured with a spread of a twentieth. */
static weft_status know_kernels(const weft_plan *plan, weft_machine_model *model, weft_error *error)
{
    weft_load *load = &model->loads[0];
    for (uint32_t k = 0; k < plan->likes.n_steps; k++) {
        const weft_step *step = &plan->steps[plan->likes.steps[k]];
        weft_workload work;
        weft_time_source source;
        weft_step_workload(plan, step, 0, &work);
        if (!work.name) continue;
        const double seconds = weft_work_seconds(load, NULL, &work, &source);
        WEFT_TRY(weft_machine_add_sample(model, load, &work, seconds, 0.05, error));
    }
    return WEFT_OK;
}

typedef struct times {
    double predict, draws, prices;
} times;

static weft_status measure(const weft_program *program, const weft_machine_model *model, int n,
                           times *best, weft_prediction *prediction, weft_error *error)
{
    static const weft_predict_options drawn = {.draws = DRAWS};
    *best = (times){INFINITY, INFINITY, INFINITY};
    for (int i = 0; i < n; i++) {
        int n_prices;
        const double begin = bench_now();
        WEFT_TRY(weft_plan_predict(program, model, NULL, prediction, error));
        const double predicted = bench_now();
        WEFT_TRY(weft_plan_predict(program, model, &drawn, prediction, error));
        const double all_drawn = bench_now();
        WEFT_TRY(weft_plan_prices(program, model, NULL, NULL, 0, &n_prices, error));
        best->predict = fmin(best->predict, predicted - begin);
        best->draws = fmin(best->draws, all_drawn - predicted);
        best->prices = fmin(best->prices, bench_now() - all_drawn);
    }
    return WEFT_OK;
}

static weft_status measure_row(const row *r, weft_program *program, double planned, int n,
                               weft_error *error)
{
    weft_machine_model *model;
    weft_prediction p;
    times best;
    WEFT_TRY(weft_machine_model_read(r->machine, &model, error));
    weft_status status = know_kernels(program->plan, model, error);
    if (status == WEFT_OK) status = measure(program, model, n, &best, &p, error);
    if (status == WEFT_OK)
        printf("%-38s %6d %6d %8.2f %8.2f %8.2f %8.0f\n", r->what, (int)weft_plan_n_steps(program),
               p.n_kinds, 1e3 * best.predict, 1e3 * best.draws, 1e3 * best.prices, 1e3 * planned);
    weft_machine_model_destroy(&model);
    return status;
}

static weft_status plan_row(const row *r, int n, weft_error *error)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    gpt_model gpt;
    WEFT_TRY(weft_mesh_plan(r->mesh, &mesh, error));
    WEFT_TRY(weft_layout_create(r->layout, &layout, error));
    weft_graph *graph = weft_graph_create(1);
    const weft_value loss = gpt_loss(&r->shape, graph, &gpt);
    const weft_value update =
        weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3, .clip = 1.0});
    const double begin = bench_now();
    weft_status status =
        weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, error);
    if (status == WEFT_OK) status = measure_row(r, program, bench_now() - begin, n, error);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    return status;
}

int main(int n, char **arguments)
{
    weft_error error = WEFT_NO_ERROR;
    weft_status status = WEFT_OK;
    const int n_times = n > 1 ? atoi(arguments[1]) : 5;
    const char *only = n > 2 ? arguments[2] : NULL;
    printf("%-38s %6s %6s %8s %8s %8s %8s\n", "milliseconds", "steps", "kinds", "predict",
           "200 draws", "prices", "plan");
    for (int r = 0; r < N_ROWS && status == WEFT_OK; r++)
        if (!only || atoi(only) == r) status = plan_row(&rows[r], n_times, &error);
    return bench_end("predict_time", status, &error);
}
