/* input: a tensor that the host fills before each run. No kernel: the compiler knows it. */
#include <string.h>

#include "ir.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    (void)error;
    const weft_variable_attributes *attributes = site->attributes;
    site->n_out = 1;
    site->out[0] = attributes->type;
    return WEFT_OK;
}

const weft_op weft_op_input = {.name = "input",
                               .attributes = &weft_attributes_variable,
                               .infer = infer,
                               .factors = weft_factors_pass,
                               .is_outside = true};

weft_value weft_input(weft_graph *graph, const char *name, weft_dtype dtype, weft_shape shape)
{
    return weft_emit_home(graph, &weft_op_input, name, dtype, &shape, weft_constant_of(0.0));
}
