/* initial: how weights begin, by the names of schemes that keep the size of what goes through a layer, or through it backwards: the
 * variance of a weight is gain / fan.
 *
 * source  glorot: Glorot, Bengio 2010; he: He et al. 2015; lecun: LeCun et al. 1998; normal: Radford et al. 2019
 */
#include <math.h>
#include <string.h>

#include "weft/layers.h"

typedef struct scheme {
    const char *name;
    weft_initial_kind kind;
    double gain;      /* variance times fan; 0: what follows */
    bool is_of_both;  /* fan: the mean of both; else fan_in */
    double is_always; /* a constant, or a deviation */
} scheme;

static const scheme schemes[] = {
    {"glorot_uniform", WEFT_INITIAL_UNIFORM, 1, true, 0},
    {"glorot_normal", WEFT_INITIAL_NORMAL, 1, true, 0},
    {"he_uniform", WEFT_INITIAL_UNIFORM, 2, false, 0},
    {"he_normal", WEFT_INITIAL_NORMAL, 2, false, 0},
    {"lecun_uniform", WEFT_INITIAL_UNIFORM, 1, false, 0},
    {"lecun_normal", WEFT_INITIAL_NORMAL, 1, false, 0},
    {"normal", WEFT_INITIAL_NORMAL, 0, false, 0.02},
    {"zeros", WEFT_INITIAL_CONSTANT, 0, false, 0},
    {"ones", WEFT_INITIAL_CONSTANT, 0, false, 1},
};
enum { N_SCHEMES = sizeof schemes / sizeof *schemes };

static weft_initial initial_of(const scheme *s, double fan_in, double fan_out)
{
    const double fan = s->is_of_both ? (fan_in + fan_out) / 2 : fan_in;
    const double deviation = s->gain > 0 ? sqrt(s->gain / fan) : s->is_always;
    if (s->kind == WEFT_INITIAL_CONSTANT) return weft_constant_of(s->is_always);
    if (s->kind == WEFT_INITIAL_NORMAL) return weft_normal(0.0, deviation);
    return weft_uniform(-deviation * sqrt(3.0), deviation * sqrt(3.0)); /* of that variance */
}

static const scheme *find(const char *name, weft_error *error)
{
    const char *names[N_SCHEMES];
    for (int i = 0; i < N_SCHEMES; i++) {
        if (strcmp(schemes[i].name, name) == 0) return &schemes[i];
        names[i] = schemes[i].name;
    }
    const char *near = weft_nearest(name, names, N_SCHEMES);
    weft_fail(error, WEFT_USAGE,
              "there is no initializer \"%.60s\"%s%s%s. There are glorot_, he_ and lecun_uniform "
              "and _normal, normal, zeros and ones",
              name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return NULL;
}

weft_status weft_initial_of(const char *initializer, double fan_in, double fan_out,
                            weft_initial *initial, weft_error *error)
{
    WEFT_GIVEN(initial, error);
    *initial = weft_constant_of(0.0);
    WEFT_GIVEN(initializer, error);
    if (!(fan_in >= 1 && fan_out >= 1 && isfinite(fan_in) && isfinite(fan_out)))
        return weft_fail(error, WEFT_USAGE,
                         "weft_initial_of: fan_in is %g and fan_out is %g; both are 1 at least",
                         fan_in, fan_out);
    const scheme *s = find(initializer, error);
    if (s == NULL) return error != NULL ? error->status : WEFT_USAGE;
    *initial = initial_of(s, fan_in, fan_out);
    return WEFT_OK;
}
