/* combine.h: how partial results combine, from outside: a monoid by its identity and its combination.
 *
 *     static void multiply(void *out, const void *a, const void *b, int64_t n) { ... out[i] = a[i] * b[i] ... }
 *     static void one(void *into, int64_t n) { ... into[i] = 1 ... }
 *     static const weft_combine_rule rule = {sizeof rule, "product", 1, false, {[WEFT_F64] = multiply}, {[WEFT_F64] = one}};
 *     WEFT_TRY(weft_extend_combine(&rule, &product, error));
 *     weft_factors_by_name(site, product, factors);               in an op's factors: what a result lacks is multiplied
 *
 * Parts combine in rank order, so the result is the same bits on every run; another number of ranks may round differently.
 * All Local.
 */
#ifndef WEFT_EXTEND_COMBINE_H
#define WEFT_EXTEND_COMBINE_H

#include "weft/layout.h"

WEFT_BEGIN

/* out[s] = a[s] combined with b[s], `n_states` states of `width` numbers each; out may be a or b, or neither. Pure; called
 * from many threads. */
typedef void (*weft_combiner)(void *out, const void *a, const void *b, int64_t n_states);
/* into[s] = the state that changes nothing. */
typedef void (*weft_identity)(void *into, int64_t n_states);

typedef struct weft_combine_rule {
    size_t size; /* sizeof(weft_combine_rule) */
    const char *name;
    /* Numbers of one state, from 1 to 64: the innermost dim of the tensor that holds it; 1: no dim is wanted */
    int width;
    /* A sum, done otherwise: op(x) combined with op(y) is op(x combined with y) wherever that holds for sums (an op's
     * `linear` and `additive`), and the identity is 0. Then a value may stay partial until its last addend. */
    bool is_sum;
    weft_combiner combine[WEFT_DTYPE_ROOM];  /* by dtype; NULL: not defined for it */
    weft_identity identity[WEFT_DTYPE_ROOM]; /* for the same dtypes                */
} weft_combine_rule;

/* weft_extend_combine - make a combine known: *kind is what factors and weft_all_reduce take.
 *
 * Any thread, any time before its first use; for the rest of the process. All processes of a job register the same ones in
 * the same order: kinds are numbers that ranks compare.
 * rule     copied, up to rule->size; its name lives as long
 * refused  a name that is none or that a combine has already; a width outside 1 to 64; no dtype, or one with only one of
 *          the two functions; a sum of width above 1 or whose identity is not 0; more than WEFT_MAX_OUTSIDE_COMBINES
 */
enum { WEFT_MAX_OUTSIDE_COMBINES = 64 };
WEFT_API WEFT_MUST_CHECK weft_status weft_extend_combine(const weft_combine_rule *rule,
                                                         weft_combine *kind, weft_error *error);

/* The rule of a combine from outside; NULL for Weft's own and for none. */
WEFT_API const weft_combine_rule *weft_combine_outside(weft_combine kind);
/* Whether it is WEFT_NOT_PARTIAL, one of Weft's own, or one from outside; whether it adds: WEFT_SUM, or is_sum. */
WEFT_API bool weft_combine_is_known(weft_combine kind);
WEFT_API bool weft_combine_adds(weft_combine kind);

WEFT_END

#endif
