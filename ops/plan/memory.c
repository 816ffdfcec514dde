/* memory: every temporary gets its place in one arena before anything runs.
 *
 * Lifetimes are known, so it is packing (pack_order.c): each buffer at the lowest place where it meets no other that lives
 * at the same time. A trip's own values die in it; its outside values and its results live through all trips
 * (regions.h). A loop may write over an operand that dies there, and so may an all_reduce, and a kernel over the sum
 * that it adds to. Boxes differ from rank to rank, so this pass works for one rank at a time.
 */
#include "likes.h"
#include "regions.h"
#include "trials.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

typedef struct packing {
    const weft_plan *plan;
    int rank;
    weft_arena *arena;
    weft_known_moves *moves;
    const weft_sizes *sizes; /* NULL: not known */
    weft_buffer *buffers;    /* [n_buffers] */
    uint32_t n_buffers;
    weft_regions regions;
    weft_life *life;     /* [n_buffers] of tensors */
    uint32_t *of_placed; /* [n_placed] buffer + 1; 0: none */
    uint32_t *of_step;   /* [n_steps] scratch              */
    /* While results are merged into operands, [n_buffers]: the last step that uses it; the last during which an exchange of
     * those so far goes on in it; whether a result of this step has it */
    uint32_t *last_use, *busy;
    bool *is_taken;
} packing;

static void use(packing *p, uint32_t placed, uint32_t step)
{
    uint32_t owner = weft_placed_owner(p->plan, placed);
    if (p->plan->placed[owner].home != WEFT_TEMPORARY) return;
    const uint32_t at = p->of_placed[owner] - 1;
    weft_life *life = &p->life[at];
    const uint32_t scan = step < p->plan->n_steps ? p->plan->steps[step].scan : 0;
    if (scan == 0 && life->scan == 0)
        weft_live_outside(life, step);
    else
        weft_live(&p->regions, life, scan, step);
    p->buffers[at].first = life->first;
    p->buffers[at].last = life->last;
}

/* Operands [begin, end) of a step: those of one segment, or tensor. */
typedef struct segment {
    uint32_t step;
    int begin, end;
} segment;

/* By another segment, or by a view, whose elements lie elsewhere there. */
static bool is_read_otherwise(const packing *p, const weft_step *step, const segment *g,
                              uint32_t buffer)
{
    for (int i = 0; i < step->n_in; i++)
        if ((i < g->begin || i >= g->end || weft_is_view(p->plan, step->in[i])) &&
            p->of_placed[weft_placed_owner(p->plan, step->in[i])] == buffer)
            return true;
    return false;
}

/* An operand whose memory a result can take over: it dies here, lies as the result does, no other segment reads
 * it, no view of it is read, nor an exchange under way, and no other result has it already. */
static uint32_t dying_operand(const packing *p, const segment *g, uint32_t result)
{
    const weft_plan *plan = p->plan;
    const weft_step *step = &plan->steps[g->step];
    for (int i = g->begin; i < g->end; i++) {
        const uint32_t owner = weft_placed_owner(plan, step->in[i]);
        if (plan->placed[owner].home != WEFT_TEMPORARY || weft_is_view(plan, step->in[i]) ||
            !weft_lie_alike(plan, step->in[i], result))
            continue;
        const uint32_t buffer = p->of_placed[owner];
        if (p->last_use[buffer - 1] == g->step && p->busy[buffer - 1] < g->step &&
            !p->is_taken[buffer - 1] && !is_read_otherwise(p, step, g, buffer))
            return buffer;
    }
    return 0;
}

static int64_t room_of(const packing *p, uint32_t placed)
{
    return p->sizes ? weft_aligned(p->sizes->bytes[p->plan->likes.of_placed[placed]])
                    : weft_placed_room(p->plan, placed, p->rank);
}

static weft_status scratch_of(const packing *p, uint32_t s, int64_t *bytes, weft_error *error)
{
    if (!p->sizes) return weft_keep_scratch(p->moves, p->plan, &p->plan->steps[s], bytes, error);
    *bytes = p->sizes->scratch[p->plan->likes.of_step[s]];
    return WEFT_OK;
}

/* Pass 1: a buffer per temporary, and the last step that uses each. Pass 2 merges what is done in
 * place. */
