/* attend: attention and its gradient on the device cuda, by plain kernels. */
#include "attend.h"

#include "heads.h"
#include "images.h"
#include "kernels.h"

#include <string.h>

#include "weft/arena.h"

enum { RESULT, QUERY, MEMORY, BIAS, STAGES };
static cuda_kernel kernels[STAGES][2] = {
    {{"attend_f32", NULL}, {"attend_f64", NULL}},
    {{"attend_query_f32", NULL}, {"attend_query_f64", NULL}},
    {{"attend_memory_f32", NULL}, {"attend_memory_f64", NULL}},
    {{"attend_bias_f32", NULL}, {"attend_bias_f64", NULL}},
};

_Static_assert((int)ATTEND_Q == WEFT_Q && (int)ATTEND_BIAS == WEFT_BIAS &&
                   (int)ATTEND_STATS == WEFT_STATS && (int)ATTEND_TENSORS == WEFT_HEAD_TENSORS &&
                   (int)ATTEND_DIMS == WEFT_MAX_DIMS,
               "kernels know tensors by the same numbers");

static void set_tensor(cuda_attention *x, int tensor, const weft_heads_call *call)
{
    const weft_view *view = call->view[tensor];
    x->data[tensor] = view->data;
    x->row[tensor] = cuda_stride_of(view, weft_heads_row(call, tensor));
    x->column[tensor] = cuda_stride_of(view, weft_heads_column(call, tensor));
    for (int d = 0; d < call->n_dims; d++)
        x->stride[tensor][d] = cuda_stride_of(view, call->dim[d]);
    for (int which = 0; which < 2 && view->data != NULL; which++) {
        const char *dim;
        const int64_t at = weft_heads_at(call, tensor, which, &dim);
        if (dim != NULL)
            x->data[tensor] = (char *)x->data[tensor] + at * cuda_stride_of(view, dim) *
                                                            (int64_t)weft_dtype_bytes(view->dtype);
    }
}

static void prepare_block(const weft_call *call, int64_t block, cuda_attention *x)
{
    const weft_heads_call c = weft_heads_of(call, block);
    *x = (cuda_attention){.n_dims = c.n_dims,
                          .n_heads = c.n_heads,
                          .n_keys = c.n_keys,
                          .n_grouped = c.n_grouped,
                          .n_outer = c.n_outer,
                          .n_shared = c.n_shared,
                          .n_apart = c.n_apart,
                          .n_query = c.n_query,
                          .n_memory = c.n_memory,
                          .n_feature = c.n_feature,
                          .first_query = c.first_query,
                          .first_memory = c.first_memory,
                          .back = c.back,
                          .ahead = c.ahead,
                          .scale = c.attributes->scale,
                          .of_rows = call->scratch};
    memcpy(x->size, c.size, sizeof x->size);
    for (int t = 0; t < ATTEND_TENSORS; t++)
        if (c.view[t] != NULL) set_tensor(x, t, &c);
}

/* One for each block. */
static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const int64_t n = weft_heads_n_blocks(call);
    cuda_attention *x = *prepared = weft_arena_take(arena, (size_t)n * sizeof *x + 1);
    if (x == NULL) return weft_fail_memory(error, (size_t)n * sizeof *x);
    for (int64_t block = 0; block < n; block++)
        prepare_block(call, block, &x[block]);
    return WEFT_OK;
}

/* ---- launches -------------------------------------------------------------------------------- */

static void launch_rows(const weft_call *call, const cuda_attention *x, int stage, int64_t n)
{
    enum { MOST_BLOCKS = 1 << 16 };
    int n_threads = 32;
    while (n_threads < ATTEND_THREADS && n_threads < x->n_feature)
        n_threads *= 2;
    cuda_launch_blocks(call->stream, WEFT_COMPUTE, &kernels[stage][call->in[0].dtype],
                       n < MOST_BLOCKS ? n : MOST_BLOCKS, n_threads, x);
}

static void launch(const weft_call *call)
{
    const cuda_attention *all = call->prepared;
    const int64_t n = weft_heads_n_blocks(call);
    for (const cuda_attention *x = all; x < all + n; x++)
        launch_rows(call, x, RESULT, x->n_heads * x->n_query);
}

static int64_t scratch_of_gradient(const weft_call *call)
{
    const weft_view *stats = &call->in[call->n_in - 2];
    return weft_view_count(stats) / 2 * 3 * (int64_t)weft_dtype_bytes(stats->dtype);
}

/* Heads that have rows of k and v in common add to them one after the other. */
static void launch_memory(const weft_call *call, const cuda_attention *x)
{
    cuda_attention one = *x;
    for (one.member = 0; one.member < x->n_grouped; one.member++)
        launch_rows(call, &one, MEMORY, x->n_keys * x->n_memory);
}

static void launch_gradient(const weft_call *call)
{
    const cuda_attention *all = call->prepared;
    const int64_t n = weft_heads_n_blocks(call);
    for (int o = 1; o < call->n_out; o++)
        cuda_clear(call->stream, WEFT_COMPUTE, call->out[o].data,
                   (size_t)weft_view_count(&call->out[o]) * weft_dtype_bytes(call->out[o].dtype));
    for (const cuda_attention *x = all; x < all + n; x++) {
        launch_rows(call, x, QUERY, x->n_heads * x->n_query);
        launch_memory(call, x);
        if (x->data[ATTEND_DBIAS] != NULL)
            cuda_launch(call->stream, WEFT_COMPUTE, &kernels[BIAS][call->in[0].dtype],
                        weft_view_count(&call->out[3]) / n, x);
    }
}

weft_status cuda_attention_open(weft_device_kind device, weft_error *error)
{
    const weft_kernel attention = {
        .dtypes = WEFT_FLOAT_DTYPES, .prepare = prepare, .launch = launch};
    const weft_kernel gradient = {.dtypes = WEFT_FLOAT_DTYPES,
                                  .scratch = scratch_of_gradient,
                                  .prepare = prepare,
                                  .launch = launch_gradient};
    cuda_kernel *all[2 * STAGES];
    for (int k = 0; k < 2 * STAGES; k++)
        all[k] = &kernels[k / 2][k % 2];
    WEFT_TRY(cuda_load_image(cuda_image_attend, all, 2 * STAGES, error));
    WEFT_TRY(cuda_add_kernel("attention", attention, device, error));
    return cuda_add_kernel("attention_grad", gradient, device, error);
}
