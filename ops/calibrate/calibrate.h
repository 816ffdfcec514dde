/* calibrate.h (private): the parts of calibration: small programs, to time their kernels, and exchanges. */
#ifndef WEFT_CALIBRATE_H
#define WEFT_CALIBRATE_H

#include "machine.h"

/* A small program of one rank, whose kernels are measured. */
typedef struct weft_subject weft_subject;
struct weft_subject {
    const char *name; /* for a person who waits: "products" */
    weft_value (*build)(weft_graph *graph, const weft_subject *subject);
    int64_t size[4];
    weft_value (*act)(weft_value x); /* of acts: the builder of the element op */
    weft_dtype dtype;
};

/* subjects.c: lists, most informative first; NULL name at the end. Of streams the bytes of a loop that reads and writes; of acts
 * one element op each, the first a plain one; of products 2 m k n flops; of others what nets are made of. */
extern const weft_subject weft_calibrate_empty, weft_calibrate_streams[], weft_calibrate_acts[],
    weft_calibrate_products[], weft_calibrate_others[];

/* exchanges.c: all kinds over `axes` of a mesh that runs, all groups at once, at one level of the model; is_late: few sizes.
 * Collective over the mesh. */
weft_status weft_calibrate_exchanges(weft_mesh *mesh, weft_comms *comms, uint32_t axes, int level,
                                     bool is_late, weft_machine_model *model, weft_error *error);
/* beside.c: work beside each kind of exchange, and a late rank: the same; is_late: all_reduce alone. */
weft_status weft_calibrate_beside(weft_mesh *mesh, weft_comms *comms, uint32_t axes, int level,
                                  bool is_late, weft_machine_model *model, weft_error *error);
/* beside.c: an exchange of ranks of which `share` (above 1) are to each core, after work of all. Collective over the mesh. */
weft_status weft_calibrate_crowded(weft_mesh *mesh, weft_comms *comms, uint32_t axes, int level,
                                   double share, weft_machine_model *model, weft_error *error);

#endif
