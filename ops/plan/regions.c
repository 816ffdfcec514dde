/* regions: where the bodies of scans are among the steps, and how long what they use lives. See regions.h. */
#include "regions.h"

weft_status weft_find_regions(const weft_plan *plan, weft_arena *arena, weft_regions *regions,
                              weft_error *error)
{
    const size_t n_scans = plan->graph->n_scans + 1, n_steps = plan->n_steps + 1;
    regions->graph = plan->graph;
    regions->part = weft_arena_take(arena, n_steps * sizeof *regions->part);
    regions->begin = weft_arena_take(arena, n_scans * sizeof *regions->begin);
    regions->end = weft_arena_take(arena, n_scans * sizeof *regions->end);
    regions->guard = weft_arena_take(arena, n_scans * sizeof *regions->guard);
    if (!regions->part || !regions->begin || !regions->end || !regions->guard)
        return weft_fail_memory(error, n_steps * sizeof *regions->part);
    uint32_t part = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        regions->part[s] = weft_is_fence(step) ? part + 1 : part;
        if (weft_is_fence(step)) part += 2;
        if (step->kind == WEFT_STEP_BEGIN) regions->begin[step->scan] = s;
        if (weft_is_fence(step) && step->kind != WEFT_STEP_END) regions->guard[step->scan] = s;
        if (step->kind == WEFT_STEP_END) regions->end[step->scan] = s;
    }
    return WEFT_OK;
}

double weft_trips_of(const weft_graph *graph, uint32_t scan)
{
    double trips = 1;
    for (; scan != 0; scan = graph->scans[scan].parent)
        trips *= (double)graph->scans[scan].trips;
    return trips;
}

double weft_times_of(const weft_plan *plan, const weft_step *step)
{
    const bool is_begin = step->kind == WEFT_STEP_BEGIN;
    const double times =
        weft_trips_of(plan->graph, is_begin ? plan->graph->scans[step->scan].parent : step->scan);
    if (!step->is_ahead) return times;
    const double trips = (double)plan->graph->scans[step->scan].trips;
    return times / trips * (trips - 1);
}

bool weft_names_carry(const weft_node *node, int i)
{
    return i == 0 && (node->op == &weft_op_scan_next || node->op == &weft_op_scan_last);
}

static void cover(weft_life *life, uint32_t first, uint32_t last)
{
    if (!life->is_used || first < life->first) life->first = first;
    if (!life->is_used || last > life->last) life->last = last;
    life->is_used = true;
}

void weft_live(const weft_regions *regions, weft_life *life, uint32_t scan, uint32_t s)
{
    const weft_scan *scans = regions->graph->scans;
    uint32_t first = s, last = s;
    if (!life->is_used) life->scan = scan;
    for (; !weft_scan_holds(regions->graph, life->scan, scan);
         life->scan = scans[life->scan].parent)
        cover(life, regions->begin[life->scan], regions->end[life->scan]);
    for (; scan != life->scan; scan = scans[scan].parent)
        first = regions->begin[scan], last = regions->end[scan];
    cover(life, first, last);
}

bool weft_is_store(const weft_plan *plan, const weft_step *step)
{
    if (step->kind != WEFT_STEP_COPY) return false;
    const weft_placed *into = &plan->placed[step->out[0]];
    return into->home == WEFT_VARIABLE_HOME || (into->carried != 0 && into->carried == step->scan);
}
