/* loop_space.c: the iteration space of a loop: neighbouring dims become one where all strides allow, and rows are cut
 * into groups and blocks. See loop_prepared.h.
 */
#include "cpu/loop_prepared.h"

#include <string.h>

enum {
    SHORT_ROW = 64, /* below this several rows without a reduction share a block */
    MOST_WORKED =
        32768 /* elements of all operands and ops together that a block of pieces may have: they stay near */
};

/* ---- collapse -------------------------------------------------------------------------------- */

typedef struct collapsing {
    weft_space *space;
    const weft_loop *loop;
    const weft_loop_segment *segment;
    int first; /* dims before it are not merged with what comes */
} collapsing;

static bool can_merge(const collapsing *c, int d)
{
    const weft_space *s = c->space;
    const int last = s->n_dims - 1;
    const int64_t size = c->segment->size[d];
    if (s->n_dims == c->first) return false;
    for (int k = 0; k < s->n_in; k++)
        if (s->stride[k][last] != c->segment->in[k].stride[d] * size) return false;
    for (int k = 0; k < s->n_ops; k++)
        if (s->index_stride[k][last] != c->segment->index[k].stride[d] * size) return false;
    for (int o = 0; s->is_apart != NULL && o < s->n_out; o++)
        if (s->is_apart[o] && s->out_stride[o][last] != c->segment->out_stride[o][d] * size)
            return false;
    return true;
}

static void add_dim(collapsing *c, int d)
{
    weft_space *s = c->space;
    if (can_merge(c, d))
        s->size[s->n_dims - 1] *= c->segment->size[d];
    else
        s->size[s->n_dims++] = c->segment->size[d];
    for (int k = 0; k < s->n_in; k++)
        s->stride[k][s->n_dims - 1] = c->segment->in[k].stride[d];
    for (int k = 0; k < s->n_ops; k++)
        s->index_stride[k][s->n_dims - 1] = c->segment->index[k].stride[d];
    for (int o = 0; s->is_apart != NULL && o < s->n_out; o++)
        s->out_stride[o][s->n_dims - 1] = c->segment->out_stride[o][d];
}

/* One element: it is next to itself. */
static void add_dim_of_one(collapsing *c)
{
    weft_space *s = c->space;
    for (int k = 0; k < s->n_in; k++)
        s->stride[k][s->n_dims] = 1;
    for (int o = 0; s->is_apart != NULL && o < s->n_out; o++)
        s->out_stride[o][s->n_dims] = 1;
    s->size[s->n_dims++] = 1;
}

/* A row of what lies apart is contiguous. */
static bool has_row_apart(const weft_space *s)
{
    for (int o = 0; s->is_apart != NULL && o < s->n_out; o++)
        if (s->is_apart[o] && s->out_stride[o][s->n_dims - 1] != 1) return false;
    return true;
}

/* Dims [begin, end) of the segment. */
static void add_dims(collapsing *c, int begin, int end)
{
    c->first = c->space->n_dims;
    for (int d = begin; d < end; d++)
        if (c->segment->size[d] != 1) add_dim(c, d);
}

/* The row: the dims that are said to be one; else the last that there is. */
static void collapse(collapsing *c)
{
    weft_space *s = c->space;
    const int n = c->segment->n_dims, row = n - c->segment->n_row_dims;
    add_dims(c, 0, row);
    s->n_outer = s->n_dims;
    if (row < n)
        add_dims(c, row, n);
    else if (s->n_outer > 0 && has_row_apart(s))
        s->n_outer--;
    if (s->n_outer == s->n_dims) add_dim_of_one(c);
}

/* ---- cut ------------------------------------------------------------------------------------- */

/* Whether each op hands its elements on to the next one, in registers (loop_relay.c), and to memory if they are a result. */
static bool is_relayed(const weft_space *s, const weft_loop *loop)
{
    for (int k = 0; k < loop->n_in; k++)
        if (loop->in[k].bytes != sizeof(float)) return false;
    for (int k = 0; k < loop->n_ops; k++) {
        const weft_loop_op *op = &loop->op[k];
        const int before = loop->n_in + k - 1;
        int n_before = 0;
        if (op->relay == NULL || op->n_in > 2 || s->index_stride[k][s->n_dims - 1] != 0)
            return false;
        for (int i = 0; i < op->n_in; i++) {
            if (op->in[i] >= loop->n_in && op->in[i] != before) return false;
            n_before += op->in[i] == before;
        }
        if (k > 0 && n_before != 1) return false;
    }
    return true;
}

