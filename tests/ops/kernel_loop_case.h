/* kernel_loop_case.h: a random loop: its segments, operands and ops, in memory of its own. */
#ifndef TEST_KERNEL_LOOP_CASE_H
#define TEST_KERNEL_LOOP_CASE_H

#include "loop.h"
#include "kernel_views.h"

enum { MOST_SLOTS = 40, MOST_SEGMENTS = 3 };

/* Values stay small whole numbers, so that every order of additions gives the same bits. */
static double fold(double x)
{
    return x - 16 * floor((x + 8) / 16);
}

/* mix: a + 2 b (+ 3 c); mark: a + 3 index; count: index + run, of no operand; take: an i32 as a number. */
#define BLOCKS(T, suffix)                                                                          \
    static void mix_##suffix(int64_t n, void *out, const void *const *in,                          \
                             const weft_block_env *env)                                            \
    {                                                                                              \
        T *y = out;                                                                                \
        const T *a = in[0], *b = in[1], *c = in[2];                                                \
        CHECK(n > 0 && n <= WEFT_BLOCK);                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (T)fold((double)a[i] + env->number[0] * (double)b[i] +                          \
                           (c != NULL ? 3 * (double)c[i] : 0));                                    \
    }                                                                                              \
    static void mark_##suffix(int64_t n, void *out, const void *const *in,                         \
                              const weft_block_env *env)                                           \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)out)[i] = (T)fold((double)((const T *)in[0])[i] +                                \
                                    3.0 * (double)(env->index + i * env->stride));                 \
    }                                                                                              \
    static void count_##suffix(int64_t n, void *out, const void *const *in,                        \
                               const weft_block_env *env)                                          \
    {                                                                                              \
        CHECK(in[0] == NULL);                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)out)[i] = (T)fold((double)(env->index + i * env->stride) + (double)env->step);   \
    }                                                                                              \
    static void take_##suffix(int64_t n, void *out, const void *const *in,                         \
                              const weft_block_env *env)                                           \
    {                                                                                              \
        (void)env;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)out)[i] = (T)fold(((const int32_t *)in[0])[i]);                                  \
    }
BLOCKS(float, f32)
BLOCKS(double, f64)
BLOCKS(int32_t, i32)

typedef enum what { OPERAND, MIX, MARK, COUNT, TAKE, REDUCE, FINISH, WHATS } what;
static const weft_block blocks[WHATS][WEFT_DTYPES] = {[MIX] = {mix_f32, mix_f64, mix_i32},
                                                      [MARK] = {mark_f32, mark_f64, mark_i32},
                                                      [COUNT] = {count_f32, count_f64, count_i32},
                                                      [TAKE] = {take_f32, take_f64, take_i32}};
enum { RUN_NUMBER = 5 };

/* One segment's side of a slot: what it must be, and for operands the memory. */
typedef struct held {
    double *value;    /* [elements] or [rows][width] */
    void *data;       /* operands: as the loop sees it */
    void *original;   /* and as it was before a run    */
    int64_t count;    /* numbers at data                */
    bool is_in_place; /* a result takes its memory      */
} held;

typedef struct slot {
    what what;
    bool of_rows;
    int width, op;
    weft_dtype dtype;
    weft_combine combine;
    held held[MOST_SEGMENTS];
} slot;

typedef struct one_case {
    weft_arena *arena;
    weft_loop *loop;
    weft_dtype dtype;
    bool has_empty;
    int n_slots, n_states, n_out;
    slot slot[MOST_SLOTS];
    int64_t elements[MOST_SEGMENTS], rows[MOST_SEGMENTS], row[MOST_SEGMENTS];
    void *out[MOST_SLOTS][MOST_SEGMENTS]; /* results' own memory; NULL: in place */
    int place[MOST_SLOTS][MOST_SEGMENTS]; /* the operand that a result takes; -1 */
} one_case;

/* ---- spaces and operands --------------------------------------------------------------------- */

/* Of element i, or of the first element of row i. */
static void coordinates(const weft_loop_segment *s, bool of_rows, int64_t i, int64_t *at)
{
    memset(at, 0, WEFT_MAX_DIMS * sizeof *at);
    for (int d = s->n_dims - 1 - (of_rows ? s->n_row_dims : 0); d >= 0; d--) {
        at[d] = i % s->size[d];
        i /= s->size[d];
    }
}

