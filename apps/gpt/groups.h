/* groups.h: weights that are updated otherwise than the others, as --groups says them.
 *
 *     *.bias:decay=0;bytes:rate=0.3,optimizer=sgd       PATTERN:WHAT=VALUE,.., one behind the other
 */
#ifndef WEFT_APPS_GPT_GROUPS_H
#define WEFT_APPS_GPT_GROUPS_H

#include "weft/optim.h"

enum { GPT_MOST_GROUPS = 32, GPT_GROUPS_BYTES = 2048 };

typedef struct gpt_groups {
    int n;
    weft_optimizer_group list[GPT_MOST_GROUPS]; /* whose texts are in `words` */
    char words[GPT_GROUPS_BYTES];
} gpt_groups;

/* gpt_groups_read - of a text; "" is none. Whether weights have such names, and optimizers, is the optimizer's to say. Local.
 * returns WEFT_USAGE for what is no group, with the nearest word */
weft_status gpt_groups_read(const char *text, gpt_groups *groups, weft_error *error);

#endif
