/* tensors: checkpoints of very many small tensors: what each of them costs, and that it costs the same however many
 * there are.
 *
 *     tensors [MOST [DIRECTORY]]     16384, where this program is
 *
 * The first save lays the file with HDF5, the second lays it again without (frame.h). Times are of the whole call, with
 * the fsync.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "weft/checkpoint.h"
#include "weft/collectives.h"

enum { ELEMENTS = 4, PATH = 3000 };

typedef struct state {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    weft_checkpoints *checkpoints;
} state;

static weft_status compile(const weft_world *world, int n, state *s, weft_error *error)
{
    weft_value *values = calloc((size_t)n, sizeof *values);
    if (values == NULL) return weft_fail_memory(error, (size_t)n * sizeof *values);
    s->graph = weft_graph_create(1);
    for (int i = 0; i < n; i++) {
        char name[16];
        const weft_dim dim = {"element", ELEMENTS};
        snprintf(name, sizeof name, "t%d", i);
        values[i] = weft_variable(s->graph, name, WEFT_F32, WEFT_DIMS(dim), weft_normal(0.0, 1.0));
    }
    weft_status status = weft_mesh_create(world, "data:1", &s->mesh, error);
    if (status == WEFT_OK) status = weft_layout_create("", &s->layout, error);
    if (status == WEFT_OK)
        status =
            weft_compile(s->mesh, s->layout, (weft_values){values, n}, NULL, &s->program, error);
    free(values);
    return status;
}

static weft_status save(state *s, int64_t step, double *took, weft_error *error)
{
    const double begin = bench_now();
    WEFT_TRY(weft_checkpoints_save(s->checkpoints, s->program, &(weft_checkpoint_state){step, 0, 1},
                                   error));
    *took = bench_now() - begin;
    return WEFT_OK;
}

static weft_status measure(state *s, const char *directory, double took[3], weft_error *error)
{
    const weft_checkpoint_options options = {.is_synchronous = true};
    weft_checkpoint_state found;
    WEFT_TRY(weft_checkpoints_open(directory, &options, &s->checkpoints, error));
    WEFT_TRY(save(s, 1, &took[0], error));
    WEFT_TRY(save(s, 2, &took[1], error));
    const double begin = bench_now();
    WEFT_TRY(weft_checkpoints_restore(s->checkpoints, s->program, WEFT_NEWEST, &found, error));
    took[2] = bench_now() - begin;
    return WEFT_OK;
}

static weft_status bench(const weft_world *world, int n, const char *directory, weft_error *error)
{
    state s = {0};
    double took[3] = {0};
    weft_status status = compile(world, n, &s, error);
    if (status == WEFT_OK) status = measure(&s, directory, took, error);
    weft_checkpoints_close(&s.checkpoints);
    weft_program_destroy(&s.program);
    weft_graph_destroy(&s.graph);
    weft_layout_destroy(&s.layout);
    weft_mesh_destroy(&s.mesh);
    if (status != WEFT_OK) return status;
    printf("%8d | %10.3f %10.1f | %10.3f %10.1f | %10.3f %10.1f\n", n, took[0], 1e6 * took[0] / n,
           took[1], 1e6 * took[1] / n, took[2], 1e6 * took[2] / n);
    fflush(stdout);
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    char directory[PATH], command[PATH + 16];
    const char *slash = strrchr(arguments[0], '/');
    const int most = n > 1 ? atoi(arguments[1]) : 16384;
    weft_world world;
    weft_error error = {0};
    snprintf(directory, sizeof directory, "%.*s/weft-tensors-%d",
             n > 2 ? 2000 : (slash ? (int)(slash - arguments[0]) : 1),
             n > 2 ? arguments[2] : (slash ? arguments[0] : "."), (int)getpid());
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    weft_status status = weft_world_open(&world, &error);
    printf("%8s | %10s %10s | %10s %10s | %10s %10s\n", "tensors", "first s", "us each", "second s",
           "us each", "restore s", "us each");
    for (int tensors = 1024; tensors <= most && status == WEFT_OK; tensors *= 2) {
        status = bench(&world, tensors, directory, &error);
        if (system(command) != 0) perror(command);
    }
    weft_world_close();
    return bench_end("tensors", status, &error);
}
