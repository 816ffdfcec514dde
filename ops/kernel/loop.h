/* loop.h: loops: what many ops do to the same elements, in one pass over memory.
 *
 *     weft_loop_take(arena, (weft_loop){.n_in = 2, .n_ops = 1, .n_out = 1, .n_segments = 1}, &loop, error)
 *     loop->op[0] = (weft_loop_op){.block = add_f32, .n_in = 2, .in = {0, 1}, .n_out = 1, .bytes = 4};
 *     loop->out[0] = 2;                              the slot of op 0
 *     loop->segment[0] = ...                         sizes, pointers, strides
 *     weft_loop_prepare(loop, arena, &prepared, error)
 *     weft_loop_run(prepared, 1, stream)
 *
 * An iteration space has dims; the last `n_row_dims` of them form a *row*, which may lie in pieces. An op is of one of four
 * kinds: on elements; a reduction of the elements of each row to a state (or a value) of the row; on the values of rows; a finish, which
 * makes values of states. Ops on elements may read values of rows: they are the same along the row.
 *
 * Slots number the values: 0 .. n_in - 1 are the operands, then come the results of each op in turn (n_out of them).
 * Ops stand in an order in which each reads what stands before it.
 *
 * A row is read from memory once: what is needed of it after a reduction is kept in the lane's scratch when it fits,
 * else computed again from cache. A few long rows that are gone through once are cut among lanes. The shape alone decides the
 * order in which a row's elements are added: equal bits on any number of lanes.
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "kernel.h"
#include "weft/arena.h"

typedef enum weft_loop_kind {
    WEFT_LOOP_ELEMENTS, /* block: element by element                                              */
    WEFT_LOOP_REDUCE,   /* combine: a row of elements to its state, numbers of the same dtype     */
    WEFT_LOOP_ROWS,     /* block: on values of rows, one a row                                    */
    WEFT_LOOP_FINISH    /* finish: a state of each row to one value of it, or two (n_out)         */
} weft_loop_kind;

typedef struct weft_loop_op {
    weft_loop_kind kind;
    weft_block block;
    /* ELEMENTS, from f32 to f32: the same over registers; NULL: block alone */
    const weft_relay *relay;
    weft_finish finish;   /* with env.number[0] */
    weft_combine combine; /* REDUCE; FINISH: of the states */
    weft_dtype dtype;     /* REDUCE: of the elements; FINISH: of the states' numbers */
    weft_block_env env;   /* index, stride and step are the driver's */
    int n_in, in[3];      /* slots */
    /* ELEMENTS, exp of (x - y) - z: the ops, + 1, that made that and x - y; 0: some others */
    int difference[2];
    int n_out; /* 1; 2 for a finish with two results */
    int bytes; /* of one number of its results */
    /* For devices that compile loops: what the block does, and from what to what. A finish: its `combine` and `dtype`. */
    const char *name, *text; /* of the op; NULL: there is no text */
    weft_dtype reads, makes;
} weft_loop_op;

/* A value as it lies: bytes of one number, and how many numbers one element has: 1, or a state's width. Operands of a
 * width above 1 are states of rows. */
typedef struct weft_loop_in {
    int bytes, width;
    weft_dtype dtype;
} weft_loop_in;

typedef struct weft_loop_operand {
    const void *data;
    int64_t stride
        [WEFT_MAX_DIMS]; /* numbers per dim of the space; 0 broadcasts; for values of rows 0 along the row */
} weft_loop_operand;

/* The global index that an op's block sees (weft_index), affine in the space and in the trip of a scan over a dim; of a reduction,
 * `begin` is the index of a row's first element. */
typedef struct weft_loop_index {
    int64_t begin, stride[WEFT_MAX_DIMS], trip;
} weft_loop_index;

