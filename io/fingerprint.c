/* fingerprint: a hash of bytes, or of blocks of them: the same of a file and of what is decompressed piece by piece. */
#include "fingerprint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataset.h"

int weft_fingerprint_spans(int64_t bytes)
{
    return bytes > WEFT_PRINT_WHOLE ? WEFT_PRINT_BLOCKS : 1;
}

void weft_fingerprint_span(int64_t bytes, int i, int64_t *begin, int64_t *end)
{
    const int n = weft_fingerprint_spans(bytes);
    *begin = n == 1 ? 0 : (bytes - WEFT_PRINT_BLOCK) / (n - 1) * i;
    *end = *begin + WEFT_PRINT_BLOCK;
    if (i == n - 1) *end = bytes; /* the last, longer by what a distance is rounded by */
}

void weft_fingerprint_begin(weft_fingerprint *print, int64_t bytes)
{
    print->bytes = bytes;
    print->at = 0;
    weft_hash_begin(&print->hashing);
}

void weft_fingerprint_add(weft_fingerprint *print, const void *bytes, int64_t n)
{
    const int64_t from = print->at, to = from + n;
    for (int i = 0; i < weft_fingerprint_spans(print->bytes); i++) {
        int64_t begin, end;
        weft_fingerprint_span(print->bytes, i, &begin, &end);
        const int64_t low = begin > from ? begin : from, high = end < to ? end : to;
        if (low < high)
            weft_hash_add(&print->hashing, (const char *)bytes + (low - from),
                          (size_t)(high - low));
    }
    print->at = to;
}

void weft_fingerprint_end(const weft_fingerprint *print, const char *unit, int64_t units,
                          char text[WEFT_PRINT_TEXT])
{
    char digits[WEFT_HASH_DIGITS + 1];
    const weft_hash hash = weft_hash_end(&print->hashing);
    weft_hash_print(&hash, digits);
    snprintf(text, WEFT_PRINT_TEXT, "%lld %.20s (hash %.16s)", (long long)units, unit, digits);
}

/* All are asked for before the first is waited for: a disk that turns, or a server, takes them on its way. */
static void ask_for(int file, int64_t begin, int64_t bytes)
{
    for (int i = 0; i < weft_fingerprint_spans(bytes); i++) {
        int64_t from, to;
        weft_fingerprint_span(bytes, i, &from, &to);
        (void)posix_fadvise(file, begin + from, to - from, POSIX_FADV_WILLNEED);
    }
}

static weft_status read_span(int file, const char *path, int64_t begin, int64_t end, char *room,
                             weft_fingerprint *print, weft_error *error)
{
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < WEFT_PRINT_BLOCK ? end - at : WEFT_PRINT_BLOCK;
        WEFT_TRY(weft_file_read(file, path, room, n, at, error));
        weft_hash_add(&print->hashing, room, (size_t)n);
    }
    return WEFT_OK;
}

weft_status weft_fingerprint_file(int file, const char *path, int64_t begin, int64_t bytes,
                                  const char *unit, int64_t units, char text[WEFT_PRINT_TEXT],
                                  weft_error *error)
{
    weft_fingerprint print;
    weft_status status = WEFT_OK;
    char *room = malloc(WEFT_PRINT_BLOCK);
    if (room == NULL) return weft_fail_memory(error, WEFT_PRINT_BLOCK);
    weft_fingerprint_begin(&print, bytes);
    ask_for(file, begin, bytes);
    for (int i = 0; i < weft_fingerprint_spans(bytes) && status == WEFT_OK; i++) {
        int64_t from, to;
        weft_fingerprint_span(bytes, i, &from, &to);
        status = read_span(file, path, begin + from, begin + to, room, &print, error);
    }
    weft_fingerprint_end(&print, unit, units, text);
    free(room);
    return status;
}
