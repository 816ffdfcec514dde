/* draw: a token by scores; tokens of a text. */
#include "draw.h"

#include <math.h>

#include "weft/philox.h"

enum { SAMPLE_STREAM = 0x53414d50 /* of random numbers: no op of a graph has this id */ };

/* The first of those with the highest logit: what softmax(logits / temperature) draws as the temperature goes to 0. */
static int32_t likeliest(const gpt_drawing *d, weft_dtype dtype, const void *logits)
{
    int64_t best = 0;
    for (int64_t t = 1; t < d->n_words; t++)
        if (weft_dtype_get(dtype, logits, t) > weft_dtype_get(dtype, logits, best)) best = t;
    return (int32_t)best;
}

int32_t gpt_draw(const gpt_drawing *d, weft_dtype dtype, const void *logits, double *weights,
                 uint64_t counter)
{
    double highest = -INFINITY, sum = 0;
    uint32_t words[4];
    if (d->temperature == 0) return likeliest(d, dtype, logits);
    for (int64_t t = 0; t < d->n_words; t++)
        highest = fmax(highest, weft_dtype_get(dtype, logits, t));
    for (int64_t t = 0; t < d->n_words; t++) {
        weights[t] = exp((weft_dtype_get(dtype, logits, t) - highest) / d->temperature);
        sum += weights[t];
    }
    weft_philox((weft_philox_key){d->seed, SAMPLE_STREAM, 0}, counter, words);
    double left = weft_philox_unit(words[0]) * sum;
    for (int64_t t = 0; t < d->n_words; t++)
        if ((left -= weights[t]) < 0) return (int32_t)t;
    return (int32_t)d->n_words - 1;
}

static weft_status encode_bytes(const unsigned char *text, size_t n, bpe_tokens *tokens,
                                weft_error *error)
{
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(bpe_append(tokens, text[i], error));
    return WEFT_OK;
}

weft_status gpt_encode(bpe *words, const unsigned char *text, size_t n, bpe_tokens *tokens,
                       weft_error *error)
{
    if (words == NULL) return encode_bytes(text, n, tokens, error);
    for (size_t at = 0; at < n;) {
        size_t before, length = 0;
        const int32_t id = bpe_find_special(words, text + at, n - at, &before);
        WEFT_TRY(bpe_encode(words, text + at, before, tokens, error));
        if (id >= 0) {
            (void)bpe_word(words, id, &length);
            WEFT_TRY(bpe_append(tokens, id, error));
        }
        at += before + length;
    }
    return WEFT_OK;
}
