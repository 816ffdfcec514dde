/* hash.h (private): XXH3-128, as 16 bytes and as 32 hexadecimal digits. */
#ifndef WEFT_CHECKPOINT_HASH_H
#define WEFT_CHECKPOINT_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define XXH_STATIC_LINKING_ONLY /* for the size of a state: none is allocated */
#include <xxhash.h>

typedef struct weft_hash {
    uint8_t bytes[16]; /* most significant first */
} weft_hash;

enum { WEFT_HASH_DIGITS = 32 };

/* All Local. */
weft_hash weft_hash_of(const void *data, size_t bytes);
/* The same of bytes that come one after the other: begin, add as often as need be, end. */
typedef XXH3_state_t weft_hashing;
void weft_hash_begin(weft_hashing *hashing);
void weft_hash_add(weft_hashing *hashing, const void *data, size_t bytes);
weft_hash weft_hash_end(const weft_hashing *hashing);
bool weft_hash_equal(const weft_hash *a, const weft_hash *b);
void weft_hash_print(const weft_hash *hash, char text[WEFT_HASH_DIGITS + 1]);
/* Whether `text` is 32 lower-case digits and nothing else. */
bool weft_hash_parse(const char *text, weft_hash *hash);

#endif
