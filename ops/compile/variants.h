/* variants.h: in which of several variants ops are written (variants.c). */
#ifndef WEFT_FORMS_H
#define WEFT_FORMS_H

#include "passes.h"

/* weft_find_variants - plan->build.written for every node of the graph, and plan->variants: what was weighed. any: one is written. */
weft_status weft_find_variants(weft_plan *plan, bool *any, weft_error *error);

#endif
