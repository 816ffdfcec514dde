/* conv against the definition, element by element: random dims of all kinds in random orders, boxes of them, strides and
 * dilations of both signs, slopes below one; large enough for matrices, and too small for them. And as programs have them: channels
 * last, all three of a convolution and its gradients, with few channels and many, in groups, and each by itself.
 */
#include "kernel_views.h"

/* One dim: its size and box in x, w and y. */
typedef struct direction {
    const char *x, *w, *y; /* NULL: the tensor has it not */
    part of_x, of_w, of_y;
} direction;

enum { MOST = 6 };
typedef struct product {
    int n;
    direction d[MOST];
    weft_conv_attributes attributes;
} product;

static part box_of(const char *name, int64_t size)
{
    part p = {name, size, 0, size};
    if (size > 1 && random_below(3) == 0) p.begin = random_below((int)size - 1);
    if (random_below(3) == 0) p.end -= random_below((int)(p.end - p.begin));
    return p;
}

static void add_plain(product *c, const char *name, bool x, bool w, bool y, int most)
{
    direction *d = &c->d[c->n++];
    *d = (direction){.x = x ? name : NULL, .w = w ? name : NULL, .y = y ? name : NULL};
    d->of_x = d->of_w = d->of_y = box_of(name, 1 + random_below(most));
}

static int64_t random_step(int most)
{
    const int64_t step = 1 + random_below(most);
    return random_below(4) ? step : -step;
}

/* x has what the window shows of it, or all of it. */
static void add_window(product *c, int s, int most)
{
    static const char *const names[3][3] = {{"i", "s", "o"}, {"j", "t", "p"}, {"k", "u", "q"}};
    weft_conv_window *w = &c->attributes.window[s];
    direction *d = &c->d[c->n++];
    *w = (weft_conv_window){names[s][0], names[s][1], names[s][2], .over = 1 + random_below(2)};
    w->stride = random_step(2), w->dilation = random_step(2);
    w->offset = random_below(2 * most) - most;
    d->x = w->x, d->w = w->w, d->y = w->y;
    d->of_w = box_of(w->w, 1 + random_below(5));
    d->of_y = box_of(w->y, 1 + random_below(most));
    d->of_x = (part){w->x, 1 + random_below(most), 0, 0};
    d->of_x.end = d->of_x.size;
    const int64_t one = w->dilation * d->of_w.begin, other = w->dilation * (d->of_w.end - 1);
    const weft_window seen = {d->of_y.size, w->offset + (one < other ? one : other),
                              w->offset + (one < other ? other : one), (int32_t)w->stride,
                              (int32_t)w->over};
    if (random_below(2)) return;
    d->of_x.begin = d->of_y.begin, d->of_x.end = d->of_y.end;
    weft_window_image(&seen, d->of_x.size, &d->of_x.begin, &d->of_x.end);
}

static void shuffle(part *parts, int n)
{
    for (int i = n - 1; i > 0; i--) {
        const int k = random_below(i + 1);
        const part p = parts[i];
        parts[i] = parts[k], parts[k] = p;
    }
}

static weft_view view_in_any_order(weft_dtype dtype, const product *c, int tensor, bool turns)
{
    part parts[MOST];
    int n = 0;
    for (int d = 0; d < c->n; d++) {
        const direction *one = &c->d[d];
        if ((tensor == 0 ? one->x : tensor == 1 ? one->w : one->y) == NULL) continue;
        parts[n++] = tensor == 0 ? one->of_x : tensor == 1 ? one->of_w : one->of_y;
    }
    if (turns) shuffle(parts, n);
    return view_of(dtype, n, parts);
}

/* ---- the definition -------------------------------------------------------------------------- */

typedef struct point {
    int64_t x[MOST], w[MOST], y[MOST]; /* global, by direction */
} point;

static double at(const weft_view *view, const product *c, const int64_t *coordinates, int tensor)
{
    int64_t index = 0;
    for (int d = 0; d < view->shape.n_dims; d++) {
        int which = 0;
        for (int k = 0; k < c->n; k++) {
            const char *name = tensor == 0 ? c->d[k].x : tensor == 1 ? c->d[k].w : c->d[k].y;
            if (name != NULL && strcmp(name, view->shape.dims[d].name) == 0) which = k;
        }
        const int64_t local = coordinates[which] - view->box.begin[d];
        if (local < 0 || local >= weft_view_size(view, d)) return 0;
        index = index * weft_view_size(view, d) + local;
    }
    return view_get(view, index);
}

