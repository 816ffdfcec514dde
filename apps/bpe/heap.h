/* heap.h: the smallest first, by `first` and among equals by `second`. */
#ifndef WEFT_APPS_BPE_HEAP_H
#define WEFT_APPS_BPE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heap_entry {
    uint64_t first, second;
} heap_entry;

/* All zeros is an empty one. Own entries: free. */
typedef struct heap {
    heap_entry *entries; /* [n] */
    size_t n, room;
} heap;

/* heap_push - false: no memory. */
bool heap_push(heap *h, heap_entry entry);
/* heap_pop - false: it is empty. */
bool heap_pop(heap *h, heap_entry *entry);

#endif
