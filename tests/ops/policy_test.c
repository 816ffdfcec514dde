/* RANKS: 2 */
/* policy_test: what a policy and a cost function are shown, what their answers change, and the
 * sentences for answers that are none. That numbers stay the same: tests/oracle/policy_test.c.
 */
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/research/plan.h"

#include <stdlib.h>

#include "test.h"

static weft_world world;

typedef struct planned {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value x, w, h;
    weft_program *program;
} planned;

/* h [batch, hidden] = x [batch, pixel] . w [pixel, hidden], on a plan or a real mesh. */
static weft_status compile(planned *p, weft_mesh *mesh, const char *layout,
                           const weft_compile_options *options, weft_error *error)
{
    const weft_dim batch = {"batch", 32}, pixel = {"pixel", 48}, hidden = {"hidden", 64};
    *p = (planned){.mesh = mesh, .graph = weft_graph_create(1)};
    p->x = weft_input(p->graph, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    p->w = weft_input(p->graph, "w", WEFT_F32, WEFT_DIMS(pixel, hidden));
    p->h = weft_name(weft_einsum(WEFT_DIMS(batch, hidden), p->x, p->w), "h");
    WEFT_TRY(weft_layout_create(layout, &p->layout, error));
    return weft_compile(mesh, p->layout, WEFT_VALUES(p->h), options, &p->program, error);
}

static void end(planned *p)
{
    weft_program_destroy(&p->program);
    weft_graph_destroy(&p->graph);
    weft_layout_destroy(&p->layout);
}

static weft_mesh *plan_mesh(const char *text)
{
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_plan(text, &mesh, &error), error);
    return mesh;
}

static uint64_t digest_of(const char *layout, const weft_compile_options *options)
{
    weft_mesh *mesh = plan_mesh("data:2,model:2");
    weft_error error = {0};
    planned p;
    uint64_t digest = 0;
    if (CHECK_OK(compile(&p, mesh, layout, options, &error), error))
        digest = weft_program_digest(p.program);
    end(&p);
    weft_mesh_destroy(&mesh);
    return digest;
}

static uint64_t digest_with(const weft_compile_options *options)
{
    return digest_of("batch:data,hidden:model,pixel:model", options);
}

/* ---- what is shown --------------------------------------------------------------------------- */

typedef struct seen {
    int n, n_before;
    int picks; /* what to answer */
} seen;

static int look(void *context, const weft_decision *d)
{
    seen *s = context;
    CHECK(strcmp(d->op, "einsum") == 0 && strcmp(d->file, "policy_test.c") == 0 && d->line > 0);
    CHECK_EQ_INT(d->axis, s->n);
    CHECK_EQ_INT(d->n_ranks, 2);
    CHECK(d->n_in == 2 && d->n_out == 1 && d->picked == -1);
    CHECK(strcmp(d->in[0].name, "x") == 0 && strcmp(d->in[1].name, "w") == 0);
    CHECK(strcmp(d->out[0].name, "h") == 0 && d->out[0].now == NULL);
    CHECK_EQ_INT(d->in[0].now[0], 0); /* batch over data */
    CHECK_EQ_INT(d->in[0].now[1], 1); /* pixel over model */
    CHECK_EQ_INT(d->out[0].wanted[1], 1);
    CHECK_CLOSE(d->flops, (s->n ? 1.0 : 2.0) * 32 * 48 * 64, 1e-12); /* batch is cut by then */
    for (int a = 0; a < d->axis; a++)
        CHECK(d->before[a].kind == WEFT_WAY_CUT && strcmp(d->before[a].dim, "batch") == 0);
    for (int w = 0; w < d->n_ways; w++) {
        const weft_price *price = &d->ways[w].price;
        CHECK_CLOSE(price->total, price->operands + price->results + price->repeated, 1e-12);
        if (d->ways[w].is_usual) CHECK(d->ways[d->cheapest].price.total <= price->total);
    }
    CHECK(d->ways[d->cheapest].is_usual);
    s->n++;
    return s->picks;
}

