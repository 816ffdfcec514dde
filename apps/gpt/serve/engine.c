/* engine: programs over the same variables: slots by a token each, a chunk of a prompt, and moves of whole windows. The first has all
 * variables, for the others to share.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- the programs -------------------------------------------------------------------------------- */

static weft_status compile(gpt_engine *e, gpt_part *part, weft_values values, weft_program *share,
                           weft_error *error)
{
    const weft_compile_options options = {.share = share};
    return weft_compile(e->setup->mesh, e->setup->layout, values, &options, &part->program, error);
}

/* Besides what a program computes it lists variables: the first those of the chunk, which others share; those that move windows all
 * weights, whose dims the layout names. */
typedef struct listed {
    weft_value *values; /* own it: free */
    int n;
} listed;

static weft_status list_begin(const gpt_engine *e, listed *list, weft_error *error)
{
    const size_t most = (size_t)gpt_n_variables(&e->shape) + GPT_MOST_CACHES + 3;
    *list = (listed){.values = malloc(most * sizeof *list->values)};
    return list->values ? WEFT_OK : weft_fail_memory(error, most * sizeof *list->values);
}

static weft_status compile_decode(gpt_engine *e, weft_error *error)
{
    gpt_part *d = &e->decode;
    const gpt_rows_options options = {.cached = GPT_SLOTS, .rows = 1};
    listed list;
    WEFT_TRY(list_begin(e, &list, error));
    (void)gpt_rows(&e->shape, &options, d->graph, &d->model);
    list.values[list.n++] = d->model.logits, list.values[list.n++] = d->model.kept;
    list.n += gpt_chunk_caches(&e->shape, d->graph, list.values + list.n);
    const weft_status status = compile(e, d, (weft_values){list.values, list.n}, NULL, error);
    free(list.values);
    return status;
}

/* A part has not all variables of the model: they are listed. */
static weft_status compile_read(gpt_engine *e, int part, weft_error *error)
{
    gpt_part *r = &e->reads[part];
    const bool is_last = part + 1 == e->n_reads;
    const int n = gpt_n_variables(&e->shape);
    gpt_shape shape = e->shape;
    listed list;
    shape.batch = 1;
    WEFT_TRY(list_begin(e, &list, error));
    gpt_variables(&shape, r->graph, list.values);
    const gpt_rows_options options = {.cached = GPT_CHUNK,
                                      .rows = e->options.chunk,
                                      .picks_last = true,
                                      .part = part,
                                      .parts = e->n_reads,
                                      .variables = list.values};
    list.n = n;
    list.values[list.n++] = gpt_rows(&shape, &options, r->graph, &r->model);
    list.values[list.n++] = r->model.kept;
    if (is_last) list.values[list.n++] = r->model.normed;
    const weft_status status =
        compile(e, r, (weft_values){list.values, list.n}, e->decode.program, error);
    free(list.values);
    return status;
}

static weft_status compile_move(gpt_engine *e, gpt_move move, weft_error *error)
{
    gpt_part *part = &e->moves[move];
    listed list;
    WEFT_TRY(list_begin(e, &list, error));
    list.values[list.n++] = gpt_moved(&e->shape, move, part->graph, &part->model);
    gpt_variables(&e->shape, part->graph, list.values + list.n);
    list.n += gpt_n_variables(&e->shape);
    const weft_status status =
        compile(e, part, (weft_values){list.values, list.n}, e->decode.program, error);
    free(list.values);
    return status;
}

static weft_status open_programs(gpt_engine *e, weft_error *error)
{
    WEFT_TRY(compile_decode(e, error));
    WEFT_TRY(gpt_stored_restore(e->setup, e->decode.program, error));
    for (int i = 0; i < e->n_reads; i++)
        WEFT_TRY(compile_read(e, i, error));
    for (int i = 0; i < GPT_MOVES; i++)
        WEFT_TRY(compile_move(e, (gpt_move)i, error));
    e->dtype = weft_dtype_of(e->decode.model.logits);
    e->normed_dtype = weft_dtype_of(e->reads[e->n_reads - 1].model.normed);
    return WEFT_OK;
}

/* ---- memory, and how ranks hear of a tick ---------------------------------------------------------- */

enum { MOST_PARTS = 1 + GPT_MOST_READS + GPT_MOVES };

/* The last has the variables. */
static int list_parts(gpt_engine *e, gpt_part *parts[MOST_PARTS])
{
    int n = 0;
    for (int i = 0; i < GPT_MOVES; i++)
        parts[n++] = &e->moves[i];
    for (int i = 0; i < e->n_reads; i++)
        parts[n++] = &e->reads[i];
    parts[n++] = &e->decode;
    return n;
}

