/* optim.h: update rules, learning-rate schedules and clipping: graph builders, nothing else.
 *
 *     weft_value rate = weft_warmup_cosine(g, WEFT_F32, 1e-3, 100, 2000, 1e-4);
 *     weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate_value = rate, .clip = 1.0});
 *
 * Two optimizers, each with variables of its own, in one program; a variable that no optimizer lists is frozen:
 *
 *     weft_value slow = weft_sgd(loss, &(weft_optimizer_options){.prefix = "embed"});
 *     weft_value fast = weft_adam(loss, &(weft_optimizer_options){.prefix = "block", .clip = 1.0});
 *
 * One optimizer that treats some otherwise; biases never decay, and embeddings go by Adam at a third of the rate:
 *
 *     const weft_optimizer_group groups[] = {{"*.bias", .weight_decay = -1}, {"embed*", 0.3, .optimizer = "adam"}};
 *     weft_muon(loss, &(weft_optimizer_options){.rate = 1e-3, .groups = {groups, 2}});
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

/* Variables that are updated otherwise than the others. */
typedef struct weft_optimizer_group {
    const char *pattern;   /* of their names: "*.bias"; *, ? and [abc] as in names of files */
    double rate_scale;     /* times the rate; 0: 1 */
    double weight_decay;   /* of one dim too; 0: as the options say; negative: none */
    const char *optimizer; /* another one, with the options of the call; NULL: the same */
} weft_optimizer_group;
typedef struct weft_optimizer_groups {
    const weft_optimizer_group *groups;
    int n_groups;
} weft_optimizer_groups;

/* Of numbers, 0 means the optimizer's default, which the table below has. */
typedef struct weft_optimizer_options {
    double rate;           /* used when rate_value is invalid */
    weft_value rate_value; /* a scalar of the loss's dtype: a schedule */
    double momentum;       /* momentum, nesterov, muon; rmsprop has none by default */
    double beta1, beta2;   /* what running means keep of themselves: of gradients, of squares */
    double beta2_decay;    /* adafactor: beta2 = 1 - t^beta2_decay */
    double epsilon;        /* added to what divides, or its least */
    double scale_floor;    /* adafactor: the least size of a variable that steps are relative to */
    double step_limit;     /* adafactor: the largest root mean square of a step */
    /* p (1 - rate decay) before the step, of any optimizer, seen by none of its slots; lamb: decay p is part of the
     * step that its norms are of. Negative means none. Applied to variables of 2 dims and more (where several are
     * one, weft_variable_of_rows: if each has 2) */
    double weight_decay;
    double clip; /* what gradients are made smaller by, as clip_by says; 0: by nothing */
    weft_value *gradient_norm; /* out, may be NULL: the global norm before clipping, a scalar */
    /* what to update; no values: all that the loss depends on (weft_trainable) */
    weft_values variables;
    const char *prefix; /* of these, those whose name begins so; NULL: all */
    /* of `variables`, one to one (dims in any order); no values: taken of the loss */
    weft_values gradients;
    const char *clip_by; /* "global_norm" (NULL), "norm", "value" or "adaptive": see below */
    /* the first whose pattern a variable's name matches is its own; one that is nobody's is an error */
    weft_optimizer_groups groups;
    /* shampoo: roots of matrices are made in the first update and every so many after it */
    int64_t every;
} weft_optimizer_options;

/* How gradients g are clipped, after they have come to where their variables p are stored. Several variables in one
 * have a norm each.
 *
 *     global_norm  g min(1, clip / |all gradients of what is updated|)
 *     norm         g min(1, clip / |g|), of each variable
 *     value        each element between -clip and clip
 *     adaptive     g min(1, clip max(|p|, 1e-3) / |g|), norms of what goes to one element of the last dim of a variable of 2
 *                  dims and more, else of the whole: a step of sgd at rate r changes weights by clip r of them at most
 */

/* Update the variables by the loss, which may be the invalid value when gradients are handed in. Returns a token for
 * weft_compile. A variable has one optimizer of a kind in a graph, and is assigned once in a program.
 *
 *                rate   others                                            slots: numbers for each of a variable's
 *     sgd        0.1                                                      0
 *     momentum   0.1    momentum 0.9                                      1
 *     nesterov   0.1    momentum 0.9                                      1
 *     adagrad    1e-2   epsilon 1e-10                                     1
 *     adadelta   1      beta2 0.9, epsilon 1e-6                           2
 *     rmsprop    1e-2   beta2 0.99, epsilon 1e-8                          1; with momentum 2
 *     adam       1e-3   beta1 0.9, beta2 0.999, epsilon 1e-8              2
 *     adamw      1e-3   the same, weight_decay 0.01                       2
 *     adamax     2e-3   as adam                                           2
 *     adafactor  1e-2   beta2_decay -0.8, epsilon the dtype's precision,  a row and a column of a matrix (the last
 *                       scale_floor 1e-3, step_limit 1                    two dims); else 1
 *     lamb       1e-3   as adamw, epsilon 1e-6                            2
 *     lion       1e-4   beta1 0.9, beta2 0.99                             1
 *     shampoo    1e-3   as adamw; every 10; of what has one dim or    2, and for each dim of n <= 1024 elements 2 n^2
 *                       none as adamw                                 of a variable, of a longer one n of all
 *     muon       1e-3   momentum 0.95, weight_decay 0.1; of what is no    1; of what is no matrix 2
 *                       matrix as adamw
 *
 * Muon's steps take 5 times 4 m n^2 + 2 n^3 operations for a matrix of m columns and n <= m rows, or the reverse; its products
 * have dims muon_a and muon_b of size n, which a layout may split. Shampoo's roots take 24 times k + 2 products of n x n matrices,
 * 2 n^3 operations each, for each dim of n elements of a variable of k dims; they have dims shampoo_a, shampoo_b and shampoo_c. */
