/* hunt: the quickest choices, planned from the lowest guess on, and near the best (weft/research/search.h).
 *
 * Rounds: in each, some choices are planned at once. They are those one step from the best so far, and those of the lowest guesses.
 * A round depends on the rounds before alone, and not on which thread was quicker. So all but a search that its time ends finds
 * the same every time.
 */
#include "searching.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUND = 16,
    AT_ONCE = 4,
    USUAL_WIDTH = 8,
    EACH = 4,    /* of a round near one of the best */
    REFINED = 32 /* of the best estimates */
};

/* An estimate may be wrong by so much. When so much of the time is over, estimates end, then those for the machine, and then plans: a
 * round that has begun goes on, and turns come after it. */
static const double ESTIMATE_ERROR = 0.1, ESTIMATING = 0.5, REFINING = 0.65, PLANNING = 0.8;
static const double TIE =
    0.03; /* within this part, times ranks of a core, predictions do not tell choices apart */
static const double JUST_ABOVE = 1 + 1e-5; /* times the best: nobody asks for higher floors */
/* For a machine a choice is planned up to so many times; and the first may end after so many times the time. An estimate plans this
 * many times its few layers: them, and some more. */
static const double TIMES_PLANNED = 4, LONGEST = 2, ESTIMATED = 2.5;

/* What was planned, in the order of planning. */
typedef struct looked {
    uint32_t candidate;
    bool is_whole, is_expanded, fits;
    bool is_late; /* time was over before it was planned */
    double took;  /* seconds, by usual prices */
    weft_search_price price;
} looked;

typedef struct hunt {
    searching *s;
    const weft_search_options *options;
    weft_found *found;
    weft_search_list list; /* by guess */
    uint32_t next;         /* those below are planned, or out */
    int n_looked, room;
    looked *looks;
    uint32_t round[2 * ROUND];
    int n_round;
    double best, estimate; /* seconds of the quickest that fits: planned whole; estimated */
    double tie;            /* a tie is below so many times the best's seconds */
} hunt;

static double now(void)
{
    return weft_sync_seconds();
}

static bool is_over(const hunt *h, double part)
{
    return weft_search_is_over(h->s, part);
}

/* ---- one round ---------------------------------------------------------------------------------------- */

/* What others have to be below. Until something was planned whole, an estimate counts with what it may be wrong by. */
static double bar_of(const hunt *h)
{
    return isfinite(h->best) ? h->best : h->estimate * (1 + ESTIMATE_ERROR);
}

static bool is_below(const hunt *h, uint32_t c)
{
    const double bar = bar_of(h);
    weft_search_candidate *candidate = &h->list.all[c];
    if (h->options->is_whole) return true;
    if ((double)candidate->floor >= bar) return false;
    if (!candidate->is_tolled) weft_search_list_toll(h->s, &h->list, &c, 1, JUST_ABOVE * bar);
    return (double)candidate->floor < bar;
}

static bool is_room(const hunt *h)
{
    const int64_t planned = h->n_looked + h->n_round;
    return h->n_round < ROUND && (h->options->most <= 0 || planned < h->options->most);
}

static void plan_next(hunt *h, uint32_t c)
{
    h->list.all[c].fate = WEFT_PLANNED;
    h->round[h->n_round++] = c;
}

static const weft_search_outline *outline_of(const hunt *h, uint32_t c)
{
    return &h->s->outlines[h->list.all[c].outline];
}

static const weft_search_setting *setting_of(const hunt *h, uint32_t c)
{
    return &h->s->settings[h->list.all[c].setting];
}

static bool are_near(const hunt *h, uint32_t a, uint32_t b)
{
    return weft_search_are_near(outline_of(h, a), setting_of(h, a), outline_of(h, b),
                                setting_of(h, b));
}

/* Up to EACH of those near a looked one, from the lowest guess on. */
static void plan_near(hunt *h, looked *from)
{
    int n = 0;
    uint32_t c = h->next;
    for (; c < h->list.n && is_room(h) && n < EACH; c++) {
        if (h->list.all[c].fate != WEFT_UNSEEN || !are_near(h, from->candidate, c)) continue;
        if (!is_below(h, c)) continue;
        plan_next(h, c);
        n++;
    }
    from->is_expanded = n < EACH && is_room(h);
}

