/* handed.h: variables of all kinds, updated by gradients that are inputs, under layouts and stages of ZeRO; for tests that
 * compare with plain arithmetic.
 */
#ifndef WEFT_TEST_HANDED_H
#define WEFT_TEST_HANDED_H

#include <stdlib.h>

#include "oracle.h"
#include "test.h"
#include "weft/optim.h"

static const weft_dim stack = {"stack", 2}, in = {"in", 5}, out = {"out", 7}, batch = {"batch", 4};

/* The variables: a matrix, a vector, a stack of matrices that is one, a scalar, two matrices as one, a high matrix. */
enum { N = 6, LARGEST = 70 };
static const int extents[N][3] =
    {/* variables that it stands for, rows, columns of each; 1 row: no matrix */
     {1, 5, 7}, {1, 1, 7}, {1, 2, 35}, {1, 1, 1}, {2, 5, 7}, {1, 7, 5}};
/* Dims of each: two or more decay, exactly two are Muon's. */
static const int n_dims[N] = {2, 1, 3, 0, 2, 2};

static inline int count_of(int k)
{
    return extents[k][1] * extents[k][2];
}

static inline double gradient_at(int k, int step, int64_t i)
{
    return (weft_oracle_unit(10 * k + step, i) - 0.4) * (k == 2 ? 1e-3 : 3.0);
}

static inline double begins_at(int i)
{
    return 0.5 * cos(0.7 * i);
}

typedef struct trained {
    weft_graph *graph;
    weft_value variables[N], gradients[N], update;
} trained;

static inline weft_value variable_of(weft_graph *graph, int k, weft_shape shape)
{
    const weft_initial begins = weft_formula(0.5, 0.7);
    char name[8];
    snprintf(name, sizeof name, "v%d", k);
    return extents[k][0] > 1
               ? weft_variable_of_rows(graph, name, WEFT_F64, shape, begins, "one two")
               : weft_variable(graph, name, WEFT_F64, shape, begins);
}

/* All but the update; loss: of nothing, for who asks for one. */
static inline trained make_variables(weft_value *loss)
{
    const weft_shape shapes[N] = {WEFT_DIMS(in, out),        WEFT_DIMS(out),
                                  WEFT_DIMS(stack, in, out), WEFT_SCALAR,
                                  WEFT_DIMS(stack, in, out), WEFT_DIMS(out, in)};
    trained t = {.graph = weft_graph_create(5)};
    /* somebody has to have the dim whose axes shard storage */
    weft_value x = weft_constant(t.graph, WEFT_F64, WEFT_DIMS(batch), 0.0);
    *loss = weft_sum(WEFT_SCALAR, x);
    for (int k = 0; k < N; k++) {
        char name[8];
        snprintf(name, sizeof name, "g%d", k);
        t.variables[k] = variable_of(t.graph, k, shapes[k]);
        t.gradients[k] = weft_input(t.graph, name, WEFT_F64, shapes[k]);
    }
    weft_place(t.variables[2], "out:data?");
    return t;
}

static inline trained make(const char *rule, weft_optimizer_options options)
{
    weft_value loss;
    trained t = make_variables(&loss);
    options.variables = (weft_values){t.variables, N};
    options.gradients = (weft_values){t.gradients, N};
    weft_value token = weft_optimizer_find(rule, NULL)->build(loss, &options);
    t.update = weft_group(t.graph, WEFT_VALUES(token, loss));
    return t;
}

static inline weft_status compile(const trained *t, weft_mesh *mesh, const char *text, int stage,
                                  weft_program **program, weft_error *error)
{
    weft_layout *layout = NULL;
    WEFT_TRY(weft_layout_create(text, &layout, error));
    weft_status status = weft_layout_store(layout, stage, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(t->update), NULL, program, error);
    weft_layout_destroy(&layout);
    return status;
}

static inline weft_status train(const trained *t, weft_program *program, int steps,
                                weft_error *error)
{
    for (int step = 0; step < steps; step++) {
        for (int k = 0; k < N; k++) {
            double g[LARGEST];
            for (int i = 0; i < extents[k][0] * count_of(k); i++)
                g[i] = gradient_at(k, step, i);
            WEFT_TRY(weft_oracle_write(program, t->gradients[k], g, error));
        }
        WEFT_TRY(weft_run(program, error));
    }
    return WEFT_OK;
}

static const char *const layouts[] = {"",
                                      "batch:data?",
                                      "batch:data?+model?",
                                      "batch:data?,out:model?",
                                      "in:model?,batch:data?",
                                      "stack:data?,in:model?,batch:model?",
                                      "out:data?,in:model?"};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

#endif
