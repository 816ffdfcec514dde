/* type_hash.h (private): which types, and which bytes, are the same: a hash to find them by, and the comparison that decides.
 *
 * A graph holds each name once, so two names are equal where their addresses are. Such a hash is of one process alone: no digest and
 * no file has it.
 */
#ifndef WEFT_TYPE_HASH_H
#define WEFT_TYPE_HASH_H

#include <string.h>

#include "ir.h"

static inline uint64_t weft_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* Of whole words and what is left. */
static inline uint64_t weft_mix_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (uint64_t word; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = weft_mix(hash, word);
    }
    for (; bytes > 0; bytes--)
        hash = weft_mix(hash, *at++);
    return hash;
}

static inline uint64_t weft_mix_type(uint64_t hash, const weft_type *type)
{
    hash = weft_mix(hash, (uint64_t)type->dtype << 8 | (uint64_t)type->shape.n_dims);
    for (int d = 0; d < type->shape.n_dims; d++)
        hash = weft_mix(hash,
                        (uintptr_t)type->shape.dims[d].name ^ (uint64_t)type->shape.dims[d].size);
    return hash;
}

static inline bool weft_same_type(const weft_type *a, const weft_type *b)
{
    if (a->dtype != b->dtype || a->shape.n_dims != b->shape.n_dims) return false;
    for (int d = 0; d < a->shape.n_dims; d++)
        if (a->shape.dims[d].name != b->shape.dims[d].name ||
            a->shape.dims[d].size != b->shape.dims[d].size)
            return false;
    return true;
}

#endif
