/* softsign: y = x / (1 + |x|), element by element: one expression; the compiler fuses it like any other. */
#include "tables.h"

#include <weft/extend/element.h>
#include <weft/ops.h>

WEFT_ELEMENT_1(x / (1 + (x < 0 ? -x : x)))

/* dy/dx = (1 - |y|)^2, read off y */
static void gradient(weft_vjp *vjp)
{
    weft_value y = vjp->out[0], size = weft_maximum(y, weft_neg(y));
    vjp->din[0] = weft_mul(vjp->dout[0], weft_square(weft_shift(weft_neg(size), 1.0)));
}

const weft_op plugin_op_softsign = {
    .size = sizeof(weft_op),
    .name = "softsign",
    .version = 1,
    .infer = weft_infer_same,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value plugin_softsign(weft_value x)
{
    return weft_emit_element(&plugin_op_softsign, &x, 1, 0.0, 0.0);
}
