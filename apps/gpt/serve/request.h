/* request.h: what gpt serve knows of a request besides: what was asked, and of the thread that computes how far it is. */
#ifndef WEFT_APPS_GPT_REQUEST_H
#define WEFT_APPS_GPT_REQUEST_H

#include "../../serve/request.h"
#include "../draw.h"
#include "tail.h"

enum { GPT_MOST_STOPS = 4, GPT_MOST_LIKELY = 5, GPT_MOST_INPUTS = 64 };

typedef struct gpt_kind {
    serve_kind base;
    const char *object; /* "text_completion" */
    bool writes;        /* text goes on, in a slot */
} gpt_kind;

/* A token as it was drawn, for those who want to see how likely it was. */
typedef struct gpt_told_token {
    int32_t id;
    double log;   /* of its probability, at temperature 1 */
    int n_likely; /* that were likeliest, the first of all first */
    int32_t likely[GPT_MOST_LIKELY];
    double logs[GPT_MOST_LIKELY];
} gpt_told_token;

typedef struct gpt_request {
    serve_request base;                 /* first: a request of the queue is one of these */
    const gpt_kind *kind;               /* base.kind */
    bpe_tokens inputs[GPT_MOST_INPUTS]; /* a completion has one */
    int n_inputs;
    int64_t most; /* tokens to write */
    gpt_drawing drawing;
    gpt_stops stops;
    int n_likely; /* logprobs; -1: none are told */
    bool is_base64;

    /* of the thread that computes */
    int64_t n_read;  /* tokens of the input at hand that went through */
    int input;       /* at hand */
    int64_t n_words; /* tokens drawn */
    int32_t word;    /* the last of them */
    gpt_tail tail;
    gpt_told_token *told; /* [n_told] since the last part of a stream */
    size_t n_told, told_room;
    double *sums;       /* [width], of the input at hand */
    float *vectors;     /* [n_inputs, width] */
    double first, last; /* app_seconds of the first token, and of the last */
} gpt_request;

/* The two, for the paths. gpt_request_n_inputs - tokens, of all inputs. Local. */
extern const gpt_kind gpt_texts_kind, gpt_vectors_kind;
int64_t gpt_request_n_inputs(const gpt_request *r);

#endif
