/* reference_positions.c: rotary positions and ALiBi's bias. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>

/* How much slower a pair turns: by b; in `begin` rows, if there are any, those alone that turn less than twice there, and by b
 * only those of half a turn. */
static long double slower(const reference_with *with, long double speed)
{
    if (with->b == 0) return speed;
    if (with->begin == 0) return speed / with->b;
    const long double wave = 2 * acosl(-1) / speed, rows = (long double)with->begin;
    if (wave < rows / 2) return speed;
    if (wave > rows / 0.5L) return speed / with->b;
    const long double share = (rows / wave - 0.5L) / (2 - 0.5L);
    return (1 - share) * speed / with->b + share * speed;
}

/* A pair (x, z) as a complex number, times exp(i angle). Without positions the rows of `other` are counted. */
void reference_rope(const reference_call *call)
{
    const reference_tensor *x = &call->in[0];
    const char *feature = call->with.feature;
    const int64_t half = tensor_size(x, feature) / 2;
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t f = point_at(&p, feature), pair = f % half;
        const long double place = call->n_in > 1 ? element_get(&call->in[1], &p)
                                                 : (long double)point_at(&p, call->with.other);
        const long double angle =
            place * slower(&call->with, powl(call->with.a, -(long double)pair / (long double)half));
        const reference_point a = point_set(&p, feature, pair),
                              b = point_set(&p, feature, pair + half);
        const long double real = element_get(x, &a), imaginary = element_get(x, &b);
        element_put(&call->out[0], &p,
                    f < half ? real * cosl(angle) - imaginary * sinl(angle)
                             : real * sinl(angle) + imaginary * cosl(angle));
    }
}

/* log2 of 1 / slope: of 2 heads 4, 8; of 6: 2, 4, 6, 8, then the first and third of 8 heads': 1, 3. */
void reference_alibi(const reference_call *call)
{
    static const int of_two[] = {4, 8}, of_six[] = {2, 4, 6, 8, 1, 3};
    const char *heads = call->with.feature;
    const int *steep = tensor_size(&call->out[0], heads) == 2 ? of_two : of_six;
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t apart = point_at(&p, call->with.dim) - point_at(&p, call->with.other);
        element_put(&call->out[0], &p,
                    -(long double)llabs(apart) * powl(2, -steep[point_at(&p, heads)]));
    }
}
