/* images: the files that nvcc wrote of the ops' kernels, as they are. */
#include "images.h"

#include "mesh/cuda/image.h"

CUDA_IMAGE(cuda_image_attend, WEFT_CUDA_IMAGES "/attend.fatbin")
CUDA_IMAGE(cuda_image_convert, WEFT_CUDA_IMAGES "/convert.fatbin")
CUDA_IMAGE(cuda_image_cumulate, WEFT_CUDA_IMAGES "/cumulate.fatbin")
CUDA_IMAGE(cuda_image_index, WEFT_CUDA_IMAGES "/index.fatbin")
CUDA_IMAGE(cuda_image_linear, WEFT_CUDA_IMAGES "/linear.fatbin")
CUDA_IMAGE(cuda_image_order, WEFT_CUDA_IMAGES "/order.fatbin")
CUDA_IMAGE(cuda_image_pick_product, WEFT_CUDA_IMAGES "/pick_product.fatbin")
CUDA_IMAGE(cuda_image_product, WEFT_CUDA_IMAGES "/product.fatbin")
CUDA_IMAGE(cuda_image_reduce, WEFT_CUDA_IMAGES "/reduce.fatbin")
CUDA_IMAGE(cuda_image_shape, WEFT_CUDA_IMAGES "/shape.fatbin")
CUDA_IMAGE(cuda_image_window, WEFT_CUDA_IMAGES "/window.fatbin")
