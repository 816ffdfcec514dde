/* argmax_finish: a state of argmax_state made into the index, as i32. */
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_infer_finish(site, error));
    site->out[0].dtype = WEFT_I32;
    return WEFT_OK;
}

const weft_op weft_op_argmax_finish = {
    .name = "argmax_finish",
    .infer = infer,
    .factors = weft_factors_pass,
    .row = &(const weft_row){.combine = WEFT_ARGMAX, .finish = weft_argmax_finishes},
};
