/* compare: steps of two plans or runs are matched by the call of the program, the op, the phase and what is done; those of all layers
 * are one.
 */
#include "compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pairs ------------------------------------------------------------------------------------------------ */

/* A trace does not know phases: then nobody is asked for them. */
static bool are_matched(const diff_step *a, const diff_step *b, bool by_phase)
{
    return strcmp(a->place, b->place) == 0 && strcmp(a->what, b->what) == 0 &&
           (!by_phase || strcmp(a->phase, b->phase) == 0);
}

/* Where a step's pair is in a table of places, or belongs: open addressing. */
static uint32_t hash_of(const diff_step *step, bool by_phase)
{
    const char *const texts[] = {step->place, step->what, by_phase ? step->phase : ""};
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 3; i++)
        for (const char *c = texts[i]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 16777619u;
    return hash;
}

typedef struct table {
    uint32_t *places; /* [n_places] a power of two; of a pair, from 1 */
    uint32_t n_places;
    bool by_phase;
} table;

static const diff_step *known(const diff_pair *pair)
{
    return &pair->of[pair->n_steps[0] > 0 ? 0 : 1];
}

static diff_pair *find_pair(diff_comparison *c, const table *t, const diff_step *step)
{
    for (uint32_t at = hash_of(step, t->by_phase);; at++) {
        uint32_t *place = &t->places[at & (t->n_places - 1)];
        if (*place == 0) *place = (uint32_t)++c->n;
        diff_pair *pair = &c->pairs[*place - 1];
        const bool is_new = pair->n_steps[0] + pair->n_steps[1] == 0;
        if (is_new || are_matched(known(pair), step, t->by_phase)) return pair;
    }
}

static void add(diff_pair *pair, int side, const diff_step *step)
{
    diff_step *of = &pair->of[side];
    if (pair->n_steps[side]++ == 0) {
        *of = *step;
        return;
    }
    of->times += step->times;
    of->seconds += step->seconds;
    of->bytes += step->bytes;
    of->flops += step->flops;
}

/* ---- why ---------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(diff_pair *pair, const char *format, ...)
{
    const size_t used = strlen(pair->why);
    va_list arguments;
    if (used > 0 && used + 2 < sizeof pair->why) strcat(pair->why, "; ");
    const size_t from = strlen(pair->why);
    va_start(arguments, format);
    vsnprintf(pair->why + from, sizeof pair->why - from, format, arguments);
    va_end(arguments);
}

static bool are_apart(double a, double b)
{
    return fabs(a - b) > 1e-3 * fmax(fabs(a), fabs(b));
}

static void say_text(diff_pair *pair, const char *what, const char *before, const char *now)
{
    if (strcmp(before, now) != 0 && *before && *now) say(pair, "%s%s, was %s", what, now, before);
}

static void explain(diff_pair *pair)
{
    const diff_step *a = &pair->of[0], *b = &pair->of[1];
    const bool exchanges = *known(pair)->axes != '\0';
    if (pair->n_steps[0] == 0 || pair->n_steps[1] == 0) {
        say(pair, "%s", pair->n_steps[0] == 0 ? "appeared" : "is gone");
        if (exchanges && *known(pair)->reason) say(pair, "%s", known(pair)->reason);
        return;
    }
    say_text(pair, "over ", a->axes, b->axes);
    say_text(pair, "spec ", a->spec, b->spec);
    say_text(pair, "kernel ", a->kernel, b->kernel);
    if (are_apart(a->times, b->times)) say(pair, "%.4g times, was %.4g", b->times, a->times);
    if (are_apart(a->bytes, b->bytes))
        say(pair, "%.4g bytes exchanged, was %.4g", b->bytes, a->bytes);
    if (are_apart(a->flops, b->flops)) say(pair, "%.4g flops, was %.4g", b->flops, a->flops);
    if (*pair->why == '\0') say(pair, "the same work");
}

/* ---- all ---------------------------------------------------------------------------------------------------- */

double diff_more(const diff_pair *pair)
{
    return pair->cost[1] - pair->cost[0];
}

static int most_first(const void *a, const void *b)
{
    const double x = fabs(diff_more(a)), y = fabs(diff_more(b));
    if (x != y) return x < y ? 1 : -1;
    const int by_place = strcmp(known(a)->place, known(b)->place);
    return by_place ? by_place : strcmp(known(a)->what, known(b)->what);
}

static void finish(diff_comparison *c)
{
    for (int i = 0; i < c->n; i++) {
        diff_pair *pair = &c->pairs[i];
        for (int s = 0; s < 2; s++)
            pair->cost[s] = pair->n_steps[s] == 0 ? 0
                            : c->in_seconds       ? pair->of[s].seconds
                                                  : pair->of[s].bytes;
        explain(pair);
    }
    qsort(c->pairs, (size_t)c->n, sizeof *c->pairs, most_first);
}

weft_status diff_compare(const diff_side sides[2], diff_comparison *c, weft_error *error)
{
    const size_t room = (size_t)sides[0].n_steps + (size_t)sides[1].n_steps + 1;
    table t = {.n_places = 64, .by_phase = sides[0].has_phases && sides[1].has_phases};
    *c = (diff_comparison){.in_seconds = sides[0].has_seconds && sides[1].has_seconds};
    if (sides[0].n_steps == 0 || sides[1].n_steps == 0) return WEFT_OK;
    while (t.n_places < 2 * room)
        t.n_places *= 2;
    t.places = calloc(t.n_places, sizeof *t.places);
    c->pairs = calloc(room, sizeof *c->pairs);
    weft_status status =
        t.places && c->pairs ? WEFT_OK : weft_fail_memory(error, room * sizeof *c->pairs);
    for (int s = 0; status == WEFT_OK && s < 2; s++)
        for (int i = 0; i < sides[s].n_steps; i++)
            add(find_pair(c, &t, &sides[s].steps[i]), s, &sides[s].steps[i]);
    if (status == WEFT_OK) finish(c);
    free(t.places);
    return status;
}

void diff_comparison_close(diff_comparison *c)
{
    free(c->pairs);
    *c = (diff_comparison){0};
}
