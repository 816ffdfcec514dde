/* image: the files that nvcc wrote, as they are. */
#include "image.h"

#define IMAGE(name, file)                                                                          \
    __asm__(".section .rodata\n"                                                                   \
            ".balign 64\n"                                                                         \
            ".hidden " #name "\n"                                                                  \
            ".global " #name "\n" #name ":\n"                                                      \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".previous\n");
IMAGE(cuda_image_box, WEFT_CUDA_IMAGES "/box.fatbin")
