/* crew: pieces of work done by several threads, and how much time is left for them. Which thread does a piece changes nothing that comes of it. */
#include "searching.h"

enum { MOST_THREADS = 64 };

int weft_search_threads(const weft_search_options *options)
{
    return options->threads > 0 ? options->threads : weft_machine_info()->n_cores;
}

typedef struct crew {
    _Atomic int next;
    int n;
    weft_search_piece piece;
    void *context;
} crew;

static void *work(void *argument)
{
    crew *c = argument;
    for (int i; (i = weft_sync_add(&c->next, 1)) < c->n;)
        c->piece(c->context, i);
    return NULL;
}

void weft_search_crew_do(int threads, int n, weft_search_piece piece, void *context)
{
    crew c = {.n = n, .piece = piece, .context = context};
    pthread_t others[MOST_THREADS];
    int n_others = 0;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    while (n_others + 1 < threads && n_others + 1 < n &&
           weft_thread_start(&others[n_others], work, &c) == 0)
        n_others++;
    (void)work(&c);
    for (int i = 0; i < n_others; i++)
        weft_thread_join(others[i]);
}

bool weft_search_is_over(const searching *s, double part)
{
    const double seconds = s->options->seconds;
    return seconds > 0 && weft_sync_seconds() - s->begun >= part * seconds;
}

weft_status weft_search_call_builder(searching *s, const weft_choice *choice,
                                     weft_built_graph *built, weft_error *error)
{
    *built = (weft_built_graph){0};
    weft_lock_take(&s->building);
    const weft_status status = s->build(s->context, choice, built, error);
    weft_lock_give(&s->building);
    return status;
}
