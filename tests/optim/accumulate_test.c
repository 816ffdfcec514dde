/* RANKS: 2 4 */
/* accumulate_test: gradients kept from run to run in one program and applied by another: the same as one large batch,
 * under layouts and ZeRO stages.
 */
#include "ops/graph/ir.h"
#include "training.h"

static weft_oracle oracle;

enum { MICRO = 3, UPDATES = 2, ALL = 78, W = 76 };

/* One program on batches of 18 rows: what accumulating has to equal. */
static bool train_large(double numbers[MOST_NUMBERS])
{
    net n = net_of(MICRO);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value update = weft_adam(n.loss, &(weft_optimizer_options){.rate = 0.05, .clip = 0.05});
    weft_status status = net_compile(&n, update, oracle.alone, &places[0], NULL, &program, &error);
    for (int step = 0; step < UPDATES && status == WEFT_OK; step++) {
        status = net_feed_from(&n, program, MICRO * step, &error);
        if (status == WEFT_OK) status = weft_run(program, &error);
    }
    if (status == WEFT_OK) status = net_read(&n, program, numbers, &error);
    CHECK_OK(status, error);
    weft_program_destroy(&program);
    weft_graph_destroy(&n.graph);
    return status == WEFT_OK;
}

/* Two programs over one graph: `add` takes a batch's gradients, `apply` uses what was added up. */
typedef struct pair {
    net net;
    weft_value kept[N_VARIABLES];
    weft_program *add, *apply;
} pair;

static weft_status open_pair(pair *p, weft_mesh *mesh, const place *where, weft_error *error)
{
    weft_value d[N_VARIABLES], mean[N_VARIABLES];
    *p = (pair){.net = net_make()};
    const weft_values variables = {p->net.variables, N_VARIABLES};
    weft_gradients(p->net.loss, variables, d, 0);
    weft_value token = weft_accumulate(variables, (weft_values){d, N_VARIABLES}, p->kept);
    for (int i = 0; i < N_VARIABLES; i++)
        mean[i] = weft_scale(p->kept[i], 1.0 / MICRO);
    weft_value update = weft_adam(
        (weft_value){0},
        &(weft_optimizer_options){
            .rate = 0.05, .clip = 0.05, .variables = variables, .gradients = {mean, N_VARIABLES}});
    weft_value clear = weft_accumulate_clear((weft_values){p->kept, N_VARIABLES});
    weft_layout *layout = NULL;
    WEFT_TRY(net_compile(&p->net, token, mesh, where, NULL, &p->add, error));
    WEFT_TRY(weft_layout_create(where->layout, &layout, error));
    weft_status status = weft_layout_store(layout, where->stage, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(update, clear),
                              &(weft_compile_options){.share = p->add}, &p->apply, error);
    weft_layout_destroy(&layout);
    return status;
}

static void close_pair(pair *p)
{
    weft_program_destroy(&p->apply);
    weft_program_destroy(&p->add);
    weft_graph_destroy(&p->net.graph);
}

/* All that a slot holds, in squares; through either program it is the same memory. */
static double held(weft_program *program, weft_value slot)
{
    double *data = NULL, sum = 0.0;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_read(program, slot, &data, &error), error)) return NAN;
    for (int64_t i = 0; i < weft_shape_count(weft_shape_of(slot)); i++)
        sum += data[i] * data[i];
    free(data);
    return sum;
}

static weft_status train_pair(pair *p, weft_error *error)
{
    for (int step = 0; step < UPDATES; step++) {
        double before = 0.0;
        for (int k = 0; k < MICRO; k++) {
            WEFT_TRY(net_feed_from(&p->net, p->add, MICRO * step + k, error));
            WEFT_TRY(weft_run(p->add, error));
            const double now = held(p->apply, p->kept[0]);
            CHECK(now > 0.0 && now != before); /* it grows, and stays from run to run */
            before = now;
        }
        WEFT_TRY(weft_run(p->apply, error));
        for (int i = 0; i < N_VARIABLES; i++)
            CHECK_CLOSE(held(p->add, p->kept[i]), 0.0, 0);
    }
    CHECK_EQ_INT(weft_runs(p->apply), UPDATES);
    CHECK_EQ_INT(weft_runs(p->add), UPDATES * MICRO);
    return WEFT_OK;
}

static void test_small_batches_added_up_are_a_large_one(void)
{
    double large[MOST_NUMBERS], numbers[MOST_NUMBERS];
    if (!train_large(large)) return;
    for (int m = -1; m < oracle.n_meshes; m++)
        for (int l = 0; l < N_PLACES; l++) {
            pair p;
            weft_error error = {0};
            weft_status status =
                open_pair(&p, m < 0 ? oracle.alone : oracle.meshes[m], &places[l], &error);
            if (status == WEFT_OK) status = train_pair(&p, &error);
            if (status == WEFT_OK) status = net_read(&p.net, p.add, numbers, &error);
            if (CHECK_OK(status, error)) net_same(large, numbers, 0, W, 1e-11, places[l].layout);
            close_pair(&p);
            if (status != WEFT_OK) return;
        }
}

