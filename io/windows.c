/* windows: the text of records as windows of seq + 1. A stage joins records, texts with a line break between two of them. By it any files of
 * text, tokens, or records with a text are a chain to learn from.
 *
 * Where each record ends is kept, 8 bytes for each: so any window is found at once. Windows begin at multiples of seq, as those of one
 * text do, and go on from a record to the next.
 */
#include "sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dataset.h"
#include "ends.h"
#include "source/paths.h"
#include "source/records.h"

enum { WORDS = 1u << WEFT_I32 | 1u << WEFT_I64, DTYPES = WORDS | 1u << WEFT_U8 };

typedef struct windows {
    const weft_chain *operand;
    int field;
    weft_dtype dtype; /* of a text u8, of tokens i32 */
    int64_t seq, n;
    int64_t between; /* what stands between two records; -1: nothing */
    int64_t *ends;   /* [n] where a record ends in what is joined, with that behind it */
    size_t scratch;  /* where the operand's begins */
} windows;

static void windows_close(void *self)
{
    windows *w = self;
    free(w->ends);
    free(w);
}

static char *put_between(const windows *w, char *to)
{
    const int32_t token = (int32_t)w->between;
    if (w->dtype == WEFT_U8)
        *to = (char)token;
    else
        memcpy(to, &token, sizeof token);
    return to + weft_dtype_bytes(w->dtype);
}

/* [at, end) of what is joined. */
static weft_status take(const windows *w, int64_t at, int64_t end, char *to, void *scratch,
                        weft_error *error)
{
    const bool has_between = w->between >= 0;
    int64_t begin, record = weft_ends_find(w->ends, w->n, at, &begin);
    for (; at < end; begin = w->ends[record++]) {
        const int64_t last = w->ends[record] - has_between, own = last < end ? last : end;
        const weft_want want = {w->field, w->dtype, at - begin, own - begin, to};
        if (own > at) WEFT_TRY(weft_chain_ask(w->operand, record, &want, 1, scratch, error));
        if (own > at) to += (size_t)(own - at) * weft_dtype_bytes(w->dtype), at = own;
        if (at < end && has_between) to = put_between(w, to), at++;
    }
    return WEFT_OK;
}

static weft_status windows_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                                void *scratch, weft_error *error)
{
    const windows *w = self;
    const size_t element = weft_dtype_bytes(w->dtype);
    char *text = scratch;
    int64_t begin = INT64_MAX, end = 0;
    for (const weft_want *want = wants; want < wants + n_wants; want++) {
        begin = want->begin + want->field < begin ? want->begin + want->field : begin;
        end = want->end + want->field > end ? want->end + want->field : end;
    }
    WEFT_TRY(take(w, i * w->seq + begin, i * w->seq + end, text, text + w->scratch, error));
    for (const weft_want *want = wants; want < wants + n_wants; want++) {
        const char *from = text + (size_t)(want->begin + want->field - begin) * element;
        const int64_t n = want->end - want->begin;
        if (want->dtype == w->dtype)
            memcpy(want->to, from, (size_t)n * element);
        else
            WEFT_TRY(weft_convert(w->dtype, from, want->dtype, want->to, n, error));
    }
    return WEFT_OK;
}

static void windows_place(const void *self, int field, int64_t i, int64_t number, char *text,
                          size_t bytes)
{
    const windows *w = self;
    const int64_t at = i * w->seq + number + field;
    int64_t begin;
    const int64_t record = weft_ends_find(w->ends, w->n, at, &begin);
    weft_chain_place(w->operand, w->field, record, at - begin, text, bytes);
}

static const weft_chain_kind windows_kind = {
    .name = "windows", .read = windows_read, .close = windows_close, .place = windows_place};

static weft_status find_ends(windows *w, weft_error *error)
{
    const size_t bytes = (w->operand->found.scratch_bytes + 127) / 64 * 64;
    void *scratch = aligned_alloc(64, bytes);
    weft_status status = WEFT_OK;
    w->ends = malloc((size_t)w->n * sizeof *w->ends);
    if (w->ends == NULL || scratch == NULL)
        status = weft_fail_memory(error, (size_t)w->n * sizeof *w->ends);
    for (int64_t i = 0, end = 0, count = 0; i < w->n && status == WEFT_OK; i++) {
        status = weft_chain_count(w->operand, i, w->field, scratch, &count, error);
        w->ends[i] = end += count + (w->between >= 0);
    }
    free(scratch);
    return status;
}

static weft_status check_length(const windows *w, const char *what, int64_t length,
                                weft_error *error)
{
    if (length >= w->seq + 1) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.220s has %lld %s in %lld records, and one window of seq %lld needs %lld; "
                     "take more text or a smaller seq",
                     what, (long long)length, w->dtype == WEFT_U8 ? "bytes of text" : "tokens",
                     (long long)w->n, (long long)w->seq, (long long)w->seq + 1);
}

