/* Loops against plain scalar arithmetic over whole arrays: random chains with several results, reductions of rows and
 * what is made of them, broadcast and transposed operands, results in place, several segments, any number of lanes. */
#include "loop.h"
#include "kernel_lanes.h"

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

static void make_space(one_case *c, int g, int n_dims, int n_row_dims)
{
    static const int most[] = {1, 1300, 60, 16, 7, 5}, rows[] = {1, 2, 3, 7};
    static const int lengths[] = {1, 2, 3, 17, 63, 64, 65, 511, 512, 513, 1025, 3072};
    weft_loop_segment *s = &c->loop->segment[g];
    s->n_dims = n_dims, s->n_row_dims = n_row_dims;
    for (int d = 0; d < n_dims; d++)
        s->size[d] = random_below(40) == 0 ? 0 : 1 + random_below(most[n_dims]);
    if (n_row_dims == 1 && random_below(2)) s->size[n_dims - 1] = lengths[random_below(12)];
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
    h->count = v->width;
    for (int i = n - 1; i >= 0; i--) {
        const int d = order[i];
        const bool broadcast = !is_whole && random_below(3) == 0;
        s->in[k].stride[d] = broadcast ? 0 : h->count;
        if (!broadcast) h->count *= s->size[d];
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

/* ---- the oracle ------------------------------------------------------------------------------ */

static double read_slot(const one_case *c, int k, int g, bool of_rows, int64_t i)
{
    const slot *v = &c->slot[k];
    return v->held[g].value[v->of_rows && !of_rows ? i / c->row[g] : i];
}

static void expect_reduction(const one_case *c, const slot *v, int g, int64_t r)
{
    const weft_loop_op *op = &c->loop->op[v->op];
    double sum = 0, best = 0, index = 0;
    for (int64_t i = 0; i < c->row[g]; i++) {
        const double x = read_slot(c, op->in[0], g, false, r * c->row[g] + i);
        const bool is_better = v->combine == WEFT_MIN ? x < best : x > best;
        sum += x;
        if (i == 0 || is_better) best = x, index = (double)i;
    }
    double *y = v->held[g].value + r * v->width;
    y[0] = v->combine == WEFT_SUM ? sum : best;
    if (v->width == 2) y[1] = index + (double)c->loop->segment[g].index[v->op].begin;
}

static double expect_one(const one_case *c, const slot *v, int g, int64_t i)
{
    const weft_loop_op *op = &c->loop->op[v->op];
    const weft_loop_segment *s = &c->loop->segment[g];
    int64_t at[WEFT_MAX_DIMS];
    double x[3] = {0, 0, 0}, index = (double)s->index[v->op].begin;
    for (int k = 0; k < op->n_in; k++)
        x[k] = read_slot(c, op->in[k], g, v->of_rows, i);
    coordinates(s, v->of_rows, i, at);
    for (int d = 0; d < s->n_dims; d++)
        index += (double)(at[d] * s->index[v->op].stride[d]);
    if (v->what == FINISH) return v->held[g].value[i]; /* set by its own */
    return fold(v->what == MIX     ? x[0] + 2 * x[1] + 3 * x[2]
                : v->what == MARK  ? x[0] + 3 * index
                : v->what == COUNT ? index + RUN_NUMBER
                                   : x[0]);
}

static void expect_slot(one_case *c, int k, int g)
{
    slot *v = &c->slot[k];
    const int64_t n = v->of_rows ? c->rows[g] : c->elements[g];
    v->held[g].value = malloc(sizeof(double) * (size_t)(n * v->width + 1));
    if (!v->held[g].value) exit(2);
    if (v->what == OPERAND) {
        spread_operand(c, k, g);
        return;
    }
    const slot *from = &c->slot[c->loop->op[v->op].in[0]];
    for (int64_t i = 0; i < n; i++) {
        if (v->what == REDUCE)
            expect_reduction(c, v, g, i);
        else if (v->what == FINISH)
            v->held[g].value[i] = from->held[g].value[2 * i + 1];
        else
            v->held[g].value[i] = expect_one(c, v, g, i);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

static int64_t numbers_of(const one_case *c, const slot *v, int g)
{
    return (v->of_rows ? c->rows[g] : c->elements[g]) * v->width;
}

/* An operand that lies as the result does and that no other result takes. */
static int find_place(const one_case *c, const slot *v, int g)
{
    const weft_loop_segment *s = &c->loop->segment[g];
    for (int tries = 0; tries < 8; tries++) {
        const int k = random_below(c->loop->n_in);
        const slot *x = &c->slot[k];
        bool lies_so = x->of_rows == v->of_rows && x->width == v->width &&
                       !x->held[g].is_in_place &&
                       weft_dtype_bytes(x->dtype) == weft_dtype_bytes(v->dtype);
        int64_t step = v->width;
        const int n = v->of_rows ? s->n_dims - s->n_row_dims : s->n_dims;
        for (int d = n - 1; d >= 0; d--) {
            lies_so &= s->in[k].stride[d] == step;
            step *= s->size[d];
        }
        if (lies_so) return k;
    }
    return -1;
}

static void add_result(one_case *c, int k)
{
    const int o = c->n_out++;
    c->loop->out[o] = k;
    for (int g = 0; g < c->loop->n_segments; g++) {
        const slot *v = &c->slot[k];
        const size_t bytes = (size_t)numbers_of(c, v, g) * weft_dtype_bytes(v->dtype);
        c->place[o][g] = random_below(2) ? find_place(c, v, g) : -1;
        c->out[o][g] = NULL;
        if (c->place[o][g] >= 0) {
            held *h = &c->slot[c->place[o][g]].held[g];
            h->is_in_place = true;
            c->loop->segment[g].out[o] = h->data;
            continue;
        }
        c->out[o][g] = malloc(bytes);
        if (!c->out[o][g] && bytes) exit(2);
        if (bytes) memset(c->out[o][g], 0x7f, bytes);
        c->loop->segment[g].out[o] = c->out[o][g];
    }
}

static void make_results(one_case *c)
{
    const int n_in = c->loop->n_in;
    add_result(c, c->n_slots - 1);
    for (int k = n_in; k < c->n_slots; k++) /* the last one again, now and then */
        if (random_below(3) == 0) add_result(c, k);
    c->loop->n_out = c->n_out;
}

/* ---- one case -------------------------------------------------------------------------------- */

static bool make_case(one_case *c, weft_dtype dtype)
{
    weft_error error = {0};
    *c = (one_case){.dtype = dtype, .arena = weft_arena_create()};
    const weft_loop counts = {.n_in = 1 + random_below(5),
                              .n_ops = 14,
                              .n_out = MOST_SLOTS,
                              .n_segments = 1 + (random_below(3) == 0 ? random_below(3) : 0)};
    if (!CHECK_OK(weft_loop_take(c->arena, counts, &c->loop, &error), error)) return false;
    const int n_dims = random_below(6), most = n_dims < 2 ? n_dims : 2;
    const int n_row_dims = random_below(most + 1);
    const bool has_rows = n_row_dims > 0;
    for (int g = 0; g < counts.n_segments; g++)
        make_space(c, g, n_dims, n_row_dims);
    for (int k = 0; k < counts.n_in; k++) {
        const bool of_rows = k > 0 && has_rows && random_below(3) == 0;
        const bool is_state = of_rows && random_below(3) == 0;
        c->slot[c->n_slots++] = (slot){.what = OPERAND,
                                       .of_rows = of_rows,
                                       .width = is_state ? 2 : 1,
                                       .combine = WEFT_ARGMAX,
                                       .dtype = dtype};
        c->loop->in[k] = (weft_loop_in){(int)weft_dtype_bytes(dtype), is_state ? 2 : 1};
        for (int g = 0; g < counts.n_segments; g++)
            make_operand(c, k, g);
    }
    c->loop->n_ops = 0;
    const int wanted = 1 + random_below(12);
    while (c->loop->n_ops < wanted) {
        const what what = 1 + random_below(WHATS - 1);
        if (has_rows ? what == REDUCE && c->n_states == 5 : what == REDUCE || what == FINISH)
            continue;
        const bool of_rows = what == REDUCE || what == FINISH || (has_rows && random_below(3) == 0);
        add_op(c, what, of_rows);
    }
    return true;
}

static void check_results(const one_case *c, void *const *first, int lanes)
{
    int at = 0;
    for (int o = 0; o < c->n_out; o++)
        for (int g = 0; g < c->loop->n_segments; g++, at++) {
            const slot *v = &c->slot[c->loop->out[o]];
            const void *made = c->loop->segment[g].out[o];
            const int64_t n = numbers_of(c, v, g);
            int64_t wrong = 0;
            for (int64_t i = 0; i < n; i++)
                wrong += get_number(v, made, i) != v->held[g].value[i];
            CHECK_EQ_INT(wrong, 0);
            const size_t bytes = (size_t)n * weft_dtype_bytes(v->dtype);
            if (lanes == 1 && bytes > 0) memcpy(first[at], made, bytes);
            CHECK(bytes == 0 || memcmp(first[at], made, bytes) == 0);
        }
}

static void set_operands(const one_case *c, bool to_zeros)
{
    for (int k = 0; k < c->loop->n_in; k++)
        for (int g = 0; g < c->loop->n_segments; g++) {
            const held *held = &c->slot[k].held[g];
            const size_t bytes = (size_t)held->count * weft_dtype_bytes(c->slot[k].dtype);
            if (bytes == 0) continue;
            if (to_zeros)
                memset(held->data, 0, bytes);
            else
                memcpy(held->data, held->original, bytes);
        }
}

/* Nothing of an earlier run is left in what is bound. */
static void run_bound(one_case *c, const weft_prepared_loop *prepared, void *const *first,
                      int lanes)
{
    weft_error error = {0};
    weft_bound_loop *bound;
    if (!CHECK_OK(weft_loop_bind(prepared, (weft_loop_part){0, 1}, streams[lanes], c->arena, &bound,
                                 &error),
                  error))
        return;
    set_operands(c, true);
    weft_bound_loop_run(bound, RUN_NUMBER + 1);
    set_operands(c, false);
    weft_bound_loop_run(bound, RUN_NUMBER);
    check_results(c, first, lanes);
}

static void run_case(one_case *c)
{
    weft_error error = {0};
    const int n_segments = c->loop->n_segments;
    for (int g = 0; g < n_segments; g++) {
        for (int k = 0; k < c->loop->n_ops; k++)
            make_index(c, k, g);
        for (int k = 0; k < c->n_slots; k++)
            expect_slot(c, k, g);
    }
    make_results(c);
    const weft_prepared_loop *prepared;
    if (!CHECK_OK(weft_loop_prepare(c->loop, c->arena, &prepared, &error), error)) return;
    void *first[MOST_SLOTS * MOST_SEGMENTS];
    int n_first = 0;
    for (int o = 0; o < c->n_out; o++)
        for (int g = 0; g < n_segments; g++)
            first[n_first++] = malloc((size_t)numbers_of(c, &c->slot[c->loop->out[o]], g) * 8 + 1);
    for (int lanes = 1; lanes <= MOST_LANES; lanes++) {
        set_operands(c, false);
        weft_loop_run(prepared, RUN_NUMBER, streams[lanes]);
        check_results(c, first, lanes);
        run_bound(c, prepared, first, lanes);
    }
    for (int i = 0; i < n_first; i++)
        free(first[i]);
}

static void free_case(one_case *c)
{
    for (int g = 0; g < c->loop->n_segments; g++) {
        for (int k = 0; k < c->n_slots; k++) {
            free(c->slot[k].held[g].value);
            free(c->slot[k].held[g].data);
            free(c->slot[k].held[g].original);
        }
        for (int o = 0; o < c->n_out; o++)
            free(c->out[o][g]);
    }
    weft_arena_destroy(&c->arena);
}

static void test_random_loops_equal_plain_ones(void)
{
    for (int i = 0; i < 500; i++)
        for (int dtype = 0; dtype <= WEFT_I32; dtype++) {
            one_case c;
            if (!make_case(&c, (weft_dtype)dtype)) return;
            run_case(&c);
            free_case(&c);
            if (atomic_load(&weft_test_.n_failed) > 0) {
                printf("  case %d, dtype %d\n", i, dtype);
                return;
            }
        }
}

/* ---- what loops are for: softmax and layer norm ---------------------------------------------- */

#define ROW_BLOCKS(T, suffix)                                                                      \
    static void double_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e) \
    {                                                                                              \
        (void)e;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = 2 * ((const T *)x[0])[i];                                                \
    }                                                                                              \
    static void exp_of_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e) \
    {                                                                                              \
        (void)e;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = (T)exp((double)((const T *)x[0])[i] - (double)((const T *)x[1])[i]);     \
    }                                                                                              \
    static void norm_##suffix(int64_t n, void *y, const void *const *x, const weft_block_env *e)   \
    {                                                                                              \
        (void)e;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)y)[i] = (((const T *)x[0])[i] - ((const T *)x[1])[i]) * ((const T *)x[2])[i];    \
    }
