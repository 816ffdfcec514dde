/* oracle.c: fill, run, read and compare; see sweep.c for the walk over placements. */
#include "oracle.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 5 }; /* length of the summed dim of a partial operand: no axis divides it */

double weft_oracle_unit(int k, int64_t i)
{
    uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)(k + 1) * 0xD1B54A32D192ED03u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return (double)((x ^ (x >> 31)) >> 44) / 1048576.0;
}

/* Of the meshes with two ranks in this process the first has three lanes a rank, the next five, and so on. Others,
 * and who runs alone, have one: threads that far outnumber cores show no more, and take minutes. */
static int lanes_for(const weft_oracle *oracle, int n_ranks)
{
    static const int lanes[] = {3, 5};
    int n_before = 0;
    for (int i = 0; i < oracle->n_meshes; i++)
        n_before += weft_mesh_n_ranks(oracle->meshes[i]) == 2;
    if (oracle->world.n_processes > 1) return 0; /* as many as there are */
    return n_ranks == 2 ? lanes[n_before % 2] : 1;
}

weft_status weft_oracle_open(weft_oracle *oracle, const char *const *mesh_texts, int n,
                             weft_error *error)
{
    const weft_world single = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    *oracle = (weft_oracle){0};
    WEFT_TRY(weft_world_open(&oracle->world, error));
    weft_lanes_choose(1);
    WEFT_TRY(weft_mesh_create(&single, "data:1", &oracle->alone, error));
    for (int i = 0; i < n && oracle->n_meshes < 16; i++) {
        weft_mesh *plan = NULL;
        WEFT_TRY(weft_mesh_plan(mesh_texts[i], &plan, error));
        const int n_ranks = weft_mesh_n_ranks(plan);
        weft_mesh_destroy(&plan);
        if (oracle->world.n_processes > 1 && n_ranks != oracle->world.n_processes) continue;
        weft_lanes_choose(lanes_for(oracle, n_ranks));
        WEFT_TRY(weft_mesh_create(&oracle->world, mesh_texts[i], &oracle->meshes[oracle->n_meshes],
                                  error));
        oracle->n_meshes++;
    }
    weft_lanes_choose(0);
    return WEFT_OK;
}

void weft_oracle_close(weft_oracle *oracle)
{
    for (int i = 0; i < oracle->n_meshes; i++)
        weft_mesh_destroy(&oracle->meshes[i]);
    weft_mesh_destroy(&oracle->alone);
    weft_world_close();
}

weft_value weft_oracle_input(weft_oracle_build *build, weft_dtype dtype, weft_shape shape,
                             double low, double high)
{
    const int argument = build->n_arguments++;
    if (build->give != NULL)
        return build->arguments[argument] = build->give(build, dtype, shape, low, high);
    const int k = build->n_inputs++;
    const char *text = build->placing != NULL ? build->placing->inputs[k] : NULL;
    char name[16];
    snprintf(name, sizeof name, "in%d", k);
    build->low[k] = low, build->high[k] = high;
    if (build->first != NULL) {
        build->inputs[k] = build->first->inputs[k];
        return build->arguments[argument] = build->operands[k] = build->first->operands[k];
    }
    if (text != NULL && strstr(text, "part:") != NULL) {
        weft_shape whole = shape;
        whole.dims[whole.n_dims++] = (weft_dim){"part", PARTS};
        build->low[k] /= PARTS, build->high[k] /= PARTS; /* the sum stays in [low, high) */
        build->inputs[k] = weft_place(weft_input(build->graph, name, dtype, whole), text);
        build->operands[k] = weft_sum(shape, build->inputs[k]);
        return build->arguments[argument] = build->operands[k];
    }
    build->inputs[k] = weft_input(build->graph, name, dtype, shape);
    if (text != NULL) build->inputs[k] = weft_place(build->inputs[k], text);
    return build->arguments[argument] = build->operands[k] = build->inputs[k];
}

weft_value weft_oracle_made(weft_oracle_build *build, weft_value value)
{
    return build->arguments[build->n_arguments - 1] = value;
}

void weft_oracle_other(weft_oracle_build *build, weft_value value)
{
    build->others[build->n_others++] = value;
}

void weft_oracle_output(weft_oracle_build *build, weft_value value)
{
    const int k = build->n_outputs++;
    const char *text = build->placing != NULL ? build->placing->outputs[k] : NULL;
    build->outputs[k] = text != NULL ? weft_place(value, text) : value;
}