static weft_status make_buffers(packing *p, weft_error *error)
{
    const weft_plan *plan = p->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int o = 0; o < step->n_out; o++) {
            uint32_t owner = weft_placed_owner(plan, step->out[o]);
            if (plan->placed[owner].home == WEFT_TEMPORARY && !p->of_placed[owner]) {
                p->buffers[p->n_buffers].bytes = room_of(p, owner);
                p->of_placed[owner] = ++p->n_buffers;
            }
            use(p, owner, s);
        }
        for (int i = 0; i < step->n_in; i++)
            use(p, step->in[i], s);
        int64_t scratch = 0;
        WEFT_TRY(scratch_of(p, s, &scratch, error));
        if (!scratch) continue;
        p->buffers[p->n_buffers] = (weft_buffer){
            .bytes = weft_aligned(scratch), .first = s, .last = weft_step_end(step, s)};
        p->of_step[s] = ++p->n_buffers;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].is_output) use(p, id, plan->n_steps);
    return WEFT_OK;
}

/* Parts of a step whose results may be where their operands were: segments of a loop, tensors of an all_reduce, the sum so
 * far of a kernel that accumulates. */
static int parts_in_place(const weft_plan *plan, const weft_step *step)
{
    const bool reduces = step->kind == WEFT_STEP_CONVERT && step->convert.kind == WEFT_ALL_REDUCE;
    if (weft_step_accumulates(plan, step)) return 1;
    return step->kind == WEFT_STEP_LOOP ? step->n_segments : reduces ? step->n_in : 0;
}

/* The results of one step, each into an operand of its part. */
static void merge_step(packing *p, uint32_t s, int n_parts)
{
    const weft_plan *plan = p->plan;
    const weft_step *step = &plan->steps[s];
    const int n_in = step->n_in / n_parts, n_out = step->n_out / n_parts;
    for (int o = 0; o < step->n_out; o++) {
        const uint32_t result = step->out[o], own = p->of_placed[result];
        if (plan->placed[result].shares || plan->placed[result].home != WEFT_TEMPORARY) continue;
        const int begin = weft_step_accumulates(plan, step) ? n_in - 1 : o / n_out * n_in;
        const segment g = {s, begin, (o / n_out + 1) * n_in};
        const uint32_t taken = p->buffers[own - 1].first == s ? dying_operand(p, &g, result) : 0;
        if (!taken) continue;
        p->is_taken[taken - 1] = true;
        if (p->buffers[own - 1].last > p->buffers[taken - 1].last)
            p->buffers[taken - 1].last = p->buffers[own - 1].last;
        p->buffers[own - 1].bytes = 0;
        p->of_placed[result] = taken;
    }
    for (int o = 0; o < step->n_out; o++) {
        const uint32_t buffer = p->of_placed[weft_placed_owner(plan, step->out[o])];
        if (!buffer) continue;
        p->last_use[buffer - 1] = p->buffers[buffer - 1].last;
        p->is_taken[buffer - 1] = false;
    }
}

/* An exchange reads and writes until it is over. */
static void keep_busy(packing *p, uint32_t s)
{
    const weft_step *step = &p->plan->steps[s];
    const uint32_t end = weft_step_end(step, s);
    if (end == s) return;
    for (int i = 0; i < step->n_in + step->n_out; i++) {
        const uint32_t placed = i < step->n_in ? step->in[i] : step->out[i - step->n_in];
        const uint32_t buffer = p->of_placed[weft_placed_owner(p->plan, placed)];
        if (buffer && p->busy[buffer - 1] < end) p->busy[buffer - 1] = end;
    }
}

static weft_status merge_in_place(packing *p, weft_error *error)
{
    const weft_plan *plan = p->plan;
    const size_t n = p->n_buffers + 1;
    p->last_use = weft_arena_take(p->arena, n * sizeof *p->last_use);
    p->busy = weft_arena_take(p->arena, n * sizeof *p->busy);
    p->is_taken = weft_arena_take(p->arena, n * sizeof *p->is_taken);
    if (!p->last_use || !p->busy || !p->is_taken)
        return weft_fail_memory(error, n * sizeof *p->last_use);
    for (uint32_t b = 0; b < p->n_buffers; b++)
        p->last_use[b] = p->buffers[b].last;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const int n_parts = parts_in_place(plan, &plan->steps[s]);
        if (n_parts > 0) merge_step(p, s, n_parts);
        keep_busy(p, s);
    }
    for (uint32_t b = 0; b < p->n_buffers; b++)
        if (p->busy[b] > p->buffers[b].last) p->buffers[b].last = p->busy[b];
    return WEFT_OK;
}

