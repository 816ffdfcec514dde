/* optim.h: update rules, learning-rate schedules and clipping: graph builders, nothing else.
 *
 *     weft_value rate = weft_warmup_cosine(g, WEFT_F32, 1e-3, 100, 2000, 1e-4);
 *     weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate_value = rate, .clip = 1.0});
 *
 * Two optimizers, each with variables of its own, in one program; what no optimizer lists is frozen:
 *
 *     weft_value slow = weft_sgd(loss, &(weft_optimizer_options){.prefix = "embed"});
 *     weft_value fast = weft_adam(loss, &(weft_optimizer_options){.prefix = "block", .clip = 1.0});
 *
 * Apply only: gradients taken, and changed, by the caller:
 *
 *     weft_gradients(loss, variables, gradients, 0);
 *     weft_adam(loss, &(weft_optimizer_options){.variables = variables, .gradients = {gradients, n}});
 *
 * Everything an optimizer computes is placed as its variable is stored (weft_layout_store), so ZeRO is nothing
 * more than a layout. State is kept in slots named "<variable>/<slot>". A failed call leaves nothing in the graph but its
 * error. All Local.
 */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include "weft/graph.h"

WEFT_BEGIN

/* Of numbers, 0 means the optimizer's default. */
typedef struct weft_optimizer_options {
    /* used when rate_value is invalid; sgd, momentum 0.1, adam, adamw 1e-3, adafactor 1e-2 */
    double rate;
    weft_value rate_value; /* a scalar of the loss's dtype: a schedule */
    double momentum;       /* momentum: 0.9 */
    double beta1, beta2;   /* adam, adamw: 0.9, 0.999 */
    double beta2_decay;    /* adafactor: beta2 = 1 - t^beta2_decay: -0.8 */
    double epsilon;        /* adam, adamw: 1e-8; adafactor: the dtype's precision */
    /* adafactor: the least size of a variable that steps are relative to: 1e-3 */
    double scale_floor;
    double step_limit; /* adafactor: the largest root mean square of a step: 1 */
    /* adamw: 0.01, adafactor: none; negative means none. Applied to variables of 2 dims and more (of several as one:
     * weft_variable_of_rows, to those of which each has 2) */
    double weight_decay;
    double clip; /* largest global norm of the gradients of what is updated; 0: no clipping */
    weft_value *gradient_norm; /* out, may be NULL: that norm before clipping, a scalar */
    /* what to update; no values: all that the loss depends on (weft_trainable) */
    weft_values variables;
    const char *prefix; /* of these, those whose name begins so; NULL: all */
    /* of `variables`, one to one (dims in any order); no values: taken of the loss */
    weft_values gradients;
} weft_optimizer_options;

/* Update the variables by the loss, which may be the invalid value when gradients are handed in. Returns a token for
 * weft_compile. A variable has one optimizer of a kind in a graph, and is assigned once in a program. */
WEFT_API weft_value weft_sgd(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_momentum(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adam(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adamw(weft_value loss, const weft_optimizer_options *options);
/* Keeps, of a matrix (the last two dims of a variable), the means of its rows and its columns only. */
WEFT_API weft_value weft_adafactor(weft_value loss, const weft_optimizer_options *options);

/* weft_accumulate - gradients that outlive the run: each is added to a slot "<variable>/gradient", zero at first.
 *
 *     token = weft_accumulate(variables, gradients, kept);           program 1: losses and token, run k times
 *     for each i: mean[i] = weft_scale(kept[i], 1.0 / k);
 *     apply = weft_adam(none, {.variables, .gradients = mean});      program 2: apply and clear, compiled with
 *     clear = weft_accumulate_clear(kept);                           weft_compile_options.share = program 1
 *
 * variables, gradients  one to one, as in the options
 * kept     [variables.n_values] out: the slots. As operands they are what they held when the run began.
 * returns  a token
 */
WEFT_API weft_value weft_accumulate(weft_values variables, weft_values gradients, weft_value *kept);
/* weft_accumulate_clear - at the end of the run the slots are zero again. Returns a token. */
WEFT_API weft_value weft_accumulate_clear(weft_values kept);

/* The table of update rules: for programs that choose by name. */
typedef struct weft_optimizer {
    const char *name;
    weft_value (*build)(weft_value loss, const weft_optimizer_options *options);
    double default_rate;
} weft_optimizer;
WEFT_API extern const weft_optimizer weft_optimizers[]; /* Weft's own */
WEFT_API extern const int weft_n_optimizers;
/* weft_optimizer_at - of all there are: Weft's own, then those from outside (weft/extend/optimizer.h). NULL past the end. */
WEFT_API const weft_optimizer *weft_optimizer_at(int index);
/* NULL and WEFT_USAGE with the nearest name when there is none. */
WEFT_API const weft_optimizer *weft_optimizer_find(const char *name, weft_error *error);

/* weft_loss_scale - dynamic loss scaling, for a model that computes in f16: what is built afterwards in this graph, schedules and
 * one optimizer, goes by it.
 *
 *     weft_value scale = weft_loss_scale(g, 65536, 2000);     then the schedule, then the optimizer
 *
 * The optimizer takes gradients of the loss times the scale, and divides them by it in their own dtype, f32 where variables are
 * f32. A run whose gradients have overflowed updates nothing and does not count: t stays, for schedules and bias corrections.
 * The scale is halved then, and doubled after `growth` updates in a row, up to 2^24. It is kept, with the number of updates, in
 * variables "loss_scale", "loss_scale.good" and "loss_scale.updates", which checkpoints have.
 *
 * first    a power of two
 * returns  the scale in this run, an f64 scalar */
WEFT_API weft_value weft_loss_scale(weft_graph *graph, double first, int64_t growth);

/* Schedules: scalars of the number t = 1, 2, ... of the run (weft_run_number); with a loss scale, of the update. */
WEFT_API weft_value weft_constant_rate(weft_graph *graph, weft_dtype dtype, double rate);
/* rate * min(1, t / warmup) */
WEFT_API weft_value weft_warmup(weft_graph *graph, weft_dtype dtype, double rate, int64_t warmup);
/* the same until t = warmup, then half a cosine from rate down to `floor` at t = total, then floor */
WEFT_API weft_value weft_warmup_cosine(weft_graph *graph, weft_dtype dtype, double rate,
                                       int64_t warmup, int64_t total, double floor);

/* weft_global_norm - sqrt of the sum of squares of all elements of all gradients: a scalar. The invalid value when there
 * are none. */
WEFT_API weft_value weft_global_norm(weft_values gradients);

WEFT_END

#ifndef WEFT_NO_HERE
#include "weft/optim_here.h"
#endif

#endif
