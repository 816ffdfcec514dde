/* clock.h (private): how long each step of a plan takes on a machine. Schedule orders steps by it, and the timeline walks by it: so
 * what is planned and what is predicted agree.
 */
#ifndef WEFT_PREDICT_CLOCK_H
#define WEFT_PREDICT_CLOCK_H

#include "machine.h"

/* Seconds of a workload that has been looked up. Layers say the same again and again. */
typedef struct weft_known_work {
    uint64_t id; /* 0: free */
    double seconds, spread;
    weft_time_source source;
} weft_known_work;

typedef struct weft_clock {
    const weft_plan *plan;
    const weft_machine_model *model;
    int host_ranks; /* of the mesh on each host */
    const weft_load *load;
    weft_mark *marks; /* of the load */
    weft_known_work
        *known; /* [n_known] a power of two, more than there are workloads: open addressing */
    size_t n_known;
} weft_clock;

typedef struct weft_step_time {
    double seconds;
    double spread; /* how much longer its mean is, as a part of that */
    weft_time_source source;
} weft_step_time;

/* weft_clock_open - of a plan whose steps need not be ordered or indexed yet. What it notes lives in `arena`. Local.
 *
 * host_ranks  of the mesh on each host; 0: as many as the model's levels say, else all
 * n_asked     steps that it will be asked about, of all ranks */
weft_status weft_clock_open(const weft_plan *plan, const weft_machine_model *model, int host_ranks,
                            size_t n_asked, weft_arena *arena, weft_clock *clock,
                            weft_error *error);
/* weft_clock_step - a step once, undisturbed. Local. */
weft_step_time weft_clock_step(weft_clock *clock, const weft_step *step, int rank);
/* weft_clock_besides - what a run takes besides its steps, where `rank` has its inputs written before it. Local; pure. */
double weft_clock_besides(const weft_clock *clock, int rank);
/* weft_clock_level - the level at which the group of `rank` over `axes` meets, by its ranks that are farthest apart. Local; pure. */
int weft_clock_level(const weft_clock *clock, int rank, uint32_t axes);
/* weft_clock_links - what the machine's levels say of the links along each axis of a mesh, as weft_compile_options.link takes
 * it; "" where no axis has two ranks. Local; pure. */
enum { WEFT_LINKS_BYTES = 600 };
void weft_clock_links(const weft_mesh *mesh, const weft_machine_model *model,
                      char text[WEFT_LINKS_BYTES]);

/* weft_clock_work - flops that take as long on the machine as a byte through a link of the usual speed (weft_cost.flops_per_byte), by
 * its best rate of the dtypes that the graph has. Local; pure. */
double weft_clock_work(const weft_mesh *mesh, const weft_machine_model *model,
                       const weft_graph *graph);

#endif
