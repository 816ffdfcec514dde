/* searching.h (private): what the files of a search share.
 *
 * The space of choices is outlines times settings. An *outline* gives each axis of a mesh a role and a size. A *setting* is a
 * stage of sharded storage and a value of each knob. A *profile* says what a setting asks of one rank that does all: work by the
 * dims along which it can be cut, and what is kept between runs. Floors follow from outline and profile alone.
 */
#ifndef WEFT_SEARCH_SEARCHING_H
#define WEFT_SEARCH_SEARCHING_H

#include "machine.h"
#include "program.h"
#include "sync.h"
#include "weft/research/search.h"

enum {
    WEFT_SEARCH_DIMS = 64, /* names, a bit each */
    WEFT_ROLE_DIMS = 8,
    WEFT_SEARCH_ROLES = 24,
    WEFT_SEARCH_AXES = 4, /* of outlines that are found; one that is given may have more */
    WEFT_SETTINGS = 4096
};

/* ---- dims.c ------------------------------------------------------------------------------------- */

/* Amounts of the same dims, added up. The last place stands for all that find none. */
enum { WEFT_SEARCH_AMOUNTS = 160 };
typedef struct weft_search_amounts {
    int n;
    uint64_t dims[WEFT_SEARCH_AMOUNTS];
    double amount[WEFT_SEARCH_AMOUNTS];
} weft_search_amounts;
void weft_search_amounts_add(weft_search_amounts *amounts, uint64_t dims, double amount);
/* The part of it that has any of `some` and none of `others`. */
double weft_search_amounts_share(const weft_search_amounts *amounts, uint64_t some,
                                 uint64_t others);

/* The names of dims of all graphs that were looked at. */
typedef struct weft_search_dims {
    int n;
    char names[WEFT_SEARCH_DIMS][WEFT_MAX_NAME + 1];
    int64_t size[WEFT_SEARCH_DIMS]; /* the largest of that name */
    /* dims that one factor runs through: where one is split, another may come out split */
    uint64_t linked[WEFT_SEARCH_DIMS];
    uint64_t beside[WEFT_SEARCH_DIMS]; /* dims that some tensor has together with it */
    weft_search_amounts flops;         /* of forward ops, by the dims along which they can be cut */
    weft_search_amounts bytes;         /* of forward values that are no variables, by their dims */
} weft_search_dims;

/* The bit of a name; 0: there is no room for another one, or no layout can write it. */
uint64_t weft_search_dim_bit(weft_search_dims *dims, const char *name);
int weft_search_dim_find(const weft_search_dims *dims, const char *name,
                         size_t letters); /* -1: none */
/* What a graph's ops say of its dims. */
void weft_search_dims_look(weft_search_dims *dims, const weft_graph *graph);
/* Of a shape, but for those of states, which no layout can write. */
uint64_t weft_search_dims_of(weft_search_dims *dims, const weft_shape *shape);
/* Those that may come out split where these are. */
uint64_t weft_search_dims_reach(const weft_search_dims *dims, uint64_t from);

/* ---- roles.c ------------------------------------------------------------------------------------ */

/* What an axis splits: the first of these dims that a tensor has. */
typedef struct weft_search_role {
    int n;
    uint8_t dims[WEFT_ROLE_DIMS];
    uint64_t set, reach;          /* its dims; and those that may come out split */
    int64_t most;                 /* ranks that it can give work to: the largest size of its dims */
    double share;                 /* of the flops that it cuts, for choosing among roles */
    bool is_pair;                 /* one behind another */
    bool splits_storage;          /* it has the dim over whose axes storage is sharded */
    char axis[WEFT_MAX_NAME + 1]; /* the name of an axis that has it */
} weft_search_role;

typedef struct weft_search_roles {
    int n;
    weft_search_role list[WEFT_SEARCH_ROLES];
} weft_search_roles;

weft_status weft_search_roles_find(const weft_search_dims *dims, const char *hints,
                                   weft_search_roles *roles, weft_error *error);

/* ---- profile.c ---------------------------------------------------------------------------------- */

/* Work that can be cut along the same dims. A kernel stays one, whatever the plan: the rates of its size count. Loops are joined
 * otherwise in other plans: the best rates count of all sizes up to twice the largest one's. */
enum { WEFT_SEARCH_CUTS = 24, WEFT_SEARCH_TERMS = 8 };
/* An operand or a result of a kernel. */
typedef struct weft_search_term {
    uint64_t dims;
    double bytes;
    bool is_result;
    bool
        is_kept; /* an operand: a variable, perhaps cast; a result: a gradient, which goes to where its variable is stored */
} weft_search_term;

