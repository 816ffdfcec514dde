/* cross_entropy_test: the loss of every option against its formula, the means that users make of it, labels that are
 * ignored, a split dim of classes, and what is refused. */
#include "weft/autodiff.h"
#include "weft/collectives.h"
#include "weft/research/plan.h"
#include "weft/ops.h"
#include "weft/program.h"

#include "test.h"

enum { ROWS = 6, CLASSES = 5 };
static const weft_dim row = {"row", ROWS}, class = {"class", CLASSES};
static const int32_t labels[ROWS] = {3, 0, -100, 4, 1, CLASSES};
static const double class_weights[CLASSES] = {0.5, 2.0, 1.25, 0.0, 3.0},
                    row_weights[ROWS] = {1.0, 0.25, 7.0, -1.0, 0.0, 2.0};
static double logits[ROWS][CLASSES];

static weft_mesh *alone, *two;

/* Which options a case has. */
typedef struct with {
    bool class_weights, row_weights;
    double smoothing, z;
} with;
static const with cases[] = {{false, false, 0, 0},   {true, false, 0, 0},   {false, true, 0, 0},
                             {false, false, 0.1, 0}, {false, false, 1, 0},  {false, false, 0, 0.01},
                             {true, false, 0.3, 0},  {true, true, 0.2, 0.5}};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static bool is_ignored(int i)
{
    return labels[i] < 0 || labels[i] >= CLASSES;
}

static double weight_of(const with *w, int c)
{
    return w->class_weights ? class_weights[c] : 1.0;
}

/* sum over classes of -target_c w_c log p_c, target (1 - s) [c = label] + s / C; as PyTorch documents it. */
static double by_formula(const with *w, int i)
{
    double total = 0, loss = 0;
    if (is_ignored(i)) return 0;
    for (int c = 0; c < CLASSES; c++)
        total += exp(logits[i][c]);
    for (int c = 0; c < CLASSES; c++) {
        const double target = (c == labels[i] ? 1 - w->smoothing : 0) + w->smoothing / CLASSES;
        loss -= target * weight_of(w, c) * log(exp(logits[i][c]) / total);
    }
    loss += w->z * log(total) * log(total);
    return w->row_weights ? row_weights[i] * loss : loss;
}

/* A graph with the loss of a case, its mean over counted rows, and the gradient of that. */
typedef struct built {
    weft_graph *graph;
    weft_value x, y, classes, rows, loss, mean, dx;
    weft_program *program;
} built;

static void build(built *b, const with *w)
{
    weft_graph *g = b->graph = weft_graph_create(1);
    b->x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(row, class));
    b->y = weft_input(g, "y", WEFT_I32, WEFT_DIMS(row));
    b->classes = weft_input(g, "classes", WEFT_F64, WEFT_DIMS(class));
    b->rows = weft_input(g, "rows", WEFT_F64, WEFT_DIMS(row));
    weft_cross_entropy_options options = {.label_smoothing = w->smoothing, .z_loss = w->z};
    if (w->class_weights) options.class_weights = b->classes;
    if (w->row_weights) options.row_weights = b->rows;
    b->loss = weft_cross_entropy_with(b->x, b->y, class, &options);
    weft_value ones = weft_constant(g, WEFT_F64, WEFT_DIMS(class), 1.0);
    weft_value counts = weft_gather(w->class_weights ? b->classes : ones, b->y, class);
    b->mean = weft_div(weft_sum(WEFT_SCALAR, b->loss), weft_sum(WEFT_SCALAR, counts));
    weft_gradients(b->mean, WEFT_VALUES(b->x), &b->dx, 0);
}

static weft_status run(built *b, weft_mesh *mesh, const char *rules, weft_error *error)
{
    weft_layout *layout = NULL;
    WEFT_TRY(weft_layout_create(rules, &layout, error));
    const weft_value all[] = {b->loss, b->mean, b->dx, b->classes, b->rows};
    weft_status status =
        weft_compile(mesh, layout, (weft_values){all, 5}, NULL, &b->program, error);
    weft_layout_destroy(&layout);
    WEFT_TRY(status);
    WEFT_TRY(weft_write(b->program, b->x, WEFT_F64, logits, sizeof logits, error));
    WEFT_TRY(weft_write(b->program, b->y, WEFT_I32, labels, sizeof labels, error));
    WEFT_TRY(
        weft_write(b->program, b->classes, WEFT_F64, class_weights, sizeof class_weights, error));
    WEFT_TRY(weft_write(b->program, b->rows, WEFT_F64, row_weights, sizeof row_weights, error));
    return weft_run(b->program, error);
}

