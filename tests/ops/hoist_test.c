/* hoist_test: a step that ends a value stands where that value is finished: update rules after their gradients, and
 * after all readers of the variable's old value. A step that needs all gradients still comes after all. (That the
 * numbers are the same to the bit, and nothing grows: fuse_test.)
 */
#include "ops/compile/passes.h"
#include "weft/autodiff.h"
#include "weft/ops.h"
#include "weft/optim.h"

#include <string.h>

#include "test.h"

enum { LAYERS = 4 };

static const weft_dim row = {"row", 16}, wide = {"wide", 256}, narrow = {"narrow", 128};

/* Layers of two products each; nothing in it is small. */
typedef struct net {
    weft_graph *graph;
    weft_value w[2 * LAYERS], loss;
} net;

static void open_net(net *n)
{
    n->graph = weft_graph_create(1);
    weft_value x = weft_input(n->graph, "x", WEFT_F32, WEFT_DIMS(row, wide));
    for (int i = 0; i < 2 * LAYERS; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        n->w[i] =
            weft_variable(n->graph, name, WEFT_F32, WEFT_DIMS(wide, narrow), weft_normal(0.0, 0.1));
        x = weft_tanh(
            weft_einsum(i % 2 ? WEFT_DIMS(row, wide) : WEFT_DIMS(row, narrow), x, n->w[i]));
    }
    n->loss = weft_mean(weft_square(x));
}

static weft_plan *plan_of(weft_values values, const char *mesh_text, const char *layout_text,
                          weft_mesh **mesh)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_plan *plan = NULL;
    CHECK_OK(weft_mesh_plan(mesh_text, mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    CHECK_OK(weft_plan_build(*mesh, layout, values, NULL, &plan, &error), error);
    weft_layout_destroy(&layout);
    return plan;
}

/* The last step that reads, and the last that writes, the variable's memory. */
static void find_uses(const weft_plan *plan, const char *name, int *read, int *written)
{
    *read = *written = -1;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in + step->n_out; i++) {
            const bool is_in = i < step->n_in;
            const uint32_t owner =
                weft_placed_owner(plan, is_in ? step->in[i] : step->out[i - step->n_in]);
            const char *its = plan->graph->tensors[plan->placed[owner].value].name;
            if (plan->placed[owner].home != WEFT_VARIABLE_HOME || !its || strcmp(its, name) != 0)
                continue;
            if (is_in) *read = (int)s;
            if (!is_in) *written = (int)s;
        }
    }
}

/* Layer after layer, from the last: between two updates there is at least the product that is the next gradient. */
static void test_an_update_stands_behind_its_gradient(void)
{
    static const char *const places[][2] = {{"data:1", ""}, {"data:2", "row:data"}};
    for (int p = 0; p < 2; p++) {
        net n;
        weft_mesh *mesh = NULL;
        open_net(&n);
        weft_value update = weft_adamw(n.loss, &(weft_optimizer_options){.rate = 1e-3});
        weft_plan *plan = plan_of(WEFT_VALUES(n.loss, update), places[p][0], places[p][1], &mesh);
        int before = (int)(plan ? plan->n_steps : 0);
        for (int i = 0; i < 2 * LAYERS && plan; i++) {
            int read, written;
            find_uses(plan, weft_name_of(n.w[i]), &read, &written);
            CHECK(written >= 0 && read == written); /* the rule reads the weight last */
            CHECK(before - written >= (i > 0 ? 2 : 1));
            before = written;
        }
        weft_plan_destroy(&plan);
        weft_mesh_destroy(&mesh);
        weft_graph_destroy(&n.graph);
    }
}

static int64_t arena_of(const char *mesh_text, const char *layout_text, double clip)
{
    net n;
    weft_mesh *mesh = NULL;
    weft_memory memory = {0};
    weft_error error = {0};
    open_net(&n);
    weft_arena *arena = weft_arena_create();
    weft_value update = weft_adamw(n.loss, &(weft_optimizer_options){.rate = 1e-3, .clip = clip});
    weft_plan *plan = plan_of(WEFT_VALUES(n.loss, update), mesh_text, layout_text, &mesh);
    if (plan) CHECK_OK(weft_plan_memory(plan, 0, arena, &memory, &error), error);
    weft_plan_destroy(&plan);
    weft_arena_destroy(&arena);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&n.graph);
    return memory.arena_bytes;
}

/* However many layers there are; all of them only where they are clipped by the norm of all. */
static void test_one_gradient_is_in_memory_at_a_time(void)
{
    const int64_t gradient = 256 * 128 * 4;
    for (int ranks = 1; ranks <= 2; ranks++) {
        const char *mesh = ranks == 1 ? "data:1" : "data:2", *layout = ranks == 1 ? "" : "row:data";
        const int64_t freely = arena_of(mesh, layout, 0), clipped = arena_of(mesh, layout, 0.5);
        CHECK(freely >= gradient && freely < 2 * gradient + 2 * LAYERS * 16 * 256 * 4);
        CHECK(clipped >= 2 * LAYERS * gradient);
    }
}

/* Built as y = x a, u = x x, z = sum of y: z ends y, so it stands behind it, and u after both. */
static void test_who_ends_a_value_stands_behind_it(void)
{
    weft_graph *graph = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(row));
    weft_value y =
        weft_einsum(WEFT_DIMS(row, wide), x, weft_input(graph, "a", WEFT_F32, WEFT_DIMS(wide)));
    weft_value u = weft_einsum(WEFT_SCALAR, x, x);
    weft_value z = weft_sum(WEFT_DIMS(wide), y);
    weft_plan *plan = plan_of(WEFT_VALUES(u, z), "data:1", "", &mesh);
    if (plan && CHECK_EQ_INT(plan->n_steps, 3)) {
        const char *const expected[] = {"einsum", "sum", "einsum"};
        for (int s = 0; s < 3; s++)
            CHECK_TEXT(plan->graph->nodes[plan->steps[s].node].op->name, expected[s]);
        CHECK_EQ_INT(plan->placed[plan->steps[0].out[0]].type.shape.n_dims, 2);
    }
    weft_plan_destroy(&plan);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
}

int main(void)
{
    RUN(test_an_update_stands_behind_its_gradient);
    RUN(test_one_gradient_is_in_memory_at_a_time);
    RUN(test_who_ends_a_value_stands_behind_it);
    return weft_test_report();
}
