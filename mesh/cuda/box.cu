/* box: elements of one box copied or combined into another; states that combine to nothing.
 *
 * A thread does one thing after the other, `THREADS` apart, so that neighbours in a run are neighbours in a warp. Where a
 * number of 32 bits is enough, the divisions that find a thing's place are of 32 bits: those of 64 cost five times as much.
 */
#include "box.h"
#include "kernel_source.h"

#include "collectives/combine_states.h"

typedef struct place {
    int64_t from, to;
} place;

#define PLACE_OF(name, T)                                                                          \
    DEVICE place name(const cuda_box *box, int64_t i)                                              \
    {                                                                                              \
        const T run = (T)box->run;                                                                 \
        T rest = (T)i / run;                                                                       \
        const T in = (T)i - rest * run;                                                            \
        place at = {box->from_at + (int64_t)in, box->to_at + (int64_t)in};                         \
        for (int l = 0; l < box->n_loops; l++) {                                                   \
            const T count = (T)box->count[l], next = rest / count;                                 \
            const int64_t k = (int64_t)(rest - next * count);                                      \
            at.from += k * box->from_stride[l];                                                    \
            at.to += k * box->to_stride[l];                                                        \
            rest = next;                                                                           \
        }                                                                                          \
        return at;                                                                                 \
    }
PLACE_OF(place_32, uint32_t)
PLACE_OF(place_64, uint64_t)

DEVICE place place_of(const cuda_box *box, int64_t i)
{
    return box->n <= 0x7fffffff ? place_32(box, i) : place_64(box, i);
}

#define COPY_BOX(name, T)                                                                          \
    KERNEL(name, cuda_box)                                                                         \
    {                                                                                              \
        T *to = (T *)GLOBAL(work.to);                                                              \
        const T *from = (const T *)GLOBAL(work.from);                                              \
        for (int64_t i = THREAD; i < work.n; i += THREADS) {                                       \
            const place at = place_of(&work, i);                                                   \
            to[at.to] = from[at.from];                                                             \
        }                                                                                          \
    }
COPY_BOX(copy_box_1, uint8_t)
COPY_BOX(copy_box_2, uint16_t)
COPY_BOX(copy_box_4, uint32_t)
COPY_BOX(copy_box_8, uint64_t)

/* Every combine, from the list that the host's are made of. */
#define COMBINE_EACH(kind, suffix, T, expression, identity)                                        \
    KERNEL(combine_##kind##_##suffix, cuda_box)                                                    \
    {                                                                                              \
        T *to = (T *)GLOBAL(work.to);                                                              \
        const T *from = (const T *)GLOBAL(work.from);                                              \
        for (int64_t i = THREAD; i < work.n; i += THREADS) {                                       \
            const place at = place_of(&work, i);                                                   \
            const T a = to[at.to], b = from[at.from];                                              \
            to[at.to] = (T)(expression);                                                           \
        }                                                                                          \
    }                                                                                              \
    KERNEL(identity_##kind##_##suffix, cuda_box)                                                   \
    {                                                                                              \
        T *to = (T *)GLOBAL(work.to);                                                              \
        for (int64_t i = THREAD; i < work.n; i += THREADS)                                         \
            to[i] = (T)(identity);                                                                 \
    }
#define COMBINE_STATES(kind, suffix, T, width)                                                     \
    KERNEL(combine_##kind##_##suffix, cuda_box)                                                    \
    {                                                                                              \
        T *to = (T *)GLOBAL(work.to);                                                              \
        const T *from = (const T *)GLOBAL(work.from);                                              \
        for (int64_t i = THREAD; i < work.n; i += THREADS) {                                       \
            const place at = place_of(&work, i);                                                   \
            T *into = to + at.to * (width);                                                        \
            weft_##kind##_state_##suffix(into, into, from + at.from * (width));                    \
        }                                                                                          \
    }                                                                                              \
    KERNEL(identity_##kind##_##suffix, cuda_box)                                                   \
    {                                                                                              \
        T *to = (T *)GLOBAL(work.to);                                                              \
        for (int64_t i = THREAD; i < work.n; i += THREADS)                                         \
            weft_##kind##_empty_##suffix(to + i * (width));                                        \
    }
#include "collectives/combine_list.inc"
