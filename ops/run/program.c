/* program.c: from a plan to a program: groups, memory, initial values, and the agreement of all
 * ranks. */
#include "snapshot_guard.h"
#include "outside.h"
#include "passes.h"
#include "program.h"
#include "weft/extend/engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- do all ranks run the same? -------------------------------------------------------------- */

typedef struct identity {
    uint64_t digest;
    int32_t stage;
    char mesh[100], layout[400], ops[300]; /* ops: those from outside, with their versions */
    char device[64], machine[100];         /* machine: that the plan is for, with its hash */
} identity;

/* "softsign version 1, clamp version 3": each op from outside that the plan has, once. */
static void name_outside_ops(const weft_graph *graph, char *text, size_t room)
{
    const weft_op *op;
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; (op = weft_op_outside_at(i)) != NULL && used < room; i++) {
        bool is_used = false;
        for (uint32_t n = 1; n < graph->n_nodes && !is_used; n++)
            is_used = graph->nodes[n].op == op;
        if (is_used)
            used += (size_t)snprintf(text + used, room - used, "%s%s version %u", used ? ", " : "",
                                     op->name, (unsigned)op->version);
    }
}

static void name_machine(const weft_plan *plan, char *text, size_t room)
{
    if (plan->machine_name)
        snprintf(text, room, "%.60s (hash %016llx)", plan->machine_name,
                 (unsigned long long)plan->machine_hash);
    else
        snprintf(text, room, "none");
}

static weft_status describe_mismatch(const identity *all, int n, weft_error *error)
{
    for (int r = 1; r < n; r++) {
        if (strcmp(all[r].device, all[0].device) != 0)
            return weft_fail(
                error, WEFT_MISMATCH,
                "rank %d is on device %s, but rank 0 on device %s; give all ranks the same", r,
                all[r].device, all[0].device);
        if (all[r].digest == all[0].digest) continue;
        if (strcmp(all[r].machine, all[0].machine) != 0)
            return weft_fail(error, WEFT_MISMATCH,
                             "rank %d plans for machine %s, but rank 0 for %s; give all ranks the "
                             "same machine file",
                             r, all[r].machine, all[0].machine);
        if (strcmp(all[r].ops, all[0].ops) != 0)
            return weft_fail(
                error, WEFT_MISMATCH,
                "rank %d computes with these ops from outside: %s; rank 0 with: %s; register "
                "the same ops, of the same versions, on all ranks",
                r, all[r].ops[0] ? all[r].ops : "none", all[0].ops[0] ? all[0].ops : "none");
        bool same_layout = !strcmp(all[r].layout, all[0].layout) &&
                           !strcmp(all[r].mesh, all[0].mesh) && all[r].stage == all[0].stage;
        if (same_layout)
            return weft_fail(error, WEFT_MISMATCH,
                             "rank %d compiled another program than rank 0 (digests %016llx and "
                             "%016llx); start all ranks with the same program and options",
                             r, (unsigned long long)all[r].digest,
                             (unsigned long long)all[0].digest);
        return weft_fail(
            error, WEFT_MISMATCH,
            "rank %d has mesh %s, layout \"%s\", stage %d, but rank 0 has mesh %s, layout "
            "\"%s\", stage %d; give all ranks the same",
            r, all[r].mesh, all[r].layout, all[r].stage, all[0].mesh, all[0].layout, all[0].stage);
    }
    return WEFT_OK;
}

/* Collective over the world, when there is more than one process. */
static weft_status compare_digests(weft_program *program, weft_error *error)
{
    const int n = weft_mesh_n_ranks(program->mesh);
    if (program->n_local == n) return WEFT_OK; /* one process: one plan */
    program->digest = weft_plan_digest(program->plan);
    WEFT_TRY(weft_comms_prepare(program->comms, weft_all_axes(program), error));
    identity own = {.digest = program->digest, .stage = weft_layout_stage(program->plan->layout)};
    snprintf(own.mesh, sizeof own.mesh, "%s", weft_mesh_text(program->mesh));
    snprintf(own.layout, sizeof own.layout, "%s", weft_layout_text(program->plan->layout));
    snprintf(own.device, sizeof own.device, "%s",
             weft_devices[weft_mesh_device(program->mesh)]->name);
    name_outside_ops(program->plan->user, own.ops, sizeof own.ops);
    name_machine(program->plan, own.machine, sizeof own.machine);
    void *all;
    weft_status status = weft_hear_all(program, &own, sizeof own, &all, error);
    if (status == WEFT_OK) status = describe_mismatch(all, n, error);
    free(all);
    return status;
}

/* ---- groups and memory ----------------------------------------------------------------------- */

static weft_status prepare_groups(weft_program *program, weft_error *error)
{
    uint64_t done = 0; /* one bit per set of axes */
    const uint32_t everybody = weft_all_axes(program);
    WEFT_TRY(weft_comms_prepare(program->comms, everybody, error));
    done |= 1ull << everybody;
    for (uint32_t s = 0; s < program->plan->n_steps; s++) {
        const weft_step *step = &program->plan->steps[s];
        uint32_t axes = step->convert.axes;
        if (step->kind != WEFT_STEP_CONVERT || !axes || done >> axes & 1) continue;
        WEFT_TRY(weft_comms_prepare(program->comms, axes, error));
        done |= 1ull << axes;
    }
    return WEFT_OK;
}

