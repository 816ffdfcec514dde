/* recorder.h (private): what one rank does, written down as it does it, where a kill cannot take it away.
 *
 * A recorder is a piece of memory, mapped from a file when there is a folder for it: a head, a ring of the last calls, and
 * a table of the places in the program that the calls come from. One thread writes it at a time, the rank's; the watching
 * thread reads it while it is written, so what must fit together is guarded by a version (weft_guarded_write).
 * The file is read by `weft postmortem` on the same kind of machine: it is the memory as it was.
 */
#ifndef WEFT_RECORDER_H
#define WEFT_RECORDER_H

#include "sync.h"
#include "weft/error.h"

enum {
    WEFT_RECORDS = 4096, /* calls that a recorder keeps */
    WEFT_SPOTS = 2048,   /* calls of the program, as people are told of them */
    WEFT_CHANNELS = 24,  /* sets of axes of a mesh, and the whole job */
    WEFT_PAST = 4,       /* fingerprints of a channel: of its last calls */
    WEFT_SPOT_BYTES = 160,
    WEFT_HOST_BYTES = 64,
    WEFT_BUSY_BYTES = 96,
    WEFT_AXES_BYTES = 40,
    WEFT_DEVICE_BYTES = 24,
    WEFT_VERDICT_BYTES = 1536,
    WEFT_MOST_RECORDERS = 4096, /* ranks of one process */
    WEFT_UNIT_BYTES = 16,
    WEFT_RECORDER_FORMAT = 6
};

/* What a call is. The conversions come first, numbered as in weft_convert_kind. */
typedef enum weft_call_kind {
    WEFT_CALL_CONVERT = 0,
    WEFT_CALL_ALL_REDUCE = 16,
    WEFT_CALL_ALL_GATHER,
    WEFT_CALL_ALL_TO_ALL,
    WEFT_CALL_BROADCAST,
    WEFT_CALL_AGREE,
    WEFT_CALL_DECIDE,
    WEFT_CALL_GROUP,
    WEFT_CALL_LEAVE,
    WEFT_CALL_MEET, /* ranks that write together what they hold in common */
    WEFT_CALLS
} weft_call_kind;
const char *weft_call_name(int kind);

/* One call. */
typedef struct weft_record {
    uint64_t number;      /* of the rank's calls, from 1 */
    int64_t begun, ended; /* ns since 1970; ended 0: under way */
    uint64_t sequence;    /* on its channel, from 1 */
    uint64_t fingerprint; /* of this and all calls before it on its channel */
    int64_t count;        /* elements, or bytes where there is no dtype */
    int64_t run;          /* of the program */
    uint32_t spot, step;  /* places in the tables; step of the plan */
    int32_t root;         /* of a broadcast, else -1 */
    uint16_t channel;
    uint8_t kind, dtype, combine; /* as in weft_call_facts */
    /* Of a call that goes on while the rank computes: when the rank began to wait for it, and when it saw that all was there;
     * 0: it has not yet */
    int64_t awaited, arrived;
} weft_record;
_Static_assert(sizeof(weft_record) == 96, "the size that documents promise");

/* The ranks that call together, and how far this one has come with them. */
typedef struct weft_channel {
    uint64_t key;    /* of mesh and axes; the same on all ranks */
    int32_t lowest;  /* rank of the group: with the key it names the group */
    int32_t n_ranks; /* of the group */
    _Atomic uint32_t version;
    /* its calls tell all ranks of it themselves when they differ */
    _Atomic uint32_t tells;
    _Atomic uint64_t sequence;        /* guarded by version, as is: */
    _Atomic uint64_t past[WEFT_PAST]; /* fingerprints: that after call s at s % WEFT_PAST */
    char axes[WEFT_AXES_BYTES];       /* "data+model"; "all processes" */
} weft_channel;

/* The last time that the rank's thread waited for its device. */
typedef struct weft_device_wait {
    uint64_t number;      /* of such waits, from 1; 0: there was none */
    int64_t begun, ended; /* ns since 1970; ended 0: it waits */
    uint64_t event;       /* of the queue: what it waits for */
    int32_t queue;
    char device[WEFT_DEVICE_BYTES];
} weft_device_wait;

