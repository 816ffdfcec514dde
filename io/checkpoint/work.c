/* work: a list of items, such as the blocks of a checkpoint, shared out among threads. */
#include "work.h"

#include "sync.h"
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
    weft_lock_take(&w->lock);
    if (item < weft_sync_load(&w->failed)) {
        weft_sync_store(&w->failed, item);
        *w->error = *error;
    }
    weft_lock_give(&w->lock);
}

/* Items below a failed one have all been taken, so each is finished by whoever has it. */
static void *take_items(void *argument)
{
    work *w = argument;
    weft_error own = {.rank = -1};
    void *scratch =
        w->scratch_bytes
            ? aligned_alloc(WEFT_ALIGNMENT, (size_t)weft_aligned((int64_t)w->scratch_bytes))
            : NULL;
    const bool is_short = w->scratch_bytes > 0 && scratch == NULL;
    for (int64_t i;
         own.status == WEFT_OK && (i = weft_sync_add(&w->next, 1)) < weft_sync_load(&w->failed);) {
        if (is_short)
            weft_fail_memory(&own, w->scratch_bytes);
        else
            (void)w->item(w->argument, i, scratch, &own);
        if (own.status != WEFT_OK) note_failure(w, i, &own);
    }
    free(scratch);
    return NULL;
}

static int start(pthread_t *threads, int n, work *w)
{
    int n_started = 0;
    while (n_started < n && weft_thread_start(&threads[n_started], take_items, w) == 0)
        n_started++;
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
    weft_sync_store(&w.failed, n_items);
    pthread_mutex_init(&w.lock, NULL);
    const int n_started = start(threads, n_threads - 1, &w);
    take_items(&w);
    for (int i = 0; i < n_started; i++)
        weft_thread_join(threads[i]);
    pthread_mutex_destroy(&w.lock);
    return own.status == WEFT_OK ? WEFT_OK : weft_fail(error, own.status, "%s", own.message);
}

int weft_work_threads(const weft_mesh *mesh)
{
    const int n_cores = weft_machine_info()->n_cores;
    int n = mesh ? weft_mesh_lanes(mesh) * weft_mesh_n_local(mesh) : n_cores;
    if (n > n_cores) n = n_cores;
    return n < 1 ? 1 : n < MOST_THREADS ? n : MOST_THREADS;
}
