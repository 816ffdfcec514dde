/* text: the bytes of a file, or the tokens of one, as windows: sample i is those at [i * seq, i * seq + seq] (seq + 1 of
 * them).
 *
 * tokens are the first seq of a window, targets the last seq: the next one at every position. Only what somebody's box needs
 * is read; the file is never in memory as a whole.
 */
#include "dataset.h"
#include "fingerprint.h"
#include "sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct text {
    int file;
    int64_t seq;
    int64_t begin;   /* the byte of the file where its tokens begin */
    int64_t length;  /* in tokens */
    int64_t n_words; /* 0: tokens are bytes; else 16 bits each, below this */
    char *path;
} text;

static void text_close(void *source)
{
    text *t = source;
    close(t->file);
    free(t->path);
    free(t);
}

enum { PART = 256, MOST_ONCE = 1 << 20 /* tokens */ };

/* A part at a time, in memory of its own: `to` may be where `from` is, which keeps a loop from being made of vectors. */
#define WIDEN(name, NARROW, T)                                                                     \
    static void name(void *to, const unsigned char *from, int64_t n)                               \
    {                                                                                              \
        NARROW read[PART];                                                                         \
        T tokens[PART];                                                                            \
        for (int64_t at = 0; at < n; at += PART) {                                                 \
            const size_t count = (size_t)(n - at < PART ? n - at : PART);                          \
            memcpy(read, from + (size_t)at * sizeof *read, count * sizeof *read);                  \
            for (size_t i = 0; i < count; i++)                                                     \
                tokens[i] = read[i];                                                               \
            memcpy((T *)to + at, tokens, count * sizeof *tokens);                                  \
        }                                                                                          \
    }
WIDEN(bytes_i32, unsigned char, int32_t)
WIDEN(bytes_i64, unsigned char, int64_t)
WIDEN(words_i32, uint16_t, int32_t)
WIDEN(words_i64, uint16_t, int64_t)
typedef void (*widen)(void *to, const unsigned char *from, int64_t n);
/* [has words] */
static const widen widens[2][WEFT_DTYPES] = {
    {[WEFT_I32] = bytes_i32, [WEFT_I64] = bytes_i64}, /* u8 is the bytes themselves */
    {[WEFT_I32] = words_i32, [WEFT_I64] = words_i64}};

/* From memory that lies apart. */
#define WIDEN_APART(name, NARROW, T)                                                               \
    static void name(void *restrict to, const unsigned char *restrict from, int64_t n)             \
    {                                                                                              \
        const NARROW *restrict read = (const void *)from;                                          \
        T *restrict tokens = to;                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            tokens[i] = read[i];                                                                   \
    }
WIDEN_APART(apart_bytes_i32, unsigned char, int32_t)
WIDEN_APART(apart_bytes_i64, unsigned char, int64_t)
WIDEN_APART(apart_words_i32, uint16_t, int32_t)
WIDEN_APART(apart_words_i64, uint16_t, int64_t)
static const widen widens_apart[2][WEFT_DTYPES] = {
    {[WEFT_I32] = apart_bytes_i32, [WEFT_I64] = apart_bytes_i64},
    {[WEFT_I32] = apart_words_i32, [WEFT_I64] = apart_words_i64}};

/* What is read goes to the end of `to` and is widened from the front: an element is never written past what waits to be
 * read. */
static weft_status read_at(const text *t, int64_t at, int64_t n, weft_dtype dtype, void *to,
                           weft_error *error)
{
    const int64_t bytes = t->n_words > 0 ? 2 : 1;
    unsigned char *read = (unsigned char *)to + ((int64_t)weft_dtype_bytes(dtype) - bytes) * n;
    WEFT_TRY(weft_file_read(t->file, t->path, read, n * bytes, t->begin + at * bytes, error));
    if (widens[t->n_words > 0][dtype]) widens[t->n_words > 0][dtype](to, read, n);
    return WEFT_OK;
}

