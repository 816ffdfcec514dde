/* checkpoint: saves and restores against plain writes and reads of the same bytes, and what a save
 * costs the training beside it.
 *
 *     checkpoint [MEGABYTES [DIRECTORY]]     96, where this program is; also under mpirun
 *
 * Raw write: pwrite of 4 MiB and fsync, to a new file with its space set aside. Raw read: pread of
 * 4 MiB of a checkpoint's data file. Every repetition measures the raw and the real thing in turn,
 * and the table has medians: a machine that is busy is busy for both. Processor time ("cpu", of the
 * root, against the raw's) says what is left when it is not. Cold reads need root, to drop the page
 * cache.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "apps/gpt/model.h"
#include "bench.h"
#include "checkpoint_raw.h"
#include "oracle.h"
#include "weft/checkpoint.h"
#include "weft/optim.h"

enum { REPEATS = 5 };

static double megabytes = 96.0;

/* ---- the state that is saved: parameters and two slots each
 * --------------------------------------------------- */

typedef struct state {
    weft_mesh *mesh;
    weft_graph *graph;
    weft_program *program;
    int64_t bytes;
} state;

/* Three tensors as large as they have to be. The loss reads every weight once. */
static weft_value large_loss(weft_graph *graph)
{
    enum { N = 3, HIDDEN = 1536 };
    const int64_t rows = (int64_t)(megabytes * 1e6 / (N * 3 * 4.0 * HIDDEN));
    const weft_dim batch = {"batch", 2}, pixel = {"pixel", rows}, hidden = {"hidden", HIDDEN};
    weft_value loss = {0}, x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    for (int i = 0; i < N; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        weft_value w =
            weft_variable(graph, name, WEFT_F32, WEFT_DIMS(pixel, hidden), weft_normal(0.0, 0.02));
        weft_value y = weft_mean(weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), x, w)));
        loss = i ? weft_add(loss, y) : y;
    }
    return loss;
}

/* A transformer of as many layers as it takes. */
static weft_value gpt_mix_loss(weft_graph *graph)
{
    gpt_model model;
    const int64_t width = megabytes < 1000 ? 256 : 768;
    const double layer_bytes = 12.0 * (double)(width * width) * 3 * 4;
    return gpt_loss(&(gpt_shape){.batch = 4,
                                 .seq = 16,
                                 .layers = (int64_t)(megabytes * 1e6 / layer_bytes),
                                 .width = width,
                                 .heads = 8,
                                 .hidden = 4 * width,
                                 .vocab = 256,
                                 .dtype = WEFT_F32},
                    graph, &model);
}

typedef struct place {
    const char *name;
    weft_value (*loss)(weft_graph *graph);
    const char *mesh, *layout;
    int zero, n_ranks;
} place;

static void state_close(state *s)
{
    weft_program_destroy(&s->program);
    weft_mesh_destroy(&s->mesh);
    weft_graph_destroy(&s->graph);
}

static weft_status state_open(const place *p, state *s, weft_error *error)
{
    weft_layout *layout = NULL;
    *s = (state){.graph = weft_graph_create(1)};
    weft_value variable, loss = p->loss(s->graph);
    weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-4});
    WEFT_TRY(weft_mesh_create(&world, p->mesh, &s->mesh, error));
    WEFT_TRY(weft_layout_create(p->layout, &layout, error));
    weft_status status = weft_layout_store(layout, p->zero, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(s->mesh, layout, WEFT_VALUES(loss, update), NULL, &s->program, error);
    weft_layout_destroy(&layout);
    if (status != WEFT_OK) return status;
    for (int i = 0; (variable = weft_variable_at(s->program, i)).id != 0; i++)
        s->bytes += weft_shape_count(weft_shape_of(variable)) *
                    (int64_t)weft_dtype_bytes(weft_dtype_of(variable));
    return weft_run(s->program, error); /* slots that are not zero */
}

