/* order.c: the indices of a row's elements in the order of the elements: all of them, or the first few.
 *
 * An element's key is an unsigned number that is the larger the later the element comes; of equal keys the lower
 * index comes first. Few are kept in a heap with the last of those found so far on top. Else all are sorted by the
 * bytes of their keys, from the lowest on, which keeps the order of equal ones.  source  Knuth, The Art of Computer
 * Programming 3, 5.2.5
 */
#include "cpu/kernels.h"
#include "cpu/nest.h"

#include <string.h>

typedef struct entry {
    uint64_t key;
    int64_t at;
} entry;

enum { MOST_SLOTS = 8, SHORT = 32 };

typedef struct ordering {
    const weft_call *call;
    int64_t n, count, inner, n_rows, n_slots;
    int key_bytes;
    bool descending;
    uint64_t (*key)(const void *x, int64_t i);
} ordering;

/* ---- keys ---------------------------------------------------------------------------------------- */

/* Floats as their bits are ordered, once those of negative ones are turned round; -0 + 0 is 0. */
#define FLOAT_KEY(name, T, U, SIGN)                                                                \
    static uint64_t name(const void *x, int64_t i)                                                 \
    {                                                                                              \
        const T value = ((const T *)x)[i] + (T)0;                                                  \
        U bits;                                                                                    \
        if (value != value) return (U)-1;                                                          \
        memcpy(&bits, &value, sizeof bits);                                                        \
        return bits & (SIGN) ? (U)~bits : bits | (SIGN);                                           \
    }
FLOAT_KEY(key_f32, float, uint32_t, UINT32_C(1) << 31)
FLOAT_KEY(key_f64, double, uint64_t, UINT64_C(1) << 63)

static uint64_t key_i32(const void *x, int64_t i)
{
    return (uint32_t)((const int32_t *)x)[i] ^ (UINT32_C(1) << 31);
}
static uint64_t key_i64(const void *x, int64_t i)
{
    return (uint64_t)((const int64_t *)x)[i] ^ (UINT64_C(1) << 63);
}

static uint64_t (*const keys[WEFT_DTYPES])(const void *, int64_t) = {
    [WEFT_F32] = key_f32, [WEFT_F64] = key_f64, [WEFT_I32] = key_i32, [WEFT_I64] = key_i64};

static entry entry_of(const ordering *o, int64_t first, int64_t k)
{
    const uint64_t key = o->key(o->call->in[0].data, first + k * o->inner);
    return (entry){o->descending ? ~key & (UINT64_MAX >> (64 - 8 * o->key_bytes)) : key, k};
}

static bool comes_before(entry a, entry b)
{
    return a.key < b.key || (a.key == b.key && a.at < b.at);
}

/* ---- few of many --------------------------------------------------------------------------------- */

