/* attention_ring.h: blocks of rows as a ring has them, and their use (attention_ring.c); attention_variants.c has the
 * cost. */
#ifndef WEFT_ATTENTION_RING_H
#define WEFT_ATTENTION_RING_H

#include "attention.h"

/* Element c of a part of the blocks has the one of number first + step c. */
typedef struct weft_ring_part {
    int64_t first, step;
} weft_ring_part;

typedef struct weft_ring {
    const weft_attention_attributes *attributes;
    int64_t n;     /* elements of the dim of blocks: ranks */
    int64_t n_all; /* blocks that rows are cut into */
    int n_parts;   /* 2: balanced */
    weft_ring_part parts[2];
    int64_t n_query, n_memory;     /* rows of a block, of which the last are filled up */
    int64_t all_query, all_memory; /* rows there are */
} weft_ring;

/* A part of q and one of k and v in a turn. */
typedef struct weft_ring_pair {
    int of_q, of_k;
    int64_t turn;
} weft_ring_pair;

weft_ring weft_ring_of(const weft_site *site, int64_t n, bool is_balanced);
/* Of all rows of two blocks how much element c of a part of q sees of element m of one of k and v, about. */
double weft_ring_seen(const weft_ring *r, int of_q, int64_t c, int of_k, int64_t m);
bool weft_ring_sees_any(const weft_ring *r, weft_ring_pair m);
int64_t weft_ring_n_turns(const weft_ring *r);
/* Turn number i: 0, 1, -1, 2, -2, ... */
int64_t weft_ring_turn(int64_t i);
/* Attention, or its gradient, turn by turn: `write` of their variants. */
void weft_ring_write(weft_vjp *vjp, const weft_variant *variant);
void weft_ring_write_balanced(weft_vjp *vjp, const weft_variant *variant);

#endif
