/* map_names: patterns of names, in which {i} stands for a number. */
#include <string.h>

#include "map.h"

/* What {key} stands for; a new one when `is_new`. NULL: there is none, or no room. */
static char *digits_of(map_found *found, const char *key, size_t bytes, bool is_new)
{
    for (int i = 0; i < found->n; i++)
        if (strlen(found->at[i].key) == bytes && memcmp(found->at[i].key, key, bytes) == 0)
            return found->at[i].digits;
    if (!is_new || found->n == MAP_MOST_KEYS || bytes >= sizeof found->at[0].key) return NULL;
    memcpy(found->at[found->n].key, key, bytes);
    return found->at[found->n++].digits;
}

bool map_match(const char *pattern, const char *name, map_found *found)
{
    memset(found, 0, sizeof *found);
    while (*pattern && *pattern != '{' && *pattern == *name)
        pattern++, name++;
    while (*pattern == '{') {
        const char *close = strchr(pattern, '}');
        const size_t n = strspn(name, "0123456789");
        char *digits =
            close ? digits_of(found, pattern + 1, (size_t)(close - pattern - 1), true) : NULL;
        if (!digits || n == 0 || n >= sizeof found->at[0].digits) return false;
        if (*digits && (strlen(digits) != n || memcmp(digits, name, n) != 0)) return false;
        memcpy(digits, name, n);
        pattern = close + 1;
        name += n;
        while (*pattern && *pattern != '{' && *pattern == *name)
            pattern++, name++;
    }
    return *pattern == 0 && *name == 0;
}

bool map_fill(const char *pattern, const map_found *found, char *text)
{
    char *end = text;
    const char *last = text + MAP_MOST_NAME - 1;
    for (const char *c = pattern; *c; c++) {
        if (end == last) return false;
        if (*c == '}') return false;
        if (*c != '{') {
            *end++ = *c;
            continue;
        }
        const char *close = strchr(c, '}');
        const char *digits =
            close ? digits_of((map_found *)(uintptr_t)found, c + 1, (size_t)(close - c - 1), false)
                  : NULL;
        if (!digits || strlen(digits) >= (size_t)(last - end)) return false;
        end = stpcpy(end, digits);
        c = close;
    }
    *end = 0;
    return true;
}
