/* moments_state: over one dim, count, mean and sum of squared deviations (M2).
 *
 * Its last dim "~" holds the numbers of a state. States of parts combine, so a split dim needs
 * nothing special.
 */
#include "op.h"

static double flops(const weft_site *site)
{
    return 4.0 * weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_moments_state = {
    .name = "moments_state",
    .attributes = &weft_attributes_reduced,
    .infer = weft_infer_reduce,
    .factors = weft_factors_reduce,
    .flops = flops,
    .row = &(const weft_row){.combine = WEFT_MOMENTS},
};