ROW_BLOCKS(float, f32)
ROW_BLOCKS(double, f64)

/* A loop over [rows, row] of one operand, whose last result is written to `out`. */
typedef struct row_loop {
    weft_arena *arena;
    weft_loop *loop;
    weft_view x, y;
    int64_t n_rows, row;
} row_loop;

static row_loop row_loop_open(weft_dtype dtype, int64_t n_rows, int64_t row, int n_ops)
{
    weft_error error = {0};
    row_loop r = {.arena = weft_arena_create(), .n_rows = n_rows, .row = row};
    const weft_loop counts = {.n_in = 1, .n_ops = n_ops, .n_out = 1, .n_segments = 1};
    CHECK_OK(weft_loop_take(r.arena, counts, &r.loop, &error), error);
    r.x = view_of(dtype, 2, (part[]){{"r", n_rows, 0, n_rows}, {"i", row, 0, row}});
    r.y = view_like(&r.x);
    r.loop->in[0] = (weft_loop_in){(int)weft_dtype_bytes(dtype), 1};
    r.loop->segment[0].n_dims = 2, r.loop->segment[0].n_row_dims = 1;
    r.loop->segment[0].size[0] = n_rows, r.loop->segment[0].size[1] = row;
    r.loop->segment[0].in[0] = (weft_loop_operand){r.x.data, {row, 1}};
    r.loop->segment[0].out[0] = r.y.data;
    return r;
}

