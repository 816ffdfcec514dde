/* moments_finish: a state of moments_state made into two results: mean, and 1 / sqrt(variance +
 * number). */
#include "op.h"

const weft_op weft_op_moments_finish = {
    .name = "moments_finish",
    .attributes = &weft_attributes_number,
    .infer = weft_infer_finish_pair,
    .factors = weft_factors_pass,
    .row = &(const weft_row){.combine = WEFT_MOMENTS, .finish = weft_moments_finishes},
};