static double sum_over(const product *c, const weft_call *call, int d, point *p)
{
    if (d >= c->n || d >= MOST) return at(&call->in[0], c, p->x, 0) * at(&call->in[1], c, p->w, 1);
    const direction *one = &c->d[d];
    double sum = 0;
    int s = -1;
    for (int k = 0; k < c->attributes.n_windows; k++)
        if (one->x == c->attributes.window[k].x) s = k;
    if (s < 0) {
        const int64_t first = one->y ? p->y[d] : one->of_w.begin;
        const int64_t past = one->y ? first + 1 : one->of_w.end;
        for (int64_t i = first; i < past; i++) {
            p->x[d] = p->w[d] = i;
            sum += sum_over(c, call, d + 1, p);
        }
        return sum;
    }
    const weft_conv_window *w = &c->attributes.window[s];
    for (p->w[d] = one->of_w.begin; p->w[d] < one->of_w.end; p->w[d]++) {
        const int64_t j = w->stride * p->y[d] + w->dilation * p->w[d] + w->offset;
        if (j % w->over != 0 || j < 0 || j / w->over >= one->of_x.size) continue;
        p->x[d] = j / w->over;
        sum += sum_over(c, call, d + 1, p);
    }
    return sum;
}

static void check(const product *c, weft_dtype dtype, bool turns)
{
    weft_call call = {.n_in = 2, .n_out = 1, .attributes = &c->attributes};
    for (int t = 0; t < 2; t++)
        call.in[t] = view_in_any_order(dtype, c, t, turns);
    call.out[0] = view_in_any_order(dtype, c, 2, turns);
    run_on_lanes(weft_conv_cpu, &call);
    const double bound = c->attributes.is_half ? 2e-3 : dtype == WEFT_F32 ? 2e-4 : 1e-11;
    const weft_view *y = &call.out[0];
    for (int64_t i = 0; i < weft_view_count(y); i += 1 + random_below(7)) {
        int64_t local[WEFT_MAX_DIMS];
        point p = {{0}, {0}, {0}};
        view_at(y, i, local);
        for (int d = 0; d < y->shape.n_dims; d++)
            for (int k = 0; k < c->n; k++)
                if (c->d[k].y != NULL && strcmp(c->d[k].y, y->shape.dims[d].name) == 0)
                    p.y[k] = local[d] + y->box.begin[d];
        const double want = sum_over(c, &call, 0, &p), got = view_get(y, i);
        CHECK(fabs(want - got) <= bound * (1 + fabs(want)));
    }
    call_free(&call);
}

static product random_product(int n_windows, int most)
{
    product c = {.attributes = {.n_windows = n_windows}};
    for (int s = 0; s < n_windows; s++)
        add_window(&c, s, most);
    if (random_below(2)) add_plain(&c, "batch", true, false, true, 4);
    if (random_below(4) && c.n < MOST) add_plain(&c, "feature", false, true, true, 20);
    if (random_below(4) && c.n < MOST) add_plain(&c, "channel", true, true, false, 9);
    if (random_below(3) == 0 && c.n < MOST) add_plain(&c, "group", true, true, true, 4);
    return c;
}

static void test_small_ones(void)
{
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_I32, WEFT_I64};
    for (int i = 0; i < weft_test_cases(2000); i++) {
        const product c = random_product(random_below(4), 9);
        check(&c, dtypes[i % 4], true);
    }
}

static void test_large_ones(void)
{
    for (int i = 0; i < weft_test_cases(300); i++) {
        const product c = random_product(1 + random_below(2), 40);
        check(&c, i % 2 ? WEFT_F32 : WEFT_F64, i % 3 != 0);
    }
}