/* The element at `i` goes down to where no child comes after it. */
static void sink(entry *heap, int64_t n, int64_t i)
{
    const entry moved = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && comes_before(heap[child], heap[child + 1])) child++;
        if (!comes_before(moved, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static void order_few(const ordering *o, int64_t first, entry *heap)
{
    for (int64_t k = 0; k < o->count; k++)
        heap[k] = entry_of(o, first, k);
    for (int64_t i = o->count / 2 - 1; i >= 0; i--)
        sink(heap, o->count, i);
    for (int64_t k = o->count; k < o->n; k++) {
        const entry next = entry_of(o, first, k);
        if (!comes_before(next, heap[0])) continue;
        heap[0] = next;
        sink(heap, o->count, 0);
    }
    for (int64_t n = o->count - 1; n > 0; n--) { /* the last goes to the end */
        const entry last = heap[0];
        heap[0] = heap[n], heap[n] = last;
        sink(heap, n, 0);
    }
}

/* ---- all ----------------------------------------------------------------------------------------- */

static void order_short(const ordering *o, int64_t first, entry *sorted)
{
    for (int64_t k = 0; k < o->n; k++) {
        const entry next = entry_of(o, first, k);
        int64_t i = k;
        for (; i > 0 && comes_before(next, sorted[i - 1]); i--)
            sorted[i] = sorted[i - 1];
        sorted[i] = next;
    }
}

/* By one byte of the keys; false: it is the same in all, and nothing was done. */
static bool order_by_byte(const entry *from, entry *to, int64_t n, int byte)
{
    int64_t begin[256] = {0}, sum = 0;
    for (int64_t k = 0; k < n; k++)
        begin[from[k].key >> 8 * byte & 255]++;
    if (begin[from[0].key >> 8 * byte & 255] == n) return false;
    for (int b = 0; b < 256; b++) {
        const int64_t count = begin[b];
        begin[b] = sum, sum += count;
    }
    for (int64_t k = 0; k < n; k++)
        to[begin[from[k].key >> 8 * byte & 255]++] = from[k];
    return true;
}

static const entry *order_all(const ordering *o, int64_t first, entry *a, entry *b)
{
    for (int64_t k = 0; k < o->n; k++)
        a[k] = entry_of(o, first, k);
    for (int byte = 0; byte < o->key_bytes; byte++)
        if (order_by_byte(a, b, o->n, byte)) {
            entry *const sorted = b;
            b = a, a = sorted;
        }
    return a;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static bool is_few(int64_t n, int64_t count)
{
    return count < n / 8;
}

/* Entries that a row needs at once. */
static int64_t room_of(int64_t n, int64_t count)
{
    return is_few(n, count) ? count : n <= SHORT ? n : 2 * n;
}

static void order_row(const ordering *o, int64_t row, entry *room)
{
    const int64_t outer = row / o->inner, at = row % o->inner;
    const int64_t first = outer * o->n * o->inner + at;
    int32_t *to = (int32_t *)o->call->out[0].data + outer * o->count * o->inner + at;
    const entry *sorted = room;
    if (is_few(o->n, o->count))
        order_few(o, first, room);
    else if (o->n <= SHORT)
        order_short(o, first, room);
    else
        sorted = order_all(o, first, room, room + o->n);
    for (int64_t k = 0; k < o->count; k++)
        to[k * o->inner] = (int32_t)sorted[k].at;
}

/* Each slot has room of its own, and every n_slots-th row. */
static void order_slots(void *argument, int64_t begin, int64_t end, int lane)
{
    const ordering *o = argument;
    (void)lane;
    for (int64_t slot = begin; slot < end; slot++) {
        entry *room = (entry *)o->call->scratch + slot * room_of(o->n, o->count);
        for (int64_t row = slot; row < o->n_rows; row += o->n_slots)
            order_row(o, row, room);
    }
}

static ordering plan(const weft_call *call)
{
    const weft_order_attributes *a = call->attributes;
    const weft_view *in = &call->in[0];
    ordering o = {.call = call,
                  .n = a->size,
                  .count = a->count,
                  .inner = 1,
                  .key = keys[in->dtype],
                  .key_bytes = (int)weft_dtype_bytes(in->dtype),
                  .descending = a->descending};
    for (int d = weft_shape_find(&in->shape, a->dim) + 1; d < in->shape.n_dims; d++)
        o.inner *= weft_view_size(in, d);
    o.n_rows = weft_view_count(in) / a->size;
    o.n_slots = o.n_rows < MOST_SLOTS ? o.n_rows : MOST_SLOTS;
    return o;
}

static int64_t scratch(const weft_call *call)
{
    const ordering o = plan(call);
    return o.n_slots * room_of(o.n, o.count) * (int64_t)sizeof(entry);
}

void weft_order_cpu(const weft_call *call)
{
    ordering o = plan(call);
    if (o.n_rows > 0)
        weft_parallel(call->stream, o.n_slots, weft_grain(o.n_rows / o.n_slots * o.n * 8),
                      order_slots, &o);
}

const weft_kernel weft_kernel_order = {
    .size = sizeof(weft_kernel),
    .name = "order",
    .device = WEFT_CPU,
    .dtypes = WEFT_WIDE_DTYPES,
    .scratch = scratch,
    .launch = weft_order_cpu,
};
