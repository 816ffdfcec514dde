/* fuse: a loop becomes part of the loop that reads what it makes: one pass over memory for both.
 *
 * The value in between never reaches memory, unless somebody else reads it: then it is one result more of the loop. So
 * that nobody reads what is not made yet, the joined loop stands where the reader stood, if all others come after it, or
 * where the maker stood, if everything else that the reader needs is there by then.
 *
 * Moving a step changes what is alive at one time: a loop moves only where the bytes that live longer fit under the most
 * that are alive anywhere. Stores of variables do not count as readers: order puts them where they may be, or drops them.
 */
#include "loops.h"
#include "passes.h"
#include "regions.h"

enum { BLOCK = 64 }; /* steps whose bytes are compared, and change, at once */

typedef struct fusing {
    weft_plan *plan;
    uint32_t *first_read; /* [n_placed + 1] into `reads`                                          */
    uint32_t *reads;      /* the steps that read a tensor's memory, tensor by tensor; not stores  */
    uint32_t *latest; /* [n_placed] no step behind this place reads the tensor's memory        */
    uint32_t *maker;  /* [n_placed] step + 1 that makes it; 0: none                           */
    weft_regions regions;
    uint32_t *went; /* [n_steps] the step that a step became part of; itself                */
    bool *is_output, *is_stored; /* [n_placed] it is in memory, whoever else reads it             */
    int64_t *alive; /* [n_steps] bytes of temporaries at a step, less `more` of its block   */
    int64_t *more,
        *highest; /* [n_steps / BLOCK + 1] at all steps of a block; the most at one of them */
    int64_t most_alive;
} fusing;

static uint32_t place_of(const fusing *f, uint32_t s)
{
    while (f->went[s] != s)
        s = f->went[s] = f->went[f->went[s]];
    return s;
}

/* The place of the step that makes it, + 1; 0: it is there before the run. */
static uint32_t made_at(const fusing *f, uint32_t placed)
{
    const uint32_t maker = f->maker[weft_placed_owner(f->plan, placed)];
    return maker ? place_of(f, maker - 1) + 1 : 0;
}

/* ---- who reads ------------------------------------------------------------------------------- */

static bool is_kept(const fusing *f, uint32_t owner)
{
    return f->is_output[owner] || f->is_stored[owner];
}

/* Whether a step but `a` and `b` reads it at a place before `until`; from `from` on. Very many may read one tensor, and
 * nearly always one at an end of its list is the answer. */
static bool is_read_before(const fusing *f, uint32_t owner, uint32_t until, uint32_t a, uint32_t b)
{
    for (uint32_t i = f->first_read[owner]; i < f->first_read[owner + 1]; i++) {
        const uint32_t at = place_of(f, f->reads[i]);
        if (at < until && at != a && at != b) return true;
    }
    return false;
}

static bool is_read_from(const fusing *f, uint32_t owner, uint32_t from, uint32_t a, uint32_t b)
{
    if (f->latest[owner] < from) return false;
    for (uint32_t i = f->first_read[owner + 1]; i > f->first_read[owner]; i--) {
        const uint32_t at = place_of(f, f->reads[i - 1]);
        if (at >= from && at != a && at != b) return true;
    }
    return false;
}

/* Whether it lives behind the steps before `from`, whatever a and b do: what is kept does. */
static bool is_needed_from(const fusing *f, uint32_t placed, uint32_t from, uint32_t a, uint32_t b)
{
    const uint32_t owner = weft_placed_owner(f->plan, placed);
    return is_kept(f, owner) || is_read_from(f, owner, from, a, b);
}

/* ---- where the joined loop may stand --------------------------------------------------------- */

/* At the reader's place: whoever else reads what the maker makes comes after it. */
static bool may_sink(const fusing *f, uint32_t m, uint32_t s)
{
    const weft_step *maker = &f->plan->steps[m];
    for (int o = 0; o < maker->n_out; o++)
        if (is_read_before(f, weft_placed_owner(f->plan, maker->out[o]), s, m, s)) return false;
    return true;
}

