/* apart: a plan for a rank a row, looked through for whatever crosses rows or counts them. */
#include "apart.h"

#include <stdio.h>
#include <stdlib.h>

#include "weft/research/plan.h"

typedef struct looking {
    weft_program *program;
    bool *counts; /* [nodes] by number: it has no operands, and so what it makes is of the place */
    uint32_t n_nodes;
} looking;

static bool grow(looking *l, uint32_t node)
{
    if (node < l->n_nodes) return true;
    const uint32_t n = 2 * node + 16;
    bool *more = realloc(l->counts, n * sizeof *more);
    if (more == NULL) return false;
    for (uint32_t i = l->n_nodes; i < n; i++)
        more[i] = false;
    l->counts = more, l->n_nodes = n;
    return true;
}

static bool mark(looking *l, uint32_t node, int n_in)
{
    if (n_in > 0) return true;
    if (!grow(l, node)) return false;
    l->counts[node] = true;
    return true;
}

/* A step that converts brings together what ranks have. */
static bool look_at_step(looking *l, int s)
{
    weft_planned_step step;
    if (weft_plan_step_at(l->program, s, 0, &step, NULL) != WEFT_OK) return false;
    if (step.kind == WEFT_STEP_CONVERT) return false;
    if (step.kind == WEFT_STEP_KERNEL && !mark(l, step.node, step.n_in)) return false;
    for (int i = 0; i < step.n_links; i++) {
        weft_planned_link link;
        if (weft_plan_link_at(l->program, s, i, &link, NULL) != WEFT_OK) return false;
        if (!mark(l, link.node, link.n_in)) return false;
    }
    return true;
}

/* A row of a variable, or of numbers that count, is another for each place; a partial sum is of all ranks. */
static bool look_at_tensor(const looking *l, uint32_t id)
{
    weft_planned_tensor t;
    if (weft_plan_tensor_at(l->program, id, 0, &t, NULL) != WEFT_OK) return false;
    const int state = weft_spec_state(&t.spec, t.shape->n_dims, 0);
    if (state == WEFT_REPLICATED) return !t.is_output;
    if (state == WEFT_PARTIAL) return false;
    if (t.kind != WEFT_TENSOR_TEMPORARY) return t.kind == WEFT_TENSOR_INPUT;
    return t.node >= l->n_nodes || !l->counts[t.node];
}

static bool look(looking *l)
{
    bool are_apart = true;
    for (int s = 0; are_apart && s < weft_plan_n_steps(l->program); s++)
        are_apart = look_at_step(l, s);
    for (int t = 1; are_apart && t <= weft_plan_n_tensors(l->program); t++)
        are_apart = look_at_tensor(l, (uint32_t)t);
    free(l->counts);
    return are_apart;
}

bool rows_are_apart(weft_values outputs, int64_t rows)
{
    char text[64];
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    looking l = {NULL};
    if (rows < 2 || rows > APART_MOST_ROWS) return false;
    snprintf(text, sizeof text, "rows:%lld", (long long)rows);
    const bool is_planned = weft_mesh_plan(text, &mesh, NULL) == WEFT_OK &&
                            weft_layout_create("batch:rows", &layout, NULL) == WEFT_OK &&
                            weft_compile(mesh, layout, outputs, NULL, &l.program, NULL) == WEFT_OK;
    const bool are_apart = is_planned && look(&l);
    (void)!weft_program_destroy(&l.program);
    weft_layout_destroy(&layout);
    (void)!weft_mesh_destroy(&mesh);
    return are_apart;
}
