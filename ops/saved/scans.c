/* scans.c: scans and parts of a saved program: a line each, before the nodes, which say whose body they are of.
 *
 *     scan 1 trips 8 trip %12 random 0 3
 *     part 1 nodes 14 22
 */
#include "saved.h"

#include <string.h>

/* ---- writing ----------------------------------------------------------------------------------- */

static void put_if(const char *what, int64_t number, FILE *file)
{
    if (number != 0) fprintf(file, " %s %lld", what, (long long)number);
}

static void put_scan(const weft_scan *scan, uint32_t s, const weft_saved_numbers *numbers,
                     FILE *file)
{
    fprintf(file, "scan %u trips %lld trip %%%u random %u %u", s, (long long)scan->trips,
            numbers->values[scan->trip], scan->random_begin, scan->random_end);
    put_if("within", numbers->scans[scan->parent], file);
    put_if("mirrors", numbers->scans[scan->mirrors], file);
    put_if("repeats", numbers->scans[scan->repeats], file);
    if (scan->over.dim != NULL) {
        fputs(" over ", file);
        weft_saved_put(scan->over.dim, file);
        fprintf(file, ":%lld", (long long)scan->over.size);
    }
    fputc('\n', file);
}

/* Parts say what gradients compute again: of a frozen program nobody takes any. */
void weft_saved_put_scans(const weft_graph *graph, const weft_saved_numbers *numbers, FILE *file)
{
    for (uint32_t s = 1; s < graph->n_scans; s++)
        if (numbers->scans[s] != 0) put_scan(&graph->scans[s], numbers->scans[s], numbers, file);
    for (uint32_t p = 1; p < graph->n_parts && !numbers->is_frozen; p++) {
        fprintf(file, "part %u nodes %u %u", p, graph->parts[p].begin, graph->parts[p].end);
        put_if("within", graph->parts[p].parent, file);
        put_if("in", graph->parts[p].scan, file);
        fputc('\n', file);
    }
}

/* ---- reading ----------------------------------------------------------------------------------- */

static bool read_id(weft_saved_text *t, int64_t least, int64_t most, uint32_t *id)
{
    int64_t number;
    if (!weft_saved_whole(t, least, most, &number)) return false;
    *id = (uint32_t)number;
    return true;
}

/* Of another that comes before: 0 where it is not said. */
static bool read_earlier(weft_saved_text *t, const char *what, uint32_t end, uint32_t *id)
{
    return !weft_saved_has(t, what) || read_id(t, 1, (int64_t)end - 1, id);
}

static bool read_over(weft_saved_text *t, weft_dim_attributes *over)
{
    if (!weft_saved_has(t, "over")) return true;
    return weft_saved_word(t, &over->dim) && weft_saved_expect(t, ":") &&
           weft_saved_whole(t, 1, INT64_MAX, &over->size);
}

bool weft_saved_scan(weft_saved_text *t)
{
    weft_graph *graph = t->graph;
    weft_scan scan = {.parent = 0};
    const uint32_t here = graph->n_scans == 0 ? 1 : graph->n_scans;
    int64_t number;
    if (!weft_saved_whole(t, here, here, &number) || !weft_saved_expect(t, "trips") ||
        !weft_saved_whole(t, 1, 1 << 20, &scan.trips) || !weft_saved_expect(t, "trip") ||
        !weft_saved_expect(t, "%") || !read_id(t, 1, UINT32_MAX - 1, &scan.trip) ||
        !weft_saved_expect(t, "random") || !read_id(t, 0, UINT32_MAX, &scan.random_begin) ||
        !read_id(t, 0, UINT32_MAX, &scan.random_end) ||
        !read_earlier(t, "within", here, &scan.parent) ||
        !read_earlier(t, "mirrors", here, &scan.mirrors) ||
        !read_earlier(t, "repeats", here, &scan.repeats) || !read_over(t, &scan.over))
        return false;
    if (scan.over.dim != NULL && scan.over.size % scan.trips != 0)
        return weft_saved_fail(t, "a scan of %lld trips goes over %lld elements",
                               (long long)scan.trips, (long long)scan.over.size);
    if (weft_scan_open(graph, scan.trips) == 0) return weft_saved_fail(t, "no memory for a scan");
    graph->scans[here] = scan;
    graph->scan = 0;
    return true;
}