typedef struct weft_recorder_head {
    char magic[8];
    uint32_t format, n_records, n_spots_room;
    int32_t rank, pid;
    char host[WEFT_HOST_BYTES];
    int64_t opened;           /* ns since 1970 */
    _Atomic uint64_t n_begun; /* records written */
    _Atomic uint64_t waiting; /* number of the call that the rank waits in; 0: none */
    /* 1 + the number of the last call that was told of a mismatch; 0: none */
    _Atomic uint64_t failed;
    /* calls begun and not ended, and the number of the oldest that may be one; the rank's own to write */
    _Atomic uint64_t n_open, oldest;
    _Atomic uint32_t device_version;
    weft_device_wait device; /* guarded by device_version */
    /* by the device, as last seen: it grows while the device goes on */
    _Atomic uint64_t device_done;
    _Atomic int64_t alive; /* when the watching thread was last here, ns since 1970 */
    _Atomic int64_t run, saved;
    _Atomic uint32_t step, spot; /* where a running rank is between calls */
    _Atomic int32_t is_running;
    _Atomic uint64_t thread; /* that runs it, in its process */
    /* For those who look on (live.c): ns that the rank has stood still for others, and its program for its next batch; when the last run
     * began, ns since 1970 */
    _Atomic int64_t waited, input, run_begun;
    /* what weft_watch_work has said; 0: nothing */
    _Atomic int64_t last_run, items;
    char unit[WEFT_UNIT_BYTES];
    _Atomic uint32_t n_spots, n_channels;
    _Atomic int32_t signal; /* that it died of */
    _Atomic int32_t has_left;
    _Atomic int32_t status; /* exit status that the verdict ends the job with */
    _Atomic uint32_t busy_version;
    _Alignas(8) char busy[WEFT_BUSY_BYTES]; /* guarded by busy_version */
    char verdict[WEFT_VERDICT_BYTES];
    weft_channel channels[WEFT_CHANNELS];
} weft_recorder_head;

typedef struct weft_recorded_spot {
    uint64_t digest; /* of what must be equal on all ranks */
    char text[WEFT_SPOT_BYTES - sizeof(uint64_t)];
} weft_recorded_spot;

typedef struct weft_recorder {
    weft_recorder_head head;
    weft_record records[WEFT_RECORDS];
    weft_recorded_spot spots[WEFT_SPOTS];
    uint16_t spot_at[2 * WEFT_SPOTS]; /* the rank's own: where a spot is, by its digest; 0: free */
} weft_recorder;

/* What a caller knows of its call. */
typedef struct weft_call_facts {
    uint8_t kind, dtype, combine;
    int32_t root;
    int64_t count;
    uint32_t spot;
    uint64_t digest; /* of the spot */
} weft_call_facts;
enum { WEFT_NO_DTYPE = 255, WEFT_NO_COMBINE = 0 /* WEFT_NOT_PARTIAL */ };

/* A call under way: to end it, and to know it from others on the wire. */
typedef struct weft_call_mark {
    uint64_t number, fingerprint;
} weft_call_mark;

/* weft_recorder_of - the recorder of a rank of this process; made when first asked for. NULL: out of memory, or more than
 * WEFT_MOST_RECORDERS. Local; from the controlling thread. */
weft_recorder *weft_recorder_of(int rank);
/* weft_recorders_keep - from now on in files of `folder`, which must be there. Local; from the controlling thread, while
 * no rank runs. */
weft_status weft_recorders_keep(const char *folder, weft_error *error);
/* weft_recorders_forget - in a process that was forked: the recorders are its parent's. May be called where only signal
 * handlers' calls may. */
void weft_recorders_forget(void);
/* The file of a rank in a folder: path [bytes]. */
void weft_recorder_path(const char *folder, int rank, char *path, size_t bytes);

/* The ranks of this process that have one. Local, from any thread. */
int weft_n_recorders(void);
weft_recorder *weft_recorder_at(int index);

/* weft_recorder_channel - the place of a group in the table, made when it is new. -1: the table is full, and the group's
 * calls are not recorded. Local. */
int weft_recorder_channel(weft_recorder *recorder, uint64_t key, int lowest, int n_ranks,
                          const char *axes);
