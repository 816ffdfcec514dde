/* heap: a binary one. */
#include "heap.h"

#include "table.h"

static bool is_before(heap_entry a, heap_entry b)
{
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

bool heap_push(heap *h, heap_entry entry)
{
    heap_entry *entries = grow(h->entries, h->n, &h->room, sizeof *entries);
    if (!entries) return false;
    h->entries = entries;
    size_t i = h->n++;
    for (; i > 0 && is_before(entry, entries[(i - 1) / 2]); i = (i - 1) / 2)
        entries[i] = entries[(i - 1) / 2];
    entries[i] = entry;
    return true;
}

bool heap_pop(heap *h, heap_entry *entry)
{
    if (h->n == 0) return false;
    *entry = h->entries[0];
    const heap_entry last = h->entries[--h->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && is_before(h->entries[child + 1], h->entries[child])) child++;
        if (!is_before(h->entries[child], last)) break;
        h->entries[i] = h->entries[child];
    }
    h->entries[i] = last;
    return true;
}
