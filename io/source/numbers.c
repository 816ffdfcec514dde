/* numbers: whole texts as numbers, as tables of text have them. */
#include <math.h>
#include <string.h>

#include "source.h"
#include "weft/number.h"

bool weft_text_i64(const char *text, size_t n, int64_t *number)
{
    const bool is_minus = n > 0 && text[0] == '-';
    const uint64_t most = (uint64_t)INT64_MAX + is_minus;
    uint64_t sum = 0;
    size_t i = n > 0 && (text[0] == '-' || text[0] == '+');
    if (i == n) return false;
    for (; i < n; i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (text[i] < '0' || text[i] > '9' || sum > (most - digit) / 10) return false;
        sum = sum * 10 + digit;
    }
    *number = (int64_t)(is_minus ? 0 - sum : sum);
    return true;
}

/* What tables write where there is no number. */
static bool is_absent(const char *text, size_t n)
{
    static const char *const words[] = {"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && memcmp(words[i], text, n) == 0) return true;
    return false;
}

bool weft_text_f64(const char *text, size_t n, double *number)
{
    char copy[64];
    if (is_absent(text, n)) {
        *number = NAN;
        return true;
    }
    if (n >= sizeof copy || text[0] == ' ' || memchr(text, 'x', n) || memchr(text, 'X', n) ||
        memchr(text, '\0', n) || memchr(text, '(', n))
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return weft_number_read(copy, number) == (int)n;
}
