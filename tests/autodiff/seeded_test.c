/* RANKS: 2 4 */
/* seeded_test: gradients with seeds and of several values at once are those of the weighted sum, under placements too;
 * two losses share one forward pass and one set of random masks; wrong calls have their sentence and leave nothing.
 */
#include <stdlib.h>

#include "ops/run/program.h"
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/optim.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 6}, in = {"in", 5}, hidden = {"hidden", 4};

/* Two results of two operands: [batch, hidden] and [hidden]. The first goes into the second. */
static void build_two(weft_value x, weft_value w, weft_value *two)
{
    two[0] = weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), x, w));
    two[1] = weft_logsumexp(weft_mul(two[0], weft_sum(WEFT_DIMS(batch), x)), batch);
}

/* Outputs: gradients by seeds; the same by the weighted sum; the same one value after the other; how far they differ. */
static void build_seeded(weft_oracle_build *b)
{
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, hidden), -1.0, 1.0);
    weft_value s0 = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(hidden, batch), -1.0, 1.0);
    weft_value s1 = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(hidden), -1.0, 1.0);
    weft_value two[2], seeded[2], summed[2], first[2], second[2];
    build_two(x, w, two);
    weft_gradients_seeded(WEFT_VALUES(two[0], two[1]), WEFT_VALUES(s0, s1), WEFT_VALUES(x, w),
                          seeded, 0);
    weft_gradients_seeded(WEFT_VALUES(two[0]), WEFT_VALUES(s0), WEFT_VALUES(x, w), first, 0);
    weft_gradients_seeded(WEFT_VALUES(two[1]), WEFT_VALUES(s1), WEFT_VALUES(x, w), second, 0);
    weft_value loss = weft_add(weft_sum(WEFT_SCALAR, weft_mul(two[0], s0)),
                               weft_sum(WEFT_SCALAR, weft_mul(two[1], s1)));
    weft_gradients(loss, WEFT_VALUES(x, w), summed, 0);
    for (int i = 0; i < 2; i++) {
        weft_oracle_output(b, seeded[i]);
        weft_oracle_output(b, summed[i]);
        weft_oracle_output(b, weft_add(first[i], second[i]));
    }
}

static void test_seeds_are_weights_under_placements(void)
{
    const weft_oracle_case what = {.name = "seeded", .build = build_seeded};
    weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 6 : 60);
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int i = 0; i < 2; i++) {
        double largest = 0.0;
        for (int64_t k = 0; k < r.count[3 * i]; k++) {
            CHECK(fabs(r.data[3 * i][k] - r.data[3 * i + 1][k]) < 1e-13);
            CHECK(fabs(r.data[3 * i][k] - r.data[3 * i + 2][k]) < 1e-13);
            largest = fmax(largest, fabs(r.data[3 * i][k]));
        }
        CHECK(largest > 0.1);
    }
    weft_oracle_free(&r);
}

/* No seeds are seeds of ones; a value listed twice counts twice; a seed is a constant even when made of x. */
static void build_plain(weft_oracle_build *b)
{
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    weft_value y = weft_exp(x), d[1];
    weft_oracle_output(
        b, weft_gradients_seeded(WEFT_VALUES(y), (weft_values){0}, WEFT_VALUES(x), d, 0));
    weft_oracle_output(b, weft_gradients(y, WEFT_VALUES(x), d, 0));
    weft_oracle_output(b, weft_scale(weft_gradients_seeded(WEFT_VALUES(y, y), (weft_values){0},
                                                           WEFT_VALUES(x), d, 0),
                                     0.5));
    weft_value made = weft_gradients_seeded(WEFT_VALUES(y), WEFT_VALUES(x), WEFT_VALUES(x), d, 0);
    weft_oracle_output(b, weft_add(weft_sub(made, weft_mul(x, y)), y));
}

static void test_no_seed_is_one_and_a_seed_is_a_constant(void)
{
    weft_oracle_result r;
    weft_error error = {0};
    const weft_oracle_case what = {.name = "plain", .build = build_plain};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int k = 1; k < 4; k++)
        for (int64_t i = 0; i < r.count[0]; i++)
            CHECK(fabs(r.data[k][i] - r.data[0][i]) < 1e-15);
    weft_oracle_free(&r);
}

/* ---- one forward pass ------------------------------------------------------------------------ */

typedef enum how { FORWARD_ONLY, APART, TOGETHER } how;