/* On the rank's own thread, so that its memory is near. */
static void start_rank(void *argument, int rank)
{
    weft_rank *self = weft_rank_of(argument, rank);
    (void)weft_take_memory(self, &self->error);
}

static weft_status plan_rank(weft_program *program, int at, weft_error *error)
{
    weft_rank *rank = &program->ranks[at];
    const weft_plan *plan = program->plan;
    *rank = (weft_rank){.program = program, .rank = weft_mesh_first_local(program->mesh) + at};
    rank->device = weft_devices[weft_mesh_device(program->mesh)];
    rank->stream = weft_mesh_stream(program->mesh, rank->rank);
    rank->recorder = weft_recorder_of(rank->rank);
    rank->memory = weft_arena_take(program->arena, (plan->n_placed + 1) * sizeof *rank->memory);
    rank->steps = weft_arena_take(program->arena, (plan->n_steps + 1) * sizeof *rank->steps);
    rank->likes = weft_arena_take(program->arena, plan->likes.n_steps * sizeof *rank->likes);
    rank->traffic = weft_arena_copy(program->arena, plan->traffic,
                                    (size_t)plan->n_traffic * sizeof *rank->traffic);
    rank->trips = weft_arena_take(program->arena, (plan->graph->n_scans + 1) * sizeof *rank->trips);
    if (!rank->memory || !rank->steps || !rank->likes || !rank->traffic || !rank->trips)
        return weft_fail_memory(error, plan->n_placed * sizeof *rank->memory);
    WEFT_TRY(weft_plan_memory(plan, rank->rank, program->arena, &rank->layout, error));
    rank->layout.next = plan->others;
    program->plan->others = &rank->layout;
    return WEFT_OK;
}

static weft_status plan_ranks(weft_program *program, weft_error *error)
{
    WEFT_TRY(weft_find_given(program, error));
    program->ranks = weft_arena_take(program->arena, (size_t)program->n_local * sizeof(weft_rank));
    if (!program->ranks) return weft_fail_memory(error, sizeof(weft_rank));
    weft_status status = WEFT_OK;
    for (int at = 0; at < program->n_local && status == WEFT_OK; at++)
        status = plan_rank(program, at, error);
    program->plan->others = NULL;
    return status;
}

static weft_status start_ranks(weft_program *program, weft_error *error)
{
    weft_mesh_each(program->mesh, start_rank, program);
    for (int at = 0; at < program->n_local; at++) {
        const weft_error *first = &program->ranks[at].error;
        if (first->status != WEFT_OK) return weft_fail(error, first->status, "%s", first->message);
    }
    for (int at = 0; at < program->n_local; at++) {
        weft_find_memory(&program->ranks[at]);
        WEFT_TRY(weft_bind(&program->ranks[at], error)); /* here: the arena serves one thread */
        WEFT_TRY(weft_end_shared(&program->ranks[at], error));
    }
    if (program->n_local == weft_mesh_n_ranks(program->mesh)) return WEFT_OK;
    /* Flights have taken what there was; a read gathers, and must not fail on one process alone. */
    return weft_reserve_exchange(
        weft_comm_of(program->comms, program->ranks[0].rank, weft_all_axes(program)), error);
}

static bool writes_variable(const weft_plan *plan, const weft_step *step)
{
    for (int o = 0; o < step->n_out; o++)
        if (plan->placed[weft_placed_owner(plan, step->out[o])].home == WEFT_VARIABLE_HOME)
            return true;
    return false;
}

static uint32_t find_first_store(const weft_plan *plan)
{
    uint32_t s = 0;
    while (s < plan->n_steps && !writes_variable(plan, &plan->steps[s]))
        s++;
    return s;
}

/* ---- public ---------------------------------------------------------------------------------- */

static weft_status check_share(const weft_program *program, weft_error *error)
{
    if (!program->share || program->share->mesh == program->mesh) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "compile: the program to share variables with runs on another mesh object (%s); "
        "compile both on one mesh",
        weft_mesh_text(program->share->mesh));
}

/* The user's values that the variables stand for, in the order of the graph: checkpoints go through them again and again. */
static weft_status list_variables(weft_program *program, weft_error *error)
{
    const weft_plan *plan = program->plan;
    const weft_graph *graph = plan->graph;
    const size_t bytes = graph->n_nodes * sizeof *program->variables;
    program->variables = weft_arena_take(program->arena, bytes);
    if (!program->variables) return weft_fail_memory(error, bytes);
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        if (graph->nodes[id].op == &weft_op_variable)
            program->variables[program->n_variables++] = plan->user_of[graph->nodes[id].out];
    return WEFT_OK;
}

