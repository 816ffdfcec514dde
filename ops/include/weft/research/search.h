/* search.h: the best mesh, layout and options for a program on a machine, found by planning.
 *
 *     static weft_status build(void *context, const weft_choice *choice, weft_built_graph *built, weft_error *error);
 *
 *     weft_search_options options = {.ranks = 64, .machine = model, .memory = 80e9, .seconds = 30};
 *     WEFT_TRY(weft_search_best(build, &my_model, &options, &found, error));
 *     weft_choice_print(&found.best[0].choice, text, sizeof text);      "--mesh data:8,model:8 --layout ... --zero 1"
 *
 * A *choice* is a mesh, a layout, a stage of sharded storage, and a value of each *knob*: what the program may do in several ways
 * without other results, as parts of a batch or blocks that are computed again. The space of choices follows from the
 * program. An axis has a *role*: an ordered list of dims. It splits the first of them that a tensor has. Dims that no tensor
 * has together share an axis without competing. The largest such sets are roles, and so is one behind another.
 *
 * Each choice has a *floor*: seconds that no plan of it can beat, and bytes that none can do without. Both follow from the plan on one
 * rank, and from what products exchange however they are cut. Choices are planned and predicted from the lowest guess on, and near the best ones first. When no floor is left below
 * the best, the best is exact. Else the lowest floor that is left says how much better another one could be at most.
 *
 * All functions are Local: nothing runs, and no ranks are needed. The result is a pure function of
 * program, machine and options, unless the time ends the search.
 */
#ifndef WEFT_RESEARCH_SEARCH_H
#define WEFT_RESEARCH_SEARCH_H

#include "weft/research/predict.h"

WEFT_BEGIN

/* ---- choices ------------------------------------------------------------------------------------ */

enum { WEFT_MAX_KNOBS = 12, WEFT_MAX_KNOB_VALUES = 16 };

/* An option that makes a program do the same in another way. */
typedef struct weft_knob {
    const char *name; /* as its command line has it: "accumulate" */
    bool is_flag;     /* 0 or 1: --recompute, --no-recompute */
    bool is_asked;    /* it varies only where `vary` names it */
    int n_values;
    int64_t values[WEFT_MAX_KNOB_VALUES]; /* [n_values] the first: what it does unless asked */
    /* what is written for a value: words[value], as "bf16"; borrowed; NULL: the number */
    const char *const *words;
} weft_knob;

typedef struct weft_choice {
    char mesh[128];   /* "data:8,model:8"; the last axis lies innermost, within a host */
    char layout[512]; /* "batch:data,hidden:model" */
    int zero;         /* the stage of sharded storage, 0 to 3 */
    int n_knobs;
    const weft_knob *knobs; /* [n_knobs] borrowed */
    int64_t values[WEFT_MAX_KNOBS];
    /* how many layers to build, where they are alike; 0: all. Seconds and bytes are then a + b layers */
    int64_t layers;
} weft_choice;

/* weft_choice_print - as a command line has it: "--mesh data:8,model:8 --layout batch:data,hidden:model --zero 1 --accumulate 4".
 * Knobs that do what they do unless asked are left out, and so is stage 0. returns as snprintf does; 0 without a choice. */
WEFT_API int weft_choice_print(const weft_choice *choice, char *text, size_t bytes);
/* weft_choice_value - of the knob of that name; `otherwise` where there is none. */
WEFT_API int64_t weft_choice_value(const weft_choice *choice, const char *knob, int64_t otherwise);

/* ---- the program -------------------------------------------------------------------------------- */

enum { WEFT_MAX_BUILT = 16 };

/* A program, as it is for one choice. */
typedef struct weft_built_graph {
    weft_graph *graph; /* the search destroys it, also where building failed */
    int n_values;
    weft_value values[WEFT_MAX_BUILT]; /* for weft_compile */
    weft_compile_options options;      /* for it too; `machine` is the search's */
} weft_built_graph;

/* Makes the graph for a choice. Mesh, layout and stage are the search's to make; their texts are there for programs that build by
 * them. Calls are made one at a time, perhaps on another thread.
 *
 * returns  WEFT_USAGE for values of knobs that do not go together: the choice is left out, and its sentence is counted */
typedef weft_status (*weft_search_builder)(void *context, const weft_choice *choice,
                                           weft_built_graph *built, weft_error *error);

/* ---- the search --------------------------------------------------------------------------------- */

enum { WEFT_MAX_FOUND = 10 };

/* Told how many choices were planned, of how many, and the best's seconds. */
typedef void (*weft_search_progress)(void *context, int64_t planned, int64_t of, double seconds);

