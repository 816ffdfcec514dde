/* buckets_test: the sums of gradients begin as soon as the last of the gradients that go together is there: nothing is
 * computed between that and the exchange's start.
 */
#include "gpt_plan.h"

#include <string.h>

static const gpt_shape shape = {8, 32, 4, 64, 2, 128, 64, .dropout = 0.1, .dtype = WEFT_F32};

/* The step that makes a placed tensor, + 1; 0: none does. */
static uint32_t maker_of(const weft_plan *plan, uint32_t placed, uint32_t before)
{
    for (uint32_t s = before; s-- > 0;)
        for (int o = 0; o < plan->steps[s].n_out; o++)
            if (plan->steps[s].out[o] == placed) return s + 1;
    return 0;
}

/* Steps that compute between where all operands are there and the start. */
static int computes_before(const weft_plan *plan, uint32_t s)
{
    uint32_t ready = 0;
    int n = 0;
    for (int i = 0; i < plan->steps[s].n_in; i++) {
        const uint32_t made = maker_of(plan, plan->steps[s].in[i], s);
        if (made > ready) ready = made;
    }
    for (uint32_t t = ready; t < s; t++)
        n += plan->steps[t].kind != WEFT_STEP_CONVERT;
    return n;
}

static void test_buckets_start_when_the_last_gradient_is_ready(void)
{
    static const struct {
        const char *mesh, *rules;
    } layouts[] = {{"data:2", "batch:data"},
                   {"data:4", "batch:data"},
                   {"data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model"}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        gpt_plan p;
        int n = 0, n_buckets = 0, n_late = 0, n_at_once = 0;
        gpt_plan_open(&shape, layouts[i].mesh, layouts[i].rules, 0, &p);
        for (uint32_t s = 0; p.plan && s < p.plan->n_steps; s++) {
            const weft_step *step = &p.plan->steps[s];
            if (step->kind != WEFT_STEP_CONVERT || step->convert.kind != WEFT_ALL_REDUCE ||
                step->phase == WEFT_FORWARD || !step->convert.axes)
                continue;
            n++;
            n_at_once += step->until <= s + 1;
            n_buckets += step->n_in > 1;
            const int n_between = computes_before(p.plan, s);
            n_late += n_between > 0;
            if (n_between > 0)
                printf("%s: the exchange of %d tensors at step %u starts %d steps late\n",
                       layouts[i].mesh, step->n_in, s, n_between);
        }
        CHECK(n >= 9 && n_buckets > 0);
        CHECK_EQ_INT(n_late, 0);
        if (!strstr(layouts[i].mesh, "model"))
            CHECK_EQ_INT(n_at_once, 0); /* steps compute meanwhile */
        gpt_plan_close(&p);
    }
}

int main(void)
{
    RUN(test_buckets_start_when_the_last_gradient_is_ready);
    return weft_test_report();
}