/* A way of a kernel along an axis: cut along these dims, which its terms of these bits have, or whole. Whole ways come first. */
enum { WEFT_SEARCH_WAYS = 20, WEFT_SEARCH_TOLLS = 24, WEFT_SEARCH_WORKS = 256 };
typedef struct weft_search_way {
    uint64_t dims;
    bool
        is_whole; /* all ranks do all of it; operands of `has` may be partial sums, then results are */
    uint16_t
        has; /* terms that come or go split or, of a whole one, partial; others are whole, and results are partial */
    uint16_t spares; /* terms whose exchanges with others it spares these */
} weft_search_way;

/* What can go on beside an exchange: anything; no kernel that is before or behind it in a chain of such; no kernel at all. */
typedef enum weft_search_toll_kind {
    WEFT_TOLL_LOOSE,
    WEFT_TOLL_CHAINED,
    WEFT_TOLL_TIGHT,
    WEFT_TOLL_KINDS
} weft_search_toll_kind;

/* An exchange that a kernel pays each time that it is done, along each axis, or that others are spared. flows.c finds them. */
typedef struct weft_search_toll {
    enum {
        WEFT_TOLL_LACK, /* it is paid where the way lacks the term: operands become whole, or sums are finished */
        WEFT_TOLL_SPARED,   /* somebody else pays it, but where the way spares the term */
        WEFT_TOLL_VARIABLE, /* as WEFT_TOLL_LACK, where the variable is stored split */
        WEFT_TOLL_GRADIENT  /* it becomes what is stored of the variable */
    } of;
    weft_search_toll_kind kind;
    uint64_t dims; /* other axes that may cut one of these cut its bytes */
    double bytes;  /* through a link, but for a rank's own part */
    double
        again; /* of a variable whose shards are gathered in each phase; of a gradient: its shards become whole */
    double share; /* that this kernel pays of it */
    double often; /* for each time that the kernel is done */
    uint64_t
        whole_id; /* where the kernel of that id is whole, nobody pays: so it is no more than what that costs; 0: none */
    uint8_t whole_order;
    int whole; /* which of the profile's works it is; -1: none */
    uint8_t term;
    bool is_first; /* before all gradients */
} weft_search_toll;

/* When a work is done: before all gradients; beside some exchange of a chain; beside a tight one. */
enum {
    WEFT_WORK_FIRST = 1,
    WEFT_WORK_BESIDE = 2,
    WEFT_WORK_BESIDE_TIGHT = 4,
    WEFT_WORK_ORDERS = 8
};

typedef struct weft_search_work {
    uint64_t dims;
    bool is_stored; /* it may be cut as storage is */
    bool is_kernel;
    uint8_t order;      /* WEFT_WORK_* */
    double seconds;     /* at the best rates; of loops, of all together */
    double bytes, most; /* of loops: all that they read and write, and the one with most of it */
    double times;       /* how often, of all loops together */
    weft_workload kernel;
    int n_terms;
    weft_search_term terms[WEFT_SEARCH_TERMS];
    int n_in, n_ways, n_tolls; /* operands; n_tolls -1: they are not known */
    weft_search_way ways[WEFT_SEARCH_WAYS];
    weft_search_toll tolls[WEFT_SEARCH_TOLLS];
    double
        cut_seconds[WEFT_SEARCH_CUTS]; /* what it takes, cut among so many ranks (searching.cuts) */
} weft_search_work;

/* What is kept between runs: all variables of the same dims, or their slots, or inputs. */
typedef struct weft_search_home {
    uint64_t dims;
    bool is_slot, is_variable, is_placed; /* placed: where the program says, whatever the rules */
    double bytes;
} weft_search_home;

typedef struct weft_search_profile {
    bool is_legal, has_tolls;       /* of all its works */
    uint64_t dims, more;            /* that it has; those of them that the first setting has not */
    int64_t size[WEFT_SEARCH_DIMS]; /* of these */
    int like; /* the first profile of the same dims: it exchanges about the same */
    int n_works, n_homes;
    weft_search_work *works; /* [n_works] */
    weft_search_home *homes; /* [n_homes] */
} weft_search_profile;

/* ---- space.c ------------------------------------------------------------------------------------ */

typedef struct weft_search_setting {
    int zero;
    int profile;                  /* of its knobs */
    uint8_t knob[WEFT_MAX_KNOBS]; /* which of the values */
} weft_search_setting;

typedef struct weft_search_axis {
    uint8_t role, level;
    int32_t size, stride; /* stride: how far apart two neighbours along it are, in ranks */
} weft_search_axis;

typedef struct weft_search_outline { /* the last axis is innermost */
    int n;
    weft_search_axis axes[WEFT_MAX_AXES];
} weft_search_outline;