/* At the maker's place: what else the reader reads is made before it. */
static bool may_rise(const fusing *f, uint32_t m, uint32_t s)
{
    const weft_step *step = &f->plan->steps[s];
    for (int i = 0; i < step->n_in; i++)
        if (made_at(f, step->in[i]) > m + 1) return false;
    return true;
}

/* Bytes that live from `m` to `s` because of a join, less those that do not any more. */
static int64_t growth_of_sinking(const fusing *f, uint32_t m, uint32_t s)
{
    const weft_step *maker = &f->plan->steps[m];
    int64_t bytes = 0;
    for (int i = 0; i < maker->n_in; i++) {
        const bool is_alive =
            made_at(f, maker->in[i]) == 0 || is_needed_from(f, maker->in[i], s, m, UINT32_MAX);
        if (!is_alive) bytes += weft_placed_room(f->plan, maker->in[i], 0);
    }
    for (int o = 0; o < maker->n_out; o++)
        bytes -= weft_placed_room(f->plan, maker->out[o], 0);
    return bytes;
}

static int64_t growth_of_rising(const fusing *f, uint32_t m, uint32_t s)
{
    const weft_step *step = &f->plan->steps[s];
    int64_t bytes = 0;
    for (int i = 0; i < step->n_in; i++) {
        if (!made_at(f, step->in[i])) continue; /* it may have many readers */
        if (!is_needed_from(f, step->in[i], m + 1, m, s))
            bytes -= weft_placed_room(f->plan, step->in[i], 0);
    }
    for (int o = 0; o < step->n_out; o++)
        bytes += weft_placed_room(f->plan, step->out[o], 0);
    return bytes;
}

/* Is there room for as many bytes more at all steps between the two? */
static bool fits_between(const fusing *f, uint32_t m, uint32_t s, int64_t bytes)
{
    const int64_t most = f->most_alive - bytes;
    for (uint32_t at = m + 1, n; at < s && bytes > 0; at += n) {
        n = at % BLOCK == 0 && s - at >= BLOCK ? BLOCK : 1;
        const int64_t alive = n > 1 ? f->highest[at / BLOCK] : f->alive[at] + f->more[at / BLOCK];
        if (alive > most) return false;
    }
    return true;
}

static void find_highest(fusing *f, uint32_t block)
{
    const uint32_t begin = block * BLOCK, left = f->plan->n_steps - begin;
    int64_t highest = f->alive[begin];
    for (uint32_t at = begin; at < begin + (left < BLOCK ? left : BLOCK); at++)
        if (f->alive[at] > highest) highest = f->alive[at];
    f->highest[block] = highest + f->more[block];
}

/* As many bytes more live at all steps between the two. */
static void add_between(fusing *f, uint32_t m, uint32_t s, int64_t bytes)
{
    for (uint32_t at = m + 1, n; at < s && bytes != 0; at += n) {
        const uint32_t block = at / BLOCK, end = (block + 1) * BLOCK;
        n = (s < end ? s : end) - at;
        if (n == BLOCK) {
            f->more[block] += bytes, f->highest[block] += bytes;
            continue;
        }
        for (uint32_t i = at; i < at + n; i++)
            f->alive[i] += bytes;
        find_highest(f, block);
    }
}

/* Where the loop of both stands: `m`, `s`, or UINT32_MAX: nowhere. */
static uint32_t find_place(const fusing *f, uint32_t m, uint32_t s, int64_t *growth)
{
    if (may_sink(f, m, s)) {
        *growth = growth_of_sinking(f, m, s);
        if (fits_between(f, m, s, *growth)) return s;
    }
    if (may_rise(f, m, s)) {
        *growth = growth_of_rising(f, m, s);
        if (fits_between(f, m, s, *growth)) return m;
    }
    return UINT32_MAX;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* What one reads under another name of the same memory would be read before it is there. */
static bool reads_under_another_name(const fusing *f, const weft_step *maker, const weft_step *step)
{
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(f->plan, step->in[i]);
        if (owner != step->in[i] && weft_find_placed(maker->out, maker->n_out, owner) >= 0)
            return true;
    }
    return false;
}