bool weft_saved_part(weft_saved_text *t)
{
    weft_graph *graph = t->graph;
    weft_recompute_part part = {.parent = 0};
    const uint32_t here = graph->n_parts == 0 ? 1 : graph->n_parts;
    const int64_t before = here > 1 ? graph->parts[here - 1].begin : 1;
    int64_t number;
    if (!weft_saved_whole(t, here, here, &number) || !weft_saved_expect(t, "nodes") ||
        !read_id(t, before, UINT32_MAX - 1, &part.begin) ||
        !read_id(t, (int64_t)part.begin + 1, UINT32_MAX - 1, &part.end) ||
        !read_earlier(t, "within", here, &part.parent) ||
        !read_earlier(t, "in", graph->n_scans, &part.scan))
        return false;
    if (!weft_part_open(graph)) return weft_saved_fail(t, "no memory for a part");
    graph->parts[here] = part;
    graph->part = 0;
    return true;
}

/* ---- how they hang together -------------------------------------------------------------------- */

static const weft_node *operand(const weft_graph *graph, const weft_node *node)
{
    return node->n_in == 0 ? NULL : weft_node_of(graph, node->in[0]);
}

/* Whether a node of a scan stands where its op does, of a scan that there is. */
static bool is_in_place(const weft_graph *graph, const weft_node *node)
{
    const int64_t s = weft_scan_of(node)->scan;
    if (s < 1 || s >= graph->n_scans) return false;
    const weft_scan *scan = &graph->scans[s];
    const weft_node *of = operand(graph, node);
    const bool is_after = node->op == &weft_op_scan_last || node->op == &weft_op_scan_stack;
    const bool goes_along = node->op == &weft_op_scan_each || node->op == &weft_op_scan_stack;
    if (goes_along && weft_scan_of(node)->dim.size != scan->trips) return false;
    if (node->op != &weft_op_scan_trip && node->n_in < 1) return false;
    if (node->op == &weft_op_scan_next || node->op == &weft_op_scan_last)
        if (of->op != &weft_op_scan_carry || weft_scan_of(of)->scan != s) return false;
    if (node->op == &weft_op_scan_next && node->n_in != 2) return false;
    if (is_after) return weft_scan_holds(graph, scan->parent, node->scan) && node->scan != s;
    return node->op == &weft_op_scan_next ? weft_scan_holds(graph, (uint32_t)s, node->scan)
                                          : node->scan == s;
}

bool weft_saved_check_scans(weft_saved_text *t)
{
    const weft_graph *graph = t->graph;
    for (uint32_t s = 1; s < graph->n_scans; s++) {
        const uint32_t trip = graph->scans[s].trip;
        const bool is_there = trip < graph->n_tensors;
        if (!is_there || weft_node_of(graph, trip)->op != &weft_op_scan_trip ||
            weft_node_of(graph, trip)->scan != s)
            return weft_saved_fail(t, "scan %u has no trip %%%u", s, trip);
    }
    for (uint32_t p = 1; p < graph->n_parts; p++)
        if (graph->parts[p].end > graph->n_nodes)
            return weft_saved_fail(t, "part %u ends behind the program", p);
    for (uint32_t n = 1; n < graph->n_nodes; n++) {
        const weft_node *node = &graph->nodes[n];
        if (weft_is_of_scan(node->op) && !is_in_place(graph, node))
            return weft_saved_fail(t, "%%%u, a %s, is of no scan that it could be of", node->out,
                                   node->op->name);
        if (node->op == &weft_op_scan_carry && weft_scan_next_of(graph, node->out) == 0)
            return weft_saved_fail(
                t, "%%%u is carried, and nothing says what it is in the next trip", node->out);
    }
    return true;
}
