/* cumsum: element i of a dim is the sum of those before it, with its own or without; or of those behind it. Linear.
 *
 * The op itself runs along a dim that is whole. A long dim is in blocks: sums within each, sums of blocks, and one added to the
 * other. A kernel does all of that at once. Where the dim is split the op becomes these parts. Sums within blocks are cut by
 * any axis, and sums of blocks are needed by all ranks. So over ranks goes one slab for each block, and numbers do not depend on
 * the layout. Gradient: the same the other way round.
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

static const weft_cumulating sums = {&weft_op_cumsum, weft_add, {0}};

static void expand(weft_vjp *vjp)
{
    vjp->out[0] = weft_cumulate_by_blocks(&sums, vjp->in[0], vjp->site->attributes);
}

const weft_op weft_op_cumsum = {
    .name = "cumsum",
    .attributes = &weft_attributes_cumulate,
    .infer = weft_infer_cumulate,
    .factors = weft_factors_cumulate,
    .linear = 1,
    .gradient = gradient,
    .expand = expand,
    .is_apart = weft_cumulate_is_apart,
};

weft_value weft_cumsum(weft_value x, weft_dim dim, bool exclusive, bool reverse)
{
    return weft_cumulate(x, dim, exclusive, reverse, &sums);
}
