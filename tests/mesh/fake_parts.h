/* fake_parts.h: what the files of the fake device (fake_device.h) have in common. */
#ifndef FAKE_PARTS_H
#define FAKE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_device.h"
#include "mesh/devices.h"
#include "registry.h"

extern _Atomic int fake_planted; /* a fake_fault */

static inline const weft_device *fake_cpu(void)
{
    return weft_devices[WEFT_CPU];
}

/* ---- fake_facts.c: what was seen --------------------------------------------------------------- */

typedef enum fake_fault_seen { FAKE_RACE, FAKE_DEAD } fake_fault_seen;
void fake_note(fake_fault_seen fault, const char *what);
void fake_note_done(bool is_overtaken);
void fake_note_combined(void);

/* ---- fake_memory.c ----------------------------------------------------------------------------- */

void fake_open_memory(void);
weft_status fake_take(weft_stream *stream, size_t bytes, void **memory,
                      weft_error *error); /* full of NaN, whatever the dtype */
weft_status fake_take_zeroed(weft_stream *stream, size_t bytes, void **memory, weft_error *error);
void fake_give(weft_stream *stream, void *memory, size_t bytes);
weft_status fake_take_staging(size_t bytes, void **memory, weft_error *error);
void fake_give_staging(void *memory, size_t bytes);
bool fake_is_handed(const void *at);
/* All of it was taken, and not given back. Staging always was. */
bool fake_is_alive(const char *at, int64_t bytes);
/* Where it can be touched. Staging is the host's, and stays where it is. */
void *fake_move(const void *at);

/* ---- fake_queues.c: commands, events, streams -------------------------------------------------- */

typedef struct fake_stretch {
    const char *at;
    int64_t bytes;
    bool is_written;
} fake_stretch;

typedef struct fake_stream fake_stream;
typedef struct fake_command fake_command;
struct fake_command {
    void (*run)(fake_stream *s, fake_command *c);
    const char *what;
    int queue;
    uint64_t number, order;      /* on its queue; among all of the stream  */
    uint64_t clock[WEFT_QUEUES]; /* of each queue: what is done before it, up to this number */
    weft_event after;            /* follow */
    int n_stretches, room_stretches;
    fake_stretch *stretches;
    void *to; /* as handed out */
    const void *from;
    size_t bytes; /* or of an element */
    weft_box_copy box;
    weft_combining rule;
    int64_t n_states;
    weft_launch launch;
    weft_call call;
    void *loop;
    uint64_t run_number;
    int64_t trip;
};

typedef struct fake_queue {
    fake_command **all; /* since all queues were empty, oldest first */
    size_t n, room, done;
    uint64_t base;               /* the number of the newest before those */
    uint64_t clock[WEFT_QUEUES]; /* what the next command comes after */
} fake_queue;

struct fake_stream {
    pthread_mutex_t lock;
    weft_stream *lanes; /* the CPU's */
    fake_queue queues[WEFT_QUEUES];
    int n_queues; /* the highest that was used, + 1 */
    uint64_t random, order, newest_done, n_done;
    double busy_until; /* in a command that takes long, until then */
    bool is_asleep;    /* in that command */
};

static inline fake_stream *fake_stream_of(weft_stream *s)
{
    return (fake_stream *)s;
}

fake_command *fake_command_of(const char *what);
void fake_uses(fake_command *c, const void *at, int64_t bytes, bool is_written);
void fake_put_onto(weft_stream *handle, int number, fake_command *c);
/* All is done, and everything to come is after it. Under the stream's lock. */
void fake_drain(fake_stream *s);
weft_event fake_record(weft_stream *handle, int number);
void fake_follow(weft_stream *handle, int number, weft_event event);
bool fake_is_done(weft_stream *handle, weft_event event);
void fake_wait(weft_stream *handle, weft_event event);
void fake_finish(weft_stream *handle);
uint64_t fake_done(weft_stream *handle);
weft_status fake_stream_create(int n_lanes, weft_stream **handle, weft_error *error);
void fake_stream_destroy(weft_stream **handle);

/* ---- fake_kernels.c: the CPU's kernels and loops, put onto queues -------------------------------- */

void fake_add_kernels(weft_device_kind kind);

#endif
