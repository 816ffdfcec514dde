/* experts_plan_test: the exchanges of a mixture of experts are those that a person would write.
 *
 *     experts_plan_test show    prints them
 */
#include "weft/autodiff.h"
#include "weft/layers.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "weft/research/plan.h"

#include "plan_shown.h"
#include "test.h"

static const weft_dim words = {"token", 64}, wide = {"embed", 32}, eight = {"experts", 8},
                      inner = {"hidden", 1024};

typedef struct by_hand {
    const char *mesh, *layout;
    int64_t windows;
    bool is_dropless;
    struct {
        weft_convert_kind kind;
        int axes; /* 1: the first, 2: the second, 3: both */
        int64_t count, bytes;
    } hand[5]; /* count 0: the end */
} by_hand;

/* In f64, of one window: 8 experts have 10 places each (1.25 times 64 tokens by 8); tokens; gates of all. The router and what is
 * before it; weights of all experts, up or down. */
enum { SENT = 8 * 10 * 32 * 8, X = 64 * 32 * 8, GATES = 64 * 8 * 8, PICKED = 8 * 10 * 8 };
enum { ROUTER = 32 * 8 * 8, BEFORE = 32 * 8, WEIGHTS = 8 * 32 * 1024 * 8 };

static const by_hand plans[] = {
    /* there and back, forward and backward: of a rank's share a part for each other */
    {"d:4",
     "experts:d,batch:d",
     16,
     false,
     {{WEFT_ALL_TO_ALL, 1, 4, 4 * 16 * SENT / 4 * 3 / 4},
      {WEFT_ALL_REDUCE, 1, 2, 8 + ROUTER + BEFORE}}},
    {"d:2",
     "experts:d,batch:d",
     16,
     false,
     {{WEFT_ALL_TO_ALL, 1, 4, 4 * 16 * SENT / 2 / 2},
      {WEFT_ALL_REDUCE, 1, 2, 8 + ROUTER + BEFORE}}},
    /* the other order of rules: no product alone would go to the experts, all of them do */
    {"d:4",
     "batch:d,experts:d",
     16,
     false,
     {{WEFT_ALL_TO_ALL, 1, 4, 4 * 16 * SENT / 4 * 3 / 4},
      {WEFT_ALL_REDUCE, 1, 2, 8 + ROUTER + BEFORE}}},
    /* inside experts a sum over m, back over d as it is */
    {"d:2,m:2",
     "experts:d,batch:d,hidden:m",
     16,
     false,
     {{WEFT_ALL_TO_ALL, 1, 4, 4 * 16 * SENT / 2 / 2},
      {WEFT_ALL_REDUCE, 1, 2, 8 + ROUTER},
      {WEFT_ALL_REDUCE, 2, 1, 16 * SENT / 2},
      {WEFT_ALL_REDUCE, 3, 1, BEFORE}}},
    /* who goes to whom is known to all of m: tokens are there, results are gathered, 1.25 of x being less than twice of x; so are
     * gradients of gates */
    {"d:2,m:2",
     "batch:d,experts:m",
     16,
     false,
     {{WEFT_ALL_GATHER, 2, 3, 2 * 16 * SENT / 2 + 16 * PICKED / 2},
      {WEFT_ALL_REDUCE, 1, 4, 8 + 2 * WEIGHTS / 2 + ROUTER + BEFORE}}},
    /* every expert on every token */
    {"d:4",
     "experts:d,batch:d",
     16,
     true,
     {{WEFT_ALL_GATHER, 1, 2, 2 * 16 * X},
      {WEFT_REDUCE_SCATTER, 1, 2, 2 * 16 * X},
      {WEFT_ALL_TO_ALL, 1, 2, 2 * 16 * GATES / 4 * 3 / 4},
      {WEFT_ALL_REDUCE, 1, 2, 8 + ROUTER + BEFORE}}},
};

