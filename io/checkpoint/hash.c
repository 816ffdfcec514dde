/* hash: XXH3-128, as 16 bytes and as 32 hexadecimal digits. */
#include "hash.h"

#include <string.h>

static weft_hash canonical_of(XXH128_hash_t hash)
{
    XXH128_canonical_t canonical;
    weft_hash result;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(result.bytes, canonical.digest, sizeof result.bytes);
    return result;
}

weft_hash weft_hash_of(const void *data, size_t bytes)
{
    return canonical_of(XXH3_128bits(data, bytes));
}

void weft_hash_begin(weft_hashing *hashing)
{
    XXH3_INITSTATE(hashing);
    XXH3_128bits_reset(hashing);
}

void weft_hash_add(weft_hashing *hashing, const void *data, size_t bytes)
{
    XXH3_128bits_update(hashing, data, bytes);
}

weft_hash weft_hash_end(const weft_hashing *hashing)
{
    return canonical_of(XXH3_128bits_digest(hashing));
}

bool weft_hash_equal(const weft_hash *a, const weft_hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static const char digits[] = "0123456789abcdef";

void weft_hash_print(const weft_hash *hash, char text[WEFT_HASH_DIGITS + 1])
{
    for (int i = 0; i < 16; i++) {
        text[2 * i] = digits[hash->bytes[i] >> 4];
        text[2 * i + 1] = digits[hash->bytes[i] & 15];
    }
    text[WEFT_HASH_DIGITS] = 0;
}

bool weft_hash_parse(const char *text, weft_hash *hash)
{
    *hash = (weft_hash){{0}};
    if (strlen(text) != WEFT_HASH_DIGITS || strspn(text, digits) != WEFT_HASH_DIGITS) return false;
    for (int i = 0; i < WEFT_HASH_DIGITS; i++) {
        const int digit = (int)(strchr(digits, text[i]) - digits);
        hash->bytes[i / 2] = (uint8_t)(hash->bytes[i / 2] << 4 | digit);
    }
    return true;
}
