/* transpose, copy, slice, reindex and concat against the definition, element by element. */
#include "kernel_views.h"

static const char *const names[] = {"a", "b", "c", "d", "e"};

static void test_transpose_in_random_orders(void)
{
    for (int i = 0; i < 300; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            part parts[5];
            const int n = random_below(6);
            for (int d = 0; d < n; d++) {
                parts[d] = random_part(names[d], n <= 2 ? 150 : 8);
                if (random_below(40) == 0) parts[d].end = parts[d].begin;
            }
            weft_call call = {.n_in = 1, .n_out = 1, .in[0] = view_of((weft_dtype)dtype, n, parts)};
            for (int d = n - 1; d > 0; d--) {
                const int e = random_below(d + 1);
                const part p = parts[d];
                parts[d] = parts[e], parts[e] = p;
            }
            call.out[0] = view_of((weft_dtype)dtype, n, parts);
            run_on_lanes(weft_transpose_cpu, &call);
            for (int64_t o = 0; o < weft_view_count(&call.out[0]); o++) {
                int64_t at[WEFT_MAX_DIMS], at_in[WEFT_MAX_DIMS];
                view_at(&call.out[0], o, at);
                for (int d = 0; d < n; d++)
                    at_in[weft_shape_find(&call.in[0].shape, parts[d].name)] = at[d];
                CHECK(view_get(&call.out[0], o) ==
                      view_get(&call.in[0], view_index(&call.in[0], at_in)));
            }
            call_free(&call);
        }
}

static void test_copy_keeps_the_bits(void)
{
    const int64_t counts[] = {0, 1, 1000, 70001};
    for (int i = 0; i < 4; i++) {
        weft_call call = {.n_in = 1, .n_out = 1};
        call.in[0] = view_of(WEFT_F64, 1, &(part){"a", counts[i], 0, counts[i]});
        call.out[0] =
            view_of(WEFT_F64, 2, (part[]){{"b", counts[i], 0, counts[i]}, {"c", 1, 0, 1}});
        run_on_lanes(weft_copy_cpu, &call);
        CHECK(view_same_bits(&call.in[0], &call.out[0]));
        call_free(&call);
    }
}

/* A random tensor with dim "x" of the given size somewhere; the part's name is "y" in the smaller
 * tensors. */
static void place_dim(part *to, const part *others, int at, const char *name, int64_t size)
{
    for (int d = 0; d < 3; d++)
        to[d] = d == at ? (part){name, size, 0, size} : others[d];
}

static double element(const weft_view *view, const int64_t *at, int dim, int64_t coordinate)
{
    int64_t moved[WEFT_MAX_DIMS];
    memcpy(moved, at, sizeof moved);
    moved[dim] = coordinate;
    return view_get(view, view_index(view, moved));
}

static void one_slice(weft_dtype dtype, int dim)
{
    const int64_t size = 1 + random_below(9), begin = random_below((int)size + 1);
    const int64_t end = begin + random_below((int)(size - begin) + 1);
    const part others[3] = {random_part("a", 5), random_part("b", 5), random_part("c", 80)};
    part whole[3], some[3];
    place_dim(whole, others, dim, "x", size);
    place_dim(some, others, dim, "y", end - begin);
    const weft_slice_attributes attributes = {"x", begin, end};
    weft_call slice = {.n_in = 1, .n_out = 1, .attributes = &attributes};
    slice.in[0] = view_of(dtype, 3, whole);
    slice.out[0] = view_of(dtype, 3, some);
    run_on_lanes(weft_slice_cpu, &slice);
    for (int64_t i = 0; i < weft_view_count(&slice.in[0]); i++) {
        int64_t at[WEFT_MAX_DIMS] = {0};
        view_at(&slice.in[0], i, at);
        const bool inside = at[dim] >= begin && at[dim] < end;
        const double x = view_get(&slice.in[0], i);
        if (inside) CHECK(element(&slice.out[0], at, dim, at[dim] - begin) == x);
    }
    call_free(&slice);
}

