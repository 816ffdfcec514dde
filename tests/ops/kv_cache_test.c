/* RANKS: 2 4 */
/* kv_cache_test: a layer over a window, and then row by row by what is kept of those before, gives what it gives of the whole
 * window: whatever layout, kept dtype and order of dims; what a cache is told wrongly is one sentence.
 */
#include "weft/layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "test.h"

enum { BATCH = 2, ROWS = 6, EMBED = 8 };
static const weft_dim batch = {"batch", BATCH}, row = {"row", ROWS}, one = {"one", 1},
                      embed = {"embed", EMBED}, heads = {"heads", 2}, feature = {"feature", 4};

static weft_oracle oracle;

typedef struct net {
    weft_graph *graph;
    weft_value x, place, y, token;
    weft_program *program;
} net;

/* Attention of x's rows to themselves: by all rows at once, or by kept ones. */
static weft_value attention_of(const net *n, weft_dim rows, weft_kv_cache *cache)
{
    const weft_multi_head_options o = {
        .name = "self",
        .embed = embed,
        .heads = heads,
        .is_rotary = true,
        .positions = cache != NULL && cache->is_step ? n->place : (weft_value){0},
        .attention = {.query = rows, .memory = rows, .feature = feature, .causal = true},
        .attend = cache != NULL ? weft_kv_attend : NULL,
        .attend_context = cache};
    return weft_multi_head(n->x, &o);
}

static void build(net *n, weft_dim rows, bool is_step)
{
    const weft_shape kept = WEFT_DIMS(row, heads, batch, feature);
    n->x = weft_input(n->graph, "x", WEFT_F64, WEFT_DIMS(batch, rows, embed));
    n->place = weft_input(n->graph, "place", WEFT_I32, WEFT_SCALAR);
    weft_kv_cache cache = {
        .kept = {weft_variable(n->graph, "cache/key", WEFT_F64, kept, weft_constant_of(0)),
                 weft_variable(n->graph, "cache/value", WEFT_F64, kept, weft_constant_of(0))},
        .place = n->place,
        .is_step = is_step};
    n->y = attention_of(n, rows, &cache);
    n->token = weft_group(n->graph, WEFT_VALUES(weft_assign(cache.kept.key, cache.next.key),
                                                weft_assign(cache.kept.value, cache.next.value)));
}

static void build_whole(net *n)
{
    n->x = weft_input(n->graph, "x", WEFT_F64, WEFT_DIMS(batch, row, embed));
    n->token = n->y = attention_of(n, row, NULL);
}

