/* update.h: inside optim only: the parts of an optimizer around the rules. */
#ifndef WEFT_UPDATE_H
#define WEFT_UPDATE_H

#include "ir.h"
#include "weft/extend/optimizer.h"

/* find.c: a rule as this version has it; WEFT_USAGE when it says too little. */
weft_status weft_optimizer_rule_take(const weft_optimizer_rule *given, weft_optimizer_rule *rule,
                                     weft_error *error);

/* find.c: "there is no optimizer adamm; did you mean adam?" WEFT_USAGE. */
weft_status weft_fail_unknown(const char *what, const char *name, const char *const *names, int n,
                              weft_error *error);

/* selection.c: the variables that are updated, each with its gradient. */
typedef struct weft_selection {
    int n;
    weft_value *variables, *gradients; /* [n], of one block that starts at `variables` */
    weft_value *tokens;                /* [n * WEFT_MAX_TOKENS] room */
    bool is_own;                       /* the gradients were taken here, not handed in */
} weft_selection;
/* false: the graph's error, which begins with the optimizer's name. */
bool weft_select(const weft_update *u, weft_value loss, weft_selection *selection);
void weft_selection_end(weft_selection *selection);

/* The lists of the options, one to one where gradients are handed in; else the loss. */
bool weft_check_lists(const weft_update *u, weft_value loss);

/* A gradient that was handed in comes to where its variable is stored, unless it was told where to live. */
void weft_bring_home(weft_value variable, weft_value gradient);

/* loss_scale.c: nothing but the gradients of the loss where the graph has no loss scale. */
weft_value weft_step_number(weft_graph *graph); /* f64: what schedules and corrections count by */
void weft_scaled_gradients(weft_value loss, weft_values variables, weft_value *gradients);
void weft_unscale(const weft_update *u, const weft_selection *selection);
/* What is assigned from here on is only if the norm of the gradients is finite. */
void weft_skip_unless_finite(const weft_update *u, weft_value norm);
/* The scale's own change, after all updates; a token. */
weft_value weft_scale_on(const weft_update *u);

/* clip.c: the scalar that all gradients are multiplied by, so that their global norm is at most `largest`. */
weft_value weft_clip_scale(weft_value norm, double largest);

#endif
