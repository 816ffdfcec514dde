/* kernels.h: the kernels of the device cuda, which keep to the contracts of the CPU's (ops/kernel/cpu/kernels.h), and what they share. */
#ifndef WEFT_CUDA_KERNELS_H
#define WEFT_CUDA_KERNELS_H

#include "kernel.h"
#include "mesh/cuda/parts.h"
#include "nest.h"

/* ---- of calls and their scratch -------------------------------------------------------------- */

/* Of an op of two operands: these, and behind them its result. */
static inline const weft_view *cuda_view_of(const weft_call *call, int tensor)
{
    return tensor == 2 ? &call->out[0] : &call->in[tensor];
}

/* ---- nest.c: loops over dims ----------------------------------------------------------------- */

/* Element strides of a view; 0 for a dim that it has not. */
int64_t cuda_stride_of(const weft_view *view, const char *name);
/* One more loop inside the others; joined with the innermost where both are one walk. */
void cuda_nest_add(cuda_nest *nest, int64_t count, int64_t stride_0, int64_t stride_1,
                   int64_t stride_2);

/* ---- convert.c: tensors of f32 for libraries that compute in bf16; those of bf16 go in, and come out, as they are ---------- */

/* Bytes of scratch for a view in bf16, rounded up: none if it is that already. */
int64_t cuda_narrow_bytes(const weft_view *view);
/* Where the library finds it: in scratch, or where it is. */
void *cuda_narrow_at(const weft_view *view, void *scratch);
/* Rounded on the way in, widened on the way out: put onto the stream, for views of f32. */
void cuda_narrow(const weft_call *call, const weft_view *from, void *to);
void cuda_widen(const weft_call *call, const void *from, const weft_view *to);

/* ---- what there is: each opens its image and adds its kernels ---------------------------------- */

weft_status cuda_products_open(weft_device_kind device, weft_error *error);
/* Where the Toolkit has cuBLASLt; by the library, where that can be loaded, products come before those of cuda_products_open. */
weft_status cuda_cublaslt_open(weft_device_kind device, weft_error *error);
weft_status cuda_reductions_open(weft_device_kind device, weft_error *error);
weft_status cuda_indexing_open(weft_device_kind device, weft_error *error);
weft_status cuda_shapes_open(weft_device_kind device, weft_error *error);
weft_status cuda_cumulations_open(weft_device_kind device, weft_error *error);
weft_status cuda_windows_open(weft_device_kind device, weft_error *error);
weft_status cuda_linear_open(weft_device_kind device, weft_error *error);
weft_status cuda_chosen_products_open(weft_device_kind device, weft_error *error);
weft_status cuda_ordering_open(weft_device_kind device, weft_error *error);
weft_status cuda_attention_open(weft_device_kind device, weft_error *error);
weft_status cuda_conversions_open(weft_device_kind device, weft_error *error);
/* The same of cuDNN, for attention and for convolutions. */
weft_status cuda_dnn_attention_open(weft_device_kind device, weft_error *error);
weft_status cuda_dnn_convolution_open(weft_device_kind device, weft_error *error);
weft_status cuda_loops_open(weft_device_kind device, weft_error *error);

/* Those of `n` kernels that have a name, behind each other; returns how many. */
int cuda_list_kernels(cuda_kernel *kernels, int n, cuda_kernel **named);
/* A kernel for an op, known by the op's name where it has none of its own. */
weft_status cuda_add_kernel(const char *op, weft_kernel kernel, weft_device_kind device,
                            weft_error *error);

#endif
