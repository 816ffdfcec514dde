/* layout.h: where elements live: dims, shapes, layouts, specs, boxes, conversions and their cost.
 *
 *     WEFT_TRY(weft_layout_create("batch:data,hidden:model", &layout, &error));
 *     weft_layout_spec(layout, mesh, &shape, &spec);            batch is split over data, ...
 *     weft_spec_box(&spec, mesh, &shape, rank, &box);           what this rank holds
 *
 * The algebra is in docs/layouts.md. Everything in this room is Local and pure. For NULL, for a dim, axis or rank
 * that does not exist, and for impossible counts, functions without a status return an empty answer: 0, false, "", or
 * a box without elements.
 */
#ifndef WEFT_LAYOUT_H
#define WEFT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "weft/dtype.h"
#include "weft/mesh.h"

WEFT_BEGIN

enum { WEFT_MAX_DIMS = 8 };

/* A named, sized direction of a tensor. */
typedef struct weft_dim {
    const char *name;
    int64_t size;
} weft_dim;

/* The dims of a tensor, slowest first; elements are row-major. */
typedef struct weft_shape {
    int n_dims;
    weft_dim dims[WEFT_MAX_DIMS];
} weft_shape;

WEFT_API int weft_shape_find(const weft_shape *shape, const char *name); /* -1: no such dim */
WEFT_API int64_t weft_shape_count(const weft_shape *shape); /* elements; INT64_MAX past that */

/* weft_shape_check - what every tensor's shape must be: at most WEFT_MAX_DIMS dims, each with a name of its own and a
 * size from 1 to 2^40, and at most 2^50 elements. */
WEFT_API weft_status weft_shape_check(const weft_shape *shape, weft_error *error);

/* weft_shape_print - "[batch:32, pixel:784]" into text [bytes], as snprintf does. */
WEFT_API int weft_shape_print(const weft_shape *shape, char *text, size_t bytes);

/* How partial results combine: monoids. `width` numbers make one state (the innermost dim of the
 * tensor that holds them): sum, max, min, prod: 1; lse: running max and sum of exp(x - max); argmax: value and
 * global index; moments: count, mean, M2. */
typedef enum weft_combine {
    WEFT_NOT_PARTIAL = 0,
    WEFT_SUM,
    WEFT_MAX,
    WEFT_MIN,
    WEFT_LSE,
    WEFT_ARGMAX,
    WEFT_MOMENTS,
    WEFT_PROD,
    WEFT_COMBINES
} weft_combine;
WEFT_API const char *weft_combine_name(weft_combine combine);
WEFT_API int weft_combine_width(weft_combine combine);

/* Which elements of a dim go with those of another one, the lead, along which work is cut. With element i of `lead`
 * elements go all j for which stride i + low <= over j <= stride i + high, as far as the dim has them. A rank of a
 * dim split through a window has the elements for its block of the lead, and those between: boxes may overlap. So
 * such specs are read-only. lead 0: no window, the dim itself is cut. */
typedef struct weft_window {
    int64_t lead, low, high;
    int32_t stride, over; /* stride below 0: the other way round; over: at least 1 */
} weft_window;

/* Where one tensor lives: per mesh axis exactly one of replicated, splitting a dim, or partial. */
typedef struct weft_spec {
    int8_t n_split[WEFT_MAX_DIMS];              /* axes that split dim d          */
    int8_t split[WEFT_MAX_DIMS][WEFT_MAX_AXES]; /* which, outermost first         */
    uint8_t partial;                            /* bit a: partial over axis a     */
    uint8_t combine;                            /* weft_combine of those bits     */
    weft_window window[WEFT_MAX_DIMS];          /* of dims that are split through one */
} weft_spec;

typedef struct weft_box {
    int64_t begin[WEFT_MAX_DIMS], end[WEFT_MAX_DIMS]; /* half-open, global coordinates */
} weft_box;

/* One axis of one spec. */
enum { WEFT_REPLICATED = -1, WEFT_PARTIAL = -2 };
/* The dim that `axis` splits, or WEFT_REPLICATED, or WEFT_PARTIAL. */
WEFT_API int weft_spec_state(const weft_spec *spec, int n_dims, int axis);
/* weft_spec_is_valid - whether a spec filled by hand says where a tensor of that shape lives: axes of the mesh, each at
 * most once, and dims of the shape. Others are taken without harm below, but mean nothing. */
WEFT_API bool weft_spec_is_valid(const weft_spec *spec, const weft_mesh *mesh,
                                 const weft_shape *shape);
WEFT_API bool weft_spec_equal(const weft_spec *a, const weft_spec *b, int n_dims);
/* "[batch:32/data, hidden:64/data+model] sum over model"; of a dim that is split through a window also that, with i an
 * element of the lead: "pixel:64/data{2i-1..2i+1, i<32}". */
WEFT_API int weft_spec_print(const weft_spec *spec, const weft_mesh *mesh, const weft_shape *shape,
                             char *text, size_t bytes);

/* weft_spec_box - the box of `rank`: nested ceil blocks, outermost axis first; through a window the elements that go
 * with those of the lead; may be empty (begin == end, both within the dim). */
