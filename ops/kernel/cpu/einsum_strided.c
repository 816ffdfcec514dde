/* einsum_strided.c: the product of two tensors by loops, for any strides and any dtype.
 *
 * out's innermost loop is a row. A chunk of it has its sums side by side in the first-level cache while all that is
 * summed goes past, so where a and b lie as out does, they are read as they lie. Each element is one sum in one order,
 * floats in double (of 16 bits to f32): rows may be cut anywhere.
 */
#include "cpu/einsum.h"
#include "weft/extend/half.h"
#include "weft/extend/math.h"

#include <string.h>

enum {
    CHUNK = 2048,
    UNIT = 16
}; /* elements: of the sums in cache; what lanes share out, a cache line of floats */

/* sum [n] += a b over `times` steps, all in one place of the row. */
typedef struct strip {
    int64_t n, a, b; /* elements of the row, and a's and b's strides along it */
    int64_t times, next_a, next_b;
} strip;

/* Rows of each operand whose products are added while a sum is in a register, in order: its bits are those of one at a time. */
enum { AT_ONCE = 4 };

#define STRIDED(s, A, of_a, B, of_b, R, SUM)                                                       \
    WEFT_TARGET_CLONES static void add_rows_##s(SUM *sum, const A *a, const B *b, const strip *x)  \
    {                                                                                              \
        int64_t left = x->times;                                                                   \
        const int64_t na = x->next_a, nb = x->next_b;                                              \
        for (; left >= AT_ONCE; left -= AT_ONCE, a += AT_ONCE * na, b += AT_ONCE * nb) {           \
            WEFT_IVDEP                                                                             \
            for (int64_t i = 0; i < x->n; i++) {                                                   \
                SUM of_i = sum[i];                                                                 \
                of_i += (SUM)of_a(a[i]) * (SUM)of_b(b[i]);                                         \
                of_i += (SUM)of_a(a[na + i]) * (SUM)of_b(b[nb + i]);                               \
                of_i += (SUM)of_a(a[2 * na + i]) * (SUM)of_b(b[2 * nb + i]);                       \
                of_i += (SUM)of_a(a[3 * na + i]) * (SUM)of_b(b[3 * nb + i]);                       \
                sum[i] = of_i;                                                                     \
            }                                                                                      \
        }                                                                                          \
        for (; left > 0; left--, a += na, b += nb) {                                               \
            WEFT_IVDEP                                                                             \
            for (int64_t i = 0; i < x->n; i++)                                                     \
                sum[i] += (SUM)of_a(a[i]) * (SUM)of_b(b[i]);                                       \
        }                                                                                          \
    }                                                                                              \
    static void add_any_##s(SUM *sum, const A *a, const B *b, const strip *x)                      \
    {                                                                                              \
        for (int64_t l = 0; l < x->times; l++, a += x->next_a, b += x->next_b)                     \
            for (int64_t i = 0; i < x->n; i++)                                                     \
                sum[i] += (SUM)of_a(a[i * x->a]) * (SUM)of_b(b[i * x->b]);                         \
    }                                                                                              \
    static void chunk_##s(const weft_einsum *e, const int64_t *at, int64_t n)                      \
    {                                                                                              \
        SUM sum[CHUNK];                                                                            \
        memset(sum, 0, (size_t)n * sizeof *sum);                                                   \
        const weft_einsum_dim *row = &e->dm, *k = &e->dk;                                          \
        const int64_t *stride = row->stride, count = weft_nest_count(&e->k);                       \
        const strip x = {n,       stride[WEFT_A],    stride[WEFT_B],                               \
                         k->size, k->stride[WEFT_A], k->stride[WEFT_B]};                           \
        const bool is_plain = x.a == 1 && x.b == 1;                                                \
        for (int64_t l = 0; l < count; l++) {                                                      \
            int64_t added[WEFT_NEST_TENSORS];                                                      \
            weft_nest_offset(&e->k, l, added);                                                     \
            const A *a = (const A *)(const void *)e->data[WEFT_A] + at[WEFT_A] + added[WEFT_A];    \
            const B *b = (const B *)(const void *)e->data[WEFT_B] + at[WEFT_B] + added[WEFT_B];    \
            if (is_plain)                                                                          \
                add_rows_##s(sum, a, b, &x);                                                       \
            else                                                                                   \
                add_any_##s(sum, a, b, &x);                                                        \
        }                                                                                          \
        if (e->narrow != NULL) {                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                e->narrow[at[WEFT_OUT] + i * stride[WEFT_OUT]] = weft_bf16_of_f32((float)sum[i]);  \
            return;                                                                                \
        }                                                                                          \
        R *out = (R *)(void *)e->data[WEFT_OUT] + at[WEFT_OUT];                                    \
        for (int64_t i = 0; i < n && e->adds; i++)                                                 \
            sum[i] = (SUM)(R)sum[i] + (SUM)out[i * stride[WEFT_OUT]];                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i * stride[WEFT_OUT]] = (R)sum[i];                                                 \
    }
