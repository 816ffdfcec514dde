/* gpt_plan.h: gpt's training as a plan, for tests of passes and of what a plan needs. */
#ifndef TEST_GPT_PLAN_H
#define TEST_GPT_PLAN_H

#include "apps/gpt/model.h"
#include "ops/compile/passes.h"
#include "weft/optim.h"

#include "test.h"

typedef struct gpt_plan {
    weft_mesh *mesh;
    weft_graph *graph;
    weft_plan *plan; /* NULL: it could not be had, and the test has failed */
} gpt_plan;

/* Layouts of which each has exchanges of other kinds, or over other axes. */
static const struct {
    const char *mesh, *rules;
    int zero;
} gpt_exchanges[] = {{"data:2", "batch:data", 0},
                     {"data:4", "batch:data", 3},
                     {"model:2", "hidden:model,heads:model,vocab:model", 0},
                     {"model:2", "seq:model", 0},
                     {"data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", 0},
                     {"data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", 3},
                     {"data:2,model:2", "batch:data,seq:model", 1}};
enum {
    GPT_EXCHANGES = sizeof gpt_exchanges / sizeof *gpt_exchanges,
    GPT_IN_TWO = 4,
    GPT_IN_TWO_STORED
};

static inline void gpt_plan_open(const gpt_shape *shape, const char *mesh_text,
                                 const char *layout_text, int zero, gpt_plan *p)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    gpt_model model;
    *p = (gpt_plan){.graph = weft_graph_create(1)};
    const weft_value loss = gpt_loss(shape, p->graph, &model);
    const weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3, .clip = 1});
    CHECK_OK(weft_mesh_plan(mesh_text, &p->mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    CHECK_OK(weft_layout_store(layout, zero, "batch", &error), error);
    CHECK_OK(weft_plan_build(p->mesh, layout, WEFT_VALUES(loss, update), NULL, &p->plan, &error),
             error);
    weft_layout_destroy(&layout);
}

static inline void gpt_plan_close(gpt_plan *p)
{
    weft_plan_destroy(&p->plan);
    weft_mesh_destroy(&p->mesh);
    weft_graph_destroy(&p->graph);
}

#endif
