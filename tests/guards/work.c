/* work: a fixed small training on one lane, whose instructions callgrind counts: those of guarded_compile and those of
 * guarded_run, by name. Without arguments it does both. */
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

#include "apps/gpt/model.h"

enum { STEPS = 10, BATCH = 4, SEQ = 16 };

static const gpt_shape shape = {.batch = BATCH,
                                .seq = SEQ,
                                .layers = 2,
                                .width = 32,
                                .heads = 2,
                                .hidden = 128,
                                .vocab = 64,
                                .dtype = WEFT_F32};

typedef struct training {
    weft_graph *graph;
    weft_mesh *mesh;
    weft_layout *layout;
    weft_program *program;
    gpt_model model;
    weft_value loss;
} training;

weft_status guarded_compile(training *t, weft_error *error);
weft_status guarded_run(training *t, double *loss, weft_error *error);

/* From nothing to a program with its initial values. */
__attribute__((noinline)) weft_status guarded_compile(training *t, weft_error *error)
{
    t->graph = weft_graph_create(1);
    t->loss = gpt_loss(&shape, t->graph, &t->model);
    weft_value update = weft_adamw(t->loss, &(weft_optimizer_options){.rate = 1e-2, .clip = 1.0});
    return weft_compile(t->mesh, t->layout, WEFT_VALUES(t->loss, update), NULL, &t->program, error);
}

__attribute__((noinline)) weft_status guarded_run(training *t, double *loss, weft_error *error)
{
    for (int step = 0; step < STEPS; step++) {
        WEFT_TRY(weft_run(t->program, error));
        WEFT_TRY(weft_read_scalar(t->program, t->loss, loss, error));
    }
    return WEFT_OK;
}

static weft_status write_tokens(training *t, weft_error *error)
{
    int32_t tokens[BATCH * SEQ];
    for (int i = 0; i < BATCH * SEQ; i++)
        tokens[i] = (i * i + 7 * i) % 64;
    WEFT_TRY(weft_write(t->program, t->model.tokens, WEFT_I32, tokens, sizeof tokens, error));
    return weft_write(t->program, t->model.targets, WEFT_I32, tokens, sizeof tokens, error);
}

int main(void)
{
    training t = {0};
    weft_world world;
    weft_error error = {0};
    double loss = 0.0;
    weft_lanes_choose(1);
    weft_status status = weft_world_open(&world, &error);
    if (status == WEFT_OK) status = weft_mesh_create(&world, "data:1", &t.mesh, &error);
    if (status == WEFT_OK) status = weft_layout_create("", &t.layout, &error);
    if (status == WEFT_OK) status = guarded_compile(&t, &error);
    if (status == WEFT_OK) status = write_tokens(&t, &error);
    if (status == WEFT_OK) status = guarded_run(&t, &loss, &error);
    if (status == WEFT_OK)
        printf("{\"blas\": \"%s\", \"blas kernel\": \"%s\", \"loss\": %.6g}\n",
               weft_machine_info()->blas, weft_machine_info()->blas_kernel, loss);
    else
        fprintf(stderr, "work: %s\n", error.message);
    weft_program_destroy(&t.program);
    weft_layout_destroy(&t.layout);
    weft_mesh_destroy(&t.mesh);
    weft_graph_destroy(&t.graph);
    weft_world_close();
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