static void row_op(row_loop *r, int k, weft_loop_kind kind, int n_out, int n_in, const int *in)
{
    weft_loop_op *op = &r->loop->op[k];
    op->kind = kind, op->n_out = n_out, op->n_in = n_in;
    op->dtype = r->x.dtype, op->bytes = (int)weft_dtype_bytes(r->x.dtype);
    memcpy(op->in, in, (size_t)n_in * sizeof *in);
}

/* On 1 to 4 lanes, and over the operand itself: the same bits. */
static void row_loop_run(row_loop *r)
{
    weft_error error = {0};
    const weft_prepared_loop *prepared;
    weft_view again = view_like(&r->y);
    if (!CHECK_OK(weft_loop_prepare(r->loop, r->arena, &prepared, &error), error)) return;
    weft_loop_run(prepared, 1, streams[1]);
    r->loop->segment[0].out[0] = again.data;
    if (!CHECK_OK(weft_loop_prepare(r->loop, r->arena, &prepared, &error), error)) return;
    for (int lanes = 2; lanes <= MOST_LANES; lanes++) {
        view_spoil(&again);
        weft_loop_run(prepared, 1, streams[lanes]);
        CHECK(view_same_bits(&r->y, &again));
    }
    const size_t bytes = (size_t)(r->n_rows * r->row) * weft_dtype_bytes(r->x.dtype);
    void *x = malloc(bytes);
    memcpy(x, r->x.data, bytes);
    r->loop->segment[0].out[0] = r->x.data;
    if (!CHECK_OK(weft_loop_prepare(r->loop, r->arena, &prepared, &error), error)) return;
    weft_loop_run(prepared, 1, streams[2]);
    CHECK(view_same_bits(&r->y, &r->x));
    memcpy(r->x.data, x, bytes);
    free(x);
    view_free(&again);
}

