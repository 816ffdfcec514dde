/* plan_case.h: a small training that is planned, on a mesh without ranks. */
#ifndef TEST_PLAN_CASE_H
#define TEST_PLAN_CASE_H

/* plan_test: the plan as data agrees with itself, with what is summed up of it, and with its JSON, for
 * every rank; on meshes without ranks.
 */
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/research/plan.h"

#include "test.h"

typedef struct planned {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value image, w1, hidden, loss, update;
    weft_program *program;
} planned;

/* A perceptron with its training, of sizes that no axis divides. */
static inline bool open_plan(planned *p, const char *mesh, const char *layout, int stage,
                             bool explain)
{
    weft_error error = {0};
    const weft_dim batch = {"batch", 211}, pixel = {"pixel", 29}, wide = {"hidden", 31},
                   digit = {"digit", 10};
    *p = (planned){.graph = weft_graph_create(1)};
    p->image = weft_input(p->graph, "image", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value label = weft_input(p->graph, "label", WEFT_I32, WEFT_DIMS(batch));
    p->w1 = weft_variable(p->graph, "w1", WEFT_F32, WEFT_DIMS(pixel, wide), weft_normal(0.0, 0.05));
    weft_value w2 =
        weft_variable(p->graph, "w2", WEFT_F32, WEFT_DIMS(wide, digit), weft_normal(0.0, 0.05));
    p->hidden = weft_relu(weft_einsum(WEFT_DIMS(batch, wide), p->image, p->w1));
    weft_value logits = weft_einsum(WEFT_DIMS(batch, digit), p->hidden, w2);
    p->loss = weft_mean(weft_cross_entropy(logits, label, digit));
    p->update = weft_adamw(p->loss, &(weft_optimizer_options){.rate = 1e-3});
    const weft_compile_options options = {.explain = explain};
    if (!CHECK_OK(weft_mesh_plan(mesh, &p->mesh, &error), error)) return false;
    if (!CHECK_OK(weft_layout_create(layout, &p->layout, &error), error)) return false;
    if (stage && !CHECK_OK(weft_layout_store(p->layout, stage, "batch", &error), error))
        return false;
    return CHECK_OK(weft_compile(p->mesh, p->layout, WEFT_VALUES(p->loss, p->update), &options,
                                 &p->program, &error),
                    error);
}

static inline void close_plan(planned *p)
{
    weft_program_destroy(&p->program);
    weft_graph_destroy(&p->graph);
    weft_layout_destroy(&p->layout);
    weft_mesh_destroy(&p->mesh);
}

#endif
