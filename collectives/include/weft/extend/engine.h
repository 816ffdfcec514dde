/* engine.h: how bytes go from rank to rank, from outside: the table that Weft's own engines (threads, MPI) are.
 *
 *     static bool poll(weft_comm_exchange *it)
 *     {
 *         slow *mine = it->state;
 *         return weft_exchange_poll(mine->below) && now() >= mine->due;
 *     }
 *     static const weft_engine slow_engine = {.size = sizeof slow_engine, .name = "slow", .below = "", .start = start,
 *                                             .poll = poll, ...};
 *     WEFT_TRY(weft_extend_engine(&slow_engine, error));
 *     WEFT_TRY(weft_engine_choose("slow", error));          or gpt --engine slow: for all groups made from now on
 *
 * An engine moves bytes and knows no dtype, box or combine: everything above it is the same on every engine, so results
 * are equal bit by bit. It lets bytes pass only between exchanges of the same ticket and the same fingerprint: ranks that
 * make different calls get nothing from each other, and the watch says who they are. All Local but where it is said.
 */
#ifndef WEFT_EXTEND_ENGINE_H
#define WEFT_EXTEND_ENGINE_H

#include "weft/collectives.h"

WEFT_BEGIN

/* The parts of a buffer, one for each rank of the group. Borrowed until the exchange is over. */
typedef struct weft_parts {
    char *data;
    const int64_t *bytes, *at; /* [n_ranks]; bytes NULL: all get the same `all_bytes` at `data` */
    int64_t all_bytes;
} weft_parts;

/* One rank's side of bytes between the ranks of a group, one time after the other. Weft makes it; it grows at its end. */
struct weft_comm_exchange {
    weft_comm *comm; /* this rank's end of the group */
    /* the engine's: [exchange_bytes], zeros at first, aligned to 64; NULL where that is 0 */
    void *state;
    /* All ranks of a group take tickets in one order; and make the call of that fingerprint, or there is a mistake. */
    uint64_t ticket, fingerprint;
    weft_parts send, recv; /* recv.bytes is never NULL, unless is_direct */
    /* Nothing is copied: the caller reads the peers' buffers when all have come (has_all_come), and says when it has
     * done with them (release). Only where the engine has `peer`. */
    bool is_direct, has_all_come;
    weft_error error; /* how it went, as poll leaves it with weft_fail */
};

/* A place in a device's queue: after all commands that are on it, and before later ones. */
typedef struct weft_device_queue {
    weft_stream *stream; /* of the end's rank */
    int queue;
} weft_device_queue;

/* A reduction over a group, in the device's memory. */
typedef struct weft_device_reduce {
    const weft_combining *rule;
    const void *send; /* [count], or where the result is scattered [n_ranks * count] */
    /* [count]: all of it, or the rank's part; may be `send`, or the rank's part of it */
    void *recv;
    int64_t count;
    bool is_scattered;
} weft_device_reduce;

/* Functions are called on the thread of the exchange's or end's rank, those of groups on the controlling thread. */
typedef struct weft_engine {
    size_t size;      /* sizeof(weft_engine) */
    const char *name; /* its name in choices and reports */
    /* An engine that stands on another one, by whose exchanges it moves its bytes: its name; "": on the one that Weft would
     * take without it, so on any mesh; NULL: it stands alone. */
    const char *below;
    /* It calls weft_comm_wake when it advances an exchange of another rank, so that waiting ranks may sleep. */
    bool wakes;
    /* Takes the text after the name when it was chosen, as "50us,1GB" of "slow:50us,1GB"; "": nothing. NULL: it has
     * no settings. */
    weft_status (*set)(const char *settings, weft_error *error);
    /* Whether it can carry a mesh with ranks in this process: WEFT_OK, or the sentence why not. NULL: any that the one
     * below can. */
    weft_status (*takes)(const weft_mesh *mesh, weft_error *error);
    /* A group over a set of axes. Collective over the mesh. ends [n_ends]: those of this process's ranks, in the order of
     * the ranks. group_create failed: group_destroy follows, and takes what there is. Both may be NULL. */
    weft_status (*group_create)(const weft_mesh *mesh, uint32_t axes, weft_comm *const *ends,
                                int n_ends, weft_error *error);
    void (*group_destroy)(weft_comm *const *ends, int n_ends);
    /* Room for one exchange at a time, and what else one needs; each may be NULL. exchange_create failed:
     * exchange_destroy does not follow. */
    int64_t (*exchange_bytes)(const weft_comm *comm);
    weft_status (*exchange_create)(weft_comm_exchange *exchange, weft_error *error);
    void (*exchange_destroy)(weft_comm_exchange *exchange);
    /* Begin: ticket, fingerprint, send and recv are set. Never waits, allocates nothing. */
    weft_status (*start)(weft_comm_exchange *exchange, weft_error *error);
    /* Go on as far as possible without waiting; true: it is over. Never waits, allocates nothing. Called again and again
     * while the rank waits, for this exchange or for another. */
    bool (*poll)(weft_comm_exchange *exchange);
    /* One rank's bytes to all, on an exchange whose ticket and fingerprint are set; returns when it is over. NULL: it is
     * an exchange in which the root has something for all. */
    weft_status (*broadcast)(weft_comm_exchange *exchange, int root, void *data, int64_t bytes,
                             weft_error *error);
    /* Where ranks see each other's memory, else NULL. For a direct exchange to which all have come: rank r's of the
     * group; and this rank has done with all of them. */
    const weft_comm_exchange *(*peer)(const weft_comm_exchange *exchange, int r);
    void (*release)(weft_comm_exchange *exchange);
    /* Devices that exchange among themselves: parts in the memory of a device that is not open go from queue to
     * queue, each rank's own to itself too. It returns when they are on the queue. NULL: `start` exchanges data in
     * staging. All four, or none; groups of all ranks are made before others. */
    weft_status (*put)(weft_comm *comm, const weft_device_queue *on, const weft_parts *send,
                       const weft_parts *recv, weft_error *error);
    /* Whether it has a reduction of its own, in whatever order, that gives all ranks the same bits; and one put onto the queue. */
    bool (*reduces)(const weft_comm *comm, const weft_combining *rule);
    weft_status (*put_reduce)(weft_comm *comm, const weft_device_queue *on,
                              const weft_device_reduce *reduce, weft_error *error);
    /* Whether all that was put is done or may yet be; else what went wrong, and the queues no longer wait for other ranks. Never
     * waits. */
    weft_status (*check)(weft_comm *comm, weft_error *error);
} weft_engine;

