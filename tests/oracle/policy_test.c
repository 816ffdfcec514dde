/* RANKS: 2 4 */
/* policy_test: whatever a policy picks and wants, the numbers are those of one rank: random graphs
 * and ops with their own ways to be cut, under policies that are sensible, greedy and silly.
 *
 *     policy_test [SEED]    only the case of that seed, as a failure prints it
 */
#define main random_main
#include "random_test.c"
#undef main

#define KEPT "a"
#include "policies.h"
#include "weft/scan.h"

/* ---- random graphs --------------------------------------------------------------------------- */

static void check_policy(uint64_t seed)
{
    dice d = {seed ^ 0x5bd1e995u};
    char layout[160], texts[2 * WEFT_ORACLE_VALUES][WEFT_ORACLE_TEXT], name[80];
    weft_mesh *mesh = oracle.meshes[roll(&d, oracle.n_meshes)];
    const weft_policy policy = policy_of(&seed);
    const weft_compile_options options = {.policy = &policy};
    weft_oracle_placing placing;
    weft_oracle_build shapes = {.graph = weft_graph_create(77), .argument = &seed};
    build_random(&shapes);
    random_layout(&d, mesh, &shapes, layout, sizeof layout);
    random_placing(&d, mesh, &shapes, texts, &placing);
    weft_graph_destroy(&shapes.graph);
    snprintf(name, sizeof name, "seed %llu, policy %s", (unsigned long long)seed, policy.name);
    weft_oracle_check(&oracle, mesh,
                      &(weft_oracle_case){.name = name,
                                          .build = build_random,
                                          .argument = &seed,
                                          .layout = layout,
                                          .options = &options},
                      &placing);
}

static void test_any_policy_gives_the_numbers_of_one_rank(void)
{
    const int n = weft_test_cases(oracle.world.n_processes > 1 ? 70 : 1400);
    for (int seed = 1; seed <= n; seed++)
        check_policy(seed);
    printf("%lld decisions, %lld of them not the default's\n", (long long)n_asked,
           (long long)n_other);
    CHECK(n_other > n_asked / 4);
}

/* ---- ops that are cut in ways of their own --------------------------------------------------- */

static const weft_dim batch = {"a", 5}, seq = {"seq", 6}, heads = {"heads", 3}, kv = {"kv", 4},
                      words = {"words", 7}, wide = {"wide", 6};

static void build_attention(weft_oracle_build *b)
{
    const weft_shape shape = WEFT_DIMS(batch, seq, heads, kv);
    weft_value q = weft_oracle_input(b, WEFT_F64, shape, -1, 1);
    weft_value k = weft_oracle_input(b, WEFT_F64, shape, -1, 1);
    weft_value v = weft_oracle_input(b, WEFT_F64, shape, -1, 1);
    weft_value mixed_in = weft_attention(q, k, v, seq, seq, kv, true), gradients[3];
    weft_gradients(weft_sum(WEFT_SCALAR, weft_tanh(mixed_in)), WEFT_VALUES(q, k, v), gradients,
                   WEFT_ZEROS_ALLOWED);
    weft_oracle_output(b, mixed_in);
    for (int i = 0; i < 3; i++)
        weft_oracle_output(b, gradients[i]);
}

static void build_words(weft_oracle_build *b)
{
    weft_value ids = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(batch, seq), 0, 7);
    weft_value labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(batch, seq), 0, 7);
    weft_value table = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(words, kv), -1, 1);
    weft_value out = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(kv, words), -1, 1), gradients[2];
    weft_value x = weft_gather(table, ids, words);
    weft_value logits = weft_einsum(WEFT_DIMS(batch, seq, words), x, out);
    weft_value loss = weft_mean(weft_cross_entropy(logits, labels, words));
    weft_gradients(loss, WEFT_VALUES(table, out), gradients, WEFT_ZEROS_ALLOWED);
    weft_oracle_output(b, loss);
    weft_oracle_output(b, weft_argmax(logits, words));
    weft_oracle_output(b, gradients[0]);
    weft_oracle_output(b, gradients[1]);
}

static void build_norm(weft_oracle_build *b)
{
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, wide), -1, 1);
    weft_value gain = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(wide), -1, 1);
    weft_value bias = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(wide), -1, 1), gradients[3];
    weft_value y = weft_layer_norm(x, gain, bias, wide);
    weft_value merged = weft_reshape(y, WEFT_DIMS(batch, heads, ((weft_dim){"pair", 2})));
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(weft_softmax(merged, heads))),
                   WEFT_VALUES(x, gain, bias), gradients, WEFT_ZEROS_ALLOWED);
    weft_oracle_output(b, merged);
    for (int i = 0; i < 3; i++)
        weft_oracle_output(b, gradients[i]);
}

/* What is carried may be a partial sum, and what becomes of it a partial maximum. */
static void build_carried(weft_oracle_build *b)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, seq), -1, 1),
                     first = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(seq), -1, 1);
    const weft_value trip = weft_scan_begin(b->graph, 2), h = weft_scan_carry(first);
    weft_scan_next(h, weft_max(WEFT_DIMS(seq), weft_add(x, h)));
    weft_scan_end(trip);
    weft_oracle_output(b, weft_scan_last(h));
}

static void test_ops_of_their_own_ways(void)
{
    static const struct {
        const char *name;
        void (*build)(weft_oracle_build *build);
    } ops[] = {{"attention", build_attention},
               {"words", build_words},
               {"norm", build_norm},
               {"carried", build_carried}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (uint64_t seed = 1; seed <= 2 * N_KINDS; seed++) {
            const weft_policy policy = policy_of(&seed);
            const weft_compile_options options = {.policy = &policy, .unroll = 1};
            const weft_oracle_case what = {
                .name = ops[i].name, .build = ops[i].build, .options = &options};
            weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 3 : 8);
        }
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {
        "data:2", "data:3", "data:4", "data:2,model:2", "model:3,data:2", "data:2,model:2,seq:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        if (argc == 2) {
            check_policy(strtoull(argv[1], NULL, 10));
        } else {
            RUN(test_any_policy_gives_the_numbers_of_one_rank);
            RUN(test_ops_of_their_own_ways);
        }
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