WEFT_API weft_value weft_sgd(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_momentum(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_nesterov(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adagrad(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adadelta(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_rmsprop(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adam(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adamw(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adamax(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_adafactor(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_lamb(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_lion(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_shampoo(weft_value loss, const weft_optimizer_options *options);
WEFT_API weft_value weft_muon(weft_value loss, const weft_optimizer_options *options);

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

/* weft_average - averages of weights, kept beside them in slots "<variable>/average", which checkpoints have.
 *
 *     weft_value update = weft_adamw(loss, &options);
 *     update = weft_average(update, &(weft_average_options){.decay = 0.999});         to compile in place of the update
 *     weft_value swap = weft_average_swap(g);       compiled by itself, with weft_compile_options.share = the training:
 *     run swap; evaluate by any program that shares the variables; run swap again; train on
 *
 * Weights after an update count, the first of them alone, then each as 1/n, number n of them; with a decay as 1 - decay, once
 * that is more.
 *
 * update   what optimizers returned, weft_group too. The variables it assigns are averaged
 * returns  a token of both
 * memory   as much as the weights, stored as they are */
typedef struct weft_average_options {
    double decay;  /* 0: all count alike (SWA); 0.999: as the last thousand (EMA) */
    int64_t from;  /* until this update the averages are the weights */
    int64_t every; /* weights of every so many updates count; 0: 1 */
} weft_average_options;
WEFT_API weft_value weft_average(weft_value update, const weft_average_options *options);
/* weft_averaged - the average of a variable, a slot; the invalid value when it has none. */
WEFT_API weft_value weft_averaged(weft_value variable);
/* weft_average_swap - a token: variables get their averages, and the averages their variables. */
WEFT_API weft_value weft_average_swap(weft_graph *graph);

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

/* weft_loss_scale - dynamic loss scaling, for a model that computes in f16: schedules and one optimizer, built
 * afterwards in this graph, follow it.
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

/* Schedules: scalars of the number t = 1, 2, ... of the run (weft_run_number); with a loss scale, of the update. They keep
 * nothing: a run that goes on from a checkpoint has the rates that it would have had.
 *
 *     weft_value rate = weft_schedule_rate(g, WEFT_F32, "cosine", &(weft_schedule_options){
 *                                          .rate = 1e-3, .warmup = 100, .total = 2000, .floor = 1e-4});
 *
 * All but one_cycle begin with rate t / warmup. After it, with r the rate, w = warmup, T = total and f = floor:
 *
 *     constant         r
 *     linear           a line from r at w to f at T, then f
 *     inverse_sqrt     r sqrt(w / t), at least f; w is 1 where it is 0
 *     cosine           half a cosine from r at w to f at T, then f
 *     cosine_restarts  half cosines from r to f, over `period` updates, then over `growth` times as many, and so on
 *     one_cycle        half a cosine from r / 25 at 0 up to r at w, and half a cosine down to f at T; w is 0.3 T where it is 0
 *     piecewise        r; from the update piece.from on, r piece.scale, for each piece
 */
typedef struct weft_rate_piece {
    int64_t from; /* the first update */
    double scale; /* times the rate   */
} weft_rate_piece;
typedef struct weft_rate_pieces {
    const weft_rate_piece *pieces; /* in order */
    int n_pieces;
} weft_rate_pieces;
typedef struct weft_schedule_options {
    double rate, floor;
    int64_t warmup, total;
    int64_t period;          /* cosine_restarts */
    double growth;           /* cosine_restarts: at least 1; 0: 1 */
    weft_rate_pieces pieces; /* piecewise */
} weft_schedule_options;
WEFT_API weft_value weft_schedule_rate(weft_graph *graph, weft_dtype dtype, const char *schedule,
                                       const weft_schedule_options *options);
/* weft_schedule_check - what weft_schedule_rate would refuse: an unknown name, with the nearest; a warm-up that is no shorter
 * than the total; periods, pieces that are none. WEFT_USAGE and a sentence. */
WEFT_API WEFT_MUST_CHECK weft_status weft_schedule_check(const char *schedule,
                                                         const weft_schedule_options *options,
                                                         weft_error *error);
/* weft_schedule_name - the schedules there are; NULL past the end. */
WEFT_API const char *weft_schedule_name(int index);
/* The same without a table: constant without warm-up; constant; cosine. */
WEFT_API weft_value weft_constant_rate(weft_graph *graph, weft_dtype dtype, double rate);
WEFT_API weft_value weft_warmup(weft_graph *graph, weft_dtype dtype, double rate, int64_t warmup);
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