/* ---- medians
 * ---------------------------------------------------------------------------------------------------
 */

typedef struct series {
    double value[REPEATS];
    int n;
} series;

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add(series *s, double value)
{
    s->value[s->n++] = value;
}

static double median(series *s)
{
    qsort(s->value, (size_t)s->n, sizeof s->value[0], compare_doubles);
    return s->n ? s->value[s->n / 2] : 0.0;
}

/* ---- saves
 * -----------------------------------------------------------------------------------------------------
 */

static weft_status save(weft_checkpoints *c, state *s, double *took, weft_error *error)
{
    static int64_t step;
    const double begin = bench_now();
    WEFT_TRY(weft_checkpoints_save(c, s->program, &(weft_checkpoint_state){.step = ++step}, error));
    *took = bench_now() - begin;
    return WEFT_OK;
}

/* What an asynchronous save costs a loop of steps. */
typedef struct beside {
    double save, polls; /* seconds in weft_checkpoints_save and in all polls together */
    double lost;        /* seconds that the loop took longer than as many quiet steps */
    double longest;     /* quiet steps that the first step after the save took longer */
    int n_steps;
} beside;

/* A loop of as many steps as a save lasts, with it and without. */
static weft_status train_beside(weft_checkpoints *c, state *s, double step, double save_takes,
                                beside *b, weft_error *error)
{
    const double begin = bench_now();

    WEFT_TRY(save(c, s, &b->save, error));

    b->n_steps = (int)(1.5 * save_takes / step) + 2;
    for (int i = 0; i < b->n_steps; i++) {
        const double run = bench_now();
        WEFT_TRY(weft_run(s->program, error));
        const double poll = bench_now();
        WEFT_TRY(weft_checkpoints_poll(c, error));
        b->polls += bench_now() - poll;
        if (i == 0) b->longest = (poll - run) - step;
    }
    b->lost = bench_now() - begin - b->n_steps * step;
    return weft_checkpoints_wait(c, error);
}

static weft_status quiet_step(state *s, double *step, weft_error *error)
{
    series quiet = {.n = 0};
    for (int i = 0; i < REPEATS; i++) {
        const double begin = bench_now();
        WEFT_TRY(weft_run(s->program, error));
        add(&quiet, bench_now() - begin);
    }
    *step = median(&quiet);
    /* All processes make the same number of steps. */
    if (world.n_processes > 1 && *step < 0.05) *step = 0.05;
    return WEFT_OK;
}

typedef struct saves {
    series raw, whole, raw_cpu, cpu, save, polls, first, lost;
    double step;
} saves;

static weft_status measure_saves(state *s, weft_checkpoints *sync, weft_checkpoints *async,
                                 saves *m, weft_error *error)
{
    double took, expected = 0.0;
    WEFT_TRY(quiet_step(s, &m->step, error));
    WEFT_TRY(
        save(sync, s, &took, error)); /* the first touches memory and disk that later ones find */
    WEFT_TRY(save(async, s, &took, error));
    WEFT_TRY(weft_checkpoints_wait(async, error));
    for (int i = 0; i < REPEATS; i++) {
        beside b = {0};
        add(&m->raw, at_root(raw_write_of, &s->bytes));
        add(&m->raw_cpu, raw_cpu);
        const double begin = processor_seconds();
        WEFT_TRY(save(sync, s, &took, error));
        add(&m->cpu, processor_seconds() - begin);
        add(&m->whole, took);
        if (i == 0) expected = took;
        if (world.n_processes > 1) expected = (double)s->bytes / 1e9; /* the same on all */
        WEFT_TRY(train_beside(async, s, m->step, expected, &b, error));
        add(&m->save, b.save);
        add(&m->polls, b.polls);
        add(&m->first, b.longest);
        add(&m->lost, b.lost);
    }
    return WEFT_OK;
}

