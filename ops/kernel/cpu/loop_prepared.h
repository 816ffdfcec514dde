/* loop_prepared.h: what a loop is between weft_loop_prepare and weft_loop_run.
 *
 * The space, collapsed, is rows. Rows are taken in *groups* (one long row, or several short ones), and a group is cut
 * into *blocks* of elements that are contiguous in the space. A block has at most WEFT_BLOCK elements. Where rows are
 * reduced, it has as many pieces of that as the lane's buffers have room for, so that a reduction has more to do at a
 * time; it adds up piece by piece. Where all ops are one relay, it has a few pieces, as nothing of it is kept. A row may lie
 * in several places (`together`), or have an operand that is one number along a part of it, as a bias of channels; no block goes on
 * from one to the next.
 *
 * The work is a list of acts in stages: the even ones once for a group, the odd ones for each of its blocks. So a loop with
 * two reductions one after the other has seven: once, blocks (they end with the first reduction), once, blocks, once,
 * blocks, once.
 *
 * Lanes share out *units*: groups; the blocks of rows that nobody reduces; of a few long rows that one pass reduces,
 * as many elements as a chunk of the reduction's kernel has. The states of such units are kept in lane 0's scratch, merged in
 * order, and what is done once after the pass is done then.
 *
 * Acts find their operands and results through *refs*: where in memory, or in the lane's scratch, the value lies, and
 * how its address moves from row to row and from block to block.
 */
#ifndef WEFT_LOOP_PREPARED_H
#define WEFT_LOOP_PREPARED_H

#include "cpu/reduce_state.h"
#include "loop.h"

typedef struct weft_lane weft_lane;
typedef struct weft_act weft_act;
typedef struct weft_space weft_space;

struct weft_act {
    void (*run)(const weft_space *space, weft_lane *lane, const weft_act *act);
    int x[4], y[2]; /* refs */
    int n_in;
    int number;     /* the op's, or the operand's                                */
    int bytes;      /* of one number that it makes, or brings                    */
    int x_bytes[3]; /* and of its operands: blocks that are run piece by piece   */
    int64_t count;  /* numbers of a row that it brings, stores, copies or repeats */
    weft_dtype dtype;
    weft_combine combine;
    weft_block block;
    weft_finish finish;
    bool is_number[3]; /* operands on elements: one number of the row or block, not a block */
    int only_for;      /* the one op that reads its result, which nobody wants in memory; -1 */
    bool asks;         /* of a reduction: memory for the next block of x[0], on the way      */
    const struct weft_relay_width *width; /* of a relay (relay.h)                           */
    const struct weft_relay_leg *legs;    /* [n_legs] */
    int n_legs;
};

/* data: NULL for the lane's scratch. outer: bytes per outer dim; NULL: rows lie `row` bytes apart. step: bytes per
 * element along the row; 0: it lies in one place for all blocks of a group. inner: bytes per dim of a row that lies in several
 * places; NULL: all of it is `step` bytes apart. */
typedef struct weft_ref {
    char *data;
    int64_t offset, row, step;
    const int64_t *outer; /* [n_outer] */
    const int64_t *inner; /* [n_dims - n_outer] */
    int of;               /* operand + 1; -(result + 1); 0: the lane's scratch */
} weft_ref;

typedef struct weft_stage {
    int n_acts;
    const weft_act *acts;
} weft_stage;

/* A reduction's state: where a lane has it. */
typedef struct weft_state {
    int ref;
    weft_combine combine;
} weft_state;

struct weft_space {
    /* collapsed; dims from n_outer on form the row, and there is at least one */
    int n_dims, n_outer;
    int64_t size[WEFT_MAX_DIMS + 1];
    int64_t row, n_rows;    /* elements of a row; rows                                  */
    int64_t rows, n_groups; /* rows of a group; groups                                  */
    int64_t part, n_parts;  /* elements of a row in a block; blocks of a group          */
    int64_t together;       /* elements of a row that lie together                      */
    int64_t
        within; /* no block goes on past a multiple of so many: `together`, or along which an operand is one number */
    int64_t piece;     /* elements that enter a state at once (weft_row_part)      */
    int64_t cuts, cut; /* units that lanes share out, of a group; elements of a row in each */
    bool needs_outer;  /* somebody asks for coordinates                            */
    bool streams;      /* some results are written past the caches                 */
    int64_t (*stride)[WEFT_MAX_DIMS + 1]; /* [n_in] elements per collapsed dim      */
    /* [n_out] the same of a result that is not contiguous; NULL: all are */
    int64_t (*out_stride)[WEFT_MAX_DIMS + 1];
    bool *is_apart;                             /* [n_out] which is not */
    int64_t (*index_stride)[WEFT_MAX_DIMS + 1]; /* [n_ops] */
    int64_t *index_begin, *index_trip;          /* [n_ops] */
    const char **data;                          /* [n_in] */
    char *const *out;                           /* [n_out] */
    int64_t *in_bytes, *out_bytes;              /* [n_in], [n_out] how much they span */
    int n_in, n_ops, n_out, n_refs;
    weft_ref *refs;            /* [n_refs], 0 is none */
    const weft_block_env *env; /* [n_ops] */
    int n_stages;
    weft_stage *stages;
    int64_t buffers; /* bytes of the lane's tables; buffers begin behind them */
    int64_t bytes;   /* of the lane's scratch: tables and buffers */
    /* Of a long row that is cut: its reductions, whose states are merged in the order of units; 0: it is not */
    int n_states;
    const weft_state *states; /* [n_states] */
    int64_t first_kept;       /* unit 0 among those of all spaces whose states are kept */
};

