/* pool: a list of free processes, the last used first. */
#include "pool.h"

#include <unistd.h>

#include "sync.h"

static bool has_key(const weft_process *p, weft_apart_key key)
{
    return key.source != 0 && p->key.source == key.source && p->key.at == key.at;
}

/* Out of the list, with the lock. */
static weft_process *unlink_at(weft_process **at)
{
    weft_process *found = *at;
    if (found != NULL) *at = found->next;
    return found;
}

/* With the lock: in a child that was forked they are the parent's. */
static void own(weft_pool *pool)
{
    while (pool->owner != getpid() && pool->first != NULL) {
        weft_process *other = unlink_at(&pool->first);
        other->box.process = 0;
        pool->close(other);
    }
    pool->owner = getpid();
}

static weft_process *take_one(weft_pool *pool, weft_apart_key key, bool is_any)
{
    weft_process **best = NULL;
    weft_lock_take(&pool->lock);
    own(pool);
    if (is_any) best = &pool->first;
    for (weft_process **p = &pool->first; *p != NULL; p = &(*p)->next)
        if (has_key(*p, key)) best = p;
    weft_process *found = best != NULL ? unlink_at(best) : NULL;
    weft_lock_give(&pool->lock);
    return found;
}

weft_process *weft_pool_take(weft_pool *pool, weft_apart_key key, bool is_any)
{
    weft_process *found;
    while ((found = take_one(pool, key, is_any)) != NULL && weft_sandbox_has_ended(&found->box))
        pool->close(found); /* somebody else has ended it: no file */
    return found;
}

void weft_pool_give(weft_pool *pool, weft_process *process)
{
    weft_process *oldest = NULL;
    int n = 0;
    if (process->box.process == 0) {
        pool->close(process);
        return;
    }
    weft_lock_take(&pool->lock);
    own(pool);
    process->next = pool->first;
    pool->first = process;
    for (weft_process **p = &pool->first; *p != NULL; p = &(*p)->next)
        if (++n > pool->most) {
            oldest = unlink_at(p);
            break;
        }
    weft_lock_give(&pool->lock);
    if (oldest != NULL) pool->close(oldest);
}

void weft_pool_forget(weft_pool *pool, uint64_t source)
{
    weft_process *gone = NULL;
    weft_lock_take(&pool->lock);
    own(pool);
    for (weft_process **p = &pool->first; *p != NULL;) {
        if ((*p)->key.source != source) {
            p = &(*p)->next;
            continue;
        }
        weft_process *one = unlink_at(p);
        one->next = gone;
        gone = one;
    }
    weft_lock_give(&pool->lock);
    while (gone != NULL)
        pool->close(unlink_at(&gone));
}
