/* kernel.h: what a kernel sees: local buffers with named dims, a stream, the op's attributes. No graph.
 *
 *     static void launch(const weft_call *call) { ... call->in[0].data ... call->out[0].data ... }
 *     static const weft_kernel kernel = {sizeof kernel, "mine", WEFT_CPU, WEFT_FLOAT_DTYPES, .launch = launch};
 *     WEFT_TRY(weft_extend_kernel("einsum", &kernel, error));              einsum, done otherwise
 *
 * Two forms. Element-by-element ops give block functions (weft_element); one driver does broadcasting, strides, threads
 * and fused chains for all of them. Every other op has one or more weft_kernel, which are found by op, device and dtype.
 *
 * Views, calls and block environments are made by Weft and handed to kernels: they grow at their ends from version to
 * version. Local.
 */
#ifndef WEFT_EXTEND_KERNEL_H
#define WEFT_EXTEND_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/arena.h"
#include "weft/device.h"
#include "weft/dtype.h"
#include "weft/extend/env.h"
#include "weft/layout.h"

WEFT_BEGIN

enum { WEFT_MAX_IN = 8, WEFT_MAX_OUT = 4 };

/* One rank's part of one tensor: a contiguous row-major box. Any size may be 0. */
typedef struct weft_view {
    void *data;
    weft_dtype dtype;
    weft_shape shape; /* names and *global* sizes               */
    weft_box box;     /* the part of it that `data` holds       */
} weft_view;

static inline int64_t weft_view_size(const weft_view *view, int dim) /* local size of a dim */
{
    return view->box.end[dim] - view->box.begin[dim];
}
static inline int64_t weft_view_count(const weft_view *view) /* local elements */
{
    return weft_box_count(&view->box, view->shape.n_dims);
}

/* One application of a kernel by one rank. Outputs never share memory with inputs, except the sum so far. */
typedef struct weft_call {
    weft_stream *stream;
    int n_in, n_out;
    weft_view in[WEFT_MAX_IN], out[WEFT_MAX_OUT];
    const void *attributes;
    void *prepared; /* what the kernel's prepare made; NULL: nothing */
    /* the bytes that the kernel asked for, aligned to 64, of any content; NULL: none */
    void *scratch;
    /* in[n_in - 1] is an operand more than the op has: the sum so far, with out[0]'s dtype, dims and box. out[0] is that and
     * what the op makes, added up, and may lie where it lies. Only for kernels that say so */
    bool accumulates;
    weft_precision precision; /* what products of f32 may be computed with: that, or better */
    /* Where a kernel that knows at once (the CPU's, and who `waits`) says (weft_fail) that the call is not to be
     * done: the run ends there, with the place in the program before the sentence. Only a condition that all ranks
     * have whole: a rank that goes on waits for those that do not. NULL: nobody hears it */
    weft_error *error;
} weft_call;
typedef void (*weft_launch)(const weft_call *call);

/* One way to do an op's work on one kind of device. Which op is said where it is registered.
 *
 * The call's dtype is that of its first operand, or without operands that of its first result. takes and scratch are pure:
 * they see shapes, boxes, dtypes and attributes of a call whose data, stream, prepared and scratch are NULL.
 */
