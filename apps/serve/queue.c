/* queue: requests in the order in which they came, and how they leave it. */
#include "queue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HTTP_FAILED = 500, HTTP_BUSY = 503 };

weft_status serve_queue_open(serve_queue *s, const serve_service *service,
                             const serve_limits *limits, weft_error *error)
{
    pthread_condattr_t clock;
    *s = (serve_queue){.service = *service, .limits = *limits};
    bool is_good = pthread_mutex_init(&s->lock, NULL) == 0 && pthread_condattr_init(&clock) == 0;
    if (is_good) {
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        is_good = pthread_cond_init(&s->has_work, &clock) == 0;
        pthread_condattr_destroy(&clock);
    }
    return is_good ? WEFT_OK : weft_fail(error, WEFT_MEMORY, "no lock for requests: out of memory");
}

void serve_queue_close(serve_queue *s)
{
    pthread_cond_destroy(&s->has_work);
    pthread_mutex_destroy(&s->lock);
}

bool serve_queue_add(serve_queue *s, serve_request *r)
{
    if (s->n_waiting >= s->limits.most_wait) return false;
    serve_request_hold(r);
    r->next = NULL;
    if (s->last)
        s->last->next = r;
    else
        s->first = r;
    s->last = r;
    s->n_waiting++;
    pthread_cond_signal(&s->has_work);
    return true;
}

serve_request *serve_queue_take(serve_queue *s,
                                bool (*takes)(void *context, const serve_request *r), void *context)
{
    serve_request *before = NULL, *r = s->first;
    while (r && !takes(context, r))
        before = r, r = r->next;
    if (r == NULL) return NULL;
    if (before)
        before->next = r->next;
    else
        s->first = r->next;
    if (s->last == r) s->last = before;
    r->next = NULL;
    s->n_waiting--;
    return r;
}

void serve_queue_wait(serve_queue *s, double seconds)
{
    struct timespec until;
    double whole;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(modf(seconds, &whole) * 1e9);
    until.tv_sec += (time_t)whole + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&s->has_work, &s->lock, &until);
}

/* ---- leaving ---------------------------------------------------------------------------------------- */

void serve_queue_answer(serve_queue *s, serve_request *r, serve_end end, int status, char *text)
{
    s->counts.ended[r->is_gone ? SERVE_LEFT : end]++;
    serve_request_say(r, text);
    serve_request_end(r, status);
    serve_request_wake(r);
    serve_request_drop(r);
}

void serve_queue_refuse(serve_queue *s, serve_request *r, serve_end end, int status,
                        const char *sentence)
{
    char *text =
        r->kind->refuse ? r->kind->refuse(status, sentence) : s->service.refuse(status, sentence);
    serve_queue_answer(s, r, end, status, text);
}

bool serve_request_is_over(const serve_request *r, double now)
{
    return r->is_gone || now > r->ends;
}

void serve_queue_drop(serve_queue *s, serve_request *r)
{
    char text[200];
    if (r->is_gone) {
        s->counts.ended[SERVE_LEFT]++;
        serve_request_end(r, HTTP_FAILED);
        serve_request_wake(
            r); /* its connection sleeps, and would not see that the client is gone */
        serve_request_drop(r);
        return;
    }
    snprintf(text, sizeof text,
             "the request was not answered within %g s; ask for less, or ask again when fewer ask",
             s->limits.most_time);
    serve_queue_refuse(s, r, SERVE_LATE, HTTP_BUSY, text);
}

static bool waits_in_vain(void *context, const serve_request *r)
{
    return serve_request_is_over(r, *(double *)context);
}

void serve_queue_drop_waiting(serve_queue *s, double now)
{
    serve_request *r;
    while ((r = serve_queue_take(s, waits_in_vain, &now)) != NULL)
        serve_queue_drop(s, r);
}

static bool takes_any(void *context, const serve_request *r)
{
    (void)context, (void)r;
    return true;
}

void serve_queue_refuse_waiting(serve_queue *s, const char *sentence)
{
    serve_request *r;
    s->is_over = true;
    while ((r = serve_queue_take(s, takes_any, NULL)) != NULL)
        serve_queue_refuse(s, r, SERVE_FAILED, HTTP_BUSY, sentence);
}
