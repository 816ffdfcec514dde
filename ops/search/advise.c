/* advise: the neighbours of a choice, planned, predicted and ranked. See weft/research/advise.h.
 *
 * Where layers are alike a neighbour is judged by two plans of few layers, which is a straight line, and the best of them are planned
 * as a whole. A choice that needs too much memory goes towards less, from neighbour to neighbour.
 */
#include "weft/research/advise.h"

#include <stdlib.h>
#include <string.h>

#include "neighbours.h"
#include "searching.h"
#include "sync.h"

enum {
    MOST_DIMS = 32,
    MOST_WHOLE = 2 /* of deep programs a plan takes seconds */,
    MOST_CHANGES = 8
};

typedef struct advising {
    searching s;
    const weft_choice *from;
    weft_advice *advice;
    double begun;
    int n_dims;
    char names[MOST_DIMS][WEFT_MAX_NAME + 1];
    const char *dims[MOST_DIMS];
    search_neighbours neighbours;
    weft_search_price prices[WEFT_NEIGHBOURS]; /* of these */
    weft_advised judged[WEFT_NEIGHBOURS];      /* those that could be planned */
} advising;

/* ---- dims ----------------------------------------------------------------------------------------------------- */

static void add_dims(advising *a, const weft_shape *shape)
{
    for (int d = 0; d < shape->n_dims; d++) {
        int at = 0;
        while (at < a->n_dims && strcmp(a->names[at], shape->dims[d].name) != 0)
            at++;
        if (at < a->n_dims || at == MOST_DIMS || shape->dims[d].size < 2) continue;
        snprintf(a->names[at], sizeof a->names[at], "%s", shape->dims[d].name);
        a->dims[at] = a->names[at];
        a->n_dims++;
    }
}

/* Of variables and inputs, and of all else that has a name. */
static weft_status find_dims(advising *a, weft_error *error)
{
    weft_built_graph built = {0};
    const weft_status status = weft_search_call_builder(&a->s, a->from, &built, error);
    for (uint32_t v = 1; status == WEFT_OK && v < built.graph->n_tensors; v++)
        if (built.graph->tensors[v].name) add_dims(a, &built.graph->tensors[v].type.shape);
    if (built.graph) weft_graph_destroy(&built.graph);
    return status;
}

/* ---- plans ---------------------------------------------------------------------------------------------------- */

static bool fits(const advising *a, int64_t bytes)
{
    return a->s.options->memory <= 0 || bytes <= a->s.options->memory;
}

static void note(const advising *a, const weft_choice *choice, const weft_search_price *price,
                 weft_advised *to)
{
    *to = (weft_advised){.choice = *choice,
                         .seconds = price->prediction.seconds,
                         .work_seconds = price->prediction.work_seconds,
                         .exposed_seconds = price->prediction.exposed_seconds,
                         .bytes = price->bytes};
    weft_neighbours_tell(a->from, choice, to->options, sizeof to->options);
}

/* All layers, for the machine. */
static weft_status plan_whole(advising *a, const weft_choice *choice, weft_advised *planned,
                              weft_error *error)
{
    weft_search_price price;
    weft_search_price_choice(&a->s, choice, WEFT_WHOLE, &price);
    a->advice->n_planned++;
    if (price.status != WEFT_OK) return weft_fail(error, price.status, "%s", price.error.message);
    note(a, choice, &price, planned);
    return WEFT_OK;
}

/* The same of a neighbour; false: it cannot be planned as a whole, and is left out. All else ends the advice. */
static weft_status try_whole(advising *a, const weft_choice *choice, weft_advised *planned,
                             bool *is_there, weft_error *error)
{
    weft_error own = WEFT_NO_ERROR;
    const weft_status status = plan_whole(a, choice, planned, &own);
    *is_there = status == WEFT_OK;
    if (status == WEFT_OK || status == WEFT_USAGE) return WEFT_OK;
    return weft_fail(error, status, "%s", own.message);
}

static bool is_over(const advising *a)
{
    const double seconds = a->s.options->seconds;
    return seconds > 0 && weft_sync_seconds() - a->begun >= seconds;
}

static void judge_one(void *context, int piece)
{
    advising *a = context;
    a->prices[piece].status = WEFT_USAGE;
    if (!is_over(a))
        weft_search_price_choice(&a->s, &a->neighbours.list[piece], WEFT_BY_USUAL_PRICES,
                                 &a->prices[piece]);
}

static int quickest_first(const void *a, const void *b)
{
    const weft_advised *x = a, *y = b;
    if (x->seconds != y->seconds) return x->seconds < y->seconds ? -1 : 1;
    return strcmp(x->options, y->options);
}

/* The neighbours that can be planned, the quickest first; returns how many. Some that do not go together cannot. */
static int judge_all(advising *a, const weft_choice *from)
{
    const int threads =
        a->s.options->threads > 0 ? a->s.options->threads : weft_machine_info()->n_cores;
    int n = 0;
    weft_neighbours_find(a->s.options, from, a->dims, a->n_dims, &a->neighbours);
    weft_search_crew_do(threads, a->neighbours.n, judge_one, a);
    a->advice->n_neighbours += a->neighbours.n;
    for (int i = 0; i < a->neighbours.n; i++)
        if (a->prices[i].status == WEFT_OK)
            note(a, &a->neighbours.list[i], &a->prices[i], &a->judged[n++]);
    qsort(a->judged, (size_t)n, sizeof *a->judged, quickest_first);
    return n;
}

