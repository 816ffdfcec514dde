/* Reductions against a plain double loop over every element: every combine, dtype, interleaving and
 * box. */
#include "kernel_views.h"

extern const weft_kernel weft_kernel_reduce, weft_kernel_lse_finish, weft_kernel_moments_finish,
    weft_kernel_argmax_finish;

/* As a program runs it: prepared once, launched again on other numbers in the same memory: the bits of a call that
 * works everything out anew. */
static void run_prepared(const weft_kernel *kernel, weft_launch anew, weft_call *call)
{
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    weft_call again = *call;
    again.stream = teams[1];
    run_on_lanes(anew, call);
    for (int o = 0; o < call->n_out; o++)
        again.out[o] = view_like(&call->out[o]);
    if (CHECK_OK(kernel->prepare(&again, arena, &again.prepared, &error), error))
        for (int run = 0; run < 2; run++) {
            for (int o = 0; o < call->n_out; o++)
                view_spoil(&again.out[o]);
            kernel->launch(&again);
            for (int o = 0; o < call->n_out; o++)
                CHECK(view_same_bits(&call->out[o], &again.out[o]));
            if (run == 0) {
                const int64_t n = weft_view_count(&call->in[0]), swap = n - 1 - n / 3;
                const double first = n > 0 ? view_get(&call->in[0], 0) : 0;
                if (n > 0) view_set(&call->in[0], 0, view_get(&call->in[0], swap));
                if (n > 0) view_set(&call->in[0], swap, first);
                run_on_lanes(anew, call);
            }
        }
    for (int o = 0; o < call->n_out; o++)
        view_free(&again.out[o]);
    weft_arena_destroy(&arena);
}

static const char *const names[] = {"a", "b", "c", "d", "e"};

/* What the reduction of `in` for one result element must be; matches[i] says whether element i
 * takes part. */
typedef struct expected {
    double count, sum, max, min, argmax, sum_exp, m2, prod;
} expected;

static bool takes_part(const weft_view *in, const weft_view *out, int n_kept, int64_t i, int64_t o)
{
    int64_t at_in[WEFT_MAX_DIMS], at_out[WEFT_MAX_DIMS];
    view_at(in, i, at_in);
    view_at(out, o, at_out);
    for (int d = 0; d < n_kept; d++)
        if (at_in[weft_shape_find(&in->shape, out->shape.dims[d].name)] != at_out[d]) return false;
    return true;
}

static expected expect(const weft_view *in, const weft_view *out, int n_kept, int64_t o, int along)
{
    expected e = {.max = -INFINITY, .min = INFINITY, .argmax = -1, .prod = 1};
    for (int64_t i = 0; i < weft_view_count(in); i++) {
        if (!takes_part(in, out, n_kept, i, o)) continue;
        const double x = view_get(in, i);
        e.count++, e.sum += x, e.prod *= x;
        if (x > e.max && along >= 0) {
            int64_t at[WEFT_MAX_DIMS];
            view_at(in, i, at);
            e.argmax = (double)(in->box.begin[along] + at[along]);
        }
        e.max = fmax(e.max, x), e.min = fmin(e.min, x);
    }
    for (int64_t i = 0; i < weft_view_count(in); i++) {
        if (!takes_part(in, out, n_kept, i, o)) continue;
        e.sum_exp += exp(view_get(in, i) - e.max);
        e.m2 += (view_get(in, i) - e.sum / e.count) * (view_get(in, i) - e.sum / e.count);
    }
    return e;
}

static double index_of(const weft_view *out, int64_t i)
{
    int32_t bits;
    if (out->dtype != WEFT_F32) return view_get(out, i);
    memcpy(&bits, (const float *)out->data + i, sizeof bits);
    return bits;
}

