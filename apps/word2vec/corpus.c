/* corpus: words are counted in a table by hash, ranked, and the text is kept as their numbers. The words left out and
 * drawn are a function of the seed and of positions alone, so all ranks have the same.
 */
#include "corpus.h"
#include "letters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../text.h"
#include "weft/philox.h"

enum { KEEP_STREAM = 1, NEGATIVE_STREAM = 2, ROUNDS = 64 /* other negatives for the same pair */ };

typedef struct word {
    const char *letters; /* in the text; after ranking ended by 0 */
    size_t n;
    int64_t count, first, rank; /* first: where it stood first; rank -1: none of ours */
} word;

struct corpus {
    corpus_options options;
    letters *letters;
    char *text; /* [bytes], with small letters */
    size_t bytes;
    word *words; /* [n_words], the most frequent first */
    const char **names;
    int64_t n_words, length;
    int32_t *ids;       /* [length] */
    double *cumulative; /* [n_words]: of count^0.75, to draw negatives by */
};

/* ---- reading a file ------------------------------------------------------------------------------ */

static weft_status read_text(const char *path, char **text, size_t *bytes, weft_error *error)
{
    app_text all;
    *text = NULL;
    WEFT_TRY(app_text_read(path, "text", WEFT_FILE_TEXT, &all, error));
    for (size_t i = 0; i < all.n; i++)
        if (all.bytes[i] == '\0') all.bytes[i] = ' '; /* it would end the text */
    *text = all.bytes;
    *bytes = all.n;
    return WEFT_OK;
}

/* ---- words --------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Words by hash: an open table, of which half is free. */
typedef struct table {
    word *words;
    size_t room, used;
} table;

static word *find_word(const table *t, const char *text, size_t n)
{
    size_t at = hash_of(text, n) & (t->room - 1);
    while (t->words[at].n > 0 &&
           (t->words[at].n != n || memcmp(t->words[at].letters, text, n) != 0))
        at = (at + 1) & (t->room - 1);
    return &t->words[at];
}

static bool grow(table *t)
{
    table larger = {.room = t->room > 0 ? 2 * t->room : 1024, .used = t->used};
    larger.words = calloc(larger.room, sizeof *larger.words);
    if (!larger.words) return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->words[i].n > 0)
            *find_word(&larger, t->words[i].letters, t->words[i].n) = t->words[i];
    free(t->words);
    *t = larger;
    return true;
}

static const char *next_word(const corpus *c, size_t *at, size_t *n)
{
    return letters_next(c->letters, c->text, c->bytes, at, n);
}

/* All words of the text; returns how many stand in it, -1: out of memory. */
static int64_t count_words(const corpus *c, table *t)
{
    int64_t total = 0;
    size_t n, at = 0;
    for (const char *next; (next = next_word(c, &at, &n)) != NULL; total++) {
        if (2 * t->used >= t->room && !grow(t)) return -1;
        word *w = find_word(t, next, n);
        if (w->n == 0) {
            *w = (word){.letters = next, .n = n, .first = total};
            t->used++;
        }
        w->count++;
    }
    return total;
}

static int more_frequent(const void *a, const void *b)
{
    const word *x = *(const word *const *)a, *y = *(const word *const *)b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* ---- what a corpus keeps ------------------------------------------------------------------------- */

/* The most frequent ones, ranked; those of the table know their rank. */
static bool rank_words(corpus *c, table *t)
{
    word **all = calloc(t->used + 1, sizeof(word *));
    size_t n = 0;
    if (!all) return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->words[i].n > 0) all[n++] = &t->words[i];
    qsort(all, n, sizeof *all, more_frequent);
    c->n_words = (int64_t)n < c->options.most_words ? (int64_t)n : c->options.most_words;
    c->words = calloc((size_t)c->n_words + 1, sizeof *c->words);
    c->names = calloc((size_t)c->n_words + 1, sizeof *c->names);
    for (size_t i = 0; i < n; i++)
        all[i]->rank = (int64_t)i < c->n_words ? (int64_t)i : -1;
    for (int64_t i = 0; c->words && i < c->n_words; i++)
        c->words[i] = *all[i];
    free(all);
    return c->words && c->names;
}

