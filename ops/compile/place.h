/* place.h (private): placing under way, for place.c, versions.c and place_scan.c. */
#ifndef WEFT_COMPILE_PLACE_H
#define WEFT_COMPILE_PLACE_H

#include "candidates.h"
#include "regions.h"
#include "sites.h"

typedef struct weft_placing {
    weft_plan *plan;
    weft_sites *sites;
    weft_lookahead ahead;
    weft_outlook looked; /* the outlook that `ahead` is of, if it is of one */
    bool has_looked;
    /* what it costs is added up here; NULL: this is no candidate */
    weft_planned_candidate *candidate;
    double flops;
    uint32_t *primary;     /* [n_tensors] the version others are made from; 0: none yet */
    weft_axis_states *now; /* [n_tensors] where that is */
    int *readers;          /* [n_tensors] ops that read the value                       */
    uint32_t *writer;      /* [n_tensors] the assign that writes the variable; 0: none yet */
    uint32_t stretch;      /* of ops of one phase: how many came before                     */
    bool is_end;       /* all ops are placed: what is wanted now is wanted by readers of the run */
    uint32_t scan;     /* in whose body what is wanted now is read; 0: in none */
    uint32_t open;     /* the scan whose begin was made, and its end not yet   */
    uint32_t *begin;   /* [n_scans] the step that begins it                    */
    uint32_t *carried; /* [n_tensors] of what goes from trip to trip: the version that does */
    /* [n_tensors] of that, where it can be a partial sum over all trips; else not partial */
    weft_spec *may_last;
    weft_spec *lasting; /* [n_tensors] the same, less what has turned out not to be       */
    bool is_again;      /* something turned out not to last: everything is placed anew */
    weft_error *error;
} weft_placing;

/* What a node is as a step, and of which scans: where its operands are read, its work is done, its results can be read. */
typedef struct weft_scopes {
    uint32_t in, work, out;
    weft_step_kind kind;
} weft_scopes;
weft_scopes weft_scopes_of(const weft_graph *graph, const weft_node *node);

/* ---- versions.c ---- */

/* The version of a value in `spec`, made if need be; 0 on failure. Who needs some axes partial gets a version of his own; who
 * needs all finished has it done for everybody. */
uint32_t weft_want(weft_placing *p, uint32_t value, const weft_spec *spec, uint32_t asking);
/* A new version, to be read in the body of `scan`; 0 on failure. */
uint32_t weft_add_version(weft_placing *p, uint32_t value, const weft_spec *spec, uint32_t scan,
                          weft_phase phase);
/* The same where rank 0's box is known; NULL: it is not. */
uint32_t weft_add_version_in(weft_placing *p, uint32_t value, const weft_spec *spec,
                             const weft_box *box, uint32_t scan, weft_phase phase);

/* ---- place.c ---- */

weft_status weft_copy_into(weft_placing *p, uint32_t id, uint32_t from, uint32_t to,
                           weft_step_reason why);
/* An op cut as weft_choose says. */
weft_status weft_place_op(weft_placing *p, uint32_t id);

/* ---- place_scan.c ---- */

weft_status weft_place_scans_begin(weft_placing *p);
/* Whatever turned out not to last where the same graph was placed in another outlook may last in this one. */
void weft_place_scans_anew(weft_placing *p);
/* Before node `id`: the bodies that it is not in end, and the one that it is the trip of begins. */
weft_status weft_place_fences(weft_placing *p, uint32_t id);
weft_status weft_place_carry(weft_placing *p, uint32_t id);
weft_status weft_place_last(weft_placing *p, uint32_t id);
weft_status weft_place_guard(weft_placing *p, uint32_t id);
#endif
