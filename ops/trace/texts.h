/* texts.h (private): many texts in one piece of memory, each of them once: a text is a place in it. */
#ifndef WEFT_TEXTS_H
#define WEFT_TEXTS_H

#include "weft/error.h"

typedef struct weft_texts {
    char *all; /* [bytes] each ended by a 0; "" is at 0 */
    uint32_t bytes, room;
    uint32_t *places; /* [n_places] by hash: a place + 1; 0: free */
    uint32_t n_places, n;
    bool is_short; /* of memory: what was added since is "" */
} weft_texts;

/* weft_texts_add - its place. NULL is "". Local. */
uint32_t weft_texts_add(weft_texts *texts, const char *text);
/* weft_texts_free - of texts that began as {0}. */
void weft_texts_free(weft_texts *texts);

#endif
