/* start: milliseconds from the command to the first loss, part by part.
 *
 *     start [MODEL [MESH [LAYOUT]]]       the models: char, 124M, lstm, deep; without one: char and 124M
 *
 * A model is measured in a process of its own, so that nothing is warm: the program starts itself again and tells the
 * copy when that was. "load" is what the system needs until main. A mesh that begins with "plan " is only planned.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/gpt/model.h"
#include "bench.h"
#include "weft/collectives.h"
#include "weft/optim.h"
#include "weft/program.h"

enum { LSTM_STEPS = 512, LSTM_UNITS = 64, STEADY = 3 };

/* ---- the models ----------------------------------------------------------------------------- */

typedef struct model {
    weft_value loss, update;
    weft_value in[2]; /* inputs, i32 or f32; id 0: none */
} model;

static model transformer(weft_graph *graph, const gpt_shape *shape)
{
    gpt_model gpt;
    const weft_value loss = gpt_loss(shape, graph, &gpt);
    return (model){.loss = loss, .in = {gpt.tokens, gpt.targets}};
}

static model char_model(weft_graph *graph)
{
    return transformer(graph, &(gpt_shape){.batch = 12,
                                           .seq = 64,
                                           .layers = 4,
                                           .width = 128,
                                           .heads = 4,
                                           .hidden = 512,
                                           .vocab = 256,
                                           .dtype = WEFT_F32});
}

static model gpt_124m(weft_graph *graph)
{
    return transformer(graph, &(gpt_shape){.batch = 4,
                                           .seq = 64,
                                           .layers = 12,
                                           .width = 768,
                                           .heads = 12,
                                           .hidden = 3072,
                                           .vocab = 50304,
                                           .dtype = WEFT_F32});
}

static model deep(weft_graph *graph)
{
    return transformer(graph, &(gpt_shape){.batch = 16,
                                           .seq = 64,
                                           .layers = 96,
                                           .width = 128,
                                           .heads = 4,
                                           .hidden = 512,
                                           .vocab = 256,
                                           .dtype = WEFT_F32});
}

/* One gate: x W + h U + b, squashed. */
static weft_value gate(weft_value x, weft_value h, const weft_value *w, weft_shape out)
{
    return weft_add(weft_add(weft_einsum(out, x, w[0]), weft_einsum(out, h, w[1])), w[2]);
}

static weft_value sigmoid(weft_value x)
{
    return weft_shift(weft_scale(weft_tanh(weft_scale(x, 0.5)), 0.5), 0.5);
}

/* The body is written down once for every step of the sequence: a graph of many small nodes. */
static model lstm(weft_graph *graph)
{
    const weft_dim time = {"time", LSTM_STEPS}, batch = {"batch", 8}, in = {"in", 16},
                   unit = {"unit", LSTM_UNITS}, from = {"from", LSTM_UNITS}, one = {"one", 1};
    const weft_shape state = WEFT_DIMS(batch, unit);
    weft_value w[4][3];
    for (int g = 0; g < 4; g++) {
        char name[3][8];
        for (int i = 0; i < 3; i++)
            snprintf(name[i], sizeof name[i], "%c%d", "wub"[i], g);
        w[g][0] = weft_variable(graph, name[0], WEFT_F32, WEFT_DIMS(in, unit), weft_normal(0, 0.1));
        w[g][1] =
            weft_variable(graph, name[1], WEFT_F32, WEFT_DIMS(from, unit), weft_normal(0, 0.1));
        w[g][2] = weft_variable(graph, name[2], WEFT_F32, WEFT_DIMS(unit), weft_constant_of(0));
    }
    const weft_value all = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(time, batch, in));
    weft_value h = weft_constant(graph, WEFT_F32, state, 0), c = h;
    for (int64_t t = 0; t < LSTM_STEPS; t++) {
        const weft_value x = weft_reshape(weft_slice(all, time, t, one), WEFT_DIMS(batch, in));
        const weft_value before = weft_rename(h, unit, from);
        weft_value gates[4];
        for (int g = 0; g < 4; g++) {
            gates[g] = gate(x, before, w[g], state);
            gates[g] = g < 3 ? sigmoid(gates[g]) : weft_tanh(gates[g]);
        }
        c = weft_add(weft_mul(gates[0], c), weft_mul(gates[1], gates[3]));
        h = weft_mul(gates[2], weft_tanh(c));
    }
    return (model){.loss = weft_mean(weft_square(h)), .in = {all}};
}

static const struct {
    const char *name;
    model (*build)(weft_graph *);
} models[] = {{"char", char_model}, {"124M", gpt_124m}, {"lstm", lstm}, {"deep", deep}};
enum { N_MODELS = sizeof models / sizeof models[0] };

