/* streams: a text cut into as many parts as a batch has rows, each gone along from its first window to its last. */
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct streams {
    char *path;
    int file;
    int64_t batch, seq, bytes;
    int64_t n_windows; /* of each part */
};

enum { TOKENS, TARGETS, GOES_ON, N_FIELDS };

static weft_status fail_file(const char *path, weft_error *error)
{
    return weft_fail(error, WEFT_IO,
                     "cannot read data file %.300s: %s; name one that is there and may be read",
                     path, strerror(errno));
}

/* `n` bytes from `at`, as numbers: read to the end of the row and widened from its front. */
static weft_status read_bytes(const streams *s, int64_t at, int32_t *row, weft_error *error)
{
    unsigned char *end = (unsigned char *)(row + s->seq) - s->seq;
    for (int64_t done = 0; done < s->seq;) {
        const ssize_t n = pread(s->file, end + done, (size_t)(s->seq - done), at + done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_file(s->path, error);
        if (n == 0)
            return weft_fail(error, WEFT_IO,
                             "data file %.300s has become shorter: it had %lld bytes when it was "
                             "opened",
                             s->path, (long long)s->bytes);
        done += n;
    }
    for (int64_t i = 0; i < s->seq; i++)
        row[i] = end[i];
    return WEFT_OK;
}

static weft_status read_field(const void *argument, int field, int64_t sample, void *row,
                              weft_error *error)
{
    const streams *s = argument;
    const int64_t step = sample / s->batch, part = sample % s->batch;
    if (field == GOES_ON) {
        *(int32_t *)row = step > 0;
        return WEFT_OK;
    }
    const int64_t at = (part * s->n_windows + step) * s->seq;
    return read_bytes(s, at + (field == TARGETS), row, error);
}

static weft_status check_file(streams *s, weft_error *error)
{
    struct stat facts;
    if (fstat(s->file, &facts) != 0) return fail_file(s->path, error);
    if (!S_ISREG(facts.st_mode))
        return weft_fail(error, WEFT_IO,
                         "data file %.300s is not a regular file; name a file, not a %s", s->path,
                         S_ISDIR(facts.st_mode) ? "directory" : "device or pipe");
    s->bytes = facts.st_size;
    s->n_windows = s->bytes > 0 ? (s->bytes - 1) / s->seq / s->batch : 0;
    if (s->bytes == 0)
        return weft_fail(error, WEFT_IO, "data file %.300s is empty; name a file with text in it",
                         s->path);
    if (s->n_windows > 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "data file %.300s has %lld bytes, and %lld rows of a batch that each go along "
                     "a part of it, by windows of %lld bytes, need %lld; take a longer text, or a "
                     "smaller --batch or --seq",
                     s->path, (long long)s->bytes, (long long)s->batch, (long long)s->seq,
                     (long long)(s->batch * s->seq + 1));
}

static weft_status check_shape(int64_t batch, int64_t seq, weft_error *error)
{
    if (batch >= 1 && seq >= 1 && batch <= INT64_MAX / 2 / seq) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%lld rows of %lld bytes are none that can be read",
                     (long long)batch, (long long)seq);
}

weft_status streams_open(const char *path, int64_t batch, int64_t seq, streams **made,
                         weft_error *error)
{
    *made = NULL;
    WEFT_TRY(check_shape(batch, seq, error));
    streams *s = calloc(1, sizeof *s);
    if (!s) return weft_fail_memory(error, sizeof *s);
    *s = (streams){.path = strdup(path), .file = -1, .batch = batch, .seq = seq};
    weft_status status = s->path ? WEFT_OK : weft_fail_memory(error, strlen(path) + 1);
    if (status == WEFT_OK && (s->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        status = fail_file(path, error);
    if (status == WEFT_OK) status = check_file(s, error);
    if (status == WEFT_OK) status = weft_file_check(path, WEFT_FILE_TEXT, error);
    if (status != WEFT_OK) streams_close(&s);
    *made = s;
    return status;
}

void streams_close(streams **s)
{
    if (!*s) return;
    if ((*s)->file >= 0) close((*s)->file);
    free((*s)->path);
    free(*s);
    *s = NULL;
}

uint64_t streams_mark(const streams *s)
{
    return ((uint64_t)s->bytes << 21 | (uint64_t)s->seq) * UINT64_C(0x9E3779B97F4A7C15);
}

weft_status streams_dataset(const streams *s, weft_dataset **dataset, weft_error *error)
{
    const weft_dim window = {"seq", s->seq};
    const weft_sample_field fields[N_FIELDS] = {
        [TOKENS] = {.name = "tokens", .width = window, .dtype = WEFT_I32},
        [TARGETS] = {.name = "targets", .width = window, .dtype = WEFT_I32},
        [GOES_ON] = {.name = "goes_on", .dtype = WEFT_I32},
    };
    const weft_samples_options options = {.fields = fields,
                                          .n_fields = N_FIELDS,
                                          .n_samples = s->n_windows * s->batch,
                                          .read = read_field,
                                          .argument = s};
    return weft_samples_open(&options, dataset, error);
}
