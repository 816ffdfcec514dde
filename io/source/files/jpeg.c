/* jpeg: by libjpeg-turbo, grey or RGB. A damaged image is refused, although the library itself would only warn. */
#include "image.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

typedef struct way_out {
    struct jpeg_error_mgr manager; /* first: the library hands this over */
    jmp_buf back;
    char *why;
} way_out;

static void fail(j_common_ptr common)
{
    way_out *out = (way_out *)common->err;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    snprintf(out->why, WEFT_FILES_WHY, "%.190s", text);
    longjmp(out->back, 1);
}

/* Level -1 is a warning: data that is not whole. */
static void message(j_common_ptr common, int level)
{
    if (level < 0) fail(common);
}

static bool take_size(const struct jpeg_decompress_struct *jpeg, weft_image_size *size,
                      bool is_known, char *why)
{
    const weft_image_size found = {jpeg->output_height, jpeg->output_width,
                                   jpeg->output_components};
    if (found.rows * found.columns * found.channels > WEFT_IMAGE_LARGEST) {
        snprintf(why, WEFT_FILES_WHY, "it has %lld x %lld pixels, more than 256 MiB",
                 (long long)found.columns, (long long)found.rows);
        return false;
    }
    if (is_known && memcmp(&found, size, sizeof found) != 0) return false;
    *size = found;
    return true;
}

static bool read_all(struct jpeg_decompress_struct *jpeg, const unsigned char *bytes, size_t n,
                     weft_image_size *size, unsigned char *to, char *why)
{
    jpeg_mem_src(jpeg, bytes, n);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = jpeg->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_calc_output_dimensions(jpeg);
    if (!take_size(jpeg, size, to != NULL, why)) return false;
    if (to == NULL) return true;
    jpeg_start_decompress(jpeg);
    const size_t row = (size_t)(size->columns * size->channels);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW line = to + row * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &line, 1);
    }
    return true;
}

bool weft_jpeg_read(const unsigned char *bytes, size_t n, weft_image_size *size, unsigned char *to,
                    char *why)
{
    struct jpeg_decompress_struct jpeg = {0};
    way_out out = {.why = why};
    volatile bool is_good = false;
    jpeg.err = jpeg_std_error(&out.manager);
    out.manager.error_exit = fail;
    out.manager.emit_message = message;
    if (setjmp(out.back) == 0) {
        jpeg_create_decompress(&jpeg);
        is_good = read_all(&jpeg, bytes, n, size, to, why);
    }
    jpeg_destroy_decompress(&jpeg);
    return is_good;
}
