/* order: which elements of a row come first. An element's key is an unsigned number that is the larger the later it comes, and of equal
 * keys the lower place comes first, so that no two are equal, and there is one order. A block orders a tile by Batcher's network; runs
 * are merged by a thread for each element, which finds how many of the other run come before it.
 *
 * source  Knuth, The Art of Computer Programming 3, 5.2.2 M, 5.3.4
 */
#include "mesh/cuda/kernel_source.h"

#include "order.h"

/* Floats as their bits are ordered, once those of negative ones are turned round; -0 + 0 is 0; a NaN is above all. */
#define FLOAT_KEY(name, T, U, SIGN)                                                                \
    DEVICE U name(T x)                                                                             \
    {                                                                                              \
        const T value = x + (T)0;                                                                  \
        U bits;                                                                                    \
        if (value != value) return (U)-1;                                                          \
        memcpy(&bits, &value, sizeof bits);                                                        \
        return (bits & (SIGN)) != 0 ? (U)~bits : bits | (SIGN);                                    \
    }
FLOAT_KEY(order_key_f32, float, uint32_t, (uint32_t)1 << 31)
FLOAT_KEY(order_key_f64, double, uint64_t, (uint64_t)1 << 63)

DEVICE uint32_t order_key_i32(int32_t x)
{
    return (uint32_t)x ^ (uint32_t)1 << 31;
}
DEVICE uint64_t order_key_i64(int64_t x)
{
    return (uint64_t)x ^ (uint64_t)1 << 63;
}

DEVICE int64_t order_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where element k of a row is; of x with n elements in a row, of `to` with count. */
DEVICE int64_t order_at(const cuda_ordering *o, int64_t row, int64_t length, int64_t k)
{
    return (row / o->inner * length + k) * o->inner + row % o->inner;
}

#define ORDER_TILES(name, T, U, key_of)                                                            \
    KERNEL(name, cuda_ordering)                                                                    \
    {                                                                                              \
        SHARED U key[ORDER_TILE];                                                                  \
        SHARED int32_t place[ORDER_TILE];                                                          \
        const T *x = (const T *)GLOBAL(work.x);                                                    \
        int32_t *to = (int32_t *)GLOBAL(work.to), *places = (int32_t *)GLOBAL(work.places[0]);     \
        U *keys = (U *)GLOBAL(work.keys[0]);                                                       \
        for (int64_t b = BLOCK; b < work.n_rows * work.n_runs; b += BLOCKS) {                      \
            const int64_t row = b / work.n_runs, first = b % work.n_runs * ORDER_TILE;             \
            const int n = (int)order_least(ORDER_TILE, work.n - first);                            \
            int width = 1;                                                                         \
            while (width < n)                                                                      \
                width *= 2;                                                                        \
            for (int i = IN_BLOCK; i < width; i += BLOCK_THREADS) {                                \
                U of = (U)-1; /* behind all */                                                     \
                if (i < n) of = key_of(x[order_at(&work, row, work.n, first + i)]);                \
                key[i] = i < n && work.descending ? (U)~of : of;                                   \
                place[i] = i < n ? (int32_t)first + i : INT32_MAX;                                 \
            }                                                                                      \
            for (int size = 2; size <= width; size *= 2)                                           \
                for (int gap = size / 2; gap > 0; gap /= 2) {                                      \
                    SYNC();                                                                        \
                    for (int k = IN_BLOCK; k < width / 2; k += BLOCK_THREADS) {                    \
                        const int i = 2 * k - (k & (gap - 1)), j = i + gap;                        \
                        const U a = key[i], c = key[j];                                            \
                        const int32_t p = place[i], q = place[j];                                  \
                        const int is_after = a > c || (a == c && p > q);                           \
                        if (is_after != ((i & size) == 0)) continue;                               \
                        key[i] = c, key[j] = a, place[i] = q, place[j] = p;                        \
                    }                                                                              \
                }                                                                                  \
            SYNC();                                                                                \
            for (int64_t i = IN_BLOCK; i < n && i < work.count; i += BLOCK_THREADS) {              \
                if (work.n_runs == 1)                                                              \
                    to[order_at(&work, row, work.count, i)] = place[i];                            \
                else                                                                               \
                    keys[row * work.n + first + i] = key[i],                                       \
                                                places[row * work.n + first + i] = place[i];       \
            }                                                                                      \
            SYNC();                                                                                \
        }                                                                                          \
    }
ORDER_TILES(order_f32, float, uint32_t, order_key_f32)
ORDER_TILES(order_f64, double, uint64_t, order_key_f64)
ORDER_TILES(order_i32, int32_t, uint32_t, order_key_i32)
ORDER_TILES(order_i64, int64_t, uint64_t, order_key_i64)

DEVICE int64_t order_length(const cuda_ordering *o, int64_t run)
{
    const int64_t left = o->n - run * o->run;
    return left < 0 ? 0 : order_least(o->kept, left);
}

/* Runs 2 r and 2 r + 1 become run r of twice the length. */
#define ORDER_MERGE(name, U)                                                                       \
    KERNEL(name, cuda_ordering)                                                                    \
    {                                                                                              \
        const U *keys = (const U *)GLOBAL(work.keys[work.from]);                                   \
        const int32_t *places = (const int32_t *)GLOBAL(work.places[work.from]);                   \
        U *to_keys = (U *)GLOBAL(work.keys[1 - work.from]);                                        \
        int32_t *to_places = (int32_t *)GLOBAL(work.places[1 - work.from]);                        \
        int32_t *to = (int32_t *)GLOBAL(work.to);                                                  \
        for (int64_t i = THREAD; i < work.n_rows * work.n_runs * work.kept; i += THREADS) {        \
            const int64_t at = i % work.kept, run = i / work.kept % work.n_runs;                   \
            const int64_t row = i / work.kept / work.n_runs, first = row * work.n;                 \
            const int64_t other = first + (run ^ 1) * work.run;                                    \
            if (at >= order_length(&work, run)) continue;                                          \
            const U key = keys[first + run * work.run + at];                                       \
            const int32_t place = places[first + run * work.run + at];                             \
            int64_t low = 0, high = order_length(&work, run ^ 1);                                  \
            while (low < high) {                                                                   \
                const int64_t middle = (low + high) / 2;                                           \
                const U its = keys[other + middle];                                                \
                if (its < key || (its == key && places[other + middle] < place))                   \
                    low = middle + 1;                                                              \
                else                                                                               \
                    high = middle;                                                                 \
            }                                                                                      \
            if (at + low >= work.count) continue;                                                  \
            if (work.is_last)                                                                      \
                to[order_at(&work, row, work.count, at + low)] = place;                            \
            else {                                                                                 \
                const int64_t k = first + run / 2 * 2 * work.run + at + low;                       \
                to_keys[k] = key, to_places[k] = place;                                            \
            }                                                                                      \
        }                                                                                          \
    }
ORDER_MERGE(order_merge_32, uint32_t)
ORDER_MERGE(order_merge_64, uint64_t)
