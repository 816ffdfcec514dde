/* image.h: kernels as nvcc compiled them: machine code for each architecture that was asked for, and text for later ones. */
#ifndef WEFT_CUDA_IMAGE_H
#define WEFT_CUDA_IMAGE_H

#include "weft/error.h"

/* Puts a file into the library, as it is. */
#define CUDA_IMAGE(name, file)                                                                     \
    __asm__(".section .rodata\n"                                                                   \
            ".balign 64\n"                                                                         \
            ".hidden " #name "\n"                                                                  \
            ".global " #name "\n" #name ":\n"                                                      \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".previous\n");

extern const char cuda_image_box[];

weft_status cuda_boxes_open(weft_error *error);

#endif