static void check_element(const weft_view *out, weft_combine combine, int64_t o, const expected *e)
{
    const double t = out->dtype == WEFT_F32 ? 3e-6 : 1e-13;
    const bool whole = out->dtype == WEFT_I32;
    if (combine == WEFT_SUM) CHECK(fabs(view_get(out, o) - e->sum) <= t * (1 + e->count));
    if (combine == WEFT_MAX)
        CHECK(view_get(out, o) == (whole && e->count == 0 ? INT32_MIN : e->max));
    if (combine == WEFT_MIN)
        CHECK(view_get(out, o) == (whole && e->count == 0 ? INT32_MAX : e->min));
    if (combine == WEFT_PROD) { /* what is hardly a number any more has few digits */
        const double least = out->dtype == WEFT_F32 ? 1e-38 : 1e-300;
        CHECK(fabs(view_get(out, o) - e->prod) <= t * (1 + e->count) * fabs(e->prod) + least);
    }
    if (combine == WEFT_ARGMAX) {
        CHECK(view_get(out, 2 * o) == (whole && e->count == 0 ? INT32_MIN : e->max));
        CHECK(index_of(out, 2 * o + 1) == e->argmax);
    }
    if (combine == WEFT_LSE) {
        CHECK(view_get(out, 2 * o) == e->max);
        CHECK(fabs(view_get(out, 2 * o + 1) - e->sum_exp) <= t * (1 + e->sum_exp));
    }
    if (combine == WEFT_MOMENTS) {
        CHECK(view_get(out, 3 * o) == e->count);
        if (e->count > 0) CHECK(fabs(view_get(out, 3 * o + 1) - e->sum / e->count) <= t * 2);
        CHECK(fabs(view_get(out, 3 * o + 2) - e->m2) <= t * (1 + e->count));
    }
}

static void reduce_and_check(const weft_view *in, weft_view *out, int n_kept, weft_combine combine)
{
    weft_reduce_attributes attributes = {.combine = combine};
    int along = -1;
    for (int d = 0; d < in->shape.n_dims; d++)
        if (weft_shape_find(&out->shape, in->shape.dims[d].name) < 0) along = d;
    if (along >= 0) attributes.dim = in->shape.dims[along].name;
    if (along < 0 && combine == WEFT_ARGMAX) return;
    const int width = weft_combine_width(combine);
    if (width > 1) view_add(out, (part){"~", width, 0, width});
    view_take(out, in->dtype);
    weft_call call = {
        .n_in = 1, .n_out = 1, .in[0] = *in, .out[0] = *out, .attributes = &attributes};
    run_prepared(&weft_kernel_reduce, weft_reduce_cpu, &call);
    for (int64_t o = 0; o < weft_view_count(out) / width; o++) {
        const expected e = expect(in, out, n_kept, o * width, along);
        check_element(out, combine, o, &e);
    }
    view_free(out);
}

static void random_case(weft_combine combine, weft_dtype dtype)
{
    weft_view in = {0}, out = {0};
    part kept[5];
    int n_kept = 0, n_reduced = 0;
    const int n = random_below(6), most = n > 3 ? 4 : n > 1 ? 12 : 3000;
    for (int d = 0; d < n; d++) {
        part p = random_part(names[d], most);
        if (random_below(40) == 0) p.end = p.begin;
        view_add(&in, p);
        const bool reduced =
            combine == WEFT_ARGMAX ? n_reduced == 0 && random_below(2) : random_below(2);
        if (reduced)
            n_reduced++;
        else
            kept[n_kept++] = p;
    }
    if (random_below(2) && n_kept > 1) { /* another order in the result */
        const part p = kept[0];
        kept[0] = kept[n_kept - 1];
        kept[n_kept - 1] = p;
    }
    for (int d = 0; d < n_kept; d++)
        view_add(&out, kept[d]);
    view_take(&in, dtype);
    view_randomize(&in);
    reduce_and_check(&in, &out, n_kept, combine);
    view_free(&in);
}

static void test_random_reductions_equal_plain_loops(void)
{
    for (int i = 0; i < 120; i++)
        for (int combine = WEFT_SUM; combine < WEFT_COMBINES; combine++)
            for (int dtype = 0; dtype <= WEFT_I32; dtype++) {
                if (dtype == WEFT_I32 &&
                    (combine == WEFT_LSE || combine == WEFT_MOMENTS || combine == WEFT_PROD))
                    continue;
                random_case((weft_combine)combine, (weft_dtype)dtype);
            }
}

/* Large enough for chunks of the reduced range: to one element by rows, and to a few columns. */
static void test_few_results_of_many_elements(void)
{
    const part long_one = {"a", 90000, 1000, 90000}, few = {"b", 3, 1, 3};
    for (int combine = WEFT_SUM; combine < WEFT_COMBINES; combine++)
        for (int dtype = 0; dtype < WEFT_I32; dtype++) {
            weft_view row = view_of((weft_dtype)dtype, 1, &long_one);
            weft_view column = view_of((weft_dtype)dtype, 2, (part[]){long_one, few});
            weft_view out = {0}, few_out = {0};
            view_add(&few_out, few);
            reduce_and_check(&row, &out, 0, (weft_combine)combine);
            reduce_and_check(&column, &few_out, 1, (weft_combine)combine);
            view_free(&row);
            view_free(&column);
        }
}

