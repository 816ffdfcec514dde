/* words: a function of seed, stream and number, so that every rank draws the same. */
#include "weft/philox.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1 + WORDS_MOST_LENGTH / 4 }; /* of four random numbers, for a word */

int64_t words_vocab(const words *w)
{
    return w->letters + WORDS_MARKS;
}

void words_read(const words *w, int64_t sample, int32_t *read)
{
    const weft_philox_key key = {w->seed, w->stream, 0};
    uint32_t numbers[4];
    for (int64_t i = 0; i <= w->length; i++) {
        if (i % 4 == 0) weft_philox(key, (uint64_t)(sample * BLOCKS + i / 4), numbers);
        const int64_t n = i == 0 ? WORDS_MARKS : w->letters;
        const int32_t drawn = (int32_t)(weft_philox_unit(numbers[i % 4]) * (double)n);
        read[i] = i == 0 ? (int32_t)w->letters + drawn : drawn;
    }
}

static int compare(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

void words_wanted(const words *w, int64_t sample, int32_t *wanted)
{
    int32_t read[1 + WORDS_MOST_LENGTH];
    words_read(w, sample, read);
    for (int64_t i = 0; i < w->length; i++)
        wanted[i] = read[w->length - i];
    if (read[0] > w->letters) qsort(wanted, (size_t)w->length, sizeof *wanted, compare);
}

void words_begun(const words *w, const int32_t *written, int32_t *begun)
{
    memmove(begun + 1, written, (size_t)(w->length - 1) * sizeof *begun);
    begun[0] = (int32_t)w->letters;
}

enum { READ, WRITTEN, WANTED, N_FIELDS };

static weft_status read_row(const void *argument, int field, int64_t sample, void *row,
                            weft_error *error)
{
    const words *w = argument;
    (void)error;
    if (field == READ) {
        words_read(w, sample, row);
        return WEFT_OK;
    }
    words_wanted(w, sample, row);
    if (field == WRITTEN) words_begun(w, row, row);
    return WEFT_OK;
}

weft_status words_open(const words *w, weft_dataset **dataset, weft_error *error)
{
    const weft_sample_field fields[N_FIELDS] = {
        [READ] = {"read", {"source", 1 + w->length}, WEFT_I32},
        [WRITTEN] = {"written", {"target", w->length}, WEFT_I32},
        [WANTED] = {"wanted", {"target", w->length}, WEFT_I32},
    };
    return weft_samples_open(&(weft_samples_options){.fields = fields,
                                                     .n_fields = N_FIELDS,
                                                     .n_samples = INT64_C(1) << 40,
                                                     .read = read_row,
                                                     .argument = w},
                             dataset, error);
}

static void print_letters(const words *w, const int32_t *letters)
{
    for (int64_t i = 0; i < w->length; i++)
        putchar(letters[i] < w->letters ? 'a' + letters[i] : '?');
}

void words_print(const words *w, const int32_t *read, const int32_t *written)
{
    printf("  %-8s ", read[0] > w->letters ? "sort" : "reverse");
    print_letters(w, read + 1);
    printf("   ");
    print_letters(w, written);
    putchar('\n');
}
