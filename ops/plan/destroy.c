/* destroy: the end of a plan, and of what its passes left. */
#include <stdlib.h>

#include "trials.h"

void weft_plan_destroy(weft_plan **plan)
{
    weft_plan *p = *plan;
    if (!p) return;
    weft_trials_end(p);
    weft_graph_like_destroy(&p->graph);
    weft_layout_destroy(&p->layout);
    weft_arena_destroy(&p->arena);
    free(p->placed);
    free(p->steps);
    free(p->skips);
    free(p->decisions);
    free(p);
    *plan = NULL;
}
