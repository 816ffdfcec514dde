/* registry_test: kernels found by op, device and dtype; prepared once a step and rank, released once; the sentences of
 * those that are missing or wrong. */
#include "op.h"
#include "program.h"
#include "registry.h"
#include "weft/ops.h"

#include <stdlib.h>

#include "test.h"

static atomic_int n_prepared, n_launched, n_released, n_wrong;
static bool prepare_fails;

typedef struct prepared {
    int64_t count;
    double *beside; /* not of the arena: release gives it back */
} prepared;

static int64_t scratch_of(const weft_call *call)
{
    return 8 * weft_view_count(&call->in[0]);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **made, weft_error *error)
{
    prepared *p = weft_arena_take(arena, sizeof *p);
    const bool has_memory =
        weft_view_count(&call->in[0]) == 0 || (call->in[0].data && call->scratch);
    if (!p) return weft_fail_memory(error, sizeof *p);
    if (!call->stream || !has_memory) atomic_fetch_add(&n_wrong, 1);
    if (prepare_fails && atomic_load(&n_prepared) == 1)
        return weft_fail(error, WEFT_USAGE, "twice: no luck on the second rank");
    p->count = weft_view_count(&call->in[0]);
    p->beside = malloc(sizeof *p->beside);
    *p->beside = 2;
    *made = p;
    atomic_fetch_add(&n_prepared, 1);
    return WEFT_OK;
}

static void launch(const weft_call *call)
{
    const prepared *p = call->prepared;
    double *scratch = call->scratch, *out = call->out[0].data;
    const double *x = call->in[0].data;
    for (int64_t i = 0; i < p->count; i++)
        scratch[i] = x[i] * *p->beside;
    for (int64_t i = 0; i < p->count; i++)
        out[i] = scratch[i];
    atomic_fetch_add(&n_launched, 1);
}

static void release(void *made)
{
    free(((prepared *)made)->beside);
    atomic_fetch_add(&n_released, 1);
}

static void do_nothing(const weft_call *call)
{
    (void)call;
}

static const weft_kernel doubles = {.size = sizeof(weft_kernel),
                                    .name = "doubles",
                                    .device = WEFT_CPU,
                                    .dtypes = WEFT_DTYPE_BIT(WEFT_F64),
                                    .scratch = scratch_of,
                                    .prepare = prepare,
                                    .launch = launch,
                                    .release = release};
static const weft_op twice = {
    .name = "test_twice", .infer = weft_infer_same, .factors = weft_factors_pass};
static const weft_op lonely = {
    .name = "test_lonely", .infer = weft_infer_same, .factors = weft_factors_pass};

/* ---- finding --------------------------------------------------------------------------------- */

static weft_call call_of(weft_dtype dtype, int64_t n)
{
    weft_call call = {.n_in = 1, .n_out = 1};
    call.in[0] = (weft_view){.dtype = dtype, .shape = WEFT_DIMS({"row", n}), .box.end = {n}};
    call.out[0] = call.in[0];
    return call;
}

static bool takes_even(const weft_call *call)
{
    return weft_view_count(&call->in[0]) % 2 == 0;
}

static const weft_kernel *found(const char *op, weft_dtype dtype, int64_t n, int n_could)
{
    const weft_call call = call_of(dtype, n);
    weft_kernel_choice choice;
    weft_error error = {0};
    CHECK_OK(weft_kernel_find(op, WEFT_CPU, &call, &choice, &error), error);
    CHECK_EQ_INT(choice.n_could, n_could);
    return choice.kernel;
}

static void test_the_highest_priority_that_takes_the_call_does_it(void)
{
    static const weft_kernel slow = {
        .name = "slow", .dtypes = WEFT_ANY_DTYPE, .launch = do_nothing};
    static const weft_kernel fast = {.name = "fast",
                                     .dtypes = WEFT_FLOAT_DTYPES,
                                     .priority = 2,
                                     .takes = takes_even,
                                     .launch = do_nothing};
    static const weft_kernel middle = {
        .name = "middle", .dtypes = WEFT_DTYPE_BIT(WEFT_F32), .priority = 1, .launch = do_nothing};
    weft_error error = {0};
    CHECK_OK(weft_kernel_add("test_found", &slow, &error), error);
    CHECK(strcmp(found("test_found", WEFT_F32, 4, 1)->name, "slow") == 0);
    CHECK_OK(weft_kernel_add("test_found", &fast, &error), error);
    CHECK_OK(weft_kernel_add("test_found", &middle, &error), error);
    CHECK(strcmp(found("test_found", WEFT_F32, 4, 3)->name, "fast") == 0);
    CHECK(strcmp(found("test_found", WEFT_F64, 4, 2)->name, "fast") == 0);
    CHECK(strcmp(found("test_found", WEFT_F32, 5, 2)->name, "middle") ==
          0); /* fast does not take it */
    CHECK(strcmp(found("test_found", WEFT_F64, 5, 1)->name, "slow") == 0);
    CHECK(strcmp(found("test_found", WEFT_I32, 4, 1)->name, "slow") == 0);
}