static const char saves_head[] =
    "%-6s %-14s %-22s %4s %5s | %8s %8s %5s %5s | %8s %8s %8s %6s | %8s %8s\n",
                  saves_row[] = "%-6s %-14s %-22s %4d %5.2f | %8.2f %8.2f %5.2f %5.2f | %8.1f "
                                "%8.1f %8.1f %6.1f | %8.1f %8.0f\n";

static weft_status bench_saves(const place *p, weft_error *error)
{
    state s;
    saves m = {.step = 0};
    weft_checkpoints *sync = NULL, *async = NULL;
    const weft_checkpoint_options wait = {.is_synchronous = true};
    char path[2][PATH + 100];
    path_in_directory(path[0], "sync");
    path_in_directory(path[1], "async");
    weft_status status = state_open(p, &s, error);
    if (status == WEFT_OK) status = weft_checkpoints_open(path[0], &wait, &sync, error);
    if (status == WEFT_OK) status = weft_checkpoints_open(path[1], NULL, &async, error);
    if (status == WEFT_OK) status = measure_saves(&s, sync, async, &m, error);
    if (status == WEFT_OK && weft_world_is_root()) {
        const double gigabytes = 1e-9 * (double)s.bytes, raw = median(&m.raw),
                     whole = median(&m.whole), held = median(&m.save), polls = median(&m.polls),
                     first = median(&m.first);
        printf(saves_row, p->name, p->mesh, p->layout, p->zero, gigabytes, gigabytes / raw,
               gigabytes / whole, raw / whole, median(&m.cpu) / median(&m.raw_cpu), 1e3 * held,
               1e3 * polls, 1e3 * whole, 100 * (held + polls) / whole, 1e3 * first,
               1e3 * median(&m.lost));
        fflush(stdout);
    }
    weft_checkpoints_close(&sync);
    weft_checkpoints_close(&async);
    state_close(&s);
    return status;
}

/* ---- restores
 * --------------------------------------------------------------------------------------------------
 */

/* The data file of the only step there is. */
static void data_file(char *path)
{
    path_in_directory(path, "from/step_00000001/state.h5");
}

static weft_status restore(state *s, bool is_cold, double *took, weft_error *error)
{
    char from[PATH + 100];
    weft_checkpoints *c = NULL;
    weft_checkpoint_state found;
    path_in_directory(from, "from");
    WEFT_TRY(weft_checkpoints_open(from, NULL, &c, error));
    if (is_cold && weft_world_is_root()) (void)drop_cache();
    WEFT_TRY(weft_world_agree(error));
    const double begin = bench_now();
    const weft_status status = weft_checkpoints_restore(c, s->program, WEFT_NEWEST, &found, error);
    *took = bench_now() - begin;
    weft_checkpoints_close(&c);
    return status;
}

static double raw_read_cold(const void *path)
{
    return drop_cache() ? raw_read(path) : 0.0;
}

static weft_status measure_restores(state *s, series raw[2], series whole[2], series cpu[2],
                                    weft_error *error)
{
    char path[PATH + 100];
    double took;
    data_file(path);
    for (int i = 0; i < REPEATS; i++) {
        for (int is_cold = 0; is_cold < 2; is_cold++) {
            if (!is_cold) (void)at_root(raw_read_of, path); /* all of it in the cache */
            add(&raw[is_cold], at_root(is_cold ? raw_read_cold : raw_read_of, path));
            if (!is_cold) add(&cpu[0], raw_cpu);
            const double begin = processor_seconds();
            WEFT_TRY(restore(s, is_cold, &took, error));
            if (!is_cold) add(&cpu[1], processor_seconds() - begin);
            add(&whole[is_cold], took);
        }
    }
    return WEFT_OK;
}

