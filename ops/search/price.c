/* price: a choice planned and predicted, on a mesh without ranks.
 *
 * All of it: its plan for the machine, and the memory of every kind of rank. Where layers are
 * alike there are estimates besides. They come from plans of few layers and of some more, since seconds and bytes are a + b layers: by
 * usual prices, or for the machine, which takes as many times as long.
 */
#include "searching.h"

#include "classes.h"

#include <math.h>

typedef struct planned {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_built_graph built;
    weft_program *program;
} planned;

static void drop(planned *p)
{
    (void)weft_program_destroy(&p->program);
    weft_layout_destroy(&p->layout);
    (void)weft_mesh_destroy(&p->mesh);
    if (p->built.graph) (void)weft_graph_destroy(&p->built.graph);
}

static weft_status plan(searching *s, const weft_choice *choice, bool is_for_machine, planned *p,
                        weft_error *error)
{
    const char *store = s->options->store_dim;
    *p = (planned){0};
    WEFT_TRY(weft_search_call_builder(s, choice, &p->built, error));
    WEFT_TRY(weft_mesh_plan(choice->mesh[0] ? choice->mesh : "one:1", &p->mesh, error));
    WEFT_TRY(weft_layout_create(choice->layout, &p->layout, error));
    if (choice->zero > 0) WEFT_TRY(weft_layout_store(p->layout, choice->zero, store, error));
    p->built.options.machine = is_for_machine ? s->options->machine : NULL;
    return weft_compile(p->mesh, p->layout, (weft_values){p->built.values, p->built.n_values},
                        &p->built.options, &p->program, error);
}

/* The rank that needs most: one of each kind is asked. */
static weft_status most_bytes(const weft_program *program, bool is_of_all, int64_t *bytes,
                              weft_error *error)
{
    weft_classes classes;
    weft_usage usage;
    *bytes = 0;
    weft_find_classes(program->plan, -1, &classes);
    for (int c = 0; c < (is_of_all ? classes.n : 1); c++) {
        const int rank = weft_class_rank(program->plan, &classes, c);
        WEFT_TRY(weft_plan_usage(program, rank, &usage, error));
        if (usage.total_bytes > *bytes) *bytes = usage.total_bytes;
    }
    return WEFT_OK;
}

static weft_status price(searching *s, const weft_choice *choice, bool is_for_machine,
                         weft_search_price *to, weft_error *error)
{
    planned p;
    const weft_predict_options options = {.host_ranks = s->options->host_ranks};
    weft_status status = plan(s, choice, is_for_machine, &p, error);
    if (status == WEFT_OK) status = most_bytes(p.program, is_for_machine, &to->bytes, error);
    if (status == WEFT_OK)
        status =
            weft_plan_predict(p.program, s->options->machine, &options, &to->prediction, error);
    drop(&p);
    return status;
}

/* ---- a + b layers ------------------------------------------------------------------------------------ */

static void go_on(double *few, double more, double left)
{
    *few += left * (more - *few);
}

static void extrapolate(weft_search_price *few, const weft_search_price *more, double left)
{
    weft_prediction *p = &few->prediction;
    const weft_prediction *q = &more->prediction;
    few->bytes += (int64_t)(left * (double)(more->bytes - few->bytes));
    go_on(&p->seconds, q->seconds, left);
    go_on(&p->work_seconds, q->work_seconds, left);
    go_on(&p->exchange_seconds, q->exchange_seconds, left);
    go_on(&p->exposed_seconds, q->exposed_seconds, left);
    go_on(&p->late_seconds, q->late_seconds, left);
    for (int i = 0; i < WEFT_PHASES; i++)
        go_on(&p->phase_seconds[i], q->phase_seconds[i], left);
}

static weft_status estimate(searching *s, const weft_choice *choice, int64_t few_layers,
                            bool is_for_machine, weft_search_price *to)
{
    weft_search_price more = {0};
    weft_choice some = *choice;
    some.layers = few_layers;
    WEFT_TRY(price(s, &some, is_for_machine, to, &to->error));
    some.layers += few_layers / 2;
    WEFT_TRY(price(s, &some, is_for_machine, &more, &to->error));
    extrapolate(to, &more,
                (double)(s->options->layers - few_layers) / (double)(some.layers - few_layers));
    return WEFT_OK;
}

void weft_search_price_choice(searching *s, const weft_choice *choice, weft_search_care care,
                              weft_search_price *to)
{
    const int64_t few = care == WEFT_WHOLE ? 0 : weft_search_few_layers(s->options, choice);
    *to = (weft_search_price){.is_estimate = few > 0};
    to->status = few > 0 ? estimate(s, choice, few, care == WEFT_FOR_MACHINE, to)
                         : price(s, choice, true, to, &to->error);
}

weft_status weft_search_plan_choice(searching *s, const weft_choice *choice,
                                    weft_built_graph *built, weft_program **program,
                                    weft_prediction *prediction, weft_error *error)
{
    planned p = {0};
    const weft_predict_options how = {.host_ranks = s->options->host_ranks};
    weft_status status = plan(s, choice, true, &p, error);
    if (status == WEFT_OK)
        status = weft_plan_predict(p.program, s->options->machine, &how, prediction, error);
    weft_layout_destroy(&p.layout);
    *built = p.built;
    *program = p.program;
    if (status == WEFT_OK) return WEFT_OK;
    drop(&p);
    *program = NULL;
    built->graph = NULL;
    return status;
}

weft_status weft_search_plan(weft_search_builder build, void *context,
                             const weft_search_options *options, const weft_choice *choice,
                             weft_built_graph *built, weft_program **program,
                             weft_prediction *prediction, weft_error *error)
{
    WEFT_GIVEN(program, error);
    *program = NULL;
    WEFT_GIVEN(build, error);
    WEFT_GIVEN(options, error);
    WEFT_GIVEN(choice, error);
    WEFT_GIVEN(built, error);
    WEFT_GIVEN(prediction, error);
    WEFT_GIVEN(options->machine, error);
    searching s = {.build = build,
                   .context = context,
                   .options = options,
                   .building = PTHREAD_MUTEX_INITIALIZER};
    return weft_search_plan_choice(&s, choice, built, program, prediction, error);
}