/* In the file, of a number of a window. Fields are 0, tokens, and 1, targets, one later. */
static int64_t place_of(const text *t, int field, int64_t sample, int64_t element)
{
    return sample * t->seq + element + field;
}

/* Tokens and targets of a window are the same but for one: they are read once, where the scratch has room. false: they are not near each
 * other. */
static bool is_read_once(const text *t, int64_t sample, const weft_want *wants, int n_wants,
                         int64_t *begin, int64_t *end)
{
    int64_t n = 0;
    *begin = INT64_MAX, *end = 0;
    for (const weft_want *want = wants; want < wants + n_wants; want++) {
        const int64_t at = place_of(t, want->field, sample, want->begin),
                      count = want->end - want->begin;
        n += count;
        if (at < *begin) *begin = at;
        if (at + count > *end) *end = at + count;
    }
    return n_wants > 1 && 2 * n > 3 * (*end - *begin) && t->seq > 0 && t->seq <= MOST_ONCE &&
           *end - *begin <= t->seq + 1;
}

static weft_status read_once(const text *t, int64_t sample, const weft_want *wants, int n_wants,
                             int64_t begin, int64_t end, unsigned char *scratch, weft_error *error)
{
    const int64_t bytes = t->n_words > 0 ? 2 : 1;
    WEFT_TRY(weft_file_read(t->file, t->path, scratch, (end - begin) * bytes,
                            t->begin + begin * bytes, error));
    for (const weft_want *want = wants; want < wants + n_wants; want++) {
        const int64_t at = place_of(t, want->field, sample, want->begin),
                      n = want->end - want->begin;
        const unsigned char *from = scratch + (at - begin) * bytes;
        if (widens_apart[t->n_words > 0][want->dtype])
            widens_apart[t->n_words > 0][want->dtype](want->to, from, n);
        else
            memcpy(want->to, from, (size_t)n);
    }
    return WEFT_OK;
}

static weft_status text_read(const void *source, int64_t sample, const weft_want *wants,
                             int n_wants, void *scratch, weft_error *error)
{
    const text *t = source;
    int64_t begin, end;
    if (is_read_once(t, sample, wants, n_wants, &begin, &end))
        return read_once(t, sample, wants, n_wants, begin, end, scratch, error);
    for (const weft_want *want = wants; want < wants + n_wants; want++)
        WEFT_TRY(read_at(t, place_of(t, want->field, sample, want->begin), want->end - want->begin,
                         want->dtype, want->to, error));
    return WEFT_OK;
}

/* Of the one record that is all of it. */
static weft_status text_count(const void *source, int64_t record, int field, void *scratch,
                              int64_t *n, weft_error *error)
{
    (void)record, (void)field, (void)scratch, (void)error;
    *n = ((const text *)source)->length;
    return WEFT_OK;
}

static weft_status text_numbers(const void *source, int field, int64_t at, int64_t n, int64_t *to,
                                weft_error *error)
{
    return read_at(source, at + field, n, WEFT_I64, to, error);
}

static void text_place(const void *source, int field, int64_t sample, int64_t element, char *to,
                       size_t bytes)
{
    const text *t = source;
    snprintf(to, bytes, "data file %.180s: %s %lld", t->path, t->n_words > 0 ? "token" : "byte",
             (long long)place_of(t, field, sample, element));
}

static const char *unit_of(const text *t)
{
    return t->n_words > 0 ? "tokens" : "bytes";
}

static weft_status print_first(const void *source, int64_t units, char *print, weft_error *error)
{
    const text *t = source;
    if (units > t->length)
        return weft_fail(error, WEFT_USAGE, "data file %s has %lld %s, not %lld", t->path,
                         (long long)t->length, unit_of(t), (long long)units);
    return weft_fingerprint_file(t->file, t->path, t->begin, t->n_words > 0 ? 2 * units : units,
                                 unit_of(t), units, print, error);
}

enum { WORDS = 1u << WEFT_I32 | 1u << WEFT_I64, BYTES = WORDS | 1u << WEFT_U8 };
#define MEND "encode the text with the vocabulary that is used"
/* [has words]: windows; all of it as one record. */
#define COMMON                                                                                     \
    .read = text_read, .close = text_close, .print_first = print_first, .place = text_place
