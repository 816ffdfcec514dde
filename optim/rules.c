/* rules.c: the table of update rules.
 *
 * A rule sees one variable and its gradient and says how the variable and its slots change. Everything is placed as the
 * variable is stored, so with sharded storage (ZeRO) each rank updates its shard and nothing here knows. Formulas are
 * PyTorch's, letter by letter, where it has the rule.
 */
#include "rules/rules.h"

#define WEFT_RULE(name_, rule_, rate_, ...)                                                        \
    {sizeof(weft_optimizer_rule),                                                                  \
     #name_,                                                                                       \
     weft_rule_##rule_,                                                                            \
     NULL, /* builders.c has it */                                                                 \
     {.rate = rate_, __VA_ARGS__}},
const weft_optimizer_rule weft_rules[] = {
#include "rule_list.inc"
};
#undef WEFT_RULE
const int weft_n_rules = (int)(sizeof weft_rules / sizeof weft_rules[0]);
