/* tracing: the steps of a training that are traced. */
#include "tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "weft/collectives.h"

void app_trace_folder(const char *folder, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.4000s/trace", folder);
}

/* A number from 1, and the letter behind it; 0: there is none. */
static int64_t number_of(const char *text, const char **end)
{
    char *behind;
    errno = 0;
    const long long n = strtoll(text, &behind, 10);
    *end = behind;
    return *text >= '0' && *text <= '9' && errno == 0 && n >= 1 ? n : 0;
}

weft_status app_tracing_read(app_tracing *tracing, const settings *s, int64_t end,
                             weft_error *error)
{
    const char *text = settings_text(s, "trace"), *at, *behind = "";
    if (*text == '\0') return WEFT_OK;
    const int64_t first = number_of(text, &at);
    const int64_t last = strncmp(at, "..", 2) == 0 ? number_of(at + 2, &behind) : 0;
    if (first == 0 || last == 0 || *behind != '\0')
        return weft_fail(error, WEFT_USAGE,
                         "--trace %s: name the first step and the last, counted from 1, as 3..5",
                         text);
    if (first > last)
        return weft_fail(error, WEFT_USAGE,
                         "--trace %s: step %lld comes after step %lld; write --trace %lld..%lld",
                         text, (long long)first, (long long)last, (long long)last,
                         (long long)first);
    if (last > end)
        return weft_fail(error, WEFT_USAGE,
                         "--trace %s: the training ends with step %lld; name steps from 1 to %lld",
                         text, (long long)end, (long long)end);
    tracing->first = first;
    tracing->last = last;
    app_trace_folder(settings_text(s, "run"), tracing->folder, sizeof tracing->folder);
    return WEFT_OK;
}

static weft_status begin(app_tracing *tracing, const weft_trace_part *parts, int n,
                         weft_error *error)
{
    (void)mkdir(tracing->folder, 0777); /* a file in it tells whether it is there */
    WEFT_TRY(weft_trace_begin(tracing->folder, parts, n, &tracing->trace, error));
    const char *note = weft_trace_note(tracing->trace);
    if (*note) fprintf(stderr, "%s\n", note);
    return WEFT_OK;
}

weft_status app_tracing_end(app_tracing *tracing, weft_error *error)
{
    if (!tracing->trace) return WEFT_OK;
    const bool is_whole = *weft_trace_note(tracing->trace) == '\0';
    WEFT_TRY(weft_trace_end(&tracing->trace, error));
    if (tracing->says && is_whole)
        fprintf(stderr, "a trace is in %s: weft trace %.*s makes a file for Perfetto of it\n",
                tracing->folder, (int)(strlen(tracing->folder) - strlen("/trace")),
                tracing->folder);
    return WEFT_OK;
}

weft_status app_tracing_before(app_tracing *tracing, int64_t step, const weft_trace_part *parts,
                               int n, weft_error *error)
{
    if (step > tracing->last) return app_tracing_end(tracing, error);
    if (tracing->trace || step < tracing->first) return WEFT_OK;
    return begin(tracing, parts, n, error);
}

void app_tracing_close(app_tracing *tracing)
{
    weft_trace_destroy(&tracing->trace);
}