enum { TOLD = 6 /* numbers of a tick besides lists */ };

static void lay_out(gpt_engine *e)
{
    const int64_t slots = e->options.slots, chunk = e->options.chunk;
    int32_t *at = e->told;
    e->tick = (gpt_tick){.does = at,
                         .emptied = at + 1,
                         .joined = at + 2,
                         .part = at + 3,
                         .end = at + 4,
                         .last = at + 5};
    at += TOLD;
    e->tick.slot_tokens = at, e->tick.slot_places = at + slots;
    at += 2 * slots;
    e->tick.chunk_tokens = at, e->tick.chunk_places = at + chunk;
}

static weft_status take_memory(gpt_engine *e, weft_error *error)
{
    const size_t slots = (size_t)e->options.slots, chunk = (size_t)e->options.chunk;
    const size_t vocab = (size_t)e->shape.vocab, width = (size_t)e->shape.width;
    gpt_part *parts[MOST_PARTS];
    const int n = list_parts(e, parts);
    bool has_all = true;
    e->n_told = (int64_t)(TOLD + 2 * slots + 2 * chunk);
    e->told = calloc((size_t)e->n_told, sizeof *e->told);
    e->slot_logits = malloc(slots * vocab * sizeof(double));
    e->chunk_logits = malloc(vocab * sizeof(double));
    e->normed = malloc(chunk * width * sizeof(double));
    e->between = malloc(chunk * width * sizeof(double));
    for (int i = 0; i < n; i++) {
        parts[i]->graph = weft_graph_create((uint64_t)settings_count(e->setup->settings, "seed"));
        has_all = has_all && parts[i]->graph;
    }
    if (!has_all || !e->told || !e->slot_logits || !e->chunk_logits || !e->normed || !e->between)
        return weft_fail_memory(error, (slots + 1) * vocab * sizeof(double));
    lay_out(e);
    gpt_engine_forget(e);
    return WEFT_OK;
}

static weft_status check(const gpt_shape *shape, weft_error *error)
{
    if (gpt_has_step(shape)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "gpt serve goes on by a token at a time, which a model in stages, or one of "
                     "experts with so many places a window, cannot (stages %lld, capacity %g); "
                     "gpt sample can, and so can one that was trained with --capacity 0",
                     (long long)shape->stages, shape->mixture.capacity);
}

weft_status gpt_engine_open(gpt_engine *e, gpt_setup *setup, const gpt_engine_options *options,
                            weft_error *error)
{
    weft_error own = {.rank = -1};
    *e = (gpt_engine){.setup = setup, .options = *options, .shape = setup->shape};
    e->shape.batch = options->slots;
    e->shape.dropout = 0;
    e->shape.micro = e->shape.turns = 1;
    const int most = gpt_most_parts(&e->shape);
    e->n_reads = most < GPT_MOST_READS ? most : GPT_MOST_READS;
    if (check(&e->shape, &own) == WEFT_OK) (void)!take_memory(e, &own);
    if (weft_world_agree(&own) != WEFT_OK) {
        *error = own;
        return own.status;
    }
    WEFT_TRY(serve_told_open(&e->ranks, setup->mesh, error));
    return open_programs(e, error);
}

void gpt_engine_close(gpt_engine *e)
{
    gpt_part *parts[MOST_PARTS];
    const int n = list_parts(e, parts);
    for (int i = 0; i < n; i++) {
        weft_program_destroy(&parts[i]->program);
        weft_graph_destroy(&parts[i]->graph);
    }
    serve_told_close(&e->ranks);
    free(e->told);
    free(e->slot_logits);
    free(e->chunk_logits);
    free(e->normed);
    free(e->between);
    *e = (gpt_engine){0};
}

/* ---- a tick ---------------------------------------------------------------------------------------- */

void gpt_engine_forget(gpt_engine *e)
{
    memset(e->told, 0, (size_t)e->n_told * sizeof *e->told);
    for (int64_t i = 0; i < e->options.slots; i++)
        e->tick.slot_places[i] = -1;
    for (int64_t i = 0; i < e->options.chunk; i++)
        e->tick.chunk_places[i] = -1;
}

static weft_status write_numbers(const gpt_part *part, weft_value input, const int32_t *numbers,
                                 int64_t n, weft_error *error)
{
    return weft_write(part->program, input, WEFT_I32, numbers, n * (int64_t)sizeof *numbers, error);
}

