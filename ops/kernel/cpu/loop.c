/* loop.c: the one driver of all element-by-element work: broadcasting, strides, threads, fused
 * chains.
 *
 * The iteration space is cut into units of at most WEFT_BLOCK elements that are contiguous in the
 * output: a part of a long row, or several short rows. For each unit every operand is brought into
 * a contiguous block (in place where it already is one), then the ops run one after the other on
 * blocks that stay in the first-level cache. Only the last op writes to memory that is not the
 * lane's own.
 */
#include "kernel.h"

#include <string.h>

typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

enum {
    SHORT_ROW = 64, /* below this several rows share a unit */
    GRAIN = 16384,  /* elements times ops that are worth waking a lane */
    BUFFER =
        WEFT_BLOCK * 8 + 64 /* odd multiple of a line: buffers do not fall on the same cache sets */
};
_Static_assert((WEFT_LOOP_IN + WEFT_LOOP_OPS) * BUFFER <= WEFT_LANE_SCRATCH,
               "a chain must fit a lane");

typedef enum way {
    IN_PLACE,
    REPEATED, /* the same block for every unit that starts at one address */
    GATHERED
} way;

typedef struct plan {
    const weft_loop *loop;
    int n_dims; /* after collapsing; at least 1 */
    int64_t size[WEFT_MAX_DIMS];
    int64_t stride[WEFT_LOOP_IN][WEFT_MAX_DIMS];
    int64_t index_stride[WEFT_LOOP_OPS][WEFT_MAX_DIMS];
    way way[WEFT_LOOP_IN];
    bool by_row[WEFT_LOOP_OPS]; /* the index is not linear across the rows of a unit */
    int buffer[WEFT_LOOP_OPS];  /* scratch of op k's result; the last op has none */
    int64_t row;                /* elements of a row: size of the last dim */
    int64_t n_rows;
    int64_t rows_per_unit;       /* 1 for long rows */
    int64_t units_per_row, part; /* long rows: cut into parts */
    int64_t n_units;
} plan;

typedef struct lane_state {
    char *scratch;
    const void *repeated[WEFT_LOOP_IN]; /* address a REPEATED buffer was filled from */
    int64_t filled[WEFT_LOOP_IN];       /* and how much of it */
} lane_state;

/* ---- the plan -------------------------------------------------------------------------------- */

static bool can_merge(const plan *p, int64_t inner_size, const weft_loop *loop, int d)
{
    const int last = p->n_dims - 1;
    for (int k = 0; k < loop->n_in; k++)
        if (p->stride[k][last] != loop->in[k].stride[d] * inner_size) return false;
    for (int k = 0; k < loop->n_ops; k++)
        if (p->index_stride[k][last] != loop->op[k].index_stride[d] * inner_size) return false;
    return true;
}

static void collapse(plan *p, const weft_loop *loop)
{
    for (int d = 0; d < loop->n_dims; d++) {
        if (loop->size[d] == 1) continue;
        if (p->n_dims > 0 && can_merge(p, loop->size[d], loop, d)) {
            p->size[p->n_dims - 1] *= loop->size[d];
        } else {
            p->size[p->n_dims] = loop->size[d];
            p->n_dims++;
        }
        const int last = p->n_dims - 1;
        for (int k = 0; k < loop->n_in; k++)
            p->stride[k][last] = loop->in[k].stride[d];
        for (int k = 0; k < loop->n_ops; k++)
            p->index_stride[k][last] = loop->op[k].index_stride[d];
    }
    if (p->n_dims == 0) p->size[p->n_dims++] = 1; /* strides are 0 */
}

static void cut_into_units(plan *p)
{
    p->row = p->size[p->n_dims - 1];
    p->n_rows = 1;
    for (int d = 0; d < p->n_dims - 1; d++)
        p->n_rows *= p->size[d];
    if (p->row >= SHORT_ROW) {
        p->rows_per_unit = 1;
        p->units_per_row = (p->row + WEFT_BLOCK - 1) / WEFT_BLOCK;
        /* equal parts, in whole cache lines */
        p->part = ((p->row + p->units_per_row - 1) / p->units_per_row + 15) / 16 * 16;
        p->units_per_row = (p->row + p->part - 1) / p->part;
        p->n_units = p->n_rows * p->units_per_row;
    } else {
        p->rows_per_unit = WEFT_BLOCK / p->row;
        p->units_per_row = 1;
        p->part = p->row;
        p->n_units = (p->n_rows + p->rows_per_unit - 1) / p->rows_per_unit;
    }
}

