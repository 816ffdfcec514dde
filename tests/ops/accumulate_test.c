/* accumulate_test: what a scatter_add is added to it begins with, where it lies, and only where nobody else can tell. The
 * gradient of a table that is read and multiplied by is the sum of those of two tables, on every mesh.
 */
#include "ops/compile/passes.h"
#include "ops/run/program.h"
#include "weft/autodiff.h"
#include "weft/ops.h"
#include "weft/scan.h"

#include <stdlib.h>

#include "test.h"

enum { VOCAB = 53, WIDTH = 6, BATCH = 4, SEQ = 5 };
static const weft_dim vocab = {"vocab", VOCAB}, wide = {"embed", WIDTH}, batch = {"batch", BATCH},
                      seq = {"seq", SEQ};

/* Steps that accumulate; and of those, whose result lies where the sum so far did, on every rank. */
typedef struct counts {
    int steps, in_place;
} counts;

static counts count_steps(const weft_plan *plan)
{
    counts n = {0};
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        const uint32_t so_far = step->n_in > 0 ? step->in[step->n_in - 1] : 0;
        if (!weft_step_accumulates(plan, step)) continue;
        const bool is_variable = plan->placed[so_far].home == WEFT_VARIABLE_HOME;
        bool is_in_place = !is_variable || plan->placed[step->out[0]].shares == so_far;
        for (int rank = 0; rank < weft_mesh_n_ranks(plan->mesh) && !is_variable; rank++) {
            weft_memory memory;
            CHECK_OK(weft_plan_memory(plan, rank, arena, &memory, &error), error);
            is_in_place = is_in_place &&
                          memory.offset[step->in[step->n_in - 1]] == memory.offset[step->out[0]];
        }
        n.steps++;
        n.in_place += is_in_place;
    }
    weft_arena_destroy(&arena);
    return n;
}

/* ---- a table of tokens that is the head as well --------------------------------------------------- */

static void feed(weft_program *program, weft_value value, int period)
{
    int32_t data[BATCH * SEQ];
    weft_error error = {0};
    for (int i = 0; i < BATCH * SEQ; i++)
        data[i] = i * i % period; /* some of them several times, some not at all */
    CHECK_OK(weft_write(program, value, WEFT_I32, data, sizeof data, &error), error);
}

/* The gradient of the table, or the sum of those of a table and a head that are equal. */
static counts find_gradient(const char *mesh_text, const char *layout_text, bool is_tied,
                            double *gradient)
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(5);
    weft_value tokens = weft_input(graph, "tokens", WEFT_I32, WEFT_DIMS(batch, seq));
    weft_value table[2], d[2];
    for (int i = 0; i < 2; i++)
        table[i] = i && is_tied ? table[0]
                                : weft_variable(graph, i ? "head" : "table", WEFT_F64,
                                                WEFT_DIMS(vocab, wide), weft_constant_of(0.25));
    weft_value x = weft_tanh(weft_gather(table[0], tokens, vocab));
    weft_value logits = weft_einsum(WEFT_DIMS(batch, seq, vocab), x, table[1]);
    weft_value loss = weft_mean(weft_cross_entropy(logits, tokens, vocab));
    weft_gradients(loss, (weft_values){table, is_tied ? 1 : 2}, d, 0);
    CHECK_OK(weft_mesh_create(&world, mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, (weft_values){d, is_tied ? 1 : 2}, NULL, &program, &error),
             error);
    double part[VOCAB * WIDTH], values[VOCAB * WIDTH];
    for (int i = 0; i < VOCAB * WIDTH; i++)
        values[i] = (double)(i * 29 % 31) / 31 - 0.4, gradient[i] = 0;
    feed(program, tokens, 17);
    for (int i = 0; i < (is_tied ? 1 : 2); i++)
        CHECK_OK(weft_write(program, table[i], WEFT_F64, values, sizeof values, &error), error);
    CHECK_OK(weft_run(program, &error), error);
    for (int i = 0; i < (is_tied ? 1 : 2); i++) {
        CHECK_OK(weft_read(program, d[i], WEFT_F64, part, sizeof part, &error), error);
        for (int k = 0; k < VOCAB * WIDTH; k++)
            gradient[k] += part[k];
    }
    const counts n = count_steps(program->plan);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return n;
}

