/* RANKS: 2 4 */
/* gpt_rows_test: texts in slots, each at a place of its own, their prompts read in chunks beside them, give the logits of the whole
 * window, under any layout; and what stands in the other slots, or stood in a slot before, changes no bit.
 */
#include "gpt_training.h"

#include <math.h>
#include <stdlib.h>

enum { SLOTS = 3, CHUNK = 4, TEXTS = 4, MOST_READS = 2 };

typedef struct rows_case {
    const char *mesh, *layout;
    int zero;
    bool scans;
    int64_t unroll;
    int64_t kv_heads; /* of four; 0: a plain model */
} rows_case;

typedef struct part {
    weft_graph *graph;
    gpt_model model;
    weft_program *program;
} part;

typedef struct server {
    part decode, reads[MOST_READS], moves[GPT_MOVES];
    int n_reads;
    int text[SLOTS], at[SLOTS]; /* which text a slot has, -1: none; the next row */
} server;

static weft_oracle oracle;

static gpt_shape shape_of(const rows_case *c)
{
    return stepped_shape(SLOTS, c->scans, c->kv_heads);
}

static double token_of(int text, int row)
{
    return (11 * text + row * row + 5 * row + 3) % TRAINED_VOCAB;
}

/* ---- the programs -------------------------------------------------------------------------------- */

static weft_status compile(weft_mesh *mesh, const rows_case *c, part *p, weft_values values,
                           weft_program *share, weft_error *error)
{
    const weft_compile_options options = {.share = share, .unroll = c->unroll};
    weft_layout *layout = NULL;
    WEFT_TRY(weft_layout_create(c->layout, &layout, error));
    WEFT_TRY(weft_layout_store(layout, c->zero, "batch", error));
    const weft_status status = weft_compile(mesh, layout, values, &options, &p->program, error);
    weft_layout_destroy(&layout);
    return status;
}

/* A part of the layers, of a chunk; the layout names dims of other parts. */
static weft_status open_read(weft_mesh *mesh, const rows_case *c, server *s, int at,
                             weft_error *error)
{
    weft_value values[3 + MOST_VARIABLES];
    part *p = &s->reads[at];
    gpt_shape one = shape_of(c);
    one.batch = 1;
    const int n = gpt_n_variables(&one);
    p->graph = weft_graph_create(1);
    gpt_variables(&one, p->graph, values);
    values[n] = gpt_rows(&one,
                         &(gpt_rows_options){.cached = GPT_CHUNK,
                                             .rows = CHUNK,
                                             .picks_last = true,
                                             .part = at,
                                             .parts = s->n_reads,
                                             .variables = values},
                         p->graph, &p->model);
    values[n + 1] = p->model.kept;
    return compile(mesh, c, p, (weft_values){values, n + 2}, s->decode.program, error);
}

/* With all weights: the layout names their dims. */
static weft_status open_move(weft_mesh *mesh, const rows_case *c, part *p, gpt_move move,
                             weft_program *share, weft_error *error)
{
    weft_value values[1 + MOST_VARIABLES];
    const gpt_shape shape = shape_of(c);
    p->graph = weft_graph_create(1);
    values[0] = gpt_moved(&shape, move, p->graph, &p->model);
    gpt_variables(&shape, p->graph, values + 1);
    return compile(mesh, c, p, (weft_values){values, 1 + gpt_n_variables(&shape)}, share, error);
}