typedef struct weft_kernel {
    size_t size; /* sizeof(weft_kernel) */
    /* what plans call it: "blas"; with the device one of its kind among an op's */
    const char *name;
    weft_device_kind device;
    /* a bit for each dtype of calls that it can do: WEFT_DTYPE_BIT(WEFT_F32) | ...    */
    uint32_t dtypes;
    int priority; /* of those that can do a call, the highest does it                            */
    bool (*takes)(const weft_call *call); /* whether it can do this call; NULL: any of its dtypes */
    int64_t (*scratch)(
        const weft_call *call); /* bytes for each launch; NULL: none                    */
    /* Once for each call that is bound to its memory (but prepares_alike): what can be worked out before the first launch, into `arena`, whose
     * memory lives as long as the call. NULL: there is nothing to work out. */
    weft_status (*prepare)(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error);
    /* The work, put on call->stream. Allocates nothing; sums run in an order that the shapes alone decide. Without prepare, as with
     * prepares_alike, steps that differ in addresses alone share one call: its addresses, and scratch, are another step's as soon as
     * launch returns. Work that runs on the stream later needs copies of them. */
    weft_launch launch;
    /* Gives back what prepare took beside the arena's memory; once for each prepare that succeeded. NULL: nothing. */
    void (*release)(void *prepared);
    bool accumulates; /* it takes calls that accumulate as well */
    /* ... but gains by it only where the sum is carried from trip to trip of a scan: any other a loop makes as cheaply, with what
     * else that loop does */
    bool carried_alone;
    /* its launch waits for the stream, and reads what is there: a device that keeps runs does not keep it */
    bool waits;
    /* Where products may be computed in bf16 (weft_precision), any operand and result of f32 of its op may be one of bf16 in a
     * call, each for itself: it rounds them anyway. Its dtypes have both. */
    bool narrows;
    uint8_t padding[4]; /* of older structs, in which anything may stand: nobody reads it */
    /* Its prepare looks at no address of the call, and its launch takes them from the call. So calls that differ in addresses alone
     * share one: their addresses change between launches. It has no release */
    bool prepares_alike;
    /* Two ways in which calls that it takes, by dtypes alone, differ from its op at every precision. It widens or rounds what it
     * reads and rounds what it stores: the bits of casts around it. In both a result of f32 of its op may be of bf16 */
    bool converts;    /* any operand of f32 may be one of bf16 */
    bool rounds;      /* one of its operands of bf16 may be one of f32 */
    uint8_t spare[5]; /* 0: for flags to come. Padding without a name would not be 0 */
} weft_kernel;

#define WEFT_DTYPE_BIT(dtype) (1u << (dtype))
#define WEFT_FLOAT_DTYPES     (WEFT_DTYPE_BIT(WEFT_F32) | WEFT_DTYPE_BIT(WEFT_F64))
#define WEFT_HALF_DTYPES      (WEFT_DTYPE_BIT(WEFT_BF16) | WEFT_DTYPE_BIT(WEFT_F16))
/* All that are computed with as they are stored. */
#define WEFT_WIDE_DTYPES (WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_I32) | WEFT_DTYPE_BIT(WEFT_I64))
#define WEFT_ANY_DTYPE   ((1u << WEFT_DTYPES) - 1)

/* A loop: what element ops, and reductions between them, do to the same elements in one pass. Opaque: its contents
 * belong to the very Weft that made it. */
typedef struct weft_loop weft_loop;

/* The units of a loop are shared out among `count` parts, and this is number `index`; {0, 1}: all units. Each element
 * is in one part, in whatever order they are done. */
typedef struct weft_loop_part {
    int index, count;
} weft_loop_part;

/* How loops are run on one kind of device. */
typedef struct weft_loop_driver {
    size_t size; /* sizeof(weft_loop_driver) */
    weft_device_kind device;
    /* Prepares a part for one stream; the arena lives as long as `bound`. The loop is not needed afterwards. */
    weft_status (*bind)(const weft_loop *loop, weft_loop_part part, weft_stream *stream,
                        weft_arena *arena, void **bound, weft_error *error);
    /* Put onto the stream; allocates nothing. `trip` is that of the scan over a dim in whose body it is; else 0. */
    void (*run)(void *bound, uint64_t run, int64_t trip);
    /* Binds a loop that differs in addresses alone from `like`, which is bound. The lists have operands, and results, segment by
     * segment, and live as long as `bound`. NULL: the driver cannot. *bound NULL: these addresses share memory in another way, so
     * the loop is bound by itself. */
    weft_status (*again)(const void *like, weft_loop_part part, const void *const *in,
                         void *const *out, weft_arena *arena, void **bound, weft_error *error);
    /* An operand, or a result, is elsewhere from the next run on, where it shares memory with the same ones as before. Operands are
     * numbered from 0 segment by segment; result o is -1 - o. With it loops in bodies of scans read and write elements of tensors
     * where they lie. NULL: the driver cannot. */
    void (*move)(void *bound, int number, void *data);
    /* How many elements at least the pieces have in which a row may lie (loop.h). 0: the driver wants rows of one piece. */
    int64_t least_piece;
} weft_loop_driver;

