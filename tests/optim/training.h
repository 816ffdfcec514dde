/* training.h: a small network, trained for some steps under a mesh, a layout and a ZeRO stage; all its variables read
 * back. For the tests of optimizers.
 */
#ifndef WEFT_TEST_TRAINING_H
#define WEFT_TEST_TRAINING_H

#include <stdlib.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/optim.h"

enum { N_VARIABLES = 4, MOST_NUMBERS = 200 };

/* The network: variables in this order, of these names. */
typedef struct net {
    weft_graph *graph;
    weft_value x, loss, variables[N_VARIABLES]; /* embed.w, block.w, block.b, head.w */
    weft_value extra;                           /* one more output, a scalar; id 0: none */
} net;

/* What is trained, and how: token(s) for the program. */
typedef weft_value (*trainer)(net *n, const void *argument);

/* Where: a layout's text, and a stage that shards over the axes of batch; by whose policy (NULL: the default). */
typedef struct place {
    const char *layout;
    int stage;
    const weft_policy *policy;
} place;

static const place places[] = {
    {"", 0, NULL},
    {"batch:data?", 0, NULL},
    {"batch:data?", 1, NULL},
    {"batch:data?", 3, NULL},
    {"hidden:model?,batch:data?", 2, NULL},
    {"batch:data?+model?,in:data?", 3, NULL},
    {"wide:data?,hidden:model?", 0, NULL},
    {"batch:model?+data?,wide:model?", 1, NULL},
};
enum { N_PLACES = sizeof places / sizeof places[0] };

/* Of 6 rows, or of several such batches at once. */
static inline net net_of(int n_batches)
{
    const weft_dim batch = {"batch", 6 * n_batches}, in = {"in", 5}, hidden = {"hidden", 4},
                   wide = {"wide", 7}, out = {"out", 3};
    net n = {.graph = weft_graph_create(7)};
    n.x = weft_input(n.graph, "x", WEFT_F64, WEFT_DIMS(batch, in));
    n.variables[0] =
        weft_variable(n.graph, "embed.w", WEFT_F64, WEFT_DIMS(in, hidden), weft_normal(0.0, 0.5));
    n.variables[1] =
        weft_variable(n.graph, "block.w", WEFT_F64, WEFT_DIMS(hidden, wide), weft_normal(0.0, 0.5));
    n.variables[2] =
        weft_variable(n.graph, "block.b", WEFT_F64, WEFT_DIMS(wide), weft_normal(0.0, 0.5));
    n.variables[3] =
        weft_variable(n.graph, "head.w", WEFT_F64, WEFT_DIMS(wide, out), weft_normal(0.0, 0.5));
    weft_value h = weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), n.x, n.variables[0]));
    weft_value y =
        weft_gelu(weft_add(weft_einsum(WEFT_DIMS(batch, wide), h, n.variables[1]), n.variables[2]));
    n.loss = weft_mean(weft_square(weft_einsum(WEFT_DIMS(batch, out), y, n.variables[3])));
    return n;
}

static inline net net_make(void)
{
    return net_of(1);
}

/* All variables, one after the other, then the extra output (or 0), then the loss of the last run. */
static inline weft_status net_read(const net *n, weft_program *program, double *numbers,
                                   weft_error *error)
{
    int at = 0;
    for (int i = 0; i < N_VARIABLES; i++) {
        double *data = NULL;
        const int64_t count = weft_shape_count(weft_shape_of(n->variables[i]));
        WEFT_TRY(weft_oracle_read(program, n->variables[i], &data, error));
        memcpy(numbers + at, data, (size_t)count * sizeof *data);
        free(data);
        at += (int)count;
    }
    numbers[at] = 0.0;
    if (n->extra.id != 0) WEFT_TRY(weft_read_scalar(program, n->extra, &numbers[at], error));
    return weft_read_scalar(program, n->loss, &numbers[at + 1], error);
}

/* Batch number `first` and those after it, as many as the network takes. */
static inline weft_status net_feed_from(const net *n, weft_program *program, int first,
                                        weft_error *error)
{
    double data[400];
    const int count = (int)weft_shape_count(weft_shape_of(n->x));
    for (int i = 0; i < count && i < 400; i++)
        data[i] = 2.0 * weft_oracle_unit(0, 30 * first + i) - 1.0;
    return weft_oracle_write(program, n->x, data, error);
}

static inline weft_status net_feed(const net *n, weft_program *program, weft_error *error)
{
    return net_feed_from(n, program, 0, error);
}

/* A program on a mesh under a place; updates, then what can be read. */
static inline weft_status net_compile(const net *n, weft_value update, weft_mesh *mesh,
                                      const place *where, weft_program *share,
                                      weft_program **program, weft_error *error)
{
    const weft_value values[] = {update,          n->loss,         n->variables[0], n->variables[1],
                                 n->variables[2], n->variables[3], n->extra};
    weft_layout *layout = NULL;
    WEFT_TRY(weft_layout_create(where->layout, &layout, error));
    weft_status status = weft_layout_store(layout, where->stage, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, (weft_values){values, n->extra.id != 0 ? 7 : 6},
                              &(weft_compile_options){.share = share, .policy = where->policy},
                              program, error);
    weft_layout_destroy(&layout);
    return status;
}

/* Returns how many numbers there are; 0 after a failure, which is a failed check. */
static inline int net_train(weft_mesh *mesh, const place *where, trainer train,
                            const void *argument, int steps, double numbers[MOST_NUMBERS])
{
    net n = net_make();
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value update = train(&n, argument);
    weft_status status = net_compile(&n, update, mesh, where, NULL, &program, &error);
    if (status == WEFT_OK) status = net_feed(&n, program, &error);
    for (int step = 0; step < steps && status == WEFT_OK; step++)
        status = weft_run(program, &error);
    if (status == WEFT_OK) status = net_read(&n, program, numbers, &error);
    CHECK_OK(status, error);
    weft_program_destroy(&program);
    weft_graph_destroy(&n.graph);
    return status == WEFT_OK ? 20 + 28 + 7 + 21 + 2 : 0;
}

/* Are all numbers of both within `within`? Says which is not. */
static inline bool net_same(const double *a, const double *b, int from, int to, double within,
                            const char *what)
{
    char text[200];
    for (int i = from; i < to; i++) {
        if (fabs(a[i] - b[i]) <= within) continue;
        snprintf(text, sizeof text, "%s: number %d: %.17g and %.17g", what, i, a[i], b[i]);
        return weft_test_check(false, __FILE__, __LINE__, text);
    }
    return weft_test_check(to > from, __FILE__, __LINE__, what);
}

#endif
