/* lse_finish: a state of lse_state made into the two results of normalizer: the maximum, and log(sum). */
#include "op.h"

const weft_op weft_op_lse_finish = {
    .name = "lse_finish",
    .infer = weft_infer_finish_pair,
    .factors = weft_factors_pass,
    .row = &(const weft_row){.combine = WEFT_LSE, .finish = weft_lse_finishes},
};