/* More than one tile of m, and k in several pieces. */
static void test_many_tiles(void)
{
    for (int i = 0; i < weft_test_cases(30); i++) {
        product c = {.attributes = {.n_windows = 1}};
        add_window(&c, 0, 900);
        add_plain(&c, "feature", false, true, true, 60);
        add_plain(&c, "channel", true, true, false, 200);
        check(&c, i % 2 ? WEFT_F32 : WEFT_F64, i % 3 != 0);
    }
}

/* A filter's gradient: what is a tap is long, and added up. */
static void test_long_taps(void)
{
    for (int i = 0; i < weft_test_cases(30); i++) {
        product c = {.attributes = {.n_windows = 1}};
        add_window(&c, 0, 5);
        c.d[0].of_w = box_of(c.d[0].w, 500 + random_below(500));
        c.d[0].of_x = (part){c.d[0].x, 700, 0, 700};
        add_plain(&c, "feature", false, true, true, 60);
        add_plain(&c, "channel", true, false, true, 40);
        check(&c, i % 2 ? WEFT_F32 : WEFT_F64, i % 3 != 0);
    }
}

/* ---- channels last --------------------------------------------------------------------------- */

static void add_whole(product *c, const char *name, bool x, bool w, bool y, int64_t size)
{
    direction *d = &c->d[c->n++];
    *d = (direction){.x = x ? name : NULL, .w = w ? name : NULL, .y = y ? name : NULL};
    d->of_x = d->of_w = d->of_y = (part){name, size, 0, size};
}

typedef enum form { FORWARD, TO_DATA, TO_FILTER, FORMS } form;

/* Windows as a convolution's, whose gradients solve its equation for another of the three: some places, and a few taps. */
static void add_space(product *c, int s, form form, int places)
{
    add_window(c, s, places);
    weft_conv_window *w = &c->attributes.window[s];
    direction *d = &c->d[c->n - 1];
    const int64_t taps = 1 + random_below(4), size = places / 2 + random_below(places);
    w->over = form == TO_DATA || random_below(8) == 0 ? 1 + random_below(3) : 1;
    w->offset = random_below(6) - 4;
    d->of_y = box_of(w->y, form == TO_FILTER ? taps : size);
    d->of_w = box_of(w->w, form == TO_FILTER ? size : taps);
    d->of_x = (part){w->x, size, 0, size};
}

/* groups: 0, none; channels, features: 0, the dim is not there */
static void check_last(form form, int64_t groups, int64_t channels, int64_t features, int places)
{
    product c = {.attributes = {.n_windows = 1 + random_below(2)}};
    add_whole(&c, "batch", true, form == TO_FILTER, form != TO_FILTER, 1 + random_below(3));
    for (int s = 0; s < c.attributes.n_windows; s++)
        add_space(&c, s, form, places);
    if (groups > 0) add_whole(&c, "group", true, true, true, groups);
    if (form == TO_DATA && features > 0) add_whole(&c, "feature", false, true, true, features);
    if (channels > 0)
        add_whole(&c, "channel", true, form != TO_FILTER, form == TO_FILTER, channels);
    if (form != TO_DATA && features > 0) add_whole(&c, "feature", false, true, true, features);
    check(&c, random_below(3) ? WEFT_F32 : WEFT_F64, false);
}

static void test_channels_last(void)
{
    for (int i = 0; i < weft_test_cases(120); i++)
        check_last((form)(i % FORMS), 0, 1 + random_below(i % 2 ? 4 : 70), 1 + random_below(80),
                   16);
}

static void test_groups_of_few(void)
{
    for (int i = 0; i < weft_test_cases(60); i++) {
        const int64_t each = (int64_t)2 << random_below(3);
        check_last((form)(i % FORMS), random_below(2) ? 16 / each : 48 / each, each, each, 12);
    }
}

static void test_channels_by_themselves(void)
{
    for (int i = 0; i < weft_test_cases(60); i++)
        check_last((form)(i % FORMS), 1 + random_below(150), 0, 0, 12);
}

/* The sums of pooling: the filter has taps alone. */
static void test_sums(void)
{
    for (int i = 0; i < weft_test_cases(40); i++) {
        product c = {.attributes = {.n_windows = 2}};
        add_whole(&c, "batch", true, false, true, 1 + random_below(3));
        for (int s = 0; s < 2; s++)
            add_space(&c, s, (form)(i % 2), 12);
        add_whole(&c, "channel", true, false, true, 1 + random_below(100));
        check(&c, random_below(3) ? WEFT_F32 : WEFT_F64, false);
    }
}

