/* reference_test: losses, gradients and ten optimizer steps of an MLP and a transformer against
 * PyTorch in float64.
 *
 * The tables mlp.txt and transformer.txt come from torch_reference.py, which tells what their lines
 * mean and uses the same formulas for weights and inputs.
 */
#include "apps/gpt/model.h"
#include "oracle.h"
#include "weft/autodiff.h"
#include "weft/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { STEPS = 10, MAX_VARIABLES = 64 };

/* A model: its inputs filled for a step, its loss. */
typedef struct model {
    const char *table;
    weft_value (*build)(weft_graph *graph, weft_value inputs[2]);
    double (*element)(int input, int64_t i, int step);
} model;

typedef struct job {
    const model *model;
    const char *optimizer;
    double rate, clip;
} job;

/* What a job gave: looked up by the lines of the table. */
typedef struct outcome {
    double loss[STEPS + 1], norm[STEPS + 1];
    int n_variables;
    const char *names[MAX_VARIABLES]; /* borrowed from the graph */
    int64_t counts[MAX_VARIABLES];
    double *gradients[MAX_VARIABLES], *finals[MAX_VARIABLES];
} outcome;

/* What a job needs while it runs. */
typedef struct training {
    weft_graph *graph;
    weft_program *program;
    weft_value inputs[2], loss, norm, update;
    int n_variables;
    weft_value variables[MAX_VARIABLES], gradients[MAX_VARIABLES];
} training;

static weft_oracle oracle;

static weft_value build_mlp(weft_graph *g, weft_value inputs[2])
{
    const weft_dim batch = {"batch", 8}, pixel = {"pixel", 784}, hidden = {"hidden", 16},
                   digit = {"digit", 10};
    weft_value image = weft_input(g, "image", WEFT_F64, WEFT_DIMS(batch, pixel));
    weft_value label = weft_input(g, "label", WEFT_I32, WEFT_DIMS(batch));
    weft_value w1 =
        weft_variable(g, "w1", WEFT_F64, WEFT_DIMS(pixel, hidden), weft_formula(0.3, 0.70));
    weft_value b1 =
        weft_variable(g, "b1", WEFT_F64, WEFT_DIMS(hidden), weft_formula(0.3, 0.70 + 0.01 * 1));
    weft_value w2 = weft_variable(g, "w2", WEFT_F64, WEFT_DIMS(hidden, digit),
                                  weft_formula(0.3, 0.70 + 0.01 * 2));
    weft_value b2 =
        weft_variable(g, "b2", WEFT_F64, WEFT_DIMS(digit), weft_formula(0.3, 0.70 + 0.01 * 3));
    inputs[0] = image, inputs[1] = label;
    weft_value h = weft_relu(weft_add(weft_einsum(WEFT_DIMS(batch, hidden), image, w1), b1));
    weft_value logits = weft_add(weft_einsum(WEFT_DIMS(batch, digit), h, w2), b2);
    return weft_mean(weft_cross_entropy(logits, label, digit));
}

static double mlp_element(int input, int64_t i, int step)
{
    return input == 0 ? 0.5 * cos(0.37 * (double)i + (double)step) : (double)((3 * i + step) % 10);
}

static weft_value build_transformer(weft_graph *g, weft_value inputs[2])
{
    static const gpt_shape shape = {.batch = 3,
                                    .seq = 8,
                                    .layers = 2,
                                    .width = 12,
                                    .heads = 3,
                                    .hidden = 20,
                                    .vocab = 11,
                                    .dtype = WEFT_F64,
                                    .is_formula = true};
    gpt_model m;
    weft_value loss = gpt_loss(&shape, g, &m);
    inputs[0] = m.tokens, inputs[1] = m.targets;
    return loss;
}

static double transformer_element(int input, int64_t i, int step)
{
    return (double)((input == 0 ? i * i + 7 * i + 3 * step : 3 * i * i + 5 * i + step) % 11);
}

static const model mlp = {"mlp.txt", build_mlp, mlp_element};
static const model transformer = {"transformer.txt", build_transformer, transformer_element};
static const job jobs[] = {
    {&mlp, "sgd", 0.1, 0.0},         {&mlp, "momentum", 0.05, 0.0},
    {&mlp, "adam", 0.01, 0.0},       {&mlp, "adamw", 0.01, 0.0},
    {&mlp, "nesterov", 0.05, 0.0},   {&mlp, "adagrad", 0.01, 0.0},
    {&mlp, "adadelta", 1.0, 0.0},    {&mlp, "rmsprop", 0.01, 0.0},
    {&mlp, "adafactor", 0.01, 0.0},  {&mlp, "adamax", 0.01, 0.0},
    {&transformer, "sgd", 0.1, 0.0}, {&transformer, "adamw", 0.01, 0.5},
};
enum { N_JOBS = sizeof jobs / sizeof jobs[0] };

