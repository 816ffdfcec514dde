/* philox.h: Philox4x32-10, random numbers that are a pure function of (key, counter).
 *
 * A tensor's random element depends on its global index only, never on who computes it, so masks and
 * initial weights are the same on every mesh and layout.
 * source  Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"
 */
#ifndef WEFT_PHILOX_H
#define WEFT_PHILOX_H

#include <stdint.h>

#include "weft/error.h"
#include "weft/extend/host_device.h"

WEFT_BEGIN

typedef struct weft_philox_key {
    uint64_t seed;   /* the graph's seed                                    */
    uint32_t stream; /* which random op of the graph                        */
    uint32_t step;   /* which run; 0 for initial values                     */
} weft_philox_key;

/* weft_philox - four 32-bit words for block `counter` under `key`. Local.
 *
 * Element i of a tensor uses word i % 4 of block i / 4. The key's seed goes to Philox's key words;
 * stream and step go to the upper half of its counter.
 */
WEFT_HOST_DEVICE void weft_philox(weft_philox_key key, uint64_t counter, uint32_t words[4])
{
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = key.stream, c3 = key.step;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1, c3 = (uint32_t)p0, c0 = n0, c2 = n2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

/* Local. A word as a number in [0, 1): the upper 24 bits, so that float and double agree exactly. */
WEFT_HOST_DEVICE double weft_philox_unit(uint32_t word)
{
    return (double)(word >> 8) * (1.0 / 16777216.0);
}

WEFT_END

#endif
