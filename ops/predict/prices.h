/* prices.h (private): by how much a run is shorter where some of its exchanges take no time. */
#ifndef WEFT_PREDICT_PRICES_H
#define WEFT_PREDICT_PRICES_H

#include "machine.h"

/* weft_timeline_prices - what weft_plan_prices promises, of a plan that is indexed. Local; pure. */
weft_status weft_timeline_prices(const weft_plan *plan, const weft_machine_model *model,
                                 const weft_predict_options *options, weft_priced_exchange *prices,
                                 int room, int *n, weft_error *error);

#endif
