/* find.c: values by their names, and lists of values as users hand them in. */
#include <stdlib.h>
#include <string.h>

#include "ir.h"

/* ---- by name --------------------------------------------------------------------------------- */

static bool is_candidate(const weft_search *search, weft_value value)
{
    if (value.graph->tensors[value.id].name == NULL) return false;
    return search->has == NULL || search->has(search->context, value);
}

/* The next value called `name` from id `from` on; id 0: none. */
static weft_value next_called(const weft_search *search, const char *name, uint32_t from)
{
    weft_graph *graph = search->graph;
    for (uint32_t id = from; id < graph->n_tensors; id++)
        if (is_candidate(search, (weft_value){graph, id}) &&
            strcmp(graph->tensors[id].name, name) == 0)
            return (weft_value){graph, id};
    return weft_no_value(graph);
}

/* "did you mean loss?", or the names there are, as many as have room. */
static void print_way_out(const weft_search *search, const char *name, const char **names, int n,
                          char *text, size_t bytes)
{
    const char *near = weft_nearest(name, names, n);
    if (near != NULL) {
        snprintf(text, bytes, "did you mean %.100s?", near);
        return;
    }
    int used = snprintf(text, bytes, "it %s %s", search->verb, n > 0 ? "" : "none");
    for (int i = 0; i < n && used < (int)bytes - 80; i++)
        used += snprintf(text + used, bytes - (size_t)used, "%s%.63s", i > 0 ? ", " : "", names[i]);
}

static void say_missing(const weft_search *search, const char *name, weft_error *error)
{
    const weft_graph *graph = search->graph;
    const weft_search everything = {.graph = search->graph};
    const char **names = calloc(graph->n_tensors, sizeof *names);
    char way_out[240] = "";
    int n = 0;
    if (names == NULL) {
        weft_fail_memory(error, graph->n_tensors * sizeof *names);
        return;
    }
    for (uint32_t id = 1; id < graph->n_tensors; id++)
        if (is_candidate(search, (weft_value){search->graph, id}))
            names[n++] = graph->tensors[id].name;
    if (next_called(&everything, name, 1).id != 0)
        snprintf(way_out, sizeof way_out, "%s", search->if_left_out);
    else
        print_way_out(search, name, names, n, way_out, sizeof way_out);
    weft_fail(error, WEFT_USAGE, "%s: %s %s no value called %.100s; %s", search->call, search->who,
              search->verb, name, way_out);
    free(names);
}

weft_value weft_search_name(const weft_search *search, const char *name, weft_error *error)
{
    weft_graph *graph = search->graph;
    const weft_value found = next_called(search, name, 1);
    if (found.id == 0) {
        say_missing(search, name, error);
        return found;
    }
    const weft_value other = next_called(search, name, found.id + 1);
    if (other.id == 0) return found;
    char a[160], b[160];
    weft_origin_print(weft_node_of(graph, found.id), a, sizeof a);
    weft_origin_print(weft_node_of(graph, other.id), b, sizeof b);
    weft_fail(error, WEFT_USAGE, "%s: two values are called %.100s, of %s and of %s; rename one",
              search->call, name, a, b);
    return weft_no_value(graph);
}

weft_value weft_graph_find(weft_graph *graph, const char *name, weft_error *error)
{
    if (weft_check_given(graph != NULL, __func__, "graph", error) != WEFT_OK ||
        weft_check_given(name != NULL, __func__, "name", error) != WEFT_OK)
        return weft_no_value(graph);
    const weft_search search = {
        .call = __func__, .who = "the graph", .verb = "has", .graph = graph};
    return weft_search_name(&search, name, error);
}

/* ---- lists ----------------------------------------------------------------------------------- */

bool weft_graph_takes(weft_graph *graph, const char *call, const char *list, weft_values values)
{
    if (weft_graph_status(graph) != WEFT_OK) return false;
    if (values.n_values < 0 || values.n_values > WEFT_MOST_VALUES)
        weft_graph_fail(graph, "%s: %s has %d values; a list has from 0 to %d", call, list,
                        values.n_values, WEFT_MOST_VALUES);
    else if (values.values == NULL && values.n_values > 0)
        weft_graph_fail(graph, "%s: %s is a list of %d values, and its pointer is NULL", call, list,
                        values.n_values);
    for (int i = 0; graph->error.status == WEFT_OK && i < values.n_values; i++) {
        const weft_value value = values.values[i];
        if (value.graph != NULL && value.graph != graph)
            weft_graph_fail(graph,
                            "%s: value %d of %s belongs to another graph; values of two graphs do "
                            "not mix",
                            call, i, list);
        else if (value.graph == NULL || value.id == 0 || value.id >= graph->n_tensors)
            weft_graph_fail(graph,
                            "%s: value %d of %s is not a value; pass what a builder returned", call,
                            i, list);
    }
    return graph->error.status == WEFT_OK;
}
