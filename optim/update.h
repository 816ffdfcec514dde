/* update.h: inside optim only: the parts of an optimizer around the rules. */
#ifndef WEFT_UPDATE_H
#define WEFT_UPDATE_H

#include "ir.h"
#include "weft/extend/optimizer.h"

/* find.c: a rule as this version has it; WEFT_USAGE when it says too little. */
weft_status weft_optimizer_rule_take(const weft_optimizer_rule *given, weft_optimizer_rule *rule,
                                     weft_error *error);

/* rules.c: Weft's own; find.c: those and others by name, as weft_optimizer_find; the optimizer that was made of an outside rule; NULL: no
 * such number. */
extern const weft_optimizer_rule weft_rules[];
extern const int weft_n_rules;
const weft_optimizer_rule *weft_rule_find(const char *name, weft_error *error);
const weft_optimizer *weft_outside_optimizer_at(int index);

/* update.c: "there is no optimizer adamm; did you mean adam?" WEFT_USAGE. */
weft_status weft_fail_unknown(const char *what, const char *name, const char *const *names, int n,
                              weft_error *error);

/* selection.c: the variables that are updated, each with its gradient. */
typedef struct weft_selection {
    int n;
    weft_value *variables, *gradients; /* [n], of one block that starts at `variables` */
    weft_value *tokens;                /* [n * WEFT_MAX_TOKENS] room */
    int *group;                        /* [n] which of options.groups; -1: none */
    bool is_own;                       /* the gradients were taken here, not handed in */
} weft_selection;
/* false: the graph's error, which begins with the optimizer's name. */
bool weft_select(const weft_update *u, weft_value loss, weft_selection *selection);
void weft_selection_end(weft_selection *selection);

/* "..., which nothing is called: did you mean" - the text's nearest among variables' names and their beginnings up to each point,
 * and whether that is near; else the first name. */
const char *weft_selection_nearest(const weft_update *u, const weft_selection *selection,
                                   const char *text, bool *is_near);

/* groups.c: which group each variable is in. false: the graph's error. */
bool weft_groups_take(const weft_update *u, weft_selection *selection);

/* The lists of the options, one to one where gradients are handed in; else the loss. */
bool weft_check_lists(const weft_update *u, weft_value loss);

/* A gradient that was handed in comes to where its variable is stored, unless it was told where to live. */
void weft_bring_home(weft_value variable, weft_value gradient);

/* update.c: f64: what schedules and corrections count by. */
weft_value weft_step_number(weft_graph *graph);

/* loss_scale.c: nothing but the gradients of the loss where the graph has no loss scale. */
void weft_scaled_gradients(weft_value loss, weft_values variables, weft_value *gradients);
void weft_unscale(const weft_update *u, const weft_selection *selection);
/* What is assigned from here on is only if the norm of the gradients is finite. */
void weft_skip_unless_finite(const weft_update *u, weft_value norm);
/* The scale's own change, after all updates; a token. */
weft_value weft_scale_on(const weft_update *u);

/* clip.c: whether it takes the norm of all gradients together; an unknown kind is the graph's error. */
bool weft_clip_needs_norm(const weft_update *u);
/* Gradients are made smaller as the options say. norm: of all together, where that is needed. */
void weft_clip(const weft_update *u, const weft_selection *selection, weft_value norm);

#endif
