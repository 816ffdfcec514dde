/* scale.h (private): images at another size. */
#ifndef WEFT_IO_SCALE_H
#define WEFT_IO_SCALE_H

#include <stdint.h>

typedef struct weft_scaling {
    int64_t rows, columns, channels; /* of an image */
    int64_t to_rows, to_columns;     /* that it gets */
} weft_scaling;

/* weft_image_scale - pixels [rows, columns, channels] into to [to_rows, to_columns, channels]: each the mean of the area that it covers,
 * rounded, exact in integers, so the same everywhere. Local. */
void weft_image_scale(const unsigned char *pixels, const weft_scaling *scaling, unsigned char *to);

#endif