static weft_status compile_job(const job *j, training *t, weft_error *error)
{
    weft_layout *layout = NULL;
    weft_value all[MAX_VARIABLES + 3];
    const weft_optimizer *optimizer = weft_optimizer_find(j->optimizer, error);
    if (optimizer == NULL) return error->status;
    t->graph = weft_graph_create(1);
    t->loss = j->model->build(t->graph, t->inputs);
    t->n_variables = weft_trainable(t->loss, t->variables, MAX_VARIABLES);
    weft_gradients(t->loss, (weft_values){t->variables, t->n_variables}, t->gradients, 0);
    t->update = optimizer->build(
        t->loss,
        &(weft_optimizer_options){.rate = j->rate, .clip = j->clip, .gradient_norm = &t->norm});
    memcpy(all, t->gradients, sizeof *all * (size_t)t->n_variables);
    all[t->n_variables] = t->loss, all[t->n_variables + 1] = t->norm,
    all[t->n_variables + 2] = t->update;
    WEFT_TRY(weft_layout_create(NULL, &layout, error));
    const weft_status status = weft_compile(
        oracle.alone, layout, (weft_values){all, t->n_variables + 3}, NULL, &t->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static weft_status write_inputs(const job *j, const training *t, int step, weft_error *error)
{
    for (int k = 0; k < 2; k++) {
        const int64_t count = weft_shape_count(weft_shape_of(t->inputs[k]));
        double *data = malloc(sizeof *data * (size_t)count);
        if (data == NULL) return weft_fail_memory(error, sizeof *data * (size_t)count);
        for (int64_t i = 0; i < count; i++)
            data[i] = j->model->element(k, i, step);
        const weft_status status = weft_oracle_write(t->program, t->inputs[k], data, error);
        free(data);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status train(const job *j, training *t, outcome *o, weft_error *error)
{
    WEFT_TRY(compile_job(j, t, error));
    for (int step = 1; step <= STEPS; step++) {
        WEFT_TRY(write_inputs(j, t, step, error));
        WEFT_TRY(weft_run(t->program, error));
        WEFT_TRY(weft_read_scalar(t->program, t->loss, &o->loss[step], error));
        WEFT_TRY(weft_read_scalar(t->program, t->norm, &o->norm[step], error));
        for (int k = 0; k < t->n_variables && step == 1; k++)
            WEFT_TRY(weft_oracle_read(t->program, t->gradients[k], &o->gradients[k], error));
    }
    for (int k = 0; k < t->n_variables; k++) {
        o->names[k] = weft_name_of(t->variables[k]);
        o->counts[k] = weft_shape_count(weft_shape_of(t->variables[k]));
        o->n_variables++;
        WEFT_TRY(weft_oracle_read(t->program, t->variables[k], &o->finals[k], error));
    }
    return WEFT_OK;
}

/* Numbers of a line that must agree; `scale`: what 1e-10 is relative to (a sum may cancel to
 * nothing). */
static void check_number(const job *j, const char *line, double expected, double found,
                         double scale)
{
    char text[400];
    snprintf(text, sizeof text, "%s: \"%.200s\": found %.17g for %.17g", j->model->table, line,
             found, expected);
    weft_test_check(fabs(expected - found) <= 1e-10 * fmax(fabs(expected), scale), __FILE__,
                    __LINE__, text);
}

static void check_tensor(const job *j, const char *line, const double *data, int64_t count,
                         const double *expected, int n_expected)
{
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < count; i++)
        sum += data[i], squares += data[i] * data[i];
    const double scale = sqrt(squares),
                 found[5] = {sum, squares, data[0], data[count / 2], data[count - 1]};
    for (int i = 0; i < n_expected; i++)
        check_number(j, line, expected[i], found[i], i == 1 ? 0.0 : scale);
}

static int find_variable(const outcome *o, const char *name)
{
    for (int k = 0; k < o->n_variables; k++)
        if (strcmp(o->names[k], name) == 0) return k;
    return -1;
}

/* One line of a table that belongs to this job. Returns whether it was understood. */
static bool check_line(const job *j, const outcome *o, const char *line)
{
    char kind[32], name[64];
    double x[5];
    const int n = sscanf(line, "%*s %31s %63s %lf %lf %lf %lf %lf", kind, name, &x[0], &x[1], &x[2],
                         &x[3], &x[4]) -
                  2;
    const int step = atoi(name), k = find_variable(o, name);
    if (strcmp(kind, "loss") == 0 && n == 1 && step >= 1 && step <= STEPS)
        check_number(j, line, x[0], o->loss[step], 0.0);
    else if (strcmp(kind, "norm") == 0 && n == 1 && step >= 1 && step <= STEPS)
        check_number(j, line, x[0], o->norm[step], 0.0);
    else if (strcmp(kind, "gradient") == 0 && n == 5 && k >= 0)
        check_tensor(j, line, o->gradients[k], o->counts[k], x, 5);
    else if (strcmp(kind, "final") == 0 && n == 2 && k >= 0)
        check_tensor(j, line, o->finals[k], o->counts[k], x, 2);
    else
        return false;
    return true;
}

static void check_table(const job *j, const outcome *o)
{
    char path[512], line[512], prefix[32];
    int n_lines = 0;
    snprintf(path, sizeof path, "%s/reference/%s", WEFT_TEST_DATA, j->model->table);
    const size_t n_prefix = (size_t)snprintf(prefix, sizeof prefix, "%s ", j->optimizer);
    FILE *file = fopen(path, "r");
    if (!weft_test_check(file != NULL, __FILE__, __LINE__, path)) return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, prefix, n_prefix) != 0) continue;
        weft_test_check(check_line(j, o, line), __FILE__, __LINE__, line);
        n_lines++;
    }
    fclose(file);
    CHECK_EQ_INT(n_lines, 2 * STEPS + 2 * o->n_variables);
}

static void check_job(const job *j)
{
    training t = {0};
    outcome o = {0};
    weft_error error = {0};
    if (CHECK_OK(train(j, &t, &o, &error), error)) check_table(j, &o);
    for (int k = 0; k < MAX_VARIABLES; k++) {
        free(o.gradients[k]);
        free(o.finals[k]);
    }
    weft_program_destroy(&t.program);
    weft_graph_destroy(&t.graph);
}

static void test_models_and_optimizers_equal_pytorch(void)
{
    for (int i = 0; i < N_JOBS; i++)
        check_job(&jobs[i]);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error))
        RUN(test_models_and_optimizers_equal_pytorch);
    weft_oracle_close(&oracle);
    return weft_test_report();
}
