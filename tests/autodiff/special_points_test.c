/* special_points_test: gradients and second gradients of every op where values are special: zeros, ones, ties, what underflows.
 *
 *     special_points_test [--say] [NAME]    only cases that begin so
 *
 * Of f = sum(w (y + 0.3 y^2)) of an op's result y, in f64 on one rank:
 * - the Hessian is symmetric;
 * - what the gradient and the Hessian are there lies between what they are close by, on either side and in several directions:
 *   where these agree, it is that. So a mask that has the right value and hides what it depends on is found, whatever it masks.
 * Where sides differ the function has a kink, which tests/oracle/kinks.inc says in words, and no other op has one.
 */
#include "op_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "weft/autodiff.h"

enum { ROWS_TRIED = 16, DIRECTIONS = 6, STEPS = 3, SIDES = 2 };

static weft_oracle oracle;
static const char *only = "";

#define FIRST_STEP 1e-5

/* ---- what operands are --------------------------------------------------------------------------- */

typedef struct filling {
    const char *name;
    int n;
    double values[6];
    /* what is close by is looked at; else values are beyond what steps could be told from */
    bool near;
} filling;

static const filling fillings[] = {
    {"zeros", 1, {0.0}, true},
    {"ones", 1, {1.0}, true},
    {"zeros and ones", 5, {0.0, 1.0, 0.0, 2.0, -1.0}, true},
    {"ties", 3, {0.5, -0.5, 0.5}, true},
    {"one zero", 6, {1.5, 0.0, 0.5, -1.25, 2.0, -0.75}, true},
    {"what underflows", 4, {1e-170, 1.0, -1e-170, 1e-120}, false},
    {"what is infinite", 4, {(double)INFINITY, 1.0, 0.0, (double)-INFINITY}, false},
};
enum { FILLINGS = sizeof fillings / sizeof fillings[0] };

static double special(const filling *f, int k, int64_t i)
{
    return f->values[(int)(weft_oracle_unit(k + 7, i) * f->n)];
}

/* ---- a case ---------------------------------------------------------------------------------------- */

typedef struct slopes {
    const op_case *what;
    const filling *filling;
    weft_oracle_build build;
    weft_program *program;
    bool may_have_kinks;
    int n; /* float operands */
    int input[WEFT_ORACLE_VALUES];
    weft_value vector[WEFT_ORACLE_VALUES], gradient[WEFT_ORACLE_VALUES],
        product[WEFT_ORACLE_VALUES];
    int64_t count[WEFT_ORACLE_VALUES], n_all;
    double *x, *g, *h; /* [n_all] */
} slopes;

static weft_value loss_of(weft_oracle_build *build, weft_value y)
{
    const weft_value weights = weft_oracle_input(build, WEFT_F64, *weft_shape_of(y), 0.5, 1.5);
    const weft_value bent = weft_add(y, weft_scale(weft_square(y), 0.3));
    return weft_sum(WEFT_SCALAR, weft_mul(weights, bent));
}

static void build_case(slopes *s)
{
    weft_oracle_build *b = &s->build;
    weft_value of[WEFT_ORACLE_VALUES], loss, y = s->what->build(b, WEFT_F64);
    for (int k = 0; k < b->n_inputs; k++) {
        if (!weft_dtype_is_float(weft_dtype_of(b->operands[k]))) continue;
        s->input[s->n] = k, of[s->n++] = b->operands[k];
    }
    loss = loss_of(b, y);
    for (int k = 0; k < b->n_others; k++)
        if (weft_dtype_is_float(weft_dtype_of(b->others[k])))
            loss = weft_add(loss, loss_of(b, b->others[k]));
    for (int k = 0; k < s->n; k++) {
        const weft_shape shape = *weft_shape_of(of[k]);
        s->vector[k] = weft_oracle_input(b, WEFT_F64, shape, -1.0, 1.0);
        s->count[k] = weft_shape_count(&shape), s->n_all += s->count[k];
    }
    weft_gradients(loss, (weft_values){of, s->n}, s->gradient, WEFT_ZEROS_ALLOWED);
    weft_hessian_vector(loss, (weft_values){of, s->n}, (weft_values){s->vector, s->n}, s->product,
                        WEFT_ZEROS_ALLOWED);
}

