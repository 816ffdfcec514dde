/* cumulate: cumsum, cumprod and cummax on the device cuda. */
#include "images.h"
#include "kernels.h"

#include "weft/arena.h"

enum { SUM, PRODUCT, TOP, KINDS };
static cuda_kernel kernels[KINDS][WEFT_DTYPES] = {
    [SUM] = {[WEFT_F32] = {"cumsum_f32", NULL},
             [WEFT_F64] = {"cumsum_f64", NULL},
             [WEFT_I32] = {"cumsum_i32", NULL},
             [WEFT_I64] = {"cumsum_i64", NULL}},
    [PRODUCT] = {[WEFT_F32] = {"cumprod_f32", NULL},
                 [WEFT_F64] = {"cumprod_f64", NULL},
                 [WEFT_I32] = {"cumprod_i32", NULL},
                 [WEFT_I64] = {"cumprod_i64", NULL}},
    [TOP] = {[WEFT_F32] = {"cummax_f32", NULL},
             [WEFT_F64] = {"cummax_f64", NULL},
             [WEFT_I32] = {"cummax_i32", NULL},
             [WEFT_I64] = {"cummax_i64", NULL}},
};

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const weft_cumulate_attributes *attributes = call->attributes;
    const weft_view *out = &call->out[0];
    const int dim = weft_shape_find(&out->shape, attributes->dim);
    cuda_cumulating *c = *prepared = weft_arena_take(arena, sizeof *c);
    if (c == NULL) return weft_fail_memory(error, sizeof *c);
    *c = (cuda_cumulating){.x = call->in[0].data,
                           .y = out->data,
                           .length = weft_view_size(out, dim),
                           .inner = cuda_stride_of(out, attributes->dim),
                           .exclusive = attributes->exclusive,
                           .reverse = attributes->reverse};
    c->n_lines = weft_view_count(out) > 0 ? weft_view_count(out) / c->length : 0;
    return WEFT_OK;
}

static void launch(const weft_call *call, int kind)
{
    const cuda_cumulating *c = call->prepared;
    cuda_launch(call->stream, WEFT_COMPUTE, &kernels[kind][call->in[0].dtype], c->n_lines, c);
}

static void launch_sums(const weft_call *call)
{
    launch(call, SUM);
}
static void launch_products(const weft_call *call)
{
    launch(call, PRODUCT);
}
static void launch_tops(const weft_call *call)
{
    launch(call, TOP);
}

weft_status cuda_cumulations_open(weft_device_kind device, weft_error *error)
{
    static const struct {
        const char *op;
        weft_launch launch;
    } ops[KINDS] = {{"cumsum", launch_sums}, {"cumprod", launch_products}, {"cummax", launch_tops}};
    cuda_kernel *all[KINDS * WEFT_DTYPES];
    const int n = cuda_list_kernels(&kernels[0][0], KINDS * WEFT_DTYPES, all);
    WEFT_TRY(cuda_load_image(cuda_image_cumulate, all, n, error));
    for (int k = 0; k < KINDS; k++)
        WEFT_TRY(cuda_add_kernel(
            ops[k].op,
            (weft_kernel){.dtypes = WEFT_WIDE_DTYPES, .prepare = prepare, .launch = ops[k].launch},
            device, error));
    return WEFT_OK;
}
