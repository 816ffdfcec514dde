/* program: rows that are a compiled graph: made ready, filled, run and looked at. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

/* ---- what a graph begins with ---------------------------------------------------------------- */

static weft_value filled(bench *b, weft_value value, double offset, double scale, int64_t n_indices)
{
    if (b->n_filled < BENCH_FILLED)
        b->filled[b->n_filled++] = (struct bench_filled){value, offset, scale, n_indices};
    return value;
}

static weft_value input(bench *b, weft_dtype dtype, weft_shape shape, int64_t n_indices)
{
    char name[16];
    snprintf(name, sizeof name, "input%d", b->n_filled);
    return filled(b, weft_input(b->graph, name, dtype, shape), 0.0, 1.0, n_indices);
}

weft_value bench_input_of(bench *b, weft_dtype dtype, weft_shape shape)
{
    return input(b, dtype, shape, 0);
}

weft_value bench_input(bench *b, weft_shape shape)
{
    return bench_input_of(b, WEFT_F32, shape);
}

weft_value bench_indices(bench *b, weft_shape shape, int64_t n)
{
    return input(b, WEFT_I32, shape, n);
}

weft_value bench_variable(bench *b, const char *name, weft_shape shape, weft_initial initial)
{
    const bool is_normal = initial.kind == WEFT_INITIAL_NORMAL;
    weft_value value = weft_variable(b->graph, name, WEFT_F32, shape, initial);
    return filled(b, value, initial.a, is_normal ? sqrt(3.0) * initial.b : 0.02, 0);
}

void bench_begins(bench *b, const char *name, double mean, double deviation)
{
    weft_error error = {0};
    (void)filled(b, weft_graph_find(b->graph, name, &error), mean, sqrt(3.0) * deviation, 0);
}

void bench_layer(bench *b, const char *name, double deviation)
{
    static const char *const parts[] = {"weight", "bias"};
    char full[64];
    for (int i = 0; i < 2; i++) {
        snprintf(full, sizeof full, "%s/%s", name, parts[i]);
        bench_begins(b, full, 0.0, deviation);
    }
}

static int64_t count_of(weft_value value)
{
    const weft_shape *shape = weft_shape_of(value);
    int64_t count = 1;
    for (int d = 0; d < shape->n_dims; d++)
        count *= shape->dims[d].size;
    return count;
}

