/* board_graph.h: a plan as a graph that TensorBoard draws. */
#ifndef WEFT_APPS_BOARD_GRAPH_H
#define WEFT_APPS_BOARD_GRAPH_H

#include "proto.h"
#include "weft/research/plan.h"

/* board_graph - the GraphDef of a program: a node for each input, variable and step that the plan has, as rank 0 sees it. Steps stand under
 * their phase and the call of the program that they are of. A node's device is where its first result lives, so that the colours of
 * devices are those of layouts: "batch:data,hidden:model", "whole", "partial:model". Local. Own what *graph has: proto_free. */
weft_status board_graph(const weft_program *program, proto *graph, weft_error *error);

#endif
