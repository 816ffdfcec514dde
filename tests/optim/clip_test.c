/* RANKS: 2 4 */
/* clip_test: every kind of clipping against plain scalar arithmetic, two steps of sgd, on one rank and under layouts and all
 * stages of ZeRO; and what is refused.
 */
#include "handed.h"

static weft_oracle oracle;

enum { STEPS = 2 };
static const double rate = 0.5;

/* ---- in plain C ------------------------------------------------------------------------------ */

typedef struct plain {
    double p[N][LARGEST], g[N][LARGEST];
} plain;

static int all_of(int k)
{
    return extents[k][0] * count_of(k);
}

static double norm_of(const double *x, int count, int stride)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += x[i * stride] * x[i * stride];
    return sqrt(sum);
}

static void scale(double *x, int count, int stride, double by)
{
    for (int i = 0; i < count; i++)
        x[i * stride] *= by;
}

static void by_global_norm(plain *s, double clip)
{
    double sum = 0.0;
    for (int k = 0; k < N; k++)
        sum += pow(norm_of(s->g[k], all_of(k), 1), 2);
    for (int k = 0; k < N; k++)
        scale(s->g[k], all_of(k), 1, fmin(1.0, clip / (sqrt(sum) + 1e-6)));
}

static void by_norm(plain *s, double clip)
{
    for (int k = 0; k < N; k++)
        for (int which = 0; which < extents[k][0]; which++) {
            double *g = s->g[k] + which * count_of(k);
            scale(g, count_of(k), 1, fmin(1.0, clip / (norm_of(g, count_of(k), 1) + 1e-6)));
        }
}

static void by_value(plain *s, double clip)
{
    for (int k = 0; k < N; k++)
        for (int i = 0; i < all_of(k); i++)
            s->g[k][i] = fmax(-clip, fmin(clip, s->g[k][i]));
}

/* Sizes of the last dims: of the stack too, whose rows and columns above are of another reading. */
static const int last[N] = {7, 7, 7, 1, 7, 5};

static void adaptive(plain *s, double clip)
{
    for (int k = 0; k < N; k++)
        for (int which = 0; which < extents[k][0]; which++) {
            const int units = n_dims[k] >= 2 ? last[k] : 1, count = count_of(k) / units;
            for (int u = 0; u < units; u++) {
                const int at = which * count_of(k) + u;
                const double size = fmax(norm_of(s->p[k] + at, count, units), 1e-3);
                const double norm = fmax(norm_of(s->g[k] + at, count, units), 1e-6);
                scale(s->g[k] + at, count, units, fmin(1.0, clip * size / norm));
            }
        }
}

static const struct {
    const char *name; /* NULL: what stands for it */
    void (*clip)(plain *s, double clip);
    double most;
} kinds[] = {{NULL, by_global_norm, 2.0}, {"global_norm", by_global_norm, 0.01},
             {"norm", by_norm, 1.5},      {"value", by_value, 0.9},
             {"adaptive", adaptive, 0.1}, {"adaptive", adaptive, 1.7}};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* Returns how many elements of gradients became smaller. */
static int train_plain(plain *s, int kind)
{
    int n_clipped = 0;
    for (int k = 0; k < N; k++)
        for (int i = 0; i < all_of(k); i++)
            s->p[k][i] = begins_at(i % count_of(k));
    for (int step = 0; step < STEPS; step++) {
        for (int k = 0; k < N; k++)
            for (int i = 0; i < all_of(k); i++)
                s->g[k][i] = gradient_at(k, step, i);
        kinds[kind].clip(s, kinds[kind].most);
        for (int k = 0; k < N; k++)
            for (int i = 0; i < all_of(k); i++) {
                n_clipped += s->g[k][i] != gradient_at(k, step, i);
                s->p[k][i] -= rate * s->g[k][i];
            }
    }
    return n_clipped;
}

/* ---- against Weft ---------------------------------------------------------------------------- */

static void compare(const trained *t, weft_program *program, int kind, const char *where)
{
    static plain s;
    weft_error error = {0};
    CHECK(train_plain(&s, kind) > 10);
    for (int k = 0; k < N; k++) {
        double *found = NULL, most = 0.0;
        char text[300];
        if (!CHECK_OK(weft_oracle_read(program, t->variables[k], &found, &error), error)) return;
        for (int i = 0; i < all_of(k); i++)
            most = fmax(most, fabs(found[i] - s.p[k][i]));
        snprintf(text, sizeof text, "%s: variable %d is off by %g", where, k, most);
        weft_test_check(most <= 1e-14, __FILE__, __LINE__, text);
        free(found);
    }
}

