/* bpe.h: text as words of a vocabulary, by byte-pair encoding: bytes, and pairs of words joined in the order in which they were
 * learned. The format is GPT-2's: a folder with vocab.json, word to id, and merges.txt, a pair a line (or encoder.json and
 * vocab.bpe, as they were called first), or Hugging Face's tokenizer.json alone. Any bytes are encoded, and decoded they are the same bytes.
 *
 * Source: Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words with Subword Units (2016); Radford et al.:
 * Language Models are Unsupervised Multitask Learners (2019).
 */
#ifndef WEFT_APPS_BPE_H
#define WEFT_APPS_BPE_H

#include <stddef.h>

#include "weft/error.h"

enum { BPE_MOST_WORDS = 65536 /* a file of tokens has 16 bits for each */ };

typedef struct bpe bpe; /* opaque */

/* bpe_open - read a vocabulary: its words, its pairs, and, where tokenizer.json, tokenizer_config.json, added_tokens.json or
 * special_tokens_map.json are beside them, special words. Local. returns WEFT_IO or WEFT_USAGE with the file and the line that is
 * wrong, or with how many words no pair makes. Own it: bpe_close. */
weft_status bpe_open(const char *folder, bpe **b, weft_error *error);
/* bpe_train - learn n_words of text [bytes]: the 256 bytes, the pairs that occur most often, one after the other (of equals that
 * of the lower ids), and <|endoftext|>. Fewer where no pair is left that occurs twice. Local; time: bytes, and for each merge
 * the words it is in. Own it: bpe_close. */
weft_status bpe_train(const unsigned char *text, size_t bytes, int n_words, bpe **b,
                      weft_error *error);
/* bpe_save - as vocab.json and merges.txt in a folder, which is made; files that are there are replaced. Local. */
weft_status bpe_save(const bpe *b, const char *folder, weft_error *error);
void bpe_close(bpe **b);

int bpe_n_words(const bpe *b);
/* bpe_word - the bytes of a word, borrowed. id: 0 .. n_words - 1 */
const unsigned char *bpe_word(const bpe *b, int id, size_t *bytes);

/* bpe_find_special - the first special word in a text, as <|endoftext|>: its id, and where it stands; -1: there is none, and *at is
 * bytes. Of two at one place the longer. Local. */
int32_t bpe_find_special(const bpe *b, const unsigned char *text, size_t bytes, size_t *at);

/* bpe_told - which words, and pairs, there are, into text [BPE_TOLD]: "512 words (hash 5e1f..)". Others have another hash. Local. */
enum { BPE_TOLD = 60 };
void bpe_told(const bpe *b, char text[BPE_TOLD]);

/* bpe_encode - tokens of a text, appended to a list. text may be cut (bpe_cut) and encoded piece by piece. A special word as
 * <|endoftext|> is text as any: who wants its token looks for it first. Local. returns WEFT_MEMORY. */
typedef struct bpe_tokens {
    int32_t *ids; /* own it: free */
    size_t n, room;
} bpe_tokens;
weft_status bpe_encode(bpe *b, const unsigned char *text, size_t bytes, bpe_tokens *tokens,
                       weft_error *error);

/* bpe_append - one token more: of a special word. Local. */
weft_status bpe_append(bpe_tokens *tokens, int32_t id, weft_error *error);

/* bpe_cut - where a text may be cut so that its halves give the tokens of the whole: the last such place; 0: nowhere. */
size_t bpe_cut(const unsigned char *text, size_t bytes);

#endif