/* What was given, and all ranks in one role, by the usual settings. */
static bool is_seed(const hunt *h, uint32_t c)
{
    const weft_search_setting *setting = setting_of(h, c);
    for (int k = 0; k < WEFT_MAX_KNOBS; k++)
        if (setting->knob[k] != 0) return false;
    return setting->zero == h->options->zero &&
           (h->list.all[c].outline == 0 || outline_of(h, c)->n <= 1);
}

/* It comes first, so that nothing slower is ever told. */
static bool is_data_parallel(const hunt *h, uint32_t c)
{
    return weft_search_is_data_parallel(h->s, outline_of(h, c));
}

static bool is_room_for_seeds(const hunt *h)
{
    return h->n_round < 2 * ROUND && (h->options->most <= 0 || h->n_round < h->options->most);
}

static void choose_round(hunt *h, looked **best, int n_best)
{
    h->n_round = 0;
    for (uint32_t c = 0; c < h->list.n && h->n_looked == 0; c++)
        if (is_seed(h, c) && is_data_parallel(h, c)) plan_next(h, c);
    for (uint32_t c = 0; c < h->list.n && h->n_looked == 0 && is_room_for_seeds(h); c++)
        if (is_seed(h, c) && h->list.all[c].fate == WEFT_UNSEEN) plan_next(h, c);
    for (int i = 0; i < n_best && is_room(h); i++)
        if (!best[i]->is_expanded) plan_near(h, best[i]);
    while (h->next < h->list.n && h->list.all[h->next].fate != WEFT_UNSEEN)
        h->next++;
    for (uint32_t c = h->next; c < h->list.n && is_room(h); c++)
        if (h->list.all[c].fate == WEFT_UNSEEN && is_below(h, c)) plan_next(h, c);
}

typedef struct work {
    hunt *h;
    looked *first;
    weft_search_care care;
    double end;          /* the part of the time until which pieces begin */
    bool is_first;       /* nothing has been planned so */
    looked *const *list; /* NULL: from first on */
} work;

static void price(const work *w, looked *l)
{
    weft_choice choice;
    if (weft_search_choice_of(w->h->s, outline_of(w->h, l->candidate),
                              setting_of(w->h, l->candidate), &choice)) {
        weft_search_price_choice(w->h->s, &choice, w->care, &l->price);
        return;
    }
    l->price = (weft_search_price){.error = WEFT_NO_ERROR};
    l->price.status =
        weft_fail(&l->price.error, WEFT_USAGE,
                  "mesh %.60s...: a choice has room for %zu letters of mesh and %zu of "
                  "layout; give axes and dims shorter names",
                  choice.mesh, sizeof choice.mesh - 1, sizeof choice.layout - 1);
}

/* The first of all is planned, however late it is. */
static void do_piece(void *context, int piece)
{
    const work *w = context;
    looked *l = w->list ? w->list[piece] : &w->first[piece];
    const double begun = now();
    l->is_late = (!w->is_first || piece > 0) && is_over(w->h, w->end);
    if (l->is_late) return;
    price(w, l);
    if (w->care == WEFT_BY_USUAL_PRICES) l->took = now() - begun;
}

/* Refused by the builder or the compiler for what it asks: it is no choice. All else ends the search. */
static weft_status judge(hunt *h, looked *l)
{
    const weft_search_price *price = &l->price;
    l->fits =
        price->status == WEFT_OK && (h->options->memory <= 0 || price->bytes <= h->options->memory);
    l->is_whole = price->status == WEFT_OK && !price->is_estimate;
    if (price->status == WEFT_OK) {
        double *best = l->is_whole ? &h->best : &h->estimate;
        if (l->fits) *best = fmin(*best, price->prediction.seconds);
        return WEFT_OK;
    }
    if (price->status != WEFT_USAGE)
        return weft_fail(h->s->error, price->status, "%s", price->error.message);
    h->s->n_refused++;
    if (h->found->left_out.illegal++ == 0) /* it says more than why a setting is none */
        snprintf(h->s->refusal, sizeof h->s->refusal, "%s", price->error.message);
    return WEFT_OK;
}

static weft_status make_room(hunt *h)
{
    if (h->n_looked + 2 * ROUND <= h->room) return WEFT_OK;
    const int room = h->room > 0 ? 2 * h->room : 8 * ROUND;
    looked *more = realloc(h->looks, (size_t)room * sizeof *more);
    if (!more) return weft_fail_memory(h->s->error, (size_t)room * sizeof *more);
    h->looks = more;
    h->room = room;
    return WEFT_OK;
}

