/* list: all choices of a space that may fit, by guess: the lowest first. */
#include "searching.h"

#include <math.h>
#include <stdlib.h>

/* A floor that is so many times the least guess needs no guess of its own. */
static const double FAR = 1.4;
enum { MOST_CANDIDATES = 4 << 20 };
/* Of the time: choices that were not listed by then are left out. */
static const double LISTING = 0.45;

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

/* Of an outline by profile; below 0: not yet asked for. */
typedef struct known {
    double floors[2];    /* without and with sharded storage */
    double exchanges[3]; /* of the first profile that is alike */
} known;

/* Profiles of the same dims exchange about the same, and stages 1 and 2 do. */
static double exchanges_of(const searching *s, const weft_search_outline *outline,
                           const weft_search_setting *setting, known *of)
{
    static const int kinds[] = {0, 1, 1, 2};
    weft_search_setting like = *setting;
    like.profile = s->profiles[setting->profile].like;
    double *seconds = &of[like.profile].exchanges[kinds[setting->zero]];
    if (*seconds < 0) *seconds = weft_search_guess_exchanges(s, outline, &like);
    return *seconds;
}

static double floor_of(const searching *s, const weft_search_sharing *sharing,
                       const weft_search_setting *setting, known *of)
{
    double *seconds = &of[setting->profile].floors[setting->zero > 0];
    if (*seconds < 0) *seconds = weft_search_floor_seconds(s, sharing, setting);
    return *seconds;
}

/* A choice that a thread has looked at. */
typedef struct entry {
    int outline, setting;
    double floor, exchanges; /* below 0: it was far from the least guess already */
} entry;

/* Of some outlines all choices, in their order. */
typedef struct listed {
    int first, last; /* outlines */
    bool has_late;   /* some were left out, since time was over */
    bool is_short;   /* of memory */
    int64_t n_choices, n_too_large;
    int n, cap;
    entry *all; /* [n]; own: free */
} listed;

enum { OUTLINES = 8, PIECES = 64 };

/* Threads look at pieces of outlines. What they take for the least guess is not below what it is when choices are listed in their
 * order: so they know the guesses of all that need one then. */
typedef struct listing {
    searching *s;
    const weft_search_list *list;
    listed pieces[PIECES];
} listing;

static void look_at(const searching *s, listed *to, double *least, int o, int x,
                    const weft_search_sharing *sharing, known *of)
{
    const weft_search_outline *outline = &s->outlines[o];
    const weft_search_setting *setting = &s->settings[x];
    if (!weft_search_go_together(s, outline, setting)) return;
    to->n_choices++;
    if (!fits_floor(s, outline, setting)) {
        to->n_too_large++;
        return;
    }
    if (to->n == to->cap) {
        const int cap = 2 * to->cap + 1024;
        entry *more = realloc(to->all, (size_t)cap * sizeof *more);
        to->is_short |= more == NULL;
        if (!more) return;
        to->all = more;
        to->cap = cap;
    }
    entry *e = &to->all[to->n++];
    *e = (entry){o, x, floor_of(s, sharing, setting, of), -1};
    if (!(e->floor > FAR * *least)) e->exchanges = exchanges_of(s, outline, setting, of);
    *least = fmin(*least, e->floor + fmax(e->exchanges, 0));
}