static void row_loop_close(row_loop *r)
{
    view_free(&r->x), view_free(&r->y);
    weft_arena_destroy(&r->arena);
}

/* exp(2 x - lse(2 x)): what is doubled is kept, or in long rows of doubles computed again. */
static void check_softmax(weft_dtype dtype, int64_t n_rows, int64_t row)
{
    row_loop r = row_loop_open(dtype, n_rows, row, 4);
    row_op(&r, 0, WEFT_LOOP_ELEMENTS, 1, 1, (int[]){0});
    row_op(&r, 1, WEFT_LOOP_REDUCE, 1, 1, (int[]){1});
    row_op(&r, 2, WEFT_LOOP_FINISH, 1, 1, (int[]){2});
    row_op(&r, 3, WEFT_LOOP_ELEMENTS, 1, 2, (int[]){1, 3});
    r.loop->op[0].block = dtype == WEFT_F32 ? double_f32 : double_f64;
    r.loop->op[1].combine = WEFT_LSE;
    r.loop->op[2].finish = weft_lse_finishes[dtype];
    r.loop->op[3].block = dtype == WEFT_F32 ? exp_of_f32 : exp_of_f64;
    r.loop->out[0] = 4;
    row_loop_run(&r);
    double worst = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < row; j++)
            sum += expl(2 * view_get(&r.x, i * row + j));
        for (int64_t j = 0; j < row; j++) {
            const double y = (double)(expl(2 * view_get(&r.x, i * row + j)) / sum);
            worst = fmax(worst, fabs(view_get(&r.y, i * row + j) - y) / y);
        }
    }
    CHECK(worst < (dtype == WEFT_F32 ? 3e-6 : 1e-13));
    row_loop_close(&r);
}