/* Pieces of a block where there are no rows: what is done once for a block is no small part of a relay's work. */
enum { LEAST_BLOCKS = 64, MOST_RELAYED = 8 };
static int64_t most_pieces(const weft_space *s, const weft_loop *loop, int64_t n)
{
    if (n < 2 * LEAST_BLOCKS || !is_relayed(s, loop)) return 1;
    return n / LEAST_BLOCKS < MOST_RELAYED ? n / LEAST_BLOCKS : MOST_RELAYED;
}

/* An operand that is one number in a block need not be written out for it. Pieces stay as they are, and with them the bits of sums. */
static int64_t find_within(const weft_space *s)
{
    int64_t within = s->together;
    for (int k = 0; k < s->n_in; k++) {
        int64_t run = 1;
        for (int d = s->n_dims - 1; d >= s->n_outer && s->stride[k][d] == 0; d--)
            run *= s->size[d];
        if (run < within && run % s->piece == 0 && s->together % run == 0) within = run;
    }
    return within;
}

static void cut_row(weft_space *s, const weft_loop *loop, bool has_rows)
{
    s->piece = 1;
    s->within = s->together;
    if (s->row == 0) return;
    s->piece = weft_row_part(s->together);
    if (has_rows) s->within = find_within(s);
    const int64_t n = (s->within + s->piece - 1) / s->piece;
    int64_t most =
        has_rows ? MOST_WORKED / (s->piece * (s->n_in + s->n_ops)) : most_pieces(s, loop, n);
    if (most > WEFT_PARTS) most = WEFT_PARTS;
    if (most < 1) most = 1;
    const int64_t blocks = (n + most - 1) / most;
    s->part = (n + blocks - 1) / blocks * s->piece;
    s->n_parts = s->row / s->within * ((s->within + s->part - 1) / s->part);
}

static int64_t find_together(const weft_space *s, const weft_loop_segment *segment)
{
    int64_t together = 1;
    if (segment->n_piece_dims == 0) return s->row > 0 ? s->row : 1;
    for (int d = segment->n_dims - segment->n_piece_dims; d < segment->n_dims; d++)
        together *= segment->size[d];
    return together > 0 ? together : 1;
}

/* Several rows make a block where they are short; where they are reduced, at most as many as a state has columns. */
static void cut(weft_space *s, const weft_loop *loop, const weft_loop_segment *segment)
{
    const bool has_rows = segment->n_row_dims > 0;
    s->row = s->n_rows = s->rows = 1;
    for (int d = 0; d < s->n_dims; d++)
        *(d < s->n_outer ? &s->n_rows : &s->row) *= s->size[d];
    s->together = find_together(s, segment);
    cut_row(s, loop, has_rows);
    const int64_t most = has_rows ? WEFT_COLUMNS : WEFT_BLOCK;
    if (has_rows || s->row < SHORT_ROW) s->rows = s->row > 0 ? WEFT_BLOCK / s->row : most;
    if (s->rows > most) s->rows = most;
    if (s->is_apart != NULL || s->together < s->row) s->rows = 1;
    if (s->rows > s->n_rows) s->rows = s->n_rows;
    if (s->rows < 1) s->rows = 1;
    s->n_groups = (s->n_rows + s->rows - 1) / s->rows;
    s->cuts = has_rows ? 1 : s->n_parts;
    s->cut = has_rows ? s->row : s->part;
}

void weft_space_cut_row(weft_space *s, int64_t length)
{
    s->cut = length;
    s->cuts = (s->row + length - 1) / length;
}

bool weft_space_row_is_even(const weft_space *s, const int64_t *stride, int64_t step)
{
    for (int d = s->n_dims - 1; d >= s->n_outer; d--) {
        if (stride[d] != step) return false;
        step *= s->size[d];
    }
    return true;
}

