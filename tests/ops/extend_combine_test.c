/* RANKS: 2 4 */
/* extend_combine_test: combines from outside: what is refused; an op whose split dim is finished by one; one that adds, and
 * so outlives its op; states of two numbers; weft_all_reduce. */
#include "weft/collectives.h"
#include "weft/extend/combine.h"
#include "weft/extend/op.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "weft/research/plan.h"

#include <stdlib.h>

#include "test.h"

static weft_world world;
static weft_combine product, total, range; /* range: states of least and largest */

static void multiply(void *out_, const void *a_, const void *b_, int64_t n)
{
    double *out = out_;
    const double *a = a_, *b = b_;
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] * b[i];
}
static void ones(void *into, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((double *)into)[i] = 1;
}
static void add(void *out_, const void *a_, const void *b_, int64_t n)
{
    double *out = out_;
    const double *a = a_, *b = b_;
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}
static void zeros(void *into, int64_t n)
{
    memset(into, 0, (size_t)n * sizeof(double));
}
static void widen(void *out_, const void *a_, const void *b_, int64_t n)
{
    double *out = out_;
    const double *a = a_, *b = b_;
    for (int64_t i = 0; i < 2 * n; i += 2) {
        out[i] = a[i] < b[i] ? a[i] : b[i];
        out[i + 1] = a[i + 1] > b[i + 1] ? a[i + 1] : b[i + 1];
    }
}
static void empty(void *into, int64_t n)
{
    for (int64_t i = 0; i < 2 * n; i++)
        ((double *)into)[i] = i % 2 ? -INFINITY : INFINITY;
}

static const weft_combine_rule product_rule = {
    sizeof product_rule, "product", 1, false, {[WEFT_F64] = multiply}, {[WEFT_F64] = ones}};
static const weft_combine_rule total_rule = {
    sizeof total_rule, "total", 1, true, {[WEFT_F64] = add}, {[WEFT_F64] = zeros}};
static const weft_combine_rule range_rule = {
    sizeof range_rule, "range", 2, false, {[WEFT_F64] = widen}, {[WEFT_F64] = empty}};

/* ---- ops that reduce x [row, column] over row by one of them --------------------------------- */

typedef struct fold_attributes {
    unsigned combine;
    weft_shape out;
} fold_attributes;
static const weft_field fold_fields[] = {WEFT_FIELD(fold_attributes, combine),
                                         WEFT_FIELD(fold_attributes, out)};
static const weft_attributes fold_described = WEFT_ATTRIBUTES(fold_attributes, fold_fields);

static weft_status infer_fold(weft_site *site, weft_error *error)
{
    const fold_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_float(site, 0, error));
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, attributes->out};
    return WEFT_OK;
}
static void cut_fold(const weft_site *site, weft_factors *factors)
{
    const fold_attributes *attributes = site->attributes;
    weft_factors_by_name(site, (weft_combine)attributes->combine, factors);
}
static const weft_op fold = {.size = sizeof fold,
                             .name = "fold",
                             .attributes = &fold_described,
                             .infer = infer_fold,
                             .factors = cut_fold};

static void launch_fold(const weft_call *call)
{
    const fold_attributes *attributes = call->attributes;
    const weft_combine combine = (weft_combine)attributes->combine;
    const int64_t rows = weft_view_size(&call->in[0], 0), columns = weft_view_size(&call->in[0], 1);
    const int width = weft_combine_width(combine);
    const double *x = call->in[0].data;
    double *y = call->out[0].data, state[2];
    weft_combine_identity(combine, WEFT_F64, y, columns * width);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            state[0] = state[1] = x[r * columns + c];
            weft_combine_into(combine, WEFT_F64, y + c * width, state, width);
        }
}
static const weft_kernel fold_kernel = {.size = sizeof fold_kernel,
                                        .name = "plain",
                                        .dtypes = WEFT_DTYPE_BIT(WEFT_F64),
                                        .launch = launch_fold};

static weft_value fold_by(weft_combine combine, weft_value x)
{
    fold_attributes attributes = {.combine = (unsigned)combine};
    attributes.out = weft_shape_without(weft_shape_of(x), "row");
    if (weft_combine_width(combine) > 1)
        attributes.out.dims[attributes.out.n_dims++] = weft_state_dim(x.graph, combine);
    return weft_emit(x.graph, &fold, &x, 1, &attributes, sizeof attributes);
}

/* ---- programs -------------------------------------------------------------------------------- */

enum { ROWS = 7, COLUMNS = 3 };
static double element(int row, int column)
{
    return 1 + 0.25 * ((row * COLUMNS + column) % 5) - (row == 3 ? 2.5 : 0);
}

static weft_mesh *open_mesh(void)
{
    static const char *const texts[] = {"data:2,model:2", "data:2", "", "data:2,model:2"};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_create(&world, texts[world.n_processes - 1], &mesh, &error), error);
    return mesh;
}