/* What the machine does best of one rank's work. */
typedef struct weft_search_rates {
    double flops[WEFT_DTYPES], bytes;
    double crowd;  /* how many ranks of a host share what one was measured with */
    double factor; /* what was measured may be quicker than rates say */
    const weft_load *load;
    weft_load plain; /* the same without single kernels: rates alone */
} weft_search_rates;
/* Of links at best: a byte through one, and what of a rank's computing that takes. */
typedef struct weft_search_link {
    double seconds, share_seconds;
    double most_share; /* of a rank's cores that one exchange takes */
} weft_search_link;
/* A kernel on one of so many ranks that share it, at best. */
double weft_search_kernel_seconds(const weft_search_rates *rates, const weft_workload *kernel,
                                  double ranks);
/* The whole kernel at the best rates of all sizes. */
double weft_search_kernel_best(const weft_search_rates *rates, const weft_workload *kernel);

typedef struct searching {
    weft_search_builder build;
    void *context;
    const weft_search_options *options;
    weft_error *error;
    weft_arena *arena;
    bool varies_mesh, varies_layout, varies_zero, varies_knob[WEFT_MAX_KNOBS];
    weft_search_dims dims;
    weft_search_roles roles;
    int n_profiles, n_settings, n_outlines;
    bool has_more_outlines; /* than there was room for */
    weft_search_profile *profiles;
    weft_search_setting *settings;
    weft_search_outline *outlines;
    weft_search_rates rates;
    weft_search_link *links; /* [n_levels] of the machine: of a level and those farther out */
    int n_cuts;              /* numbers of ranks that may share a work: divisors of all ranks */
    double cuts[WEFT_SEARCH_CUTS];
    char refusal[480]; /* the builder's first */
    int64_t n_refused;
    int threads;
    double begun;             /* when the search has */
    pthread_mutex_t building; /* held while the builder is called */
} searching;

/* Settings with a profile for each set of values of knobs; roles; outlines. Ended early by an error. */
weft_status weft_search_space_find(searching *s);
/* profile.c: of n sets of values of knobs */
weft_status weft_search_profiles_make(searching *s, const weft_search_setting *settings, int n);
/* ---- as_choice.c -------------------------------------------------------------------------------- */

/* The setting's profile has all dims of the outline's roles; stages of storage have an axis to shard over. */
bool weft_search_go_together(const searching *s, const weft_search_outline *outline,
                             const weft_search_setting *setting);
/* A outline and a setting, as texts and values. false: the texts are longer than a choice has room for. */
bool weft_search_choice_of(const searching *s, const weft_search_outline *outline,
                           const weft_search_setting *setting, weft_choice *choice);
/* One axis, which splits the dim over whose axes storage is sharded, and nothing else. */
bool weft_search_is_data_parallel(const searching *s, const weft_search_outline *outline);
/* How much there is to say of it: axes, rules, and options that are not as usual; of data parallel less than of what is as plain. */
int weft_search_effort(const searching *s, const weft_search_outline *outline,
                       const weft_search_setting *setting);
/* How many layers an estimate is from: the smaller number; the other is half as many more. 0: all are planned. */
int64_t weft_search_few_layers(const weft_search_options *options, const weft_choice *choice);

/* ---- floor.c ------------------------------------------------------------------------------------ */

/* An outline as works ask: which axes cut them, and among how many ranks each set of axes does. */
typedef struct weft_search_sharing {
    int n;
    uint64_t reach[WEFT_MAX_AXES];
    uint32_t stored;                  /* axes over which storage may be sharded */
    double ranks[1 << WEFT_MAX_AXES]; /* of a set of axes */
    int8_t cut[1 << WEFT_MAX_AXES];   /* its place in searching.cuts; -1: none */
} weft_search_sharing;
void weft_search_share(const searching *s, const weft_search_outline *outline,
                       weft_search_sharing *sharing);
/* What each work of all profiles takes among each number of ranks: threads read it alone from then on. */
void weft_search_cut_works(searching *s);
/* Seconds that no plan can beat; bytes that none can do without. */
double weft_search_floor_seconds(const searching *s, const weft_search_sharing *sharing,
                                 const weft_search_setting *setting);
/* One work of a profile, and among how many ranks it is cut. */
double weft_search_work_seconds(const searching *s, const weft_search_sharing *sharing,
                                const weft_search_setting *setting, const weft_search_work *work,
                                double *ranks);
double weft_search_floor_bytes(const searching *s, const weft_search_outline *outline,
                               const weft_search_setting *setting);
double weft_search_act_seconds(const weft_search_rates *rates, const char *op);
void weft_search_rates_find(const weft_machine_model *machine, int host_ranks,
                            weft_search_rates *rates);
int weft_search_host_ranks(const weft_search_options *options);

