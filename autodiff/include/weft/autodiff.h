/* autodiff.h: reverse-mode gradients, graph to graph.
 *
 *     weft_value grads[2];
 *     weft_gradients(loss, WEFT_VALUES(w1, w2), grads, 0);
 *
 * Gradients are values like any other, made of ops: take gradients of them again as you like. Several losses share
 * one forward pass: weft_gradients of each, and weft_add. Their common nodes are computed once, and random masks are
 * the same in all of them. A failed call leaves nothing in the graph but its error. All functions are Local.
 */
#ifndef WEFT_AUTODIFF_H
#define WEFT_AUTODIFF_H

#include "weft/graph.h"

WEFT_BEGIN

enum { WEFT_ZEROS_ALLOWED = 1 };

/* weft_gradients - d(sum of `of`'s elements) / d(each of `with_respect_to`).
 *
 * of       a float value; usually a scalar loss
 * gradients [with_respect_to.n_values] out: same dims and dtype as the variable (or any value) each belongs to
 * flags    WEFT_ZEROS_ALLOWED: a value that `of` does not depend on gets zeros; else that is the graph's error,
 *          and names both
 * returns  the first of them
 */
WEFT_API weft_value weft_gradients(weft_value of, weft_values with_respect_to,
                                   weft_value *gradients, int flags);
/* Of each example of a batch by itself: give each its own copy of the weight, and take the gradient of that.
 *
 *     weft_value each = weft_broadcast(w, batch);                       w [in, out]: [batch, in, out]
 *     weft_value y = weft_einsum(WEFT_DIMS(batch, out), x, each);      ... loss, summed over the batch
 *     weft_gradients(loss, WEFT_VALUES(each), &of_each, 0);            [batch, in, out]
 */
/* weft_gradients_seeded - d(sum over k of the elements of seeds[k] of[k]) / d(each of `with_respect_to`): a product of a
 * vector with the Jacobian. Seeds count as constants, whatever they were made from.
 *
 * of       [at least 1] float values
 * seeds    as many, each with its value's dims (in any order) and dtype; or none, which means ones
 */
WEFT_API weft_value weft_gradients_seeded(weft_values of, weft_values seeds,
                                          weft_values with_respect_to, weft_value *gradients,
                                          int flags);

/* weft_jacobian - d(each element of `of`) / d(each element of each of `with_respect_to`).
 *
 *     weft_value j;                                          y [batch:8, out:4] of w [in:3, out:4]
 *     weft_jacobian(y, WEFT_VALUES(w), WEFT_DIMS(batch, row), &j, 0);         [batch:8, row:4, in:3, out:4]
 *
 * of       a float value; of as many elements as a scan has trips, at most 2^20. No scan is on the way from `with_respect_to` to
 *          it (ctc_loss and recurrent layers are made of one): the rows are trips of one, from which no gradient leads back
 *          through another. A scalar may be of a scan
 * rows     its dims, in its order, by names that none of `with_respect_to` has
 * jacobians [with_respect_to.n_values] out: of the dims rows, then those of the value that each belongs to
 * flags    as of weft_gradients
 * returns  the first of them
 * cost     a walk back for each element of `of`, of one plan; the forward pass once
 */
WEFT_API weft_value weft_jacobian(weft_value of, weft_values with_respect_to, weft_shape rows,
                                  weft_value *jacobians, int flags);
/* weft_hessian_vector - products of the second derivatives of the sum of `of`'s elements with vectors: of all values in
 * `with_respect_to` together, so products[i] is the sum over k of d2 / d(value i) d(value k) vectors[k].
 *
 * vectors  as many as values, each with its value's dims (in any order) and dtype
 * products [with_respect_to.n_values] out: same dims and dtype as the values; zeros where there is no second derivative
 * flags    as of weft_gradients, for the first derivatives
 * returns  the first of them
 * cost     about two gradients
 * source   Pearlmutter 1994
 */
WEFT_API weft_value weft_hessian_vector(weft_value of, weft_values with_respect_to,
                                        weft_values vectors, weft_value *products, int flags);

/* weft_gradient_rule - a user's own gradient: build d(sum of dout out) / d(in[i]) and put it into din[i].
 *
 * in, out  as handed to weft_custom_gradient; dout has out's dims
 * din      [in.n_values] all invalid at the call; each to have in[i]'s dims (in any order) and dtype. One left
 * invalid
 *          gets no gradient.
 */
typedef void (*weft_gradient_rule)(void *argument, weft_values in, weft_value out, weft_value dout,
                                   weft_value *din);
/* weft_custom_gradient - `out` as it is, but with the gradients that `rule` builds.
 *
 * in       1 to 7 values: what gradients flow to. `out` itself, and what it was made from, gets none this way
 * rule     called once by each call of the functions above that comes along here, before it returns
 * argument handed to the rule, NULL for none; to live as long as gradients are taken
 * returns  what to use in the place of `out`
 */
WEFT_API weft_value weft_custom_gradient(weft_values in, weft_value out, weft_gradient_rule rule,
                                         void *argument);

/* weft_recompute_begin, weft_recompute_end - the values built between them are a *part*: they are not kept for the
 * backward pass, but computed there again, from the part's inputs.
 *
 *     for (int i = 0; i < n_blocks; i++)
 *         x = weft_recompute_end(block(i, weft_recompute_begin(x)));
 *
 * Numbers are the same, random ones too, up to the last digit of sums, where loops come to join other ops. A part may
 * read, and hand out, as many values as it likes; those that it hands out are kept. Parts may stand in parts: each
 * part around one computes its values once more. They may stand in the body of a scan, where the part begins and
 * ends. Scans may stand in a part: they are made again. Take a long scan as a scan over chunks, with a body that is a
 * part around a scan over the trips of a chunk. Then only the inputs of each chunk are kept, and the residuals of one
 * chunk's trips. Nothing is assigned in a part. weft_usage has what a part spares, and what it costs.
 *
 * begin    x as the part finds it: a value from before
 * end      of the innermost part that is open; returns `value`, which it has made */
WEFT_API weft_value weft_recompute_begin(weft_value x);
WEFT_API weft_value weft_recompute_end(weft_value value);

/* The trainable variables (not slots) that `of` depends on, in creation order. Returns how many there are; fills at
 * most `room` (variables NULL: none). 0, and the graph's error, when `of` is not a value. */
WEFT_API int weft_trainable(weft_value of, weft_value *variables, int room);

WEFT_END

#ifndef WEFT_NO_HERE
#include "weft/autodiff_here.h"
#endif

#endif
