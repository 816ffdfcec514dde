/* index: rows of a table by their ids, read and added to. Ids that are not here read zeros and add nothing. */
#include "mesh/cuda/kernel_source.h"

#include "nest.h"

#define GATHER(name, T)                                                                            \
    KERNEL(name, cuda_indexing)                                                                    \
    {                                                                                              \
        const int32_t *id = (const int32_t *)GLOBAL(work.id);                                      \
        const T *table = (const T *)GLOBAL(work.table);                                            \
        T *rows = (T *)GLOBAL(work.rows);                                                          \
        for (int64_t i = THREAD; i < work.n_ids * work.n_rest; i += THREADS) {                     \
            const offsets ids = offsets_of(&work.ids, i / work.n_rest);                            \
            const offsets rest = offsets_of(&work.rest, i % work.n_rest);                          \
            const int64_t row = id[ids.at[0]];                                                     \
            const int is_here = row >= work.first && row < work.end;                               \
            const int64_t from = ids.at[1] + rest.at[1] + (row - work.first) * work.step;          \
            rows[ids.at[2] + rest.at[2]] = is_here ? table[from] : (T)0;                           \
        }                                                                                          \
    }
GATHER(gather_1, uint8_t)
GATHER(gather_2, uint16_t)
GATHER(gather_4, uint32_t)
GATHER(gather_8, uint64_t)

/* A thread has one element of each row, and of the table's rows one part: it goes through the ids in their order, so that what
 * is added to an element is added by one thread, in one order. */
#define SCATTER(name, T, S)                                                                        \
    KERNEL(name, cuda_indexing)                                                                    \
    {                                                                                              \
        const int32_t *id = (const int32_t *)GLOBAL(work.id);                                      \
        T *table = (T *)GLOBAL(work.table);                                                        \
        const T *rows = (const T *)GLOBAL(work.rows);                                              \
        const int64_t n_rows = (work.end - work.first + work.n_parts - 1) / work.n_parts;          \
        for (int64_t i = THREAD; i < work.n_parts * work.n_rest; i += THREADS) {                   \
            const offsets rest = offsets_of(&work.rest, i % work.n_rest);                          \
            const int64_t begin = work.first + i / work.n_rest * n_rows;                           \
            const int64_t stop = begin + n_rows < work.end ? begin + n_rows : work.end;            \
            for (int64_t k = 0; k < work.n_ids; k++) {                                             \
                const offsets ids = offsets_of(&work.ids, k);                                      \
                const int64_t row = id[ids.at[0]];                                                 \
                if (row < begin || row >= stop) continue;                                          \
                T *to = table + ids.at[1] + rest.at[1] + (row - work.first) * work.step;           \
                *to = (T)((S)*to + (S)rows[ids.at[2] + rest.at[2]]);                               \
            }                                                                                      \
        }                                                                                          \
    }
SCATTER(scatter_f32, float, float)
SCATTER(scatter_f64, double, double)
SCATTER(scatter_i32, int32_t, uint32_t)
SCATTER(scatter_i64, int64_t, uint64_t)

/* The same of the largest: a thread begins its part itself. */
#define SCATTER_MAX(name, T, LEAST, IS_ABOVE)                                                      \
    KERNEL(name, cuda_indexing)                                                                    \
    {                                                                                              \
        const int32_t *id = (const int32_t *)GLOBAL(work.id);                                      \
        T *table = (T *)GLOBAL(work.table);                                                        \
        const T *rows = (const T *)GLOBAL(work.rows);                                              \
        const int64_t n_rows = (work.end - work.first + work.n_parts - 1) / work.n_parts;          \
        for (int64_t i = THREAD; i < work.n_parts * work.n_rest; i += THREADS) {                   \
            const offsets rest = offsets_of(&work.rest, i % work.n_rest);                          \
            const int64_t begin = work.first + i / work.n_rest * n_rows;                           \
            const int64_t stop = begin + n_rows < work.end ? begin + n_rows : work.end;            \
            for (int64_t row = begin; row < stop; row++)                                           \
                table[rest.at[1] + (row - work.first) * work.step] = (T)(LEAST);                   \
            for (int64_t k = 0; k < work.n_ids; k++) {                                             \
                const offsets ids = offsets_of(&work.ids, k);                                      \
                const int64_t row = id[ids.at[0]];                                                 \
                if (row < begin || row >= stop) continue;                                          \
                T *to = table + rest.at[1] + (row - work.first) * work.step;                       \
                const T x = rows[ids.at[2] + rest.at[2]], y = *to;                                 \
                if (IS_ABOVE) *to = x;                                                             \
            }                                                                                      \
        }                                                                                          \
    }
SCATTER_MAX(scatter_max_f32, float, -INFINITY, x > y || x != x)
SCATTER_MAX(scatter_max_f64, double, -INFINITY, x > y || x != x)
SCATTER_MAX(scatter_max_i32, int32_t, INT32_MIN, x > y)
SCATTER_MAX(scatter_max_i64, int64_t, INT64_MIN, x > y)