weft_status weft_oracle_write(weft_program *program, weft_value value, const double *data,
                              weft_error *error)
{
    const int64_t count = weft_shape_count(weft_shape_of(value));
    const weft_dtype dtype = weft_dtype_of(value);
    const size_t bytes = (size_t)count * weft_dtype_bytes(dtype);
    void *memory = malloc(bytes + 1);
    if (memory == NULL) return weft_fail_memory(error, bytes);
    for (int64_t i = 0; i < count; i++)
        weft_dtype_put(dtype, memory, i, data[i]);
    const weft_status status = weft_write(program, value, dtype, memory, (int64_t)bytes, error);
    free(memory);
    return status;
}

static double extreme(weft_dtype dtype, int kinds, double drawn)
{
    static const double of_f64[] = {0, 3e-320, 0x1p-1022, 0x1.8p512, 0x1.fp1023, INFINITY},
                        of_f32[] = {0, 3e-42, 0x1p-126, 0x1.8p64, 0x1.fp127, INFINITY},
                        of_bf16[] = {0, 0x1p-130, 0x1p-126, 0x1.8p64, 0x1.fp127, INFINITY},
                        of_f16[] = {0, 0x1p-22, 0x1p-14, 0x1.8p8, 0x1.fp15, INFINITY};
    static const double *const of[WEFT_DTYPES] = {
        [WEFT_F64] = of_f64, [WEFT_F32] = of_f32, [WEFT_BF16] = of_bf16, [WEFT_F16] = of_f16};
    int n = 0, kind[WEFT_ORACLE_EXTREMES];
    for (int e = 0; e < WEFT_ORACLE_EXTREMES; e++)
        if (kinds >> e & 1) kind[n++] = e;
    return of[dtype][kind[(int)(drawn * n)]];
}

double weft_oracle_element(const weft_oracle_build *build, int k, int64_t i)
{
    const weft_dtype dtype = weft_dtype_of(build->inputs[k]);
    const bool is_partial = build->inputs[k].id != build->operands[k].id;
    if (build->extremes != 0 && weft_dtype_is_float(dtype) && !is_partial &&
        weft_oracle_unit(60 + k, i) < 0.5) {
        const double sign = build->low[k] < 0 && weft_oracle_unit(80 + k, i) < 0.5 ? -1 : 1;
        return sign * extreme(dtype, build->extremes, weft_oracle_unit(70 + k, i));
    }
    const double x = build->low[k] + (build->high[k] - build->low[k]) * weft_oracle_unit(k, i);
    return weft_dtype_is_float(weft_dtype_of(build->inputs[k])) ? x : floor(x);
}

