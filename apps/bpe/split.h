/* split.h: text in pieces, within which pairs are joined: words with the space before them, numbers, signs, white space. */
#ifndef WEFT_APPS_BPE_SPLIT_H
#define WEFT_APPS_BPE_SPLIT_H

#include "weft/error.h"

#include <stddef.h>

typedef struct splitter splitter; /* opaque */

weft_status splitter_open(splitter **s, weft_error *error);
void splitter_close(splitter **s);

/* What is done with each piece, in the order of the text. */
typedef weft_status (*piece_taker)(void *with, const unsigned char *piece, size_t bytes,
                                   weft_error *error);

/* split - GPT-2's pieces. A byte that is no UTF-8 is a piece of its own. Local; linear in bytes. returns what take returned when
 * that was not WEFT_OK; WEFT_MEMORY. */
weft_status split(splitter *s, const unsigned char *text, size_t bytes, piece_taker take,
                  void *with, weft_error *error);

#endif
