/* check_case: one program around the builder that is checked: compiled, fed and run once.
 *
 * Operands are filled from a formula of (operand, global index), so they need no mesh. One that is a partial sum is an input
 * with one more dim, "part", of size 2, whose halves add up to it.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/autodiff.h"
#include "weft/ops.h"

typedef struct under_test {
    const weft_check *check;
    weft_dtype dtype;
    const weft_check_placing *placing;
    weft_graph *graph;
    weft_value in[WEFT_CHECK_IN];       /* what is written      */
    weft_value operands[WEFT_CHECK_IN]; /* what the op gets     */
    weft_value out, weights; /* its result, and what gradients are taken of is weights times it */
    weft_value gradients[WEFT_CHECK_IN];
} under_test;

double weft_check_unit(int k, int64_t i)
{
    uint64_t x = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)(k + 1) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 44) / 1048576.0;
}

double weft_check_element(const weft_check *check, int k, int64_t i)
{
    const weft_check_operand *operand = &check->in[k];
    const bool is_usual = operand->low == 0 && operand->high == 0;
    const double low = is_usual && !operand->is_i32 ? -1 : operand->low;
    const double high = is_usual ? (operand->is_i32 ? 4 : 1) : operand->high;
    const double x = low + (high - low) * weft_check_unit(k, i);
    return operand->is_i32 ? floor(x) : (double)(float)x;
}

weft_shape weft_check_shape(const weft_check *check, int k)
{
    return weft_shape_make(check->in[k].dims, check->in[k].n_dims);
}

static weft_dtype dtype_of(const under_test *t, int k)
{
    return t->check->in[k].is_i32 ? WEFT_I32 : t->dtype;
}

/* ---- building -------------------------------------------------------------------------------- */

static void build_operand(under_test *t, int k)
{
    char name[16];
    weft_shape shape = weft_check_shape(t->check, k), whole = shape;
    const bool is_part = t->placing->is_part[k];
    snprintf(name, sizeof name, "operand%d", k);
    if (is_part) shape.dims[shape.n_dims++] = (weft_dim){"part", 2};
    t->in[k] = weft_input(t->graph, name, dtype_of(t, k), shape);
    if (t->placing->in[k] != NULL) t->in[k] = weft_place(t->in[k], t->placing->in[k]);
    t->operands[k] = is_part ? weft_sum(whole, t->in[k]) : t->in[k];
}

static void build_gradients(under_test *t)
{
    weft_value wanted[WEFT_CHECK_IN], taken[WEFT_CHECK_IN];
    int n = 0;
    t->weights = weft_input(t->graph, "weights", t->dtype, *weft_shape_of(t->out));
    weft_value loss = weft_sum(WEFT_SCALAR, weft_mul(t->out, t->weights));
    for (int k = 0; k < t->check->n_in; k++)
        if (dtype_of(t, k) != WEFT_I32) wanted[n++] = t->operands[k];
    weft_gradients(loss, (weft_values){wanted, n}, taken, WEFT_ZEROS_ALLOWED);
    n = 0;
    for (int k = 0; k < t->check->n_in; k++)
        if (dtype_of(t, k) != WEFT_I32) t->gradients[k] = taken[n++];
}

static weft_status build(under_test *t, bool has_gradient, weft_error *error)
{
    for (int k = 0; k < t->check->n_in; k++)
        build_operand(t, k);
    t->out = t->check->build(t->graph, t->operands, t->check->argument);
    if (t->placing->out != NULL) t->out = weft_place(t->out, t->placing->out);
    const bool is_value = t->out.graph == t->graph && t->out.id != 0;
    if (has_gradient && is_value) build_gradients(t);
    const weft_error *its = weft_graph_error(t->graph);
    if (its->status != WEFT_OK) return weft_fail(error, its->status, "%s", its->message);
    if (is_value) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s: build returned no value", t->check->name);
}

/* ---- numbers in and out ---------------------------------------------------------------------- */

static void put(void *memory, weft_dtype dtype, int64_t i, double x)
{
    weft_dtype_put(dtype, memory, i, x);
}

static double get(const void *memory, weft_dtype dtype, int64_t i)
{
    return weft_dtype_get(dtype, memory, i);
}

/* Element i of what is written for operand k; of a partial one, two parts that add up exactly. */
static double written(const under_test *t, int k, int64_t i, const weft_check_change *moved)
{
    const bool is_part = t->placing->is_part[k];
    const int64_t at = is_part ? i / 2 : i;
    double x = weft_check_element(t->check, k, at);
    if (moved != NULL && moved->operand == k && moved->element == at) x += moved->by;
    if (!is_part) return x;
    const double half = (double)(float)(x * 0.5);
    return i % 2 == 0 ? half : x - half;
}

