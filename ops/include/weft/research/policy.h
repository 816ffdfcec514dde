/* policy.h: where work is cut and what that costs, decided by functions of your own.
 *
 *     static int keep_batch(void *context, const weft_decision *decision)
 *     {
 *         for (int w = 0; w < decision->n_ways; w++)
 *             if (decision->ways[w].dim && !strcmp(decision->ways[w].dim, "batch")) return w;
 *         return WEFT_DEFAULT_WAY;
 *     }
 *     static const weft_policy policy = {.name = "batch first", .pick = keep_batch};
 *     weft_compile_options options = {.policy = &policy};
 *
 * Compiling decides op after op, in the order of the graph, and axis after axis, in the order of the mesh, along
 * which direction the op's work is cut. Each time it lists the ways there are, prices them, and takes the cheapest,
 * or the one that the policy picks. No choice changes the numbers of the program: conversions follow from it.
 *
 * A policy and a cost function are pure: what they return depends on what they are handed alone, never on the rank, the
 * time or memory. Ranks that decide otherwise are found before the first run (the digest sees the plan). Both are
 * borrowed while weft_compile runs, and called on its thread.
 */
#ifndef WEFT_RESEARCH_POLICY_H
#define WEFT_RESEARCH_POLICY_H

#include "weft/program.h"

WEFT_BEGIN

/* ---- prices ---------------------------------------------------------------------------------- */

/* One conversion along a set of axes. */
typedef struct weft_exchange {
    const weft_mesh *mesh;
    uint32_t axes; /* bit a: the ranks along axis a exchange */
    int n_ranks;   /* of a group: the product of those axes' sizes */
    /* never WEFT_SLICE or WEFT_COUNT_ONCE, which are local and cost nothing */
    weft_convert_kind kind;
    /* of one rank's part of the tensor, were it whole along these axes; move, border: what is sent */
    double bytes;
    double link_bytes; /* what goes through one rank's link, n ranks: all_gather and reduce_scatter
                               bytes (n-1)/n, all_reduce twice that, all_to_all an n-th of it, move and border: bytes */
} weft_exchange;

/* Prices have one unit: a byte through one rank's link. {0} is the cost function that is used when none is given. */
struct weft_cost {
    /* flops that take as long as a byte through a link; 0: WEFT_FLOPS_PER_BYTE */
    double flops_per_byte;
    /* The price of an exchange, 0 or more, INFINITY for never. NULL: exchange->link_bytes, times what links of its axes are
     * said to be slower than the usual (weft_compile_options.link) */
    double (*exchange)(void *context, const weft_exchange *exchange);
    /* The price of `flops` done by one rank, 0 or more. NULL: flops / flops_per_byte */
    double (*work)(void *context, double flops);
    void *context; /* handed to both */
    /* Bytes that would be through a link in the time that an exchange takes whatever it moves: until all have come
     * and the first byte is there. 0: as links are said to have, else WEFT_LATENCY. Not a part of an exchange's
     * price, since placing hardly depends on it. Exchanges that are ready together become one where the saved
     * latencies cost more than the difference in price and the copies to pack and unpack. */
    double latency;
};
enum {
    WEFT_FLOPS_PER_BYTE = 30, /* 100 GFLOP/s a core against about 3 GB/s */
    WEFT_LATENCY = 16384,     /* 5 us                                    */
    WEFT_COPIES_PER_BYTE = 4 /* bytes copied in memory in the time of one through a link: 12 GB/s */
};

/* The price of one way, in its parts. */
typedef struct weft_price {
    /* bringing the operands to where the way needs them, and what windows show of them */
    double operands;
    /* bringing the results from where it leaves them to where they go; of a partial sum its share */
    double results;
    double repeated; /* work that the ranks of the axis all do, beyond a share each */
    double total;
} weft_price;

/* ---- one decision ---------------------------------------------------------------------------- */