/* How elements lie: row by row, or piece by piece, so that a row's pieces lie far from each other. */
static void lie(const weft_loop_segment *s, int64_t *stride)
{
    const int pieces = s->n_piece_dims > 0 ? s->n_dims - s->n_piece_dims : s->n_dims;
    const int row = s->n_piece_dims > 0 ? s->n_dims - s->n_row_dims : s->n_dims;
    int64_t step = 1;
    for (int d = s->n_dims - 1; d >= pieces; step *= s->size[d--])
        stride[d] = step;
    for (int d = row - 1; d >= 0; step *= s->size[d--])
        stride[d] = step;
    for (int d = pieces - 1; d >= row; step *= s->size[d--])
        stride[d] = step;
}

static void make_space(one_case *c, int g, int n_dims, int n_row_dims, int n_piece_dims)
{
    static const int most[] = {1, 1300, 60, 16, 7, 5}, rows[] = {1, 2, 3, 7};
    static const int lengths[] = {1, 2, 3, 17, 63, 64, 65, 511, 512, 513, 1025, 3072};
    weft_loop_segment *s = &c->loop->segment[g];
    s->n_dims = n_dims, s->n_row_dims = n_row_dims, s->n_piece_dims = n_piece_dims;
    for (int d = 0; d < n_dims; d++)
        s->size[d] = random_below(40) == 0 ? 0 : 1 + random_below(most[n_dims]);
    if ((n_row_dims == 1 || n_piece_dims == 1) && random_below(2))
        s->size[n_dims - 1] = lengths[random_below(12)];
    if (n_row_dims == 1 && n_dims <= 2 && random_below(25) == 0) s->size[n_dims - 1] = 50304;
    while (n_dims > 1 && s->size[n_dims - 1] > 600 && s->size[0] > 7)
        s->size[0] = rows[random_below(4)];
    c->rows[g] = c->row[g] = 1;
    for (int d = 0; d < n_dims; d++)
        *(d < n_dims - n_row_dims ? &c->rows[g] : &c->row[g]) *= s->size[d];
    c->elements[g] = c->rows[g] * c->row[g];
    c->has_empty |= c->elements[g] == 0;
}

static void set_number(const slot *v, void *data, int64_t i, double x)
{
    weft_view view = {.data = data, .dtype = v->dtype};
    const bool is_index = v->width == 2 && i % 2 == 1 && v->dtype == WEFT_F32;
    if (is_index)
        ((int32_t *)data)[i] = (int32_t)x;
    else
        view_set(&view, i, x);
}

static double get_number(const slot *v, const void *data, int64_t i)
{
    const weft_view view = {.data = (void *)data, .dtype = v->dtype};
    const bool is_index = v->width == 2 && i % 2 == 1 && v->dtype == WEFT_F32;
    return is_index ? ((const int32_t *)data)[i] : view_get(&view, i);
}

/* Memory with the strides of some order of some dims; the first operand has all of them in order. */
static void make_operand(one_case *c, int k, int g)
{
    weft_loop_segment *s = &c->loop->segment[g];
    slot *v = &c->slot[k];
    held *h = &v->held[g];
    int order[WEFT_MAX_DIMS];
    const int n = v->of_rows ? s->n_dims - s->n_row_dims : s->n_dims;
    for (int d = 0; d < n; d++)
        order[d] = d;
    const bool is_whole = k == 0 || random_below(2) == 0;
    for (int d = n - 1; d > 0 && !is_whole && random_below(2); d--) {
        const int e = random_below(d + 1), o = order[d];
        order[d] = order[e], order[e] = o;
    }
    int64_t in_order[WEFT_MAX_DIMS];
    lie(s, in_order);
    h->count = v->width;
    for (int i = n - 1; i >= 0; i--) {
        const int d = order[i];
        const bool broadcast = !is_whole && random_below(3) == 0;
        s->in[k].stride[d] = broadcast ? 0 : h->count;
        if (!broadcast) h->count *= s->size[d];
    }
    if (is_whole && !v->of_rows) {
        memcpy(s->in[k].stride, in_order, sizeof in_order);
        h->count = c->elements[g];
    }
    const size_t bytes = (size_t)h->count * weft_dtype_bytes(v->dtype);
    h->data = malloc(bytes), h->original = malloc(bytes + 1);
    if (!h->original || (!h->data && bytes)) exit(2);
    for (int64_t i = 0; i < h->count; i++)
        set_number(v, h->data, i, random_below(15) - 7);
    memcpy(h->original, h->data, bytes);
    s->in[k].data = h->data;
}

