/* pack.h (private): places in one piece of memory for buffers with known lifetimes. */
#ifndef WEFT_PLAN_PACK_H
#define WEFT_PLAN_PACK_H

#include <stdint.h>

#include "weft/arena.h"

typedef struct weft_buffer {
    int64_t bytes, offset;
    uint32_t first, last; /* steps, inclusive */
} weft_buffer;

/* weft_pack - the offset of each buffer of `order` [n], one after the other: the lowest place where it meets none before
 * it that lives at the same time. Bytes are more than 0, `last` is below n_steps. *end is where the highest ends. Local;
 * pure. */
weft_status weft_pack(weft_buffer *const *order, uint32_t n, uint32_t n_steps, int64_t *end,
                      weft_error *error);

/* weft_pack_in_best_order - the same in the best of several orders, which it finds; `all` stays in the order it has. Bytes at one
 * time add up to *end, or a little less. Local; pure.
 *
 * arena  for what it notes */
weft_status weft_pack_in_best_order(weft_buffer *const *all, uint32_t n, uint32_t n_steps,
                                    weft_arena *arena, int64_t *end, weft_error *error);

#endif
