/* mnist: a perceptron learns handwritten digits: the whole program, on any mesh, under any layout.
 * Learns from the first 8000 images of the 10,000-image set, counts right answers on the last 2000.
 */
#include "../app.h"
#include "../rate.h"
#include "../run.h"
#include "weft/ops.h"
#include "weft/optim.h"

enum { LEARN = 8000, TEST = 2000 };
static const option options[] = {
    {"data", OPTION_TEXT, ".", "DIR", "Data", "folder of the t10k-* files, plain or .gz"},
    {"seed", OPTION_COUNT, "1", "N", "Data", "of initial weights and the order of images"},
    {"mesh", OPTION_TEXT, "", "AXES", "Where it runs", "as data:2,model:2; else data:N"},
    {"layout", OPTION_TEXT, "", "RULES", "Where it runs", "of dims batch pixel hidden digit"},
    {"zero", OPTION_CHOICE, "0", "STAGE", "Where it runs", "sharded storage", "0 1 2 3"},
    APP_EXTEND_OPTIONS("Where it runs"),
    {"hidden", OPTION_COUNT, "256", "N", "Model", "width of the hidden layer", NULL, 1},
    {"dtype", OPTION_CHOICE, "f32", "TYPE", "Model", "numbers to compute in", "f32 f64"},
    {"steps", OPTION_COUNT, "800", "N", "Learning", "800 of 100 images are 10 epochs", NULL, 1},
    {"batch", OPTION_COUNT, "100", "N", "Learning", "images a step", NULL, 1},
    {"optimizer", OPTION_TEXT, "adamw", "NAME", "Learning",
     "sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, adamw, adafactor, lamb, "
     "lion or muon"},
    {"rate", OPTION_REAL, "2e-3", "X", "Learning", "highest learning rate"},
    APP_RATE_OPTIONS("Learning", "1", "0"),
    {"run", OPTION_TEXT, "runs/mnist", "DIR", "Continuing", "folder for checkpoints"},
    APP_RUN_OPTIONS,
};
static const option_table table = {"mnist", "mnist [options]   learn digits\n", options,
                                   sizeof options / sizeof *options};

/* Two programs over the same variables: [0] learns, [1] counts right answers. */
typedef struct job {
    settings *settings;
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph[2];
    weft_program *program[2];
    weft_dataset *data[2];
    app_run run;
} job;

static void build(const job *j, int which, int64_t rows, weft_value *loss, weft_value *right)
{
    weft_graph *g = j->graph[which];
    const weft_dtype dtype = settings_is(j->settings, "dtype", "f64") ? WEFT_F64 : WEFT_F32;
    weft_dim batch = {"batch", rows}, pixel = {"pixel", 784}, digit = {"digit", 10};
    weft_dim hidden = {"hidden", settings_count(j->settings, "hidden")};
    weft_value image = weft_input(g, "image", dtype, WEFT_DIMS(batch, pixel));
    weft_value label = weft_input(g, "label", WEFT_I32, WEFT_DIMS(batch));
    weft_value w1 = weft_variable(g, "w1", dtype, WEFT_DIMS(pixel, hidden), weft_normal(0.0, 0.05));
    weft_value b1 = weft_variable(g, "b1", dtype, WEFT_DIMS(hidden), weft_constant_of(0.0));
    weft_value w2 = weft_variable(g, "w2", dtype, WEFT_DIMS(hidden, digit), weft_normal(0.0, 0.05));
    weft_value h = weft_relu(weft_add(weft_einsum(WEFT_DIMS(batch, hidden), image, w1), b1));
    weft_value logits = weft_einsum(WEFT_DIMS(batch, digit), h, w2);
    *loss = weft_mean(weft_cross_entropy(logits, label, digit));
    *right = weft_sum(WEFT_SCALAR, weft_cast(weft_equal(weft_argmax(logits, digit), label), dtype));
}

static weft_status open_data(job *j, int which, int64_t first, int64_t count, weft_error *error)
{
    char images[4096], labels[4096];
    const char *folder = settings_text(j->settings, "data");
    const uint64_t seed = (uint64_t)settings_count(j->settings, "seed");
    snprintf(images, sizeof images, "%s/t10k-images-idx3-ubyte", folder);
    snprintf(labels, sizeof labels, "%s/t10k-labels-idx1-ubyte", folder);
    if (!weft_idx_open(images, labels, first, count, which == 0, seed, &j->data[which], error))
        (void)!weft_dataset_start(j->data[which], j->program[which], error);
    return weft_world_agree(error); /* a file may be missing on one host only */
}

static weft_status learn(job *j, weft_error *error)
{
    const int64_t n_steps = settings_count(j->settings, "steps");
    const char *name = settings_text(j->settings, "optimizer");
    const weft_optimizer *rule = weft_optimizer_find(name, error);
    weft_value loss, right, rate;
    j->graph[0] = weft_graph_create((uint64_t)settings_count(j->settings, "seed"));
    if (!rule || !j->graph[0]) return rule ? weft_fail_memory(error, 0) : error->status;
    build(j, 0, settings_count(j->settings, "batch"), &loss, &right);
    WEFT_TRY(app_rate(j->settings, j->graph[0], weft_dtype_of(loss), n_steps + 1, &rate, error));
    weft_value update = weft_at(rule->name, WEFT_HERE,
                                rule->build(loss, &(weft_optimizer_options){.rate_value = rate}));
    WEFT_TRY(
        weft_compile(j->mesh, j->layout, WEFT_VALUES(loss, update), NULL, &j->program[0], error));
    WEFT_TRY(open_data(j, 0, 0, LEARN, error));
    const app_run_setup setup = {j->settings, j->program[0], j->data[0], n_steps};
    return app_run_all(&j->run, &setup, loss, error);
}

static weft_status test(job *j, weft_error *error)
{
    double count;
    weft_value loss, right;
    const weft_compile_options shared = {.share = j->program[0]};
    if (!(j->graph[1] = weft_graph_create(0))) return weft_fail_memory(error, 0);
    build(j, 1, TEST, &loss, &right);
    WEFT_TRY(weft_compile(j->mesh, j->layout, WEFT_VALUES(right), &shared, &j->program[1], error));
    WEFT_TRY(open_data(j, 1, LEARN, TEST, error));
    WEFT_TRY(weft_dataset_next(j->data[1], j->program[1], error));
    WEFT_TRY(weft_run(j->program[1], error));
    WEFT_TRY(weft_read_scalar(j->program[1], right, &count, error));
    if (weft_mesh_is_root(j->mesh)) printf("test accuracy %.2f %%\n", 100 * count / TEST);
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    job j = {.settings = settings_read(&table, n - 1, arguments + 1, &error)};
    if (j.settings && app_open(j.settings, &j.mesh, &j.layout, &error) == WEFT_OK)
        (void)!(learn(&j, &error) || j.run.is_stopped || test(&j, &error));
    app_run_settle(&j.run, &error);
    app_run_close(&j.run);
    for (int i = 1; i >= 0; i--) {
        weft_dataset_close(&j.data[i]);
        weft_program_destroy(&j.program[i]);
        weft_graph_destroy(&j.graph[i]);
    }
    const app_phase phase = j.run.is_running ? APP_RUNNING : APP_STARTING;
    const int code = app_close(&table, &j.settings, &j.mesh, &j.layout, phase, &error);
    return code == 0 && j.run.is_stopped ? APP_STOPPED : code;
}