static weft_status open_server(weft_mesh *mesh, const rows_case *c, server *s, weft_error *error)
{
    static weft_value values[GPT_MOST_CACHES + 2];
    const gpt_shape shape = shape_of(c);
    const int most = gpt_most_parts(&shape);
    *s = (server){.text = {-1, -1, -1}, .n_reads = most < MOST_READS ? most : MOST_READS};
    CHECK(most == (c->scans ? 1 : shape.layers));
    s->decode.graph = weft_graph_create(1);
    (void)gpt_rows(&shape, &(gpt_rows_options){.cached = GPT_SLOTS, .rows = 1}, s->decode.graph,
                   &s->decode.model);
    values[0] = s->decode.model.logits, values[1] = s->decode.model.kept;
    const int n = gpt_chunk_caches(&shape, s->decode.graph, values + 2);
    WEFT_TRY(compile(mesh, c, &s->decode, (weft_values){values, n + 2}, NULL, error));
    weft_program *share = s->decode.program;
    for (int i = 0; i < s->n_reads; i++)
        WEFT_TRY(open_read(mesh, c, s, i, error));
    for (int i = 0; i < GPT_MOVES; i++)
        WEFT_TRY(open_move(mesh, c, &s->moves[i], (gpt_move)i, share, error));
    return WEFT_OK;
}

static void close_part(part *p)
{
    weft_program_destroy(&p->program);
    weft_graph_destroy(&p->graph);
}

static void close_server(server *s)
{
    for (int i = 0; i < GPT_MOVES; i++)
        close_part(&s->moves[i]);
    for (int i = 0; i < MOST_READS; i++)
        close_part(&s->reads[i]);
    close_part(&s->decode);
}

/* ---- logits, as they have to be ------------------------------------------------------------------ */

static double expected[TEXTS][TRAINED_SEQ * TRAINED_VOCAB];

/* By the model that keeps nothing, on one rank. */
static bool find_expected(bool scans, int64_t kv_heads)
{
    const rows_case c = {"data:1", "", 0, scans, 0, kv_heads};
    gpt_shape shape = shape_of(&c);
    part p = {.graph = weft_graph_create(1)};
    weft_error error = {0};
    shape.batch = TEXTS;
    double tokens[TEXTS * TRAINED_SEQ], *logits = NULL;
    for (int i = 0; i < TEXTS * TRAINED_SEQ; i++)
        tokens[i] = token_of(i / TRAINED_SEQ, i % TRAINED_SEQ);
    (void)gpt_logits(&shape, p.graph, &p.model);
    const bool is_run =
        CHECK_OK(compile(oracle.alone, &c, &p, WEFT_VALUES(p.model.logits), NULL, &error), error) &&
        CHECK_OK(weft_oracle_write(p.program, p.model.tokens, tokens, &error), error) &&
        CHECK_OK(weft_run(p.program, &error), error) &&
        CHECK_OK(weft_oracle_read(p.program, p.model.logits, &logits, &error), error);
    if (is_run) memcpy(expected, logits, sizeof expected);
    free(logits);
    weft_program_destroy(&p.program);
    weft_graph_destroy(&p.graph);
    return is_run;
}

static void check_row(const rows_case *c, const double *found, int text, int row)
{
    for (int v = 0; v < TRAINED_VOCAB; v++) {
        const double want = expected[text][row * TRAINED_VOCAB + v];
        char what[200];
        if (fabs(found[v] - want) <= 1e-10 * (1 + fabs(want))) continue;
        snprintf(what, sizeof what, "%s \"%s\"%s: row %d of text %d: %g, not %g", c->mesh,
                 c->layout, c->scans ? " scan" : "", row, text, found[v], want);
        weft_test_check(false, __FILE__, __LINE__, what);
        return;
    }
    CHECK(true);
}

/* ---- texts ---------------------------------------------------------------------------------------- */

/* numbers: what the part before has left; in the end logits */
static weft_status read_part(server *s, int at, const double *tokens, const double *places,
                             double picked, double **numbers, weft_error *error)
{
    const bool is_last = at + 1 == s->n_reads;
    const part *p = &s->reads[at];
    const gpt_model *m = &p->model;
    WEFT_TRY(at == 0 ? weft_oracle_write(p->program, m->tokens, tokens, error)
                     : weft_oracle_write(p->program, m->entering, *numbers, error));
    WEFT_TRY(weft_oracle_write(p->program, m->place, places, error));
    if (is_last) WEFT_TRY(weft_oracle_write(p->program, m->last, &picked, error));
    WEFT_TRY(weft_run(p->program, error));
    free(*numbers);
    *numbers = NULL;
    return weft_oracle_read(p->program, is_last ? m->logits : m->leaving, numbers, error);
}

