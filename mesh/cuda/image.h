/* image.h: kernels as nvcc compiled them: machine code for each architecture that was asked for, and text for later ones. */
#ifndef WEFT_CUDA_IMAGE_H
#define WEFT_CUDA_IMAGE_H

#include "weft/error.h"

extern const char cuda_image_box[];

weft_status cuda_boxes_open(weft_error *error);

#endif
