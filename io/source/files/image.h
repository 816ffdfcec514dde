/* image.h (private): one image, by one library. As weft_files_plugin's `image`. */
#ifndef WEFT_IO_IMAGE_H
#define WEFT_IO_IMAGE_H

#include "../plugin.h"

bool weft_png_read(const unsigned char *bytes, size_t n, weft_image_size *size, unsigned char *to,
                   char *why);
bool weft_jpeg_read(const unsigned char *bytes, size_t n, weft_image_size *size, unsigned char *to,
                    char *why);

#endif
