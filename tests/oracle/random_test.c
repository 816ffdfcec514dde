/* RANKS: 2 4 */
/* random_test: random graphs on random meshes under random layouts and placements, against one
 * rank.
 *
 *     random_test [SEED]    only the case of that seed, as a failure prints it
 *     random_test --many N  the seeds 1 to N
 */
#include "oracle.h"
#include "seeds.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "weft/autodiff.h"

/* The dims of all graphs. */
enum { N_DIMS = 5, MAX_VALUES = 24 };
static const weft_dim dims[N_DIMS] = {{"a", 5}, {"b", 4}, {"c", 3}, {"d", 2}, {"e", 7}};

typedef struct dice {
    uint64_t state;
} dice;

static int roll(dice *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

/* A graph under way: values to choose operands from. */
typedef struct growing {
    weft_oracle_build *build;
    dice dice;
    int n_values;
    weft_value values[MAX_VALUES];
} growing;

static weft_value any(growing *g)
{
    return g->values[roll(&g->dice, g->n_values)];
}

/* Keep at most `most` of the dims of x and y, in a random rotation. */
static weft_shape mixed_dims(growing *g, weft_value x, weft_value y, int most)
{
    weft_shape all = *weft_shape_of(x), out = {0};
    for (int d = 0; d < weft_shape_of(y)->n_dims; d++) {
        const weft_dim dim = weft_shape_of(y)->dims[d];
        if (weft_shape_find(&all, dim.name) < 0 && all.n_dims < WEFT_MAX_DIMS)
            all.dims[all.n_dims++] = dim;
    }
    const int first = all.n_dims > 0 ? roll(&g->dice, all.n_dims) : 0;
    for (int d = 0; d < all.n_dims && out.n_dims < most; d++)
        if (roll(&g->dice, 3) > 0) out.dims[out.n_dims++] = all.dims[(first + d) % all.n_dims];
    return out;
}

static weft_value grow_einsum(growing *g)
{
    weft_value x = any(g), y = any(g);
    return weft_scale(weft_einsum(mixed_dims(g, x, y, 3), x, y), 0.2);
}

static weft_value grow_add(growing *g)
{
    weft_value x = any(g), y = any(g);
    const weft_value sum = roll(&g->dice, 2) ? weft_add(x, y) : weft_sub(y, x);
    return weft_shape_of(sum)->n_dims <= 4 ? sum : weft_sum(mixed_dims(g, sum, sum, 3), sum);
}

static weft_value grow_mul(growing *g)
{
    weft_value x = any(g), y = any(g);
    const weft_value product = roll(&g->dice, 2) ? weft_mul(x, weft_tanh(y)) : weft_maximum(x, y);
    return weft_shape_of(product)->n_dims <= 4
               ? product
               : weft_sum(mixed_dims(g, product, product, 3), product);
}

static weft_value grow_one(growing *g)
{
    weft_value x = any(g);
    const int which = roll(&g->dice, 5);
    if (which == 0) return weft_tanh(x);
    if (which == 1) return weft_relu(x);
    if (which == 2) return weft_scale(x, -0.7);
    if (which == 3) return weft_shift(x, 0.3);
    return weft_dropout(x, 0.25);
}

static weft_value grow_reduction(growing *g)
{
    weft_value x = any(g);
    const weft_shape out = mixed_dims(g, x, x, 2);
    const int which = roll(&g->dice, 3);
    return which == 0 ? weft_max(out, x) : which == 1 ? weft_mean_over(out, x) : weft_sum(out, x);
}

static weft_value grow_softmax(growing *g)
{
    weft_value x = any(g);
    const weft_shape *shape = weft_shape_of(x);
    return shape->n_dims == 0 ? weft_tanh(x)
                              : weft_softmax(x, shape->dims[roll(&g->dice, shape->n_dims)]);
}

static weft_value grow_transpose(growing *g)
{
    weft_value x = any(g);
    const weft_shape *shape = weft_shape_of(x);
    if (shape->n_dims < 2) return weft_neg(x);
    weft_shape out = *shape;
    const int first = 1 + roll(&g->dice, shape->n_dims - 1);
    for (int d = 0; d < shape->n_dims; d++)
        out.dims[d] = shape->dims[(first + d) % shape->n_dims];
    return weft_transpose(x, out);
}

/* Merge two neighbours, do something, and split again: dims keep their names for the others. */
static weft_value grow_reshape(growing *g)
{
    weft_value x = any(g);
    const weft_shape *shape = weft_shape_of(x);
    if (shape->n_dims < 2) return weft_neg(x);
    weft_shape merged = {.n_dims = shape->n_dims - 1};
    const int at = roll(&g->dice, shape->n_dims - 1);
    for (int d = 0; d < merged.n_dims; d++)
        merged.dims[d] = shape->dims[d <= at ? d : d + 1];
    merged.dims[at] = (weft_dim){"merged", shape->dims[at].size * shape->dims[at + 1].size};
    return weft_reshape(weft_tanh(weft_reshape(x, merged)), *shape);
}

static weft_value grow_slice_concat(growing *g)
{
    weft_value x = any(g);
    const weft_shape *shape = weft_shape_of(x);
    if (shape->n_dims == 0) return weft_neg(x);
    const weft_dim dim = shape->dims[roll(&g->dice, shape->n_dims)];
    const weft_dim low = {"low", dim.size / 2}, high = {"high", dim.size - dim.size / 2};
    if (low.size == 0) return weft_neg(x);
    return weft_concat(weft_slice(x, dim, low.size, high), weft_slice(x, dim, 0, low), high, low,
                       dim);
}

/* Not what autodiff would say of tanh, so it shows where it is asked and where not. */
static void half_slope(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    (void)argument;
    dx[0] =
        weft_add(weft_scale(weft_mul(dy, y), 0.5), weft_mul(dy, weft_dropout(x.values[0], 0.5)));
}

static weft_value grow_custom(growing *g)
{
    weft_value x = any(g);
    return weft_custom_gradient(WEFT_VALUES(x), weft_tanh(x), half_slope, NULL);
}

static weft_value (*const growers[])(growing *) = {
    grow_einsum,    grow_einsum,    grow_einsum,  grow_add,          grow_add,
    grow_mul,       grow_one,       grow_one,     grow_softmax,      grow_reduction,
    grow_reduction, grow_transpose, grow_reshape, grow_slice_concat, grow_custom,
};
enum { N_GROWERS = sizeof growers / sizeof growers[0] };

static void build_random(weft_oracle_build *build)
{
    growing g = {.build = build, .dice = {*(const uint64_t *)build->argument}};
    for (int i = 0; i < 4; i++) {
        weft_shape shape = {.n_dims = 1 + roll(&g.dice, 3)};
        const int first = roll(&g.dice, N_DIMS);
        for (int d = 0; d < shape.n_dims; d++)
            shape.dims[d] = dims[(first + d) % N_DIMS];
        g.values[g.n_values++] = weft_oracle_input(build, WEFT_F64, shape, -1.0, 1.0);
    }
    const int n = 6 + roll(&g.dice, MAX_VALUES - 10);
    while (g.n_values < n) {
        const weft_value value = growers[roll(&g.dice, N_GROWERS)](&g);
        if (value.id == 0) return; /* the graph keeps the error, and compile reports it */
        g.values[g.n_values++] = value;
    }
    for (int i = 0; i < 3; i++)
        weft_oracle_output(build, g.values[g.n_values - 1 - i]);
    weft_value gradients[4];
    const weft_value last = g.values[g.n_values - 1], other = any(&g);
    const weft_values by = {build->operands, 4};
    if (roll(&g.dice, 2))
        weft_gradients(weft_sum(WEFT_SCALAR, weft_tanh(last)), by, gradients, WEFT_ZEROS_ALLOWED);
    else
        weft_gradients_seeded(WEFT_VALUES(last, other),
                              WEFT_VALUES(weft_tanh(last), weft_shift(other, 0.5)), by, gradients,
                              WEFT_ZEROS_ALLOWED);
    for (int i = 0; i < 4 && gradients[i].id != 0; i++)
        weft_oracle_output(build, gradients[i]);
}

static bool has_dim(const weft_oracle_build *build, const char *name)
{
    for (int k = 0; k < build->n_inputs; k++)
        if (weft_shape_find(weft_shape_of(build->inputs[k]), name) >= 0) return true;
    return false;
}

/* "c:model,a:data": some axes on some of the dims that the graph has, in any order. */
static void random_layout(dice *d, const weft_mesh *mesh, const weft_oracle_build *build,
                          char *text, size_t bytes)
{
    const int first = roll(d, N_DIMS);
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < N_DIMS; i++) {
        const char *dim = dims[(first + i) % N_DIMS].name;
        const char *axis = weft_mesh_axis_name(mesh, roll(d, weft_mesh_n_axes(mesh)));
        if (roll(d, 3) == 0 || !has_dim(build, dim) || at >= bytes) continue;
        const char *absent = roll(d, 4) == 0 ? "nowhere?+" : "", *mark = roll(d, 2) ? "?" : "";
        at += (size_t)snprintf(text + at, bytes - at, "%s%s:%s%s%s", at > 0 ? "," : "", dim, absent,
                               axis, mark);
    }
}