static void check_case(const with *w, weft_mesh *mesh, const char *rules)
{
    built b = {0};
    weft_error error = {0};
    double loss[ROWS], mean = 0, dx[ROWS][CLASSES], sum = 0, count = 0;
    build(&b, w);
    if (CHECK_OK(run(&b, mesh, rules, &error), error)) {
        CHECK_OK(weft_read(b.program, b.loss, WEFT_F64, loss, sizeof loss, &error), error);
        CHECK_OK(weft_read_scalar(b.program, b.mean, &mean, &error), error);
        CHECK_OK(weft_read(b.program, b.dx, WEFT_F64, dx, sizeof dx, &error), error);
        for (int i = 0; i < ROWS; i++) {
            CHECK(fabs(loss[i] - by_formula(w, i)) < 1e-13);
            sum += loss[i];
            if (!is_ignored(i)) count += weight_of(w, labels[i]);
            for (int c = 0; c < CLASSES; c++)
                CHECK(isfinite(dx[i][c]) && (!is_ignored(i) || dx[i][c] == 0));
        }
        CHECK_CLOSE(mean, sum / count, 1e-13);
    }
    weft_program_destroy(&b.program);
    weft_graph_destroy(&b.graph);
}

static void test_losses_and_their_mean_by_the_formula(void)
{
    for (int i = 0; i < N_CASES; i++) {
        check_case(&cases[i], alone, "");
        check_case(&cases[i], two, "class:data");
        check_case(&cases[i], two, "row:data");
    }
}

/* The gradient of the mean of two rows by hand: (p - target) w / sum of w, p softmax. */
static void test_the_gradient_is_softmax_minus_target(void)
{
    const with w = {false, false, 0.1, 0};
    built b = {0};
    weft_error error = {0};
    double dx[ROWS][CLASSES];
    build(&b, &w);
    if (CHECK_OK(run(&b, two, "class:data", &error), error) &&
        CHECK_OK(weft_read(b.program, b.dx, WEFT_F64, dx, sizeof dx, &error), error))
        for (int i = 0; i < ROWS; i++) {
            double total = 0;
            for (int c = 0; c < CLASSES; c++)
                total += exp(logits[i][c]);
            for (int c = 0; c < CLASSES && !is_ignored(i); c++) {
                const double target = (c == labels[i] ? 0.9 : 0) + 0.1 / CLASSES;
                CHECK(fabs(dx[i][c] - (exp(logits[i][c]) / total - target) / 4) < 1e-13);
            }
        }
    weft_program_destroy(&b.program);
    weft_graph_destroy(&b.graph);
}

/* With classes split, what travels is a few numbers a row: never a row of logits. */
static void test_logits_are_never_gathered(void)
{
    const weft_dim vocab = {"vocab", 4096}, batch = {"batch", 8};
    weft_graph *g = weft_graph_create(1);
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_variable(g, "x", WEFT_F32, WEFT_DIMS(batch, vocab), weft_normal(0, 1)), dx;
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(vocab), weft_constant_of(1)), dw;
    weft_value y = weft_input(g, "y", WEFT_I32, WEFT_DIMS(batch));
    weft_value loss = weft_mean(weft_cross_entropy_with(
        x, y, vocab,
        &(weft_cross_entropy_options){.class_weights = w, .label_smoothing = 0.1, .z_loss = 1e-4}));
    weft_gradients(loss, WEFT_VALUES(x), &dx, 0);
    weft_gradients(loss, WEFT_VALUES(w), &dw, 0);
    CHECK_OK(weft_layout_create("vocab:data", &layout, &error), error);
    if (CHECK_OK(weft_compile(two, layout, WEFT_VALUES(loss, dx, dw), NULL, &program, &error),
                 error)) {
        int n_tensors = 0;
        for (int s = 0; s < weft_plan_n_steps(program); s++) {
            weft_planned_step step;
            if (!CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error)) break;
            CHECK(step.wire_bytes <= step.n_in * 8 * 2 * 4);
            n_tensors += step.wire_bytes > 0 ? step.n_in : 0;
        }
        CHECK(n_tensors > 0);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&g);
}