/* The places of a rank are those of one whose buffers are the same: with even blocks, of all. */
static bool take_places(weft_buffer *const *all, uint32_t n, const weft_memory *other)
{
    if (other->offset == NULL || other->n_packed != n) return false;
    for (uint32_t b = 0; b < n; b++) {
        const weft_buffer *its = other->buffers[b];
        if (all[b]->bytes != its->bytes || all[b]->first != its->first || all[b]->last != its->last)
            return false;
    }
    for (uint32_t b = 0; b < n; b++)
        all[b]->offset = other->buffers[b]->offset;
    return true;
}

static const weft_memory *find_alike(const weft_plan *plan, weft_buffer *const *all, uint32_t n)
{
    if (take_places(all, n, &plan->packed)) return &plan->packed;
    const weft_memory *other = plan->others;
    while (other != NULL && !take_places(all, n, other))
        other = other->next;
    return other;
}

static weft_status measure_peaks(const packing *p, weft_memory *memory, weft_error *error)
{
    uint32_t n_steps = p->plan->n_steps;
    int64_t *change = weft_arena_take(p->arena, (n_steps + 2) * sizeof *change);
    if (!change) return weft_fail_memory(error, n_steps * sizeof *change);
    for (uint32_t b = 0; b < p->n_buffers; b++) {
        change[p->buffers[b].first] += p->buffers[b].bytes;
        change[p->buffers[b].last + 1] -= p->buffers[b].bytes;
    }
    int64_t alive = 0, most = 0;
    for (uint32_t s = 0; s < n_steps; s++) {
        alive += change[s];
        if (alive > most) most = alive, memory->fullest = s;
        int64_t *peak = &memory->peak_bytes[p->plan->steps[s].phase];
        if (alive > *peak) *peak = alive;
    }
    return WEFT_OK;
}

/* Buffers, with how long they live; they have no places yet. */
static weft_status list_buffers(packing *p, weft_memory *memory, weft_error *error)
{
    const weft_plan *plan = p->plan;
    const size_t n = plan->n_placed + plan->n_steps + 1;
    *memory = (weft_memory){0};
    p->buffers = weft_arena_take(p->arena, n * sizeof *p->buffers);
    p->of_placed = weft_arena_take(p->arena, n * sizeof *p->of_placed);
    p->of_step = weft_arena_take(p->arena, n * sizeof *p->of_step);
    p->life = weft_arena_take(p->arena, n * sizeof *p->life);
    if (!p->buffers || !p->of_placed || !p->of_step || !p->life)
        return weft_fail_memory(error, n * sizeof *p->buffers);
    WEFT_TRY(weft_find_regions(plan, p->arena, &p->regions, error));
    WEFT_TRY(make_buffers(p, error));
    WEFT_TRY(merge_in_place(p, error));
    weft_buffer **all = weft_arena_take(p->arena, (p->n_buffers + 1) * sizeof *all);
    if (!all) return weft_fail_memory(error, p->n_buffers * sizeof *all);
    for (uint32_t b = 0; b < p->n_buffers; b++)
        if (p->buffers[b].bytes > 0) all[memory->n_packed++] = &p->buffers[b];
    memory->buffers = all;
    return measure_peaks(p, memory, error);
}

static weft_status pack(const packing *p, weft_memory *memory, weft_error *error)
{
    const weft_memory *alike = find_alike(p->plan, memory->buffers, memory->n_packed);
    if (alike != NULL) memory->arena_bytes = alike->arena_bytes;
    if (alike != NULL) return WEFT_OK;
    return weft_pack_in_best_order(memory->buffers, memory->n_packed, p->plan->n_steps + 1,
                                   p->arena, &memory->arena_bytes, error);
}