WEFT_API void weft_spec_box(const weft_spec *spec, const weft_mesh *mesh, const weft_shape *shape,
                            int rank, weft_box *box);
WEFT_API int64_t weft_box_count(const weft_box *box, int n_dims);
/* The common part of two boxes; returns its count, 0 when they do not meet. */
WEFT_API int64_t weft_box_meet(const weft_box *a, const weft_box *b, int n_dims, weft_box *common);

/* ---- windows --------------------------------------------------------------------------------- */

/* Sums and products of what windows are made of stay far from the ends of int64_t. */
#define WEFT_MAX_STRIDE ((int32_t)1 << 20)
#define WEFT_MAX_LEAD   ((int64_t)1 << 40)
/* weft_window_is_valid - of none, or lead at most WEFT_MAX_LEAD, stride (either sign, not 0) and over at most
 * WEFT_MAX_STRIDE, low <= high, both at most 2^60 from 0. */
WEFT_API bool weft_window_is_valid(const weft_window *window);
WEFT_API bool weft_window_equal(const weft_window *a, const weft_window *b);
/* weft_window_image - the interval of elements that go with [*begin, *end) of the lead, for a dim of `size` elements,
 * written over them. Nothing goes with nothing. Without a window, or with an invalid one: the interval, as far as the
 * dim has it. */
WEFT_API void weft_window_image(const weft_window *window, int64_t size, int64_t *begin,
                                int64_t *end);
/* weft_window_is_within - whether every rank has, of dim `dim`, all that the spec's window shows it without it: in its block
 * of the dim itself. Then nobody needs to be asked, nor the window. True where there is none. */
WEFT_API bool weft_window_is_within(const weft_spec *spec, const weft_mesh *mesh,
                                    const weft_shape *shape, int dim);
/* weft_border_cost - as weft_state_cost: bytes that come from others when a dim of `size` elements, `bytes` of the tensor,
 * goes from blocks over `n` ranks to what a window shows of it: most that one rank gets. Looks at the two ranks at either
 * end: what a rank lacks grows towards them, and those at the ends lack one side. */
WEFT_API double weft_border_cost(const weft_window *window, int64_t size, int n, double bytes);

/* ---- layouts --------------------------------------------------------------------------------- */

typedef struct weft_layout weft_layout; /* opaque: ordered rules, and the storage stage */

/* weft_layout_create - parse "batch:data,hidden:model+pod"; NULL or "" is the layout that splits nothing.
 *
 * "batch:data?" holds only where the mesh has the axis: on a mesh without it that axis is left out, without a word.
 *
 * returns WEFT_USAGE with the place (column) for a text that does not parse, and for a rule that names one
 *         axis twice. Two rules may name one dim: both apply, the first outermost.
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_layout_create(const char *text, weft_layout **layout,
                                                        weft_error *error);
WEFT_API void weft_layout_destroy(weft_layout **layout);
WEFT_API const char *weft_layout_text(const weft_layout *layout); /* canonical */

/* weft_layout_store - ZeRO: shard storage over the axes that split dim `dim` ("batch").
 *
 * stage   0: nothing; 1, 2: optimizer slots; 3: parameters as well
 * dim     a dim's name; weft_compile refuses one that no tensor has. Not looked at when stage is 0.
 * returns WEFT_USAGE for another stage or what is no name; the layout is then as it was
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_layout_store(weft_layout *layout, int stage,
                                                       const char *dim, weft_error *error);
WEFT_API int weft_layout_stage(const weft_layout *layout);
WEFT_API const char *weft_layout_store_dim(const weft_layout *layout); /* "" when stage is 0 */

/* weft_layout_check - every axis named without "?" exists in the mesh (WEFT_USAGE with the nearest name if not), and
 * every dim named, the one that shards storage too, is one of `dims` [n_dims] (the same). dims may be NULL: not
 * checked. */
WEFT_API WEFT_MUST_CHECK weft_status weft_layout_check(const weft_layout *layout,
                                                       const weft_mesh *mesh,
                                                       const char *const *dims, int n_dims,
                                                       weft_error *error);

/* weft_layout_spec - the compute spec of a tensor: rules in order, first wins; an axis that is taken in
 * this tensor already is skipped. An axis of one rank splits nothing, and is in no spec.
 *
 * skipped  [bytes] text "hidden: model is taken by vocab" for what was skipped, "" for nothing; may be NULL
 * returns  how many axes were skipped
 */
WEFT_API int weft_layout_spec(const weft_layout *layout, const weft_mesh *mesh,
                              const weft_shape *shape, weft_spec *spec, char *skipped,
                              size_t bytes);

/* weft_layout_skipped - the axes that weft_layout_spec skips, as data: the rule's dim, the axis it wanted, and the dim
 * that has it. Names are borrowed from the layout and the shape.
 *
 * skipped  [room] the first of them; may be NULL when room is 0
 * returns  how many there are
 */
typedef struct weft_skipped {
    const char *dim;
    int axis;
    const char *taken_by;
} weft_skipped;
WEFT_API int weft_layout_skipped(const weft_layout *layout, const weft_mesh *mesh,
                                 const weft_shape *shape, weft_skipped *skipped, int room);

