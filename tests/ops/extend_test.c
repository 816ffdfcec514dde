/* RANKS: 2 */
/* extend_test: ops and kernels from outside: what is refused, older and newer structs, what the plan and its digest say of
 * them, and ranks whose versions differ. */
#include "weft/collectives.h"
#include "loop.h"
#include "registry.h"
#include "weft/extend/element.h"
#include "weft/extend/size.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "ops/graph/ir.h"

#include <stdlib.h>

#include "test.h"

static weft_world world;

/* ---- an element op with a gradient ----------------------------------------------------------- */

WEFT_ELEMENT_1(x / (1 + (x < 0 ? -x : x)))

static void gradient(weft_vjp *vjp) /* 1 / (1 + |x|)^2 = (1 - |y|)^2 */
{
    weft_value y = vjp->out[0], size = weft_maximum(y, weft_neg(y));
    vjp->din[0] = weft_mul(vjp->dout[0], weft_square(weft_shift(weft_neg(size), 1.0)));
}

static weft_op softsign = {.size = sizeof(weft_op),
                           .name = "softsign",
                           .version = 1,
                           .infer = weft_infer_same,
                           .factors = weft_factors_pass,
                           .gradient = gradient,
                           .element = &element};

/* ---- an op with attributes and a kernel: y = x + by, along one dim --------------------------- */

typedef struct raise_attributes {
    double by;
    const char *why;
} raise_attributes;
static const weft_field raise_fields[] = {WEFT_FIELD(raise_attributes, by),
                                          WEFT_FIELD(raise_attributes, why)};
static const weft_attributes raise_described = WEFT_ATTRIBUTES(raise_attributes, raise_fields);
static const weft_op raise_op = {.size = sizeof(weft_op),
                                 .name = "raise",
                                 .version = 3,
                                 .attributes = &raise_described,
                                 .infer = weft_infer_same,
                                 .factors = weft_factors_pass};

static void launch_raise(const weft_call *call)
{
    const raise_attributes *attributes = call->attributes;
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    for (int64_t i = 0; i < weft_view_count(&call->in[0]); i++)
        y[i] = x[i] + attributes->by;
}
static const weft_kernel raise_kernel = {.size = sizeof(weft_kernel),
                                         .name = "plain",
                                         .dtypes = WEFT_DTYPE_BIT(WEFT_F64),
                                         .launch = launch_raise};

static weft_value raise_by(weft_value x, double by, const char *why)
{
    const raise_attributes attributes = {by, why};
    return weft_emit(x.graph, &raise_op, &x, 1, &attributes, sizeof attributes);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void check_refused(const weft_op *op, const char *sentence)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_extend_op(op, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, sentence);
}

static void test_wrong_ops_are_refused(void)
{
    static weft_op bad;
    const weft_op good = {.size = sizeof(weft_op),
                          .name = "good",
                          .infer = weft_infer_same,
                          .factors = weft_factors_pass};
    static const weft_field outside = {"x", sizeof(double), &weft_field_number};
    static const weft_attributes too_short = {sizeof(double), 1, &outside};
    check_refused(NULL, "op is NULL");
    bad = good, bad.size = 0;
    check_refused(&bad, "size is 0");
    bad = good, bad.size = SIZE_MAX;
    check_refused(&bad, "size is");
    bad = good, bad.name = NULL;
    check_refused(&bad, "op");
    bad = good, bad.name = "two words";
    check_refused(&bad, "two words");
    bad = good, bad.name = "relu";
    check_refused(&bad, "there is an op relu already");
    bad = good, bad.name = "softsign";
    check_refused(&bad, "there is an op softsign already");
    bad = good, bad.infer = NULL;
    check_refused(&bad, "infer is NULL");
    bad = good, bad.factors = NULL;
    check_refused(&bad, "factors is NULL");
    bad = good, bad.expands = true;
    check_refused(&bad, "expand is NULL");
    bad = good, bad.makes_token = true;
    check_refused(&bad, "tokens");
    static const weft_element no_size = {.index = WEFT_INDEX_LINEAR};
    bad = good, bad.element = &no_size;
    check_refused(&bad, "the size of its element table is 0");
    bad = good, bad.attributes = &too_short;
    check_refused(&bad, "field 0 of its attributes");
}

