/* tolling.h (private): what tolls.c and gradient_tolls.c share: the bounds of a choice, its links, and what a kernel costs along each axis. */
#ifndef WEFT_SEARCH_TOLLING_H
#define WEFT_SEARCH_TOLLING_H

#include "searching.h"

enum {
    MOST_BOUNDS = 8, /* of bounds a vector: those that are not there count nothing */
    MOST_JOINT = 6   /* axes whose ways are looked at together */
};

/* What counts, and how often. */
typedef struct bound {
    double all, first, not_beside, not_beside_tight; /* works */
    double full[WEFT_TOLL_KINDS],
        share[WEFT_TOLL_KINDS]; /* exchanges; and the cores that they take */
    double first_tight;         /* those before all gradients, in full */
    double gradient;            /* exchanges of gradients along `axis`, in full */
    int axis;
} bound;

typedef struct tolling {
    const searching *s;
    const weft_search_outline *outline;
    const weft_search_setting *setting;
    const double (*repeated)
        [WEFT_MAX_AXES]; /* [n_works] seconds more where a kernel is whole along an axis */
    double weights[WEFT_WORK_ORDERS][MOST_BOUNDS]; /* of works */
    /* of exchanges by kind, in full before all gradients and else, and of the cores that they take */
    double full[2][WEFT_TOLL_KINDS][MOST_BOUNDS], share[WEFT_TOLL_KINDS][MOST_BOUNDS];
    double near[WEFT_MAX_AXES][WEFT_MAX_LEVELS]; /* how many ranks of an axis meet within a level */
    weft_search_link links[WEFT_MAX_AXES];       /* of axes: a byte through a rank's link */
    double most, works;                          /* seconds above which nobody asks; of all works */
    int n_bounds;
    bound bounds[MOST_BOUNDS];
    double sums[MOST_BOUNDS];
} tolling;

/* What one kernel costs on each axis, in each bound. Large: what is not asked for is not cleared. */
typedef struct cutting {
    const weft_search_work *work;
    int n_ways[WEFT_MAX_AXES];
    const weft_search_way *ways[WEFT_MAX_AXES][WEFT_SEARCH_WAYS];
    double costs[WEFT_MAX_AXES][WEFT_SEARCH_WAYS][MOST_BOUNDS];
} cutting;

/* Unlike fmin one instruction; nothing here is no number. */
static inline double lesser(double a, double b)
{
    return a < b ? a : b;
}

static inline const weft_search_role *role_at(const tolling *t, int axis)
{
    return &t->s->roles.list[t->outline->axes[axis].role];
}

static inline const weft_search_link *link_at(const tolling *t, int axis)
{
    return &t->links[axis];
}

static inline double others(const tolling *t, int axis)
{
    const double n = t->outline->axes[axis].size;
    return (n - 1) / n;
}

/* Whether variables are stored in shards over the axis, besides what names split. */
static inline bool is_sharded(const tolling *t, uint64_t dims, int axis, int stage)
{
    return t->setting->zero >= stage && dims != 0 && !(role_at(t, axis)->set & dims) &&
           role_at(t, axis)->splits_storage;
}

/* What so many bytes through a link count in each bound. */
static inline void count(const tolling *t, const weft_search_toll *toll,
                         const weft_search_link *link, double bytes, double costs[MOST_BOUNDS])
{
    const double *full = t->full[toll->is_first][toll->kind], *share = t->share[toll->kind];
    for (int b = 0; b < MOST_BOUNDS; b++)
        costs[b] += bytes * (full[b] * link->seconds + share[b] * link->share_seconds);
}

/* gradient_tolls.c: of all ways of all axes together the least, for each bound by itself, is added to the sums. */
void weft_search_add_gradient(tolling *t, const cutting *c, const weft_search_toll *toll);

#endif