static void test_a_sum_so_far_is_for_kernels_that_take_one(void)
{
    static const weft_kernel plain = {
        .name = "plain", .dtypes = WEFT_ANY_DTYPE, .priority = 2, .launch = do_nothing};
    static const weft_kernel begins = {
        .name = "begins", .dtypes = WEFT_ANY_DTYPE, .accumulates = true, .launch = do_nothing};
    weft_error error = {0};
    weft_kernel_choice choice;
    weft_call call = call_of(WEFT_F32, 4);
    call.accumulates = true;
    CHECK_OK(weft_kernel_add("test_begun", &plain, &error), error);
    CHECK_EQ_INT(weft_kernel_find("test_begun", WEFT_CPU, &call, &choice, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "no kernel that takes these operands");
    weft_error_clear(&error);
    CHECK_OK(weft_kernel_add("test_begun", &begins, &error), error);
    CHECK(strcmp(found("test_begun", WEFT_F32, 4, 2)->name, "plain") == 0);
    CHECK_OK(weft_kernel_find("test_begun", WEFT_CPU, &call, &choice, &error), error);
    CHECK_EQ_INT(choice.n_could, 1);
    CHECK(strcmp(choice.kernel->name, "begins") == 0);
}

static void test_a_missing_kernel_says_what_there_is(void)
{
    static const weft_kernel even = {
        .name = "even", .dtypes = WEFT_FLOAT_DTYPES, .takes = takes_even, .launch = do_nothing};
    weft_call call = call_of(WEFT_I32, 4);
    weft_kernel_choice choice;
    weft_error error = {0};
    CHECK_EQ_INT(weft_kernel_find("test_even", WEFT_CPU, &call, &choice, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "test_even has no kernel for i32 on cpu; there is none at all");
    weft_error_clear(&error);
    CHECK_OK(weft_kernel_add("test_even", &even, &error), error);
    CHECK_EQ_INT(weft_kernel_find("test_even", WEFT_CPU, &call, &choice, &error), WEFT_USAGE);
    CHECK_TEXT(error.message,
               "test_even has no kernel for i32 on cpu; there is even for f32, f64 on cpu");
    weft_error_clear(&error);
    call = call_of(WEFT_F64, 3);
    CHECK_EQ_INT(weft_kernel_find("test_even", WEFT_CPU, &call, &choice, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "no kernel that takes these operands for f64 on cpu");
}

static void check_refused(const char *op, const weft_kernel *kernel, const char *sentence)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_kernel_add(op, kernel, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, sentence);
}

static void test_wrong_kernels_are_refused(void)
{
    const weft_kernel good = {.name = "good", .dtypes = WEFT_ANY_DTYPE, .launch = do_nothing};
    static const weft_kernel there = {
        .name = "there", .dtypes = WEFT_FLOAT_DTYPES, .launch = do_nothing};
    weft_kernel bad = good;
    weft_error error = {0};
    CHECK_OK(weft_kernel_add("test_refused", &there, &error), error);
    check_refused(NULL, &good, "op is NULL");
    check_refused("test_refused", NULL, "kernel is NULL");
    check_refused("a b", &good, "a b");
    bad.launch = NULL;
    check_refused("test_refused", &bad, "launch is NULL");
    bad = good, bad.name = NULL;
    check_refused("test_refused", &bad, "kernel");
    bad = good, bad.dtypes = 0;
    check_refused("test_refused", &bad, "dtypes is 0");
    bad = good, bad.dtypes = 1u << 31;
    check_refused("test_refused", &bad, "dtypes is 0x80000000");
    bad = good, bad.device = (weft_device_kind)7;
    check_refused("test_refused", &bad, "device is 7");
    bad = good, bad.release = release;
    check_refused("test_refused", &bad, "no prepare");
    bad = good, bad.name = "there", bad.priority = 3;
    check_refused("test_refused", &bad, "has a kernel there on cpu");
    check_refused("test_refused", &good,
                  "kernels there and good of test_refused both have priority 0");
    check_refused("einsum", &good, "einsum"); /* Weft's own count too */
}

/* ---- programs -------------------------------------------------------------------------------- */

static weft_value build(weft_graph *graph, const weft_op *op, weft_dtype dtype)
{
    weft_value x = weft_variable(graph, "x", dtype, WEFT_DIMS({"row", 7}), weft_constant_of(3.0));
    return weft_at("twice", "here.c", 12, weft_emit(graph, op, &x, 1, NULL, 0));
}

static weft_mesh *open_mesh(bool is_plan)
{
    static const weft_world alone = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    if (is_plan)
        CHECK_OK(weft_mesh_plan("data:3", &mesh, &error), error);
    else
        CHECK_OK(weft_mesh_create(&alone, "data:3", &mesh, &error), error);
    return mesh;
}

static weft_layout *open_layout(void)
{
    weft_layout *layout = NULL;
    weft_error error = {0};
    CHECK_OK(weft_layout_create("row:data", &layout, &error), error);
    return layout;
}

static void test_a_step_is_prepared_once_a_rank_and_released_once(void)
{
    weft_mesh *mesh = open_mesh(false);
    weft_layout *layout = open_layout();
    weft_graph *graph = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value y = build(graph, &twice, WEFT_F64), z = weft_emit(graph, &twice, &y, 1, NULL, 0);
    double out[7] = {0};
    n_prepared = n_launched = n_released = n_wrong = 0;
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(z), NULL, &program, &error), error);
    CHECK_EQ_INT(n_prepared, 2 * 3);
    for (int run = 0; run < 4; run++)
        CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, z, WEFT_F64, out, sizeof out, &error), error);
    for (int i = 0; i < 7; i++)
        CHECK_CLOSE(out[i], 12.0, 0);
    CHECK_EQ_INT(n_prepared, 2 * 3);
    CHECK_EQ_INT(n_launched, 2 * 3 * 4);
    CHECK_EQ_INT(n_released, 0);
    CHECK_EQ_INT(n_wrong, 0);
    weft_program_destroy(&program);
    CHECK_EQ_INT(n_released, 2 * 3);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void test_scratch_is_planned_and_measured(void)
{
    weft_mesh *mesh = open_mesh(false);
    weft_layout *layout = open_layout();
    weft_graph *graph = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_usage planned, measured;
    weft_planned_step step;
    weft_value y = build(graph, &twice, WEFT_F64);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error);
    CHECK_OK(weft_run(program, &error), error);
    for (int rank = 0; rank < 3; rank++) {
        CHECK_OK(weft_plan_usage(program, rank, &planned, &error), error);
        weft_measured_usage(program, rank, &measured);
        CHECK_EQ_INT(planned.arena_bytes, measured.arena_bytes);
        CHECK_OK(weft_plan_step_at(program, 0, rank, &step, &error), error);
        CHECK_EQ_INT(step.scratch_bytes, 8 * (rank < 2 ? 3 : 1)); /* 7 rows over 3 ranks */
        CHECK(step.kernel && strcmp(step.kernel, "doubles") == 0 && step.n_kernels == 1);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void test_an_error_in_prepare_is_the_compiles(void)
{
    weft_mesh *mesh = open_mesh(false);
    weft_layout *layout = open_layout();
    weft_graph *graph = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value y = build(graph, &twice, WEFT_F64);
    n_prepared = n_released = 0;
    prepare_fails = true;
    CHECK_EQ_INT(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), WEFT_USAGE);
    prepare_fails = false;
    CHECK_TEXT(error.message, "twice: no luck on the second rank");
    CHECK(program == NULL);
    CHECK_EQ_INT(n_prepared, 1);
    CHECK_EQ_INT(n_released, 1); /* what had been prepared */
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* On ranks that run, and where none does. */
static void test_a_step_without_a_kernel_does_not_compile(void)
{
    for (int is_plan = 0; is_plan < 2; is_plan++)
        for (int is_lonely = 0; is_lonely < 2; is_lonely++) {
            weft_mesh *mesh = open_mesh(is_plan);
            weft_layout *layout = open_layout();
            weft_graph *graph = weft_graph_create(1);
            weft_program *program = NULL;
            weft_error error = {0};
            weft_value y = build(graph, is_lonely ? &lonely : &twice, WEFT_F32);
            CHECK_EQ_INT(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error),
                         WEFT_USAGE);
            CHECK_TEXT(error.message,
                       is_lonely ? "twice at here.c:12: test_lonely has no kernel for f32 on cpu; "
                                   "there is none at all"
                                 : "twice at here.c:12: test_twice has no kernel for f32 on cpu; "
                                   "there is doubles for f64 on cpu");
            weft_graph_destroy(&graph);
            weft_layout_destroy(&layout);
            weft_mesh_destroy(&mesh);
        }
}

