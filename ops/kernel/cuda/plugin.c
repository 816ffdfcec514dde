/* plugin: what libweft_cuda.so has: the device, and what computes on it. */
#include "plugin.h"

#include "kernels.h"
#include "mesh/devices.h"
#ifdef WEFT_HAS_NCCL
#include "collectives/cuda/nccl_parts.h"
#endif

weft_status cuda_open_all(weft_error *error)
{
    static weft_status (*const opens[])(weft_device_kind device, weft_error * error) = {
        cuda_products_open,    cuda_reductions_open,      cuda_indexing_open,
        cuda_shapes_open,      cuda_attention_open,       cuda_loops_open,
        cuda_cumulations_open, cuda_windows_open,         cuda_ordering_open,
        cuda_linear_open,      cuda_chosen_products_open,
#ifdef WEFT_CUDA_HAS_CUBLASLT
        cuda_cublaslt_open,
#endif
#ifdef WEFT_CUDA_HAS_CUDNN
        cuda_conversions_open, cuda_dnn_attention_open,   cuda_dnn_convolution_open,
#endif
#ifdef WEFT_HAS_NCCL
        cuda_nccl_open,
#endif
    };
    weft_device_kind kind;
    WEFT_TRY(cuda_device_open(&kind, error));
    for (size_t i = 0; i < sizeof opens / sizeof *opens; i++)
        WEFT_TRY(opens[i](kind, error));
    return WEFT_OK;
}

WEFT_API extern const weft_device_plugin weft_device_entry;
WEFT_API const weft_device_plugin weft_device_entry = {WEFT_VERSION, cuda_open_all};
