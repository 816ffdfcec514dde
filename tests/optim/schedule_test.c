/* RANKS: 2 */
/* schedule_test: every schedule against its formula, step by step, in one go, from the middle on, and with a loss scale; and
 * what is refused.
 */
#include <math.h>

#include "oracle.h"
#include "test.h"
#include "weft/optim.h"

static weft_oracle oracle;

enum { RUNS = 60 };
static const double pi = 3.14159265358979323846;

/* ---- the formulas once more ------------------------------------------------------------------ */

typedef const weft_schedule_options *options;

static double half_cosine(double done, double from, double to)
{
    return to + (from - to) * (1 + cos(pi * fmin(done, 1.0))) / 2;
}

static double constant(options o, double t)
{
    (void)t;
    return o->rate;
}

static double linear(options o, double t)
{
    const double done = fmin((t - (double)o->warmup) / (double)(o->total - o->warmup), 1.0);
    return o->rate + (o->floor - o->rate) * done;
}

static double inverse_sqrt(options o, double t)
{
    return fmax(o->rate * sqrt(o->warmup > 0 ? (double)o->warmup : 1.0) / sqrt(t), o->floor);
}

static double cosine(options o, double t)
{
    return half_cosine((t - (double)o->warmup) / (double)(o->total - o->warmup), o->rate, o->floor);
}

static double cosine_restarts(options o, double t)
{
    double begin = (double)o->warmup, length = (double)o->period;
    while (t >= begin + length) {
        begin += length;
        length *= o->growth > 0 ? o->growth : 1.0;
    }
    return half_cosine((t - begin) / length, o->rate, o->floor);
}

static double one_cycle(options o, double t)
{
    const double top = o->warmup > 0 ? (double)o->warmup : floor(0.3 * (double)o->total);
    if (t <= top) return half_cosine(t / top, o->rate / 25, o->rate);
    return half_cosine((t - top) / ((double)o->total - top), o->rate, o->floor);
}

static double piecewise(options o, double t)
{
    double scale = 1.0;
    for (int i = 0; i < o->pieces.n_pieces; i++)
        if (t >= (double)o->pieces.pieces[i].from) scale = o->pieces.pieces[i].scale;
    return o->rate * scale;
}

