/* calibrate: how fast this machine computes and exchanges, measured in a minute.
 *
 * A host may have 1, 2, 4, ... ranks, which share its cores. For each number all ranks compute the same at once, as in a run, so
 * the figures include what they share: caches and memory. The order is: an empty step, memory, arithmetic, kernels of the named
 * programs, kernels of nets, exchanges. A probe before and after tells whether anything else used the machine.
 */
#include "calibrating.h"
#include "classes.h"
#include "program.h"
#include "sync.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft/collectives.h"

enum { LEAST_ROUNDS = 5, MOST_ROUNDS = 101, MOST_KINDS = 4, PROBES = 3, ROOM = 1 << 30 };
static const double SUBJECT_PART =
    0.004; /* of the budget: what the rounds of one subject may take together */
static const double USUAL_BUDGET_S = 60; /* of all */
static const double LOADS_PART = 0.75;   /* of the budget; the rest is for exchanges */
static const double NOISY = 0.1;         /* probes that are farther apart are of another machine */

static double now_s(void)
{
    return 1e-9 * (double)weft_sync_now();
}

double weft_calibrating_part(const calibrating *c)
{
    return fmin(1, (now_s() - c->begin) / c->budget);
}

void weft_calibrating_tell(const calibrating *c, const char *what)
{
    if (c->options->progress)
        c->options->progress(c->options->context, what, weft_calibrating_part(c));
}

/* What there is no time for. */
void weft_calibrating_leave(calibrating *c, const char *what)
{
    int l = 0;
    while (l < c->n_left && strcmp(c->left[l].what, what) != 0)
        l++;
    if (l == WEFT_CALIBRATE_LEFT) return;
    if (l == c->n_left) c->left[c->n_left++].what = what;
    c->left[l].n++;
}

static void tell_left(const calibrating *c)
{
    for (int l = 0; l < c->n_left && c->options->left_out; l++)
        c->options->left_out(c->options->context, c->left[l].what, c->left[l].n);
}

/* ---- a program ---------------------------------------------------------------------------------------- */

/* What to do with a step that was timed. */
typedef weft_status (*taker)(calibrating *c, const weft_workload *work, double seconds,
                             double spread);

/* More rounds of what is short. */
static weft_status time_program(calibrating *c, const weft_program *program, int rank,
                                double *seconds, double *spread)
{
    double all = 0;
    WEFT_TRY(weft_plan_measure(program, rank, c->host, 1, seconds, spread, c->error));
    for (uint32_t s = 0; s < program->plan->n_steps; s++)
        all += seconds[s];
    const double rounds = SUBJECT_PART * c->budget / fmax(all, 1e-6);
    const int n = rounds < LEAST_ROUNDS  ? LEAST_ROUNDS
                  : rounds > MOST_ROUNDS ? MOST_ROUNDS
                                         : (int)rounds;
    return weft_plan_measure(program, rank, c->host, n, seconds, spread, c->error);
}

static weft_status measure_program(calibrating *c, const weft_program *program, int rank,
                                   taker take)
{
    const weft_plan *plan = program->plan;
    double *seconds = calloc(2 * (size_t)plan->n_steps + 1, sizeof *seconds),
           *spread = seconds + plan->n_steps;
    if (!seconds) return weft_fail_memory(c->error, plan->n_steps * sizeof *seconds);
    weft_status status = time_program(c, program, rank, seconds, spread);
    for (uint32_t s = 0; s < plan->n_steps && status == WEFT_OK; s++) {
        weft_workload work;
        weft_step_workload(plan, &plan->steps[s], rank, &work);
        if (seconds[s] > 0 && work.name && strcmp(work.name, "move") != 0)
            status = take(c, &work, seconds[s], spread[s]);
    }
    free(seconds);
    return status;
}

/* What takes too much for so many ranks at once is left out; smaller ones say nearly the same. */
static bool has_room(const calibrating *c, const weft_program *program)
{
    weft_usage usage = {0};
    weft_error ignored = WEFT_NO_ERROR;
    return weft_plan_usage(program, 0, &usage, &ignored) == WEFT_OK &&
           (double)usage.total_bytes * c->load->ranks <= ROOM;
}

