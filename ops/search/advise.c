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

enum { MOST_DIMS = 32, MOST_WHOLE = 4, MOST_CHANGES = 8 };

typedef struct advising {
    weft_search_builder build;
    void *context;
    const weft_search_options *options;
    const weft_choice *from;
    weft_advice *advice;
    int n_dims;
    char names[MOST_DIMS][WEFT_MAX_NAME + 1];
    const char *dims[MOST_DIMS];
    search_neighbours neighbours;
    weft_advised judged[WEFT_NEIGHBOURS]; /* those that could be planned, by few layers */
} advising;

/* ---- one plan ------------------------------------------------------------------------------------------------- */

static void add_dims(advising *a, const weft_shape *shape)
{
    for (int d = 0; d < shape->n_dims; d++) {
        int at = 0;
        while (at < a->n_dims && strcmp(a->names[at], shape->dims[d].name) != 0)
            at++;
        if (at < a->n_dims || at == MOST_DIMS || shape->dims[d].size < 2) continue;
        strcpy(a->names[at], shape->dims[d].name);
        a->dims[at] = a->names[at];
        a->n_dims++;
    }
}

/* Names that a program gives to variables and inputs, and to what is named: the others are the compiler's. */
static void find_dims(advising *a, const weft_graph *graph)
{
    for (uint32_t v = 1; v < graph->n_tensors; v++)
        if (graph->tensors[v].name) add_dims(a, &graph->tensors[v].type.shape);
}

/* By usual prices, which is a quarter of the work of a plan for the machine. */
static weft_status compile(advising *a, const weft_choice *choice, weft_mesh *mesh,
                           const weft_layout *layout, weft_search_built *built,
                           weft_program **program, weft_error *error)
{
    WEFT_TRY(a->build(a->context, choice, built, error));
    if (a->n_dims == 0) find_dims(a, built->graph);
    built->options.machine = NULL;
    return weft_compile(mesh, layout, (weft_values){built->values, built->n_values},
                        &built->options, program, error);
}

static weft_status weigh(advising *a, const weft_program *program, weft_advised *planned,
                         weft_error *error)
{
    const weft_predict_options options = {.host_ranks = a->options->host_ranks};
    weft_prediction prediction;
    weft_usage usage;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    WEFT_TRY(weft_plan_predict(program, a->options->machine, &options, &prediction, error));
    planned->seconds = prediction.seconds;
    planned->bytes = usage.total_bytes;
    return WEFT_OK;
}

static weft_status plan_part(advising *a, const weft_choice *choice, weft_advised *planned,
                             weft_error *error)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_search_built built = {0};
    weft_status status = weft_mesh_plan(choice->mesh, &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create(choice->layout, &layout, error);
    if (status == WEFT_OK && choice->zero > 0)
        status = weft_layout_store(layout, choice->zero, a->options->store_dim, error);
    if (status == WEFT_OK) status = compile(a, choice, mesh, layout, &built, &program, error);
    if (status == WEFT_OK) status = weigh(a, program, planned, error);
    planned->choice = *choice;
    (void)!weft_program_destroy(&program);
    weft_graph_destroy(&built.graph);
    weft_layout_destroy(&layout);
    (void)!weft_mesh_destroy(&mesh);
    return status;
}

/* By two plans of few layers; where the layers are few, by the whole. */
static weft_status judge(advising *a, const weft_choice *choice, weft_advised *judged,
                         weft_error *error)
{
    weft_choice part = *choice;
    weft_advised more;
    const int64_t few = weft_search_few_layers(a->options, choice);
    part.layers = few;
    WEFT_TRY(plan_part(a, &part, judged, error));
    judged->choice.layers = 0;
    if (few == 0) return WEFT_OK;
    part.layers = few + few / 2;
    WEFT_TRY(plan_part(a, &part, &more, error));
    const double steps = (double)(a->options->layers - few) / (double)(few / 2);
    judged->seconds += steps * (more.seconds - judged->seconds);
    judged->bytes += (int64_t)(steps * (double)(more.bytes - judged->bytes));
    return WEFT_OK;
}

/* All layers, for the machine. */
static weft_status plan_whole(advising *a, const weft_choice *choice, weft_advised *planned,
                              weft_error *error)
{
    weft_search_built built;
    weft_program *program;
    weft_prediction prediction;
    weft_choice whole = *choice;
    whole.layers = 0;
    a->advice->n_planned++;
    WEFT_TRY(weft_search_plan(a->build, a->context, a->options, &whole, &built, &program,
                              &prediction, error));
    const weft_status status = weigh(a, program, planned, error);
    weft_mesh *mesh = (weft_mesh *)(uintptr_t)weft_program_mesh(program);
    (void)!weft_program_destroy(&program);
    (void)!weft_mesh_destroy(&mesh);
    weft_graph_destroy(&built.graph);
    planned->choice = whole;
    weft_neighbours_tell(a->from, &planned->choice, planned->options, sizeof planned->options);
    return status;
}

