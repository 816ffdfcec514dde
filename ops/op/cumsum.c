/* cumsum: element i of a dim is the sum of those before it, with its own or without; or of those behind it. Linear.
 *
 * The op itself runs along a dim that is whole. The builder cuts a long dim into blocks. There are sums within each,
 * which any axis may cut, and sums of blocks, which all ranks need, and one is added to the other. So over ranks goes
 * one slab for each block, and numbers do not depend on the layout. Gradient: the same the other way round.
 */
#include <string.h>

#include "cumulate.h"
#include "weft/ops.h"

static void gradient(weft_vjp *vjp)
{
    weft_cumulate_attributes back = *(const weft_cumulate_attributes *)vjp->site->attributes;
    back.reverse = !back.reverse;
    vjp->din[0] = weft_emit(vjp->graph, &weft_op_cumsum, vjp->dout, 1, &back, sizeof back);
}

const weft_op weft_op_cumsum = {
    .name = "cumsum",
    .attributes = &weft_attributes_cumulate,
    .infer = weft_infer_cumulate,
    .factors = weft_factors_cumulate,
    .linear = 1,
    .gradient = gradient,
};

weft_value weft_cumsum(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    static const weft_cumulating sums = {&weft_op_cumsum, weft_add, {0}};
    return weft_cumulate(x, dim, exclusive, reverse, &sums);
}
