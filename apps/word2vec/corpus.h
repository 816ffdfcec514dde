/* corpus.h: the words of a text, and pairs of those that stand near each other. */
#ifndef WEFT_APPS_WORD2VEC_CORPUS_H
#define WEFT_APPS_WORD2VEC_CORPUS_H

#include "weft/io.h"

typedef struct corpus corpus; /* opaque */

enum { CORPUS_MOST_NEAR = 1000 }; /* of a window, and of negatives */

typedef struct corpus_options {
    int64_t most_words; /* only the most frequent ones are words; others are left out of the text */
    int64_t window;     /* how far apart words are that are near each other */
    int64_t negatives;  /* drawn for each pair */
    /* a word more frequent than this part of the text is left out now and then; 0: never */
    double sample;
    uint64_t seed;
} corpus_options;

/* corpus_open - a text file, whole. Words are runs of letters in any script, small (letters.h). Local. returns WEFT_IO for a file that cannot be read,
 * WEFT_USAGE for one that is no UTF-8, or has fewer than two different words. Own it: corpus_close */
weft_status corpus_open(const char *path, const corpus_options *options, corpus **c,
                        weft_error *error);
void corpus_close(corpus **c);
/* How many different words there are, the most frequent first; how many stand in the text as it is gone through. */
int64_t corpus_words(const corpus *c);
int64_t corpus_length(const corpus *c);
const char *corpus_word(const corpus *c, int64_t id); /* borrowed */
/* corpus_told - which words stand in it as it is gone through, into text [CORPUS_TOLD]: "7201 places of 49 words (hash 5e1f..)". */
enum { CORPUS_TOLD = 100 };
void corpus_told(const corpus *c, char text[CORPUS_TOLD]);
/* Another one for other words, or another order of them; not 0. */
uint64_t corpus_mark(const corpus *c);
/* corpus_find - the number of a word [n bytes], small or not; -1 and WEFT_USAGE, with the nearest, for one that is none. Local. */
int64_t corpus_find(const corpus *c, const char *word, size_t n, weft_error *error);
/* corpus_pairs - inputs "center" [batch] and "candidates" [batch, candidate]. c lives as long as the dataset. Local. */
weft_status corpus_pairs(const corpus *c, weft_dataset **dataset, weft_error *error);

#endif
