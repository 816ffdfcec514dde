/* stream: the CPU's stream: a team of lanes that cuts a loop into one contiguous piece a lane.
 *
 * Pieces are dealt out by lane number, not by who comes first, so with the same number of lanes the
 * same lane always works on the same elements: sums have the same bits, and data stays in that
 * core's cache.
 */
#include "mesh_internal.h"

#include <stdlib.h>

struct weft_stream {
    weft_team *team; /* member 0 is the owner's thread */
    int n_lanes;
    char *scratch; /* [n_lanes][WEFT_LANE_SCRATCH] */
};

static size_t scratch_bytes(const weft_stream *stream)
{
    return (size_t)stream->n_lanes * WEFT_LANE_SCRATCH;
}

weft_status weft_stream_create_cpu(int n_lanes, weft_stream **stream, weft_error *error)
{
    weft_stream *s = *stream = calloc(1, sizeof *s);
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    s->n_lanes = n_lanes;
    void *scratch = NULL;
    weft_status status = weft_take_cpu(scratch_bytes(s), &scratch, error);
    s->scratch = scratch;
    if (status == WEFT_OK)
        status = weft_team_create(n_lanes, weft_patience_for(true), &s->team, error);
    if (status != WEFT_OK) weft_stream_destroy_cpu(stream);
    return status;
}

void weft_stream_destroy_cpu(weft_stream **stream)
{
    weft_stream *s = *stream;
    if (s == NULL) return;
    weft_team_destroy(&s->team);
    weft_give_cpu(s->scratch, scratch_bytes(s));
    free(s);
    *stream = NULL;
}

typedef struct loop {
    weft_piece body;
    void *argument;
    int64_t count;
    int n_pieces;
} loop;

static int64_t piece_begin(const loop *l, int64_t piece)
{
    int64_t base = l->count / l->n_pieces, longer = l->count % l->n_pieces;
    return piece * base + (piece < longer ? piece : longer);
}

static void run_piece(void *argument, int lane)
{
    const loop *l = argument;
    l->body(l->argument, piece_begin(l, lane), piece_begin(l, lane + 1), lane);
}

void weft_parallel(weft_stream *stream, int64_t count, int64_t grain, weft_piece body,
                   void *argument)
{
    if (count <= 0 || body == NULL) return;
    int64_t wanted = grain > 1 ? count / grain : count;
    if (stream == NULL || stream->n_lanes == 1 || wanted <= 1) {
        body(argument, 0, count, 0);
        return;
    }
    int n_pieces = wanted < stream->n_lanes ? (int)wanted : stream->n_lanes;
    loop l = {.body = body, .argument = argument, .count = count, .n_pieces = n_pieces};
    weft_team_run(stream->team, n_pieces, run_piece, &l);
}

int weft_stream_lanes(const weft_stream *stream)
{
    return stream != NULL ? stream->n_lanes : 1;
}

void *weft_stream_scratch(weft_stream *stream, int lane)
{
    if (stream == NULL || lane < 0 || lane >= stream->n_lanes) return NULL;
    return stream->scratch + (size_t)lane * WEFT_LANE_SCRATCH;
}
