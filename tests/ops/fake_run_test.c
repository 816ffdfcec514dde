/* fake_run_test: gpt trains on a device with memory that the host cannot read and with late execution, to the same
 * bits as on the CPU. Its possible faults are found: an event that nothing waits for, memory that is used again too
 * early, the host's hands in the device's memory.
 */
#include "apps/gpt/model.h"
#include "gpt_layouts.h"
#include "mesh/fake_device.h"
#include "ops/plan/plan.h"
#include "oracle.h"
#include "weft/optim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { STEPS = 3 };

/* Linked with --wrap: memory is packed as if every exchange were over when the next step begins. */
static bool reuses_early;
weft_status __real_weft_plan_memory(const weft_plan *plan, int rank, weft_arena *arena,
                                    weft_memory *memory, weft_error *error);
weft_status __wrap_weft_plan_memory(const weft_plan *plan, int rank, weft_arena *arena,
                                    weft_memory *memory, weft_error *error);

weft_status __wrap_weft_plan_memory(const weft_plan *plan, int rank, weft_arena *arena,
                                    weft_memory *memory, weft_error *error)
{
    weft_plan other = *plan;
    if (!reuses_early) return __real_weft_plan_memory(plan, rank, arena, memory, error);
    other.steps = weft_arena_copy(arena, plan->steps, plan->n_steps * sizeof *plan->steps);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        other.steps[s].until = 0;
    return __real_weft_plan_memory(&other, rank, arena, memory, error);
}

/* Every loss of the training, and every variable after it. */
typedef struct outcome {
    bool is_there;
    double losses[STEPS];
    size_t bytes;
    char *variables;
} outcome;

static weft_status keep(weft_program *program, weft_value variable, outcome *o, weft_error *error)
{
    const size_t bytes = (size_t)weft_shape_count(weft_shape_of(variable)) *
                         weft_dtype_bytes(weft_dtype_of(variable));
    o->variables = realloc(o->variables, o->bytes + bytes);
    WEFT_TRY(weft_read(program, variable, weft_dtype_of(variable), o->variables + o->bytes,
                       (int64_t)bytes, error));
    o->bytes += bytes;
    return WEFT_OK;
}

static weft_status train(weft_program *program, const gpt_model *model, weft_value loss, outcome *o,
                         weft_error *error)
{
    int32_t tokens[4 * 8], targets[4 * 8];
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 4 * 8; i++) {
            tokens[i] = (i * i + 7 * i + 3 * step) % 29;
            targets[i] = (3 * i + i / 5 + step) % 29;
        }
        WEFT_TRY(weft_write(program, model->tokens, WEFT_I32, tokens, sizeof tokens, error));
        WEFT_TRY(weft_write(program, model->targets, WEFT_I32, targets, sizeof targets, error));
        WEFT_TRY(weft_run(program, error));
        WEFT_TRY(weft_read_scalar(program, loss, &o->losses[step], error));
    }
    for (int k = 0; weft_variable_at(program, k).id != 0; k++)
        WEFT_TRY(keep(program, weft_variable_at(program, k), o, error));
    o->is_there = true;
    return WEFT_OK;
}

static outcome outcome_of(const gpt_layout *l)
{
    static const gpt_shape shape = {.batch = 4,
                                    .seq = 8,
                                    .layers = 2,
                                    .width = 12,
                                    .heads = 3,
                                    .hidden = 20,
                                    .vocab = 29,
                                    .dropout = 0.1,
                                    .dtype = WEFT_F32};
    const weft_world world = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    gpt_model model;
    outcome o = {0};
    weft_graph *graph = weft_graph_create(1234);
    const weft_value loss = gpt_loss(&shape, graph, &model);
    const weft_value update =
        weft_adamw(loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5});
    CHECK_OK(weft_mesh_create(&world, l->mesh, &mesh, &error), error);
    CHECK_OK(weft_layout_create(l->layout, &layout, &error), error);
    CHECK_OK(weft_layout_store(layout, l->zero, "batch", &error), error);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, &error), error);
    if (program != NULL) CHECK_OK(train(program, &model, loss, &o, &error), error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
    return o;
}