/* An operand as the array that the oracle sees. */
static void spread_operand(one_case *c, int k, int g)
{
    const weft_loop_segment *s = &c->loop->segment[g];
    const slot *v = &c->slot[k];
    const int64_t n = v->of_rows ? c->rows[g] : c->elements[g];
    for (int64_t i = 0; i < n; i++) {
        int64_t at[WEFT_MAX_DIMS], from = 0;
        coordinates(s, v->of_rows, i, at);
        for (int d = 0; d < s->n_dims; d++)
            from += at[d] * s->in[k].stride[d];
        for (int w = 0; w < v->width; w++)
            v->held[g].value[i * v->width + w] = get_number(v, v->held[g].data, from + w);
    }
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* A slot that an op of a kind can read; -1: none. want: i32 from a finish, or not. */
static int pick_slot(const one_case *c, bool of_rows, bool is_index, int width)
{
    for (int tries = 0; tries < 60; tries++) {
        const int k = tries < 30 ? c->n_slots - 1 - random_below(c->n_slots < 5 ? c->n_slots : 5)
                                 : random_below(c->n_slots);
        const slot *v = &c->slot[k];
        if (v->width != width || (of_rows && !v->of_rows)) continue;
        if ((v->what == FINISH) != is_index) continue;
        if (width == 2 && v->combine != WEFT_ARGMAX) continue;
        return k;
    }
    return -1;
}

/* On rows (or not); false: there is nothing to read. */
static bool add_op(one_case *c, what what, bool of_rows)
{
    const int k = c->loop->n_ops,
              n_in[WHATS] = {
                  [MIX] = 2 + random_below(2), [MARK] = 1, [TAKE] = 1, [REDUCE] = 1, [FINISH] = 1};
    weft_loop_op op = {.n_in = n_in[what], .n_out = 1, .block = blocks[what][c->dtype]};
    slot made = {.what = what, .of_rows = of_rows, .width = 1, .dtype = c->dtype, .op = k};
    for (int i = 0; i < op.n_in; i++) {
        op.in[i] = pick_slot(c, of_rows && what != REDUCE, what == TAKE, what == FINISH ? 2 : 1);
        if (op.in[i] < 0) return false;
    }
    op.env.number[0] = 2;
    op.kind = what == REDUCE   ? WEFT_LOOP_REDUCE
              : what == FINISH ? WEFT_LOOP_FINISH
              : of_rows        ? WEFT_LOOP_ROWS
                               : WEFT_LOOP_ELEMENTS;
    if (what == REDUCE) {
        static const weft_combine combines[] = {WEFT_SUM, WEFT_MAX, WEFT_MIN, WEFT_ARGMAX};
        made.combine = op.combine = combines[c->has_empty ? 0 : random_below(4)];
        made.width = weft_combine_width(op.combine);
        op.dtype = c->dtype;
    }
    op.finish = weft_argmax_finishes[c->dtype];
    if (what == FINISH) made.dtype = WEFT_I32;
    op.bytes = (int)weft_dtype_bytes(made.dtype);
    c->loop->op[k] = op;
    c->loop->n_ops++;
    c->n_states += what == REDUCE;
    c->slot[c->n_slots++] = made;
    return true;
}

static void make_index(one_case *c, int k, int g)
{
    weft_loop_segment *s = &c->loop->segment[g];
    const slot *v = &c->slot[c->loop->n_in + k];
    weft_loop_index *index = &s->index[k];
    if (v->what == REDUCE) index->begin = random_below(50);
    if (v->what != MARK && v->what != COUNT) return;
    index->begin = random_below(50);
    const bool is_linear = random_below(2);
    int64_t step = 1;
    for (int d = s->n_dims - 1; d >= 0; d--) {
        index->stride[d] = is_linear ? step : random_below(3) * 5;
        if (v->of_rows && d >= s->n_dims - s->n_row_dims) index->stride[d] = 0;
        step *= s->size[d] + random_below(2);
    }
}

#endif
