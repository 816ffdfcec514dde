/* planned.h: a program on a mesh without ranks, with all it is made of. */
#ifndef TEST_PLANNED_H
#define TEST_PLANNED_H

#include "weft.h"

#include "test.h"

typedef struct planned {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
} planned;

static inline void open_planned(planned *p, const char *mesh, const char *layout)
{
    weft_error error = WEFT_NO_ERROR;
    *p = (planned){.graph = weft_graph_create(1)};
    CHECK_OK(weft_mesh_plan(mesh, &p->mesh, &error), error);
    CHECK_OK(weft_layout_create(layout, &p->layout, &error), error);
}

static inline void plan(planned *p, weft_values values)
{
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(weft_compile(p->mesh, p->layout, values, NULL, &p->program, &error), error);
}

static inline void close_planned(planned *p)
{
    (void)!weft_program_destroy(&p->program);
    weft_graph_destroy(&p->graph);
    weft_layout_destroy(&p->layout);
    (void)!weft_mesh_destroy(&p->mesh);
}

#endif
