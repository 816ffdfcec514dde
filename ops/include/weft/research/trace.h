/* trace.h: what each step of a program really did, by the clock: written while it runs, one file a rank, and read again.
 *
 *     const weft_trace_part parts[] = {{program, "train", 3}};
 *     WEFT_TRY(weft_trace_begin("runs/mine/trace", parts, 1, &trace, error));
 *     for (int run = 0; run < 3; run++)
 *         WEFT_TRY(weft_run(program, error));
 *     WEFT_TRY(weft_trace_end(&trace, error));                      (`weft trace runs/mine` makes a file for Perfetto of it)
 *
 * Two readings of the clock a step, about 50 ns, and 40 bytes. A program that is not traced pays nothing. A traced run does
 * every step by itself, also where its device keeps runs. The times are those of the rank's thread: its lanes work inside of
 * them, and a device with queues of its own may do a step later.
 */
#ifndef WEFT_RESEARCH_TRACE_H
#define WEFT_RESEARCH_TRACE_H

#include "weft/research/predict.h"

WEFT_BEGIN

/* ---- writing --------------------------------------------------------------------------------- */

/* A program to be traced. */
typedef struct weft_trace_part {
    weft_program *program; /* it refuses to be destroyed while it is traced */
    const char *name;      /* "train": the trace tells programs apart by it */
    int64_t
        runs; /* so many there is room for, all programs together; those beyond are counted, and dropped */
    /* what was predicted of its steps (weft_plan_predict_steps), to be shown beside; NULL: nothing. Copied */
    const weft_predicted_step *predicted; /* [weft_plan_n_steps(program)] */
} weft_trace_part;
enum { WEFT_TRACE_PARTS = 16 };

typedef struct weft_trace weft_trace; /* opaque */

/* weft_trace_begin - from now on the runs of these programs are written down, by each rank into a file of its own. Clocks of
 * different hosts are compared. Collective over the mesh.
 *
 * folder   of the files rank_00000.ring ..., which must be there; files of an earlier trace are written over
 * parts    [n_parts] of one mesh, with ranks; copied
 * returns  WEFT_OK also where a file is refused, say by a full disk: then weft_trace_note says so, and that rank is not traced
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_trace_begin(const char *folder,
                                                      const weft_trace_part *parts, int n_parts,
                                                      weft_trace **trace, weft_error *error);
/* weft_trace_end - nothing is written down any more; clocks are compared again, and the files sealed. *trace becomes NULL.
 * Collective over the mesh. */
WEFT_API WEFT_MUST_CHECK weft_status weft_trace_end(weft_trace **trace, weft_error *error);
/* weft_trace_destroy - the same without the others, after a failure. Files keep the events that they have, and are
 * not sealed. NULL is fine. Local. */
WEFT_API void weft_trace_destroy(weft_trace **trace);
/* weft_trace_note - why a rank of this process is not traced; "": all are. Borrowed. Local. */
WEFT_API const char *weft_trace_note(const weft_trace *trace);

/* ---- reading --------------------------------------------------------------------------------- */

typedef enum weft_traced_kind {
    WEFT_TRACED_RUN,  /* of a program, as a whole                                            */
    WEFT_TRACED_STEP, /* a step of the plan; of an exchange that goes on, its start           */
    WEFT_TRACED_FINISH, /* such an exchange is waited for, and what it has brought is put in its place */
    WEFT_TRACED_KINDS
} weft_traced_kind;

/* Times are ns of the rank's clock, CLOCK_MONOTONIC; weft_traced_time makes rank 0's of them. */
typedef struct weft_traced_event {
    int64_t begin, end; /* end 0: it was under way when the job ended */
    int64_t
        arrived; /* of an exchange: when the rank saw that all was there; 0: not seen yet, or not known */
    uint32_t step;          /* of the plan; of a run its number */
    uint32_t trip;          /* of the scan that the step is in, or begins or ends; from 0 */
    uint16_t program, kind; /* kind: weft_traced_kind */
    uint32_t unused;
} weft_traced_event;

/* A step of the plan, in words. */
typedef struct weft_traced_step {
    const char *name;       /* "einsum", "all_reduce w.grad" */
    const char *op, *place; /* "lse_state"; "lse_state of cross_entropy at mlp.c:44" */
    const char *dims,
        *spec;          /* of its first result, or operand: "[batch:32, hidden:64]", "S(batch)" */
    const char *reason; /* why it is there */
    weft_step_kind kind;
    uint32_t axes; /* over which it exchanges; 0: it does not. Its queue is that of these axes */
    uint32_t scan; /* in whose body it is, or which it begins or ends; 0: none */
    int64_t sent_bytes;  /* of one exchange, by this rank      */
    int64_t arena_bytes; /* of the rank's arena, in use meanwhile */
    /* as was predicted of rank 0, in ns from the begin of a run: its first time; and all its times together, of an exchange what
     * they make the run longer. end 0: nothing was predicted */
    int64_t predicted_begin, predicted_end, predicted_total;
} weft_traced_step;

typedef struct weft_traced_program {
    const char *name;
    uint64_t digest;
    int n_steps;
    const weft_traced_step *steps; /* [n_steps] */
} weft_traced_program;

/* A comparison with rank 0's clock. */
typedef struct weft_traced_clock {
    int64_t at;     /* by the rank's clock; 0: it was not made */
    int64_t offset; /* rank 0's clock minus this one's */
    int64_t error;  /* it is no further off */
} weft_traced_clock;

/* The file of one rank. */
typedef struct weft_traced {
    int rank, n_ranks, process;
    const char *mesh, *host;
    uint64_t job;                /* the same in all files of one trace */
    bool is_sealed;              /* it was ended; else its job was before that */
    weft_traced_clock clocks[2]; /* at the begin and at the end */
    int n_programs;
    const weft_traced_program *programs; /* [n_programs] */
    int64_t n_events,
        n_dropped; /* in the order in which they began; those for which there was no room */
    const weft_traced_event *events; /* [n_events] */
} weft_traced;

/* weft_traced_open - the file that a rank has written. Every number in it is checked. Local.
 *
 * returns  WEFT_CORRUPT for a file that is no such file, of another version, cut off or changed */
WEFT_API WEFT_MUST_CHECK weft_status weft_traced_open(const char *path, weft_traced **traced,
                                                      weft_error *error);
WEFT_API void weft_traced_close(weft_traced **traced);
/* weft_traced_time - a time of the rank's, by rank 0's clock: the offset goes from that at the begin to that at the end in a
 * straight line. 0 of NULL. Local. */
WEFT_API int64_t weft_traced_time(const weft_traced *traced, int64_t at);

WEFT_END

#endif
