/* view.h (private): what is known of one rank at one moment: taken from its recorder, sent to the process that judges.
 */
#ifndef WEFT_VIEW_H
#define WEFT_VIEW_H

#include "recorder.h"

enum { WEFT_DOING_BYTES = 448 };

/* How a rank is, as its process or the link to it shows. */
typedef enum weft_presence {
    WEFT_PRESENT,
    WEFT_SILENT,      /* its host answers, it does not            */
    WEFT_UNREACHABLE, /* its host does not answer either          */
    WEFT_GONE,        /* its process ended, and did not say so    */
    WEFT_LEFT         /* its process said that it ends            */
} weft_presence;

typedef struct weft_channel_view {
    uint64_t key, sequence;
    uint64_t past[WEFT_PAST]; /* fingerprints: that after call s at s % WEFT_PAST */
    int32_t lowest, n_ranks;
    int32_t tells, unused; /* tells: its calls tell all its ranks themselves when they differ */
} weft_channel_view;

/* A call on a channel that is longer ago than the channel's fingerprints go. */
typedef struct weft_recall {
    uint64_t key, sequence; /* sequence 0: none */
    uint64_t fingerprint;   /* after it; 0: not known */
    int32_t lowest, unused;
} weft_recall;

/* weft_channels_differ - whether two ranks of a group have made other calls, as far as can be told: up to the last call that
 * both have begun, if it is not too long ago. A fingerprint is of all calls up to its own. Local. */
bool weft_channels_differ(const weft_channel_view *a, const weft_channel_view *b);

typedef struct weft_rank_view {
    int32_t is_known; /* anything has ever been heard */
    int32_t rank, pid;
    char host[WEFT_HOST_BYTES];
    int32_t presence; /* weft_presence                         */
    int32_t signal;   /* that it died of, 0: none known        */
    double silent;    /* seconds since it was last heard       */
    int64_t run, saved;
    uint64_t n_begun;

    int32_t n_open;       /* calls begun and not ended */
    int32_t is_on_device; /* its thread waits for its device; then it waits in no call */
    int32_t is_waiting;   /* in a call; then: */
    int32_t at_work;      /* else: it computes, uses a disk, or is marked busy */
    double waiting;       /* seconds in this call */
    double idle;          /* seconds since it was last at work, on its device, or began a call */
    uint64_t device_wait, device_done; /* which wait it is; what the device has done by now */
    double device_idle; /* seconds that it has waited for its device, and the device did nothing */
    double device_allowed; /* so long a device may do nothing; 0: for ever */
    /* seconds that each of its lanes has waited for another, and none has got on; 0: one is at work */
    double stuck, stuck_allowed; /* allowed: so long it may; 0: for the patience */
    /* seconds in a call where all have arrived, as far as whoever judges has seen */
    double stalled;
    /* its last call was told that others make another one, and it has begun none since */
    int32_t has_failed;
    weft_channel_view call;
    uint64_t call_fingerprint; /* after it; 0: not known */
    int64_t call_bytes;        /* about so many are moved by it */
    /* the call that was asked for, if this rank made it and still has its record */
    weft_recall recalled;
    char doing[WEFT_DOING_BYTES]; /* "in all_reduce 12 over data of ..., called at model.c:88" */
    _Alignas(8) char busy[WEFT_BUSY_BYTES];

    int32_t n_channels;
    weft_channel_view channels[WEFT_CHANNELS];
} weft_rank_view;

/* weft_view_take - all but presence, silent, waiting, at_work, idle, stuck, stuck_allowed, stalled, device_idle and
 * device_allowed, which take more than one look, or are not the recorder's. `recorder` may be written meanwhile.
 * Local, from any thread. */
void weft_view_take(const weft_recorder *recorder, weft_rank_view *view);

/* weft_views_ask - the call that a rank waits in while another of its group is too far ahead for their fingerprints to be
 * compared, and has not yet said what it made of it; sequence 0: there is none. Who makes it known: weft_view_recall. */
weft_recall weft_views_ask(const weft_rank_view *views, int n);
/* weft_view_recall - fill view->recalled, from the records. Local, from any thread. */
void weft_view_recall(const weft_recorder *recorder, const weft_recall *asked,
                      weft_rank_view *view);
/* weft_view_channel - of the rank's channels the one of that group; NULL: it has none. */
const weft_channel_view *weft_view_channel(const weft_rank_view *view, uint64_t key, int lowest);
/* weft_views_differ - whether two ranks have made other calls in any group that both are in, as far as can be told. In a
 * call that one of them has been told of, both have been, or will be. is_untold: also where a call tells them. */
bool weft_views_differ(const weft_rank_view *a, const weft_rank_view *b, bool is_untold);
/* weft_views_were_told - whether the last call of a rank in a group that both are in was told of a mismatch: so was that of
 * the other rank. */
bool weft_views_were_told(const weft_rank_view *told, const weft_rank_view *other);

/* weft_view_refresh - of a rank that can no longer speak, what its file in `folder` says, where this process can read it:
 * a view is up to a second old. Local. */
void weft_view_refresh(const char *folder, weft_rank_view *view);

/* weft_recorder_read - the recorder in a file, checked; the caller frees it. WEFT_CORRUPT: it is none. Local. */
weft_status weft_recorder_read(const char *path, weft_recorder **recorder, weft_error *error);

/* weft_recorder_map - the same, where its rank writes it, and weft_recorder_unmap. What it says changes, and is what anybody wrote:
 * weft_view_take takes it as it is. WEFT_CORRUPT: it is none; the mapping is unmapped by the caller. Local. */
weft_status weft_recorder_map(const char *path, const weft_recorder **recorder, weft_error *error);
void weft_recorder_unmap(const weft_recorder **recorder);
/* weft_recorders_find - the records of a run directory, or of a folder that has some: their names, as scandir makes them; `folder`
 * [bytes]: where they are. returns how many; 0 with WEFT_USAGE where there are none. Own them: weft_recorders_found. */
struct dirent;
int weft_recorders_find(const char *path, char *folder, size_t bytes, struct dirent ***entries,
                        weft_error *error);
void weft_recorders_found(struct dirent **entries, int n);
/* weft_text_mend - a text of a file that anybody wrote, made one that can be printed: [bytes]. */
void weft_text_mend(char *text, size_t bytes);

/* weft_record_print - "all_reduce 12 over data of w.grad [...] f32, called at model.c:88". */
void weft_record_print(const weft_recorder *recorder, const weft_record *record, char *text,
                       size_t bytes);
/* weft_device_wait_read - the last wait for the device; false: there was none. _print: "waiting for event 17 of queue 1 of
 * its device fake, which has done 16". */
bool weft_device_wait_read(const weft_recorder *recorder, weft_device_wait *wait);
void weft_device_wait_print(const weft_device_wait *wait, uint64_t done, char *text, size_t bytes);
/* weft_record_read - the record of that number, whole; false: overwritten. */
bool weft_record_read(const weft_recorder *recorder, uint64_t number, weft_record *record);

#endif