static void test_wrong_kernels_are_refused(void)
{
    weft_kernel bad = raise_kernel;
    weft_error error = {0};
    bad.name = "other", bad.priority = 1;
    CHECK_EQ_INT(weft_extend_kernel("reise", &bad, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "there is no op reise; did you mean raise?");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_extend_kernel("relu", &bad, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "element by element");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_extend_kernel("normalizer", &bad, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "simpler ops");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_extend_kernel("raise", &raise_kernel, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "raise has a kernel plain on cpu");
}

static weft_status bind_nothing(const weft_loop *loop, weft_loop_part part, weft_stream *stream,
                                weft_arena *arena, void **bound, weft_error *error)
{
    (void)loop, (void)part, (void)stream, (void)arena, (void)error;
    *bound = NULL;
    return WEFT_OK;
}

static void run_nothing(void *bound, uint64_t run, int64_t trip)
{
    (void)bound, (void)run, (void)trip;
}

static void test_wrong_loops_are_refused(void)
{
    weft_error error = {0};
    weft_loop_driver bad = {.device = WEFT_CPU};
    CHECK_EQ_INT(weft_extend_loops(&bad, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "weft_extend_loops");
    weft_error_clear(&error);
    bad.size = sizeof bad;
    CHECK_EQ_INT(weft_extend_loops(&bad, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "no bind, no run");
    weft_error_clear(&error);
    bad.bind = bind_nothing, bad.run = run_nothing;
    CHECK_EQ_INT(weft_extend_loops(&bad, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "something runs loops on cpu already");
}

static void test_an_op_that_was_not_registered_is_the_graphs_error(void)
{
    static const weft_op stray = {.size = sizeof(weft_op),
                                  .name = "stray",
                                  .infer = weft_infer_same,
                                  .factors = weft_factors_pass};
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F64, WEFT_DIMS({"row", 5}));
    CHECK_EQ_INT(weft_emit(graph, &stray, &x, 1, NULL, 0).id, 0);
    CHECK_TEXT(weft_graph_error(graph)->message, "has not been registered");
    weft_graph_destroy(&graph);
}

static weft_status infer_too_many(weft_site *site, weft_error *error)
{
    (void)error;
    site->n_out = WEFT_MAX_OUT + 1;
    for (int o = 0; o < WEFT_MAX_OUT; o++)
        site->out[o] = site->in[0];
    return WEFT_OK;
}

/* A site and a call have room for so many: more are refused, never lost or written past the end. */
static void test_more_operands_or_results_than_there_is_room_for_are_the_graphs_error(void)
{
    static const weft_op many = {.size = sizeof(weft_op),
                                 .name = "many",
                                 .infer = infer_too_many,
                                 .factors = weft_factors_pass};
    weft_error error = {0};
    CHECK_OK(weft_extend_op(&many, &error), error);
    for (int way = 0; way < 3; way++) {
        weft_graph *graph = weft_graph_create(1);
        weft_value in[WEFT_MAX_IN + 1];
        weft_value x = weft_input(graph, "x", WEFT_F64, WEFT_DIMS({"row", 5}));
        for (int i = 0; i <= WEFT_MAX_IN; i++)
            in[i] = x;
        const int n_in = way < 2 ? WEFT_MAX_IN + 1 : 1;
        const weft_value made = way == 0 ? weft_emit_element(&softsign, in, n_in, 0, 0)
                                         : weft_emit(NULL, &many, in, n_in, NULL, 0);
        CHECK_EQ_INT(made.id, 0);
        CHECK_TEXT(weft_graph_error(graph)->message,
                   way < 2 ? "9 operands; there are from 0 to 8"
                           : "its infer says that it has 5 results, or one of no dtype; there are "
                             "from 1 to 4");
        weft_graph_destroy(&graph);
    }
}

/* ---- older and newer ------------------------------------------------------------------------- */

/* A struct as a newer Weft has it: more at the end. */
typedef struct newer_op {
    weft_op op;
    void *more[2];
} newer_op;

static void test_a_newer_struct_is_taken_when_it_says_no_more(void)
{
    static newer_op newer = {{.size = sizeof(newer_op),
                              .name = "newer",
                              .infer = weft_infer_same,
                              .factors = weft_factors_pass,
                              .element = &element},
                             {NULL, NULL}};
    weft_error error = {0};
    newer.more[1] = &newer;
    check_refused(&newer.op, "was compiled for a newer Weft");
    newer.more[1] = NULL;
    CHECK_OK(weft_extend_op(&newer.op, &error), error);
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F64, WEFT_DIMS({"row", 5}));
    CHECK(weft_emit_element(&newer.op, &x, 1, 0, 0).id != 0);
    weft_graph_destroy(&graph);
}

/* One that ends after `factors`, with other things behind it in memory: they are not read. */
static void test_an_older_struct_is_read_up_to_its_size(void)
{
    static weft_op older;
    weft_error error = {0};
    memset(&older, 0xff, sizeof older);
    older.size = offsetof(weft_op, linear);
    older.name = "older";
    older.version = 0;
    older.attributes = NULL;
    older.infer = weft_infer_same;
    older.factors = weft_factors_pass;
    CHECK_OK(weft_extend_op(&older, &error), error);
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F64, WEFT_DIMS({"row", 5}));
    CHECK(weft_emit(graph, &older, &x, 1, NULL, 0).id != 0);
    CHECK_OK(weft_graph_error(graph)->status, *weft_graph_error(graph));
    weft_graph_destroy(&graph);
    older.size = offsetof(weft_op, factors);
    older.name = "oldest";
    check_refused(&older, "size is");
    weft_element table;
    memset(&table, 0xff, sizeof table);
    table.size = offsetof(weft_element, relay);
    CHECK(weft_relay_of(&table) == NULL);
}

static bool takes_none(const weft_call *call)
{
    (void)call;
    return false;
}

/* Padding of structs that were compiled before is not 0. A flag behind it is not set by that; spare bytes that say something are
 * of a newer Weft. */
static void test_padding_says_nothing(void)
{
    static const size_t before = offsetof(weft_kernel, prepares_alike);
    weft_error error = {0};
    weft_kernel kernel;
    const char *op;
    memset(&kernel, 0xff, sizeof kernel);
    memset(&kernel, 0, offsetof(weft_kernel, padding));
    kernel.size = before;
    kernel.name = "padded";
    kernel.dtypes = WEFT_DTYPE_BIT(WEFT_F64);
    kernel.priority = -1;
    kernel.takes = takes_none;
    kernel.launch = launch_raise;
    CHECK_OK(weft_extend_kernel("slice", &kernel, &error), error);
    const weft_kernel *taken;
    for (int k = 0; (taken = weft_kernel_at(k, &op)) != NULL; k++)
        if (strcmp(taken->name, "padded") == 0) break;
    CHECK(taken && !taken->prepares_alike);
    kernel.size = sizeof kernel;
    kernel.name = "spare";
    kernel.priority = -2;
    kernel.prepares_alike = kernel.converts = kernel.rounds = true;
    CHECK_EQ_INT(weft_extend_kernel("slice", &kernel, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "was compiled for a newer Weft");
    memset(kernel.spare, 0, sizeof kernel.spare);
    weft_error_clear(&error);
    CHECK_OK(weft_extend_kernel("slice", &kernel, &error), error);
    for (int k = 0; (taken = weft_kernel_at(k, &op)) != NULL; k++)
        if (strcmp(taken->name, "spare") == 0) break;
    CHECK(taken && taken->prepares_alike && taken->converts && taken->rounds);
}

/* ---- programs -------------------------------------------------------------------------------- */

static weft_status compile(weft_mesh *mesh, const char *rules, weft_value value,
                           weft_program **program, weft_error *error)
{
    weft_layout *layout = NULL;
    WEFT_TRY(weft_layout_create(rules, &layout, error));
    const weft_status status =
        weft_compile(mesh, layout, (weft_values){&value, 1}, NULL, program, error);
    weft_layout_destroy(&layout);
    return status;
}

static weft_mesh *open_mesh(void)
{
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_create(&world, world.n_processes > 1 ? "data:2" : "data:3", &mesh, &error),
             error);
    return mesh;
}

static void test_ops_from_outside_run_split(void)
{
    weft_mesh *mesh = open_mesh();
    weft_graph *graph = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_variable(graph, "x", WEFT_F64, WEFT_DIMS({"row", 7}), weft_constant_of(3));
    weft_value y = raise_by(weft_emit_element(&softsign, &x, 1, 0, 0), 2.0, "it is low");
    double out[7] = {0};
    CHECK_OK(compile(mesh, "row:data", y, &program, &error), error);
    if (program) {
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read(program, y, WEFT_F64, out, sizeof out, &error), error);
    }
    for (int i = 0; i < 7; i++)
        CHECK_CLOSE(out[i], 2.75, 1e-15);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
}

