/* permute: a keyed bijection of [0, n), computed for one element at a time, without a table.
 *
 * A balanced Feistel network permutes [0, 4^h), the smallest such range that holds n; an element
 * that lands past n is sent through again (cycle walking) until it lands inside, fewer than 4 times
 * on average. source  Black and Rogaway 2002, "Ciphers with arbitrary finite domains"
 */
#include "weft/io.h"

enum { ROUNDS = 6 };

/* The finaliser of splitmix64: every input bit moves every output bit. */
static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t feistel(uint64_t key, int half_bits, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = x >> half_bits, right = x & mask;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t next = left ^ (mix(key + mix(right + ((uint64_t)round << 32))) & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

int64_t weft_permute(uint64_t key, int64_t n, int64_t i)
{
    if (n < 2 || n > WEFT_MAX_SAMPLES || i < 0 || i >= n) return 0;
    int half_bits = 1;
    while (half_bits < 31 && INT64_C(1) << 2 * half_bits < n)
        half_bits++;
    uint64_t x = (uint64_t)i;
    do {
        x = feistel(key, half_bits, x);
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}
