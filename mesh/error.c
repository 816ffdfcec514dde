/* error: the first failure stays, as a status and one sentence; and the nearest known name to a
 * typo. */
#include "weft/error.h"

#include <string.h>

#include "text.h"

weft_status weft_fail(weft_error *error, weft_status status, const char *format, ...)
{
    if (error == NULL || error->status != WEFT_OK || status == WEFT_OK) return status;
    if (format == NULL) format = "no reason was given";
    va_list arguments;
    va_start(arguments, format);
    weft_text_formatv(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    error->status = status;
    error->rank = -1;
    return status;
}

weft_status weft_fail_memory(weft_error *error, size_t bytes)
{
    return weft_fail(
        error, WEFT_MEMORY,
        "could not allocate %zu bytes; use a smaller batch or model, more ranks, or ZeRO", bytes);
}

void weft_error_clear(weft_error *error)
{
    if (error != NULL) *error = (weft_error){WEFT_OK, -1, ""};
}

weft_status weft_check_given(bool is_given, const char *function, const char *argument,
                             weft_error *error)
{
    if (is_given) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s: %s is NULL; it has to be given", function, argument);
}

weft_status weft_check_range(int64_t number, int64_t low, int64_t high, const char *function,
                             const char *argument, weft_error *error)
{
    if (number >= low && number <= high) return WEFT_OK;
    if (low > high)
        return weft_fail(error, WEFT_USAGE, "%s: %s is %lld, and there is none", function, argument,
                         (long long)number);
    return weft_fail(error, WEFT_USAGE, "%s: %s is %lld; it is from %lld to %lld", function,
                     argument, (long long)number, (long long)low, (long long)high);
}

/* Names longer than this are compared by their beginning. */
enum { COMPARED = 64 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: insert, delete, replace, or swap two neighbours, one each.
 * Rows of the table are the prefixes of `a`; only the last three are kept. */
static int edit_distance(const char *a, int n_a, const char *b, int n_b)
{
    int rows[3][COMPARED + 1];
    for (int j = 0; j <= n_b; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n_a; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= n_b; j++) {
            row[j] = smaller(above[j], row[j - 1]) + 1;
            row[j] = smaller(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], above2[j - 2] + 1);
        }
    }
    return rows[n_a % 3][n_b];
}

const char *weft_nearest(const char *name, const char *const *names, int n_names)
{
    const char *nearest = NULL;
    if (name == NULL || names == NULL) return NULL;
    int least = COMPARED + 1, n_name = (int)strnlen(name, COMPARED);
    for (int i = 0; i < n_names; i++) {
        if (names[i] == NULL) continue;
        int n_other = (int)strnlen(names[i], COMPARED);
        int longer = n_name > n_other ? n_name : n_other;
        int allowed = longer / 3 > 2 ? longer / 3 : 2;
        int distance = edit_distance(name, n_name, names[i], n_other);
        /* A distance of the whole name means nothing in common. */
        if (distance > allowed || distance >= longer || distance >= least) continue;
        least = distance;
        nearest = names[i];
    }
    return nearest;
}