static void check_kind(int kind, weft_mesh *mesh, int l, int stage)
{
    char where[200];
    weft_program *program = NULL;
    weft_error error = {0};
    trained t =
        make("sgd", (weft_optimizer_options){
                        .rate = rate, .clip = kinds[kind].most, .clip_by = kinds[kind].name});
    snprintf(where, sizeof where, "kind %d on %s under \"%s\", stage %d", kind,
             weft_mesh_text(mesh), layouts[l], stage);
    if (CHECK_OK(compile(&t, mesh, layouts[l], stage, &program, &error), error) &&
        CHECK_OK(train(&t, program, STEPS, &error), error))
        compare(&t, program, kind, where);
    weft_program_destroy(&program);
    weft_graph_destroy(&t.graph);
}

static void test_every_kind_is_the_plain_one(void)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int m = -1; m < oracle.n_meshes; m++)
            for (int l = 0; l < N_LAYOUTS; l++)
                check_kind(kind, m < 0 ? oracle.alone : oracle.meshes[m], l,
                           (kind + m + 1 + l) % 4);
}

/* The norm that is handed out is of what was there before, whatever clips. */
static void test_the_norm_is_the_one_before(void)
{
    double expected = 0.0;
    for (int k = 0; k < N; k++)
        for (int i = 0; i < all_of(k); i++)
            expected += pow(gradient_at(k, 0, i), 2);
    for (int kind = 0; kind < N_KINDS; kind++) {
        double found = 0.0;
        weft_value norm = {0};
        weft_program *program = NULL;
        weft_error error = {0};
        trained t = make("sgd", (weft_optimizer_options){.clip = kinds[kind].most,
                                                         .clip_by = kinds[kind].name,
                                                         .gradient_norm = &norm});
        const weft_value values[] = {t.update, norm};
        CHECK_OK(weft_compile(oracle.alone, NULL, (weft_values){values, 2}, NULL, &program, &error),
                 error);
        if (program != NULL && CHECK_OK(train(&t, program, 1, &error), error))
            CHECK_OK(weft_read_scalar(program, norm, &found, &error), error);
        CHECK(fabs(found - sqrt(expected)) <= 1e-12);
        weft_program_destroy(&program);
        weft_graph_destroy(&t.graph);
    }
}

/* A variable of nothing but 0 counts as one of norm 1e-3, or it could never begin to move. */
static void test_variables_of_zeros_begin_to_move(void)
{
    double found[7];
    weft_program *program = NULL;
    weft_error error = {0};
    weft_graph *graph = weft_graph_create(1);
    weft_value w = weft_variable(graph, "w", WEFT_F64, WEFT_DIMS(out), weft_constant_of(0));
    weft_value slope = weft_constant(graph, WEFT_F64, WEFT_DIMS(out), 2.0);
    const weft_optimizer_options options = {.rate = 1,
                                            .clip = 0.5,
                                            .clip_by = "adaptive",
                                            .variables = {&w, 1},
                                            .gradients = {&slope, 1}};
    const weft_value update = weft_sgd((weft_value){0}, &options);
    if (CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(update), NULL, &program, &error),
                 error) &&
        CHECK_OK(weft_run(program, &error), error) &&
        CHECK_OK(weft_read(program, w, WEFT_F64, found, sizeof found, &error), error))
        for (int i = 0; i < 7; i++)
            CHECK_CLOSE(found[i], -0.5 * 1e-3 / sqrt(7), 1e-18);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
}

static void check_refused(weft_optimizer_options options, const char *sentence)
{
    trained t = make("momentum", options);
    CHECK_EQ_INT(t.update.id, 0);
    CHECK_TEXT(weft_graph_error(t.graph)->message, sentence);
    weft_graph_destroy(&t.graph);
}

static void test_wrong_kinds_have_their_sentence(void)
{
    check_refused((weft_optimizer_options){.clip_by = "valu"},
                  "there is no kind of clipping valu; did you mean value?");
    check_refused((weft_optimizer_options){.clip = 1, .clip_by = "q"},
                  "choose global_norm, norm, value or adaptive");
    check_refused((weft_optimizer_options){.clip = -1, .clip_by = "value"},
                  "the largest gradient norm is -1");
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:4", "data:2,model:2",
                                         "model:2,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_every_kind_is_the_plain_one);
        RUN(test_the_norm_is_the_one_before);
        RUN(test_variables_of_zeros_begin_to_move);
        RUN(test_wrong_kinds_have_their_sentence);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