static void keep(weft_advice *advice, const weft_advised *planned)
{
    int at = advice->n < WEFT_MAX_ADVISED ? advice->n++ : WEFT_MAX_ADVISED;
    for (; at > 0 && quickest_first(planned, &advice->best[at - 1]) < 0; at--)
        if (at < WEFT_MAX_ADVISED) advice->best[at] = advice->best[at - 1];
    if (at < WEFT_MAX_ADVISED) advice->best[at] = *planned;
}

/* Those that look better than the current one are planned as a whole, as it is, until the best are known. */
static weft_status find_quicker(advising *a, int n, const weft_search_price *judged_now,
                                weft_error *error)
{
    weft_advice *advice = a->advice;
    const int most = judged_now->is_estimate ? MOST_WHOLE : WEFT_MAX_ADVISED;
    for (int i = 0, tried = 0; i < n && tried < most; i++) {
        weft_advised planned = a->judged[i];
        if (!fits(a, planned.bytes)) continue;
        if (planned.seconds >= judged_now->prediction.seconds) return WEFT_OK;
        tried++;
        bool is_there = true;
        if (judged_now->is_estimate)
            WEFT_TRY(try_whole(a, &a->judged[i].choice, &planned, &is_there, error));
        if (is_there && fits(a, planned.bytes) && planned.seconds < advice->seconds)
            keep(advice, &planned);
    }
    return WEFT_OK;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static int smallest_first(const void *a, const void *b)
{
    const weft_advised *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return quickest_first(a, b);
}

/* The first that really needs less than the smallest until now, which it becomes; false: none of those that look best does. */
static weft_status go_smaller(advising *a, int n, bool *is_smaller, weft_error *error)
{
    weft_advice *advice = a->advice;
    *is_smaller = false;
    qsort(a->judged, (size_t)n, sizeof *a->judged, smallest_first);
    for (int i = 0; i < n && i < MOST_WHOLE && !*is_smaller; i++) {
        weft_advised planned;
        bool is_there;
        WEFT_TRY(try_whole(a, &a->judged[i].choice, &planned, &is_there, error));
        if (!is_there) continue;
        *is_smaller =
            planned.bytes < (advice->smallest.bytes > 0 ? advice->smallest.bytes : advice->bytes);
        if (*is_smaller) advice->smallest = planned;
    }
    return WEFT_OK;
}

/* The quickest of those that are to fit, if they do. */
static weft_status find_fitting(advising *a, int n, weft_error *error)
{
    for (int i = 0; i < n; i++) {
        weft_advised planned;
        bool is_there;
        if (!fits(a, a->judged[i].bytes)) continue;
        WEFT_TRY(try_whole(a, &a->judged[i].choice, &planned, &is_there, error));
        if (!is_there || !fits(a, planned.bytes)) continue;
        keep(a->advice, &planned);
        return WEFT_OK;
    }
    return WEFT_OK;
}

/* From neighbour to neighbour, each of which needs less. */
static weft_status find_smaller(advising *a, weft_error *error)
{
    weft_choice at = *a->from;
    bool is_smaller = true;
    for (int change = 0; change < MOST_CHANGES && is_smaller; change++) {
        const int n = judge_all(a, &at);
        WEFT_TRY(find_fitting(a, n, error));
        if (a->advice->n > 0) return WEFT_OK;
        WEFT_TRY(go_smaller(a, n, &is_smaller, error));
        at = a->advice->smallest.choice;
    }
    return WEFT_OK;
}

static weft_status advise(advising *a, weft_error *error)
{
    weft_advised now;
    weft_search_price judged;
    WEFT_TRY(find_dims(a, error));
    WEFT_TRY(plan_whole(a, a->from, &now, error));
    a->advice->seconds = now.seconds;
    a->advice->work_seconds = now.work_seconds;
    a->advice->exposed_seconds = now.exposed_seconds;
    a->advice->bytes = now.bytes;
    a->advice->fits = fits(a, now.bytes);
    if (!a->advice->fits) return find_smaller(a, error);
    weft_search_price_choice(&a->s, a->from, WEFT_BY_USUAL_PRICES, &judged);
    if (judged.status != WEFT_OK)
        return weft_fail(error, judged.status, "%s", judged.error.message);
    return find_quicker(a, judge_all(a, a->from), &judged, error);
}

weft_status weft_advise(weft_search_builder build, void *context,
                        const weft_search_options *options, const weft_choice *from,
                        weft_advice *advice, weft_error *error)
{
    WEFT_GIVEN(build, error);
    WEFT_GIVEN(options, error);
    WEFT_GIVEN(from, error);
    WEFT_GIVEN(advice, error);
    WEFT_GIVEN(options->machine, error);
    WEFT_GIVEN_RANGE(from->n_knobs, 0, WEFT_MAX_KNOBS, error);
    if (from->n_knobs > 0) WEFT_GIVEN(from->knobs, error);
    advising *a = calloc(1, sizeof *a);
    *advice = (weft_advice){0};
    if (!a) return weft_fail_memory(error, sizeof *a);
    a->s = (searching){.build = build, .context = context, .options = options};
    a->from = from;
    a->advice = advice;
    a->begun = weft_sync_seconds();
    const weft_status status = advise(a, error);
    free(a);
    return status;
}