/* Of tiles enough that a lane does all vectors of its rows at once, where batches and lines of places end within a tile. */
static void test_sums_of_many_places(void)
{
    for (int i = 0; i < weft_test_cases(8); i++) {
        product c = {.attributes = {.n_windows = 2}};
        add_whole(&c, "batch", true, false, true, 2);
        for (int s = 0; s < 2; s++)
            add_space(&c, s, (form)(i % 2), 30);
        add_whole(&c, "channel", true, false, true, 17 + random_below(30));
        check(&c, i % 4 < 2 ? WEFT_F32 : WEFT_F64, false);
    }
}

/* A window of 3 taps, none between them, in either order. */
static void add_three(product *c, int s, form form, int places)
{
    add_space(c, s, form, places);
    weft_conv_window *w = &c->attributes.window[s];
    direction *d = &c->d[c->n - 1];
    w->over = w->stride = w->dilation = 1;
    w->offset = random_below(4) - 2;
    if (random_below(2)) *(form == TO_FILTER ? &w->stride : &w->dilation) = -1, w->offset += 2;
    *(form == TO_FILTER ? &d->of_y : &d->of_w) = (part){form == TO_FILTER ? w->y : w->w, 3, 0, 3};
}

/* One of any taps and strides. */
static void add_further(product *c, int s, form form)
{
    add_space(c, s, form, 4);
    c->attributes.window[s].over = 1;
}

/* Two dims of 3 taps and stride 1, whole vectors of channels, in any place a third dim: fewer products, if there are enough of
 * them, and of what is rounded to 16 bits by larger tiles. Odd places, parts of all of them, and channels and taps in more pieces
 * than one. */
typedef struct three {
    int n_windows, places;
    int64_t channels, features;
} three;

static void check_three(form form, const three *of, bool is_half)
{
    product c = {.attributes = {.n_windows = of->n_windows, .is_half = is_half}};
    const int further = of->n_windows == 3 ? random_below(3) : -1;
    if (random_below(4)) add_whole(&c, "batch", true, form == TO_FILTER, form != TO_FILTER, 2);
    for (int s = 0; s < of->n_windows; s++)
        if (s == further)
            add_further(&c, s, form);
        else
            add_three(&c, s, form, of->places);
    if (form == TO_DATA) add_whole(&c, "feature", false, true, true, of->features);
    add_whole(&c, "channel", true, form != TO_FILTER, form == TO_FILTER, of->channels);
    if (form != TO_DATA) add_whole(&c, "feature", false, true, true, of->features);
    check(&c, WEFT_F32, false);
}

static void test_three_by_three(void)
{
    for (int i = 0; i < weft_test_cases(90); i++) {
        const three of = {2, 12, 16 * (1 + random_below(i % 5 ? 5 : 12)),
                          16 * (1 + random_below(i % 5 ? 6 : 2))};
        check_three((form)(i % FORMS), &of, random_below(2));
    }
}

static void test_three_by_three_of_more_dims(void)
{
    for (int i = 0; i < weft_test_cases(90); i++) {
        const three of = {3, 12, 16 * (1 + random_below(i % 5 ? 5 : 12)),
                          16 * (1 + random_below(i % 5 ? 3 : 2))};
        check_three((form)(i % FORMS), &of, random_below(2));
    }
}

/* So many channels that no panel holds all of them, and so few places that more of a filter is not worth it. */
static void test_three_by_three_of_many_channels(void)
{
    for (int i = 0; i < 12; i++) {
        const three of = {2, 6, 16 * (20 + random_below(4)), 256};
        check_three(i % 2 ? TO_DATA : FORWARD, &of, i >= 6);
    }
}

