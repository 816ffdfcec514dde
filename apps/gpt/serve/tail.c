/* tail: letters and stops, by bytes. */
#include "tail.h"

#include <stdlib.h>
#include <string.h>

#include "../../serve/utf8.h"

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
    const size_t stop = cut_stop(bytes, n, stops), letter = serve_utf8_cut(bytes, n - stop);
    return n - stop - letter;
}

void gpt_tail_free(gpt_tail *tail)
{
    free(tail->bytes);
    *tail = (gpt_tail){0};
}
