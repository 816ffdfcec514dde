/* options_check: a sentence for each kind of value that does not fit. */
#include "options_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weft/number.h"

enum { MAX_PATH = 3900 };
static const int64_t most = INT64_C(1) << 40;

weft_status option_check_path(const char *what, const char *path, weft_error *error)
{
    if (strlen(path) <= MAX_PATH) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s %.60s... has %zu letters; a path may have %d", what,
                     path, strlen(path), MAX_PATH);
}

/* `said` is how the user wrote it: "--batch 0", "WEFT_BATCH=0". */
static weft_status check_text(const option *o, const char *value, const char *said,
                              weft_error *error)
{
    const bool is_path = strcmp(o->unit, "FILE") == 0 || strcmp(o->unit, "DIR") == 0;
    (void)said;
    return is_path ? option_check_path(o->unit, value, error) : WEFT_OK;
}

static weft_status check_count(const option *o, const char *value, const char *said,
                               weft_error *error)
{
    char *end;
    errno = 0;
    const long long count = strtoll(value, &end, 10);
    if (end == value || *end != '\0')
        return weft_fail(error, WEFT_USAGE, "%s: \"%s\" is not a whole number", said, value);
    const long long high = o->high > 0 ? (long long)o->high : most;
    if (errno == ERANGE || count < (long long)o->low || count > high)
        return weft_fail(error, WEFT_USAGE, "%s: %s must be from %lld to %s%lld%s", said, o->name,
                         (long long)o->low, high == most ? "2^40 (" : "", high,
                         high == most ? ")" : "");
    return WEFT_OK;
}

static weft_status check_real(const option *o, const char *value, const char *said,
                              weft_error *error)
{
    double number;
    const int length = weft_number_read(value, &number);
    if (length == 0 || value[length] != '\0')
        return weft_fail(error, WEFT_USAGE, "%s: \"%s\" is not a number", said, value);
    if (!isfinite(number) || number < o->low)
        return weft_fail(error, WEFT_USAGE, "%s: %s must be a finite number, at least %g", said,
                         o->name, o->low);
    return WEFT_OK;
}

static weft_status check_choice(const option *o, const char *value, const char *said,
                                weft_error *error)
{
    char words[256];
    const char *names[16];
    int n = 0;
    snprintf(words, sizeof words, "%s", o->choices);
    for (char *rest = NULL, *word = strtok_r(words, " ", &rest); word && n < 16;
         word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, value) == 0) return WEFT_OK;
        names[n++] = word;
    }
    const char *near = weft_nearest(value, names, n);
    return weft_fail(error, WEFT_USAGE, "%s: there is no %s \"%s\"%s%s%s; it can be one of: %s",
                     said, o->name, value, near ? " (did you mean " : "", near ? near : "",
                     near ? "?)" : "", o->choices);
}

static weft_status check_flag(const option *o, const char *value, const char *said,
                              weft_error *error)
{
    if (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0) return WEFT_OK;
    if (o->choices && strcmp(value, o->choices) == 0) return WEFT_OK; /* there is one */
    return weft_fail(error, WEFT_USAGE, "%s: %s is \"%s\" and must be %s%syes or no", said, o->name,
                     value, o->choices ? o->choices : "", o->choices ? ", " : "");
}

double option_seconds(const char *text)
{
    double number;
    const char *end = text + weft_number_read(text, &number);
    const double unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 0;
    return end == text || unit == 0 || end[1] != '\0' || !isfinite(number) || number < 0
               ? -1
               : number * unit;
}

static weft_status check_time(const option *o, const char *value, const char *said,
                              weft_error *error)
{
    const double seconds = option_seconds(value);
    if (seconds > 0 || (seconds == 0 && o->low < 0)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s: %s is \"%s\" and must be a number %s 0 and its unit: 90s, 30m or 2h",
                     said, o->name, value, o->low < 0 ? "from" : "above");
}

static weft_status (*const checks[OPTION_KINDS])(const option *, const char *, const char *,
                                                 weft_error *) = {
    [OPTION_TEXT] = check_text, [OPTION_LIST] = check_text,     [OPTION_COUNT] = check_count,
    [OPTION_REAL] = check_real, [OPTION_CHOICE] = check_choice, [OPTION_FLAG] = check_flag,
    [OPTION_TIME] = check_time,
};

weft_status option_check(const option *o, const char *value, const char *said, weft_error *error)
{
    return checks[o->kind](o, value, said, error);
}
