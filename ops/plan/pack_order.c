/* pack_order: the order in which buffers are packed, so that the arena is small.
 *
 * No arena is smaller than what is alive at the fullest step, its *floor*. One of three orders reaches it for most
 * plans. One is largest first. One takes the buffers of the fullest step first, the longest lived at the bottom.
 * Values that live as the layers of a model do (made forward, read backward, nested) then leave no gaps at that step.
 * The third takes these, largest first. Where none does, buffers that end above the floor are placed earlier, a few
 * times, in each of them: first in the order that comes to the floor most often. The lowest end wins; of equal ones
 * the first.
 */
#include "pack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROUNDS = 16,      /* of placing earlier, for each order: beyond it little is gained */
    MOST_PLACED = 1 << 14, /* buffers, in all orders together: large plans have fewer   */
};

typedef weft_packing packing;
typedef void (*order)(packing *);

/* ---- orders ---------------------------------------------------------------------------------- */

static bool is_alive(const packing *p, const weft_buffer *b)
{
    return b->first <= p->fullest && p->fullest <= b->last;
}

static int larger_first(const void *a, const void *b)
{
    const weft_buffer *x = *(weft_buffer *const *)a, *y = *(weft_buffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int longer_first(const void *a, const void *b)
{
    const weft_buffer *x = *(weft_buffer *const *)a, *y = *(weft_buffer *const *)b;
    const uint32_t x_lives = x->last - x->first, y_lives = y->last - y->first;
    return x_lives != y_lives ? (x_lives > y_lives ? -1 : 1) : larger_first(a, b);
}

/* The largest first: what the other orders begin with too, so it is found once. */
static void order_by_size(packing *p)
{
    memcpy(p->order, p->sizes, p->n * sizeof *p->order);
}

/* Those that are alive at the fullest step, the largest first; then the others, the same way. How many are alive. */
static uint32_t order_fullest_first(packing *p)
{
    uint32_t n_alive = 0, n_others = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (is_alive(p, p->sizes[i]))
            p->order[n_alive++] = p->sizes[i];
        else
            p->next[n_others++] = p->sizes[i];
    memcpy(p->order + n_alive, p->next, n_others * sizeof *p->order);
    return n_alive;
}

static void order_by_life(packing *p)
{
    const uint32_t n_alive = order_fullest_first(p);
    qsort(p->order, n_alive, sizeof *p->order, longer_first);
}

static void order_by_size_there(packing *p)
{
    (void)order_fullest_first(p);
}

/* What ends above the floor goes a quarter of its way to the front. How many stay in front of all that moves: their places are
 * what they were. n: it is there. */
static uint32_t place_earlier(packing *p)
{
    uint32_t n_kept = p->n;
    memcpy(p->next, p->order, p->n * sizeof *p->order);
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->order[i]->offset + p->order[i]->bytes <= p->floor) continue;
        const uint32_t to = i * 3 / 4;
        if (to < i && to < n_kept) n_kept = to;
        memmove(p->next + to + 1, p->next + to, (i - to) * sizeof *p->order);
        p->next[to] = p->order[i];
    }
    memcpy(p->order, p->next, p->n * sizeof *p->order);
    return n_kept;
}

/* ---- the largest first --------------------------------------------------------------------------- */

/* Most buffers are as large as others: of each size there is one of these. */
typedef struct size_group {
    int64_t bytes;
    uint32_t n, at; /* how many; where the next of them goes */
} size_group;

typedef struct sorting {
    size_group *groups;         /* [mask + 1] open addressing; n 0: free    */
    size_group **largest_first; /* [n] those that there are                 */
    weft_buffer **by_first;     /* [n] the buffers by where they begin      */
    uint32_t *begins;           /* [n_steps + 1] how many begin before      */
    uint32_t mask, n_groups;
} sorting;

