/* weft-read-files: decodes images and compressed data for libweft, which starts it, and is of no use alone.
 *
 * libarchive, libjpeg, libpng, snappy and zstd were not made for files that somebody has tampered with. So they run here, where they see
 * one descriptor and a socket; the kernel kills the process for any other system call. Each task has a bounded processor time.
 */
#include <archive.h>
#include <archive_entry.h>
#include <snappy-c.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "../sandbox.h"
#include "../shut_in.h"
#include "../stream.h"
#include "image.h"

/* A library's reason as it may stand in a sentence, with nothing behind its end. */
static void make_clean(char *why, size_t bytes)
{
    const size_t length = strnlen(why, bytes - 1);
    memset(why + length, 0, bytes - length);
    for (char *c = why; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
}

static bool say(char *why, const char *text)
{
    snprintf(why, FILES_WHY, "%s", text);
    return false;
}

/* ---- whole files ----------------------------------------------------------------------------------- */

static void send_message(stream_kind kind, const void *body, size_t bytes)
{
    const stream_head head = {(uint32_t)kind, (uint32_t)bytes};
    socket_write(&head, sizeof head);
    socket_write(body, bytes);
}

static void send_refused(const char *why)
{
    stream_refusal refusal;
    memset(&refusal, 0, sizeof refusal);
    snprintf(refusal.sentence, FILES_WHY, "%s", why ? why : "no reason given");
    make_clean(refusal.sentence, sizeof refusal.sentence);
    send_message(STREAM_REFUSED, &refusal, sizeof refusal);
}

static void expand(void)
{
    static char bytes[STREAM_FRAME];
    struct archive *in = archive_read_new();
    struct archive_entry *entry;
    la_ssize_t n;
    if (in == NULL) return send_refused("out of memory");
    archive_read_support_filter_zstd(in);
    archive_read_support_filter_xz(in);
    archive_read_support_filter_bzip2(in);
    archive_read_support_filter_lz4(in);
    archive_read_support_format_raw(in);
    archive_read_support_format_empty(in);
    if (archive_read_open_fd(in, 0, 1 << 16) != ARCHIVE_OK ||
        archive_read_next_header(in, &entry) != ARCHIVE_OK)
        return send_refused(archive_error_string(in));
    while ((n = archive_read_data(in, bytes, sizeof bytes)) > 0)
        send_message(STREAM_BYTES, bytes, (size_t)n);
    if (n < 0) return send_refused(archive_error_string(in));
    send_message(STREAM_END, NULL, 0);
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

/* ---- tasks ------------------------------------------------------------------------------------------ */

static bool read_image(const unsigned char *from, size_t n, unsigned char *to, files_answer *answer)
{
    if (n >= 8 && memcmp(from, "\x89PNG\r\n\032\n", 8) == 0) return read_png(from, n, to, answer);
    if (n >= 3 && memcmp(from, "\xff\xd8\xff", 3) == 0) return read_jpeg(from, n, to, answer);
    return say(answer->why, "it is neither JPEG nor PNG by its first bytes");
}

static bool do_task(const files_asked *asked, unsigned char *room, files_answer *answer)
{
    const size_t n = (size_t)asked->n, bytes = (size_t)asked->bytes;
    unsigned char *to = room + asked->to;
    switch (asked->task) {
    case FILES_IMAGE:
        return read_image(room, n, to, answer);
    case FILES_SNAPPY:
        return expand_snappy(room, n, to, bytes, answer->why);
    case FILES_ZSTD:
        return expand_zstd(room, n, to, bytes, answer->why);
    default:
        return say(answer->why, "no such task");
    }
}

static void serve(unsigned char *room)
{
    files_asked asked;
    while (socket_read(&asked, sizeof asked)) {
        files_answer answer;
        memset(&answer, 0, sizeof answer);
        allow_seconds(FILES_PROCESSOR_S);
        answer.is_good = do_task(&asked, room, &answer);
        if (answer.why[0] == '\0') say(answer.why, "its library gives no reason");
        make_clean(answer.why, sizeof answer.why);
        allow_seconds(0);
        socket_write(&answer, sizeof answer);
    }
}

static const allowed_call allowed[] = {
    {SCMP_SYS(read), 1, {0, SCMP_CMP_EQ, 0, 0}},
};

int main(int argc, char **argv)
{
    const bool is_file = argc > 1 && strcmp(argv[1], "expand") == 0;
    void *room =
        is_file ? NULL : mmap(NULL, (size_t)files_room, PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0);
    if (room == MAP_FAILED) return 1;
    const int result = shut_in(allowed, sizeof allowed / sizeof *allowed);
    if (result != 0) _exit(WEFT_SANDBOX_OPEN);
    if (is_file)
        expand();
    else
        serve(room);
    _exit(0);
}