/* Every second input or output lives where a die says. */
static void random_placing(dice *d, const weft_mesh *mesh, const weft_oracle_build *build,
                           char (*texts)[WEFT_ORACLE_TEXT], weft_oracle_placing *placing)
{
    static char options[WEFT_ORACLE_PLACES][WEFT_ORACLE_TEXT];
    *placing = (weft_oracle_placing){0};
    for (int v = 0; v < build->n_inputs + build->n_outputs; v++) {
        const bool is_input = v < build->n_inputs;
        const weft_value value = is_input ? build->inputs[v] : build->outputs[v - build->n_inputs];
        const int n = weft_oracle_placements(mesh, weft_shape_of(value), false, options);
        memcpy(texts[v], options[roll(d, n)], WEFT_ORACLE_TEXT);
        if (roll(d, 2) == 0) continue;
        if (is_input)
            placing->inputs[v] = texts[v];
        else
            placing->outputs[v - build->n_inputs] = texts[v];
    }
}

static weft_oracle oracle;

static void check_seed(uint64_t seed)
{
    dice d = {seed ^ 0x5bd1e995u};
    char layout[160], texts[2 * WEFT_ORACLE_VALUES][WEFT_ORACLE_TEXT], name[80];
    weft_mesh *mesh = oracle.meshes[roll(&d, oracle.n_meshes)];
    weft_oracle_placing placing;
    weft_oracle_build shapes = {.graph = weft_graph_create(77), .argument = &seed};
    build_random(&shapes);
    random_layout(&d, mesh, &shapes, layout, sizeof layout);
    random_placing(&d, mesh, &shapes, texts, &placing);
    weft_graph_destroy(&shapes.graph);
    snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
    weft_oracle_check(&oracle, mesh,
                      &(weft_oracle_case){
                          .name = name, .build = build_random, .argument = &seed, .layout = layout},
                      &placing);
}

static seed_range seeds;

static void test_random_graphs_equal_one_rank(void)
{
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        check_seed(seed);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {
        "data:2", "data:3", "data:4", "data:2,model:2", "model:3,data:2", "data:2,model:2,seq:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        const int quick = weft_test_cases(oracle.world.n_processes > 1 ? 80 : 2000);
        if (!seeds_of(argc, argv, (uint64_t)quick, &seeds)) return 2;
        RUN(test_random_graphs_equal_one_rank);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
