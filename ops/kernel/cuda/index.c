/* index: gather, pick, scatter_add, scatter_max and unpick on the device cuda. */
#include "images.h"
#include "kernels.h"

#include "weft/arena.h"

static cuda_kernel gathers[] = {
    {"gather_1", NULL}, {"gather_2", NULL}, {"gather_4", NULL}, {"gather_8", NULL}};
enum { N_GATHERS = sizeof gathers / sizeof *gathers };
static cuda_kernel scatters[WEFT_DTYPES] = {[WEFT_F32] = {"scatter_f32", NULL},
                                            [WEFT_F64] = {"scatter_f64", NULL},
                                            [WEFT_I32] = {"scatter_i32", NULL},
                                            [WEFT_I64] = {"scatter_i64", NULL}};

static cuda_kernel tops[WEFT_DTYPES] = {[WEFT_F32] = {"scatter_max_f32", NULL},
                                        [WEFT_F64] = {"scatter_max_f64", NULL},
                                        [WEFT_I32] = {"scatter_max_i32", NULL},
                                        [WEFT_I64] = {"scatter_max_i64", NULL}};

static weft_status plan(const weft_call *call, const weft_view *table, const weft_view *rows,
                        weft_arena *arena, void **prepared, weft_error *error)
{
    const weft_dim_attributes *attributes = call->attributes;
    const weft_view *ids = &call->in[1];
    const int along = weft_shape_find(&table->shape, attributes->dim);
    cuda_indexing *x = *prepared = weft_arena_take(arena, sizeof *x);
    if (x == NULL) return weft_fail_memory(error, sizeof *x);
    *x = (cuda_indexing){.id = ids->data, .table = table->data, .rows = rows->data};
    x->n_ids = x->n_rest = 1;
    if (along >= 0) {
        x->first = table->box.begin[along], x->end = table->box.end[along];
        x->step = cuda_stride_of(table, attributes->dim);
    }
    for (int d = 0; d < rows->shape.n_dims; d++) {
        const char *name = rows->shape.dims[d].name;
        const bool is_of_ids = weft_shape_find(&ids->shape, name) >= 0;
        cuda_nest_add(is_of_ids ? &x->ids : &x->rest, weft_view_size(rows, d),
                      cuda_stride_of(ids, name), cuda_stride_of(table, name),
                      cuda_stride_of(rows, name));
        *(is_of_ids ? &x->n_ids : &x->n_rest) *= weft_view_size(rows, d);
    }
    return WEFT_OK;
}

/* ---- gather, pick ------------------------------------------------------------------------------ */

static weft_status prepare_gather(const weft_call *call, weft_arena *arena, void **prepared,
                                  weft_error *error)
{
    return plan(call, &call->in[0], &call->out[0], arena, prepared, error);
}

static void launch_gather(const weft_call *call)
{
    const cuda_indexing *x = call->prepared;
    int k = 0;
    while ((size_t)1 << k < weft_dtype_bytes(call->in[0].dtype))
        k++;
    cuda_launch(call->stream, WEFT_COMPUTE, &gathers[k], x->n_ids * x->n_rest, x);
}

/* ---- scatter_add ------------------------------------------------------------------------------- */

/* As many threads as fill a GPU, however short the rows: each part of the table goes through all ids once more. */
static weft_status prepare_scatter(const weft_call *call, weft_arena *arena, void **prepared,
                                   weft_error *error)
{
    enum { FILLED = 1 << 16 };
    WEFT_TRY(plan(call, &call->out[0], &call->in[0], arena, prepared, error));
    cuda_indexing *x = *prepared;
    const int64_t n_rows = x->end - x->first, wanted = x->n_rest > 0 ? FILLED / x->n_rest : 1;
    x->n_parts = wanted < 1 ? 1 : wanted < n_rows ? wanted : n_rows;
    return WEFT_OK;
}

static void begin_sum(const weft_call *call)
{
    const weft_view *out = &call->out[0];
    const size_t bytes = (size_t)weft_view_count(out) * weft_dtype_bytes(out->dtype);
    const void *from = call->accumulates ? call->in[call->n_in - 1].data : NULL;
    if (from == NULL)
        cuda_clear(call->stream, WEFT_COMPUTE, out->data, bytes);
    else if (from != out->data)
        cuda_copy(call->stream, WEFT_COMPUTE, out->data, from, bytes);
}

static void launch_scatter(const weft_call *call)
{
    const cuda_indexing *x = call->prepared;
    begin_sum(call);
    if (x->n_ids > 0 && x->n_parts > 0)
        cuda_launch(call->stream, WEFT_COMPUTE, &scatters[call->out[0].dtype],
                    x->n_parts * x->n_rest, x);
}

static void launch_max(const weft_call *call)
{
    const cuda_indexing *x = call->prepared;
    if (x->n_parts > 0)
        cuda_launch(call->stream, WEFT_COMPUTE, &tops[call->out[0].dtype], x->n_parts * x->n_rest,
                    x);
}

weft_status cuda_indexing_open(weft_device_kind device, weft_error *error)
{
    const weft_kernel gather = {
        .dtypes = WEFT_ANY_DTYPE, .prepare = prepare_gather, .launch = launch_gather};
    const weft_kernel scatter = {.dtypes = WEFT_WIDE_DTYPES,
                                 .prepare = prepare_scatter,
                                 .launch = launch_scatter,
                                 .accumulates = true};
    const weft_kernel top = {
        .dtypes = WEFT_WIDE_DTYPES, .prepare = prepare_scatter, .launch = launch_max};
    cuda_kernel *all[N_GATHERS + 2 * WEFT_DTYPES];
    int n = cuda_list_kernels(gathers, N_GATHERS, all);
    n += cuda_list_kernels(scatters, WEFT_DTYPES, all + n);
    n += cuda_list_kernels(tops, WEFT_DTYPES, all + n);
    WEFT_TRY(cuda_load_image(cuda_image_index, all, n, error));
    WEFT_TRY(cuda_add_kernel("gather", gather, device, error));
    WEFT_TRY(cuda_add_kernel("pick", gather, device, error));
    WEFT_TRY(cuda_add_kernel("scatter_max", top, device, error));
    WEFT_TRY(cuda_add_kernel("unpick", scatter, device, error));
    return cuda_add_kernel("scatter_add", scatter, device, error);
}
