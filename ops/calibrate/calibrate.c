/* calibrate: how fast this machine computes and exchanges, measured in a minute.
 *
 * A host may have 1, 2, 4, ... ranks, which share its cores. For each number all ranks compute the same at once, as in a run, so
 * the figures include what they share: caches and memory. The order is: an empty step, memory, arithmetic, kernels of the named
 * programs, kernels of nets, exchanges. All this is done in several passes, and of each figure the fastest counts: what else
 * computes on the machine comes and goes. A probe before and after each pass tells whether the fastest was seen more than once.
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

enum {
    LEAST_ROUNDS = 5,
    MOST_ROUNDS = 101,
    MOST_KINDS = 4,
    PROBES = 3,
    MOST_PASSES = 4,
    ROOM = 1 << 30,
    COLD = 4 << 20 /* bytes for each lane: more than a core's own cache */
};
/* Of the budget: what the rounds of one subject may take together, and those of a kind of rank of the caller's program. */
static const double SUBJECT_PART = 0.004, PROGRAM_PART = 0.1;
static const double USUAL_BUDGET_S = 60; /* of all */
static const double COLD_S = 0.5e-3;     /* about, to go through COLD bytes */
static const double LOADS_PART = 0.75;   /* of the budget; the rest is for exchanges */
static const double LOAD_S = 5;          /* what a load needs of a pass at least */
static const double NOISY = 0.1;         /* probes that are farther apart are of another machine */

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
static weft_status time_program(calibrating *c, const weft_program *program, int rank, double part,
                                double *seconds, double *spread)
{
    double all = c->cold_bytes > 0 ? COLD_S : 0;
    WEFT_TRY(weft_plan_measure_cold(program, rank, c->host, 1, c->cold_bytes, seconds, spread,
                                    c->error));
    for (uint32_t s = 0; s < program->plan->n_steps; s++)
        all += seconds[s];
    const double rounds = part * c->budget / fmax(all, 1e-6);
    const int n = rounds < LEAST_ROUNDS  ? LEAST_ROUNDS
                  : rounds > MOST_ROUNDS ? MOST_ROUNDS
                                         : (int)rounds;
    return weft_plan_measure_cold(program, rank, c->host, n, c->cold_bytes, seconds, spread,
                                  c->error);
}

static weft_status measure_program(calibrating *c, const weft_program *program, int rank,
                                   double part, taker take)
{
    const weft_plan *plan = program->plan;
    double *seconds = calloc(2 * (size_t)plan->n_steps + 1, sizeof *seconds),
           *spread = seconds + plan->n_steps;
    if (!seconds) return weft_fail_memory(c->error, plan->n_steps * sizeof *seconds);
    weft_status status = time_program(c, program, rank, part, seconds, spread);
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
    if (status == WEFT_OK && has_room(c, program))
        status = measure_program(c, program, 0, SUBJECT_PART, take);
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
                                         PROGRAM_PART, take_sample));
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

static void remember_probe(calibrating *c, double seconds)
{
    const long load = c->load - c->model->loads;
    double *two = c->probes[load < WEFT_CALIBRATE_LOADS ? load : WEFT_CALIBRATE_LOADS - 1];
    const double least = two[0] > 0 ? fmin(two[0], seconds) : seconds,
                 other = two[0] > 0 ? fmax(two[0], seconds) : 0;
    two[1] = two[1] > 0 ? fmin(two[1], other) : other;
    two[0] = least;
}

/* As in a training, where much else has been in the cores' caches since it was used last: but what a step has just made is there. */
static weft_status measure_cold(calibrating *c, const weft_subject *list, double until, taker take)
{
    c->cold_bytes = (int64_t)COLD * c->load->lanes;
    const weft_status status = measure_list(c, list, until, take);
    c->cold_bytes = 0;
    return status;
}