/* weft_layout_storage - `compute` plus the storage axes (see weft_layout_store; the ones `compute` leaves
 * replicated), each innermost: on the largest dim that nothing splits, else on the largest dim.
 * A tensor without dims stays as it is. Ignores the stage. */
WEFT_API void weft_layout_storage(const weft_layout *layout, const weft_mesh *mesh,
                                  const weft_shape *shape, const weft_spec *compute,
                                  weft_spec *storage);

/* weft_layout_order - sort a set of axes into the order in which they split dim `dim`: the rules' order,
 * then the rest in the mesh's. order [n] out; returns n = number of bits in `axes`. */
WEFT_API int weft_layout_order(const weft_layout *layout, const weft_mesh *mesh, const char *dim,
                               uint32_t axes, int8_t *order);

/* ---- conversions ----------------------------------------------------------------------------- */

/* One step on the way from one spec to another. */
typedef enum weft_convert_kind {
    WEFT_SLICE,          /* R -> S: local                                             */
    WEFT_ALL_REDUCE,     /* P -> R, over all axes that end so                         */
    WEFT_REDUCE_SCATTER, /* P -> S, innermost, over all axes that end so              */
    WEFT_ALL_GATHER,     /* S -> R, innermost                                         */
    WEFT_ALL_TO_ALL,     /* S(d) -> S(e), innermost of both                           */
    WEFT_MOVE,           /* anything to anything; adds up where `from` is partial and `to` is not */
    WEFT_COUNT_ONCE,     /* R -> P, S -> P: local; coordinate 0 keeps what is replicated, each rank
                            its block of what is split, and the rest is the combine's identity */
    WEFT_BORDER,         /* to a dim that is split through a window: each gets what it lacks  */
    WEFT_CONVERTS
} weft_convert_kind;
WEFT_API const char *weft_convert_name(weft_convert_kind kind);

typedef struct weft_convert_step {
    weft_convert_kind kind;
    uint32_t axes; /* bit a: takes part; the ranks of weft_mesh_group(axes) exchange. 0: local */
    weft_spec from, to;
} weft_convert_step;

/* weft_convert_plan - the steps from one spec to another, cheapest first choice.
 *
 * Slices come first of all. A value that is partial over several axes is finished by one reduction over their set
 * (two where some axes split and others do not). Conversions to partial come last. Anything without a fast path is
 * one WEFT_MOVE. Over axes on which both are partial they have the same combine. One WEFT_BORDER leads to windows. It
 * communicates only along axes that split the value. A replicated value is cut in place, and a partial one is
 * finished first. From a dim with a window no conversion leads except to the same: boxes overlap, so an element would
 * come twice.
 * steps   [WEFT_MAX_CONVERT]
 * returns how many; 0 when the specs are equal; -1 when there is no way, or one of them is not valid for mesh and shape
 */
enum { WEFT_MAX_CONVERT = 2 * WEFT_MAX_AXES + 2 };
WEFT_API int weft_convert_plan(const weft_mesh *mesh, const weft_shape *shape,
                               const weft_spec *from, const weft_spec *to,
                               weft_convert_step *steps);

/* weft_move_sends - the piece, in global coordinates, that `source_rank` gives `destination_rank` in a step;
 * source == destination: what it keeps of its own (or its own summand). Any kind of step. Local.
 *
 * The one rule of the mover and of weft_convert_bytes: a destination asks all ranks of the group along axes that
 * `from` splits. It also asks along axes partial in `from` but not in `to` (each adds its summand). Along other axes
 * it asks only ranks with its own coordinate. Along axes partial in `to` but not in `from` a rank keeps its own
 * block, and a replicated value counts on coordinate 0. The pieces of one destination (of all along such axes
 * together) cover its box in `to` exactly once (once per summand); elsewhere is the combine's identity. returns
 * false, and an undefined piece, when there is nothing to give
 */
WEFT_API bool weft_move_sends(const weft_mesh *mesh, const weft_shape *shape,
                              const weft_convert_step *step, int source_rank, int destination_rank,
                              weft_box *piece);

/* weft_convert_bytes - the bytes a step sends as `rank` counts them, one definition for plan and measurement.
 * all_reduce: its box. all_gather: the gathered box (`to`). reduce_scatter: its box in `from`. all_to_all, move and
 * border: the part that goes to other ranks. slice and count_once: 0. */
WEFT_API int64_t weft_convert_bytes(const weft_mesh *mesh, const weft_shape *shape,
                                    weft_dtype dtype, const weft_convert_step *step, int rank);

/* weft_state_cost - seconds-free cost, in bytes through one rank's link, of changing one axis of `n` ranks
 * from state `from` to `to` (as weft_spec_state gives) for a tensor whose box, were this axis replicated,
 * has `bytes` bytes. R->S 0, S->R bytes (n-1)/n, S->S' bytes (n-1)/n/n, P->R 2 bytes (n-1)/n,
 * P->S bytes (n-1)/n, equal 0; R->P and S->P 0. */
WEFT_API double weft_state_cost(int from, int to, int n, double bytes);

WEFT_END

#endif