/* Results of `scale` times the fold, under a layout that splits rows; plan_text: the plan, to be freed. */
static void run(weft_combine combine, double scale, const char *rules, double *out, int64_t count,
                char **plan_text)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    weft_graph *graph = weft_graph_create(1);
    double data[ROWS * COLUMNS];
    size_t bytes = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = element(i / COLUMNS, i % COLUMNS);
    weft_value x = weft_input(graph, "x", WEFT_F64, WEFT_DIMS({"row", ROWS}, {"column", COLUMNS}));
    weft_value y = fold_by(combine, x);
    if (scale != 1) y = weft_scale(y, scale);
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error);
    if (program) {
        CHECK_OK(weft_write(program, x, WEFT_F64, data, sizeof data, &error), error);
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read(program, y, WEFT_F64, out, count * (int64_t)sizeof *out, &error), error);
        FILE *file = open_memstream(plan_text, &bytes);
        for (int s = 0; s < weft_plan_n_steps(program); s++) {
            weft_planned_step step;
            CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error);
            const bool exchanges = step.kind == WEFT_STEP_CONVERT && step.axes;
            fprintf(file, "%s ", exchanges ? weft_convert_name(step.collective) : step.op);
        }
        fclose(file);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void test_a_split_dim_is_finished_by_the_combine(void)
{
    static const char *const layouts[] = {"", "row:data", "row:data,column:model",
                                          "row:data+model"};
    for (int l = 0; l < (world.n_processes == 2 ? 2 : 4); l++) {
        double out[COLUMNS];
        char *plan = NULL;
        run(product, 1, layouts[l], out, COLUMNS, &plan);
        for (int c = 0; c < COLUMNS; c++) {
            double expected = 1;
            for (int r = 0; r < ROWS; r++)
                expected *= element(r, c);
            CHECK_CLOSE(out[c], expected, 1e-14);
        }
        if (l == 1) CHECK_TEXT(plan, "fold all_reduce");
        free(plan);
    }
}

static void test_states_of_two_numbers_stay_together(void)
{
    double out[2 * COLUMNS];
    char *plan = NULL;
    run(range, 1, "row:data", out, 2 * COLUMNS, &plan);
    for (int c = 0; c < COLUMNS; c++) {
        double least = INFINITY, largest = -INFINITY;
        for (int r = 0; r < ROWS; r++) {
            least = fmin(least, element(r, c));
            largest = fmax(largest, element(r, c));
        }
        CHECK(out[2 * c] == least && out[2 * c + 1] == largest);
    }
    free(plan);
}

/* scale is linear: what adds may stay partial through it, and a product may not. */
static void test_only_what_adds_outlives_its_op(void)
{
    double out[COLUMNS];
    char *plan = NULL;
    run(total, 2, "row:data", out, COLUMNS, &plan);
    CHECK_TEXT(plan, "fold scale all_reduce");
    free(plan);
    for (int c = 0; c < COLUMNS; c++) {
        double expected = 0;
        for (int r = 0; r < ROWS; r++)
            expected += element(r, c);
        CHECK_CLOSE(out[c], 2 * expected, 1e-14);
    }
    run(product, 2, "row:data", out, COLUMNS, &plan);
    CHECK_TEXT(plan, "fold all_reduce scale");
    free(plan);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void check_refused(const weft_combine_rule *rule, const char *sentence)
{
    weft_error error = {0};
    weft_combine kind;
    CHECK_EQ_INT(weft_extend_combine(rule, &kind, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, sentence);
}

static void test_wrong_combines_are_refused(void)
{
    const weft_combine_rule good = {sizeof good,        "good", 1, false, {[WEFT_F64] = multiply},
                                    {[WEFT_F64] = ones}};
    weft_combine_rule bad;
    check_refused(NULL, "rule is NULL");
    bad = good, bad.size = 8;
    check_refused(&bad, "size is 8");
    bad = good, bad.name = "";
    check_refused(&bad, "combine");
    bad = good, bad.name = "moments";
    check_refused(&bad, "there is a combine moments already");
    bad = good, bad.name = "product";
    check_refused(&bad, "there is a combine product already");
    bad = good, bad.width = 0;
    check_refused(&bad, "width is 0");
    bad = good, bad.width = 65;
    check_refused(&bad, "width is 65");
    bad = good, bad.identity[WEFT_F64] = NULL;
    check_refused(&bad, "only one of combine and identity");
    bad = good, bad.identity[WEFT_F64] = NULL, bad.combine[WEFT_F64] = NULL;
    check_refused(&bad, "no dtype");
    bad = good, bad.is_sum = true;
    check_refused(&bad, "its identity for f64 is not 0");
    bad = good, bad.is_sum = true, bad.width = 2;
    check_refused(&bad, "a sum has one");
}

static void test_their_names_are_known(void)
{
    CHECK(strcmp(weft_combine_name(range), "range") == 0 && weft_combine_width(range) == 2);
    CHECK(weft_combine_is_known(product) && !weft_combine_is_known((weft_combine)(range + 1)));
    CHECK(weft_combine_adds(WEFT_SUM) && weft_combine_adds(total) && !weft_combine_adds(product));
    CHECK(weft_combine_outside(WEFT_SUM) == NULL && weft_combine_outside(product) != NULL);
}

int main(void)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return 1;
    CHECK_OK(weft_extend_combine(&product_rule, &product, &error), error);
    CHECK_OK(weft_extend_combine(&total_rule, &total, &error), error);
    CHECK_OK(weft_extend_combine(&range_rule, &range, &error), error);
    CHECK_OK(weft_extend_op(&fold, &error), error);
    CHECK_OK(weft_extend_kernel("fold", &fold_kernel, &error), error);
    RUN(test_a_split_dim_is_finished_by_the_combine);
    RUN(test_states_of_two_numbers_stay_together);
    RUN(test_only_what_adds_outlives_its_op);
    RUN(test_wrong_combines_are_refused);
    RUN(test_their_names_are_known);
    weft_world_close();
    return weft_test_report();
}
