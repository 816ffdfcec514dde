/* climb: the next training of a search that climbs. */
#include "climb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double ROUNDED = 1e-3; /* values are printed to four digits */

/* From the best training, along one range. */
typedef struct line {
    const search *search;
    const int *ends;
    int n, axis;
} line;

static const char *value_at(const line *l, int t)
{
    return l->search->trials[t].values[l->axis];
}

static double place_at(const line *l, int t)
{
    return space_place(&l->search->launch.space->axes[l->axis], value_at(l, t));
}

/* Whether two trials have the same values of all lists. */
static bool is_alike(const search *s, int x, int y)
{
    const space *sp = s->launch.space;
    for (int a = 0; a < sp->n; a++)
        if (sp->axes[a].n > 0 && strcmp(s->trials[x].values[a], s->trials[y].values[a]) != 0)
            return false;
    return true;
}

static int count_ranges(const space *sp)
{
    int n = 0;
    for (int a = 0; a < sp->n; a++)
        n += sp->axes[a].n == 0;
    return n;
}

static bool has_values(const search *s, int t, char values[][SPACE_TEXT])
{
    for (int a = 0; a < s->launch.space->n; a++)
        if (strcmp(s->trials[t].values[a], values[a]) != 0) return false;
    return true;
}

int climb_find(const search *s, char values[][SPACE_TEXT])
{
    int t = 0;
    while (t < s->n && !has_values(s, t, values))
        t++;
    return t < s->n ? t : -1;
}

/* What has been at the last rung is told by `ends`: a search that was started again already has results that come later. What failed at
 * an earlier rung is not tried again. */
static bool is_new(const line *l, climb_move *move)
{
    const search *s = l->search;
    const int t = climb_find(s, move->values);
    for (int i = 0; i < l->n; i++)
        if (has_values(s, l->ends[i], move->values)) return false;
    for (int k = 0; t >= 0 && k < s->n_rungs - 1; k++) {
        const outcome *o = &s->trials[t].outcomes[k];
        if (o->is_done && isnan(o->result)) return false;
    }
    return true;
}

/* Whether a value is at most so many steps from another. */
static bool is_within(const space_axis *axis, const char *value, const char *of, int steps)
{
    char low[SPACE_TEXT], high[SPACE_TEXT];
    const double there = space_place(axis, value);
    snprintf(low, sizeof low, "%s", of);
    snprintf(high, sizeof high, "%s", of);
    for (int i = 0; i < steps; i++) {
        char from[SPACE_TEXT];
        memcpy(from, low, sizeof from);
        space_step(axis, from, false, low);
        memcpy(from, high, sizeof from);
        space_step(axis, from, true, high);
    }
    return there > space_place(axis, low) - ROUNDED && there < space_place(axis, high) + ROUNDED;
}

/* Whether a training encloses the best one on this range: it is at most two steps away, and at most one on all others. */
static bool is_beside(const line *l, int t)
{
    const search *s = l->search;
    const space *sp = s->launch.space;
    for (int a = 0; a < sp->n; a++)
        if (sp->axes[a].n == 0 && !is_within(&sp->axes[a], s->trials[t].values[a],
                                             s->trials[l->ends[0]].values[a], a == l->axis ? 2 : 1))
            return false;
    return is_alike(s, t, l->ends[0]);
}

/* Of the trainings on one side of the best, the nearest: its index in ends; n: there is none. */
static int neighbour(const line *l, bool is_above)
{
    const double here = place_at(l, l->ends[0]);
    double nearest = INFINITY;
    int found = l->n;
    for (int i = 1; i < l->n; i++) {
        const double there = place_at(l, l->ends[i]);
        const double far = is_above ? there - here : here - there;
        if (far <= 0 || far >= nearest || !is_beside(l, l->ends[i])) continue;
        nearest = far;
        found = i;
    }
    return found;
}

/* The side of the best other trial of the rung before. */
static bool leads_up(const line *l)
{
    const search *s = l->search;
    const int k = s->n_rungs > 1 ? s->n_rungs - 2 : 0;
    const double here = place_at(l, l->ends[0]);
    double best = NAN;
    bool is_up = true;
    for (int t = 0; t < s->n; t++) {
        const outcome *o = &s->trials[t].outcomes[k];
        if (!o->is_done || isnan(o->result) || place_at(l, t) == here ||
            !is_alike(s, t, l->ends[0]))
            continue;
        if (s->is_highest ? o->result <= best : o->result >= best) continue; /* not of NaN */
        best = o->result;
        is_up = place_at(l, t) > here;
    }
    return is_up;
}

static bool try_step(const line *l, bool is_up, climb_move *move)
{
    move->toward = -1;
    space_step(&l->search->launch.space->axes[l->axis], value_at(l, l->ends[0]), is_up,
               move->values[l->axis]);
    return is_new(l, move);
}

static bool try_halfway(const line *l, int end, climb_move *move)
{
    if (end == l->n) return false;
    move->toward = l->ends[end];
    space_between(&l->search->launch.space->axes[l->axis], value_at(l, l->ends[0]),
                  value_at(l, move->toward), move->values[l->axis]);
    return is_new(l, move);
}

static bool try_line(const line *l, climb_move *move)
{
    const int above = neighbour(l, true), below = neighbour(l, false);
    const bool is_open = above == l->n || below == l->n;
    const bool is_up = above == below ? leads_up(l) : above == l->n;
    memcpy(move->values, l->search->trials[l->ends[0]].values, sizeof move->values);
    if (is_open && try_step(l, is_up, move)) return true;
    if (above == below && try_step(l, !is_up, move)) return true;
    return try_halfway(l, above < below ? above : below, move) ||
           try_halfway(l, above < below ? below : above, move);
}

bool climb_next(const search *s, const int *ends, int n, int turn, climb_move *move)
{
    const space *sp = s->launch.space;
    const int n_ranges = count_ranges(sp);
    if (n_ranges == 0 || n == 0) return false;
    move->from = ends[0];
    for (int i = 0; i < n_ranges; i++) {
        int axis = -1;
        for (int skip = (turn + i) % n_ranges; skip >= 0; skip--)
            do
                axis++;
            while (sp->axes[axis].n > 0);
        if (try_line(&(line){s, ends, n, axis}, move)) return true;
    }
    return false;
}