static weft_status save_from(const place *p, weft_error *error)
{
    char path[PATH + 100];
    state s;
    weft_checkpoints *c = NULL;
    path_in_directory(path, "from");
    weft_status status = state_open(p, &s, error);
    if (status == WEFT_OK) status = weft_checkpoints_open(path, NULL, &c, error);
    if (status == WEFT_OK)
        status = weft_checkpoints_save(c, s.program, &(weft_checkpoint_state){.step = 1}, error);
    if (status == WEFT_OK) status = weft_checkpoints_wait(c, error);
    weft_checkpoints_close(&c);
    state_close(&s);
    return status;
}

static const char restores_head[] = "%-6s %-22s %4s %5s | %8s %8s %6s %6s | %8s %8s %6s\n",
                  restores_row[] =
                      "%-6s %-22s %4d %5.2f | %8.2f %8.2f %6.2f %6.2f | %8.2f %8.2f %6.2f\n";

static weft_status bench_restore(const place *to, weft_error *error)
{
    state s;
    series raw[2] = {{.n = 0}}, whole[2] = {{.n = 0}}, cpu[2] = {{.n = 0}};
    char mesh[80];
    snprintf(mesh, sizeof mesh, "%s %s", to->mesh, to->layout);
    weft_status status = state_open(to, &s, error);
    if (status == WEFT_OK) status = measure_restores(&s, raw, whole, cpu, error);
    if (status == WEFT_OK && weft_world_is_root()) {
        const double gigabytes = 1e-9 * (double)s.bytes, r = median(&raw[0]), w = median(&whole[0]),
                     cold_r = median(&raw[1]), cold_w = median(&whole[1]);
        printf(restores_row, to->name, mesh, to->zero, gigabytes, gigabytes / r, gigabytes / w,
               w / r, median(&cpu[1]) / median(&cpu[0]), cold_r > 0 ? gigabytes / cold_r : 0.0,
               cold_r > 0 ? gigabytes / cold_w : 0.0, cold_r > 0 ? cold_w / cold_r : 0.0);
        fflush(stdout);
    }
    state_close(&s);
    return status;
}

/* ---- hash and verify
 * ------------------------------------------------------------------------------------------- */

static double hash_rate(void)
{
    char *piece = malloc(PIECE);
    must(piece != NULL, "malloc");
    memset(piece, 7, PIECE);
    uint64_t sum = 0;
    const double begin = bench_now();
    for (int i = 0; i < 128; i++)
        sum += XXH3_128bits(piece, PIECE).low64;
    const double rate = 128e-9 * PIECE / (bench_now() - begin);
    free(piece);
    return sum == 1 ? 0.0 : rate;
}

static double verify(const void *path)
{
    weft_error error = {0};
    weft_stored *stored = NULL;
    const double begin = bench_now();
    weft_status status = weft_stored_open(path, &stored, &error);
    if (status == WEFT_OK) status = weft_stored_verify(stored, &error);
    const double took = bench_now() - begin;
    weft_stored_close(&stored);
    must(status == WEFT_OK, error.message);
    return took;
}

static void bench_verify(void)
{
    char path[PATH + 100], from[PATH + 100];
    series raw = {.n = 0}, whole = {.n = 0}, hash = {.n = 0};
    struct stat facts;
    data_file(path);
    path_in_directory(from, "from");
    must(stat(path, &facts) == 0, path);
    for (int i = 0; i < REPEATS; i++) {
        add(&hash, hash_rate());
        (void)raw_read(path);
        add(&raw, raw_read(path));
        add(&whole, verify(from));
    }
    const double gigabytes = 1e-9 * (double)facts.st_size;
    printf("XXH3-128 of 4 MiB, one core: %.2f GB/s; verify %.2f GB/s, raw read %.2f GB/s, cache "
           "warm: %.2f of it\n",
           median(&hash), gigabytes / median(&whole), gigabytes / median(&raw),
           median(&raw) / median(&whole));
}

/* ---- all
 * -------------------------------------------------------------------------------------------------------
 */