/* One space that the ops go over. A loop over several variables has a segment for each. */
typedef struct weft_loop_segment {
    int n_dims, n_row_dims; /* 0 row dims: every op is on elements */
    /* A row in pieces: the last dims, of which each piece is; what is written of elements has an `out_stride`. 0: a row lies in one
     * piece. The elements that a piece has decide, in a row's stead, in which parts they enter a reduction */
    int n_piece_dims;
    int64_t size[WEFT_MAX_DIMS];
    weft_loop_operand *in;  /* [n_in] */
    weft_loop_index *index; /* [n_ops] */
    /* [n_out] Elements: contiguous, row-major over the space. Values of rows: over its dims before the row, with a
     * state's width innermost. May be the memory of an operand that lies in the same way, of the same bytes; of no
     * other operand, and of no other result. */
    void **out;
    /* [n_out] Of a result of elements that is part of something larger: numbers per dim of the space, as of an operand. It meets
     * no operand and no other result. All 0: it is contiguous. Where any is not, there is no row, or one in pieces: then it may be
     * the memory of an operand that lies in the same way */
    int64_t (*out_stride)[WEFT_MAX_DIMS];
} weft_loop_segment;

struct weft_loop { /* weft_loop: weft/extend/kernel.h */
    int n_in, n_ops, n_out, n_segments;
    weft_loop_in *in; /* [n_in] */
    weft_loop_op *op; /* [n_ops] */
    int *out;         /* [n_out] the slot (of an op) that result o is */
    weft_loop_segment *segment;
};

/* What a lane's scratch has room for, whatever the dtypes and sizes: operands and results of ops together; reductions
 * and operands that are states, together. */
enum { WEFT_LOOP_SLOTS = 80, WEFT_LOOP_STATES = 16 };
/* How many slots a value takes at most: one; of a dtype that is computed with in another also what it is widened to, for
 * elements and for rows, or what it is rounded to. */
static inline int weft_loop_slots_of(weft_dtype dtype)
{
    return weft_dtype_computes(dtype) == dtype ? 1 : 3;
}

/* weft_loop_take - a loop with room for the counts in `counts`, all else zero. Local. */
weft_status weft_loop_take(weft_arena *arena, weft_loop counts, weft_loop **loop,
                           weft_error *error);

/* weft_loop_prepare - work out all that does not change from run to run. Local.
 *
 * arena     holds what is prepared; `loop` is not needed any more afterwards
 * prepared  never changes: any number of streams may run it
 * errors    MEMORY; INTERNAL where a result shares memory with what is not read in step, or the loop is too large
 */
typedef struct weft_prepared_loop weft_prepared_loop;
weft_status weft_loop_prepare(const weft_loop *loop, weft_arena *arena,
                              const weft_prepared_loop **prepared, weft_error *error);

/* weft_loop_again - a loop that is like a prepared one, but for where its operands and results are: segment by segment, in lists
 * that live as long as it. *again NULL: they share memory in another way than those do, so it has to be prepared by itself.
 * Local. */
weft_status weft_loop_again(const weft_prepared_loop *like, const void *const *in, void *const *out,
                            weft_arena *arena, const weft_prepared_loop **again, weft_error *error);

/* weft_loop_run - `run` is the number of the run, from 1, that random ops count by. Local. */
void weft_loop_run(const weft_prepared_loop *prepared, uint64_t run, weft_stream *stream);

/* weft_loop_bind - a part, for one stream: what does not change from run to run on it is looked up once, which is all there is to
 * look up in a loop of one block. It is run by one thread at a time, the stream's owner. Local. */
typedef struct weft_bound_loop weft_bound_loop;
weft_status weft_loop_bind(const weft_prepared_loop *prepared, weft_loop_part part,
                           weft_stream *stream, weft_arena *arena, weft_bound_loop **bound,
                           weft_error *error);
void weft_bound_loop_run(weft_bound_loop *bound, uint64_t run, int64_t trip);
/* weft_bound_loop_move - an operand, or a result, is elsewhere from now on, where it shares memory with the same ones as before.
 * `number`: of an operand, segment by segment; -1 - that of a result. Between runs, by who runs it. Local. */
void weft_bound_loop_move(weft_bound_loop *bound, int number, void *data);

/* An element table's; of one that is older than relays: NULL. */
static inline const weft_relay *weft_relay_of(const weft_element *element)
{
    return element->size >= offsetof(weft_element, text) ? element->relay : NULL;
}

#endif