static void test_a_table_read_and_multiplied_by(void)
{
    static const char *const places[][2] = {{"data:1", ""},
                                            {"data:2", "batch:data"},
                                            {"data:3", "batch:data"},
                                            {"model:2", "vocab:model"},
                                            {"model:2", "embed:model"},
                                            {"data:2,model:2", "batch:data,vocab:model"}};
    double apart[VOCAB * WIDTH], tied[VOCAB * WIDTH];
    const counts none = find_gradient("data:1", "", false, apart);
    CHECK_EQ_INT(none.steps, 0);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        const counts n = find_gradient(places[p][0], places[p][1], true, tied);
        CHECK_EQ_INT(n.steps, 1);
        CHECK_EQ_INT(n.in_place, 1);
        for (int i = 0; i < VOCAB * WIDTH; i++)
            CHECK_CLOSE(tied[i], apart[i], 1e-12);
    }
}

/* ---- when it may be ------------------------------------------------------------------------------- */

typedef struct sums {
    weft_value rows, ids, scattered, product;
} sums;

static int accumulated(weft_value (*build)(const sums *s, weft_value *also))
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_plan *plan = NULL;
    weft_graph *graph = weft_graph_create(1);
    sums s = {.rows = weft_input(graph, "rows", WEFT_F32, WEFT_DIMS(batch, wide)),
              .ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(batch))};
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, vocab));
    s.product = weft_einsum(WEFT_DIMS(vocab, wide), x, s.rows);
    s.scattered = weft_scatter_add(s.rows, s.ids, vocab);
    weft_value values[2] = {0};
    values[0] = build(&s, &values[1]);
    CHECK_OK(weft_mesh_plan("data:1", &mesh, &error), error);
    CHECK_OK(weft_plan_build(mesh, NULL, (weft_values){values, values[1].id ? 2 : 1}, NULL, &plan,
                             &error),
             error);
    const int n = plan ? count_steps(plan).steps : -1;
    weft_plan_destroy(&plan);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return n;
}

static weft_value product_first(const sums *s, weft_value *also)
{
    (void)also;
    return weft_add(s->product, s->scattered);
}

static weft_value product_last(const sums *s, weft_value *also)
{
    (void)also;
    return weft_add(s->scattered, s->product);
}

static weft_value two_scatters(const sums *s, weft_value *also)
{
    (void)also;
    weft_value other = weft_scatter_add(weft_square(s->rows), s->ids, vocab);
    return weft_add(weft_add(s->product, s->scattered), other);
}

static weft_value read_by_others(const sums *s, weft_value *also)
{
    (void)also;
    weft_value sum = weft_add(s->product, s->scattered);
    return weft_mul(sum, weft_exp(s->scattered));
}

static weft_value addend_read_by_others(const sums *s, weft_value *also)
{
    (void)also;
    return weft_mul(weft_add(s->product, s->scattered), s->product);
}

static weft_value product_is_kept(const sums *s, weft_value *also)
{
    *also = s->product;
    return weft_add(s->product, s->scattered);
}

static weft_value scattered_is_kept(const sums *s, weft_value *also)
{
    *also = s->scattered;
    return weft_add(s->product, s->scattered);
}

static weft_value difference(const sums *s, weft_value *also)
{
    (void)also;
    return weft_sub(s->product, s->scattered);
}

static weft_value twice(const sums *s, weft_value *also)
{
    (void)also;
    return weft_add(s->scattered, s->scattered);
}

static weft_value to_an_input(const sums *s, weft_value *also)
{
    (void)also;
    weft_value y = weft_input(s->rows.graph, "y", WEFT_F32, WEFT_DIMS(vocab, wide));
    return weft_add(s->scattered, y);
}

