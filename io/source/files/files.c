/* files: what libweft_files.so has. It is linked with libarchive, libzstd, libsnappy, libjpeg and libpng, and nothing of Weft's. */
#include "../plugin.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <snappy-c.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "image.h"

/* ---- whole files ----------------------------------------------------------------------------------- */

static bool say(char *why, const char *text)
{
    snprintf(why, WEFT_FILES_WHY, "%s", text ? text : "no reason given");
    return false;
}

static bool write_all(int to, const char *from, size_t n, char *why)
{
    while (n > 0) {
        const ssize_t written = write(to, from, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return say(why, strerror(errno));
        from += written;
        n -= (size_t)written;
    }
    return true;
}

static bool copy_out(struct archive *in, int to, char *why)
{
    static const size_t chunk = 1 << 16;
    char bytes[1 << 16];
    la_ssize_t n;
    while ((n = archive_read_data(in, bytes, chunk)) > 0)
        if (!write_all(to, bytes, (size_t)n, why)) return false;
    return n == 0 || say(why, archive_error_string(in));
}

static bool expand(int from, int to, char why[WEFT_FILES_WHY])
{
    struct archive *in = archive_read_new();
    struct archive_entry *entry;
    if (in == NULL) return say(why, "out of memory");
    archive_read_support_filter_all(in);
    archive_read_support_format_raw(in);
    archive_read_support_format_empty(in);
    const bool is_open = archive_read_open_fd(in, from, 1 << 16) == ARCHIVE_OK &&
                         archive_read_next_header(in, &entry) == ARCHIVE_OK;
    const bool is_good = is_open ? copy_out(in, to, why) : say(why, archive_error_string(in));
    archive_read_free(in);
    return is_good;
}

/* ---- blocks ----------------------------------------------------------------------------------------- */

static bool expand_snappy(const void *from, size_t n, void *to, size_t bytes, char *why)
{
    size_t length = 0;
    if (snappy_uncompressed_length(from, n, &length) != SNAPPY_OK || length != bytes)
        return say(why, "snappy says another size");
    return snappy_uncompress(from, n, to, &length) == SNAPPY_OK ||
           say(why, "its snappy is damaged");
}

static bool expand_zstd(const void *from, size_t n, void *to, size_t bytes, char *why)
{
    const size_t done = ZSTD_decompress(to, bytes, from, n);
    if (ZSTD_isError(done)) return say(why, ZSTD_getErrorName(done));
    return done == bytes || say(why, "zstd ends early");
}

static bool block(weft_block_codec codec, const void *from, size_t n, void *to, size_t bytes,
                  char why[WEFT_FILES_WHY])
{
    return (codec == WEFT_BLOCK_SNAPPY ? expand_snappy : expand_zstd)(from, n, to, bytes, why);
}

/* ---- images ----------------------------------------------------------------------------------------- */

static bool image(const void *from, size_t n, weft_image_size *size, unsigned char *to,
                  char why[WEFT_FILES_WHY])
{
    const unsigned char *bytes = from;
    if (n >= 8 && memcmp(bytes, "\x89PNG\r\n\032\n", 8) == 0)
        return weft_png_read(bytes, n, size, to, why);
    if (n >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
        return weft_jpeg_read(bytes, n, size, to, why);
    return say(why, "it is neither JPEG nor PNG by its first bytes");
}

__attribute__((visibility("default"))) extern const weft_files_plugin weft_files_entry;
const weft_files_plugin weft_files_entry = {WEFT_VERSION, expand, block, image};
