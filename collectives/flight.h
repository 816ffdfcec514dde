/* flight.h (private): one run of a move at a time (flight.c), and what of it goes from queue to queue of the device (queued.c). */
#ifndef WEFT_FLIGHT_H
#define WEFT_FLIGHT_H

#include "move.h"

struct weft_flight {
    weft_pending pending; /* first */
    weft_move *move;
    weft_comm *comm;              /* NULL: the rank is alone */
    weft_comm_exchange *exchange; /* its own; NULL: the rank is alone, or the device exchanges */
    bool is_queued;               /* the device does: all of it is put onto a queue as it starts */
    bool is_reduced;              /* by the device: nothing is left to combine */
    bool is_put;                  /* and not known to be over */
    weft_event packed, over;      /* on the queue, then */
    weft_reduction reduction;
    char *scratch;
    bool is_started;
    weft_call_mark mark;
    uint32_t spot; /* as recorded */
    uint64_t digest;
    int64_t *arrived;          /* gets the time of arrival; NULL: nobody asks */
    weft_move_memory memory[]; /* [n_parts] */
};

/* flight.c: what the exchange of pieces reads and writes. */
void weft_flight_parts(const weft_flight *flight, weft_parts *send, weft_parts *recv);

/* queued.c: the same things put onto the queue. */
weft_status weft_queued_reduce(weft_flight *flight, weft_error *error);
weft_status weft_queued_exchange(weft_flight *flight, weft_error *error);

#endif
