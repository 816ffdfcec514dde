/* find.c: update rules by name: Weft's own, and those from outside.
 *
 * Nothing is ever taken out, so readers need no lock: an entry is written before the count that lets them see it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "update.h"
#include "weft/extend/size.h"

static weft_optimizer outside[WEFT_MAX_OUTSIDE_OPTIMIZERS];
static weft_optimizer_rule outside_rules[WEFT_MAX_OUTSIDE_OPTIMIZERS]; /* theirs */
static atomic_int n_outside;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

const weft_optimizer *weft_outside_optimizer_at(int index)
{
    return index >= 0 && index < atomic_load(&n_outside) ? &outside[index] : NULL;
}

/* Weft's own, then those from outside; NULL: no such number. */
static const weft_optimizer_rule *rule_at(int index)
{
    if (index < weft_n_rules) return &weft_rules[index];
    return index < weft_n_rules + atomic_load(&n_outside) ? &outside_rules[index - weft_n_rules]
                                                          : NULL;
}

const weft_optimizer_rule *weft_rule_find(const char *name, weft_error *error)
{
    const char *names[32 + WEFT_MAX_OUTSIDE_OPTIMIZERS];
    const weft_optimizer_rule *at;
    int n = 0;
    if (weft_check_given(name != NULL, "weft_optimizer_find", "name", error) != WEFT_OK)
        return NULL;
    for (; (at = rule_at(n)) != NULL; n++) {
        names[n] = at->name;
        if (strcmp(name, at->name) == 0) return at;
    }
    (void)!weft_fail_unknown("optimizer", name, names, n, error);
    return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

WEFT_SIZE_IS_WHOLE(weft_optimizer_rule, defaults);

weft_status weft_optimizer_rule_take(const weft_optimizer_rule *given, weft_optimizer_rule *rule,
                                     weft_error *error)
{
    WEFT_TRY(weft_check_given(given != NULL, "weft_optimizer_rule", "rule", error));
    WEFT_TRY(weft_size_take(given, rule, offsetof(weft_optimizer_rule, defaults.gradients),
                            sizeof *rule, "optimizer rule", error));
    WEFT_TRY(weft_name_check("optimizer", rule->name, error));
    if (rule->rule == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "optimizer %s: rule is NULL; it says how a variable changes", rule->name);
    return WEFT_OK;
}

static weft_status add(const weft_optimizer_rule *rule, weft_error *error)
{
    const int n = atomic_load(&n_outside);
    const weft_optimizer_rule *at;
    for (int i = 0; (at = rule_at(i)) != NULL; i++)
        if (strcmp(at->name, rule->name) == 0)
            return weft_fail(error, WEFT_USAGE,
                             "there is an optimizer %s already; give this one another name",
                             rule->name);
    if (n == WEFT_MAX_OUTSIDE_OPTIMIZERS)
        return weft_fail(error, WEFT_USAGE,
                         "optimizer %s: there are %d from outside already, which is the most",
                         rule->name, n);
    outside[n] = (weft_optimizer){rule->name, rule->build, rule->defaults.rate};
    outside_rules[n] = *rule;
    atomic_store(&n_outside, n + 1);
    return WEFT_OK;
}

weft_status weft_extend_optimizer(const weft_optimizer_rule *given, weft_error *error)
{
    weft_optimizer_rule rule;
    WEFT_TRY(weft_check_given(given != NULL, __func__, "rule", error));
    WEFT_TRY(weft_optimizer_rule_take(given, &rule, error));
    if (rule.build == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "optimizer %s: build is NULL; it hands this table to weft_optimize",
                         rule.name);
    if (!(rule.defaults.rate > 0))
        return weft_fail(error, WEFT_USAGE, "optimizer %s: its default rate is %g; it is above 0",
                         rule.name, rule.defaults.rate);
    pthread_mutex_lock(&adding);
    const weft_status status = add(&rule, error);
    pthread_mutex_unlock(&adding);
    return status;
}