/* To the nearest, of two that are as near the even one; numbers that are finite. */
static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float float_of(const void *data, weft_dtype dtype, int64_t i)
{
    if (dtype == WEFT_I32) return (float)((const int32_t *)data)[i];
    if (dtype != WEFT_BF16) return ((const float *)data)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void begin_with(const struct bench_filled *f, int stream, int64_t i, void *data)
{
    if (f->n_indices > 0) {
        ((int32_t *)data)[i] = bench_index((uint32_t)stream, (uint64_t)i, f->n_indices);
        return;
    }
    const double number = bench_number((uint32_t)stream, (uint64_t)i);
    const float x = (float)(f->offset + f->scale * number);
    if (weft_dtype_of(f->value) == WEFT_BF16)
        ((uint16_t *)data)[i] = bf16_of(x);
    else
        ((float *)data)[i] = x;
}

static weft_status fill(bench *b, int stream, weft_error *error)
{
    const struct bench_filled *f = &b->filled[stream];
    const weft_dtype dtype = weft_dtype_of(f->value);
    const int64_t count = count_of(f->value), bytes = count * (int64_t)weft_dtype_bytes(dtype);
    void *data = malloc((size_t)bytes);
    if (data == NULL) return WEFT_MEMORY;
    for (int64_t i = 0; i < count; i++)
        begin_with(f, stream, i, data);
    weft_status status = weft_write(b->program, f->value, dtype, data, bytes, error);
    free(data);
    return status;
}

/* Only inputs, where variables begin as the model says. */
static weft_status fill_all(bench *b, weft_error *error)
{
    for (int i = 0; i < b->n_filled; i++) {
        const bool is_input = b->filled[i].n_indices > 0;
        if (b->is_random && !is_input) continue;
        WEFT_TRY(fill(b, i, error));
    }
    return WEFT_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static weft_status open_mesh(bench *b, weft_error *error)
{
    if (b->is_dry) return weft_mesh_plan(b->mesh_text, &b->mesh, error);
    return weft_mesh_create(&b->world, b->mesh_text, &b->mesh, error);
}

static weft_status open_program(bench *b, weft_error *error)
{
    b->graph = weft_graph_create(1);
    b->n_filled = 0;
    b->n_looked = 0;
    memset(b->values, 0, sizeof b->values);
    b->row->build(b);
    int n = 1;
    while (n < BENCH_VALUES && b->values[n].graph != NULL)
        n++;
    const weft_values values = {b->values, n};
    WEFT_TRY(open_mesh(b, error));
    WEFT_TRY(weft_layout_create(b->layout_text, &b->layout, error));
    WEFT_TRY(weft_layout_store(b->layout, b->zero, "batch", error));
    const weft_compile_options options = {.precision = b->precision};
    WEFT_TRY(weft_compile(b->mesh, b->layout, values, &options, &b->program, error));
    return b->is_dry ? WEFT_OK : fill_all(b, error);
}

static void close_program(bench *b)
{
    weft_program_destroy(&b->program);
    weft_graph_destroy(&b->graph);
    weft_layout_destroy(&b->layout);
    weft_mesh_destroy(&b->mesh);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static weft_status run_op(bench *b, int64_t calls, weft_error *error)
{
    for (int64_t i = 0; i < calls; i++)
        WEFT_TRY(weft_run(b->program, error));
    return WEFT_OK;
}

static weft_status look_at_value(bench *b, weft_value value, double *numbers, weft_error *error)
{
    const weft_dtype dtype = weft_dtype_of(value);
    const int64_t count = count_of(value), bytes = count * (int64_t)weft_dtype_bytes(dtype);
    void *data = malloc((size_t)bytes);
    float *floats = malloc((size_t)count * sizeof *floats);
    weft_status status = data != NULL && floats != NULL ? WEFT_OK : WEFT_MEMORY;
    if (status == WEFT_OK) status = weft_read(b->program, value, dtype, data, bytes, error);
    for (int64_t i = 0; i < count && status == WEFT_OK; i++)
        floats[i] = float_of(data, dtype, i);
    if (status == WEFT_OK) bench_sums(floats, count, numbers);
    free(floats);
    free(data);
    return status;
}

static weft_status look_at_op(bench *b, int64_t steps, double *numbers, int *n, weft_error *error)
{
    WEFT_TRY(run_op(b, steps, error));
    *n = 0;
    for (int i = 0; i == 0 || i < b->n_looked; i++, *n += 2)
        WEFT_TRY(look_at_value(b, b->values[i], numbers + *n, error));
    return WEFT_OK;
}

const bench_kind bench_op = {open_program, run_op, look_at_op, close_program};

/* ---- trainings ------------------------------------------------------------------------------- */

static weft_status step(bench *b, double *loss, weft_error *error)
{
    WEFT_TRY(weft_run(b->program, error));
    return weft_read_scalar(b->program, b->values[0], loss, error);
}

static weft_status run_training(bench *b, int64_t calls, weft_error *error)
{
    double loss;
    for (int64_t i = 0; i < calls; i++)
        WEFT_TRY(step(b, &loss, error));
    return WEFT_OK;
}

static weft_status look_at_training(bench *b, int64_t steps, double *numbers, int *n,
                                    weft_error *error)
{
    for (*n = 0; *n < steps && *n < BENCH_NUMBERS; ++*n)
        WEFT_TRY(step(b, &numbers[*n], error));
    return WEFT_OK;
}

const bench_kind bench_training = {open_program, run_training, look_at_training, close_program};
