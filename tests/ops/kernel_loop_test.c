/* Loops against plain scalar arithmetic over whole arrays: random chains with several results, reductions of rows and
 * what is made of them, rows in pieces, broadcast and transposed operands, results in place, several segments, any number of
 * lanes. */
#include "kernel_loop_case.h"
#include "kernel_lanes.h"

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
        int64_t step = v->width, in_order[WEFT_MAX_DIMS];
        const int n = v->of_rows ? s->n_dims - s->n_row_dims : s->n_dims;
        lie(s, in_order);
        for (int d = n - 1; d >= 0; d--) {
            lies_so &= s->in[k].stride[d] == (v->of_rows ? step : in_order[d]);
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
        if (!v->of_rows && c->loop->segment[g].n_piece_dims > 0)
            lie(&c->loop->segment[g], c->loop->segment[g].out_stride[o]);
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
    const int n_dims = random_below(6), most = n_dims < 3 ? n_dims : 3;
    const int n_row_dims = random_below(most + 1);
    const int n_piece_dims = n_row_dims > 1 ? random_below(n_row_dims) : 0;
    const bool has_rows = n_row_dims > 0;
    for (int g = 0; g < counts.n_segments; g++)
        make_space(c, g, n_dims, n_row_dims, n_piece_dims);
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

/* Where number i lies. */
static int64_t place_of(const one_case *c, const slot *v, int g, int64_t i)
{
    const weft_loop_segment *s = &c->loop->segment[g];
    int64_t at[WEFT_MAX_DIMS], stride[WEFT_MAX_DIMS], place = 0;
    if (v->of_rows || s->n_piece_dims == 0) return i;
    coordinates(s, false, i, at);
    lie(s, stride);
    for (int d = 0; d < s->n_dims; d++)
        place += at[d] * stride[d];
    return place;
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
                wrong += get_number(v, made, place_of(c, v, g, i)) != v->held[g].value[i];
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
    weft_bound_loop_run(bound, RUN_NUMBER + 1, 0);
    set_operands(c, false);
    weft_bound_loop_run(bound, RUN_NUMBER, 0);
    check_results(c, first, lanes);
}

/* ---- at other addresses ---------------------------------------------------------------------- */

static const void *moved(const void *at, uintptr_t by)
{
    return at ? (const void *)((uintptr_t)at + by) : NULL;
}

/* Where nobody looks: operands by `in`, results by `out`. */
static void move(one_case *c, uintptr_t in, uintptr_t out)
{
    for (int g = 0; g < c->loop->n_segments; g++) {
        weft_loop_segment *s = &c->loop->segment[g];
        for (int k = 0; k < c->loop->n_in; k++)
            s->in[k].data = moved(s->in[k].data, in);
        for (int o = 0; o < c->n_out; o++)
            s->out[o] = (void *)(uintptr_t)moved(s->out[o], out);
    }
}

/* Prepared elsewhere, then here again; NULL: that cannot be. */
static const weft_prepared_loop *prepare_again(one_case *c, uintptr_t in, uintptr_t out)
{
    const size_t n = (size_t)c->loop->n_segments;
    const void **from = weft_arena_take(c->arena, n * (size_t)c->loop->n_in * sizeof *from);
    void **to = weft_arena_take(c->arena, n * (size_t)c->n_out * sizeof *to);
    const weft_prepared_loop *like, *again = NULL;
    weft_error error = {0};
    for (int g = 0; g < c->loop->n_segments; g++) {
        for (int k = 0; k < c->loop->n_in; k++)
            from[g * c->loop->n_in + k] = c->loop->segment[g].in[k].data;
        for (int o = 0; o < c->n_out; o++)
            to[g * c->n_out + o] = c->loop->segment[g].out[o];
    }
    move(c, in, out);
    const bool is_there =
        CHECK_OK(weft_loop_prepare(c->loop, c->arena, &like, &error), error) &&
        CHECK_OK(weft_loop_again(like, from, to, c->arena, &again, &error), error);
    move(c, -in, -out);
    return is_there ? again : NULL;
}

/* Of rows without elements a loop reads what its ops of rows take. */
static bool is_read(const one_case *c, int k, int g)
{
    if (c->row[g] > 0) return true;
    for (int o = 0; o < c->loop->n_ops; o++) {
        const weft_loop_op *op = &c->loop->op[o];
        for (int i = 0; i < op->n_in; i++)
            if (op->in[i] == k && (op->kind == WEFT_LOOP_ROWS || op->kind == WEFT_LOOP_FINISH))
                return true;
    }
    return false;
}

static bool has_any_in_place(const one_case *c)
{
    for (int o = 0; o < c->n_out; o++)
        for (int g = 0; g < c->loop->n_segments; g++)
            if (c->place[o][g] >= 0 && is_read(c, c->place[o][g], g) &&
                numbers_of(c, &c->slot[c->loop->out[o]], g) > 0)
                return true;
    return false;
}

/* Like one whose memory is shared in the same way; not like one whose results lie apart, unless these do too. */
static void check_again(one_case *c, void *const *first)
{
    const uintptr_t far = (uintptr_t)1 << 48;
    const weft_prepared_loop *again = prepare_again(c, far, far);
    CHECK(again != NULL);
    if (again != NULL) run_bound(c, again, first, 1);
    CHECK((prepare_again(c, far, 2 * far) == NULL) == has_any_in_place(c));
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
    check_again(c, first);
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
    for (int i = 0; i < 500; i += weft_test_stride(3))
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

int main(void)
{
    if (!streams_open() || !lanes_open()) return 1;
    RUN(test_random_loops_equal_plain_ones);
    lanes_close();
    streams_close();
    return weft_test_report();
}