static const weft_chain_kind kinds[2] = {
    {.name = "text windows", .numbers = text_numbers, .number_bytes = 1, .fact = "text", COMMON},
    {.name = "token windows",
     .numbers = text_numbers,
     .number_bytes = 2,
     .fact = "tokens",
     COMMON}};
static const weft_chain_kind streams[2] = {
    {.name = "text", .count = text_count, .fact = "text", COMMON},
    {.name = "tokens", .count = text_count, .fact = "tokens", COMMON}};

static weft_field field_of(const text *t, const char *name, const char *dim, int64_t count)
{
    const bool has_words = t->n_words > 0;
    const uint32_t dtypes = has_words ? WORDS : BYTES;
    weft_field field = {.name = name,
                        .dtype = has_words ? WEFT_I32 : WEFT_U8,
                        .native = dtypes,
                        .dtypes = dtypes,
                        .shape = {1, {{dim, count}}}};
    if (has_words) field.ids = "words", field.mend = MEND;
    return field;
}

static weft_status check_length(const text *t, const char *path, int64_t length, weft_error *error)
{
    if (length == 0)
        return weft_fail(error, WEFT_IO, "data file %s is empty; name a file with text in it",
                         path);
    if (length < t->seq + 1)
        return weft_fail(error, WEFT_USAGE,
                         "data file %s has %lld %s and one window of seq %lld needs %lld; take a "
                         "longer file or a smaller seq",
                         path, (long long)length, unit_of(t), (long long)t->seq,
                         (long long)t->seq + 1);
    return WEFT_OK;
}

/* How many tokens a file of words says it has; the file has as many. */
static weft_status read_head(text *t, const char *path, int64_t bytes, int64_t *length,
                             weft_error *error)
{
    int32_t head[WEFT_TOKENS_HEAD] = {0};
    const int64_t room = (int64_t)sizeof head;
    t->begin = room;
    if (bytes >= room) WEFT_TRY(weft_file_read(t->file, path, head, room, 0, error));
    *length = head[2];
    if (head[0] == WEFT_TOKENS_MAGIC && head[1] == WEFT_TOKENS_VERSION && *length >= 0 &&
        bytes == room + *length * (int64_t)sizeof(uint16_t))
        return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "data file %s is no file of tokens (%s); make one of a text: weft tokens "
                     "encode",
                     path,
                     head[0] == WEFT_TOKENS_MAGIC ? "it has not as many as it says"
                                                  : "it does not begin as one");
}

static weft_status check_seq(int64_t seq, weft_error *error)
{
    if (seq >= 1 && seq <= INT64_C(1) << 40) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "text windows of seq %lld; seq must be 1 to 2^40",
                     (long long)seq);
}

/* seq 0: as one record. */
static weft_chain_found find(const text *t)
{
    weft_chain_found found = {.records = 1, .n_fields = 1};
    if (t->seq == 0) {
        found.fields[0] = field_of(t, t->n_words > 0 ? "tokens" : "text",
                                   t->n_words > 0 ? "token" : "byte", t->length);
        found.fields[0].is_ragged = true;
        return found;
    }
    found.records = (t->length - 1) / t->seq;
    if (t->seq <= MOST_ONCE) found.scratch_bytes = 2 * ((size_t)t->seq + 1);
    found.n_fields = 2;
    found.fields[0] = field_of(t, "tokens", "seq", t->seq);
    found.fields[1] = field_of(t, "targets", "seq", t->seq);
    found.fields[1].later = 1;
    return found;
}

/* Takes over the file of t, also on failure. */
static weft_status take(text t, const char *path, weft_chain **chain, weft_error *error)
{
    text *own = malloc(sizeof *own);
    t.path = strdup(path);
    if (!own || !t.path) {
        close(t.file);
        free(own);
        free(t.path);
        return weft_fail_memory(error, sizeof *own + strlen(path));
    }
    *own = t;
    const weft_chain_found found = find(own);
    return weft_chain_make(t.seq == 0 ? &streams[t.n_words > 0] : &kinds[t.n_words > 0], own,
                           &found, chain, error);
}

