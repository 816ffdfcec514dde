/* kernel_chosen_test: rows times chosen matrices, and the gradient of these, against sums one by one. There are more
 * rows of a matrix than are taken at a time, matrices that no row chose, matrices that are elsewhere, or none at all.
 * The bits are the same with one lane and with two. */
#include "kernel_views.h"

extern const weft_kernel weft_kernel_pick_product, weft_kernel_unpick_product;

enum { MATRICES = 7 };
static const weft_dim_attributes which = {"which", MATRICES};

/* rows [batch, row], of each `own` ids; columns in and out; matrices [begin, end) are here. */
typedef struct sizes {
    int64_t batch, row, own, in, out, begin, end;
} sizes;

static const sizes tried[] = {
    {2, 500, 1, 30, 17, 0, MATRICES}, {3, 4, 2, 300, 5, 2, 5}, {1, 1, 1, 1, 1, 0, MATRICES},
    {2, 150, 3, 9, 1, 3, 4},          {1, 40, 1, 0, 8, 0, 7},  {1, 0, 2, 5, 8, 0, 7},
    {2, 300, 1, 1, 40, 6, MATRICES},  {1, 9, 1, 6, 6, 4, 4},
};

static part all_of(const char *name, int64_t n)
{
    return (part){name, n > 0 ? n : 1, 0, n};
}

/* Number 4 is chosen by none, and some are no matrix's. */
static weft_view ids_of(const sizes *s)
{
    weft_view ids =
        view_of(WEFT_I32, 3,
                (part[]){all_of("batch", s->batch), all_of("row", s->row), all_of("own", s->own)});
    for (int64_t i = 0; i < weft_view_count(&ids); i++) {
        const int id = random_below(MATRICES + 3) - 1;
        view_set(&ids, i, id == 4 ? 2 : id);
    }
    return ids;
}

static weft_view rows_of(weft_dtype dtype, const sizes *s, bool own, const char *column, int64_t n)
{
    const part batch = all_of("batch", s->batch), row = all_of("row", s->row),
               each = all_of("own", s->own), last = all_of(column, n);
    return own ? view_of(dtype, 4, (part[]){batch, row, each, last})
               : view_of(dtype, 3, (part[]){batch, row, last});
}

static weft_view matrices_of(weft_dtype dtype, const sizes *s, bool is_turned)
{
    const part of = {"which", MATRICES, s->begin, s->end}, in = all_of("in", s->in),
               out = all_of("out", s->out);
    return view_of(dtype, 3, is_turned ? (part[]){of, out, in} : (part[]){of, in, out});
}

static double at2(const weft_view *x, int64_t i, int64_t j, int64_t n)
{
    return view_get(x, i * n + j);
}

static bool is_here(const sizes *s, int64_t id)
{
    return id >= s->begin && id < s->end;
}

static double product_of(const weft_call *call, const sizes *s, int64_t r, int64_t j,
                         bool is_turned)
{
    const int64_t id = (int64_t)view_get(&call->in[2], r), m = id - s->begin;
    double sum = 0;
    for (int64_t k = 0; k < s->in && is_here(s, id); k++) {
        const int64_t at = is_turned ? (m * s->out + j) * s->in + k : (m * s->in + k) * s->out + j;
        sum += at2(&call->in[0], r / s->own, k, s->in) * view_get(&call->in[1], at);
    }
    return sum;
}

static void run(const weft_kernel *kernel, weft_call *call)
{
    CHECK(kernel->takes(call));
    call->attributes = &which;
    call->scratch = malloc((size_t)kernel->scratch(call) + 1);
    run_on_lanes(kernel->launch, call);
    free(call->scratch);
}

static double within(weft_dtype dtype)
{
    return dtype == WEFT_F32 ? 2e-4 : 1e-11;
}

static void check_pick(weft_dtype dtype, const sizes *s, bool is_turned)
{
    weft_call call = {.n_in = 3, .n_out = 1};
    call.in[0] = rows_of(dtype, s, false, "in", s->in);
    call.in[1] = matrices_of(dtype, s, is_turned);
    call.in[2] = ids_of(s);
    call.out[0] = rows_of(dtype, s, true, "out", s->out);
    run(&weft_kernel_pick_product, &call);
    for (int64_t r = 0; r < weft_view_count(&call.in[2]); r++)
        for (int64_t j = 0; j < s->out; j++) {
            const double by_hand = product_of(&call, s, r, j, is_turned);
            CHECK(fabs(at2(&call.out[0], r, j, s->out) - by_hand) <= within(dtype));
        }
    call_free(&call);
}

static void check_unpick(weft_dtype dtype, const sizes *s)
{
    weft_call call = {.n_in = 3, .n_out = 1};
    call.in[0] = rows_of(dtype, s, false, "in", s->in);
    call.in[1] = rows_of(dtype, s, true, "out", s->out);
    call.in[2] = ids_of(s);
    call.out[0] = matrices_of(dtype, s, false);
    run(&weft_kernel_unpick_product, &call);
    for (int64_t i = 0; i < weft_view_count(&call.out[0]); i++) {
        const int64_t id = s->begin + i / (s->in * s->out);
        double sum = 0;
        for (int64_t r = 0; r < weft_view_count(&call.in[2]); r++)
            if ((int64_t)view_get(&call.in[2], r) == id)
                sum += at2(&call.in[0], r / s->own, i / s->out % s->in, s->in) *
                       at2(&call.in[1], r, i % s->out, s->out);
        CHECK(fabs(view_get(&call.out[0], i) - sum) <= within(dtype));
    }
    call_free(&call);
}

static void test_rows_times_chosen_matrices(void)
{
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        for (int is_turned = 0; is_turned < 2; is_turned++) {
            check_pick(WEFT_F32, &tried[i], is_turned != 0);
            check_pick(WEFT_F64, &tried[i], is_turned != 0);
        }
}

static void test_what_comes_back_to_matrices(void)
{
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        check_unpick(WEFT_F32, &tried[i]);
        check_unpick(WEFT_F64, &tried[i]);
    }
}

int main(void)
{
    if (streams_open()) {
        RUN(test_rows_times_chosen_matrices);
        RUN(test_what_comes_back_to_matrices);
    }
    streams_close();
    return weft_test_report();
}
