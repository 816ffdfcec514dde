/* convert: the steps from one spec to another, and what each puts on the wire.
 *
 * Axes change at the innermost end of a dim's list: appending an axis there, or taking the last one away, changes the
 * boxes of that axis's ranks only, uneven and empty ones too. Slices come first (they make everything after them
 * smaller), then reductions, each over all axes that end in the same way, then moves between dims, then gathers.
 * Conversions to partial come last, since they are local and make boxes larger. A list that would have to change in
 * its middle is left to one general move.
 *
 * A dim that is to be split through a window is not sliced first, since a border would be asked for again. Where all that it
 * needs is there, it is cut there; else one border step brings what is lacking, after reductions.
 */
#include "weft/layout.h"

/* ---- one axis at a time ---------------------------------------------------------------------- */

typedef struct planner {
    const weft_spec *to;
    weft_spec now;
    weft_convert_step *steps;
    int n_steps, n_axes, n_dims;
    uint32_t bordered; /* bit d: `to` shows dim d through a window that `from` does not have */
} planner;

static void add_step(planner *p, weft_convert_kind kind, uint32_t axes, const weft_spec *to)
{
    p->steps[p->n_steps++] =
        (weft_convert_step){.kind = kind, .axes = axes, .from = p->now, .to = *to};
    p->now = *to;
}

static void push(weft_spec *spec, int dim, int axis)
{
    spec->split[dim][spec->n_split[dim]++] = (int8_t)axis;
}

static void pop(weft_spec *spec, int dim)
{
    spec->split[dim][--spec->n_split[dim]] = 0;
}

static void clear_partial(weft_spec *spec, int axis)
{
    spec->partial &= (uint8_t) ~(1u << axis);
    if (spec->partial == 0) spec->combine = WEFT_NOT_PARTIAL;
}

/* How many of the outermost axes of dim d are the same in both. */
static int common_axes(const weft_spec *a, const weft_spec *b, int d)
{
    int n = 0;
    while (n < a->n_split[d] && n < b->n_split[d] && a->split[d][n] == b->split[d][n])
        n++;
    return n;
}

/* The dim to which `axis` can be appended now, as `to` wants it; -1 when there is none. */
static int ready_dim(const planner *p, int axis)
{
    for (int d = 0; d < p->n_dims; d++) {
        int n = p->now.n_split[d];
        if (common_axes(&p->now, p->to, d) == n && p->to->n_split[d] > n &&
            p->to->split[d][n] == axis)
            return d;
    }
    return -1;
}

static bool try_slice(planner *p)
{
    for (int a = 0; a < p->n_axes; a++) {
        if (weft_spec_state(&p->now, p->n_dims, a) != WEFT_REPLICATED) continue;
        int dim = ready_dim(p, a);
        if (dim < 0 || p->bordered >> dim & 1) continue;
        weft_spec next = p->now;
        push(&next, dim, a);
        add_step(p, WEFT_SLICE, 0, &next);
        return true;
    }
    return false;
}

static void show_as(weft_spec *spec, const weft_spec *to, int d)
{
    spec->n_split[d] = to->n_split[d];
    spec->window[d] = to->window[d];
    for (int i = 0; i < to->n_split[d]; i++)
        spec->split[d][i] = to->split[d][i];
}

/* A whole dim, over axes along which all have it: each takes what its window shows. */
static bool try_cut_by_window(planner *p)
{
    for (int d = 0; d < p->n_dims; d++) {
        if (!(p->bordered >> d & 1) || p->now.n_split[d] > 0) continue;
        bool is_there = true;
        for (int i = 0; i < p->to->n_split[d]; i++)
            is_there = is_there &&
                       weft_spec_state(&p->now, p->n_dims, p->to->split[d][i]) == WEFT_REPLICATED;
        if (!is_there) continue;
        weft_spec next = p->now;
        show_as(&next, p->to, d);
        add_step(p, WEFT_BORDER, 0, &next);
        p->bordered &= ~(1u << d);
        return true;
    }
    return false;
}

/* Reduce-scatters first: what follows is smaller. One step takes all axes that find a dim. */
static bool try_reduce_scatter(planner *p)
{
    const weft_spec before = p->now;
    const uint32_t ending = before.partial & ~(uint32_t)p->to->partial;
    uint32_t axes = 0;
    for (int a = 0; a < p->n_axes; a++) {
        const int dim = (ending & ~axes) >> a & 1 ? ready_dim(p, a) : -1;
        if (dim < 0) continue;
        clear_partial(&p->now, a);
        push(&p->now, dim, a);
        axes |= 1u << a;
        a = -1; /* others may be ready now */
    }
    const weft_spec next = p->now;
    p->now = before;
    if (axes != 0) add_step(p, WEFT_REDUCE_SCATTER, axes, &next);
    return axes != 0;
}

static bool try_all_reduce(planner *p)
{
    const uint32_t axes = p->now.partial & ~(uint32_t)p->to->partial;
    if (axes == 0) return false;
    weft_spec next = p->now;
    for (int a = 0; a < p->n_axes; a++)
        if (axes >> a & 1) clear_partial(&next, a);
    add_step(p, WEFT_ALL_REDUCE, axes, &next);
    return true;
}