/* A subject is planned for one rank: all ranks of the load do it whole, each for itself. */
static weft_status measure_subject(calibrating *c, const weft_subject *subject, taker take)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_status status = graph ? WEFT_OK : weft_fail_memory(c->error, sizeof graph);
    c->subject = subject;
    if (status == WEFT_OK) status = weft_mesh_plan("one:1", &mesh, c->error);
    if (status == WEFT_OK) status = weft_layout_create("", &layout, c->error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(subject->build(graph, subject)), NULL,
                              &program, c->error);
    if (status == WEFT_OK && has_room(c, program)) status = measure_program(c, program, 0, take);
    (void)!weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    (void)!weft_mesh_destroy(&mesh);
    return status;
}

/* The list as far as the budget reaches; the first of it always. */
static weft_status measure_list(calibrating *c, const weft_subject *list, double until, taker take)
{
    int i = 0;
    for (; list[i].name && (i == 0 || weft_calibrating_part(c) < until); i++) {
        weft_calibrating_tell(c, list[i].name);
        WEFT_TRY(measure_subject(c, &list[i], take));
    }
    for (; list[i].name; i++)
        weft_calibrating_leave(c, list[i].name);
    return WEFT_OK;
}

/* ---- what is taken of a step ------------------------------------------------------------------------------ */

static weft_status take_empty(calibrating *c, const weft_workload *work, double seconds,
                              double spread)
{
    (void)work, (void)spread;
    c->load->step_seconds = seconds;
    return WEFT_OK;
}

/* What of the seconds is the work's own. */
static double own_seconds(const calibrating *c, double seconds)
{
    return fmax(seconds - c->load->step_seconds, 0.01 * seconds);
}

static weft_status take_stream(calibrating *c, const weft_workload *work, double seconds,
                               double spread)
{
    (void)spread;
    return weft_curve_add(c->model->arena, &c->load->byte_rate, work->bytes,
                          work->bytes / own_seconds(c, seconds), c->error);
}

/* The first are plain ones; their numbers stand for ops that have none. */
static weft_status take_act(calibrating *c, const weft_workload *work, double seconds,
                            double spread)
{
    double elements = 0;
    (void)spread;
    for (int a = 0; a < work->n_acts; a++)
        elements += work->acts[a].elements;
    if (elements == 0) return WEFT_OK;
    const double each = own_seconds(c, seconds) / elements;
    const bool is_first = c->load->other_act == 0;
    if (is_first) c->load->other_act = each;
    return is_first ? WEFT_OK
                    : weft_machine_add_act(c->model, c->load, work->acts[0].op, each, c->error);
}

static weft_status take_sample(calibrating *c, const weft_workload *work, double seconds,
                               double spread)
{
    return weft_machine_add_sample(c->model, c->load, work, seconds, spread, c->error);
}

/* Square ones make the curve; all are samples. */
static weft_status take_product(calibrating *c, const weft_workload *work, double seconds,
                                double spread)
{
    const int64_t *size = c->subject->size;
    weft_curve *curve = &c->load->flop_rate[work->dtype];
    if (work->flops > 0 && size[0] == size[1] && size[1] == size[2])
        WEFT_TRY(weft_curve_add(c->model->arena, curve, work->flops,
                                work->flops / own_seconds(c, seconds), c->error));
    return take_sample(c, work, seconds, spread);
}

/* ---- programs of the caller's ----------------------------------------------------------------------------- */

