/* draws: the run again and again with noise, for quantiles.
 *
 * A rank is slower than another for a whole run, by up to what the probes of the machine differed. A kernel is slower or faster each
 * time it is drawn, by what was measured of it: a uniform number with its mean. A kind stands for many ranks, and the slowest
 * of them counts: its number is the largest of so many. Numbers are Philox, so a draw depends on its number alone.
 */
#include "columns.h"
#include "walk.h"
#include "weft/philox.h"

#include <math.h>
#include <stdlib.h>

enum { SEED = 20, WORDS = 4 };

typedef struct drawing {
    uint32_t *kind, *draw; /* [columns] whose numbers they are */
    double *slower, *same; /* [columns] by how much work takes longer; ones */
    double *units;         /* [WORDS][columns] the numbers of `block` */
    uint64_t block;        /* 0: none yet */
} drawing;

static double slowest_of(const timeline *t, uint32_t kind, uint32_t draw)
{
    uint32_t words[WORDS];
    weft_philox((weft_philox_key){SEED, kind, draw}, 0, words);
    const double ranks = (double)weft_mesh_n_ranks(t->plan->mesh) / t->classes.n;
    return 1 + t->clock.model->spread * pow(weft_philox_unit(words[0]), 1 / ranks);
}

/* Four steps of the list have their numbers from one block. */
static const double *units_of(runs *r, uint32_t s)
{
    drawing *d = r->context;
    const uint64_t block = 1 + s / WORDS;
    if (block != d->block) weft_columns_draw(r->n, SEED, block, d->kind, d->draw, d->units);
    d->block = block;
    return d->units + (size_t)(s % WORDS) * (size_t)r->n;
}

/* The seconds are those of a step that nothing disturbs; the mean is longer by the spread. */
static void drawn_tempo(runs *r, uint32_t s, double *seconds)
{
    const timeline *t = r->t;
    const drawing *d = r->context;
    const size_t at = (size_t)t->steps[s].kind * (size_t)t->classes.n;
    const double *slower = t->steps[s].meeting ? d->same : d->slower, *units = d->units;
    for (int c = 0; c < t->classes.n; c++)
        if (t->spread[at + (size_t)c] > 0) units = units_of(r, s);
    for (int c = 0; c < t->classes.n; c++) {
        const int k = c * r->n_runs;
        const double twice = 2 * fmin(t->spread[at + (size_t)c], 1);
        weft_columns_vary(r->n_runs, seconds + k, t->usual[at + (size_t)c], twice, units + k,
                          slower + k);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static weft_status open(runs *r, const timeline *t, int draws, weft_arena *arena, drawing *d)
{
    WEFT_TRY(weft_runs_open(r, t, weft_runs_at_once(t, draws), NULL, arena));
    const size_t n = (size_t)r->n;
    *d = (drawing){.kind = weft_arena_take(arena, 2 * n * sizeof *d->kind),
                   .slower = weft_arena_take(arena, (2 + WORDS) * n * sizeof *d->slower)};
    if (!d->kind || !d->slower) return weft_fail_memory(t->error, (2 + WORDS) * n * sizeof(double));
    d->draw = d->kind + n;
    d->same = d->slower + n;
    d->units = d->same + n;
    r->tempo = drawn_tempo;
    r->context = d;
    for (size_t k = 0; k < n; k++) {
        d->kind[k] = (uint32_t)k / (uint32_t)r->n_runs;
        d->same[k] = 1;
    }
    return WEFT_OK;
}

/* Draws from `first` on, as many as are walked at once. */
static void draw_some(runs *r, int first, int draws, double *seconds)
{
    drawing *d = r->context;
    d->block = 0;
    for (int k = 0; k < r->n; k++) {
        d->draw[k] = (uint32_t)(first + k % r->n_runs);
        d->slower[k] = slowest_of(r->t, d->kind[k], d->draw[k]);
    }
    weft_walk(r);
    for (int i = 0; i < r->n_runs && first + i < draws; i++)
        seconds[first + i] = weft_walk_seconds(r, i);
}

weft_status weft_walk_draw(const timeline *t, int draws, weft_arena *arena,
                           weft_prediction *prediction)
{
    runs r;
    drawing d;
    const size_t n = (size_t)draws;
    double *seconds = weft_arena_take(arena, n * sizeof *seconds);
    if (!seconds) return weft_fail_memory(t->error, n * sizeof *seconds);
    WEFT_TRY(open(&r, t, draws, arena, &d));
    for (int first = 0; first < draws; first += r.n_runs)
        draw_some(&r, first, draws, seconds);
    qsort(seconds, n, sizeof *seconds, ascending);
    prediction->median_seconds = seconds[(draws - 1) / 2];
    prediction->slow_seconds = seconds[(draws - 1) * 95 / 100];
    return WEFT_OK;
}
