/* form.h (private): a mesh and a layout taken apart, to be put together otherwise. */
#ifndef WEFT_SEARCH_FORM_H
#define WEFT_SEARCH_FORM_H

#include "weft/research/search.h"

enum { WEFT_FORM_RULES = 24 };

/* An axis of a rule, by name: it may be one that the mesh lacks ("data?"). */
typedef struct search_form_rule {
    char dim[WEFT_MAX_NAME + 1];
    int n_axes;
    char axes[WEFT_MAX_AXES][WEFT_MAX_NAME + 2]; /* outermost first, with their question marks */
} search_form_rule;

typedef struct search_form {
    int n_axes;
    char axis[WEFT_MAX_AXES][WEFT_MAX_NAME + 1];
    int64_t size[WEFT_MAX_AXES];
    int n_rules;
    search_form_rule rules[WEFT_FORM_RULES];
} search_form;

/* Texts that weft_mesh_plan and weft_layout_create take. false: they are larger than a form, or none. Local; pure. */
bool weft_form_read(const char *mesh, const char *layout, search_form *form);
/* The texts of a choice again. false: they do not fit. */
bool weft_form_write(const search_form *form, weft_choice *choice);
/* Whether a rule splits over the axis; -1: no rule splits the dim. */
bool weft_form_splits(const search_form_rule *rule, const char *axis);
int weft_form_find(const search_form *form, const char *dim);
/* The rule goes; the axis goes, out of the rules too, of which some may go with it. */
void weft_form_drop_rule(search_form *form, int rule);
void weft_form_drop_axis(search_form *form, int axis);
/* All of an axis goes out of the rules. */
void weft_form_free_axis(search_form *form, const char *axis);
/* A rule behind the others. false: there is no room. */
bool weft_form_add_rule(search_form *form, const char *dim, const char *axis);

#endif