static void test_slice_takes_a_part(void)
{
    for (int i = 0; i < 100; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
            one_slice((weft_dtype)dtype, i % 3);
}

static int64_t random_step(int most)
{
    const int64_t step = 1 + random_below(most);
    return random_below(2) ? step : -step;
}

/* A box of the result, and of the operand what it needs, or more. */
static void one_reindex(weft_dtype dtype, int dim)
{
    const weft_reindex_attributes r = {.dim = "x",
                                       .to = "y",
                                       .size = 1 + random_below(9),
                                       .to_size = 1 + random_below(12),
                                       .offset = random_below(30) - 15,
                                       .stride = random_step(4),
                                       .over = 1 + random_below(4)};
    const part others[3] = {random_part("a", 5), random_part("b", 5), random_part("c", 80)};
    part from[3], to[3];
    place_dim(from, others, dim, "x", r.size);
    place_dim(to, others, dim, "y", r.to_size);
    to[dim].begin = random_below((int)r.to_size + 1);
    to[dim].end = to[dim].begin + random_below((int)(r.to_size - to[dim].begin) + 1);
    const weft_window window = {r.to_size, r.offset, r.offset, (int32_t)r.stride, (int32_t)r.over};
    from[dim].begin = to[dim].begin, from[dim].end = to[dim].end;
    weft_window_image(&window, r.size, &from[dim].begin, &from[dim].end);
    if (random_below(2)) from[dim].begin = 0;
    weft_call call = {.n_in = 1, .n_out = 1, .attributes = &r};
    call.in[0] = view_of(dtype, 3, from);
    call.out[0] = view_of(dtype, 3, to);
    run_on_lanes(weft_reindex_cpu, &call);
    for (int64_t i = 0; i < weft_view_count(&call.out[0]); i++) {
        int64_t at[WEFT_MAX_DIMS] = {0};
        view_at(&call.out[0], i, at);
        const int64_t j = r.stride * (at[dim] + to[dim].begin) + r.offset;
        const bool is_in = j % r.over == 0 && j >= 0 && j / r.over < r.size;
        const double want = is_in ? element(&call.in[0], at, dim, j / r.over - from[dim].begin) : 0;
        CHECK(view_get(&call.out[0], i) == want);
    }
    call_free(&call);
}

static void test_reindex_puts_elements_elsewhere(void)
{
    for (int i = 0; i < 400; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
            one_reindex((weft_dtype)dtype, i % 3);
}

static void one_concat(weft_dtype dtype, int dim)
{
    const int64_t first = random_below(6), second = random_below(6);
    const part others[3] = {random_part("a", 5), random_part("b", 5), random_part("c", 80)};
    part a[3], b[3], both[3];
    place_dim(a, others, dim, "x", first);
    place_dim(b, others, dim, "y", second);
    place_dim(both, others, dim, "z", first + second);
    const weft_slice_attributes attributes = {"z", first, first + second};
    weft_call call = {.n_in = 2, .n_out = 1, .attributes = &attributes};
    call.in[0] = view_of(dtype, 3, a);
    call.in[1] = view_of(dtype, 3, b);
    call.out[0] = view_of(dtype, 3, both);
    run_on_lanes(weft_concat_cpu, &call);
    for (int64_t i = 0; i < weft_view_count(&call.out[0]); i++) {
        int64_t at[WEFT_MAX_DIMS] = {0};
        view_at(&call.out[0], i, at);
        const double want = at[dim] < first ? element(&call.in[0], at, dim, at[dim])
                                            : element(&call.in[1], at, dim, at[dim] - first);
        CHECK(view_get(&call.out[0], i) == want);
    }
    call_free(&call);
}

static void test_concat_puts_one_after_the_other(void)
{
    for (int i = 0; i < 100; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
            one_concat((weft_dtype)dtype, i % 3);
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_transpose_in_random_orders);
    RUN(test_copy_keeps_the_bits);
    RUN(test_slice_takes_a_part);
    RUN(test_reindex_puts_elements_elsewhere);
    RUN(test_concat_puts_one_after_the_other);
    streams_close();
    return weft_test_report();
}
