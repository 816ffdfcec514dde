/* called.c: a case of the table, built, run and described to its definition. */
#include "called.h"

#include <stdlib.h>

called called_build(const op_case *what, weft_dtype dtype, weft_graph *graph,
                    const weft_oracle_build *first)
{
    called c = {.build = {.graph = graph, .first = first}, .n_results = 1};
    c.results[0] = what->build(&c.build, dtype);
    for (int k = 0; k < c.build.n_others; k++)
        c.results[c.n_results++] = c.build.others[k];
    return c;
}

weft_status called_run(weft_mesh *alone, const called *c, double **results, double **arguments,
                       weft_error *error)
{
    weft_value wanted[REFERENCE_OUT + WEFT_ORACLE_VALUES];
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    int n = 0;
    for (int o = 0; o < c->n_results; o++)
        wanted[n++] = c->results[o];
    for (int i = 0; i < c->build.n_arguments; i++)
        wanted[n++] = c->build.arguments[i];
    weft_status status = weft_layout_create(NULL, &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(alone, layout, (weft_values){wanted, n}, NULL, &program, error);
    if (status == WEFT_OK) status = weft_oracle_fill(&c->build, program, error);
    if (status == WEFT_OK) status = weft_run(program, error);
    for (int o = 0; o < c->n_results && status == WEFT_OK; o++)
        status = weft_oracle_read(program, c->results[o], &results[o], error);
    for (int i = 0; i < c->build.n_arguments && status == WEFT_OK; i++)
        status = weft_oracle_read(program, c->build.arguments[i], &arguments[i], error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    return status;
}

static reference_tensor tensor_like(weft_value value, double *data)
{
    return (reference_tensor){weft_dtype_of(value), *weft_shape_of(value), data};
}

double *called_zeros(weft_value value)
{
    double *zeros = calloc((size_t)weft_shape_count(weft_shape_of(value)) + 1, sizeof *zeros);
    if (zeros == NULL) exit(2);
    return zeros;
}

reference_call called_as(const op_case *what, const called *c, double *const *arguments)
{
    reference_call call = {.n_in = c->build.n_arguments,
                           .n_out = c->n_results,
                           .with = what->with,
                           .seed = CALLED_SEED,
                           .run = 1};
    for (int i = 0; i < call.n_in; i++)
        call.in[i] = tensor_like(c->build.arguments[i], arguments[i]);
    for (int o = 0; o < call.n_out; o++)
        call.out[o] = tensor_like(c->results[o], called_zeros(c->results[o]));
    return call;
}

void called_free(reference_call *call)
{
    for (int o = 0; o < call->n_out; o++)
        free(call->out[o].data);
}
