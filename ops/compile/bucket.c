/* join: small exchanges of one group that are ready together are one exchange.
 *
 * A small exchange is all latency, so it waits for company: from where its operand is made to where its result is
 * first needed. There all exchanges that are ready and of its kind (the same collective, axes, dtype, combine and
 * phase) go with it, if that is cheaper by the cost function. Each saved exchange is a saved latency, and joined data
 * are packed and unpacked. Large ones stay alone and where they are.
 *
 * An exchange moves only where what then lives longer is no more than what no longer does. A joined one has no more in memory
 * beside it than the plan has elsewhere, and WEFT_JOIN_SPARE bytes. The less a plan holds, the less it has elsewhere, but it saves as
 * much by joining. Where the arena grows by more than that all the same, since its gaps lie otherwise, it is tried again with less
 * room. All is decided by rank 0's boxes, which are the largest, so that the order of exchanges is one on all ranks.
 */
#include "passes.h"
#include "regions.h"
#include "trials.h"

#include <stdlib.h>

/* Lists of what each rank sends each other grow with ranks times tensors. */
enum { MOST_PIECES = 1 << 13, MOST_TRIES = 5 };

/* Which kinds the mover packs. Slices and count_once are local. */
static const bool is_joined[WEFT_CONVERTS] = {
    [WEFT_ALL_REDUCE] = true, [WEFT_REDUCE_SCATTER] = true, [WEFT_ALL_GATHER] = true,
    [WEFT_ALL_TO_ALL] = true, [WEFT_MOVE] = true,           [WEFT_BORDER] = true};

typedef enum standing {
    STAYS,   /* no small exchange: keeps its place among its like */
    WAITING, /* its operand is not there yet                      */
    READY,
    DONE /* it has its place in the new order */
} standing;

typedef struct bucketing {
    weft_plan *plan;
    weft_error *error;
    weft_step *ordered; /* the new order */
    uint32_t n_ordered;
    uint8_t *standing; /* [n_steps]                                                               */
    /* [n_steps] of a small exchange: the step + 1 that makes its operand; 0: none */
    uint32_t *after;
    uint32_t *first,
        *next;       /* [n_steps + 1], [n_steps] those that are ready after a step, + 1         */
    uint32_t *maker; /* [n_placed] step + 1; 0: it is there before the run                      */
    /* [n_placed] of its memory: step + 1; past the last: it is kept           */
    uint32_t *last_read;
    uint32_t *ready,
        *group; /* [n_steps]                                                               */
    uint32_t n_ready, n_group;
    int64_t *alive; /* [n_steps + 1] bytes of temporaries between a step and the one before it */
    int64_t room;   /* that temporaries have, at any time                                      */
    bool has_joined;
    weft_regions regions;
} bucketing;

/* ---- one exchange ------------------------------------------------------------------------------ */

static uint32_t operand_of(const bucketing *j, uint32_t s)
{
    return weft_placed_owner(j->plan, j->plan->steps[s].in[0]);
}

/* What packing and unpacking it copies. */
static double copied_by(const bucketing *j, uint32_t s)
{
    const weft_step *step = &j->plan->steps[s];
    return (double)(weft_placed_bytes(j->plan, step->in[0], 0) +
                    weft_placed_bytes(j->plan, step->out[0], 0));
}

static double copy_price(double bytes)
{
    return bytes / WEFT_COPIES_PER_BYTE;
}

static bool is_small(const bucketing *j, uint32_t s)
{
    const weft_plan *plan = j->plan;
    const weft_step *step = &plan->steps[s];
    weft_exchange exchange;
    if (step->kind != WEFT_STEP_CONVERT || !is_joined[step->convert.kind]) return false;
    const weft_placed *out = &plan->placed[step->out[0]];
    if (out->home != WEFT_TEMPORARY || out->shares) return false;
    return weft_step_exchange(plan, step, 0, &exchange) &&
           copy_price(copied_by(j, s)) < weft_usual_latency(&plan->build.cost);
}

static int combine_of(const weft_plan *plan, const weft_step *step)
{
    const weft_convert_step convert = weft_step_convert(plan, step, 0);
    const bool ends = convert.axes & convert.from.partial & ~(uint32_t)convert.to.partial;
    return ends ? convert.from.combine : WEFT_NOT_PARTIAL;
}

static bool are_alike(const bucketing *j, uint32_t a, uint32_t b)
{
    const weft_plan *plan = j->plan;
    const weft_step *x = &plan->steps[a], *y = &plan->steps[b];
    return x->convert.kind == y->convert.kind && x->convert.axes == y->convert.axes &&
           x->phase == y->phase &&
           plan->placed[x->in[0]].type.dtype == plan->placed[y->in[0]].type.dtype &&
           combine_of(plan, x) == combine_of(plan, y);
}