static weft_value spread(const sums *s, weft_value *also)
{
    (void)also;
    return weft_add(weft_sum(WEFT_DIMS(wide), s->product), s->scattered);
}

static void test_only_what_nobody_else_reads(void)
{
    CHECK_EQ_INT(accumulated(product_first), 1);
    CHECK_EQ_INT(accumulated(product_last), 1);
    CHECK_EQ_INT(accumulated(two_scatters), 2);
    CHECK_EQ_INT(accumulated(read_by_others), 0);
    CHECK_EQ_INT(accumulated(addend_read_by_others), 0);
    CHECK_EQ_INT(accumulated(product_is_kept), 0);
    CHECK_EQ_INT(accumulated(scattered_is_kept), 0);
    CHECK_EQ_INT(accumulated(difference), 0);
    CHECK_EQ_INT(accumulated(twice), 0);
    CHECK_EQ_INT(accumulated(to_an_input), 0);
    CHECK_EQ_INT(accumulated(spread), 0);
}

/* ---- sums that are carried ------------------------------------------------------------------------ */

/* What each trip adds to what is carried. */
typedef struct body {
    weft_value carry, x, w;
} body;

static weft_value one_product(const body *b)
{
    return weft_add(b->carry, weft_einsum(WEFT_DIMS(vocab, wide), b->x, b->w));
}

static weft_value two_products(const body *b)
{
    const weft_value one = weft_einsum(WEFT_DIMS(vocab, wide), b->x, b->w);
    const weft_value two = weft_einsum(WEFT_DIMS(vocab, wide), weft_tanh(b->x), b->w);
    return weft_add(b->carry, weft_add(one, two));
}

static weft_value product_read_by_others(const body *b)
{
    const weft_value one = weft_einsum(WEFT_DIMS(vocab, wide), b->x, b->w);
    return weft_add(weft_add(b->carry, one), weft_square(one));
}

static weft_value carry_read_by_others(const body *b)
{
    const weft_value one = weft_einsum(WEFT_DIMS(vocab, wide), b->x, b->w);
    return weft_mul(weft_add(b->carry, one), weft_exp(weft_neg(weft_square(b->carry))));
}

enum { TRIPS = 20 };
static const weft_dim trips = {"trips", TRIPS};

/* The sum over all trips, compiled once or written down; counts of the former. It is guarded by a condition that is true, or its
 * products are done behind the scan, all at once (fission). */
static counts run_body(weft_value (*add)(const body *b), const char *mesh_text,
                       const char *layout_text, bool is_guarded, int64_t unroll, double *sum)
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(5);
    const weft_value xs = weft_input(graph, "xs", WEFT_F64, WEFT_DIMS(trips, batch, vocab));
    const weft_value ws = weft_input(graph, "ws", WEFT_F64, WEFT_DIMS(trips, batch, wide));
    const weft_value zero = weft_constant(graph, WEFT_F64, WEFT_DIMS(vocab, wide), 0.0);
    const weft_value trip = weft_scan_begin(graph, TRIPS);
    const body b = {weft_scan_carry(zero), weft_scan_each(xs, trips), weft_scan_each(ws, trips)};
    if (is_guarded) weft_scan_while(weft_constant(graph, WEFT_I32, WEFT_SCALAR, 1.0));
    weft_scan_next(b.carry, add(&b));
    weft_scan_end(trip);
    const weft_value last = weft_scan_last(b.carry);
    const weft_compile_options options = {.unroll = unroll};
    CHECK_OK(weft_mesh_create(&world, mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, (weft_values){&last, 1}, &options, &program, &error),
             error);
    double *x = calloc(TRIPS * BATCH * VOCAB, sizeof *x);
    for (int i = 0; i < TRIPS * BATCH * VOCAB; i++)
        x[i] = (double)(i * 29 % 31) / 31 - 0.4;
    CHECK_OK(weft_write(program, xs, WEFT_F64, x, TRIPS * BATCH * VOCAB * sizeof *x, &error),
             error);
    CHECK_OK(weft_write(program, ws, WEFT_F64, x, TRIPS * BATCH * WIDTH * sizeof *x, &error),
             error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, last, WEFT_F64, sum, VOCAB * WIDTH * sizeof *sum, &error), error);
    const counts n = count_steps(program->plan);
    free(x);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return n;
}

