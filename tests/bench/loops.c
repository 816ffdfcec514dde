/* loops: how near loops come to the memory's own speed, in one interleaved run.
 *
 *     loops [ROWS [ROW [ROUNDS [NAME]]]]     default 1024 3072 15, all; else the loops whose name has NAME in it
 *
 * Streams to compare with: x = a x + b in place, and z = a x + y into other memory, by plain loops on the same lanes.
 * Bytes are those that have to be read and written. The least time of all rounds counts. Last: small loops, one
 * right after the other.
 */
#include "bench.h"
#include "loop.h"
#include "op.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OPS = 24, MOST_IN = 8, SMALL = 64 * 512 };

typedef struct one_op {
    weft_loop_kind kind;
    const weft_op *op; /* elements, rows */
    int n_in, in[3];
    double n0;
    weft_combine combine;      /* reduce */
    const weft_finish *finish; /* finish */
} one_op;

/* Operand k lies: 'e' element by element, 'w' the same row for all, 'r' one number a row. */
typedef struct one_loop {
    const char *name, *in;
    int in_place[3]; /* operand + 1 that result o takes */
    int n_out, out[3], n_ops, n_row_dims;
    one_op op[MOST_OPS];
    double bytes; /* an element */
} one_loop;

#define E(o, ...)                                                                                  \
    {                                                                                              \
        .op = &weft_op_##o, .in = { __VA_ARGS__ }                                                  \
    }
#define R(o, ...)                                                                                  \
    {                                                                                              \
        .kind = WEFT_LOOP_ROWS, .op = &weft_op_##o, .in = { __VA_ARGS__ }                          \
    }
#define N(o, n, ...)                                                                               \
    {                                                                                              \
        .op = &weft_op_##o, .n0 = n, .in = { __VA_ARGS__ }                                         \
    }
#define REDUCE(c, x)                                                                               \
    {                                                                                              \
        .kind = WEFT_LOOP_REDUCE, .combine = c, .in = { x }                                        \
    }
#define FINISH(f, x)                                                                               \
    {                                                                                              \
        .kind = WEFT_LOOP_FINISH, .finish = f, .in = {x}, .n0 = 1e-5                               \
    }