/* Whether its operand is read by nobody after it. */
static bool is_last_reader(const bucketing *j, uint32_t s)
{
    const uint32_t operand = operand_of(j, s);
    return j->plan->placed[operand].home == WEFT_TEMPORARY && j->last_read[operand] == s + 1;
}

/* Bytes that live between its place and place `at` if it stands there, less those that do not any more. */
static int64_t growth(const bucketing *j, uint32_t s, uint32_t at)
{
    const weft_step *step = &j->plan->steps[s];
    const int64_t in = is_last_reader(j, s) ? weft_placed_room(j->plan, step->in[0], 0) : 0;
    const int64_t out = weft_placed_room(j->plan, step->out[0], 0);
    return at < s ? out - in : at > s ? in - out : 0;
}

/* ---- the new order ------------------------------------------------------------------------------- */

static void release(bucketing *j, uint32_t after)
{
    for (uint32_t c = j->first[after]; c; c = j->next[c - 1]) {
        j->standing[c - 1] = READY;
        j->ready[j->n_ready++] = c - 1;
    }
}

static void put(bucketing *j, const weft_step *step)
{
    j->ordered[j->n_ordered++] = *step;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- a group ------------------------------------------------------------------------------------- */

/* Exchange `s` first, and those that may go with it. */
static void gather_group(bucketing *j, uint32_t s, uint32_t at)
{
    weft_exchange exchange;
    const weft_step *step = &j->plan->steps[s];
    const bool has_pieces = step->convert.kind != WEFT_ALL_REDUCE;
    (void)weft_step_exchange(j->plan, step, 0, &exchange);
    const uint32_t most = has_pieces ? (uint32_t)(MOST_PIECES / exchange.n_ranks) : UINT32_MAX;
    j->n_group = 0;
    j->group[j->n_group++] = s;
    for (uint32_t i = 0; i < j->n_ready && j->n_group < most; i++) {
        const uint32_t other = j->ready[i];
        if (other != s && j->regions.part[other] == j->regions.part[s] && are_alike(j, s, other) &&
            growth(j, other, at) <= 0)
            j->group[j->n_group++] = other;
    }
    qsort(j->group + 1, j->n_group - 1, sizeof *j->group, by_number);
}

/* The step of all in the group, the first one's origin its own. */
static weft_status make_step(const bucketing *j, weft_step *joined)
{
    const uint32_t n = j->n_group;
    uint32_t *placed = weft_arena_take(j->plan->arena, 2 * (size_t)n * sizeof *placed);
    if (!placed) return weft_fail_memory(j->error, 2 * (size_t)n * sizeof *placed);
    uint32_t lowest = j->group[0];
    for (uint32_t i = 0; i < n; i++) {
        const weft_step *step = &j->plan->steps[j->group[i]];
        placed[i] = step->in[0];
        placed[n + i] = step->out[0];
        if (j->group[i] < lowest) lowest = j->group[i];
    }
    *joined = j->plan->steps[lowest];
    joined->n_in = joined->n_out = (int)n;
    joined->in = placed;
    joined->out = placed + n;
    return WEFT_OK;
}

/* What it needs beside what is alive anyway, against the most that is alive at once. An all_reduce is done in place. */
static weft_status look_whether_it_fits(const bucketing *j, const weft_step *joined, uint32_t at,
                                        bool *fits)
{
    int64_t bytes = 0, scratch;
    for (uint32_t i = 0; i < j->n_group; i++)
        if (joined->convert.kind != WEFT_ALL_REDUCE || !is_last_reader(j, j->group[i]))
            bytes += weft_placed_room(j->plan, joined->out[i], 0);
    *fits = j->alive[at] + bytes <= j->room;
    if (!*fits) return WEFT_OK;
    WEFT_TRY(weft_keep_scratch(j->plan->build.moves, j->plan, joined, &scratch, j->error));
    *fits = j->alive[at] + bytes + scratch <= j->room;
    return WEFT_OK;
}

/* Prices of all alone, less that of the joined one. */
static double saved_by(const bucketing *j, const weft_step *joined, double *copied)
{
    const weft_cost *cost = &j->plan->build.cost;
    weft_exchange exchange;
    double saved = (j->n_group - 1) * weft_usual_latency(cost);
    *copied = 0;
    for (uint32_t i = 0; i < j->n_group; i++) {
        const uint32_t s = j->group[i];
        if (weft_step_exchange(j->plan, &j->plan->steps[s], 0, &exchange))
            saved += weft_exchange_price(j->plan, cost, &exchange);
        *copied += copied_by(j, s);
    }
    if (weft_step_exchange(j->plan, joined, 0, &exchange))
        saved -= weft_exchange_price(j->plan, cost, &exchange);
    return saved - copy_price(*copied);
}

/* The largest group that fits and is cheaper; else `s` is alone. */
static weft_status choose_group(bucketing *j, uint32_t s, uint32_t at, weft_step *joined)
{
    double copied;
    for (gather_group(j, s, at); j->n_group > 1; j->n_group--) {
        bool fits;
        WEFT_TRY(make_step(j, joined));
        WEFT_TRY(look_whether_it_fits(j, joined, at, &fits));
        if (!fits) continue;
        if (!(saved_by(j, joined, &copied) > 0)) break;
        joined->reason = weft_arena_text(
            j->plan->arena,
            "%s; one exchange instead of %u that are ready together: saves %u latencies, each of "
            "%.0f bytes, and copies %.0f",
            joined->reason, j->n_group, j->n_group - 1, weft_usual_latency(&j->plan->build.cost),
            copied);
        return joined->reason ? WEFT_OK : weft_fail_memory(j->error, 200);
    }
    j->n_group = 1;
    *joined = j->plan->steps[s];
    return WEFT_OK;
}

/* Exchange `s` stands before step `at`, with whoever goes with it. */
static weft_status place_group(bucketing *j, uint32_t s, uint32_t at)
{
    weft_step joined;
    if (j->standing[s] == DONE) return WEFT_OK;
    if (j->standing[s] == WAITING) WEFT_TRY(place_group(j, j->after[s] - 1, at));
    WEFT_TRY(choose_group(j, s, at, &joined));
    put(j, &joined);
    j->has_joined |= j->n_group > 1;
    for (uint32_t i = 0; i < j->n_group; i++)
        j->standing[j->group[i]] = DONE;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < j->n_ready; i++)
        if (j->standing[j->ready[i]] != DONE) j->ready[kept++] = j->ready[i];
    j->n_ready = kept;
    for (uint32_t i = 0; i < j->n_group; i++)
        release(j, j->group[i] + 1);
    return WEFT_OK;
}

