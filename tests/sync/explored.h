/* explored.h: what the tests of this folder share: each case is tried in all orders within a bound, or in random
 * ones. */
#ifndef WEFT_TEST_EXPLORED_H
#define WEFT_TEST_EXPLORED_H

#include "schedule.h"
#include "sync.h"

#include "test.h"

/* All orders with so many preemptions, or as many as most_runs allows. */
static inline void explore(const char *name, void (*body)(void *), void *state,
                           schedule_options options)
{
    schedule_report report;
    if (options.most_runs == 0) options.most_runs = weft_test_cases(100000);
    const bool is_right = schedule_explore(body, state, &options, &report);
    printf("  %s: %lld orders%s, %lld accesses, at most %lld a run%s\n", name,
           (long long)report.n_runs, report.is_complete ? ", all within the bound" : "",
           (long long)report.n_accesses, (long long)report.longest,
           report.n_overslept > 0 ? ", some woke by their time limit" : "");
    if (!is_right) fprintf(stderr, "%s: %s\n", name, report.failure);
    if (CHECK(is_right)) return;
    const int status = weft_test_report();
    fflush(NULL);
    _exit(status); /* its threads, and what they hold, are left where they were */
}

/* One thread for each of n, each with its number: body(state, i); the first is the caller. */
typedef void (*explored_body)(void *state, int i);
typedef struct explored_thread {
    explored_body body;
    void *state;
    int i;
} explored_thread;

static inline void *explored_main(void *argument)
{
    const explored_thread *t = argument;
    t->body(t->state, t->i);
    return NULL;
}

static inline void explored_each(int n, explored_body body, void *state)
{
    explored_thread all[SCHEDULE_THREADS];
    pthread_t threads[SCHEDULE_THREADS];
    for (int i = 0; i < n; i++)
        all[i] = (explored_thread){body, state, i};
    for (int i = 1; i < n; i++)
        (void)weft_thread_start(&threads[i], explored_main, &all[i]);
    body(state, 0);
    for (int i = 1; i < n; i++)
        weft_thread_join(threads[i]);
}

#endif
