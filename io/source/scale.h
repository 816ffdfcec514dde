/* scale.h (private): images at another size. */
#ifndef WEFT_IO_SCALE_H
#define WEFT_IO_SCALE_H

#include "plugin.h"

/* weft_image_scale - pixels [size] into to [rows, columns, size.channels]: each the mean of the area that it covers, rounded, exact in
 * integers, so the same everywhere. Local. */
void weft_image_scale(const unsigned char *pixels, weft_image_size size, int64_t rows,
                      int64_t columns, unsigned char *to);

#endif