/* More rows of a filter than a lane keeps addresses of: taps of one channel, and channels. */
static void test_many_taps(void)
{
    for (int i = 0; i < 4; i++) {
        product c = {.attributes = {.n_windows = 2}};
        add_whole(&c, "batch", true, true, false, 2);
        for (int s = 0; s < 2; s++) {
            add_space(&c, s, TO_FILTER, 12);
            c.attributes.window[s].over = 1;
            c.d[c.n - 1].of_y = (part){c.attributes.window[s].y, 15, 0, 15};
        }
        if (i < 2) add_whole(&c, "group", true, true, true, 16 + i);
        if (i >= 2) add_whole(&c, "channel", true, false, true, 6 + 40 * (i - 2));
        if (i >= 2) add_whole(&c, "feature", false, true, true, 16);
        check(&c, WEFT_F32, false);
    }
}

/* Phases of which one sums along places and another along the batch: their tiles are not as many. */
static void test_unlike_phases(void)
{
    for (int channels = 1; channels < 12; channels += 5) {
        product c = {.attributes = {.n_windows = 2}};
        c.attributes.window[0] = (weft_conv_window){"i", "s", "o", 1, 1, -1, 1};
        c.attributes.window[1] = (weft_conv_window){"j", "t", "p", 1, 1, 1, 2};
        add_whole(&c, "i", true, true, true, 64);
        c.d[0].w = "s", c.d[0].of_w = (part){"s", 40, 0, 40};
        c.d[0].y = "o", c.d[0].of_y = (part){"o", 4, 0, 4};
        add_whole(&c, "batch", true, true, false, 3);
        add_whole(&c, "j", true, true, true, 4);
        c.d[2].w = "t", c.d[2].of_w = (part){"t", 3, 0, 3};
        c.d[2].y = "p", c.d[2].of_y = (part){"p", 4, 0, 4};
        add_whole(&c, "channel", true, false, true, channels);
        add_whole(&c, "feature", false, true, true, 32);
        check(&c, WEFT_F32, false);
    }
}

/* The gradient of strides far longer than the data: a million phases, of which almost none has anything. */
static void test_long_strides(void)
{
    product c = {.attributes = {.n_windows = 2}};
    for (int s = 0; s < 2; s++) {
        add_window(&c, s, 1);
        weft_conv_window *w = &c.attributes.window[s];
        w->stride = w->dilation = 1, w->offset = -1, w->over = 1000;
        c.d[s].of_x = (part){w->x, 2, 0, 2};
        c.d[s].of_w = (part){w->w, 3, 0, 3};
        c.d[s].of_y = (part){w->y, 20, 0, 20};
    }
    add_whole(&c, "channel", true, true, false, 4);
    add_whole(&c, "feature", false, true, true, 32);
    check(&c, WEFT_F32, false);
}

/* Results that are written past the caches: more than 8 MB, whole vectors, and not all of them. */
static void test_large_results(void)
{
    static const int64_t groups[] = {48, 0, 0, 50}, features[] = {0, 32, 33, 0};
    for (int i = 0; i < 4; i++) {
        product c = {.attributes = {.n_windows = 1}};
        weft_conv_window *w = &c.attributes.window[0];
        add_whole(&c, "batch", true, false, true, 3);
        *w = (weft_conv_window){"i", "s", "o", 1, 1, -1, 1 + i / 2};
        c.d[c.n++] = (direction){.x = "i",
                                 .w = "s",
                                 .y = "o",
                                 .of_x = {"i", 24000, 0, 24000},
                                 .of_w = {"s", 2, 0, 2},
                                 .of_y = {"o", 24000, 0, 24000}};
        if (groups[i] > 0) add_whole(&c, "group", true, true, true, groups[i]);
        if (features[i] > 0) add_whole(&c, "channel", true, true, false, 4);
        if (features[i] > 0) add_whole(&c, "feature", false, true, true, features[i]);
        check(&c, WEFT_F32, false);
    }
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_small_ones);
    RUN(test_large_ones);
    RUN(test_many_tiles);
    RUN(test_long_taps);
    RUN(test_channels_last);
    RUN(test_groups_of_few);
    RUN(test_channels_by_themselves);
    RUN(test_sums);
    RUN(test_sums_of_many_places);
    RUN(test_three_by_three);
    RUN(test_three_by_three_of_more_dims);
    RUN(test_three_by_three_of_many_channels);
    RUN(test_many_taps);
    RUN(test_unlike_phases);
    RUN(test_long_strides);
    RUN(test_large_results);
    streams_close();
    return weft_test_report();
}