/* What a step reads that stands at `at` now. */
static void note_place(fusing *f, const weft_step *step, uint32_t at)
{
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(f->plan, step->in[i]);
        if (at > f->latest[owner]) f->latest[owner] = at;
    }
}

/* Join the step at `m` into the one at `s`, or that one into it; `place`: where it went; UINT32_MAX: they stay two. */
static weft_status join_pair(fusing *f, uint32_t m, uint32_t s, uint32_t *place, weft_error *error)
{
    weft_plan *plan = f->plan;
    weft_fused_op links[2][2];
    weft_step maker, step;
    *place = UINT32_MAX;
    if (plan->steps[m].phase != plan->steps[s].phase || f->regions.part[m] != f->regions.part[s])
        return WEFT_OK;
    if (!weft_as_loop(plan, &plan->steps[m], links[0], &maker) ||
        !weft_as_loop(plan, &plan->steps[s], links[1], &step))
        return WEFT_OK;
    if (!weft_can_join(plan, &maker, &step) || reads_under_another_name(f, &maker, &step))
        return WEFT_OK;
    int64_t growth = 0;
    const uint32_t at = find_place(f, m, s, &growth);
    if (at == UINT32_MAX) return WEFT_OK;
    add_between(f, m, s, growth);
    bool *keeps = weft_arena_take(plan->arena, (size_t)maker.n_out * sizeof *keeps);
    if (!keeps) return weft_fail_memory(error, sizeof *keeps);
    for (int o = 0; o < maker.n_out; o++)
        keeps[o] = is_needed_from(f, maker.out[o], 0, m, s);
    WEFT_TRY(weft_join(plan, &maker, &step, keeps, &plan->steps[at], error));
    f->went[at == m ? s : m] = at;
    note_place(f, &maker, at);
    *place = at;
    return WEFT_OK;
}

/* The step at `s` with all who make what it reads. A joined loop has new operands: begin again. */
static weft_status fuse_into(fusing *f, uint32_t s, weft_error *error)
{
    for (int i = 0; i < f->plan->steps[s].n_in;) {
        const uint32_t maker = f->maker[f->plan->steps[s].in[i]];
        uint32_t place = UINT32_MAX;
        if (maker) WEFT_TRY(join_pair(f, place_of(f, maker - 1), s, &place, error));
        i = place == UINT32_MAX ? i + 1 : 0;
        if (place != UINT32_MAX) s = place;
    }
    return WEFT_OK;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* Count the reads of step s in `n`, by tensor, and note it there where there is room. */
static void add_reads(const fusing *f, uint32_t s, uint32_t *n, uint32_t *room)
{
    const weft_step *step = &f->plan->steps[s];
    if (weft_is_store(f->plan, step)) return;
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(f->plan, step->in[i]);
        if (room) room[n[owner]] = s;
        n[owner]++;
    }
}

/* Counted, summed up, filled in: the readers of each tensor side by side. */
static weft_status list_readers(fusing *f, weft_error *error)
{
    const weft_plan *plan = f->plan;
    uint32_t n_reads = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        n_reads += (uint32_t)plan->steps[s].n_in;
    f->first_read = weft_arena_take(plan->arena, (plan->n_placed + 2) * sizeof *f->first_read);
    f->reads = weft_arena_take(plan->arena, (n_reads + 1) * sizeof *f->reads);
    f->latest = weft_arena_take(plan->arena, plan->n_placed * sizeof *f->latest);
    if (!f->first_read || !f->reads || !f->latest)
        return weft_fail_memory(error, n_reads * sizeof *f->reads);
    /* one ahead: while they are filled in, next[i] is the end of tensor i; then the begin of the one after it */
    uint32_t *next = f->first_read + 1;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        add_reads(f, s, next + 1, NULL);
    for (uint32_t id = 1; id <= plan->n_placed; id++)
        next[id] += next[id - 1];
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        add_reads(f, s, next, f->reads);
        note_place(f, &plan->steps[s], s);
    }
    return WEFT_OK;
}