typedef struct wrong {
    weft_dim label_dim, class_dim, row_dim; /* {0}: not passed */
    weft_dtype label_dtype, weight_dtype;
    double smoothing, z;
    const char *says;
} wrong;

static void test_options_that_cannot_be_are_refused(void)
{
    const weft_dim other = {"other", 6}, long_class = {"class", 6};
    const wrong wrongs[] = {
        {row, .label_dtype = WEFT_I32, .smoothing = 1.5,
         .says = "label_smoothing is 1.5; it is from 0 to 1"},
        {row, .label_dtype = WEFT_I32, .smoothing = NAN, .says = "label_smoothing is nan"},
        {row, .label_dtype = WEFT_I32, .z = -1, .says = "z_loss is -1; it is a coefficient"},
        {row, .label_dtype = WEFT_I32, .z = NAN, .says = "z_loss is nan"},
        {row, .label_dtype = WEFT_F64,
         .says = "the labels are f64, and labels are i32 here; weft_cast"},
        {other, .label_dtype = WEFT_I32,
         .says = "the labels are [other:6], and of [row:6] they may"},
        {row, class, .label_dtype = WEFT_I32, .weight_dtype = WEFT_F32,
         .says = "the class weights are f32, and weights have the dtype of the logits"},
        {row, row, .label_dtype = WEFT_I32, .weight_dtype = WEFT_F64,
         .says = "the class weights are [row:6], and of [class:5]"},
        {row, long_class, .label_dtype = WEFT_I32, .weight_dtype = WEFT_F64,
         .says = "the class weights are [class:6], and of [class:5]"},
        {row,
         {0},
         other,
         WEFT_I32,
         WEFT_F64,
         .says = "the row weights are [other:6], and of [row:6]"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const wrong *w = &wrongs[i];
        weft_graph *g = weft_graph_create(1);
        weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(row, class));
        weft_value y = weft_input(g, "y", w->label_dtype, WEFT_DIMS(w->label_dim));
        weft_cross_entropy_options options = {.label_smoothing = w->smoothing, .z_loss = w->z};
        if (w->class_dim.name != NULL)
            options.class_weights = weft_input(g, "c", w->weight_dtype, WEFT_DIMS(w->class_dim));
        if (w->row_dim.name != NULL)
            options.row_weights = weft_input(g, "r", w->weight_dtype, WEFT_DIMS(w->row_dim));
        CHECK_EQ_INT(weft_cross_entropy_with(x, y, class, &options).id, 0);
        CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
        CHECK_TEXT(weft_graph_error(g)->message, "cross_entropy_with at cross_entropy_test.c:");
        CHECK_TEXT(weft_graph_error(g)->message, w->says);
        weft_graph_destroy(&g);
    }
    CHECK_EQ_INT(weft_cross_entropy((weft_value){0}, (weft_value){0}, class).id, 0);
}

int main(void)
{
    weft_world world;
    weft_error error = {0};
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < CLASSES; c++)
            logits[i][c] = sin(3.0 * i + 1.7 * c) * 2.5;
    if (CHECK_OK(weft_world_open(&world, &error), error) &&
        CHECK_OK(weft_mesh_create(&world, "data:1", &alone, &error), error) &&
        CHECK_OK(weft_mesh_create(&world, "data:2", &two, &error), error)) {
        RUN(test_losses_and_their_mean_by_the_formula);
        RUN(test_the_gradient_is_softmax_minus_target);
        RUN(test_logits_are_never_gathered);
        RUN(test_options_that_cannot_be_are_refused);
    }
    weft_mesh_destroy(&two);
    weft_mesh_destroy(&alone);
    weft_world_close();
    return weft_test_report();
}