/* (x - mean) / sqrt(variance + 0.1): a finish with two results. */
static void check_norm(weft_dtype dtype, int64_t n_rows, int64_t row)
{
    row_loop r = row_loop_open(dtype, n_rows, row, 3);
    row_op(&r, 0, WEFT_LOOP_REDUCE, 1, 1, (int[]){0});
    row_op(&r, 1, WEFT_LOOP_FINISH, 2, 1, (int[]){1});
    row_op(&r, 2, WEFT_LOOP_ELEMENTS, 1, 3, (int[]){0, 2, 3});
    r.loop->op[0].combine = WEFT_MOMENTS;
    r.loop->op[1].finish = weft_moments_finishes[dtype];
    r.loop->op[1].env.number[0] = 0.1;
    r.loop->op[2].block = dtype == WEFT_F32 ? norm_f32 : norm_f64;
    r.loop->out[0] = 4;
    row_loop_run(&r);
    double worst = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        long double mean = 0, square = 0;
        for (int64_t j = 0; j < row; j++)
            mean += view_get(&r.x, i * row + j) / (long double)row;
        for (int64_t j = 0; j < row; j++)
            square += powl(view_get(&r.x, i * row + j) - mean, 2) / row;
        for (int64_t j = 0; j < row; j++) {
            const double y = (double)((view_get(&r.x, i * row + j) - mean) / sqrtl(square + 0.1L));
            worst = fmax(worst, fabs(view_get(&r.y, i * row + j) - y));
        }
    }
    CHECK(worst < (dtype == WEFT_F32 ? 3e-6 : 1e-13));
    row_loop_close(&r);
}

