/* vocabulary.h: inside of a bpe. */
#ifndef WEFT_APPS_BPE_VOCABULARY_H
#define WEFT_APPS_BPE_VOCABULARY_H

#include "../text.h"
#include "bpe.h"
#include "heap.h"
#include "split.h"
#include "table.h"

/* A text's symbol while pairs of it are joined. */
typedef struct bpe_symbol {
    int32_t id;            /* -1: joined to the one before it */
    uint32_t before, next; /* the number of symbols: none */
} bpe_symbol;

/* Where the tokens of a piece that was met before are. */
typedef struct bpe_known {
    size_t at;
    uint32_t n;
} bpe_known;

struct bpe {
    string_table words; /* by id */
    string_table pairs; /* of two int32_t ids, by rank: which is joined before which */
    int32_t *joined;    /* [pairs.n] the word that a pair makes */
    size_t room_joined;
    int32_t of_byte[256];
    splitter *split;
    string_table known; /* pieces that were met before */
    bpe_known *where;   /* [known.n] */
    size_t room_where;
    bpe_tokens kept; /* their tokens */
    bpe_symbol *symbols;
    size_t room_symbols;
    heap heap;
    int32_t *specials; /* [n_specials] words that no pair makes, longer ones first */
    size_t n_specials, room_specials;
    uint8_t is_special[BPE_MOST_WORDS / 8]; /* a bit for each word */
    bool begins_special[256];               /* one of them begins with this byte */
};

/* Words that files beside the vocabulary tell of. All zeros: none. */
typedef struct told_words {
    string_table names;
    int64_t *ids; /* [names.n] -1: not told */
    size_t room;
} told_words;
/* told_read - from the folder's files; WEFT_OK where there are none. To be freed whatever it returns: told_free. */
weft_status told_read(const char *folder, told_words *t, weft_error *error);
void told_free(told_words *t);

/* bpe_tokenizer_read - words {"a": 0} and pairs, a line each as in merges.txt, of a file of Hugging Face's tokenizers that does as
 * GPT-2's; WEFT_USAGE says what another one does. Own both: json_decref, free(pairs->bytes). */
#define BPE_TOKENIZER "tokenizer.json"
weft_status bpe_tokenizer_read(const char *path, json_t **words, app_text *pairs,
                               weft_error *error);

/* bpe_looks_special - as <name>, [NAME] or madeupword0001 do: a word that no pair makes, and that looks so, is one. */
bool bpe_looks_special(const char *word);
bool bpe_is_special(const bpe *b, int64_t id);
/* bpe_mark_special - false: no memory. */
bool bpe_mark_special(bpe *b, int32_t id);

/* bpe_create - without a word. */
weft_status bpe_create(bpe **b, weft_error *error);
/* bpe_letters - how GPT-2 writes a byte: as a letter of Unicode that can be seen. */
void bpe_letters(uint32_t letters[256]);
/* bpe_join - a pair joined, after all that are; its word is added where it is not there. returns its id; -1: no memory */
int32_t bpe_join(bpe *b, int32_t left, int32_t right);

#endif