static void test_a_policy_sees_the_whole_question(void)
{
    seen s = {.picks = WEFT_DEFAULT_WAY};
    const weft_policy policy = {.name = "look", .pick = look, .context = &s};
    const weft_compile_options options = {.policy = &policy};
    CHECK(digest_with(&options) == digest_with(NULL)); /* the default is the default */
    CHECK_EQ_INT(s.n, 2);
}

/* All prices of h over model, by hand: x and w are split over pixel there, h is wanted over hidden. The box of x is
 * half of its batch, that of h as well. */
static void test_prices_are_what_moves(void)
{
    weft_mesh *mesh = plan_mesh("data:2,model:2");
    const weft_compile_options options = {.explain = true};
    const double x = 16 * 48 * 4, w = 48 * 64 * 4, h = 16 * 64 * 4;
    weft_error error = {0};
    planned p;
    int n_found = 0;
    CHECK_OK(compile(&p, mesh, "batch:data,pixel:model,hidden:model", &options, &error), error);
    CHECK_EQ_INT(weft_plan_n_decisions(p.program), 2);
    const weft_decision *d = weft_plan_decision_at(p.program, 1);
    for (int i = 0; d && i < d->n_ways; i++) {
        const weft_way *way = &d->ways[i];
        const char *dim = way->dim ? way->dim : "";
        double operands = x / 2 + w / 2, results = 0, repeated = 0; /* whole: both gathered */
        if (strcmp(dim, "batch") == 0) operands = x / 4 + w / 2, results = h / 4;
        if (strcmp(dim, "hidden") == 0) operands = x / 2 + w / 4;
        if (strcmp(dim, "pixel") == 0) operands = 0, results = h / 2;
        if (way->kind != WEFT_WAY_CUT)
            repeated = 16 * 48 * 64 * 2 / 2 / (double)WEFT_FLOPS_PER_BYTE;
        if (way->kind ==
            WEFT_WAY_PARTIAL) { /* one of them counts as partial where it is, the other is gathered */
            operands = way->need[0] == WEFT_PARTIAL ? w / 2 : x / 2;
            results = h / 2;
        }
        CHECK_CLOSE(way->price.operands, operands, 1e-12);
        CHECK_CLOSE(way->price.results, results, 1e-12);
        CHECK_CLOSE(way->price.repeated, repeated, 1e-12);
        CHECK_EQ_INT(way->is_usual, strcmp(dim, "batch") != 0 && way->kind != WEFT_WAY_PARTIAL);
        n_found++;
    }
    CHECK_EQ_INT(n_found, 6);
    CHECK(d && d->ways[d->picked].dim && strcmp(d->ways[d->picked].dim, "pixel") == 0);
    end(&p);
    weft_mesh_destroy(&mesh);
}

/* ---- what an answer changes ------------------------------------------------------------------ */

static int cut_hidden(void *context, const weft_decision *d)
{
    (void)context;
    for (int w = 0; w < d->n_ways; w++)
        if (d->ways[w].dim && strcmp(d->ways[w].dim, "hidden") == 0) return w;
    return WEFT_DEFAULT_WAY;
}

static void test_another_pick_is_another_plan(void)
{
    const weft_policy policy = {.name = "hidden", .pick = cut_hidden};
    const weft_compile_options options = {.policy = &policy, .explain = true};
    weft_mesh *mesh = plan_mesh("data:2,model:2");
    weft_error error = {0};
    planned p;
    CHECK(digest_with(&options) != digest_with(NULL));
    CHECK_OK(compile(&p, mesh, "batch:data,hidden:model,pixel:model", &options, &error), error);
    CHECK_TEXT(weft_plan_policy(p.program), "hidden");
    for (int i = 0; i < weft_plan_n_decisions(p.program); i++) {
        const weft_decision *d = weft_plan_decision_at(p.program, i);
        CHECK(strcmp(d->ways[d->picked].dim, "hidden") == 0);
    }
    end(&p);
    weft_mesh_destroy(&mesh);
}

static const char *want_h(void *context, const weft_wanting *value)
{
    CHECK(strcmp(weft_mesh_text(value->mesh), "data:2,model:2") == 0 && value->place_as == NULL);
    return value->name && strcmp(value->name, "h") == 0 ? context : NULL;
}

