/* reduce.h (private): an all_reduce: what is known of it before it runs, and one under way. */
#ifndef WEFT_REDUCE_H
#define WEFT_REDUCE_H

#include "engine.h"

enum { WEFT_REDUCE_NUMBERS = 5 };

/* Of one rank; the same in every run. */
typedef struct weft_reduce {
    weft_combiner combine;
    int n_ranks, self;
    int64_t state_bytes; /* of one state of the combine            */
    int64_t bytes;       /* of the buffer                          */
    /* that this rank combines of each buffer, and their distance in the scratch */
    int64_t part_bytes;
    /* [n_ranks] each: the ranks' slices of the buffer; as this rank sends them; what it gets, in the scratch */
    int64_t *slice_bytes, *slice_at, *send_bytes, *recv_bytes, *recv_at;
} weft_reduce;

/* weft_reduce_make - numbers [WEFT_REDUCE_NUMBERS][n_ranks] is borrowed. weft_reduce_bytes - of scratch. Local. */
void weft_reduce_make(weft_reduce *reduce, int n_ranks, int self, weft_combine combine,
                      weft_dtype dtype, int64_t count, int64_t *numbers);
int64_t weft_reduce_bytes(int n_ranks, weft_combine combine, weft_dtype dtype, int64_t count);

typedef struct weft_reduction weft_reduction;

/* Who combines where the host does not: what all_reduces exchange lies in staging, which the device's queues read and write. */
typedef struct weft_reduce_device {
    const weft_device *table; /* NULL: the host combines */
    weft_stream *stream;
    int queue;
    const weft_combining *rule;
} weft_reduce_device;

/* How it is done. All give the same bits. */
typedef struct weft_reduce_way {
    bool by_host; /* it combines as it goes, on the host */
    bool (*takes)(const weft_comm *comm, const weft_reduce *reduce);
    int n_tickets;
    weft_status (*start)(weft_reduction *it, weft_error *error);
    bool (*poll)(weft_reduction *it, weft_error *error);
} weft_reduce_way;

/* One under way. All but `way`, `ticket` and `turn` is set by whoever starts it. */
struct weft_reduction {
    const weft_reduce *reduce;
    weft_comm *comm;
    weft_comm_exchange *exchange; /* to be used for it */
    uint64_t fingerprint;
    const char *send;
    char *recv, *scratch;
    weft_reduce_device device;
    weft_event combined; /* by it */
    bool is_combining;
    const weft_reduce_way *way;
    uint64_t ticket;
    int turn;
    /* in a window, as the following: the one that began after it; its pieces, and how many have come how far */
    weft_reduction *next;
    uint64_t n_pieces, n_given, n_combined, n_taken;
    uint64_t base; /* its number among those shown; in pieces, the number of the first one */
    int phase;
};

/* weft_reduction_start - begin it, on all ranks in one order; never waits. weft_reduction_poll - go on as far as possible
 * without waiting; true: it is over, and error tells how it went. */
weft_status weft_reduction_start(weft_reduction *it, weft_error *error);
bool weft_reduction_poll(weft_reduction *it, weft_error *error);
/* weft_reduction_put - where devices exchange among themselves: all of it is put onto the device's queue. */
weft_status weft_reduction_put(weft_reduction *it, weft_error *error);

/* direct.c: where ranks see each other's buffers; what see says of a rank is in this one's addresses. */
typedef struct weft_reduce_buffers {
    const char *send;
    char *recv;
} weft_reduce_buffers;
typedef weft_reduce_buffers (*weft_reduce_see)(const weft_reduction *it, int r);
void weft_reduce_seen(const weft_reduction *it, weft_reduce_see see);
bool weft_direct_takes(const weft_comm *comm, const weft_reduce *reduce);
weft_status weft_direct_start(weft_reduction *it, weft_error *error);
bool weft_direct_poll(weft_reduction *it, weft_error *error);
/* In a window: whether there is room to tell where they lie; tell it; whether all have; do this rank's part, or false: not
 * all lie where all see them; whether all have done theirs. */
bool weft_direct_can_show(const weft_shm_reduce *window);
void weft_direct_show(weft_reduction *it, weft_shm_reduce *window);
bool weft_direct_all_have_come(const weft_reduction *it, const weft_shm_reduce *window);
bool weft_direct_combine(const weft_reduction *it, const weft_shm_reduce *window);
bool weft_direct_all_have_done(const weft_reduction *it, const weft_shm_reduce *window);

/* shm_reduce.c: between processes of one host. */
bool weft_shm_reduce_takes(const weft_comm *comm, const weft_reduce *reduce);
weft_status weft_shm_reduce_start(weft_reduction *it, weft_error *error);
bool weft_shm_reduce_poll(weft_reduction *it, weft_error *error);

#endif
