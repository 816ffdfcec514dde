/* gpt_lanes_test: a transformer trains with the same bits on any number of lanes a rank, on one rank and on several,
 * in f32 and bf16, by products of ours and by BLAS.
 */
#include "apps/gpt/model.h"
#include "oracle.h"
#include "weft/optim.h"

#include <string.h>

#include "test.h"

enum { STEPS = 3, BATCH = 6, SEQ = 40, VOCAB = 61 };

typedef struct outcome {
    double losses[STEPS], norms[STEPS];
} outcome;

/* Large enough that loops and products are cut into more pieces than there are lanes. */
static const gpt_shape shape = {.batch = BATCH,
                                .seq = SEQ,
                                .layers = 2,
                                .width = 96,
                                .heads = 4,
                                .hidden = 200,
                                .vocab = VOCAB,
                                .dropout = 0.1};

static weft_status train(weft_mesh *mesh, const char *rules, weft_dtype dtype, outcome *o,
                         weft_error *error)
{
    static double tokens[BATCH * SEQ], targets[BATCH * SEQ];
    weft_graph *graph = weft_graph_create(7);
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    gpt_model model;
    gpt_shape s = shape;
    weft_value norm;
    s.dtype = dtype;
    const weft_value loss = gpt_loss(&s, graph, &model);
    const weft_value update = weft_adamw(
        loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5, .gradient_norm = &norm});
    weft_status status = weft_layout_create(rules, &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, norm, update), NULL, &program, error);
    for (int step = 0; step < STEPS && status == WEFT_OK; step++) {
        for (int i = 0; i < BATCH * SEQ; i++) {
            tokens[i] = (i * i + 7 * i + 3 * step) % VOCAB;
            targets[i] = (3 * i + i / 5 + step) % VOCAB;
        }
        status = weft_oracle_write(program, model.tokens, tokens, error);
        if (status == WEFT_OK) status = weft_oracle_write(program, model.targets, targets, error);
        if (status == WEFT_OK) status = weft_run(program, error);
        if (status == WEFT_OK) status = weft_read_scalar(program, loss, &o->losses[step], error);
        if (status == WEFT_OK) status = weft_read_scalar(program, norm, &o->norms[step], error);
    }
    (void)!weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    (void)!weft_graph_destroy(&graph);
    return status;
}

static outcome train_on(const char *mesh_text, const char *rules, weft_dtype dtype, int lanes)
{
    static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    outcome o = {0};
    weft_lanes_choose(lanes);
    if (CHECK_OK(weft_mesh_create(&alone, mesh_text, &mesh, &error), error)) {
        CHECK_EQ_INT(weft_mesh_lanes(mesh), lanes);
        CHECK_OK(train(mesh, rules, dtype, &o, &error), error);
    }
    CHECK_EQ_INT(weft_mesh_destroy(&mesh), WEFT_OK);
    weft_lanes_choose(0);
    return o;
}

static void check_lanes(const char *mesh, const char *rules, weft_dtype dtype, const int *lanes,
                        int n)
{
    const outcome one = train_on(mesh, rules, dtype, 1);
    CHECK(one.losses[STEPS - 1] != one.losses[0]);
    for (int i = 0; i < n; i++) {
        weft_test_hangs_after(200);
        const outcome several = train_on(mesh, rules, dtype, lanes[i]);
        if (!CHECK(memcmp(&one, &several, sizeof one) == 0))
            fprintf(stderr, "%s \"%s\" %s, %d lanes: last loss %.17g, with one lane %.17g\n", mesh,
                    rules, weft_dtype_name(dtype), lanes[i], several.losses[STEPS - 1],
                    one.losses[STEPS - 1]);
    }
    weft_test_hangs_after(0);
}

/* Of n numbers of lanes so many: fewer where sanitizers run. */
static int some(int n)
{
    const int cases = weft_test_cases(n);
    return cases < n ? cases : n;
}

static void test_one_rank_has_the_same_bits_on_any_number_of_lanes(void)
{
    static const int lanes[] = {3, 5, 2, 4, 7, 16};
    check_lanes("data:1", "", WEFT_F32, lanes, some(6));
    check_lanes("data:1", "", WEFT_BF16, lanes, some(3));
}

static void test_so_have_several_ranks(void)
{
    static const int lanes[] = {3, 5};
    const int n = some(2);
    check_lanes("data:2", "batch:data", WEFT_F32, lanes, n);
    check_lanes("data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", WEFT_F32,
                lanes, n);
}

int main(void)
{
    RUN(test_one_rank_has_the_same_bits_on_any_number_of_lanes);
    RUN(test_so_have_several_ranks);
    return weft_test_report();
}
