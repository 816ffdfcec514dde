/* memory_test: the arena's plan: what lives at one time never overlaps, in-place loops included,
 * and little is lost to packing.
 *
 * Lifetimes are found here again from the steps, without the pass's own bookkeeping.
 */

#include <stdlib.h>

#include "gpt_plan.h"
#include "pack.h"

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

/* Linked with --wrap: how often buffers were packed. */
static int n_packings;
weft_status __real_weft_pack_in_best_order(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                                           weft_arena *arena, int64_t *end, weft_error *error);
weft_status __wrap_weft_pack_in_best_order(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                                           weft_arena *arena, int64_t *end, weft_error *error);

weft_status __wrap_weft_pack_in_best_order(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                                           weft_arena *arena, int64_t *end, weft_error *error)
{
    n_packings++;
    return __real_weft_pack_in_best_order(all, n, n_steps, arena, end, error);
}

static bool lie_alike(const weft_plan *plan, const weft_memory *a, const weft_memory *b)
{
    bool is_same = a->arena_bytes == b->arena_bytes && a->fullest == b->fullest;
    for (uint32_t id = 1; id < plan->n_placed; id++)
        is_same = is_same && a->offset[id] == b->offset[id];
    for (uint32_t s = 0; s < plan->n_steps; s++)
        is_same = is_same && a->scratch[s] == b->scratch[s];
    return is_same && memcmp(a->peak_bytes, b->peak_bytes, sizeof a->peak_bytes) == 0;
}

/* Ranks laid out one after the other, as a program does, lie as each would alone; `most` of them are packed. */
static void check_alike(const gpt_shape *shape, const char *mesh_text, const char *rules, int most)
{
    gpt_plan p;
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    weft_memory known[8], alone;
    gpt_plan_open(shape, mesh_text, rules, 0, &p);
    const int n = p.plan ? weft_mesh_n_ranks(p.mesh) : 0;
    n_packings = 0;
    for (int rank = 0; rank < n; rank++) {
        CHECK_OK(weft_plan_memory(p.plan, rank, arena, &known[rank], &error), error);
        known[rank].next = p.plan->others;
        p.plan->others = &known[rank];
    }
    CHECK(n > 1 && n_packings <= most);
    for (int rank = 0; rank < n; rank++) {
        weft_plan unknown = *p.plan;
        unknown.others = NULL;
        unknown.packed.offset = NULL;
        CHECK_OK(weft_plan_memory(&unknown, rank, arena, &alone, &error), error);
        CHECK(lie_alike(p.plan, &known[rank], &alone));
    }
    CHECK(n_packings >= n);
    if (p.plan) p.plan->others = NULL;
    gpt_plan_close(&p);
    weft_arena_destroy(&arena);
}

static void test_ranks_that_are_alike_are_packed_once(void)
{
    const gpt_shape even = {8, 12, 2, 24, 4, 40, 32, .dropout = 0.1, .dtype = WEFT_F32};
    const gpt_shape odd = {7, 12, 2, 24, 4, 40, 32, .dropout = 0.1, .dtype = WEFT_F32};
    check_alike(&even, "data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", 1);
    check_alike(&even, "data:8", "batch:data", 1);
    check_alike(&odd, "data:3", "batch:data", 2); /* of 3, 3 and 1 rows */
}

int main(void)
{
    RUN(test_what_lives_together_lies_apart);
    RUN(test_ranks_that_are_alike_are_packed_once);
    return weft_test_report();
}
