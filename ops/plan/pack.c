/* pack: the lowest place for one buffer after the other, beside those that live at the same time.
 *
 * Of many buffers most live side by side without a gap, so what is taken at a time is a few long spans. A tree over
 * the steps keeps them. A node stands for a range of steps. It knows the memory used at any step of it (`ever`), and
 * the memory of buffers that live through all of it, but not through all of the node above (`always`). A lifetime is
 * two dozen nodes at most, below which `ever` says everything, and above which `always` does.
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
    memmove(s->list + from + 1, s->list + to, (s->n - to) * sizeof *s->list);
    s->list[from] = new;
    s->n = s->n + 1 - (to - from);
    return true;
}

/* ---- a tree over the steps ------------------------------------------------------------------- */

enum { MOST_NEAR = 4 * 33 };

typedef struct moment {
    spans always, ever;
} moment;

typedef struct timeline {
    moment *nodes;  /* node i has the halves 2 i and 2 i + 1; node 1 is everything */
    uint32_t width; /* steps of node 1: a power of two */
    weft_arena *arena;
    const spans *near[MOST_NEAR]; /* what the buffer to be placed must not meet */
    int n_near;
} timeline;

static void look(timeline *t, uint32_t node, uint32_t from, uint32_t steps, const weft_buffer *b)
{
    const moment *m = &t->nodes[node];
    const bool is_inside = b->first <= from && from + steps - 1 <= b->last;
    const spans *taken = is_inside ? &m->ever : &m->always;
    if (m->ever.n == 0) return; /* nothing below either */
    if (taken->n > 0) t->near[t->n_near++] = taken;
    if (is_inside) return;
    const uint32_t half = steps / 2;
    if (b->first < from + half) look(t, 2 * node, from, half, b);
    if (b->last >= from + half) look(t, 2 * node + 1, from + half, half, b);
}

static int64_t lowest_place(const timeline *t, int64_t bytes)
{
    uint32_t next[MOST_NEAR] = {0}; /* what lies before it is below `at` */
    int64_t at = 0;
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

static bool enter(timeline *t, uint32_t node, uint32_t from, uint32_t steps, const weft_buffer *b)
{
    moment *m = &t->nodes[node];
    const span taken = {b->offset, b->offset + b->bytes};
    if (!add_span(&m->ever, taken, t->arena)) return false;
    if (b->first <= from && from + steps - 1 <= b->last)
        return add_span(&m->always, taken, t->arena);
    const uint32_t half = steps / 2;
    if (b->first < from + half && !enter(t, 2 * node, from, half, b)) return false;
    return b->last < from + half || enter(t, 2 * node + 1, from + half, half, b);
}

static weft_status place_all(timeline *t, weft_buffer *const *order, uint32_t n, int64_t *end,
                             weft_error *error)
{
    const size_t bytes = 2 * (size_t)t->width * sizeof *t->nodes;
    t->nodes = weft_arena_take(t->arena, bytes);
    if (t->nodes == NULL) return weft_fail_memory(error, bytes);
    *end = 0;
    for (uint32_t i = 0; i < n; i++) {
        weft_buffer *b = order[i];
        t->n_near = 0;
        look(t, 1, 0, t->width, b);
        b->offset = lowest_place(t, b->bytes);
        if (!enter(t, 1, 0, t->width, b)) return weft_fail_memory(error, n * sizeof(span));
        if (b->offset + b->bytes > *end) *end = b->offset + b->bytes;
    }
    return WEFT_OK;
}

weft_status weft_pack(weft_buffer *const *order, uint32_t n, uint32_t n_steps, int64_t *end,
                      weft_error *error)
{
    timeline t = {.width = 1, .arena = weft_arena_create()};
    if (t.arena == NULL) return weft_fail_memory(error, sizeof t);
    while (t.width < n_steps)
        t.width *= 2;
    weft_status status = place_all(&t, order, n, end, error);
    weft_arena_destroy(&t.arena);
    return status;
}
