/* move.h (private): a conversion step of one tensor, or of several in one exchange: what is known of it before it runs.
 *
 * Made by move.c, and by move_pieces.c where pieces travel; run by flight.c.
 */
#ifndef WEFT_MOVE_H
#define WEFT_MOVE_H

#include "box_span.h"
#include "reduce.h"

/* A box that goes from one rank to another. */
typedef struct weft_move_piece {
    int part;      /* of which tensor */
    int peer;      /* its place in the group */
    bool is_first; /* summand of its elements: copied, later ones are combined */
    int64_t at;    /* of a packed piece: bytes into the scratch */
    /* outgoing: box to packed; incoming: packed to box; own incoming: box to box */
    weft_box_copy run;
} weft_move_piece;

/* One of its tensors. */
typedef struct weft_moved {
    int64_t count;       /* of the rank's box before */
    int64_t to_count;    /* and after */
    int64_t at;          /* all_reduce of several: where it is packed, in bytes */
    weft_combine begins; /* of partial results that begin: what no piece covers is its identity */
} weft_moved;

/* How steps of a kind are carried out. */
typedef struct weft_move_way {
    weft_status (*prepare)(weft_move *move, const weft_mesh *mesh, const weft_move_part *parts,
                           weft_error *error);
    weft_status (*start)(weft_flight *flight, weft_error *error);
    /* As weft_pending's; not called where the rank is alone in its group. */
    bool (*poll)(weft_flight *flight, weft_error *error);
    void (*finish)(weft_flight *flight);
} weft_move_way;

struct weft_move {
    const weft_move_way *way;
    weft_convert_kind kind;
    weft_dtype dtype;
    weft_combine combine; /* of the partial results that end here */
    weft_combining rule;  /* that one's */
    /* of the tensors; an open one's scratch may be any memory, another's is staging */
    const weft_device *device;
    weft_stream *stream; /* the rank's; NULL: it is none of this process */
    int queue;           /* on which it copies and combines */
    bool is_staged;      /* what travels lies in staging: engines of the host move it */
    int rank, n_ranks, self;
    int n_parts;
    weft_moved *parts; /* [n_parts] */
    int64_t total;     /* elements of the whole tensors */
    int64_t scratch_bytes, wire_bytes;
    weft_reduce reduce; /* all_reduce: of all parts, one after the other */

    bool gathers; /* all get all of the box: the engine's all_gather, own part too */
    bool packs, unpacks;
    int n_out, n_in;
    weft_move_piece *out, *in; /* in the group's order, and of one rank part by part */
    int64_t *numbers;          /* that the following are parts of */
    int64_t *send_bytes, *send_at, *recv_bytes, *recv_at; /* [n_ranks] */
    _Atomic int n_flights;                                /* that refer to it */
};

/* The scratch grows by so many bytes; returns where they begin. */
int64_t weft_move_take(weft_move *move, int64_t bytes);

/* move_pieces.c */
weft_status weft_pieces_prepare(weft_move *move, const weft_mesh *mesh, const weft_move_part *parts,
                                weft_error *error);
/* Of one tensor, by boxes, among all ranks. */
weft_status weft_pieces_of_boxes(weft_move *move, const weft_mesh *mesh,
                                 const weft_move_boxes *boxes, weft_error *error);
/* flight.c */
extern const weft_move_way weft_move_reduces, weft_move_exchanges;

#endif
