/* texts: many texts in one piece of memory, each of them once. */
#include "texts.h"

#include <stdlib.h>
#include <string.h>

#include "recorder.h"

enum { FIRST_PLACES = 256 /* a power of two, as all to come are */ };

/* Where the text's place is, or belongs. */
static uint32_t *find(const weft_texts *texts, const char *text)
{
    const size_t bytes = strlen(text);
    uint32_t at = (uint32_t)weft_digest(0, text, bytes);
    for (;; at++) {
        uint32_t *place = &texts->places[at & (texts->n_places - 1)];
        if (*place == 0 || strcmp(texts->all + *place - 1, text) == 0) return place;
    }
}

/* Twice as many places; those there are find theirs again. */
static bool widen(weft_texts *texts)
{
    const uint32_t n = texts->n_places ? 2 * texts->n_places : FIRST_PLACES;
    uint32_t *places = calloc(n, sizeof *places);
    if (!places) return false;
    free(texts->places);
    texts->places = places;
    texts->n_places = n;
    for (uint32_t at = 0; at < texts->bytes; at += (uint32_t)strlen(texts->all + at) + 1)
        *find(texts, texts->all + at) = at + 1;
    return true;
}

static bool has_room(weft_texts *texts, size_t bytes)
{
    if (2 * (texts->n + 1) > texts->n_places && !widen(texts)) return false;
    if (texts->bytes + bytes <= texts->room) return true;
    const size_t room = 2 * (texts->bytes + bytes);
    char *all = room < UINT32_MAX ? realloc(texts->all, room) : NULL;
    if (!all) return false;
    texts->all = all;
    texts->room = (uint32_t)room;
    return true;
}

static uint32_t add(weft_texts *texts, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    if (!has_room(texts, bytes)) {
        texts->is_short = true;
        return 0;
    }
    uint32_t *place = find(texts, text);
    if (*place) return *place - 1;
    const uint32_t at = texts->bytes;
    memcpy(texts->all + at, text, bytes);
    texts->bytes += (uint32_t)bytes;
    texts->n++;
    *place = at + 1;
    return at;
}

uint32_t weft_texts_add(weft_texts *texts, const char *text)
{
    if (texts->n == 0) (void)add(texts, "");
    return text && !texts->is_short ? add(texts, text) : 0;
}

void weft_texts_free(weft_texts *texts)
{
    free(texts->all);
    free(texts->places);
    *texts = (weft_texts){0};
}
