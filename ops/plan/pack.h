/* pack.h (private): places in one piece of memory for buffers with known lifetimes. */
#ifndef WEFT_PLAN_PACK_H
#define WEFT_PLAN_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/arena.h"

typedef struct weft_buffer {
    int64_t bytes, offset;
    uint32_t first, last; /* steps, inclusive */
    /* pack.c's own: the lists of a timeline that it must not meet, and behind them those that it enters */
    uint32_t *lists;
    uint32_t n_reads, n_writes;
} weft_buffer;

/* weft_pack - the offset of each buffer of `order` [n], one after the other: the lowest place where it meets none before
 * it that lives at the same time. Bytes are more than 0, `last` is below n_steps. *end is where the highest ends. Local;
 * pure. */
weft_status weft_pack(weft_buffer *const *order, uint32_t n, uint32_t n_steps, int64_t *end,
                      weft_error *error);

/* The same for one set of buffers after another order of them: what is noted is noted in the same place. A timeline is for
 * buffers that begin and end at the same steps each time, and lives as long as its arena. The first `n_kept` have their offsets: of
 * an order that began with them, too. Once *end is not below `below` the buffers that are left get no offset. */
typedef struct weft_timeline weft_timeline;
weft_status weft_timeline_open(weft_arena *arena, uint32_t n_steps, weft_timeline **timeline,
                               weft_error *error);
weft_status weft_pack_on(weft_timeline *timeline, weft_buffer *const *order, uint32_t n,
                         uint32_t n_kept, int64_t below, int64_t *end, weft_error *error);

enum { WEFT_PACK_ORDERS = 3 };

/* Buffers that are packed in one order after the other, as long as somebody asks for more (pack_order.c). What they are packed in at
 * last is `floor` bytes or more, and `end` or less: where that decides what is asked, no more is packed. */
typedef struct weft_packing {
    int64_t floor,
        end; /* most bytes alive at once; the end of the best so far, INT64_MAX before the first */
    uint32_t fullest; /* the step with these bytes   */
    bool has_more;    /* false: `end` is the best there is, and buffers have its offsets */
    /* pack_order.c's own: */
    weft_timeline *timeline;
    weft_buffer *const *all;          /* [n]                                             */
    weft_buffer **order;              /* [n]                                             */
    weft_buffer **next;               /* [n] the next order, while it is made            */
    weft_buffer **sizes;              /* [n] the largest first                           */
    int64_t *best;                    /* [n] offsets of `all`                            */
    int64_t *first[WEFT_PACK_ORDERS]; /* [n] in each order, before any is placed earlier */
    uint32_t n, n_steps, n_packs, n_rounds;
    uint32_t n_first, k,
        round; /* orders packed as they are; the one that is improved, and how often it was */
} weft_packing;

/* weft_pack_begin - nothing is packed yet. What `all` points to is written to until all is packed. Local; pure. */
weft_status weft_pack_begin(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                            weft_arena *arena, weft_packing *packing, weft_error *error);
/* weft_pack_more - in one order more. */
weft_status weft_pack_more(weft_packing *packing, weft_error *error);

/* weft_pack_in_best_order - the same in the best of several orders, which it finds; `all` stays in the order it has. Bytes at one
 * time add up to *end, or a little less. Local; pure.
 *
 * arena  for what it notes */
weft_status weft_pack_in_best_order(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                                    weft_arena *arena, int64_t *end, weft_error *error);

#endif
