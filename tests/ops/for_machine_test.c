/* for_machine_test: a plan for a machine is ordered by its seconds, is never predicted to be slower than another, and ranks that are
 * given different machines find it out.
 */
/* RANKS: 2 */
#include "ops/round_machine.h"
#include "ops/run/program.h"
#include "weft/collectives.h"
#include "weft/optim.h"

#include "apps/gpt/model.h"

static void plan_for(planned *p, weft_values values, const weft_machine_model *model)
{
    weft_error error = WEFT_NO_ERROR;
    const weft_compile_options options = {.machine = model};
    CHECK_OK(weft_compile(p->mesh, p->layout, values, &options, &p->program, &error), error);
}

static double seconds_of(const planned *p, const weft_machine_model *model)
{
    weft_error error = WEFT_NO_ERROR;
    weft_prediction prediction = {0};
    CHECK_OK(weft_plan_predict(p->program, model, NULL, &prediction, &error), error);
    return prediction.seconds;
}

/* What is taken is what is predicted, to the bit, and the first is by the usual prices. */
static void check_pricings(const planned *p, double seconds, double usual)
{
    int n_taken = 0;
    for (int i = 0; i < weft_plan_n_pricings(p->program); i++) {
        weft_error error = WEFT_NO_ERROR;
        weft_planned_pricing pricing;
        CHECK_OK(weft_plan_pricing_at(p->program, i, &pricing, &error), error);
        n_taken += pricing.is_taken;
        CHECK(!pricing.is_taken || (pricing.seconds == seconds && pricing.is_allowed));
        CHECK(i > 0 || pricing.seconds == usual);
        CHECK(pricing.is_taken || !pricing.is_allowed || pricing.seconds >= seconds * (1 - 1e-8));
    }
    CHECK_EQ_INT(n_taken, 1);
    CHECK(seconds <= usual);
}

/* ---- another order ------------------------------------------------------------------------------------ */

/* A large product, then three small ones with weights that are gathered. By the usual prices each gather is hidden behind the
 * product before it. */
static weft_value build_gathers(planned *p)
{
    static const char *const names[] = {"h0", "h1", "h2", "h3"};
    const weft_dim batch = {"batch", 1024}, k = {"k", 2048};
    weft_value x =
        weft_einsum(WEFT_DIMS(batch, ((weft_dim){"h0", 64})), input(p, "x", WEFT_DIMS(batch, k)),
                    input(p, "u", WEFT_DIMS(k, ((weft_dim){"h0", 64}))));
    for (int i = 0; i < 3; i++) {
        const weft_dim from = {names[i], 64}, to = {names[i + 1], 64};
        const weft_value w =
            weft_variable(p->graph, names[i], WEFT_F32, WEFT_DIMS(from, to), weft_constant_of(1));
        x = weft_einsum(WEFT_DIMS(batch, to), x, w);
    }
    return weft_mean(x);
}

static void open_gathers(planned *p)
{
    weft_error error = WEFT_NO_ERROR;
    open_planned(p, "data:2", "batch:data");
    CHECK_OK(weft_layout_store(p->layout, 3, "batch", &error), error);
}

/* A gather is 8,192 bytes: 41 ms at 200 kB/s. The large product takes 134 ms, a small one 4 ms: all gathers fit beside the first. */
static void test_a_slow_exchange_begins_earlier(void)
{
    planned usual, ours;
    weft_machine_model *model =
        machine("", "2", "0",
                ", {\"name\": \"far\", \"ranks\": 0, "
                "\"latency_seconds\": 0, \"bytes_per_second\": 1, \"cpu\": 0}",
                "");
    model->levels[0].bytes_per_second = 2e5;
    open_gathers(&usual);
    open_gathers(&ours);
    plan(&usual, WEFT_VALUES(build_gathers(&usual)));
    plan_for(&ours, WEFT_VALUES(build_gathers(&ours)), model);
    const double before = seconds_of(&usual, model), after = seconds_of(&ours, model);
    CHECK(before > 0.134 + 2 * 0.037);
    CHECK(after < 0.134 + 3 * 0.0043 + 0.041);
    check_pricings(&ours, after, before);
    CHECK(weft_program_digest(usual.program) != weft_program_digest(ours.program));
    weft_machine_model_destroy(&model);
    close_planned(&usual);
    close_planned(&ours);
}

/* ---- never worse -------------------------------------------------------------------------------------- */

static weft_value build_gpt(planned *p)
{
    gpt_model model;
    const gpt_shape shape = {.layers = 2,
                             .width = 32,
                             .heads = 4,
                             .seq = 16,
                             .batch = 8,
                             .hidden = 64,
                             .vocab = 64,
                             .stages = 1,
                             .micro = 1,
                             .turns = 1,
                             .dtype = WEFT_F32,
                             .computes = WEFT_F32};
    const weft_value loss = gpt_loss(&shape, p->graph, &model);
    return weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
}

