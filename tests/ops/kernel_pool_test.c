/* max_pool, unpool and pool_pick against the definition: boxes, windows that overlap or leave gaps, over inner dims and over the last,
 * rows of any length, ties and NaN.
 */
#include "kernel_views.h"

enum { DIMS = 4 };
typedef struct pooled {
    weft_pool_attributes attributes;
    part x[DIMS], y[DIMS];
    int window[DIMS]; /* -1: none */
} pooled;

static part whole(const char *name, int64_t size)
{
    return (part){name, size, 0, size};
}

/* A dim with a window: y has any part, and x all. */
static void add_window(pooled *p, int d, const char *x, const char *y)
{
    weft_pool_window *w = &p->attributes.window[p->attributes.n_windows];
    p->window[d] = p->attributes.n_windows++;
    *w = (weft_pool_window){.x = x,
                            .y = y,
                            .x_size = 1 + random_below(14),
                            .y_size = 1 + random_below(9),
                            .taps = 1 + random_below(4),
                            .stride = 1 + random_below(3),
                            .dilation = 1 + random_below(2),
                            .offset = random_below(4) - 2};
    p->x[d] = whole(x, w->x_size);
    p->y[d] = whole(y, w->y_size);
    p->y[d].begin = random_below((int)w->y_size);
}

static pooled random_pooled(int64_t channels, bool is_last)
{
    pooled p = {.window = {-1, -1, -1, -1}};
    p.x[0] = p.y[0] = random_part("batch", 3);
    add_window(&p, 1, "i", "o");
    if (random_below(2))
        add_window(&p, 2, "j", "p");
    else
        p.x[2] = p.y[2] = whole("width", 1 + random_below(5));
    if (is_last)
        add_window(&p, 3, "k", "q");
    else
        p.x[3] = p.y[3] = whole("channel", channels);
    return p;
}

/* Few values, so that there are ties; and NaN among floats. */
static void fill(weft_view *view)
{
    for (int64_t i = 0; i < weft_view_count(view); i++)
        view_set(view, i, random_below(9) - 4);
    if (!weft_dtype_is_float(view->dtype)) return;
    for (int64_t i = random_below(20); i < weft_view_count(view); i += 1 + random_below(40))
        view_set(view, i, (double)NAN);
}

/* Where tap t of y's element is in x; -1: outside. */
static int64_t place_of(const pooled *p, const weft_view *x, const weft_view *y, int64_t i,
                        int64_t t)
{
    int64_t at[WEFT_MAX_DIMS], of_x[WEFT_MAX_DIMS] = {0};
    view_at(y, i, at);
    for (int d = DIMS - 1; d >= 0; d--) {
        of_x[d] = at[d] + y->box.begin[d] - x->box.begin[d];
        if (p->window[d] < 0) continue;
        const weft_pool_window *w = &p->attributes.window[p->window[d]];
        of_x[d] = w->stride * (at[d] + y->box.begin[d]) + w->dilation * (t % w->taps) + w->offset -
                  x->box.begin[d];
        t /= w->taps;
        if (of_x[d] < 0 || of_x[d] >= weft_view_size(x, d)) return -1;
    }
    return view_index(x, of_x);
}

static int64_t count_taps(const pooled *p)
{
    int64_t n = 1;
    for (int s = 0; s < p->attributes.n_windows; s++)
        n *= p->attributes.window[s].taps;
    return n;
}

static void check_largest(const pooled *p, const weft_call *call)
{
    const weft_view *x = &call->in[0], *y = &call->out[0], *taps = &call->out[1];
    const double nothing = x->dtype == WEFT_I32   ? (double)INT32_MIN
                           : x->dtype == WEFT_I64 ? (double)INT64_MIN
                                                  : -(double)INFINITY;
    for (int64_t i = 0; i < weft_view_count(y); i++) {
        double best = nothing;
        int64_t which = -1;
        for (int64_t t = 0; t < count_taps(p); t++) {
            const int64_t at = place_of(p, x, y, i, t);
            if (at < 0) continue;
            const double a = view_get(x, at);
            if (which >= 0 && (isnan(best) || !(a > best || isnan(a)))) continue;
            best = a, which = t;
        }
        const double got = view_get(y, i);
        CHECK(got == best || (isnan(got) && isnan(best)));
        CHECK(view_get(taps, i) == (double)which);
    }
}

