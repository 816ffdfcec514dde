/* pool.h (private): processes apart that stay for one task after another, each with one thread at a time. */
#ifndef WEFT_IO_POOL_H
#define WEFT_IO_POOL_H

#include <pthread.h>

#include "sandbox.h"

/* What a process has at hand. */
typedef struct weft_apart_key {
    uint64_t source; /* of an open file (weft_source.number); 0: nothing */
    int64_t at;
} weft_apart_key;

/* The first member of whatever is kept in a pool. */
typedef struct weft_process {
    weft_sandbox box;
    weft_apart_key key;
    struct weft_process *next;
} weft_process;

typedef struct weft_pool {
    void (*close)(weft_process *process); /* ends it, and frees what belongs to it */
    int most;                             /* that are free at once; the oldest go */
    pthread_mutex_t lock;
    weft_process *first; /* that was given back last: so a thread gets its own again */
    pid_t owner;         /* a process that was forked of this one has none of them */
} weft_pool;

/* weft_pool_take - one that is free, with that key; else, if is_any, another; NULL: there is none. All Local. */
weft_process *weft_pool_take(weft_pool *pool, weft_apart_key key, bool is_any);
/* weft_pool_give - it is free again; one that has ended is closed. */
void weft_pool_give(weft_pool *pool, weft_process *process);
/* weft_pool_forget - close those of a source. */
void weft_pool_forget(weft_pool *pool, uint64_t source);

#endif
