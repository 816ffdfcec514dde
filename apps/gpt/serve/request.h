/* request.h: one request: what was asked, which is written before it is queued and then only read; and what has been answered so far,
 * under the server's lock. The thread that reads HTTP makes it; the one that computes answers it; each holds it until it is done
 * with it.
 */
#ifndef WEFT_APPS_GPT_REQUEST_H
#define WEFT_APPS_GPT_REQUEST_H

#include "../draw.h"
#include "tail.h"

enum { GPT_MOST_STOPS = 4, GPT_MOST_LIKELY = 5, GPT_MOST_INPUTS = 64 };

/* What a request is for: its path says so. */
typedef struct gpt_kind {
    const char *path;   /* "/v1/completions" */
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
    const gpt_kind *kind;
    int64_t number;
    bpe_tokens inputs[GPT_MOST_INPUTS]; /* a completion has one */
    int n_inputs;
    int64_t most; /* tokens to write */
    gpt_drawing drawing;
    gpt_stops stops;
    int n_likely; /* logprobs; -1: none are told */
    bool streams, is_base64;
    double came, ends; /* app_seconds: when it came; when it has to be over */

    /* under the lock */
    struct gpt_request *next; /* in the queue */
    int n_holders;
    char *out; /* what is to be sent: [n_out] */
    size_t n_out, room;
    int status;           /* of HTTP; 0: there is nothing to send yet */
    bool is_done;         /* nothing comes any more */
    bool is_gone;         /* nobody wants it any more */
    void (*wake)(void *); /* whoever sends it is waiting for more; NULL: not */
    void *waker;

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

/* gpt_request_create - one holder. NULL: out of memory. Local, as all here. */
gpt_request *gpt_request_create(const gpt_kind *kind);
/* gpt_request_hold, gpt_request_drop - under the lock, but for the last holder. */
void gpt_request_hold(gpt_request *r);
void gpt_request_drop(gpt_request *r);
/* gpt_request_send - bytes more. returns false without memory. gpt_request_end - nothing comes any more. Under the lock. */
bool gpt_request_send(gpt_request *r, const char *bytes, size_t n);
void gpt_request_end(gpt_request *r, int status);
/* gpt_request_wake - whoever waits for more. Under the lock. */
void gpt_request_wake(gpt_request *r);
int64_t gpt_request_n_inputs(const gpt_request *r); /* tokens, of all inputs */

#endif
