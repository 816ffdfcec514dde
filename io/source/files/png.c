/* png: by libpng's simplified reader: pixels of 8 bits, palettes as the colours that they stand for, 16 bits as their upper 8. */
#include "image.h"

#include <png.h>
#include <stdio.h>
#include <string.h>

static bool check_size(const png_image *image, char *why)
{
    if ((uint64_t)image->width * image->height * 4 <= WEFT_IMAGE_LARGEST) return true;
    snprintf(why, WEFT_FILES_WHY, "it has %u x %u pixels, more than 256 MiB", image->width,
             image->height);
    return false;
}

static bool read_pixels(png_image *image, weft_image_size *size, unsigned char *to, char *why)
{
    const png_uint_32 all = image->format & (PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA);
    const weft_image_size found = {image->height, image->width,
                                   1 + (all & PNG_FORMAT_FLAG_COLOR ? 2 : 0) +
                                       (all & PNG_FORMAT_FLAG_ALPHA ? 1 : 0)};
    if (!check_size(image, why)) return false;
    if (to != NULL && memcmp(&found, size, sizeof found) != 0) return false;
    *size = found;
    image->format = all;
    return to == NULL || png_image_finish_read(image, NULL, to, 0, NULL);
}

bool weft_png_read(const unsigned char *bytes, size_t n, weft_image_size *size, unsigned char *to,
                   char *why)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    const bool is_good =
        png_image_begin_read_from_memory(&image, bytes, n) && read_pixels(&image, size, to, why);
    if (!is_good && *why == '\0') snprintf(why, WEFT_FILES_WHY, "%s", image.message);
    png_image_free(&image);
    return is_good;
}
