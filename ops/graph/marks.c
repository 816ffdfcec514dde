/* marks: what a program says of a value after it has made it: where it is to live, and its name. */
#include "ir.h"

static bool can_mark(weft_value value, const char *call)
{
    weft_graph *graph = value.graph;
    if (weft_graph_status(graph) != WEFT_OK) return false;
    if (value.id > 0 && value.id < graph->n_tensors) return true;
    weft_graph_fail(graph, "%s: this is not a value; pass what a builder returned", call);
    return false;
}

weft_value weft_place(weft_value value, const char *layout_text)
{
    if (!can_mark(value, "place")) return weft_no_value(value.graph);
    const char *text = layout_text == NULL ? "" : layout_text;
    value.graph->tensors[value.id].placement = weft_graph_intern(value.graph, text);
    value.graph->marked = value.id;
    return weft_hand_back(value);
}

weft_value weft_place_as(weft_value value, weft_value variable)
{
    if (!can_mark(value, "place_as")) return weft_no_value(value.graph);
    if (variable.graph != value.graph || !weft_is_value(variable))
        return weft_graph_fail(value.graph,
                               "place_as: the second is not a value of the first one's graph; pass "
                               "what weft_variable returned");
    value.graph->tensors[value.id].place_as = variable.id;
    return weft_hand_back(value);
}

void weft_stands_for(weft_value fixed, weft_value value)
{
    if (weft_is_value(fixed) && weft_is_value(value) && fixed.graph == value.graph)
        value.graph->tensors[value.id].frozen = fixed.id;
}

weft_value weft_name(weft_value value, const char *name)
{
    if (!can_mark(value, "name")) return weft_no_value(value.graph);
    weft_error error = {WEFT_OK, -1, ""};
    if (weft_path_check("name", name, &error) != WEFT_OK)
        return weft_graph_fail(value.graph, "%s", error.message);
    value.graph->tensors[value.id].name = weft_graph_intern(value.graph, name);
    return weft_hand_back(value);
}
