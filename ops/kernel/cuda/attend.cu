/* attend: attention and its gradient by the definition, row by row; scores are computed again wherever they are needed. A block
 * has a row: of the queries for the result and dq, of the memory for dk and dv. It goes through what the row sees in tiles of
 * as many rows as it has threads: each thread works out one weight, all meet, then each adds up features of its own. So every
 * element is added up by one thread, in one order. */
#include "mesh/cuda/kernel_source.h"

#include "attend.h"

#include "weft/extend/math.h"

/* Where a head's matrix begins. */
DEVICE int64_t head_at(const cuda_attention *a, int tensor, int64_t head)
{
    int64_t at = 0;
    for (int d = a->n_dims - 1; d >= 0; d--) {
        const int64_t next = head / a->size[d];
        at += (head - next * a->size[d]) * a->stride[tensor][d];
        head = next;
    }
    return at;
}

DEVICE int64_t within(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* The memory rows that a query row may see. */
DEVICE void seen_from(const cuda_attention *a, int64_t i, int64_t seen[2])
{
    const int64_t at = a->first_query + i - a->first_memory;
    seen[0] = within(at - a->back, a->n_memory);
    seen[1] = within(at + a->ahead + 1, a->n_memory);
}

#define ATTEND(T, suffix)                                                                          \
    /* Two rows, feature by feature. */                                                            \
    DEVICE T dot_##suffix(const cuda_attention *a, const T *x, int64_t x_step, const T *y,         \
                          int64_t y_step)                                                          \
    {                                                                                              \
        T sum = 0;                                                                                 \
        for (int64_t f = 0; f < a->n_feature; f++)                                                 \
            sum += x[f * x_step] * y[f * y_step];                                                  \
        return sum;                                                                                \
    }                                                                                              \
                                                                                                   \
    typedef struct head_##suffix {                                                                 \
        T *at[ATTEND_TENSORS];                                                                     \
        const int32_t *mask;                                                                       \
    } head_##suffix;                                                                               \
    DEVICE head_##suffix head_of_##suffix(const cuda_attention *a, int64_t n)                      \
    {                                                                                              \
        head_##suffix head;                                                                        \
        for (int t = 0; t < ATTEND_TENSORS; t++)                                                   \
            head.at[t] = (T *)GLOBAL(a->data[t]) + (t == ATTEND_MASK ? 0 : head_at(a, t, n));      \
        head.mask = (const int32_t *)GLOBAL(a->data[ATTEND_MASK]) + head_at(a, ATTEND_MASK, n);    \
        return head;                                                                               \
    }                                                                                              \
    DEVICE T *row_##suffix(const cuda_attention *a, int tensor, const head_##suffix *head, int64_t i) \
    {                                                                                              \
        return head->at[tensor] + i * a->row[tensor];                                              \
    }                                                                                              \
                                                                                                   \
    DEVICE T dot_rows_##suffix(const cuda_attention *a, int x, int64_t i, int y, int64_t j,        \
                               const head_##suffix *head)                                          \
    {                                                                                              \
        return dot_##suffix(a, row_##suffix(a, x, head, i), a->column[x],                          \
                            row_##suffix(a, y, head, j), a->column[y]);                            \
    }                                                                                              \
                                                                                                   \
    /* -inf where the query row does not see the memory row. */                                    \
    DEVICE T score_##suffix(const cuda_attention *a, const head_##suffix *head, int64_t i, int64_t j) \
    {                                                                                              \
        const int64_t apart = a->first_memory + j - (a->first_query + i);                          \
        if (apart < -a->back || apart > a->ahead) return -(T)INFINITY;                             \
        if (a->data[ATTEND_MASK] != NULL) {                                                        \
            if (head->mask[i * a->row[ATTEND_MASK] + j * a->column[ATTEND_MASK]] == 0)             \
                return -(T)INFINITY;                                                               \
        }                                                                                          \
        T bias = 0;                                                                                \
        if (a->data[ATTEND_BIAS] != NULL)                                                          \
            bias = row_##suffix(a, ATTEND_BIAS, head, i)[j * a->column[ATTEND_BIAS]];              \
        return (T)a->scale * dot_rows_##suffix(a, ATTEND_Q, i, ATTEND_K, j, head) + bias;          \
    }                                                                                              \
                                                                                                   \
    /* Of all threads of a block: the largest, or the sum. */                                      \
    DEVICE T meet_##suffix(T x, int is_sum)                                                        \
    {                                                                                              \
        SHARED T met[ATTEND_THREADS];                                                              \
        met[IN_BLOCK] = x;                                                                         \
        for (int half = BLOCK_THREADS / 2; half > 0; half /= 2) {                                  \
            SYNC();                                                                                \
            if (IN_BLOCK >= half) continue;                                                        \
            const T y = met[IN_BLOCK + half], z = met[IN_BLOCK];                                   \
            met[IN_BLOCK] = is_sum ? z + y : z > y || z != z ? z : y;                              \
        }                                                                                          \
        SYNC();                                                                                    \
        const T all = met[0];                                                                      \
        SYNC();                                                                                    \
        return all;                                                                                \
    }                                                                                              \
                                                                                                   \
    /* The maximum of a query row's scores (0: it sees nothing), and the sum of exp(score - maximum). */ \
    DEVICE void softmax_##suffix(const cuda_attention *a, const head_##suffix *head, int64_t i,    \
                                 const int64_t seen[2], T *top, T *total)                          \
    {                                                                                              \
        T most = -(T)INFINITY, sum = 0;                                                            \
        for (int64_t j = seen[0] + IN_BLOCK; j < seen[1]; j += BLOCK_THREADS) {                    \
            const T s = score_##suffix(a, head, i, j);                                             \
            most = most > s || most != most ? most : s;                                            \
        }                                                                                          \
        most = meet_##suffix(most, 0);                                                             \
        most = most == -(T)INFINITY ? 0 : most;                                                    \
        for (int64_t j = seen[0] + IN_BLOCK; j < seen[1]; j += BLOCK_THREADS)                      \
            sum += weft_exp_##suffix(score_##suffix(a, head, i, j) - most);                        \
        *top = most, *total = meet_##suffix(sum, 1);                                               \
    }                                                                                              \
                                                                                                   \
    /* The weight of a memory row in the gradient. `row`: of the query row mean, base and over. */ \
    DEVICE T regained_##suffix(const cuda_attention *a, const head_##suffix *head, int64_t i,      \
                               int64_t j, const T *row)                                            \
    {                                                                                              \
        return weft_exp_##suffix(score_##suffix(a, head, i, j) - row[1]) * row[2];                 \
    }                                                                                              \
                                                                                                   \
    KERNEL_OF(attend_##suffix, cuda_attention, ATTEND_THREADS)                                     \
    {                                                                                              \
        SHARED T tile[ATTEND_THREADS];                                                             \
        const cuda_attention *a = &work;                                                           \
        for (int64_t n = BLOCK; n < a->n_heads * a->n_query; n += BLOCKS) {                        \
            const head_##suffix h = head_of_##suffix(a, n / a->n_query), *head = &h;               \
            const int64_t i = n % a->n_query;                                                      \
            int64_t seen[2];                                                                       \
            seen_from(a, i, seen);                                                                 \
            T top, total;                                                                          \
            softmax_##suffix(a, head, i, seen, &top, &total);                                      \
            const T over = total == 0 ? 1 : 1 / total;                                             \
            if (IN_BLOCK == 0) {                                                                   \
                T *kept = row_##suffix(a, ATTEND_STATS, head, i);                                  \
                kept[0] = total == 0 ? -(T)INFINITY : top;                                         \
                kept[a->column[ATTEND_STATS]] = total;                                             \
            }                                                                                      \
            for (int64_t first = 0; first < a->n_feature; first += BLOCK_THREADS) {                \
                const int64_t f = first + IN_BLOCK;                                                \
                T sum = 0;                                                                         \
                for (int64_t begin = seen[0]; begin < seen[1]; begin += BLOCK_THREADS) {           \
                    const int64_t left = seen[1] - begin, j = begin + IN_BLOCK;                    \
                    T p = 0;                                                                       \
                    if (j < seen[1])                                                               \
                        p = weft_exp_##suffix(score_##suffix(a, head, i, j) - top) * over;         \
                    tile[IN_BLOCK] = p;                                                            \
                    SYNC();                                                                        \
                    for (int k = 0; f < a->n_feature && k < BLOCK_THREADS && k < left; k++)        \
                        sum += tile[k] * row_##suffix(a, ATTEND_V, head,                           \
                                                      begin + k)[f * a->column[ATTEND_V]];         \
                    SYNC();                                                                        \
                }                                                                                  \
                if (f < a->n_feature)                                                              \
                    row_##suffix(a, ATTEND_O, head, i)[f * a->column[ATTEND_O]] = sum;             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* dq, and what dk and dv need of each query row. */                                           \
    KERNEL_OF(attend_query_##suffix, cuda_attention, ATTEND_THREADS)                               \
    {                                                                                              \
        SHARED T tile[ATTEND_THREADS];                                                             \
        const cuda_attention *a = &work;                                                           \
        T *of_rows = (T *)GLOBAL(a->of_rows);                                                      \
        for (int64_t n = BLOCK; n < a->n_heads * a->n_query; n += BLOCKS) {                        \
            const head_##suffix h = head_of_##suffix(a, n / a->n_query), *head = &h;               \
            const int64_t i = n % a->n_query;                                                      \
            int64_t seen[2];                                                                       \
            seen_from(a, i, seen);                                                                 \
            const T *kept = row_##suffix(a, ATTEND_STATS, head, i);                                \
            const T total = kept[a->column[ATTEND_STATS]];                                         \
            const T mean = dot_rows_##suffix(a, ATTEND_O, i, ATTEND_Y, i, head);                   \
            T *of_row = of_rows + 3 * n;                                                           \
            if (IN_BLOCK == 0) {                                                                   \
                of_row[0] = mean, of_row[1] = total == 0 ? (T)INFINITY : kept[0];                  \
                of_row[2] = total == 0 ? 0 : 1 / total;                                            \
            }                                                                                      \
            SYNC();                                                                                \
            for (int64_t first = 0; first < a->n_feature; first += BLOCK_THREADS) {                \
                const int64_t f = first + IN_BLOCK;                                                \
                T sum = 0;                                                                         \
                for (int64_t begin = seen[0]; begin < seen[1]; begin += BLOCK_THREADS) {           \
                    const int64_t left = seen[1] - begin, j = begin + IN_BLOCK;                    \
                    T ds = 0;                                                                      \
                    if (j < seen[1])                                                               \
                        ds = regained_##suffix(a, head, i, j, of_row) *                            \
                             (dot_rows_##suffix(a, ATTEND_O, i, ATTEND_V, j, head) - of_row[0]);   \
                    tile[IN_BLOCK] = ds;                                                           \
                    SYNC();                                                                        \
                    for (int k = 0; f < a->n_feature && k < BLOCK_THREADS && k < left; k++)        \
                        sum += tile[k] * row_##suffix(a, ATTEND_K, head,                           \
                                                      begin + k)[f * a->column[ATTEND_K]];         \
                    SYNC();                                                                        \
                }                                                                                  \
                if (f < a->n_feature)                                                              \
                    row_##suffix(a, ATTEND_DQ, head, i)[f * a->column[ATTEND_DQ]] =                \
                        (T)a->scale * sum;                                                         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* dk and dv of a memory row: a tile of the query rows that see it. Of heads that have it in common one at a time adds up. */ \
    KERNEL_OF(attend_memory_##suffix, cuda_attention, ATTEND_THREADS)                              \
    {                                                                                              \
        SHARED T weights[ATTEND_THREADS], slopes[ATTEND_THREADS];                                  \
        const cuda_attention *a = &work;                                                           \
        const T *of_rows = (const T *)GLOBAL(a->of_rows);                                          \
        for (int64_t n = BLOCK; n < a->n_keys * a->n_memory; n += BLOCKS) {                        \
            const int64_t number = n / a->n_memory * a->n_grouped + a->member;                     \
            const head_##suffix h = head_of_##suffix(a, number), *head = &h;                       \
            const int64_t j = n % a->n_memory;                                                     \
            const T *of_query = of_rows + 3 * number * a->n_query;                                 \
            const int64_t at = a->first_memory + j - a->first_query;                               \
            const int64_t seen[2] = {within(at - a->ahead, a->n_query),                            \
                                     within(at + a->back + 1, a->n_query)};                        \
            for (int64_t first = 0; first < a->n_feature; first += BLOCK_THREADS) {                \
                const int64_t f = first + IN_BLOCK;                                                \
                T dk = 0, dv = 0;                                                                  \
                for (int64_t begin = seen[0]; begin < seen[1]; begin += BLOCK_THREADS) {           \
                    const int64_t i = begin + IN_BLOCK;                                            \
                    const int left = (int)within(seen[1] - begin, BLOCK_THREADS);                  \
                    T p = 0, ds = 0;                                                               \
                    if (i < seen[1]) {                                                             \
                        const T *of_row = of_query + 3 * i;                                        \
                        p = regained_##suffix(a, head, i, j, of_row);                              \
                        ds = p * (dot_rows_##suffix(a, ATTEND_O, i, ATTEND_V, j, head) -           \
                                  of_row[0]);                                                      \
                    }                                                                              \
                    weights[IN_BLOCK] = p, slopes[IN_BLOCK] = ds;                                  \
                    SYNC();                                                                        \
                    for (int k = 0; f < a->n_feature && k < left; k++) {                           \
                        dk += slopes[k] * row_##suffix(a, ATTEND_Q, head,                          \
                                                       begin + k)[f * a->column[ATTEND_Q]];        \
                        dv += weights[k] * row_##suffix(a, ATTEND_O, head,                         \
                                                        begin + k)[f * a->column[ATTEND_O]];       \
                    }                                                                              \
                    SYNC();                                                                        \
                }                                                                                  \
                if (f >= a->n_feature) continue;                                                   \
                row_##suffix(a, ATTEND_DK, head, j)[f * a->column[ATTEND_DK]] += (T)a->scale * dk; \
                row_##suffix(a, ATTEND_DV, head, j)[f * a->column[ATTEND_DV]] += dv;               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* dbias: a thread has an element, and adds up the heads, and rows that it lacks, in their order. */ \
    KERNEL(attend_bias_##suffix, cuda_attention)                                                   \
    {                                                                                              \
        const cuda_attention *a = &work;                                                           \
        const T *of_rows = (const T *)GLOBAL(a->of_rows);                                          \
        const int64_t n_rows = a->row[ATTEND_DBIAS] == 0 ? 1 : a->n_query;                         \
        const int64_t n_columns = a->column[ATTEND_DBIAS] == 0 ? 1 : a->n_memory;                  \
        for (int64_t n = THREAD; n < a->n_outer * a->n_apart * n_rows * n_columns; n += THREADS) { \
            const int64_t group = n / (n_rows * n_columns);                                        \
            const int64_t begin = group / a->n_apart * a->n_shared * a->n_apart + group % a->n_apart; \
            const int64_t row = n / n_columns % n_rows, column = n % n_columns;                    \
            const int64_t n_i = n_rows == 1 ? a->n_query : 1, n_j = n_columns == 1 ? a->n_memory : 1; \
            T sum = 0;                                                                             \
            for (int64_t m = 0; m < a->n_shared * n_i * n_j; m++) {                                \
                const int64_t number = begin + m / (n_i * n_j) * a->n_apart;                       \
                const head_##suffix h = head_of_##suffix(a, number), *head = &h;                   \
                const int64_t i = row + m / n_j % n_i, j = column + m % n_j;                       \
                const T *of_row = of_rows + 3 * (number * a->n_query + i);                         \
                const T ds = dot_rows_##suffix(a, ATTEND_O, i, ATTEND_V, j, head) - of_row[0];     \
                sum += ds * regained_##suffix(a, head, i, j, of_row);                              \
            }                                                                                      \
            const head_##suffix first = head_of_##suffix(a, begin);                                \
            row_##suffix(a, ATTEND_DBIAS, &first, row)[column * a->column[ATTEND_DBIAS]] = sum;    \
        }                                                                                          \
    }
ATTEND(float, f32)
ATTEND(double, f64)

/* Between what is kept of rows, a plane of maxima and one of sums, and the one number that a library has, their logsumexp. */
KERNEL(attend_kept, cuda_attend_kept)
{
    float *ours = (float *)GLOBAL(work.ours), *theirs = (float *)GLOBAL(work.theirs);
    for (int64_t n = THREAD; n < work.n; n += THREADS) {
        const int64_t row = n % work.size[2], head = n / work.size[2];
        const int64_t at = row * work.stride[2] + head % work.size[1] * work.stride[1] +
                           head / work.size[1] * work.stride[0];
        if (work.is_ours)
            theirs[n] = ours[at] + weft_log_f32(ours[at + work.plane]);
        else
            ours[at] = theirs[n], ours[at + work.plane] = 1;
    }
}