/* ---- attributes, shared by the op that fills them and the kernel that reads them ------------- */

typedef struct weft_reduce_attributes { /* reduced: the dims of the input that the output lacks */
    weft_combine combine; /* SUM, MAX, MIN: same dtype. LSE, ARGMAX, MOMENTS: state, below */
    const char *dim;      /* ARGMAX: the one reduced dim, whose global index it gives */
} weft_reduce_attributes;

typedef struct weft_dim_attributes { /* gather, scatter_add, pick: the indexed dim */
    const char *dim;
    int64_t size;
} weft_dim_attributes;

typedef struct weft_attention_attributes {
    const char *query, *memory,
        *feature;       /* dim names: rows of q, rows of k and v, dot-product dim          */
    double scale;       /* of q.k; usually 1/sqrt(feature)                                 */
    int causal;         /* row i of query sees rows 0..i of memory                         */
    int64_t window;     /* and none window or more away; 0: no window                      */
    const char *column; /* what bias and mask call the memory rows; query's name: nothing  */
    int bias, mask;     /* which operands they are; 0: there is none                       */
    bool bias_gradient; /* attention_grad: with a fourth result, dbias                     */
    /* Of blocks of rows that stand apart from each other (ops/op/attention_ring.c). With element c of the dim
     * `blocks` of q goes element c - turn of `memory_blocks` of k and v, which have as many; an element outside goes
     * with nothing. query and memory then number the rows of a block: element c begins at row query_first +
     * query_step c, or memory_first + memory_step c, times their number. NULL: rows are all there are. dk, dv and
     * dbias have `blocks`. Where bias and mask have the memory rows they have `column_blocks`, too: with both dims of
     * blocks of the scores whole, a call reads what has to do with its own. From row memory_end on there are none:
     * what fills up the last block; 0: all are there */
    const char *blocks, *memory_blocks, *column_blocks;
    int64_t n_blocks, turn, query_first, query_step, memory_first, memory_step, memory_end;
} weft_attention_attributes;

typedef struct weft_slice_attributes {
    const char *dim;
    int64_t begin, end; /* in the input's global coordinates */
} weft_slice_attributes;

/* y[o] = x[(stride o + offset) / over] along dim of x, which is `to` of y, where that is whole and x has it; else 0.
 * stride is not 0, over above 0; all such products are far from the ends of int64_t. */
typedef struct weft_reindex_attributes {
    const char *dim, *to;
    int64_t size, to_size; /* of the two */
    int64_t offset, stride, over;
} weft_reindex_attributes;

/* A product summed over the dims that the result lacks, as einsum's, with x read through windows. Take element o of
 * dim y of the result and element t of dim w of the second operand. With them goes element (stride o + dilation t +
 * offset) / over of dim x of the first, where that is whole and x has it. stride and dilation are not 0, over is
 * above 0. Other dims are matched by name. */
enum { WEFT_CONV_WINDOWS = 3 };
typedef struct weft_conv_window {
    const char *x, *w, *y;
    int64_t stride, dilation, offset, over;
} weft_conv_window;
typedef struct weft_conv_attributes {
    int n_windows;
    weft_conv_window window[WEFT_CONV_WINDOWS];
    /* Operands were made of 16-bit numbers, or the result becomes such. Sums may err by a hundredth of such a rounding. */
    bool is_half;
} weft_conv_attributes;

/* max_pool, and unpool and pool_pick after it: element o of dim y shows elements stride o + dilation t + offset, t < taps, of dim x.
 * A tap's number is row-major over the windows; -1: none. stride and dilation are above 0. */
typedef struct weft_pool_window {
    const char *x, *y;
    int64_t x_size, y_size, taps, stride, dilation, offset;
} weft_pool_window;
typedef struct weft_pool_attributes {
    int n_windows;
    weft_pool_window window[WEFT_CONV_WINDOWS];
} weft_pool_attributes;

