/* work.h (private): a list of items, such as the blocks of a checkpoint, shared out among threads. */
#ifndef WEFT_CHECKPOINT_WORK_H
#define WEFT_CHECKPOINT_WORK_H

#include "weft/mesh.h"

/* One item. scratch: the thread's own, aligned to 64. May run beside any other item. */
typedef weft_status (*weft_work_item)(void *argument, int64_t item, void *scratch,
                                      weft_error *error);

/* weft_work - carry out items 0 to n_items - 1 on at most n_threads threads; the caller's is one of them. Local.
 *
 * Threads take items in order. When items fail, the lowest of them is reported, whoever was first; items after it may
 * not have been done. With fewer threads to be had than wanted it is slower. */
weft_status weft_work(int n_threads, int64_t n_items, size_t scratch_bytes, weft_work_item item,
                      void *argument, weft_error *error);

/* Threads worth using for a checkpoint's bytes: the cores of this process's ranks, or of the machine when mesh is NULL.
 * A few reach what memory and disk can do. */
int weft_work_threads(const weft_mesh *mesh);

#endif
