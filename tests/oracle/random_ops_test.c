/* RANKS: 2 4 */
/* random_ops_test: random graphs of all ops and compositions that have cases, with gradients, on up to 8 ranks, against one
 * rank; what fails is made smaller before it is told.
 *
 *     random_ops_test [SEED]    only the graph of that seed
 *     random_ops_test --many N  the seeds 1 to N
 *     random_ops_test --extremes [SEED | --many N]    of inputs at the edges of their dtypes
 */
#include "drawn.h"
#include "seeds.h"

#include <signal.h>
#include <unistd.h>

#include "test.h"

static weft_oracle oracle;
static seed_range seeds;
static bool of_extremes; /* and of no others */
static int n_of[DRAWN_UNBUILT + 1];

/* ---- a graph that kills the process tells its seed -------------------------------------------------- */

static volatile uint64_t under_way;

static void tell_seed(int signal_)
{
    char text[] = "seed                     \n";
    uint64_t left = under_way;
    for (int i = 23; i > 4 && (left > 0 || i == 23); i--, left /= 10)
        text[i] = (char)('0' + left % 10);
    (void)!write(2, text, sizeof text - 1);
    signal(signal_, SIG_DFL);
    raise(signal_);
}

/* ---- graphs ------------------------------------------------------------------------------------------ */

static bool differs(void *context, const drawn *graph)
{
    char text[1000];
    (void)context;
    return drawn_check(&oracle, graph, text, sizeof text) == DRAWN_DIFFERS;
}

static void tell(const drawn *graph)
{
    char text[1000];
    const drawn least = drawn_shrunk(&oracle, graph, differs, NULL);
    drawn_check(&oracle, &least, text, sizeof text);
    if (oracle.world.process == 0) {
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)graph->seed, text);
        drawn_print(&least, stderr);
    }
}

static void check_graph(uint64_t seed, drawn graph)
{
    char text[1000], what[1100];
    under_way = seed;
    const drawn_verdict verdict = drawn_check(&oracle, &graph, text, sizeof text);
    n_of[verdict]++;
    snprintf(what, sizeof what, "seed %llu: %s", (unsigned long long)seed, text);
    if (verdict == DRAWN_DIFFERS) tell(&graph);
    weft_test_check(verdict != DRAWN_DIFFERS, __FILE__, __LINE__, what);
    if (verdict == DRAWN_UNBUILT) fprintf(stderr, "not built: %s\n", what);
}

static void test_random_graphs_equal_one_rank(void)
{
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        check_graph(seed, drawn_of(seed, &oracle));
    printf("%d graphs as on one rank, %d that rounding moves as far, %d not built\n",
           n_of[DRAWN_SAME], n_of[DRAWN_UNSTABLE], n_of[DRAWN_UNBUILT]);
}

static void test_random_graphs_of_extremes_equal_one_rank(void)
{
    const uint64_t last = of_extremes ? seeds.last : seeds.last / 5;
    memset(n_of, 0, sizeof n_of);
    for (uint64_t seed = seeds.first; seed <= last; seed++)
        check_graph(seed, drawn_of_extremes(seed, &oracle));
    printf("%d graphs as on one rank, %d left open, %d not built\n", n_of[DRAWN_SAME],
           n_of[DRAWN_UNSTABLE], n_of[DRAWN_UNBUILT]);
}

/* Of as many graphs as are drawn most have to say something. */
static void test_most_graphs_are_decided(void)
{
    const int n = n_of[DRAWN_SAME] + n_of[DRAWN_UNSTABLE] + n_of[DRAWN_UNBUILT];
    CHECK(n < 50 || n_of[DRAWN_UNSTABLE] + n_of[DRAWN_UNBUILT] <= n / 20);
}

/* ---- what is drawn ------------------------------------------------------------------------------------ */

static void test_every_op_is_drawn(void)
{
    static bool is_drawn[1000];
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        const drawn graph = drawn_of(seed, &oracle);
        for (int i = 0; i < graph.n_ops; i++)
            for (int g = 0; g < n_op_groups; g++)
                for (const op_case *c = op_groups[g].cases; c->name != NULL; c++)
                    if (c == graph.ops[i].what) is_drawn[g] = true;
    }
    for (int g = 0; g < n_op_groups; g++)
        weft_test_check(is_drawn[g] || !drawn_has(&op_groups[g]), __FILE__, __LINE__,
                        op_groups[g].name);
}

/* ---- the smallest that is wrong ----------------------------------------------------------------------- */

/* As if softmax were wrong wherever b is split. */
static bool has_softmax_and_rule(void *context, const drawn *graph)
{
    bool found = false, is_split = false;
    ++*(int *)context;
    for (int i = 0; i < graph->n_ops; i++)
        found |= strncmp(graph->ops[i].what->name, "softmax", 7) == 0;
    for (int r = 0; r < graph->n_rules; r++)
        is_split |= graph->rules[r].dim == DIM_B;
    return found && is_split;
}

static void test_what_fails_is_made_smaller(void)
{
    int n = 0;
    for (uint64_t seed = 1; seed < 100000; seed++) {
        const drawn graph = drawn_of(seed, &oracle);
        if (graph.n_ops < 5 || !has_softmax_and_rule(&n, &graph)) continue;
        const drawn least = drawn_shrunk(&oracle, &graph, has_softmax_and_rule, &n);
        CHECK_EQ_INT(least.n_ops, 1);
        CHECK_EQ_INT(least.n_rules, 1);
        CHECK_EQ_INT(least.derivatives, 0);
        CHECK_EQ_INT(weft_mesh_n_ranks(least.mesh), weft_mesh_n_ranks(oracle.meshes[0]));
        CHECK_TEXT(least.ops[0].what->name, "softmax");
        return;
    }
    CHECK(!"a graph with softmax");
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2",
                                         "data:3",
                                         "data:4",
                                         "data:2,model:2",
                                         "data:5",
                                         "model:3,data:2",
                                         "data:2,model:3",
                                         "data:7",
                                         "data:8",
                                         "data:4,model:2",
                                         "data:2,model:2,seq:2"};
    weft_error error = {0};
    signal(SIGSEGV, tell_seed), signal(SIGABRT, tell_seed), signal(SIGFPE, tell_seed);
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 11, &error), error)) {
        const int quick = weft_test_cases(oracle.world.n_processes > 1 ? 60 : 1000);
        of_extremes = argc > 1 && strcmp(argv[1], "--extremes") == 0;
        if (!seeds_of(argc - of_extremes, argv + of_extremes, (uint64_t)quick, &seeds)) return 2;
        if (!of_extremes) {
            RUN(test_every_op_is_drawn);
            RUN(test_what_fails_is_made_smaller);
            RUN(test_random_graphs_equal_one_rank);
            RUN(test_most_graphs_are_decided);
        }
        RUN(test_random_graphs_of_extremes_equal_one_rank);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