/* Frequent words go now and then: Mikolov's rule, which keeps sqrt(sample / frequency) of them. */
static bool is_kept(const corpus *c, const word *w, int64_t place, int64_t total)
{
    uint32_t numbers[4];
    if (w->rank < 0) return false;
    if (c->options.sample <= 0) return true;
    weft_philox((weft_philox_key){c->options.seed, KEEP_STREAM, 0}, (uint64_t)place, numbers);
    const double frequency = (double)w->count / (double)total;
    return weft_philox_unit(numbers[0]) < sqrt(c->options.sample / frequency);
}

static bool keep_text(corpus *c, const table *t, int64_t total)
{
    size_t n, at = 0;
    c->ids = malloc(((size_t)total + 1) * sizeof *c->ids);
    if (!c->ids) return false;
    int64_t place = 0;
    for (const char *next; (next = next_word(c, &at, &n)) != NULL; place++) {
        const word *w = find_word(t, next, n);
        if (is_kept(c, w, place, total)) c->ids[c->length++] = (int32_t)w->rank;
    }
    return true;
}

static bool weigh(corpus *c)
{
    double sum = 0;
    c->cumulative = calloc((size_t)c->n_words + 1, sizeof *c->cumulative);
    for (int64_t i = 0; c->cumulative && i < c->n_words; i++)
        c->cumulative[i] = sum += pow((double)c->words[i].count, 0.75);
    return c->cumulative != NULL;
}

/* Names end where the text went on. */
static void end_names(corpus *c)
{
    for (int64_t i = 0; i < c->n_words; i++) {
        c->text[c->words[i].letters - c->text + (ptrdiff_t)c->words[i].n] = '\0';
        c->names[i] = c->words[i].letters;
    }
}

static weft_status take(corpus *c, const char *path, weft_error *error)
{
    table t = {0};
    char what[300];
    snprintf(what, sizeof what, "text %.280s", path);
    WEFT_TRY(letters_open(&c->letters, error));
    WEFT_TRY(read_text(path, &c->text, &c->bytes, error));
    WEFT_TRY(letters_fold(c->letters, &c->text, &c->bytes, what, error));
    const int64_t total = count_words(c, &t);
    const bool is_good =
        total >= 0 && (total == 0 || (rank_words(c, &t) && keep_text(c, &t, total) && weigh(c)));
    free(t.words);
    if (!is_good) return weft_fail_memory(error, c->bytes);
    end_names(c);
    if (c->n_words >= 2 && c->length >= 2) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "text %.300s has %lld different words, of which %lld places are left; take a "
                     "longer one, or a larger --thin",
                     path, (long long)c->n_words, (long long)c->length);
}

weft_status corpus_open(const char *path, const corpus_options *options, corpus **c,
                        weft_error *error)
{
    *c = calloc(1, sizeof **c);
    if (!*c) return weft_fail_memory(error, sizeof **c);
    (*c)->options = *options;
    const weft_status status = take(*c, path, error);
    if (status != WEFT_OK) corpus_close(c);
    return status;
}

void corpus_close(corpus **c)
{
    if (!*c) return;
    letters_close(&(*c)->letters);
    free((*c)->text);
    free((*c)->words);
    free((*c)->names);
    free((*c)->ids);
    free((*c)->cumulative);
    free(*c);
    *c = NULL;
}

/* ---- asking -------------------------------------------------------------------------------------- */

int64_t corpus_words(const corpus *c)
{
    return c->n_words;
}

int64_t corpus_length(const corpus *c)
{
    return c->length;
}

uint64_t corpus_mark(const corpus *c)
{
    uint64_t mark = 0;
    for (int64_t i = 0; i < c->n_words; i++)
        mark = mark * UINT64_C(0x100000001b3) ^ hash_of(c->names[i], strlen(c->names[i]));
    return mark >> 1 | 1; /* integers of JSON have a sign */
}

