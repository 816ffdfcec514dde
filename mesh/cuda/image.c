/* image: the files that nvcc wrote of the device's kernels, as they are. */
#include "image.h"

CUDA_IMAGE(cuda_image_box, WEFT_CUDA_IMAGES "/box.fatbin")
