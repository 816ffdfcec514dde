/* stream: the CPU's stream: a team of lanes that cuts a loop into one contiguous piece a lane.
 *
 * Pieces are dealt out by lane number, not by order of arrival, so with the same number of lanes the same lane always
 * works on the same elements: sums have the same bits, and data stays in that core's cache. A lane that is late has its piece
 * done for it, in its name (team.c). Bodies whose bits do not depend on who does what may let lanes help each other
 * (work_sharing.c).
 */
#include "mesh_internal.h"

#include <stdlib.h>

enum { PAUSE_NS = 200000 }; /* between two pauses of lane 0, about */

struct weft_stream {
    weft_team *team; /* member 0 is the owner's thread */
    weft_work *shares;
    int n_lanes;
    char *scratch;            /* [n_lanes][WEFT_LANE_SCRATCH] */
    weft_meanwhile meanwhile; /* NULL: none */
    void *of_meanwhile;
    int64_t paused; /* when that was done last, ns */
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
    s->shares = weft_work_create(n_lanes);
    void *scratch = NULL;
    weft_status status = s->shares != NULL ? weft_host_take(scratch_bytes(s), &scratch, error)
                                           : weft_fail_memory(error, sizeof *s);
    s->scratch = scratch;
    if (status == WEFT_OK)
        status = weft_team_create(n_lanes, weft_patience_of_lanes(n_lanes), &s->team, error);
    if (status != WEFT_OK) weft_stream_destroy_cpu(stream);
    return status;
}

void weft_stream_destroy_cpu(weft_stream **stream)
{
    weft_stream *s = *stream;
    if (s == NULL) return;
    weft_team_destroy(&s->team);
    weft_host_give(s->scratch, scratch_bytes(s));
    weft_work_destroy(s->shares);
    free(s);
    *stream = NULL;
}

typedef struct loop {
    weft_stream *stream; /* NULL: no pauses */
    weft_piece body;
    void *argument;
    int64_t count, grain;
    int n_pieces;
    bool is_whole; /* a piece is one call */
} loop;

static int64_t piece_begin(const loop *l, int64_t piece)
{
    int64_t base = l->count / l->n_pieces, longer = l->count % l->n_pieces;
    return piece * base + (piece < longer ? piece : longer);
}

static bool has_pauses(const weft_stream *stream, int lane)
{
    return lane == 0 && stream != NULL && stream->meanwhile != NULL;
}

static void pause_at(weft_stream *stream, int64_t now)
{
    if (now - stream->paused < PAUSE_NS) return;
    stream->meanwhile(stream->of_meanwhile);
    stream->paused = weft_sync_now();
}

void weft_stream_pause(weft_stream *stream, int lane)
{
    if (has_pauses(stream, lane)) pause_at(stream, weft_sync_now());
}

/* In parts that take about as long as there should be between two pauses, the first one small. */
static void run_with_pauses(const loop *l, int64_t begin, int64_t end)
{
    int64_t part = l->grain > 1 ? l->grain : 1;
    while (begin < end) {
        const int64_t until = end - begin < 2 * part ? end : begin + part,
                      started = weft_sync_now();
        l->body(l->argument, begin, until, 0);
        begin = until;
        const int64_t now = weft_sync_now();
        if (now - started < PAUSE_NS / 2) part *= 2;
        if (now - started > PAUSE_NS && part > 1) part /= 2;
        pause_at(l->stream, now);
    }
}

static void run_piece(void *argument, int lane)
{
    const loop *l = argument;
    int64_t begin = piece_begin(l, lane), end = piece_begin(l, lane + 1);
    if (l->is_whole && l->stream != NULL) weft_work_piece(l->stream->shares, lane, &begin, &end);
    if (!l->is_whole && has_pauses(l->stream, lane))
        run_with_pauses(l, begin, end);
    else
        l->body(l->argument, begin, end, lane);
}

static void run_loop(loop *l)
{
    weft_stream *stream = l->stream;
    if (l->count <= 0 || l->body == NULL) return;
    const int64_t wanted = l->grain > 1 ? l->count / l->grain : l->count;
    if (stream != NULL && wanted > 1)
        l->n_pieces = wanted < stream->n_lanes ? (int)wanted : stream->n_lanes;
    if (stream != NULL && l->is_whole) weft_work_begin(stream->shares, l->count, l->n_pieces);
    if (l->n_pieces == 1)
        run_piece(l, 0);
    else
        weft_team_share(stream->team, l->n_pieces, run_piece, l);
}

void weft_parallel(weft_stream *stream, int64_t count, int64_t grain, weft_piece body,
                   void *argument)
{
    run_loop(&(loop){stream, body, argument, count, grain, 1, false});
}

void weft_parallel_whole(weft_stream *stream, int64_t count, int64_t grain, weft_piece body,
                         void *argument)
{
    run_loop(&(loop){stream, body, argument, count, grain, 1, true});
}

bool weft_stream_take(weft_stream *stream, int lane, int64_t most, int64_t *begin, int64_t *end)
{
    if (stream == NULL || begin == NULL || end == NULL) return false;
    if (lane < 0 || lane >= stream->n_lanes) return false;
    return weft_work_take(stream->shares, lane, most, weft_team_sign(stream->team, lane), begin,
                          end);
}

void weft_stream_again(weft_stream *stream, int lane)
{
    if (stream != NULL) weft_work_again(stream->shares, lane);
}

void weft_stream_meanwhile(weft_stream *stream, weft_meanwhile meanwhile, void *argument)
{
    if (stream == NULL) return;
    stream->meanwhile = meanwhile;
    stream->of_meanwhile = argument;
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
