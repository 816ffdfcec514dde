/* pick_product: rows times the matrices that their ids choose, and what comes back to the matrices. First the rows of each matrix are
 * found, then a block works out a tile of a result: of so many rows of one matrix, or of one matrix. Every element is added up by one
 * thread, in one order. */
#include "mesh/cuda/kernel_source.h"

#include "pick_product.h"

/* A block for each matrix: threads have stretches of the ids, one behind the other, and tell the others how many rows are before. */
KERNEL(chosen_rows, cuda_choosing)
{
    SHARED int64_t n_before[KERNEL_THREADS], n_own[KERNEL_THREADS];
    const int32_t *id = (const int32_t *)GLOBAL(work.id);
    int64_t *begin = (int64_t *)GLOBAL(work.begin);
    int32_t *row = (int32_t *)GLOBAL(work.row);
    const int64_t stretch = (work.n_rows + BLOCK_THREADS - 1) / BLOCK_THREADS;
    const int64_t from = stretch * IN_BLOCK, to = from + stretch;
    const int64_t end = to < work.n_rows ? to : work.n_rows;
    for (int64_t m = BLOCK; m < work.n_chosen; m += BLOCKS) {
        int64_t before = 0, own = 0, at = 0;
        for (int64_t r = from; r < end; r++) {
            const int64_t of = id[r] - work.first;
            before += of >= 0 && of < m;
            own += of == m;
        }
        n_before[IN_BLOCK] = before, n_own[IN_BLOCK] = own;
        SYNC();
        for (int t = 0; t < BLOCK_THREADS; t++)
            at += n_before[t] + (t < IN_BLOCK ? n_own[t] : 0);
        if (IN_BLOCK == 0) begin[m] = at;
        if (m == work.n_chosen - 1 && IN_BLOCK == BLOCK_THREADS - 1) begin[m + 1] = at + own;
        for (int64_t r = from; r < end; r++)
            if (id[r] - work.first == m) row[at++] = (int32_t)r;
        SYNC();
    }
}

/* Rows of a matrix that are one tile: the number-th of all matrices' tiles. */
typedef struct tile_of_rows {
    int64_t matrix, from, n; /* n 0: there are fewer tiles */
} tile_of_rows;
DEVICE tile_of_rows find_tile(const int64_t *begin, int64_t n_chosen, int64_t number)
{
    tile_of_rows tile = {0, 0, 0};
    for (int64_t m = 0; m < n_chosen; m++) {
        const int64_t n = begin[m + 1] - begin[m], tiles = (n + CHOSEN_TILE - 1) / CHOSEN_TILE;
        if (number < tiles) {
            const int64_t left = n - number * CHOSEN_TILE;
            tile.matrix = m, tile.from = begin[m] + number * CHOSEN_TILE;
            tile.n = left < CHOSEN_TILE ? left : CHOSEN_TILE;
            return tile;
        }
        number -= tiles;
    }
    return tile;
}

/* What a block multiplies: left [along, row], right [along, column], as shared memory has them. A thread has a column of the result
 * and every STEP-th row. */
enum { STEP = CHOSEN_THREADS / CHOSEN_TILE, EACH = CHOSEN_TILE / STEP };

