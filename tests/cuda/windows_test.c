/* windows_test: convolutions, pooling and sums along a dim on the device cuda against the CPU's: strides, steps and offsets of all
 * signs, windows that leave the tensor, filters for each channel, boxes of every rank's kind. */
#include "calls.h"

static const weft_dtype wide[] = {WEFT_F32, WEFT_F64, WEFT_I32, WEFT_I64};
enum { N_WIDE = sizeof wide / sizeof *wide };

/* ---- convolutions ------------------------------------------------------------------------------ */

static void check_conv(const weft_conv_attributes *attributes, const char *x, const char *w,
                       const char *y)
{
    for (int d = 0; d < N_WIDE; d++) {
        weft_call call = {.attributes = attributes};
        add_in(&call, wide[d], x, 1);
        add_in(&call, wide[d], w, 1);
        add_out(&call, wide[d], y);
        check_call("conv", &call);
    }
}

static weft_conv_window window(const char *x, const char *w, const char *y, int64_t stride,
                               int64_t dilation, int64_t offset, int64_t over)
{
    return (weft_conv_window){x, w, y, stride, dilation, offset, over};
}

static void test_conv(void)
{
    const weft_conv_attributes none = {0};
    const weft_conv_attributes same = {
        2, {window("h", "s", "p", 1, 1, -1, 1), window("w", "t", "q", 1, 1, -1, 1)}};
    const weft_conv_attributes steps = {
        2, {window("h", "s", "p", 2, 3, -2, 1), window("w", "t", "q", 3, 1, 0, 1)}};
    const weft_conv_attributes line = {1, {window("h", "s", "p", 1, 2, -3, 1)}};
    const weft_conv_attributes solid = {3,
                                        {window("h", "s", "p", 1, 1, -1, 1),
                                         window("w", "t", "q", 2, 1, 0, 1),
                                         window("d", "u", "r", 1, 1, 0, 1)}};
    check_conv(&none, "b:3 c:4", "c:4 k:5", "b:3 k:5");
    check_conv(&same, "b:2 c:3 h:6 w:5", "k:4 c:3 s:3 t:3", "b:2 k:4 p:6 q:5");
    check_conv(&same, "b:2 h:6 w:5 c:3", "s:3 t:3 c:3 k:4", "b:2 p:6 q:5 k:4");
    check_conv(&steps, "b:2 c:2 h:11 w:9", "c:2 k:3 s:3 t:2", "k:3 b:2 p:4 q:3");
    check_conv(&line, "g:3 h:12 b:2", "g:3 s:4", "b:2 g:3 p:12"); /* one filter a channel */
    check_conv(&line, "b:2 h:12", "s:4 k:3", "b:2 p:12 k:3");
    check_conv(&solid, "h:4 w:6 d:5 c:2", "c:2 s:3 t:2 u:2", "p:4 q:3 r:4");
    check_conv(&same, "b:0 c:3 h:6 w:5", "k:4 c:3 s:3 t:3", "b:0 k:4 p:6 q:5");
}

/* What a rank has of a dim of space, of the filter's taps, of the sum. */
static void test_conv_of_boxes(void)
{
    const weft_conv_attributes same = {1, {window("h", "s", "p", 1, 1, -1, 1)}};
    const weft_conv_attributes steps = {1, {window("h", "s", "p", 2, 1, -1, 1)}};
    check_conv(&same, "b:2 c:3 h:5/2", "c:3 s:3 k:2", "b:2 p:3/3 k:2");
    check_conv(&same, "b:2 c:3 h:5/2", "c:3 s:1/1 k:2", "b:2 p:3/3 k:2");
    check_conv(&same, "b:2 c:2/1 h:8", "c:2/1 s:3 k:2", "b:2 p:8 k:2");
    check_conv(&steps, "h:6/3 b:2", "s:3", "b:2 p:3/2");
    check_conv(&same, "h:0/3 b:2", "s:3", "b:2 p:2/3");
}

/* Gradients are convolutions of the same kind: to the data, whose windows stand between elements, and to the filter. */
static void test_conv_backwards(void)
{
    const weft_conv_attributes data = {1, {window("p", "s", "h", 1, -1, 1, 2)}};
    const weft_conv_attributes wide_data = {1, {window("p", "s", "h", 1, -2, 3, 3)}};
    const weft_conv_attributes filter = {1, {window("h", "p", "s", 1, 2, -1, 1)}};
    check_conv(&data, "b:2 p:5 k:3", "s:3 c:2 k:3", "b:2 h:10 c:2");
    check_conv(&data, "b:2 p:3/1 k:3", "s:3 c:2 k:3", "b:2 h:4/3 c:2");
    check_conv(&wide_data, "p:5", "s:4", "h:17");
    check_conv(&filter, "b:2 h:10 c:2", "b:2 p:5 k:3", "s:3 c:2 k:3");
}

