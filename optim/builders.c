/* builders.c: the optimizers that a program calls, one for each rule, and the list of them by name. */
#include <string.h>

#include "rules/rules.h"

#define WEFT_RULE(name_, rule_, rate_, ...) RULE_##name_,
enum {
#include "rule_list.inc"
};
#undef WEFT_RULE

#define WEFT_RULE(name_, rule_, rate_, ...)                                                        \
    weft_value weft_##name_(weft_value loss, const weft_optimizer_options *options)                \
    {                                                                                              \
        return weft_optimize(&weft_rules[RULE_##name_], loss, options);                            \
    }
#include "rule_list.inc"
#undef WEFT_RULE

#define WEFT_RULE(name_, rule_, rate_, ...) {#name_, weft_##name_, rate_},
const weft_optimizer weft_optimizers[] = {
#include "rule_list.inc"
};
#undef WEFT_RULE
const int weft_n_optimizers = (int)(sizeof weft_optimizers / sizeof weft_optimizers[0]);

const weft_optimizer *weft_optimizer_at(int index)
{
    if (index < 0) return NULL;
    return index < weft_n_optimizers ? &weft_optimizers[index]
                                     : weft_outside_optimizer_at(index - weft_n_optimizers);
}

const weft_optimizer *weft_optimizer_find(const char *name, weft_error *error)
{
    const weft_optimizer *at;
    if (weft_rule_find(name, error) == NULL) return NULL;
    for (int i = 0; (at = weft_optimizer_at(i)) != NULL; i++)
        if (strcmp(name, at->name) == 0) return at;
    return NULL;
}
