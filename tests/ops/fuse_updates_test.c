/* fuse_updates_test: networks with variables shared out at random among optimizers, under random layouts and ZeRO
 * stages. A program that fuse and bucket have worked on gives the bits of one without them, in memory that is full of
 * NaN before each run. Here results are stored, in place, and read again by the next run.
 *
 *     fuse_updates_test [SEED]    only the case of that seed, as a failure prints it
 */
#define main random_main
#include "optim/random_test.c"
#undef main

#include "passes.h"

static void check_fused(uint64_t seed)
{
    dice d = {seed ^ 0x5bd1e995u};
    char layout[200];
    double numbers[N_WAYS][MOST_NUMBERS];
    weft_mesh *mesh = roll(&d, 4) ? oracle.meshes[roll(&d, oracle.n_meshes)] : oracle.alone;
    random_layout(&d, mesh, layout, sizeof layout);
    const place where = {layout, roll(&d, 4), NULL};
    for (int w = 0; w < N_WAYS; w++) {
        char found[300] = "", text[700];
        now = &ways[w];
        const bool is_same =
            net_train(mesh, &where, train_random, &seed, STEPS, numbers[w]) == ALL &&
            same_bits(numbers[0], numbers[w], ALL, found, sizeof found);
        snprintf(text, sizeof text, "seed %llu on %s, layout \"%s\", stage %d: %s",
                 (unsigned long long)seed, weft_mesh_text(mesh), layout, where.stage, found);
        weft_test_check(is_same, __FILE__, __LINE__, text);
    }
}

static void test_random_trainings_have_the_same_bits(void)
{
    const int n = weft_test_cases(oracle.world.n_processes > 1 ? 40 : 400);
    for (int seed = 1; seed <= n; seed++)
        check_fused(seed);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:4", "data:2,model:2",
                                         "model:3,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        if (argc == 2) {
            check_fused(strtoull(argv[1], NULL, 10));
        } else {
            RUN(test_random_trainings_have_the_same_bits);
            RUN(test_every_pass_had_something_to_do);
            RUN(test_nothing_grows_by_joining_or_moving);
        }
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
