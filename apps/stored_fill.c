/* stored_fill: variables from a checkpoint on disk. See stored_fill.h. */
#include "stored_fill.h"

#include <stdlib.h>
#include <string.h>

#include "weft/collectives.h"

int app_stored_find(const weft_stored *stored, const char *name)
{
    for (int i = 0; i < weft_stored_n_tensors(stored); i++)
        if (strcmp(weft_stored_tensor_at(stored, i)->name, name) == 0) return i;
    return -1;
}

bool app_stored_fits(const weft_stored_tensor *t, weft_value variable)
{
    const weft_shape *shape = weft_shape_of(variable);
    const weft_dtype stored = weft_dtype_find(t->dtype), wanted = weft_dtype_of(variable);
    bool is_same =
        (stored == wanted || (weft_dtype_is_float(stored) && weft_dtype_is_float(wanted))) &&
        t->shape.n_dims == shape->n_dims;
    for (int d = 0; is_same && d < shape->n_dims; d++)
        is_same = t->shape.dims[d].size == shape->dims[d].size &&
                  strcmp(t->shape.dims[d].name, shape->dims[d].name) == 0;
    return is_same;
}

/* A model of another program may be stored in 16 bits. */
static void take_numbers(const weft_stored_tensor *t, const void *raw, weft_dtype dtype, void *to)
{
    const weft_dtype stored = weft_dtype_find(t->dtype);
    const int64_t count = weft_shape_count(&t->shape);
    if (stored == dtype)
        memcpy(to, raw, (size_t)t->bytes);
    else
        for (int64_t i = 0; i < count; i++)
            weft_dtype_put(dtype, to, i, weft_dtype_get(stored, raw, i));
}

weft_status app_stored_fill(const weft_stored *stored, int index, weft_program *program,
                            weft_value variable, weft_error *error)
{
    const weft_stored_tensor *t = weft_stored_tensor_at(stored, index);
    const weft_dtype dtype = weft_dtype_of(variable);
    const int64_t bytes = weft_shape_count(&t->shape) * (int64_t)weft_dtype_bytes(dtype);
    void *raw = malloc((size_t)t->bytes + 1), *buffer = malloc((size_t)bytes + 1);
    if (!raw || !buffer)
        (void)!weft_fail_memory(error, (size_t)(t->bytes + bytes));
    else if (weft_stored_read(stored, index, raw, error) == WEFT_OK)
        take_numbers(t, raw, dtype, buffer);
    weft_status status = weft_world_agree(error); /* all of them write it, or none */
    if (status == WEFT_OK) status = weft_write(program, variable, dtype, buffer, bytes, error);
    free(raw);
    free(buffer);
    return status;
}
