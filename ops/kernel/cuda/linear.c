/* linear: cholesky, triangular_solve and solve on the device cuda. */
#include "linear.h"

#include "images.h"
#include "kernels.h"

#include "mesh/cuda/kernel_sizes.h"
#include "weft/arena.h"

enum { CHOLESKY, TRIANGULAR, SOLVE, KINDS };
static cuda_kernel kernels[KINDS][WEFT_DTYPES] = {
    [CHOLESKY] = {[WEFT_F32] = {"cholesky_f32", NULL}, [WEFT_F64] = {"cholesky_f64", NULL}},
    [TRIANGULAR] =
        {[WEFT_F32] = {"triangular_solve_f32", NULL}, [WEFT_F64] = {"triangular_solve_f64", NULL}},
    [SOLVE] = {[WEFT_F32] = {"solve_f32", NULL}, [WEFT_F64] = {"solve_f64", NULL}},
};

static int64_t scratch(const weft_call *call)
{
    const weft_view *a = &call->in[0];
    return weft_view_count(a) * (int64_t)weft_dtype_bytes(a->dtype);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const weft_square_attributes *attributes = call->attributes;
    const weft_view *a = &call->in[0], *out = &call->out[0];
    cuda_squares *s = *prepared = weft_arena_take(arena, sizeof *s);
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    *s = (cuda_squares){.a = a->data,
                        .b = call->n_in > 1 ? call->in[1].data : NULL,
                        .x = out->data,
                        .work = call->scratch,
                        .batch = weft_view_count(a) / (attributes->size * attributes->size),
                        .n = attributes->size,
                        .columns = 1};
    for (int d = a->shape.n_dims - 1; d < out->shape.n_dims; d++)
        s->columns *= weft_view_size(out, d);
    return WEFT_OK;
}

static weft_status prepare_triangular(const weft_call *call, weft_arena *arena, void **prepared,
                                      weft_error *error)
{
    const weft_triangle_attributes *attributes = call->attributes;
    WEFT_TRY(prepare(call, arena, prepared, error));
    ((cuda_squares *)*prepared)->is_upper = attributes->is_upper;
    return WEFT_OK;
}

/* A block a matrix, with a thread for each of its numbers, up to so many. */
static void launch_blocks(const weft_call *call, int kind)
{
    enum { MOST_BLOCKS = 1 << 16 };
    const cuda_squares *s = call->prepared;
    int n_threads = 32;
    if (weft_view_count(&call->out[0]) == 0) return;
    while (n_threads < KERNEL_THREADS && n_threads < s->n * (s->n + s->columns))
        n_threads *= 2;
    cuda_launch_blocks(call->stream, WEFT_COMPUTE, &kernels[kind][call->in[0].dtype],
                       s->batch < MOST_BLOCKS ? s->batch : MOST_BLOCKS, n_threads, s);
}

static void launch_cholesky(const weft_call *call)
{
    launch_blocks(call, CHOLESKY);
}
static void launch_solve(const weft_call *call)
{
    launch_blocks(call, SOLVE);
}

static void launch_triangular(const weft_call *call)
{
    const cuda_squares *s = call->prepared;
    cuda_launch(call->stream, WEFT_COMPUTE, &kernels[TRIANGULAR][call->in[0].dtype],
                s->batch * s->columns, s);
}

weft_status cuda_linear_open(weft_device_kind device, weft_error *error)
{
    const weft_kernel cholesky = {
        .dtypes = WEFT_FLOAT_DTYPES, .prepare = prepare, .launch = launch_cholesky};
    const weft_kernel triangular = {
        .dtypes = WEFT_FLOAT_DTYPES, .prepare = prepare_triangular, .launch = launch_triangular};
    const weft_kernel solve = {.dtypes = WEFT_FLOAT_DTYPES,
                               .scratch = scratch,
                               .prepare = prepare,
                               .launch = launch_solve};
    cuda_kernel *all[KINDS * WEFT_DTYPES];
    const int n = cuda_list_kernels(&kernels[0][0], KINDS * WEFT_DTYPES, all);
    WEFT_TRY(cuda_load_image(cuda_image_linear, all, n, error));
    WEFT_TRY(cuda_add_kernel("cholesky", cholesky, device, error));
    WEFT_TRY(cuda_add_kernel("triangular_solve", triangular, device, error));
    return cuda_add_kernel("solve", solve, device, error);
}