/* weft_extend_engine - make an engine known, to be chosen by its name. Any thread; for the rest of the process. All
 * processes of a job register the same ones.
 *
 * engine   copied, up to engine->size; its texts live as long
 * refused  a name that is none or that an engine has already; no start or poll; one of group_create and group_destroy, of
 *          exchange_create and exchange_destroy, or of peer and release without the other, or some of put, reduces, put_reduce
 *          and check; an engine below that is not known; neither `below` nor `takes`; more than WEFT_MAX_OUTSIDE_ENGINES
 */
enum { WEFT_MAX_OUTSIDE_ENGINES = 16 };
WEFT_API WEFT_MUST_CHECK weft_status weft_extend_engine(const weft_engine *engine,
                                                        weft_error *error);

/* Facts that an engine asks of an end of a group; for NULL they are -1, NULL and nothing. Its place in the group and
 * their number are weft_comm_self and weft_comm_n_ranks; weft_mesh_group has the other ranks. */
WEFT_API int weft_comm_rank(const weft_comm *comm);    /* of the mesh */
WEFT_API void *weft_comm_state(const weft_comm *comm); /* the engine's own; NULL at first */
WEFT_API void weft_comm_set_state(weft_comm *comm, void *state);
/* The same rank's end of the same group on the engine below, with a state of its own. NULL: there is none. */
WEFT_API weft_comm *weft_comm_below(const weft_comm *comm);
/* weft_comm_wake - the end's rank looks at what it has under way, if it sleeps. From any thread. */
WEFT_API void weft_comm_wake(weft_comm *comm);

/* weft_exchange_take - an exchange of an end, as those that stand on it need for theirs (in exchange_create); made when
 * none is free. weft_exchange_give - it is not wanted any more, and not under way; NULL is fine. */
WEFT_API WEFT_MUST_CHECK weft_status weft_exchange_take(weft_comm *comm,
                                                        weft_comm_exchange **exchange,
                                                        weft_error *error);
WEFT_API void weft_exchange_give(weft_comm_exchange *exchange);
/* weft_exchange_begin - start it: send and recv are set. Tickets of a group differ, and differ in their last three bits
 * from those of exchanges of the same fingerprint that are under way. Collective over the group; never waits.
 * weft_exchange_poll - go on as far as possible without waiting; true: it is over, and its error tells how it went; or was
 * never begun.
 * weft_exchange_wait - until it is over, while all else that the rank has under way goes on: for `broadcast` alone. */
WEFT_API WEFT_MUST_CHECK weft_status weft_exchange_begin(weft_comm_exchange *exchange,
                                                         uint64_t ticket, uint64_t fingerprint,
                                                         weft_error *error);
WEFT_API bool weft_exchange_poll(weft_comm_exchange *exchange);
WEFT_API WEFT_MUST_CHECK weft_status weft_exchange_wait(weft_comm_exchange *exchange,
                                                        weft_error *error);

WEFT_END

#endif
