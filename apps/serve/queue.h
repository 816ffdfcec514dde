/* queue.h: what the thread that speaks HTTP and the one that computes have in common, under one lock: the requests that wait, and
 * counts; and what a server is, as both see it: its paths and its answers.
 */
#ifndef WEFT_APPS_SERVE_QUEUE_H
#define WEFT_APPS_SERVE_QUEUE_H

#include <pthread.h>

#include "counts.h"
#include "request.h"

typedef struct serve_queue serve_queue;

/* A path: what is told at once, or a kind of request. */
typedef struct serve_route {
    const char *path, *method;
    const char *type; /* of what is told: "application/json" */
    /* to be freed; NULL: out of memory. Under the lock. status: of HTTP, 200 when it is called */
    char *(*tell)(serve_queue *queue, int *status);
    const serve_kind *kind; /* where nothing is told at once */
} serve_route;

/* What a server says. */
typedef struct serve_service {
    const serve_route *routes; /* [n_routes] besides /health and /metrics; they outlive the queue */
    int n_routes;
    char *(*refuse)(int status, const char *sentence); /* the body of a refusal, to be freed */
    void (*count)(FILE *file, const void *served);     /* what it counts besides; under the lock */
    const void *served;                                /* its own facts */
} serve_service;

typedef struct serve_limits {
    size_t most_bytes; /* of a body */
    int64_t most_wait; /* requests that wait */
    double most_time;  /* seconds from when a request comes to its end */
    double
        client_time; /* seconds that a client may take to ask, and to take what is there for it */
} serve_limits;

struct serve_queue {
    serve_service service;
    serve_limits limits; /* as long as it serves, the same */
    pthread_mutex_t lock;
    pthread_cond_t has_work;     /* of the clock of app_seconds */
    serve_request *first, *last; /* that wait, in their order */
    int64_t n_waiting, n_known;  /* requests so far */
    bool is_ending;              /* no new clients; those that are there have one more answer */
    bool is_over;                /* no new requests */
    serve_counts counts;
};

weft_status serve_queue_open(serve_queue *queue, const serve_service *service,
                             const serve_limits *limits, weft_error *error);
void serve_queue_close(serve_queue *queue);

/* serve_queue_add - to those that wait, and one more holder. Under the lock. returns false: there are as many as may be */
bool serve_queue_add(serve_queue *queue, serve_request *r);
/* serve_queue_take - the first that waits and that `takes` says yes to, out of the queue; its holder is the caller. Under the lock. */
serve_request *serve_queue_take(serve_queue *queue,
                                bool (*takes)(void *context, const serve_request *r),
                                void *context);
/* serve_queue_wait - until a request is added, or so many seconds. Under the lock, which it gives up meanwhile. */
void serve_queue_wait(serve_queue *queue, double seconds);

/* How the thread that computes lets go of a request. All under the lock. serve_queue_answer - with text, to be freed here, NULL without
 * memory for it, behind what was sent of it. serve_queue_refuse - with a sentence in place of an answer. serve_queue_drop - one that
 * is over: nobody wants it, or it found no time. */
void serve_queue_answer(serve_queue *queue, serve_request *r, serve_end end, int status,
                        char *text);
void serve_queue_refuse(serve_queue *queue, serve_request *r, serve_end end, int status,
                        const char *sentence);
bool serve_request_is_over(const serve_request *r, double now);
void serve_queue_drop(serve_queue *queue, serve_request *r);
/* serve_queue_drop_waiting - all that wait and are over; serve_queue_refuse_waiting - all that wait, and any that comes. */
void serve_queue_drop_waiting(serve_queue *queue, double now);
void serve_queue_refuse_waiting(serve_queue *queue, const char *sentence);

#endif
