/* optimizer.h: update rules from outside: the table that Weft's own are.
 *
 *     static int sign_rule(const weft_update *u, weft_value variable, weft_value gradient, weft_value *tokens)
 *     {
 *         weft_value step = weft_div(gradient, weft_maximum(gradient, weft_neg(gradient)));
 *         tokens[0] = weft_assign(variable, weft_sub(variable, weft_mul(step, weft_scalar_for(u->rate, variable))));
 *         return 1;
 *     }
 *     static const weft_optimizer_rule rule = {sizeof rule, "sign", sign_rule, build, {.rate = 1e-3}};
 *     static weft_value build(weft_value loss, const weft_optimizer_options *o) { return weft_optimize(&rule, loss, o); }
 *     WEFT_TRY(weft_extend_optimizer(&rule, error));             weft_optimizer_find("sign", ...) finds it
 *
 * A rule sees one variable and its gradient and says how the variable and its slots change; which variables,
 * gradients taken or handed in, clipping, the rate are the same for all rules. Its values are placed as the variable
 * is stored, so that it need not know of ZeRO. All Local.
 */
#ifndef WEFT_EXTEND_OPTIMIZER_H
#define WEFT_EXTEND_OPTIMIZER_H

#include "weft/optim.h"

WEFT_BEGIN

/* A rule's inputs beside the variable. Made by Weft; grows at its end. */
typedef struct weft_update {
    const char *name; /* of the optimizer, for sentences */
    weft_graph *graph;
    weft_value run; /* t = 1, 2, ...: scalars, f64: corrections near 1 need the digits */
    weft_value rate;
    weft_optimizer_options options; /* with their defaults filled in */
    /* of the variable, whose numbers rate and options have; NULL: none */
    const weft_optimizer_group *group;
} weft_update;

/* How one variable and its slots change by one gradient.
 *
 * gradient  of the variable's dims and dtype, where the variable is stored
 * tokens    [WEFT_MAX_TOKENS] to fill: what weft_assign returned
 * returns   how many: at least 1
 */
enum { WEFT_MAX_TOKENS = 4 };
typedef int (*weft_update_rule)(const weft_update *u, weft_value variable, weft_value gradient,
                                weft_value *tokens);

typedef struct weft_optimizer_rule {
    size_t size; /* sizeof(weft_optimizer_rule) */
    const char *name;
    weft_update_rule rule;
    /* For programs that choose by name: hands this table to weft_optimize. */
    weft_value (*build)(weft_value loss, const weft_optimizer_options *options);
    weft_optimizer_options defaults; /* numbers that stand where a user gives 0; rate above 0 */
} weft_optimizer_rule;

/* weft_optimize - update variables by a rule: weft_adam is this with a rule of Weft's. Returns a token for weft_compile;
 * a failed call leaves nothing in the graph but its error.
 *
 * rule  need not be registered; copied, up to rule->size
 */
WEFT_API weft_value weft_optimize(const weft_optimizer_rule *rule, weft_value loss,
                                  const weft_optimizer_options *options);

/* weft_extend_optimizer - make a rule known by its name: weft_optimizer_find and weft_optimizer_at have it.
 *
 * Any thread, any time; for the rest of the process. The same on all processes that use it.
 * rule     copied, up to rule->size; its name lives as long
 * refused  a name that is none or that an optimizer has already; without rule, build, or a rate above 0; more than
 *          WEFT_MAX_OUTSIDE_OPTIMIZERS
 */
enum { WEFT_MAX_OUTSIDE_OPTIMIZERS = 64 };
WEFT_API WEFT_MUST_CHECK weft_status weft_extend_optimizer(const weft_optimizer_rule *rule,
                                                           weft_error *error);

/* ---- for rules ------------------------------------------------------------------------------- */

/* weft_update_slot - a slot of the variable, zeros at first, that no optimizer has made before; that is a sentence with
 * both places otherwise. It is stored as the variable is. */
WEFT_API weft_value weft_update_slot(const weft_update *u, weft_value variable, const char *name,
                                     const weft_shape *shape);
/* weft_update_at - values built from here on live as `variable` (or a slot of it) is stored, where they have its
 * dims. Rules begin so with their variable. */
WEFT_API void weft_update_at(const weft_update *u, weft_value variable);
/* weft_scalar_for - a scalar of f64, such as u->rate, in the dtype of `like`. */
WEFT_API weft_value weft_scalar_for(weft_value scalar, weft_value like);

WEFT_END

#endif
