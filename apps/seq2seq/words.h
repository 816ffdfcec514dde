/* words.h: words to read, and what is to be written of them: in front of the letters stands a mark, for the word backwards or for
 * its letters in order.
 */
#ifndef WEFT_APPS_SEQ2SEQ_WORDS_H
#define WEFT_APPS_SEQ2SEQ_WORDS_H

#include "weft/io.h"

enum { WORDS_MOST_LETTERS = 26, WORDS_MOST_LENGTH = 64, WORDS_MARKS = 2 };

/* Letters are 0, 1, ...; behind them come the marks, the first of which is also what stands before anything is written. */
typedef struct words {
    int64_t letters, length;
    uint64_t seed;
    uint32_t stream; /* another one has other words */
} words;

/* How many numbers a letter or a mark may be. */
int64_t words_vocab(const words *w);
/* words_read - word number `sample` with its mark, [1 + length]; words_wanted - what is to be written, [length]; words_begun - before
 * each letter the one before, [length]. All Local. */
void words_read(const words *w, int64_t sample, int32_t *read);
void words_wanted(const words *w, int64_t sample, int32_t *wanted);
void words_begun(const words *w, const int32_t *written, int32_t *begun);
/* words_open - inputs "read" [batch, source], "written" and "wanted" [batch, target], of as many words as one likes. w lives as long
 * as the dataset. Local. */
weft_status words_open(const words *w, weft_dataset **dataset, weft_error *error);
/* words_print - to stdout: "sort hadbc". Local. */
void words_print(const words *w, const int32_t *read, const int32_t *written);

#endif
