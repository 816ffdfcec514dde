/* pick_product: pick_product and unpick_product on the device cuda. */
#include "pick_product.h"

#include "images.h"
#include "kernels.h"

#include "mesh/cuda/kernel_sizes.h"
#include "weft/arena.h"

static cuda_kernel find_rows = {"chosen_rows", NULL};
static cuda_kernel picks[WEFT_DTYPES] = {
    [WEFT_F32] = {"pick_product_f32", NULL}, [WEFT_F64] = {"pick_product_f64", NULL}};
static cuda_kernel unpicks[WEFT_DTYPES] = {
    [WEFT_F32] = {"unpick_product_f32", NULL}, [WEFT_F64] = {"unpick_product_f64", NULL}};

static bool takes(const weft_call *call)
{
    return weft_view_count(&call->in[2]) <= INT32_MAX;
}

/* ---- scratch: where the rows of each matrix begin, and the rows --------------------------------- */

static int64_t begins(const weft_view *matrices)
{
    return (weft_view_size(matrices, 0) + 1) * (int64_t)sizeof(int64_t);
}

static int64_t rows(const weft_call *call)
{
    return weft_view_count(&call->in[2]) * (int64_t)sizeof(int32_t);
}

static int64_t scratch_pick(const weft_call *call)
{
    return begins(&call->in[1]) + rows(call);
}

static int64_t scratch_unpick(const weft_call *call)
{
    return begins(&call->out[0]) + rows(call);
}

/* ---- once --------------------------------------------------------------------------------------- */

static int64_t last_of(const weft_view *view)
{
    return weft_view_size(view, view->shape.n_dims - 1);
}

static weft_status plan(const weft_call *call, const weft_view *matrices, const weft_view *y,
                        weft_arena *arena, void **prepared, weft_error *error)
{
    const weft_view *x = &call->in[0], *ids = &call->in[2];
    cuda_choosing *c = *prepared = weft_arena_take(arena, sizeof *c);
    if (c == NULL) return weft_fail_memory(error, sizeof *c);
    *c = (cuda_choosing){.x = x->data,
                         .y = y->data,
                         .w = matrices->data,
                         .out = call->out[0].data,
                         .id = ids->data,
                         .n_rows = weft_view_count(ids),
                         .own = 1,
                         .n_in = last_of(x),
                         .n_out = last_of(y),
                         .first = matrices->box.begin[0],
                         .n_chosen = weft_view_size(matrices, 0),
                         .begin = call->scratch};
    for (int d = x->shape.n_dims - 1; d < ids->shape.n_dims; d++)
        c->own *= weft_view_size(ids, d);
    c->row = (int32_t *)((char *)call->scratch + begins(matrices));
    c->in_step = cuda_stride_of(matrices, x->shape.dims[x->shape.n_dims - 1].name);
    c->out_step = cuda_stride_of(matrices, y->shape.dims[y->shape.n_dims - 1].name);
    return WEFT_OK;
}

static weft_status prepare_pick(const weft_call *call, weft_arena *arena, void **prepared,
                                weft_error *error)
{
    return plan(call, &call->in[1], &call->out[0], arena, prepared, error);
}

static weft_status prepare_unpick(const weft_call *call, weft_arena *arena, void **prepared,
                                  weft_error *error)
{
    return plan(call, &call->out[0], &call->in[1], arena, prepared, error);
}

/* ---- launches ----------------------------------------------------------------------------------- */

static int64_t tiles(int64_t n)
{
    return (n + CHOSEN_TILE - 1) / CHOSEN_TILE;
}

static void launch_tiles(const weft_call *call, const cuda_kernel *kernel, int64_t n)
{
    enum { MOST_BLOCKS = 1 << 16 };
    const cuda_choosing *c = call->prepared;
    if (c->n_chosen == 0 || n == 0) return;
    cuda_launch_blocks(call->stream, WEFT_COMPUTE, &find_rows, c->n_chosen, KERNEL_THREADS, c);
    cuda_launch_blocks(call->stream, WEFT_COMPUTE, kernel, n < MOST_BLOCKS ? n : MOST_BLOCKS,
                       CHOSEN_THREADS, c);
}

/* Rows of which no matrix is here are zeros. */
static void launch_pick(const weft_call *call)
{
    const cuda_choosing *c = call->prepared;
    const weft_view *y = &call->out[0];
    cuda_clear(call->stream, WEFT_COMPUTE, y->data,
               (size_t)weft_view_count(y) * weft_dtype_bytes(y->dtype));
    if (c->n_rows == 0) return;
    launch_tiles(call, &picks[y->dtype], (c->n_rows / CHOSEN_TILE + c->n_chosen) * tiles(c->n_out));
}

static void launch_unpick(const weft_call *call)
{
    const cuda_choosing *c = call->prepared;
    launch_tiles(call, &unpicks[call->out[0].dtype],
                 c->n_chosen * tiles(c->n_in) * tiles(c->n_out));
}

weft_status cuda_chosen_products_open(weft_device_kind device, weft_error *error)
{
    const weft_kernel pick = {.dtypes = WEFT_FLOAT_DTYPES,
                              .takes = takes,
                              .scratch = scratch_pick,
                              .prepare = prepare_pick,
                              .launch = launch_pick};
    const weft_kernel unpick = {.dtypes = WEFT_FLOAT_DTYPES,
                                .takes = takes,
                                .scratch = scratch_unpick,
                                .prepare = prepare_unpick,
                                .launch = launch_unpick};
    cuda_kernel *all[2 * WEFT_DTYPES + 1] = {&find_rows};
    int n = 1 + cuda_list_kernels(picks, WEFT_DTYPES, all + 1);
    n += cuda_list_kernels(unpicks, WEFT_DTYPES, all + n);
    WEFT_TRY(cuda_load_image(cuda_image_pick_product, all, n, error));
    WEFT_TRY(cuda_add_kernel("pick_product", pick, device, error));
    return cuda_add_kernel("unpick_product", unpick, device, error);
}
