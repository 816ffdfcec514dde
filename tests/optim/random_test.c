/* RANKS: 2 4 */
/* random_test: a network whose variables are shared out at random among optimizers, frozen ones and gradients handed
 * in, under random layouts and ZeRO stages, against one rank.
 *
 *     random_test [SEED]    only the case of that seed, as a failure prints it
 */
#include "training.h"

static weft_oracle oracle;

enum { STEPS = 3, ALL = 78 };

typedef struct dice {
    uint64_t state;
} dice;

static int roll(dice *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

/* A part of the variables: by list and, for half of them, by gradients that were scaled on the way. */
static weft_value train_part(net *n, dice *d, const weft_value *part, int n_part)
{
    weft_value gradients[N_VARIABLES];
    const weft_optimizer *rule = &weft_optimizers[roll(d, weft_n_optimizers)];
    weft_optimizer_options options = {
        .rate = 0.02, .clip = roll(d, 2) ? 0.05 : 0.0, .variables = {part, n_part}};
    const int way = roll(d, 3);
    if (way == 0) return rule->build(n->loss, &options);
    weft_gradients(n->loss, options.variables, gradients, 0);
    for (int i = 0; i < n_part; i++)
        gradients[i] = way == 1 ? weft_scale(gradients[i], 1.5) : weft_tanh(gradients[i]);
    options.gradients = (weft_values){gradients, n_part};
    return rule->build((weft_value){0}, &options);
}

/* Each variable goes to one of three optimizers, or to none. */
static weft_value train_random(net *n, const void *seed)
{
    dice d = {*(const uint64_t *)seed};
    weft_value parts[4][N_VARIABLES], token = n->loss;
    int n_parts[4] = {0};
    for (int i = 0; i < N_VARIABLES; i++) {
        const int part = roll(&d, 4);
        parts[part][n_parts[part]++] = n->variables[i];
    }
    for (int part = 1; part < 4; part++)
        if (n_parts[part] > 0)
            token = weft_group(n->graph,
                               WEFT_VALUES(token, train_part(n, &d, parts[part], n_parts[part])));
    return token;
}

/* "batch:data,hidden:nowhere?+model": every dim on one axis or two, or on none. */
static void random_layout(dice *d, const weft_mesh *mesh, char *text, size_t bytes)
{
    static const char *const dims[] = {"batch", "in", "hidden", "wide", "out"};
    const int n_axes = weft_mesh_n_axes(mesh), first = roll(d, 5);
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < 5; i++) {
        const int axis = roll(d, n_axes), other = roll(d, n_axes);
        if (roll(d, 3) == 0) continue;
        at += (size_t)snprintf(text + at, bytes - at, "%s%s:%s%s%s%s", at > 0 ? "," : "",
                               dims[(first + i) % 5], roll(d, 4) == 0 ? "nowhere?+" : "",
                               weft_mesh_axis_name(mesh, axis), axis == other ? "" : "+",
                               axis == other ? "" : weft_mesh_axis_name(mesh, other));
    }
}

static void check_seed(uint64_t seed)
{
    dice d = {seed ^ 0x5bd1e995u};
    char layout[200], text[400];
    double alone[MOST_NUMBERS], numbers[MOST_NUMBERS];
    weft_mesh *mesh = oracle.meshes[roll(&d, oracle.n_meshes)];
    random_layout(&d, mesh, layout, sizeof layout);
    const place where = {layout, roll(&d, 4)};
    snprintf(text, sizeof text, "seed %llu on %s, layout \"%s\", stage %d",
             (unsigned long long)seed, weft_mesh_text(mesh), layout, where.stage);
    if (net_train(oracle.alone, &places[0], train_random, &seed, STEPS, alone) == ALL &&
        net_train(mesh, &where, train_random, &seed, STEPS, numbers) == ALL)
        net_same(alone, numbers, 0, ALL, 1e-10, text);
    else
        printf("%s\n", text);
}

static void test_random_trainings_equal_one_rank(void)
{
    const int n = weft_test_cases(oracle.world.n_processes > 1 ? 60 : 600);
    for (int seed = 1; seed <= n; seed++)
        check_seed(seed);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:4", "data:2,model:2",
                                         "model:3,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        if (argc > 1)
            check_seed(strtoull(argv[1], NULL, 10));
        else
            RUN(test_random_trainings_equal_one_rank);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
