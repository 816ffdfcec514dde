/* workload.h (private): what a step asks of a machine, whatever the program calls it.
 *
 * Two steps with equal workloads take equally long, so what was measured of one says it of the other: in another layer, another
 * program, under another layout.
 */
#ifndef WEFT_PREDICT_WORKLOAD_H
#define WEFT_PREDICT_WORKLOAD_H

#include "plan.h"

enum { WEFT_WORK_SIZES = WEFT_MAX_IN + WEFT_MAX_OUT, WEFT_WORK_ACTS = 12 };

/* An element op of a loop, or an op that says nothing of its flops, and to how many elements it is applied. */
typedef struct weft_act {
    const char *op;
    double elements;
} weft_act;

typedef struct weft_workload {
    const char *name; /* the op of a kernel; "loop", "copy", "move"; NULL: it does nothing */
    weft_dtype dtype; /* of its first operand, or else its first result */
    uint64_t id;  /* of all that is known of it: dims, dtypes, attributes, and what goes where */
    double flops; /* of ops that say how many */
    double bytes; /* of all operands and results */
    /* What similar steps are told apart by. Of a kernel the bytes of each operand and result: those of a product say what
     * m, n and k are. Of all else the bytes that are read, and those that are written */
    int n_sizes;
    double sizes[WEFT_WORK_SIZES];
    int n_acts;
    weft_act acts[WEFT_WORK_ACTS]; /* the last one stands for all that have no place of their own */
} weft_workload;

/* weft_step_workload - of a step that computes or copies, as one rank does it once; names live as long as the op table. Of an
 * exchange: what it copies where it lies (name "move"). Local; pure. */
void weft_step_workload(const weft_plan *plan, const weft_step *step, int rank,
                        weft_workload *workload);

#endif
