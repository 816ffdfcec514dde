/* tail: letters and stops, by bytes. */
#include "tail.h"

#include <stdlib.h>
#include <string.h>

/* ---- letters --------------------------------------------------------------------------------------- */

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

size_t gpt_utf8(const char *bytes, size_t n, char *text)
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

/* Bytes at the end that may become a letter. */
static size_t cut_letter(const char *bytes, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        bool is_cut;
        (void)letter_at((const unsigned char *)bytes + n - back, back, &is_cut);
        if (is_cut) return back;
    }
    return 0;
}

/* ---- stops ----------------------------------------------------------------------------------------- */

weft_status gpt_stops_add(gpt_stops *stops, const char *text, size_t bytes, weft_error *error)
{
    char **texts = realloc(stops->texts, ((size_t)stops->n + 1) * sizeof *texts);
    if (texts) stops->texts = texts;
    size_t *lengths = realloc(stops->bytes, ((size_t)stops->n + 1) * sizeof *lengths);
    if (lengths) stops->bytes = lengths;
    char *copy = malloc(bytes);
    if (!texts || !lengths || !copy) {
        free(copy);
        return weft_fail_memory(error, bytes);
    }
    memcpy(copy, text, bytes);
    texts[stops->n] = copy, lengths[stops->n++] = bytes;
    return WEFT_OK;
}

void gpt_stops_free(gpt_stops *stops)
{
    for (int i = 0; i < stops->n; i++)
        free(stops->texts[i]);
    free(stops->texts);
    free(stops->bytes);
    *stops = (gpt_stops){0};
}

/* The first place where a stop begins that may reach into the last `added` bytes; n: nowhere. */
static size_t find_stop(const gpt_tail *tail, const gpt_stops *stops, size_t added)
{
    size_t first = tail->n;
    for (int i = 0; i < stops->n; i++) {
        const size_t before = added + stops->bytes[i] - 1,
                     from = before < tail->n ? tail->n - before : 0;
        const char *at =
            memmem(tail->bytes + from, tail->n - from, stops->texts[i], stops->bytes[i]);
        if (at && (size_t)(at - tail->bytes) < first) first = (size_t)(at - tail->bytes);
    }
    return first;
}

/* Bytes at the end that may be the begin of a stop. */
static size_t cut_stop(const char *bytes, size_t n, const gpt_stops *stops)
{
    size_t most = 0;
    for (int i = 0; i < stops->n; i++)
        for (size_t back = most + 1; back < stops->bytes[i] && back <= n; back++)
            if (memcmp(bytes + n - back, stops->texts[i], back) == 0) most = back;
    return most;
}

/* ---- the text -------------------------------------------------------------------------------------- */

weft_status gpt_tail_add(gpt_tail *tail, const gpt_stops *stops, const unsigned char *bytes,
                         size_t n, weft_error *error)
{
    if (tail->n + n > tail->room) {
        const size_t room = 2 * (tail->n + n) + 64;
        char *more = realloc(tail->bytes, room);
        if (!more) return weft_fail_memory(error, room);
        tail->bytes = more, tail->room = room;
    }
    memcpy(tail->bytes + tail->n, bytes, n);
    tail->n += n;
    const size_t stop = find_stop(tail, stops, n);
    tail->is_stopped = stop < tail->n;
    tail->n = stop;
    return WEFT_OK;
}

size_t gpt_tail_ready(const gpt_tail *tail, const gpt_stops *stops, bool is_end)
{
    const char *bytes = tail->bytes + tail->told;
    const size_t n = tail->n - tail->told;
    if (is_end || n == 0) return n;
    const size_t stop = cut_stop(bytes, n, stops), letter = cut_letter(bytes, n - stop);
    return n - stop - letter;
}

void gpt_tail_free(gpt_tail *tail)
{
    free(tail->bytes);
    *tail = (gpt_tail){0};
}
