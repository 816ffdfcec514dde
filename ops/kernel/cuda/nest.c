/* nest: loops over named dims, for kernels that know no names. */
#include "kernels.h"

#include "weft/extend/op.h"

int64_t cuda_stride_of(const weft_view *view, const char *name)
{
    const int at = weft_shape_find(&view->shape, name);
    int64_t stride = 1;
    if (at < 0) return 0;
    for (int d = view->shape.n_dims - 1; d > at; d--)
        stride *= weft_view_size(view, d);
    return stride;
}

void cuda_nest_add(cuda_nest *nest, int64_t count, int64_t stride_0, int64_t stride_1,
                   int64_t stride_2)
{
    const int64_t stride[CUDA_NEST_TENSORS] = {stride_0, stride_1, stride_2};
    const int last = nest->n_dims - 1;
    bool is_one_walk = last >= 0;
    if (count == 1) return;
    for (int t = 0; t < CUDA_NEST_TENSORS && is_one_walk; t++)
        is_one_walk = nest->stride[t][last] == stride[t] * count;
    const int at = is_one_walk ? last : nest->n_dims++;
    nest->count[at] = is_one_walk ? nest->count[at] * count : count;
    for (int t = 0; t < CUDA_NEST_TENSORS; t++)
        nest->stride[t][at] = stride[t];
}

int cuda_list_kernels(cuda_kernel *kernels, int n, cuda_kernel **named)
{
    int n_named = 0;
    for (int k = 0; k < n; k++)
        if (kernels[k].name != NULL) named[n_named++] = &kernels[k];
    return n_named;
}

weft_status cuda_add_kernel(const char *op, weft_kernel kernel, weft_device_kind device,
                            weft_error *error)
{
    kernel.size = sizeof kernel;
    if (kernel.name == NULL) kernel.name = op;
    kernel.device = device;
    return weft_extend_kernel(op, &kernel, error);
}
