/* update.h: inside optim only: what a rule gets, and the parts of an optimizer around the rules. */
#ifndef WEFT_UPDATE_H
#define WEFT_UPDATE_H

#include "ir.h"
#include "weft/optim.h"

/* What a rule needs beside the variable. */
typedef struct weft_update {
    const char *name; /* of the optimizer, for sentences */
    weft_graph *graph;
    weft_optimizer_options options; /* with their defaults filled in */
    weft_value run; /* t = 1, 2, ...: scalars, f64: corrections near 1 need the digits */
    weft_value rate;
} weft_update;

/* How one variable and its slots change by one gradient. tokens: for what is assigned; returns how many. */
enum { WEFT_MAX_TOKENS = 4 };
typedef int (*weft_rule)(const weft_update *u, weft_value variable, weft_value gradient,
                         weft_value *tokens);

/* A rule by its name, with the options that stand where a user gives 0. */
typedef struct weft_named_rule {
    const char *name;
    weft_rule rule;
    weft_optimizer_options defaults;
} weft_named_rule;

/* optimizers.c: everything around a rule, the same for all. */
weft_value weft_optimize(const weft_named_rule *rule, weft_value loss,
                         const weft_optimizer_options *options);

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
/* A slot of the variable that no optimizer has made before; that is a sentence with both places otherwise. */
weft_value weft_update_slot(const weft_update *u, weft_value variable, const char *name,
                            const weft_shape *shape);
/* What is built from here on lives as `variable` (or a slot) is stored, where it has its dims. */
void weft_update_at(const weft_update *u, weft_value variable);
/* A scalar of f64 in the dtype of `like`. */
weft_value weft_scalar_for(weft_value scalar, weft_value like);

/* clip.c: the scalar that all gradients are multiplied by, so that their global norm is at most `largest`. */
weft_value weft_clip_scale(weft_value norm, double largest);

#endif