/* The innermost axis of dim d, when it has to leave; -1 when the list is a beginning of the wanted
 * one. */
static int leaving_axis(const planner *p, int d)
{
    int n = p->now.n_split[d];
    return n > common_axes(&p->now, p->to, d) ? p->now.split[d][n - 1] : -1;
}

static bool try_all_to_all(planner *p)
{
    for (int d = 0; d < p->n_dims; d++) {
        int axis = leaving_axis(p, d);
        int dim = axis < 0 ? -1 : ready_dim(p, axis);
        if (dim < 0) continue;
        weft_spec next = p->now;
        pop(&next, d);
        push(&next, dim, axis);
        add_step(p, WEFT_ALL_TO_ALL, 1u << axis, &next);
        return true;
    }
    return false;
}

static bool try_all_gather(planner *p)
{
    for (int d = 0; d < p->n_dims; d++) {
        int axis = leaving_axis(p, d);
        if (axis < 0 || weft_spec_state(p->to, p->n_dims, axis) != WEFT_REPLICATED) continue;
        weft_spec next = p->now;
        pop(&next, d);
        add_step(p, WEFT_ALL_GATHER, 1u << axis, &next);
        return true;
    }
    return false;
}

/* Whole or split becomes partial without anybody else: each element counts on one rank of the axis. */
static bool try_count_once(planner *p)
{
    const weft_spec before = p->now;
    for (int a = 0; a < p->n_axes; a++) {
        if (!((p->to->partial & ~p->now.partial) >> a & 1)) continue;
        const int dim = weft_spec_state(&p->now, p->n_dims, a);
        if (dim >= 0 && leaving_axis(p, dim) != a) continue;
        if (dim >= 0) pop(&p->now, dim);
        p->now.partial |= (uint8_t)(1u << a);
        p->now.combine = p->to->combine;
        a = -1; /* others may be innermost now */
    }
    const weft_spec next = p->now;
    p->now = before;
    if (next.partial == before.partial) return false;
    add_step(p, WEFT_COUNT_ONCE, 0, &next);
    return true;
}

typedef bool (*attempt)(planner *p);

static const attempt reductions[] = {try_slice, try_cut_by_window, try_reduce_scatter,
                                     try_all_reduce};
static const attempt exchanges[] = {try_slice, try_all_to_all, try_all_gather, try_count_once};

/* The first attempt that succeeds, again and again, until none does. */
static void repeat(planner *p, const attempt *attempts, int n)
{
    for (int i = 0; i < n; i++)
        if (attempts[i](p)) i = -1;
}

/* ---- the general move ------------------------------------------------------------------------ */

/* All axes that are not at the same place in both specs. Blocks of the common outer axes are the
 * same in both, so nothing crosses their borders. */
static uint32_t differing_axes(const weft_spec *a, const weft_spec *b, int n_dims)
{
    uint32_t axes = a->partial ^ b->partial;
    for (int d = 0; d < n_dims; d++) {
        int common = common_axes(a, b, d);
        for (int i = common; i < a->n_split[d]; i++)
            axes |= 1u << a->split[d][i];
        for (int i = common; i < b->n_split[d]; i++)
            axes |= 1u << b->split[d][i];
    }
    return axes;
}

/* Along other axes a rank has what is asked of it; and from all blocks of a dim a window may ask. */
static uint32_t bordering_axes(const planner *p)
{
    const weft_spec *now = &p->now;
    uint32_t axes = differing_axes(now, p->to, p->n_dims), asked = now->partial;
    for (int d = 0; d < p->n_dims; d++)
        for (int i = 0; i < now->n_split[d]; i++) {
            asked |= 1u << now->split[d][i];
            if (p->bordered >> d & 1) axes |= 1u << now->split[d][i];
        }
    return axes & asked & ~(uint32_t)p->to->partial;
}

/* The dims that `to` shows through other windows than `from`; false: `from` has one that does not stay. */
static bool find_bordered(const weft_spec *from, const weft_spec *to, int n_dims,
                          uint32_t *bordered)
{
    *bordered = 0;
    for (int d = 0; d < n_dims; d++) {
        const bool stays = weft_window_equal(&from->window[d], &to->window[d]);
        const int common = common_axes(from, to, d);
        if (from->window[d].lead != 0 &&
            (!stays || common < from->n_split[d] || common < to->n_split[d]))
            return false;
        if (!stays) *bordered |= 1u << d;
    }
    return true;
}

/* ---- public ---------------------------------------------------------------------------------- */

