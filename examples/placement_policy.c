/* placement_policy: a new idea for placing tensors is a function of twenty lines.
 *
 *     placement_policy [MESH [LAYOUT]]         placement_policy data:4 batch:data
 *
 * The idea: weights stay where they are, and what was computed travels. `wants` spreads each weight over all axes,
 * along its largest dim, whatever the layout says. `pick` chooses, of the ways to cut an op, the cheapest in which
 * nothing that has a name moves. The program computes the same numbers. It keeps and sends other bytes, and the plan
 * tells both.
 */
#include <stdio.h>
#include <string.h>
#include <weft.h>
#include <weft/research/plan.h>

enum { STEPS = 20 };

static const weft_dim batch = {"batch", 32}, in = {"in", 64}, hidden = {"hidden", 512},
                      digit = {"digit", 10};

/* ---- the policy ------------------------------------------------------------------------------ */

/* "hidden:data+model" for a weight, NULL (as the layout says) for anything else. The text is copied before the next
 * question. */
static const char *spread_weights(void *context, const weft_wanting *value)
{
    static char text[256];
    const weft_dim *largest = NULL;
    (void)context;
    if (strcmp(value->op, "variable") != 0) return NULL;
    for (int d = 0; d < value->shape->n_dims; d++)
        if (largest == NULL || value->shape->dims[d].size > largest->size)
            largest = &value->shape->dims[d];
    if (largest == NULL) return NULL;
    int length = snprintf(text, sizeof text, "%s:", largest->name);
    for (int a = 0; a < weft_mesh_n_axes(value->mesh); a++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%s", a == 0 ? "" : "+",
                           weft_mesh_axis_name(value->mesh, a));
    return text;
}

static bool moves_a_weight(const weft_decision *decision, const weft_way *way)
{
    for (int i = 0; i < decision->n_in; i++)
        if (decision->in[i].name != NULL && way->need[i] != decision->in[i].now[decision->axis])
            return true;
    return false;
}

static int keep_weights(void *context, const weft_decision *decision)
{
    int best = WEFT_DEFAULT_WAY;
    (void)context;
    for (int w = 0; w < decision->n_ways; w++) {
        const weft_way *way = &decision->ways[w];
        if (moves_a_weight(decision, way)) continue;
        if (best == WEFT_DEFAULT_WAY || way->price.total < decision->ways[best].price.total)
            best = w;
    }
    return best;
}

/* ---- a program, compiled twice --------------------------------------------------------------- */

typedef struct model {
    weft_graph *graph;
    weft_value image, label, loss, update;
} model;

static void build(model *m)
{
    weft_graph *g = m->graph = weft_graph_create(1);
    m->image = weft_input(g, "image", WEFT_F64, WEFT_DIMS(batch, in));
    m->label = weft_input(g, "label", WEFT_I32, WEFT_DIMS(batch));
    weft_value w1 = weft_variable(g, "w1", WEFT_F64, WEFT_DIMS(in, hidden), weft_normal(0.0, 0.1));
    weft_value w2 =
        weft_variable(g, "w2", WEFT_F64, WEFT_DIMS(hidden, digit), weft_normal(0.0, 0.1));
    weft_value h = weft_relu(weft_einsum(WEFT_DIMS(batch, hidden), m->image, w1));
    weft_value logits = weft_einsum(WEFT_DIMS(batch, digit), h, w2);
    m->loss = weft_mean(weft_cross_entropy(logits, m->label, digit));
    m->update = weft_adam(m->loss, NULL);
}

/* What rank 0 keeps, and what it sends: of weights, and of anything else. */
static weft_status tell(const weft_program *program, const char *name, weft_error *error)
{
    weft_usage usage;
    double weights = 0, others = 0;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        weft_planned_tensor tensor;
        WEFT_TRY(weft_plan_step_at(program, s, 0, &step, error));
        if (step.kind != WEFT_STEP_CONVERT) continue;
        WEFT_TRY(weft_plan_tensor_at(program, step.in[0], 0, &tensor, error));
        if (tensor.kind == WEFT_TENSOR_PARAMETER)
            weights += (double)step.wire_bytes;
        else
            others += (double)step.wire_bytes;
    }
    printf("%-16s keeps %5.0f kB of weights and their moments; sends %5.0f kB of weights, %5.0f kB "
           "of others\n",
           name, (double)(usage.variable_bytes + usage.slot_bytes) * 1e-3, weights * 1e-3,
           others * 1e-3);
    return WEFT_OK;
}

static weft_status train(weft_mesh *mesh, const weft_layout *layout, const weft_policy *policy,
                         double *losses, weft_error *error)
{
    static double image[32][64];
    static int32_t label[32];
    const weft_philox_key key = {9, 0, 0};
    for (int i = 0; i < 32 * 64; i++) {
        uint32_t words[4];
        weft_philox(key, (uint64_t)i, words);
        image[i / 64][i % 64] = weft_philox_unit(words[0]) - 0.5;
        label[i / 64] = (int32_t)(weft_philox_unit(words[1]) * 10.0); /* to be learnt by heart */
    }
    model m;
    build(&m);
    weft_program *program = NULL;
    weft_compile_options options = {0};
    options.policy = policy;
    weft_status status =
        weft_compile(mesh, layout, WEFT_VALUES(m.loss, m.update), &options, &program, error);
    if (status == WEFT_OK) status = tell(program, policy ? policy->name : "as usual", error);
    if (status == WEFT_OK)
        status = weft_write(program, m.image, WEFT_F64, image, sizeof image, error);
    if (status == WEFT_OK)
        status = weft_write(program, m.label, WEFT_I32, label, sizeof label, error);
    for (int step = 0; step < STEPS && status == WEFT_OK; step++) {
        status = weft_run(program, error);
        if (status == WEFT_OK) status = weft_read_scalar(program, m.loss, &losses[step], error);
    }
    (void)weft_program_destroy(&program);
    (void)weft_graph_destroy(&m.graph);
    return status;
}

static weft_status compare(const char *mesh_text, const char *layout_text, weft_mesh **mesh,
                           weft_layout **layout, weft_error *error)
{
    double usual[STEPS], ours[STEPS];
    weft_world world;
    weft_policy policy = {0};
    policy.name = "weights stay";
    policy.wants = spread_weights;
    policy.pick = keep_weights;
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, mesh_text, mesh, error));
    WEFT_TRY(weft_layout_create(layout_text, layout, error));
    WEFT_TRY(train(*mesh, *layout, NULL, usual, error));
    WEFT_TRY(train(*mesh, *layout, &policy, ours, error));
    for (int step = 0; step < STEPS; step++)
        if (step % 5 == 4 || step == 0)
            printf("step %2d  loss %.10f as usual, %.10f where weights stay\n", step + 1,
                   usual[step], ours[step]);
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_error error = WEFT_NO_ERROR;
    if (compare(n > 1 ? arguments[1] : "data:4", n > 2 ? arguments[2] : "batch:data", &mesh,
                &layout, &error) != WEFT_OK)
        fprintf(stderr, "placement_policy: %s\n", error.message);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return error.status == WEFT_OK ? 0 : 2;
}