static weft_status compile_case(slopes *s, weft_error *error)
{
    weft_value wanted[2 * WEFT_ORACLE_VALUES];
    weft_layout *layout = NULL;
    for (int k = 0; k < s->n; k++)
        wanted[k] = s->gradient[k], wanted[s->n + k] = s->product[k];
    WEFT_TRY(weft_layout_create(NULL, &layout, error));
    weft_status status = weft_compile(oracle.alone, layout, (weft_values){wanted, 2 * s->n}, NULL,
                                      &s->program, error);
    weft_layout_destroy(&layout);
    if (status == WEFT_OK) status = weft_oracle_fill(&s->build, s->program, error);
    return status;
}

/* Gradient and product at x with the vector v, both [n_all]; g or h NULL: not read. */
static weft_status run_at(slopes *s, const double *x, const double *v, double *g, double *h,
                          weft_error *error)
{
    int64_t first = 0;
    for (int k = 0; k < s->n; first += s->count[k++]) {
        WEFT_TRY(weft_oracle_write(s->program, s->build.inputs[s->input[k]], x + first, error));
        WEFT_TRY(weft_oracle_write(s->program, s->vector[k], v + first, error));
    }
    weft_set_runs(s->program, 0);
    WEFT_TRY(weft_run(s->program, error));
    first = 0;
    for (int k = 0; k < s->n; first += s->count[k++]) {
        double *data[2] = {NULL, NULL};
        WEFT_TRY(weft_oracle_read(s->program, s->gradient[k], &data[0], error));
        WEFT_TRY(weft_oracle_read(s->program, s->product[k], &data[1], error));
        if (g != NULL) memcpy(g + first, data[0], (size_t)s->count[k] * sizeof *g);
        if (h != NULL) memcpy(h + first, data[1], (size_t)s->count[k] * sizeof *h);
        free(data[0]);
        free(data[1]);
    }
    return WEFT_OK;
}

static void say(const slopes *s, bool is_right, const char *sentence)
{
    char text[400];
    snprintf(text, sizeof text, "%s, %s: %s", s->what->name, s->filling->name, sentence);
    weft_test_check(is_right, __FILE__, __LINE__, text);
}

/* ---- symmetry -------------------------------------------------------------------------------------- */

/* Where both slopes are numbers and have one: else nothing is said. */
static bool is_told(const slopes *s, int64_t a, int64_t b, double a_a, double b_b)
{
    return isfinite(s->g[a]) && isfinite(s->g[b]) && isfinite(a_a) && isfinite(b_b);
}

static double largest_of(const double *x, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) largest = fmax(largest, fabs(x[i]));
    return largest;
}

static weft_status check_symmetry(slopes *s, weft_error *error)
{
    const int64_t n = s->n_all, step = n > ROWS_TRIED ? n / ROWS_TRIED : 1;
    int64_t at[2 * ROWS_TRIED];
    int n_rows = 0;
    double *rows = calloc((size_t)(2 * ROWS_TRIED * n), sizeof *rows),
           *v = calloc((size_t)n, sizeof *v);
    weft_status status = WEFT_OK;
    char text[200] = "";
    for (int64_t i = 0; i < n && n_rows < 2 * ROWS_TRIED && status == WEFT_OK; i += step) {
        v[i] = 1.0;
        status = run_at(s, s->x, v, s->g, rows + n_rows * n, error);
        v[i] = 0.0, at[n_rows++] = i;
    }
    const double bound = 1e-9 * largest_of(rows, n_rows * n);
    for (int a = 0; a < n_rows; a++)
        for (int b = 0; b < a && text[0] == '\0'; b++) {
            const double one = rows[a * n + at[b]], other = rows[b * n + at[a]];
            if (!is_told(s, at[a], at[b], rows[a * n + at[a]], rows[b * n + at[b]])) continue;
            if (one == other || fabs(one - other) <= bound) continue;
            snprintf(text, sizeof text, "H[%lld, %lld] is %.17g, and turned round %.17g",
                     (long long)at[a], (long long)at[b], one, other);
        }
    say(s, status == WEFT_OK && text[0] == '\0', status == WEFT_OK ? text : error->message);
    free(rows);
    free(v);
    return status;
}