static weft_status make(windows *w, int64_t length, weft_chain **chain, weft_error *error)
{
    char setting[160], between[40] = "";
    const weft_field *text = &w->operand->found.fields[w->field];
    const bool is_text = w->dtype == WEFT_U8;
    weft_chain_found found = {.records = (length - 1) / w->seq, .n_fields = 2};
    for (int f = 0; f < 2; f++)
        found.fields[f] = (weft_field){.name = f == 0 ? "tokens" : "targets",
                                       .dtype = w->dtype,
                                       .native = is_text ? DTYPES : WORDS,
                                       .dtypes = is_text ? DTYPES : WORDS,
                                       .later = f,
                                       .shape = {1, {{"seq", w->seq}}}};
    w->scratch = ((size_t)w->seq + 1) * weft_dtype_bytes(w->dtype);
    w->scratch = (w->scratch + 63) / 64 * 64;
    found.scratch_bytes = w->scratch + w->operand->found.scratch_bytes;
    if (!is_text && w->between >= 0)
        snprintf(between, sizeof between, ", %lld between", (long long)w->between);
    snprintf(setting, sizeof setting, "seq %lld of %.100s%s", (long long)w->seq, text->name,
             between);
    return weft_stage_make(&windows_kind, w, &found, setting, chain, 1, chain, error);
}

/* In the place of a chain of records. what: for sentences. */
static weft_status join(weft_chain **chain, int field, int64_t seq, int64_t between,
                        const char *what, weft_error *error)
{
    windows *w = calloc(1, sizeof *w);
    if (w == NULL) return weft_fail_memory(error, sizeof *w);
    *w = (windows){.operand = *chain, .field = field, .seq = seq, .n = (*chain)->found.records};
    w->dtype = (*chain)->found.fields[field].dtype == WEFT_U8 ? WEFT_U8 : WEFT_I32;
    w->between = between;
    weft_status status = find_ends(w, error);
    const int64_t length = status == WEFT_OK ? w->ends[w->n - 1] - (between >= 0) : 0;
    if (status == WEFT_OK) status = check_length(w, what, length, error);
    if (status == WEFT_OK) return make(w, length, chain, error);
    windows_close(w);
    return status;
}

/* ---- which field ---------------------------------------------------------------------------------- */

static bool is_text_field(const weft_field *f)
{
    return f->is_ragged && f->dtype == WEFT_U8 && f->shape.n_dims == 1;
}

/* The field of that name, or the only text. */
static weft_status find_field(const weft_chain *chain, const char *path, const char *name,
                              int *field, weft_error *error)
{
    char list[200] = "";
    int n_texts = 0;
    for (int f = 0; f < chain->found.n_fields; f++) {
        const size_t used = strlen(list);
        if (!is_text_field(&chain->found.fields[f])) continue;
        *field = f;
        snprintf(list + used, sizeof list - used, "%s%.60s", n_texts++ > 0 ? ", " : "",
                 chain->found.fields[f].name);
    }
    if (name != NULL) *field = weft_chain_field(chain, name);
    if (n_texts > 0 && *field >= 0 && (name != NULL || n_texts == 1) &&
        is_text_field(&chain->found.fields[*field]))
        return WEFT_OK;
    if (name != NULL)
        return weft_fail(error, WEFT_USAGE,
                         "data %.200s: %.60s is %s of %d dims, and no text; name a field of texts",
                         path, name, weft_dtype_name(chain->found.fields[*field].dtype),
                         chain->found.fields[*field].shape.n_dims);
    if (n_texts == 0)
        return weft_fail(
            error, WEFT_USAGE, "data %.200s has no field with a text in it; its first is %.60s, %s",
            path, chain->found.fields[0].name, weft_dtype_name(chain->found.fields[0].dtype));
    return weft_fail(error, WEFT_USAGE,
                     "data %.200s has %d fields with texts (%s); say which is the text", path,
                     n_texts, list);
}

/* A field that is named "text" is it; all others need not be read then. */
static weft_status open_records(const char *path, const char *format, const char *name,
                                weft_chain **chain, int *field, weft_error *error)
{
    const weft_open_options wanted = {.format = format, .fields = name ? name : "text"},
                            all = {.format = format};
    weft_error ignored = {.rank = -1};
    const weft_status status = weft_records_source(path, &wanted, chain, name ? error : &ignored);
    if (name != NULL) WEFT_TRY(status);
    if (status != WEFT_OK) WEFT_TRY(weft_records_source(path, &all, chain, error));
    const weft_status found =
        find_field(*chain, path, status == WEFT_OK && !name ? "text" : name, field, error);
    if (found != WEFT_OK) weft_chain_close(chain);
    return found;
}

/* ---- any file of text ----------------------------------------------------------------------------- */