static void test_no_plan_is_predicted_to_be_slower(void)
{
    static const struct {
        const char *mesh, *rules;
        int zero;
    } cells[] = {{"data:1", "", 0},
                 {"data:4", "batch:data", 0},
                 {"data:4", "batch:data", 3},
                 {"model:4", "hidden:model,heads:model,vocab:model", 0},
                 {"data:8,model:4", "batch:data,hidden:model,heads:model,vocab:model", 2},
                 {"data:2,model:2", "batch:data,seq:model", 1}};
    static const char *const names[] = {"laptop", "a100x8", "h100x8"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells * 3; i++) {
        planned usual, ours;
        weft_error error = WEFT_NO_ERROR;
        weft_machine_model *model = NULL;
        CHECK_OK(weft_machine_model_read(names[i % 3], &model, &error), error);
        for (planned *p = &usual; p; p = p == &usual ? &ours : NULL) {
            open_planned(p, cells[i / 3].mesh, cells[i / 3].rules);
            CHECK_OK(weft_layout_store(p->layout, cells[i / 3].zero, "batch", &error), error);
        }
        plan(&usual, WEFT_VALUES(build_gpt(&usual)));
        plan_for(&ours, WEFT_VALUES(build_gpt(&ours)), model);
        check_pricings(&ours, seconds_of(&ours, model), seconds_of(&usual, model));
        CHECK(strcmp(weft_plan_machine(ours.program), names[i % 3]) == 0);
        CHECK(weft_plan_machine(usual.program) == NULL);
        CHECK_EQ_INT(weft_plan_n_pricings(usual.program), 0);
        CHECK((weft_plan_n_pricings(ours.program) == 1) == (i < 3));
        weft_machine_model_destroy(&model);
        close_planned(&usual);
        close_planned(&ours);
    }
}

static void test_links_that_are_stated_stay(void)
{
    planned p;
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = plain_machine("0");
    open_planned(&p, "data:2", "batch:data");
    const weft_compile_options options = {.machine = model, .link = "1GB+50us"};
    CHECK_OK(weft_compile(p.mesh, p.layout, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)), &options,
                          &p.program, &error),
             error);
    CHECK(strcmp(weft_plan_link(p.program), "1GB+50us") == 0);
    CHECK_EQ_INT(weft_plan_n_pricings(p.program), 2);
    weft_machine_model_destroy(&model);
    close_planned(&p);
}

/* ---- one machine for all ranks ---------------------------------------------------------------------------- */

static void test_a_hash_is_of_what_is_said(void)
{
    weft_machine_model *one = plain_machine("0"), *same = plain_machine("0"),
                       *other = plain_machine("0.5");
    CHECK(weft_machine_model_hash(one) != 0);
    CHECK(weft_machine_model_hash(one) == weft_machine_model_hash(same));
    CHECK(weft_machine_model_hash(one) != weft_machine_model_hash(other));
    CHECK(weft_machine_model_hash(NULL) == 0);
    weft_machine_model_destroy(&one);
    weft_machine_model_destroy(&same);
    weft_machine_model_destroy(&other);
}

static void test_ranks_for_other_machines_are_named(weft_mesh *mesh)
{
    weft_error error = WEFT_NO_ERROR;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    planned p = {.graph = weft_graph_create(1)};
    CHECK_OK(weft_layout_create("batch:data", &layout, &error), error);
    weft_machine_model *model = plain_machine(weft_mesh_first_local(mesh) == 1 ? "0.5" : "0");
    const weft_compile_options options = {.machine = model};
    const weft_values values = WEFT_VALUES(product(&p, "x", "y", 8, 10, 6));
    CHECK_EQ_INT(weft_compile(mesh, layout, values, &options, &program, &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, "rank 1 plans for machine round (hash ");
    CHECK_TEXT(error.message, "give all ranks the same machine file");
    weft_machine_model_destroy(&model);
    weft_graph_destroy(&p.graph);
    weft_layout_destroy(&layout);
}

int main(void)
{
    weft_world world;
    weft_mesh *mesh = NULL;
    weft_error error = WEFT_NO_ERROR;
    if (CHECK_OK(weft_world_open(&world, &error), error) &&
        CHECK_OK(weft_mesh_create(&world, "data:2", &mesh, &error), error)) {
        if (world.n_processes > 1) {
            test_ranks_for_other_machines_are_named(mesh);
        } else {
            RUN(test_a_slow_exchange_begins_earlier);
            RUN(test_no_plan_is_predicted_to_be_slower);
            RUN(test_links_that_are_stated_stay);
            RUN(test_a_hash_is_of_what_is_said);
        }
    }
    (void)!weft_mesh_destroy(&mesh);
    weft_world_close();
    return weft_test_report();
}