static bool is_same(const outcome *a, const outcome *b)
{
    return a->is_there && b->is_there && a->bytes == b->bytes && a->bytes > 0 &&
           memcmp(a->losses, b->losses, sizeof a->losses) == 0 &&
           memcmp(a->variables, b->variables, a->bytes) == 0;
}

static outcome on_the_fake_device(const gpt_layout *l)
{
    fake_use(true);
    const outcome o = outcome_of(l);
    fake_use(false);
    return o;
}

static void test_every_layout_has_the_bits_that_the_cpu_gives_it(void)
{
    for (int k = 0; k < GPT_LAYOUTS; k++) {
        fake_forget();
        outcome here = outcome_of(&gpt_layouts[k]), there = on_the_fake_device(&gpt_layouts[k]);
        weft_test_check(is_same(&here, &there), __FILE__, __LINE__, gpt_layouts[k].layout);
        CHECK(fake_seen().n_commands > 100);
        CHECK_EQ_INT(fake_seen().n_dead, 0);
        CHECK_EQ_INT(fake_seen().n_races, 0);
        free(here.variables);
        free(there.variables);
    }
}

/* All that is exchanged there are all_reduces. */
static void test_what_an_all_reduce_brings_is_combined_by_the_device(void)
{
    const gpt_layout l = {"data:3", "batch:data", 0};
    fake_forget();
    outcome here = outcome_of(&l), there = on_the_fake_device(&l);
    CHECK(is_same(&here, &there));
    CHECK(fake_seen().n_combined > 0);
    CHECK_EQ_INT(fake_seen().n_races + fake_seen().n_dead, 0);
    free(here.variables);
    free(there.variables);
}

/* Two with much to exchange. */
static const gpt_layout busy[] = {{"data:2", "batch:data", 3},
                                  {"data:2,model:2", "batch:data,hidden:model,heads:model", 1}};

static void test_an_event_that_no_queue_waits_for_is_found(void)
{
    for (int k = 0; k < 2; k++) {
        fake_forget();
        fake_plant(FAKE_NO_FOLLOW);
        outcome o = on_the_fake_device(&busy[k]);
        fake_plant(FAKE_SOUND);
        CHECK(fake_seen().n_races > 0);
        free(o.variables);
    }
}

static void test_an_event_that_the_host_does_not_wait_for_is_found(void)
{
    for (int k = 0; k < 2; k++) {
        outcome here = outcome_of(&busy[k]);
        fake_plant(FAKE_NO_WAIT);
        outcome there = on_the_fake_device(&busy[k]);
        fake_plant(FAKE_SOUND);
        CHECK(there.is_there && !is_same(&here, &there));
        free(here.variables);
        free(there.variables);
    }
}

/* Not in each layout does an exchange hold memory that anybody wants meanwhile. */
static void test_memory_that_is_used_again_too_early_is_found(void)
{
    int n_found = 0;
    for (int k = 0; k < GPT_LAYOUTS; k++) {
        fake_forget();
        reuses_early = true;
        outcome there = on_the_fake_device(&gpt_layouts[k]);
        reuses_early = false;
        n_found += fake_seen().n_races > 0;
        free(there.variables);
    }
    CHECK(n_found > 3);
}

/* Of a device that says that the host sees its memory, Weft takes no detours: and does not live. */
static void test_the_hosts_hands_in_the_devices_memory_are_found(void)
{
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        fake_plant(FAKE_OPEN);
        outcome o = on_the_fake_device(&busy[0]);
        _exit(o.is_there ? 0 : 3);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 1); /* 1: a sanitizer's */
}

int main(void)
{
    RUN(test_the_hosts_hands_in_the_devices_memory_are_found);
    RUN(test_every_layout_has_the_bits_that_the_cpu_gives_it);
    RUN(test_what_an_all_reduce_brings_is_combined_by_the_device);
    RUN(test_an_event_that_no_queue_waits_for_is_found);
    RUN(test_an_event_that_the_host_does_not_wait_for_is_found);
    RUN(test_memory_that_is_used_again_too_early_is_found);
    fake_forget();
    return weft_test_report();
}
