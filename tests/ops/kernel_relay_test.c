/* Relays: ops over registers have the bits of the same ops block by block, whatever they are, wherever their operands come
 * from and whatever is left over of a block; and what is read again is in memory. */
#include "cpu/loop_prepared.h"
#include "op.h"
#include "kernel_lanes.h"

#include <stdlib.h>

enum { MOST_OPS = 24, N_IN = 5, MOST_SLOTS = N_IN + MOST_OPS, MOST_ELEMENTS = 5 * 1600 };

static const weft_op *const ops[] = {
    &weft_op_add,     &weft_op_sub,    &weft_op_mul,  &weft_op_div,
    &weft_op_maximum, &weft_op_scale,  &weft_op_exp,  &weft_op_square,
    &weft_op_relu,    &weft_op_shift,  &weft_op_gelu, &weft_op_tanh,
    &weft_op_rsqrt,   &weft_op_square, &weft_op_add,  &weft_op_mul};
enum { N_OPS = sizeof ops / sizeof *ops };

static float memory[N_IN][MOST_ELEMENTS], made[2][MOST_OPS][MOST_ELEMENTS];

static int operands_of(const weft_op *op)
{
    static const weft_op *const two[] = {&weft_op_add, &weft_op_sub, &weft_op_mul, &weft_op_div,
                                         &weft_op_maximum};
    for (int i = 0; i < 5; i++)
        if (two[i] == op) return 2;
    return 1;
}

/* Operands: 0 and 1 element by element, 2 the same row for all, 3 one number a row, 4 one number. */
static void set_operands(weft_loop *loop, int64_t rows, int64_t row, bool has_rows)
{
    static const int steps[N_IN][2] = {{1, 1}, {1, 1}, {0, 1}, {1, 0}, {0, 0}};
    weft_loop_segment *s = &loop->segment[0];
    s->n_dims = 2, s->n_row_dims = has_rows, s->size[0] = rows, s->size[1] = row;
    for (int k = 0; k < N_IN; k++) {
        loop->in[k] = (weft_loop_in){4, 1};
        s->in[k].data = memory[k];
        s->in[k].stride[0] = steps[k][0] * (k == 3 ? 1 : row);
        s->in[k].stride[1] = steps[k][1];
    }
}

/* Mostly the last result and one other, so that chains are long; some results are kept, the last always is. */
static void add_random_ops(weft_loop *loop, int n, bool has_rows)
{
    for (int k = 0, slot = N_IN; k < n; k++, slot++) {
        const weft_op *does = ops[random_below(N_OPS)];
        weft_loop_op *op = &loop->op[k];
        *op = (weft_loop_op){.n_in = operands_of(does), .n_out = 1, .bytes = 4};
        for (int i = 0; i < op->n_in; i++)
            op->in[i] = k > 0 && random_below(3) ? slot - 1 : random_below(slot);
        op->block = does->element->block[WEFT_F32][WEFT_F32];
        op->relay = weft_relay_of(does->element);
        op->env.number[0] = 0.75;
        if (has_rows && random_below(6) == 0)
            *op = (weft_loop_op){.kind = WEFT_LOOP_REDUCE,
                                 .combine = WEFT_SUM,
                                 .dtype = WEFT_F32,
                                 .n_in = 1,
                                 .in = {random_below(2)},
                                 .n_out = 1,
                                 .bytes = 4};
        if (k == n - 1 || random_below(4) == 0) loop->out[loop->n_out++] = slot;
    }
}

static void run_loop(weft_loop *loop, int which, bool in_place, int lanes)
{
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    const weft_prepared_loop *prepared;
    weft_loop_segment *s = &loop->segment[0];
    memset(made[which], 0, sizeof made[which]);
    for (int o = 0; o < loop->n_out; o++)
        s->out[o] = made[which][o];
    if (in_place) { /* the last result in the memory of operand 0 */
        memcpy(made[which][loop->n_out - 1], memory[0], sizeof memory[0]);
        s->in[0].data = made[which][loop->n_out - 1];
    }
    if (CHECK_OK(weft_loop_prepare(loop, arena, &prepared, &error), error))
        weft_loop_run(prepared, 1, streams[lanes]);
    s->in[0].data = memory[0];
    weft_arena_destroy(&arena);
}

static bool is_of_elements(const weft_loop *loop, int slot)
{
    return slot < N_IN || loop->op[slot - N_IN].kind == WEFT_LOOP_ELEMENTS;
}

/* Of what is no number the bits are nobody's business. */
static bool are_equal(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && (a[i] == a[i] || b[i] == b[i])) return false;
    return true;
}