/* ---- what is close by ------------------------------------------------------------------------------- */

/* Of numbers at h, h/2 and h/4 what they go to; NaN: they go to nothing. */
static double limit_of(const double y[STEPS])
{
    const double first = 2 * y[1] - y[0], second = 2 * y[2] - y[1];
    if (!(fabs(first - second) <= 1e-4 * (1 + fabs(second)))) return (double)NAN;
    return second;
}

typedef struct range {
    double low, high;
} range;

static void widen(range *r, double x)
{
    if (isnan(x) || isnan(r->low)) {
        r->low = r->high = (double)NAN;
        return;
    }
    r->low = fmin(r->low, x), r->high = fmax(r->high, x);
}

static bool is_kink(range r)
{
    return r.high - r.low > 1e-2 * (1 + fabs(r.high));
}

static bool is_within(range r, double x, double tolerance)
{
    const double by = tolerance * (1 + fmax(fabs(r.low), fabs(r.high)));
    return isnan(r.low) || (x >= r.low - by && x <= r.high + by);
}

static int n_kinks, n_seen;

/* Whether kinks.inc has the op. */
static bool may_have_kinks(const char *op)
{
#define KINK(op, where, what) #op,
    static const char *const ops[] = {
#include "kinks.inc"
    };
#undef KINK
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i], op) == 0) return true;
    return false;
}

/* Along w: what gradients go to on either side, and how they change there. */
static weft_status look_along(slopes *s, const double *w, double sign, double *first,
                              double *second, weft_error *error)
{
    const size_t n = (size_t)s->n_all;
    double *x = calloc(n, sizeof *x), *g = calloc(STEPS * n, sizeof *g);
    weft_status status = WEFT_OK;
    double h = FIRST_STEP;
    for (int step = 0; step < STEPS && status == WEFT_OK; step++, h /= 2) {
        for (size_t i = 0; i < n; i++)
            x[i] = s->x[i] + sign * h * w[i];
        status = run_at(s, x, w, g + (size_t)step * n, NULL, error);
    }
    for (size_t i = 0; i < n; i++) {
        const double y[STEPS] = {g[i], g[n + i], g[2 * n + i]};
        const double d1 = sign * (y[0] - y[1]) / (FIRST_STEP / 2),
                     d2 = sign * (y[1] - y[2]) / (FIRST_STEP / 4);
        first[i] = limit_of(y);
        second[i] = fabs(d1 - d2) <= 1e-1 * (1 + fabs(d2)) ? 2 * d2 - d1 : (double)NAN;
    }
    free(x);
    free(g);
    return status;
}

static void check_element(const slopes *s, int64_t i, const char *what, range r, double x,
                          double tolerance)
{
    char text[200];
    if (isnan(r.low)) return;
    n_seen++;
    if (is_kink(r)) n_kinks++;
    if (is_within(r, x, tolerance) || s->may_have_kinks) return;
    snprintf(text, sizeof text, "%s, element %lld is %.10g, and close by from %.10g to %.10g", what,
             (long long)i, x, r.low, r.high);
    say(s, false, text);
}

