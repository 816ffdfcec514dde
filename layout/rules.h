/* rules.h: a layout from inside, for the files of this room. */
#ifndef WEFT_RULES_H
#define WEFT_RULES_H

#include "weft/arena.h"
#include "weft/layout.h"

typedef struct weft_rule {
    const char *dim;
    int n_axes;
    const char *axes[WEFT_MAX_AXES]; /* outermost first */
    uint32_t optional;               /* bit j: axes[j] holds only where the mesh has it ("data?") */
} weft_rule;

struct weft_layout {
    weft_arena *arena;
    const char *text;
    int n_rules;
    weft_rule *rules; /* in order; first wins */
    int stage;
    char store_dim[WEFT_MAX_NAME + 1]; /* the dim whose axes shard storage; "" for none */
};

/* Fill the rules from `text`, and the canonical text from the rules. */
weft_status weft_rules_parse(weft_layout *layout, const char *text, weft_error *error);
weft_status weft_rules_write(weft_layout *layout, weft_error *error);

#endif
