/* draw.h: from text to tokens, and from scores to the next token: what gpt sample and gpt serve do alike, to the bit. */
#ifndef WEFT_APPS_GPT_DRAW_H
#define WEFT_APPS_GPT_DRAW_H

#include "../bpe/bpe.h"
#include "weft/dtype.h"

typedef struct gpt_drawing {
    int64_t n_words;    /* rows of the vocabulary that are words: the first */
    double temperature; /* 0: the likeliest, the first of equal ones */
    uint64_t seed;
} gpt_drawing;

/* gpt_draw - a token with probability softmax(logits / temperature): token number `counter` of its text. Philox numbers of the seed,
 * so it depends on nothing else. Local.
 *
 * logits   [n_words] of dtype
 * weights  [n_words], written */
int32_t gpt_draw(const gpt_drawing *drawing, weft_dtype dtype, const void *logits, double *weights,
                 uint64_t counter);

/* gpt_encode - tokens of a text, appended: words, and between them special ones, as <|endoftext|>, each of which is one token. Without
 * words (NULL) each byte is one. Local. returns WEFT_MEMORY */
weft_status gpt_encode(bpe *words, const unsigned char *text, size_t n, bpe_tokens *tokens,
                       weft_error *error);

#endif