static size_group *group_of(const sorting *s, int64_t bytes)
{
    uint32_t at = (uint32_t)((uint64_t)bytes * 0x9E3779B97F4A7C15u >> 32) & s->mask;
    while (s->groups[at].n > 0 && s->groups[at].bytes != bytes)
        at = (at + 1) & s->mask;
    return &s->groups[at];
}

static int larger_group_first(const void *a, const void *b)
{
    const size_group *x = *(size_group *const *)a, *y = *(size_group *const *)b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static void sort_by_first(const packing *p, sorting *s)
{
    for (uint32_t i = 0; i < p->n; i++)
        s->begins[p->all[i]->first + 1]++;
    for (uint32_t step = 1; step <= p->n_steps; step++)
        s->begins[step] += s->begins[step - 1];
    for (uint32_t i = 0; i < p->n; i++)
        s->by_first[s->begins[p->all[i]->first]++] = p->all[i];
}

/* As larger_first, those that are equal in the order of `all`; without comparing buffers. */
static void sort_sizes(packing *p, sorting *s)
{
    sort_by_first(p, s);
    for (uint32_t i = 0; i < p->n; i++) {
        size_group *group = group_of(s, p->all[i]->bytes);
        if (group->n++ > 0) continue;
        group->bytes = p->all[i]->bytes;
        s->largest_first[s->n_groups++] = group;
    }
    qsort(s->largest_first, s->n_groups, sizeof *s->largest_first, larger_group_first);
    for (uint32_t g = 1; g < s->n_groups; g++)
        s->largest_first[g]->at = s->largest_first[g - 1]->at + s->largest_first[g - 1]->n;
    for (uint32_t i = 0; i < p->n; i++)
        p->sizes[group_of(s, s->by_first[i]->bytes)->at++] = s->by_first[i];
}

static weft_status find_sizes(packing *p, weft_error *error)
{
    sorting s = {.mask = 15};
    while (s.mask < 2 * p->n)
        s.mask = 2 * s.mask + 1;
    const size_t groups = (s.mask + 1) * sizeof *s.groups, list = p->n * sizeof(void *);
    const size_t bytes = groups + 2 * list + (p->n_steps + 2) * sizeof *s.begins;
    char *memory = calloc(1, bytes);
    if (!memory) return weft_fail_memory(error, bytes);
    s.groups = (size_group *)(void *)memory;
    s.largest_first = (size_group **)(void *)(memory + groups);
    s.by_first = (weft_buffer **)(void *)(memory + groups + list);
    s.begins = (uint32_t *)(void *)(memory + groups + 2 * list);
    sort_sizes(p, &s);
    free(memory);
    return WEFT_OK;
}

/* ---- the best -------------------------------------------------------------------------------- */

static const order orders[WEFT_PACK_ORDERS] = {order_by_life, order_by_size, order_by_size_there};

/* is_last: what follows does not go by these places, so it goes no further than to see that they are no better. */
static weft_status pack(packing *p, uint32_t n_kept, bool is_last, weft_error *error)
{
    int64_t end;
    const int64_t below = is_last ? p->end : INT64_MAX;
    WEFT_TRY(weft_pack_on(p->timeline, p->order, p->n, n_kept, below, &end, error));
    if (end >= p->end) return WEFT_OK;
    p->end = end;
    for (uint32_t i = 0; i < p->n; i++)
        p->best[i] = p->all[i]->offset;
    return WEFT_OK;
}

static weft_status find_fullest(packing *p, weft_arena *arena, weft_error *error)
{
    int64_t *change = weft_arena_take(arena, (p->n_steps + 1) * sizeof *change), alive = 0;
    if (!change) return weft_fail_memory(error, p->n_steps * sizeof *change);
    for (uint32_t i = 0; i < p->n; i++) {
        change[p->all[i]->first] += p->all[i]->bytes;
        change[p->all[i]->last + 1] -= p->all[i]->bytes;
    }
    for (uint32_t s = 0; s < p->n_steps; s++) {
        alive += change[s];
        if (alive <= p->floor) continue;
        p->floor = alive;
        p->fullest = s;
    }
    return WEFT_OK;
}

/* One of the orders as it is. Where each buffer ends in it is what placing earlier begins with. */
static weft_status pack_first(packing *p, weft_error *error)
{
    const uint32_t k = p->n_first++;
    if (k == 0) WEFT_TRY(find_sizes(p, error));
    orders[k](p);
    WEFT_TRY(pack(p, 0, p->n_rounds == 0, error));
    for (uint32_t i = 0; p->n_rounds > 0 && i < p->n; i++)
        p->first[k][i] = p->all[i]->offset;
    return WEFT_OK;
}

/* Those of an order whose ends lie above the floor are placed earlier; when it helps no more, or often enough, those of the
 * next order. */
static weft_status pack_round(packing *p, weft_error *error)
{
    if (p->round == 0) {
        orders[p->k](p);
        for (uint32_t i = 0; i < p->n; i++)
            p->all[i]->offset = p->first[p->k][i];
    }
    const uint32_t n_kept = place_earlier(p);
    const bool has_moved = n_kept < p->n;
    p->round = has_moved && p->round + 1 < p->n_rounds ? p->round + 1 : 0;
    p->k += p->round == 0;
    return has_moved ? pack(p, n_kept, p->round == 0, error) : WEFT_OK;
}

static bool has_more_orders(const packing *p)
{
    return p->n_first < WEFT_PACK_ORDERS && p->n_first < p->n_packs;
}

static weft_status take_lists(packing *p, weft_arena *arena, weft_error *error)
{
    const uint32_t n = p->n, most = WEFT_PACK_ORDERS * MOST_ROUNDS;
    p->n_packs = n < MOST_PLACED ? MOST_PLACED / n : 1;
    p->n_rounds = (p->n_packs < most ? p->n_packs : most) / WEFT_PACK_ORDERS;
    p->order = weft_arena_take(arena, n * sizeof *p->order);
    p->next = weft_arena_take(arena, n * sizeof *p->next);
    p->sizes = weft_arena_take(arena, n * sizeof *p->sizes);
    p->best = weft_arena_take(arena, n * sizeof *p->best);
    bool is_there = p->order && p->next && p->sizes && p->best;
    for (int k = 0; k < WEFT_PACK_ORDERS && p->n_rounds > 0; k++)
        is_there &= (p->first[k] = weft_arena_take(arena, n * sizeof *p->first[k])) != NULL;
    return is_there ? WEFT_OK : weft_fail_memory(error, n * sizeof *p->best);
}

weft_status weft_pack_begin(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                            weft_arena *arena, weft_packing *p, weft_error *error)
{
    *p = (weft_packing){.all = all, .n = n, .n_steps = n_steps, .end = n > 0 ? INT64_MAX : 0};
    if (n == 0) return WEFT_OK;
    WEFT_TRY(take_lists(p, arena, error));
    WEFT_TRY(weft_timeline_open(arena, n_steps, &p->timeline, error));
    WEFT_TRY(find_fullest(p, arena, error));
    p->has_more = true;
    return WEFT_OK;
}

weft_status weft_pack_more(weft_packing *p, weft_error *error)
{
    if (!p->has_more) return WEFT_OK;
    WEFT_TRY(has_more_orders(p) ? pack_first(p, error) : pack_round(p, error));
    p->has_more =
        p->end > p->floor && (has_more_orders(p) || (p->n_rounds > 0 && p->k < WEFT_PACK_ORDERS));
    for (uint32_t i = 0; !p->has_more && i < p->n; i++)
        p->all[i]->offset = p->best[i];
    return WEFT_OK;
}

weft_status weft_pack_in_best_order(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                                    weft_arena *arena, int64_t *end, weft_error *error)
{
    weft_packing p;
    WEFT_TRY(weft_pack_begin(all, n, n_steps, arena, &p, error));
    while (p.has_more)
        WEFT_TRY(weft_pack_more(&p, error));
    *end = p.end;
    return WEFT_OK;
}