static weft_status create(weft_program *program, const weft_layout *layout, weft_values values,
                          const weft_compile_options *options, weft_error *error)
{
    program->arena = weft_arena_create();
    if (!program->arena) return weft_fail_memory(error, sizeof *program);
    WEFT_TRY(check_share(program, error));
    WEFT_TRY(weft_plan_build(program->mesh, layout, values, options, &program->plan, error));
    if (program->n_local == 0) WEFT_TRY(weft_check_kernels(program->plan, error));
    program->user = values.values[0].graph;
    weft_graph_keep(program->user);
    program->first_store = find_first_store(program->plan);
    program->is_written =
        weft_arena_take(program->arena, program->plan->n_placed * sizeof *program->is_written);
    if (!program->is_written) return weft_fail_memory(error, program->plan->n_placed);
    return list_variables(program, error);
}

/* Compiling is collective, so all ranks count alike; one graph may be compiled twice. In one process there is one plan. */
static uint64_t make_mark(const weft_program *program)
{
    static uint64_t n_made;
    const uint64_t facts[2] = {program->digest, ++n_made};
    return weft_digest(0, facts, sizeof facts);
}

static weft_status start(weft_program *program, weft_error *error)
{
    WEFT_TRY(weft_comms_create(program->mesh, &program->comms, error));
    WEFT_TRY(compare_digests(program, error));
    program->mark = make_mark(program);
    WEFT_TRY(prepare_groups(program, error));
    weft_error own = WEFT_NO_ERROR;
    (void)plan_ranks(program, &own);
    (void)weft_world_agree(&own); /* memory is taken together */
    if (own.status != WEFT_OK) return weft_fail(error, own.status, "%s", own.message);
    WEFT_TRY(weft_open_barriers(program, error));
    WEFT_TRY(weft_find_common(program, error));
    WEFT_TRY(weft_check_memory(program, error));
    WEFT_TRY(weft_take_seen(program, error));
    return start_ranks(program, error);
}

weft_status weft_compile(weft_mesh *mesh, const weft_layout *layout, weft_values values,
                         const weft_compile_options *options, weft_program **program,
                         weft_error *error)
{
    weft_error own = {0};
    WEFT_GIVEN(program, error);
    *program = NULL;
    WEFT_GIVEN(mesh, error);
    weft_program *made = calloc(1, sizeof *made);
    if (made) {
        made->mesh = mesh;
        weft_mesh_keep(mesh);
        made->n_local = weft_mesh_n_local(mesh);
        made->share = options ? options->share : NULL;
        if (made->share) made->share->n_shared++;
        (void)create(made, layout, values, options, &own);
    } else {
        weft_fail_memory(&own, sizeof *made);
    }
    bool can_run = weft_mesh_n_local(mesh) > 0;
    if (can_run) (void)weft_world_agree(&own); /* nobody waits for a rank that could not compile */
    if (own.status == WEFT_OK && can_run) {
        (void)start(made, &own);
        (void)weft_world_agree(&own);
    }
    if (own.status != WEFT_OK) {
        (void)weft_program_destroy(&made);
        weft_status status = weft_fail(error, own.status, "%s", own.message);
        if (error) error->rank = own.rank;
        *program = NULL;
        return status;
    }
    *program = made;
    return WEFT_OK;
}

static void release_rank(weft_rank *rank)
{
    weft_program *program = rank->program;
    if (!program) return;
    weft_unbind(rank);
    weft_give_memory(rank);
}

weft_status weft_program_destroy(weft_program **program)
{
    weft_program *p = program ? *program : NULL;
    if (!p) return WEFT_OK;
    if (p->n_shared > 0 || p->n_traces > 0) return WEFT_USAGE;
    if (p->guard) {
        weft_snapshot_guard_wait(p, NULL);
        weft_snapshot_guard_end(p->guard);
    }
    for (int at = 0; p->ranks && at < p->n_local; at++)
        release_rank(&p->ranks[at]);
    weft_shared_variables_close(p);
    weft_comms_destroy(&p->comms);
    weft_plan_destroy(&p->plan);
    weft_arena_destroy(&p->arena);
    weft_mesh_release(p->mesh);
    if (p->user) weft_graph_release(p->user);
    if (p->share) p->share->n_shared--;
    free(p);
    *program = NULL;
    return WEFT_OK;
}

const char *weft_program_apart(const weft_program *program)
{
    return weft_comms_apart(program != NULL ? program->comms : NULL);
}

weft_mesh *weft_program_mesh(const weft_program *program)
{
    return program ? program->mesh : NULL;
}

int64_t weft_runs(const weft_program *program)
{
    return program ? program->runs : 0;
}

void weft_set_runs(weft_program *program, int64_t runs)
{
    if (program && runs >= 0) program->runs = runs;
}

const char *weft_program_layout(const weft_program *program)
{
    return program ? weft_layout_text(program->plan->layout) : "";
}

uint64_t weft_program_digest(const weft_program *program)
{
    if (!program) return 0;
    return program->digest ? program->digest : weft_plan_digest(program->plan);
}