static weft_status check_words(weft_dataset **dataset, int64_t n_words, weft_error *error)
{
    weft_status status = weft_dataset_bound(*dataset, "tokens", n_words, 0, error);
    if (status == WEFT_OK) status = weft_dataset_bound(*dataset, "targets", n_words, 0, error);
    if (status != WEFT_OK) weft_dataset_close(dataset);
    return status;
}

/* What the windows are of: the text, and how long they are. */
static weft_status make(text t, const char *path, weft_chain **chain, weft_error *error)
{
    char print[WEFT_PRINT_TEXT];
    const bool has_words = t.n_words > 0;
    const weft_status status =
        weft_fingerprint_file(t.file, path, t.begin, has_words ? 2 * t.length : t.length,
                              unit_of(&t), t.length, print, error);
    if (status != WEFT_OK) {
        close(t.file);
        return status;
    }
    WEFT_TRY(take(t, path, chain, error));
    WEFT_TRY(weft_chain_say(chain, kinds[has_words].fact, print, error));
    return t.seq > 0 ? weft_chain_say_number(chain, "seq", t.seq, error) : WEFT_OK;
}

static weft_status open_text(const char *path, int64_t n_words, int64_t seq, weft_chain **chain,
                             weft_error *error)
{
    text t = {.seq = seq, .n_words = n_words};
    int64_t bytes;
    WEFT_TRY(weft_file_open(path, &t.file, &bytes, error));
    t.length = bytes;
    weft_status status = weft_kind_check(t.file, path, bytes,
                                         n_words > 0 ? WEFT_FILE_TOKENS : WEFT_FILE_TEXT, error);
    if (status == WEFT_OK && n_words > 0) status = read_head(&t, path, bytes, &t.length, error);
    if (status == WEFT_OK) status = check_length(&t, path, t.length, error);
    if (status == WEFT_OK) return make(t, path, chain, error);
    close(t.file);
    return status;
}

static weft_status open_windows(const char *path, int64_t n_words, int64_t seq, uint64_t seed,
                                weft_dataset **dataset, weft_error *error)
{
    weft_chain *chain = NULL;
    WEFT_TRY(check_seq(seq, error));
    WEFT_TRY(open_text(path, n_words, seq, &chain, error));
    WEFT_TRY(weft_dataset_make(&chain, true, seed, dataset, error));
    return n_words > 0 ? check_words(dataset, n_words, error) : WEFT_OK;
}

weft_status weft_text_windows(const char *path, int64_t n_words, int64_t seq, weft_chain **chain,
                              weft_error *error)
{
    return open_text(path, n_words, seq, chain, error);
}

weft_status weft_text_source(const char *path, const weft_open_options *options, weft_chain **chain,
                             weft_error *error)
{
    (void)options;
    return open_text(path, 0, 0, chain, error);
}

weft_status weft_tokens_source(const char *path, const weft_open_options *options,
                               weft_chain **chain, weft_error *error)
{
    (void)options;
    return open_text(path, UINT16_MAX + 1, 0, chain, error);
}

weft_status weft_text_open(const char *path, int64_t seq, uint64_t seed, weft_dataset **dataset,
                           weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    *dataset = NULL;
    WEFT_GIVEN(path, error);
    return open_windows(path, 0, seq, seed, dataset, error);
}

weft_status weft_tokens_open(const char *path, int64_t n_words, int64_t seq, uint64_t seed,
                             weft_dataset **dataset, weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    *dataset = NULL;
    WEFT_GIVEN(path, error);
    if (n_words < 1 || n_words > UINT16_MAX + 1)
        return weft_fail(error, WEFT_USAGE,
                         "tokens of %lld words; a file of tokens has 16 bits for each: 1 to 65536",
                         (long long)n_words);
    return open_windows(path, n_words, seq, seed, dataset, error);
}