/* Each product adds right into the memory of what is carried, partial sums too. */
static void test_products_add_to_what_is_carried(void)
{
    static const struct {
        weft_value (*add)(const body *b);
        int steps;
    } cases[] = {{one_product, 1},
                 {two_products, 0}, /* whose sum a loop adds */
                 {product_read_by_others, 0},
                 {carry_read_by_others, 0}};
    static const char *const places[][2] = {{"data:1", ""},
                                            {"data:2", "batch:data"},
                                            {"data:3", "batch:data"},
                                            {"m:2", "vocab:m"},
                                            {"m:2", ""}};
    double once[VOCAB * WIDTH], written[VOCAB * WIDTH];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            run_body(cases[c].add, "data:1", "", false, TRIPS, written);
            for (int is_guarded = 0; is_guarded < 2; is_guarded++) {
                const counts n =
                    run_body(cases[c].add, places[p][0], places[p][1], is_guarded, 1, once);
                CHECK_EQ_INT(n.steps, is_guarded ? cases[c].steps : 0);
                CHECK_EQ_INT(n.in_place, n.steps);
                for (int i = 0; i < VOCAB * WIDTH; i++)
                    CHECK_CLOSE(once[i], written[i], 1e-12);
            }
        }
}

/* ---- which comes first ------------------------------------------------------------------------------ */

/* The sum of a product and of scattered rows, in the order in which they are made; kept: where nothing accumulates, since the rows
 * are wanted as well. */
static counts add_in_order(bool scatters_first, bool is_kept, double *found)
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(5);
    weft_value ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(batch, seq)), made[2];
    weft_value rows = weft_random_normal(graph, WEFT_F64, WEFT_DIMS(batch, seq, wide), 0, 1);
    weft_value x = weft_random_normal(graph, WEFT_F64, WEFT_DIMS(batch, seq, vocab), 0, 1);
    for (int i = 0; i < 2; i++)
        made[i] = scatters_first == (i == 0) ? weft_scatter_add(rows, ids, vocab)
                                             : weft_einsum(WEFT_DIMS(vocab, wide), x, rows);
    const weft_value sum = weft_add(made[0], made[1]), scattered = made[scatters_first ? 0 : 1];
    CHECK_OK(weft_mesh_create(&world, "data:1", &mesh, &error), error);
    CHECK_OK(weft_compile(mesh, NULL, WEFT_VALUES(sum, is_kept ? scattered : sum), NULL, &program,
                          &error),
             error);
    feed(program, ids, 17);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, sum, WEFT_F64, found, VOCAB * WIDTH * sizeof *found, &error),
             error);
    const counts n = count_steps(program->plan);
    weft_program_destroy(&program);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return n;
}

static void test_a_sum_begins_with_what_is_made_first(void)
{
    static double alone[VOCAB * WIDTH], found[VOCAB * WIDTH];
    for (int scatters_first = 0; scatters_first < 2; scatters_first++) {
        CHECK_EQ_INT(add_in_order(scatters_first, true, alone).steps, 0);
        (void)add_in_order(scatters_first, false, found);
        for (int i = 0; i < VOCAB * WIDTH; i++)
            CHECK_CLOSE(found[i], alone[i], 1e-12);
    }
}

/* ---- variables ------------------------------------------------------------------------------------ */

/* What else is read: of the variable as it was, as it becomes, as it was but by somebody who comes later, or nothing. */
typedef enum also_read { NOTHING, OLD_VALUE, NEW_VALUE, OLD_AFTERWARDS } also_read;

