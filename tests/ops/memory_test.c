/* memory_test: the arena's plan: what lives at one time never overlaps, in-place loops included,
 * and little is lost to packing.
 *
 * Lifetimes are found here again from the steps, without the pass's own bookkeeping.
 */

#include <stdlib.h>

#include "gpt_plan.h"

typedef struct life {
    int64_t offset, bytes;
    uint32_t first, last;
    uint32_t placed;
} life;

/* One entry per temporary that has memory; returns how many. */
static int find_lives(const weft_plan *plan, const weft_memory *memory, int rank, life *lives)
{
    int n = 0;
    int *at = calloc(plan->n_placed, sizeof *at);
    for (uint32_t s = 0; s < plan->n_steps && at; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in + step->n_out; i++) {
            const bool is_in = i < step->n_in;
            const uint32_t placed =
                weft_placed_owner(plan, is_in ? step->in[i] : step->out[i - step->n_in]);
            if (plan->placed[placed].home != WEFT_TEMPORARY) continue;
            if (!at[placed]) {
                lives[n] = (life){.offset = memory->offset[placed],
                                  .bytes = weft_placed_bytes(plan, placed, rank),
                                  .first = s,
                                  .placed = placed};
                CHECK(!is_in); /* made before it is read */
                at[placed] = ++n;
            }
            lives[at[placed] - 1].last = plan->placed[placed].is_output ? plan->n_steps : s;
        }
    }
    free(at);
    return n;
}

/* What is made in the place of an operand: by a loop over the same elements, an all_reduce of it, or a kernel
 * that begins with it. */
static bool is_in_place(const weft_plan *plan, const weft_step *step, uint32_t from, uint32_t to)
{
    if (step->kind == WEFT_STEP_LOOP) return true;
    if (weft_step_accumulates(plan, step))
        return weft_placed_owner(plan, step->in[step->n_in - 1]) == from;
    if (step->kind != WEFT_STEP_CONVERT || step->convert.kind != WEFT_ALL_REDUCE) return false;
    for (int k = 0; k < step->n_in; k++)
        if (weft_placed_owner(plan, step->in[k]) == from && step->out[k] == to) return true;
    return false;
}

/* Two lives may share memory only when one's last step makes the other in its place. */
static bool may_share(const weft_plan *plan, const life *a, const life *b)
{
    const life *early = a->first < b->first ? a : b, *late = a->first < b->first ? b : a;
    if (early->last < late->first) return true;
    return early->last == late->first &&
           is_in_place(plan, &plan->steps[late->first], early->placed, late->placed) &&
           early->offset == late->offset && early->bytes == late->bytes;
}

static void check_rank(const weft_plan *plan, int rank)
{
    weft_arena *arena = weft_arena_create();
    weft_error error = {0};
    weft_memory memory;
    life *lives = calloc(plan->n_placed, sizeof *lives);
    CHECK_OK(weft_plan_memory(plan, rank, arena, &memory, &error), error);
    const int n = find_lives(plan, &memory, rank, lives);
    int64_t peak = 0;
    for (int p = 0; p < WEFT_PHASES; p++)
        if (memory.peak_bytes[p] > peak) peak = memory.peak_bytes[p];
    for (int i = 0; i < n; i++) {
        CHECK(lives[i].bytes == 0 ||
              (lives[i].offset >= 0 && lives[i].offset + lives[i].bytes <= memory.arena_bytes));
        for (int k = 0; k < i; k++) {
            const bool apart = lives[i].offset + lives[i].bytes <= lives[k].offset ||
                               lives[k].offset + lives[k].bytes <= lives[i].offset;
            if (lives[i].bytes && lives[k].bytes && !apart)
                CHECK(may_share(plan, &lives[i], &lives[k]));
        }
    }
    CHECK(n > 50);
    CHECK(memory.arena_bytes >= peak && (double)memory.arena_bytes <= 1.1 * (double)peak);
    free(lives);
    weft_arena_destroy(&arena);
}

static void check_plan(const char *mesh_text, const char *layout_text, int zero)
{
    const gpt_shape shape = {.batch = 7,
                             .seq = 12,
                             .layers = 2,
                             .width = 24,
                             .heads = 3,
                             .hidden = 40,
                             .vocab = 29,
                             .dropout = 0.1,
                             .dtype = WEFT_F32};
    gpt_plan p;
    gpt_plan_open(&shape, mesh_text, layout_text, zero, &p);
    for (int rank = 0; p.plan && rank < weft_mesh_n_ranks(p.mesh); rank++)
        check_rank(p.plan, rank);
    gpt_plan_close(&p);
}

static void test_what_lives_together_lies_apart(void)
{
    check_plan("data:1", "", 0);
    check_plan("data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", 0);
    check_plan("data:3", "batch:data", 3);
    check_plan("data:2,model:2,seq:2", "batch:data,hidden:model,vocab:model,seq:seq", 1);
}

int main(void)
{
    RUN(test_what_lives_together_lies_apart);
    return weft_test_report();
}
