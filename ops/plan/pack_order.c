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

typedef struct packing {
    weft_buffer *const *all; /* [n] */
    weft_buffer **order;     /* [n] */
    weft_buffer **next;      /* [n] the next order, while it is made */
    int64_t *best;           /* [n] offsets of `all`                 */
    uint32_t n, n_steps;
    uint32_t fullest; /* the step with most bytes alive */
    int64_t floor;    /* these bytes                    */
    int64_t end;      /* of the best                    */
} packing;

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

static void order_by_size(packing *p)
{
    memcpy(p->order, p->all, p->n * sizeof *p->order);
    qsort(p->order, p->n, sizeof *p->order, larger_first);
}

/* Those that are alive at the fullest step, in the order of `compare`; then the others, the largest first. */
static void order_fullest_first(packing *p, int (*compare)(const void *, const void *))
{
    uint32_t n_alive = 0, n_others = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (is_alive(p, p->all[i]))
            p->order[n_alive++] = p->all[i];
        else
            p->next[n_others++] = p->all[i];
    memcpy(p->order + n_alive, p->next, n_others * sizeof *p->order);
    qsort(p->order, n_alive, sizeof *p->order, compare);
    qsort(p->order + n_alive, n_others, sizeof *p->order, larger_first);
}

static void order_by_life(packing *p)
{
    order_fullest_first(p, longer_first);
}

static void order_by_size_there(packing *p)
{
    order_fullest_first(p, larger_first);
}

/* What ends above the floor goes a quarter of its way to the front. False: it is there. */
static bool place_earlier(packing *p)
{
    bool has_moved = false;
    memcpy(p->next, p->order, p->n * sizeof *p->order);
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->order[i]->offset + p->order[i]->bytes <= p->floor) continue;
        const uint32_t to = i * 3 / 4;
        has_moved = has_moved || to < i;
        memmove(p->next + to + 1, p->next + to, (i - to) * sizeof *p->order);
        p->next[to] = p->order[i];
    }
    memcpy(p->order, p->next, p->n * sizeof *p->order);
    return has_moved;
}

/* ---- the best -------------------------------------------------------------------------------- */

static weft_status pack(packing *p, weft_error *error)
{
    int64_t end;
    WEFT_TRY(weft_pack(p->order, p->n, p->n_steps, &end, error));
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

/* Those of an order whose ends lie above the floor are placed earlier, until it helps no more. */
static weft_status improve(packing *p, order make, uint32_t n_rounds, weft_error *error)
{
    make(p);
    WEFT_TRY(pack(p, error)); /* again: where each ends says who is too high */
    for (uint32_t round = 0; round < n_rounds && p->end > p->floor; round++) {
        if (!place_earlier(p)) break;
        WEFT_TRY(pack(p, error));
    }
    return WEFT_OK;
}

static weft_status find_best(packing *p, weft_error *error)
{
    static const order orders[] = {order_by_life, order_by_size, order_by_size_there};
    enum { n_orders = sizeof orders / sizeof orders[0] };
    const uint32_t n_packs = p->n < MOST_PLACED ? MOST_PLACED / p->n : 1;
    const uint32_t n_rounds = n_packs / n_orders < MOST_ROUNDS ? n_packs / n_orders : MOST_ROUNDS;
    for (uint32_t k = 0; k < n_orders && k < n_packs && p->end > p->floor; k++) {
        orders[k](p);
        WEFT_TRY(pack(p, error));
    }
    for (uint32_t k = 0; k < n_orders && n_rounds > 0 && p->end > p->floor; k++)
        WEFT_TRY(improve(p, orders[k], n_rounds, error));
    return WEFT_OK;
}

weft_status weft_pack_in_best_order(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                                    weft_arena *arena, int64_t *end, weft_error *error)
{
    packing p = {.all = all, .n = n, .n_steps = n_steps, .end = INT64_MAX};
    p.order = weft_arena_take(arena, (n + 1) * sizeof *p.order);
    p.next = weft_arena_take(arena, (n + 1) * sizeof *p.next);
    p.best = weft_arena_take(arena, (n + 1) * sizeof *p.best);
    if (!p.order || !p.next || !p.best) return weft_fail_memory(error, n * sizeof *p.order);
    *end = 0;
    if (n == 0) return WEFT_OK;
    WEFT_TRY(find_fullest(&p, arena, error));
    WEFT_TRY(find_best(&p, error));
    for (uint32_t i = 0; i < n; i++)
        all[i]->offset = p.best[i];
    *end = p.end;
    return WEFT_OK;
}