static const one_loop loops[] = {
    {.name = "add",
     .in = "ee",
     .n_out = 1,
     .out = {2},
     .n_ops = 1,
     .op = {E(add, 0, 1)},
     .bytes = 12},
    {.name = "add in place",
     .in = "ee",
     .n_out = 1,
     .in_place = {1},
     .out = {2},
     .n_ops = 1,
     .op = {E(add, 0, 1)},
     .bytes = 12},
    {.name = "add bias",
     .in = "ew",
     .n_out = 1,
     .out = {2},
     .n_ops = 1,
     .op = {E(add, 0, 1)},
     .bytes = 8},
    {.name = "gelu", .in = "e", .n_out = 1, .out = {1}, .n_ops = 1, .op = {E(gelu, 0)}, .bytes = 8},
    {.name = "gelu in place",
     .in = "e",
     .n_out = 1,
     .in_place = {1},
     .out = {1},
     .n_ops = 1,
     .op = {E(gelu, 0)},
     .bytes = 8},
    {.name = "add, gelu, scale, add",
     .in = "eee",
     .n_out = 1,
     .out = {6},
     .n_ops = 4,
     .op = {E(add, 0, 1), E(gelu, 3), N(scale, 0.5, 4), E(add, 5, 2)},
     .bytes = 16},
    {.name = "adamw",
     .in = "eeee",
     .n_out = 3,
     .in_place = {1, 2, 3},
     .out = {17, 6, 10},
     .n_ops = 14,
     .op = {N(scale, 0.9, 1), N(scale, 0.1, 3), E(add, 4, 5),                   /* 6: m */
            N(scale, 0.999, 2), N(scale, 0.001, 3), E(mul, 8, 3), E(add, 7, 9), /* 10: v */
            N(scale, 1.1, 10), E(sqrt, 11), N(shift, 1e-8, 12), E(div, 6, 13), N(scale, 1e-3, 14),
            N(scale, 0.999, 0), E(sub, 16, 15)},
     .bytes = 28},
    {.name = "softmax",
     .in = "e",
     .n_out = 1,
     .out = {6},
     .n_ops = 5,
     .n_row_dims = 1,
     .op = {REDUCE(WEFT_LSE, 0), FINISH(weft_lse_finishes, 1), E(sub, 0, 2), E(sub, 4, 3),
            E(exp, 5)},
     .bytes = 8},
    {.name = "softmax in place",
     .in = "e",
     .n_out = 1,
     .in_place = {1},
     .out = {6},
     .n_ops = 5,
     .n_row_dims = 1,
     .op = {REDUCE(WEFT_LSE, 0), FINISH(weft_lse_finishes, 1), E(sub, 0, 2), E(sub, 4, 3),
            E(exp, 5)},
     .bytes = 8},
    {.name = "layer norm",
     .in = "eww",
     .n_out = 1,
     .out = {9},
     .n_ops = 6,
     .n_row_dims = 1,
     .op = {REDUCE(WEFT_MOMENTS, 0), FINISH(weft_moments_finishes, 3), E(sub, 0, 4), E(mul, 6, 5),
            E(mul, 7, 1), E(add, 8, 2)},
     .bytes = 8},
    {.name = "layer norm gradient",
     .in = "eewrr",
     .n_out = 1,
     .in_place = {2},
     .out = {16},
     .n_ops = 12,
     .n_row_dims = 1,
     .op = {E(mul, 1, 2),
            E(sub, 0, 3),
            E(mul, 6, 4),
            REDUCE(WEFT_SUM, 5),
            E(mul, 5, 7),
            REDUCE(WEFT_SUM, 9),
            {.kind = WEFT_LOOP_ROWS, .op = &weft_op_scale, .n0 = 1e-3, .in = {8}},
            {.kind = WEFT_LOOP_ROWS, .op = &weft_op_scale, .n0 = 1e-3, .in = {10}},
            E(mul, 7, 12),
            E(sub, 5, 11),
            E(sub, 14, 13),
            E(mul, 15, 4)},
     .bytes = 12},
    {.name = "sum of rows",
     .in = "e",
     .n_out = 1,
     .out = {1},
     .n_ops = 1,
     .n_row_dims = 1,
     .op = {REDUCE(WEFT_SUM, 0)},
     .bytes = 4},
};
enum { N_LOOPS = sizeof loops / sizeof *loops };

typedef struct bench {
    int64_t rows, row, bytes; /* of each memory */
    weft_stream *stream;
    weft_arena *arena;
    float *memory[MOST_IN + 4];
    const char *name;
} bench;

static int operands_of(const one_op *op)
{
    if (op->kind == WEFT_LOOP_REDUCE || op->kind == WEFT_LOOP_FINISH) return 1;
    static const weft_op *const two[] = {&weft_op_add, &weft_op_sub, &weft_op_mul, &weft_op_div};
    for (int i = 0; i < 4; i++)
        if (op->op == two[i]) return 2;
    return 1;
}