/* Does a walk over the outer dims see equal (step 0) or evenly spaced rows? */
static bool outer_is_linear(const plan *p, const int64_t *stride, int64_t step)
{
    for (int d = p->n_dims - 2; d >= 0; d--) {
        if (stride[d] != step) return false;
        step *= p->size[d];
    }
    return true;
}

static void choose_ways(plan *p)
{
    const int last = p->n_dims - 1;
    const bool short_rows = p->rows_per_unit > 1;
    for (int k = 0; k < p->loop->n_in; k++) {
        const int64_t *stride = p->stride[k], inner = stride[last];
        if (inner == 1 && (!short_rows || outer_is_linear(p, stride, p->row)))
            p->way[k] = IN_PLACE;
        else if (short_rows ? outer_is_linear(p, stride, 0) : inner == 0)
            p->way[k] = REPEATED;
        else
            p->way[k] = GATHERED;
    }
    for (int k = 0; k < p->loop->n_ops; k++) {
        const int64_t *stride = p->index_stride[k];
        p->by_row[k] = short_rows && !outer_is_linear(p, stride, stride[last] * p->row);
    }
}

/* Results share buffers once their last reader has run: fewer blocks, so that they stay in the
 * first-level cache. */
static void assign_buffers(plan *p)
{
    const weft_loop *loop = p->loop;
    int last_use[WEFT_LOOP_OPS] = {0};
    for (int k = 0; k < loop->n_ops; k++)
        for (int i = 0; i < loop->op[k].n_in; i++)
            if (loop->op[k].in[i] >= loop->n_in) last_use[loop->op[k].in[i] - loop->n_in] = k;
    int owner[WEFT_LOOP_OPS]; /* of each buffer */
    int n_buffers = 0;
    for (int k = 0; k + 1 < loop->n_ops; k++) {
        int b = 0;
        while (b < n_buffers && last_use[owner[b]] >= k)
            b++;
        if (b == n_buffers) n_buffers++;
        owner[b] = k;
        p->buffer[k] = loop->n_in + b;
    }
}

/* ---- one unit -------------------------------------------------------------------------------- */

static void copy_run(void *to, const void *from, int64_t stride, int64_t n, int bytes)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)(n * bytes));
    } else if (bytes == 4) {
        word4 *y = to;
        const word4 *x = from;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i * stride];
    } else {
        word8 *y = to;
        const word8 *x = from;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i * stride];
    }
}

/* Step `at` to the next row. */
static void next_row(const plan *p, int64_t *at)
{
    for (int d = p->n_dims - 2; d >= 0; d--) {
        if (++at[d] < p->size[d]) return;
        at[d] = 0;
    }
}

static int64_t dot(const plan *p, const int64_t *at, const int64_t *stride)
{
    int64_t sum = 0;
    for (int d = 0; d < p->n_dims; d++)
        sum += at[d] * stride[d];
    return sum;
}

typedef struct unit {
    int64_t at[WEFT_MAX_DIMS]; /* coordinates of its first element */
    int64_t n_rows, n;         /* rows and elements of it          */
    int64_t run;               /* elements of one row in it        */
    int64_t begin;             /* linear index in out              */
} unit;

static void locate(const plan *p, int64_t index, unit *u)
{
    int64_t row = index / p->units_per_row * p->rows_per_unit;
    const int64_t skip = index % p->units_per_row * p->part;
    u->n_rows = p->n_rows - row < p->rows_per_unit ? p->n_rows - row : p->rows_per_unit;
    u->run = p->row - skip < p->part ? p->row - skip : p->part;
    u->n = u->n_rows * u->run;
    u->begin = row * p->row + skip;
    u->at[p->n_dims - 1] = skip;
    for (int d = p->n_dims - 2; d >= 0; d--) {
        u->at[d] = row % p->size[d];
        row /= p->size[d];
    }
}

