/* search_test: the quickest choice of a small program is that of trying all, floors are below what is planned, and what fits no machine is
 * told.
 */
#include "weft/research/search.h"

#include "test.h"
#include "weft/optim.h"
#include "weft/ops.h"

/* A perceptron of so many alike layers, whose batch may go through in parts. */
typedef struct net {
    int64_t batch, width, hidden, layers;
    bool refuses, names_each; /* each layer's hidden dim has a name of its own */
} net;

static weft_value layer_of(weft_graph *graph, weft_value x, const net *n, int64_t layer)
{
    char up[40], down[40], name[40] = "hidden";
    if (n->names_each) snprintf(name, sizeof name, "hidden%d", (int)layer);
    const weft_dim batch = weft_dim_of(x, "batch"), width = {"width", n->width};
    const weft_dim hidden = {name, n->hidden};
    snprintf(up, sizeof up, "up%d", (int)layer);
    snprintf(down, sizeof down, "down%d", (int)layer);
    const weft_value w =
        weft_variable(graph, up, WEFT_F32, WEFT_DIMS(width, hidden), weft_normal(0, 0.1));
    const weft_value v =
        weft_variable(graph, down, WEFT_F32, WEFT_DIMS(hidden, width), weft_normal(0, 0.1));
    const weft_value h = weft_relu(weft_einsum(WEFT_DIMS(batch, hidden), x, w));
    return weft_add(x, weft_einsum(WEFT_DIMS(batch, width), h, v));
}

static weft_status build(void *context, const weft_choice *choice, weft_built_graph *built,
                         weft_error *error)
{
    const net *n = context;
    const int64_t layers = choice->layers > 0 ? choice->layers : n->layers;
    if (n->refuses || weft_choice_value(choice, "odd", 2) % 2 == 1)
        return weft_fail(error, WEFT_USAGE, "odd numbers go with nothing");
    built->graph = weft_graph_create(1);
    if (!built->graph) return weft_fail_memory(error, 1);
    weft_value x =
        weft_input(built->graph, "x", WEFT_F32,
                   WEFT_DIMS(((weft_dim){"batch", weft_choice_value(choice, "batch", n->batch)}),
                             ((weft_dim){"width", n->width})));
    for (int64_t i = 0; i < layers * weft_choice_value(choice, "times", 1); i++)
        x = layer_of(built->graph, x, n, i);
    const weft_value loss = weft_mean(weft_mul(x, x));
    built->values[0] = loss;
    built->values[1] = weft_adam(loss, &(weft_optimizer_options){.rate = 0.1});
    built->n_values = 2;
    const weft_error *first = weft_graph_error(built->graph);
    return first->status == WEFT_OK ? WEFT_OK
                                    : weft_fail(error, first->status, "%s", first->message);
}

static weft_machine_model *machine(const char *name)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    CHECK_OK(weft_machine_model_read(name, &model, &error), error);
    return model;
}

static weft_found *look(const net *n, const weft_search_options *options)
{
    weft_error error = WEFT_NO_ERROR;
    weft_found *found = calloc(1, sizeof *found);
    CHECK_OK(weft_search_best(build, (void *)(uintptr_t)n, options, found, &error), error);
    return found;
}

static const char *text_of(const weft_choice *choice)
{
    static char text[800];
    (void)weft_choice_print(choice, text, sizeof text);
    return text;
}

static double seconds_of(const net *n, const weft_search_options *options,
                         const weft_choice *choice)
{
    weft_error error = WEFT_NO_ERROR;
    weft_built_graph built;
    weft_program *program = NULL;
    weft_prediction prediction = {0};
    CHECK_OK(weft_search_plan(build, (void *)(uintptr_t)n, options, choice, &built, &program,
                              &prediction, &error),
             error);
    weft_mesh *mesh = weft_program_mesh(program);
    (void)weft_program_destroy(&program);
    (void)weft_mesh_destroy(&mesh);
    if (built.graph) (void)weft_graph_destroy(&built.graph);
    return prediction.seconds;
}

/* ---- the same by other ways ----------------------------------------------------------------------------- */

