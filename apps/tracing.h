/* tracing.h: the steps of a training that are traced, --trace N..M, into the folder `trace` of the run directory.
 *
 * `weft trace` makes a file for Perfetto of them.
 */
#ifndef WEFT_APPS_TRACING_H
#define WEFT_APPS_TRACING_H

#include "options.h"
#include "weft/research/trace.h"

#define APP_TRACE_OPTION(group)                                                                    \
    {                                                                                              \
        "trace", OPTION_TEXT, "", "N..M", group,                                                   \
            "write down when each part of steps N to M began and ended; weft trace shows it"       \
    }

typedef struct app_tracing {
    int64_t first, last; /* steps; last 0: none */
    char folder[4096];
    weft_trace *trace; /* NULL: no step is traced now */
    bool says;         /* the root: when it is over */
} app_tracing;

/* app_tracing_read - what --trace says of a training that ends with step `end`. Local. */
weft_status app_tracing_read(app_tracing *tracing, const settings *s, int64_t end,
                             weft_error *error);
/* app_tracing_before - before step `step`: begin, or end, as it is due. Collective over the job.
 *
 * parts   [n] the programs that run in a step, and how often they do: `runs` in all of a window */
weft_status app_tracing_before(app_tracing *tracing, int64_t step, const weft_trace_part *parts,
                               int n, weft_error *error);
/* app_tracing_end - where one is under way. Collective over the job. */
weft_status app_tracing_end(app_tracing *tracing, weft_error *error);
/* app_tracing_close - also after a failure. Local. */
void app_tracing_close(app_tracing *tracing);
/* app_trace_folder - where the run directory `folder` keeps its trace. Local. */
void app_trace_folder(const char *folder, char *path, size_t bytes);

#endif
