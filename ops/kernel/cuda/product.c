/* product: einsum on the device cuda, by plain loops over any dims. */
#include "images.h"
#include "kernels.h"

#include "weft/arena.h"

static cuda_kernel products[WEFT_DTYPES] = {
    [WEFT_F32] = {"product_f32", NULL}, [WEFT_F64] = {"product_f64", NULL},
    [WEFT_I32] = {"product_i32", NULL}, [WEFT_BF16] = {"product_bf16", NULL},
    [WEFT_F16] = {"product_f16", NULL}, [WEFT_I64] = {"product_i64", NULL},
};

static void add_inner(cuda_product *p, const weft_call *call, int operand)
{
    const weft_view *a = &call->in[0], *b = &call->in[1], *of = &call->in[operand];
    for (int d = 0; d < of->shape.n_dims; d++) {
        const char *name = of->shape.dims[d].name;
        if (weft_shape_find(&call->out[0].shape, name) >= 0) continue;
        if (operand == 1 && weft_shape_find(&a->shape, name) >= 0) continue;
        cuda_nest_add(&p->inner, weft_view_size(of, d), 0, cuda_stride_of(a, name),
                      cuda_stride_of(b, name));
        p->n_inner *= weft_view_size(of, d);
    }
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const weft_view *a = &call->in[0], *b = &call->in[1], *out = &call->out[0];
    cuda_product *p = *prepared = weft_arena_take(arena, sizeof *p);
    if (p == NULL) return weft_fail_memory(error, sizeof *p);
    *p = (cuda_product){.out = out->data, .a = a->data, .b = b->data, .n_inner = 1};
    if (call->accumulates) p->begin = call->in[2].data;
    p->n_out = weft_view_count(out);
    for (int d = 0; d < out->shape.n_dims; d++) {
        const char *name = out->shape.dims[d].name;
        cuda_nest_add(&p->outer, weft_view_size(out, d), cuda_stride_of(out, name),
                      cuda_stride_of(a, name), cuda_stride_of(b, name));
    }
    add_inner(p, call, 0);
    add_inner(p, call, 1);
    return WEFT_OK;
}

static void launch(const weft_call *call)
{
    const cuda_product *p = call->prepared;
    cuda_launch(call->stream, WEFT_COMPUTE, &products[call->in[0].dtype], p->n_out, p);
}

weft_status cuda_products_open(weft_device_kind device, weft_error *error)
{
    cuda_kernel *all[WEFT_DTYPES];
    int n = 0;
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        if (products[dtype].name != NULL) all[n++] = &products[dtype];
    WEFT_TRY(cuda_load_image(cuda_image_product, all, n, error));
    return cuda_add_kernel("einsum",
                           (weft_kernel){.dtypes = WEFT_WIDE_DTYPES | WEFT_HALF_DTYPES,
                                         .prepare = prepare,
                                         .launch = launch,
                                         .accumulates = true},
                           device, error);
}
