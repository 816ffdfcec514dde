/* text: one locale, "C", of a thread while it reads or prints, whatever the program has set for all.
 *
 * uselocale is of the calling thread alone: others, and the program after us, do not see it.
 */
#include "text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain;

static void make(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t weft_text_plain(void)
{
    pthread_once(&once, make);
    return uselocale(plain);
}

void weft_text_end(locale_t before)
{
    uselocale(before);
}

int weft_text_formatv(char *text, size_t bytes, const char *format, va_list arguments)
{
    const locale_t before = weft_text_plain();
    const int n = vsnprintf(text, bytes, format, arguments);
    weft_text_end(before);
    return n;
}

int weft_text_format(char *text, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = weft_text_formatv(text, bytes, format, arguments);
    va_end(arguments);
    return n;
}

bool weft_text_is_alike(const char *a, const char *b)
{
    const locale_t before = weft_text_plain();
    const bool is_alike = strcasecmp(a, b) == 0;
    weft_text_end(before);
    return is_alike;
}

int weft_number_read(const char *text, double *number)
{
    if (number != NULL) *number = 0;
    if (text == NULL) return 0;
    char *end;
    const locale_t before = weft_text_plain();
    const double read = strtod(text, &end);
    weft_text_end(before);
    if (number != NULL && end > text) *number = read;
    return (int)(end - text);
}

const char *weft_time_text(double seconds, char *text)
{
    static const struct {
        double least, in_seconds;
        const char *unit;
    } units[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {0, 1e6, "us"}};
    int u = 0;
    if (text == NULL) return "";
    while (u < 2 && seconds < units[u].least)
        u++;
    weft_text_format(text, WEFT_TIME_TEXT, "%.3g %s", seconds * units[u].in_seconds, units[u].unit);
    return text;
}
