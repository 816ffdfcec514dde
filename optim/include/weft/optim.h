/* optim.h: update rules, learning-rate schedules and clipping: graph builders, nothing else.
 *
 *     weft_value rate = weft_warmup_cosine(g, WEFT_F32, 1e-3, 100, 2000, 1e-4);
 *     weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate_value = rate, .clip = 1.0});
 *
 * Everything an optimizer computes is placed as its variable is stored (weft_layout_store), so ZeRO is nothing
 * more than a layout. All Local.
 */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include "weft/graph.h"

WEFT_BEGIN

typedef struct weft_optimizer_options {
    double rate;           /* used when rate_value is invalid; 0 means the optimizer's default */
    weft_value rate_value; /* a scalar of the loss's dtype: a schedule */
    double momentum;       /* momentum; 0 means 0.9 */
    double beta1, beta2;   /* adam, adamw; 0 means 0.9, 0.999 */
    double epsilon;        /* 0 means 1e-8 */
    /* adamw; 0 means 0.01; negative means none. Applied to variables of 2 dims and more */
    double weight_decay;
    double clip;               /* largest global gradient norm; 0: no clipping */
    weft_value *gradient_norm; /* out, may be NULL: the global norm before clipping, a scalar */
} weft_optimizer_options;

/* Update every variable that `loss` depends on. Returns a token for weft_compile. */
WEFT_API weft_value weft_sgd(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_momentum(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adam(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adamw(weft_value loss, const weft_optimizer_options *options);

/* The table of update rules: for programs that choose by name. */
typedef struct weft_optimizer {
    const char *name;
    weft_value (*build)(weft_value loss, const weft_optimizer_options *options);
    double default_rate;
} weft_optimizer;
WEFT_API extern const weft_optimizer weft_optimizers[];
WEFT_API extern const int weft_n_optimizers;
/* NULL and WEFT_USAGE with the nearest name when there is none. */
WEFT_API const weft_optimizer *weft_optimizer_find(const char *name, weft_error *error);

/* Schedules: scalars of the run's number t = 1, 2, ... (weft_run_number). */
WEFT_API weft_value weft_constant_rate(weft_graph *graph, weft_dtype dtype, double rate);
/* rate * min(1, t / warmup) */
WEFT_API weft_value weft_warmup(weft_graph *graph, weft_dtype dtype, double rate, int64_t warmup);
/* the same until t = warmup, then half a cosine from rate down to `floor` at t = total, then floor */
WEFT_API weft_value weft_warmup_cosine(weft_graph *graph, weft_dtype dtype, double rate,
                                       int64_t warmup, int64_t total, double floor);

/* weft_global_norm - sqrt of the sum of squares of all elements of all gradients: a scalar. */
WEFT_API weft_value weft_global_norm(weft_values gradients);

WEFT_END

#ifndef WEFT_NO_HERE
#define weft_sgd(...)      weft_at(WEFT_HERE, weft_sgd(__VA_ARGS__))
#define weft_momentum(...) weft_at(WEFT_HERE, weft_momentum(__VA_ARGS__))
#define weft_adam(...)     weft_at(WEFT_HERE, weft_adam(__VA_ARGS__))
#define weft_adamw(...)    weft_at(WEFT_HERE, weft_adamw(__VA_ARGS__))
#endif

#endif
