/* list: all choices of a space that may fit, by guess: the lowest first. */
#include "searching.h"

#include <math.h>
#include <stdlib.h>

/* A floor that is so many times the least guess needs no guess of its own. */
static const double FAR = 1.4;
/* Nobody asks for floors that are so many times the least guess. */
static const double MOST = 2;
enum { MOST_CANDIDATES = 4 << 20 };
/* Of the time: the choices that were not listed by then are left out. */
static const double LISTING = 0.4;

static int by_guess(const void *a, const void *b)
{
    const weft_search_candidate *x = a, *y = b;
    if (x->guess != y->guess) return x->guess < y->guess ? -1 : 1;
    if (x->outline != y->outline) return x->outline - y->outline;
    return x->setting - y->setting;
}

static bool fits_floor(const searching *s, const weft_search_outline *outline,
                       const weft_search_setting *setting)
{
    const int64_t memory = s->options->memory;
    return memory <= 0 || weft_search_floor_bytes(s, outline, setting) <= (double)memory;
}

/* Profiles of the same dims exchange about the same, and stages 1 and 2 do. */
static double exchanges_of(const searching *s, const weft_search_outline *outline,
                           const weft_search_setting *setting, double *known)
{
    static const int kinds[] = {0, 1, 1, 2};
    weft_search_setting like = *setting;
    like.profile = s->profiles[setting->profile].like;
    double *seconds = &known[3 * like.profile + kinds[setting->zero]];
    if (*seconds < 0) *seconds = weft_search_guess_exchanges(s, outline, &like);
    return *seconds;
}

/* Of more choices than can be kept their number and their lowest floor are. */
static weft_status keep(searching *s, weft_search_list *list, weft_search_candidate candidate)
{
    if (list->n == MOST_CANDIDATES) {
        list->n_dropped++;
        list->dropped = fmin(list->dropped, candidate.floor);
        return WEFT_OK;
    }
    if (list->n == list->cap) {
        const uint32_t cap = list->cap > 0 ? 2 * list->cap : 1 << 16;
        weft_search_candidate *more = realloc(list->all, cap * sizeof *more);
        if (!more) return weft_fail_memory(s->error, cap * sizeof *more);
        list->all = more;
        list->cap = cap;
    }
    list->all[list->n++] = candidate;
    return WEFT_OK;
}

static weft_status add(searching *s, weft_search_list *list, int o, int x, double *known)
{
    const weft_search_outline *outline = &s->outlines[o];
    const weft_search_setting *setting = &s->settings[x];
    if (!weft_search_go_together(s, outline, setting)) return WEFT_OK;
    list->n_choices++;
    if (!fits_floor(s, outline, setting)) {
        list->n_too_large++;
        return WEFT_OK;
    }
    double floor = weft_search_floor_seconds(s, outline, setting);
    const bool is_far = !s->options->is_whole && floor > FAR * list->least_guess;
    double guess = is_far ? floor : floor + exchanges_of(s, outline, setting, known);
    if (!is_far)
        floor = fmax(floor, weft_search_toll_seconds(s, outline, setting, floor,
                                                     MOST * fmin(guess, list->least_guess)));
    guess = fmax(guess, floor);
    list->least_guess = fmin(list->least_guess, guess);
    return keep(
        s, list,
        (weft_search_candidate){o, x, (float)(floor * (1 - 1e-6)), (float)guess, WEFT_UNSEEN});
}

weft_status weft_search_list_make(searching *s, weft_search_list *list)
{
    *list = (weft_search_list){.dropped = INFINITY, .least_guess = INFINITY};
    double *known = weft_arena_take(s->arena, 3 * (size_t)s->n_profiles * sizeof *known);
    if (!known) return weft_fail_memory(s->error, (size_t)s->n_profiles * sizeof *known);
    for (int o = 0; o < s->n_outlines; o++) {
        for (int i = 0; i < 3 * s->n_profiles; i++)
            known[i] = -1;
        for (int x = 0; x < s->n_settings; x++)
            WEFT_TRY(add(s, list, o, x, known));
        if (o + 1 < s->n_outlines && list->n > 0 && weft_search_is_over(s, LISTING)) {
            s->has_more_outlines = true;
            break;
        }
    }
    if (list->n > 0) qsort(list->all, list->n, sizeof *list->all, by_guess);
    if (list->n_choices > 0) return WEFT_OK;
    return weft_fail(
        s->error, WEFT_USAGE,
        "there is nothing to choose among: a stage of sharded storage needs an axis that "
        "splits the batch, and axes are no longer than the dims that they split; vary "
        "mesh, layout and zero too");
}
