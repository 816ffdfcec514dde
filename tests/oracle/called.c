/* called.c: a case of the table, built, run and described to its definition. */
#include "called.h"

#include <stdio.h>
#include <stdlib.h>

#include "test.h"

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

void called_check(weft_mesh *alone, const op_group *group, const op_case *what, weft_dtype dtype,
                  int extremes, const char *mixture,
                  bool (*is_right)(const called_result *result, char *text, size_t bytes))
{
    double *results[REFERENCE_OUT] = {0}, *arguments[WEFT_ORACLE_VALUES] = {0};
    char found[200] = "", text[900];
    weft_error error = {0};
    called c = called_build(what, dtype, weft_graph_create(CALLED_SEED), NULL);
    c.build.extremes = extremes;
    const bool has_run = called_run(alone, &c, results, arguments, &error) == WEFT_OK;
    bool right = has_run || weft_oracle_refuses(&error);
    if (has_run) {
        reference_call call = called_as(what, &c, arguments);
        group->reference(&call);
        right = is_right(&(called_result){what, dtype, &call, results}, found, sizeof found);
        called_free(&call);
    }
    snprintf(text, sizeof text, "%s of %s%s: %s%s", what->name, weft_dtype_name(dtype), mixture,
             found, error.message);
    weft_test_check(right, __FILE__, __LINE__, text);
    weft_graph_destroy(&c.build.graph);
    for (int o = 0; o < REFERENCE_OUT; o++)
        free(results[o]);
    for (int i = 0; i < WEFT_ORACLE_VALUES; i++)
        free(arguments[i]);
}
