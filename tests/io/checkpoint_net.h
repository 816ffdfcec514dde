/* checkpoint_net.h: a small trained network to save and restore, on any mesh and layout. */
#ifndef WEFT_CHECKPOINT_NET_H
#define WEFT_CHECKPOINT_NET_H

#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "weft/checkpoint.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/optim.h"

/* Sizes that no mesh divides. */
enum { BATCH = 6, PIXEL = 7, HIDDEN = 5, DIGIT = 3 };

typedef struct place {
    const char *mesh, *layout;
    int zero, n_ranks;
} place;

typedef struct net {
    weft_mesh *mesh;
    weft_graph *graph;
    weft_program *program;
    weft_value image, label, loss;
} net;

static weft_world world;

typedef struct net_options {
    weft_dtype dtype;
    int hidden;                            /* 0: HIDDEN */
    bool is_bare;                          /* no optimizer, so no slots */
    weft_value (*update)(weft_value loss); /* NULL: by AdamW, clipped */
    const char *w1, *own;                  /* another name; one more variable */
} net_options;

static inline weft_value net_loss(net *n, const net_options *o)
{
    const weft_dim batch = {"batch", BATCH}, pixel = {"pixel", PIXEL}, digit = {"digit", DIGIT},
                   hidden = {"hidden", o->hidden ? o->hidden : HIDDEN};
    n->image = weft_input(n->graph, "image", o->dtype, WEFT_DIMS(batch, pixel));
    n->label = weft_input(n->graph, "label", WEFT_I32, WEFT_DIMS(batch));
    weft_value w1 = weft_variable(n->graph, o->w1 ? o->w1 : "w1", o->dtype,
                                  WEFT_DIMS(pixel, hidden), weft_normal(0.0, 0.3));
    weft_value b1 =
        weft_variable(n->graph, "b1", o->dtype, WEFT_DIMS(hidden), weft_constant_of(0.1));
    weft_value w2 =
        weft_variable(n->graph, "w2", o->dtype, WEFT_DIMS(hidden, digit), weft_normal(0.0, 0.3));
    weft_value gain =
        weft_variable(n->graph, "odd/name.1:0-x", o->dtype, WEFT_SCALAR, weft_constant_of(1.5));
    weft_value h = weft_tanh(weft_add(weft_einsum(WEFT_DIMS(batch, hidden), n->image, w1), b1));
    weft_value logits = weft_mul(weft_einsum(WEFT_DIMS(batch, digit), h, w2), gain);
    return weft_mean(weft_cross_entropy(logits, n->label, digit));
}

