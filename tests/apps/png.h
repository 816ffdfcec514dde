/* png.h: a PNG of bytes, written without a library for it. */
#ifndef WEFT_TESTS_PNG_H
#define WEFT_TESTS_PNG_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static inline void png_number(unsigned char to[4], unsigned long number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(number >> (24 - 8 * i));
}

static inline bool png_part(FILE *file, const char *name, const unsigned char *bytes, size_t n)
{
    unsigned char head[8], tail[4];
    png_number(head, n);
    memcpy(head + 4, name, 4);
    png_number(tail, crc32(crc32(0, head + 4, 4), bytes, (uInt)n));
    return fwrite(head, 8, 1, file) == 1 && (n == 0 || fwrite(bytes, n, 1, file) == 1) &&
           fwrite(tail, 4, 1, file) == 1;
}

/* pixels [rows, columns, channels], channels 1 or 3 */
static inline bool png_write(const char *path, int rows, int columns, int channels,
                             const unsigned char *pixels)
{
    const size_t wide = (size_t)(columns * channels), n = (size_t)rows * (wide + 1);
    unsigned char head[13] = {[8] = 8, [9] = channels == 3 ? 2 : 0};
    unsigned char *lines = calloc(1, n), *packed = malloc(compressBound((uLong)n));
    uLongf n_packed = compressBound((uLong)n);
    FILE *file = fopen(path, "wb");
    png_number(head, (unsigned long)columns), png_number(head + 4, (unsigned long)rows);
    for (int r = 0; lines != NULL && r < rows; r++)
        memcpy(lines + (size_t)r * (wide + 1) + 1, pixels + (size_t)r * wide, wide);
    bool is_good = file != NULL && lines != NULL && packed != NULL &&
                   compress(packed, &n_packed, lines, (uLong)n) == Z_OK &&
                   fwrite("\x89PNG\r\n\032\n", 8, 1, file) == 1 &&
                   png_part(file, "IHDR", head, 13) && png_part(file, "IDAT", packed, n_packed) &&
                   png_part(file, "IEND", NULL, 0);
    if (file != NULL) is_good = fclose(file) == 0 && is_good;
    free(lines), free(packed);
    return is_good;
}

#endif