/* A network with dropout and two losses; the sum of both losses' gradients, taken apart or of the summed loss. */
static void build_losses(weft_oracle_build *b)
{
    const how how = *(const enum how *)b->argument;
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0), d[3][1];
    weft_value w =
        weft_variable(b->graph, "w", WEFT_F64, WEFT_DIMS(in, hidden), weft_normal(0.0, 1.0));
    weft_value h = weft_dropout(weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), x, w)), 0.5);
    weft_value l1 = weft_mean(weft_square(h)),
               l2 = weft_sum(WEFT_SCALAR, weft_logsumexp(h, hidden));
    weft_oracle_output(b, l1);
    weft_oracle_output(b, l2);
    if (how == APART) {
        weft_gradients(l1, WEFT_VALUES(w), d[0], 0);
        weft_gradients(l2, WEFT_VALUES(w), d[1], 0);
        weft_oracle_output(b, weft_add(d[0][0], d[1][0]));
    } else if (how == TOGETHER) {
        weft_oracle_output(b, weft_gradients(weft_add(l1, l2), WEFT_VALUES(w), d[2], 0));
    }
}

/* Forward nodes of an op that are left when the program is made. */
static int count_forward(const weft_program *program, const char *op)
{
    const weft_graph *g = program->plan->graph;
    int n = 0;
    for (uint32_t id = 1; id < g->n_nodes; id++)
        n += g->nodes[id].phase == WEFT_FORWARD && strcmp(g->nodes[id].op->name, op) == 0;
    return n;
}

static int count_all_forward(const weft_program *program)
{
    int n = 0;
    for (uint32_t id = 1; id < program->plan->graph->n_nodes; id++)
        n += program->plan->graph->nodes[id].phase == WEFT_FORWARD;
    return n;
}

/* Compile on a plan of four ranks; look at the nodes. */
static void count_nodes(how how, int *n_forward, int *n_dropout, int *n_tanh)
{
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    weft_oracle_build b = {.graph = weft_graph_create(77), .argument = &how};
    build_losses(&b);
    CHECK_OK(weft_mesh_plan("data:2,model:2", &mesh, &error), error);
    if (CHECK_OK(
            weft_compile(mesh, NULL, (weft_values){b.outputs, b.n_outputs}, NULL, &program, &error),
            error)) {
        *n_forward = count_all_forward(program);
        *n_dropout = count_forward(program, "dropout");
        *n_tanh = count_forward(program, "tanh");
    }
    weft_program_destroy(&program);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&b.graph);
}

static void test_two_losses_share_one_forward_pass(void)
{
    int n_forward[3] = {0}, n_dropout[3] = {0}, n_tanh[3] = {0};
    for (int k = 0; k < 3; k++)
        count_nodes((how)k, &n_forward[k], &n_dropout[k], &n_tanh[k]);
    CHECK(n_forward[FORWARD_ONLY] > 8);
    CHECK_EQ_INT(n_forward[APART], n_forward[FORWARD_ONLY] + 1); /* the sum of both gradients */
    CHECK_EQ_INT(n_forward[TOGETHER], n_forward[FORWARD_ONLY]);  /* nobody reads l1 + l2 */
    for (int k = 0; k < 3; k++) {
        CHECK_EQ_INT(n_dropout[k], 1);
        CHECK_EQ_INT(n_tanh[k], 1);
    }
}

/* Other masks in one of them would give another sum: h's masks decide which rows count. */
static void test_both_gradients_have_the_same_masks(void)
{
    static const char *const layouts[] = {"", "batch:data?", "hidden:model?",
                                          "batch:data?,hidden:model?", "in:data?"};
    static const how apart = APART, together = TOGETHER;
    weft_error error = {0};
    for (int m = -1; m < oracle.n_meshes; m++)
        for (int l = 0; l < 5; l++) {
            weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
            weft_oracle_case what = {
                .name = "losses", .build = build_losses, .argument = &apart, .layout = layouts[l]};
            weft_oracle_result a, t;
            CHECK_OK(weft_oracle_run(mesh, &what, NULL, &a, &error), error);
            what.argument = &together;
            CHECK_OK(weft_oracle_run(mesh, &what, NULL, &t, &error), error);
            char text[600];
            weft_test_check(weft_oracle_same(&a, &t, false, text, sizeof text), __FILE__, __LINE__,
                            text);
            weft_oracle_free(&a);
            weft_oracle_free(&t);
        }
}

static void test_losses_under_placements(void)
{
    static const how apart = APART;
    weft_oracle_sweep(
        &oracle,
        &(weft_oracle_case){.name = "two losses", .build = build_losses, .argument = &apart},
        oracle.world.n_processes > 1 ? 6 : 40);
}

/* ---- sentences ------------------------------------------------------------------------------- */

typedef struct wrong {
    const char *says;
    void (*make)(weft_graph *g, weft_value x, weft_value w, weft_value *d);
} wrong;

static void no_room(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)d;
    weft_gradients(weft_mean(w), WEFT_VALUES(x), NULL, 0);
}

static void null_list(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)x;
    weft_gradients(w, (weft_values){NULL, 2}, d, 0);
}

static void negative_list(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g;
    weft_gradients(w, (weft_values){&x, -1}, d, 0);
}

static void endless_list(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g;
    weft_gradients(w, (weft_values){&x, INT32_MAX}, d, 0);
}