static weft_status compile(net *n, weft_mesh *mesh, const char *rules, weft_program *share,
                           weft_error *error)
{
    weft_layout *layout = NULL;
    const weft_compile_options options = {.share = share};
    WEFT_TRY(weft_layout_create(rules, &layout, error));
    const weft_status status =
        weft_compile(mesh, layout, WEFT_VALUES(n->y, n->token), &options, &n->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static void end(net *n)
{
    weft_program_destroy(&n->program);
    weft_graph_destroy(&n->graph);
}

/* n rows of a text from `first` on; what comes of them is to be freed. */
static weft_status run(const net *n, int text, int first, int n_rows, double place, double **y,
                       weft_error *error)
{
    double x[BATCH * ROWS * EMBED];
    for (int i = 0; i < BATCH * n_rows * EMBED; i++)
        x[i] = sin(1 + text + i % EMBED + 3 * (first + i / EMBED % n_rows) +
                   (double)(i / EMBED / n_rows));
    WEFT_TRY(weft_oracle_write(n->program, n->x, x, error));
    if (n->place.id != 0) WEFT_TRY(weft_oracle_write(n->program, n->place, &place, error));
    WEFT_TRY(weft_run(n->program, error));
    return weft_oracle_read(n->program, n->y, y, error);
}

static double expected[2][BATCH * ROWS * EMBED]; /* of two texts, by all rows at once */

static weft_status expect(weft_error *error)
{
    net n = {.graph = weft_graph_create(1)};
    double *y;
    build_whole(&n);
    WEFT_TRY(compile(&n, oracle.alone, "", NULL, error));
    for (int text = 0; text < 2; text++) {
        WEFT_TRY(run(&n, text, 0, ROWS, 0, &y, error));
        memcpy(expected[text], y, sizeof expected[text]);
        free(y);
    }
    end(&n);
    return WEFT_OK;
}

static void check_row(const double *y, int text, int at, int n_rows)
{
    for (int b = 0; b < BATCH; b++)
        for (int e = 0; e < EMBED; e++)
            CHECK_CLOSE(y[(b * n_rows + (n_rows == 1 ? 0 : at)) * EMBED + e],
                        expected[text][(b * ROWS + at) * EMBED + e], 1e-12);
}

/* A window that begins as two texts do, each followed row by row. */
static weft_status go_through(const net *window, const net *step, weft_error *error)
{
    static const int begins[2] = {4, 1};
    double *y;
    for (int text = 0; text < 2; text++) {
        WEFT_TRY(run(window, text, 0, ROWS, begins[text], &y, error));
        for (int at = 0; at < begins[text]; at++)
            check_row(y, text, at, ROWS);
        free(y);
        for (int at = begins[text]; at < ROWS; at++) {
            WEFT_TRY(run(step, text, at, 1, at, &y, error));
            check_row(y, text, at, 1);
            free(y);
        }
    }
    return WEFT_OK;
}

static void check_layout(weft_mesh *mesh, const char *rules)
{
    weft_error error = {0};
    net window = {.graph = weft_graph_create(1)}, step = {.graph = weft_graph_create(1)};
    build(&window, row, false);
    build(&step, one, true);
    if (CHECK_OK(compile(&window, mesh, rules, NULL, &error), error) &&
        CHECK_OK(compile(&step, mesh, rules, window.program, &error), error))
        (void)CHECK_OK(go_through(&window, &step, &error), error);
    end(&step);
    end(&window);
}

static void test_rows_by_what_is_kept_are_those_of_the_window(void)
{
    static const char *const layouts[] = {"", "batch:data", "heads:data", "row:data",
                                          "batch:data,heads:model?"};
    weft_error error = {0};
    if (!CHECK_OK(expect(&error), error)) return;
    check_layout(oracle.alone, "");
    for (int m = 0; m < oracle.n_meshes; m++)
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            check_layout(oracle.meshes[m], layouts[i]);
}

/* ---- wrong calls --------------------------------------------------------------------------------- */

/* A right call, in which a test makes one thing wrong. */
typedef struct call {
    weft_graph *graph;
    weft_value q, kv;
    weft_kv_cache cache;
    weft_attention_options options;
} call;

static call begin(bool is_step)
{
    call c = {.graph = weft_graph_create(1)};
    const weft_dim rows = is_step ? one : row;
    c.q = weft_input(c.graph, "q", WEFT_F64, WEFT_DIMS(rows, heads, feature));
    c.kv = weft_input(c.graph, "k", WEFT_F64, WEFT_DIMS(rows, heads, feature));
    const weft_value kept = weft_variable(c.graph, "kept", WEFT_F64, WEFT_DIMS(row, heads, feature),
                                          weft_constant_of(0));
    c.cache = (weft_kv_cache){.kept = {kept, kept},
                              .place = weft_input(c.graph, "place", WEFT_I32, WEFT_SCALAR),
                              .is_step = is_step};
    c.options =
        (weft_attention_options){.query = rows, .memory = rows, .feature = feature, .causal = true};
    return c;
}

static void check_says(call *c, weft_kv_cache *cache, const char *sentence)
{
    const weft_value y = weft_kv_attend(cache, c->q, c->kv, c->kv, &c->options);
    CHECK_EQ_INT(y.id != 0, sentence == NULL);
    if (sentence != NULL)
        CHECK_TEXT(weft_graph_error(c->graph)->message, sentence);
    else
        CHECK_EQ_INT(weft_graph_error(c->graph)->status, WEFT_OK);
    weft_graph_destroy(&c->graph);
}

static void test_what_a_cache_is_told_wrongly_is_one_sentence(void)
{
    call c = begin(false);
    check_says(&c, &c.cache, NULL);
    c = begin(true);
    check_says(&c, &c.cache, NULL);
    c = begin(true);
    check_says(&c, NULL, "kv_attend at ");
    c = begin(true), c.cache.kept.value.id = 0;
    check_says(&c, &c.cache, "the cache keeps no values; give it a variable of values");
    c = begin(true), c.cache.kept.key = c.cache.place;
    check_says(&c, &c.cache, "the kept keys are [], and these rows make them [memory:1, heads:2");
    c = begin(true), c.cache.place = c.q;
    check_says(&c, &c.cache, "the cache's place is no number; it is an i32 scalar");
    c = begin(true), c.options.mask = c.cache.place;
    check_says(&c, &c.cache, "the attention has a mask; with kept rows it is causal");
    c = begin(false), c.options.causal = false;
    check_says(&c, &c.cache, "the attention has rows that see later ones; with kept rows");
    c = begin(false), c.cache.is_step = true;
    check_says(&c, &c.cache,
               "row has 6 rows; a step has 1 row, or a place for each, and a window as many as "
               "are kept");
    c = begin(true), c.cache.is_step = false;
    check_says(&c, &c.cache, "one has 1 rows; a step has 1 row");
    c = begin(true), c.options.memory.name = "many";
    check_says(&c, &c.cache, "the keys have no many, which their rows are along");
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:2,model:2", "data:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_rows_by_what_is_kept_are_those_of_the_window);
        RUN(test_what_a_cache_is_told_wrongly_is_one_sentence);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
