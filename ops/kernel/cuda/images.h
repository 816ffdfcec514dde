/* images.h: kernels of ops as nvcc compiled them (mesh/cuda/image.h). */
#ifndef WEFT_CUDA_OP_IMAGES_H
#define WEFT_CUDA_OP_IMAGES_H

extern const char cuda_image_attend[], cuda_image_convert[], cuda_image_cumulate[],
    cuda_image_index[], cuda_image_linear[], cuda_image_order[], cuda_image_pick_product[],
    cuda_image_product[], cuda_image_reduce[], cuda_image_shape[], cuda_image_window[];

#endif
