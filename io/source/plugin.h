/* plugin.h (private): what libweft_files.so has: libraries that files of others want, and that the core does without. It is loaded by the
 * first file that needs it. It needs nothing of libweft.so: what goes wrong it writes into `why`, and its caller makes the sentence. */
#ifndef WEFT_IO_PLUGIN_H
#define WEFT_IO_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

typedef enum weft_block_codec {
    WEFT_BLOCK_SNAPPY,
    WEFT_BLOCK_ZSTD,
    WEFT_BLOCK_CODECS
} weft_block_codec;

typedef struct weft_image_size {
    int64_t rows, columns, channels; /* 1: grey; 2: with alpha; 3: colours; 4: with alpha */
} weft_image_size;

enum { WEFT_FILES_WHY = 200, WEFT_IMAGE_LARGEST = 1 << 28 /* bytes of an image */ };

/* Each returns false with the reason. */
typedef struct weft_files_plugin {
    const char *version; /* of the Weft that it is of */
    /* a compressed file from where it stands, all of it, into another */
    bool (*expand)(int from, int to, char why[WEFT_FILES_WHY]);
    /* n bytes into exactly `bytes` of them */
    bool (*block)(weft_block_codec codec, const void *from, size_t n, void *to, size_t bytes,
                  char why[WEFT_FILES_WHY]);
    /* the size alone, when to is NULL; else pixels [rows, columns, channels], which have the size that was told before */
    bool (*image)(const void *from, size_t n, weft_image_size *size, unsigned char *to,
                  char why[WEFT_FILES_WHY]);
} weft_files_plugin;

/* weft_files_load - the plug-in, from beside the library or from WEFT_FILES_PATH. Local; several threads may call it.
 * path, need   whose file, and what it is: "a PNG image", for the sentence */
weft_status weft_files_load(const char *path, const char *need, const weft_files_plugin **plugin,
                            weft_error *error);

#endif