static const place save_places[] = {
    {"large", large_loss, "data:1", "", 0, 1},
    {"large", large_loss, "data:2", "batch:data", 0, 2},
    {"large", large_loss, "data:2", "batch:data", 3, 2},
    {"large", large_loss, "model:2", "hidden:model", 0, 2},
    {"large", large_loss, "model:4", "hidden:model", 0, 4},
    {"gpt", gpt_mix_loss, "data:1", "", 0, 1},
    {"gpt", gpt_mix_loss, "data:2", "batch:data", 3, 2},
    {"gpt", gpt_mix_loss, "model:2", "hidden:model,heads:model", 0, 2},
    {"gpt", gpt_mix_loss, "data:2,model:2", "batch:data,hidden:model", 1, 4},
};

/* The first of each state is what is saved for those after it. */
static const place restore_places[] = {
    {"large", large_loss, "data:2", "batch:data", 3, 2},
    {"large", large_loss, "model:2", "hidden:model", 0, 2},
    {"large", large_loss, "data:1", "", 0, 1},
    {"large", large_loss, "model:4", "hidden:model", 0, 4},
    {"gpt", gpt_mix_loss, "data:2", "batch:data", 3, 2},
    {"gpt", gpt_mix_loss, "model:2", "hidden:model,heads:model", 0, 2},
    {"gpt", gpt_mix_loss, "data:1", "", 0, 1},
};

static bool fits(const place *p)
{
    return world.n_processes == 1 || p->n_ranks == world.n_processes;
}

static weft_status bench_all_saves(weft_error *error)
{
    if (weft_world_is_root())
        printf(saves_head, "state", "mesh", "layout", "zero", "GB", "raw GB/s", "save", "ratio",
               "cpu", "save ms", "polls ms", "sync ms", "held %", "1st step", "lost ms");
    for (size_t i = 0; i < sizeof save_places / sizeof *save_places; i++)
        if (fits(&save_places[i])) WEFT_TRY(bench_saves(&save_places[i], error));
    return WEFT_OK;
}

static weft_status bench_all_restores(weft_error *error)
{
    const place *saved = NULL;
    if (weft_world_is_root())
        printf(restores_head, "state", "onto", "zero", "GB", "warm raw", "restore", "times", "cpu",
               "cold raw", "restore", "times");
    for (size_t i = 0; i < sizeof restore_places / sizeof *restore_places; i++) {
        const place *p = &restore_places[i];
        if (!fits(p)) continue;
        if (saved == NULL || strcmp(saved->name, p->name) != 0)
            WEFT_TRY(save_from(saved = p, error));
        WEFT_TRY(bench_restore(p, error));
    }
    if (weft_world_is_root()) bench_verify();
    return weft_world_agree(error);
}

static void set_directory(int n, char **arguments)
{
    const char *slash = strrchr(arguments[0], '/');
    const int job = world.n_processes > 1 ? (int)getppid() : (int)getpid(); /* the same on all */
    if (n > 1) megabytes = atof(arguments[1]);
    if (n > 2)
        snprintf(directory, PATH, "%s/weft-bench-%d", arguments[2], job);
    else
        snprintf(directory, PATH, "%.*s/weft-bench-%d", slash ? (int)(slash - arguments[0]) : 1,
                 slash ? arguments[0] : ".", job);
    must(mkdir(directory, 0777) == 0 || access(directory, W_OK) == 0, directory);
}

int main(int n, char **arguments)
{
    weft_error error = {0};
    char remove[PATH + 100];
    weft_status status = weft_world_open(&world, &error);
    if (status != WEFT_OK) return bench_end("checkpoint", status, &error);
    set_directory(n, arguments);
    status = bench_all_saves(&error);
    if (status == WEFT_OK) status = bench_all_restores(&error);
    if (weft_world_is_root()) {
        snprintf(remove, sizeof remove, "rm -rf '%s'", directory);
        must(system(remove) == 0, remove);
    }
    weft_world_close();
    return bench_end("checkpoint", status, &error);
}
