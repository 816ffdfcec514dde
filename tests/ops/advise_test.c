/* advise_test: planted problems: trainings that are worse than a neighbour of theirs, on machines that are written here. The right advice
 * comes first, its seconds are those of a plan by it, and a healthy training gets none.
 */
#include "weft/research/advise.h"

#include <math.h>
#include <stdlib.h>

#include "weft/optim.h"

#include "apps/gpt/model.h"
#include "ops/planted_machine.h"
#include "ops/predict/machine.h"
#include "test.h"

/* ---- a program ------------------------------------------------------------------------------------------------ */

enum { STAGES, MICRO, ACCUMULATE, RECOMPUTE, KNOBS };
static const weft_knob knobs[KNOBS] = {
    [STAGES] = {.name = "stages", .n_values = 1, .values = {1}},
    [MICRO] = {.name = "micro", .n_values = 5, .values = {1, 2, 4, 8, 16}},
    [ACCUMULATE] = {.name = "accumulate", .n_values = 5, .values = {1, 2, 4, 8, 16}},
    [RECOMPUTE] = {.name = "recompute", .is_flag = true, .n_values = 2, .values = {0, 1}}};

static weft_status build(void *context, const weft_choice *choice, weft_built_graph *built,
                         weft_error *error)
{
    gpt_shape shape = *(const gpt_shape *)context;
    gpt_model model;
    const int64_t parts = choice->values[ACCUMULATE];
    shape.stages = choice->values[STAGES];
    shape.micro = choice->values[MICRO];
    shape.recomputes = choice->values[RECOMPUTE] != 0;
    if (choice->layers > 0) shape.layers = choice->layers;
    built->graph = weft_graph_create(1);
    if (shape.batch % (parts * shape.micro) != 0 || shape.layers % shape.stages != 0 ||
        (shape.stages == 1 && shape.micro > 1))
        return weft_fail(error, WEFT_USAGE, "this does not go together");
    weft_optimizer_options optimizer = {.rate = 1e-3};
    weft_value loss, *variables = NULL;
    if (parts == 1) {
        loss = gpt_loss(&shape, built->graph, &model);
    } else {
        const int n = gpt_n_variables(&shape);
        variables = calloc(2 * (size_t)n, sizeof *variables);
        loss = gpt_accumulate(&shape, parts, choice->zero >= 2, built->graph, &model, variables,
                              variables + n);
        optimizer.variables = (weft_values){variables, n};
        optimizer.gradients = (weft_values){variables + n, n};
    }
    built->values[0] = loss;
    built->values[1] = weft_adamw(loss, &optimizer);
    built->n_values = 2;
    free(variables);
    return weft_graph_status(built->graph);
}

/* ---- machines ------------------------------------------------------------------------------------------------- */

static weft_machine_model *machine_of(const machine_facts *m)
{
    char text[2000];
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    planted_text(m, text, sizeof text);
    CHECK_OK(weft_machine_model_parse(text, strlen(text), "planted.json", &model, &error), error);
    return model;
}

static const gpt_shape model_shape = {8, 16, 1, 32, 2, 128, 64, .dtype = WEFT_F32};
static const gpt_shape many_tokens = {64, 32, 1, 32, 2, 128, 64, .dtype = WEFT_F32};
static const gpt_shape tokens_heavy = {64, 256, 1, 512, 8, 2048, 1024, .dtype = WEFT_F32};
static const gpt_shape balanced = {64, 64, 1, 512, 8, 2048, 1024, .dtype = WEFT_F32};
static const gpt_shape weights_heavy = {16, 16, 1, 512, 8, 2048, 1024, .dtype = WEFT_F32};
static const gpt_shape deep = {16, 16, 4, 32, 2, 128, 64, .dtype = WEFT_F32};

/* ---- problems ------------------------------------------------------------------------------------------------- */

typedef struct problem {
    const char *what;
    const gpt_shape *shape;
    const machine_facts *machine;
    const char *mesh, *layout;
    int zero;
    int64_t stages, micro, accumulate, recompute;
    int64_t memory;
    const char *
        first; /* what the first advice has among its options; NULL: there is none of 2 % or more */
} problem;

