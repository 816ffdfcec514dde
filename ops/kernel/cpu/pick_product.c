/* pick_product.c: rows times matrices that their ids choose, and what comes back to the matrices.
 *
 * The rows of one matrix are found by counting, taken together so many at a time, and multiplied by BLAS. Which rows are together
 * follows from the ids alone; a matrix's sum is one lane's, in the order of its rows.
 */
#include "cpu/matrix.h"
#include "cpu/nest.h"

#include <string.h>

enum { CHUNK = 128, STRETCH = 256 };

typedef struct choosing {
    const weft_call *call;
    int64_t rows, own;        /* ids; of them one behind the other for each row of x */
    int64_t n_in, n_out;      /* columns of x, of y */
    int64_t first, n_chosen;  /* matrices that are here */
    int64_t chunk, stretches; /* rows at a time; of dw: parts of n_in, a task each */
    size_t bytes;
    const int32_t *id;
    int64_t *begin;  /* [n_chosen + 1] of each matrix, its rows in `row` */
    int64_t *chunks; /* [n_chosen + 1] and its first chunk */
    int32_t *row;    /* [rows] */
    weft_matrix w;   /* the first of them, [in, out] */
    int64_t one;     /* elements of a matrix */
} choosing;

static int64_t size_of(const weft_view *view, int d)
{
    return view->box.end[d] - view->box.begin[d];
}

static choosing plan(const weft_call *call, const weft_view *y, const weft_view *w, int of_in)
{
    const weft_view *x = &call->in[0], *ids = &call->in[2];
    choosing c = {.call = call,
                  .rows = weft_view_count(ids),
                  .own = 1,
                  .n_in = size_of(x, x->shape.n_dims - 1),
                  .n_out = size_of(y, y->shape.n_dims - 1),
                  .first = w->box.begin[0],
                  .n_chosen = size_of(w, 0),
                  .bytes = weft_dtype_bytes(x->dtype),
                  .id = ids->data};
    for (int d = x->shape.n_dims - 1; d < ids->shape.n_dims; d++)
        c.own *= size_of(ids, d);
    const int64_t fit = (int64_t)WEFT_LANE_SCRATCH / ((c.n_in + c.n_out + 1) * (int64_t)c.bytes);
    c.chunk = fit < CHUNK ? fit : CHUNK;
    c.one = c.n_in * c.n_out;
    const int64_t width = of_in == 1 ? c.n_out : c.n_in;
    c.w = (weft_matrix){w->data, of_in == 1 ? width : 1, of_in == 1 ? 1 : width};
    c.stretches = (c.n_in + STRETCH - 1) / STRETCH;
    return c;
}

static int64_t scratch_of(const choosing *c)
{
    return 2 * (c->n_chosen + 1) * (int64_t)sizeof(int64_t) + c->rows * (int64_t)sizeof(int32_t);
}

static int64_t matrix_of(const choosing *c, int64_t row)
{
    const int64_t at = c->id[row] - c->first;
    return at >= 0 && at < c->n_chosen ? at : -1;
}

/* The rows of each matrix together, in their order. */
static void find_rows(choosing *c)
{
    c->begin = c->call->scratch;
    c->chunks = c->begin + c->n_chosen + 1;
    c->row = (int32_t *)(c->chunks + c->n_chosen + 1);
    memset(c->begin, 0, (size_t)(c->n_chosen + 1) * sizeof *c->begin);
    for (int64_t r = 0; r < c->rows; r++)
        if (matrix_of(c, r) >= 0) c->begin[matrix_of(c, r) + 1]++;
    c->chunks[0] = 0;
    for (int64_t m = 0; m < c->n_chosen; m++) {
        c->chunks[m + 1] = c->chunks[m] + (c->begin[m + 1] + c->chunk - 1) / c->chunk;
        c->begin[m + 1] += c->begin[m];
    }
    for (int64_t r = 0; r < c->rows; r++)
        if (matrix_of(c, r) >= 0) c->row[c->begin[matrix_of(c, r)]++] = (int32_t)r;
    for (int64_t m = c->n_chosen; m > 0; m--)
        c->begin[m] = c->begin[m - 1];
    c->begin[0] = 0;
}

/* Columns [from, from + n) of `count` rows of a tensor of rows of `width`, each the `own`-th part of what is numbered. */
static void take(const choosing *c, char *to, const int32_t *row, int64_t count, const char *of,
                 int64_t own, int64_t width, int64_t from, int64_t n)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)(i * n) * c->bytes,
               of + (size_t)(row[i] / own * width + from) * c->bytes, (size_t)n * c->bytes);
}

static char *lane_memory(const choosing *c, int lane)
{
    return weft_stream_scratch(c->call->stream, lane);
}

/* ---- rows times matrices ------------------------------------------------------------------------- */