static weft_status move(const server *s, gpt_move which, int slot, weft_error *error)
{
    const part *m = &s->moves[which];
    const double at = slot;
    WEFT_TRY(weft_oracle_write(m->program, m->model.place, &at, error));
    return weft_run(m->program, error);
}

/* A prompt of n rows into a slot, chunk by chunk; the last one is not full. last: logits of its last row, or NULL. */
static weft_status begin_text(const rows_case *c, server *s, int slot, int text, int n,
                              double *last, weft_error *error)
{
    for (int row = 0; row < n; row += CHUNK) {
        double tokens[CHUNK] = {0}, places[CHUNK], *logits = NULL;
        const int rows = n - row < CHUNK ? n - row : CHUNK;
        const double picked = rows - 1;
        for (int i = 0; i < CHUNK; i++)
            tokens[i] = i < rows ? token_of(text, row + i) : 0, places[i] = i < rows ? row + i : -1;
        for (int at = 0; at < s->n_reads; at++)
            WEFT_TRY(read_part(s, at, tokens, places, picked, &logits, error));
        check_row(c, logits, text, row + rows - 1);
        if (last) memcpy(last, logits, TRAINED_VOCAB * sizeof *last);
        free(logits);
    }
    WEFT_TRY(move(s, slot == 1 ? GPT_EMPTY : GPT_WIPE, slot, error)); /* both do */
    WEFT_TRY(move(s, GPT_JOIN, slot, error));
    WEFT_TRY(move(s, GPT_CLEAR, slot, error));
    s->text[slot] = text, s->at[slot] = n;
    return WEFT_OK;
}

/* Each text goes on by a token; one that is at its end leaves. all: logits [SLOTS, TRAINED_VOCAB] */
static weft_status go_on(const rows_case *c, server *s, double *all, weft_error *error)
{
    double tokens[SLOTS], places[SLOTS], *logits;
    for (int i = 0; i < SLOTS; i++) {
        const bool is_there = s->text[i] >= 0;
        tokens[i] = is_there ? token_of(s->text[i], s->at[i]) : 0;
        places[i] = is_there ? s->at[i] : -1;
    }
    WEFT_TRY(weft_oracle_write(s->decode.program, s->decode.model.tokens, tokens, error));
    WEFT_TRY(weft_oracle_write(s->decode.program, s->decode.model.place, places, error));
    WEFT_TRY(weft_run(s->decode.program, error));
    WEFT_TRY(weft_oracle_read(s->decode.program, s->decode.model.logits, &logits, error));
    if (all) memcpy(all, logits, SLOTS * TRAINED_VOCAB * sizeof *all);
    for (int i = 0; i < SLOTS; i++) {
        if (s->text[i] < 0) continue;
        check_row(c, logits + i * TRAINED_VOCAB, s->text[i], s->at[i]);
        if (++s->at[i] == TRAINED_SEQ) s->text[i] = -1;
    }
    free(logits);
    return WEFT_OK;
}

/* Texts come and go: the last one to where one was. */
static weft_status write_texts(const rows_case *c, server *s, weft_error *error)
{
    WEFT_TRY(begin_text(c, s, 1, 0, 5, NULL, error));
    WEFT_TRY(go_on(c, s, NULL, error));
    WEFT_TRY(begin_text(c, s, 0, 1, 8, NULL, error));
    WEFT_TRY(go_on(c, s, NULL, error));
    WEFT_TRY(begin_text(c, s, 2, 2, 1, NULL, error));
    while (s->text[1] >= 0)
        WEFT_TRY(go_on(c, s, NULL, error));
    WEFT_TRY(begin_text(c, s, 1, 3, 2, NULL, error));
    for (int i = 0; i < TRAINED_SEQ; i++)
        WEFT_TRY(go_on(c, s, NULL, error));
    return WEFT_OK;
}

