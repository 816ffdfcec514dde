/* combine: the kinds of partial results: names and widths of Weft's own, and those from outside.
 *
 * Nothing is ever taken out, so readers need no lock: an entry is written before the count that lets them see it.
 */
#include "weft/extend/combine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "weft/extend/size.h"
#include "weft/name.h"

static const struct {
    const char *name;
    int width;
} own[WEFT_COMBINES] = {
    [WEFT_NOT_PARTIAL] = {"none", 1}, [WEFT_SUM] = {"sum", 1},   [WEFT_MAX] = {"max", 1},
    [WEFT_MIN] = {"min", 1},          [WEFT_LSE] = {"lse", 2},   [WEFT_ARGMAX] = {"argmax", 2},
    [WEFT_MOMENTS] = {"moments", 3},  [WEFT_PROD] = {"prod", 1},
};
static weft_combine_rule outside[WEFT_MAX_OUTSIDE_COMBINES];
static atomic_uint n_outside;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

const weft_combine_rule *weft_combine_outside(weft_combine kind)
{
    const unsigned at = (unsigned)kind - WEFT_COMBINES;
    return at < atomic_load(&n_outside) ? &outside[at] : NULL;
}

bool weft_combine_is_known(weft_combine kind)
{
    return (unsigned)kind < WEFT_COMBINES || weft_combine_outside(kind) != NULL;
}

bool weft_combine_adds(weft_combine kind)
{
    const weft_combine_rule *rule = weft_combine_outside(kind);
    return kind == WEFT_SUM || (rule != NULL && rule->is_sum);
}

const char *weft_combine_name(weft_combine combine)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if (rule != NULL) return rule->name;
    return (unsigned)combine < WEFT_COMBINES ? own[combine].name : "no combine";
}

int weft_combine_width(weft_combine combine)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if (rule != NULL) return rule->width;
    return (unsigned)combine < WEFT_COMBINES ? own[combine].width : 1;
}

/* ---- from outside ---------------------------------------------------------------------------- */

static bool has_zero_identity(const weft_combine_rule *rule, int dtype)
{
    double state = 1;
    rule->identity[dtype](&state, 1);
    static const double zero;
    return memcmp(&state, &zero, weft_dtype_bytes((weft_dtype)dtype)) == 0;
}

static weft_status check_functions(const weft_combine_rule *rule, weft_error *error)
{
    int n = 0;
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        const char *name = weft_dtype_name((weft_dtype)dtype);
        if ((rule->combine[dtype] == NULL) != (rule->identity[dtype] == NULL))
            return weft_fail(
                error, WEFT_USAGE,
                "combine %s: for %s it has only one of combine and identity; give both", rule->name,
                name);
        if (rule->combine[dtype] == NULL) continue;
        n++;
        if (rule->is_sum && !has_zero_identity(rule, dtype))
            return weft_fail(error, WEFT_USAGE,
                             "combine %s says that it is a sum, but its identity for %s is not 0",
                             rule->name, name);
    }
    if (n > 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "combine %s is defined for no dtype", rule->name);
}

static weft_status check_rule(const weft_combine_rule *rule, weft_error *error)
{
    WEFT_TRY(weft_name_check("combine", rule->name, error));
    if (rule->width < 1 || rule->width > 64)
        return weft_fail(error, WEFT_USAGE, "combine %s: width is %d; it is from 1 to 64",
                         rule->name, rule->width);
    if (rule->is_sum && rule->width != 1)
        return weft_fail(
            error, WEFT_USAGE,
            "combine %s says that it is a sum, with states of %d numbers; a sum has one",
            rule->name, rule->width);
    return check_functions(rule, error);
}

static weft_status add(const weft_combine_rule *rule, weft_combine *kind, weft_error *error)
{
    const unsigned n = atomic_load(&n_outside);
    for (unsigned k = 0; k < WEFT_COMBINES + n; k++)
        if (strcmp(weft_combine_name((weft_combine)k), rule->name) == 0)
            return weft_fail(error, WEFT_USAGE,
                             "there is a combine %s already; give this one another name",
                             rule->name);
    if (n == WEFT_MAX_OUTSIDE_COMBINES)
        return weft_fail(error, WEFT_USAGE,
                         "combine %s: there are %u from outside already, which is the most",
                         rule->name, n);
    outside[n] = *rule;
    atomic_store(&n_outside, n + 1);
    *kind = (weft_combine)(WEFT_COMBINES + n);
    return WEFT_OK;
}

WEFT_SIZE_IS_WHOLE(weft_combine_rule, identity);

weft_status weft_extend_combine(const weft_combine_rule *rule, weft_combine *kind,
                                weft_error *error)
{
    weft_combine_rule taken;
    WEFT_GIVEN(rule, error);
    WEFT_GIVEN(kind, error);
    WEFT_TRY(weft_size_take(rule, &taken, WEFT_SIZE_TO(weft_combine_rule, identity), sizeof taken,
                            "weft_extend_combine", error));
    WEFT_TRY(check_rule(&taken, error));
    pthread_mutex_lock(&adding);
    const weft_status status = add(&taken, kind, error);
    pthread_mutex_unlock(&adding);
    return status;
}