static const weft_rate_piece pieces[] = {{9, 0.5}, {10, 2.0}, {40, 0.0}};
static const struct {
    const char *name;
    double (*formula)(options o, double t);
    weft_schedule_options o;
} cases[] = {
    {"constant", constant, {.rate = 0.3}},
    {"constant", constant, {.rate = 0.3, .warmup = 7}},
    {"constant", constant, {.rate = 0.3, .warmup = 1}},
    {"linear", linear, {.rate = 0.3, .total = 50}},
    {"linear", linear, {.rate = 0.3, .floor = 0.1, .warmup = 10, .total = 11}},
    {"inverse_sqrt", inverse_sqrt, {.rate = 0.3}},
    {"inverse_sqrt", inverse_sqrt, {.rate = 0.3, .floor = 0.2, .warmup = 16}},
    {"cosine", cosine, {.rate = 0.3, .total = 50}},
    {"cosine", cosine, {.rate = 0.3, .floor = 0.03, .warmup = 13, .total = 47}},
    {"cosine_restarts", cosine_restarts, {.rate = 0.3, .period = 9}},
    {"cosine_restarts", cosine_restarts, {.rate = 0.3, .floor = 0.1, .warmup = 5, .period = 1}},
    {"cosine_restarts", cosine_restarts, {.rate = 0.3, .warmup = 4, .period = 3, .growth = 2}},
    {"cosine_restarts",
     cosine_restarts,
     {.rate = 0.3, .floor = 0.01, .total = 60, .period = 3, .growth = 1.1}},
    {"one_cycle", one_cycle, {.rate = 0.3, .total = 50}},
    {"one_cycle", one_cycle, {.rate = 0.3, .floor = 1e-3, .warmup = 20, .total = 55}},
    {"piecewise", piecewise, {.rate = 0.3, .pieces = {pieces, 3}}},
    {"piecewise", piecewise, {.rate = 0.3, .warmup = 12, .pieces = {pieces, 3}}},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static double expected(int i, int t)
{
    options o = &cases[i].o;
    const bool is_warming = t <= o->warmup && strcmp(cases[i].name, "one_cycle") != 0;
    return is_warming ? o->rate * t / (double)o->warmup : cases[i].formula(o, t);
}

/* ---- in Weft --------------------------------------------------------------------------------- */

static void build(weft_graph *graph, weft_value rates[N_CASES])
{
    for (int i = 0; i < N_CASES; i++) {
        rates[i] = weft_schedule_rate(graph, WEFT_F64, cases[i].name, &cases[i].o);
        CHECK(weft_shape_of(rates[i])->n_dims == 0);
    }
}

/* Runs first + 1 ... RUNS of a program of all rates; the bits of each go to `rates`, [RUNS + 1][N_CASES]. */
static void run_all(weft_mesh *mesh, int first, double rates[RUNS + 1][N_CASES])
{
    weft_error error = {0};
    weft_program *program = NULL;
    weft_value values[N_CASES];
    weft_graph *graph = weft_graph_create(1);
    build(graph, values);
    CHECK_OK(weft_compile(mesh, NULL, (weft_values){values, N_CASES}, NULL, &program, &error),
             error);
    if (program != NULL) weft_set_runs(program, first);
    for (int t = first + 1; t <= RUNS && program != NULL; t++) {
        CHECK_OK(weft_run(program, &error), error);
        for (int i = 0; i < N_CASES; i++)
            CHECK_OK(weft_read_scalar(program, values[i], &rates[t][i], &error), error);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
}

static double whole[RUNS + 1][N_CASES];

static void test_each_is_its_formula(void)
{
    run_all(oracle.alone, 0, whole);
    for (int t = 1; t <= RUNS; t++)
        for (int i = 0; i < N_CASES; i++) {
            char text[200];
            snprintf(text, sizeof text, "case %d, %s: %.17g at %d, not %.17g", i, cases[i].name,
                     whole[t][i], t, expected(i, t));
            weft_test_check(fabs(whole[t][i] - expected(i, t)) <= 1e-15, __FILE__, __LINE__, text);
        }
}

/* They keep nothing: who goes on at run 23, on other ranks, has the same bits. */
static void test_a_run_that_goes_on_has_the_same_bits(void)
{
    static double later[RUNS + 1][N_CASES];
    run_all(oracle.meshes[0], 23, later);
    for (int t = 24; t <= RUNS; t++)
        for (int i = 0; i < N_CASES; i++)
            CHECK(later[t][i] == whole[t][i]);
}

static void test_every_schedule_is_tried(void)
{
    int n = 0;
    for (const char *name; (name = weft_schedule_name(n)) != NULL; n++) {
        int n_cases = 0;
        for (int i = 0; i < N_CASES; i++)
            n_cases += strcmp(cases[i].name, name) == 0;
        CHECK(n_cases >= 2);
    }
    CHECK_EQ_INT(n, 7);
    CHECK(weft_schedule_name(-1) == NULL);
}

static void test_shorthands_are_their_schedules(void)
{
    static double found[RUNS + 1][4];
    weft_error error = {0};
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(1);
    const weft_schedule_options o = {.rate = 0.3, .floor = 0.02, .warmup = 9, .total = 31};
    const weft_value v[] = {weft_warmup(g, WEFT_F64, 0.3, 9),
                            weft_schedule_rate(g, WEFT_F64, "constant", &o),
                            weft_warmup_cosine(g, WEFT_F64, 0.3, 9, 31, 0.02),
                            weft_schedule_rate(g, WEFT_F64, "cosine", &o)};
    CHECK_OK(weft_compile(oracle.alone, NULL, (weft_values){v, 4}, NULL, &program, &error), error);
    for (int t = 1; t <= RUNS && program != NULL; t++) {
        CHECK_OK(weft_run(program, &error), error);
        for (int i = 0; i < 4; i++)
            CHECK_OK(weft_read_scalar(program, v[i], &found[t][i], &error), error);
        CHECK(found[t][0] == found[t][1] && found[t][2] == found[t][3]);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_wrong_options_have_their_sentence(void)
{
    static const weft_rate_piece backwards[] = {{9, 0.5}, {9, 0.1}}, endless[] = {{1, INFINITY}};
    static const struct {
        const char *name;
        weft_schedule_options o;
        const char *says;
    } wrongs[] = {
        {"cosin", {.rate = 1}, "there is no schedule cosin; did you mean cosine?"},
        {"q",
         {.rate = 1},
         "there is no schedule q; choose constant, linear, inverse_sqrt, cosine, "},
        {"constant", {.rate = NAN}, "constant: a rate is nan; it is a finite number"},
        {"linear", {.floor = INFINITY, .total = 3}, "linear: a rate is inf"},
        {"constant", {.warmup = -1}, "constant: warm-up lasts -1 runs; it is at least 0"},
        {"linear", {.warmup = 9, .total = 9}, "linear: warm-up lasts 9 runs of 9 in total"},
        {"one_cycle", {.rate = 1}, "one_cycle: warm-up lasts 0 runs of 0 in total"},
        {"cosine_restarts", {.rate = 1}, "cosine_restarts: its period is 0 runs"},
        {"cosine_restarts",
         {.period = 3, .growth = 0.5},
         "its periods grow by 0.5; that is at least 1"},
        {"cosine_restarts", {.period = 3, .growth = NAN}, "its periods grow by nan"},
        {"cosine_restarts", {.period = 3, .growth = 1.01}, "gives more than 64 restarts"},
        {"piecewise", {.rate = 1}, "piecewise: there are no pieces"},
        {"piecewise",
         {.pieces = {backwards, 2}},
         "piece 1 begins at run 9 and the one before at 9"},
        {"piecewise", {.pieces = {endless, 1}}, "piece 0 is inf times the rate"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        weft_error error = {0};
        weft_graph *g = weft_graph_create(1);
        CHECK_EQ_INT(weft_schedule_check(wrongs[i].name, &wrongs[i].o, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, wrongs[i].says);
        CHECK_EQ_INT(weft_schedule_rate(g, WEFT_F32, wrongs[i].name, &wrongs[i].o).id, 0);
        CHECK_TEXT(weft_graph_error(g)->message, wrongs[i].says);
        CHECK_TEXT(weft_graph_error(g)->message, "schedule_rate at schedule_test.c:");
        weft_graph_destroy(&g);
    }
}

static void test_nothing_given_is_refused(void)
{
    weft_error error = {0};
    weft_graph *g = weft_graph_create(1);
    CHECK_EQ_INT(weft_schedule_rate(g, WEFT_F32, "constant", NULL).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "options is NULL");
    CHECK_EQ_INT(weft_schedule_check(NULL, &cases[0].o, &error), WEFT_USAGE);
    CHECK_EQ_INT(weft_schedule_rate(NULL, WEFT_F32, "constant", &cases[0].o).id, 0);
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 1, &error), error)) {
        RUN(test_each_is_its_formula);
        RUN(test_a_run_that_goes_on_has_the_same_bits);
        RUN(test_every_schedule_is_tried);
        RUN(test_shorthands_are_their_schedules);
        RUN(test_wrong_options_have_their_sentence);
        RUN(test_nothing_given_is_refused);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