static void list_piece(void *context, int piece)
{
    listing *l = context;
    const searching *s = l->s;
    listed *to = &l->pieces[piece];
    double least = l->list->least_guess;
    known *of = malloc((size_t)s->n_profiles * sizeof *of);
    to->is_short = of == NULL;
    for (int o = to->first; o < to->last && of; o++) {
        /* then choices of one axis are listed alone, which are planned first */
        to->has_late |= l->list->n + (uint32_t)to->n > 0 && weft_search_is_over(s, LISTING);
        if (to->has_late && s->outlines[o].n > 1) continue;
        weft_search_sharing sharing;
        weft_search_share(s, &s->outlines[o], &sharing);
        for (int i = 0; i < s->n_profiles; i++)
            of[i] = (known){{-1, -1}, {-1, -1, -1}};
        for (int x = 0; x < s->n_settings; x++)
            look_at(s, to, &least, o, x, &sharing, of);
    }
    free(of);
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

static weft_status add(searching *s, weft_search_list *list, const entry *e)
{
    const bool is_far = e->floor > FAR * list->least_guess;
    const double guess = is_far ? e->floor : e->floor + e->exchanges;
    list->least_guess = fmin(list->least_guess, guess);
    return keep(s, list,
                (weft_search_candidate){e->outline, e->setting, (float)(e->floor * (1 - 1e-6)),
                                        (float)guess, false, WEFT_UNSEEN});
}

static weft_status take(searching *s, weft_search_list *list, const listed *from)
{
    s->has_more_outlines |= from->has_late;
    list->n_choices += from->n_choices;
    list->n_too_large += from->n_too_large;
    if (from->is_short) return weft_fail_memory(s->error, (size_t)from->cap * sizeof *from->all);
    for (int i = 0; i < from->n; i++)
        WEFT_TRY(add(s, list, &from->all[i]));
    return WEFT_OK;
}

static weft_status list_all(searching *s, weft_search_list *list, listing *l)
{
    weft_status status = WEFT_OK;
    *l = (listing){.s = s, .list = list};
    for (int first = 0; first < s->n_outlines && status == WEFT_OK;) {
        int n = 0;
        for (; n < PIECES && first < s->n_outlines; n++, first += OUTLINES) {
            listed *piece = &l->pieces[n];
            const int last = first + OUTLINES;
            *piece = (listed){.first = first,
                              .last = last < s->n_outlines ? last : s->n_outlines,
                              .cap = piece->cap,
                              .all = piece->all};
        }
        weft_search_crew_do(s->threads, n, list_piece, l);
        for (int i = 0; i < n && status == WEFT_OK; i++)
            status = take(s, list, &l->pieces[i]);
    }
    for (int i = 0; i < PIECES; i++)
        free(l->pieces[i].all);
    return status;
}

weft_status weft_search_list_make(searching *s, weft_search_list *list)
{
    *list = (weft_search_list){.dropped = INFINITY, .least_guess = INFINITY};
    listing *l = weft_arena_take(s->arena, sizeof *l);
    if (!l) return weft_fail_memory(s->error, sizeof *l);
    weft_search_cut_works(s);
    WEFT_TRY(list_all(s, list, l));
    if (list->n > 0) qsort(list->all, list->n, sizeof *list->all, by_guess);
    if (list->n_choices > 0) return WEFT_OK;
    return weft_fail(
        s->error, WEFT_USAGE,
        "there is nothing to choose among: a stage of sharded storage needs an axis that "
        "splits the batch, and axes are no longer than the dims that they split; vary "
        "mesh, layout and zero too");
}

/* ---- floors with exchanges ---------------------------------------------------------------------------- */

enum { AT_ONCE = 64, TOLLED = 4096, MOST_TOLLED = 1 << 18 /* they take long */ };

typedef struct tolled {
    const searching *s;
    const weft_search_list *list;
    const uint32_t *which;
    int n;
    double most;
} tolled;

static void toll_piece(void *context, int piece)
{
    const tolled *t = context;
    for (int i = piece * AT_ONCE; i < (piece + 1) * AT_ONCE && i < t->n; i++) {
        weft_search_candidate *c = &t->list->all[t->which[i]];
        const weft_search_outline *outline = &t->s->outlines[c->outline];
        const weft_search_setting *setting = &t->s->settings[c->setting];
        const double floor = weft_search_toll_seconds(t->s, outline, setting, t->most);
        c->floor = (float)fmax((double)c->floor, floor * (1 - 1e-6));
        c->is_tolled = true;
    }
}

void weft_search_list_toll(const searching *s, const weft_search_list *list, const uint32_t *which,
                           int n, double most)
{
    tolled t = {s, list, which, n, most};
    weft_search_crew_do(s->threads, (n + AT_ONCE - 1) / AT_ONCE, toll_piece, &t);
}

typedef struct ranked {
    float floor;
    uint32_t candidate;
} ranked;

static int by_floor(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->floor != y->floor) return x->floor < y->floor ? -1 : 1;
    return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

weft_status weft_search_list_raise(searching *s, const weft_search_list *list, double best,
                                   double most)
{
    const bool is_whole = s->options->is_whole;
    ranked *all = malloc((list->n + 1) * sizeof *all);
    uint32_t which[TOLLED], n = 0;
    if (!all) return weft_fail_memory(s->error, list->n * sizeof *all);
    for (uint32_t c = 0; c < list->n; c++)
        if ((double)list->all[c].floor < best || is_whole)
            all[n++] = (ranked){list->all[c].floor, c};
    qsort(all, n, sizeof *all, by_floor);
    if (n > MOST_TOLLED && !is_whole) n = MOST_TOLLED;
    for (uint32_t i = 0; i < n && !weft_search_is_over(s, 1); i += TOLLED) {
        const uint32_t some = n - i < TOLLED ? n - i : TOLLED;
        for (uint32_t k = 0; k < some; k++)
            which[k] = all[i + k].candidate;
        weft_search_list_toll(s, list, which, (int)some, is_whole ? INFINITY : most);
    }
    free(all);
    return WEFT_OK;
}