static const void *bring_operand(const plan *p, lane_state *lane, const unit *u, int k)
{
    const weft_loop_operand *in = &p->loop->in[k];
    const int last = p->n_dims - 1;
    const int64_t *stride = p->stride[k];
    const char *from = (const char *)in->data + dot(p, u->at, stride) * in->bytes;
    char *to = lane->scratch + (size_t)k * BUFFER;
    if (p->way[k] == IN_PLACE) return from;
    if (p->way[k] == REPEATED && lane->repeated[k] == from && lane->filled[k] >= u->n) return to;
    lane->repeated[k] = from;
    lane->filled[k] = u->n;
    int64_t at[WEFT_MAX_DIMS];
    memcpy(at, u->at, sizeof at);
    for (int64_t r = 0; r < u->n_rows; r++) {
        from = (const char *)in->data + dot(p, at, stride) * in->bytes;
        copy_run(to + r * u->run * in->bytes, from, stride[last], u->run, in->bytes);
        next_row(p, at);
    }
    return to;
}

static int slot_bytes(const weft_loop *loop, int slot)
{
    return slot < loop->n_in ? loop->in[slot].bytes : loop->op[slot - loop->n_in].bytes;
}

/* Op k on a unit whose rows are not evenly spaced in its index: row by row. */
static void run_by_row(const plan *p, const unit *u, int k, char *y, const void *const *x)
{
    const weft_loop_op *op = &p->loop->op[k];
    weft_block_env env = op->env;
    env.stride = p->index_stride[k][p->n_dims - 1];
    int64_t at[WEFT_MAX_DIMS];
    memcpy(at, u->at, sizeof at);
    for (int64_t r = 0; r < u->n_rows; r++) {
        const void *row[3] = {NULL, NULL, NULL};
        for (int i = 0; i < op->n_in; i++)
            row[i] = (const char *)x[i] + r * u->run * slot_bytes(p->loop, op->in[i]);
        env.index = op->index_begin + dot(p, at, p->index_stride[k]);
        op->block(u->run, y + r * u->run * op->bytes, row, &env);
        next_row(p, at);
    }
}

static void run_unit(const plan *p, lane_state *lane, const unit *u)
{
    const weft_loop *loop = p->loop;
    const void *slot[WEFT_LOOP_IN + WEFT_LOOP_OPS];
    for (int k = 0; k < loop->n_in; k++)
        slot[k] = bring_operand(p, lane, u, k);
    for (int k = 0; k < loop->n_ops; k++) {
        const weft_loop_op *op = &loop->op[k];
        char *y = k == loop->n_ops - 1 ? (char *)loop->out + u->begin * op->bytes
                                       : lane->scratch + (size_t)p->buffer[k] * BUFFER;
        const void *x[3] = {NULL, NULL, NULL};
        for (int i = 0; i < op->n_in; i++)
            x[i] = slot[op->in[i]];
        slot[loop->n_in + k] = y;
        if (p->by_row[k]) {
            run_by_row(p, u, k, y, x);
            continue;
        }
        weft_block_env env = op->env;
        env.index = op->index_begin + dot(p, u->at, p->index_stride[k]);
        env.stride = p->index_stride[k][p->n_dims - 1];
        op->block(u->n, y, x, &env);
    }
}

typedef struct task {
    const plan *plan;
    weft_stream *stream;
} task;

static void run_units(void *argument, int64_t begin, int64_t end, int lane_index)
{
    const task *t = argument;
    lane_state lane = {.scratch = weft_stream_scratch(t->stream, lane_index)};
    for (int64_t i = begin; i < end; i++) {
        unit u;
        locate(t->plan, i, &u);
        run_unit(t->plan, &lane, &u);
    }
}

void weft_loop_run(const weft_loop *loop, weft_stream *stream)
{
    if (loop->n_ops == 0) return;
    for (int d = 0; d < loop->n_dims; d++)
        if (loop->size[d] == 0) return;
    plan p = {.loop = loop};
    collapse(&p, loop);
    cut_into_units(&p);
    choose_ways(&p);
    assign_buffers(&p);
    const int64_t unit_work = (p.rows_per_unit * p.part) * loop->n_ops;
    const int64_t grain = GRAIN / unit_work;
    weft_parallel(stream, p.n_units, grain > 0 ? grain : 1, run_units, &(task){&p, stream});
}
