/* image.h (private): one image, by one library. */
#ifndef WEFT_IO_IMAGE_H
#define WEFT_IO_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "../files_asked.h"

/* Pixels [rows, columns, channels] into to [FILES_LARGEST], and their sizes; false, with the reason in answer->why. */
bool read_png(const unsigned char *bytes, size_t n, unsigned char *to, files_answer *answer);
bool read_jpeg(const unsigned char *bytes, size_t n, unsigned char *to, files_answer *answer);

#endif