static void check_back(const pooled *p, const weft_call *pool)
{
    weft_call call = {.n_in = 2, .n_out = 1, .attributes = &p->attributes};
    call.in[0] = view_like(&pool->out[0]);
    view_randomize(&call.in[0]);
    call.in[1] = pool->out[1];
    call.out[0] = view_like(&pool->in[0]);
    run_on_lanes(weft_unpool_cpu, &call);
    weft_view want = view_like(&pool->in[0]);
    for (int64_t i = 0; i < weft_view_count(&want); i++)
        view_set(&want, i, 0);
    for (int64_t i = 0; i < weft_view_count(&call.in[0]); i++) {
        const int64_t t = (int64_t)view_get(&call.in[1], i);
        if (t < 0) continue;
        const int64_t at = place_of(p, &want, &call.in[0], i, t);
        view_set(&want, at, view_get(&want, at) + view_get(&call.in[0], i));
    }
    CHECK(view_distance(&want, &call.out[0]) <= 1e-5);
    weft_call pick = {.n_in = 2, .n_out = 1, .attributes = &p->attributes};
    pick.in[0] = want, pick.in[1] = call.in[1];
    pick.out[0] = view_like(&pool->out[0]);
    run_on_lanes(weft_pool_pick_cpu, &pick);
    for (int64_t i = 0; i < weft_view_count(&pick.out[0]); i++) {
        const int64_t t = (int64_t)view_get(&call.in[1], i);
        const int64_t at = t < 0 ? -1 : place_of(p, &want, &pick.out[0], i, t);
        CHECK(view_get(&pick.out[0], i) == (at < 0 ? 0 : view_get(&want, at)));
    }
    view_free(&call.in[0]), view_free(&call.out[0]), view_free(&want), view_free(&pick.out[0]);
}

static void check(const pooled *p, weft_dtype dtype)
{
    weft_call call = {.n_in = 1, .n_out = 2, .attributes = &p->attributes};
    call.in[0] = view_of(dtype, DIMS, p->x);
    fill(&call.in[0]);
    call.out[0] = view_of(dtype, DIMS, p->y);
    call.out[1] = view_of(WEFT_I32, DIMS, p->y);
    run_on_lanes(weft_max_pool_cpu, &call);
    check_largest(p, &call);
    check_back(p, &call);
    call_free(&call);
}

static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_I32, WEFT_I64};

static void test_rows_of_channels(void)
{
    static const int64_t channels[] = {1, 3, 7, 8, 15, 16, 17, 31, 32, 45, 64};
    for (int i = 0; i < weft_test_cases(220); i++) {
        const pooled p = random_pooled(channels[i % 11], false);
        check(&p, dtypes[random_below(4)]);
    }
}

static void test_windows_over_the_last_dim(void)
{
    for (int i = 0; i < weft_test_cases(150); i++) {
        const pooled p = random_pooled(0, true);
        check(&p, dtypes[i % 4]);
    }
}

/* What is put back goes past the caches. */
static void test_large_results(void)
{
    pooled p = {.window = {-1, 0, -1, -1}};
    p.attributes.n_windows = 1;
    p.attributes.window[0] = (weft_pool_window){"i", "o", 40000, 20000, 2, 2, 1, 0};
    p.x[0] = p.y[0] = whole("batch", 1);
    p.x[1] = whole("i", 40000), p.y[1] = whole("o", 20000);
    p.x[2] = p.y[2] = whole("width", 1);
    p.x[3] = p.y[3] = whole("channel", 64);
    check(&p, WEFT_F32);
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_rows_of_channels);
    RUN(test_windows_over_the_last_dim);
    RUN(test_large_results);
    streams_close();
    return weft_test_report();
}