/* Along one direction more: how gradients change on either side; what they go to joins of_g. */
static weft_status look(slopes *s, int direction, range *of_g, range *of_h, weft_error *error)
{
    const size_t n = (size_t)s->n_all;
    double *w = calloc(n, sizeof *w), *side = calloc(2 * n, sizeof *side);
    for (size_t i = 0; i < n; i++)
        w[i] = 2.0 * weft_oracle_unit(100 + direction, (int64_t)i) - 1.0;
    weft_status status = run_at(s, s->x, w, s->g, s->h + (size_t)direction * n, error);
    for (int k = 0; k < SIDES && status == WEFT_OK; k++) {
        status = look_along(s, w, k == 0 ? 1.0 : -1.0, side, side + n, error);
        for (size_t i = 0; i < n && status == WEFT_OK; i++) {
            widen(&of_g[i], side[i]);
            widen(&of_h[(size_t)direction * n + i], side[n + i]);
        }
    }
    free(w);
    free(side);
    return status;
}

static weft_status check_near(slopes *s, weft_error *error)
{
    const size_t n = (size_t)s->n_all;
    range *of_g = calloc((1 + DIRECTIONS) * n, sizeof *of_g), *of_h = of_g + n;
    weft_status status = WEFT_OK;
    const int kinks = n_kinks;
    for (size_t i = 0; i < (1 + DIRECTIONS) * n; i++)
        of_g[i] = (range){(double)INFINITY, (double)-INFINITY};
    for (int d = 0; d < DIRECTIONS && status == WEFT_OK; d++)
        status = look(s, d, of_g, of_h, error);
    for (size_t i = 0; i < n && status == WEFT_OK; i++)
        check_element(s, (int64_t)i, "the gradient", of_g[i], s->g[i], 1e-4);
    const bool has_kink = n_kinks > kinks;
    for (size_t i = 0; i < DIRECTIONS * n && status == WEFT_OK && !has_kink; i++)
        check_element(s, (int64_t)(i % n), "the Hessian's product", of_h[i], s->h[i], 1e-2);
    if (status != WEFT_OK) say(s, false, error->message);
    free(of_g);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------- */

static void try_case(const op_case *what, bool has_kinks, const filling *filling)
{
    slopes s = {.what = what,
                .filling = filling,
                .may_have_kinks = has_kinks,
                .build = {.graph = weft_graph_create(77)}};
    weft_error error = {0};
    build_case(&s);
    s.x = calloc((2 + DIRECTIONS) * (size_t)s.n_all + 1, sizeof *s.x), s.g = s.x + s.n_all,
    s.h = s.g + s.n_all;
    int64_t i = 0;
    for (int k = 0; k < s.n; k++)
        for (int64_t e = 0; e < s.count[k]; e++)
            s.x[i++] = special(filling, k, e);
    weft_status status = compile_case(&s, &error);
    if (status != WEFT_OK && !weft_oracle_refuses(&error)) say(&s, false, error.message);
    if (status == WEFT_OK) status = check_symmetry(&s, &error);
    if (status == WEFT_OK && filling->near) status = check_near(&s, &error);
    weft_program_destroy(&s.program);
    weft_graph_destroy(&s.build.graph);
    free(s.x);
}

static void visit(const op_group *group, const op_case *what, void *argument)
{
    char text[200];
    const bool has_kinks = may_have_kinks(group->name);
    (void)argument;
    if (what->derivatives == 0 || !(what->dtypes & OP_F64)) return;
    n_kinks = 0;
    for (int f = 0; f < FILLINGS; f++)
        try_case(what, has_kinks, &fillings[f]);
    snprintf(text, sizeof text, "%s has %d kinks, and kinks.inc says of none", what->name, n_kinks);
    weft_test_check(n_kinks == 0 || has_kinks, __FILE__, __LINE__, text);
}

static void test_slopes_are_those_close_by(void)
{
    op_cases_each(only, visit, NULL);
    CHECK(n_seen > 0);
}

/* ---- known second derivatives ---------------------------------------------------------------------- */

static weft_value prod_of(weft_value x, weft_dim dim)
{
    (void)dim;
    return weft_prod(WEFT_SCALAR, x);
}
static weft_value cumprod_of(weft_value x, weft_dim dim)
{
    return weft_sum(WEFT_SCALAR, weft_cumprod(x, dim, false, false));
}
static weft_value huber_of(weft_value x, weft_dim dim)
{
    const weft_value zero = weft_constant(x.graph, WEFT_F64, WEFT_SCALAR, 0.0);
    (void)dim;
    return weft_sum(WEFT_SCALAR, weft_huber(x, zero, 1.0));
}

static weft_value gelu_of(weft_value x, weft_dim dim)
{
    (void)dim;
    return weft_sum(WEFT_SCALAR, weft_gelu(x));
}

/* Its own slope is infinite where it is. */
static weft_value bent_softplus_of(weft_value x, weft_dim dim)
{
    const weft_value y = weft_softplus(x);
    (void)dim;
    return weft_sum(WEFT_SCALAR, weft_add(y, weft_scale(weft_square(y), 0.3)));
}

/* By hand: the Hessian of f at x, times (1, 10, 100). */
static const struct {
    weft_value (*f)(weft_value x, weft_dim dim);
    double x[3], product[3];
} known[] = {
    {prod_of, {0, 2, -1.5}, {185, -1.5, 2}},
    {prod_of, {0, 0, 3}, {30, 3, 0}},
    {prod_of, {0, 0, 0}, {0, 0, 0}},
    {prod_of, {1e-200, 1e-200, 1e250}, {1e251, 1e250, 1.1e-199}},
    {cumprod_of, {0, 0, 3}, {40, 4, 0}},
    {cumprod_of, {2, 0, 0}, {10, 201, 20}},
    {huber_of, {0, 0.5, 3}, {1, 10, 0}},
    {gelu_of, {(double)INFINITY, (double)-INFINITY, 50}, {0, 0, 0}},
    {bent_softplus_of, {(double)INFINITY, (double)-INFINITY, 0}, {0.6, 0, 50.39720770839918}},
};

static void check_known(int k)
{
    static const double vector[3] = {1, 10, 100};
    const weft_dim dim = {"three", 3};
    weft_oracle_build b = {.graph = weft_graph_create(1)};
    const weft_value x = weft_oracle_input(&b, WEFT_F64, WEFT_DIMS(dim), 0, 1);
    const weft_value v = weft_oracle_input(&b, WEFT_F64, WEFT_DIMS(dim), 0, 1);
    weft_value product;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    double *found = NULL;
    weft_hessian_vector(known[k].f(x, dim), WEFT_VALUES(x), WEFT_VALUES(v), &product, 0);
    CHECK_OK(weft_layout_create(NULL, &layout, &error), error);
    if (CHECK_OK(weft_compile(oracle.alone, layout, WEFT_VALUES(product), NULL, &program, &error),
                 error) &&
        CHECK_OK(weft_oracle_write(program, x, known[k].x, &error), error) &&
        CHECK_OK(weft_oracle_write(program, v, vector, &error), error) &&
        CHECK_OK(weft_run(program, &error), error) &&
        CHECK_OK(weft_oracle_read(program, product, &found, &error), error))
        for (int i = 0; i < 3; i++)
            CHECK_CLOSE(found[i], known[k].product[i], 1e-12);
    free(found);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&b.graph);
}

static void test_known_second_derivatives(void)
{
    for (int k = 0; k < (int)(sizeof known / sizeof *known); k++)
        check_known(k);
}

int main(int argc, char **argv)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error)) {
        if (!op_cases_options(argc, argv, &oracle, &only)) return 2;
        RUN(test_slopes_are_those_close_by);
        RUN(test_known_second_derivatives);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
