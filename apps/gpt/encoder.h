/* encoder.h: texts in the words of a vocabulary while they are read: what weft_chain_encode calls, by several threads. */
#ifndef WEFT_APPS_GPT_ENCODER_H
#define WEFT_APPS_GPT_ENCODER_H

#include "../bpe/bpe.h"
#include "weft/data.h"

typedef struct gpt_encoder gpt_encoder; /* opaque */

/* gpt_encoder_open - of a vocabulary's folder; words: it, borrowed. Local. */
weft_status gpt_encoder_open(const char *folder, const bpe *words, gpt_encoder **encoder,
                             weft_error *error);
void gpt_encoder_close(gpt_encoder **encoder);
/* The word that ends a document; -1: there is none. */
int64_t gpt_encoder_end(const gpt_encoder *encoder);
/* gpt_encoder_stage - a chain's texts become tokens, and the word that ends a document stands behind each; where there is none, a line
 * break is put behind the text. index: a folder; "": none. The encoder lives as long as the chain. Local. */
weft_status gpt_encoder_stage(gpt_encoder *encoder, const char *field, const char *index,
                              weft_chain **chain, weft_error *error);

#endif
