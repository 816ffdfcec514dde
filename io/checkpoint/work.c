/* work: a list of items, such as the blocks of a checkpoint, shared out among threads. */
#include "work.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST_THREADS = 8 };

typedef struct work {
    weft_work_item item;
    void *argument;
    size_t scratch_bytes;
    int64_t n_items;
    _Atomic int64_t next;
    _Atomic int64_t failed; /* the lowest item that has failed; n_items: none */
    pthread_mutex_t lock;   /* of error */
    weft_error *error;
} work;

static void note_failure(work *w, int64_t item, const weft_error *error)
{
    pthread_mutex_lock(&w->lock);
    if (item < atomic_load(&w->failed)) {
        atomic_store(&w->failed, item);
        *w->error = *error;
    }
    pthread_mutex_unlock(&w->lock);
}

/* Items below a failed one have all been taken, so each is finished by whoever has it. */
static void *take_items(void *argument)
{
    work *w = argument;
    weft_error own = {.rank = -1};
    void *scratch = w->scratch_bytes ? aligned_alloc(64, (w->scratch_bytes + 63) / 64 * 64) : NULL;
    const bool is_short = w->scratch_bytes > 0 && scratch == NULL;
    for (int64_t i;
         own.status == WEFT_OK && (i = atomic_fetch_add(&w->next, 1)) < atomic_load(&w->failed);) {
        if (is_short)
            weft_fail_memory(&own, w->scratch_bytes);
        else
            (void)w->item(w->argument, i, scratch, &own);
        if (own.status != WEFT_OK) note_failure(w, i, &own);
    }
    free(scratch);
    return NULL;
}

/* Signals are for the process's first thread. */
static int start(pthread_t *threads, int n, work *w)
{
    sigset_t all, before;
    int n_started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (n_started < n && pthread_create(&threads[n_started], NULL, take_items, w) == 0)
        n_started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n_started;
}

weft_status weft_work(int n_threads, int64_t n_items, size_t scratch_bytes, weft_work_item item,
                      void *argument, weft_error *error)
{
    pthread_t threads[MOST_THREADS];
    weft_error own = {.rank = -1};
    work w = {.item = item,
              .argument = argument,
              .scratch_bytes = scratch_bytes,
              .n_items = n_items,
              .error = &own};
    if (n_threads > MOST_THREADS) n_threads = MOST_THREADS;
    if (n_threads > n_items) n_threads = (int)n_items;
    atomic_store(&w.failed, n_items);
    pthread_mutex_init(&w.lock, NULL);
    const int n_started = start(threads, n_threads - 1, &w);
    take_items(&w);
    for (int i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&w.lock);
    return own.status == WEFT_OK ? WEFT_OK : weft_fail(error, own.status, "%s", own.message);
}

int weft_work_threads(const weft_mesh *mesh)
{
    const int n_cores = weft_machine_info()->n_cores;
    int n = mesh ? weft_mesh_cores_per_rank(mesh) * weft_mesh_n_local(mesh) : n_cores;
    if (n > n_cores) n = n_cores;
    return n < 1 ? 1 : n < MOST_THREADS ? n : MOST_THREADS;
}