static weft_status prepare(bench *b, const one_loop *from, const weft_prepared_loop **prepared,
                           weft_error *error)
{
    weft_loop *loop;
    const int n_in = (int)strlen(from->in);
    const weft_loop counts = {
        .n_in = n_in, .n_ops = from->n_ops, .n_out = from->n_out, .n_segments = 1};
    WEFT_TRY(weft_loop_take(b->arena, counts, &loop, error));
    weft_loop_segment *s = &loop->segment[0];
    s->n_dims = 2, s->n_row_dims = from->n_row_dims, s->size[0] = b->rows, s->size[1] = b->row;
    for (int k = 0; k < n_in; k++) {
        loop->in[k] = (weft_loop_in){4, 1};
        s->in[k].data = b->memory[k];
        s->in[k].stride[0] = from->in[k] == 'e' ? b->row : from->in[k] == 'r';
        s->in[k].stride[1] = from->in[k] != 'r';
    }
    for (int k = 0; k < from->n_ops; k++) {
        const one_op *f = &from->op[k];
        weft_loop_op *op = &loop->op[k];
        *op = (weft_loop_op){
            .kind = f->kind, .combine = f->combine, .bytes = 4, .n_out = 1, .n_in = operands_of(f)};
        memcpy(op->in, f->in, sizeof op->in);
        op->env.number[0] = f->n0;
        for (int i = 0; i < 2 && f->op == &weft_op_exp; i++)
            op->difference[i] = k - i; /* of what is before it */
        if (f->op) op->block = f->op->element->block[WEFT_F32][WEFT_F32];
        if (f->op) op->relay = weft_relay_of(f->op->element);
        if (f->finish) op->finish = f->finish[WEFT_F32];
        if (f->finish) op->n_out = 2;
    }
    for (int o = 0; o < from->n_out; o++) {
        loop->out[o] = from->out[o];
        s->out[o] = b->memory[from->in_place[o] ? from->in_place[o] - 1 : MOST_IN + o];
    }
    return weft_loop_prepare(loop, b->arena, prepared, error);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void in_place(void *argument, int64_t begin, int64_t end, int lane)
{
    float *x = ((bench *)argument)->memory[0];
    (void)lane;
    for (int64_t i = begin; i < end; i++)
        x[i] = x[i] * 0.999f + 1e-3f;
}

static void apart(void *argument, int64_t begin, int64_t end, int lane)
{
    const bench *b = argument;
    const float *restrict x = b->memory[0], *restrict y = b->memory[1];
    float *restrict z = b->memory[MOST_IN];
    (void)lane;
    for (int64_t i = begin; i < end; i++)
        z[i] = x[i] * 0.999f + y[i];
}

/* AdamW's seven streams, with one multiplication each. */
static void seven(void *argument, int64_t begin, int64_t end, int lane)
{
    const bench *b = argument;
    float *restrict p = b->memory[0], *restrict m = b->memory[1], *restrict v = b->memory[2];
    const float *restrict g = b->memory[3];
    (void)lane;
    for (int64_t i = begin; i < end; i++) {
        m[i] = m[i] * 0.9f + g[i];
        v[i] = v[i] * 0.9f + g[i];
        p[i] = p[i] * 0.999f + g[i];
    }
}

typedef struct stream_case {
    const char *name;
    weft_piece piece;
    double bytes;
} stream_case;
static const stream_case streams[] = {
    {"x = a x + b", in_place, 8}, {"z = a x + y", apart, 12}, {"p, m, v, g", seven, 28}};
enum { N_STREAMS = 3 };

static void fill(bench *b)
{
    for (int k = 0; k < MOST_IN + 4; k++)
        for (int64_t i = 0; i < b->bytes / 4; i++)
            b->memory[k][i] = (float)((i * 2654435761u >> 7) % 1000) * 1e-3f + 0.01f;
}

static bool is_asked(const bench *b, int loop)
{
    return !b->name || strstr(loops[loop].name, b->name);
}

static weft_status run(bench *b, int rounds, weft_error *error)
{
    const weft_prepared_loop *prepared[N_LOOPS];
    double best[N_LOOPS + N_STREAMS];
    const double count = (double)(b->rows * b->row);
    for (int i = 0; i < N_LOOPS; i++)
        WEFT_TRY(prepare(b, &loops[i], &prepared[i], error));
    for (int i = 0; i < N_LOOPS + N_STREAMS; i++)
        best[i] = 1e9;
    for (int round = 0; round < rounds; round++) {
        fill(b);
        for (int i = 0; i < N_LOOPS + N_STREAMS; i++)
            for (int twice = 0; twice < 2 && (i < N_STREAMS || is_asked(b, i - N_STREAMS));
                 twice++) {
                const double begin = bench_now();
                if (i < N_STREAMS)
                    weft_parallel(b->stream, b->rows * b->row, 16384, streams[i].piece, b);
                else
                    weft_loop_run(prepared[i - N_STREAMS], 1, b->stream);
                const double took = bench_now() - begin;
                if (took < best[i]) best[i] = took;
            }
    }
    printf("%lld x %lld\n", (long long)b->rows, (long long)b->row);
    for (int i = 0; i < N_STREAMS + N_LOOPS; i++) {
        const bool is_stream = i < N_STREAMS;
        if (!is_stream && !is_asked(b, i - N_STREAMS)) continue;
        const double bytes = is_stream ? streams[i].bytes : loops[i - N_STREAMS].bytes;
        const double speed = count * bytes / best[i] * 1e-9;
        printf("%-24s %8.1f us  %6.1f GB/s  %5.2f of x = a x + b  %5.2f of z = a x + y\n",
               is_stream ? streams[i].name : loops[i - N_STREAMS].name, best[i] * 1e6, speed,
               speed / (count * 8e-9 / best[0]), speed / (count * 12e-9 / best[1]));
    }
    return WEFT_OK;
}

static weft_status run_small(bench *b, int64_t n_rows, int64_t n_row, int times, weft_error *error)
{
    const int64_t rows = b->rows, row = b->row;
    b->rows = n_rows, b->row = n_row;
    for (int i = 0; i < N_LOOPS; i++) {
        if (!is_asked(b, i)) continue;
        const weft_prepared_loop *prepared;
        double best = 1e9;
        WEFT_TRY(prepare(b, &loops[i], &prepared, error));
        for (int round = 0; round < 20; round++) {
            const double begin = bench_now();
            for (int k = 0; k < times; k++)
                weft_loop_run(prepared, 1, b->stream);
            const double took = (bench_now() - begin) / times;
            if (took < best) best = took;
        }
        printf("%lld x %lld %-24s %6.0f ns\n", (long long)n_rows, (long long)n_row, loops[i].name,
               best * 1e9);
    }
    b->rows = rows, b->row = row;
    return WEFT_OK;
}

int main(int n_arguments, char **arguments)
{
    weft_error error = {0};
    bench b = {.arena = weft_arena_create()};
    b.rows = n_arguments > 1 ? atoll(arguments[1]) : 1024;
    b.row = n_arguments > 2 ? atoll(arguments[2]) : 3072;
    b.bytes = 4 * (b.rows * b.row > SMALL ? b.rows * b.row : SMALL);
    const int rounds = n_arguments > 3 ? atoi(arguments[3]) : 15;
    b.name = n_arguments > 4 ? arguments[4] : NULL;
    weft_status status = weft_devices[WEFT_CPU]->stream_create(2, &b.stream, &error);
    for (int k = 0; k < MOST_IN + 4 && status == WEFT_OK; k++) {
        void *memory;
        status = weft_devices[WEFT_CPU]->take(b.stream, (size_t)b.bytes, &memory, &error);
        b.memory[k] = memory;
    }
    if (status == WEFT_OK) fill(&b);
    if (status == WEFT_OK) status = run(&b, rounds, &error);
    if (status == WEFT_OK) status = run_small(&b, 2, 2, 20000, &error);
    if (status == WEFT_OK) status = run_small(&b, 64, 512, 200, &error);
    for (int k = 0; k < MOST_IN + 4; k++)
        weft_devices[WEFT_CPU]->give(b.stream, b.memory[k], (size_t)b.bytes);
    weft_devices[WEFT_CPU]->stream_destroy(&b.stream);
    weft_arena_destroy(&b.arena);
    return bench_end("loops", status, &error);
}
