/* reference.h: what every op means, in scalar arithmetic: one function an op, straight from the mathematics.
 *
 *     void reference_rename(const reference_call *call)
 *     {
 *         REFERENCE_EACH(p, &call->in[0])
 *         {
 *             const reference_point to = point_named(&p, call->with.dim, call->with.other);
 *             element_put(&call->out[0], &to, element_get(&call->in[0], &p));
 *         }
 *     }
 *
 * An element is found by the coordinates of its dims' names: there are no strides here, no blocks, no order of dims, and
 * nothing of the op's own expression or kernel. Numbers are doubles (of f32 and i32 tensors too), sums long doubles.
 */
#ifndef WEFT_REFERENCE_H
#define WEFT_REFERENCE_H

#include "weft/dtype.h"
#include "weft/layout.h"

enum { REFERENCE_IN = 8, REFERENCE_OUT = 4 };

typedef struct reference_tensor {
    weft_dtype dtype;
    weft_shape shape;
    double *data; /* [count], row-major */
} reference_tensor;

/* Element (stride o + dilation t + offset) / over of x's dim goes with o of the result's and t of the other operand's. */
typedef struct reference_window {
    const char *x, *w, *y;
    int64_t stride, dilation, offset, over, taps;
} reference_window;

/* What a call says beside its operands; stated by its case, never read off the op's attributes. */
typedef struct reference_with {
    double a, b; /* its numbers */
    const char *dim, *other, *feature, *column;
    int64_t begin, window;
    bool causal;
    int bias, mask, class_weights, row_weights; /* which operands they are; 0: none */
    int n_windows;
    reference_window windows[3];
    uint32_t stream; /* a random op's number in its graph, from 1 */
} reference_with;

typedef struct reference_call {
    int n_in, n_out;
    reference_tensor in[REFERENCE_IN], out[REFERENCE_OUT]; /* out: zeros, to be filled */
    reference_with with;
    uint64_t seed;
    uint32_t run; /* from 1 */
} reference_call;

typedef void (*reference)(const reference_call *call);

/* Of every op; one that is missing does not link. */
#define WEFT_OP(op) void reference_##op(const reference_call *call);
#include "op/op_list.inc"
#undef WEFT_OP
#define COMPOSITION(op) void reference_##op(const reference_call *call);
#include "compositions.inc"
#undef COMPOSITION

/* ---- points ---------------------------------------------------------------------------------- */

enum { REFERENCE_NAMES = 24 };
typedef struct reference_point { /* a coordinate for each of some names */
    int n, n_fixed;
    bool done;
    const char *name[REFERENCE_NAMES];
    int64_t size[REFERENCE_NAMES], at[REFERENCE_NAMES];
} reference_point;

/* All points over the dims of the tensors; _IN: those that also have the coordinates of `row`. */
#define REFERENCE_EACH(p, ...) REFERENCE_EACH_IN(p, &(reference_point){0}, __VA_ARGS__)
#define REFERENCE_EACH_IN(p, row, ...)                                                             \
    for (reference_point p =                                                                       \
             point_first(row, (const reference_tensor *const[]){__VA_ARGS__, NULL});               \
         !p.done; point_next(&p))
reference_point point_first(const reference_point *row, const reference_tensor *const *tensors);
void point_next(reference_point *p);

int64_t point_at(const reference_point *p, const char *name);
/* p with another coordinate, or with one more; without one; with one under another name. */
reference_point point_set(const reference_point *p, const char *name, int64_t at);
reference_point point_without(const reference_point *p, const char *name);
reference_point point_named(const reference_point *p, const char *from, const char *to);

/* ---- elements -------------------------------------------------------------------------------- */

int64_t element_index(const reference_tensor *x, const reference_point *p); /* row-major */
int64_t tensor_size(const reference_tensor *x, const char *name);           /* 0: no such dim */
long double element_get(const reference_tensor *x, const reference_point *p);
/* Rounded to the tensor's dtype where that is an integer: towards 0, then modulo what it holds. */
void element_put(const reference_tensor *x, const reference_point *p, long double value);
void element_add(const reference_tensor *x, const reference_point *p, long double value);

/* ---- rows ------------------------------------------------------------------------------------- */

/* Of x's elements over the dims that `row` has not; m2: the sum of the squares of what is apart from the mean. */
typedef struct moments {
    long double count, mean, m2;
} moments;
moments moments_of(const reference_tensor *x, const reference_point *row);

#endif