typedef struct weft_cumulate_attributes { /* cumsum, cumprod, cummax */
    const char *dim;
    int64_t size;
    bool exclusive, reverse; /* without the element's own; from the end on */
    /* In so many parts of size / blocks elements, rounded up, the first of the walk first: each cumulated by itself, rounded, and
     * put on top of what comes before it, which is cumulated of the parts' results. 0: in one */
    int64_t blocks;
} weft_cumulate_attributes;

typedef struct
    weft_order_attributes { /* order: the first `count` along dim, which are `to` of the result */
    const char *dim, *to;
    int64_t size, count;
    bool descending; /* the largest first */
} weft_order_attributes;

/* cholesky, solve: the two sides of a square matrix */
typedef struct weft_square_attributes {
    const char *row, *column;
    int64_t size;
} weft_square_attributes;

typedef struct weft_triangle_attributes { /* triangular_solve: which triangle of it */
    weft_square_attributes square;
    bool is_upper;
} weft_triangle_attributes;

typedef struct weft_require_attributes {
    const char *sentence; /* the number stands where it has {} */
} weft_require_attributes;

typedef struct weft_number_attributes { /* moments_finish: eps */
    double number;
} weft_number_attributes;

/* ---- element-by-element ---------------------------------------------------------------------- */

/* y[i] = f(x[0][i], x[1][i], ...), i < n: contiguous, n <= WEFT_BLOCK. y may equal any x[k]. */
enum { WEFT_BLOCK = 512 };
typedef void (*weft_block)(int64_t n, void *y, const void *const *x, const weft_block_env *env);

/* Which global index a block function sees: none; the row-major index in the op's own output; the coordinate
 * along the dim named in the attributes. */
typedef enum weft_index { WEFT_INDEX_NONE = 0, WEFT_INDEX_LINEAR, WEFT_INDEX_ALONG } weft_index;

/* An op's legs (weft/extend/relay.h), by which of its operands are the tile, and by the width of vectors; NULL: it has none
 * of the kind. The tile alone; x the tile and y a block; x a block and y the tile; the same with one number. */
typedef enum weft_leg_kind {
    WEFT_LEG_ALONE,
    WEFT_LEG_AND_BLOCK,
    WEFT_LEG_BLOCK_AND,
    WEFT_LEG_AND_NUMBER,
    WEFT_LEG_NUMBER_AND,
    WEFT_LEG_KINDS
} weft_leg_kind;
typedef void (*weft_leg_run)(void); /* in truth a WEFT_LEG_TYPE */
enum { WEFT_LEG_WIDTHS = 3 };       /* of 16, 32, 64 bytes */
typedef struct weft_relay {
    weft_leg_run leg[WEFT_LEG_KINDS][WEFT_LEG_WIDTHS];
} weft_relay;

typedef struct weft_element {
    /* sizeof(weft_element): fields behind it are those of a later version, and taken for NULL */
    size_t size;
    weft_index index;
    /* [dtype of the last operand, or of the output if none][dtype of the output]; NULL: not defined */
    weft_block block[WEFT_DTYPE_ROOM][WEFT_DTYPE_ROOM];
    const weft_relay *relay; /* from f32 to f32; NULL: it is run by its block function alone */
    /* The expressions that the blocks are made of, which devices compile for themselves; NULL: there is none, and loops with the
     * op run on the CPU alone. They see x, y (a condition is c; operands), n0, n1, env, and index where `index` says so */
    const char *text[WEFT_DTYPE_ROOM][WEFT_DTYPE_ROOM];
} weft_element;

/* Attributes of every element op. */
typedef struct weft_element_attributes {
    double number[4];
    uint32_t random; /* Philox stream; unique per random op of a graph */
    const char *dim; /* for WEFT_INDEX_ALONG                           */
    /* for WEFT_INDEX_LINEAR: element i of `dim` is number from + every * i of a longer one, and the index is that in the whole;
     * 0: nothing is left out */
    int64_t every, from;
} weft_element_attributes;

WEFT_END

#endif
