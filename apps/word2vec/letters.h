/* letters.h: the words of a text in any script: runs of what Unicode calls letters, with their marks, and apostrophes; small letters.
 *
 *     WEFT_TRY(letters_open(&l, error));
 *     WEFT_TRY(letters_fold(l, &text, &bytes, "text book.txt", error));
 *     for (size_t at = 0; (word = letters_next(l, text, bytes, &at, &n)) != NULL;) ...
 *
 * Digits and signs stand between words, as spaces do. A text without spaces, as Chinese, has its runs of letters for words. The typographic
 * apostrophe between letters is the plain one. Large letters become small ones by Unicode's pairs of one letter each, Greek's sigma at
 * the end of a word another one than within. Nothing is composed or taken apart: an e with its accent in one and the same e with an
 * accent behind it are two words, so a text should be in one form, as NFC. All Local.
 */
#ifndef WEFT_APPS_WORD2VEC_LETTERS_H
#define WEFT_APPS_WORD2VEC_LETTERS_H

#include <stddef.h>

#include "weft/error.h"

typedef struct letters letters; /* opaque */

weft_status letters_open(letters **l, weft_error *error);
void letters_close(letters **l);
/* letters_fold - a text [bytes] and its end, in malloc's memory, by one with small letters. returns WEFT_USAGE for what is no UTF-8, with
 * the first byte that is none; WEFT_MEMORY. */
weft_status letters_fold(const letters *l, char **text, size_t *bytes, const char *what,
                         weft_error *error);
/* letters_next - the next word of a folded text from *at on, which goes behind it; NULL: there is none. */
const char *letters_next(const letters *l, const char *text, size_t bytes, size_t *at, size_t *n);

#endif
