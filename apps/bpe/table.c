/* table: an open-addressed hash table of byte strings. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

void *grow(void *array, size_t n, size_t *room, size_t element)
{
    if (n < *room) return array;
    const size_t wanted = *room ? 2 * *room : 64;
    void *grown = realloc(array, wanted * element);
    if (grown) *room = wanted;
    return grown;
}

/* FNV-1a, its bits mixed once more. */
static uint64_t hash_of(const unsigned char *bytes, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * UINT64_C(1099511628211);
    return h ^ h >> 29;
}

/* The slot of a string, or the free one where it would go. */
static size_t slot_of(const string_table *t, const void *bytes, size_t n, uint64_t hash)
{
    size_t s = hash & (t->n_slots - 1);
    for (; t->slots[s] != 0; s = (s + 1) & (t->n_slots - 1)) {
        const byte_string *have = &t->strings[t->slots[s] - 1];
        if (have->hash == hash && have->n == n && memcmp(t->bytes + have->at, bytes, n) == 0) break;
    }
    return s;
}

int64_t table_find(const string_table *t, const void *bytes, size_t n)
{
    if (t->n_slots == 0) return -1;
    return (int64_t)t->slots[slot_of(t, bytes, n, hash_of(bytes, n))] - 1;
}

/* At most half of the slots are taken. */
static bool more_slots(string_table *t)
{
    if (2 * (t->n + 1) <= t->n_slots) return true;
    const size_t n_slots = t->n_slots ? 2 * t->n_slots : 1024;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots) return false;
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    for (size_t i = 0; i < t->n; i++) {
        size_t s = t->strings[i].hash & (n_slots - 1);
        while (slots[s] != 0)
            s = (s + 1) & (n_slots - 1);
        slots[s] = (uint32_t)i + 1;
    }
    return true;
}

static bool more_room(string_table *t, size_t n)
{
    byte_string *strings = grow(t->strings, t->n, &t->room, sizeof *strings);
    if (strings) t->strings = strings;
    while (t->n_bytes + n > t->room_bytes) {
        unsigned char *bytes = grow(t->bytes, t->room_bytes, &t->room_bytes, 1);
        if (!bytes) return false;
        t->bytes = bytes;
    }
    return strings != NULL && more_slots(t);
}

int64_t table_add(string_table *t, const void *bytes, size_t n)
{
    const uint64_t hash = hash_of(bytes, n);
    if (!more_room(t, n)) return -1;
    const size_t s = slot_of(t, bytes, n, hash);
    if (t->slots[s] != 0) return (int64_t)t->slots[s] - 1;
    if (n > 0) memcpy(t->bytes + t->n_bytes, bytes, n);
    t->strings[t->n] = (byte_string){t->n_bytes, (uint32_t)n, hash};
    t->n_bytes += n;
    t->slots[s] = (uint32_t)++t->n;
    return (int64_t)t->n - 1;
}

void table_free(string_table *t)
{
    free(t->bytes);
    free(t->strings);
    free(t->slots);
    *t = (string_table){0};
}
