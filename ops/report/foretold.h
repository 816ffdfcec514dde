/* foretold.h (private): a prediction with what a reader wants of it first: where the time goes. */
#ifndef WEFT_FORETOLD_H
#define WEFT_FORETOLD_H

#include "report.h"
#include "weft/research/predict.h"

enum { WEFT_COSTLIEST = 10 };

/* Steps of one call of the program whose seconds have one source: those of all layers. */
typedef struct weft_costly {
    char place[160];
    weft_time_source source;
    int first, n_steps; /* the first of them */
    double times, seconds;
} weft_costly;

typedef struct weft_foretold {
    const weft_program *program;
    const weft_machine_model *model;
    int draws;
    weft_prediction whole;
    int n_steps;
    weft_predicted_step *steps; /* [n_steps] */
    weft_costly *costly;        /* [n_costly] the most expensive first */
    int n_costly;
    weft_priced_exchange *prices; /* [n_prices] the dearest first */
    int n_prices;
} weft_foretold;

/* weft_foretell - on failure there is nothing to end. Local. */
weft_status weft_foretell(const weft_program *program, const weft_machine_model *model,
                          const weft_predict_options *options, weft_foretold *told,
                          weft_error *error);
void weft_foretold_end(weft_foretold *told);

#endif
