/* RANKS: 2 4 */
/* policy_test: trainings under placement policies, sensible and silly, with variables, slots and ZeRO stages, against
 * one rank.
 *
 *     policy_test [SEED]    only the case of that seed, as a failure prints it
 */
#define main random_main
#include "random_test.c"
#undef main

#define KEPT "batch"
#include "policies.h"
#include "weft/research/plan.h"

static void check_policy(uint64_t seed)
{
    dice d = {seed ^ 0x5bd1e995u};
    char layout[200], text[400];
    double alone[MOST_NUMBERS], numbers[MOST_NUMBERS];
    weft_mesh *mesh = oracle.meshes[roll(&d, oracle.n_meshes)];
    const weft_policy policy = policy_of(&seed);
    random_layout(&d, mesh, layout, sizeof layout);
    const place where = {layout, roll(&d, 4), &policy};
    snprintf(text, sizeof text, "seed %llu on %s, layout \"%s\", stage %d, policy %s",
             (unsigned long long)seed, weft_mesh_text(mesh), layout, where.stage, policy.name);
    if (net_train(oracle.alone, &places[0], train_random, &seed, STEPS, alone) == ALL &&
        net_train(mesh, &where, train_random, &seed, STEPS, numbers) == ALL)
        net_same(alone, numbers, 0, ALL, 1e-10, text);
    else
        printf("%s\n", text);
}

static void test_trainings_under_any_policy_equal_one_rank(void)
{
    const int n = weft_test_cases(oracle.world.n_processes > 1 ? 42 : 420);
    for (int seed = 1; seed <= n; seed++)
        check_policy(seed);
    CHECK(n_other > n_asked / 4);
}

/* The policy places a variable by its name; its optimizer state goes with it, and so does what is placed as it. */
static const char *place_one(void *context, const weft_wanting *value)
{
    (void)context;
    return value->name && strcmp(value->name, "block.w") == 0 ? "wide:data" : NULL;
}

static weft_value adam(net *n, const void *argument)
{
    (void)argument;
    return weft_adam(n->loss, NULL);
}

static void test_slots_follow_their_variable(void)
{
    const weft_policy policy = {.name = "one", .wants = place_one};
    weft_error error = {0};
    weft_program *program = NULL;
    weft_mesh *mesh = NULL;
    net n = net_make();
    int n_found = 0;
    CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error);
    const place where = {"", 0, &policy};
    CHECK_OK(net_compile(&n, adam(&n, NULL), mesh, &where, NULL, &program, &error), error);
    for (int id = 1; id <= weft_plan_n_tensors(program); id++) {
        weft_planned_tensor t = {0};
        char spec[100];
        CHECK_OK(weft_plan_tensor_at(program, (uint32_t)id, 0, &t, &error), error);
        if (t.kind != WEFT_TENSOR_PARAMETER && t.kind != WEFT_TENSOR_SLOT) continue;
        weft_spec_print(&t.spec, mesh, t.shape, spec, sizeof spec);
        const bool is_its = strncmp(t.name, "block.w", 7) == 0;
        CHECK_EQ_INT(strcmp(spec, "[hidden:4, wide:7/data]") == 0, is_its);
        n_found += is_its;
    }
    CHECK_EQ_INT(n_found, 3); /* itself and adam's two moments */
    weft_program_destroy(&program);
    weft_graph_destroy(&n.graph);
    weft_mesh_destroy(&mesh);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:4", "data:2,model:2",
                                         "model:3,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        if (argc > 1) {
            check_policy(strtoull(argv[1], NULL, 10));
        } else {
            RUN(test_trainings_under_any_policy_equal_one_rank);
            if (oracle.world.n_processes == 1) RUN(test_slots_follow_their_variable);
        }
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
