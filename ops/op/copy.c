/* copy: y = x, bit by bit. Linear. Gradient: dx = dy. */
#include "op.h"
#include "same.h"

const weft_op weft_op_copy = {
    .name = "copy",
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .linear = 1,
    .selects = true,
    .gradient = weft_same_gradient,
};
