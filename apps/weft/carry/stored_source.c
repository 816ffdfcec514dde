/* stored_source: a checkpoint as a source: what it holds, by our own names, in any order. */
#include <stdlib.h>
#include <string.h>

#include "carry.h"
#include "weft/arena.h"
#include "weft/name.h"

typedef struct stored_file {
    const weft_stored *stored;
    weft_arena *arena; /* of dims */
} stored_file;

static weft_status read_tensor(source *from, int i, void *buffer, weft_error *error)
{
    const stored_file *f = from->file;
    return weft_stored_read(f->stored, i, buffer, error);
}

static void close_stored(source *from)
{
    stored_file *f = from->file;
    if (f) weft_arena_destroy(&f->arena);
    free(f);
    free(from->tensors);
    *from = (source){0};
}

/* "heads kv embed" */
static weft_status set_tensor(const stored_file *f, const weft_stored_tensor *t, carried *c,
                              weft_error *error)
{
    char dims[WEFT_MAX_DIMS * (WEFT_MAX_NAME + 1) + 1] = "";
    *c = (carried){.name = t->name,
                   .dtype = weft_dtype_find(t->dtype),
                   .n_dims = t->shape.n_dims,
                   .is_slot = t->is_slot};
    for (int d = 0; d < t->shape.n_dims; d++) {
        const size_t used = strlen(dims);
        snprintf(dims + used, sizeof dims - used, "%s%s", d > 0 ? " " : "", t->shape.dims[d].name);
        c->sizes[d] = t->shape.dims[d].size;
    }
    c->dims = weft_arena_text(f->arena, "%s", dims);
    return c->dims ? WEFT_OK : weft_fail_memory(error, sizeof dims);
}

weft_status carry_stored_source(const weft_stored *stored, source *from, weft_error *error)
{
    const int n = weft_stored_n_tensors(stored);
    weft_checkpoint_state state;
    stored_file *f = calloc(1, sizeof *f);
    weft_stored_state(stored, &state);
    *from = (source){.path = weft_stored_path(stored),
                     .separators = " ",
                     .knows_slots = true,
                     .step = state.step,
                     .sample = state.sample,
                     .seed = state.seed,
                     .data = weft_stored_data(stored),
                     .tensors = calloc((size_t)n + 1, sizeof *from->tensors),
                     .file = f,
                     .read = read_tensor,
                     .close = close_stored};
    if (f) *f = (stored_file){stored, weft_arena_create()};
    weft_status status =
        f && f->arena && from->tensors ? WEFT_OK : weft_fail_memory(error, (size_t)n);
    for (; status == WEFT_OK && from->n_tensors < n; from->n_tensors++)
        status = set_tensor(f, weft_stored_tensor_at(stored, from->n_tensors),
                            &from->tensors[from->n_tensors], error);
    if (status != WEFT_OK) close_stored(from);
    return status;
}
