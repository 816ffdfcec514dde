/* order.c: the indices of a row's elements in the order of the elements: all of them, or the first few.
 *
 * An element's key is an unsigned number that is the larger the later the element comes; of equal keys the lower
 * index comes first. order_entries.inc says how rows of keys are put in order.
 */
#include "cpu/kernels.h"
#include "cpu/nest.h"
#include "weft/extend/target_clones.h"

#include <string.h>

enum {
    MOST_SLOTS = 8,
    PART = 512,   /* keys that are made at a time */
    GROUP = 16,   /* of which so many are looked at together */
    SHORT = 16,   /* sorted by insertion */
    MEDIUM = 128, /* so long are rows that are sorted beside each other */
    LINES = 8,    /* rows beside each other */
    TRIES = 64
};

typedef struct ordering {
    const weft_call *call;
    int64_t n, count, inner, n_rows, n_pieces, n_slots;
    weft_dtype dtype;
    bool descending;
} ordering;

static bool is_few(const ordering *o)
{
    return o->count < o->n / 8;
}

/* Elements from the operand's first to a row's. */
static int64_t first_of(const ordering *o, int64_t row)
{
    return row / o->inner * o->n * o->inner + row % o->inner;
}

static int32_t *result_of(const ordering *o, int64_t row)
{
    int32_t *to = o->call->out[0].data;
    return to + row / o->inner * o->count * o->inner + row % o->inner;
}

/* ---- keys ---------------------------------------------------------------------------------------- */

/* Floats as their bits are ordered, once those of negative ones are turned round; -0 + 0 is 0. A NaN is above all. */
#define FLOAT_KEY(T, KEY, INT)                                                                     \
    const T value = x[k * step] + (T)0;                                                            \
    KEY bits;                                                                                      \
    memcpy(&bits, &value, sizeof bits);                                                            \
    const KEY sign = (KEY)1 << (8 * sizeof(T) - 1);                                                \
    const KEY key = bits ^ ((KEY)((INT)bits >> (8 * sizeof(T) - 1)) | sign);                       \
    keys[k] = (value != value ? (KEY)-1 : key) ^ flip;
#define INT_KEY(T, KEY, INT) keys[k] = (KEY)x[k * step] ^ (KEY)1 << (8 * sizeof(T) - 1) ^ flip;
#define KEYS(name, KIND, T, KEY, INT)                                                              \
    WEFT_TARGET_CLONES static void name(const T *x, int64_t step, int64_t n, KEY flip, KEY *keys)  \
    {                                                                                              \
        if (step != 1) {                                                                           \
            for (int64_t k = 0; k < n; k++) {                                                      \
                KIND(T, KEY, INT)                                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        step = 1;                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                          \
            KIND(T, KEY, INT)                                                                      \
        }                                                                                          \
    }
KEYS(keys_f32, FLOAT_KEY, float, uint32_t, int32_t)
KEYS(keys_f64, FLOAT_KEY, double, uint64_t, int64_t)
KEYS(keys_i32, INT_KEY, int32_t, uint32_t, int32_t)
KEYS(keys_i64, INT_KEY, int64_t, uint64_t, int64_t)

/* n of a row from element `at` of the operand on. */
static void keys_32(const ordering *o, int64_t at, int64_t n, uint32_t *keys)
{
    const void *x = o->call->in[0].data;
    const uint32_t flip = o->descending ? UINT32_MAX : 0;
    if (o->dtype == WEFT_F32)
        keys_f32((const float *)x + at, o->inner, n, flip, keys);
    else
        keys_i32((const int32_t *)x + at, o->inner, n, flip, keys);
}

static void keys_64(const ordering *o, int64_t at, int64_t n, uint64_t *keys)
{
    const void *x = o->call->in[0].data;
    const uint64_t flip = o->descending ? UINT64_MAX : 0;
    if (o->dtype == WEFT_F64)
        keys_f64((const double *)x + at, o->inner, n, flip, keys);
    else
        keys_i64((const int64_t *)x + at, o->inner, n, flip, keys);
}

#define NAME(x)  x##_32
#define KEY      uint32_t
#define ENTRY    uint64_t
#define KEY_BITS 32
#include "order_entries.inc"

__extension__ typedef unsigned __int128 wide_entry;
#define NAME(x)  x##_64
#define KEY      uint64_t
#define ENTRY    wide_entry
#define KEY_BITS 64
#include "order_entries.inc"

/* ---- rows ---------------------------------------------------------------------------------------- */

/* Bytes that a slot needs at once, a multiple of 64. */
static int64_t room_of(const ordering *o)
{
    const int64_t few = 2 * o->count + PART, all = 2 * o->n, beside = LINES * o->n;
    const int64_t bytes = 2 * (int64_t)weft_dtype_bytes(o->dtype);
    const int64_t entries = o->n <= MEDIUM ? beside : is_few(o) ? few : all;
    return (entries * bytes + 63) / 64 * 64;
}

/* Each slot has room of its own, and every n_slots-th piece: a row, or short rows beside each other. */
static void order_slots(void *argument, int64_t begin, int64_t end, int lane)
{
    const ordering *o = argument;
    const bool is_wide = weft_dtype_bytes(o->dtype) == sizeof(uint64_t);
    const bool is_short = o->n <= MEDIUM;
    (void)lane;
    for (int64_t slot = begin; slot < end; slot++) {
        char *room = (char *)o->call->scratch + slot * room_of(o);
        for (int64_t piece = slot; piece < o->n_pieces; piece += o->n_slots) {
            const int64_t left = o->n_rows - piece * LINES, n = left < LINES ? left : LINES;
            if (!is_short)
                (is_wide ? row_64 : row_32)(o, piece, room);
            else if (is_wide)
                short_rows_64(o, piece * LINES, n, (wide_entry *)(void *)room);
            else
                short_rows_32(o, piece * LINES, n, (uint64_t *)(void *)room);
        }
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
                  .dtype = in->dtype,
                  .descending = a->descending};
    for (int d = weft_shape_find(&in->shape, a->dim) + 1; d < in->shape.n_dims; d++)
        o.inner *= weft_view_size(in, d);
    o.n_rows = weft_view_count(in) / a->size;
    o.n_pieces = o.n <= MEDIUM ? (o.n_rows + LINES - 1) / LINES : o.n_rows;
    o.n_slots = o.n_pieces < MOST_SLOTS ? o.n_pieces : MOST_SLOTS;
    return o;
}

static int64_t scratch(const weft_call *call)
{
    const ordering o = plan(call);
    return o.n_slots * room_of(&o);
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
