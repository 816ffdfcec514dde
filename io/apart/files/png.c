/* png: by libpng's simplified reader: pixels of 8 bits, palettes as the colours that they stand for, 16 bits as their upper 8. */
#include <png.h>
#include <stdio.h>
#include <string.h>

#include "image.h"

static bool read_pixels(png_image *image, unsigned char *to, files_answer *answer)
{
    image->format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
    answer->rows = image->height, answer->columns = image->width;
    answer->channels = 1 + (image->format & PNG_FORMAT_FLAG_COLOR ? 2 : 0) +
                       (image->format & PNG_FORMAT_FLAG_ALPHA ? 1 : 0);
    if ((uint64_t)image->width * image->height * 4 <= FILES_LARGEST)
        return png_image_finish_read(image, NULL, to, 0, NULL);
    snprintf(answer->why, FILES_WHY, "it has %u x %u pixels, more than 256 MiB", image->width,
             image->height);
    return false;
}

bool read_png(const unsigned char *bytes, size_t n, unsigned char *to, files_answer *answer)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    const bool is_good =
        png_image_begin_read_from_memory(&image, bytes, n) && read_pixels(&image, to, answer);
    if (!is_good && answer->why[0] == '\0') snprintf(answer->why, FILES_WHY, "%s", image.message);
    png_image_free(&image);
    return is_good;
}