/* The kernel that takes the call with the highest priority, also before one of Weft's own. */
static atomic_int n_slices;
static void count_slice(const weft_call *call)
{
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    for (int64_t i = 0; i < weft_view_count(&call->out[0]); i++)
        y[i] = x[i];
    atomic_fetch_add(&n_slices, 1);
}
static bool takes_short(const weft_call *call)
{
    return call->in[0].shape.n_dims == 1 && weft_view_count(&call->in[0]) < 10;
}

static void test_a_kernel_from_outside_comes_before_wefts_own(void)
{
    static const weft_kernel kernel = {.size = sizeof(weft_kernel),
                                       .name = "counting",
                                       .dtypes = WEFT_DTYPE_BIT(WEFT_F64),
                                       .priority = 1,
                                       .takes = takes_short,
                                       .launch = count_slice};
    weft_mesh *mesh = open_mesh();
    weft_error error = {0};
    CHECK_OK(weft_extend_kernel("slice", &kernel, &error), error);
    for (int is_long = 0; is_long < 2; is_long++) {
        weft_graph *graph = weft_graph_create(1);
        weft_program *program = NULL;
        const weft_dim row = {"row", is_long ? 12 : 6}, first = {"first", 3};
        weft_value x = weft_variable(graph, "x", WEFT_F64, WEFT_DIMS(row), weft_uniform(0.0, 1.0));
        n_slices = 0;
        CHECK_OK(compile(mesh, "", weft_slice(x, row, 0, first), &program, &error), error);
        if (program) CHECK_OK(weft_run(program, &error), error);
        CHECK_EQ_INT(n_slices, is_long ? 0 : weft_mesh_n_local(mesh));
        weft_program_destroy(&program);
        weft_graph_destroy(&graph);
    }
    weft_mesh_destroy(&mesh);
}

