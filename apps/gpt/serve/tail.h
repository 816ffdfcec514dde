/* tail.h: a text as it is written, token by token: what of it may be told already. Not half a letter of UTF-8, and nothing that may
 * turn out to be where the text stops.
 *
 *     WEFT_TRY(gpt_tail_add(&tail, &stops, bytes, n, error));
 *     if (tail.is_stopped) ...
 *     const size_t n = gpt_tail_ready(&tail, &stops, is_end);       tail.bytes + tail.told [n]
 *     tail.told += n;
 */
#ifndef WEFT_APPS_GPT_TAIL_H
#define WEFT_APPS_GPT_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "weft/error.h"

/* Texts behind which nothing follows; they are not told themselves. */
typedef struct gpt_stops {
    char **texts; /* [n], not empty; own them: gpt_stops_free */
    size_t *bytes;
    int n;
} gpt_stops;
/* gpt_stops_add - a copy. Local, as all here. */
weft_status gpt_stops_add(gpt_stops *stops, const char *text, size_t bytes, weft_error *error);
void gpt_stops_free(gpt_stops *stops);

typedef struct gpt_tail {
    char *bytes; /* [n]; own it: gpt_tail_free */
    size_t n, room;
    size_t told;     /* of these */
    bool is_stopped; /* the text is over: n is where it stops */
} gpt_tail;

weft_status gpt_tail_add(gpt_tail *tail, const gpt_stops *stops, const unsigned char *bytes,
                         size_t n, weft_error *error);
/* gpt_tail_ready - how many bytes from `told` on may be told; is_end: nothing follows. */
size_t gpt_tail_ready(const gpt_tail *tail, const gpt_stops *stops, bool is_end);
void gpt_tail_free(gpt_tail *tail);

#endif