static void test_the_report_names_the_kernel_where_several_could(void)
{
    static const weft_kernel one = {
        .name = "one", .dtypes = WEFT_FLOAT_DTYPES, .launch = do_nothing};
    static const weft_kernel other = {
        .name = "other", .dtypes = WEFT_FLOAT_DTYPES, .priority = 1, .launch = do_nothing};
    static const weft_op op = {
        .name = "test_several", .infer = weft_infer_same, .factors = weft_factors_pass};
    weft_mesh *mesh = open_mesh(true);
    weft_layout *layout = open_layout();
    weft_graph *graph = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    char *text = NULL;
    size_t bytes = 0;
    CHECK_OK(weft_kernel_add("test_several", &one, &error), error);
    CHECK_OK(weft_kernel_add("test_several", &other, &error), error);
    weft_value y = build(graph, &op, WEFT_F64);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error);
    FILE *file = open_memstream(&text, &bytes);
    CHECK_OK(weft_plan_print(program, file, &error), error);
    fclose(file);
    CHECK_TEXT(text, "test_several of twice at here.c:12: other, of 2\n");
    free(text);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* ---- Weft's own ------------------------------------------------------------------------------ */

static bool is_memory(const weft_op *op)
{
    return op == &weft_op_input || op == &weft_op_variable || op->makes_token;
}

