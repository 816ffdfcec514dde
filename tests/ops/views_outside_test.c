/* RANKS: 2 */
/* views_outside_test: outside of scans another name or shape is no step: it is read where its elements lie, and what is read after
 * the run is made in its own place. Where that would not do it is copied: memory that a variable's next value, a loop in place or
 * another result is written to. The numbers are those of every mesh.
 */
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 4}, hidden = {"hidden", 6}, other = {"other", 6},
                      pair = {"pair", 2}, half = {"half", 3}, kind = {"kind", 5};

static weft_value input(weft_oracle_build *b, weft_shape shape)
{
    return weft_oracle_input(b, WEFT_F64, shape, -1.0, 1.0);
}

/* In and out of groups, with gradients. */
static void build_groups(weft_oracle_build *b)
{
    const weft_value x = input(b, WEFT_DIMS(batch, hidden, kind));
    const weft_value gain = input(b, WEFT_DIMS(hidden)), bias = input(b, WEFT_DIMS(hidden));
    weft_value d[2];
    const weft_value y = weft_group_norm(x, gain, bias, hidden, 2, WEFT_DIMS(kind), 1e-5);
    weft_gradients(weft_mean(weft_mul(weft_square(y), x)), WEFT_VALUES(x, gain), d, 0);
    weft_oracle_output(b, y);
    weft_oracle_output(b, d[0]);
    weft_oracle_output(b, d[1]);
}

/* Read in both shapes, before and behind, by loops and products; two results that are one's elements. */
static void build_both(weft_oracle_build *b)
{
    const weft_value x = input(b, WEFT_DIMS(batch, hidden)), w = input(b, WEFT_DIMS(hidden, kind));
    const weft_value h = weft_tanh(x), cut = weft_reshape(h, WEFT_DIMS(batch, pair, half));
    const weft_value named = weft_rename(h, hidden, other);
    weft_oracle_output(b, named);
    weft_oracle_output(b, cut);
    weft_oracle_output(b, weft_einsum(WEFT_DIMS(batch, kind), h, w));
    weft_oracle_output(b, weft_sum(WEFT_DIMS(batch, half), weft_exp(cut)));
    weft_oracle_output(b, weft_einsum(WEFT_DIMS(hidden, other), h, named));
}

/* Loops could be done in place behind a shape that is still read, or is a result. */
static void build_in_place(weft_oracle_build *b)
{
    const weft_value x = input(b, WEFT_DIMS(batch, hidden)), w = input(b, WEFT_DIMS(hidden, other));
    const weft_value p = weft_einsum(WEFT_DIMS(batch, other), x, w);
    const weft_value cut = weft_reshape(p, WEFT_DIMS(batch, pair, half));
    const weft_value next = weft_rename(weft_tanh(p), other, hidden);
    const weft_value q = weft_einsum(WEFT_DIMS(batch, other), next, w);
    const weft_value again = weft_reshape(
        weft_reshape(weft_add(q, p), WEFT_DIMS(batch, pair, half)), WEFT_DIMS(batch, hidden));
    weft_oracle_output(b, cut);
    weft_oracle_output(b, weft_einsum(WEFT_DIMS(batch, other), again, w));
    weft_oracle_output(b, weft_einsum(WEFT_DIMS(batch, pair), cut, weft_sin(cut)));
    weft_oracle_output(b, again);
}

static const weft_oracle_case cases[] = {
    {.name = "groups", .build = build_groups, .layout = "batch:data?,hidden:model?"},
    {.name = "both shapes", .build = build_both, .layout = "batch:data?,hidden:model?"},
    {.name = "in place", .build = build_in_place, .layout = "batch:data?,other:model?"}};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- plans ---------------------------------------------------------------------------------------- */

static int count_copies(const weft_program *program)
{
    weft_error error = {0};
    int n = 0;
    for (int s = 0; program != NULL && s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error);
        n += step.kind == WEFT_STEP_KERNEL &&
             (strcmp(step.op, "reshape") == 0 || strcmp(step.op, "rename") == 0);
    }
    return n;
}

static void test_a_norm_of_groups_is_one_loop(void)
{
    weft_error error = {0};
    weft_program *program = NULL;
    weft_oracle_build b = {.graph = weft_graph_create(3)};
    const weft_value x = input(&b, WEFT_DIMS(batch, hidden, kind));
    const weft_value gain = input(&b, WEFT_DIMS(hidden)), bias = input(&b, WEFT_DIMS(hidden));
    const weft_value y = weft_group_norm(x, gain, bias, hidden, 2, WEFT_DIMS(kind), 1e-5);
    CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(y), NULL, &program, &error), error);
    CHECK_EQ_INT(program != NULL ? weft_plan_n_steps(program) : 0, 1);
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&b.graph), WEFT_OK);
}

/* One of two results that have the same elements is a copy; a third shape would be another. */
static void test_results_do_not_share_memory(void)
{
    weft_error error = {0};
    weft_program *program = NULL;
    weft_oracle_build b = {.graph = weft_graph_create(3)};
    build_both(&b);
    const weft_values values = {b.outputs, b.n_outputs};
    CHECK_OK(weft_compile(oracle.alone, NULL, values, NULL, &program, &error), error);
    CHECK_EQ_INT(count_copies(program), 1);
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&b.graph), WEFT_OK);
}

#include "measured_cases.h"

/* ---- numbers -------------------------------------------------------------------------------------- */

static void test_meshes_agree(void)
{
    for (int c = 0; c < N_CASES; c++)
        weft_oracle_sweep(&oracle, &cases[c], 12);
}

/* All reads of a run see a variable's old value, by whatever name and shape. */
static void test_a_variable_is_read_in_another_shape_before_it_is_written(void)
{
    weft_error error = {0};
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(3);
    const weft_value w =
        weft_variable(graph, "w", WEFT_F64, WEFT_DIMS(hidden), weft_constant_of(1.0));
    const weft_value cut = weft_reshape(w, WEFT_DIMS(pair, half));
    const weft_value product = weft_einsum(WEFT_SCALAR, cut, cut); /* of w w, 6 times */
    const weft_value update = weft_assign(w, weft_shift(w, 1.0));
    const weft_value sum = weft_mul(product, weft_sum(WEFT_SCALAR, weft_rename(w, hidden, other)));
    CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(sum, update), NULL, &program, &error),
             error);
    for (int run = 0; program != NULL && run < 3; run++) {
        double found = 0;
        const double old = 1.0 + run;
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read_scalar(program, sum, &found, &error), error);
        CHECK_CLOSE(found, 36.0 * old * old * old, 1e-15);
    }
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&graph), WEFT_OK);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:2,model:2", "data:3"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_a_norm_of_groups_is_one_loop);
        RUN(test_results_do_not_share_memory);
        RUN(test_what_is_planned_is_measured);
        RUN(test_meshes_agree);
        RUN(test_a_variable_is_read_in_another_shape_before_it_is_written);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
