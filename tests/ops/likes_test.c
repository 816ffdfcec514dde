/* likes_test: what is found once, for all tensors and steps that are alike, is what each of them says by itself. */
#include "gpt_plan.h"
#include "likes.h"

#include <string.h>

/* The same call, but for addresses. */
static bool same_views(const weft_view *a, const weft_view *b)
{
    bool is_same = a->dtype == b->dtype && a->shape.n_dims == b->shape.n_dims;
    for (int d = 0; d < a->shape.n_dims && is_same; d++)
        is_same = strcmp(a->shape.dims[d].name, b->shape.dims[d].name) == 0 &&
                  a->shape.dims[d].size == b->shape.dims[d].size &&
                  a->box.begin[d] == b->box.begin[d] && a->box.end[d] == b->box.end[d];
    return is_same;
}

static void check_call(const weft_plan *plan, uint32_t s, int rank)
{
    const weft_step *step = &plan->steps[s];
    const weft_step *first = &plan->steps[plan->likes.steps[plan->likes.of_step[s]]];
    weft_call own = {0}, its = {0};
    CHECK(step->kind == first->kind && step->n_in == first->n_in && step->n_out == first->n_out);
    if (step->kind != WEFT_STEP_KERNEL) return;
    weft_step_call(plan, step, rank, &own);
    weft_step_call(plan, first, rank, &its);
    CHECK(own.accumulates == its.accumulates && own.precision == its.precision);
    for (int i = 0; i < step->n_in; i++)
        CHECK(same_views(&own.in[i], &its.in[i]));
    for (int o = 0; o < step->n_out; o++)
        CHECK(same_views(&own.out[o], &its.out[o]));
}

static void check_rank(const weft_plan *plan, int rank)
{
    weft_error error = {0};
    weft_known_moves *moves;
    weft_sizes sizes = {0};
    weft_arena *arena = weft_arena_create();
    if (CHECK_OK(weft_known_moves_open(arena, rank, &moves, &error), error) &&
        CHECK_OK(weft_sizes_of(plan, rank, arena, moves, &sizes, &error), error)) {
        for (uint32_t id = 1; id < plan->n_placed; id++)
            CHECK_EQ_INT(sizes.bytes[plan->likes.of_placed[id]], weft_placed_bytes(plan, id, rank));
        for (uint32_t s = 0; s < plan->n_steps; s++) {
            int64_t scratch = -1;
            CHECK_OK(weft_step_scratch(plan, &plan->steps[s], rank, &scratch, &error), error);
            CHECK_EQ_INT(sizes.scratch[plan->likes.of_step[s]], scratch);
            check_call(plan, s, rank);
        }
    }
    weft_arena_destroy(&arena);
}

static void check_plan(const gpt_shape *shape, int exchange)
{
    gpt_plan p;
    gpt_plan_open(shape, gpt_exchanges[exchange].mesh, gpt_exchanges[exchange].rules,
                  gpt_exchanges[exchange].zero, &p);
    const weft_plan *plan = p.plan;
    for (int rank = 0; plan && rank < weft_mesh_n_ranks(p.mesh); rank++)
        check_rank(plan, rank);
    uint64_t n = 0;
    double flops = 0;
    for (uint32_t k = 0; plan && k < plan->likes.n_steps; k++)
        n += plan->likes.n_of_step[k];
    for (uint32_t s = 0; plan && s < plan->n_steps; s++) {
        flops += weft_step_flops(plan, &plan->steps[s], 0);
        CHECK(plan->flops[s + 1] == flops);
    }
    CHECK(plan && n == plan->n_steps && plan->likes.n_steps < plan->n_steps);
    gpt_plan_close(&p);
}

/* Windows, partial sums, ZeRO, and blocks of which the last is smaller. */
static void test_each_says_what_is_found_once(void)
{
    const gpt_shape even = {8, 12, 3, 24, 4, 40, 32, .dropout = 0.1, .dtype = WEFT_F32};
    const gpt_shape odd = {7, 11, 3, 24, 4, 42, 31, .dtype = WEFT_F32};
    for (int i = 0; i < GPT_EXCHANGES; i++) {
        check_plan(&even, i);
        check_plan(&odd, i);
    }
}

static uint32_t n_kinds(int64_t layers)
{
    gpt_plan p;
    const gpt_shape shape = {8, 12, layers, 24, 4, 40, 32, .dtype = WEFT_F32};
    gpt_plan_open(&shape, "data:2", "batch:data", 0, &p);
    const uint32_t n = p.plan ? p.plan->likes.n_steps : 0;
    gpt_plan_close(&p);
    return n;
}

/* But for what is joined over many of them. */
static void test_layers_are_of_the_same_kinds(void)
{
    const uint32_t few = n_kinds(4), many = n_kinds(12);
    CHECK(few > 0 && many < few + few / 4);
}

int main(void)
{
    RUN(test_each_says_what_is_found_once);
    RUN(test_layers_are_of_the_same_kinds);
    return weft_test_report();
}