typedef enum weft_way_kind {
    WEFT_WAY_CUT,     /* the work is cut along one direction                      */
    WEFT_WAY_PARTIAL, /* a sum that is partial stays so: every rank its summand   */
    WEFT_WAY_WHOLE,   /* every rank of the axis does all of it                    */
    WEFT_WAYS
} weft_way_kind;
WEFT_API const char *weft_way_kind_name(weft_way_kind kind); /* "cut"; "?" for no kind */

/* A state is a dim's index, WEFT_REPLICATED or WEFT_PARTIAL. */
typedef struct weft_way {
    weft_way_kind kind;
    /* cut: the direction, by the result's dim or else an operand's; NULL: no cut */
    const char *dim;
    const int8_t *need;   /* [n_in] the state that each operand must be in */
    const int8_t *make;   /* [n_out] the state that each result comes out in */
    weft_combine combine; /* of results that come out partial */
    /* false: no operand is along this direction on the axis, and no result wants to be. Legal, and left out of the
     * comparison unless a policy picks it */
    bool is_usual;
    weft_price price;
} weft_way;

/* An operand or a result of the op. */
typedef struct weft_operand {
    uint32_t value;   /* its number in the plan: the same wherever the tensor turns up */
    const char *name; /* NULL: none */
    weft_dtype dtype;
    /* of the whole tensor */
    const weft_shape *shape;
    const int8_t *now; /* [n_axes] the state it is in; NULL for results                       */
    /* [n_axes] where it goes when it may not stay partial: where its placement wants it, else where all of its readers
     * would need it, or if they disagree where its names want it */
    const int8_t *wanted;
    int n_readers; /* operands: ops that read it; they share the price of finishing a partial sum */
    /* [n_axes] results, NULL for operands: the part of the price of finishing it that it pays when it comes out as a
     * partial sum. Less than 1: it goes into a sum of several such, which is finished once; 0: that will be partial
     * anyway */
    const double *share;
    /* operands: made by an op without operands in whatever state is needed, for nothing */
    bool is_generated;
} weft_operand;

/* One op and one axis: the question, and, once it is decided, the answer. */
typedef struct weft_decision {
    const weft_mesh *mesh;
    int axis, n_ranks; /* ranks along it */
    uint32_t node;     /* the op's number in the plan, as weft_planned_step has it */
    const char *op;    /* its name: an inner one where a builder is made of several */
    const char *builder,
        *file; /* the call in the program: "layer_norm", "mlp.c"; NULL: not known */
    int line;
    weft_phase phase;
    double flops; /* of one rank, with the axes decided before */
    int n_in, n_out;
    const weft_operand *in, *out; /* [n_in], [n_out] */
    const weft_way *before;       /* [axis] what was picked for the axes before this one */
    int n_ways;
    const weft_way *ways; /* [n_ways] at least one; of equal prices the first wins */
    int cheapest;         /* the usual way of the lowest price: the default */
    int picked;           /* -1 while the policy is asked */
} weft_decision;

/* ---- a policy -------------------------------------------------------------------------------- */

enum { WEFT_DEFAULT_WAY = -1 };

/* A value, for `wants`. */
typedef struct weft_wanting {
    const weft_mesh *mesh;
    const weft_layout *layout;
    const char *name; /* NULL: none */
    weft_dtype dtype;
    const weft_shape *shape;
    const char *op, *builder, *file; /* what makes it, and where, as in weft_decision */
    int line;
    weft_phase phase;
    /* weft_place's text; NULL: none */
    const char *placement;
    /* the variable whose storage it is placed as (weft_place_as); NULL: none */
    const char *place_as;
} weft_wanting;

struct weft_policy {
    const char *name; /* for sentences and reports; NULL: "policy" */
    /* The index of a way, or WEFT_DEFAULT_WAY. NULL: always the default. */
    int (*pick)(void *context, const weft_decision *decision);
    /* Where a value is wanted, as weft_place takes it ("batch:data", "" for whole on every rank); NULL: as it is by its
       placement and the layout. Asked once for each value, before anything is decided. An optimizer slot follows its
       variable. The text is copied. NULL: nothing is changed. */
    const char *(*wants)(void *context, const weft_wanting *value);
    void *context; /* handed to both */
};

WEFT_END

#endif