static const problem problems[] = {
    {"heads and hidden are exchanged along the slow links", &tokens_heavy, &far_is_slow,
     "model:2,data:2", "batch:data,hidden:model,heads:model,vocab:model", 0, 1, 1, 1, 0, 0,
     "--layout batch:data+model"}, /* a host adds up its gradients first, so half of them go along the slow links */
    {"gradients are exchanged along the slow links", &weights_heavy, &far_is_slow, "data:2,model:2",
     "batch:data,hidden:model,heads:model", 0, 1, 1, 1, 0, 0, "--mesh model:2,data:2"},
    {"weights are gathered twice for nothing", &balanced, &slow_links, "data:2", "batch:data", 3, 1,
     1, 1, 0, 0, "--zero 2"},
    {"too many micro-batches", &deep, &dear_steps, "pipe:2", "stage:pipe", 0, 2, 16, 1, 1, 0,
     "--micro 8"},
    {"too few micro-batches: bubbles", &deep, &even, "pipe:2", "stage:pipe", 0, 2, 1, 1, 0, 0,
     "--micro 2"},
    {"blocks are computed again where memory suffices", &many_tokens, &even, "data:2", "batch:data",
     0, 1, 1, 1, 1, 0, "--no-recompute"},
    {"too many parts of a batch", &model_shape, &dear_steps, "data:1", "", 0, 1, 1, 8, 0, 0,
     "--accumulate 4"},
    {"the model is split where the batch could be", &tokens_heavy, &slow_links, "model:2",
     "hidden:model,heads:model,vocab:model", 0, 1, 1, 1, 0, 0, "--layout batch:model"},
    {"an axis does nothing", &many_tokens, &even, "data:2", "", 0, 1, 1, 1, 0, 0,
     "--layout batch:data"},
    {"the window is split where the batch could be", &balanced, &slow_links, "data:2", "seq:data",
     0, 1, 1, 1, 0, 0, "batch:data"},
    {"the batch is split along the slow links, and nothing along the fast ones", &weights_heavy,
     &far_is_slow, "far:2,near:2", "batch:far", 0, 1, 1, 1, 0, 0, ":near"},
    {"it does not fit into memory", &many_tokens, &even, "data:2", "batch:data", 0, 1, 1, 1, 0,
     2500000, "--"},
    {"healthy: one rank", &many_tokens, &even, "data:1", "", 0, 1, 1, 1, 0, 0, NULL},
    {"healthy: the batch, on even links", &many_tokens, &even, "data:2", "batch:data", 0, 1, 1, 1,
     0, 0, NULL},
};
enum { RECOMPUTED = 5, PROBLEMS = sizeof problems / sizeof *problems };

static weft_choice choice_of(const problem *p)
{
    weft_choice choice = {.zero = p->zero,
                          .n_knobs = KNOBS,
                          .knobs = knobs,
                          .values = {p->stages, p->micro, p->accumulate, p->recompute}};
    snprintf(choice.mesh, sizeof choice.mesh, "%s", p->mesh);
    snprintf(choice.layout, sizeof choice.layout, "%s", p->layout);
    return choice;
}

static weft_search_options options_of(const problem *p, const weft_machine_model *model)
{
    return (weft_search_options){.machine = model,
                                 .memory = p->memory,
                                 .n_knobs = KNOBS,
                                 .knobs = knobs,
                                 .store_dim = "batch",
                                 .hints = "model=hidden+heads+vocab"};
}

static void print(const weft_advice *advice)
{
    printf("  now %g s, %lld bytes, %d neighbours\n", advice->seconds, (long long)advice->bytes,
           advice->n_neighbours);
    for (int i = 0; i < advice->n; i++)
        printf("  %g s, %lld bytes: %s\n", advice->best[i].seconds,
               (long long)advice->best[i].bytes, advice->best[i].options);
}

static double gain(const weft_advice *advice)
{
    return advice->n > 0 ? 1 - advice->best[0].seconds / advice->seconds : 0;
}

static bool is_right(const problem *p, const weft_advice *advice)
{
    if (!p->first) return CHECK(advice->fits && gain(advice) < 0.02);
    if (p->memory > 0)
        return CHECK(advice->n > 0 && !advice->fits && advice->bytes > p->memory &&
                     advice->best[0].bytes <= p->memory);
    const char *at = advice->n > 0 ? strstr(advice->best[0].options, p->first) : NULL;
    return CHECK(advice->fits && gain(advice) >= 0.02 && at != NULL);
}

static void test_the_right_advice_comes_first(void)
{
    for (int i = 0; i < PROBLEMS; i++) {
        const problem *p = &problems[i];
        gpt_shape shape = *p->shape;
        weft_error error = WEFT_NO_ERROR;
        weft_advice advice;
        weft_machine_model *model = machine_of(p->machine);
        const weft_choice from = choice_of(p);
        const weft_search_options options = options_of(p, model);
        if (!CHECK_OK(weft_advise(build, &shape, &options, &from, &advice, &error), error))
            continue;
        if (!is_right(p, &advice)) printf("%s:\n", p->what), print(&advice);
        weft_machine_model_destroy(&model);
    }
}