static void test_ties_give_the_lowest_index(void)
{
    const part a = {"a", 5000, 7, 4000}, b = {"b", 2, 0, 2};
    weft_view in = view_of(WEFT_F32, 2, (part[]){b, a});
    for (int64_t i = 0; i < weft_view_count(&in); i++)
        view_set(&in, i, i % 3993 == 1500 || i % 3993 == 3000 ? 9 : -INFINITY);
    weft_view out = {0};
    view_add(&out, b);
    view_add(&out, (part){"~", 2, 0, 2});
    view_take(&out, WEFT_F32);
    const weft_reduce_attributes attributes = {WEFT_ARGMAX, "a"};
    weft_call call = {.n_in = 1, .n_out = 1, .in[0] = in, .out[0] = out, .attributes = &attributes};
    run_on_lanes(weft_reduce_cpu, &call);
    CHECK_EQ_INT(index_of(&out, 1), 1507);
    CHECK_EQ_INT(index_of(&out, 3), 1507);
    call_free(&call);
}

/* -inf everywhere (a masked row) is no NaN, in rows and in columns; one +inf gives +inf. */
static void test_lse_of_infinities(void)
{
    const part a = {"a", 2, 0, 2}, b = {"b", 3, 0, 3};
    for (int transposed = 0; transposed < 2; transposed++) {
        weft_view in = view_of(WEFT_F64, 2, transposed ? (part[]){b, a} : (part[]){a, b});
        for (int i = 0; i < 6; i++)
            view_set(&in, i,
                     transposed ? (i % 2 == 1 ? INFINITY : -INFINITY)
                                : (i < 3 ? -INFINITY : INFINITY));
        weft_view state = view_of(WEFT_F64, 2, (part[]){a, {"~", 2, 0, 2}}),
                  maximum = view_of(WEFT_F64, 1, &a), log_sum = view_like(&maximum);
        const weft_reduce_attributes attributes = {.combine = WEFT_LSE};
        weft_call call = {
            .n_in = 1, .n_out = 1, .in[0] = in, .out[0] = state, .attributes = &attributes};
        run_on_lanes(weft_reduce_cpu, &call);
        weft_call finish = {.n_in = 1, .n_out = 2, .in[0] = state, .out = {maximum, log_sum}};
        run_on_lanes(weft_lse_finish_cpu, &finish);
        CHECK(view_get(&maximum, 0) == -INFINITY && view_get(&log_sum, 0) == -INFINITY);
        CHECK(view_get(&maximum, 1) == INFINITY && view_get(&log_sum, 1) > -INFINITY);
        call_free(&call);
        view_free(&maximum), view_free(&log_sum);
    }
}

/* Of a row of n elements (or a column) with one that is no number. */
static void check_nan(weft_dtype dtype, weft_combine combine, bool is_column, int64_t n, int64_t at,
                      double nan)
{
    const part a = {"a", 1, 0, 1}, b = {"b", n, 0, n}, two = {"~", 2, 0, 2};
    weft_view in = view_of(dtype, 2, is_column ? (part[]){b, a} : (part[]){a, b});
    weft_view out = view_of(dtype, combine == WEFT_ARGMAX ? 2 : 1, (part[]){a, two});
    for (int64_t i = 0; i < n; i++)
        view_set(&in, i, i == at ? nan : (double)(i % 5));
    const weft_reduce_attributes attributes = {combine, combine == WEFT_ARGMAX ? "b" : NULL};
    weft_call call = {.n_in = 1, .n_out = 1, .in[0] = in, .out[0] = out, .attributes = &attributes};
    run_on_lanes(weft_reduce_cpu, &call);
    CHECK(isnan(view_get(&out, 0)));
    if (combine == WEFT_ARGMAX) CHECK_EQ_INT(index_of(&out, 1), at);
    call_free(&call);
}

/* The processor's own NaN has its sign bit set; others have not. */
static void test_nan_wins_wherever_it_stands(void)
{
    static const weft_combine combines[] = {WEFT_MAX, WEFT_MIN, WEFT_ARGMAX};
    for (int64_t n = 1; n < 3000; n = 3 * n + 1)
        for (int place = 0; place < 3; place++)
            for (int k = 0; k < 12; k++)
                check_nan(k & 1 ? WEFT_F32 : WEFT_F64, combines[k / 4], k & 2, n,
                          place * (n - 1) / 2, place == 1 ? -(double)NAN : (double)NAN);
}

