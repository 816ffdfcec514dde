/* utf8: letters by their bytes. */
#include "utf8.h"

#include <stdbool.h>
#include <string.h>

/* Bytes of the letter that begins with this one; 0: none does. */
static size_t letter_bytes(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Whether byte i of a letter can stand behind the first: no overlong forms, no surrogates, nothing past U+10FFFF. */
static bool continues(unsigned char first, size_t i, unsigned char byte)
{
    unsigned char low = 0x80, high = 0xbf;
    if (i == 1 && first == 0xe0) low = 0xa0;
    if (i == 1 && first == 0xed) high = 0x9f;
    if (i == 1 && first == 0xf0) low = 0x90;
    if (i == 1 && first == 0xf4) high = 0x8f;
    return byte >= low && byte <= high;
}

/* Bytes of the letter at `bytes` [n]: 0: there is none; *is_cut: there may be when more bytes come. */
static size_t letter_at(const unsigned char *bytes, size_t n, bool *is_cut)
{
    const size_t all = letter_bytes(bytes[0]);
    *is_cut = false;
    for (size_t i = 1; i < all; i++) {
        if (i == n) {
            *is_cut = true;
            return 0;
        }
        if (!continues(bytes[0], i, bytes[i])) return 0;
    }
    return all;
}

size_t serve_utf8(const char *bytes, size_t n, char *text)
{
    size_t at = 0, used = 0;
    while (at < n) {
        bool is_cut;
        const size_t letter = letter_at((const unsigned char *)bytes + at, n - at, &is_cut);
        if (letter > 0)
            memcpy(text + used, bytes + at, letter);
        else
            memcpy(text + used, "\xef\xbf\xbd", 3);
        used += letter > 0 ? letter : 3;
        at += letter > 0 ? letter : 1;
    }
    return used;
}

size_t serve_utf8_cut(const char *bytes, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        bool is_cut;
        (void)letter_at((const unsigned char *)bytes + n - back, back, &is_cut);
        if (is_cut) return back;
    }
    return 0;
}