/* `from` and `until` are parts of the budget. */
static weft_status measure_all(calibrating *c, double from, double until)
{
    const double part = until - from;
    WEFT_TRY(measure_subject(c, &weft_calibrate_empty, take_empty));
    if (c->is_one) WEFT_TRY(weft_calibrate_runs(c, c->host));
    WEFT_TRY(measure_cold(c, weft_calibrate_streams, from + 0.3 * part, take_stream));
    WEFT_TRY(measure_list(c, weft_calibrate_acts, from + 0.4 * part, take_act));
    WEFT_TRY(measure_cold(c, weft_calibrate_products, from + 0.75 * part, take_product));
    WEFT_TRY(measure_given(c));
    return measure_cold(c, weft_calibrate_others, until, take_sample);
}

static weft_status measure_load(calibrating *c, double from, double until)
{
    double before, after;
    WEFT_TRY(probe(c, &before));
    WEFT_TRY(c->adds ? measure_given(c) : measure_all(c, from, until));
    WEFT_TRY(probe(c, &after));
    remember_probe(c, before);
    remember_probe(c, after);
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

static weft_status calibrate_load(calibrating *c, int here, int ranks, int lanes, double from,
                                  double until)
{
    WEFT_TRY(weft_machine_add_load(c->model, ranks, lanes, &c->load, c->error));
    weft_status status = open_host(c, here, lanes);
    if (status == WEFT_OK) status = measure_load(c, from, until);
    (void)!weft_mesh_destroy(&c->host);
    return status;
}

/* 1, 2, 4, ... and all cores: how many ranks a host may have. */
static int next_ranks(int ranks, int cores)
{
    return ranks < cores && 2 * ranks > cores ? cores : 2 * ranks;
}

static int count_loads(int cores)
{
    int n = 0;
    for (int ranks = 1; ranks <= cores; ranks = next_ranks(ranks, cores))
        n++;
    return n;
}

static weft_status calibrate_loads(calibrating *c, int cores)
{
    const int n = count_loads(cores);
    int k = 0;
    for (int ranks = 1; ranks <= cores; ranks = next_ranks(ranks, cores), k++)
        WEFT_TRY(calibrate_load(c, ranks, ranks, cores / ranks, LOADS_PART * k / n,
                                LOADS_PART * (k + 1) / n));
    return WEFT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* How far the two fastest probes are apart, of the load where that is most. */
static double probes_apart(const calibrating *c)
{
    double apart = 0;
    for (int load = 0; load < WEFT_CALIBRATE_LOADS; load++)
        if (c->probes[load][0] > 0)
            apart = fmax(apart, c->probes[load][1] / c->probes[load][0] - 1);
    return apart;
}

static weft_status check_noise(const calibrating *c, const weft_machine_model *whole)
{
    if (whole->spread <= NOISY || c->options->noisy) return WEFT_OK;
    return weft_fail(
        c->error, WEFT_USAGE,
        "the same product took %.0f %% longer at one time than at another: something "
        "else computes on this machine. "
        "End it, or wait, or take what was measured all the same: noisy of the options",
        100 * whole->spread);
}

/* What cannot be read again is not written. Clocks that go back, or leap, make such figures. */
static weft_status check_figures(const calibrating *c, const weft_machine_model *whole)
{
    weft_machine_model *again = NULL;
    weft_error own = WEFT_NO_ERROR;
    const weft_status status = weft_machine_model_copy(whole, &again, &own);
    weft_machine_model_destroy(&again);
    if (status != WEFT_USAGE)
        return status == WEFT_OK ? WEFT_OK : weft_fail(c->error, status, "%s", own.message);
    return weft_fail(c->error, WEFT_USAGE,
                     "what was measured cannot be: %.200s; did this machine's clock jump? Measure "
                     "it again",
                     own.message);
}

static weft_status open_model(const calibrating *c, weft_machine_model **model)
{
    const weft_machine *found = weft_machine_info();
    char made[80];
    struct tm day;
    const time_t now = time(NULL);
    localtime_r(&now, &day);
    strftime(made, sizeof made, "measured on %Y-%m-%d at %H:%M", &day);
    return weft_machine_model_make(c->options->name && *c->options->name ? c->options->name
                                                                         : "here",
                                   found->processor, made, found->n_cores, model, c->error);
}

/* All processes together. */
static weft_status run_processes(calibrating *c, const weft_world *world, int lanes)
{
    char text[24];
    weft_mesh *all = NULL;
    snprintf(text, sizeof text, "rank:%d", world->n_processes);
    (void)!open_host(c, 1, lanes);
    weft_status status = weft_world_agree(c->error);
    if (status == WEFT_OK) status = weft_mesh_create(world, text, &all, c->error);
    if (status == WEFT_OK) status = weft_calibrate_runs(c, all);
    (void)!weft_mesh_destroy(&all);
    (void)!weft_mesh_destroy(&c->host);
    return status;
}

static weft_status measure_pass(calibrating *c, const weft_world *world)
{
    const int cores = weft_machine_info()->n_cores;
    const bool exchanges = !c->adds;
    c->is_one = world->n_processes == 1;
    if (c->is_one) {
        WEFT_TRY(calibrate_loads(c, cores));
        return exchanges ? weft_calibrate_threads(c, cores) : WEFT_OK;
    }
    const int near = world->n_host_processes, lanes = world->cores >= 1 ? (int)world->cores : 1;
    (void)!calibrate_load(c, 1, near, lanes, 0, LOADS_PART);
    WEFT_TRY(weft_world_agree(c->error));
    if (!exchanges) return WEFT_OK;
    WEFT_TRY(run_processes(c, world, lanes));
    return weft_calibrate_processes(c, world);
}

/* A model by itself, then merged into the whole. */
static weft_status calibrate_pass(calibrating *c, const weft_world *world,
                                  weft_machine_model *whole)
{
    c->begin = weft_sync_seconds();
    weft_status status = open_model(c, &c->model);
    if (status == WEFT_OK) status = measure_pass(c, world);
    if (status == WEFT_OK) status = weft_machine_model_merge(whole, c->model, c->error);
    weft_machine_model_destroy(&c->model);
    return status;
}

/* As many as leave each load its time. */
static int passes_of(double budget, const weft_world *world)
{
    const int loads = world->n_processes == 1 ? count_loads(weft_machine_info()->n_cores) : 1;
    const double passes = LOADS_PART * budget / (loads * LOAD_S);
    return passes < 1 ? 1 : passes > MOST_PASSES ? MOST_PASSES : (int)passes;
}

/* What fails on one process ends the passes of all. */
static weft_status calibrate(calibrating *c, const weft_world *world, weft_machine_model **whole)
{
    const double budget = c->options->seconds > 0 ? c->options->seconds : USUAL_BUDGET_S;
    c->n_passes = passes_of(budget, world);
    c->budget = budget / c->n_passes;
    WEFT_TRY(weft_world_any(c->options->base != NULL, &c->adds, c->error));
    WEFT_TRY(c->options->base ? weft_machine_model_copy(c->options->base, whole, c->error)
                              : open_model(c, whole));
    for (c->pass = 0; c->pass < c->n_passes; c->pass++) {
        (void)!calibrate_pass(c, world, *whole);
        WEFT_TRY(weft_world_agree(c->error));
    }
    (*whole)->spread = probes_apart(c);
    tell_left(c);
    WEFT_TRY(check_noise(c, *whole));
    const bool is_whole =
        !c->adds || c->options->base; /* others than the root may have nothing to add to */
    return is_whole ? check_figures(c, *whole) : WEFT_OK;
}

weft_status weft_calibrate(const weft_world *world, const weft_calibrate_options *options,
                           weft_machine_model **model, weft_error *error)
{
    static const weft_calibrate_options none;
    weft_error own = WEFT_NO_ERROR;
    WEFT_GIVEN(world, error);
    WEFT_GIVEN(model, error);
    calibrating c = {.options = options ? options : &none, .error = &own};
    *model = NULL;
    c.alone = (weft_world){.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    (void)!calibrate(&c, world, model);
    const weft_status status = weft_world_agree(&own);
    if (status == WEFT_OK) return WEFT_OK;
    weft_machine_model_destroy(model);
    return weft_fail(error, status, "%s", own.message);
}
