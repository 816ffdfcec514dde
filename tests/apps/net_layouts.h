/* net_layouts.h: a program's net, trained a few steps on one batch in float64: under every layout the losses of one rank.
 *
 *     static void build(net *n, const void *shape) { ... n->loss = ...; net_input(n, m.image, 0); net_input(n, m.label, 10); }
 *     net_check(&oracle, "cnn", build, &shape, layouts, n_layouts);
 *
 * Alone, meshes are made of in-process ranks; under MPI of the whole world.
 */
#ifndef TEST_NET_LAYOUTS_H
#define TEST_NET_LAYOUTS_H

#include "oracle.h"
#include "weft/optim.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

enum { NET_INPUTS = 4, NET_STEPS = 6 };

typedef struct net {
    weft_graph *graph;
    weft_value loss;
    int n_inputs;
    weft_value inputs[NET_INPUTS];
    int64_t below[NET_INPUTS]; /* of ids; 0: floats in [0, 1) */
    weft_value beside;         /* what a run does besides; {0}: nothing */
} net;

typedef void net_build(net *n, const void *argument);

typedef struct net_layout {
    const char *mesh, *layout;
    int zero;
} net_layout;

static inline void net_input(net *n, weft_value input, int64_t below)
{
    n->inputs[n->n_inputs] = input;
    n->below[n->n_inputs++] = below;
}

static inline weft_status net_write(const net *n, weft_program *program, weft_error *error)
{
    for (int i = 0; i < n->n_inputs; i++) {
        const int64_t count = weft_shape_count(weft_shape_of(n->inputs[i]));
        double *data = malloc((size_t)count * sizeof *data);
        for (int64_t k = 0; k < count; k++) {
            const double unit = weft_oracle_unit(i, k);
            data[k] = n->below[i] > 0 ? floor(unit * (double)n->below[i]) : unit;
        }
        const weft_status status = weft_oracle_write(program, n->inputs[i], data, error);
        free(data);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static inline weft_status net_run(const net *n, weft_mesh *mesh, const net_layout *where,
                                  double *losses, weft_error *error)
{
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_value update = weft_adam(n->loss, &(weft_optimizer_options){.rate = 3e-3});
    if (n->beside.id != 0) update = weft_group(n->graph, WEFT_VALUES(update, n->beside));
    weft_status status = weft_layout_create(where->layout, &layout, error);
    if (status == WEFT_OK) status = weft_layout_store(layout, where->zero, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(n->loss, update), NULL, &program, error);
    for (int step = 0; step < NET_STEPS && status == WEFT_OK; step++) {
        status = net_write(n, program, error);
        if (status == WEFT_OK) status = weft_run(program, error);
        if (status == WEFT_OK) status = weft_read_scalar(program, n->loss, &losses[step], error);
    }
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    return status;
}

static inline bool net_train(net_build *build, const void *argument, weft_mesh *mesh,
                             const net_layout *where, double *losses)
{
    weft_error error = {0};
    net n = {.graph = weft_graph_create(11)};
    build(&n, argument);
    const bool good = CHECK_OK(net_run(&n, mesh, where, losses, &error), error);
    weft_graph_destroy(&n.graph);
    return good;
}

static inline void net_check(const weft_oracle *oracle, const char *name, net_build *build,
                             const void *argument, const net_layout *layouts, int n_layouts)
{
    const net_layout alone = {"", "", 0};
    double expected[NET_STEPS], losses[NET_STEPS];
    if (!net_train(build, argument, oracle->alone, &alone, expected)) return;
    weft_test_check(expected[NET_STEPS - 1] < expected[0], __FILE__, __LINE__, name);
    for (int i = 0; i < n_layouts; i++) {
        for (int m = 0; m < oracle->n_meshes; m++) {
            char text[300];
            if (strcmp(weft_mesh_text(oracle->meshes[m]), layouts[i].mesh) != 0) continue;
            if (!net_train(build, argument, oracle->meshes[m], &layouts[i], losses)) continue;
            int step = 0;
            while (step + 1 < NET_STEPS &&
                   fabs(losses[step] - expected[step]) <= 1e-10 * fabs(expected[step]))
                step++;
            snprintf(text, sizeof text, "%s on %s \"%s\" step %d: loss %.17g, of one rank %.17g",
                     name, layouts[i].mesh, layouts[i].layout, step + 1, losses[step],
                     expected[step]);
            weft_test_check(fabs(losses[step] - expected[step]) <= 1e-10 * fabs(expected[step]),
                            __FILE__, __LINE__, text);
        }
    }
}

#endif