static void check_case(const rows_case *c)
{
    weft_mesh *mesh = trained_mesh(&oracle, c->mesh);
    weft_error error = {0};
    server s = {0};
    if (mesh == NULL) return;
    if (CHECK_OK(open_server(mesh, c, &s, &error), error))
        (void)CHECK_OK(write_texts(c, &s, &error), error);
    close_server(&s);
}

#define MODEL "hidden:model,heads:model,vocab:model"

static const rows_case cases[] = {
    {"data:1", "", 0, false, 0},
    {"data:2", "batch:data", 0, false, 0},
    {"data:2", "batch:data", 3, false, 0},
    {"model:2", MODEL, 0, false, 0},
    {"model:2", "seq:model", 0, false, 0},
    {"model:2", "hidden:model", 0, false, 0},
    {"data:2,model:2", "batch:data," MODEL, 0, false, 0},
};

static void test_slots_give_the_logits_of_the_window(void)
{
    if (!find_expected(false, 0)) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

static void test_slots_through_a_scan_of_the_layers(void)
{
    if (!find_expected(true, 0)) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += 3) {
        rows_case c = cases[i];
        c.scans = true, c.unroll = 1;
        check_case(&c);
    }
}

static void test_slots_of_heads_that_turn_and_share_keys(void)
{
    if (!find_expected(false, 2)) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += 3) {
        rows_case c = cases[i];
        c.kv_heads = 2;
        check_case(&c);
    }
}

/* ---- bits ----------------------------------------------------------------------------------------- */

/* Logits of a text's prompt and of four tokens behind it, in a slot. */
enum { FOLLOWED = 4 };
typedef double numbers[(1 + FOLLOWED) * TRAINED_VOCAB];

static weft_status follow(const rows_case *c, server *s, int slot, numbers *found,
                          weft_error *error)
{
    double all[SLOTS * TRAINED_VOCAB];
    WEFT_TRY(begin_text(c, s, slot, 2, 5, *found, error));
    for (int i = 0; i < FOLLOWED; i++) {
        WEFT_TRY(go_on(c, s, all, error));
        memcpy(*found + (1 + i) * TRAINED_VOCAB, all + slot * TRAINED_VOCAB,
               TRAINED_VOCAB * sizeof *all);
    }
    s->text[slot] = -1;
    return WEFT_OK;
}

/* Alone; in a slot where another text was, beside two that are elsewhere; and alone again. */
static weft_status follow_in_company(const rows_case *c, server *s, weft_error *error)
{
    static numbers alone, beside, again;
    WEFT_TRY(follow(c, s, 1, &alone, error));
    WEFT_TRY(begin_text(c, s, 1, 0, 7, NULL, error));
    WEFT_TRY(go_on(c, s, NULL, error));
    WEFT_TRY(begin_text(c, s, 0, 1, 3, NULL, error));
    WEFT_TRY(begin_text(c, s, 2, 3, 5, NULL, error));
    WEFT_TRY(follow(c, s, 1, &beside, error));
    s->text[0] = s->text[2] = -1;
    WEFT_TRY(follow(c, s, 1, &again, error));
    CHECK(memcmp(alone, beside, sizeof alone) == 0);
    CHECK(memcmp(alone, again, sizeof alone) == 0);
    return WEFT_OK;
}

static void test_neighbours_change_no_bit(void)
{
    if (!find_expected(false, 0)) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_mesh *mesh = trained_mesh(&oracle, cases[i].mesh);
        weft_error error = {0};
        server s = {0};
        if (mesh == NULL) continue;
        if (CHECK_OK(open_server(mesh, &cases[i], &s, &error), error))
            (void)CHECK_OK(follow_in_company(&cases[i], &s, &error), error);
        close_server(&s);
    }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_slots_give_the_logits_of_the_window);
        RUN(test_slots_through_a_scan_of_the_layers);
        RUN(test_slots_of_heads_that_turn_and_share_keys);
        RUN(test_neighbours_change_no_bit);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