bool weft_space_lies_together(const weft_space *s, const int64_t *stride)
{
    int64_t step = 1;
    for (int d = s->n_dims - 1; d >= s->n_outer && step < s->together; d--) {
        if (stride[d] != step) return false;
        step *= s->size[d];
    }
    return true;
}

bool weft_space_blocks_are_even(const weft_space *s, const int64_t *stride)
{
    int64_t size = 1;
    for (int d = s->n_dims - 1; d >= s->n_outer && size < s->within; d--) {
        if (stride[d] != 0) return false;
        size *= s->size[d];
    }
    return true;
}

bool weft_space_rows_are_even(const weft_space *s, const int64_t *stride, int64_t step)
{
    for (int d = s->n_outer - 1; d >= 0; d--) {
        if (stride[d] != step) return false;
        step *= s->size[d];
    }
    return true;
}

bool weft_spans_meet(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a && b && a < b + b_bytes && b < a + a_bytes;
}

bool weft_space_shares(const weft_space *s, int o, int k)
{
    return weft_spans_meet(s->out[o], s->out_bytes[o], s->data[k], s->in_bytes[k]);
}

/* Which results are not contiguous. */
static weft_status find_apart(weft_space *s, const weft_loop_segment *segment, weft_arena *arena,
                              weft_error *error)
{
    const size_t n_out = (size_t)s->n_out;
    for (int o = 0; o < s->n_out; o++) {
        bool is_apart = false;
        for (int d = 0; d < segment->n_dims; d++)
            is_apart = is_apart || segment->out_stride[o][d] != 0;
        if (!is_apart) continue;
        if (s->is_apart == NULL) {
            s->is_apart = weft_arena_take(arena, n_out * sizeof *s->is_apart);
            s->out_stride = weft_arena_take(arena, n_out * sizeof *s->out_stride);
            if (!s->is_apart || !s->out_stride)
                return weft_fail_memory(error, n_out * sizeof *s->out_stride);
        }
        s->is_apart[o] = true;
    }
    if (s->is_apart != NULL && segment->n_row_dims > 0 && segment->n_piece_dims == 0)
        return weft_fail(error, WEFT_INTERNAL, "a loop over rows has a result in parts");
    return WEFT_OK;
}

weft_status weft_space_open(weft_space *s, const weft_loop *loop, const weft_loop_segment *segment,
                            weft_arena *arena, weft_error *error)
{
    const size_t n_in = (size_t)loop->n_in + 1, n_ops = (size_t)loop->n_ops + 1;
    const size_t n_out = (size_t)loop->n_out + 1;
    *s = (weft_space){.n_in = loop->n_in, .n_ops = loop->n_ops, .n_out = loop->n_out};
    s->stride = weft_arena_take(arena, n_in * sizeof *s->stride);
    s->data = weft_arena_take(arena, n_in * sizeof *s->data);
    s->out = weft_arena_copy(arena, segment->out, (size_t)loop->n_out * sizeof *s->out);
    s->in_bytes = weft_arena_take(arena, n_in * sizeof *s->in_bytes);
    s->out_bytes = weft_arena_take(arena, n_out * sizeof *s->out_bytes);
    s->index_stride = weft_arena_take(arena, n_ops * sizeof *s->index_stride);
    s->index_begin = weft_arena_take(arena, n_ops * sizeof *s->index_begin);
    s->index_trip = weft_arena_take(arena, n_ops * sizeof *s->index_trip);
    weft_block_env *env = weft_arena_take(arena, n_ops * sizeof *env);
    if (!s->stride || !s->data || !s->index_stride || !s->index_begin || !s->index_trip || !env ||
        !s->out || !s->in_bytes || !s->out_bytes)
        return weft_fail_memory(error, n_ops * sizeof *env);
    for (int k = 0; k < loop->n_in; k++)
        s->data[k] = segment->in[k].data;
    WEFT_TRY(find_apart(s, segment, arena, error));
    collapse(&(collapsing){s, loop, segment, 0});
    cut(s, loop, segment);
    for (int k = 0; k < loop->n_ops; k++) {
        env[k] = loop->op[k].env;
        s->index_begin[k] = segment->index[k].begin;
        s->index_trip[k] = segment->index[k].trip;
        env[k].stride = s->index_stride[k][s->n_dims - 1];
    }
    s->env = env;
    return WEFT_OK;
}
