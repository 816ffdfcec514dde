/* texts.h: what --data and --eval-data name: a file, a pattern, or several of them, with weights or without.
 *
 *     book.txt   'books/b*.txt'   a.txt,b.jsonl   a.txt:0.7,b.jsonl:0.3
 *
 * Without weights texts come one behind the other, and all their windows are shuffled together. With weights each is shuffled by itself,
 * and in every stretch of windows each has its share.
 */
#ifndef WEFT_APPS_GPT_TEXTS_H
#define WEFT_APPS_GPT_TEXTS_H

#include "encoder.h"

typedef struct gpt_texts_options {
    const char *option;   /* that names them: "--data", for sentences */
    int64_t seq, n_words; /* n_words 0: bytes */
    const char *field;    /* of records: the one with the text; "": "text", or the only one */
    uint64_t seed;        /* of the order */
    double share;         /* the last so much of each text is held out; 0: nothing */
    bool is_held;         /* what is held out, in order; else what is learned from, shuffled */
    /* --pack: records are documents, bytes, of which windows hold several: fields "segments" and "positions" besides */
    bool packs;
    gpt_encoder *
        encoder; /* of --tokens: it makes words of texts, and says which ends a document; NULL: bytes */
    const char *index; /* folder that which document is where is kept in; "": nowhere */
} gpt_texts_options;

/* gpt_texts_open - their windows, fields "tokens" and "targets". Local. returns WEFT_IO, WEFT_USAGE with one sentence */
weft_status gpt_texts_open(const char *names, const gpt_texts_options *options, weft_dataset **data,
                           weft_error *error);

#endif