weft_status weft_oracle_fill(const weft_oracle_build *build, weft_program *program,
                             weft_error *error)
{
    for (int k = 0; k < build->n_inputs; k++) {
        if (build->inputs[k].id == 0) continue; /* a frozen program has no use for it */
        const int64_t count = weft_shape_count(weft_shape_of(build->inputs[k]));
        double *data = calloc((size_t)count + 1, sizeof *data);
        if (data == NULL) return weft_fail_memory(error, (size_t)count * sizeof *data);
        for (int64_t i = 0; i < count; i++)
            data[i] = weft_oracle_element(build, k, i);
        const weft_status status = weft_oracle_write(program, build->inputs[k], data, error);
        free(data);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

weft_status weft_oracle_read(weft_program *program, weft_value value, double **data,
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
        (*data)[i] = weft_dtype_get(dtype, memory, i);
    free(memory);
    if (status != WEFT_OK) {
        free(*data);
        *data = NULL;
    }
    return status;
}

static weft_status read_outputs(const weft_oracle_build *build, weft_program *program,
                                weft_oracle_result *result, weft_error *error)
{
    for (int k = 0; k < build->n_outputs; k++) {
        result->count[k] = weft_shape_count(weft_shape_of(build->outputs[k]));
        result->dtype[k] = weft_dtype_of(build->outputs[k]);
        WEFT_TRY(weft_oracle_read(program, build->outputs[k], &result->data[k], error));
        result->n_outputs++;
    }
    return WEFT_OK;
}

weft_status weft_oracle_run(weft_mesh *mesh, const weft_oracle_case *what,
                            const weft_oracle_placing *placing, weft_oracle_result *result,
                            weft_error *error)
{
    weft_oracle_build build = {.graph = weft_graph_create(77),
                               .argument = what->argument,
                               .placing = placing,
                               .extremes = what->extremes};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    *result = (weft_oracle_result){0};
    weft_status status = weft_layout_create(what->layout, &layout, error);
    if (status != WEFT_OK) goto done;
    what->build(&build);
    const weft_values values = {build.outputs, build.n_outputs};
    if ((status = weft_compile(mesh, layout, values, what->options, &program, error)) != WEFT_OK)
        goto done;
    if ((status = weft_oracle_fill(&build, program, error)) != WEFT_OK) goto done;
    if ((status = weft_run(program, error)) != WEFT_OK) goto done;
    status = read_outputs(&build, program, result, error);
done:
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&build.graph);
    if (status != WEFT_OK) weft_oracle_free(result);
    return status;
}

/* Ops that the device cuda has no kernel for yet, and NULL. */
static const char *const not_on_cuda[] = {NULL};

bool weft_oracle_lacks_on_cuda(const char *op)
{
    for (const char *const *name = not_on_cuda; *name != NULL; name++)
        if (strcmp(*name, op) == 0) return true;
    return false;
}

bool weft_oracle_refuses(const weft_error *error)
{
    char text[80];
    if (error->status == WEFT_OK || strstr(error->message, " on cuda") == NULL) return false;
    for (const char *const *name = not_on_cuda; *name != NULL; name++) {
        snprintf(text, sizeof text, "%s has no kernel ", *name);
        if (strstr(error->message, text) != NULL) return true;
    }
    return false;
}

void weft_oracle_free(weft_oracle_result *result)
{
    for (int k = 0; k < WEFT_ORACLE_VALUES; k++)
        free(result->data[k]);
    *result = (weft_oracle_result){0};
}

const double weft_oracle_tolerance[WEFT_DTYPES] = {
    [WEFT_F32] = 1e-5, [WEFT_F64] = 1e-11, [WEFT_BF16] = 2e-2, [WEFT_F16] = 2e-3};

bool weft_oracle_same(const weft_oracle_result *a, const weft_oracle_result *b, double least,
                      char *text, size_t bytes)
{
    snprintf(text, bytes, "%d and %d outputs", a->n_outputs, b->n_outputs);
    if (a->n_outputs != b->n_outputs) return false;
    for (int k = 0; k < a->n_outputs; k++) {
        const bool is_float = weft_dtype_is_float(a->dtype[k]);
        const double within = is_float ? fmax(least, weft_oracle_tolerance[a->dtype[k]]) : 0.0;
        double largest = 1e-3; /* inputs are near 1: below this, a result is what cancelling left */
        for (int64_t i = 0; i < a->count[k]; i++)
            if (isfinite(a->data[k][i])) largest = fmax(largest, fabs(a->data[k][i]));
        for (int64_t i = 0; i < a->count[k]; i++) {
            const double x = a->data[k][i], y = b->data[k][i];
            if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= within * largest) continue;
            snprintf(text, bytes,
                     "output %d of %d, element %lld of %lld: one rank has %.17g, the mesh %.17g", k,
                     a->n_outputs, (long long)i, (long long)a->count[k], x, y);
            return false;
        }
    }
    text[0] = '\0';
    return true;
}

bool weft_oracle_check(const weft_oracle *oracle, weft_mesh *mesh, const weft_oracle_case *what,
                       const weft_oracle_placing *placing)
{
    char found[600] = "", text[1000];
    weft_oracle_case plain = *what;
    weft_oracle_result expected = {0}, result = {0};
    weft_error error = {0};
    plain.layout = NULL, plain.options = NULL;
    bool same = false;
    if (weft_oracle_run(oracle->alone, &plain, NULL, &expected, &error) == WEFT_OK &&
        weft_oracle_run(mesh, what, placing, &result, &error) == WEFT_OK)
        same = weft_oracle_same(&expected, &result, what->within, found, sizeof found);
    snprintf(text, sizeof text, "%s on %s, layout \"%s\": %s%s", what->name, weft_mesh_text(mesh),
             what->layout != NULL ? what->layout : "", found, error.message);
    weft_test_check(same, __FILE__, __LINE__, text);
    weft_oracle_free(&expected);
    weft_oracle_free(&result);
    return same;
}