static weft_status open_joined(const char *path, const char *format, const weft_text_options *o,
                               weft_chain **chain, weft_error *error)
{
    char what[240];
    int field = -1;
    WEFT_TRY(open_records(path, format, o->field, chain, &field, error));
    snprintf(what, sizeof what, "data %.200s", path);
    const weft_status status = join(chain, field, o->seq, '\n', what, error);
    if (status != WEFT_OK) weft_chain_close(chain);
    return status;
}

/* Windows of each file: none crosses from one to the next. */
static weft_status open_tokens(const weft_paths *paths, const weft_text_options *o,
                               weft_chain **chain, weft_error *error)
{
    weft_chain **parts = calloc((size_t)paths->n, sizeof *parts);
    weft_status status =
        parts ? WEFT_OK : weft_fail_memory(error, (size_t)paths->n * sizeof *parts);
    for (int i = 0; i < paths->n && status == WEFT_OK; i++)
        status = weft_text_windows(paths->paths[i], o->n_words, o->seq, &parts[i], error);
    if (status == WEFT_OK && paths->n > 1)
        status = weft_chain_concat(parts, paths->n, chain, error);
    else if (status == WEFT_OK)
        *chain = parts[0], parts[0] = NULL;
    for (int i = 0; parts != NULL && i < paths->n; i++)
        weft_chain_close(&parts[i]);
    free(parts);
    return status;
}

/* Formats of records that may have a text; others are told by what they are. */
static bool may_have_text(const char *format)
{
    static const char *const formats[] = {"jsonl", "csv", "parquet", "tar"};
    for (size_t i = 0; format != NULL && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i], format) == 0) return true;
    return false;
}

static weft_status open_found(const char *path, const weft_paths *paths, const weft_text_options *o,
                              weft_chain **chain, weft_error *error)
{
    if (o->n_words > 0) return open_tokens(paths, o, chain, error);
    const char *seen = weft_records_sees(path), *format = may_have_text(seen) ? seen : NULL;
    if (format == NULL && paths->n == 1 && !weft_records_expands(paths->paths[0]))
        return weft_text_windows(paths->paths[0], 0, o->seq, chain, error);
    return open_joined(path, format ? format : "text", o, chain, error);
}

static weft_status check(const weft_text_options *o, weft_error *error)
{
    if (o->seq < 1 || o->seq > INT64_C(1) << 40)
        return weft_fail(error, WEFT_USAGE, "text windows of seq %lld; seq must be 1 to 2^40",
                         (long long)o->seq);
    if (o->n_words >= 0 && o->n_words <= UINT16_MAX + 1) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "tokens of %lld words; a file of tokens has 16 bits for each: 1 to 65536",
                     (long long)o->n_words);
}

weft_status weft_chain_text(const char *path, const weft_text_options *options, weft_chain **chain,
                            weft_error *error)
{
    struct stat facts;
    weft_paths paths;
    WEFT_GIVEN(chain, error);
    *chain = NULL;
    WEFT_GIVEN(path, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check(options, error));
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return weft_fail(error, WEFT_IO,
                         "data file %.200s is not a regular file; name a file, not a directory: "
                         "its files by a pattern, as '%.200s/*.txt'",
                         path, path);
    WEFT_TRY(weft_paths_find(path, 0, 0, &paths, error));
    const weft_status status = open_found(path, &paths, options, chain, error);
    weft_paths_free(&paths);
    return status;
}

/* ---- any chain ------------------------------------------------------------------------------------- */

static bool has_tokens(const weft_field *f)
{
    return f->is_ragged && f->shape.n_dims == 1 && !weft_dtype_is_float(f->dtype);
}

weft_status weft_chain_windows(weft_chain **chain, const weft_windows_options *options,
                               weft_error *error)
{
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_GIVEN_RANGE(options->seq, 1, INT64_C(1) << 30, error);
    const weft_chain_found *found = &(*chain)->found;
    const bool is_text = found->n_fields == 1 && is_text_field(&found->fields[0]);
    WEFT_GIVEN_RANGE(options->between, -1, is_text ? UINT8_MAX : INT32_MAX, error);
    if (found->varies)
        return weft_fail(
            error, WEFT_USAGE,
            "weft_chain_windows: passes of the chain differ by its %s, and windows "
            "are of one; make windows first and shuffle them then, or freeze the chain",
            (*chain)->kind->name);
    if (found->n_fields == 1 && has_tokens(&found->fields[0]))
        return join(chain, 0, options->seq, options->between, "weft_chain_windows: the chain",
                    error);
    return weft_fail(error, WEFT_USAGE,
                     "weft_chain_windows: records have %d fields, the first %.80s, and it takes "
                     "one: a text, or a row of whole numbers of any length; open that alone",
                     found->n_fields, found->fields[0].name);
}