/* weft_recorder_tells - as soon as all ranks of this group have come to calls that differ, the calls fail on all of them:
 * nobody else need find it out. Local; recorder may be NULL and channel -1. */
void weft_recorder_tells(weft_recorder *recorder, int channel);
/* weft_recorder_spot - the number of a spot in the table; 0 when it is full. digest: of what must be equal on all ranks.
 * Local. */
uint32_t weft_recorder_spot(weft_recorder *recorder, uint64_t digest, const char *text);

/* weft_call_fingerprint - of a call and of all before it, begun with 0. Local; pure. */
uint64_t weft_call_fingerprint(uint64_t before, const weft_call_facts *call);

/* weft_recorder_begin, _wait, _end - a call begins, cannot go on without the others, is over. Local, from the rank's
 * thread. recorder may be NULL and channel -1: then nothing is written, and the mark's number is 0. Costs about 0.1 us. */
weft_call_mark weft_recorder_begin(weft_recorder *recorder, int channel,
                                   const weft_call_facts *call);
void weft_recorder_wait(weft_recorder *recorder, const weft_call_mark *mark);
void weft_recorder_end(weft_recorder *recorder, const weft_call_mark *mark);
/* weft_recorder_stamp_wait, _stamp_arrival - of a call that is under way beside others: the rank waits for it from now on (as
 * _wait, with the time); all that it brings is there. */
void weft_recorder_stamp_wait(weft_recorder *recorder, const weft_call_mark *mark);
void weft_recorder_stamp_arrival(weft_recorder *recorder, const weft_call_mark *mark);
/* weft_recorder_await, _goes_on, _awaited - the rank's thread can do nothing before its device has come to an event; has
 * seen how much the device has done by now; has what it waited for. Local, from the rank's thread; recorder may be NULL. */
void weft_recorder_await(weft_recorder *recorder, const char *device, int queue, uint64_t event,
                         uint64_t done);
void weft_recorder_goes_on(weft_recorder *recorder, uint64_t done);
void weft_recorder_awaited(weft_recorder *recorder);
/* weft_recorder_settle - ranks that disagreed know of it and go on to say so: what they did before no longer counts. Local.
 */
void weft_recorder_settle(weft_recorder *recorder, int channel);
/* weft_recorders_alive - the process is there, at this moment. Local, from the watching thread. */
void weft_recorders_alive(int64_t now);
/* Where the rank is: before each step of a program. The spot comes with what it says (weft_recorder_spot). */
static inline void weft_recorder_step(weft_recorder *recorder, uint32_t step, uint32_t spot)
{
    if (recorder == NULL) return;
    weft_sync_store_relaxed(&recorder->head.step, step);
    weft_sync_store_release(&recorder->head.spot, spot);
}
/* weft_recorders_input - the program has stood still for its next batch, so many ns. Local, from the controlling thread. */
void weft_recorders_input(int64_t ns);
int64_t weft_clock_ns(void); /* since 1970 */
/* A program's run begins (its number, from 1) and ends (0). */
static inline void weft_recorder_run(weft_recorder *recorder, int64_t run)
{
    if (recorder == NULL) return;
    if (run > 0) weft_sync_store_relaxed(&recorder->head.run_begun, weft_clock_ns());
    if (run > 0) weft_sync_store_release(&recorder->head.run, run);
    weft_sync_store_relaxed(&recorder->head.thread, weft_this_thread());
    weft_sync_store_relaxed(&recorder->head.is_running, run > 0);
}
/* A run begins of a program that takes its variables from another, as a look at held-out data: runs are counted of that other. */
static inline void weft_recorder_run_beside(weft_recorder *recorder)
{
    if (recorder == NULL) return;
    weft_sync_store_relaxed(&recorder->head.thread, weft_this_thread());
    weft_sync_store_relaxed(&recorder->head.is_running, 1);
}

/* weft_watch_saving - a checkpoint is being written (true), and is complete or given up (false), by a thread that
 * needs no other rank: a job that hangs is not ended before. Any thread. */
void weft_watch_saving(bool is_saving);

/* weft_digest - FNV-1a of bytes, begun with 0 or with another's result. Local. */
uint64_t weft_digest(uint64_t before, const void *data, size_t bytes);

#endif