/* What is told of a neighbour is what its own plan says; and they are told in order. */
static void test_seconds_are_those_of_a_plan(void)
{
    const problem *p = &problems[RECOMPUTED];
    gpt_shape shape = *p->shape;
    weft_error error = WEFT_NO_ERROR;
    weft_advice advice;
    weft_machine_model *model = machine_of(p->machine);
    const weft_choice from = choice_of(p);
    const weft_search_options options = options_of(p, model);
    CHECK_OK(weft_advise(build, &shape, &options, &from, &advice, &error), error);
    CHECK(advice.n >= 2);
    for (int i = 0; i < advice.n; i++) {
        weft_prediction prediction = {0};
        weft_built_graph built;
        weft_program *program = NULL;
        weft_usage usage = {0};
        if (!CHECK_OK(weft_search_plan(build, &shape, &options, &advice.best[i].choice, &built,
                                       &program, &prediction, &error),
                      error))
            continue;
        CHECK_OK(weft_plan_usage(program, 0, &usage, &error), error);
        CHECK_CLOSE(prediction.seconds, advice.best[i].seconds, 1e-12);
        CHECK_EQ_INT(usage.total_bytes, advice.best[i].bytes);
        CHECK(i == 0 || advice.best[i - 1].seconds <= advice.best[i].seconds);
        weft_mesh *mesh = (weft_mesh *)(uintptr_t)weft_program_mesh(program);
        CHECK_OK(weft_program_destroy(&program), error);
        (void)!weft_mesh_destroy(&mesh);
        weft_graph_destroy(&built.graph);
    }
    weft_machine_model_destroy(&model);
}

/* Judged by few layers, the same one comes first. */
static void test_few_layers_judge_as_all_do(void)
{
    gpt_shape shape = many_tokens;
    weft_error error = WEFT_NO_ERROR;
    weft_advice all, few;
    const problem *p = &problems[RECOMPUTED];
    weft_machine_model *model = machine_of(p->machine);
    const weft_choice from = choice_of(p);
    weft_search_options options = options_of(p, model);
    shape.layers = 5;
    CHECK_OK(weft_advise(build, &shape, &options, &from, &all, &error), error);
    options.layers = shape.layers;
    CHECK_OK(weft_advise(build, &shape, &options, &from, &few, &error), error);
    if (CHECK(all.n > 0 && few.n > 0)) {
        CHECK_TEXT(few.best[0].options, all.best[0].options);
        CHECK_CLOSE(few.best[0].seconds, all.best[0].seconds, 1e-12);
    }
    weft_machine_model_destroy(&model);
}

/* Fewer stages are the advice for 18 layers: fewer bubbles. For 21, which they do not divide, few layers judge them as good, and the program refuses
 * them: the others are advised all the same. */
static void test_a_neighbour_that_is_refused_as_a_whole_is_left_out(void)
{
    weft_knob some[KNOBS];
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = machine_of(&even);
    memcpy(some, knobs, sizeof some);
    some[STAGES] = (weft_knob){.name = "stages", .n_values = 2, .values = {3, 2}};
    some[MICRO].n_values = some[ACCUMULATE].n_values = some[RECOMPUTE].n_values = 1;
    some[MICRO].values[0] = 2;
    for (int64_t layers = 18; layers <= 21; layers += 3) {
        gpt_shape shape = deep;
        weft_advice advice;
        const problem p = {"", &shape, &even, "pipe:1", "stage:pipe", 0, 3, 2, 1, 0, 0, NULL};
        weft_choice from = choice_of(&p);
        weft_search_options options = options_of(&p, model);
        from.knobs = options.knobs = some;
        shape.layers = options.layers = layers;
        options.layers_knob = "stages";
        CHECK_OK(weft_advise(build, &shape, &options, &from, &advice, &error), error);
        const bool has_stages =
            advice.n > 0 && strstr(advice.best[0].options, "--stages 2") != NULL;
        if (!CHECK(has_stages == (layers == 18) && advice.n_neighbours > 1)) print(&advice);
    }
    weft_machine_model_destroy(&model);
}

int main(void)
{
    RUN(test_the_right_advice_comes_first);
    RUN(test_seconds_are_those_of_a_plan);
    RUN(test_few_layers_judge_as_all_do);
    RUN(test_a_neighbour_that_is_refused_as_a_whole_is_left_out);
    return weft_test_report();
}
