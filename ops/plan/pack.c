/* pack: the lowest place for one buffer after the other, beside those that live at the same time.
 *
 * Of many buffers most live side by side without a gap, so what is taken at a time is a few long spans. A tree over
 * the steps keeps them. A node stands for a range of steps. It knows the memory used at any step of it (`ever`), and
 * the memory of buffers that live through all of it, but not through all of the node above (`always`). A lifetime is
 * a few nodes a level, below which `ever` says everything, and above which `always` does. Four parts a node are fastest: two
 * make more levels, eight more nodes of one.
 *
 * One set of buffers is packed in many orders, so the nodes of each lifetime are found once. Most spans of the tree no lifetime
 * asks for: they are not kept.
 */
#include "pack.h"

#include <string.h>

/* ---- spans ----------------------------------------------------------------------------------- */

typedef struct span {
    int64_t begin, end;
} span;

typedef struct spans { /* ascending; they do not touch */
    span *list;
    uint32_t n, room;
} spans;

/* The first that ends at `begin` or behind it. */
static uint32_t find_span(const spans *s, int64_t begin)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->list[middle].end < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(spans *s, weft_arena *arena)
{
    if (s->n < s->room) return true;
    const uint32_t room = s->room > 0 ? 2 * s->room : 2;
    span *list = weft_arena_take(arena, room * sizeof *list);
    if (list == NULL) return false;
    if (s->n > 0) memcpy(list, s->list, s->n * sizeof *list);
    s->list = list;
    s->room = room;
    return true;
}

/* Of many spans most are one long one, and what is added lies in it. */
static inline bool is_within_first(const spans *s, span new)
{
    return s->n > 0 && s->list[0].begin <= new.begin &&new.end <= s->list[0].end;
}

/* One span more; those that it touches become one with it. False: no memory. */
static bool add_span(spans *s, span new, weft_arena *arena)
{
    const uint32_t from = find_span(s, new.begin);
    uint32_t to = from;
    for (; to < s->n && s->list[to].begin <= new.end; to++) {
        if (s->list[to].begin < new.begin) new.begin = s->list[to].begin;
        if (s->list[to].end > new.end) new.end = s->list[to].end;
    }
    if (to == from && !make_room(s, arena)) return false;
    if (to != from + 1 && to < s->n)
        memmove(s->list + from + 1, s->list + to, (s->n - to) * sizeof *s->list);
    s->list[from] = new;
    s->n = s->n + 1 - (to - from);
    return true;
}

/* ---- a tree over the steps ------------------------------------------------------------------- */

enum { PARTS_SHIFT = 2, PARTS = 1 << PARTS_SHIFT, MOST_NEAR = 2 * PARTS * 17 };

typedef struct moment {
    spans always, ever;
    bool is_always_read, is_ever_read, is_always_written; /* by any lifetime */
} moment;

struct weft_timeline {
    moment *nodes; /* [n_nodes] node i has the parts PARTS i + 1 and on; node 0 is everything */
    uint32_t n_nodes;
    int shift;         /* of the moments of node 0: 2^shift                           */
    uint32_t *moments; /* [n_steps] of which a step is                                */
    uint32_t n_steps;
    weft_arena *arena;
    const spans *near[MOST_NEAR]; /* what the buffer to be placed must not meet */
    int n_near;
    uint32_t stay[MOST_NEAR]; /* the nodes of one lifetime, while they are found */
    uint32_t n_stay;
};
typedef struct weft_timeline timeline;

/* The moments through which a buffer lives. */
typedef struct life {
    uint32_t first, last;
} life;

/* Which parts of [from, from + PARTS << shift) it lives in, one of them at least. */
static inline life parts_of(life b, uint32_t from, int shift)
{
    const uint32_t last = (b.last - from) >> shift;
    return (life){b.first > from ? (b.first - from) >> shift : 0, last < PARTS ? last : PARTS - 1};
}

static inline bool is_all(life b, uint32_t from, int shift)
{
    return b.first <= from && from + (1u << shift) - 1 <= b.last;
}

/* A node where a buffer lives, twice, and 1 where it lives through all of it. */
static void find_stay(timeline *t, uint32_t node, uint32_t from, int shift, life b)
{
    const bool is_inside = is_all(b, from, shift);
    t->stay[t->n_stay++] = 2 * node + is_inside;
    moment *m = &t->nodes[node];
    *(is_inside ? &m->is_ever_read : &m->is_always_read) = true;
    m->is_always_written |= is_inside;
    if (is_inside) return;
    shift -= PARTS_SHIFT;
    const life parts = parts_of(b, from, shift);
    for (uint32_t c = parts.first; c <= parts.last; c++)
        find_stay(t, PARTS * node + 1 + c, from + (c << shift), shift, b);
}

static void look(timeline *t, const weft_buffer *b)
{
    t->n_near = 0;
    for (uint32_t i = 0; i < b->n_stay; i++) {
        const moment *m = &t->nodes[b->stay[i] / 2];
        const spans *taken = b->stay[i] % 2 ? &m->ever : &m->always;
        if (taken->n > 0) t->near[t->n_near++] = taken;
    }
}