static void test_rows_of_every_length(void)
{
    static const int64_t lengths[] = {1, 2, 3, 63, 64, 65, 511, 512, 513, 1024, 3072, 50304};
    static const int64_t rows[] = {1, 2, 5, 300};
    for (int dtype = WEFT_F32; dtype <= WEFT_F64; dtype++)
        for (int i = 0; i < 12; i++)
            for (int k = 0; k < 4; k++) {
                if (lengths[i] * rows[k] > 200000) continue;
                check_softmax((weft_dtype)dtype, rows[k], lengths[i]);
                check_norm((weft_dtype)dtype, rows[k], lengths[i]);
            }
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* A row that a rank has nothing of: the reduction's identity. */
static void test_an_empty_row_has_the_identity(void)
{
    static const weft_combine combines[] = {WEFT_SUM, WEFT_MAX, WEFT_MIN, WEFT_LSE, WEFT_MOMENTS};
    static const double first[] = {0, -INFINITY, INFINITY, -INFINITY, 0};
    for (int i = 0; i < 5; i++) {
        row_loop r = row_loop_open(WEFT_F32, 3, 0, 1);
        float state[9] = {7, 7, 7, 7, 7, 7, 7, 7, 7};
        const int width = weft_combine_width(combines[i]);
        row_op(&r, 0, WEFT_LOOP_REDUCE, 1, 1, (int[]){0});
        r.loop->op[0].combine = combines[i];
        r.loop->out[0] = 1;
        r.loop->segment[0].out[0] = state;
        weft_error error = {0};
        const weft_prepared_loop *prepared;
        if (CHECK_OK(weft_loop_prepare(r.loop, r.arena, &prepared, &error), error))
            weft_loop_run(prepared, 1, streams[2]);
        for (int k = 0; k < 9; k++)
            CHECK(state[k] == (k >= 3 * width ? 7.0f : k % width == 0 ? (float)first[i] : 0.0f));
        row_loop_close(&r);
    }
}

/* Each op adds the one before to itself twice over; and after half of them, as many reductions as there can be. */
static void test_the_largest_loop_fits(void)
{
    enum { N_OPS = WEFT_LOOP_SLOTS - 1, ROW = 513 };
    row_loop r = row_loop_open(WEFT_F64, 3, ROW, N_OPS);
    for (int k = 0; k < N_OPS; k++) {
        const bool is_state = k > 40 && k <= 40 + WEFT_LOOP_STATES;
        row_op(&r, k, is_state ? WEFT_LOOP_REDUCE : WEFT_LOOP_ELEMENTS, 1, is_state ? 1 : 2,
               (int[]){k < 40 ? k : 40, k < 40 ? k : 40});
        r.loop->op[k].block = mix_f64;
        r.loop->op[k].env.number[0] = 2;
        r.loop->op[k].combine = WEFT_MOMENTS;
    }
    r.loop->out[0] = N_OPS;
    row_loop_run(&r);
    double x = view_get(&r.x, 7);
    for (int k = 0; k < 41; k++)
        x = fold(3 * x);
    CHECK(view_get(&r.y, 7) == x);
    row_loop_close(&r);
}

static void test_memory_that_is_not_read_in_step_is_refused(void)
{
    weft_error error = {0};
    const weft_prepared_loop *prepared;
    row_loop r = row_loop_open(WEFT_F32, 4, 4, 1);
    row_op(&r, 0, WEFT_LOOP_ELEMENTS, 1, 1, (int[]){0});
    r.loop->op[0].block = double_f32;
    r.loop->out[0] = 1;
    r.loop->segment[0].in[0] = (weft_loop_operand){r.x.data, {1, 4}}; /* transposed */
    r.loop->segment[0].out[0] = r.x.data;
    CHECK_EQ_INT(weft_loop_prepare(r.loop, r.arena, &prepared, &error), WEFT_INTERNAL);
    CHECK_TEXT(error.message, "not read in step");
    CHECK(prepared == NULL);
    r.loop->segment[0].in[0].data = (char *)r.x.data + 16; /* shifted by a row */
    r.loop->segment[0].in[0].stride[0] = 4, r.loop->segment[0].in[0].stride[1] = 1;
    r.loop->segment[0].size[0] = 3;
    CHECK_EQ_INT(weft_loop_prepare(r.loop, r.arena, &prepared, NULL), WEFT_INTERNAL);
    r.loop->segment[0].out[0] = r.y.data;
    CHECK_OK(weft_loop_prepare(r.loop, r.arena, &prepared, &error), error);
    row_loop_close(&r);
}

int main(void)
{
    if (!streams_open() || !lanes_open()) return 1;
    RUN(test_random_loops_equal_plain_ones);
    RUN(test_rows_of_every_length);
    RUN(test_an_empty_row_has_the_identity);
    RUN(test_the_largest_loop_fits);
    RUN(test_memory_that_is_not_read_in_step_is_refused);
    lanes_close();
    streams_close();
    return weft_test_report();
}
