/* text: the bytes of a file as windows: sample i is bytes [i * seq, i * seq + seq] (seq + 1 of
 * them).
 *
 * tokens are the first seq bytes of a window, targets the last seq: the next byte at every
 * position. Only the bytes that somebody's box needs are read; the file is never in memory as a
 * whole.
 */
#include "dataset.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct text {
    int file;
    int64_t seq;
    char *path;
} text;

static void text_close(void *source)
{
    text *t = source;
    close(t->file);
    free(t->path);
    free(t);
}

#define WIDEN(name, T)                                                                             \
    static void name(void *to, const unsigned char *bytes, int64_t n)                              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T token = bytes[i];                                                              \
            memcpy((unsigned char *)to + (size_t)i * sizeof token, &token, sizeof token);          \
        }                                                                                          \
    }
WIDEN(widen_i32, int32_t)
WIDEN(widen_i64, int64_t)
static void (*const widens[WEFT_DTYPES])(void *to, const unsigned char *bytes, int64_t n) = {
    [WEFT_I32] = widen_i32, [WEFT_I64] = widen_i64}; /* u8 is the bytes themselves */

/* The bytes are read to the end of `to` and widened from the front: an element is never written past the byte that waits to
 * be read. */
static weft_status text_read(const void *source, const weft_want *want, void *to, weft_error *error)
{
    const text *t = source;
    const int64_t n = want->end - want->begin;
    const int64_t shift = want->field; /* 0: tokens; 1: targets, one byte later */
    unsigned char *bytes = (unsigned char *)to + (int64_t)(weft_dtype_bytes(want->dtype) - 1) * n;
    WEFT_TRY(weft_file_read(t->file, t->path, bytes, n, want->sample * t->seq + want->begin + shift,
                            error));
    if (widens[want->dtype]) widens[want->dtype](to, bytes, n);
    return WEFT_OK;
}

enum { TOKENS = 1u << WEFT_I32 | 1u << WEFT_I64 | 1u << WEFT_U8 };
static const weft_dataset_kind text_kind = {
    .width_name = "seq",
    .fields = {{"tokens", true, TOKENS}, {"targets", true, TOKENS}},
    .read = text_read,
    .close = text_close,
};

static weft_status check(const char *path, int64_t seq, int64_t bytes, weft_error *error)
{
    if (bytes == 0)
        return weft_fail(error, WEFT_IO, "data file %s is empty; name a file with text in it",
                         path);
    if (bytes < seq + 1)
        return weft_fail(
            error, WEFT_USAGE,
            "data file %s has %lld bytes and one window of seq %lld needs %lld; take a "
            "longer file or a smaller seq",
            path, (long long)bytes, (long long)seq, (long long)seq + 1);
    return WEFT_OK;
}

weft_status weft_text_open(const char *path, int64_t seq, uint64_t seed, weft_dataset **dataset,
                           weft_error *error)
{
    int file;
    int64_t bytes;
    WEFT_GIVEN(dataset, error);
    *dataset = NULL;
    WEFT_GIVEN(path, error);
    if (seq < 1 || seq > INT64_C(1) << 40)
        return weft_fail(error, WEFT_USAGE, "text windows of seq %lld; seq must be 1 to 2^40",
                         (long long)seq);
    WEFT_TRY(weft_file_open(path, &file, &bytes, error));
    const weft_status status = check(path, seq, bytes, error);
    if (status != WEFT_OK) {
        close(file);
        return status;
    }
    text *t = malloc(sizeof *t);
    char *name = strdup(path);
    if (!t || !name) {
        close(file);
        free(t);
        free(name);
        return weft_fail_memory(error, sizeof *t + strlen(path));
    }
    *t = (text){.file = file, .seq = seq, .path = name};
    const weft_dataset_facts facts = {(bytes - 1) / seq, seq, seed, true};
    return weft_dataset_make(&text_kind, t, &facts, dataset, error);
}
