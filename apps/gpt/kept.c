/* kept: models that keep keys and values of a text from run to run: of a window and of what follows it (gpt sample), and of several
 * texts, each at places of its own (gpt serve).
 */
#include "builder.h"

static weft_value keeping(builder *b, weft_dim rows)
{
    gpt_model *m = b->m;
    b->keeps = true;
    b->cached = GPT_CACHE;
    gpt_set_dims(b->shape, m);
    m->tokens = weft_input(b->graph, "tokens", WEFT_I32, WEFT_DIMS(m->batch, rows));
    m->place = weft_input(b->graph, "place", WEFT_I32, WEFT_SCALAR);
    m->logits = gpt_scores(b, m->tokens);
    return m->logits;
}

weft_value gpt_context(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1};
    return keeping(&b, (weft_dim){"seq", shape->seq});
}

weft_value gpt_next(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    builder b = {
        .shape = shape, .m = model, .graph = graph, .layer = -1, .cache = {.is_step = true}};
    return keeping(&b, (weft_dim){"token", 1});
}

weft_value gpt_rows(const gpt_shape *shape, const gpt_rows_options *options, weft_graph *graph,
                    gpt_model *m)
{
    builder b = {.shape = shape,
                 .m = m,
                 .graph = graph,
                 .layer = -1,
                 .keeps = true,
                 .part = options->part,
                 .parts = options->parts,
                 .cached = options->cached,
                 .cache = {.is_step = true}};
    const bool is_last = options->part + 1 >= options->parts;
    gpt_set_dims(shape, m);
    m->variables = options->variables;
    m->token.size = options->rows;
    const weft_shape rows = WEFT_DIMS(m->batch, m->token);
    if (options->part == 0)
        m->tokens = weft_input(graph, "tokens", WEFT_I32, rows);
    else
        m->entering =
            weft_input(graph, "entering", dtype_of(shape), WEFT_DIMS(m->batch, m->token, m->embed));
    m->place = weft_input(graph, "place", WEFT_I32, rows);
    if (options->picks_last && is_last) m->last = weft_input(graph, "last", WEFT_I32, WEFT_SCALAR);
    const weft_value made = gpt_scores(&b, m->tokens);
    if (is_last)
        m->logits = made;
    else
        m->leaving = made;
    return made;
}

int gpt_most_parts(const gpt_shape *shape)
{
    return (int)gpt_layers_of(shape);
}

weft_value gpt_moved(const gpt_shape *shape, gpt_move move, weft_graph *graph, gpt_model *model)
{
    builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1};
    gpt_set_dims(shape, model);
    model->place = weft_input(graph, "slot", WEFT_I32, WEFT_SCALAR);
    gpt_cache_move(&b, move);
    return model->kept;
}

int gpt_chunk_caches(const gpt_shape *shape, weft_graph *graph, weft_value *variables)
{
    gpt_model m;
    builder b = {.shape = shape, .m = &m, .graph = graph, .layer = -1};
    gpt_set_dims(shape, &m);
    return gpt_cache_list(&b, variables);
}

bool gpt_has_step(const gpt_shape *shape)
{
    const bool counts_places = shape->mixture.experts > 1 && shape->mixture.capacity > 0;
    return shape->stages <= 1 && !counts_places;
}