static void test_states_are_finished(void)
{
    const part a = {"a", 1, 0, 1}, two = {"~", 2, 0, 2}, three = {"~", 3, 0, 3};
    for (int dtype = 0; dtype < WEFT_I32; dtype++) {
        weft_view lse = view_of((weft_dtype)dtype, 2, (part[]){a, two});
        weft_view moments = view_of((weft_dtype)dtype, 2, (part[]){a, three});
        weft_view x = view_of((weft_dtype)dtype, 1, &a), y = view_of((weft_dtype)dtype, 1, &a);
        view_set(&lse, 0, 3), view_set(&lse, 1, 2);
        weft_call call = {.n_in = 1, .n_out = 2, .in[0] = lse, .out = {x, y}};
        run_on_lanes(weft_lse_finish_cpu, &call);
        CHECK(view_get(&x, 0) == 3);
        CHECK_CLOSE(view_get(&y, 0), log(2), 1e-6);
        view_set(&moments, 0, 4), view_set(&moments, 1, -7), view_set(&moments, 2, 8);
        const weft_number_attributes eps = {0.25};
        call =
            (weft_call){.n_in = 1, .n_out = 2, .in[0] = moments, .out = {x, y}, .attributes = &eps};
        run_on_lanes(weft_moments_finish_cpu, &call);
        CHECK_CLOSE(view_get(&x, 0), -7, 1e-6);
        CHECK_CLOSE(view_get(&y, 0), 1 / 1.5, 1e-6);
        view_free(&lse);
        call_free(&call);
    }
}

/* Kept dims in another order than the state's, so that there is something to work out. */
static void test_finishes_are_prepared(void)
{
    static const struct {
        const weft_kernel *kernel;
        weft_launch anew;
        int width, n_out;
    } all[] = {{&weft_kernel_lse_finish, weft_lse_finish_cpu, 2, 2},
               {&weft_kernel_argmax_finish, weft_argmax_finish_cpu, 2, 1},
               {&weft_kernel_moments_finish, weft_moments_finish_cpu, 3, 2}};
    const part a = {"a", 70, 3, 70}, b = {"b", 50, 0, 49};
    const weft_number_attributes eps = {0.25};
    for (int dtype = 0; dtype < WEFT_I32; dtype++)
        for (int k = 0; k < 3; k++) {
            const part state = {"~", all[k].width, 0, all[k].width};
            const weft_dtype made = k == 1 ? WEFT_I32 : (weft_dtype)dtype;
            weft_call call = {.n_in = 1, .n_out = all[k].n_out, .attributes = &eps};
            call.in[0] = view_of((weft_dtype)dtype, 3, (part[]){a, b, state});
            call.out[0] = view_of(made, 2, (part[]){b, a});
            if (call.n_out == 2) call.out[1] = view_of(made, 2, (part[]){a, b});
            for (int64_t i = 0; i < weft_view_count(&call.in[0]); i++)
                view_set(&call.in[0], i, 1 + (double)(i % 97));
            run_prepared(all[k].kernel, all[k].anew, &call);
            call_free(&call);
        }
}

static void test_argmax_states_become_indices(void)
{
    const part a = {"a", 3, 0, 3};
    for (int dtype = 0; dtype <= WEFT_I32; dtype++) {
        weft_view in = view_of((weft_dtype)dtype, 2, (part[]){{"b", 300, 100, 300}, a});
        view_set(&in, 3 * 50 + 0, 100), view_set(&in, 3 * 199 + 1, 100),
            view_set(&in, 3 * 0 + 2, 100);
        weft_view state = view_of((weft_dtype)dtype, 2, (part[]){a, {"~", 2, 0, 2}});
        weft_view index = view_of(WEFT_I32, 1, &a);
        const weft_reduce_attributes attributes = {WEFT_ARGMAX, "b"};
        weft_call call = {
            .n_in = 1, .n_out = 1, .in[0] = in, .out[0] = state, .attributes = &attributes};
        run_on_lanes(weft_reduce_cpu, &call);
        weft_call finish = {.n_in = 1, .n_out = 1, .in[0] = state, .out[0] = index};
        run_on_lanes(weft_argmax_finish_cpu, &finish);
        CHECK_EQ_INT(view_get(&index, 0), 150);
        CHECK_EQ_INT(view_get(&index, 1), 299);
        CHECK_EQ_INT(view_get(&index, 2), 100);
        call_free(&call);
        view_free(&index);
    }
}