/* ---- digests --------------------------------------------------------------------------------- */

static char *text_of(weft_value value)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    weft_graph_print(value.graph, false, file);
    fclose(file);
    return text;
}

static void test_the_graphs_text_has_version_and_attributes(void)
{
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F64, WEFT_DIMS({"row", 5}));
    char *text = text_of(raise_by(x, 0.5, "why not"));
    CHECK_TEXT(text, "= raise version 3(%1) {by=0.5, why=\"why not\"}");
    free(text);
    weft_graph_destroy(&graph);
}

/* Rank 1 has version 2 of an op; or lacks it, and cannot build its graph. */
static void test_ranks_that_differ_in_an_op_are_told_so(void)
{
    if (world.n_processes < 2) return;
    for (int lacks = 0; lacks < 2; lacks++) {
        weft_mesh *mesh = open_mesh();
        weft_graph *graph = weft_graph_create(1);
        weft_program *program = NULL;
        weft_error error = {0};
        static weft_op differing[2];
        weft_op *op = &differing[lacks];
        *op = softsign;
        op->name = lacks ? "lacking" : "differing";
        op->version = 1 + (uint32_t)(world.process);
        if (!lacks || world.process == 0) CHECK_OK(weft_extend_op(op, &error), error);
        weft_value x =
            weft_variable(graph, "x", WEFT_F64, WEFT_DIMS({"row", 7}), weft_constant_of(3));
        weft_value y = weft_emit_element(op, &x, 1, 0, 0);
        CHECK(compile(mesh, "row:data", y, &program, &error) != WEFT_OK);
        CHECK_TEXT(error.message,
                   lacks ? "has not been registered"
                         : "rank 1 computes with these ops from outside: differing version 2; rank "
                           "0 with: differing version 1");
        weft_program_destroy(&program);
        weft_graph_destroy(&graph);
        weft_mesh_destroy(&mesh);
    }
}

int main(void)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return 1;
    CHECK_OK(weft_extend_op(&softsign, &error), error);
    CHECK_OK(weft_extend_op(&raise_op, &error), error);
    CHECK_OK(weft_extend_kernel("raise", &raise_kernel, &error), error);
    RUN(test_wrong_ops_are_refused);
    RUN(test_wrong_kernels_are_refused);
    RUN(test_wrong_loops_are_refused);
    RUN(test_an_op_that_was_not_registered_is_the_graphs_error);
    RUN(test_more_operands_or_results_than_there_is_room_for_are_the_graphs_error);
    RUN(test_a_newer_struct_is_taken_when_it_says_no_more);
    RUN(test_an_older_struct_is_read_up_to_its_size);
    RUN(test_padding_says_nothing);
    RUN(test_ops_from_outside_run_split);
    RUN(test_a_kernel_from_outside_comes_before_wefts_own);
    RUN(test_the_graphs_text_has_version_and_attributes);
    RUN(test_ranks_that_differ_in_an_op_are_told_so);
    weft_world_close();
    return weft_test_report();
}