static void build_large(const by_hand *c, weft_graph *g, weft_value all[5])
{
    const weft_dim rows = {"batch", c->windows};
    const weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(rows, words, wide));
    const weft_experts_options o = {.name = "mixture",
                                    .token = words,
                                    .feature = wide,
                                    .experts = eight,
                                    .hidden = inner,
                                    .is_dropless = c->is_dropless};
    weft_experts_facts facts;
    const weft_value before =
        weft_variable(g, "before", WEFT_F64, WEFT_DIMS(wide), weft_constant_of(1));
    const weft_value y = weft_experts(weft_mul(x, before), &o, &facts);
    const weft_value variables[] = {weft_graph_find(g, "mixture/router", NULL),
                                    weft_graph_find(g, "mixture/up", NULL),
                                    weft_graph_find(g, "mixture/down", NULL), before};
    all[0] = weft_add(weft_mean(weft_square(y)), weft_scale(facts.balance, 0.01));
    weft_gradients(all[0], (weft_values){variables, 4}, all + 1, 0);
}

static void check_traffic(const by_hand *c, const weft_program *program)
{
    enum { ROOM = 16 };
    weft_traffic traffic[ROOM];
    const int n = weft_plan_traffic(program, 0, traffic, ROOM);
    int n_hand = 0;
    char text[300];
    for (; n_hand < 5 && c->hand[n_hand].count > 0; n_hand++) {
        bool is_there = false;
        for (int i = 0; i < n; i++)
            is_there |= (int)traffic[i].axes == c->hand[n_hand].axes &&
                        traffic[i].kind == c->hand[n_hand].kind &&
                        traffic[i].count == c->hand[n_hand].count &&
                        traffic[i].bytes == c->hand[n_hand].bytes;
        snprintf(text, sizeof text, "%s %s: by hand %lld %s of %lld bytes", c->mesh, c->layout,
                 (long long)c->hand[n_hand].count, weft_convert_name(c->hand[n_hand].kind),
                 (long long)c->hand[n_hand].bytes);
        weft_test_check(is_there, __FILE__, __LINE__, text);
    }
    CHECK_EQ_INT(n, n_hand);
}

static void check_plan(const by_hand *c, bool is_shown)
{
    weft_graph *g = weft_graph_create(5);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value all[5];
    build_large(c, g, all);
    if (CHECK_OK(weft_mesh_plan(c->mesh, &mesh, &error), error) &&
        CHECK_OK(weft_layout_create(c->layout, &layout, &error), error) &&
        CHECK_OK(weft_compile(mesh, layout, (weft_values){all, 5}, NULL, &program, &error),
                 error)) {
        if (is_shown) printf("%s %s\n", c->mesh, c->layout), show_plan(program);
        check_traffic(c, program);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&g);
    weft_mesh_destroy(&mesh);
}

/* Two of eight experts a token: work of the two products and of their gradients, on one rank. */
static double work_of(bool is_picked)
{
    weft_graph *g = weft_graph_create(5);
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    double flops = 0;
    const weft_dim rows = {"batch", 16};
    const weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(rows, words, wide));
    const weft_experts_options o = {.name = "mixture",
                                    .token = words,
                                    .feature = wide,
                                    .experts = eight,
                                    .hidden = inner,
                                    .top_k = 2,
                                    .is_dropless = true,
                                    .is_picked = is_picked};
    const weft_value y = weft_experts(x, &o, NULL), loss = weft_mean(weft_square(y));
    const weft_value variables[] = {weft_graph_find(g, "mixture/up", NULL),
                                    weft_graph_find(g, "mixture/down", NULL)};
    weft_value d[2];
    weft_gradients(loss, (weft_values){variables, 2}, d, 0);
    if (CHECK_OK(weft_mesh_plan("data:1", &mesh, &error), error) &&
        CHECK_OK(weft_compile(mesh, NULL, WEFT_VALUES(loss, d[0], d[1]), NULL, &program, &error),
                 error))
        for (int s = 0; s < weft_plan_n_steps(program); s++) {
            weft_planned_step step = {0};
            CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error);
            flops += step.flops;
        }
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_mesh_destroy(&mesh);
    return flops;
}

static void test_picked_experts_compute_what_was_chosen(void)
{
    const double all = work_of(false), picked = work_of(true);
    printf("of eight experts %g flops, of two picked ones %g\n", all, picked);
    CHECK(picked > 0 && picked < 0.3 * all);
}

static bool is_shown;

static void test_plans_are_those_by_hand(void)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        check_plan(&plans[i], is_shown);
}

int main(int argc, char **argv)
{
    (void)argv;
    is_shown = argc > 1;
    RUN(test_plans_are_those_by_hand);
    RUN(test_picked_experts_compute_what_was_chosen);
    return weft_test_report();
}