/* Element i of [n]: signs change, so means are near 0 and differences twice an element. */
static double extreme(int64_t i, double size)
{
    return (i * 7 % 5 < 2 ? -1.0 : 1.0) * size * ((double)(1 + i * 13 % 7) / 7.0);
}

static void check_moments(weft_dtype dtype, int64_t n, double size, bool rows)
{
    const part a = {"a", n, 0, n}, b = {"b", 3, 0, 3}, three = {"~", 3, 0, 3};
    weft_view in = view_of(dtype, 2, rows ? (part[]){b, a} : (part[]){a, b});
    weft_view out = view_of(dtype, 2, (part[]){b, three});
    long double sum = 0, m2 = 0;
    for (int64_t i = 0; i < 3 * n; i++)
        view_set(&in, i, extreme(rows ? i % n : i / 3, size));
    for (int64_t i = 0; i < n; i++)
        sum += view_get(&in, rows ? i : 3 * i);
    for (int64_t i = 0; i < n; i++) {
        const long double off = view_get(&in, rows ? i : 3 * i) - sum / n;
        m2 += off * off;
    }
    const weft_reduce_attributes attributes = {.combine = WEFT_MOMENTS};
    weft_call call = {.n_in = 1, .n_out = 1, .in[0] = in, .out[0] = out, .attributes = &attributes};
    run_on_lanes(weft_reduce_cpu, &call);
    const double t = dtype == WEFT_F32 ? 1e-6 : 1e-14, most = dtype == WEFT_F32 ? 3.4e38 : 1.7e308;
    for (int i = 0; i < 3; i++) {
        const double mean = view_get(&out, 3 * i + 1), square = view_get(&out, 3 * i + 2);
        char text[200];
        snprintf(text, sizeof text, "%lld %s of %s up to %g: mean %g of %Lg, m2 %g of %Lg",
                 (long long)n, rows ? "in a row" : "in a column", weft_dtype_name(dtype), size,
                 mean, sum / n, square, m2);
        const bool fits = m2 < most ? fabsl(square - m2) <= 3 * t * m2 + 1e-300 : isinf(square);
        weft_test_check(view_get(&out, 3 * i) == n && fits && fabsl(mean - sum / n) <= t * size,
                        __FILE__, __LINE__, text);
    }
    call_free(&call);
}

/* Squares just in range, and numbers whose sums and differences are not. */
static void test_moments_of_huge_numbers(void)
{
    for (int rows = 0; rows < 2; rows++)
        for (int64_t n = 1; n <= 60000; n = n * 7 + 1) {
            check_moments(WEFT_F64, n, 1.3e154 / sqrt((double)n), rows != 0);
            check_moments(WEFT_F32, n, 1.7e19 / sqrt((double)n), rows != 0);
            check_moments(WEFT_F64, n, 1.7e308, rows != 0);
            check_moments(WEFT_F32, n, 3.3e38, rows != 0);
            check_moments(WEFT_F64, n, 1e-300, rows != 0);
        }
}

/* A mean that is infinite stays so, whichever element comes last. */
static void test_moments_of_infinities(void)
{
    const part a = {"a", 5, 0, 5}, b = {"b", 1, 0, 1}, three = {"~", 3, 0, 3};
    for (int columns = 0; columns < 2; columns++)
        for (int at = 0; at < 5; at++) {
            weft_view in = view_of(WEFT_F64, 2, columns ? (part[]){a, b} : (part[]){b, a});
            weft_view out = view_of(WEFT_F64, 2, (part[]){b, three});
            for (int i = 0; i < 5; i++)
                view_set(&in, i, i == at ? INFINITY : i);
            const weft_reduce_attributes attributes = {.combine = WEFT_MOMENTS};
            weft_call call = {
                .n_in = 1, .n_out = 1, .in[0] = in, .out[0] = out, .attributes = &attributes};
            run_on_lanes(weft_reduce_cpu, &call);
            CHECK(view_get(&out, 1) == INFINITY);
            CHECK(isnan(view_get(&out, 2)));
            call_free(&call);
        }
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_random_reductions_equal_plain_loops);
    RUN(test_few_results_of_many_elements);
    RUN(test_ties_give_the_lowest_index);
    RUN(test_lse_of_infinities);
    RUN(test_nan_wins_wherever_it_stands);
    RUN(test_moments_of_huge_numbers);
    RUN(test_moments_of_infinities);
    RUN(test_states_are_finished);
    RUN(test_finishes_are_prepared);
    RUN(test_argmax_states_become_indices);
    streams_close();
    return weft_test_report();
}