void corpus_told(const corpus *c, char text[CORPUS_TOLD])
{
    uint64_t hash = corpus_mark(c);
    for (int64_t i = 0; i < c->length; i++)
        hash = (hash ^ (uint64_t)c->ids[i]) * UINT64_C(0x100000001b3);
    snprintf(text, CORPUS_TOLD, "%lld places of %lld words (hash %016llx)", (long long)c->length,
             (long long)c->n_words, (unsigned long long)hash);
}

const char *corpus_word(const corpus *c, int64_t id)
{
    return c->names[id];
}

static int64_t find_folded(const corpus *c, const char *text, weft_error *error)
{
    for (int64_t i = 0; i < c->n_words; i++)
        if (strcmp(c->names[i], text) == 0) return i;
    const char *near = weft_nearest(text, c->names, (int)c->n_words);
    weft_fail(error, WEFT_USAGE, "\"%.100s\" is none of the %lld words%s%.100s%s", text,
              (long long)c->n_words, near ? "; did you mean " : "", near ? near : "",
              near ? "?" : "; more of the text's are with a larger --words");
    return -1;
}

int64_t corpus_find(const corpus *c, const char *asked, size_t n, weft_error *error)
{
    char *text = strndup(asked, n);
    int64_t found = -1;
    n = text ? strlen(text) : 0;
    if (!text)
        weft_fail_memory(error, n);
    else if (letters_fold(c->letters, &text, &n, "a word that is asked for", error) == WEFT_OK) {
        text[n] = '\0';
        found = find_folded(c, text, error);
    }
    free(text);
    return found;
}

/* ---- pairs --------------------------------------------------------------------------------------- */

/* Where pair number `sample` of a round has its center, and what is near it: round the text's ends. */
static void pair_of(const corpus *c, int64_t sample, int32_t *center, int32_t *near)
{
    const int64_t width = 2 * c->options.window, pair = sample % (c->length * width);
    const int64_t place = pair / width, step = pair % width - c->options.window;
    const int64_t other = place + (step >= 0 ? step + 1 : step);
    *center = c->ids[place];
    *near = c->ids[((other % c->length) + c->length) % c->length];
}

static int32_t draw(const corpus *c, double unit)
{
    const double at = unit * c->cumulative[c->n_words - 1];
    int64_t low = 0, high = c->n_words - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (c->cumulative[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return (int32_t)low;
}

enum { CENTER, CANDIDATES, N_FIELDS };

static weft_status read_row(const void *argument, int field, int64_t sample, void *row,
                            weft_error *error)
{
    const corpus *c = argument;
    int32_t *to = row, center, near;
    uint32_t numbers[4];
    (void)error;
    pair_of(c, sample, &center, &near);
    to[0] = field == CENTER ? center : near;
    const int64_t n = field == CANDIDATES ? c->options.negatives : 0, blocks = n / 4 + 1;
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            weft_philox((weft_philox_key){c->options.seed, NEGATIVE_STREAM, 0},
                        (uint64_t)(sample * blocks + i / 4), numbers);
        to[1 + i] = draw(c, weft_philox_unit(numbers[i % 4]));
    }
    return WEFT_OK;
}

weft_status corpus_pairs(const corpus *c, weft_dataset **dataset, weft_error *error)
{
    const weft_sample_field fields[N_FIELDS] = {
        [CENTER] = {"center", {NULL, 0}, WEFT_I32},
        [CANDIDATES] = {"candidates", {"candidate", 1 + c->options.negatives}, WEFT_I32},
    };
    return weft_samples_open(
        &(weft_samples_options){.fields = fields,
                                .n_fields = N_FIELDS,
                                .n_samples = ROUNDS * 2 * c->options.window * c->length,
                                .read = read_row,
                                .argument = c,
                                .is_shuffled = true,
                                .seed = c->options.seed},
        dataset, error);
}
