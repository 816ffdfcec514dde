/* RANKS: 2 4 */
/* gpt_next_test: one token at a time, by the keys and values that are kept of those before, gives the logits of the whole window:
 * from any row on, under any layout, through a scan of the layers, with heads that share keys and values and rotary positions; and
 * again when another window is begun.
 */
#include "gpt_training.h"

#include <math.h>

enum { BATCH = 2 };

typedef struct step_case {
    const char *mesh, *layout;
    int zero;
    bool scans;
    int64_t unroll;
    int64_t kv_heads; /* of four; 0: a plain model */
    int64_t experts;  /* that drop nobody; 0: none */
} step_case;

static weft_oracle oracle;

static gpt_shape shape_of(const step_case *c)
{
    gpt_shape shape = stepped_shape(BATCH, c->scans, c->kv_heads);
    shape.mixture = (gpt_mixture){.experts = c->experts, .top_k = 2};
    return shape;
}

typedef struct forward {
    weft_graph *graph;
    gpt_model model;
    weft_program *program;
} forward;

typedef weft_value (*build)(const gpt_shape *shape, weft_graph *graph, gpt_model *model);

static weft_status open_forward(weft_mesh *mesh, const step_case *c, build builds,
                                weft_program *share, forward *f, weft_error *error)
{
    const weft_compile_options options = {.share = share, .unroll = c->unroll};
    const gpt_shape shape = shape_of(c);
    weft_layout *layout = NULL;
    *f = (forward){.graph = weft_graph_create(1)};
    (void)builds(&shape, f->graph, &f->model);
    const weft_value token = f->model.kept.graph == NULL ? f->model.logits : f->model.kept;
    WEFT_TRY(weft_layout_create(c->layout, &layout, error));
    WEFT_TRY(weft_layout_store(layout, c->zero, "batch", error));
    const weft_status status = weft_compile(mesh, layout, WEFT_VALUES(f->model.logits, token),
                                            &options, &f->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static void close_forward(forward *f)
{
    weft_program_destroy(&f->program);
    weft_graph_destroy(&f->graph);
}

/* Of row t of a window; another text has other tokens. */
static double token_of(int text, int b, int t)
{
    return (11 * b + t * t + 5 * t + 3 * text) % TRAINED_VOCAB;
}

/* n rows from `first` on, behind which stand tokens that nobody reads. logits: [BATCH, n, TRAINED_VOCAB], to be freed. */
static weft_status run(const forward *f, int text, int first, int n, double place, double **logits,
                       weft_error *error)
{
    double tokens[BATCH * TRAINED_SEQ];
    for (int i = 0; i < BATCH * n; i++)
        tokens[i] = token_of(text, i / n, first + i % n);
    WEFT_TRY(weft_oracle_write(f->program, f->model.tokens, tokens, error));
    if (f->model.place.graph != NULL)
        WEFT_TRY(weft_oracle_write(f->program, f->model.place, &place, error));
    WEFT_TRY(weft_run(f->program, error));
    return weft_oracle_read(f->program, f->model.logits, logits, error);
}

static double expected[2][BATCH * TRAINED_SEQ * TRAINED_VOCAB]; /* of two texts */

static void check_row(const step_case *c, const double *found, int text, int row, int n)
{
    for (int b = 0; b < BATCH; b++)
        for (int v = 0; v < TRAINED_VOCAB; v++) {
            const double is = found[(b * n + (n == 1 ? 0 : row)) * TRAINED_VOCAB + v],
                         want = expected[text][(b * TRAINED_SEQ + row) * TRAINED_VOCAB + v];
            char what[200];
            if (fabs(is - want) <= 1e-10 * (1 + fabs(want))) continue;
            snprintf(what, sizeof what, "%s \"%s\"%s: row %d of text %d: %g, not %g", c->mesh,
                     c->layout, c->scans ? " scan" : "", row, text, is, want);
            weft_test_check(false, __FILE__, __LINE__, what);
            return;
        }
    CHECK(true);
}

/* Two texts by one pair of programs: a window with the first rows, then token by token. */
static weft_status write_texts(const step_case *c, const forward *window, const forward *step,
                               weft_error *error)
{
    static const int begins[2] = {6, 1};
    double *logits = NULL;
    for (int text = 0; text < 2; text++) {
        const int first = begins[text];
        WEFT_TRY(run(window, text, 0, TRAINED_SEQ, first, &logits, error));
        for (int row = 0; row < first; row++)
            check_row(c, logits, text, row, TRAINED_SEQ);
        free(logits);
        for (int row = first; row < TRAINED_SEQ; row++) {
            WEFT_TRY(run(step, text, row, 1, row, &logits, error));
            check_row(c, logits, text, row, 1);
            free(logits);
        }
    }
    return WEFT_OK;
}

static void check_case(const step_case *c)
{
    weft_mesh *mesh = trained_mesh(&oracle, c->mesh);
    weft_error error = {0};
    forward window = {0}, step = {0};
    if (mesh == NULL) return;
    if (CHECK_OK(open_forward(mesh, c, gpt_context, NULL, &window, &error), error) &&
        CHECK_OK(open_forward(mesh, c, gpt_next, window.program, &step, &error), error))
        (void)CHECK_OK(write_texts(c, &window, &step, &error), error);
    close_forward(&step);
    close_forward(&window);
}

/* By the model that keeps nothing, on one rank. */
static bool find_expected(bool scans, int64_t kv_heads, int64_t experts)
{
    const step_case c = {"data:1", "", 0, scans, 0, kv_heads, experts};
    weft_error error = {0};
    forward f;
    bool is_run = CHECK_OK(open_forward(oracle.alone, &c, gpt_logits, NULL, &f, &error), error);
    for (int text = 0; is_run && text < 2; text++) {
        double *logits = NULL;
        is_run = CHECK_OK(run(&f, text, 0, TRAINED_SEQ, 0, &logits, &error), error);
        if (is_run) memcpy(expected[text], logits, sizeof expected[text]);
        free(logits);
    }
    close_forward(&f);
    return is_run;
}

#define MODEL "hidden:model,heads:model,vocab:model"

static const step_case cases[] = {
    {"data:1", "", 0, false, 0},
    {"data:2", "batch:data", 0, false, 0},
    {"data:2", "batch:data", 3, false, 0},
    {"model:2", MODEL, 0, false, 0},
    {"model:2", "seq:model", 0, false, 0},
    {"model:2", "hidden:model", 0, false, 0}, /* ranks hold the caches in common */
    {"data:2,model:2", "batch:data," MODEL, 0, false, 0},
    {"data:2,model:2", "seq:data," MODEL, 0, false, 0},
};

static void test_steps_give_the_logits_of_the_window(void)
{
    if (!find_expected(false, 0, 0)) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

/* Initial values of stacked weights are formulas of their own. */
static void test_steps_through_a_scan_of_the_layers_are_those_of_the_window(void)
{
    if (!find_expected(true, 0, 0)) return;
    for (int unroll = 0; unroll < 2; unroll++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            step_case c = cases[i];
            c.scans = true;
            c.unroll = unroll;
            check_case(&c);
        }
}

/* A step knows nothing of the places of a window; where every expert computes every token there are none. */
static void test_steps_through_experts_that_drop_nobody(void)
{
    if (!find_expected(false, 0, 4)) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        step_case c = cases[i];
        c.experts = 4;
        check_case(&c);
    }
    check_case(&(step_case){"data:2", "experts:data,batch:data", 0, .experts = 4});
    check_case(&(step_case){"model:2", "experts:model", 0, .experts = 4});
}

static void test_steps_of_heads_that_turn_and_share_keys(void)
{
    for (int64_t kv_heads = 1; kv_heads <= 4; kv_heads *= 2) {
        if (!find_expected(false, kv_heads, 0)) return;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            step_case c = cases[i];
            c.kv_heads = kv_heads;
            check_case(&c);
        }
        if (kv_heads < 4)
            check_case(&(step_case){"model:2", "group:model,seq:model", 0, false, 0, kv_heads});
    }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_steps_give_the_logits_of_the_window);
        RUN(test_steps_through_experts_that_drop_nobody);
        RUN(test_steps_of_heads_that_turn_and_share_keys);
        RUN(test_steps_through_a_scan_of_the_layers_are_those_of_the_window);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