static void one_case(int64_t rows, int64_t row, bool has_rows, int n_ops)
{
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    weft_loop *loop;
    const weft_loop counts = {.n_in = N_IN, .n_ops = n_ops, .n_out = n_ops, .n_segments = 1};
    if (CHECK_OK(weft_loop_take(arena, counts, &loop, &error), error)) {
        loop->n_out = 0;
        set_operands(loop, rows, row, has_rows);
        add_random_ops(loop, n_ops, has_rows);
        const bool in_place = random_below(2) && is_of_elements(loop, loop->out[loop->n_out - 1]);
        run_loop(loop, 0, in_place, 1 + random_below(MOST_LANES));
        for (int k = 0; k < n_ops; k++)
            loop->op[k].relay = NULL;
        run_loop(loop, 1, in_place, 1);
        CHECK(are_equal(&made[0][0][0], &made[1][0][0], sizeof made[0] / sizeof(float)));
    }
    weft_arena_destroy(&arena);
}

static void test_registers_have_the_bits_of_blocks(void)
{
    static const int64_t row[] = {1, 7, 64, 255, 256, 300, 384, 511, 512, 513, 768, 1024, 1600};
    for (int k = 0; k < N_IN; k++)
        for (int i = 0; i < MOST_ELEMENTS; i++)
            memory[k][i] = (float)(random_below(4001) - 2000) / 1024.0f;
    for (int i = 0; i < weft_test_cases(1500); i++)
        one_case(1 + random_below(5), row[random_below(13)], random_below(2),
                 1 + random_below(MOST_OPS));
}

/* y = gelu(x 0.75 + row), by relays or by blocks; is it written past the caches? */
static bool run_large(float *y, const float *x, int64_t rows, int64_t row, bool with_relays)
{
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    const weft_loop counts = {.n_in = 2, .n_ops = 3, .n_out = 1, .n_segments = 1};
    static const weft_op *const chain[] = {&weft_op_scale, &weft_op_add, &weft_op_gelu};
    const weft_prepared_loop *prepared;
    bool past = false;
    weft_loop *loop;
    if (CHECK_OK(weft_loop_take(arena, counts, &loop, &error), error)) {
        weft_loop_segment *s = &loop->segment[0];
        s->n_dims = 2, s->size[0] = rows, s->size[1] = row;
        s->in[0] = (weft_loop_operand){x, {row, 1}},
        s->in[1] = (weft_loop_operand){memory[1], {0, 1}};
        for (int k = 0; k < 3; k++)
            loop->op[k] =
                (weft_loop_op){.block = chain[k]->element->block[WEFT_F32][WEFT_F32],
                               .relay = with_relays ? weft_relay_of(chain[k]->element) : NULL,
                               .env.number[0] = 0.75,
                               .n_in = operands_of(chain[k]),
                               .in = {k == 0 ? 0 : k + 1, 1},
                               .n_out = 1,
                               .bytes = 4};
        loop->in[0] = loop->in[1] = (weft_loop_in){4, 1};
        loop->out[0] = 4, s->out[0] = y;
        if (CHECK_OK(weft_loop_prepare(loop, arena, &prepared, &error), error)) {
            weft_loop_run(prepared, 1, streams[2]);
            past = prepared->spaces[0].streams;
        }
    }
    weft_arena_destroy(&arena);
    return past;
}

/* Whether rows begin with a line or not; what is smaller, or made where its operand is, is not. */
static void test_large_results_are_written_past_the_caches(void)
{
    enum { MANY = 2112, LONG = 1024 };
    const size_t n = (size_t)MANY * LONG;
    float *x = aligned_alloc(64, n * sizeof *x), *y = aligned_alloc(64, n * sizeof *y),
          *z = aligned_alloc(64, n * sizeof *z);
    if (CHECK(x && y && z))
        for (int64_t row = LONG - 21; row <= LONG; row += 21) {
            const size_t bytes = (size_t)(MANY * row) * sizeof *x;
            for (size_t i = 0; i < n; i++)
                x[i] = (float)(i % 4001) / 1024.0f - 2.0f;
            memset(y, 0xff, n * sizeof *y);
            CHECK(run_large(y, x, MANY, row, true));
            CHECK(!run_large(z, x, MANY, row, false));
            CHECK(memcmp(y, z, bytes) == 0);
            CHECK(!run_large(y, x, MANY / 2, row, true));
            CHECK(!run_large(x, x, MANY, row, true));
            CHECK(memcmp(x, z, bytes) == 0);
        }
    free(x), free(y), free(z);
}

/* a = 0.75 x, b = 0.75 y, both kept, and a + b: ops that do not go on with each other are one act all the same. */
static void test_ops_of_several_chains_are_one_act(void)
{
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    const weft_loop counts = {.n_in = N_IN, .n_ops = 3, .n_out = 3, .n_segments = 1};
    static const weft_op *const does[] = {&weft_op_scale, &weft_op_scale, &weft_op_add};
    static const int in[][2] = {{0, 0}, {1, 0}, {N_IN, N_IN + 1}};
    const weft_prepared_loop *prepared;
    weft_loop *loop;
    if (CHECK_OK(weft_loop_take(arena, counts, &loop, &error), error)) {
        set_operands(loop, 2, 1600, false);
        for (int k = 0; k < 3; k++) {
            loop->op[k] = (weft_loop_op){.block = does[k]->element->block[WEFT_F32][WEFT_F32],
                                         .relay = weft_relay_of(does[k]->element),
                                         .env.number[0] = 0.75,
                                         .n_in = operands_of(does[k]),
                                         .in = {in[k][0], in[k][1]},
                                         .n_out = 1,
                                         .bytes = 4};
            loop->out[k] = N_IN + k, loop->segment[0].out[k] = made[0][k];
        }
        if (CHECK_OK(weft_loop_prepare(loop, arena, &prepared, &error), error))
            CHECK_EQ_INT(prepared->spaces[0].stages[1].n_acts, 1);
    }
    weft_arena_destroy(&arena);
}