/* Of each kind of rank, but the same kernels once; the first always. */
static weft_status measure_given(calibrating *c)
{
    for (int p = 0; p < c->options->n_programs; p++) {
        const weft_program *program = c->options->programs[p];
        weft_classes classes;
        weft_find_classes(program->plan, -1, &classes);
        for (int k = 0; k < classes.n && k < MOST_KINDS; k++) {
            const bool has_time = k == 0 || weft_calibrating_part(c) < 1;
            weft_calibrating_tell(c, "the program");
            if (!has_time) weft_calibrating_leave(c, "kinds of ranks of the program");
            if (has_time)
                WEFT_TRY(measure_program(c, program, weft_class_rank(program->plan, &classes, k),
                                         take_sample));
        }
    }
    return WEFT_OK;
}

/* ---- loads -------------------------------------------------------------------------------------------------- */

static weft_status take_probe(calibrating *c, const weft_workload *work, double seconds,
                              double spread)
{
    (void)work, (void)spread;
    c->probed = fmin(c->probed, seconds);
    return WEFT_OK;
}

/* The best of a few: a short disturbance is none of what is measured longer. */
static weft_status probe(calibrating *c, double *seconds)
{
    c->probed = INFINITY;
    for (int i = 0; i < PROBES; i++)
        WEFT_TRY(measure_subject(c, weft_calibrate_products, take_probe));
    *seconds = c->probed;
    return WEFT_OK;
}

/* `from` and `until` are parts of the budget. */
static weft_status measure_all(calibrating *c, double from, double until)
{
    const double part = until - from;
    WEFT_TRY(measure_subject(c, &weft_calibrate_empty, take_empty));
    WEFT_TRY(measure_list(c, weft_calibrate_streams, from + 0.3 * part, take_stream));
    WEFT_TRY(measure_list(c, weft_calibrate_acts, from + 0.4 * part, take_act));
    WEFT_TRY(measure_list(c, weft_calibrate_products, from + 0.75 * part, take_product));
    WEFT_TRY(measure_given(c));
    return measure_list(c, weft_calibrate_others, until, take_sample);
}

static weft_status measure_load(calibrating *c, double from, double until, bool is_there)
{
    double before, after;
    WEFT_TRY(probe(c, &before));
    WEFT_TRY(is_there ? measure_given(c) : measure_all(c, from, until));
    WEFT_TRY(probe(c, &after));
    c->model->spread = fmax(c->model->spread, fabs(after - before) / fmin(after, before));
    return WEFT_OK;
}

/* The ranks of a mesh of this process alone, with so many lanes each. */
static weft_status open_host(calibrating *c, int ranks, int lanes)
{
    char text[24];
    snprintf(text, sizeof text, "rank:%d", ranks);
    weft_lanes_choose(lanes);
    const weft_status status = weft_mesh_create(&c->alone, text, &c->host, c->error);
    weft_lanes_choose(0);
    return status;
}

/* The load of a model that is added to, or one more. */
static weft_status find_load(calibrating *c, int ranks, int lanes, bool *is_there)
{
    c->load = NULL;
    for (int l = 0; l < c->model->n_loads; l++)
        if (c->model->loads[l].ranks == ranks) c->load = &c->model->loads[l];
    *is_there = c->load != NULL;
    if (!c->load) return weft_machine_add_load(c->model, ranks, lanes, &c->load, c->error);
    if (c->load->lanes == lanes) return WEFT_OK;
    return weft_fail(c->error, WEFT_USAGE,
                     "the machine file was measured with %d lanes for each of %d ranks, and here "
                     "each has %d; name another file, which is then measured whole",
                     c->load->lanes, ranks, lanes);
}

static weft_status calibrate_load(calibrating *c, int here, int ranks, int lanes, double from,
                                  double until)
{
    bool is_there;
    WEFT_TRY(find_load(c, ranks, lanes, &is_there));
    weft_status status = open_host(c, here, lanes);
    if (status == WEFT_OK) status = measure_load(c, from, until, is_there);
    (void)!weft_mesh_destroy(&c->host);
    return status;
}

/* 1, 2, 4, ... and all cores: how many ranks a host may have. */
static int next_ranks(int ranks, int cores)
{
    return ranks < cores && 2 * ranks > cores ? cores : 2 * ranks;
}