/* best_links.c: of the machine. */
weft_status weft_search_links_find(searching *s);
/* How many ranks of an axis meet within each level, at most. near: [n_levels] */
void weft_search_meeting(const weft_machine_model *machine, const weft_search_axis *axis,
                         double near[WEFT_MAX_LEVELS]);
/* What an exchange takes for each byte that a rank has in the end, where no more ranks are near each other than that. */
weft_search_link weft_search_link_through(const searching *s, const double near[WEFT_MAX_LEVELS]);
/* A byte through a rank's link in an exchange along the axis alone. */
weft_search_link weft_search_link_along(const searching *s, const weft_search_axis *axis);

/* ---- tolls.c ------------------------------------------------------------------------------------ */

/* Seconds that no plan can beat, with the exchanges that each must have, or `most` where they are more; 0 where these are not known. */
double weft_search_toll_seconds(const searching *s, const weft_search_outline *outline,
                                const weft_search_setting *setting, double most);

/* ---- guess.c ------------------------------------------------------------------------------------ */

/* Seconds that exchanges and the begins of loops may add to a floor, if each kernel is cut in the cheapest way that names allow: it says
 * what to plan first. */
double weft_search_guess_exchanges(const searching *s, const weft_search_outline *outline,
                                   const weft_search_setting *setting);

/* ---- list.c ------------------------------------------------------------------------------------- */

typedef enum weft_search_fate { WEFT_UNSEEN, WEFT_PLANNED } weft_search_fate;

typedef struct weft_search_candidate {
    int outline, setting;
    float floor, guess; /* seconds; the floor has no exchanges, unless is_tolled */
    bool is_tolled;
    uint8_t fate;
} weft_search_candidate;

/* Own `all`: free, also where it could not be made. */
typedef struct weft_search_list {
    uint32_t n, cap;
    weft_search_candidate *all; /* [n] by guess */
    int64_t n_choices,
        n_too_large;             /* all there are; those whose floor of bytes is above the memory */
    int64_t n_dropped;           /* those that there was no room for */
    double dropped, least_guess; /* the lowest floor of these; the lowest guess */
} weft_search_list;

weft_status weft_search_list_make(searching *s, weft_search_list *list);
/* Floors with exchanges, of the n candidates: each is kept where it is higher. Nobody asks for more than `most`. */
void weft_search_list_toll(const searching *s, const weft_search_list *list, const uint32_t *which,
                           int n, double most);

/* What is below the best without exchanges may not be with them: the lowest floors are raised first, and no more than there is time for;
 * nobody asks for more than `most`. */
weft_status weft_search_list_raise(searching *s, const weft_search_list *list, double best,
                                   double most);

/* ---- price.c ------------------------------------------------------------------------------------ */

typedef struct weft_search_price {
    weft_status status; /* WEFT_USAGE: the builder refused; others end the search */
    bool is_estimate;   /* from few layers */
    int64_t bytes;
    weft_prediction prediction;
    weft_error error;
} weft_search_price;

/* A choice planned: its few layers by usual prices, or for the machine; or all of it for the machine. Each takes several times as long as
 * the one before. */
typedef enum weft_search_care {
    WEFT_BY_USUAL_PRICES,
    WEFT_FOR_MACHINE,
    WEFT_WHOLE
} weft_search_care;
void weft_search_price_choice(searching *s, const weft_choice *choice, weft_search_care care,
                              weft_search_price *price);
/* As weft_search_plan, where others of the search plan too. */
weft_status weft_search_plan_choice(searching *s, const weft_choice *choice,
                                    weft_built_graph *built, weft_program **program,
                                    weft_prediction *prediction, weft_error *error);

/* ---- hunt.c ------------------------------------------------------------------------------------- */

/* Plans choices of the space, from the lowest guess on, and tells what it found. */
weft_status weft_search_hunt(searching *s, weft_found *found);

/* ---- crew.c: several threads that do pieces of work ---------------------------------------------- */

typedef void (*weft_search_piece)(void *context, int piece);
/* How many there are for these options. */
int weft_search_threads(const weft_search_options *options);
/* Pieces [0, n), each once, on so many threads. Returns when all are done. */
void weft_search_crew_do(int threads, int n, weft_search_piece piece, void *context);
/* Whether so much of the time that a search may take is over. */
bool weft_search_is_over(const searching *s, double part);
/* Calls of the builder, one at a time. */
weft_status weft_search_call_builder(searching *s, const weft_choice *choice,
                                     weft_built_graph *built, weft_error *error);

/* ---- near.c -------------------------------------------------------------------------------------- */

/* Whether one step leads from one choice to the other: a factor moved between two roles, another order of axes, another value of
 * a knob, or another stage. */
bool weft_search_are_near(const weft_search_outline *a, const weft_search_setting *x,
                          const weft_search_outline *b, const weft_search_setting *y);

#endif