static weft_status write_value(weft_program *program, const under_test *t, int k, weft_value value,
                               const weft_check_change *moved, weft_error *error)
{
    const int64_t count = weft_shape_count(weft_shape_of(value));
    const weft_dtype dtype = weft_dtype_of(value);
    const size_t bytes = (size_t)count * weft_dtype_bytes(dtype);
    void *memory = malloc(bytes + 1);
    if (memory == NULL) return weft_fail_memory(error, bytes);
    for (int64_t i = 0; i < count; i++)
        put(memory, dtype, i,
            k == WEFT_CHECK_IN ? weft_check_unit(k, i) + 0.5 : written(t, k, i, moved));
    const weft_status status = weft_write(program, value, dtype, memory, (int64_t)bytes, error);
    free(memory);
    return status;
}

static weft_status read_value(weft_program *program, weft_value value, double **data,
                              weft_error *error)
{
    const int64_t count = weft_shape_count(weft_shape_of(value));
    const weft_dtype dtype = weft_dtype_of(value);
    const size_t bytes = (size_t)count * weft_dtype_bytes(dtype);
    void *memory = calloc(bytes + 1, 1);
    *data = calloc((size_t)count + 1, sizeof **data);
    weft_status status = memory == NULL || *data == NULL
                             ? weft_fail_memory(error, bytes)
                             : weft_read(program, value, dtype, memory, (int64_t)bytes, error);
    for (int64_t i = 0; status == WEFT_OK && i < count; i++)
        (*data)[i] = get(memory, dtype, i);
    free(memory);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static weft_status run_program(const under_test *t, weft_program *program,
                               const weft_check_change *moved, weft_check_result *result,
                               weft_error *error)
{
    for (int k = 0; k < t->check->n_in; k++)
        WEFT_TRY(write_value(program, t, k, t->in[k], moved, error));
    if (t->weights.id != 0)
        WEFT_TRY(write_value(program, t, WEFT_CHECK_IN, t->weights, NULL, error));
    WEFT_TRY(weft_run(program, error));
    result->shape = *weft_shape_of(t->out);
    result->count = weft_shape_count(&result->shape);
    result->dtype = weft_dtype_of(t->out);
    for (int d = 0; d < result->shape.n_dims; d++) { /* the graph ends here */
        snprintf(result->names[d], sizeof result->names[d], "%s", result->shape.dims[d].name);
        result->shape.dims[d].name = result->names[d];
    }
    WEFT_TRY(read_value(program, t->out, &result->data, error));
    for (int k = 0; k < t->check->n_in; k++)
        if (t->gradients[k].id != 0)
            WEFT_TRY(read_value(program, t->gradients[k], &result->gradient[k], error));
    return WEFT_OK;
}

static weft_status compile_and_run(weft_mesh *mesh, const under_test *t,
                                   const weft_check_change *moved, weft_check_result *result,
                                   weft_error *error)
{
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_value values[1 + WEFT_CHECK_IN] = {t->out};
    int n = 1;
    for (int k = 0; k < t->check->n_in; k++)
        if (t->gradients[k].id != 0) values[n++] = t->gradients[k];
    weft_status status = weft_layout_create(NULL, &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, (weft_values){values, n}, NULL, &program, error);
    if (status == WEFT_OK) status = run_program(t, program, moved, result, error);
    (void)weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    return status;
}

weft_status weft_check_run(weft_mesh *mesh, const weft_check *check, weft_dtype dtype,
                           const weft_check_placing *placing, const weft_check_change *moved,
                           bool has_gradient, weft_check_result *result, weft_error *error)
{
    under_test t = {.check = check, .dtype = dtype, .placing = placing};
    *result = (weft_check_result){0};
    t.graph = weft_graph_create(77);
    if (t.graph == NULL) return weft_fail_memory(error, sizeof t);
    weft_status status = build(&t, has_gradient, error);
    if (status == WEFT_OK) status = compile_and_run(mesh, &t, moved, result, error);
    (void)weft_graph_destroy(&t.graph);
    if (status != WEFT_OK) weft_check_free(result);
    return status;
}

void weft_check_free(weft_check_result *result)
{
    free(result->data);
    for (int k = 0; k < WEFT_CHECK_IN; k++)
        free(result->gradient[k]);
    *result = (weft_check_result){0};
}
