/* server.h: what the thread that speaks HTTP and the one that computes have in common, under one lock: the requests that wait, and
 * counts.
 */
#ifndef WEFT_APPS_GPT_SERVER_H
#define WEFT_APPS_GPT_SERVER_H

#include <pthread.h>

#include "counts.h"
#include "request.h"

/* What requests are told, and checked by. */
typedef struct gpt_facts_served {
    const char *model; /* its name */
    bpe *words;        /* NULL: bytes. Encoding is of the thread that speaks HTTP alone */
    int64_t seq, width, n_words;
    size_t longest; /* bytes of a word */
    int64_t slots, chunk;
    size_t most_bytes; /* of a body */
    int64_t most_wait; /* requests that wait */
    double most_time;  /* seconds from when a request comes to its end */
    double
        client_time; /* seconds that a client may take to ask, and to take what is there for it */
} gpt_facts_served;

typedef struct gpt_server {
    gpt_facts_served facts; /* as long as it serves, the same */
    pthread_mutex_t lock;
    pthread_cond_t has_work;    /* of the clock of app_seconds */
    gpt_request *first, *last;  /* that wait, in their order */
    int64_t n_waiting, n_known; /* requests so far */
    bool is_ending;             /* no new ones */
    gpt_counts counts;
} gpt_server;

weft_status gpt_server_open(gpt_server *server, const gpt_facts_served *facts, weft_error *error);
void gpt_server_close(gpt_server *server);

/* gpt_server_add - to those that wait, and one more holder. Under the lock. returns false: there are as many as may be */
bool gpt_server_add(gpt_server *server, gpt_request *r);
/* gpt_server_take - the first that waits and that `takes` says yes to, out of the queue; its holder is the caller. Under the lock. */
gpt_request *gpt_server_take(gpt_server *server, bool (*takes)(void *context, const gpt_request *r),
                             void *context);
/* gpt_server_wait - until a request is added, or so many seconds. Under the lock, which it gives up meanwhile. */
void gpt_server_wait(gpt_server *server, double seconds);

#endif
