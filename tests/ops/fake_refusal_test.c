/* fake_refusal_test: a rank without memory for what it needs to read from its device, or to compare calls: all ranks return
 * the same sentence, nobody waits, and the next call works. Whichever of the allocations it is.
 * RANKS: 2 3
 */
#include "collectives/on_ranks.h"
#include "mesh/fake_device.h"
#include "mesh/shortage.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <string.h>

enum { N = 6000, MOST_RANKS = 8, MOST_CALLS = 1000 };

typedef struct outcome { /* of a rank's call */
    weft_status status;
    char message[sizeof((weft_error *)0)->message];
} outcome;

/* A call of all ranks of a mesh. Fills what each local one has got. */
typedef void (*collective)(void *context, outcome *outcomes);

/* ---- the same on all ranks ------------------------------------------------------------------- */

typedef struct hearing {
    const ranks *all;
    const outcome *outcomes;
} hearing;

static void compare_on_rank(void *argument, int rank)
{
    const hearing *h = argument;
    const outcome *own = &h->outcomes[rank - weft_mesh_first_local(h->all->mesh)];
    outcome heard[MOST_RANKS];
    int64_t bytes[MOST_RANKS], at[MOST_RANKS];
    weft_error error = {0};
    weft_request request;
    weft_comm *comm = weft_comm_of(h->all->comms, rank, everybody(h->all));
    for (int r = 0; r < MOST_RANKS; r++)
        bytes[r] = sizeof *own, at[r] = r * (int64_t)sizeof *own;
    CHECK_OK(weft_all_gather_start(comm, own, sizeof *own, heard, bytes, at, &request, &error),
             error);
    CHECK_OK(weft_wait(&request, &error), error);
    for (int r = 0; r < weft_comm_n_ranks(comm); r++)
        CHECK(heard[r].status == own->status && strcmp(heard[r].message, own->message) == 0);
}

/* The last process is refused one allocation after the other, until there is none left to refuse. Returns how many of them
 * the ranks returned for. */
static int refuse_each(const ranks *all, collective call, void *context)
{
    int n_refused = 0;
    bool has_struck = true;
    for (int64_t at = 1; has_struck && at < MOST_CALLS; at++) {
        outcome outcomes[MOST_RANKS];
        shortage_told told = {0};
        weft_error error = {0};
        memset(outcomes, 0, sizeof outcomes);
        shortage_tell(&told);
        if (world_now.process == world_now.n_processes - 1) shortage_start(at, false);
        call(context, outcomes);
        shortage_stop();
        CHECK_OK(weft_world_any(told.has_struck, &has_struck, &error), error);
        weft_mesh_each(all->mesh, compare_on_rank, &(hearing){all, outcomes});
        for (int r = 0; r < weft_mesh_n_local(all->mesh); r++)
            if (outcomes[r].status != WEFT_OK) {
                CHECK_EQ_INT(outcomes[r].status, WEFT_MEMORY);
                CHECK_TEXT(outcomes[r].message, "could not allocate");
            }
        n_refused += outcomes[0].status != WEFT_OK;
        memset(outcomes, 0, sizeof outcomes);
        call(context, outcomes); /* and now there is memory */
        for (int r = 0; r < weft_mesh_n_local(all->mesh); r++)
            CHECK_TEXT(outcomes[r].message, "");
    }
    CHECK(!has_struck);
    return n_refused;
}

static bool open_mesh(ranks *all)
{
    char axes[32];
    snprintf(axes, sizeof axes, "data:%d", world_now.n_processes == 1 ? 2 : world_now.n_processes);
    return open_ranks(axes, all);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reading {
    weft_program *program;
    weft_value value;
    int n_local;
} reading;

static void read_all(void *context, outcome *outcomes)
{
    static float got[N];
    const reading *r = context;
    weft_error error = {0};
    memset(got, 0, sizeof got);
    const weft_status status = weft_read(r->program, r->value, WEFT_F32, got, sizeof got, &error);
    for (int i = 0; i < r->n_local; i++) { /* the process's, for all of its ranks */
        outcomes[i].status = status;
        snprintf(outcomes[i].message, sizeof outcomes[i].message, "%s", error.message);
    }
    for (int i = 0; i < N && status == WEFT_OK; i++)
        if (!CHECK(got[i] == 2 * (float)i)) break;
}

static int refuse_reading(const ranks *all)
{
    static float numbers[N];
    weft_layout *layout = NULL;
    weft_error error = {0};
    reading r = {.n_local = weft_mesh_n_local(all->mesh)};
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    CHECK_OK(weft_layout_create("batch:data", &layout, &error), error);
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS({"batch", N}));
    r.value = weft_scale(x, 2);
    CHECK_OK(weft_compile(all->mesh, layout, WEFT_VALUES(r.value), NULL, &r.program, &error),
             error);
    CHECK_OK(weft_write(r.program, x, WEFT_F32, numbers, sizeof numbers, &error), error);
    CHECK_OK(weft_run(r.program, &error), error);
    const int n_refused = refuse_each(all, read_all, &r);
    (void)weft_program_destroy(&r.program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&graph);
    return n_refused;
}