/* ---- all steps ----------------------------------------------------------------------------------- */

/* Who makes what step `s` reads, and who reads what it writes over, comes before it. */
static weft_status place_needed(bucketing *j, uint32_t s)
{
    const weft_plan *plan = j->plan;
    const weft_step *step = &plan->steps[s];
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t maker = j->maker[weft_placed_owner(plan, step->in[i])];
        if (maker && j->standing[maker - 1] != STAYS) WEFT_TRY(place_group(j, maker - 1, s));
    }
    for (int o = 0; o < step->n_out; o++) {
        const uint32_t written = weft_placed_owner(plan, step->out[o]);
        if (plan->placed[written].home == WEFT_TEMPORARY && !plan->placed[written].carried)
            continue;
        for (uint32_t i = 0; i < j->n_ready;) {
            const bool is_reader = operand_of(j, j->ready[i]) == written;
            if (is_reader) WEFT_TRY(place_group(j, j->ready[i], s));
            i = is_reader ? 0 : i + 1;
        }
    }
    return WEFT_OK;
}

/* Exchanges from `begin` to a fence stand before it. */
static weft_status place_before(bucketing *j, uint32_t begin, uint32_t fence)
{
    for (uint32_t s = begin; s < fence; s++)
        if (j->standing[s] != STAYS) WEFT_TRY(place_group(j, s, fence));
    return WEFT_OK;
}

/* Makers, readers and small exchanges, as the plan stands. */
static void look_at_steps(bucketing *j)
{
    const weft_plan *plan = j->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        for (int i = 0; i < step->n_in; i++)
            j->last_read[weft_placed_owner(plan, step->in[i])] = s + 1;
        if (is_small(j, s)) {
            j->standing[s] = WAITING;
            j->after[s] = j->maker[operand_of(j, s)];
            j->next[s] = j->first[j->after[s]];
            j->first[j->after[s]] = s + 1;
        }
        for (int o = 0; o < step->n_out; o++) /* of a variable: the last that has written it */
            j->maker[weft_placed_owner(plan, step->out[o])] = s + 1;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].is_output) j->last_read[weft_placed_owner(plan, id)] = UINT32_MAX;
}

static void count_alive(bucketing *j)
{
    const weft_plan *plan = j->plan;
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        const uint32_t made = j->maker[id], read = j->last_read[id];
        if (plan->placed[id].home != WEFT_TEMPORARY || plan->placed[id].shares) continue;
        if (!made || read <= made) continue;
        j->alive[made] += weft_placed_room(j->plan, id, 0);
        if (read <= plan->n_steps) j->alive[read] -= weft_placed_room(j->plan, id, 0);
    }
    for (uint32_t s = 1; s <= plan->n_steps; s++)
        j->alive[s] += j->alive[s - 1];
}