static void check_floors(const weft_found *found)
{
    for (int i = 0; i < found->n; i++) {
        const weft_found_choice *c = &found->best[i];
        CHECK(c->floor_seconds <= c->prediction.seconds);
        CHECK(c->floor_bytes <= c->bytes);
        CHECK(i == 0 || c->prediction.seconds >= found->best[i - 1].prediction.seconds);
    }
    CHECK(found->least_seconds <= found->best[0].prediction.seconds);
    CHECK(found->floor_part > 0 && found->floor_part <= 1);
}

/* Returns how many plans the floors have spared. */
static int64_t check_without_floors(const net *n, const weft_search_options *options)
{
    weft_search_options whole = *options;
    whole.is_whole = true;
    weft_found *some = look(n, options), *all = look(n, &whole);
    CHECK(some->is_exact && all->is_exact);
    CHECK_EQ_INT(all->n_choices, some->n_choices);
    CHECK_EQ_INT(all->n_planned + all->left_out.illegal, all->n_choices);
    CHECK(some->n_planned <= all->n_planned);
    CHECK(some->best[0].prediction.seconds == all->best[0].prediction.seconds);
    CHECK(strcmp(some->best[0].choice.mesh, all->best[0].choice.mesh) == 0);
    CHECK(strcmp(some->best[0].choice.layout, all->best[0].choice.layout) == 0);
    check_floors(some);
    check_floors(all);
    const int64_t spared = all->n_planned - some->n_planned;
    free(some);
    free(all);
    return spared;
}

static void test_floors_leave_out_no_winner(void)
{
    static const char *const machines[] = {"h100x8", "laptop", "a100x8"};
    static const net nets[] = {{64, 512, 2048, 1}, {8192, 1024, 1024, 1}, {16, 64, 4096, 2}};
    const weft_knob times = {.name = "times", .n_values = 2, .values = {1, 4}}; /* so much work */
    int64_t spared = 0;
    for (int i = 0; i < 3; i++) {
        weft_machine_model *model = machine(machines[i]);
        const weft_search_options options = {
            .ranks = 4, .machine = model, .store_dim = "batch", .n_knobs = 1, .knobs = &times};
        spared += check_without_floors(&nets[i], &options);
        weft_machine_model_destroy(&model);
    }
    CHECK(spared > 0);
}

/* Stages of a layout that is kept: four plans, by hand. */
static void test_the_best_is_that_of_trying_all(void)
{
    const net n = {256, 512, 1024, 2};
    weft_machine_model *model = machine("h100x8");
    const weft_search_options options = {.ranks = 8,
                                         .machine = model,
                                         .store_dim = "batch",
                                         .vary = "zero",
                                         .mesh = "data:4,model:2",
                                         .layout = "batch:data,hidden:model"};
    weft_found *found = look(&n, &options);
    double best = INFINITY;
    for (int zero = 0; zero <= 3; zero++) {
        weft_choice choice = {.zero = zero};
        snprintf(choice.mesh, sizeof choice.mesh, "%s", options.mesh);
        snprintf(choice.layout, sizeof choice.layout, "%s", options.layout);
        best = fmin(best, seconds_of(&n, &options, &choice));
    }
    CHECK_EQ_INT(found->n_choices, 4);
    CHECK(found->is_exact && found->best[0].prediction.seconds == best);
    CHECK(strcmp(found->best[0].choice.mesh, options.mesh) == 0);
    free(found);
    weft_machine_model_destroy(&model);
}

/* Meshes and layouts written down here: each dim by itself, and each two dims, in both orders. */
static void test_no_layout_by_hand_is_quicker(void)
{
    static const char *const dims[] = {"batch", "hidden", "width"};
    static const net nets[] = {{64, 512, 2048, 1}, {4096, 256, 512, 1}};
    weft_machine_model *model = machine("a100x8");
    for (int i = 0; i < 2; i++) {
        const weft_search_options options = {.ranks = 4, .machine = model};
        weft_found *found = look(&nets[i], &options);
        double best = INFINITY;
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) {
                weft_choice choice = {.zero = 0};
                snprintf(choice.mesh, sizeof choice.mesh, a == b ? "x:4" : "x:2,y:2");
                if (a == b)
                    snprintf(choice.layout, sizeof choice.layout, "%s:x", dims[a]);
                else
                    snprintf(choice.layout, sizeof choice.layout, "%s:x,%s:y", dims[a], dims[b]);
                best = fmin(best, seconds_of(&nets[i], &options, &choice));
            }
        CHECK(found->is_exact && found->best[0].prediction.seconds <= best);
        free(found);
    }
    weft_machine_model_destroy(&model);
}

