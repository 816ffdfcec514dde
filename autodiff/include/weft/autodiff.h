/* autodiff.h: reverse-mode gradients, graph to graph.
 *
 *     weft_value grads[2];
 *     weft_gradients(loss, WEFT_VALUES(w1, w2), grads, 0);
 *
 * Gradients are values like any other, made of ops: take gradients of them again as you like.
 */
#ifndef WEFT_AUTODIFF_H
#define WEFT_AUTODIFF_H

#include "weft/graph.h"

WEFT_BEGIN

enum { WEFT_ZEROS_ALLOWED = 1 };

/* weft_gradients - d(sum of `of`'s elements) / d(each of `with_respect_to`). Local.
 *
 * of       a float value; usually a scalar loss
 * gradients [with_respect_to.n_values] out: same dims and dtype as the variable (or any value) each belongs to
 * flags    WEFT_ZEROS_ALLOWED: a value that `of` does not depend on gets zeros; else that is the graph's error,
 *          and names both
 */
WEFT_API void weft_gradients(weft_value of, weft_values with_respect_to, weft_value *gradients,
                             int flags);
/* The trainable variables (not slots) that `of` depends on, in creation order. Returns how many there are; fills at
 * most `room`. */
WEFT_API int weft_trainable(weft_value of, weft_value *variables, int room);

WEFT_END

#endif
