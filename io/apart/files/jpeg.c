/* jpeg: by libjpeg-turbo, grey or RGB. A damaged image is refused, although the library itself would only warn. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "image.h"

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
    snprintf(out->why, FILES_WHY, "%.190s", text);
    longjmp(out->back, 1);
}

/* Level -1 is a warning: data that is not whole. */
static void message(j_common_ptr common, int level)
{
    if (level < 0) fail(common);
}

static bool read_all(struct jpeg_decompress_struct *jpeg, const unsigned char *bytes, size_t n,
                     unsigned char *to, files_answer *answer)
{
    jpeg_mem_src(jpeg, bytes, n);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = jpeg->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_calc_output_dimensions(jpeg);
    answer->rows = jpeg->output_height, answer->columns = jpeg->output_width;
    answer->channels = jpeg->output_components;
    const int64_t row = answer->columns * answer->channels;
    if (row * answer->rows > FILES_LARGEST) {
        snprintf(answer->why, FILES_WHY, "it has %lld x %lld pixels, more than 256 MiB",
                 (long long)answer->columns, (long long)answer->rows);
        return false;
    }
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW line = to + row * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &line, 1);
    }
    return true;
}

bool read_jpeg(const unsigned char *bytes, size_t n, unsigned char *to, files_answer *answer)
{
    struct jpeg_decompress_struct jpeg = {0};
    way_out out = {.why = answer->why};
    volatile bool is_good = false;
    jpeg.err = jpeg_std_error(&out.manager);
    out.manager.error_exit = fail;
    out.manager.emit_message = message;
    if (setjmp(out.back) == 0) {
        jpeg_create_decompress(&jpeg);
        is_good = read_all(&jpeg, bytes, n, to, answer);
    }
    jpeg_destroy_decompress(&jpeg);
    return is_good;
}
