/* gpt_training.h: a small GPT that is trained for a few steps on tokens that are formulas of where they stand, as a test says. */
#ifndef TEST_GPT_TRAINING_H
#define TEST_GPT_TRAINING_H

#include <string.h>

#include "apps/gpt/model.h"
#include "oracle.h"
#include "test.h"
#include "weft/optim.h"

enum { TRAINED_BATCH = 12, TRAINED_SEQ = 10, TRAINED_VOCAB = 29, MOST_VARIABLES = 64 };

typedef struct training {
    weft_graph *graph;
    weft_program *program;
    gpt_model model;
    weft_value loss, norm, variables[MOST_VARIABLES], gradients[MOST_VARIABLES];
} training;

/* How it is trained, beside the model. */
typedef struct training_way {
    const char *layout;
    int zero, parts;       /* parts of a batch; 1: at once */
    const char *optimizer; /* NULL: adamw */
    int64_t unroll;
} training_way;

/* 24 wide, 3 heads, f64; the rest is the test's. */
static inline gpt_shape trained_shape(void)
{
    return (gpt_shape){.batch = TRAINED_BATCH,
                       .seq = TRAINED_SEQ,
                       .width = 24,
                       .heads = 3,
                       .hidden = 40,
                       .vocab = TRAINED_VOCAB,
                       .dtype = WEFT_F64};
}

/* The same of two layers, by a formula; kv_heads: of four, which turn, with RMS norm and one table; 0: a plain model. */
static inline gpt_shape stepped_shape(int64_t batch, bool scans, int64_t kv_heads)
{
    gpt_shape shape = trained_shape();
    shape.batch = batch;
    shape.layers = 2;
    shape.scans = scans;
    shape.ropes = shape.is_rms = shape.ties = kv_heads > 0;
    shape.kv_heads = kv_heads;
    if (kv_heads > 0) shape.heads = 4;
    shape.is_formula = true;
    return shape;
}

static inline weft_value build_training(const gpt_shape *shape, const training_way *way,
                                        training *t, weft_error *error)
{
    const int n = way->parts > 1 ? gpt_n_variables(shape) : 0;
    t->loss = way->parts > 1 ? gpt_accumulate(shape, way->parts, way->zero >= 2, t->graph,
                                              &t->model, t->variables, t->gradients)
                             : gpt_loss(shape, t->graph, &t->model);
    const weft_optimizer *optimizer =
        weft_optimizer_find(way->optimizer != NULL ? way->optimizer : "adamw", error);
    return optimizer->build(t->loss, &(weft_optimizer_options){.rate = 3e-3,
                                                               .weight_decay = 0.1,
                                                               .clip = 0.5,
                                                               .gradient_norm = &t->norm,
                                                               .variables = {t->variables, n},
                                                               .gradients = {t->gradients, n}});
}

static inline weft_status open_training(weft_mesh *mesh, const gpt_shape *shape,
                                        const training_way *way, training *t, weft_error *error)
{
    const weft_compile_options options = {.unroll = way->unroll};
    weft_layout *layout = NULL;
    *t = (training){.graph = weft_graph_create(1234)};
    const weft_value update = build_training(shape, way, t, error);
    WEFT_TRY(weft_layout_create(way->layout, &layout, error));
    WEFT_TRY(weft_layout_store(layout, way->zero, "batch", error));
    const weft_status status = weft_compile(mesh, layout, WEFT_VALUES(t->loss, t->norm, update),
                                            &options, &t->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static inline void close_training(training *t)
{
    weft_program_destroy(&t->program);
    weft_graph_destroy(&t->graph);
}

/* losses, norms: [steps], out; norms of the gradient. */
static inline weft_status train(const training *t, int steps, double *losses, double *norms,
                                weft_error *error)
{
    double tokens[TRAINED_BATCH * TRAINED_SEQ], targets[TRAINED_BATCH * TRAINED_SEQ];
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < TRAINED_BATCH * TRAINED_SEQ; i++) {
            tokens[i] = (i * i + 7 * i + 3 * step) % TRAINED_VOCAB;
            targets[i] = (3 * i + i / 5 + step) % TRAINED_VOCAB;
        }
        WEFT_TRY(weft_oracle_write(t->program, t->model.tokens, tokens, error));
        WEFT_TRY(weft_oracle_write(t->program, t->model.targets, targets, error));
        WEFT_TRY(weft_run(t->program, error));
        WEFT_TRY(weft_read_scalar(t->program, t->loss, &losses[step], error));
        WEFT_TRY(weft_read_scalar(t->program, t->norm, &norms[step], error));
    }
    return WEFT_OK;
}

/* The oracle's mesh of that text, `alone` where it is one rank; NULL: this run has none. */
static inline weft_mesh *trained_mesh(const weft_oracle *oracle, const char *text)
{
    for (int m = 0; m < oracle->n_meshes; m++)
        if (strcmp(weft_mesh_text(oracle->meshes[m]), text) == 0) return oracle->meshes[m];
    return strcmp(text + strlen(text) - 2, ":1") == 0 ? oracle->alone : NULL;
}

#endif