/* Under ZeRO a rank keeps its shard of them, and they count as slots. */
static void test_kept_gradients_are_stored_as_slots_are(void)
{
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error);
    for (int stage = 0; stage < 2; stage++) {
        pair p;
        weft_usage usage = {0};
        if (CHECK_OK(open_pair(&p, mesh, &(place){"batch:data", stage}, &error), error) &&
            CHECK_OK(weft_plan_usage(p.add, 0, &usage, &error), error))
            CHECK_EQ_INT(usage.slot_bytes,
                         8 * (stage == 0 ? 20 + 28 + 7 + 21 : 3 * 4 + 4 * 4 + 4 + 4 * 3));
        close_pair(&p);
    }
    weft_mesh_destroy(&mesh);
}

typedef weft_value (*mistake)(net *n, weft_value *d, weft_value *kept);
#define MISTAKE(name, ...)                                                                         \
    static weft_value name(net *n, weft_value *d, weft_value *kept)                                \
    {                                                                                              \
        (void)d, (void)kept;                                                                       \
        const weft_values all = {n->variables, N_VARIABLES}, one = {n->variables, 1};              \
        (void)all, (void)one;                                                                      \
        return __VA_ARGS__;                                                                        \
    }
MISTAKE(nothing, weft_accumulate(all, (weft_values){0}, kept))
MISTAKE(no_room, weft_accumulate(all, (weft_values){d, N_VARIABLES}, NULL))
MISTAKE(too_many, weft_accumulate(one, (weft_values){d, N_VARIABLES}, kept))
MISTAKE(crossed, weft_accumulate(one, WEFT_VALUES(d[1]), kept))
MISTAKE(listed_twice, weft_accumulate(WEFT_VALUES(n->variables[1], n->variables[1]),
                                      WEFT_VALUES(d[1], d[1]), kept))
MISTAKE(no_slot,
        weft_accumulate_clear(WEFT_VALUES(weft_slot(n->variables[0], "own", weft_constant_of(1.0)),
                                          n->variables[0])))
MISTAKE(second_time, (weft_accumulate(WEFT_VALUES(n->variables[2]), WEFT_VALUES(d[2]), kept),
                      weft_accumulate(all, (weft_values){d, N_VARIABLES}, kept)))

static const struct {
    mistake make;
    const char *says;
} mistakes[] = {
    {nothing, "gradients has no values; list one for each of variables"},
    {no_room, "there is no room for 4 slots"},
    {too_many, "gradients has 4 values and variables has 1"},
    {crossed, "embed.w is f64[in:5, hidden:4] and its gradient, number 0, is f64["},
    {listed_twice, "block.w is in variables twice, as number 0 and 1"},
    {no_slot, "the result of variable at training.h:"},
    {second_time, "its slot block.b/gradient was made at accumulate_test.c:"},
};

static void test_wrong_calls_have_their_sentence_and_leave_nothing(void)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        net n = net_make();
        weft_value d[N_VARIABLES], kept[N_VARIABLES] = {{NULL, 5}};
        weft_gradients(n.loss, (weft_values){n.variables, N_VARIABLES}, d, 0);
        CHECK_EQ_INT(mistakes[i].make(&n, d, kept).id, 0);
        CHECK_TEXT(weft_graph_error(n.graph)->message, mistakes[i].says);
        CHECK_TEXT(weft_graph_error(n.graph)->message, "accumulate");
        CHECK_TEXT(weft_graph_error(n.graph)->message, "at accumulate_test.c:");
        CHECK(mistakes[i].make == no_room || mistakes[i].make == no_slot || kept[0].id == 0);
        CHECK_EQ_INT(weft_graph_find(n.graph, "embed.w/gradient", NULL).id, 0);
        CHECK_EQ_INT(n.graph->phase, WEFT_FORWARD);
        CHECK_EQ_INT(n.graph->place_as, 0);
        weft_graph_destroy(&n.graph);
    }
    weft_value kept[1];
    CHECK_EQ_INT(weft_accumulate((weft_values){0}, (weft_values){0}, kept).id, 0);
    CHECK_EQ_INT(weft_accumulate_clear((weft_values){NULL, 2}).id, 0);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2",        "data:3",
                                         "data:4", "data:2,model:2", "model:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        RUN(test_small_batches_added_up_are_a_large_one);
        RUN(test_kept_gradients_are_stored_as_slots_are);
        RUN(test_wrong_calls_have_their_sentence_and_leave_nothing);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
