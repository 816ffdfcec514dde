/* moments_finish: a state of moments_state made into two results: mean, and 1 / sqrt(variance +
 * number). */
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_infer_finish(site, error));
    site->out[site->n_out++] = site->out[0];
    return WEFT_OK;
}

const weft_op weft_op_moments_finish = {
    .name = "moments_finish",
    .attributes = &weft_attributes_number,
    .infer = infer,
    .factors = weft_factors_pass,
    .row = &(const weft_row){.combine = WEFT_MOMENTS, .finish = weft_moments_finishes},
};
