/* argmax_state: over one dim, the largest value and its global index.
 *
 * Its last dim "~" holds the numbers of a state. States of parts combine, so a split dim needs
 * nothing special.
 */
#include "op.h"

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_argmax_state = {
    .name = "argmax_state",
    .attributes = &weft_attributes_reduced,
    .infer = weft_infer_reduce,
    .factors = weft_factors_reduce,
    .flops = flops,
    .row = &(const weft_row){.combine = WEFT_ARGMAX},
};