/* What the compiler writes down once for each trip, before it looks for kernels. */
static bool is_of_a_scan(const weft_op *op)
{
    return strncmp(op->name, "scan_", 5) == 0 && !op->makes_token;
}

static bool has_kernel(const char *op, weft_device_kind device)
{
    const char *whose;
    const weft_kernel *kernel;
    for (int k = 0; (kernel = weft_kernel_at(k, &whose)) != NULL; k++)
        if (strcmp(whose, op) == 0 && kernel->device == device) return true;
    return false;
}

static void test_every_op_is_an_element_op_or_expands_or_has_a_kernel(void)
{
    for (int i = 0; i < weft_n_ops; i++) {
        const weft_op *op = weft_ops[i];
        const int n_ways = (op->element != NULL) + op->expands + has_kernel(op->name, WEFT_CPU) +
                           is_memory(op) + is_of_a_scan(op);
        CHECK_EQ_INT(n_ways, 1);
        if (n_ways != 1) fprintf(stderr, "%s\n", op->name);
        CHECK(!op->expands || op->expand != NULL);
    }
}

static void test_every_kernel_is_of_an_op(void)
{
    const char *whose;
    const weft_kernel *kernel;
    for (int k = 0; (kernel = weft_kernel_at(k, &whose)) != NULL; k++) {
        bool is_known = strncmp(whose, "test_", 5) == 0;
        for (int i = 0; i < weft_n_ops; i++)
            is_known = is_known || strcmp(weft_ops[i]->name, whose) == 0;
        CHECK(is_known);
        CHECK(kernel->launch != NULL && kernel->name != NULL && kernel->dtypes != 0);
    }
}

int main(void)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_kernel_add("test_twice", &doubles, &error), error)) return 1;
    RUN(test_the_highest_priority_that_takes_the_call_does_it);
    RUN(test_a_sum_so_far_is_for_kernels_that_take_one);
    RUN(test_a_missing_kernel_says_what_there_is);
    RUN(test_wrong_kernels_are_refused);
    RUN(test_a_step_is_prepared_once_a_rank_and_released_once);
    RUN(test_scratch_is_planned_and_measured);
    RUN(test_an_error_in_prepare_is_the_compiles);
    RUN(test_a_step_without_a_kernel_does_not_compile);
    RUN(test_the_report_names_the_kernel_where_several_could);
    RUN(test_every_op_is_an_element_op_or_expands_or_has_a_kernel);
    RUN(test_every_kernel_is_of_an_op);
    return weft_test_report();
}