/* ---- ranks ---------------------------------------------------------------------------------------------------- */

static bool fits(const advising *a, const weft_advised *planned)
{
    return a->options->memory <= 0 || planned->bytes <= a->options->memory;
}

static int quickest_first(const void *a, const void *b)
{
    const weft_advised *x = a, *y = b;
    if (x->seconds != y->seconds) return x->seconds < y->seconds ? -1 : 1;
    return strcmp(x->options, y->options);
}

/* Returns how many could be planned. */
static int judge_all(advising *a, const weft_choice *from)
{
    int n = 0;
    weft_neighbours_find(a->options, from, a->dims, a->n_dims, &a->neighbours);
    a->advice->n_neighbours += a->neighbours.n;
    for (int i = 0; i < a->neighbours.n; i++) {
        weft_error ignored = WEFT_NO_ERROR;
        weft_advised *judged = &a->judged[n];
        if (judge(a, &a->neighbours.list[i], judged, &ignored) != WEFT_OK) continue;
        weft_neighbours_tell(a->from, &judged->choice, judged->options, sizeof judged->options);
        n++;
    }
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

/* Those that look best are planned as a whole, for the machine, as the current one is. */
static weft_status find_quicker(advising *a, int n, double judged_now, weft_error *error)
{
    weft_advice *advice = a->advice;
    for (int i = 0, tried = 0; i < n && tried < MOST_WHOLE; i++) {
        weft_advised planned;
        if (!fits(a, &a->judged[i])) continue;
        if (a->judged[i].seconds >= judged_now) return WEFT_OK;
        tried++;
        WEFT_TRY(plan_whole(a, &a->judged[i].choice, &planned, error));
        if (fits(a, &planned) && planned.seconds < advice->seconds) keep(advice, &planned);
    }
    return WEFT_OK;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static const weft_advised *smallest_of(const weft_advised *judged, int n)
{
    const weft_advised *found = NULL;
    for (int i = 0; i < n; i++)
        if (!found || judged[i].bytes < found->bytes) found = &judged[i];
    return found;
}

/* The quickest of those that are to fit, if they do. */
static weft_status find_fitting(advising *a, int n, weft_error *error)
{
    for (int i = 0; i < n; i++) {
        weft_advised planned;
        if (!fits(a, &a->judged[i])) continue;
        WEFT_TRY(plan_whole(a, &a->judged[i].choice, &planned, error));
        if (!fits(a, &planned)) continue;
        keep(a->advice, &planned);
        return WEFT_OK;
    }
    return WEFT_OK;
}

/* From neighbour to neighbour, each of which needs less. */
static weft_status find_smaller(advising *a, weft_error *error)
{
    weft_advice *advice = a->advice;
    weft_choice at = *a->from;
    int64_t bytes = advice->bytes;
    for (int change = 0; change < MOST_CHANGES && advice->n == 0; change++) {
        const int n = judge_all(a, &at);
        const weft_advised *smallest = smallest_of(a->judged, n);
        if (!smallest) return WEFT_OK;
        at = smallest->choice;
        WEFT_TRY(find_fitting(a, n, error));
        if (advice->n > 0) return WEFT_OK;
        WEFT_TRY(plan_whole(a, &at, &advice->smallest, error));
        if (advice->smallest.bytes >= bytes) return WEFT_OK;
        bytes = advice->smallest.bytes;
    }
    return WEFT_OK;
}

static weft_status advise(advising *a, weft_error *error)
{
    weft_advised now, judged;
    WEFT_TRY(plan_whole(a, a->from, &now, error));
    WEFT_TRY(judge(a, a->from, &judged, error));
    a->advice->seconds = now.seconds;
    a->advice->bytes = now.bytes;
    a->advice->fits = fits(a, &now);
    if (!a->advice->fits) return find_smaller(a, error);
    return find_quicker(a, judge_all(a, a->from), judged.seconds, error);
}

weft_status weft_advise(weft_search_builder build, void *context,
                        const weft_search_options *options, const weft_choice *from,
                        weft_advice *advice, weft_error *error)
{
    if (!build) return weft_fail(error, WEFT_USAGE, "weft_advise: build is NULL");
    WEFT_GIVEN(options, error);
    WEFT_GIVEN(from, error);
    WEFT_GIVEN(advice, error);
    advising *a = calloc(1, sizeof *a);
    *advice = (weft_advice){0};
    if (!a) return weft_fail_memory(error, sizeof *a);
    *a = (advising){
        .build = build, .context = context, .options = options, .from = from, .advice = advice};
    const weft_status status = advise(a, error);
    free(a);
    return status;
}
