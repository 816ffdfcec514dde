/* vocabulary.h: inside of a bpe. */
#ifndef WEFT_APPS_BPE_VOCABULARY_H
#define WEFT_APPS_BPE_VOCABULARY_H

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
};

/* bpe_create - without a word. */
weft_status bpe_create(bpe **b, weft_error *error);
/* bpe_letters - how GPT-2 writes a byte: as a letter of Unicode that can be seen. */
void bpe_letters(uint32_t letters[256]);
/* bpe_join - a pair joined, after all that are; its word is added where it is not there. returns its id; -1: no memory */
int32_t bpe_join(bpe *b, int32_t left, int32_t right);

#endif
