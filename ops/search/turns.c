/* turns: what would have to change for another choice to win: both plans stay, and one figure of the machine at a time is bisected. */
#include "searching.h"

#include "timeline.h"

#include <math.h>
#include <string.h>

enum { BISECTIONS = 12 };
static const double NEAR = 0.01;              /* of a factor: a prediction is no better */
static const double LEAST = 0.01, MOST = 100; /* times what the machine has */

typedef struct pair {
    const weft_plan *plans[2];
    const weft_machine_model *machine;
    int host_ranks;
} pair;

/* A figure of the machine made so many times as much. */
typedef void (*change)(weft_machine_model *model, int which, double factor);

static void scale(weft_curve *curve, double factor)
{
    for (int i = 0; i < curve->n; i++)
        curve->value[i] *= factor;
}

static void change_link(weft_machine_model *model, int level, double factor)
{
    model->levels[level].bytes_per_second *= factor;
    for (int e = 0; e < model->n_exchanges; e++)
        if (model->exchanges[e].level == level) scale(&model->exchanges[e].seconds, 1 / factor);
}

static void change_latency(weft_machine_model *model, int level, double factor)
{
    model->levels[level].latency_seconds *= factor;
}

static void change_products(weft_machine_model *model, int which, double factor)
{
    (void)which;
    for (int l = 0; l < model->n_loads; l++) {
        for (int d = 0; d < WEFT_DTYPES; d++)
            scale(&model->loads[l].flop_rate[d], factor);
        for (int i = 0; i < model->loads[l].n_samples; i++)
            if (model->loads[l].samples[i].work.flops > 0)
                model->loads[l].samples[i].seconds /= factor;
    }
}

static void change_memory(weft_machine_model *model, int which, double factor)
{
    (void)which;
    for (int l = 0; l < model->n_loads; l++)
        scale(&model->loads[l].byte_rate, factor);
}

/* By how much the second is slower, where the figure is so many times as much. */
static weft_status ahead(const pair *p, change how, int which, double factor, double *seconds,
                         weft_error *error)
{
    const weft_predict_options options = {.host_ranks = p->host_ranks};
    weft_machine_model *model;
    weft_prediction first = {0}, second = {0};
    WEFT_TRY(weft_machine_model_copy(p->machine, &model, error));
    how(model, which, factor);
    weft_status status = weft_timeline(p->plans[0], model, &options, &first, NULL, error);
    if (status == WEFT_OK)
        status = weft_timeline(p->plans[1], model, &options, &second, NULL, error);
    weft_machine_model_destroy(&model);
    *seconds = second.seconds - first.seconds;
    return status;
}

/* Between 1 and `end`, at which the second is not slower, the factor nearest to 1 that makes it so. */
static weft_status bisect(const pair *p, change how, int which, double end, double *factor,
                          weft_error *error)
{
    double near = 0, far = log(end);
    for (int i = 0; i < BISECTIONS && fabs(far - near) > NEAR; i++) {
        const double middle = (near + far) / 2;
        double behind;
        WEFT_TRY(ahead(p, how, which, exp(middle), &behind, error));
        if (behind > 0)
            near = middle;
        else
            far = middle;
    }
    *factor = exp(far);
    return WEFT_OK;
}

static weft_status turn(const pair *p, change how, int which, double *factor, weft_error *error)
{
    static const double ends[] = {2, 0.5, 10, 0.1, MOST, LEAST};
    double behind_now;
    *factor = 0;
    WEFT_TRY(ahead(p, how, which, 1, &behind_now, error));
    if (behind_now <= 0) {
        *factor = 1;
        return WEFT_OK;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        double behind;
        WEFT_TRY(ahead(p, how, which, ends[i], &behind, error));
        if (behind <= 0) return bisect(p, how, which, ends[i], factor, error);
    }
    return WEFT_OK;
}

/* Both choices are planned at once. */
typedef struct planning {
    searching *s;
    const weft_choice *const *choices;
    weft_built_graph built[2];
    weft_program *programs[2];
    weft_error errors[2];
} planning;

static void plan_piece(void *context, int piece)
{
    planning *p = context;
    weft_prediction prediction;
    (void)!weft_search_plan_choice(p->s, p->choices[piece], &p->built[piece], &p->programs[piece],
                                   &prediction, &p->errors[piece]);
}

static weft_status plan_both(planning *p, weft_error *error)
{
    weft_search_crew_do(p->s->threads, 2, plan_piece, p);
    for (int i = 0; i < 2; i++)
        if (p->errors[i].status != WEFT_OK)
            return weft_fail(error, p->errors[i].status, "%s", p->errors[i].message);
    return WEFT_OK;
}

static void drop_both(planning *p)
{
    for (int i = 0; i < 2; i++) {
        weft_mesh *mesh = weft_program_mesh(p->programs[i]);
        (void)weft_program_destroy(&p->programs[i]);
        (void)weft_mesh_destroy(&mesh);
        if (p->built[i].graph) (void)weft_graph_destroy(&p->built[i].graph);
    }
}

/* Figures are bisected on several threads. */
typedef struct figure {
    change how;
    int which;
    weft_turn *turn;
    weft_error error;
} figure;