struct weft_prepared_loop {
    int n_spaces;
    const weft_space *spaces;
    int64_t n_units, grain;
    int64_t kept; /* where in lane 0's scratch states of units are kept; 0: none are */
};

/* The factor by which an act resumed what was left by a shift, in the row at hand. */
typedef struct weft_known_factor {
    const weft_act *act;
    double shift, factor;
} weft_known_factor;

/* What a lane knows while it works. Its tables and buffers lie in its scratch. */
struct weft_lane {
    char *scratch;
    char **base, **begin, **at;       /* [n_refs] of all; of the group; of the block          */
    weft_block_env *env;              /* [n_ops] */
    const void **filled;              /* [n_in] where a repeated operand was brought from      */
    int64_t *n_filled;                /* [n_in] and how much                                   */
    int64_t first_row, n_rows;        /* of the group                                          */
    int64_t skip, run, n;             /* of the block: first element and elements of a row; all */
    int64_t outer[WEFT_MAX_DIMS + 1]; /* coordinates of the group's first row               */
    int64_t trip;                     /* of a scan over a dim                               */
    weft_known_factor known;
};

/* Where the index of op k begins. */
static inline int64_t weft_index_begin(const weft_space *s, const weft_lane *lane, int k)
{
    return s->index_begin[k] + lane->trip * s->index_trip[k];
}

/* Pieces of a row before element `skip`, which begins one. */
static inline int64_t weft_space_pieces(const weft_space *s, int64_t skip)
{
    const int64_t each = (s->together + s->piece - 1) / s->piece;
    return skip / s->together * each + skip % s->together / s->piece;
}

/* From the begin of a row to its element `skip`. */
static inline int64_t weft_ref_bytes(const weft_space *s, const weft_ref *ref, int64_t skip)
{
    if (ref->inner == NULL) return skip * ref->step;
    int64_t bytes = 0;
    for (int d = s->n_dims - 1; d >= s->n_outer; d--) {
        bytes += skip % s->size[d] * ref->inner[d - s->n_outer];
        skip /= s->size[d];
    }
    return bytes;
}

/* Where what ref r names goes on after the block at hand. */
const char *weft_lane_next(const weft_space *space, const weft_lane *lane, int r, int64_t bytes);

/* Acts. On elements, the block at hand: */
void weft_act_bring(const weft_space *, weft_lane *,
                    const weft_act *); /* gather operand `number` */
void weft_act_ahead(const weft_space *, weft_lane *,
                    const weft_act *); /* ask memory for the next block of x[0] */
void weft_act_elements(const weft_space *, weft_lane *, const weft_act *);
void weft_act_indexed(const weft_space *, weft_lane *,
                      const weft_act *); /* index even in the block */
void weft_act_pieces(const weft_space *, weft_lane *, const weft_act *); /* run by run */
void weft_act_reduce(const weft_space *, weft_lane *, const weft_act *);
/* Reduce, leaving elements; what is made of them. x[1]: the shifts of a group's blocks, or of its rows. */
void weft_act_leave(const weft_space *, weft_lane *, const weft_act *);
void weft_act_resume(const weft_space *, weft_lane *, const weft_act *);
void weft_act_copy(const weft_space *, weft_lane *, const weft_act *);
/* Once for a group: */
void weft_act_repeat(const weft_space *, weft_lane *,
                     const weft_act *); /* bring, unless it is there already */
void weft_act_bring_rows(const weft_space *, weft_lane *, const weft_act *);
void weft_act_clear(const weft_space *, weft_lane *, const weft_act *);
void weft_act_store(const weft_space *, weft_lane *, const weft_act *);
void weft_act_rows(const weft_space *, weft_lane *, const weft_act *);
void weft_act_indexed_rows(const weft_space *, weft_lane *, const weft_act *);
void weft_act_finish(const weft_space *, weft_lane *, const weft_act *);
void weft_act_spread(const weft_space *, weft_lane *,
                     const weft_act *); /* values of rows along their rows */
void weft_act_copy_rows(const weft_space *, weft_lane *, const weft_act *);

/* loop_space.c: collapse, cut. The strides are set. */
weft_status weft_space_open(weft_space *space, const weft_loop *loop,
                            const weft_loop_segment *segment, weft_arena *arena, weft_error *error);
/* Are elements of a row `step` apart? Rows, `step` apart? */
bool weft_space_row_is_even(const weft_space *space, const int64_t *stride, int64_t step);
bool weft_space_rows_are_even(const weft_space *space, const int64_t *stride, int64_t step);
/* Are elements of a row that lie together next to each other? */
bool weft_space_lies_together(const weft_space *space, const int64_t *stride);
/* Is it one number in each block? */
bool weft_space_blocks_are_even(const weft_space *space, const int64_t *stride);
/* Shares a few long rows that one pass reduces out in units, whose states are merged; `length`: of a unit. */
void weft_space_cut_row(weft_space *space, int64_t length);
/* Does result o share memory with operand k? */
bool weft_space_shares(const weft_space *space, int o, int k);
bool weft_spans_meet(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes);
/* loop.c */
int64_t weft_space_tables(const weft_space *space); /* bytes of a lane's */

static inline int64_t weft_loop_dot(const int64_t *at, const int64_t *stride, int n)
{
    int64_t sum = 0;
    for (int d = 0; d < n; d++)
        sum += at[d] * stride[d];
    return sum;
}

#endif
