/* guess: seconds that a choice may exchange, for the order in which choices are planned.
 *
 * Each kernel is looked at by itself, axis by axis, as the compiler decides: cut along one of its dims, or whole. Names say where its
 * operands are, and where its results go. So each cut has bytes to exchange, of links of a known speed. Conversions that readers share are counted for each, and work beside
 * them is left out. So a guess orders choices, and no more.
 */
#include "searching.h"

#include <math.h>

/* A part of exchanges goes on beside work. */
static const double SHOWN = 0.6;

enum { WHOLE = -1 };

/* The dim of a tensor that an axis splits by names: the first of the role's that it has. */
static int split_by(const weft_search_role *role, uint64_t dims)
{
    if (!(role->set & dims)) return WHOLE;
    for (int d = 0; d < role->n; d++)
        if (dims >> role->dims[d] & 1) return role->dims[d];
    return WHOLE;
}

typedef struct guess {
    const searching *s;
    const weft_search_outline *outline;
    const weft_search_setting *setting;
    double seconds[WEFT_MAX_AXES]; /* a byte through a rank's link along an axis */
} guess;

static const weft_search_role *role_at(const guess *g, int axis)
{
    return &g->s->roles.list[g->outline->axes[axis].role];
}

/* Of a tensor, were the axis whole. */
static double bytes_beside(const guess *g, const weft_search_term *term, int axis)
{
    double bytes = term->bytes;
    for (int a = 0; a < g->outline->n; a++)
        if (a != axis && term->dims & role_at(g, a)->set) bytes /= g->outline->axes[a].size;
    return bytes;
}

/* A variable or a gradient that the axis shards in storage alone. */
static bool is_sharded(const guess *g, const weft_search_term *term, int axis)
{
    const int least = term->is_result ? 1 : 3;
    const weft_search_role *role = role_at(g, axis);
    return term->is_kept && g->setting->zero >= least && !(term->dims & role->set) &&
           role->splits_storage;
}

/* What is the same of a tensor for all cuts of its kernel along an axis. */
typedef struct looked_term {
    uint64_t dims;
    double bytes, sent; /* were the axis whole; and of a result without a rank's own part */
    int named;          /* the dim by which it is split there */
    bool is_result, is_sharded;
} looked_term;

typedef struct looked_axis {
    int n;
    looked_term terms[WEFT_SEARCH_TERMS];
    double others, moved; /* of n ranks: n - 1 parts of n; and of one part as many */
    bool is_brought_back; /* a new variable, to where others read it */
} looked_axis;

static void look_at_terms(const guess *g, const weft_search_work *work, int axis, looked_axis *look)
{
    const double n = g->outline->axes[axis].size;
    look->n = work->n_terms;
    look->others = (n - 1) / n;
    look->moved = (n - 1) / n / n;
    look->is_brought_back = g->setting->zero < 3;
    for (int t = 0; t < work->n_terms; t++) {
        const weft_search_term *term = &work->terms[t];
        const double bytes = bytes_beside(g, term, axis);
        look->terms[t] = (looked_term){.dims = term->dims,
                                       .bytes = bytes,
                                       .sent = term->is_result ? bytes * (n - 1) / n : 0,
                                       .named = split_by(role_at(g, axis), term->dims),
                                       .is_result = term->is_result,
                                       .is_sharded = is_sharded(g, term, axis)};
    }
}

/* From where a tensor is along the axis to a split along `dim`, or whole: parts of its bytes (weft_state_cost). */
static double moved(int from, int to, const looked_axis *look)
{
    if (from == to || from == WHOLE) return 0;
    return to == WHOLE ? look->others : look->moved;
}

/* What a kernel exchanges over an axis if it is cut along `dim`, or done whole. */
static double cut_bytes(const looked_axis *look, int dim)
{
    double all = 0;
    for (int t = 0; t < look->n; t++) {
        const looked_term *term = &look->terms[t];
        const bool has = dim != WHOLE && term->dims >> dim & 1;
        const int here = has ? dim : WHOLE;
        if (!term->is_result)
            all += term->bytes * (term->is_sharded ? look->others : moved(term->named, here, look));
        else if (dim != WHOLE && !has) /* partial */
            all += (term->named == WHOLE && !term->is_sharded ? 2 : 1) * term->sent;
        else
            all += term->bytes * moved(here, term->named, look);
        if (term->is_result && term->is_sharded && look->is_brought_back) all += term->sent;
    }
    return all;
}

static double axis_seconds(const guess *g, const weft_search_work *work, int axis, double alone)
{
    const weft_search_axis *a = &g->outline->axes[axis];
    const weft_level *level = &g->s->options->machine->levels[a->level];
    looked_axis look;
    look_at_terms(g, work, axis, &look);
    const double whole = cut_bytes(&look, WHOLE) * g->seconds[axis];
    double best = whole + alone * (1 - 1.0 / a->size) / SHOWN;
    for (uint64_t left = work->dims & role_at(g, axis)->reach; left != 0; left &= left - 1) {
        const double bytes = cut_bytes(&look, __builtin_ctzll(left));
        best = fmin(best, bytes * g->seconds[axis] + (bytes > 0 ? level->latency_seconds : 0));
    }
    return best;
}

/* What a kernel takes beside the other axes, were this one whole. */
static double alone_seconds(const guess *g, const weft_search_work *work, int axis)
{
    double ranks = 1;
    for (int a = 0; a < g->outline->n; a++)
        if (a != axis && work->dims & role_at(g, a)->reach) ranks *= g->outline->axes[a].size;
    return work->kernel.flops / g->s->rates.flops[work->kernel.dtype] / ranks;
}

double weft_search_guess_exchanges(const searching *s, const weft_search_outline *outline,
                                   const weft_search_setting *setting)
{
    guess g = {s, outline, setting, {0}};
    const weft_search_profile *profile = &s->profiles[setting->profile];
    double seconds = 0, loops = 0;
    for (int a = 0; a < outline->n; a++)
        g.seconds[a] = weft_search_link_along(s, &outline->axes[a]).seconds;
    for (int w = 0; w < profile->n_works; w++) {
        const weft_search_work *work = &profile->works[w];
        if (!work->is_kernel) loops += work->times;
        for (int a = 0; work->is_kernel && a < outline->n; a++)
            seconds += work->times * axis_seconds(&g, work, a, alone_seconds(&g, work, a));
    }
    return SHOWN * fmax(seconds, 0) + s->rates.crowd * s->rates.load->step_seconds * fmax(loops, 0);
}