static int64_t lowest_place(const timeline *t, int64_t bytes)
{
    uint32_t next[MOST_NEAR]; /* what lies before it is below `at` */
    int64_t at = 0;
    memset(next, 0, (size_t)t->n_near * sizeof *next);
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int i = 0; i < t->n_near; i++) {
            const spans *taken = t->near[i];
            for (; next[i] < taken->n && taken->list[next[i]].begin < at + bytes; next[i]++) {
                if (taken->list[next[i]].end <= at) continue;
                at = taken->list[next[i]].end;
                has_moved = true;
            }
        }
    }
    return at;
}

static bool enter(timeline *t, const weft_buffer *b)
{
    const span taken = {b->offset, b->offset + b->bytes};
    for (uint32_t i = 0; i < b->n_stay; i++) {
        moment *m = &t->nodes[b->stay[i] / 2];
        const bool goes_on = b->stay[i] % 2 && m->is_always_read;
        if (m->is_ever_read && !is_within_first(&m->ever, taken) &&
            !add_span(&m->ever, taken, t->arena))
            return false;
        if (goes_on && !add_span(&m->always, taken, t->arena)) return false;
    }
    return true;
}

/* Steps are one moment up to the first at which a buffer begins after another has ended: who meets whom stays the same. */
static uint32_t find_moments(timeline *t, weft_buffer *const *order, uint32_t n)
{
    enum { BEGINS = 1, ENDS = 2 };
    uint32_t now = 0;
    bool has_ended = false;
    memset(t->moments, 0, t->n_steps * sizeof *t->moments);
    for (uint32_t i = 0; i < n; i++) {
        t->moments[order[i]->first] |= BEGINS;
        t->moments[order[i]->last] |= ENDS;
    }
    for (uint32_t s = 0; s < t->n_steps; s++) {
        const uint32_t what = t->moments[s];
        if (what & BEGINS && has_ended) now++, has_ended = false;
        has_ended |= (what & ENDS) != 0;
        t->moments[s] = now;
    }
    return now + 1;
}

weft_status weft_timeline_open(weft_arena *arena, uint32_t n_steps, weft_timeline **opened,
                               weft_error *error)
{
    timeline *t = *opened = weft_arena_take(arena, sizeof *t);
    if (t == NULL) return weft_fail_memory(error, sizeof *t);
    *t = (timeline){.n_steps = n_steps, .arena = arena};
    t->moments = weft_arena_take(arena, n_steps * sizeof *t->moments);
    return t->moments ? WEFT_OK : weft_fail_memory(error, n_steps * sizeof *t->moments);
}

/* Nodes where nothing is read, nor written that anybody reads, are left out. */
static void shorten(const timeline *t, weft_buffer *b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->n_stay; i++) {
        const moment *m = &t->nodes[b->stay[i] / 2];
        if (b->stay[i] % 2 || m->is_ever_read || m->is_always_written) b->stay[kept++] = b->stay[i];
    }
    b->n_stay = kept;
}

static weft_status find_stays(timeline *t, weft_buffer *const *order, uint32_t n, weft_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        weft_buffer *b = order[i];
        t->n_stay = 0;
        find_stay(t, 0, 0, t->shift, (life){t->moments[b->first], t->moments[b->last]});
        b->n_stay = t->n_stay;
        b->stay = weft_arena_copy(t->arena, t->stay, t->n_stay * sizeof *t->stay);
        if (b->stay == NULL) return weft_fail_memory(error, t->n_stay * sizeof *t->stay);
    }
    for (uint32_t i = 0; i < n; i++)
        shorten(t, order[i]);
    return WEFT_OK;
}

/* The tree for these buffers. They meet each other in whatever order they come, so it is as wide the next time; lists keep
 * their room. */
static weft_status clear(timeline *t, weft_buffer *const *order, uint32_t n, weft_error *error)
{
    for (uint32_t node = 0; t->nodes != NULL && node < t->n_nodes; node++)
        t->nodes[node].always.n = t->nodes[node].ever.n = 0;
    if (t->nodes != NULL) return WEFT_OK;
    const uint32_t n_moments = find_moments(t, order, n);
    for (t->n_nodes = 1, t->shift = 0; (uint64_t)1 << t->shift < n_moments; t->shift += PARTS_SHIFT)
        t->n_nodes = PARTS * t->n_nodes + 1;
    const size_t bytes = t->n_nodes * sizeof *t->nodes;
    t->nodes = weft_arena_take(t->arena, bytes);
    return t->nodes ? find_stays(t, order, n, error) : weft_fail_memory(error, bytes);
}

weft_status weft_pack_on(weft_timeline *t, weft_buffer *const *order, uint32_t n, int64_t below,
                         int64_t *end, weft_error *error)
{
    *end = 0;
    WEFT_TRY(clear(t, order, n, error));
    for (uint32_t i = 0; i < n && *end < below; i++) {
        weft_buffer *b = order[i];
        look(t, b);
        b->offset = lowest_place(t, b->bytes);
        if (!enter(t, b)) return weft_fail_memory(error, n * sizeof(span));
        if (b->offset + b->bytes > *end) *end = b->offset + b->bytes;
    }
    return WEFT_OK;
}

weft_status weft_pack(weft_buffer *const *order, uint32_t n, uint32_t n_steps, int64_t *end,
                      weft_error *error)
{
    weft_timeline *t;
    weft_arena *arena = weft_arena_create();
    if (arena == NULL) return weft_fail_memory(error, sizeof *t);
    weft_status status = weft_timeline_open(arena, n_steps, &t, error);
    if (status == WEFT_OK) status = weft_pack_on(t, order, n, INT64_MAX, end, error);
    weft_arena_destroy(&arena);
    return status;
}