/* Of tensors and scratch, from those of their buffers. */
static weft_status list_places(const packing *p, weft_memory *memory, weft_error *error)
{
    const weft_plan *plan = p->plan;
    const size_t n_offset = (plan->n_placed + 1) * sizeof *memory->offset;
    const size_t n_scratch = (plan->n_steps + 1) * sizeof *memory->scratch;
    memory->offset = weft_arena_take(p->arena, n_offset);
    memory->scratch = weft_arena_take(p->arena, n_scratch);
    if (!memory->offset || !memory->scratch) return weft_fail_memory(error, n_offset + n_scratch);
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        uint32_t buffer = p->of_placed[weft_placed_owner(plan, id)];
        memory->offset[id] = buffer ? p->buffers[buffer - 1].offset : -1;
    }
    for (uint32_t s = 0; s < plan->n_steps; s++)
        memory->scratch[s] = p->of_step[s] ? p->buffers[p->of_step[s] - 1].offset : -1;
    return WEFT_OK;
}

/* Sizes decide all: lifetimes are the plan's. */
static const weft_memory *find_same(const weft_plan *plan, const weft_sizes *sizes)
{
    if (plan->packed.offset != NULL && weft_same_sizes(plan, &plan->packed.sizes, sizes))
        return &plan->packed;
    const weft_memory *other = plan->others;
    while (other != NULL && !weft_same_sizes(plan, &other->sizes, sizes))
        other = other->next;
    return other;
}

weft_status weft_plan_memory(const weft_plan *plan, int rank, weft_arena *arena,
                             weft_memory *memory, weft_error *error)
{
    *memory = plan->packed;
    if (rank == 0 && plan->packed.offset) return WEFT_OK;
    packing p = {.plan = plan, .rank = rank, .arena = arena};
    weft_sizes sizes = {0};
    WEFT_TRY(weft_known_moves_open(arena, rank, &p.moves, error));
    if (plan->likes.of_step != NULL) {
        WEFT_TRY(weft_sizes_of(plan, rank, arena, p.moves, &sizes, error));
        p.sizes = &sizes;
    }
    const weft_memory *same = find_same(plan, &sizes);
    if (same) *memory = *same;
    if (same) return WEFT_OK;
    WEFT_TRY(list_buffers(&p, memory, error));
    memory->sizes = sizes;
    WEFT_TRY(pack(&p, memory, error));
    return list_places(&p, memory, error);
}

weft_status weft_plan_buffers(const weft_plan *plan, weft_step *steps, uint32_t n_steps,
                              weft_arena *arena, weft_memory *memory, weft_error *error)
{
    weft_plan changed = *plan;
    changed.steps = steps;
    changed.n_steps = n_steps;
    packing p = {.plan = &changed, .arena = arena, .moves = plan->build.moves};
    return list_buffers(&p, memory, error);
}

/* Into the plan's arena. */
static weft_status copy_memory(weft_plan *plan, const weft_memory *memory, weft_error *error)
{
    const uint32_t n = memory->n_packed;
    const size_t n_offset = plan->n_placed * sizeof *memory->offset;
    const size_t n_scratch = plan->n_steps * sizeof *memory->scratch;
    weft_buffer *buffers = weft_arena_take(plan->arena, (n + 1) * sizeof *buffers);
    weft_buffer **list = weft_arena_take(plan->arena, (n + 1) * sizeof *list);
    weft_memory made = *memory;
    made.offset = weft_arena_take(plan->arena, n_offset);
    made.scratch = weft_arena_take(plan->arena, n_scratch);
    if (!buffers || !list || !made.offset || !made.scratch)
        return weft_fail_memory(error, n_offset + n_scratch);
    memcpy(made.offset, memory->offset, n_offset);
    memcpy(made.scratch, memory->scratch, n_scratch);
    for (uint32_t b = 0; b < n; b++) {
        buffers[b] = *memory->buffers[b];
        list[b] = &buffers[b];
    }
    made.buffers = list;
    plan->packed = made;
    return WEFT_OK;
}

static weft_status lay_out(weft_plan *plan, weft_arena *arena, weft_error *error)
{
    packing p = {.plan = plan, .arena = arena, .moves = plan->build.moves};
    weft_memory memory;
    WEFT_TRY(list_buffers(&p, &memory, error));
    WEFT_TRY(weft_trial_settle(plan, &memory, error));
    WEFT_TRY(list_places(&p, &memory, error));
    return copy_memory(plan, &memory, error);
}

weft_status weft_keep_memory(weft_plan *plan, weft_error *error)
{
    weft_arena *arena = weft_arena_create();
    if (!arena) return weft_fail_memory(error, sizeof(weft_memory));
    const weft_status status = lay_out(plan, arena, error);
    weft_arena_destroy(&arena);
    return status;
}