/* ---- pooling ----------------------------------------------------------------------------------- */

static void add_taps(weft_call *call, const char *text, int n)
{
    add_in(call, WEFT_I32, text, 1);
    const weft_view *taps = &call->in[call->n_in - 1];
    for (int64_t i = 0; i < weft_view_count(taps); i++)
        ((int32_t *)taps->data)[i] = (int32_t)random_below((uint32_t)n + 2) - 1;
}

static void check_max_pool(const weft_pool_attributes *attributes, const char *x, const char *y)
{
    for (int d = 0; d < N_WIDE; d++) {
        weft_call call = {.attributes = attributes};
        add_in(&call, wide[d], x, 1);
        for (int64_t i = 0; i < weft_view_count(&call.in[0]); i++)
            if (weft_dtype_is_float(wide[d]) && random_below(9) == 0)
                weft_dtype_put(wide[d], call.in[0].data, i, (double)NAN);
        add_out(&call, wide[d], y);
        add_out(&call, WEFT_I32, y);
        check_call("max_pool", &call);
    }
}

static void check_taps(const weft_pool_attributes *attributes, const char *x, const char *y, int n)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        weft_call pick = {.attributes = attributes}, put = {.attributes = attributes};
        add_in(&pick, (weft_dtype)dtype, x, 1);
        add_taps(&pick, y, n);
        add_out(&pick, (weft_dtype)dtype, y);
        check_call("pool_pick", &pick);
        if (!(WEFT_WIDE_DTYPES & WEFT_DTYPE_BIT(dtype))) continue;
        add_in(&put, (weft_dtype)dtype, y, 1);
        add_taps(&put, y, n);
        add_out(&put, (weft_dtype)dtype, x);
        check_call("unpool", &put);
    }
}

static void check_pool(weft_pool_window h, weft_pool_window w, const char *x, const char *y)
{
    const weft_pool_attributes both = {2, {h, w}};
    check_max_pool(&both, x, y);
    check_taps(&both, x, y, (int)(h.taps * w.taps));
}

static void test_pooling(void)
{
    const weft_pool_window halves = {"h", "p", 8, 4, 2, 2, 1, 0},
                           thirds = {"w", "q", 9, 3, 3, 3, 1, 0},
                           laps = {"h", "p", 8, 4, 3, 2, 1, -1},
                           apart = {"w", "q", 9, 7, 2, 1, 3, -1};
    check_pool(halves, thirds, "b:2 h:8 w:9 c:3", "b:2 p:4 q:3 c:3");
    check_pool(halves, thirds, "b:2 c:3 h:8 w:9", "b:2 c:3 p:4 q:3");
    check_pool(laps, apart, "b:2 h:8 c:2 w:9", "b:2 p:4 c:2 q:7");
    check_pool(apart, laps, "h:8 w:9", "p:4 q:7"); /* the numbers of taps go by the windows */
    check_pool(laps, apart, "b:2 h:5/2 w:9", "b:2 p:2/2 q:7");
    check_pool(halves, thirds, "b:0 h:8 w:9", "b:0 p:4 q:3");
}

/* ---- along a dim ------------------------------------------------------------------------------- */

static void check_cumulation(const char *op, const char *text, int64_t size)
{
    for (int way = 0; way < 8; way++)
        for (int d = 0; d < N_WIDE; d++) {
            const weft_cumulate_attributes attributes = {"n", size, way % 2 == 1, way / 2 % 2 == 1,
                                                         way / 4 == 1 ? 3 : 0};
            weft_call call = {.attributes = &attributes};
            add_in(&call, wide[d], text, 1);
            if (weft_dtype_is_float(wide[d]) && strcmp(op, "cummax") == 0)
                weft_dtype_put(wide[d], call.in[0].data, weft_view_count(&call.in[0]) / 2,
                               (double)NAN);
            add_out(&call, wide[d], text);
            check_call(op, &call);
        }
}

static void test_cumulations(void)
{
    static const char *const ops[] = {"cumsum", "cumprod", "cummax"};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        check_cumulation(ops[k], "n:7", 7);
        check_cumulation(ops[k], "m:3 n:6 k:40", 6);
        check_cumulation(ops[k], "n:5 m:300", 5);
    }
    check_cumulation("cumsum", "m:3 n:900 k:2", 900);
    check_cumulation("cumsum", "m:0 n:4", 4);
}

int main(void)
{
    if (!open_device()) return weft_test_report();
    RUN(test_conv);
    RUN(test_conv_of_boxes);
    RUN(test_conv_backwards);
    RUN(test_pooling);
    RUN(test_cumulations);
    close_device();
    return weft_test_report();
}
