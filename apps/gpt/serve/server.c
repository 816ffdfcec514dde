/* server: the queue. */
#include "server.h"

#include <math.h>
#include <string.h>
#include <time.h>

weft_status gpt_server_open(gpt_server *s, const gpt_facts_served *facts, weft_error *error)
{
    pthread_condattr_t clock;
    *s = (gpt_server){.facts = *facts};
    bool is_good = pthread_mutex_init(&s->lock, NULL) == 0 && pthread_condattr_init(&clock) == 0;
    if (is_good) {
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        is_good = pthread_cond_init(&s->has_work, &clock) == 0;
        pthread_condattr_destroy(&clock);
    }
    return is_good ? WEFT_OK : weft_fail(error, WEFT_MEMORY, "no lock for requests: out of memory");
}

void gpt_server_close(gpt_server *s)
{
    pthread_cond_destroy(&s->has_work);
    pthread_mutex_destroy(&s->lock);
}

bool gpt_server_add(gpt_server *s, gpt_request *r)
{
    if (s->n_waiting >= s->facts.most_wait) return false;
    gpt_request_hold(r);
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

gpt_request *gpt_server_take(gpt_server *s, bool (*takes)(void *context, const gpt_request *r),
                             void *context)
{
    gpt_request *before = NULL, *r = s->first;
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

void gpt_server_wait(gpt_server *s, double seconds)
{
    struct timespec until;
    double whole;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(modf(seconds, &whole) * 1e9);
    until.tv_sec += (time_t)whole + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&s->has_work, &s->lock, &until);
}