static weft_status calibrate_loads(calibrating *c, int cores)
{
    int n = 0, k = 0;
    for (int ranks = 1; ranks <= cores; ranks = next_ranks(ranks, cores))
        n++;
    for (int ranks = 1; ranks <= cores; ranks = next_ranks(ranks, cores), k++)
        WEFT_TRY(calibrate_load(c, ranks, ranks, cores / ranks, LOADS_PART * k / n,
                                LOADS_PART * (k + 1) / n));
    return WEFT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static weft_status check_noise(const calibrating *c)
{
    if (c->model->spread <= NOISY || c->options->noisy) return WEFT_OK;
    return weft_fail(
        c->error, WEFT_USAGE,
        "the same product took %.0f %% longer at one time than at another: something "
        "else computes on this machine. "
        "End it, or wait, or take what was measured all the same: noisy of the options",
        100 * c->model->spread);
}

/* What cannot be read again is not written. Clocks that go back, or leap, make such figures. */
static weft_status check_figures(const calibrating *c)
{
    weft_machine_model *again = NULL;
    weft_error own = WEFT_NO_ERROR;
    const weft_status status = weft_machine_model_copy(c->model, &again, &own);
    weft_machine_model_destroy(&again);
    if (status != WEFT_USAGE)
        return status == WEFT_OK ? WEFT_OK : weft_fail(c->error, status, "%s", own.message);
    return weft_fail(c->error, WEFT_USAGE,
                     "what was measured cannot be: %.200s; did this machine's clock jump? Measure "
                     "it again",
                     own.message);
}

static weft_status open_model(calibrating *c, int cores)
{
    const weft_machine *found = weft_machine_info();
    char made[80];
    struct tm day;
    const time_t now = time(NULL);
    if (c->options->base) return weft_machine_model_copy(c->options->base, &c->model, c->error);
    localtime_r(&now, &day);
    strftime(made, sizeof made, "measured on %Y-%m-%d at %H:%M", &day);
    return weft_machine_model_make(c->options->name && *c->options->name ? c->options->name
                                                                         : "here",
                                   found->processor, made, cores, &c->model, c->error);
}

static weft_status calibrate(calibrating *c, const weft_world *world)
{
    const int cores = weft_machine_info()->n_cores;
    WEFT_TRY(weft_world_any(c->options->base != NULL, &c->adds, c->error));
    WEFT_TRY(open_model(c, cores));
    if (world->n_processes == 1) {
        WEFT_TRY(calibrate_loads(c, cores));
        if (!c->adds) WEFT_TRY(weft_calibrate_threads(c, cores));
    } else {
        const int near = world->n_host_processes, lanes = world->cores >= 1 ? (int)world->cores : 1;
        WEFT_TRY(calibrate_load(c, 1, near, lanes, 0, LOADS_PART));
        if (!c->adds) WEFT_TRY(weft_calibrate_processes(c, world));
    }
    tell_left(c);
    WEFT_TRY(check_noise(c));
    const bool is_whole =
        !c->adds || c->options->base; /* others than the root may have nothing to add to */
    return is_whole ? check_figures(c) : WEFT_OK;
}

weft_status weft_calibrate(const weft_world *world, const weft_calibrate_options *options,
                           weft_machine_model **model, weft_error *error)
{
    static const weft_calibrate_options none;
    weft_error own = WEFT_NO_ERROR;
    WEFT_GIVEN(world, error);
    WEFT_GIVEN(model, error);
    calibrating c = {.options = options ? options : &none, .error = &own, .begin = now_s()};
    *model = NULL;
    c.budget = c.options->seconds > 0 ? c.options->seconds : USUAL_BUDGET_S;
    c.alone = (weft_world){.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    (void)!calibrate(&c, world);
    const weft_status status = weft_world_agree(&own);
    if (status == WEFT_OK)
        *model = c.model;
    else
        weft_machine_model_destroy(&c.model);
    return status == WEFT_OK ? WEFT_OK : weft_fail(error, status, "%s", own.message);
}
