/* served: inputs and outputs of a program, and the memory of a step. */
#include "served.h"

#include <stdlib.h>
#include <string.h>

#include "apart.h"

enum { LINE_UP = 64 };

/* ---- what there is ------------------------------------------------------------------------------ */

static void describe(served_tensor *t, weft_value value, const char *name)
{
    *t = (served_tensor){
        .value = value, .dtype = weft_dtype_of(value), .shape = weft_shape_of(value)};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->bytes = t->row_bytes = weft_shape_count(t->shape) * (int64_t)weft_dtype_bytes(t->dtype);
}

static weft_status find_inputs(served_facts *f, const opened *o,
                               bool (*is_fixed)(const settings *s, const char *name),
                               weft_error *error)
{
    const weft_values all = o->saved->inputs;
    f->inputs = calloc((size_t)all.n_values + 1, sizeof *f->inputs);
    if (f->inputs == NULL) return weft_fail_memory(error, sizeof *f->inputs);
    for (int i = 0; i < all.n_values; i++) {
        const char *name = weft_name_of(all.values[i]);
        if (weft_find_input(o->program, name).id == 0 || is_fixed(o->s, name)) continue;
        describe(&f->inputs[f->n_inputs++], all.values[i], name);
    }
    return WEFT_OK;
}

static weft_status find_outputs(served_facts *f, const opened *o, weft_error *error)
{
    opened_output *all = NULL;
    int n = 0;
    WEFT_TRY(opened_outputs(o->saved, &all, &n, error));
    f->outputs = calloc((size_t)n + 1, sizeof *f->outputs);
    for (int i = 0; f->outputs && i < n; i++)
        describe(&f->outputs[f->n_outputs++], all[i].value, all[i].name);
    free(all);
    return f->outputs ? WEFT_OK : weft_fail_memory(error, sizeof *f->outputs);
}

static weft_status check(const served_facts *f, const opened *o, weft_error *error)
{
    if (f->n_outputs < o->saved->outputs.n_values)
        return weft_fail(error, WEFT_USAGE,
                         "%.300s trains: it has updates of variables, which every request would "
                         "carry out; save what is to be served with is_frozen (docs/saved.md)",
                         o->path);
    return WEFT_OK;
}

/* ---- rows --------------------------------------------------------------------------------------- */

static int64_t rows_of(const served_tensor *t)
{
    const weft_shape *shape = t->shape;
    return shape->n_dims > 0 && strcmp(shape->dims[0].name, "batch") == 0 ? shape->dims[0].size : 0;
}

static void give_rows(served_tensor *tensors, int n, int64_t rows)
{
    for (int i = 0; i < n; i++) {
        tensors[i].has_rows = rows_of(&tensors[i]) == rows;
        if (tensors[i].has_rows) tensors[i].row_bytes = tensors[i].bytes / rows;
    }
}

static void find_rows(served_facts *f, const opened *o)
{
    int64_t rows = f->n_outputs > 0 ? rows_of(&f->outputs[0]) : 0;
    bool any = false, all = true;
    for (int i = 0; i < f->n_outputs; i++)
        if (rows_of(&f->outputs[i]) != rows) rows = 0;
    for (int i = 0; i < f->n_inputs; i++) {
        const int64_t own = rows_of(&f->inputs[i]);
        any = any || own == rows;
        all = all && own == rows;
    }
    if (rows == 0 || !any || !rows_are_apart(o->saved->outputs, rows)) return;
    f->rows = rows;
    f->is_joined = all;
    give_rows(f->inputs, f->n_inputs, rows);
    give_rows(f->outputs, f->n_outputs, rows);
    const served_tensor *ids = f->inputs, *vectors = f->outputs;
    f->has_vectors = all && f->n_inputs == 1 && f->n_outputs == 1 && ids->shape->n_dims == 2 &&
                     vectors->shape->n_dims == 2 && !weft_dtype_is_float(ids->dtype) &&
                     weft_dtype_is_float(vectors->dtype);
}

/* ---- memory ------------------------------------------------------------------------------------- */

static int64_t lay_out(served_tensor *tensors, int n, unsigned char *memory)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        if (memory) tensors[i].numbers = memory + at;
        at += (tensors[i].bytes + LINE_UP - 1) / LINE_UP * LINE_UP;
    }
    return at;
}

static weft_status take_memory(served_facts *f, weft_error *error)
{
    f->in_bytes = lay_out(f->inputs, f->n_inputs, NULL);
    f->out_bytes = lay_out(f->outputs, f->n_outputs, NULL);
    const size_t bytes = (size_t)(f->in_bytes + f->out_bytes);
    f->memory = calloc(1, bytes + 1);
    if (f->memory == NULL) return weft_fail_memory(error, bytes);
    (void)lay_out(f->inputs, f->n_inputs, f->memory);
    (void)lay_out(f->outputs, f->n_outputs, f->memory + f->in_bytes);
    return WEFT_OK;
}

/* ---- life --------------------------------------------------------------------------------------- */

weft_status served_open(served_facts *f, const opened *o,
                        bool (*is_fixed)(const settings *s, const char *name), weft_error *error)
{
    *f = (served_facts){.rows = 0};
    WEFT_TRY(find_inputs(f, o, is_fixed, error));
    WEFT_TRY(find_outputs(f, o, error));
    WEFT_TRY(check(f, o, error));
    find_rows(f, o);
    return take_memory(f, error);
}

void served_close(served_facts *f)
{
    free(f->inputs);
    free(f->outputs);
    free(f->memory);
    *f = (served_facts){.rows = 0};
}

void served_print(const served_tensor *tensors, int n, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n && used + 1 < bytes; i++) {
        char shape[256];
        weft_shape_print(tensors[i].shape, shape, sizeof shape);
        used += (size_t)snprintf(text + used, bytes - used, "%s%.80s %s%s", i == 0 ? "" : ", ",
                                 tensors[i].name, weft_dtype_name(tensors[i].dtype), shape);
    }
}

void served_count(FILE *file, const void *facts)
{
    const served_facts *f = facts;
    serve_count(file, "steps_total", "counter", "Runs of the program.", f->n_steps);
    serve_count(file, "rows_total", "counter", "Rows of requests in these.", f->n_rows);
    serve_count_times(file, "step_seconds", "One run, its inputs and outputs.", &f->step_times);
}
