/* timeline.h (private): a plan walked through on a clock of each kind of rank. */
#ifndef WEFT_PREDICT_TIMELINE_H
#define WEFT_PREDICT_TIMELINE_H

#include "machine.h"

/* weft_timeline - what weft_plan_predict promises, of a plan that is indexed. steps: [n_steps], or NULL. Local; pure. */
weft_status weft_timeline(const weft_plan *plan, const weft_machine_model *model,
                          const weft_predict_options *options, weft_prediction *prediction,
                          weft_predicted_step *steps, weft_error *error);

#endif