/* Rows are added to a variable in some runs: what it is then, and what a reader finds of the last sum, behind it. */
static counts add_rows(const char *mesh_text, const char *layout_text, also_read also, int runs,
                       double found[VOCAB * WIDTH + 1])
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(5);
    weft_value table =
        weft_variable(graph, "table", WEFT_F64, WEFT_DIMS(vocab, wide), weft_formula(0.5, 0.3));
    weft_value ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(batch, seq));
    weft_value rows = weft_gather(weft_square(table), ids, vocab);
    if (also != OLD_VALUE)
        rows = weft_add(weft_cast(ids, WEFT_F64),
                        weft_constant(graph, WEFT_F64, WEFT_DIMS(batch, seq, wide), 0.25));
    weft_value sum = weft_add(table, weft_scatter_add(rows, ids, vocab));
    weft_value token = weft_assign(table, sum);
    weft_value read = weft_sum(WEFT_SCALAR, weft_square(also == OLD_AFTERWARDS ? table : sum));
    weft_value last = also == NEW_VALUE ? sum : read;
    CHECK_OK(weft_mesh_create(&world, mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(read, token, last), NULL, &program, &error),
             error);
    for (int run = 0; run < runs; run++) {
        feed(program, ids, 17 + run);
        CHECK_OK(weft_run(program, &error), error);
    }
    const int64_t bytes = VOCAB * WIDTH * sizeof(double);
    CHECK_OK(weft_read(program, table, WEFT_F64, found, bytes, &error), error);
    CHECK_OK(weft_read_scalar(program, read, &found[VOCAB * WIDTH], &error), error);
    const counts n = count_steps(program->plan);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return n;
}

/* The rows are all that is touched of it, where what reads it as it was comes before, and its new value is nobody's own. */
static void test_rows_are_added_to_a_variable(void)
{
    static const char *const places[][2] = {
        {"data:1", ""}, {"m:2", "vocab:m"}, {"m:3", "embed:m"}, {"m:4", "vocab:m"}, {"m:2", ""}};
    double expected[VOCAB * WIDTH + 1], found[VOCAB * WIDTH + 1];
    for (also_read also = NOTHING; also <= NEW_VALUE; also++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            double *to = p == 0 ? expected : found;
            const counts n = add_rows(places[p][0], places[p][1], also, 2, to);
            CHECK_EQ_INT(n.steps, also != NEW_VALUE);
            CHECK_EQ_INT(n.in_place, n.steps);
            CHECK(to[VOCAB * WIDTH] > 1);
            for (int i = 0; i <= VOCAB * WIDTH; i++)
                CHECK_CLOSE(to[i], expected[i], 1e-10);
            if (also != NEW_VALUE || p > 0) continue;
            add_rows("data:1", "", NOTHING, 2, found);
            for (int i = 0; i <= VOCAB * WIDTH; i++)
                CHECK_CLOSE(found[i], expected[i], 1e-12);
        }
}

/* A reader of the old value finds in the second run what was there after the first. */
static void test_who_reads_the_variable_later_finds_it_as_it_was(void)
{
    double expected[VOCAB * WIDTH + 1], found[VOCAB * WIDTH + 1];
    (void)add_rows("data:1", "", NOTHING, 1, expected);
    CHECK_EQ_INT(add_rows("data:1", "", OLD_AFTERWARDS, 2, found).steps, 0);
    CHECK_CLOSE(found[VOCAB * WIDTH], expected[VOCAB * WIDTH], 1e-10);
}

int main(void)
{
    RUN(test_a_table_read_and_multiplied_by);
    RUN(test_only_what_nobody_else_reads);
    RUN(test_products_add_to_what_is_carried);
    RUN(test_a_sum_begins_with_what_is_made_first);
    RUN(test_rows_are_added_to_a_variable);
    RUN(test_who_reads_the_variable_later_finds_it_as_it_was);
    return weft_test_report();
}