static void test_a_value_lives_where_the_policy_wants_it(void)
{
    weft_policy policy = {.name = "h", .wants = want_h, .context = "hidden:data+model"};
    const weft_compile_options options = {.policy = &policy};
    weft_mesh *mesh = plan_mesh("data:2,model:2");
    weft_error error = {0};
    planned p;
    weft_planned_tensor h = {0};
    char spec[100] = "";
    CHECK_OK(compile(&p, mesh, "batch:data", &options, &error), error);
    uint32_t id = weft_plan_tensor_of(p.program, p.h);
    CHECK_OK(weft_plan_tensor_at(p.program, id, 0, &h, &error), error);
    weft_spec_print(&h.wanted, mesh, h.shape, spec, sizeof spec);
    CHECK_TEXT(spec, "[batch:32, hidden:64/data+model]");
    end(&p);
    policy.context = "hidden:dota";
    CHECK_EQ_INT(compile(&p, mesh, "batch:data", &options, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "einsum at policy_test.c:");
    CHECK_TEXT(error.message, "the policy \"h\" wants its result at a place that is none");
    CHECK_TEXT(error.message, "did you mean data?");
    end(&p);
    weft_mesh_destroy(&mesh);
}

/* ---- cost functions -------------------------------------------------------------------------- */

typedef struct priced {
    int n;
    double price; /* of an all_reduce, for each byte through the link */
} priced;

static double slow_all_reduce(void *context, const weft_exchange *exchange)
{
    priced *p = context;
    const double part = (exchange->n_ranks - 1.0) / exchange->n_ranks;
    double link = exchange->bytes * part;
    if (exchange->kind == WEFT_ALL_REDUCE) link *= 2;
    if (exchange->kind == WEFT_ALL_TO_ALL) link /= exchange->n_ranks;
    CHECK(exchange->kind != WEFT_SLICE && exchange->n_ranks > 1);
    CHECK_CLOSE(exchange->link_bytes, link, 1e-12);
    p->n++;
    return exchange->link_bytes * (exchange->kind == WEFT_ALL_REDUCE ? p->price : 1);
}

static void test_a_cost_function_decides(void)
{
    priced p = {.price = 1};
    weft_cost cost = {.exchange = slow_all_reduce, .context = &p};
    const weft_compile_options options = {.cost = &cost};
    const char *layout = "batch:data,pixel:model";
    const uint64_t usual = digest_of(layout, NULL);
    CHECK(digest_of(layout, &options) == usual);
    CHECK(p.n > 0);
    p.price = 10; /* then x and w are gathered, and all is done twice, rather than that */
    CHECK(digest_of(layout, &options) != usual);
    cost.flops_per_byte = 1e-3; /* unless work is dearer still */
    CHECK(digest_of(layout, &options) == usual);
}

static void test_a_plan_costs_what_its_steps_do(void)
{
    priced priced = {.price = 10};
    const weft_cost cost = {.exchange = slow_all_reduce, .context = &priced, .flops_per_byte = 5};
    weft_mesh *mesh = plan_mesh("data:2,model:2");
    weft_planned_cost usual = {0}, other = {0};
    weft_error error = {0};
    planned p;
    /* one all_reduce of h's half batch over model, in f32; h is whole along hidden */
    const double link = 2 * (16 * 64 * 4) / 2, flops = 2 * 16 * 24 * 64;
    CHECK_OK(compile(&p, mesh, "batch:data,pixel:model", NULL, &error), error);
    CHECK_OK(weft_plan_cost(p.program, 3, NULL, &usual, &error), error);
    CHECK_OK(weft_plan_cost(p.program, 3, &cost, &other, &error), error);
    CHECK_CLOSE(usual.exchange, link, 1e-12);
    CHECK_CLOSE(usual.flops, flops, 1e-12);
    CHECK_CLOSE(usual.total, link + flops / WEFT_FLOPS_PER_BYTE, 1e-12);
    CHECK_CLOSE(other.link_bytes, link, 1e-12);
    CHECK_CLOSE(other.total, 10 * link + flops / 5, 1e-12);
    CHECK_EQ_INT(priced.n, 1);
    end(&p);
    weft_mesh_destroy(&mesh);
}

/* ---- answers that are none ------------------------------------------------------------------- */

static int answer(void *context, const weft_decision *decision)
{
    (void)decision;
    return *(int *)context;
}

static double price(void *context, const weft_exchange *exchange)
{
    (void)exchange;
    return *(double *)context;
}

static double no_work(void *context, double flops)
{
    (void)context;
    return -flops;
}

static void check_refused(const weft_compile_options *options, const char *sentence)
{
    weft_mesh *mesh = plan_mesh("data:2,model:2");
    weft_error error = {0};
    planned p;
    /* x over batch and w over hidden are no ways of a sum: something moves whatever is done */
    CHECK_EQ_INT(compile(&p, mesh, "pixel:data,batch:model,hidden:model", options, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, sentence);
    CHECK_TEXT(error.message, "einsum at policy_test.c:");
    end(&p);
    weft_mesh_destroy(&mesh);
}

static void test_answers_that_are_none_are_refused(void)
{
    static const int picks[] = {6, 7, -2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof picks / sizeof *picks; i++) {
        int pick = picks[i];
        char sentence[100];
        const weft_policy policy = {.name = "wrong", .pick = answer, .context = &pick};
        snprintf(sentence, sizeof sentence, "the policy \"wrong\" picks way %d; there are 0 to 5",
                 pick);
        check_refused(&(weft_compile_options){.policy = &policy}, sentence);
    }
    double prices[] = {NAN, -1, -INFINITY};
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        const weft_cost cost = {.exchange = price, .context = &prices[i]};
        check_refused(&(weft_compile_options){.cost = &cost},
                      "give 0 or more, or INFINITY for never");
    }
    const weft_cost negative = {.work = no_work};
    check_refused(&(weft_compile_options){.cost = &negative}, "give 0 or more");
    double never = INFINITY;
    const weft_cost closed = {.exchange = price, .context = &never};
    check_refused(&(weft_compile_options){.cost = &closed}, "leave one way open");
}

static void test_flops_per_byte_is_a_number(void)
{
    static const double wrong[] = {-1, NAN};
    weft_mesh *mesh = plan_mesh("data:2");
    for (int i = 0; i < 2; i++) {
        const weft_cost cost = {.flops_per_byte = wrong[i]};
        const weft_compile_options options = {.cost = &cost};
        weft_error error = {0};
        planned p;
        CHECK_EQ_INT(compile(&p, mesh, "", &options, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "flops_per_byte of the cost function is");
        end(&p);
    }
    weft_mesh_destroy(&mesh);
}

/* ---- ranks that decide otherwise ------------------------------------------------------------- */

/* A policy that is not pure: it looks at its rank. */
static int by_rank(void *context, const weft_decision *d)
{
    return *(int *)context ? cut_hidden(NULL, d) : WEFT_DEFAULT_WAY;
}

static void test_ranks_that_decide_otherwise_are_found(void)
{
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    planned p;
    const weft_policy policy = {.name = "by rank", .pick = by_rank, .context = &world.process};
    const weft_compile_options options = {.policy = &policy};
    CHECK_OK(weft_mesh_create(&world, "", &mesh, &error), error);
    CHECK_EQ_INT(compile(&p, mesh, "batch:data", &options, &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, "rank 1 compiled another program than rank 0");
    end(&p);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        if (world.n_processes > 1) {
            RUN(test_ranks_that_decide_otherwise_are_found);
        } else {
            RUN(test_a_policy_sees_the_whole_question);
            RUN(test_prices_are_what_moves);
            RUN(test_another_pick_is_another_plan);
            RUN(test_a_value_lives_where_the_policy_wants_it);
            RUN(test_a_cost_function_decides);
            RUN(test_a_plan_costs_what_its_steps_do);
            RUN(test_answers_that_are_none_are_refused);
            RUN(test_flops_per_byte_is_a_number);
        }
    }
    weft_world_close();
    return weft_test_report();
}
