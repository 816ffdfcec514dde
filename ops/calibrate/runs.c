/* runs: what a run takes besides its steps, and the rate at which inputs are written before it.
 *
 * A program that trains writes its inputs, runs the plan, reads the loss and asks the other processes whether to go on. Meanwhile
 * its ranks have gone to sleep, each of their lanes too, and a run wakes them. So here some time passes between two runs. The time
 * of the steps is taken off, as weft_plan_measure has them: one behind the other, on threads that are awake.
 */
#include "calibrating.h"
#include "part.h"
#include "program.h"
#include "sync.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "weft/collectives.h"
#include "weft/ops.h"

/* Elements of the input, of which several copies are more than a core's own cache holds. */
enum { ELEMENTS = 1 << 16, COPIES = 16, ROUNDS = 60, USED = ROUNDS / 4 };
enum { ASLEEP_NS = 200000 }; /* all that wait have gone to sleep then */

typedef struct running {
    weft_program *program;
    weft_value input, total;
    float *copies;                       /* [COPIES][ELEMENTS] */
    double writes[ROUNDS], runs[ROUNDS]; /* seconds */
} running;

static void write_inputs(running *r, int round)
{
    const float *from = r->copies + (size_t)(round % COPIES) * ELEMENTS;
    const weft_mesh *mesh = r->program->mesh;
    for (int i = 0; i < weft_mesh_n_local(mesh); i++)
        weft_part_put(r->program, r->input, weft_mesh_first_local(mesh) + i, 0, from,
                      ELEMENTS * (int64_t)sizeof *from);
}

static weft_status run_once(running *r, weft_error *error)
{
    double number;
    bool any;
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(weft_run(r->program, error));
    WEFT_TRY(weft_read_scalar(r->program, r->total, &number, error));
    return weft_world_any(false, &any, error);
}

static weft_status time_rounds(running *r, weft_error *error)
{
    for (int round = 0; round < ROUNDS; round++) {
        nanosleep(&(struct timespec){.tv_nsec = ASLEEP_NS}, NULL);
        const double written = weft_sync_seconds();
        write_inputs(r, round);
        const double ready = weft_sync_seconds();
        WEFT_TRY(run_once(r, error));
        r->runs[round] = weft_sync_seconds() - ready;
        r->writes[round] = ready - written;
    }
    return WEFT_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The mean of the fastest quarter, as of all steps. */
static double fastest(double seconds[ROUNDS])
{
    double sum = 0;
    qsort(seconds, ROUNDS, sizeof *seconds, ascending);
    for (int i = 0; i < USED; i++)
        sum += seconds[i] / USED;
    return sum;
}

/* All steps, without what is around them. */
static weft_status time_steps(calibrating *c, const running *r, double *all)
{
    const uint32_t n = r->program->plan->n_steps;
    double *seconds = calloc((size_t)n + 1, sizeof *seconds);
    if (!seconds) return weft_fail_memory(c->error, (size_t)n * sizeof *seconds);
    const weft_status status =
        weft_plan_measure(r->program, 0, c->host, ROUNDS, seconds, NULL, c->error);
    *all = 0;
    for (uint32_t s = 0; s < n; s++)
        *all += seconds[s];
    free(seconds);
    return status;
}

static weft_status measure(calibrating *c, running *r)
{
    double steps = 0;
    r->copies = calloc((size_t)COPIES * ELEMENTS, sizeof *r->copies);
    if (!r->copies) (void)weft_fail_memory(c->error, (size_t)COPIES * ELEMENTS * sizeof *r->copies);
    (void)!weft_world_agree(c->error);
    WEFT_TRY(c->error->status);
    for (int i = 0; i < COPIES * ELEMENTS; i++)
        r->copies[i] = 1;
    WEFT_TRY(time_rounds(r, c->error));
    WEFT_TRY(time_steps(c, r, &steps));
    c->load->run_seconds = fmin(fmax(fastest(r->runs) - steps, 0), 100);
    c->load->input_bytes_per_second = ELEMENTS * sizeof *r->copies / fmax(fastest(r->writes), 1e-9);
    return WEFT_OK;
}

weft_status weft_calibrate_runs(calibrating *c, weft_mesh *mesh)
{
    const weft_dim n = {"n", ELEMENTS};
    weft_layout *layout = NULL;
    weft_graph *graph = weft_graph_create(1);
    running r = {0};
    weft_status status = graph ? WEFT_OK : weft_fail_memory(c->error, sizeof r);
    if (status == WEFT_OK) status = weft_layout_create("", &layout, c->error);
    if (status == WEFT_OK) {
        r.input = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(n));
        r.total = weft_sum(WEFT_SCALAR, r.input);
        status = weft_compile(mesh, layout, WEFT_VALUES(r.total), NULL, &r.program, c->error);
    }
    if (status == WEFT_OK) status = measure(c, &r);
    free(r.copies);
    (void)!weft_program_destroy(&r.program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    return status;
}