static void multiply_chunk(const choosing *c, int64_t m, int64_t number, char *memory)
{
    const int64_t from = c->begin[m] + (number - c->chunks[m]) * c->chunk;
    const int64_t left = c->begin[m + 1] - from, n = left < c->chunk ? left : c->chunk;
    char *x = memory, *y = x + (size_t)(n * c->n_in) * c->bytes, *to = c->call->out[0].data;
    take(c, x, c->row + from, n, c->call->in[0].data, c->own, c->n_in, 0, c->n_in);
    const weft_matrix w = {(char *)c->w.data + (size_t)(m * c->one) * c->bytes, c->w.row,
                           c->w.column};
    weft_multiply(&(weft_product){.dtype = c->call->out[0].dtype,
                                  .m = n,
                                  .n = c->n_out,
                                  .k = c->n_in,
                                  .alpha = 1,
                                  .a = {x, c->n_in, 1},
                                  .b = w,
                                  .c = {y, c->n_out, 1}});
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)(c->row[from + i] * c->n_out) * c->bytes,
               y + (size_t)(i * c->n_out) * c->bytes, (size_t)c->n_out * c->bytes);
}

static void multiply(void *argument, int64_t begin, int64_t end, int lane)
{
    const choosing *c = argument;
    int64_t m = 0;
    for (int64_t number = begin; number < end; number++) {
        while (number >= c->chunks[m + 1])
            m++;
        multiply_chunk(c, m, number, lane_memory(c, lane));
    }
}

static void clear_others(const choosing *c)
{
    char *to = c->call->out[0].data;
    for (int64_t r = 0; r < c->rows; r++)
        if (matrix_of(c, r) < 0 || c->n_in == 0)
            memset(to + (size_t)(r * c->n_out) * c->bytes, 0, (size_t)c->n_out * c->bytes);
}

static choosing plan_pick(const weft_call *call)
{
    const weft_view *x = &call->in[0], *w = &call->in[1];
    return plan(call, &call->out[0], w,
                weft_shape_find(&w->shape, x->shape.dims[x->shape.n_dims - 1].name));
}

static bool takes_pick(const weft_call *call)
{
    const choosing c = plan_pick(call);
    return c.chunk > 0 && c.rows <= INT32_MAX;
}

static int64_t scratch_pick(const weft_call *call)
{
    const choosing c = plan_pick(call);
    return scratch_of(&c);
}

void weft_pick_product_cpu(const weft_call *call)
{
    choosing c = plan_pick(call);
    if (weft_view_count(&call->out[0]) == 0) return;
    clear_others(&c);
    if (c.n_in == 0) return;
    find_rows(&c);
    weft_parallel(call->stream, c.chunks[c.n_chosen], weft_grain(c.chunk * c.one), multiply, &c);
}

/* ---- what comes back to matrices ----------------------------------------------------------------- */

static void sum_part(const choosing *c, int64_t m, int64_t part, char *memory)
{
    const int64_t from = part * STRETCH, left = c->n_in - from;
    const int64_t width = left < STRETCH ? left : STRETCH;
    char *to = (char *)c->call->out[0].data + (size_t)(m * c->one + from * c->n_out) * c->bytes;
    if (c->begin[m] == c->begin[m + 1]) memset(to, 0, (size_t)(width * c->n_out) * c->bytes);
    for (int64_t r = c->begin[m]; r < c->begin[m + 1]; r += c->chunk) {
        const int64_t rest = c->begin[m + 1] - r, n = rest < c->chunk ? rest : c->chunk;
        char *x = memory, *dy = x + (size_t)(n * width) * c->bytes;
        take(c, x, c->row + r, n, c->call->in[0].data, c->own, c->n_in, from, width);
        take(c, dy, c->row + r, n, c->call->in[1].data, 1, c->n_out, 0, c->n_out);
        weft_multiply(&(weft_product){.dtype = c->call->out[0].dtype,
                                      .m = width,
                                      .n = c->n_out,
                                      .k = n,
                                      .alpha = 1,
                                      .beta = r == c->begin[m] ? 0 : 1,
                                      .a = {x, 1, width},
                                      .b = {dy, c->n_out, 1},
                                      .c = {to, c->n_out, 1}});
    }
}

static void sum(void *argument, int64_t begin, int64_t end, int lane)
{
    const choosing *c = argument;
    for (int64_t i = begin; i < end; i++)
        sum_part(c, i / c->stretches, i % c->stretches, lane_memory(c, lane));
}

static choosing plan_unpick(const weft_call *call)
{
    return plan(call, &call->in[1], &call->out[0], 1);
}

static bool takes_unpick(const weft_call *call)
{
    const choosing c = plan_unpick(call);
    return c.chunk > 0 && c.rows <= INT32_MAX;
}

static int64_t scratch_unpick(const weft_call *call)
{
    const choosing c = plan_unpick(call);
    return scratch_of(&c);
}

void weft_unpick_product_cpu(const weft_call *call)
{
    choosing c = plan_unpick(call);
    if (weft_view_count(&call->out[0]) == 0) return;
    find_rows(&c);
    const int64_t rows = c.rows / c.n_chosen + 1;
    weft_parallel(call->stream, c.n_chosen * c.stretches, weft_grain(rows * STRETCH * c.n_out), sum,
                  &c);
}

const weft_kernel weft_kernel_pick_product = {
    .size = sizeof(weft_kernel),
    .name = "pick_product",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .takes = takes_pick,
    .scratch = scratch_pick,
    .launch = weft_pick_product_cpu,
};
const weft_kernel weft_kernel_unpick_product = {
    .size = sizeof(weft_kernel),
    .name = "unpick_product",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .takes = takes_unpick,
    .scratch = scratch_unpick,
    .launch = weft_unpick_product_cpu,
};
