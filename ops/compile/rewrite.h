/* rewrite.h: what the passes from graph to graph share: liveness, and a new graph that replaces the
 * old. */
#ifndef WEFT_REWRITE_H
#define WEFT_REWRITE_H

#include "passes.h"

/* A rewriting under way: the plan's graph is read, `to` is written. */
typedef struct weft_rewrite {
    weft_plan *plan;
    const weft_graph *from;
    weft_graph *to;
    uint32_t *value; /* [from->n_tensors] translation; 0: none yet  */
    bool *is_live;   /* [from->n_nodes] some root depends on it      */
    /* [from->n_tensors] others read its translation, but to the user it is no more */
    bool *is_gone;
} weft_rewrite;

weft_status weft_rewrite_begin(weft_plan *plan, weft_rewrite *rewrite, weft_error *error);
/* The node as it is, of translated operands; its results are the translations of the old ones. */
void weft_rewrite_copy(weft_rewrite *rewrite, const weft_node *node);
/* Copy the name and placement tags of an old value onto its translation. */
void weft_rewrite_tags(weft_rewrite *rewrite, uint32_t from, uint32_t to);
/* Nodes of the new graph from `first` on were made for an old one: they have its origin and phase. */
void weft_rewrite_origin(weft_rewrite *rewrite, const weft_node *node, uint32_t first);
/* Put the new graph in the old one's place and translate the plan's value table. Also frees, on
 * failure. */
weft_status weft_rewrite_end(weft_rewrite *rewrite, weft_error *error);

#endif
