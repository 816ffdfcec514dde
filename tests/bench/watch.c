/* watch: what recording calls and watching ranks cost: of one call, of a step of a program, of a training step.
 *
 * The share of a training step is calls and steps, counted, times what one was measured to cost, plus the processor time
 * of the watching thread, which is measured while nothing else runs.
 */
#include <unistd.h>

#include "apps/gpt/model.h"
#include "bench.h"
#include "oracle.h"
#include "recorder.h"
#include "weft/optim.h"

enum { CALLS = 2000000, WARM = 3, STEPS = 20, IDLE_S = 5 };

typedef struct costs {
    double call_ns, step_ns; /* of one */
    double thread_share;     /* of one core */
} costs;

static void measure_call(costs *c)
{
    weft_recorder *recorder = weft_recorder_of(4000); /* nobody's */
    const int channel = weft_recorder_channel(recorder, 1, 0, 2, "data");
    const weft_call_facts call = {
        .kind = WEFT_CALL_ALL_REDUCE, .dtype = WEFT_F32, .combine = WEFT_SUM, .root = -1};
    double begin = bench_now();
    for (int i = 0; i < CALLS; i++) {
        const weft_call_mark mark = weft_recorder_begin(recorder, channel, &call);
        weft_recorder_wait(recorder, &mark);
        weft_recorder_end(recorder, &mark);
    }
    c->call_ns = 1e9 * (bench_now() - begin) / CALLS;
    begin = bench_now();
    for (uint32_t i = 0; i < CALLS; i++) {
        weft_recorder_step(recorder, i, i);
        __asm__ volatile("" ::: "memory"); /* each is stored */
    }
    c->step_ns = 1e9 * (bench_now() - begin) / CALLS;
}

static double process_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure_thread(costs *c)
{
    const double begin = process_seconds();
    sleep(IDLE_S);
    c->thread_share = (process_seconds() - begin) / IDLE_S;
}

static weft_status measure_training(weft_program *program, const costs *c, weft_error *error)
{
    weft_usage usage = {0};
    const weft_recorder *recorder = weft_recorder_of(0);
    double best = 1e30;
    uint64_t calls = 0;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    for (int i = 0; i < WARM + STEPS; i++) {
        const uint64_t before = atomic_load(&recorder->head.n_begun);
        const double begin = bench_now();
        WEFT_TRY(weft_run(program, error));
        const double took = bench_now() - begin;
        calls = atomic_load(&recorder->head.n_begun) - before;
        if (i >= WARM && took < best) best = took;
    }
    const double recording = 1e-9 * ((double)calls * c->call_ns + usage.n_steps * c->step_ns);
    printf("\na training step: %.2f ms, %llu calls, %d steps: recording is %.3f %% of it, with the "
           "watching thread %.3f %%\n",
           1e3 * best, (unsigned long long)calls, usage.n_steps, 100 * recording / best,
           100 * (recording / best + c->thread_share));
    return WEFT_OK;
}

static weft_status train(const weft_world *world, const costs *c, weft_error *error)
{
    const gpt_shape shape = {.batch = 16,
                             .seq = 64,
                             .layers = 4,
                             .width = 128,
                             .heads = 4,
                             .hidden = 512,
                             .vocab = 256,
                             .dtype = WEFT_F32};
    weft_graph *graph = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    gpt_model model;
    weft_value loss = gpt_loss(&shape, graph, &model);
    weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3, .clip = 1.0});
    weft_status status = weft_mesh_create(world, "data:2", &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create("batch:data", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, error);
    if (status == WEFT_OK) status = measure_training(program, c, error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return status;
}

int main(void)
{
    weft_error error = {0};
    weft_world world;
    costs c = {0};
    weft_status status = weft_world_open(&world, &error);
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    measure_call(&c);
    /* The thread begins with the first groups. */
    if (status == WEFT_OK) status = weft_mesh_create(&world, "data:2", &mesh, &error);
    if (status == WEFT_OK) status = weft_comms_create(mesh, &comms, &error);
    if (status == WEFT_OK) measure_thread(&c);
    weft_comms_destroy(&comms);
    weft_mesh_destroy(&mesh);
    printf("%14s %14s %16s %14s\n%14.0f %14.1f %14.3f %% %11.0f kB\n", "ns per call", "ns per step",
           "thread, of a core", "per rank", c.call_ns, c.step_ns, 100 * c.thread_share,
           1e-3 * sizeof(weft_recorder));
    printf("1,000 calls a second: %.3f %% of the time\n", 1e-4 * c.call_ns);
    if (status == WEFT_OK) status = train(&world, &c, &error);
    weft_world_close();
    return bench_end("watch", status, &error);
}