static inline weft_status net_open(const place *where, const net_options *o, net *n,
                                   weft_error *error)
{
    weft_layout *layout = NULL;
    *n = (net){.graph = weft_graph_create(77)};
    n->loss = net_loss(n, o);
    weft_value update = n->loss;
    if (!o->is_bare)
        update = o->update != NULL
                     ? o->update(n->loss)
                     : weft_adamw(n->loss, &(weft_optimizer_options){.rate = 0.05, .clip = 1.0});
    weft_lanes_choose(world.n_processes > 1 ? 0 : 3);
    WEFT_TRY(weft_mesh_create(&world, where->mesh, &n->mesh, error));
    WEFT_TRY(weft_layout_create(where->layout, &layout, error));
    weft_status status = weft_layout_store(layout, where->zero, "batch", error);
    if (status == WEFT_OK)
        status =
            weft_compile(n->mesh, layout, WEFT_VALUES(n->loss, update), NULL, &n->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static inline void net_close(net *n)
{
    weft_program_destroy(&n->program);
    weft_graph_destroy(&n->graph);
    weft_mesh_destroy(&n->mesh);
}

/* Steps first to last, counted from 1; losses [last] may be NULL. */
static inline weft_status net_run(net *n, int first, int last, double *losses, weft_error *error)
{
    for (int step = first; step <= last; step++) {
        double x[BATCH * PIXEL];
        float x32[BATCH * PIXEL];
        int32_t labels[BATCH];
        for (int i = 0; i < BATCH * PIXEL; i++)
            x32[i] = (float)(x[i] = (i * 37 + step * 11) % 101 / 64.0);
        for (int i = 0; i < BATCH; i++)
            labels[i] = (i + step) % DIGIT;
        const bool is_f32 = weft_dtype_of(n->image) == WEFT_F32;
        WEFT_TRY(weft_write(n->program, n->image, is_f32 ? WEFT_F32 : WEFT_F64,
                            is_f32 ? (void *)x32 : (void *)x,
                            is_f32 ? (int64_t)sizeof x32 : (int64_t)sizeof x, error));
        WEFT_TRY(weft_write(n->program, n->label, WEFT_I32, labels, sizeof labels, error));
        WEFT_TRY(weft_run(n->program, error));
        if (losses) WEFT_TRY(weft_read_scalar(n->program, n->loss, &losses[step - 1], error));
    }
    return WEFT_OK;
}

/* All variables and slots, one after the other, as they are in memory. */
enum { NET_BYTES = 4096 };
static inline int64_t net_read(net *n, char bytes[NET_BYTES])
{
    weft_error error = {0};
    int64_t used = 0;
    weft_value variable;
    memset(bytes, 0, NET_BYTES);
    for (int i = 0; (variable = weft_variable_at(n->program, i)).id != 0; i++) {
        const int64_t part = weft_shape_count(weft_shape_of(variable)) *
                             (int64_t)weft_dtype_bytes(weft_dtype_of(variable));
        if (!CHECK(used + part <= NET_BYTES)) return used;
        CHECK_OK(
            weft_read(n->program, variable, weft_dtype_of(variable), bytes + used, part, &error),
            error);
        used += part;
    }
    return used;
}

static inline weft_checkpoint_state net_state(const net *n)
{
    return (weft_checkpoint_state){.step = weft_runs(n->program),
                                   .sample = weft_runs(n->program) * BATCH,
                                   .seed = UINT64_MAX - 5};
}

/* Open, save, close. */
static inline weft_status net_save(net *n, const char *directory, weft_error *error)
{
    weft_checkpoints *c = NULL;
    const weft_checkpoint_state state = net_state(n);
    WEFT_TRY(weft_checkpoints_open(directory, NULL, &c, error));
    weft_status status = weft_checkpoints_save(c, n->program, &state, error);
    if (status == WEFT_OK) status = weft_checkpoints_wait(c, error);
    weft_checkpoints_close(&c);
    return status;
}

static inline weft_status net_restore(net *n, const char *directory, int64_t step,
                                      weft_checkpoint_state *state, weft_error *error)
{
    weft_checkpoints *c = NULL;
    WEFT_TRY(weft_checkpoints_open(directory, NULL, &c, error));
    const weft_status status = weft_checkpoints_restore(c, n->program, step, state, error);
    weft_checkpoints_close(&c);
    return status;
}

/* The same name on all processes of a job, another for every job and every `what`. */
static inline const char *scratch(const char *what)
{
    static char path[128];
    const int job = world.n_processes > 1 ? (int)getppid() : (int)getpid();
    snprintf(path, sizeof path, "/tmp/weft-checkpoint-%d-%d/%s", world.n_processes, job, what);
    return path;
}

static inline void scratch_remove(void)
{
    char command[200];
    if (!weft_world_is_root()) return;
    snprintf(command, sizeof command, "rm -rf '%s'", scratch(""));
    CHECK_EQ_INT(system(command), 0);
}

/* Without HDF5 a save is one sentence, and all other tests are skipped. */
#ifdef WEFT_HAVE_HDF5
enum { CAN_SAVE = true };
#else
enum { CAN_SAVE = false };
#endif

static inline void check_cannot_save(void)
{
    weft_error error = {0};
    const place where = {world.n_processes == 1 ? "data:1" : "", "", 0, world.n_processes};
    net n;
    if (CHECK_OK(net_open(&where, &(net_options){.dtype = WEFT_F64}, &n, &error), error)) {
        CHECK_EQ_INT(net_save(&n, scratch("none"), &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "built without HDF5");
    }
    net_close(&n);
    weft_test_skip("built without HDF5, which checkpoints are written with");
}

#endif
