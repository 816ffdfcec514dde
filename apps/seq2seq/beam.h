/* beam.h: the sequences that a net finds most likely, letter by letter: of each sample the best few so far are kept. One: greedy. */
#ifndef WEFT_APPS_SEQ2SEQ_BEAM_H
#define WEFT_APPS_SEQ2SEQ_BEAM_H

#include <stdint.h>

#include "weft/error.h"

typedef struct beam beam; /* opaque */

/* beam_create - for n samples, `width` sequences of each, of `length` letters out of `vocab`; NULL: out of memory. Local. */
beam *beam_create(int64_t n, int64_t width, int64_t length, int64_t vocab);
void beam_destroy(beam **b);
/* beam_begin - nothing is written. Local. */
void beam_begin(beam *b);
/* beam_written - row r is sequence r % width of sample r / width: [n width, length], of which the letters so far are there. */
const int32_t *beam_written(const beam *b);
/* beam_extend - each sequence by one letter.
 *
 * scores  log probabilities [n width, length, vocab], of which place `at`, that of the next letter, is looked at. Local.
 */
void beam_extend(beam *b, int64_t at, const double *scores);
/* beam_best - of sample i: [length] */
const int32_t *beam_best(const beam *b, int64_t i);

#endif