int weft_convert_plan(const weft_mesh *mesh, const weft_shape *shape, const weft_spec *from,
                      const weft_spec *to, weft_convert_step *steps)
{
    if (steps == NULL || !weft_spec_is_valid(from, mesh, shape) ||
        !weft_spec_is_valid(to, mesh, shape))
        return -1;
    if ((from->partial & to->partial) != 0 && to->combine != from->combine) return -1;
    planner p = {.to = to,
                 .now = *from,
                 .steps = steps,
                 .n_axes = weft_mesh_n_axes(mesh),
                 .n_dims = shape->n_dims};
    if (!find_bordered(from, to, shape->n_dims, &p.bordered)) return -1;
    repeat(&p, reductions, 4);
    planner before = p;
    if (p.bordered != 0) {
        add_step(&p, WEFT_BORDER, bordering_axes(&p), to);
        return p.n_steps;
    }
    repeat(&p, exchanges, 4);
    if (!weft_spec_equal(&p.now, to, p.n_dims)) {
        /* One move of everything beats steps that only lead up to it. */
        p = before;
        add_step(&p, WEFT_MOVE, differing_axes(&p.now, to, p.n_dims), to);
    }
    return p.n_steps;
}

static const char *const kind_names[WEFT_CONVERTS] = {
    [WEFT_SLICE] = "slice",
    [WEFT_ALL_REDUCE] = "all_reduce",
    [WEFT_REDUCE_SCATTER] = "reduce_scatter",
    [WEFT_ALL_GATHER] = "all_gather",
    [WEFT_ALL_TO_ALL] = "all_to_all",
    [WEFT_MOVE] = "move",
    [WEFT_COUNT_ONCE] = "count_once",
    [WEFT_BORDER] = "border",
};

const char *weft_convert_name(weft_convert_kind kind)
{
    return (unsigned)kind < WEFT_CONVERTS ? kind_names[kind] : "no conversion";
}

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef int64_t (*counter)(const weft_mesh *mesh, const weft_shape *shape,
                           const weft_convert_step *step, int rank);

static int64_t count_nothing(const weft_mesh *mesh, const weft_shape *shape,
                             const weft_convert_step *step, int rank)
{
    (void)mesh, (void)shape, (void)step, (void)rank;
    return 0;
}

static int64_t count_from(const weft_mesh *mesh, const weft_shape *shape,
                          const weft_convert_step *step, int rank)
{
    weft_box box;
    weft_spec_box(&step->from, mesh, shape, rank, &box);
    return weft_box_count(&box, shape->n_dims);
}

static int64_t count_to(const weft_mesh *mesh, const weft_shape *shape,
                        const weft_convert_step *step, int rank)
{
    weft_box box;
    weft_spec_box(&step->to, mesh, shape, rank, &box);
    return weft_box_count(&box, shape->n_dims);
}

/* Advance `at` to the next rank of its group along `axes`; false after the last. */
static bool next_in_group(const weft_mesh *mesh, uint32_t axes, int *at)
{
    for (int a = weft_mesh_n_axes(mesh) - 1; a >= 0; a--) {
        if (!(axes >> a & 1)) continue;
        if (++at[a] < weft_mesh_axis_size(mesh, a)) return true;
        at[a] = 0;
    }
    return false;
}

static int64_t count_sent(const weft_mesh *mesh, const weft_shape *shape,
                          const weft_convert_step *step, int rank)
{
    int64_t count = 0;
    int at[WEFT_MAX_AXES];
    weft_mesh_coordinates(mesh, rank, at);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (step->axes >> a & 1) at[a] = 0;
    do {
        int destination = weft_mesh_rank(mesh, at);
        weft_box piece;
        if (destination != rank && weft_move_sends(mesh, shape, step, rank, destination, &piece))
            if (__builtin_add_overflow(count, weft_box_count(&piece, shape->n_dims), &count))
                return INT64_MAX;
    } while (next_in_group(mesh, step->axes, at));
    return count;
}

static const counter counters[WEFT_CONVERTS] = {
    [WEFT_SLICE] = count_nothing,       [WEFT_ALL_REDUCE] = count_from,
    [WEFT_REDUCE_SCATTER] = count_from, [WEFT_ALL_GATHER] = count_to,
    [WEFT_ALL_TO_ALL] = count_sent,     [WEFT_MOVE] = count_sent,
    [WEFT_COUNT_ONCE] = count_nothing,  [WEFT_BORDER] = count_sent,
};

int64_t weft_convert_bytes(const weft_mesh *mesh, const weft_shape *shape, weft_dtype dtype,
                           const weft_convert_step *step, int rank)
{
    if (shape == NULL || step == NULL || (unsigned)step->kind >= WEFT_CONVERTS || rank < 0 ||
        rank >= weft_mesh_n_ranks(mesh))
        return 0;
    const int64_t count = counters[step->kind](mesh, shape, step, rank);
    int64_t bytes;
    return __builtin_mul_overflow(count, (int64_t)weft_dtype_bytes(dtype), &bytes) ? INT64_MAX
                                                                                   : bytes;
}

double weft_state_cost(int from, int to, int n, double bytes)
{
    const double part = n > 1 ? (double)(n - 1) / n : 0;
    if (from == to || to == WEFT_PARTIAL || (from == WEFT_REPLICATED && to >= 0)) return 0;
    if (from == WEFT_PARTIAL) return to == WEFT_REPLICATED ? 2 * bytes * part : bytes * part;
    return to == WEFT_REPLICATED ? bytes * part : bytes * part / (n > 1 ? n : 1);
}
