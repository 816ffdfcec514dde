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

#include <stdlib.h>
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

/* Where lists of spans are: many are short, so they are taken many at a time. */
typedef struct span_store {
    weft_arena *arena;
    span *free;
    uint32_t n_free;
} span_store;

static span *take_spans(span_store *store, uint32_t n)
{
    enum { AT_A_TIME = 256 };
    if (store->n_free < n) {
        const uint32_t taken = n > AT_A_TIME ? n : AT_A_TIME;
        store->free = weft_arena_take(store->arena, taken * sizeof *store->free);
        store->n_free = store->free ? taken : 0;
        if (!store->free) return NULL;
    }
    span *list = store->free;
    store->free += n;
    store->n_free -= n;
    return list;
}

static bool make_room(spans *s, span_store *store)
{
    if (s->n < s->room) return true;
    const uint32_t room = s->room > 0 ? 2 * s->room : 2;
    span *list = take_spans(store, room);
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
static bool add_span(spans *s, span new, span_store *store)
{
    const uint32_t from = find_span(s, new.begin);
    uint32_t to = from;
    for (; to < s->n && s->list[to].begin <= new.end; to++) {
        if (s->list[to].begin < new.begin) new.begin = s->list[to].begin;
        if (s->list[to].end > new.end) new.end = s->list[to].end;
    }
    if (to == from && !make_room(s, store)) return false;
    if (to != from + 1 && to < s->n)
        memmove(s->list + from + 1, s->list + to, (s->n - to) * sizeof *s->list);
    s->list[from] = new;
    s->n = s->n + 1 - (to - from);
    return true;
}

/* ---- a tree over the steps ------------------------------------------------------------------- */

enum { PARTS_SHIFT = 2, PARTS = 1 << PARTS_SHIFT, MOST_NEAR = 2 * PARTS * 17 };

/* What of a node is asked for by any lifetime, and what is entered. */
enum { ALWAYS_READ = 1, EVER_READ = 2, ALWAYS_WRITTEN = 4 };

struct weft_timeline {
    spans *lists;      /* [2 n_nodes] of node i: `always`, `ever`                           */
    uint8_t *marks;    /* [n_nodes]                                                         */
    uint32_t n_nodes;  /* node i has the parts PARTS i + 1 and on; node 0 is everything      */
    int shift;         /* of the moments of node 0: 2^shift                                 */
    uint32_t *moments; /* [n_steps] of which a step is                                      */
    uint32_t n_steps;
    span_store store;
    const spans *near[MOST_NEAR]; /* what the buffer to be placed must not meet */
    int n_near;
    /* while lists are found: where all buffers live, one after the other, a node twice, and 1 where through all of it */
    uint32_t *stays, n_stays, room;
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

/* There is room. */
static void find_stay(timeline *t, uint32_t node, uint32_t from, int shift, life b)
{
    const bool is_inside = is_all(b, from, shift);
    t->stays[t->n_stays++] = 2 * node + is_inside;
    t->marks[node] |= is_inside ? EVER_READ | ALWAYS_WRITTEN : ALWAYS_READ;
    if (is_inside) return;
    shift -= PARTS_SHIFT;
    const life parts = parts_of(b, from, shift);
    for (uint32_t c = parts.first; c <= parts.last; c++)
        find_stay(t, PARTS * node + 1 + c, from + (c << shift), shift, b);
}

static void look(timeline *t, const weft_buffer *b)
{
    t->n_near = 0;
    for (uint32_t i = 0; i < b->n_reads; i++) {
        const spans *taken = &t->lists[b->lists[i]];
        t->near[t->n_near] = taken;
        t->n_near += taken->n > 0;
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
    const uint32_t *list = b->lists + b->n_reads, *end = list + b->n_writes;
    for (; list < end; list++) {
        spans *s = &t->lists[*list];
        if (!is_within_first(s, taken) && !add_span(s, taken, &t->store)) return false;
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
    *t = (timeline){.n_steps = n_steps, .store = {.arena = arena}};
    t->moments = weft_arena_take(arena, n_steps * sizeof *t->moments);
    return t->moments ? WEFT_OK : weft_fail_memory(error, n_steps * sizeof *t->moments);
}

static bool make_room_for_stay(timeline *t)
{
    if (t->room - t->n_stays >= MOST_NEAR) return true;
    const uint32_t room = 2 * t->room + 64 * MOST_NEAR;
    uint32_t *stays = realloc(t->stays, room * sizeof *stays);
    if (stays == NULL) return false;
    t->stays = stays;
    t->room = room;
    return true;
}

/* Where nothing is entered there is nothing to read, and what nobody reads is not entered. */
static bool make_lists(timeline *t, weft_buffer *b, const uint32_t *stay, uint32_t n)
{
    uint32_t reads[MOST_NEAR], writes[2 * MOST_NEAR], n_reads = 0, n_writes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t is_inside = stay[i] % 2, always = stay[i] - is_inside, ever = always + 1;
        const uint8_t marks = t->marks[stay[i] / 2];
        if (is_inside || marks & ALWAYS_WRITTEN) reads[n_reads++] = stay[i];
        if (marks & EVER_READ) writes[n_writes++] = ever;
        if (is_inside && marks & ALWAYS_READ) writes[n_writes++] = always;
    }
    b->n_reads = n_reads;
    b->n_writes = n_writes;
    b->lists = weft_arena_take(t->store.arena, (n_reads + n_writes) * sizeof *b->lists);
    if (b->lists == NULL) return false;
    memcpy(b->lists, reads, n_reads * sizeof *reads);
    memcpy(b->lists + n_reads, writes, n_writes * sizeof *writes);
    return true;
}

/* Twice: which lists anybody reads is known when all lifetimes are. */
static bool find_lists(timeline *t, weft_buffer *const *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        weft_buffer *b = order[i];
        const uint32_t before = t->n_stays;
        if (!make_room_for_stay(t)) return false;
        find_stay(t, 0, 0, t->shift, (life){t->moments[b->first], t->moments[b->last]});
        b->n_reads = t->n_stays - before;
    }
    const uint32_t *stay = t->stays;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t n_stay = order[i]->n_reads;
        if (!make_lists(t, order[i], stay, n_stay)) return false;
        stay += n_stay;
    }
    return true;
}

/* The tree for these buffers. They meet each other in whatever order they come, so it is as wide the next time; lists keep
 * their room. */
static weft_status clear(timeline *t, weft_buffer *const *order, uint32_t n, weft_error *error)
{
    for (uint32_t i = 0; t->lists != NULL && i < 2 * t->n_nodes; i++)
        t->lists[i].n = 0;
    if (t->lists != NULL) return WEFT_OK;
    const uint32_t n_moments = find_moments(t, order, n);
    for (t->n_nodes = 1, t->shift = 0; (uint64_t)1 << t->shift < n_moments; t->shift += PARTS_SHIFT)
        t->n_nodes = PARTS * t->n_nodes + 1;
    const size_t bytes = t->n_nodes * (2 * sizeof *t->lists + sizeof *t->marks);
    t->lists = weft_arena_take(t->store.arena, bytes);
    if (t->lists == NULL) return weft_fail_memory(error, bytes);
    t->marks = (uint8_t *)(t->lists + 2 * (size_t)t->n_nodes);
    const bool is_there = find_lists(t, order, n);
    free(t->stays);
    t->stays = NULL;
    return is_there ? WEFT_OK : weft_fail_memory(error, n * sizeof *t->stays);
}

weft_status weft_pack_on(weft_timeline *t, weft_buffer *const *order, uint32_t n, uint32_t n_kept,
                         int64_t below, int64_t *end, weft_error *error)
{
    *end = 0;
    WEFT_TRY(clear(t, order, n, error));
    for (uint32_t i = 0; i < n && *end < below; i++) {
        weft_buffer *b = order[i];
        if (i >= n_kept) {
            look(t, b);
            b->offset = lowest_place(t, b->bytes);
        }
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
    if (status == WEFT_OK) status = weft_pack_on(t, order, n, 0, INT64_MAX, end, error);
    weft_arena_destroy(&arena);
    return status;
}