static weft_status do_round(hunt *h)
{
    WEFT_TRY(make_room(h));
    looked *first = h->looks + h->n_looked;
    for (int i = 0; i < h->n_round; i++)
        first[i] = (looked){.candidate = h->round[i]};
    work w = {.h = h, .first = first, .end = 1, .is_first = h->n_looked == 0};
    weft_search_crew_do(h->s->threads, h->n_round, do_piece, &w);
    for (int i = 0; i < h->n_round; i++) {
        looked *l = &h->looks[h->n_looked];
        *l = first[i];
        if (l->is_late)
            h->list.all[l->candidate].fate = WEFT_UNSEEN;
        else
            h->n_looked++;
    }
    for (looked *l = first; l < h->looks + h->n_looked; l++)
        WEFT_TRY(judge(h, l));
    return WEFT_OK;
}

/* ---- the best ------------------------------------------------------------------------------------------- */

/* Those that fit first, by seconds. */
static int by_seconds(const void *a, const void *b)
{
    const looked *x = *(looked *const *)a, *y = *(looked *const *)b;
    const double s = x->price.prediction.seconds, t = y->price.prediction.seconds;
    if (x->fits != y->fits) return x->fits ? -1 : 1;
    if (s != t) return s < t ? -1 : 1;
    if (x->price.bytes != y->price.bytes) return x->price.bytes < y->price.bytes ? -1 : 1;
    return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

/* All that were planned, in order; returns how many: refused ones are left out. */
static int sort_looks(const hunt *h, looked **sorted)
{
    int n = 0;
    for (int i = 0; i < h->n_looked; i++)
        if (h->looks[i].price.status == WEFT_OK) sorted[n++] = &h->looks[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_seconds);
    return n;
}

/* Whether there is time to plan a choice whole: from few layers and some more it is known how long one takes, which is done several times
 * for the machine. The first may take as long again as the search was to take. */
static bool is_time_for_whole(const hunt *h, const looked *l)
{
    const double seconds = h->options->seconds, layers = (double)h->options->layers;
    weft_choice choice;
    (void)weft_search_choice_of(h->s, outline_of(h, l->candidate), setting_of(h, l->candidate),
                                &choice);
    const double few = (double)weft_search_few_layers(h->options, &choice);
    const double takes = few > 0 ? l->took * TIMES_PLANNED * layers / (ESTIMATED * few) : 0;
    const double end = now() - h->s->begun + takes;
    return seconds <= 0 || end <= (isfinite(h->best) ? 1 : LONGEST) * seconds;
}

/* A plan for the machine may be quicker by a third than that by usual prices, of one choice and not of another. So before the first ten
 * are known, the first of all are estimated for the machine. */
static weft_status refine(hunt *h, looked **sorted, int n)
{
    looked *list[REFINED];
    int n_list = 0;
    for (int i = 0; i < n && n_list < REFINED; i++)
        if (sorted[i]->fits && !sorted[i]->is_whole) list[n_list++] = sorted[i];
    if (n_list == 0) return WEFT_OK;
    work w = {.h = h, .list = list, .care = WEFT_FOR_MACHINE, .end = REFINING};
    weft_search_crew_do(h->s->threads, n_list, do_piece, &w);
    for (int i = 0; i < n_list; i++)
        if (!list[i]->is_late) WEFT_TRY(judge(h, list[i]));
    return WEFT_OK;
}

/* Estimates among the first become plans, the quickest first, until the first ten are plans all, or the time is over. */
static weft_status plan_whole(hunt *h, looked **sorted, int n)
{
    const int at_once =
        h->options->seconds > 0 && h->s->threads < AT_ONCE ? h->s->threads : AT_ONCE;
    for (int round = 0; round == 0 || !is_over(h, PLANNING); round++) {
        looked *list[WEFT_MAX_FOUND];
        int n_list = 0;
        for (int i = 0; i < n && i < WEFT_MAX_FOUND && n_list < at_once; i++)
            if (sorted[i]->is_whole || !sorted[i]->fits)
                continue;
            else if (is_time_for_whole(h, sorted[i]))
                list[n_list++] = sorted[i];
            else
                h->found->out_of_time = true;
        if (n_list == 0) return WEFT_OK;
        work w = {
            .h = h, .list = list, .care = WEFT_WHOLE, .end = 1, .is_first = !isfinite(h->best)};
        weft_search_crew_do(h->s->threads, n_list, do_piece, &w);
        for (int i = 0; i < n_list; i++)
            if (!list[i]->is_late) WEFT_TRY(judge(h, list[i]));
        n = sort_looks(h, sorted);
    }
    return WEFT_OK;
}

static int effort_of(const hunt *h, uint32_t c)
{
    return weft_search_effort(h->s, outline_of(h, c), setting_of(h, c));
}

/* Of what is as quick as the best, as predictions go, the plainest, and of equally plain ones the first; NULL: nothing fits. */
static looked *plainest(const hunt *h, looked **sorted, int n, bool is_whole)
{
    looked *found = NULL;
    for (int i = 0; i < n; i++) {
        looked *l = sorted[i];
        if (!l->fits || (is_whole && !l->is_whole)) continue;
        if (l->price.prediction.seconds >= h->best * h->tie) continue;
        if (!found || effort_of(h, l->candidate) < effort_of(h, found->candidate)) found = l;
    }
    return found;
}

/* It is told, so it is planned whole. */
static weft_status plan_plainest(hunt *h, looked **sorted, int n)
{
    looked *list[1] = {plainest(h, sorted, n, false)};
    if (!list[0] || list[0]->is_whole || is_over(h, PLANNING) || !is_time_for_whole(h, list[0]))
        return WEFT_OK;
    work w = {.h = h, .list = list, .care = WEFT_WHOLE, .end = 1};
    weft_search_crew_do(h->s->threads, 1, do_piece, &w);
    return list[0]->is_late ? WEFT_OK : judge(h, list[0]);
}

static weft_status hunt_all(hunt *h)
{
    const int width = h->options->width > 0 ? h->options->width : USUAL_WIDTH;
    weft_status status = WEFT_OK;
    looked **sorted = NULL;
    do {
        looked **more = realloc(sorted, (size_t)(h->n_looked + 1) * sizeof *sorted);
        if (!more) status = weft_fail_memory(h->s->error, sizeof *sorted);
        if (!more) break;
        sorted = more;
        int n = sort_looks(h, sorted);
        choose_round(h, sorted, n < width ? n : width);
        if (h->n_round == 0) break;
        status = do_round(h);
        if (h->options->progress)
            h->options->progress(h->options->progress_context, h->n_looked, h->list.n, h->best);
        h->found->out_of_time = is_over(h, h->options->layers > 0 ? ESTIMATING : PLANNING);
    } while (status == WEFT_OK && !h->found->out_of_time);
    looked **more = realloc(sorted, (size_t)(h->n_looked + 1) * sizeof *sorted);
    if (more) sorted = more;
    if (!more && status == WEFT_OK) status = weft_fail_memory(h->s->error, sizeof *sorted);
    if (status == WEFT_OK) status = refine(h, sorted, sort_looks(h, sorted));
    if (status == WEFT_OK) status = plan_whole(h, sorted, sort_looks(h, sorted));
    if (status == WEFT_OK) status = plan_plainest(h, sorted, sort_looks(h, sorted));
    free(sorted);
    return status;
}

/* ---- what was found ---------------------------------------------------------------------------------- */

static void tell(const hunt *h, const looked *l, weft_found_choice *to)
{
    const weft_search_candidate *c = &h->list.all[l->candidate];
    (void)weft_search_choice_of(h->s, outline_of(h, l->candidate), setting_of(h, l->candidate),
                                &to->choice);
    to->floor_seconds = c->floor;
    to->floor_bytes = (int64_t)weft_search_floor_bytes(h->s, outline_of(h, l->candidate),
                                                       setting_of(h, l->candidate));
    to->bytes = l->price.bytes;
    to->prediction = l->price.prediction;
}

/* The same plan by another name: stages of storage that come to one, say. It stands behind the one that was told. */
static bool is_told(const weft_found *found, const looked *l)
{
    if (found->n == 0) return false;
    const weft_found_choice *last = &found->best[found->n - 1];
    return last->prediction.seconds == l->price.prediction.seconds &&
           last->prediction.work_seconds == l->price.prediction.work_seconds &&
           last->bytes == l->price.bytes;
}

/* Of all that was not planned whole the lowest floor. */
static void find_least(hunt *h)
{
    weft_found *found = h->found;
    double least = h->list.dropped;
    *(h->list.dropped >= h->best ? &found->left_out.floors : &found->left_out.unlooked) +=
        h->list.n_dropped;
    for (int i = 0; i < h->n_looked; i++) {
        const looked *l = &h->looks[i];
        if (l->price.status == WEFT_OK && !l->is_whole)
            least = fmin(least, (double)h->list.all[l->candidate].floor);
    }
    for (uint32_t c = 0; c < h->list.n; c++) {
        if (h->list.all[c].fate != WEFT_UNSEEN) continue;
        const double floor = h->list.all[c].floor;
        if (floor >= h->best)
            found->left_out.floors++;
        else
            found->left_out.unlooked++;
        least = fmin(least, floor);
    }
    if (h->s->has_more_outlines) least = 0; /* nothing is known of them */
    found->least_seconds = fmin(least, h->best);
    found->is_exact = found->n > 0 && least >= h->best;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The guesses of what is left, and how good those of what was planned were. */
static void find_guesses(const hunt *h, looked **sorted, int n, double *room)
{
    double least = INFINITY;
    for (uint32_t c = 0; c < h->list.n; c++)
        if (h->list.all[c].fate == WEFT_UNSEEN) least = fmin(least, h->list.all[c].guess);
    for (int i = 0; i < n; i++)
        room[i] =
            fabs(h->list.all[sorted[i]->candidate].guess / sorted[i]->price.prediction.seconds - 1);
    qsort(room, (size_t)n, sizeof *room, ascending);
    h->found->guess_seconds = isfinite(least) ? least : 0;
    h->found->guess_error = n > 0 ? room[n / 2] : 0;
}

static weft_status report(hunt *h)
{
    weft_found *found = h->found;
    WEFT_TRY(weft_search_list_raise(h->s, &h->list, h->best, JUST_ABOVE * h->best));
    looked **sorted = malloc((size_t)(h->n_looked + 1) * sizeof *sorted);
    if (!sorted) return weft_fail_memory(h->s->error, sizeof *sorted);
    const int n = sort_looks(h, sorted);
    const looked *smallest = NULL, *beyond = NULL;
    for (int i = 0; i < n; i++) {
        const looked *l = sorted[i];
        found->n_estimated += !l->is_whole;
        found->n_planned++;
        found->n_misfits += !l->fits;
        if (l->is_whole)
            found->floor_part = fmax(found->floor_part, (double)h->list.all[l->candidate].floor /
                                                            l->price.prediction.seconds);
        if (!smallest || l->price.bytes < smallest->price.bytes) smallest = l;
        if (l->fits && l->is_whole && found->n < WEFT_MAX_FOUND && !is_told(found, l))
            tell(h, l, &found->best[found->n++]);
    }
    for (int i = n; i-- > 0;)
        if (!sorted[i]->fits && sorted[i]->price.prediction.seconds < h->best) beyond = sorted[i];
    if (beyond) tell(h, beyond, &found->beyond);
    if (smallest) tell(h, smallest, &found->smallest);
    const looked *chosen = plainest(h, sorted, n, true);
    if (chosen) tell(h, chosen, &found->chosen);
    found->tie_seconds = h->best * h->tie;
    double *room = malloc((size_t)(n + 1) * sizeof *room);
    if (room) find_guesses(h, sorted, n, room);
    free(room);
    free(sorted);
    find_least(h);
    found->n_roles = h->s->roles.n;
    snprintf(found->left_out.sentence, sizeof found->left_out.sentence, "%s", h->s->refusal);
    found->seconds = now() - h->s->begun;
    return WEFT_OK;
}

/* Where ranks share cores, their caches and the turns that they take are not predicted as well. */
static double tie_of(const weft_search_options *options)
{
    const double cores = options->machine->cores;
    return 1 + TIE * fmax(1, weft_search_host_ranks(options) / cores);
}

weft_status weft_search_hunt(searching *s, weft_found *found)
{
    hunt h = {.s = s,
              .options = s->options,
              .found = found,
              .best = INFINITY,
              .estimate = INFINITY,
              .tie = tie_of(s->options)};
    weft_status status = weft_search_list_make(s, &h.list);
    found->n_choices = h.list.n_choices;
    found->left_out.memory = h.list.n_too_large;
    if (status == WEFT_OK) status = hunt_all(&h);
    if (status == WEFT_OK) status = report(&h);
    free(h.list.all);
    free(h.looks);
    return status;
}
