/* loop_making.h: a loop while it is being prepared: what is known of its slots, and the acts of the stage at hand.
 *
 * A *pass* goes over the blocks of a group once. An op on elements belongs to the first pass in which its operands
 * are there: one that reads what a reduction of pass p gives belongs to pass p + 1. Later passes read a value from
 * its result in memory, or from the lane's scratch, or compute it again (`need`).
 *
 * The order: slots are described and results checked (loop_slots.c). Then come the choices: values kept from pass to
 * pass, and results written in place (loop_keep.c). Then acts are made (loop_acts.c), and find their operands and
 * results through refs (loop_refs.c).
 */
#ifndef WEFT_LOOP_MAKING_H
#define WEFT_LOOP_MAKING_H

#include "cpu/loop_prepared.h"

/* Bytes between buffers, so that they do not fall on the same cache sets. */
enum { WEFT_SKEW = 64 };
/* Bytes of what is kept from pass to pass: it stays in the second-level cache. */
enum { WEFT_KEPT = 1 << 18 };

typedef enum weft_keeping {
    WEFT_ONE_PASS,
    WEFT_IN_RESULT,
    WEFT_KEPT_IN_LANE,
    WEFT_AGAIN
} weft_keeping;

/* What is known of a slot. */
typedef struct weft_loop_slot {
    int op, which; /* -1: an operand. Which of the op's results. */
    bool of_rows;
    int bytes, width;
    int when;      /* its pass; of rows: the pass after which it is there, -1 before the first */
    uint64_t need; /* passes that read it, or for an op's, that it is computed or kept for */
    weft_keeping keeping; /* of elements */
    int result;           /* that its op may write straight away; -1: none */
    int elements, rows;   /* refs: as a block of elements; as values of the rows; 0: not yet */
    bool in_blocks;       /* an operand that is brought for each block */
    int last;             /* the last op that reads it in the pass at hand */
} weft_loop_slot;

/* What a reduction leaves of elements. */
typedef struct weft_left {
    int by; /* the op, + 1, that goes on with it; 0: it leaves nothing                  */
    int elements,
        shifts; /* refs: as elements of the row; a number for each block, or each short row */
} weft_left;

typedef struct weft_making {
    const weft_loop *loop;
    const weft_loop_segment *segment;
    weft_space *space;
    weft_arena *arena, *own; /* what stays; what does not */
    int n_slots, n_passes;
    weft_loop_slot *value; /* [n_slots] */
    int *first_slot;       /* [n_ops] of an op's results */
    int *state;            /* [n_ops] refs of reductions' states */
    weft_left *left;       /* [n_ops] */
    int *resumes;  /* [n_ops] the reduction, + 1, that an op on elements goes on with; 0: none */
    bool *is_idle; /* [n_ops] nobody asks for its result */
    int64_t kept;  /* bytes of what reductions leave */
    int *out;      /* [n_out] refs */
    int *wait;     /* [n_out] the pass at whose blocks' end it is copied; -1: it is not */
    /* [n_in + n_out][2][WEFT_MAX_DIMS + 1] bytes per outer dim, and per dim of the row */
    int64_t *outer;
    weft_act *acts; /* of the stage that is being made */
    int n_acts, n_refs;
    int64_t scratch;               /* bytes of buffers so far */
    int64_t block;                 /* elements of the largest block */
    int block_bytes;               /* of its largest numbers */
    int n_buffers;                 /* block buffers that ops share */
    int *buffer_ref, *buffer_last; /* [n_ops] and the last op that reads what is in it */
} weft_making;

static inline bool weft_reads_rows(const weft_loop_op *op)
{
    return op->kind == WEFT_LOOP_ROWS || op->kind == WEFT_LOOP_FINISH;
}

static inline int weft_most(int a, int b)
{
    return a > b ? a : b;
}

static inline uint64_t weft_pass_bit(int pass)
{
    return (uint64_t)1 << pass;
}

/* loop_slots.c: fill in the slots, and count the passes. */
weft_status weft_making_describe(weft_making *making, weft_error *error);
/* Are results slots of ops, and is memory that they share with operands read in step? */
weft_status weft_making_check_results(const weft_making *making, weft_error *error);
/* Does result o share memory with operand k? */
bool weft_making_shares(const weft_making *making, int o, int k);

/* loop_leave.c: find the reductions that leave elements, and the ops that go on with them. */
void weft_making_leave(weft_making *making);

/* loop_keep.c: decide what is kept from pass to pass, and which results their ops write. */
void weft_making_keep(weft_making *making);
/* The passes in which op k is run on elements. */
uint64_t weft_making_passes(const weft_making *making, int k);
/* Is the result of op k, which is on elements, written past the caches? It is large, and nobody here reads it. */
bool weft_making_streams(const weft_making *making, int k);
/* Is the memory of result o free for others to write once op k has run in its pass? */
bool weft_making_is_free(const weft_making *making, int o, int k);

/* loop_refs.c. A buffer of the lane's; step: as in a ref. */
int weft_making_buffer(weft_making *making, int64_t bytes, int64_t step);
/* A block buffer that nobody reads any more after op k has begun; it is read until op `last`. */
int weft_making_share_buffer(weft_making *making, int k, int last);
/* Operand k as a block of elements: where it lies, or where an act brings it; 0: not by the acts that are being made,
 * a block's (in_blocks) or those that run once for a group. */
int weft_making_bring(weft_making *making, int k, bool in_blocks);
/* Values of rows: in `slot`, along their rows as a block of elements; where they are. */
void weft_making_spread(weft_making *making, int slot);
int weft_making_rows(weft_making *making, int slot);
/* The memory of result o. */
int weft_making_result(weft_making *making, int o);

/* loop_relay.c. Does op k read its operand i as one number of the row, not spread along it? */
bool weft_making_takes_number(const weft_making *making, int k, int i);
/* Acts of the stage at hand that go on with each other's elements become one. */
weft_status weft_making_relay(weft_making *making, weft_error *error);

/* loop_acts.c: one act more; all of them, in stages. */
void weft_making_add(weft_making *making, weft_act act);
weft_status weft_making_acts(weft_making *making, weft_error *error);

#endif
