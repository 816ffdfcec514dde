/* beam_test: a beam as wide as there are sequences finds the likeliest of all, as going through all does; a beam of one takes the
 * likeliest letter each time; samples do not see each other.
 */
#include "apps/seq2seq/beam.h"

#include <math.h>
#include <string.h>

#include "test.h"

enum { SAMPLES = 3, LENGTH = 4, VOCAB = 3, ALL = 81, SEEDS = 200 };

/* log p of a letter behind others: of a chain whose numbers depend on sample, place, the letter before, and the letter. */
static double likely(unsigned seed, int sample, int at, int before, int letter)
{
    unsigned h = seed * 2654435761u + (unsigned)(((sample * 7 + at) * 5 + before) * 11 + letter);
    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    return log(1e-3 + (h >> 8) / 16777216.0);
}

static double score_of(unsigned seed, int sample, const int32_t *letters, int n)
{
    double sum = 0;
    for (int at = 0; at < n; at++)
        sum += likely(seed, sample, at, at > 0 ? letters[at - 1] : VOCAB, letters[at]);
    return sum;
}

static void search(beam *b, unsigned seed, int width)
{
    static double scores[SAMPLES * ALL * LENGTH * VOCAB];
    beam_begin(b);
    for (int at = 0; at < LENGTH; at++) {
        for (int r = 0; r < SAMPLES * width; r++) {
            const int32_t *row = beam_written(b) + r * LENGTH;
            for (int v = 0; v < VOCAB; v++)
                scores[(r * LENGTH + at) * VOCAB + v] =
                    likely(seed, r / width, at, at > 0 ? row[at - 1] : VOCAB, v);
        }
        beam_extend(b, at, scores);
    }
}

static double best_of_all(unsigned seed, int sample)
{
    double best = -INFINITY;
    for (int i = 0; i < ALL; i++) {
        const int32_t letters[LENGTH] = {i % 3, i / 3 % 3, i / 9 % 3, i / 27};
        best = fmax(best, score_of(seed, sample, letters, LENGTH));
    }
    return best;
}

static void test_a_wide_beam_finds_the_likeliest_of_all(void)
{
    beam *b = beam_create(SAMPLES, ALL, LENGTH, VOCAB);
    bool is_best = true;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        search(b, seed, ALL);
        for (int i = 0; i < SAMPLES; i++)
            is_best = is_best && fabs(score_of(seed, i, beam_best(b, i), LENGTH) -
                                      best_of_all(seed, i)) < 1e-12;
    }
    CHECK(is_best);
    beam_destroy(&b);
}

static void test_a_beam_of_one_takes_the_likeliest_letter(void)
{
    beam *b = beam_create(SAMPLES, 1, LENGTH, VOCAB);
    bool is_greedy = true;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        search(b, seed, 1);
        for (int i = 0; i < SAMPLES; i++) {
            const int32_t *best = beam_best(b, i);
            for (int at = 0; at < LENGTH; at++)
                for (int v = 0; v < VOCAB; v++)
                    is_greedy = is_greedy &&
                                likely(seed, i, at, at > 0 ? best[at - 1] : VOCAB, v) <=
                                    likely(seed, i, at, at > 0 ? best[at - 1] : VOCAB, best[at]);
        }
    }
    CHECK(is_greedy);
    beam_destroy(&b);
}

/* Wider is no worse on the whole, and sometimes better. */
static void test_a_wider_beam_finds_likelier_sequences(void)
{
    beam *one = beam_create(SAMPLES, 1, LENGTH, VOCAB),
         *four = beam_create(SAMPLES, 4, LENGTH, VOCAB);
    double sums[2] = {0, 0};
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        search(one, seed, 1);
        search(four, seed, 4);
        for (int i = 0; i < SAMPLES; i++) {
            sums[0] += score_of(seed, i, beam_best(one, i), LENGTH);
            sums[1] += score_of(seed, i, beam_best(four, i), LENGTH);
        }
    }
    CHECK(sums[1] > sums[0]);
    beam_destroy(&one);
    beam_destroy(&four);
}

int main(void)
{
    RUN(test_a_wide_beam_finds_the_likeliest_of_all);
    RUN(test_a_beam_of_one_takes_the_likeliest_letter);
    RUN(test_a_wider_beam_finds_likelier_sequences);
    return weft_test_report();
}
