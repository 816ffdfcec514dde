/* forms.h: in which of several forms ops are written (forms.c). */
#ifndef WEFT_FORMS_H
#define WEFT_FORMS_H

#include "passes.h"

/* weft_find_forms - plan->written for every node of the graph, and plan->forms: what was weighed. any: one is written. */
weft_status weft_find_forms(weft_plan *plan, bool *any, weft_error *error);

#endif