/* ---- the parts ------------------------------------------------------------------------------ */

typedef struct stopwatch {
    double begun, last;
} stopwatch;

static void lap(stopwatch *watch, const char *what)
{
    const double now = bench_now();
    printf("    %-28s %9.1f\n", what, 1e3 * (now - watch->last));
    watch->last = bench_now(); /* printing is not ours */
}

static weft_status fill_input(weft_program *program, weft_value input, weft_error *error)
{
    if (input.id == 0) return WEFT_OK;
    const int64_t bytes =
        weft_shape_count(weft_shape_of(input)) * (int64_t)weft_dtype_bytes(weft_dtype_of(input));
    void *zeros = calloc(1, (size_t)bytes);
    if (zeros == NULL) return weft_fail_memory(error, (size_t)bytes);
    weft_status status = weft_write(program, input, weft_dtype_of(input), zeros, bytes, error);
    free(zeros);
    return status;
}

static weft_status run_first(weft_program *program, const model *m, stopwatch *watch,
                             weft_error *error)
{
    double loss, best = 1e30;
    weft_usage usage;
    WEFT_TRY(fill_input(program, m->in[0], error));
    WEFT_TRY(fill_input(program, m->in[1], error));
    WEFT_TRY(weft_run(program, error));
    WEFT_TRY(weft_read_scalar(program, m->loss, &loss, error));
    lap(watch, "first step");
    const double all = watch->last - watch->begun;
    for (int i = 0; i < STEADY; i++) {
        const double begun = bench_now();
        WEFT_TRY(weft_run(program, error));
        if (bench_now() - begun < best) best = bench_now() - begun;
    }
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    printf("    %-28s %9.1f\n    %-28s %9.1f   %.2f steps; %d steps of the plan, loss %.9g\n",
           "a later step", 1e3 * best, "command to first loss", 1e3 * all, all / best,
           usage.n_steps, loss);
    return WEFT_OK;
}

typedef struct setting {
    const char *mesh, *layout;
    bool is_plan;
} setting;

static weft_status start(model (*build)(weft_graph *), const setting *s, stopwatch *watch,
                         weft_error *error)
{
    weft_world world;
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    WEFT_TRY(weft_world_open(&world, error));
    lap(watch, "world");
    WEFT_TRY(s->is_plan ? weft_mesh_plan(s->mesh, &mesh, error)
                        : weft_mesh_create(&world, s->mesh, &mesh, error));
    WEFT_TRY(weft_layout_create(s->layout, &layout, error));
    lap(watch, "mesh");
    weft_graph *graph = weft_graph_create(1);
    model m = build(graph);
    lap(watch, "graph");
    m.update = weft_adamw(m.loss, &(weft_optimizer_options){.rate = 1e-3, .clip = 1.0});
    lap(watch, "gradients and update");
    const weft_values values = WEFT_VALUES(m.loss, m.update);
    weft_status status = weft_compile(mesh, layout, values, NULL, &program, error);
    lap(watch, s->is_plan ? "plan" : "plan, memory, values, bind");
    if (status == WEFT_OK && !s->is_plan) status = run_first(program, &m, watch, error);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return status;
}

static int child(const char *name, setting s, double begun)
{
    weft_error error = {.rank = -1};
    stopwatch watch = {.begun = begun, .last = begun};
    weft_status status = WEFT_OK;
    s.is_plan = strncmp(s.mesh, "plan ", 5) == 0;
    if (s.is_plan) s.mesh += 5;
    printf("%s\n", name);
    lap(&watch, "load");
    for (int i = 0; i < N_MODELS; i++)
        if (strcmp(models[i].name, name) == 0) status = start(models[i].build, &s, &watch, &error);
    return bench_end("start", status, &error);
}

/* ---- the process that starts the others ------------------------------------------------------ */

static int measure(const char *self, const char *name, setting s)
{
    char begun[40];
    int status = 1;
    const pid_t pid = fork();
    if (pid == 0) {
        snprintf(begun, sizeof begun, "%.9f", bench_now());
        execl(self, self, "--child", name, s.mesh, s.layout, begun, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) return 1;
    return 0;
}

int main(int n, char **arguments)
{
    if (n == 6 && strcmp(arguments[1], "--child") == 0)
        return child(arguments[2], (setting){arguments[3], arguments[4], false},
                     strtod(arguments[5], NULL));
    const setting s = {n > 2 ? arguments[2] : "data:1", n > 3 ? arguments[3] : "", false};
    int failures = 0;
    for (int i = 0; i < N_MODELS; i++)
        if (n > 1 ? strcmp(arguments[1], models[i].name) == 0 : i < 2)
            failures += measure("/proc/self/exe", models[i].name, s);
    return failures > 0;
}
