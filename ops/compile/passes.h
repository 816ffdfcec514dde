/* passes.h (private): the compiler: passes that fill in a plan, one after the other, and what they ask of the user's policy and
 * annotations.
 */
#ifndef WEFT_COMPILE_PASSES_H
#define WEFT_COMPILE_PASSES_H

#include "plan.h"

/* weft_plan_build - the plan of a program; of several, where it is for a machine (for_machine.c). Local; pure. */
weft_status weft_plan_build(weft_mesh *mesh, const weft_layout *layout, weft_values values,
                            const weft_compile_options *options, weft_plan **plan,
                            weft_error *error);

/* What a plan is made of. */
typedef struct weft_plan_request {
    weft_mesh *mesh;
    const weft_layout *layout;
    weft_values values;
    const weft_compile_options *options; /* never NULL */
} weft_plan_request;

/* By what exchanges and steps are priced. */
typedef struct weft_pricing {
    const char *links;                 /* their speeds, as options.link; NULL: the usual */
    double flops_per_byte;             /* as of a cost function that has none; 0: the usual */
    const weft_machine_model *machine; /* by whose seconds steps are ordered; NULL: by prices */
    const char *dump; /* a pass's name: what it made is printed to stderr; NULL: nothing */
} weft_pricing;

/* weft_plan_begin - run the passes that go by prices alone. weft_plan_end - run the others, by the seconds of the pricing's machine
 * (NULL: by prices too), and find what readers of the plan need. A plan that has begun may end in several ways (weft_plan_fork):
 * `next` is the one that ends next, which has the trials of this one (NULL: none). Local; pure. */
weft_status weft_plan_begin(const weft_plan_request *request, const weft_pricing *pricing,
                            weft_plan **plan, weft_error *error);
weft_status weft_plan_end(weft_plan *plan, const weft_pricing *pricing, weft_plan *next,
                          weft_error *error);
/* weft_plan_make - run all passes once. Local; pure. */
weft_status weft_plan_make(const weft_plan_request *request, const weft_pricing *pricing,
                           weft_plan **plan, weft_error *error);
/* weft_plan_for_machine - of plans by several prices the one that takes least on options.machine. Local; pure. */
weft_status weft_plan_for_machine(const weft_plan_request *request, weft_plan **plan,
                                  weft_error *error);

typedef weft_status (*weft_pass)(weft_plan *plan, weft_error *error);
weft_status weft_pass_unroll(weft_plan *plan, weft_error *error);
weft_status weft_pass_expand(weft_plan *plan, weft_error *error);
weft_status weft_pass_simplify(weft_plan *plan, weft_error *error);
weft_status weft_pass_cut_first(weft_plan *plan, weft_error *error);
weft_status weft_pass_join_parts(weft_plan *plan, weft_error *error);
weft_status weft_pass_fission(weft_plan *plan, weft_error *error);
weft_status weft_pass_place(weft_plan *plan, weft_error *error);
weft_status weft_pass_lower(weft_plan *plan, weft_error *error);
weft_status weft_pass_accumulate(weft_plan *plan, weft_error *error);
weft_status weft_pass_elide_casts(weft_plan *plan, weft_error *error);
/* One cast and nothing else, between numbers that lie alike. */
bool weft_is_cast(const weft_plan *plan, const weft_step *step, weft_dtype from, weft_dtype to);
bool weft_has_bf16(const weft_plan *plan);
weft_status weft_pass_copy_casts(weft_plan *plan, weft_error *error);
weft_status weft_pass_fuse(weft_plan *plan, weft_error *error);
weft_status weft_pass_fuse_horizontal(weft_plan *plan, weft_error *error);
weft_status weft_pass_order(weft_plan *plan, weft_error *error);
/* The arena of rank 0 may have so many bytes more by what bucket joins. */
enum { WEFT_JOIN_SPARE = 8 << 10 };
weft_status weft_pass_bucket(weft_plan *plan, weft_error *error);
weft_status weft_pass_hoist(weft_plan *plan, weft_error *error);
weft_status weft_pass_prefetch(weft_plan *plan, weft_error *error);
/* Whether the device's loops read and write what moves, and what is apart. */
bool weft_has_views(const weft_plan *plan);
weft_status weft_pass_views(weft_plan *plan, weft_error *error);
weft_status weft_pass_schedule(weft_plan *plan, weft_error *error);

/* ---- policy_query.c -------------------------------------------------------------------------- */

/* weft_ask_policy - where the policy wants values: placements of the plan's graph from then on. */
weft_status weft_ask_policy(weft_plan *plan, weft_error *error);
/* weft_find_skipped - fill plan->skips; WEFT_USAGE for the first when the plan is strict. */
weft_status weft_find_skipped(weft_plan *plan, weft_error *error);

/* ---- home_spec.c ------------------------------------------------------------------------------ */

/* The spec that names give a value: its placement, else the storage of the variable it is placed
 * as, else the rules. */
weft_status weft_wanted_spec(const weft_plan *plan, uint32_t value, weft_spec *spec,
                             weft_error *error);
/* Where a variable keeps its elements between runs. */
weft_status weft_home_spec(const weft_plan *plan, uint32_t variable, weft_spec *spec,
                           weft_error *error);

#endif