static void stranger(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)x;
    weft_graph *other = weft_graph_create(3);
    weft_gradients(w, WEFT_VALUES(w, weft_constant(other, WEFT_F64, WEFT_SCALAR, 1.0)), d, 0);
    weft_graph_destroy(&other);
}

static void past_the_end(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)w;
    weft_gradients((weft_value){g, UINT32_MAX}, WEFT_VALUES(x), d, 0);
}

static void nothing(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)w;
    weft_gradients_seeded((weft_values){0}, (weft_values){0}, WEFT_VALUES(x), d, 0);
}

static void integer(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)x;
    weft_gradients(weft_name(weft_cast(w, WEFT_I32), "rounded"), WEFT_VALUES(w), d, 0);
}

static void token(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)x;
    weft_gradients(weft_assign(w, weft_exp(w)), WEFT_VALUES(w), d, 0);
}

static void by_token(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)x;
    weft_gradients(w, WEFT_VALUES(weft_assign(w, weft_exp(w))), d, WEFT_ZEROS_ALLOWED);
}

static void seed_of_other_dims(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g;
    weft_gradients_seeded(WEFT_VALUES(w), WEFT_VALUES(x), WEFT_VALUES(w), d, 0);
}

static void seed_of_other_dtype(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)x;
    weft_gradients_seeded(WEFT_VALUES(w), WEFT_VALUES(weft_cast(w, WEFT_F32)), WEFT_VALUES(w), d,
                          0);
}

static void seeds_too_few(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g, (void)x;
    weft_gradients_seeded(WEFT_VALUES(w, w), WEFT_VALUES(w), WEFT_VALUES(w), d, 0);
}

static void independent(weft_graph *g, weft_value x, weft_value w, weft_value *d)
{
    (void)g;
    weft_gradients_seeded(WEFT_VALUES(weft_exp(w), weft_tanh(w)), (weft_values){0},
                          WEFT_VALUES(w, x), d, 0);
}

static const wrong wrongs[] = {
    {"there is no room for 1 gradients", no_room},
    {"with_respect_to is a list of 2 values, and its pointer is NULL", null_list},
    {"with_respect_to has -1 values", negative_list},
    {"with_respect_to has 2147483647 values", endless_list},
    {"value 1 of with_respect_to belongs to another graph", stranger},
    {"value 0 of of is not a value", past_the_end},
    {"of has no values", nothing},
    {"rounded is i32", integer},
    {"names an update and has no elements", token},
    {"names an update; nothing can depend on it", by_token},
    {"and its seed is f64[batch:6, in:5]", seed_of_other_dims},
    {"and its seed is f32[", seed_of_other_dtype},
    {"of has 2 values and seeds has 1", seeds_too_few},
    {"and the others do not depend, through floats, on x", independent},
};

static void test_wrong_calls_have_their_sentence_and_leave_nothing(void)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        weft_graph *g = weft_graph_create(1);
        weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, in)), d[2] = {{g, 7}, {g, 7}};
        weft_value w = weft_variable(g, "w", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0));
        wrongs[i].make(g, x, w, d);
        CHECK_TEXT(weft_graph_error(g)->message, wrongs[i].says);
        CHECK_TEXT(weft_graph_error(g)->message, " at seeded_test.c:");
        for (uint32_t id = 1; id < g->n_nodes; id++)
            CHECK_EQ_INT(g->nodes[id].phase, WEFT_FORWARD);
        CHECK_EQ_INT(g->phase, WEFT_FORWARD);
        weft_graph_clear_error(g);
        CHECK(weft_gradients(weft_square(w), WEFT_VALUES(w), d, 0).id == d[0].id && d[0].id != 0);
        weft_graph_destroy(&g);
    }
    weft_value d[1];
    CHECK_EQ_INT(weft_gradients((weft_value){0}, (weft_values){0}, d, 0).id, 0);
    CHECK_EQ_INT(
        weft_gradients_seeded((weft_values){0}, (weft_values){0}, (weft_values){0}, NULL, 0).id, 0);
}

static void test_trainable_looks_at_its_arguments(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value w = weft_variable(g, "w", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0)), found[1];
    CHECK_EQ_INT(weft_trainable(w, NULL, 5), 1);
    CHECK_EQ_INT(weft_trainable(w, found, -3), 1);
    CHECK_EQ_INT(weft_trainable((weft_value){0}, found, 1), 0);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    CHECK_EQ_INT(weft_trainable((weft_value){g, 4000000000u}, found, 1), 0);
    CHECK_TEXT(weft_graph_error(g)->message, "trainable: value 0 of of is not a value");
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_seeds_are_weights_under_placements);
        RUN(test_no_seed_is_one_and_a_seed_is_a_constant);
        RUN(test_two_losses_share_one_forward_pass);
        RUN(test_both_gradients_have_the_same_masks);
        RUN(test_losses_under_placements);
        RUN(test_wrong_calls_have_their_sentence_and_leave_nothing);
        RUN(test_trainable_looks_at_its_arguments);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