static weft_status move(const gpt_engine *e, gpt_move which, const int32_t *slot, weft_error *error)
{
    const gpt_part *m = &e->moves[which];
    WEFT_TRY(write_numbers(m, m->model.place, slot, 1, error));
    return weft_run(m->program, error);
}

static weft_status empty(const gpt_engine *e, weft_error *error)
{
    return move(e, GPT_EMPTY, e->tick.emptied, error);
}

static weft_status wipe(const gpt_engine *e, weft_error *error)
{
    return move(e, GPT_WIPE, e->tick.emptied, error);
}

static weft_status join(const gpt_engine *e, weft_error *error)
{
    return move(e, GPT_JOIN, e->tick.joined, error);
}

static weft_status clear(const gpt_engine *e, weft_error *error)
{
    return move(e, GPT_CLEAR, e->tick.joined, error);
}

static weft_status decode(const gpt_engine *e, weft_error *error)
{
    const gpt_part *d = &e->decode;
    const int64_t slots = e->options.slots;
    WEFT_TRY(write_numbers(d, d->model.tokens, e->tick.slot_tokens, slots, error));
    WEFT_TRY(write_numbers(d, d->model.place, e->tick.slot_places, slots, error));
    WEFT_TRY(weft_run(d->program, error));
    return weft_read(d->program, d->model.logits, e->dtype, e->slot_logits,
                     slots * e->shape.vocab * (int64_t)weft_dtype_bytes(e->dtype), error);
}

static int64_t bytes_between(const gpt_engine *e, weft_dtype dtype)
{
    return e->options.chunk * e->shape.width * (int64_t)weft_dtype_bytes(dtype);
}

static weft_status enter_part(const gpt_engine *e, const gpt_part *r, weft_error *error)
{
    const weft_dtype dtype = weft_dtype_of(r->model.entering);
    return weft_write(r->program, r->model.entering, dtype, e->between, bytes_between(e, dtype),
                      error);
}

static weft_status leave_part(const gpt_engine *e, const gpt_part *r, weft_error *error)
{
    const weft_dtype dtype = weft_dtype_of(r->model.leaving);
    return weft_read(r->program, r->model.leaving, dtype, e->between, bytes_between(e, dtype),
                     error);
}

static weft_status read_part(const gpt_engine *e, int part, weft_error *error)
{
    const gpt_part *r = &e->reads[part];
    const int64_t chunk = e->options.chunk;
    const bool is_last = part + 1 == e->n_reads;
    WEFT_TRY(part > 0 ? enter_part(e, r, error)
                      : write_numbers(r, r->model.tokens, e->tick.chunk_tokens, chunk, error));
    WEFT_TRY(write_numbers(r, r->model.place, e->tick.chunk_places, chunk, error));
    if (is_last) WEFT_TRY(write_numbers(r, r->model.last, e->tick.last, 1, error));
    WEFT_TRY(weft_run(r->program, error));
    if (!is_last) return leave_part(e, r, error);
    return weft_read(r->program, r->model.logits, e->dtype, e->chunk_logits,
                     e->shape.vocab * (int64_t)weft_dtype_bytes(e->dtype), error);
}

static weft_status read_chunk(const gpt_engine *e, weft_error *error)
{
    for (int part = *e->tick.part; part < *e->tick.end; part++)
        WEFT_TRY(read_part(e, part, error));
    return WEFT_OK;
}

static weft_status look(const gpt_engine *e, weft_error *error)
{
    const gpt_part *r = &e->reads[e->n_reads - 1];
    return weft_read(r->program, r->model.normed, e->normed_dtype, e->normed,
                     bytes_between(e, e->normed_dtype), error);
}

weft_status gpt_engine_run(gpt_engine *e, weft_error *error)
{
    static const struct {
        gpt_does does;
        weft_status (*run)(const gpt_engine *, weft_error *);
    } steps[] = {{GPT_EMPTIES, empty}, {GPT_WIPES, wipe},     {GPT_JOINS, join},
                 {GPT_CLEARS, clear},  {GPT_DECODES, decode}, {GPT_READS, read_chunk},
                 {GPT_LOOKS, look}};
    WEFT_TRY(serve_told_send(&e->ranks, e->told, e->n_told * (int64_t)sizeof *e->told, error));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (*e->tick.does & (int32_t)steps[i].does) WEFT_TRY(steps[i].run(e, error));
    return WEFT_OK;
}