/* The last step that reads it as the plan stands, or n_steps: it is kept. Its readers were listed in their order. */
static uint32_t last_read(const fusing *f, uint32_t placed)
{
    const uint32_t owner = weft_placed_owner(f->plan, placed);
    if (is_kept(f, owner)) return f->plan->n_steps;
    const uint32_t end = f->first_read[owner + 1];
    return end > f->first_read[owner] ? f->reads[end - 1] : 0;
}

/* Bytes of results from the step that makes each to the last that reads it. What is stored is taken to be in the
 * variable's memory. */
static void add_results(fusing *f)
{
    const weft_plan *plan = f->plan;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        for (int o = 0; o < plan->steps[s].n_out; o++) {
            const uint32_t made = plan->steps[s].out[o];
            if (plan->placed[made].home != WEFT_TEMPORARY || f->is_stored[made]) continue;
            const uint32_t last = last_read(f, made), dies = last > s ? last + 1 : s + 1;
            f->alive[s] += weft_placed_room(f->plan, made, 0);
            f->alive[dies < plan->n_steps ? dies : plan->n_steps] -=
                weft_placed_room(f->plan, made, 0);
        }
    for (uint32_t s = 1; s < plan->n_steps; s++)
        f->alive[s] += f->alive[s - 1];
}

/* Bytes that are alive at each step, as the plan stands: results, and the step's scratch. */
static weft_status count_alive(fusing *f, weft_error *error)
{
    const weft_plan *plan = f->plan;
    const uint32_t n_blocks = plan->n_steps / BLOCK + 1;
    f->alive = weft_arena_take(plan->arena, (plan->n_steps + 1) * sizeof *f->alive);
    f->more = weft_arena_take(plan->arena, n_blocks * sizeof *f->more);
    f->highest = weft_arena_take(plan->arena, n_blocks * sizeof *f->highest);
    if (!f->alive || !f->more || !f->highest)
        return weft_fail_memory(error, plan->n_steps * sizeof *f->alive);
    add_results(f);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        int64_t scratch = 0;
        WEFT_TRY(weft_keep_scratch(plan->build.moves, plan, &plan->steps[s], &scratch, error));
        f->alive[s] += weft_aligned(scratch);
        if (f->alive[s] > f->most_alive) f->most_alive = f->alive[s];
    }
    for (uint32_t block = 0; block < n_blocks; block++)
        find_highest(f, block);
    return WEFT_OK;
}

static weft_status open_fusing(fusing *f, weft_error *error)
{
    const weft_plan *plan = f->plan;
    f->maker = weft_arena_take(plan->arena, plan->n_placed * sizeof *f->maker);
    f->is_output = weft_arena_take(plan->arena, plan->n_placed * sizeof *f->is_output);
    f->is_stored = weft_arena_take(plan->arena, plan->n_placed * sizeof *f->is_stored);
    f->went = weft_arena_take(plan->arena, (plan->n_steps + 1) * sizeof *f->went);
    if (!f->maker || !f->is_output || !f->is_stored || !f->went)
        return weft_fail_memory(error, plan->n_placed * sizeof *f->maker);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        f->went[s] = s;
        if (weft_is_store(plan, step)) f->is_stored[weft_placed_owner(plan, step->in[0])] = true;
        for (int o = 0; o < step->n_out && !weft_is_store(plan, step); o++)
            f->maker[step->out[o]] = s + 1;
    }
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (plan->placed[id].is_output) f->is_output[weft_placed_owner(plan, id)] = true;
    WEFT_TRY(list_readers(f, error));
    WEFT_TRY(weft_find_regions(plan, plan->arena, &f->regions, error));
    return count_alive(f, error);
}

weft_status weft_pass_fuse(weft_plan *plan, weft_error *error)
{
    fusing f = {.plan = plan};
    WEFT_TRY(open_fusing(&f, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (f.went[s] == s) WEFT_TRY(fuse_into(&f, s, error));
    uint32_t kept = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        if (f.went[s] == s) plan->steps[kept++] = plan->steps[s];
    plan->n_steps = kept;
    return WEFT_OK;
}
