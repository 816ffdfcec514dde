/* draws: the run again and again with noise, for quantiles.
 *
 * A rank is slower than another for a whole run, by up to what the probes of the machine differed. A kernel is slower or faster each
 * time it is drawn, by what was measured of it: a uniform number with its mean. A kind stands for many ranks, and the slowest
 * of them counts: its number is the largest of so many. Numbers are Philox, so a draw depends on its number alone.
 */
#include "walk.h"
#include "weft/philox.h"

#include <math.h>
#include <stdlib.h>

enum { SEED = 20 };

static double slowest_of(const timeline *t, int c, uint32_t draw)
{
    uint32_t words[4];
    weft_philox((weft_philox_key){SEED, (uint32_t)c, draw}, 0, words);
    const double ranks = (double)weft_mesh_n_ranks(t->plan->mesh) / t->classes.n;
    return 1 + t->clock.model->spread * pow(weft_philox_unit(words[0]), 1 / ranks);
}

/* The seconds are those of a step that nothing disturbs; the mean is longer by the spread. */
static double factor_of(double spread, uint32_t word)
{
    return 1 + 2 * fmin(spread, 1) * weft_philox_unit(word);
}

static void draw_seconds(timeline *t, int c, uint32_t draw)
{
    uint32_t words[4] = {0};
    rank_clock *clock = &t->clocks[c];
    const double slower = slowest_of(t, c, draw);
    for (uint32_t s = 0; s < t->plan->n_steps; s++) {
        if (s % 4 == 0) weft_philox((weft_philox_key){SEED, (uint32_t)c, draw}, 1 + s / 4, words);
        const bool is_work = weft_axes_of(&t->plan->steps[s]) == 0;
        clock->seconds[s] = clock->usual[s] * factor_of(clock->spread[s], words[s % 4]);
        if (is_work) clock->seconds[s] *= slower;
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static weft_status draw_all(timeline *t, int draws, double *seconds)
{
    for (int d = 0; d < draws; d++) {
        for (int c = 0; c < t->classes.n; c++)
            draw_seconds(t, c, (uint32_t)d);
        WEFT_TRY(weft_walk(t));
        seconds[d] = weft_walk_seconds(t);
    }
    return WEFT_OK;
}

weft_status weft_walk_draw(timeline *t, int draws, weft_prediction *prediction)
{
    double *seconds = calloc((size_t)draws, sizeof *seconds);
    if (!seconds) return weft_fail_memory(t->error, (size_t)draws * sizeof *seconds);
    const weft_status status = draw_all(t, draws, seconds);
    qsort(seconds, (size_t)draws, sizeof *seconds, ascending);
    prediction->median_seconds = seconds[(draws - 1) / 2];
    prediction->slow_seconds = seconds[(draws - 1) * 95 / 100];
    free(seconds);
    return status;
}