/* What the host does not read it takes memory for. */
static void test_a_rank_without_memory_to_read_fails_all_alike(void)
{
    ranks here, there;
    const bool is_far = world_now.n_processes > 1;
    if (open_mesh(&here)) CHECK_EQ_INT(refuse_reading(&here), is_far);
    close_ranks(&here);
    fake_use(true);
    if (open_mesh(&there)) CHECK_EQ_INT(refuse_reading(&there), 2);
    close_ranks(&there);
    fake_use(false);
}

/* ---- groups ---------------------------------------------------------------------------------- */

enum { MOST_GROUPS = 200 };

/* Communicators that have no groups yet: one for each call. */
typedef struct preparing {
    weft_comms *comms[MOST_GROUPS];
    uint32_t axes;
    int n_used, n_local;
} preparing;

static void prepare_all(void *context, outcome *outcomes)
{
    preparing *p = context;
    weft_error error = {0};
    if (!CHECK(p->n_used < MOST_GROUPS)) return;
    const weft_status status = weft_comms_prepare(p->comms[p->n_used++], p->axes, &error);
    for (int i = 0; i < p->n_local; i++) {
        outcomes[i].status = status;
        snprintf(outcomes[i].message, sizeof outcomes[i].message, "%s", error.message);
    }
}

static void test_a_rank_without_memory_for_a_group_fails_all_alike(void)
{
    static preparing p;
    ranks all;
    weft_error error = {0};
    if (open_mesh(&all)) {
        p = (preparing){.axes = everybody(&all), .n_local = weft_mesh_n_local(all.mesh)};
        for (int i = 0; i < MOST_GROUPS; i++)
            CHECK_OK(weft_comms_create(all.mesh, &p.comms[i], &error), error);
        CHECK(refuse_each(&all, prepare_all, &p) >= 4);
        for (int i = 0; i < MOST_GROUPS; i++)
            weft_comms_destroy(&p.comms[i]);
    }
    close_ranks(&all);
}

/* ---- comparing calls ------------------------------------------------------------------------- */

typedef struct comparing {
    const ranks *all;
    outcome *outcomes;
} comparing;

static void check_on_rank(void *argument, int rank)
{
    const comparing *c = argument;
    outcome *own = &c->outcomes[rank - weft_mesh_first_local(c->all->mesh)];
    weft_error error = {0};
    own->status = weft_calls_check(weft_comm_of(c->all->comms, rank, everybody(c->all)), &error);
    snprintf(own->message, sizeof own->message, "%s", error.message);
}

static void check_all(void *context, outcome *outcomes)
{
    weft_mesh_each(((const ranks *)context)->mesh, check_on_rank, &(comparing){context, outcomes});
}

static void test_a_rank_without_memory_to_compare_calls_fails_all_alike(void)
{
    ranks all;
    outcome outcomes[MOST_RANKS];
    if (open_mesh(&all)) {
        memset(outcomes, 0, sizeof outcomes);
        check_all(&all, outcomes); /* from here on the group has an exchange */
        CHECK_EQ_INT(refuse_each(&all, check_all, &all), world_now.n_processes == 1 ? 2 : 1);
    }
    close_ranks(&all);
}

int main(void)
{
    if (open_world()) {
        RUN(test_a_rank_without_memory_for_a_group_fails_all_alike);
        RUN(test_a_rank_without_memory_to_read_fails_all_alike);
        RUN(test_a_rank_without_memory_to_compare_calls_fails_all_alike);
    }
    weft_world_close();
    return weft_test_report();
}
