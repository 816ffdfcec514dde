/* conv_phase.c: a convolution whose windows have gaps, as several without.
 *
 * Only with every over-th element of m go the same elements of k: over j = step i + step' t + offset asks for another t with
 * each rest of i. The elements of one rest, and the t that go with them, are a convolution of their own: a phase. So the gradient
 * to the data of a strided convolution multiplies no zeros.
 */
#include "cpu/conv.h"

static weft_conv_dim *find(weft_conv_dims *dims, int window)
{
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].window == window) return &dims->dim[d];
    dims->dim[dims->n] = (weft_conv_dim){.size = 1, .window = window};
    return &dims->dim[dims->n++];
}

static int64_t rest_of(int64_t at, int64_t over)
{
    const int64_t rest = at % over;
    return rest < 0 ? rest + over : rest;
}

static int64_t count_from(int64_t first, int64_t size, int64_t by)
{
    return first < size ? (size - first + by - 1) / by : 0;
}

/* Elements of `k` that go with those of m that are there: every `period`-th from *first on. */
static int64_t find_period(const weft_conv_dim *k, int64_t at, int64_t over, int64_t *first)
{
    int64_t period = 1;
    while (rest_of(k->step * period, over) != 0)
        period++;
    *first = 0;
    while (*first < period && rest_of(at + k->step * *first, over) != 0)
        ++*first;
    if (*first == period) *first = k->size; /* none */
    return period;
}

static void take_rest(weft_conv *c, int s, int64_t rest)
{
    weft_conv_dim *m = find(&c->m, s), *k = find(&c->k, s);
    const int64_t over = c->window[s].over;
    int64_t at = c->first.at[s] + rest * m->step, first;
    const int64_t period = find_period(k, at, over, &first);
    m->size = count_from(rest, m->size, over);
    c->first.y += rest * m->y;
    m->y *= over;
    k->size = count_from(first, k->size, period);
    c->first.w += first * k->w;
    at += first * k->step;
    k->w *= period;
    k->step = k->step * period / over;
    c->first.at[s] = k->size > 0 ? at / over : 0;
    c->window[s].over = 1;
}

static void drop_ones(weft_conv_dims *dims)
{
    int kept = 0;
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].size != 1) dims->dim[kept++] = dims->dim[d];
    dims->n = kept;
}

int64_t weft_conv_count_phases(const weft_conv *c)
{
    int64_t n = 1;
    for (int s = 0; s < c->n_windows && n <= WEFT_CONV_PHASES; s++)
        n *= c->window[s].over;
    return n;
}

void weft_conv_take_phase(const weft_conv *c, int64_t phase, weft_conv *of)
{
    *of = *c;
    for (int s = 0; s < c->n_windows; s++) {
        const int64_t over = c->window[s].over;
        if (over == 1) continue;
        take_rest(of, s, phase % over);
        phase /= over;
    }
    drop_ones(&of->m);
    drop_ones(&of->k);
    weft_conv_settle(of);
}