#define SAME(x) (x)
STRIDED(f32, float, SAME, float, SAME, float, double)
STRIDED(f64, double, SAME, double, SAME, double, double)
STRIDED(i32, int32_t, SAME, int32_t, SAME, int32_t, uint32_t)
STRIDED(i64, int64_t, SAME, int64_t, SAME, int64_t, uint64_t)
STRIDED(bf16, uint16_t, weft_f32_of_bf16, uint16_t, weft_f32_of_bf16, float, double)
STRIDED(f16, uint16_t, weft_f32_of_f16, uint16_t, weft_f32_of_f16, float, double)
STRIDED(rounded_a, float, weft_bf16_round, uint16_t, weft_f32_of_bf16, float, double)
STRIDED(rounded_b, uint16_t, weft_f32_of_bf16, float, weft_bf16_round, float, double)

typedef void (*chunk)(const weft_einsum *e, const int64_t *at, int64_t n);
static const chunk chunks[WEFT_DTYPES] =
    {/* of a and b */
     [WEFT_F32] = chunk_f32, [WEFT_F64] = chunk_f64,   [WEFT_I32] = chunk_i32,
     [WEFT_I64] = chunk_i64, [WEFT_BF16] = chunk_bf16, [WEFT_F16] = chunk_f16};

static chunk chunk_for(const weft_einsum *e)
{
    return e->rounds[WEFT_A]   ? chunk_rounded_a
           : e->rounds[WEFT_B] ? chunk_rounded_b
                               : chunks[e->reads];
}

/* Units [begin, end) of all rows, one after the other; a row's are done together. */
static void run_units(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_einsum *e = argument;
    (void)lane;
    for (int64_t i = begin, n; i < end; i += n) {
        int64_t at[WEFT_NEST_TENSORS];
        const int64_t unit = i % e->slices, first = unit * UNIT, most = CHUNK / UNIT;
        n = end - i < most ? end - i : most;
        if (n > e->slices - unit) n = e->slices - unit;
        const int64_t left = e->dm.size - first;
        weft_nest_offset(&e->free, i / e->slices, at);
        for (int t = 0; t < WEFT_NEST_TENSORS; t++)
            at[t] += first * e->dm.stride[t];
        chunk_for(e)(e, at, left < n * UNIT ? left : n * UNIT);
    }
}

void weft_einsum_plan_strided(weft_einsum *e)
{
    weft_nest_append(&e->free, &e->m);
    weft_nest_append(&e->free, &e->n);
    weft_nest_append(&e->k, &e->lone);
    e->dm = weft_einsum_take_last(&e->free);
    e->dk = weft_einsum_take_last(&e->k);
    e->slices = (e->dm.size + UNIT - 1) / UNIT;
    e->narrows = true;
    e->run = weft_einsum_run_lanes;
    e->body = run_units;
    e->count = weft_nest_count(&e->free) * e->slices;
    e->grain = weft_grain(UNIT * e->dk.size * weft_nest_count(&e->k));
}