/* The new order of all steps. */
static weft_status order_steps(bucketing *j)
{
    const uint32_t n = j->plan->n_steps;
    uint32_t begin = 0;
    j->n_ordered = j->n_ready = 0;
    j->has_joined = false;
    for (uint32_t s = 0; s < n; s++)
        if (j->standing[s] != STAYS) j->standing[s] = WAITING;
    release(j, 0);
    for (uint32_t s = 0; s < n; s++) {
        if (weft_is_fence(&j->plan->steps[s])) {
            WEFT_TRY(place_before(j, begin, s));
            begin = s;
        }
        if (j->standing[s] == STAYS) {
            WEFT_TRY(place_needed(j, s));
            put(j, &j->plan->steps[s]);
            release(j, s + 1);
        } else if (growth(j, s, s + 1) > 0) { /* it must not wait */
            WEFT_TRY(place_group(j, s, s));
        }
    }
    return place_before(j, begin, n);
}

/* ---- the pass ------------------------------------------------------------------------------------ */

static weft_status open_joining(bucketing *j)
{
    const weft_plan *plan = j->plan;
    const size_t n = plan->n_steps + 1, bytes = n * sizeof(uint32_t);
    j->standing = weft_arena_take(plan->arena, n);
    j->after = weft_arena_take(plan->arena, bytes);
    j->first = weft_arena_take(plan->arena, bytes);
    j->next = weft_arena_take(plan->arena, bytes);
    j->ready = weft_arena_take(plan->arena, bytes);
    j->group = weft_arena_take(plan->arena, bytes);
    j->alive = weft_arena_take(plan->arena, n * sizeof *j->alive);
    j->maker = weft_arena_take(plan->arena, (plan->n_placed + 1) * sizeof *j->maker);
    j->last_read = weft_arena_take(plan->arena, (plan->n_placed + 1) * sizeof *j->last_read);
    j->ordered = calloc(n, sizeof *j->ordered);
    if (!j->standing || !j->after || !j->first || !j->next || !j->ready || !j->group || !j->alive ||
        !j->maker || !j->last_read || !j->ordered)
        return weft_fail_memory(j->error, n * sizeof *j->ordered);
    look_at_steps(j);
    count_alive(j);
    return weft_find_regions(plan, plan->arena, &j->regions, j->error);
}

/* Whether the new order fits; if not, there is less room from now on. */
static weft_status try_order(bucketing *j, weft_trial *before, int n_left, bool *fits)
{
    weft_trial *after;
    int64_t had, has;
    WEFT_TRY(weft_trial_open(j->plan, j->ordered, j->n_ordered, &after, j->error));
    WEFT_TRY(
        weft_trial_fits(after, before, (weft_allowance){.more = WEFT_JOIN_SPARE}, fits, j->error));
    if (!*fits) {
        WEFT_TRY(weft_trial_bytes(before, &had, j->error));
        WEFT_TRY(weft_trial_bytes(after, &has, j->error));
        const int64_t least = had >> n_left; /* at last a half */
        j->room -= has - had > least ? has - had : least;
    }
    weft_trial_close(&after);
    return WEFT_OK;
}

/* Try until the arena is no larger than it may be; false: it always is, or there is nothing to join. */
static weft_status find_order(bucketing *j, bool *is_found)
{
    weft_trial *before;
    *is_found = false;
    j->room = INT64_MAX;
    WEFT_TRY(order_steps(j));
    if (!j->has_joined) return WEFT_OK;
    WEFT_TRY(weft_trial_open(j->plan, j->plan->steps, j->plan->n_steps, &before, j->error));
    j->room = before->packing.floor + WEFT_JOIN_SPARE;
    for (int i = 0; i < MOST_TRIES && !*is_found; i++) {
        WEFT_TRY(order_steps(j));
        if (!j->has_joined) break;
        WEFT_TRY(try_order(j, before, MOST_TRIES - i, is_found));
    }
    weft_trial_close(&before);
    return WEFT_OK;
}

weft_status weft_pass_bucket(weft_plan *plan, weft_error *error)
{
    bucketing j = {.plan = plan, .error = error};
    bool is_found = false;
    weft_status status = open_joining(&j);
    if (status == WEFT_OK) status = find_order(&j, &is_found);
    if (!is_found) {
        free(j.ordered);
        return status;
    }
    free(plan->steps);
    plan->steps = j.ordered;
    plan->build.cap_steps = plan->n_steps + 1;
    plan->n_steps = j.n_ordered;
    return WEFT_OK;
}