typedef struct weft_search_options {
    int ranks;                         /* at least 1 */
    const weft_machine_model *machine; /* borrowed */
    int host_ranks; /* of each host; 0: as many as the machine's levels say, else all */
    int64_t memory; /* bytes that a rank has; 0: any number */
    double seconds; /* after which it ends; 0: when it is done */
    int width;      /* around so many of the best it looks first; 0: 8 */
    int most;       /* choices that are planned at most; 0: any number */
    int threads;    /* 0: as many as there are cores */
    bool is_whole;  /* nothing is left out for its floor: every choice is planned */
    /* what to vary: "mesh,layout,zero" and names of knobs; NULL and "": all */
    const char *vary;
    int n_knobs;            /* at most WEFT_MAX_KNOBS */
    const weft_knob *knobs; /* [n_knobs] borrowed as long as what was found */
    const char *store_dim;  /* over whose axes storage is sharded: "batch"; NULL: no stages */
    /* of the program, all alike: the builder makes as many as asked; 0: it makes all */
    int64_t layers;
    const char *layers_knob; /* its value divides the number of layers: "stages"; NULL: none does */
    const char *batch_knob; /* its value is the amount of work: "batch", for turns; NULL: none is */
    /* roles besides, and names for the axes of roles that begin with their dims: "data=batch experts=experts+batch"; NULL: none */
    const char *hints;
    /* kept where they do not vary, else planned first; NULL: none */
    const char *mesh, *layout;
    int zero;
    weft_search_progress progress; /* NULL: nobody is told */
    void *progress_context;
} weft_search_options;

/* A choice that was planned. */
typedef struct weft_found_choice {
    weft_choice choice;
    double floor_seconds; /* that no plan of it can beat */
    int64_t floor_bytes;
    int64_t bytes; /* that the rank with most needs (weft_usage.total_bytes) */
    weft_prediction prediction;
} weft_found_choice;

/* Why choices were not planned. */
typedef struct weft_left_out {
    int64_t illegal;    /* the builder refused them */
    int64_t memory;     /* their floor of memory is above what a rank has */
    int64_t floors;     /* their floor of time is above the best's seconds */
    int64_t unlooked;   /* time, or the number asked for, was over */
    char sentence[480]; /* the first one of the builder's; "": none */
} weft_left_out;

typedef struct weft_found {
    int n; /* 0: nothing fits into memory */
    /* [n] those that fit, the quickest first; of equal plans one */
    weft_found_choice best[WEFT_MAX_FOUND];
    /* Predictions below this are a tie with the best's: 3 %, times the ranks of a core. Of all in it `chosen` is the plainest: it has the
     * fewest axes, rules, and options that are not as usual; of equally plain ones data parallel, else the quickest */
    double tie_seconds;
    weft_found_choice chosen;
    int64_t n_choices;            /* that there are */
    int64_t n_planned, n_misfits; /* planned; of these: too large for memory */
    int64_t n_estimated;          /* of these: by few layers alone */
    weft_left_out left_out;
    /* nothing can be below: the lowest floor of all that was not planned whole, or the best */
    double least_seconds;
    /* the lowest guess of all that was not planned; and the part by which guesses of planned ones were off: half of them by more */
    double guess_seconds, guess_error;
    /* of all that was planned whole the largest floor, as a part of the seconds that were predicted: 1 at most */
    double floor_part;
    bool is_exact; /* none that was left out can be quicker than the best */
    bool out_of_time;
    /* of all that was planned: the one that needs least memory; mesh "": none was */
    weft_found_choice smallest;
    /* of those that do not fit, the quickest one that is quicker than the best, perhaps by an estimate; bytes 0: none is */
    weft_found_choice beyond;
    int n_roles;
    double seconds; /* that the search took */
} weft_found;

/* weft_search_best - the quickest choices.
 *
 * build    called for each set of values of knobs, and for each choice that is planned
 * found    out; where nothing fits, n is 0 and `smallest` says how much is needed
 * returns  WEFT_USAGE for no ranks, an unknown name in `vary` (with the nearest), or a program that fails in every way, with its
 *          sentence
 * cost     as many plans as n_planned says: milliseconds each, of as many layers as are estimated from */
WEFT_API WEFT_MUST_CHECK weft_status weft_search_best(weft_search_builder build, void *context,
                                                      const weft_search_options *options,
                                                      weft_found *found, weft_error *error);

/* weft_search_plan - one choice planned and predicted, on a mesh without ranks: own the program and built->graph; destroy the
 * program first, then its mesh (weft_program_mesh), then the graph.
 *
 * built       out: what the builder made of it
 * prediction  out */
WEFT_API WEFT_MUST_CHECK weft_status
weft_search_plan(weft_search_builder build, void *context, const weft_search_options *options,
                 const weft_choice *choice, weft_built_graph *built, weft_program **program,
                 weft_prediction *prediction, weft_error *error);

/* ---- why ---------------------------------------------------------------------------------------- */

enum { WEFT_MAX_TURNS = 20 };

/* By how much one figure would have to differ for the second choice to be as quick as the first. */
typedef struct weft_turn {
    char what[64]; /* "bytes a second of nvlink", "flops a second", "batch" */
    double
        factor; /* times what the machine has; 0: none from a hundredth to a hundred times makes it so */
} weft_turn;

/* weft_search_turns - what would have to change for `second` to win.
 *
 * turns    [WEFT_MAX_TURNS] out
 * n_turns  out
 * cost     two plans, and some 20 predictions of each for each figure; for the batch some plans more */
WEFT_API WEFT_MUST_CHECK weft_status weft_search_turns(weft_search_builder build, void *context,
                                                       const weft_search_options *options,
                                                       const weft_choice *first,
                                                       const weft_choice *second, weft_turn *turns,
                                                       int *n_turns, weft_error *error);

WEFT_END

#endif