/* An op's leg of every kind stands for its expression, and every op on floats that has one operand or two has legs. */
static void test_ops_have_legs(void)
{
    for (int k = 0; k < N_OPS; k++) {
        const weft_relay *relay = weft_relay_of(ops[k]->element);
        if (!CHECK(relay != NULL)) continue;
        const bool has_two = operands_of(ops[k]) == 2;
        CHECK((relay->leg[WEFT_LEG_ALONE][0] != NULL) == !has_two);
        for (int kind = WEFT_LEG_AND_BLOCK; kind < WEFT_LEG_KINDS; kind++)
            CHECK((relay->leg[kind][0] != NULL) == has_two);
    }
}

/* m = 0.75 m + g and w = w - 0.75 m, each where it lies. The space that it was cut into. */
static int64_t run_update(float *m, float *w, const float *g, int64_t n, bool with_relays,
                          int lanes)
{
    static const weft_op *const chain[] = {&weft_op_scale, &weft_op_add, &weft_op_scale,
                                           &weft_op_sub};
    static const int in[4][2] = {{0}, {3, 1}, {4}, {2, 5}};
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    const weft_loop counts = {.n_in = 3, .n_ops = 4, .n_out = 2, .n_segments = 1};
    const weft_prepared_loop *prepared;
    int64_t part = 0;
    weft_loop *loop;
    if (CHECK_OK(weft_loop_take(arena, counts, &loop, &error), error)) {
        weft_loop_segment *s = &loop->segment[0];
        const void *const operands[] = {m, g, w};
        s->n_dims = 1, s->size[0] = n;
        for (int k = 0; k < 3; k++) {
            loop->in[k] = (weft_loop_in){4, 1};
            s->in[k] = (weft_loop_operand){operands[k], {1}};
        }
        for (int k = 0; k < 4; k++)
            loop->op[k] =
                (weft_loop_op){.block = chain[k]->element->block[WEFT_F32][WEFT_F32],
                               .relay = with_relays ? weft_relay_of(chain[k]->element) : NULL,
                               .env.number[0] = 0.75,
                               .n_in = operands_of(chain[k]),
                               .in = {in[k][0], in[k][1]},
                               .n_out = 1,
                               .bytes = 4};
        loop->out[0] = 4, s->out[0] = m;
        loop->out[1] = 6, s->out[1] = w;
        if (CHECK_OK(weft_loop_prepare(loop, arena, &prepared, &error), error)) {
            weft_loop_run(prepared, 1, streams[lanes]);
            part = prepared->spaces[0].part;
        }
    }
    weft_arena_destroy(&arena);
    return part;
}

/* Where all is one relay a block has several pieces, and the last block what is left. */
static void test_long_blocks_have_the_bits_of_short_ones(void)
{
    enum { LONG = 300 * WEFT_BLOCK + 77 };
    float *x = malloc(5 * (size_t)LONG * sizeof *x);
    if (!CHECK(x != NULL)) return;
    for (int lanes = 1; lanes <= MOST_LANES; lanes++) {
        for (int64_t i = 0; i < LONG; i++) {
            x[i] = x[3 * LONG + i] = (float)(random_below(4001) - 2000) / 1024.0f;
            x[LONG + i] = x[4 * LONG + i] = (float)(random_below(4001) - 2000) / 512.0f;
            x[2 * LONG + i] = (float)(random_below(4001) - 2000) / 256.0f;
        }
        CHECK(run_update(x, x + LONG, x + 2 * LONG, LONG, true, lanes) > WEFT_BLOCK);
        CHECK(run_update(x + 3 * LONG, x + 4 * LONG, x + 2 * LONG, LONG, false, 1) <= WEFT_BLOCK);
        CHECK(memcmp(x, x + 3 * LONG, 2 * (size_t)LONG * sizeof *x) == 0);
    }
    free(x);
}

int main(void)
{
    if (lanes_open()) {
        RUN(test_ops_have_legs);
        RUN(test_registers_have_the_bits_of_blocks);
        RUN(test_ops_of_several_chains_are_one_act);
        RUN(test_long_blocks_have_the_bits_of_short_ones);
        RUN(test_large_results_are_written_past_the_caches);
    }
    lanes_close();
    return weft_test_report();
}
