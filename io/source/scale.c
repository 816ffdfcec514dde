/* scale: images at another size. A pixel of the result covers an area of the image; it is the mean of that area. Lengths are counted in
 * parts: a row of the image has as many as the result has rows, so every share is a whole number.
 */
#include "scale.h"

/* Of parts [begin, begin + length): how many are of a row that begins at `at` and has `own`. */
static int64_t share(int64_t begin, int64_t length, int64_t at, int64_t own)
{
    const int64_t low = begin > at ? begin : at,
                  high = begin + length < at + own ? begin + length : at + own;
    return high > low ? high - low : 0;
}

/* Of one channel. */
static unsigned char mean_of(const unsigned char *pixels, const weft_scaling *s, int64_t r,
                             int64_t c)
{
    const int64_t top = r * s->rows, left = c * s->columns;
    uint64_t sum = (uint64_t)(s->rows * s->columns) / 2;
    for (int64_t y = top / s->to_rows; y < s->rows && y * s->to_rows < top + s->rows; y++) {
        const uint64_t high = (uint64_t)share(top, s->rows, y * s->to_rows, s->to_rows);
        for (int64_t x = left / s->to_columns;
             x < s->columns && x * s->to_columns < left + s->columns; x++)
            sum += high * (uint64_t)share(left, s->columns, x * s->to_columns, s->to_columns) *
                   pixels[(y * s->columns + x) * s->channels];
    }
    return (unsigned char)(sum / (uint64_t)(s->rows * s->columns));
}

void weft_image_scale(const unsigned char *pixels, const weft_scaling *scaling, unsigned char *to)
{
    for (int64_t r = 0; r < scaling->to_rows; r++)
        for (int64_t c = 0; c < scaling->to_columns; c++)
            for (int64_t k = 0; k < scaling->channels; k++)
                *to++ = mean_of(pixels + k, scaling, r, c);
}
