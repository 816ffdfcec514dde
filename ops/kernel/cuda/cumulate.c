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

static int64_t blocks_of(const weft_cumulate_attributes *a, int64_t *block)
{
    *block = a->blocks > 0 ? (a->size + a->blocks - 1) / a->blocks : a->size;
    return (a->size + *block - 1) / *block;
}

static int64_t scratch(const weft_call *call)
{
    const weft_cumulate_attributes *a = call->attributes;
    int64_t block;
    const int64_t n = blocks_of(a, &block), bytes = (int64_t)weft_dtype_bytes(call->in[0].dtype);
    return n == 1 ? 0 : weft_view_count(&call->out[0]) / a->size * n * bytes;
}

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
    c->n_blocks = blocks_of(attributes, &c->block);
    c->totals = c->n_blocks > 1 ? call->scratch : NULL;
    c->n_lines = weft_view_count(out) > 0 ? weft_view_count(out) / c->length : 0;
    return WEFT_OK;
}

static void launch(const weft_call *call, int kind)
{
    cuda_cumulating c = *(const cuda_cumulating *)call->prepared;
    const int64_t counts[] = {
        [CUDA_WITHIN] = c.n_lines * c.n_blocks,
        [CUDA_BETWEEN] = c.n_lines,
        [CUDA_ON_TOP] = c.n_lines * c.length,
    };
    const int last = c.n_blocks > 1 ? CUDA_ON_TOP : CUDA_WITHIN;
    for (c.phase = CUDA_WITHIN; c.phase <= last; c.phase++)
        cuda_launch(call->stream, WEFT_COMPUTE, &kernels[kind][call->in[0].dtype], counts[c.phase],
                    &c);
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
        WEFT_TRY(cuda_add_kernel(ops[k].op,
                                 (weft_kernel){.dtypes = WEFT_WIDE_DTYPES,
                                               .scratch = scratch,
                                               .prepare = prepare,
                                               .launch = ops[k].launch},
                                 device, error));
    return WEFT_OK;
}