static void test_never_slower_than_data_parallel(void)
{
    const net n = {1024, 256, 1024, 12};
    weft_machine_model *model = machine("h100x8");
    const weft_search_options options = {
        .ranks = 64, .machine = model, .store_dim = "batch", .most = 8, .layers = n.layers};
    weft_found *found = look(&n, &options);
    const weft_choice data = {.mesh = "data:64", .layout = "batch:data"};
    CHECK(found->best[0].prediction.seconds <= seconds_of(&n, &options, &data));
    free(found);
    weft_machine_model_destroy(&model);
}

/* What is estimated by few layers is planned with all before it is told. */
static void test_what_is_told_is_planned_whole(void)
{
    const net n = {512, 256, 1024, 16};
    weft_machine_model *model = machine("h100x8");
    const weft_search_options options = {
        .ranks = 8, .machine = model, .store_dim = "batch", .most = 20, .layers = n.layers};
    weft_found *found = look(&n, &options);
    CHECK(found->n_estimated > 0);
    for (int i = 0; i < found->n && i < 3; i++)
        CHECK(found->best[i].prediction.seconds ==
              seconds_of(&n, &options, &found->best[i].choice));
    check_floors(found);
    free(found);
    weft_machine_model_destroy(&model);
}

static void test_threads_change_nothing(void)
{
    const net n = {256, 256, 512, 8};
    weft_machine_model *model = machine("h100x8");
    weft_search_options options = {
        .ranks = 16, .machine = model, .store_dim = "batch", .most = 24, .layers = 8, .threads = 1};
    weft_found *one = look(&n, &options);
    options.threads = 3;
    weft_found *three = look(&n, &options);
    CHECK_EQ_INT(one->n, three->n);
    for (int i = 0; i < one->n; i++) {
        char text[800];
        snprintf(text, sizeof text, "%s", text_of(&one->best[i].choice));
        CHECK(strcmp(text, text_of(&three->best[i].choice)) == 0);
        CHECK(one->best[i].prediction.seconds == three->best[i].prediction.seconds);
    }
    free(one);
    free(three);
    weft_machine_model_destroy(&model);
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

static void test_what_does_not_fit_is_no_choice(void)
{
    const net n = {256, 256, 1024, 2};
    weft_machine_model *model = machine("h100x8");
    weft_search_options options = {.ranks = 4, .machine = model, .store_dim = "batch"};
    weft_found *all = look(&n, &options);
    options.memory = all->smallest.bytes;
    weft_found *tight = look(&n, &options);
    CHECK(tight->n > 0);
    for (int i = 0; i < tight->n; i++)
        CHECK(tight->best[i].bytes <= options.memory);
    CHECK(tight->left_out.memory + tight->n_misfits > 0);
    options.memory = tight->smallest.bytes / 8;
    weft_found *none = look(&n, &options);
    CHECK_EQ_INT(none->n, 0);
    CHECK_EQ_INT(none->left_out.memory + none->n_misfits, none->n_choices);
    free(all);
    free(tight);
    free(none);
    weft_machine_model_destroy(&model);
}

/* ---- bad input --------------------------------------------------------------------------------------------- */

static void check_refused(const net *n, const weft_search_options *options, const char *says)
{
    weft_error error = WEFT_NO_ERROR;
    weft_found *found = calloc(1, sizeof *found);
    CHECK_EQ_INT(weft_search_best(build, (void *)(uintptr_t)n, options, found, &error), WEFT_USAGE);
    if (!CHECK(strstr(error.message, says) != NULL)) fprintf(stderr, "%s\n", error.message);
    free(found);
}

static void test_bad_input_is_told(void)
{
    const net n = {8, 8, 8, 1}, refusing = {8, 8, 8, 1, true};
    weft_machine_model *model = machine("laptop");
    const weft_knob odd = {.name = "odd", .n_values = 2, .values = {1, 3}};
    check_refused(&n, &(weft_search_options){.ranks = 0, .machine = model}, "ranks is 0");
    check_refused(&n, &(weft_search_options){.ranks = 4}, "machine is NULL");
    check_refused(&n, &(weft_search_options){.ranks = 4, .machine = model, .vary = "mesh,layuot"},
                  "did you mean layout?");
    check_refused(&n, &(weft_search_options){.ranks = 4, .machine = model, .vary = "zero"},
                  "give a mesh");
    check_refused(&n, &(weft_search_options){.ranks = 4, .machine = model, .seconds = -1},
                  "seconds is -1");
    check_refused(&n, &(weft_search_options){.ranks = 11, .machine = model}, "11 ranks: no mesh");
    check_refused(&n,
                  &(weft_search_options){.ranks = 4,
                                         .machine = model,
                                         .vary = "layout",
                                         .mesh = "model:4",
                                         .layout = "hidden:model",
                                         .zero = 3},
                  "nothing to choose among");
    check_refused(
        &n, &(weft_search_options){.ranks = 4, .machine = model, .mesh = "data:2", .layout = ""},
        "has 2 ranks, and the search is for 4");
    check_refused(&n,
                  &(weft_search_options){
                      .ranks = 4, .machine = model, .mesh = "data:4", .layout = "hiden:data"},
                  "hidden");
    check_refused(&refusing, &(weft_search_options){.ranks = 4, .machine = model}, "odd numbers");
    check_refused(&n,
                  &(weft_search_options){.ranks = 4, .machine = model, .n_knobs = 1, .knobs = &odd},
                  "odd numbers");
    weft_machine_model_destroy(&model);
}

static void test_one_rank_and_refused_values(void)
{
    const net n = {8, 8, 8, 1};
    weft_machine_model *model = machine("laptop");
    const weft_knob some = {.name = "odd", .n_values = 3, .values = {2, 3, 4}};
    const weft_search_options options = {
        .ranks = 1, .machine = model, .n_knobs = 1, .knobs = &some, .store_dim = "batch"};
    weft_found *found = look(&n, &options);
    CHECK_EQ_INT(found->n_choices, 2); /* 2 and 4, without stages */
    CHECK_EQ_INT(found->n_planned, 2);
    CHECK_EQ_INT(found->n, 1); /* both are the same plan */
    CHECK(found->left_out.sentence[0] != '\0');
    CHECK(strcmp(text_of(&found->best[0].choice), "") == 0 ||
          strcmp(text_of(&found->best[0].choice), "--odd 4") == 0);
    free(found);
    weft_machine_model_destroy(&model);
}

/* 40 dims that never meet are subsets without end: they are looked at within bounds. */
static void test_many_names_of_dims_are_searched(void)
{
    const net n = {.batch = 8, .width = 8, .hidden = 8, .layers = 40, .names_each = true};
    weft_machine_model *model = machine("laptop");
    const weft_search_options options = {
        .machine = model, .ranks = 2, .store_dim = "batch", .most = 2};
    weft_found *found = look(&n, &options);
    CHECK(found->n > 0);
    free(found);
    weft_machine_model_destroy(&model);
}

static void test_a_choice_is_a_command_line(void)
{
    const weft_knob knobs[] = {{.name = "parts", .n_values = 1, .values = {1}},
                               {.name = "again", .is_flag = true, .n_values = 2, .values = {1, 0}}};
    const weft_choice choice = {.mesh = "data:2",
                                .layout = "batch:data",
                                .zero = 3,
                                .n_knobs = 2,
                                .knobs = knobs,
                                .values = {4, 0}};
    char few[12];
    CHECK(strcmp(text_of(&choice), "--mesh data:2 --layout batch:data --zero 3 --parts 4 "
                                   "--no-again") == 0);
    CHECK_EQ_INT(weft_choice_print(&choice, few, sizeof few), (int)strlen(text_of(&choice)));
    CHECK(strcmp(few, "--mesh data") == 0);
    CHECK_EQ_INT(weft_choice_value(&choice, "parts", 7), 4);
    CHECK_EQ_INT(weft_choice_value(&choice, "no such", 7), 7);
}

static void test_turns_are_where_the_order_turns(void)
{
    const net n = {4096, 512, 2048, 1};
    weft_machine_model *model = machine("h100x8");
    const weft_search_options options = {.ranks = 8, .machine = model};
    weft_choice fast = {.mesh = "data:8", .layout = "batch:data"},
                slow = {.mesh = "model:8", .layout = "hidden:model"};
    weft_turn turns[WEFT_MAX_TURNS];
    int n_turns = 0, n_found = 0;
    weft_error error = WEFT_NO_ERROR;
    if (seconds_of(&n, &options, &fast) > seconds_of(&n, &options, &slow)) {
        const weft_choice other = fast;
        fast = slow, slow = other;
    }
    CHECK_OK(weft_search_turns(build, (void *)(uintptr_t)&n, &options, &fast, &slow, turns,
                               &n_turns, &error),
             error);
    CHECK(n_turns >= 4);
    for (int i = 0; i < n_turns; i++) {
        CHECK(turns[i].factor == 0 || (turns[i].factor >= 0.0099 && turns[i].factor <= 101));
        n_found += turns[i].factor > 0;
    }
    CHECK(n_found > 0);
    /* The other way round nothing has to change. */
    CHECK_OK(weft_search_turns(build, (void *)(uintptr_t)&n, &options, &slow, &fast, turns,
                               &n_turns, &error),
             error);
    for (int i = 0; i < n_turns; i++)
        CHECK(turns[i].factor == 1);
    weft_machine_model_destroy(&model);
}

/* Splitting the batch exchanges weights, splitting the width exchanges values: a larger batch makes the former the better one. */
static void test_a_larger_batch_turns_the_order(void)
{
    const net n = {512, 1024, 1024, 1};
    weft_machine_model *model = machine("h100x8");
    const weft_knob knob = {.name = "batch", .n_values = 1, .values = {512}};
    const weft_search_options options = {
        .ranks = 8, .machine = model, .n_knobs = 1, .knobs = &knob, .batch_knob = "batch"};
    weft_choice data = {.mesh = "data:8", .layout = "batch:data", .n_knobs = 1, .knobs = &knob};
    weft_choice hidden = {
        .mesh = "model:8", .layout = "hidden:model", .n_knobs = 1, .knobs = &knob};
    data.values[0] = hidden.values[0] = 512;
    weft_turn turns[WEFT_MAX_TURNS];
    int n_turns = 0;
    weft_error error = WEFT_NO_ERROR;
    CHECK(seconds_of(&n, &options, &hidden) < seconds_of(&n, &options, &data));
    CHECK_OK(weft_search_turns(build, (void *)(uintptr_t)&n, &options, &hidden, &data, turns,
                               &n_turns, &error),
             error);
    const weft_turn *last = &turns[n_turns - 1];
    CHECK(strcmp(last->what, "batch") == 0 && last->factor > 1);
    data.values[0] = hidden.values[0] = (int64_t)(512 * last->factor);
    CHECK(seconds_of(&n, &options, &data) <= seconds_of(&n, &options, &hidden));
    data.values[0] = hidden.values[0] = (int64_t)(256 * last->factor);
    CHECK(seconds_of(&n, &options, &data) > seconds_of(&n, &options, &hidden));
    weft_machine_model_destroy(&model);
}

int main(void)
{
    RUN(test_floors_leave_out_no_winner);
    RUN(test_the_best_is_that_of_trying_all);
    RUN(test_no_layout_by_hand_is_quicker);
    RUN(test_never_slower_than_data_parallel);
    RUN(test_what_is_told_is_planned_whole);
    RUN(test_threads_change_nothing);
    RUN(test_what_does_not_fit_is_no_choice);
    RUN(test_bad_input_is_told);
    RUN(test_one_rank_and_refused_values);
    RUN(test_many_names_of_dims_are_searched);
    RUN(test_a_choice_is_a_command_line);
    RUN(test_turns_are_where_the_order_turns);
    RUN(test_a_larger_batch_turns_the_order);
    return weft_test_report();
}
