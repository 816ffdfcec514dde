/* histograms.h: how the numbers of all variables of a training are spread, and those of their gradients.
 *
 * A program of its own counts them in the graph, so under every layout and on every device, and no rank holds a whole tensor for it. It
 * shares the variables with the training. It goes through the same batch with the same random numbers. It writes nothing, so the training has
 * the same bits with histograms and without.
 */
#ifndef WEFT_APPS_HISTOGRAMS_H
#define WEFT_APPS_HISTOGRAMS_H

#include "weft/program.h"

enum { HISTOGRAM_PARTS = 30 }; /* equal ones, as TensorBoard's own */

/* What is looked at. */
typedef struct histograms_of {
    weft_program *program; /* that trains; the program of histograms must be closed before it */
    weft_value loss;
    /* [n] one to one, where the training has taken the gradients itself; NULL: of the loss */
    const weft_value *variables, *gradients;
    int n;
    const weft_compile_options *options; /* of the training; NULL: none */
} histograms_of;

typedef struct histograms histograms; /* opaque */

typedef struct histogram {
    const char *name; /* of the variable */
    bool is_gradient;
    int64_t n; /* elements */
    double low, high, sum, sum_squares;
    double counts[HISTOGRAM_PARTS]; /* of equal parts of [low, high] */
    bool is_finite;                 /* false: some number is not, and nothing else is known */
} histogram;

/* histograms_open - builds and compiles the program, in the graph of the loss. Collective over the mesh. cost: besides the time to
 * compile, the memory of a forward and a backward pass */
weft_status histograms_open(const histograms_of *of, histograms **h, weft_error *error);
/* histograms_take - of the variables as they are, and of the gradients at the batch that the inputs of the training have. Collective over the
 * mesh. cost: a forward and a backward pass, and five more over the variables and gradients */
weft_status histograms_take(histograms *h, weft_error *error);
/* What was taken last. NULL past the end. */
const histogram *histograms_at(histograms *h, int index);
void histograms_close(histograms **h);

#endif
