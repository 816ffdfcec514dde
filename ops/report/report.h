/* report.h: a plan in lines: what the report for a person and the one as JSON have in common. Written from
 * weft/research/plan.h alone; as rank 0 sees it: no rank holds more.
 */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "weft/research/plan.h"

/* One tensor in one place. */
typedef struct weft_tensor_line {
    weft_planned_tensor t;
    char dims[200], spec[240], wanted[240], storage[240], box[200];
} weft_tensor_line;

/* One step; of a collective the box it is about besides. */
typedef struct weft_step_line {
    weft_planned_step s;
    char place[160], axes[100], queue[100], box[240];
    const char *value; /* the name of what a collective moves; NULL: none */
    int n_more;        /* tensors that go with it in one exchange */
} weft_step_line;

weft_status weft_report_tensor(const weft_program *program, uint32_t id, weft_tensor_line *line,
                               weft_error *error);
weft_status weft_report_step(const weft_program *program, int index, weft_step_line *line,
                             weft_error *error);
/* Whether ranks exchange anything in it. */
bool weft_report_exchanges(const weft_planned_step *step);
/* The traffic of rank 0, to be freed; NULL when out of memory. */
weft_traffic *weft_report_traffic(const weft_program *program, int *n);
/* "data" or "data+model" */
void weft_report_axes(const weft_mesh *mesh, uint32_t axes, char *text, size_t room);
/* A queue's name: the axes over which it exchanges, or "compute". */
void weft_report_queue(const weft_program *program, uint32_t axes, char *text, size_t room);
/* "einsum at mlp.c:41", "lse_state of cross_entropy at mlp.c:44" */
void weft_report_place(const char *op, const char *builder, const char *file, int line, char *text,
                       size_t room);
/* The sentence for a file that failed, by errno: a stream in memory is refused memory where a file is refused room. */
weft_status weft_report_fail(weft_error *error);

#endif