typedef struct figures {
    const pair *pair;
    int n;
    figure all[WEFT_MAX_TURNS];
} figures;

static void add_figure(figures *f, weft_turn *turns, change how, int which, const char *what,
                       const char *name)
{
    if (f->n == WEFT_MAX_TURNS - 1) return;
    weft_turn *turn = &turns[f->n];
    *turn = (weft_turn){.factor = 0};
    snprintf(turn->what, sizeof turn->what, "%s%.40s", what, name);
    f->all[f->n++] = (figure){.how = how, .which = which, .turn = turn};
}

static void turn_piece(void *context, int piece)
{
    figures *f = context;
    figure *one = &f->all[piece];
    (void)!turn(f->pair, one->how, one->which, &one->turn->factor, &one->error);
}

static weft_status find_turns(const pair *p, int threads, weft_turn *turns, int *n,
                              weft_error *error)
{
    figures f = {.pair = p};
    for (int l = 0; l < p->machine->n_levels; l++)
        add_figure(&f, turns, change_link, l, "bytes a second of ", p->machine->levels[l].name);
    for (int l = 0; l < p->machine->n_levels; l++)
        add_figure(&f, turns, change_latency, l, "latency of ", p->machine->levels[l].name);
    add_figure(&f, turns, change_products, 0, "flops a second", "");
    add_figure(&f, turns, change_memory, 0, "bytes a second of memory", "");
    weft_search_crew_do(threads, f.n, turn_piece, &f);
    *n = f.n;
    for (int i = 0; i < f.n; i++)
        if (f.all[i].error.status != WEFT_OK)
            return weft_fail(error, f.all[i].error.status, "%s", f.all[i].error.message);
    return WEFT_OK;
}

/* ---- the batch ------------------------------------------------------------------------------------------ */

static int64_t *value_of(const weft_search_options *options, weft_choice *choice)
{
    for (int k = 0; options->batch_knob && k < choice->n_knobs; k++)
        if (strcmp(choice->knobs[k].name, options->batch_knob) == 0) return &choice->values[k];
    return NULL;
}

/* By how much the second is slower with so much work; false: one of the two is then no choice. */
static bool behind_with(searching *s, const weft_choice *const choices[2], int64_t value,
                        double *behind)
{
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        weft_search_price price;
        weft_choice choice = *choices[i];
        *value_of(s->options, &choice) = value;
        weft_search_price_choice(s, &choice, WEFT_BY_USUAL_PRICES, &price);
        if (price.status != WEFT_OK) return false;
        seconds[i] = price.prediction.seconds;
    }
    *behind = seconds[1] - seconds[0];
    return true;
}

/* Twice as much and more, then half as much and less. A batch is no figure to bisect: it has to be divided. Where estimates do not
 * have the first in front, they say nothing. */
static void turn_batch(searching *s, const weft_choice *const choices[2], weft_turn *turn)
{
    weft_choice first = *choices[0];
    const int64_t *value = value_of(s->options, &first);
    snprintf(turn->what, sizeof turn->what, "%.60s", s->options->batch_knob);
    for (int times = 1; times <= 16; times *= 2) {
        double behind;
        if (!behind_with(s, choices, *value * times, &behind)) break;
        if (behind <= 0) turn->factor = times > 1 ? times : 0;
        if (behind <= 0) return;
    }
    for (int times = 2; times <= 16 && *value % times == 0; times *= 2) {
        double behind;
        if (!behind_with(s, choices, *value / times, &behind)) break;
        if (behind <= 0) turn->factor = 1.0 / times;
        if (behind <= 0) return;
    }
}

weft_status weft_search_turns(weft_search_builder build, void *context,
                              const weft_search_options *options, const weft_choice *first,
                              const weft_choice *second, weft_turn *turns, int *n_turns,
                              weft_error *error)
{
    const weft_choice *choices[2] = {first, second};
    WEFT_GIVEN(build, error);
    WEFT_GIVEN(options, error);
    WEFT_GIVEN(options->machine, error);
    WEFT_GIVEN(first, error);
    WEFT_GIVEN(second, error);
    WEFT_GIVEN(turns, error);
    WEFT_GIVEN(n_turns, error);
    searching s = {.build = build,
                   .context = context,
                   .options = options,
                   .threads = weft_search_threads(options),
                   .building = PTHREAD_MUTEX_INITIALIZER};
    planning both = {.s = &s, .choices = choices, .errors = {WEFT_NO_ERROR, WEFT_NO_ERROR}};
    *n_turns = 0;
    weft_status status = plan_both(&both, error);
    if (status == WEFT_OK) {
        const pair p = {.plans = {both.programs[0]->plan, both.programs[1]->plan},
                        .machine = options->machine,
                        .host_ranks = options->host_ranks};
        status = find_turns(&p, s.threads, turns, n_turns, error);
    }
    weft_choice copy = *first;
    if (status == WEFT_OK && value_of(options, &copy) && *n_turns < WEFT_MAX_TURNS) {
        turns[*n_turns] = (weft_turn){.factor = 0};
        turn_batch(&s, choices, &turns[(*n_turns)++]);
    }
    drop_both(&both);
    return status;
}
