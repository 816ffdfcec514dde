/* beam: each of `width` sequences with each letter behind it is a candidate; the best `width` stay, of equal ones the first. */
#include "beam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    double score;
    int64_t from; /* which sequence it goes on from */
    int32_t letter;
} candidate;

struct beam {
    int64_t n, width, length, vocab;
    int32_t *written,
        *before;   /* [n width, length]; those of the step before, of one sample [width, length] */
    double *score; /* [n, width], the best first; -inf: no sequence yet */
    candidate *best; /* [width], of one sample, the best first */
};

beam *beam_create(int64_t n, int64_t width, int64_t length, int64_t vocab)
{
    beam *b = calloc(1, sizeof *b);
    if (b == NULL) return NULL;
    *b = (beam){.n = n, .width = width, .length = length, .vocab = vocab};
    b->written = calloc((size_t)(n * width * length), sizeof *b->written);
    b->before = calloc((size_t)(width * length), sizeof *b->before);
    b->score = calloc((size_t)(n * width), sizeof *b->score);
    b->best = calloc((size_t)width, sizeof *b->best);
    if (b->written && b->before && b->score && b->best) return b;
    beam_destroy(&b);
    return NULL;
}

void beam_destroy(beam **b)
{
    if (*b == NULL) return;
    free((*b)->written);
    free((*b)->before);
    free((*b)->score);
    free((*b)->best);
    free(*b);
    *b = NULL;
}

/* One sequence of each sample is empty, the others are none: else all would be the same. */
void beam_begin(beam *b)
{
    memset(b->written, 0, (size_t)(b->n * b->width * b->length) * sizeof *b->written);
    for (int64_t i = 0; i < b->n * b->width; i++)
        b->score[i] = i % b->width == 0 ? 0 : -INFINITY;
}

const int32_t *beam_written(const beam *b)
{
    return b->written;
}

const int32_t *beam_best(const beam *b, int64_t i)
{
    return b->written + i * b->width * b->length;
}

/* Into a list in order of scores, behind equal ones. */
static void put(candidate *best, int64_t width, candidate c)
{
    int64_t at = width;
    while (at > 0 && best[at - 1].score < c.score)
        at--;
    if (at == width) return;
    memmove(best + at + 1, best + at, (size_t)(width - 1 - at) * sizeof *best);
    best[at] = c;
}

static void find_best(beam *b, int64_t sample, int64_t at, const double *scores)
{
    const double *score = b->score + sample * b->width;
    for (int64_t k = 0; k < b->width; k++)
        b->best[k] = (candidate){-INFINITY, 0, 0};
    for (int64_t k = 0; k < b->width; k++) {
        const double *of = scores + ((sample * b->width + k) * b->length + at) * b->vocab;
        for (int64_t v = 0; v < b->vocab; v++)
            put(b->best, b->width, (candidate){score[k] + of[v], k, (int32_t)v});
    }
}

static void extend_sample(beam *b, int64_t sample, int64_t at, const double *scores)
{
    const int64_t row = b->length;
    int32_t *written = b->written + sample * b->width * row;
    double *score = b->score + sample * b->width;
    find_best(b, sample, at, scores);
    memcpy(b->before, written, (size_t)(b->width * row) * sizeof *written);
    for (int64_t k = 0; k < b->width; k++) {
        memcpy(written + k * row, b->before + b->best[k].from * row, (size_t)row * sizeof *written);
        written[k * row + at] = b->best[k].letter;
        score[k] = b->best[k].score;
    }
}

void beam_extend(beam *b, int64_t at, const double *scores)
{
    for (int64_t i = 0; i < b->n; i++)
        extend_sample(b, i, at, scores);
}
