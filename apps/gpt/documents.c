/* documents: a mask out of segments: attention takes any, and layouts split it as they split attention. */
#include "documents.h"

#include "weft/scan.h"

static const char column[] = "key";

gpt_documents gpt_documents_open(weft_graph *graph, weft_dim batch, weft_dim seq)
{
    return (gpt_documents){
        .segments = weft_input(graph, "segments", WEFT_I32, WEFT_DIMS(batch, seq)),
        .positions = weft_input(graph, "positions", WEFT_I32, WEFT_DIMS(batch, seq))};
}

void gpt_documents_see(gpt_documents *documents)
{
    if (documents->segments.id == 0) return;
    const weft_dim seq = weft_dim_of(documents->segments, "seq"), key = {column, seq.size};
    documents->mask = weft_equal(documents->segments, weft_rename(documents->segments, seq, key));
}

gpt_documents gpt_documents_entering(const gpt_documents *documents, const gpt_pipe *pipe)
{
    if (documents->segments.id == 0) return *documents;
    return (gpt_documents){.segments = documents->segments,
                           .positions = gpt_pipe_feed(pipe, documents->positions)};
}

/* [batch, seq] as [tick, stage, batch, seq]; of several turns the first dim is theirs. */
static weft_value held_in(const gpt_pipe *pipe, weft_value x, int turn)
{
    const weft_value all = gpt_pipe_beside(pipe, x);
    return pipe->turns > 1 ? weft_unstack(all, weft_dim_of(all, "turn"), turn) : all;
}

gpt_documents gpt_documents_held(const gpt_documents *documents, const gpt_pipe *pipe, int turn)
{
    if (documents->segments.id == 0) return *documents;
    return (gpt_documents){.segments = held_in(pipe, documents->segments, turn),
                           .positions = held_in(pipe, documents->positions, turn)};
}

gpt_documents gpt_documents_of_tick(const gpt_documents *held)
{
    if (held->segments.id == 0) return *held;
    const weft_dim tick = weft_dim_of(held->segments, "tick");
    gpt_documents own = {.segments = weft_scan_each(held->segments, tick),
                         .positions = weft_scan_each(held->positions, tick)};
    gpt_documents_see(&own);
    return own;
}

void gpt_documents_count(gpt_documents *documents, weft_value targets, weft_dtype dtype,
                         double share)
{
    if (documents->segments.id == 0) return;
    weft_graph *graph = targets.graph;
    const weft_value zero = weft_constant(graph, WEFT_I32, WEFT_SCALAR, 0);
    const weft_value one = weft_constant(graph, dtype, WEFT_SCALAR, 1);
    const weft_value some = weft_cast(weft_greater_equal(targets, zero), dtype);
    const weft_value count = weft_maximum(weft_sum(WEFT_SCALAR, some), one);
    documents->count = share == 1 ? count : weft_scale(count, share);
}

void gpt_documents_attend(const gpt_documents *documents, weft_transformer_options *options)
{
    if (documents->segments.id == 0) return;
    options->positions = documents->positions;
    options->self.mask = documents->mask;
    options->self.column = (weft_dim){column, options->self.query.size};
}

weft_value gpt_documents_mean(const gpt_documents *documents, weft_value losses)
{
    if (documents->count.id == 0) return weft_mean(losses);
    return weft_div(weft_sum(WEFT_SCALAR, losses), documents->count);
}