#define PICK_PRODUCT(T, suffix)                                                                    \
    typedef struct tiles_##suffix {                                                                \
        T left[CHOSEN_TILE][CHOSEN_TILE + 1], right[CHOSEN_TILE][CHOSEN_TILE + 1];                 \
    } tiles_##suffix;                                                                              \
    DEVICE void multiply_##suffix(const tiles_##suffix *tiles, T sum[EACH])                        \
    {                                                                                              \
        const int column = IN_BLOCK % CHOSEN_TILE, first = IN_BLOCK / CHOSEN_TILE;                 \
        for (int k = 0; k < CHOSEN_TILE; k++)                                                      \
            for (int e = 0; e < EACH; e++)                                                         \
                sum[e] += tiles->left[k][first + e * STEP] * tiles->right[k][column];              \
    }                                                                                              \
                                                                                                   \
    KERNEL_OF(pick_product_##suffix, cuda_choosing, CHOSEN_THREADS)                                \
    {                                                                                              \
        SHARED tiles_##suffix tiles;                                                               \
        const T *x = (const T *)GLOBAL(work.x), *all = (const T *)GLOBAL(work.w);                  \
        T *y = (T *)GLOBAL(work.out);                                                              \
        const int32_t *row = (const int32_t *)GLOBAL(work.row);                                    \
        const int64_t *begin = (const int64_t *)GLOBAL(work.begin);                                \
        const int fast = IN_BLOCK % CHOSEN_TILE, slow = IN_BLOCK / CHOSEN_TILE;                    \
        const int64_t wide = (work.n_out + CHOSEN_TILE - 1) / CHOSEN_TILE;                         \
        const int64_t most = work.n_rows / CHOSEN_TILE + work.n_chosen;                            \
        for (int64_t n = BLOCK; n < most * wide; n += BLOCKS) {                                    \
            const tile_of_rows tile = find_tile(begin, work.n_chosen, n / wide);                   \
            const T *w = all + tile.matrix * work.n_in * work.n_out;                               \
            const int64_t column = n % wide * CHOSEN_TILE + fast;                                  \
            T sum[EACH] = {0};                                                                     \
            for (int64_t k = 0; k < work.n_in && tile.n > 0; k += CHOSEN_TILE) {                   \
                for (int at = slow; at < CHOSEN_TILE; at += STEP) {                                \
                    const int is_x = at < tile.n && k + fast < work.n_in;                          \
                    const int is_w = column < work.n_out && k + at < work.n_in;                    \
                    tiles.left[fast][at] =                                                         \
                        is_x ? x[row[tile.from + at] / work.own * work.n_in + k + fast] : (T)0;    \
                    tiles.right[at][fast] =                                                        \
                        is_w ? w[(k + at) * work.in_step + column * work.out_step] : (T)0;         \
                }                                                                                  \
                SYNC();                                                                            \
                multiply_##suffix(&tiles, sum);                                                    \
                SYNC();                                                                            \
            }                                                                                      \
            for (int e = 0; e < EACH; e++)                                                         \
                if (slow + e * STEP < tile.n && column < work.n_out)                               \
                    y[row[tile.from + slow + e * STEP] * work.n_out + column] = sum[e];            \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    KERNEL_OF(unpick_product_##suffix, cuda_choosing, CHOSEN_THREADS)                              \
    {                                                                                              \
        SHARED tiles_##suffix tiles;                                                               \
        const T *x = (const T *)GLOBAL(work.x), *y = (const T *)GLOBAL(work.y);                    \
        T *out = (T *)GLOBAL(work.out);                                                            \
        const int32_t *row = (const int32_t *)GLOBAL(work.row);                                    \
        const int64_t *begin = (const int64_t *)GLOBAL(work.begin);                                \
        const int fast = IN_BLOCK % CHOSEN_TILE, slow = IN_BLOCK / CHOSEN_TILE;                    \
        const int64_t wide = (work.n_out + CHOSEN_TILE - 1) / CHOSEN_TILE;                         \
        const int64_t high = (work.n_in + CHOSEN_TILE - 1) / CHOSEN_TILE;                          \
        for (int64_t n = BLOCK; n < work.n_chosen * high * wide; n += BLOCKS) {                    \
            const int64_t m = n / (high * wide), top = n / wide % high * CHOSEN_TILE;              \
            const int64_t column = n % wide * CHOSEN_TILE + fast;                                  \
            T sum[EACH] = {0};                                                                     \
            for (int64_t from = begin[m]; from < begin[m + 1]; from += CHOSEN_TILE) {              \
                for (int at = slow; at < CHOSEN_TILE; at += STEP) {                                \
                    const int is_row = from + at < begin[m + 1];                                   \
                    const int64_t r = is_row ? row[from + at] : 0;                                 \
                    tiles.left[at][fast] = is_row && top + fast < work.n_in                        \
                                               ? x[r / work.own * work.n_in + top + fast]          \
                                               : (T)0;                                             \
                    tiles.right[at][fast] =                                                        \
                        is_row && column < work.n_out ? y[r * work.n_out + column] : (T)0;         \
                }                                                                                  \
                SYNC();                                                                            \
                multiply_##suffix(&tiles, sum);                                                    \
                SYNC();                                                                            \
            }                                                                                      \
            for (int e = 0; e < EACH; e++) {                                                       \
                const int64_t i = top + slow + e * STEP;                                           \
                if (i < work.n_in && column < work.n_out)                                          \
                    out[(m * work.n_in + i) * work.n_out + column] = sum[e];                       \
            }                                                                                      \
        }                                                                                          \
    }
PICK_PRODUCT(float, f32)
PICK_PRODUCT(double, f64)
