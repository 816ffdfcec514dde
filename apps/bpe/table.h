/* table.h: what was said of each of many short strings of bytes: their number, in the order in which they came. */
#ifndef WEFT_APPS_BPE_TABLE_H
#define WEFT_APPS_BPE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct byte_string {
    size_t at; /* in bytes */
    uint32_t n;
    uint64_t hash;
} byte_string;

/* All zeros is an empty one. */
typedef struct string_table {
    unsigned char *bytes; /* of all, one behind the other */
    size_t n_bytes, room_bytes;
    byte_string *strings; /* [n] */
    size_t n, room;
    uint32_t *slots; /* [n_slots], a power of 2: 1 + number; 0: free */
    size_t n_slots;
} string_table;

/* table_find - its number; -1: it is not there. */
int64_t table_find(const string_table *t, const void *bytes, size_t n);
/* table_add - its number, which is n - 1 for one that was not there; -1: no memory. */
int64_t table_add(string_table *t, const void *bytes, size_t n);
void table_free(string_table *t);

/* grow - room for one more element behind n. returns the array, moved perhaps; NULL: no memory, the array stays. */
void *grow(void *array, size_t n, size_t *room, size_t element);

#endif
